"""Diagonals: taking them, building matrices from them, summing them."""

from __future__ import annotations

from typing import Any

from ..dtypes import int64
from ..errors import ShapeError
from ..graph import Value
from ..ops import eq, where
from ..ops.leaves import constant, iota
from ..ops.operands import as_value
from ..ops.shape import broadcast, reshape
from ..ops.slicing import slice_axis
from .arguments import fail, one_axis, static_int
from .manipulation import moveaxis, ravel

__all__ = ["diag", "diag_indices", "diagflat", "diagonal", "trace"]


def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Value:
    """Diagonal ``offset`` of the matrices along ``axis1`` and ``axis2``, as the last axis.

    A strided view: rows of n + 1 elements of the flattened matrix start one column later each.
    """
    value, k = as_value(a), static_int("diagonal", "offset", offset)
    if value.ndim < 2:
        fail(ShapeError(f"diagonal: expected two axes or more, got {value.type}"))
    i, j = (one_axis("diagonal", d, value.ndim) for d in (axis1, axis2))
    if i == j:
        fail(ShapeError(f"diagonal: expected two distinct axes, got {axis1} and {axis2}"))
    x = moveaxis(value, (i, j), (-2, -1))
    rows, columns = x.shape[-2:]
    length = max(0, min(rows, columns - k) if k >= 0 else min(rows + k, columns))
    outer = x.shape[:-2]
    if length == 0:
        return broadcast(constant(0, x.dtype), (*outer, 0), ())
    top, left = max(-k, 0), max(k, 0)
    flat = reshape(x, (*outer, rows * columns))
    start, step = top * columns + left, columns + 1
    return slice_axis(flat, flat.ndim - 1, start, start + (length - 1) * step + 1, step)


def diag(v: Any, k: Any = 0) -> Value:
    """The matrix with diagonal ``k`` equal to vector ``v``; of a matrix, its diagonal ``k``."""
    value, offset = as_value(v), static_int("diag", "k", k)
    if value.ndim == 2:
        return diagonal(value, offset)
    if value.ndim != 1:
        fail(ShapeError(f"diag: expected a vector or a matrix, got {value.type}"))
    extent = value.shape[0] + abs(offset)
    shape = (extent, extent)
    if offset:
        from .joining import concatenate

        gap = broadcast(constant(0, value.dtype), (abs(offset),), ())
        value = concatenate((value, gap) if offset > 0 else (gap, value))
    # element [i, i + k] is v[i] (k >= 0) or v[i + k], which the gap has moved to place i
    on = eq(iota(shape, 0) + offset, iota(shape, 1))
    return where(on, broadcast(value, shape, (0,)), constant(0, value.dtype))


def diagflat(v: Any, k: Any = 0) -> Value:
    """The matrix with diagonal ``k`` equal to the flattened ``v``."""
    return diag(ravel(v), k)


def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None) -> Value:
    """The sum of diagonal ``offset``."""
    from .reductions import sum as total

    return total(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def diag_indices(n: Any, ndim: int = 2) -> tuple[Value, ...]:
    """Indices of the main diagonal of an array with ``ndim`` axes of extent ``n``."""
    return (iota((static_int("diag_indices", "n", n),), 0, int64),) * ndim
