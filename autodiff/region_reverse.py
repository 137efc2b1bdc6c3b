"""Reverse mode through regions: split a region, run its linear half backward.

The tangent of a region computes known values (what it computed before) and linear ones (tangents)
in one body. To transpose it, the body is split. The *known* half is the region as it was, which
records what the other half reads; the *linear* half, transposed, is a loop over the records in the
opposite direction. A ``while`` records tapes and counts its trips; its transpose is a counted loop.

What is recorded is a minimum cut of the body (:mod:`.rematerialize`): captured values and sequences
are there anyhow, what is cheap is computed again. A loop that is linear but for its sequences
records nothing. Loops inside the body are split where the outer transpose meets them, so they run
again there and leave no tapes inside of tapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ..ir.graph import Graph, Node, Value, make_node, toposort
from ..ir.ops import add, lt, where
from ..ir.ops.fill import zeros_of
from ..ir.ops.leaves import input_node
from ..ir.ops.regions import COND, LOOP, Loop, While, strong
from ..ir.ops.shape import broadcast
from ..ir.rewrite import substitute
from ..ir.types import GROWING, TensorType
from .region_segments import segmented, segments_of
from .rematerialize import partition
from .reverse import linear_nodes, transpose

__all__ = ["linear_results", "transposed_region"]

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
        return _settled(loop.body, [False, *linear[first:]], len(loop.consts), len(loop.init))[1]
    open_loop = While.of(node)
    flags = [False, *linear[len(open_loop.cond_consts) :]]
    count = len(open_loop.init)
    found = _settled(open_loop.body, flags, len(open_loop.body_consts), count)[1]
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


def _settled(
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
class _Split:
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
        graph: Graph, linear: Sequence[bool], outputs: Sequence[bool], given: Sequence[Node]
    ) -> _Split:
        """``given`` inputs are at hand in the linear half, at no cost."""
        graph = _separated(graph, linear)
        starts = [x.out for x, on in zip(graph.inputs, linear, strict=True) if on]
        ends = [y for y, on in zip(graph.outputs, outputs, strict=True) if on]
        known = [y for y, on in zip(graph.outputs, outputs, strict=True) if not on]
        found = partition(
            known,
            linear_nodes(ends, starts),
            [x.out for x in given],
            unsaveable=lambda x: x.shape[:1] == (GROWING,),
        )
        return _Split(graph, list(linear), list(outputs), list(found.saved))

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


def _separated(graph: Graph, linear: Sequence[bool]) -> Graph:
    """``graph`` with the known results of mixed regions computed by regions that are known whole.

    Otherwise the known half would wait for the linear inputs.
    """
    reach: dict[Node, list[bool]] = {
        x: [True] for x, on in zip(graph.inputs, linear, strict=True) if on
    }
    renewed: dict[Value, Value] = {}
    for node in graph.nodes():
        flags = [x.node in reach and reach[x.node][x.index] for x in node.inputs]
        if True not in flags:
            continue
        if node.op.kind != "region":
            reach[node] = [t.dtype.is_inexact for t in node.types]
            continue
        reach[node] = linear_results(node, flags)
        if not all(reach[node]):
            known = iter(_known_region(node, flags).outputs)
            renewed.update(
                {x: next(known) for x, on in zip(node.outputs, reach[node], strict=True) if not on}
            )
    if not renewed:
        return graph
    return Graph(graph.inputs, substitute(graph.outputs, renewed), graph.name)


def _known_region(node: Node, linear: Sequence[bool]) -> Node:
    """The region without its linear operands and results."""
    results = linear_results(node, linear)
    if node.op is COND:
        flags = linear[1:]
        branches = []
        for branch in node.param("branches"):
            split = _separated(branch, flags)
            outputs = _unflagged(split.outputs, results)
            branches.append(Graph(_unflagged(split.inputs, flags), outputs, split.name))
        operands = _unflagged(node.inputs, linear)
        return make_node(COND, operands, branches=tuple(branches))
    if node.op is LOOP:
        loop = Loop.of(node)
        first = 0 if loop.count is None else 1
        flags, found = _settled(
            loop.body, [False, *linear[first:]], len(loop.consts), len(loop.init)
        )
        return _known_loop(loop, flags, found).node()
    open_loop = While.of(node)
    flags, found = _settled(
        open_loop.body,
        [False, *linear[len(open_loop.cond_consts) :]],
        len(open_loop.body_consts),
        len(open_loop.init),
    )
    return _known_while(open_loop, flags, found).node()


def _known_body(body: Graph, flags: Sequence[bool], results: Sequence[bool]) -> Graph:
    graph = _separated(body, flags)
    return Graph(_unflagged(graph.inputs, flags), _unflagged(graph.outputs, results), graph.name)


def _known_loop(loop: Loop, flags: Sequence[bool], results: Sequence[bool]) -> Loop:
    at, carries = 1 + len(loop.consts), len(loop.init)
    own = carries - loop.shared
    carried = flags[at : at + carries]
    return replace(
        loop,
        body=_known_body(loop.body, flags, results),
        consts=_unflagged(loop.consts, flags[1:at]),
        init=_unflagged(loop.init, carried),
        xs=_unflagged(loop.xs, flags[at + carries :]),
        shared=sum(not on for on in carried[own:]),
    )


def _known_while(loop: While, flags: Sequence[bool], results: Sequence[bool]) -> While:
    at, tested = 1 + len(loop.body_consts), len(loop.cond_consts)
    # The condition reads known carries alone.
    kept = (*loop.cond.inputs[:tested], *_unflagged(loop.cond.inputs[tested:], flags[at:]))
    return replace(
        loop,
        cond=Graph(kept, loop.cond.outputs, loop.cond.name),
        body=_known_body(loop.body, flags, results),
        body_consts=_unflagged(loop.body_consts, flags[1:at]),
        init=_unflagged(loop.init, flags[at:]),
    )


def _recording(body: Graph, saved: Sequence[Value]) -> Graph:
    return Graph(body.inputs, (*body.outputs, *saved), body.name)


def transposed_region(
    node: Node, cotangents: Sequence[Value | None], linear: Sequence[bool]
) -> list[Value | None]:
    """Cotangents of the operands of a region node, None for zero and for known operands."""
    if node.op is COND:
        return _cond(node, cotangents, linear)
    if node.op is LOOP:
        return _loop(node, cotangents, linear)
    return _while(node, cotangents, linear)


# ----------------------------------------------------------------------------------------- loops


def _loop(
    node: Node, cotangents: Sequence[Value | None], linear: Sequence[bool]
) -> list[Value | None]:
    loop = Loop.of(node)
    first = 0 if loop.count is None else 1
    consts, carries = len(loop.consts), len(loop.init)
    flags, results = _settled(loop.body, [False, *linear[first:]], consts, carries)
    inputs = loop.body.inputs
    at = 1 + consts
    given = [x for k, x in enumerate(inputs) if not flags[k] and not at <= k < at + carries]
    split = _Split.of(loop.body, flags, results, given)
    known = _known_loop(loop, flags, results)
    if loop.checkpoint is not None and loop.length:
        pieces = segments_of(loop, known, split.saved)
        if pieces is not None:
            return _in_segments(loop, pieces, cotangents, linear)
    records: list[Value] = []
    if split.saved:
        recording = replace(known, body=_recording(known.body, split.saved)).node()
        records = list(recording.outputs[-len(split.saved) :])
    return [None] * first + _Backward(loop, split, cotangents).run(records)


def _in_segments(
    loop: Loop,
    pieces: Sequence[tuple[int, ...]],
    cotangents: Sequence[Value | None],
    linear: Sequence[bool],
) -> list[Value | None]:
    """The cotangents of a loop written as loops of loops: the inner ones run again."""
    operands = [*loop.consts, *loop.init, *loop.xs]
    inputs = tuple([_input(x.type, "x") for x in operands])
    stand_ins = [x.out for x in inputs]
    at, end = len(loop.consts), len(loop.consts) + len(loop.init)
    nested = segmented(
        replace(
            loop,
            consts=tuple(stand_ins[:at]),
            init=tuple(stand_ins[at:end]),
            xs=tuple(stand_ins[end:]),
        ),
        pieces,
    )
    outputs = _separated(Graph(inputs, tuple(nested)), linear).outputs
    known = {s: x for s, x, on in zip(stand_ins, operands, linear, strict=True) if not on}
    nested = list(substitute(outputs, known))
    given = [(y, c) for y, c in zip(nested, cotangents, strict=True) if c is not None]
    starts = [x for x, on in zip(stand_ins, linear, strict=True) if on]
    found = iter(transpose([y for y, _ in given], starts, [c for _, c in given]))
    return [next(found) if on else None for on in linear]


def _while(
    node: Node, cotangents: Sequence[Value | None], linear: Sequence[bool]
) -> list[Value | None]:
    loop = While.of(node)
    tested, consts, carries = len(loop.cond_consts), len(loop.body_consts), len(loop.init)
    flags, results = _settled(loop.body, [False, *linear[tested:]], consts, carries)
    at = 1 + consts
    given = [x for k, x in enumerate(loop.body.inputs[:at]) if not flags[k]]
    split = _Split.of(loop.body, flags, results, given)
    known = _known_while(loop, flags, results)
    recording = replace(known, body=_recording(known.body, split.saved)).node()
    state = len(known.init)
    records = list(recording.outputs[len(recording.types) - len(split.saved) :])
    trips = Value(recording, state)
    counted = Loop(loop.body, loop.body_consts, loop.init, (), None, trips)
    # Neither the count of trips nor the condition has a cotangent.
    given_back = [*cotangents[:carries], *cotangents[carries + 1 :]]
    return [None] * tested + _Backward(counted, split, given_back).run(records)


def _unflagged(items: Sequence[_T], flags: Sequence[bool]) -> tuple[_T, ...]:
    return tuple([x for x, on in zip(items, flags, strict=True) if not on])


class _Backward:
    """The loop over the records in the opposite direction.

    Its carries are the cotangents of the carries, and the sums of those of the captured values;
    its sequences are the records, the known sequences and the cotangents of what was recorded; it
    records the cotangents of the sequences.
    """

    def __init__(self, loop: Loop, split: _Split, cotangents: Sequence[Value | None]) -> None:
        self.loop = loop
        self.split = split
        self.body = loop.body
        self.consts, self.carries = len(loop.consts), len(loop.init)
        self.at = 1 + self.consts
        self.cotangents = list(cotangents)
        self.stand_ins = [_input(x.type, "record") for x in split.saved]
        # Where a lane is done, nothing flows back.
        self.active = (
            lt(broadcast(self.body.inputs[0].out, loop.lanes, ()), _input(loop.count.type, "n").out)
            if loop.count is not None and loop.lanes
            else None
        )

    def run(self, records: Sequence[Value]) -> list[Value | None]:
        """Cotangents of (consts, init, sequences)."""
        live = [c is not None for c in self.cotangents[: self.carries]]
        while True:
            given = self._inputs(live)
            found = self.split.transposed(
                [x.out for x in self.stand_ins], [self._masked(k, x) for k, x in given]
            )
            parts = found[self.at : self.at + self.carries]
            after = [a or c is not None for a, c in zip(live, parts, strict=True)]
            if after == live:
                break
            live = after
        return self._built(records, live, [x for _, x in given], found)

    def _inputs(self, live: Sequence[bool]) -> list[tuple[int, Node | None]]:
        """An input for the cotangent of each output that has one."""
        outputs = self.body.outputs
        return [
            (
                k,
                _input(y.type, "ct")
                if (live[k] if k < self.carries else self.cotangents[k] is not None)
                else None,
            )
            for k, y in enumerate(outputs)
        ]

    def _masked(self, k: int, x: Node | None) -> Value | None:
        own = k < self.carries - self.loop.shared or k >= self.carries
        if x is None or self.active is None or not own:
            return None if x is None else x.out
        kept = broadcast(self.active, x.types[0].shape, tuple(range(self.active.ndim)))
        return where(kept, x.out, zeros_of(x.types[0]))

    def _built(
        self,
        records: Sequence[Value],
        live: Sequence[bool],
        given: Sequence[Node | None],
        found: Sequence[Value | None],
    ) -> list[Value | None]:
        loop, at, carries = self.loop, self.at, self.carries
        own = carries - loop.shared
        flags = self.split.linear
        inner = self.body.inputs
        # (input, initial value, output) of each carry, with the place of the operand it is for.
        state: list[tuple[int, Node, Value, Value]] = []
        for k in range(carries):
            ct = given[k]
            if k == own:
                shared_from = len(state)
            if live[k] and ct is not None:
                t = ct.types[0]
                state.append(
                    (at + k, ct, _or_zeros(self.cotangents[k], t), _or_zeros(found[at + k], t))
                )
        if own == carries:
            shared_from = len(state)
        for k in range(1, at):
            part = found[k]
            if part is not None:
                total = _input(part.type, "sum")
                state.append((k, total, zeros_of(part.type), add(total.out, part)))
        recorded = [k for k in range(at + carries, len(inner)) if found[k] is not None]
        outputs = [y for *_, y in state] + [found[k] for k in recorded if found[k] is not None]
        used = set(toposort(outputs)) | {y.node for y in outputs}
        consts = [
            (x, v)
            for x, v, on in zip(inner[1:at], loop.consts, flags[1:at], strict=True)
            if not on and x in used
        ]
        if self.active is not None and loop.count is not None:
            consts.append((self.active.node.inputs[1].node, loop.count))
        xs = [
            *[
                (x, v)
                for x, v, on in zip(
                    inner[at + carries :], loop.xs, flags[at + carries :], strict=True
                )
                if not on and x in used
            ],
            *[(x, v) for x, v in zip(self.stand_ins, records, strict=True) if x in used],
            *[
                (x, c)
                for x, c in zip(given[carries:], self.cotangents[carries:], strict=True)
                if x is not None and c is not None and x in used
            ],
        ]
        if not state and not recorded:
            return [None] * (len(inner) - 1)
        graph = Graph(
            (
                inner[0],
                *[x for x, _ in consts],
                *[x for _, x, _, _ in state],
                *[x for x, _ in xs],
            ),
            tuple(outputs),
            "backward",
        )
        node = Loop(
            graph,
            tuple([v for _, v in consts]),
            tuple([v for _, _, v, _ in state]),
            tuple([v for _, v in xs]),
            loop.length,
            loop.count,
            not loop.reverse,
            len(state) - shared_from if loop.lanes else 0,
        ).node()
        result: list[Value | None] = [None] * len(inner)
        for n, (k, *_) in enumerate(state):
            result[k] = Value(node, n)
        for n, k in enumerate(recorded):
            result[k] = Value(node, len(state) + n)
        return result[1:]


def _or_zeros(x: Value | None, t: TensorType) -> Value:
    return zeros_of(t) if x is None else x


def _input(t: TensorType, name: str) -> Node:
    return input_node(strong(t), name)


# -------------------------------------------------------------------------------------- branches


def _cond(
    node: Node, cotangents: Sequence[Value | None], linear: Sequence[bool]
) -> list[Value | None]:
    index, *operands = node.inputs
    flags = list(linear[1:])
    results = linear_results(node, linear)
    branches: tuple[Graph, ...] = node.param("branches")
    splits = [
        _Split.of(b, flags, results, [x for x, on in zip(b.inputs, flags, strict=True) if not on])
        for b in branches
    ]
    fixed = _unflagged(operands, flags)
    slots, places = _slots([split.saved for split in splits])
    saved: list[Value] = []
    if slots:
        known = [
            Graph(
                _unflagged(split.graph.inputs, flags),
                tuple(
                    [split.saved[own[k]] if k in own else zeros_of(t) for k, t in enumerate(slots)]
                ),
                "known",
            )
            for split, own in zip(splits, places, strict=True)
        ]
        saved = list(make_node(COND, (index, *fixed), branches=tuple(known)).outputs)
    given = [c for c, on in zip(cotangents, results, strict=True) if on and c is not None]
    found: list[tuple[tuple[Node, ...], list[Value | None]]] = []
    for split, own in zip(splits, places, strict=True):
        records = [_input(t, "record") for t in slots]
        cts = [
            _input(c.type, "ct") if on and c is not None else None
            for c, on in zip(cotangents, results, strict=True)
        ]
        slot_of = {n: k for k, n in own.items()}
        stand_ins = [records[slot_of[n]].out for n in range(len(split.saved))]
        parts = split.transposed(stand_ins, [None if c is None else c.out for c in cts])
        inputs = (*_unflagged(split.graph.inputs, flags), *records)
        found.append(((*inputs, *[c for c in cts if c is not None]), parts))
    wanted = [k for k in range(len(operands)) if any(p[k] is not None for _, p in found)]
    if not wanted:
        return [None] * len(linear)
    graphs = [
        Graph(
            inputs,
            tuple([_or_zeros(parts[k], operands[k].type) for k in wanted]),
            "backward",
        )
        for inputs, parts in found
    ]
    backward = make_node(COND, (index, *fixed, *saved, *given), branches=tuple(graphs))
    result: list[Value | None] = [None] * len(linear)
    for n, k in enumerate(wanted):
        result[1 + k] = Value(backward, n)
    return result


def _slots(
    saved: Sequence[Sequence[Value]],
) -> tuple[list[TensorType], list[dict[int, int]]]:
    """Types of records that the branches share, and for each branch {slot: number of its value}."""
    slots: list[TensorType] = []
    places: list[dict[int, int]] = []
    for values in saved:
        own: dict[int, int] = {}
        for n, x in enumerate(values):
            t = strong(x.type)
            free = [k for k, s in enumerate(slots) if s == t and k not in own]
            if not free:
                free = [len(slots)]
                slots.append(t)
            own[free[0]] = n
        places.append(own)
    return slots, places
