"""Speed beside the peers: ``tilegrad bench``, also ``python -m tilegrad.bench``.

A *workload* is a program written once over a *side* (:mod:`.sides`): the names of an array library
and its transforms. Every side computes it; values are compared before a time is taken, and the
sides take turns in one process, so that a drift of the machine meets all of them. What counts is
the ratio.
"""
