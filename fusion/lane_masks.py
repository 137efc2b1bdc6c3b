"""Lanes with trip counts of their own, said without lanes.

A loop whose count has a shape, or a ``while`` whose condition has one, becomes a loop of one trip
count: the largest. Its body computes all lanes and keeps the old carry where a lane has finished::

    active = i < count                         active = active and cond(carry)
    carry  = where(active, body(carry), carry)

A finished lane would be computed from a carry that its own condition has ruled out: an index out of
bounds, a division by zero, a loop inside that never ends. Where a body can go wrong in such a way,
finished lanes compute the first active lane over again. That covers carries and slices. A constant
of the body that begins with the axes of lanes cannot be told from one that does not: those that
matter here come as carries (autodiff/region_lanes.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.dtypes import bool_, int64
from ..ir.graph import Graph, Node, Value, make
from ..ir.ops.comparison import lt
from ..ir.ops.dynamic import dynamic_slice
from ..ir.ops.extrema import argmax, max_
from ..ir.ops.leaves import constant, input_node
from ..ir.ops.logic import and_
from ..ir.ops.operands import convert
from ..ir.ops.reductions import any_
from ..ir.ops.regions import Loop, While, may_fail, strong
from ..ir.ops.selection import where
from ..ir.ops.shape import BROADCAST, reshape
from ..ir.rewrite import substitute
from ..ir.types import TensorType

__all__ = ["without_lanes"]

Values = Sequence[Value]


def without_lanes(node: Node) -> Graph:
    """The program of a ``loop`` or ``while`` with lanes: its inputs are the node's operands, its
    outputs the node's results, its loops have one trip count."""
    inputs = tuple([input_node(strong(x.type), f"x{k}") for k, x in enumerate(node.inputs)])
    operands = tuple([x.out for x in inputs])
    on_inputs = Node(node.op, operands, node.params, node.types, node.place)
    if node.op.name == "loop":
        outputs = _loop(Loop.of(on_inputs))
    else:
        outputs = _while(While.of(on_inputs))
    return Graph(inputs, tuple(outputs), node.op.name)


def _inline(graph: Graph, arguments: Values) -> tuple[Value, ...]:
    given = {node.out: x for node, x in zip(graph.inputs, arguments, strict=True)}
    return substitute(graph.outputs, given)


def _over(lanes: Value, like: Value) -> Value:
    """A mask of lanes for each element of ``like``, whose axes begin with theirs."""
    if lanes.shape == like.shape:
        return lanes
    return make(BROADCAST, (lanes,), shape=like.shape, axes=tuple(range(lanes.ndim)))


def _freeze(active: Value, new: Values, old: Values) -> list[Value]:
    return [where(_over(active, a), a, b) for a, b in zip(new, old, strict=True)]


def _safe(active: Value, values: Values) -> list[Value]:
    """``values`` with finished lanes replaced by the first active one."""
    count = active.size
    first = argmax(reshape(active, (count,)), 0)
    found = []
    for v in values:
        if not v.size:
            found.append(v)
            continue
        rest = v.shape[active.ndim :]
        rows = reshape(v, (count, *rest))
        zeros = [constant(0, int64)] * len(rest)
        row = reshape(dynamic_slice(rows, first, *zeros, sizes=(1, *rest)), rest)
        axes = tuple(range(active.ndim, v.ndim))
        donor = make(BROADCAST, (row,), shape=v.shape, axes=axes)
        found.append(where(_over(active, v), v, donor))
    return found


def _stand_ins(*types: TensorType) -> tuple[Node, ...]:
    return tuple([input_node(strong(t), f"v{k}") for k, t in enumerate(types)])


def _loop(loop: Loop) -> tuple[Value, ...]:
    count = loop.count
    assert count is not None
    lanes = count.shape
    trips = max_(count) if count.size else constant(0, int64)
    own = len(loop.init) - loop.shared  # carries that belong to lanes
    fixed, carries = len(loop.consts), len(loop.init)
    i, *rest = loop.body.inputs
    inputs = _stand_ins(i.types[0], count.type, *[node.types[0] for node in rest])
    number, counts, *values = [node.out for node in inputs]
    active = lt(make(BROADCAST, (number,), shape=lanes, axes=()), counts)
    consts, carry, slices = (
        values[:fixed],
        values[fixed : fixed + carries],
        values[fixed + carries :],
    )
    given, rows = list(carry), list(slices)
    if may_fail(loop.body) and active.size:
        given[:own] = _safe(active, carry[:own])
        rows = [_safe(active, [x])[0] if x.shape[: len(lanes)] == lanes else x for x in slices]
    found = _inline(loop.body, [number, *consts, *given, *rows])
    outputs = (*_freeze(active, found[:own], carry[:own]), *found[own:])
    body = Graph(inputs, outputs, loop.body.name)
    consts_outside = (count, *loop.consts)
    plain = Loop(body, consts_outside, loop.init, loop.xs, None, trips, loop.reverse)
    return plain.node().outputs


def _while(loop: While) -> tuple[Value, ...]:
    lanes = loop.lanes
    (active,) = _inline(loop.cond, [*loop.cond_consts, *loop.init])
    tested, fixed = len(loop.cond_consts), len(loop.body_consts)
    state = [TensorType(lanes, bool_), TensorType(lanes, int64)]
    carry_types = [v.type for v in loop.init]
    cond_inputs = _stand_ins(*state, *carry_types)
    cond = Graph(cond_inputs, (any_(cond_inputs[0].out),), loop.cond.name)
    const_types = [v.type for v in (*loop.cond_consts, *loop.body_consts)]
    inputs = _stand_ins(loop.body.inputs[0].types[0], *const_types, *state, *carry_types)
    number, *values = [node.out for node in inputs]
    last = tested + fixed
    runs, counts, *carry = values[last:]
    given = list(carry)
    if may_fail(loop.body) and runs.size:
        given = _safe(runs, carry)
    found = _inline(loop.body, [number, *values[tested:last], *given])
    new = _freeze(runs, found[: len(carry)], carry)
    (holds,) = _inline(loop.cond, [*values[:tested], *new])
    state_after = (and_(runs, holds), counts + convert(runs, int64))
    body = Graph(inputs, (*state_after, *new, *found[len(carry) :]), loop.body.name)
    zeros = make(BROADCAST, (constant(0, int64),), shape=lanes, axes=())
    consts = (*loop.cond_consts, *loop.body_consts)
    init = (active, zeros, *loop.init)
    _, trips, *rest = While(cond, body, (), consts, init, loop.limit).node().outputs
    records = rest[len(carry) + 1 :]
    return (*rest[: len(carry)], trips, *records)
