"""Batching of regions: the body for all examples at once.

A loop whose trip count is the same for all examples gets a batched body. Where it differs, the
examples become lanes (:mod:`..ir.ops.regions`): each has a count of its own and keeps its carry
when it is done. A branch that differs is computed for all examples and chosen by example; what
could fail or never end for examples that do not take it, is computed for them on the operands of
one that does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir.dtypes import int64
from ..ir.graph import Graph, Node, Value, make_node
from ..ir.ops import argmax, clip, convert, eq, lt, where
from ..ir.ops.dynamic import dynamic_slice
from ..ir.ops.fill import zeros_of
from ..ir.ops.leaves import constant, input_node
from ..ir.ops.regions import COND, LOOP, Loop, While, may_fail
from ..ir.ops.shape import broadcast, moveaxis, reshape
from ..ir.rewrite import substitute
from ..ir.types import TensorType
from .batching import batch
from .region_effects import Presence, guarded, has_effects
from .region_lanes import loop_with_carried, risky_constants, while_with_carried

__all__ = ["batched_region"]

Axes = Sequence["int | None"]
Results = list[tuple[Value, "int | None"]]


def batched_region(node: Node, operands: Sequence[Value], axes: Axes) -> Results:
    """The results of a region node for a batch, with their axes."""
    size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
    if node.op is COND:
        return _cond(node, operands, axes, size)
    if node.op is LOOP:
        return _loop(node, operands, axes, size)
    return _while(node, operands, axes, size)


@dataclass(slots=True)
class _Body:
    """A graph for a batch: some inputs have the batch as axis 0, and so have some outputs."""

    inputs: tuple[Node, ...]
    values: list[Value]
    mapped: list[bool]

    @staticmethod
    def of(graph: Graph, mapped: Sequence[bool], size: int) -> _Body:
        inputs = tuple(
            [
                input_node(_with_batch(x.types[0], size), x.param("name")) if on else x
                for x, on in zip(graph.inputs, mapped, strict=True)
            ]
        )
        places = {
            x.out: (new.out, 0)
            for x, new, on in zip(graph.inputs, inputs, mapped, strict=True)
            if on
        }
        found = batch(graph.outputs, places, size)
        values = [x if axis is None else moveaxis(x, axis, 0) for x, axis in found]
        return _Body(inputs, values, [axis is not None for _, axis in found])

    def output(self, k: int, wanted: bool, size: int) -> Value:
        """Output ``k``, repeated for each example if it is wanted so."""
        x = self.values[k]
        return x if self.mapped[k] or not wanted else _repeated(x, size)


def _with_batch(t: TensorType, size: int) -> TensorType:
    return TensorType((size, *t.shape), t.dtype)


def _repeated(x: Value, size: int) -> Value:
    return broadcast(x, (size, *x.shape), tuple(range(1, x.ndim + 1)))


def _in_front(x: Value, axis: int | None, wanted: bool, size: int) -> Value:
    """``x`` with its batch axis in front, given one if it is wanted."""
    if axis is None:
        return _repeated(x, size) if wanted else x
    return moveaxis(x, axis, 0)


def _is_mapped(axes: Axes) -> list[bool]:
    return [axis is not None for axis in axes]


# ----------------------------------------------------------------------------------------- loops


def _loop(node: Node, operands: Sequence[Value], axes: Axes, size: int) -> Results:
    loop = Loop.of(node)
    first = 0 if loop.count is None else 1
    consts, carries = len(loop.consts), len(loop.init)
    at, end = first + consts, first + consts + carries
    laned = loop.count is not None and (bool(loop.lanes) or axes[0] is not None)
    mapped = _is_mapped(axes[first:])
    if laned and not loop.lanes:
        moved = risky_constants(loop.body, mapped[:consts])
        if moved:
            wider, order = loop_with_carried(loop, moved)
            places = [0, *[1 + k for k in order]]
            found = _loop(
                wider.node(), [operands[k] for k in places], [axes[k] for k in places], size
            )
            return [*found[:carries], *found[carries + len(moved) :]]
    if laned:
        own = carries - loop.shared
        mapped[consts : consts + own] = [True] * own
    while True:
        body = _Body.of(loop.body, [False, *mapped], size)
        before = mapped[consts : consts + carries]
        after = [a or b for a, b in zip(before, body.mapped, strict=False)]
        if after == before:
            break
        mapped[consts : consts + carries] = after
    carried = mapped[consts : consts + carries]
    records = [laned or on for on in body.mapped[carries:]]
    outputs = [body.output(k, on, size) for k, on in enumerate([*carried, *records])]
    count = _in_front(operands[0], axes[0], laned, size) if first else None
    trips: tuple[Node, ...] = ()
    if laned and count is not None and not loop.lanes and has_effects(loop.body):
        trips = (input_node(count.type, "trips"),)
        active = lt(broadcast(body.inputs[0].out, (size,), ()), trips[0].out)
        outputs = guarded(outputs, active, set(loop.body.nodes()), body.inputs)
    inputs = (*body.inputs[: 1 + consts], *trips, *body.inputs[1 + consts :])
    new = replace(
        loop,
        body=Graph(inputs, tuple(outputs), loop.body.name),
        consts=(
            *[
                _in_front(x, a, False, size)
                for x, a in zip(operands[first:at], axes[first:at], strict=True)
            ],
            *([count] if count is not None and trips else []),
        ),
        init=tuple(
            [
                _in_front(x, a, on, size)
                for x, a, on in zip(operands[at:end], axes[at:end], carried, strict=True)
            ]
        ),
        xs=tuple(
            [
                x if a is None or a == 1 else moveaxis(x, a, 1)
                for x, a in zip(operands[end:], axes[end:], strict=True)
            ]
        ),
        count=count,
    ).node()
    found_axes = [0 if on else None for on in carried] + [1 if on else None for on in records]
    return list(zip(new.outputs, found_axes, strict=True))


def _while(node: Node, operands: Sequence[Value], axes: Axes, size: int) -> Results:
    loop = While.of(node)
    tested, consts, carries = len(loop.cond_consts), len(loop.body_consts), len(loop.init)
    at = tested + consts
    mapped = _is_mapped(axes)
    laned = bool(loop.lanes)
    while True:
        if laned:
            mapped[at:] = [True] * carries
        body = _Body.of(loop.body, [False, *mapped[tested:]], size)
        before = mapped[at:]
        after = [a or b for a, b in zip(before, body.mapped, strict=False)]
        cond = _Body.of(loop.cond, [*mapped[:tested], *after], size)
        if after == before and (laned or not cond.mapped[0]):
            break
        mapped[at:] = after
        laned = laned or cond.mapped[0]
    moved = risky_constants(loop.body, mapped[tested:at]) if laned and not loop.lanes else []
    if moved:
        wider, order = while_with_carried(loop, moved)
        places = [*range(tested), *[tested + k for k in order]]
        found = _while(wider.node(), [operands[k] for k in places], [axes[k] for k in places], size)
        return [*found[:carries], *found[carries + len(moved) :]]
    carried = mapped[at:]
    records = [laned or on for on in body.mapped[carries:]]
    outputs = [body.output(k, on, size) for k, on in enumerate([*carried, *records])]
    given = [
        _in_front(x, a, on and k >= at, size)
        for k, (x, a, on) in enumerate(zip(operands, axes, mapped, strict=True))
    ]
    presence = Presence.of(loop.body, size) if laned and not loop.lanes else None
    inputs, asked = body.inputs, cond.inputs
    lanes: tuple[Value, ...] = ()
    if presence is not None:
        outputs = presence.guarded(outputs, loop.body, inputs)
        inputs = (*inputs[: 1 + consts], presence.numbers, *inputs[1 + consts :], presence.carried)
        outputs.insert(carries, presence.carried.out)
        asked = (*asked, input_node(presence.init.type, "unread"))
        lanes = (presence.init,)
    new = replace(
        loop,
        cond=Graph(asked, (cond.output(0, laned, size),), loop.cond.name),
        body=Graph(inputs, tuple(outputs), loop.body.name),
        cond_consts=tuple(given[:tested]),
        body_consts=(*given[tested:at], *lanes),
        init=(*given[at:], *lanes),
    ).node()
    results = list(new.outputs)
    if lanes:
        del results[carries]
    found_axes = [0 if on else None for on in [*carried, laned]]
    found_axes += [1 if on else None for on in records]
    return list(zip(results, found_axes, strict=True))


# -------------------------------------------------------------------------------------- branches


def _cond(node: Node, operands: Sequence[Value], axes: Axes, size: int) -> Results:
    branches: tuple[Graph, ...] = node.param("branches")
    mapped = _is_mapped(axes[1:])
    given = [_in_front(x, a, False, size) for x, a in zip(operands[1:], axes[1:], strict=True)]
    bodies = [_Body.of(b, mapped, size) for b in branches]
    if axes[0] is None:
        wanted = [any(b.mapped[k] for b in bodies) for k in range(len(node.types))]
        graphs = [
            Graph(
                body.inputs,
                tuple([body.output(k, on, size) for k, on in enumerate(wanted)]),
                b.name,
            )
            for body, b in zip(bodies, branches, strict=True)
        ]
        new = make_node(COND, (operands[0], *given), branches=tuple(graphs))
        return [(x, 0 if on else None) for x, on in zip(new.outputs, wanted, strict=True)]
    index = operands[0]
    last = len(branches) - 1
    results: list[Value] = []
    for k, (body, branch) in enumerate(zip(bodies, branches, strict=True)):
        # An index out of range is the nearest branch.
        chosen = eq(clip(index, 0, last), constant(k, index.dtype))
        found = _branch_of_some(branch, body, given, mapped, chosen, size)
        if not k:
            results = found
            continue
        results = [where(_spread(chosen, x), x, y) for x, y in zip(found, results, strict=True)]
    return [(x, 0) for x in results]


def _spread(chosen: Value, x: Value) -> Value:
    """One bool an example, for each element of ``x``."""
    return broadcast(chosen, x.shape, (0,)) if x.ndim > 1 else chosen


def _branch_of_some(
    branch: Graph,
    body: _Body,
    given: Sequence[Value],
    mapped: Sequence[bool],
    chosen: Value,
    size: int,
) -> list[Value]:
    """A branch for all examples, of which only the ``chosen`` ones matter.

    What costs little is computed for all. Anything else is a loop whose lanes make one trip or
    none.
    """
    outputs = [body.output(k, True, size) for k in range(len(body.values))]
    if _is_cheap(branch):
        return list(
            substitute(outputs, dict(zip([x.out for x in body.inputs], given, strict=True)))
        )
    trips = convert(chosen, int64)
    if may_fail(branch) and size:
        donor = argmax(trips, 0)
        given = [
            where(_spread(chosen, x), x, _example(x, donor)) if on else x
            for x, on in zip(given, mapped, strict=True)
        ]
    types = [TensorType(y.shape, y.dtype) for y in outputs]
    there = [input_node(chosen.type, "there")] if has_effects(branch) else []
    if there:
        outputs = guarded(outputs, there[0].out, set(branch.nodes()), body.inputs)
    graph = Graph(
        (
            input_node(TensorType((), int64), "i"),
            *body.inputs,
            *there,
            *[input_node(t, "unread") for t in types],
        ),
        tuple(outputs),
        branch.name,
    )
    consts = (*given, *[chosen for _ in there])
    loop = Loop(graph, consts, tuple([zeros_of(t) for t in types]), (), None, trips)
    return list(loop.node().outputs)


# Elementwise work so small that masking it costs more.
_LITTLE = 48


def _is_cheap(branch: Graph) -> bool:
    nodes = branch.nodes()
    kinds = ("elementwise", "view", "leaf")
    return len(nodes) <= _LITTLE and all(n.op.kind in kinds for n in nodes) and not may_fail(branch)


def _example(x: Value, k: Value) -> Value:
    """Example ``k`` of ``x``, repeated for all."""
    zero = [constant(0, k.dtype) for _ in x.shape[1:]]
    one = dynamic_slice(x, k, *zero, sizes=(1, *x.shape[1:]))
    return broadcast(reshape(one, x.shape[1:]), x.shape, tuple(range(1, x.ndim)))
