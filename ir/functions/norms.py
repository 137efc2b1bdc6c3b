"""Norms of vectors and matrices, scaled so that squares neither overflow nor underflow."""

from __future__ import annotations

import math
from typing import Any

from ..errors import ShapeError, UnsupportedError
from ..graph import Value
from ..location import at_user_line
from ..ops import (
    abs_,
    eq,
    gt,
    imag,
    isfinite,
    logical_and,
    maximum,
    power,
    real,
    sqrt,
    stop_gradient,
    sum_,
    where,
)
from ..ops.operands import as_value, convert
from ..ops.reductions import wide
from ..ops.shape import reshape, squeeze
from .arguments import as_inexact, axes_of, fail, keep_axes, one_axis, static_ints
from .reductions import amax, amin, count_nonzero
from .reductions import sum as total

__all__ = ["matrix_norm", "norm", "vector_norm"]


def _euclidean(x: Value, axes: tuple[int, ...]) -> Value:
    """m sqrt(sum (|x| / m)^2), m the largest magnitude (1 where that is 0, inf or NaN).

    m counts as a constant: the value does not depend on it in exact arithmetic, so neither do
    derivatives. At 0 they are 0, by the rule of sqrt. Complex input: of real and imaginary parts.
    """
    parts = [real(x), imag(x)] if x.dtype.is_complex else [x]
    if any(x.shape[d] == 0 for d in axes):
        largest: Any = 1.0
    else:
        tops = [amax(abs_(p), axis=axes, keepdims=True) for p in parts]
        top = tops[0]
        for other in tops[1:]:
            top = maximum(top, other)
        largest = stop_gradient(where(logical_and(isfinite(top), gt(top, 0)), top, 1.0))
    squares: Any = None
    for part in parts:
        scaled = part / largest
        squares = scaled * scaled if squares is None else squares + scaled * scaled
    root: Value = sqrt(sum_(squares, axes, True)) * largest
    return root


def _power_sum(x: Value, axes: tuple[int, ...], p: float) -> Value:
    """m (sum (|x| / m)^p)^(1/p), m the largest magnitude (the smallest for p < 0)."""
    sizes = abs_(x)
    if any(x.shape[d] == 0 for d in axes):
        largest: Any = 1.0
    else:
        top = (amax if p > 0 else amin)(sizes, axis=axes, keepdims=True)
        largest = stop_gradient(where(logical_and(isfinite(top), gt(top, 0)), top, 1.0))
    terms = sum_(power(sizes / largest, p), axes, True)
    nothing = eq(terms, 0) if p > 0 else eq(terms, math.inf)
    root = power(where(nothing, 1.0, terms), 1.0 / p)
    return where(nothing, 0.0, root * largest)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Value:
    """Norm of the elements over ``axis`` as of one vector.

    ``ord``: 2 (default), inf, -inf, 0 (the number of elements that are not 0) or any number p, for
    ``sum(|x|**p)**(1/p)``. The gradient of the 2-norm is ``x / norm``, and 0 at 0.
    """
    value = as_inexact("vector_norm", x)
    axes = axes_of("vector_norm", axis, value.ndim)
    target = value.dtype.real
    value = convert(value, wide(value.dtype))
    if ord == 2:
        result = _euclidean(value, axes)
    elif ord == math.inf:
        result = amax(abs_(value), axis=axes, keepdims=True)
    elif ord == -math.inf:
        result = amin(abs_(value), axis=axes, keepdims=True)
    elif ord == 0:
        result = count_nonzero(value, axes, keepdims=True)
    elif ord == 1:
        result = total(abs_(value), axes, keepdims=True)
    elif isinstance(ord, str):
        fail(ValueError(f"vector_norm: expected a number for ord, got {ord!r}"))
    else:
        result = _power_sum(value, axes, float(ord))
    result = convert(result, target)
    return result if keepdims else squeeze(result, axes)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Value:
    """Norm of the matrices in the last two axes: ``"fro"``, 1, -1, inf or -inf."""
    value = as_value(x)
    if value.ndim < 2:
        fail(ShapeError(f"matrix_norm: expected two axes or more, got {value.type}"))
    return _matrix_norm(value, ord, value.ndim - 2, value.ndim - 1, keepdims)


def _matrix_norm(x: Value, ord: Any, row: int, column: int, keepdims: bool) -> Value:
    value = as_inexact("norm", x)
    axes = tuple(sorted((row, column)))
    if ord in (None, "fro", "f"):
        return vector_norm(value, axis=axes, keepdims=keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        inside, outside = (row, column) if abs(ord) == 1 else (column, row)
        sums = total(abs_(value), inside, keepdims=True)
        result = (amax if ord > 0 else amin)(sums, axis=outside, keepdims=True)
        return result if keepdims else squeeze(result, axes)
    if ord in (2, -2, "nuc"):
        fail(
            UnsupportedError(
                f"norm: ord={ord!r} of a matrix needs singular values, which are not built yet; "
                f"use 'fro', 1, -1, inf or -inf",
                op="norm",
            )
        )
    raise at_user_line(
        ValueError(f"norm: expected ord 'fro', 1, -1, inf or -inf for matrices, got {ord!r}")
    )


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Value:
    """Vector or matrix norm, with NumPy's reading of ``ord`` and ``axis``.

    Parameters
    ----------
    x : array-like
    ord : number, inf, -inf or "fro"
        None: the square root of the sum of squares of all elements over ``axis``.
    axis : int, pair of int or None
        One axis: vectors. Two: matrices. None: the whole of ``x``, a vector or a matrix if ``ord``
        is given.
    keepdims : bool

    Notes
    -----
    The 2-norm is m sqrt(sum (|x| / m)^2) with m = max |x|: no overflow, no underflow. Its
    derivative is x / norm, and 0 at 0.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.linalg.norm(tg.asarray([3e200, 4e200]))
    Array(5.e+200, dtype=float64)
    >>> tg.grad(tg.linalg.norm)(tg.zeros(2))
    Array([0., 0.], dtype=float64)
    """
    value = as_inexact("norm", x)
    if axis is None:
        if ord is None:
            result = vector_norm(reshape(value, (value.size,)))
            return (
                reshape(result, keep_axes(value.shape, range(value.ndim))) if keepdims else result
            )
        axes: tuple[int, ...] = tuple(range(value.ndim))
    else:
        listed = static_ints("norm", "axis", axis)
        axes = tuple(one_axis("norm", d, value.ndim) for d in listed)
    if len(axes) == 1:
        return vector_norm(value, axis=axes, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) == 2:
        if axes[0] == axes[1]:
            fail(ShapeError(f"norm: expected two distinct axes, got {axis}"))
        return _matrix_norm(value, ord, *axes, keepdims)
    raise at_user_line(
        ShapeError(f"norm: expected one or two axes, got {len(axes)} of {value.type}")
    )
