"""Reductions with NumPy's arguments: sum, prod, max, min, any, all, mean, var, std, nan-forms.

float32 means and variances are computed in float64 and rounded once (numerics 7).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import DType, as_dtype, bool_
from ..graph import Value
from ..ops import (
    all_,
    any_,
    max_,
    maximum,
    min_,
    minimum,
    sqrt,
    sum_,
)
from ..ops import argmax as _argmax
from ..ops import argmin as _argmin
from ..ops import (
    prod as _prod,
)
from ..ops import (
    where as select,
)
from ..ops.leaves import constant
from ..ops.operands import as_value, convert
from ..ops.reductions import wide
from ..ops.shape import broadcast_to, squeeze
from .arguments import accumulated, axes_of, axis_or_none, fail, keep_axes

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]


def _extent(x: Value, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[d] for d in axes)


def _masked(x: Value, mask: Any, fill: Any) -> Value:
    """``x`` where ``mask``, else ``fill``; the whole of ``x`` for ``mask`` None or True."""
    return x if mask is None or mask is True else select(mask, x, fill)


def _typed(x: Value, dtype: Any) -> Value:
    return x if dtype is None else convert(x, dtype)


def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
    accum_dtype: Any = None,
) -> Value:
    """Sum over ``axis`` (all by default); bools and small integers sum as int64 or uint64.

    Parameters
    ----------
    a : array-like
    axis : int, tuple of int or None
    dtype : dtype, optional
        Convert to it first.
    keepdims : bool
        Keep reduced axes with extent 1.
    initial : scalar, optional
        Added to each sum.
    where : array-like of bool, optional
        Elements that take part.
    accum_dtype : dtype, optional
        Carry the sum in this dtype and round once; it holds every value of the operand.

    Notes
    -----
    float32 is accumulated in float64 at least and rounded once. The order is fixed by the shape
    alone.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.sum(tg.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Array([4., 6.], dtype=float64)
    """
    x = _masked(_typed(as_value(a), dtype), where, 0)
    axes = axes_of("sum", axis, x.ndim, scalar=True)
    total = accumulated("sum", (x,), accum_dtype, lambda x: sum_(x, axes, keepdims))
    total = _typed(total, dtype)
    return total if initial is None else _typed(total + initial, dtype)


def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Value:
    """Product over ``axis``; the derivative needs no division and is exact with zeros."""
    x = _masked(_typed(as_value(a), dtype), where, 1)
    total = _typed(_prod(x, axes_of("prod", axis, x.ndim, scalar=True), keepdims), dtype)
    return total if initial is None else _typed(total * initial, dtype)


def _extremum(name: str, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any) -> Value:
    x = as_value(a)
    reduce, pick = (max_, maximum) if name == "max" else (min_, minimum)
    if where is not None and where is not True:
        if initial is None:
            fail(ValueError(f"{name}: expected an initial value together with where"))
        x = select(where, x, initial)
    axes = axes_of(name, axis, x.ndim, scalar=True)
    if initial is None:
        return reduce(x, axes, keepdims)
    if _extent(x, axes) == 0:
        kept = keep_axes(x.shape, axes)
        start = broadcast_to(convert(as_value(initial), x.dtype), kept)
        return start if keepdims else squeeze(start, axes)
    return pick(reduce(x, axes, keepdims), initial)


def amax(
    a: Any, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Value:
    """The largest element over ``axis``; NaN if there is one, an error if there is nothing.

    Tied elements share the derivative equally.
    """
    return _extremum("max", a, axis, keepdims, initial, where)


def amin(
    a: Any, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Value:
    """The smallest element over ``axis``; NaN if there is one, an error if there is nothing."""
    return _extremum("min", a, axis, keepdims, initial, where)


max = amax
min = amin


def any(a: Any, axis: Any = None, *, keepdims: bool = False, where: Any = None) -> Value:
    """Whether an element over ``axis`` is true (not zero)."""
    x = _masked(convert(as_value(a), bool_), where, False)
    return any_(x, axes_of("any", axis, x.ndim, scalar=True), keepdims)


def all(a: Any, axis: Any = None, *, keepdims: bool = False, where: Any = None) -> Value:
    """Whether every element over ``axis`` is true (not zero)."""
    x = _masked(convert(as_value(a), bool_), where, True)
    return all_(x, axes_of("all", axis, x.ndim, scalar=True), keepdims)


def argmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The place of the first NaN or else of the first maximum (of the flattened array: None)."""
    x = as_value(a)
    return _argmax(x, axis_or_none("argmax", axis, x.ndim), keepdims)


def argmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The place of the first NaN or else of the first minimum (of the flattened array: None)."""
    x = as_value(a)
    return _argmin(x, axis_or_none("argmin", axis, x.ndim), keepdims)


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """How many elements over ``axis`` are not zero."""
    x = as_value(a)
    return sum_(convert(x, bool_), axes_of("count_nonzero", axis, x.ndim, scalar=True), keepdims)


def ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """Maximum minus minimum over ``axis``."""
    return amax(a, axis, keepdims=keepdims) - amin(a, axis, keepdims=keepdims)


# -------------------------------------------------------------------------- mean, variance


def _floating(name: str, a: Any, dtype: Any) -> tuple[Value, DType]:
    """``a`` in its accumulator type, and the type of the result."""
    x = as_value(a)
    if dtype is not None:
        target = as_dtype(dtype)
        if not target.is_inexact:  # NumPy: the mean is computed in float64, then cut
            return convert(x, "float64"), target
    else:
        target = x.dtype if x.dtype.is_inexact else as_dtype("float64")
    return convert(x, wide(target)), target


def _mean(x: Value, axes: tuple[int, ...], where: Any) -> tuple[Value, Any]:
    """Mean with reduced axes kept, and how many elements it has."""
    if where is None or where is True:
        count: Any = _extent(x, axes)
    else:
        mask = broadcast_to(convert(as_value(where), bool_), x.shape)
        count = convert(sum_(mask, axes, True), x.dtype.real)
    return sum_(_masked(x, where, 0), axes, True) / _number(count, x.dtype), count


def _number(count: Any, dtype: DType) -> Value:
    return count if type(count) is Value else constant(count, dtype)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None
) -> Value:
    """Arithmetic mean over ``axis``; NaN of nothing.

    Integers and bools give float64. float32 is summed and divided in float64, rounded once.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.mean(tg.asarray([1, 2, 4]))
    Array(2.33333333, dtype=float64)
    """
    x, target = _floating("mean", a, dtype)
    axes = axes_of("mean", axis, x.ndim)
    if where is None or where is True:
        total = sum_(x, axes, keepdims)
        return convert(total / constant(_extent(x, axes), x.dtype), target)
    result = convert(_mean(x, axes, where)[0], target)
    return result if keepdims else squeeze(result, axes)


def _squares(x: Value) -> Value:
    """``|x|**2`` without a square root."""
    if not x.dtype.is_complex:
        return x * x
    from ..ops import imag, real

    return real(x) * real(x) + imag(x) * imag(x)


def _variance(
    a: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: bool,
    where: Any,
    center: Any,
    correction: Any,
    root: bool,
) -> Value:
    if correction is not None:
        ddof = correction
    x, target = _floating("var", a, dtype)
    axes = axes_of("var", axis, x.ndim)
    middle, count = _mean(x, axes, where)
    if center is not None:
        middle = convert(as_value(center), x.dtype)
    deviations = _masked(x - middle, where, 0)
    total = sum_(_squares(deviations), axes, True)
    if type(count) is Value:
        free: Any = maximum(count - ddof, 0.0)
    else:
        free = _number(np.maximum(count - ddof, 0), total.dtype)
    result = total / free
    result = convert(sqrt(result) if root else result, target.real)
    return result if keepdims else squeeze(result, axes)


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    *,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Value:
    """Variance over ``axis``: sum of squared deviations over ``n - ddof``.

    Two passes: the mean first, so a large mean costs no digits. ``correction`` is the Array API's
    name of ``ddof``; ``n <= ddof`` divides by zero. Complex input gives the real E|x - Ex|^2.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.var(1e9 + tg.asarray([0.0, 3.0, 6.0, 9.0]))
    Array(11.25, dtype=float64)
    """
    return _variance(a, axis, dtype, ddof, keepdims, where, mean, correction, False)


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    *,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
    correction: Any = None,
) -> Value:
    """Square root of :func:`var`. The derivative at zero variance is 0 (of ``sqrt`` at 0)."""
    return _variance(a, axis, dtype, ddof, keepdims, where, mean, correction, True)
