"""The two halves of a region: what is known, and what is linear in some of its operands.

The tangent of a region computes known values (what it computed before) and linear ones (tangents)
in one body. The known half is a region of its own, without the linear operands; which of its values
the linear half gets from it, and which it computes again, is a minimum cut of the body
(:mod:`.rematerialize`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ..ir.graph import Graph, Node, Value, make_node
from ..ir.ops.fill import zeros_of
from ..ir.ops.leaves import input_node
from ..ir.ops.regions import COND, LOOP, Loop, While, strong
from ..ir.rewrite import rebuild, substitute
from ..ir.types import GROWING, TensorType
from .region_lanes import Lanes
from .rematerialize import partition
from .reverse import linear_nodes, transpose

__all__ = [
    *("Split", "fresh_input", "known_loop", "known_while", "linear_results", "or_zeros"),
    *("recording_body", "separated", "settled", "unflagged"),
]

_T = TypeVar("_T")


# ------------------------------------------------------------------------- what is linear in what


def linear_results(node: Node, linear: Sequence[bool]) -> list[bool]:
    """Which results of a region node depend on its linear operands, which ``linear`` flags."""
    if node.op is COND:
        flags = [False] * len(node.types)
        for branch in node.param("branches"):
            found = _reached(branch, linear[1:])
            flags = [a or b for a, b in zip(flags, found, strict=True)]
        return flags
    if node.op is LOOP:
        loop = Loop.of(node)
        first = 0 if loop.count is None else 1
        return settled(loop.body, [False, *linear[first:]], len(loop.consts), len(loop.init))[1]
    open_loop = While.of(node)
    flags = [False, *linear[len(open_loop.cond_consts) :]]
    count = len(open_loop.init)
    found = settled(open_loop.body, flags, len(open_loop.body_consts), count)[1]
    return [*found[:count], False, *found[count:]]


def _reached(graph: Graph, linear: Sequence[bool]) -> list[bool]:
    """Which outputs of a graph depend on its linear inputs."""
    reach: dict[Node, list[bool]] = {
        x: [on] for x, on in zip(graph.inputs, linear, strict=True) if on
    }
    for node in graph.nodes():
        flags = [x.node in reach and reach[x.node][x.index] for x in node.inputs]
        if True in flags:
            region = node.op.kind == "region"
            reach[node] = (
                linear_results(node, flags) if region else [t.dtype.is_inexact for t in node.types]
            )
    return [x.node in reach and reach[x.node][x.index] for x in graph.outputs]


def settled(
    body: Graph, linear: Sequence[bool], consts: int, carries: int
) -> tuple[list[bool], list[bool]]:
    """Linear inputs and results of a body, once the carries that are linear stay so."""
    flags = list(linear)
    first = 1 + consts
    while True:
        found = _reached(body, flags)
        before = flags[first : first + carries]
        after = [a or b for a, b in zip(before, found[:carries], strict=True)]
        if after == before:
            return flags, [*after, *found[carries:]]
        flags[first : first + carries] = after


# ------------------------------------------------------------------------------------- the split


@dataclass(slots=True)
class Split:
    """A graph between its known and its linear half.

    Attributes
    ----------
    graph : Graph
    linear : list of bool
        Which inputs are linear.
    outputs : list of bool
        Which outputs are.
    saved : list of Value
        Known values that the linear half reads and that it cannot have otherwise.
    """

    graph: Graph
    linear: list[bool]
    outputs: list[bool]
    saved: list[Value]

    @staticmethod
    def of(
        graph: Graph,
        linear: Sequence[bool],
        outputs: Sequence[bool],
        given: Sequence[Node],
        lanes: Lanes | None = None,
    ) -> Split:
        """``given`` inputs are at hand in the linear half, at no cost. What a loop with ``lanes``
        saves is theirs."""
        graph = separated(graph, linear)
        owned = None if lanes is None else lanes.owned(graph)
        starts = [x.out for x, on in zip(graph.inputs, linear, strict=True) if on]
        ends = [y for y, on in zip(graph.outputs, outputs, strict=True) if on]
        known = [y for y, on in zip(graph.outputs, outputs, strict=True) if not on]
        found = partition(
            known,
            linear_nodes(ends, starts),
            [x.out for x in given],
            unsaveable=lambda x: x.shape[:1] == (GROWING,) or not (owned is None or x in owned),
            late=True,
        )
        return Split(graph, list(linear), list(outputs), list(found.saved))

    def transposed(
        self, stand_ins: Sequence[Value], cotangents: Sequence[Value | None]
    ) -> list[Value | None]:
        """Cotangents of the linear inputs (None for others), ``stand_ins`` being what was saved.

        ``cotangents``: one an output.
        """
        outputs = substitute(self.graph.outputs, dict(zip(self.saved, stand_ins, strict=True)))
        ends = [(y, c) for y, c, on in zip(outputs, cotangents, self.outputs, strict=True) if on]
        starts = [x.out for x, on in zip(self.graph.inputs, self.linear, strict=True) if on]
        found = iter(transpose([y for y, _ in ends], starts, [c for _, c in ends]))
        return [next(found) if on else None for on in self.linear]


def separated(graph: Graph, linear: Sequence[bool]) -> Graph:
    """``graph`` with the known results of mixed regions computed by regions that are known whole.

    Otherwise the known half would wait for the linear inputs.
    """
    reach: dict[Node, list[bool]] = {
        x: [True] for x, on in zip(graph.inputs, linear, strict=True) if on
    }
    renewed: dict[Value, Value] = {}
    for node in graph.nodes():
        flags = [x.node in reach and reach[x.node][x.index] for x in node.inputs]
        new = rebuild(node, [renewed.get(x, x) for x in node.inputs])
        if new is not node:
            renewed.update(zip(node.outputs, new.outputs, strict=True))
        if True not in flags:
            continue
        if node.op.kind != "region":
            reach[node] = [t.dtype.is_inexact for t in node.types]
            continue
        reach[node] = linear_results(node, flags)
        if not all(reach[node]):
            known = iter(_known_region(new, flags).outputs)
            fixed = [x for x, on in zip(node.outputs, reach[node], strict=True) if not on]
            renewed.update({x: next(known) for x in fixed})
    if not renewed:
        return graph
    outputs = tuple([renewed.get(x, x) for x in graph.outputs])
    return Graph(graph.inputs, outputs, graph.name)


def _known_region(node: Node, linear: Sequence[bool]) -> Node:
    """The region without its linear operands and results."""
    results = linear_results(node, linear)
    if node.op is COND:
        flags = linear[1:]
        branches = []
        for branch in node.param("branches"):
            split = separated(branch, flags)
            outputs = unflagged(split.outputs, results)
            branches.append(Graph(unflagged(split.inputs, flags), outputs, split.name))
        operands = unflagged(node.inputs, linear)
        return make_node(COND, operands, branches=tuple(branches))
    if node.op is LOOP:
        loop = Loop.of(node)
        first = 0 if loop.count is None else 1
        flags, found = settled(
            loop.body, [False, *linear[first:]], len(loop.consts), len(loop.init)
        )
        return known_loop(loop, flags, found).node()
    open_loop = While.of(node)
    flags, found = settled(
        open_loop.body,
        [False, *linear[len(open_loop.cond_consts) :]],
        len(open_loop.body_consts),
        len(open_loop.init),
    )
    return known_while(open_loop, flags, found).node()


def _known_body(body: Graph, flags: Sequence[bool], results: Sequence[bool]) -> Graph:
    graph = separated(body, flags)
    return Graph(unflagged(graph.inputs, flags), unflagged(graph.outputs, results), graph.name)


def known_loop(loop: Loop, flags: Sequence[bool], results: Sequence[bool]) -> Loop:
    at, carries = 1 + len(loop.consts), len(loop.init)
    own = carries - loop.shared
    carried = flags[at : at + carries]
    return replace(
        loop,
        body=_known_body(loop.body, flags, results),
        consts=unflagged(loop.consts, flags[1:at]),
        init=unflagged(loop.init, carried),
        xs=unflagged(loop.xs, flags[at + carries :]),
        shared=sum(not on for on in carried[own:]),
    )


def known_while(loop: While, flags: Sequence[bool], results: Sequence[bool]) -> While:
    at, tested = 1 + len(loop.body_consts), len(loop.cond_consts)
    # The condition reads known carries alone.
    kept = (*loop.cond.inputs[:tested], *unflagged(loop.cond.inputs[tested:], flags[at:]))
    return replace(
        loop,
        cond=Graph(kept, loop.cond.outputs, loop.cond.name),
        body=_known_body(loop.body, flags, results),
        body_consts=unflagged(loop.body_consts, flags[1:at]),
        init=unflagged(loop.init, flags[at:]),
    )


def recording_body(body: Graph, saved: Sequence[Value]) -> Graph:
    return Graph(body.inputs, (*body.outputs, *saved), body.name)


def unflagged(items: Sequence[_T], flags: Sequence[bool]) -> tuple[_T, ...]:
    return tuple([x for x, on in zip(items, flags, strict=True) if not on])


def or_zeros(x: Value | None, t: TensorType) -> Value:
    return zeros_of(t) if x is None else x


def fresh_input(t: TensorType, name: str) -> Node:
    return input_node(strong(t), name)
