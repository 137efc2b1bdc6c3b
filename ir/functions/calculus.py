"""Running sums, differences, integrals, interpolation."""

from __future__ import annotations

import math
from typing import Any

from ..errors import ShapeError
from ..graph import Value
from ..ops import (
    abs_,
    eq,
    gt,
    isnan,
    le,
    logical_and,
    lt,
    maximum,
    minimum,
    ne,
    remainder,
    sum_,
    where,
)
from ..ops import cummax as _cummax
from ..ops import cummin as _cummin
from ..ops import (
    cumprod as _cumprod,
)
from ..ops import (
    cumsum as _cumsum,
)
from ..ops import logcumsumexp as _logcumsumexp
from ..ops.leaves import constant
from ..ops.operands import as_value, convert
from ..ops.shape import broadcast_to, reshape
from ..ops.slicing import pad, slice_axis
from .arguments import as_inexact, as_line, fail, one_axis, promoted, static_float, static_int
from .indexing import take
from .joining import concatenate
from .manipulation import ravel
from .searching import searchsorted

__all__ = [
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "ediff1d",
    "gradient",
    "interp",
    "logcumsumexp",
    "nancumprod",
    "nancumsum",
    "trapezoid",
    "unwrap",
]


# ------------------------------------------------------------------------------- running sums


def _running(op: Any, name: str, a: Any, axis: Any, dtype: Any, reverse: bool = False) -> Value:
    x = as_line(as_value(a), axis)
    if dtype is not None:
        x = convert(x, dtype)
    if axis is None:
        x, axis = ravel(x), 0
    result = op(x, one_axis(name, axis, x.ndim), reverse)
    return result if dtype is None else convert(result, dtype)


def cumsum(a: Any, axis: Any = None, dtype: Any = None, *, reverse: bool = False) -> Value:
    """Running sums along ``axis`` (flattened when None), from the end if ``reverse``."""
    return _running(_cumsum, "cumsum", a, axis, dtype, reverse)


def cumprod(a: Any, axis: Any = None, dtype: Any = None, *, reverse: bool = False) -> Value:
    """Running products along ``axis`` (of the flattened array when None)."""
    return _running(_cumprod, "cumprod", a, axis, dtype, reverse)


def cummax(a: Any, axis: Any = None, *, reverse: bool = False) -> Value:
    """Running maxima along ``axis`` (of the flattened array when None); NaN stays."""
    return _running(_cummax, "cummax", a, axis, None, reverse)


def cummin(a: Any, axis: Any = None, *, reverse: bool = False) -> Value:
    """Running minima along ``axis`` (of the flattened array when None); NaN stays."""
    return _running(_cummin, "cummin", a, axis, None, reverse)


def logcumsumexp(a: Any, axis: Any = None, *, reverse: bool = False) -> Value:
    """Running ``logsumexp``; each prefix has its own shift; all -inf has derivative 0."""
    return _running(_logcumsumexp, "logcumsumexp", a, axis, None, reverse)


def _cumulative(
    function: Any, name: str, x: Any, axis: Any, dtype: Any, first: int | None
) -> Value:
    value = as_line(as_value(x), 0)
    if axis is None:
        if value.ndim != 1:
            fail(ShapeError(f"{name}: expected an axis for {value.type}, got None"))
        axis = 0
    d = one_axis(name, axis, value.ndim)
    result: Value = function(value, d, dtype)
    if first is None:
        return result
    low = [0] * value.ndim
    low[d] = 1
    return pad(result, constant(first, result.dtype), low, [0] * value.ndim)


def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Value:
    """Running sums along ``axis``, a zero in front if ``include_initial`` (Array API)."""
    first = 0 if include_initial else None
    return _cumulative(cumsum, "cumulative_sum", x, axis, dtype, first)


def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Value:
    """Running products along ``axis``, a one in front if ``include_initial`` (Array API)."""
    first = 1 if include_initial else None
    return _cumulative(cumprod, "cumulative_prod", x, axis, dtype, first)


def nancumsum(a: Any, axis: Any = None, dtype: Any = None) -> Value:
    """:func:`cumsum` with NaN counted as 0."""
    x = as_value(a)
    return cumsum(where(isnan(x), 0, x) if x.dtype.is_inexact else x, axis, dtype)


def nancumprod(a: Any, axis: Any = None, dtype: Any = None) -> Value:
    """:func:`cumprod` with NaN counted as 1."""
    x = as_value(a)
    return cumprod(where(isnan(x), 1, x) if x.dtype.is_inexact else x, axis, dtype)


# -------------------------------------------------------------------- differences, integrals


def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Value:
    """Differences of neighbours along ``axis``, ``n`` times; of bools whether they differ."""
    x, order = as_value(a), static_int("diff", "n", n)
    if order < 0:
        fail(ValueError(f"diff: expected a non-negative order, got {order}"))
    if x.ndim == 0:
        fail(ShapeError(f"diff: expected an array with an axis, got {x.type}"))
    d = one_axis("diff", axis, x.ndim)
    parts = [None if p is None else as_value(p) for p in (prepend, append)]
    ends = []
    for part in parts:
        if part is not None and part.ndim == 0:
            part = broadcast_to(part, (*x.shape[:d], 1, *x.shape[d + 1 :]))
        ends.append(part)
    if order and any(part is not None for part in ends):
        x = concatenate([p for p in (ends[0], x, ends[1]) if p is not None], d)
    for _ in range(order):
        extent = x.shape[d]
        after, before = slice_axis(x, d, 1, None), slice_axis(x, d, 0, max(extent - 1, 0))
        x = ne(after, before) if x.dtype.is_bool else after - before
    return x


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Value:
    """Differences of neighbours of the flattened array, with numbers put before and after."""
    x = ravel(ary)
    parts = [diff(x)]
    if to_begin is not None:
        parts.insert(0, convert(ravel(to_begin), x.dtype))
    if to_end is not None:
        parts.append(convert(ravel(to_end), x.dtype))
    return concatenate(parts)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Value:
    """Integral of ``y`` along ``axis`` by the trapezoidal rule: points ``x`` or steps ``dx``."""
    value = as_value(y)
    d = one_axis("trapezoid", axis, value.ndim)
    if x is None:
        steps: Any = dx
    else:
        points = as_value(x)
        if points.ndim == 1:
            steps = diff(points)
            steps = reshape(steps, tuple(-1 if e == d else 1 for e in range(value.ndim)))
        else:
            steps = diff(points, axis=d)
    extent = value.shape[d]
    after, before = slice_axis(value, d, 1, None), slice_axis(value, d, 0, max(extent - 1, 0))
    return sum_(steps * (after + before) / 2.0, (d,))


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivative by central differences, one-sided at the ends: an array for each axis.

    Parameters
    ----------
    f : array-like
    varargs
        Nothing (spacing 1), one spacing, or for each axis a spacing or a vector of points.
    axis : int, tuple of int or None
        Axes to differentiate along; all by default. For one axis an array is returned, else a list.
    edge_order : {1, 2}
        Order of the differences at both ends.

    Notes
    -----
    With uneven points the inner formula is the second-order one of NumPy's documentation,
    ``(hs^2 f(x + hd) + (hd^2 - hs^2) f(x) - hd^2 f(x - hs)) / (hs hd (hd + hs))``.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.gradient(tg.asarray([1.0, 2.0, 4.0, 7.0]), 0.5)
    Array([2., 3., 5., 6.], dtype=float64)
    """
    value = as_value(f)
    if not value.dtype.is_inexact:
        value = convert(value, "float64")
    axes = (
        tuple(range(value.ndim))
        if axis is None
        else tuple(
            one_axis("gradient", d, value.ndim)
            for d in (axis if isinstance(axis, (tuple, list)) else (axis,))
        )
    )
    if edge_order not in (1, 2):
        fail(ValueError(f"gradient: expected edge_order 1 or 2, got {edge_order}"))
    spacings: list[Any] = list(varargs) or [1.0]
    if len(spacings) == 1 and as_value(spacings[0]).ndim == 0:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        fail(TypeError(f"gradient: expected {len(axes)} spacings, got {len(spacings)}"))
    results = [
        _slope(value, d, as_value(h), edge_order) for d, h in zip(axes, spacings, strict=True)
    ]
    return results[0] if len(axes) == 1 else tuple(results)


def _slope(x: Value, d: int, spacing: Value, edge_order: int) -> Value:
    extent = x.shape[d]
    if extent < edge_order + 1:
        fail(
            ShapeError(
                f"gradient: expected {edge_order + 1} elements or more along axis {d}, got {x.type}"
            )
        )

    def at(start: int, stop: int | None) -> Value:
        return slice_axis(x, d, start, stop)

    if spacing.ndim == 0:
        h: Any = spacing
        inner = (at(2, None) - at(0, -2)) / (2.0 * h)
        first = last = h
        second = before_last = h
    else:
        if spacing.ndim != 1 or spacing.shape[0] != extent:
            fail(
                ShapeError(
                    f"gradient: expected a spacing or {extent} points for axis {d}, got "
                    f"{spacing.type}"
                )
            )
        points = spacing if spacing.dtype.is_inexact else convert(spacing, "float64")
        steps = diff(points)
        steps = reshape(steps, tuple(-1 if e == d else 1 for e in range(x.ndim)))
        hs, hd = slice_axis(steps, d, 0, -1), slice_axis(steps, d, 1, None)
        inner = (
            at(0, -2) * (-hd / (hs * (hs + hd)))
            + at(1, -1) * ((hd - hs) / (hs * hd))
            + at(2, None) * (hs / (hd * (hs + hd)))
        )
        first, last = slice_axis(steps, d, 0, 1), slice_axis(steps, d, -1, None)
        second = slice_axis(steps, d, 1, 2)
        before_last = slice_axis(steps, d, -2, -1) if extent > 2 else last
    if edge_order == 1:
        left = (at(1, 2) - at(0, 1)) / first
        right = (at(-1, None) - at(-2, -1)) / last
    else:
        left = _edge(at(0, 1), at(1, 2), at(2, 3), first, second)
        right = -_edge(at(-1, None), at(-2, -1), at(-3, -2), last, before_last)
    return concatenate((left, inner, right), d)


def _edge(f0: Value, f1: Value, f2: Value, h1: Any, h2: Any) -> Any:
    """Second-order derivative at the first of three points with steps h1, h2."""
    a = -(2.0 * h1 + h2) / (h1 * (h1 + h2))
    b = (h1 + h2) / (h1 * h2)
    c = -h1 / (h2 * (h1 + h2))
    return a * f0 + b * f1 + c * f2


def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * math.pi) -> Value:
    """Multiples of ``period`` added so that neighbours differ by half a period at most."""
    value = as_value(p)
    d = one_axis("unwrap", axis, value.ndim)
    steps = diff(value, axis=d)
    jump = as_value(period) / 2.0 if discont is None else as_value(discont)
    if value.dtype.is_integer and type(period) is int:
        if period % 2:
            value, steps = convert(value, "float64"), convert(steps, "float64")
            half: Any = period / 2
        else:
            half = period // 2
    else:
        value = as_inexact("unwrap", value)
        steps = convert(steps, value.dtype)
        half = period / 2.0
    wrapped = remainder(steps + half, period) - half
    wrapped = where(logical_and(eq(wrapped, -half), gt(steps, 0)), half, wrapped)
    correction = where(lt(abs_(steps), jump), 0, wrapped - steps)
    rest = slice_axis(value, d, 1, None) + convert(cumsum(correction, d), value.dtype)
    return concatenate((slice_axis(value, d, 0, 1), rest), d)


# ------------------------------------------------------------------------------ interpolation


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Value:
    """Piecewise linear interpolation of points ``(xp, fp)`` at ``x``; exact at the points.

    Parameters
    ----------
    x : array-like
    xp, fp : vectors of one length
        ``xp`` increases (not needed with ``period``).
    left, right : scalar, optional
        Values outside; the first and last of ``fp`` by default.
    period : scalar, optional
        Period of ``x``; ``left`` and ``right`` are ignored then.

    Notes
    -----
    The derivative in ``x`` is the slope of the piece that begins at ``x`` (of the last piece at its
    end), and 0 outside.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.interp(2.5, tg.asarray([1.0, 2.0, 4.0]), tg.asarray([0.0, 1.0, 5.0]))
    Array(2., dtype=float64)
    """
    points, values = as_value(xp), as_value(fp)
    if points.ndim != 1 or points.shape != values.shape or not points.size:
        fail(
            ShapeError(
                f"interp: expected xp and fp as vectors of one length, got {points.type} and "
                f"{values.type}"
            )
        )
    at, points = (as_inexact("interp", v) for v in promoted(x, points))
    values = as_inexact("interp", values)
    if period is not None:
        width = abs(static_float("interp", "period", period))
        if width == 0:
            fail(ValueError("interp: expected a period that is not 0"))
        at, points = remainder(at, width), remainder(points, width)
        from .sorting import argsort

        order = argsort(points)
        points, values = take(points, order), take(values, order)
        last = points.shape[0] - 1
        points = concatenate(
            (
                slice_axis(points, 0, last, None) - width,
                points,
                slice_axis(points, 0, 0, 1) + width,
            )
        )
        values = concatenate(
            (slice_axis(values, 0, last, None), values, slice_axis(values, 0, 0, 1))
        )
        left = right = None
    count = points.shape[0]
    first_value = reshape(slice_axis(values, 0, 0, 1), ())
    last_value = reshape(slice_axis(values, 0, count - 1, None), ())
    low = reshape(slice_axis(points, 0, 0, 1), ())
    high = reshape(slice_axis(points, 0, count - 1, None), ())
    if count == 1:
        result = broadcast_to(first_value, at.shape)
    else:
        piece = searchsorted(points, at, side="right") - 1
        piece = minimum(maximum(piece, 0), count - 2)
        x0, x1 = take(points, piece), take(points, piece + 1)
        y0, y1 = take(values, piece), take(values, piece + 1)
        inside = logical_and(le(low, at), le(at, high))
        safe = where(inside, at, x0)
        end = eq(safe, x1)  # the last point: from its side, so that it is exact
        result = (y1 - y0) / (x1 - x0) * (safe - where(end, x1, x0)) + where(end, y1, y0)
    result = where(lt(at, low), first_value if left is None else left, result)
    result = where(gt(at, high), last_value if right is None else right, result)
    return where(isnan(at), convert(at, result.dtype), result)
