"""Order statistics: median, quantile, percentile and their nan-forms.

Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50, 1996.
"""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import int64
from ..errors import DTypeError
from ..graph import Value
from ..ops import (
    eq,
    floor,
    ge,
    isinf,
    isnan,
    le,
    logical_and,
    logical_not,
    lt,
    maximum,
    minimum,
    rint,
    sort,
    sum_,
    where,
)
from ..ops.leaves import constant
from ..ops.operands import common_dtype, convert
from ..ops.shape import broadcast, broadcast_to, reshape, transpose
from ..ops.slicing import slice_axis
from .arguments import as_inexact, axes_of, fail, keep_axes
from .concrete import known
from .indexing import take_along_axis

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

# (alpha, beta) of Hyndman and Fan: the place of q is n q + alpha + q (1 - alpha - beta) - 1
_CONTINUOUS = {
    "linear": (1.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "median_unbiased": (1.0 / 3.0, 1.0 / 3.0),
    "normal_unbiased": (3.0 / 8.0, 3.0 / 8.0),
}
_STEPS = ("lower", "higher", "nearest", "midpoint")


def _lined(name: str, a: Any, axis: Any) -> tuple[Value, tuple[int, ...], tuple[int, ...]]:
    """``a`` with the reduced axes merged into the last one, those axes, and the shape kept."""
    x = as_inexact(name, a)
    if x.dtype.is_complex:
        fail(DTypeError(f"{name}: is not defined for {x.dtype}: complex numbers have no order"))
    axes = axes_of(name, axis, x.ndim)
    rest = [d for d in range(x.ndim) if d not in axes]
    line = reshape(
        transpose(x, (*rest, *axes)),
        (*(x.shape[d] for d in rest), math.prod(x.shape[d] for d in axes)),
    )
    return line, axes, keep_axes(x.shape, axes)


def median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """The middle of the sorted elements over ``axis``, or the mean of the middle two.

    NaN if there is a NaN, and of nothing. The derivative belongs to the elements that a stable
    sort puts in the middle.
    """
    line, _, kept = _lined("median", a, axis)
    extent, last = line.shape[-1], line.ndim - 1
    if extent == 0:
        result = broadcast(constant(math.nan, line.dtype), line.shape[:-1], ())
    else:
        ordered = sort(line, last)
        low = slice_axis(ordered, last, (extent - 1) // 2, (extent - 1) // 2 + 1)
        high = slice_axis(ordered, last, extent // 2, extent // 2 + 1)
        final = slice_axis(ordered, last, extent - 1, extent)  # NaN is sorted to the end
        middle = low if extent % 2 else _mean_of_two(low, high)
        result = reshape(where(isnan(final), final, middle), line.shape[:-1])
    return reshape(result, kept) if keepdims else result


def _mean_of_two(low: Value, high: Value) -> Value:
    """Without overflow, and of two infinities that infinity."""
    return where(eq(low, high), low * 0.5 + high * 0.5, (low + high) * 0.5)


def quantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Value:
    """Quantiles ``q`` in [0, 1] of the elements over ``axis``; NaN if there is a NaN.

    Parameters
    ----------
    a : array-like, real
    q : scalar or array-like
        Its axes come first in the result. May be traced (values outside [0, 1] then give NaN).
    axis : int, tuple of int or None
    method : str
        ``linear`` (default) ``lower higher nearest midpoint hazen weibull median_unbiased
        normal_unbiased interpolated_inverted_cdf``.
    keepdims : bool

    Notes
    -----
    Between a number and an infinity is that infinity (NumPy: NaN, also at ``q`` 0 and 1).

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.quantile(tg.asarray([1.0, 2.0, 4.0]), [0.5, 0.75])
    Array([2., 3.], dtype=float64)
    """
    return _quantile("quantile", a, q, axis, method, keepdims, skip_nan=False)


def percentile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Value:
    """:func:`quantile` of ``q / 100``."""
    return _quantile("percentile", a, _hundredths(q), axis, method, keepdims, skip_nan=False)


def nanquantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Value:
    """:func:`quantile` of what is not NaN; NaN if nothing is left."""
    return _quantile("nanquantile", a, q, axis, method, keepdims, skip_nan=True)


def nanpercentile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Value:
    """:func:`percentile` of what is not NaN; NaN if nothing is left."""
    return _quantile("nanpercentile", a, _hundredths(q), axis, method, keepdims, skip_nan=True)


def nanmedian(a: Any, axis: Any = None, *, keepdims: bool = False) -> Value:
    """:func:`median` of what is not NaN; NaN if nothing is left."""
    return _quantile("nanmedian", a, 0.5, axis, "linear", keepdims, skip_nan=True)


def _hundredths(q: Any) -> Value:
    return as_inexact("percentile", q) / 100.0


def _quantile(
    name: str, a: Any, q: Any, axis: Any, method: str, keepdims: bool, *, skip_nan: bool
) -> Value:
    if method not in _CONTINUOUS and method not in _STEPS:
        fail(ValueError(f"{name}: expected a method of {[*_CONTINUOUS, *_STEPS]}, got {method!r}"))
    share = as_inexact(name, q)
    data = known(share)
    if data is not None and not ((data >= 0) & (data <= 1)).all():
        whole = 100 if "percentile" in name else 1
        fail(ValueError(f"{name}: expected q in [0, {whole}]"))
    line, _, kept = _lined(name, a, axis)
    line = convert(line, common_dtype([line.type, share.type]))  # a strong q counts, as in NumPy
    flat = reshape(share, (share.size,))
    result = _at_shares(line, convert(flat, "float64"), method, skip_nan)
    # the axis of q, last, goes first
    order = (line.ndim - 1, *range(line.ndim - 1))
    result = transpose(result, order)
    tail = kept if keepdims else line.shape[:-1]
    return reshape(result, (*share.shape, *tail))


def _at_shares(line: Value, share: Value, method: str, skip_nan: bool) -> Value:
    """Quantiles along the last axis of ``line``, one for each element of vector ``share``."""
    extent, last = line.shape[-1], line.ndim - 1
    outer = line.shape[:-1]
    shape = (*outer, share.shape[0])
    if extent == 0:
        return broadcast(constant(math.nan, line.dtype), shape, ())
    ordered = sort(line, last)
    final = slice_axis(ordered, last, extent - 1, extent)
    if skip_nan:
        valid = sum_(logical_not(isnan(ordered)), (last,), True)
        count: Any = convert(valid, "float64")
    else:
        count = float(extent)
    alpha, beta = _CONTINUOUS.get(method, (1.0, 1.0))
    if method in _STEPS or method == "linear":
        place = share * (count - 1.0)
    else:
        place = share * count + (share * (1.0 - alpha - beta) + (alpha - 1.0))
    place = broadcast_to(place, shape)
    if method in ("lower", "higher", "nearest"):
        from ..ops import ceil

        rounded = {"lower": floor, "higher": ceil, "nearest": rint}[method](place)
        result = _pick(ordered, rounded, count)
    else:
        below = floor(place)
        low, high = _pick(ordered, below, count), _pick(ordered, below + 1.0, count)
        part = place - below
        if method == "midpoint":
            part = where(eq(part, 0), 0.0, 0.5)
        result = _between(low, high, convert(part, line.dtype))
    inside = broadcast_to(logical_and(ge(share, 0), le(share, 1)), shape)
    result = where(inside, result, math.nan)
    if skip_nan:
        return where(eq(count, 0), math.nan, result)
    return where(isnan(final), final, result)


def _pick(ordered: Value, place: Value, count: Any) -> Value:
    """Elements at (floating) places, cut to the ``count`` first ones."""
    inside = maximum(minimum(place, count - 1.0), 0.0)
    return take_along_axis(ordered, convert(inside, int64), ordered.ndim - 1)


def _between(low: Value, high: Value, part: Value) -> Value:
    """``low + part (high - low)`` from the nearer end, exact at both (NumPy's formula).

    A gap that is infinite or overflows would give inf - inf; there the weighted mean is right.
    """
    gap = high - low
    inner = where(lt(part, 0.5), low + gap * part, high - gap * (1.0 - part))
    mean = where(eq(part, 0.0), low, low * (1.0 - part) + high * part)
    return where(eq(low, high), low, where(isinf(gap), mean, inner))
