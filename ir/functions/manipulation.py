"""Axes and order: reshape, transpose, flip, roll, broadcast, squeeze."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import bool_, int64
from ..errors import ShapeError
from ..graph import Value
from ..ops import shape as views
from ..ops.leaves import iota
from ..ops.operands import as_value, convert
from ..ops.operands import broadcast_shapes as _broadcast_shapes
from ..ops.slicing import flip as _flip
from ..ops.slicing import slice_axis
from ..types import TensorType
from .arguments import axes_of, fail, one_axis, shape_of, static_int, static_ints
from .concrete import known

__all__ = [
    "astype",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "roll",
    "rollaxis",
    "rot90",
    "squeeze",
    "swapaxes",
    "transpose",
]


def astype(x: Any, dtype: Any, copy: bool = True) -> Value:
    """``x`` converted to another element type."""
    return convert(as_value(x), dtype)


def reshape(x: Any, shape: Any, order: str = "C", copy: bool | None = None) -> Value:
    """The elements of ``x`` in C (or Fortran) order under another shape; one extent may be -1."""
    value, target = as_value(x), static_ints("reshape", "the shape", shape)
    if order in ("C", "A", "K"):
        return views.reshape(value, target)
    if order != "F":
        fail(ValueError(f"reshape: expected order 'C', 'F' or 'A', got {order!r}"))
    return views.transpose(views.reshape(views.transpose(value), target[::-1]))


def ravel(x: Any, order: str = "C") -> Value:
    """``x`` as a vector."""
    return reshape(x, (-1,), order) if as_value(x).size else views.reshape(as_value(x), (0,))


def transpose(a: Any, axes: Any = None) -> Value:
    """Permuted axes; reversed by default."""
    value = as_value(a)
    return views.transpose(value, None if axes is None else static_ints("transpose", "axes", axes))


def permute_dims(x: Any, axes: Any) -> Value:
    """Permuted axes (Array API)."""
    return transpose(x, axes)


def matrix_transpose(x: Any) -> Value:
    """The last two axes swapped."""
    value = as_value(x)
    if value.ndim < 2:
        fail(ShapeError(f"matrix_transpose: expected two axes or more, got {value.type}"))
    return swapaxes(value, -1, -2)


def swapaxes(a: Any, axis1: Any, axis2: Any) -> Value:
    """Two axes interchanged."""
    value = as_value(a)
    order = list(range(value.ndim))
    i, j = (one_axis("swapaxes", d, value.ndim) for d in (axis1, axis2))
    order[i], order[j] = j, i
    return views.transpose(value, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Value:
    """Axes moved to new places, the others in their order."""
    value = as_value(a)
    origin, goal = (
        [one_axis("moveaxis", d, value.ndim) for d in static_ints("moveaxis", "axes", axes)]
        for axes in (source, destination)
    )
    if len(origin) != len(goal) or len(set(origin)) != len(origin) or len(set(goal)) != len(goal):
        fail(
            ShapeError(
                f"moveaxis: expected as many distinct sources as destinations, got {source} and "
                f"{destination}"
            )
        )
    order = [d for d in range(value.ndim) if d not in origin]
    for to, d in sorted(zip(goal, origin, strict=True)):
        order.insert(to, d)
    return views.transpose(value, order)


def rollaxis(a: Any, axis: Any, start: int = 0) -> Value:
    """``axis`` moved in front of ``start`` (kept for old NumPy code; see :func:`moveaxis`)."""
    value = as_value(a)
    source = one_axis("rollaxis", axis, value.ndim)
    start = start + value.ndim if start < 0 else start
    if not 0 <= start <= value.ndim:
        fail(IndexError(f"rollaxis: expected a start in [0, {value.ndim}], got {start}"))
    return views.moveaxis(value, source, start - 1 if source < start else start)


def expand_dims(a: Any, axis: Any = 0) -> Value:
    """Axes of extent 1 inserted at positions ``axis`` of the result."""
    value = as_value(a)
    count = len(static_ints("expand_dims", "axis", axis))
    return views.expand_dims(value, axes_of("expand_dims", axis, value.ndim + count))


def squeeze(a: Any, axis: Any = None) -> Value:
    """``x`` without axes of extent 1: all of them, or those given."""
    value = as_value(a)
    if axis is None:
        axes: Sequence[int] = [d for d, n in enumerate(value.shape) if n == 1]
    else:
        axes = axes_of("squeeze", axis, value.ndim, scalar=True)
    return views.squeeze(value, axes)


def broadcast_to(x: Any, shape: Any) -> Value:
    """``x`` stretched to ``shape``."""
    return views.broadcast_to(as_value(x), shape_of("broadcast_to", shape))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to."""
    types = [TensorType(shape_of("broadcast_shapes", s), bool_) for s in shapes]
    try:
        return _broadcast_shapes("broadcast_shapes", types) if types else ()
    except ShapeError as error:
        fail(error)


def broadcast_arrays(*arrays: Any) -> tuple[Value, ...]:
    """All ``arrays`` in their common shape."""
    values = [as_value(x) for x in arrays]
    shape = broadcast_shapes(*(v.shape for v in values))
    return tuple(views.broadcast_to(v, shape) for v in values)


def _at_least(arrays: tuple[Any, ...], ndim: int) -> Any:
    results = []
    for x in arrays:
        value = as_value(x)
        if ndim == 3 and value.ndim == 2:
            value = views.expand_dims(value, (2,))
        elif ndim == 3 and value.ndim == 1:
            value = views.expand_dims(value, (0, 2))
        elif value.ndim < ndim:
            value = views.expand_dims(value, range(ndim - value.ndim))
        results.append(value)
    return results[0] if len(results) == 1 else tuple(results)


def atleast_1d(*arys: Any) -> Any:
    """Each array with one axis at least."""
    return _at_least(arys, 1)


def atleast_2d(*arys: Any) -> Any:
    """Each array with two axes at least; new ones in front."""
    return _at_least(arys, 2)


def atleast_3d(*arys: Any) -> Any:
    """Each array with three axes at least; vectors become (1, n, 1), matrices (m, n, 1)."""
    return _at_least(arys, 3)


def flip(m: Any, axis: Any = None) -> Value:
    """The order of elements reversed along ``axis`` (all axes by default)."""
    value = as_value(m)
    axes = axes_of("flip", axis, value.ndim)
    return _flip(value, axes) if axes else value


def fliplr(m: Any) -> Value:
    """Columns in reverse order."""
    return flip(m, 1)


def flipud(m: Any) -> Value:
    """Rows in reverse order."""
    return flip(m, 0)


def roll(a: Any, shift: Any, axis: Any = None) -> Value:
    """Elements moved by ``shift`` along ``axis``; those that leave enter at the other end.

    Without ``axis`` the array is rolled as a vector. ``shift`` may be traced.
    """
    value = as_value(a)
    if axis is None:
        return views.reshape(roll(ravel(value), shift, 0), value.shape)
    axes = static_ints("roll", "axis", axis)
    shifts = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        fail(ShapeError(f"roll: expected one shift an axis, got {len(shifts)} for {len(axes)}"))
    for by, d in zip(shifts, axes, strict=True):
        value = _roll_one(value, by, one_axis("roll", d, value.ndim))
    return value


def _roll_one(x: Value, shift: Any, axis: int) -> Value:
    from .joining import concatenate

    extent = x.shape[axis]
    if type(shift) is Value:
        data = known(shift)
        if data is None:
            from ..ops import remainder
            from .indexing import take

            return take(x, remainder(iota((extent,)) - convert(shift, int64), extent), axis)
        shift = data
    elif isinstance(shift, np.ndarray):
        shift = shift.item()
    by = static_int("roll", "shift", shift) % max(extent, 1)
    if by == 0:
        return x
    return concatenate(
        (slice_axis(x, axis, extent - by, extent), slice_axis(x, axis, 0, extent - by)), axis
    )


def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Value:
    """Rotation by ``k`` quarter turns from the first towards the second of ``axes``."""
    value = as_value(m)
    pair = static_ints("rot90", "axes", axes)
    if len(pair) != 2:
        fail(ShapeError(f"rot90: expected two axes, got {axes}"))
    i, j = (one_axis("rot90", d, value.ndim) for d in pair)
    if i == j:
        fail(ShapeError(f"rot90: expected two distinct axes, got {axes}"))
    turns = static_int("rot90", "k", k) % 4
    if turns == 0:
        return value
    if turns == 2:
        return flip(value, (i, j))
    if turns == 1:
        return swapaxes(flip(value, j), i, j)
    return flip(swapaxes(value, i, j), j)
