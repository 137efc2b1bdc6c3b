"""Ops on tensors of scalars: what each does to the numbers of a lane program.

A rule ``rule(values, node, operands)`` gives the tensor of a node. The lane axis must stay a lane
axis: what would mix lanes is refused. Extents of views that cover all lanes are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ..ir.graph import Literal, Node
from .lane_code import Scalar
from .lane_sums import SUMS
from .lane_values import (
    MOST_ELEMENTS,
    Iota,
    Memory,
    Operand,
    Tensor,
    Values,
    behind,
    checked_size,
    thinly,
)
from .lane_writer import Refusal, Writer

__all__ = ["OPS_ON_SCALARS", "constant_operand", "elementwise"]

Rule = Callable[[Values, Node, Sequence[Operand]], Operand]


# ---------------------------------------------------------------------------------- elementwise


def scalar_op(w: Writer, node: Node, args: tuple[int, ...]) -> int:
    """One element of an elementwise node."""
    op, error = node.op, -1
    if op.check is not None and w.dtype(args[-1]).is_integer:
        known = w.known_integer(args[-1])
        if known is None or (known < 0 if op.name == "pow" else known == 0):
            assert op.check_error is not None
            error = w.report(*op.check_error)
    return w.emit(Scalar("op", node.types[0].dtype, args, op=op, params=node.params, error=error))


def elementwise(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    if node.op.name in ("alias", "stop_gradient"):
        return xs[0]
    if node.op.name == "convert" and node.inputs[0].dtype is node.types[0].dtype:
        return xs[0]
    arrays, axis = v.tensors(xs)
    shape = arrays[0].shape
    thin, _ = thinly(arrays, range(len(shape)))
    if thin[0].size > MOST_ELEMENTS:
        raise Refusal(f"a value of {thin[0].size} elements a lane")
    out = np.empty(thin[0].shape, np.int64)
    for index in np.ndindex(*out.shape):
        out[index] = scalar_op(v.w, node, tuple(int(a[index]) for a in thin))
    return Tensor(np.broadcast_to(out, shape), axis)


# ---------------------------------------------------------------------------------------- views


def _constant(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    return constant_operand(v, node)


def constant_operand(v: Values, node: Node) -> Operand:
    """A constant: scalars, or a buffer where it is large."""
    literal = node.param("literal")
    if prod(literal.shape) > MOST_ELEMENTS:
        number = v.constant(node.out)
        return Memory(number, literal.dtype, literal.shape, _c_strides(literal.shape))
    flat = literal.array().reshape(-1)
    ids = [v.w.literal(Literal.of(x, literal.dtype)) for x in flat]
    return Tensor(np.array(ids, np.int64).reshape(literal.shape))


def _c_strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))


def _iota(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    t = node.types[0]
    return Iota(t.dtype, t.shape, node.param("axis"))


def _transpose(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    (x,), axes = xs, node.param("axes")
    if isinstance(x, Iota):
        return Iota(x.dtype, node.types[0].shape, axes.index(x.along))
    if isinstance(x, Memory):
        strides = tuple(x.strides[d] for d in axes)
        return replace(x, extents=node.types[0].shape, strides=strides)
    order = [behind(d, x.axis) for d in axes if d != x.axis]
    return Tensor(np.transpose(x.ids, order), None if x.axis is None else axes.index(x.axis))


def _broadcast(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    (x,), shape, axes = xs, node.param("shape"), node.param("axes")
    if isinstance(x, Iota):
        return Iota(x.dtype, shape, axes[x.along])
    if isinstance(x, Memory):
        strides = [0] * len(shape)
        for d, stride in zip(axes, x.strides, strict=True):
            strides[d] = stride
        return replace(x, extents=shape, strides=tuple(strides))
    axis = None if x.axis is None else axes[x.axis]
    aligned = [1] * len(shape)
    for d, extent in zip([d for d in axes if d != axis], x.ids.shape, strict=True):
        aligned[d] = extent
    target = list(shape)
    if axis is not None:
        del aligned[axis], target[axis]
    return Tensor(np.broadcast_to(x.ids.reshape(aligned), target), axis)


def _reshape(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    (x,), shape = xs, node.param("shape")
    if isinstance(x, Memory):
        strides = _reshaped(x.extents, x.strides, shape)
        if strides is not None:
            return replace(x, extents=shape, strides=strides)
    if not isinstance(x, Tensor):
        x = v.tensor(x, v.lane_axis(x))
    axis = None
    if x.axis is not None:
        before = prod(x.ids.shape[: x.axis])
        whole = [d for d, n in enumerate(shape) if n == v.lanes and prod(shape[:d]) == before]
        if not whole:
            raise Refusal("lanes that are merged with another axis")
        axis = whole[0]
        shape = (*shape[:axis], *shape[axis + 1 :])
    try:
        return Tensor(np.reshape(x.ids, shape, copy=False), axis)
    except ValueError:  # the array must be copied
        if x.ids.size > MOST_ELEMENTS:
            raise Refusal(f"a reshaped value of {x.ids.size} elements") from None
        return Tensor(np.reshape(x.ids, shape), axis)


def _reshaped(
    extents: Sequence[int], strides: Sequence[int], shape: Sequence[int]
) -> tuple[int, ...] | None:
    """Strides of the same elements in another shape, None where there are none such.

    Axes are matched group by group; within a group the old axes must be one run of memory.
    """
    old = [(n, s) for n, s in zip(extents, strides, strict=True) if n != 1]
    found: list[int] = [0] * len(shape)
    new = [d for d, n in enumerate(shape) if n != 1]
    if any(n == 0 for n in shape):
        return tuple(found)
    i = j = 0
    while i < len(old) and j < len(new):
        first_i, first_j = i, j
        left, right = old[i][0], shape[new[j]]
        while left != right:
            if left < right:
                i += 1
                left *= old[i][0]
            else:
                j += 1
                right *= shape[new[j]]
        for k in range(first_i, i):
            if old[k][1] != old[k + 1][1] * old[k + 1][0]:
                return None
        stride = old[i][1]
        for k in range(j, first_j - 1, -1):
            found[new[k]] = stride
            stride *= shape[new[k]]
        i, j = i + 1, j + 1
    return tuple(found)


def _slice(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    (x,), start, step = xs, node.param("start"), node.param("step")
    shape = node.types[0].shape
    if isinstance(x, Memory):
        offset = sum(s * first for s, first in zip(x.strides, start, strict=True))
        strides = tuple(s * by for s, by in zip(x.strides, step, strict=True))
        return replace(x, extents=shape, strides=strides, offset=x.offset + offset)
    if isinstance(x, Iota):
        x = v.tensor(x, v.lane_axis(x))
    if x.axis is not None and (start[x.axis], step[x.axis], shape[x.axis]) != (0, 1, v.lanes):
        raise Refusal("a slice of the lanes")
    kept = [d for d in range(len(shape)) if d != x.axis]
    params = {name: tuple(node.param(name)[d] for d in kept) for name in ("start", "step", "shape")}
    return Tensor(node.op.reference(x.ids, **params), x.axis)  # type: ignore[misc]


def _pad(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    (ids,), axis = v.tensors(xs[:1])
    fill = v.scalar(xs[1])
    sizes = {name: node.param(name) for name in ("low", "high", "interior")}
    shape = node.types[0].shape
    padded = {d for d in range(len(shape)) if any(n[d] for n in sizes.values())}
    if axis in padded:
        raise Refusal("padding of the lanes")
    kept = [d for d in range(len(shape)) if d != axis]
    (thin,), _ = thinly([ids], [k for k, d in enumerate(kept) if d not in padded])
    cut = {name: tuple(n[d] for d in kept) for name, n in sizes.items()}
    out = checked_size(node.op.reference(thin, np.int64(fill), **cut))  # type: ignore[misc]
    return Tensor(np.broadcast_to(out, [shape[d] for d in kept]), axis)


def _concat(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    along = node.param("axis")
    known = [x.axis for x in xs if isinstance(x, Tensor) and x.axis is not None]
    axis = known[0] if known else v.common_axis(xs)
    if axis == along:
        raise Refusal("lanes that are joined")
    arrays = [v.tensor(x, axis).ids for x in xs]
    own = behind(along, axis)
    whole = [n for d, n in enumerate(node.types[0].shape) if d != axis]
    thin, _ = thinly(arrays, [d for d in range(len(whole)) if d != own])
    return Tensor(np.broadcast_to(checked_size(np.concatenate(thin, own)), whole), axis)


OPS_ON_SCALARS: dict[str, Rule] = {
    "constant": _constant,
    "iota": _iota,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "reshape": _reshape,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    **SUMS,
}
