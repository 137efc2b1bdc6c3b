"""The pass manager: named passes in a fixed order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import TilegradError
from ..graph import Graph
from ..text import text
from ..verify import verify
from .canonicalize import canonicalize
from .cse import eliminate_common_subexpressions
from .fold import Evaluate, evaluate_exactly, fold
from .inline import inline
from .merge_regions import merge_regions
from .regions import hoist_invariants, optimize_bodies, prune_regions

__all__ = ["PASSES", "Dump", "Pass", "dump_to_stderr", "optimize", "passes_with", "run_passes"]

Dump = Callable[[str, str, Graph], None]

_MOST_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass and the promise it makes.

    Attributes
    ----------
    name : str
    run : callable
        ``Graph -> Graph``, pure, with the same inputs and output types.
    keeps : str
        ``"bitwise"``: every bit of every output. ``"real-only"``: the value in exact arithmetic.
    doc : str
    """

    name: str
    run: Callable[[Graph], Graph]
    keeps: Literal["bitwise", "real-only"]
    doc: str


def passes_with(evaluate: Evaluate = evaluate_exactly) -> tuple[Pass, ...]:
    """The standard passes in their order, folding with ``evaluate``."""

    def bodies(graph: Graph) -> Graph:
        """The same passes inside regions."""
        return optimize_bodies(graph, lambda body: run_passes(body, passes, fixpoint=True))

    passes = (
        Pass("inline", inline, "bitwise", "replace checkpoints by what they hold"),
        Pass("canonicalize", canonicalize, "bitwise", "collapse views, drop what does nothing"),
        Pass("fold", lambda graph: fold(graph, evaluate), "bitwise", "compute constants now"),
        Pass("cse", eliminate_common_subexpressions, "bitwise", "compute equal nodes once"),
        Pass("bodies", bodies, "bitwise", "the passes inside regions"),
        Pass("prune", prune_regions, "bitwise", "drop parts of regions that nobody reads"),
        Pass("hoist", hoist_invariants, "bitwise", "move what a loop does not change out of it"),
        Pass("merge", merge_regions, "bitwise", "one loop where another computes the same"),
    )
    return passes


PASSES = passes_with()


def optimize(graph: Graph) -> Graph:
    """``graph`` after the standard passes, repeated until nothing changes."""
    return run_passes(graph, PASSES, fixpoint=True)


def run_passes(
    graph: Graph,
    passes: Sequence[Pass] = PASSES,
    *,
    fixpoint: bool = False,
    check: bool | None = None,
    dump: Dump | None = None,
) -> Graph:
    """``graph`` after ``passes``, in their order.

    Parameters
    ----------
    graph : Graph
    passes : sequence of Pass
    fixpoint : bool
        Repeat the sequence until no pass has anything to do (ten rounds at most).
    check : bool, optional
        Verify the graph before the first and after each pass. Default: ``TILEGRAD_VERIFY=1``.
    dump : callable, optional
        ``dump("before" | "after", pass_name, graph)``. Default: prints the passes named in
        ``TILEGRAD_DUMP`` (separated by commas; ``all``) to stderr.

    Raises
    ------
    TilegradError
        If a pass changes inputs or output types, or (``check``) breaks a rule of the IR.
    """
    if check is None:
        check = os.environ.get("TILEGRAD_VERIFY") == "1"
    if dump is None:
        dump = _dump_of_environment()
    if check:
        verify(graph, allow_data=True)
    idle = 0  # passes in a row that had nothing to do; one that ran just now has no more to do
    for step in [*passes] * (_MOST_ROUNDS if fixpoint else 1):
        new = _apply(step, graph, check, dump)
        idle = idle + 1 if new is graph else 1
        graph = new
        if idle == len(passes):
            break
    return graph


def _apply(step: Pass, graph: Graph, check: bool, dump: Dump | None) -> Graph:
    if dump is not None:
        dump("before", step.name, graph)
    new = step.run(graph)
    if new.inputs != graph.inputs or [x.type for x in new.outputs] != [
        x.type for x in graph.outputs
    ]:
        raise TilegradError(f"pass {step.name}: changed the inputs or the types of the outputs")
    if check:
        try:
            verify(new, allow_data=True)
        except TilegradError as error:
            error.args = (f"after pass {step.name}: {error.args[0]}", *error.args[1:])
            raise
    if dump is not None:
        dump("after", step.name, new)
    return new


def dump_to_stderr(when: str, name: str, graph: Graph) -> None:
    """Print a graph with a heading: a ready-made ``dump`` for :func:`run_passes`."""
    print(f"# {when} {name}\n{text(graph)}", file=sys.stderr)


def _dump_of_environment() -> Dump | None:
    names = {name.strip() for name in os.environ.get("TILEGRAD_DUMP", "").split(",")} - {""}
    if not names:
        return None

    def dump(when: str, name: str, graph: Graph) -> None:
        if name in names or "all" in names:
            dump_to_stderr(when, name, graph)

    return dump
