"""The nonlinear regressions of NIST's Statistical Reference Datasets, and how to fit them.

The National Institute of Standards and Technology of the United States publishes 27 problems
with measured (a few: made-up) data, two starting points each, and answers certified to 11
digits in 128-bit arithmetic: https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml. The far
starting point of many of them defeats a solver whose Jacobian is a finite difference.
"""
