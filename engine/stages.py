"""A program at every stage of its way to machine code, each compared with the one before.

==================  ================================================  ==========================
stage               what runs                                         held to
==================  ================================================  ==========================
``ir``              the NumPy references, on the traced graph
``optimized/NAME``  the same, on the graph that a pass has made       the same bits
``nodes``           the optimized graph, a compiled plan for each     each node near its
                    node                                              reference, on equal operands
``fused``           the plan that calls run, on one thread            the same bits
``threads``         the plan on ``config.num_threads`` threads        the same bits
==================  ================================================  ==========================

How near is said in :mod:`.node_checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ir.graph import Graph, Node, Value, toposort
from ..ir.interpret import interpret, interpret_graph
from ..ir.types import GROWING
from .closing import close
from .config import config
from .node_checks import NodeRun, bits, describe
from .single import run_nodes
from .traced import Program

__all__ = ["StageReport", "StageRow", "compare_stages"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage beside the one before.

    Attributes
    ----------
    stage : str
    same : bool
        Whether it keeps what it is held to.
    ulp, relative : float
        The largest difference of a result, in units of the last place (of integers: the largest
        difference) and relative to the stage before; infinite where one of them is not finite. For
        ``nodes`` they may be large although it is the same: a program can enlarge roundings.
    output : str or None
        Where in the result the largest difference is.
    index : tuple of int or None
        The first element that differs there.
    error : str or None
        What it raised in place of results.
    """

    stage: str
    same: bool = True
    ulp: float = 0.0
    relative: float = 0.0
    output: str | None = None
    index: tuple[int, ...] | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StageReport:
    """What :meth:`Lowered.compare_stages` found; ``str()`` is a table.

    Attributes
    ----------
    rows : tuple of StageRow
        In their order. They end with a stage that raised.
    node : str or None
        The first node that differs in the first stage that does, with the line that made it; None
        also if it differs only as part of the whole program.
    """

    rows: tuple[StageRow, ...]
    node: str | None = None

    @property
    def first(self) -> str | None:
        """The first stage that is not the same as the one before."""
        return next((row.stage for row in self.rows if not row.same), None)

    def __str__(self) -> str:
        width = max([len(row.stage) for row in self.rows])
        lines = [f"{'stage':<{width}}  {'ulp':>9}  {'relative':>9}  first difference"]
        for row in self.rows:
            where = "" if row.output is None else f"{row.output} at {list(row.index or ())}"
            shown = row.error or f"{row.ulp:>9.3g}  {row.relative:>9.2g}  {where}"
            mark = "" if row.same else "  DIFFERS"
            lines.append(f"{row.stage:<{width}}  {shown}{mark}".rstrip())
        if self.first is None:
            lines.append("no stage differs")
        else:
            node = "" if self.node is None else f": {self.node}"
            lines.append(f"the first to differ is {self.first}{node}")
        return "\n".join(lines)


class _Comparison:
    """The rows so far, and the results that the next one is compared with."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.rows: list[StageRow] = []
        self.node: str | None = None
        self._labels = labels
        self._results: list[Array] = []

    @property
    def is_same(self) -> bool:
        return all(row.same for row in self.rows)

    def add(self, stage: str, results: Sequence[Array], same: bool | None = None) -> StageRow:
        """The row of a stage; ``same`` in place of whether all bits are."""
        row = StageRow(stage)
        if self.rows:
            for label, new, old in zip(self._labels, results, self._results, strict=False):
                ulp, relative, index = _difference(new, old)
                if index is not None and (row.output is None or ulp > row.ulp):
                    row = replace(row, ulp=ulp, relative=relative, output=label, index=index)
            row = replace(row, same=row.output is None if same is None else same)
        self._results = list(results)
        self.rows.append(row)
        return row

    def fail(self, stage: str, error: Exception) -> StageReport:
        text = str(error).splitlines()
        message = f"{type(error).__name__}: {text[0] if text else ''}"
        self.rows.append(StageRow(stage, False, error=message))
        return self.report()

    def report(self) -> StageReport:
        return StageReport(tuple(self.rows), self.node)


def compare_stages(program: Program, buffers: Sequence[Array]) -> StageReport:
    """Run ``program`` at every stage; see :meth:`.lowered.Lowered.compare_stages`."""
    graph = program.graph()
    arrays = [*buffers, *program.captured]
    found = _Comparison(program.computed())
    found.add("ir", interpret_graph(graph, arrays))
    try:
        graph = _optimized(graph, arrays, found)
    except _StageError as error:
        return found.fail(*error.args)
    run = NodeRun()
    try:
        results = run.run(graph, arrays)
    except (ArithmeticError, LookupError, ValueError):
        raise  # as calls do: the arguments are not in the domain of the program
    except Exception as error:  # noqa: BLE001 - a stage that breaks is what this looks for
        return found.fail("nodes", error)
    if run.fault is not None and found.is_same:
        found.node = str(run.fault)
    found.add("nodes", results, run.fault is None)
    plan = program.plan().plan
    for stage, threads in (("fused", 1), ("threads", config.num_threads)):
        try:
            results = plan.run(arrays, threads)
        except Exception as error:  # noqa: BLE001 - likewise
            return found.fail(stage, error)
        was_same = found.is_same
        if not found.add(stage, results).same and was_same:
            node = _first_node(graph, arrays, threads)
            found.node = None if node is None else describe(node)
    return found.report()


def _difference(new: Array, old: Array) -> tuple[float, float, tuple[int, ...] | None]:
    """Largest difference in ulp and relative, and the first element whose bits differ."""
    unequal = bits(new) != bits(old)
    if not unequal.any():
        return 0.0, 0.0, None
    parts = 2 if new.dtype.kind == "c" else 1
    place = np.unravel_index(int(np.argmax(unequal)) // parts, new.shape)
    wide = old.real.dtype if old.dtype.kind in "fc" else np.dtype(np.float64)
    x, y = (_parts(a)[unequal].astype(wide) for a in (new, old))
    with np.errstate(all="ignore"):
        gap = np.abs(x - y)
        ulp = gap / np.spacing(np.abs(y)) if old.dtype.kind in "fc" else gap
        relative = np.where(gap == 0, 0, gap / np.abs(y))
    worst = [float(np.max(np.where(np.isnan(a), np.inf, a))) for a in (ulp, relative)]
    return worst[0], worst[1], tuple([int(i) for i in place])


def _parts(x: Array) -> Array:
    flat = np.ascontiguousarray(x).reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


# ------------------------------------------------------------------------------------- passes


class _StageError(Exception):
    """``args``: a stage and what it raised."""


def _optimized(graph: Graph, arrays: list[Array], found: _Comparison) -> Graph:
    """The graph after all passes, with a row for each that changed something."""
    from ..ir.passes import manager

    current, stage = graph, ""
    times: dict[str, int] = {}

    def look(when: str, name: str, new: Graph) -> None:
        nonlocal current, stage
        if when == "before":
            stage = f"optimized/{name}"
            return
        if new is current:
            return
        times[name] = times.get(name, 0) + 1
        if times[name] > 1:
            stage = f"optimized/{name} {times[name]}"
        results = interpret_graph(new, arrays)
        was_same = found.is_same
        row = found.add(stage, results)
        if not row.same and was_same:
            found.node = describe(_new_node(current, new, arrays))
        current = new

    try:
        return manager.run_passes(graph, manager.PASSES, fixpoint=True, dump=look)
    except Exception as error:
        raise _StageError(stage, error) from error


def _new_node(before: Graph, after: Graph, arrays: list[Array]) -> Node:
    """The first node behind a changed output whose value no node had before.

    Its operands are values that were there. A pass may make new values rightly, so this is where
    to look first.
    """
    known = {_digest(x) for x in _all_values(before, arrays).values()}
    values = _all_values(after, arrays)
    old = interpret_graph(before, arrays)
    changed = [
        x
        for x, y in zip(after.outputs, old, strict=True)
        if not np.array_equal(bits(values[x]), bits(y))
    ]
    for node in toposort(changed, stop=after.inputs):
        had = all(_digest(values[x]) in known for x in node.inputs)
        if had and not all(_digest(values[x]) in known for x in node.outputs):
            return node
    return changed[0].node


def _all_values(graph: Graph, arrays: list[Array]) -> dict[Value, Array]:
    wanted = [x for node in (*graph.inputs, *graph.nodes()) for x in node.outputs]
    found = interpret(wanted, dict(zip(graph.inputs, arrays, strict=True)))
    return dict(zip(wanted, found, strict=True))


def _digest(x: Array) -> tuple[str, int]:
    """What values of the same elements share, whatever their shape."""
    return x.dtype.str, hash(bits(x).tobytes())


# ------------------------------------------------------------------------------------ kernels


def _first_node(graph: Graph, arrays: list[Array], threads: int) -> Node | None:
    """The node with which the compiled beginning of a graph starts to differ from its nodes.

    Beginnings are compiled anew with all values that what follows needs as outputs, about log2(n)
    of them. None if the whole graph, compiled again, has the right results.
    """
    nodes = graph.nodes()
    last: dict[Value, int] = {x: len(nodes) for x in graph.outputs}
    for k, node in enumerate(nodes):
        for x in node.inputs:
            last[x] = max(last.get(x, 0), k)
    return _bisect(nodes, lambda k: _is_wrong(graph, nodes[:k], last, arrays, threads))


def _bisect(nodes: Sequence[Node], is_wrong: Callable[[int], bool]) -> Node | None:
    """Node k, where the first k are right and the first k + 1 are not."""
    if not nodes or not is_wrong(len(nodes)):
        return None
    right, wrong = 0, len(nodes)
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if is_wrong(middle):
            wrong = middle
        else:
            right = middle
    return nodes[right]


def _is_wrong(
    graph: Graph, nodes: Sequence[Node], last: dict[Value, int], arrays: list[Array], threads: int
) -> bool:
    from ..kernels.plan import compile_graph

    count = len(nodes)
    outputs = tuple([x for node in nodes for x in node.outputs if last.get(x, -1) >= count])
    expected = run_nodes(close(outputs, graph.inputs), arrays)
    found = compile_graph(Graph(graph.inputs, outputs)).run(arrays, threads)
    return not all(
        np.array_equal(bits(x), bits(y))
        for x, y, value in zip(found, expected, outputs, strict=True)
        if value.shape[:1] != (GROWING,)  # of lanes that had finished, tapes hold anything
    )
