"""Reverse mode through regions: split a region, run its linear half backward.

To transpose the tangent of a region its body is split (:mod:`.region_split`). The *known* half is
the region as it was, which records what the other half reads; the *linear* half, transposed, is a
loop over the records in the opposite direction (:mod:`.region_backward`). A ``while`` records tapes
and counts its trips; its transpose is a counted loop.

What is recorded is chosen: captured values and sequences are there anyhow, what is cheap is
computed again. A loop that is linear but for its sequences records nothing. Loops inside the body
are split where the outer transpose meets them, so they run again there and leave no tapes inside
of tapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.graph import Graph, Node, Value, make_node
from ..ir.ops.fill import zeros_of
from ..ir.ops.regions import COND, LOOP, Loop, While, strong
from ..ir.rewrite import substitute
from ..ir.types import TensorType
from .region_backward import Backward
from .region_lanes import Lanes
from .region_segments import segmented, segmented_at_run_time, segments_of
from .region_split import (
    Split,
    fresh_input,
    known_loop,
    known_while,
    linear_results,
    or_zeros,
    recording_body,
    separated,
    settled,
    unflagged,
)
from .reverse import transpose

__all__ = ["transposed_region"]


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
    flags, results = settled(loop.body, [False, *linear[first:]], consts, carries)
    inputs = loop.body.inputs
    at = 1 + consts
    given = [x for k, x in enumerate(inputs) if not flags[k] and not at <= k < at + carries]
    own = inputs[at : at + carries - loop.shared]
    lanes = Lanes(loop.lanes, own, inputs[at + carries :]) if loop.lanes else None
    split = Split.of(loop.body, flags, results, given, lanes)
    known = known_loop(loop, flags, results)
    if loop.checkpoint is not None and split.saved:
        found = _in_segments(loop, known, split.saved, cotangents, linear[first:])
        if found is not None:
            return [None] * first + found
    records: list[Value] = []
    if split.saved:
        recording = replace(known, body=recording_body(known.body, split.saved)).node()
        records = list(recording.outputs[-len(split.saved) :])
    return [None] * first + Backward(loop, split, cotangents).run(records)


def _in_segments(
    loop: Loop,
    known: Loop,
    saved: Sequence[Value],
    cotangents: Sequence[Value | None],
    linear: Sequence[bool],
) -> list[Value | None] | None:
    """The cotangents of (consts, init, sequences) of a loop written as loops of loops, of which the
    inner ones run again; None if that saves nothing.
    """
    operands = [*loop.consts, *loop.init, *loop.xs]
    inputs = tuple([fresh_input(x.type, "x") for x in operands])
    stand_ins = [x.out for x in inputs]
    at, end = len(loop.consts), len(loop.consts) + len(loop.init)
    free = replace(
        loop,
        consts=tuple(stand_ins[:at]),
        init=tuple(stand_ins[at:end]),
        xs=tuple(stand_ins[end:]),
    )
    counts: tuple[Node, ...] = ()
    if loop.length is None:
        assert loop.count is not None
        counts = (fresh_input(loop.count.type, "count"),)
        nested = segmented_at_run_time(replace(free, count=counts[0].out), known, saved)
    else:
        pieces = segments_of(loop, known, saved)
        nested = None if pieces is None else segmented(free, pieces)
    if nested is None:
        return None
    flags = [*[False] * len(counts), *linear]
    outputs = separated(Graph((*counts, *inputs), tuple(nested)), flags).outputs
    there = {s: x for s, x, on in zip(stand_ins, operands, linear, strict=True) if not on}
    if loop.count is not None and counts:
        there[counts[0].out] = loop.count
    nested = list(substitute(outputs, there))
    given = [(y, c) for y, c in zip(nested, cotangents, strict=True) if c is not None]
    starts = [x for x, on in zip(stand_ins, linear, strict=True) if on]
    found = iter(transpose([y for y, _ in given], starts, [c for _, c in given]))
    return [next(found) if on else None for on in linear]


def _while(
    node: Node, cotangents: Sequence[Value | None], linear: Sequence[bool]
) -> list[Value | None]:
    loop = While.of(node)
    tested, consts, carries = len(loop.cond_consts), len(loop.body_consts), len(loop.init)
    flags, results = settled(loop.body, [False, *linear[tested:]], consts, carries)
    at = 1 + consts
    given = [x for k, x in enumerate(loop.body.inputs[:at]) if not flags[k]]
    lanes = Lanes(loop.lanes, loop.body.inputs[at:], ()) if loop.lanes else None
    split = Split.of(loop.body, flags, results, given, lanes)
    known = known_while(loop, flags, results)
    # Neither the count of trips nor the condition has a cotangent.
    given_back = [*cotangents[:carries], *cotangents[carries + 1 :]]
    if loop.checkpoint is not None and split.saved:
        trips = Value(known.node(), len(known.init))
        counted = Loop(loop.body, loop.body_consts, loop.init, (), None, trips)
        like = Loop(known.body, known.body_consts, known.init, (), None, trips)
        found = _in_segments(counted, like, split.saved, given_back, linear[tested:])
        if found is not None:
            return [None] * tested + found
    recording = replace(known, body=recording_body(known.body, split.saved)).node()
    state = len(known.init)
    records = list(recording.outputs[len(recording.types) - len(split.saved) :])
    trips = Value(recording, state)
    counted = Loop(loop.body, loop.body_consts, loop.init, (), None, trips)
    return [None] * tested + Backward(counted, split, given_back).run(records)


# -------------------------------------------------------------------------------------- branches


def _cond(
    node: Node, cotangents: Sequence[Value | None], linear: Sequence[bool]
) -> list[Value | None]:
    index, *operands = node.inputs
    flags = list(linear[1:])
    results = linear_results(node, linear)
    branches: tuple[Graph, ...] = node.param("branches")
    splits = [
        Split.of(b, flags, results, [x for x, on in zip(b.inputs, flags, strict=True) if not on])
        for b in branches
    ]
    fixed = unflagged(operands, flags)
    slots, places = _slots([split.saved for split in splits])
    saved: list[Value] = []
    if slots:
        known = [
            Graph(
                unflagged(split.graph.inputs, flags),
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
        records = [fresh_input(t, "record") for t in slots]
        cts = [
            fresh_input(c.type, "ct") if on and c is not None else None
            for c, on in zip(cotangents, results, strict=True)
        ]
        slot_of = {n: k for k, n in own.items()}
        stand_ins = [records[slot_of[n]].out for n in range(len(split.saved))]
        parts = split.transposed(stand_ins, [None if c is None else c.out for c in cts])
        inputs = (*unflagged(split.graph.inputs, flags), *records)
        found.append(((*inputs, *[c for c in cts if c is not None]), parts))
    wanted = [k for k in range(len(operands)) if any(p[k] is not None for _, p in found)]
    if not wanted:
        return [None] * len(linear)
    graphs = [
        Graph(
            inputs,
            tuple([or_zeros(parts[k], operands[k].type) for k in wanted]),
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
