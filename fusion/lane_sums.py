"""Reductions, recurrences and contractions of tensors of scalars.

Each has the one order that it has everywhere: reductions that of numerics 7, recurrences their own,
matrix products a chain of fused multiply-adds from zero (docs/design/013).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..ir.dtypes import DType
from ..ir.graph import Literal, Node
from ..ir.ops import OPS
from .lane_code import Scalar
from .lane_values import (
    MOST_ELEMENTS,
    Numbers,
    Operand,
    Tensor,
    Values,
    behind,
    checked_size,
    thinly,
)
from .lane_writer import Refusal, Writer
from .realize import is_loop_dot, is_product
from .split import BLOCK

__all__ = ["SUMS"]

LONGEST_CHAIN = 256  # elements that a matrix product adds up in one chain


def _reduction(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    (ids,), axis = v.tensors(xs)
    params = dict(node.params)
    reduced = params["axes"] if "axes" in params else (params["axis"],)
    if axis in reduced:
        raise Refusal("a reduction over the lanes")
    dtype = node.inputs[0].dtype
    if node.op.accumulator is not None:
        dtype = node.op.accumulator(dtype)
    inner = [behind(d, axis) for d in reduced]
    outer = [d for d in range(ids.ndim) if d not in inner]
    out = _merged(v.w, np.transpose(ids, (*outer, *inner)), len(outer), node, dtype)
    left = None if axis is None else axis - sum(d < axis for d in reduced)
    return Tensor(out, left)


def _merged(w: Writer, ids: Numbers, outer: int, node: Node, accumulator: DType) -> Numbers:
    """The reduction of the axes from ``outer`` on."""
    result = node.types[0].dtype
    op = node.op if node.op.kind == "reduction" else OPS["any" if result.is_bool else "sum"]
    (thin,), _ = thinly([ids], range(outer))
    rows = thin.reshape(prod(thin.shape[:outer]), prod(thin.shape[outer:]))  # -1 fails on empty
    if rows.shape[1] > BLOCK or rows.size > 4 * MOST_ELEMENTS:
        raise Refusal(f"a reduction of {rows.size} elements a lane")
    out = np.empty(rows.shape[0], np.int64)
    for k, row in enumerate(rows):
        if not len(row):
            assert op.identity is not None
            out[k] = w.literal(Literal.of(op.identity(accumulator), result))
            continue
        args = tuple(int(a) for a in row)
        out[k] = w.emit(Scalar("reduce", result, args, op=op, accumulator=accumulator))
    return np.broadcast_to(out.reshape(thin.shape[:outer]), ids.shape[:outer])


def _cumulative(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    arrays, axis = v.tensors(xs)
    along = node.param("axis")
    if along == axis:
        raise Refusal("a recurrence over the lanes")
    own = behind(along, axis)
    shape = arrays[0].shape
    if 0 in shape:
        return Tensor(arrays[-1], axis)
    thin, _ = thinly(arrays, [d for d in range(len(shape)) if d != own])
    checked_size(thin[0])
    moved = [np.moveaxis(a, own, -1).reshape(-1, shape[own]) for a in thin]
    out = np.empty(moved[0].shape, np.int64)
    places = range(shape[own])
    for row in range(len(out)):
        before = -1
        for k in reversed(places) if node.param("reverse") else places:
            here = tuple(int(a[row, k]) for a in moved)
            step = Scalar("op", node.types[0].dtype, (before, *here), op=node.op)
            before = here[-1] if before < 0 else v.w.emit(step)
            out[row, k] = before
    rest = [n for d, n in enumerate(thin[0].shape) if d != own]
    back = np.moveaxis(out.reshape(*rest, shape[own]), -1, own)
    return Tensor(np.broadcast_to(back, shape), axis)


def _dot(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    """The product over (batch, free x, free y, contracted) axes, reduced; as fusion's own loops."""
    contract, batch = node.param("contract"), node.param("batch")
    sides: list[tuple[Numbers, int | None, list[int]]] = []
    axes = [v.lane_axis(x) for x in xs]
    for k, other in ((0, 1), (1, 0)):  # a batch axis of lanes is one on both sides
        if axes[k] in batch[k]:
            axes[other] = batch[other][batch[k].index(axes[k])]
    for x, axis, summed, batched in zip(xs, axes, contract, batch, strict=True):
        if axis in summed:
            raise Refusal("a contraction over the lanes")
        free = [d for d in range(len(v.shape(x))) if d not in summed and d not in batched]
        sides.append((v.tensor(x, axis).ids, axis, free))
    (x_ids, x_axis, x_free), (y_ids, y_axis, y_free) = sides
    if x_axis in x_free and y_axis in y_free:
        raise Refusal("lanes that meet other lanes")
    order = [
        [behind(d, side[1]) for d in (*batch[k], *side[2], *contract[k]) if d != side[1]]
        for k, side in enumerate(sides)
    ]
    # Positions of each side's axes in the product.
    names = [("b", n) for n in range(len(batch[0]))]
    names += [("x", d) for d in x_free] + [("y", d) for d in y_free]
    lane = None
    if x_axis is not None or y_axis is not None:
        key = ("x", x_axis) if x_axis in x_free else ("y", y_axis)
        if x_axis in batch[0]:
            key = ("b", batch[0].index(x_axis))
        lane = names.index(key)  # type: ignore[arg-type]
        del names[lane]
    names += [("c", n) for n in range(len(contract[0]))]
    aligned = []
    for k, (ids, side) in enumerate(zip((x_ids, y_ids), "xy", strict=True)):
        moved = np.transpose(ids, order[k])
        mine = [n for n, (kind, _) in enumerate(names) if kind in ("b", side, "c")]
        shape = [1] * len(names)
        for n, extent in zip(mine, moved.shape, strict=True):
            shape[n] = extent
        aligned.append(moved.reshape(shape))
    left, right = np.broadcast_arrays(*aligned)
    return Tensor(_contracted(v.w, node, left, right, len(contract[0])), lane)


def _contracted(w: Writer, node: Node, left: Numbers, right: Numbers, summed: int) -> Numbers:
    """The last ``summed`` axes of a product added up."""
    if left.size > 4 * MOST_ELEMENTS:
        raise Refusal(f"a contraction of {left.size} products a lane")
    narrow, single = node.inputs[0].dtype, is_product(node)
    if not single and not is_loop_dot(node):
        return _chains(w, node, left, right, left.ndim - summed)
    accumulator = OPS["sum"].accumulator
    assert accumulator is not None
    wide = narrow if single else accumulator(narrow)
    name = "and" if narrow.is_bool else "mul"
    out = np.empty(left.shape, np.int64)
    for index in np.ndindex(*left.shape):
        x, y = (w.convert(int(side[index]), wide) for side in (left, right))
        out[index] = w.op(name, x, y)
    outer = left.ndim - summed
    if single:
        return out.reshape(left.shape[:outer])
    return _merged(w, out, outer, node, wide)


def _chains(w: Writer, node: Node, left: Numbers, right: Numbers, outer: int) -> Numbers:
    """A matrix product."""
    dtype, inner = node.types[0].dtype, prod(left.shape[outer:])
    if not dtype.is_floating or inner > LONGEST_CHAIN:
        raise Refusal("a matrix product of a library")
    rows = [side.reshape(prod(left.shape[:outer]), inner) for side in (left, right)]
    out = np.empty(rows[0].shape[0], np.int64)
    for k, pairs in enumerate(zip(*rows, strict=True)):
        args = tuple(int(n) for pair in zip(*pairs, strict=True) for n in pair)
        out[k] = w.emit(Scalar("chain", dtype, args)) if args else w.const(0, dtype)
    return out.reshape(left.shape[:outer])


SUMS = {
    "dot": _dot,
    **{name: _reduction for name, op in OPS.items() if op.kind == "reduction"},
    **{name: _cumulative for name, op in OPS.items() if op.kind == "cumulative"},
}
