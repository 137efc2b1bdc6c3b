"""Reductions that leave NaN out: nansum, nanmean, nanmax, ..."""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import int64
from ..graph import Value
from ..ops import any_, eq, isnan, le, logical_not, sum_
from ..ops import where as select
from ..ops.operands import as_value, convert
from .arguments import axes_of, axis_or_none, fail
from .concrete import known
from .reductions import amax, amin, argmax, argmin, mean, prod, std, sum, var

__all__ = [
    *("nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin"),
    *("nanprod", "nanstd", "nansum", "nanvar"),
]


def _valid(a: Any) -> tuple[Value, Any]:
    """``a``, and where it is not NaN (None: everywhere)."""
    x = as_value(a)
    return x, logical_not(isnan(x)) if x.dtype.is_inexact else None


def nansum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Value:
    """Sum over ``axis`` with NaN counted as 0."""
    x, mask = _valid(a)
    return sum(x, axis, dtype, keepdims=keepdims, where=mask)


def nanprod(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Value:
    """Product over ``axis`` with NaN counted as 1."""
    x, mask = _valid(a)
    return prod(x, axis, dtype, keepdims=keepdims, where=mask)


def nanmean(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Value:
    """Mean over ``axis`` of what is not NaN; NaN if nothing is left."""
    x, mask = _valid(a)
    if x.ndim == 0 and axis != ():  # NumPy: also where its mean refuses
        axis = axis_or_none("nanmean", axis, 0)
    return mean(x, axis, dtype, keepdims=keepdims, where=mask)


def _nan_variance(
    a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, correction: Any, root: bool
) -> Value:
    x, mask = _valid(a)
    if x.ndim == 0 and axis != ():
        axis = axis_or_none("nanvar", axis, 0)
    ddof = ddof if correction is None else correction
    result = (std if root else var)(x, axis, dtype, ddof, keepdims=keepdims, where=mask)
    if mask is None:
        return result
    # no degree of freedom: NaN where var gives inf or NaN (NumPy)
    count = sum_(mask, axes_of("nanvar", axis, x.ndim), keepdims)
    free = convert(count, "float64") - ddof
    return select(le(free, 0), math.nan, result)


def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    *,
    keepdims: bool = False,
    correction: Any = None,
) -> Value:
    """Variance over ``axis`` of what is not NaN; NaN without a degree of freedom."""
    return _nan_variance(a, axis, dtype, ddof, keepdims, correction, False)


def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    ddof: Any = 0,
    *,
    keepdims: bool = False,
    correction: Any = None,
) -> Value:
    """Square root of :func:`nanvar`."""
    return _nan_variance(a, axis, dtype, ddof, keepdims, correction, True)


def _nan_extremum(find: Any, fill: float, a: Any, axis: Any, keepdims: bool) -> Value:
    x, mask = _valid(a)
    result: Value = find(x if mask is None else select(mask, x, fill), axis, keepdims=keepdims)
    if mask is None:
        return result
    found = any_(mask, axes_of("nanmax", axis, x.ndim, scalar=True), keepdims)
    return select(found, result, math.nan)


def nanmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The largest element over ``axis`` that is not NaN; NaN if there is none."""
    return _nan_extremum(amax, -math.inf, a, axis, keepdims)


def nanmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The smallest element over ``axis`` that is not NaN; NaN if there is none."""
    return _nan_extremum(amin, math.inf, a, axis, keepdims)


def _nan_argument(name: str, a: Any, axis: Any, keepdims: bool) -> Value:
    x, mask = _valid(a)
    largest = name == "nanargmax"
    if mask is None:
        return (argmax if largest else argmin)(x, axis, keepdims=keepdims)
    data = known(any_(mask, axes_of(name, axis, x.ndim, scalar=True)))
    if data is not None and not data.all():
        fail(ValueError(f"{name}: expected a number in each slice, got only NaN"))
    # a NaN must not win beside true infinities: look for the extremum among what is valid
    best = (nanmax if largest else nanmin)(x, axis, keepdims=True)
    return argmax(convert(eq(x, best), int64), axis, keepdims=keepdims)


def nanargmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The place of the first maximum that is not NaN; a slice of NaN alone is an error.

    Under ``jit``, where that cannot be seen, such a slice gives 0.
    """
    return _nan_argument("nanargmax", a, axis, keepdims)


def nanargmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The place of the first minimum that is not NaN; see :func:`nanargmax`."""
    return _nan_argument("nanargmin", a, axis, keepdims)
