"""The element of each view and indexed op, as an element of its operands.

A rule ``rule(recorder, node, indices, guard)`` records element ``indices`` of a node and returns
the number of the instruction. Views only change the indices; where an operand is read on a
condition (padding, pieces of a concat), the condition becomes the guard of what is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..ir.dtypes import int64
from ..ir.graph import Literal, Node
from ..ir.ops import OPS
from .index import Dynamic, Index, reindex_reshape
from .loops import Instruction

if TYPE_CHECKING:
    from .record import Recorder

__all__ = ["RULES", "clamped", "position"]

Indices = tuple[Index, ...]


def _constant(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    literal = node.param("literal")
    number = r.emit(
        Instruction("const", literal.dtype, literal=Literal(literal.dtype, (), literal.data))
    )
    if literal.dtype.is_integer:
        r.expressions[number] = Index(int(literal.item()))
    return number


def _iota(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    index, dtype = indices[node.param("axis")], node.types[0].dtype
    low, high = index.range()
    if dtype.is_integer and np.iinfo(dtype.numpy).min <= low <= high <= np.iinfo(dtype.numpy).max:
        return r.known_integer(index, dtype)
    number = r.known_integer(index, int64)
    if dtype is int64:
        return number
    return r.emit(
        Instruction("op", dtype, (number,), op=OPS["convert"], params=(("dtype", dtype),))
    )


def _reshape(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    x = node.inputs[0]
    return r.value(x, tuple(reindex_reshape(indices, node.types[0].shape, x.shape)), guard)


def _transpose(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    source: list[Index] = [Index(0)] * len(indices)
    for position, axis in enumerate(node.param("axes")):
        source[axis] = indices[position]
    return r.value(node.inputs[0], tuple(source), guard)


def _broadcast(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    return r.value(node.inputs[0], tuple(indices[d] for d in node.param("axes")), guard)


def _slice(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    start, step = node.param("start"), node.param("step")
    source = tuple(i * k + s for i, k, s in zip(indices, step, start, strict=True))
    return r.value(node.inputs[0], source, guard)


def _pad(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    x, fill = node.inputs
    low = node.param("low")
    interior = node.param("interior")
    inside = -1
    source = []
    for i, before, gap, extent in zip(indices, low, interior, x.shape, strict=True):
        moved = i + (-before)
        span = (extent - 1) * (gap + 1) + 1 if extent else 0
        inside = r.both(inside, r.inside(moved, 0, span))
        if gap:
            moved, rest = moved.divmod(gap + 1)
            inside = r.both(inside, r.inside(rest, 0, 1))
        source.append(moved)
    outside_value = r.value(fill, (), guard)
    if inside < 0:
        return r.value(x, tuple(source), guard)
    if x.size == 0:
        return outside_value
    value = r.value(x, tuple(source), r.both(guard, inside))
    return r.select(inside, value, outside_value)


def _concat(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    axis = node.param("axis")
    pieces = []
    start = 0
    for x in node.inputs:
        extent = x.shape[axis]
        if extent:
            pieces.append((x, start, extent))
        start += extent
    result = -1
    for x, first, extent in reversed(pieces):
        moved = indices[axis] + (-first)
        source = (*indices[:axis], moved, *indices[axis + 1 :])
        inside = r.inside(moved, 0, extent)
        if inside < 0:
            result = r.value(x, source, guard)
            continue
        value = r.value(x, source, r.both(guard, inside))
        result = value if result < 0 else r.select(inside, value, result)
    return result


def _gather(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    x, *index_arrays = node.inputs
    lead = index_arrays[0].ndim if index_arrays else 0
    source, inside = r.positions(node, x.shape, index_arrays, indices[:lead], indices[lead:], guard)
    value = r.value(x, source, r.both(guard, inside))
    if inside < 0:
        return value
    fill = r.emit(Instruction("const", x.dtype, literal=node.param("fill_value")))
    return r.select(inside, value, fill)


def _dynamic_update_slice(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    x, update, *starts = node.inputs
    source, inside = [], -1
    for i, start, size, extent in zip(indices, starts, update.shape, x.shape, strict=True):
        moved = i + r.window_start(start, extent, size, guard) * -1
        source.append(moved)
        inside = r.both(inside, r.inside(moved, 0, size))
    new = r.value(update, tuple(source), r.both(guard, inside))
    return new if inside < 0 else r.select(inside, new, r.value(x, indices, guard))


def position(
    r: Recorder, node: Node, number: int, axis: int, extent: int, guard: int
) -> tuple[Index, int]:
    """An index array's element as a position in ``[0, extent)``, and the guard of mode fill."""
    mode = node.param("mode")
    low, high = r.intervals[number]
    if low >= 0 and high < extent:
        return r.dynamic(number, extent), -1
    if mode == "raise":
        return _checked_position(r, node, number, axis, extent, guard), -1
    if mode == "wrap":
        return r.dynamic(r.integer_op("remainder", number, r.const(extent, int64)), extent), -1
    if mode == "clip":
        return clamped(r, number, extent - 1), -1
    zero, size = r.const(0, int64), r.const(extent, int64)
    counted = number
    if low < 0:
        counted = r.select(
            r.integer_op("lt", number, zero), r.integer_op("add", number, size), number
        )
    fits = r.both(r.integer_op("ge", counted, zero), r.integer_op("lt", counted, size))
    return r.dynamic(r.select(fits, counted, zero), extent), fits


def _checked_position(
    r: Recorder, node: Node, number: int, axis: int, extent: int, guard: int
) -> Index:
    error = r.report(
        IndexError,
        f"{node.op.name}: index {{value}} is out of bounds for axis {axis} with size {extent}; "
        f"mode='clip', 'wrap' or 'fill' gives it a meaning",
    )
    bounds = Instruction("bounds", int64, (number,), guard=guard, high=extent, error=error)
    checked = r.emit(bounds)
    return Index(0, ((Dynamic(checked, 0, max(extent, 1)), 1),))


def clamped(r: Recorder, number: int, most: int) -> Index:
    """A run-time integer clamped to ``[0, most]``."""
    low, high = r.intervals[number]
    if low < 0:
        zero = r.const(0, int64)
        number = r.select(r.integer_op("lt", number, zero), zero, number)
    if high > most:
        last = r.const(most, int64)
        number = r.select(r.integer_op("gt", number, last), last, number)
    return r.dynamic(number, most + 1)


def _dynamic_slice(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    x, *starts = node.inputs
    sizes = node.types[0].shape
    source = [
        i + r.window_start(start, extent, size, guard)
        for i, start, size, extent in zip(indices, starts, sizes, x.shape, strict=True)
    ]
    return r.value(x, tuple(source), guard)


def _product(r: Recorder, node: Node, indices: Indices, guard: int) -> int:
    """A contraction over one element is a product; others are realized and never get here."""
    contract, batch = node.param("contract"), node.param("batch")
    lead = len(batch[0])
    rest = iter(indices[lead:])
    factors = []
    for v, summed, batched in zip(node.inputs, contract, batch, strict=True):
        at = [Index(0)] * v.ndim
        for place, d in enumerate(batched):
            at[d] = indices[place]
        for d in range(v.ndim):
            if d not in batched and d not in summed:
                at[d] = next(rest)
        factors.append(r.value(v, tuple(at), guard))
    dtype = node.types[0].dtype
    op = OPS["and" if dtype.is_bool else "mul"]
    return r.emit(Instruction("op", dtype, tuple(factors), op=op))


RULES: dict[str, Callable[[Recorder, Node, Indices, int], int]] = {
    "constant": _constant,
    "iota": _iota,
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "dot": _product,
}
