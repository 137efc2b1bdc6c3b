"""Statistics beyond one reduction: averages, covariances, histograms, comparisons of arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import bool_, int64
from ..errors import ShapeError
from ..graph import Value
from ..ops import (
    abs_,
    conj,
    eq,
    ge,
    isfinite,
    isnan,
    le,
    logical_and,
    logical_or,
    sqrt,
    sum_,
    where,
)
from ..ops.leaves import constant
from ..ops.operands import as_value, convert, operands
from ..ops.shape import broadcast, broadcast_to, expand_dims, reshape, squeeze
from ..ops.slicing import slice_axis
from .arguments import as_inexact, axes_of, fail, promoted, static_int
from .concrete import concrete, known
from .creation import linspace, zeros
from .indexing import scatter_sum
from .manipulation import ravel
from .reductions import all as all_of
from .reductions import amax, amin, mean
from .searching import searchsorted

__all__ = [
    "allclose",
    "array_equal",
    "array_equiv",
    "average",
    "bincount",
    "corrcoef",
    "cov",
    "histogram",
    "histogram_bin_edges",
    "isclose",
    "segment_sum",
]


def average(
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Weighted mean over ``axis``; ``returned=True`` gives the sums of weights too.

    ``weights`` have the shape of ``a``, or are a vector along the one ``axis``.
    """
    x = as_value(a)
    axes = axes_of("average", axis, x.ndim)
    if weights is None:
        result = mean(x, axes, keepdims=keepdims)
        count = math.prod(x.shape[d] for d in axes)
        total = broadcast(constant(count, result.dtype), result.shape, ())
        return (result, total) if returned else result
    w = as_value(weights)
    if w.shape != x.shape:
        if axis is None:
            fail(
                ShapeError(
                    f"average: expected weights of the shape of a when axis is None, got {x.type} "
                    f"and {w.type}"
                )
            )
        if w.shape != tuple(x.shape[d] for d in axes):
            fail(
                ShapeError(
                    f"average: expected weights along axes {list(axes)} of {x.type}, got {w.type}"
                )
            )
        w = reshape(w, tuple(n if d in axes else 1 for d, n in enumerate(x.shape)))
    if x.dtype.is_integer or x.dtype.is_bool:
        x = convert(x, "float64")
    x, w = promoted(x, w)
    w = broadcast_to(w, x.shape)
    total = sum_(w, axes, True)
    data = known(total)
    if data is not None and (data == 0).any():
        fail(ZeroDivisionError("average: expected weights whose sum is not zero"))
    result = sum_(x * w, axes, True) / total
    if not keepdims:
        result, total = squeeze(result, axes), squeeze(total, axes)
    return (result, total) if returned else result


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Value:
    """Covariance matrix of variables in rows (columns when not ``rowvar``).

    Normalized by ``n - 1``, or ``n`` with ``bias``, or ``n - ddof``; ``fweights`` count repeated
    observations, ``aweights`` weigh them.
    """
    from .joining import concatenate
    from .linear import matmul

    def rows(data: Any) -> Value:
        value = as_inexact("cov", data, dtype)
        if value.ndim > 2:
            fail(ShapeError(f"cov: expected two axes at most, got {value.type}"))
        if value.ndim < 2:
            return reshape(value, (1, value.size))
        from ..ops.shape import transpose

        return value if rowvar or value.shape[0] == 1 else transpose(value)

    x = rows(m)
    if y is not None:
        x = concatenate((x, rows(y)))
    count = x.shape[1]
    ddof = (0 if bias else 1) if ddof is None else ddof
    w: Any = None
    for weights in (fweights, aweights):
        if weights is not None:
            v = convert(as_value(weights), x.dtype.real)
            if v.shape != (count,):
                fail(ShapeError(f"cov: expected {count} weights, got {as_value(weights).type}"))
            w = v if w is None else w * v
    if w is None:
        middle = mean(x, 1, keepdims=True)
        free: Any = constant(np.maximum(count - ddof, 0), x.dtype.real)
    else:
        total = sum_(w)
        middle = sum_(x * w, (1,), True) / total
        if aweights is None or ddof == 0:
            free = total - ddof
        else:
            free = total - ddof * sum_(w * convert(as_value(aweights), w.dtype)) / total
    x = x - middle
    right = x if w is None else x * w
    from ..ops.shape import transpose

    result = matmul(x, conj(transpose(right)) if x.dtype.is_complex else transpose(right)) / free
    return reshape(result, ()) if result.shape == (1, 1) else result


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Value:
    """Correlation matrix: :func:`cov` scaled to a unit diagonal, cut to [-1, 1]."""
    from ..ops import clip, real
    from .diagonals import diag

    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = sqrt(real(diag(c)) if c.dtype.is_complex else diag(c))
    c = c / expand_dims(deviation, (1,)) / expand_dims(deviation, (0,))
    return c if c.dtype.is_complex else clip(c, -1.0, 1.0)


# ------------------------------------------------------------------------------- counting


def segment_sum(data: Any, segment_ids: Any, num_segments: Any = None) -> Value:
    """Sums of slices ``data[i]`` with one ``segment_ids[i]``; ids out of range are left out.

    ``num_segments`` defaults to the largest id plus one, which must then be known.
    """
    x, ids = as_value(data), as_value(segment_ids)
    if ids.ndim != 1 or x.ndim < 1 or ids.shape[0] != x.shape[0] or not ids.dtype.is_integer:
        fail(
            ShapeError(
                f"segment_sum: expected one integer id for each slice, got {x.type} and {ids.type}"
            )
        )
    if num_segments is None:
        places = concrete("segment_sum", "segment_ids (or give num_segments)", ids)
        count = int(places.max()) + 1 if places.size else 0
    else:
        count = static_int("segment_sum", "num_segments", num_segments)
    return scatter_sum(zeros((count, *x.shape[1:]), x.dtype), ids, x, drop=True)


def bincount(x: Any, weights: Any = None, minlength: Any = 0, *, length: Any = None) -> Value:
    """How often each non-negative integer occurs in vector ``x`` (or the sum of its weights).

    Under ``jit`` give ``length``, the fixed length of the result; larger integers are left out.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.bincount(tg.asarray([0, 2, 2]))
    Array([1, 0, 2], dtype=int64)
    """
    places = as_value(x)
    if places.ndim != 1:
        fail(ShapeError(f"bincount: expected a vector, got {places.type}"))
    if places.size == 0 and not places.dtype.is_integer:
        places = convert(places, int64)
    if not (places.dtype.is_integer or places.dtype.is_bool):
        fail(TypeError(f"bincount: expected integers, got {places.type}; convert with astype"))
    least = static_int("bincount", "minlength", minlength)
    if least < 0:
        fail(ValueError(f"bincount: expected a non-negative minlength, got {least}"))
    places = convert(places, int64)
    if length is None:
        data = concrete("bincount", "x (or give length)", places)
        if data.size and data.min() < 0:
            fail(ValueError(f"bincount: expected non-negative integers, got {data.min()}"))
        count = max(least, int(data.max()) + 1 if data.size else 0)
    else:
        count = static_int("bincount", "length", length)
    if weights is None:
        amounts = broadcast(constant(1, int64), places.shape, ())
    else:
        amounts = convert(as_value(weights), "float64")
        if amounts.shape != places.shape:
            fail(ShapeError(f"bincount: expected {places.size} weights, got {amounts.type}"))
    return segment_sum(amounts, places, count)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Value:
    """The edges of ``bins`` equal bins over ``range`` (or from minimum to maximum)."""
    x = ravel(a)
    if isinstance(bins, str):
        fail(ValueError("histogram: expected a number of bins or edges, got a rule by name"))
    edges = as_value(bins)
    if edges.ndim == 1:
        data = known(edges)
        if data is not None and (np.diff(data) < 0).any():
            fail(ValueError("histogram: expected bins that increase"))
        return edges
    if edges.ndim > 1:
        fail(ShapeError(f"histogram: expected bins as a number or a vector, got {edges.type}"))
    count = static_int("histogram", "bins", bins)
    if count < 1:
        fail(ValueError(f"histogram: expected one bin at least, got {count}"))
    low: Any
    high: Any
    if range is not None:
        low, high = range
    elif x.size == 0:
        low, high = 0.0, 1.0
    else:
        low, high = amin(x), amax(x)
    first, last = known(as_value(low)), known(as_value(high))
    if first is not None and last is not None and not 0 <= last - first < math.inf:
        fail(ValueError(f"histogram: expected a finite, rising range, got {first} to {last}"))
    low, high = (as_inexact("histogram", v) for v in (low, high))
    same = eq(low, high)
    result: Value = linspace(where(same, low - 0.5, low), where(same, high + 0.5, high), count + 1)
    return result


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Value, Value]:
    """Counts (or sums of weights) in bins, and the edges of the bins.

    Bins hold their left edge, the last one its right edge too. ``density`` divides by the total
    and by the widths.

    Examples
    --------
    >>> import tilegrad as tg
    >>> counts, edges = tg.histogram(tg.asarray([1.0, 2.0, 2.5, 4.0]), bins=3)
    >>> counts, edges
    (Array([1, 2, 1], dtype=int64), Array([1., 2., 3., 4.], dtype=float64))
    """
    x = ravel(a)
    edges = histogram_bin_edges(x, bins, range)
    count = edges.shape[0] - 1
    last = slice_axis(edges, 0, count, count + 1)
    place = searchsorted(edges, x, side="right") - 1
    place = where(eq(x, last), count - 1, place)
    inside = logical_and(ge(place, 0), le(x, last))
    place = where(inside, place, count)  # left out
    if weights is None:
        amounts = broadcast(constant(1, int64), x.shape, ())
    else:
        amounts = ravel(weights)
        if amounts.shape != x.shape:
            fail(ShapeError(f"histogram: expected {x.size} weights, got {amounts.type}"))
    counts = segment_sum(amounts, place, count)
    if density:
        widths = slice_axis(edges, 0, 1, count + 1) - slice_axis(edges, 0, 0, count)
        counts = counts / widths / sum_(counts)
    return counts, edges


# ----------------------------------------------------------------------------- comparing


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Value:
    """Whether ``|a - b| <= atol + rtol |b|``, elementwise; equal infinities are close."""
    x, y = operands("isclose", a, b)
    if not y.dtype.is_inexact:
        x, y = convert(x, "float64"), convert(y, "float64")
    near = logical_and(le(abs_(x - y), atol + rtol * abs_(y)), isfinite(y))
    result = logical_or(near, eq(x, y))
    return logical_or(result, logical_and(isnan(x), isnan(y))) if equal_nan else result


def allclose(
    a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False
) -> Value:
    """Whether all elements are close (:func:`isclose`); a bool of shape ()."""
    return all_of(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Value:
    """Whether shapes and all elements are equal; a bool of shape ()."""
    x, y = as_value(a1), as_value(a2)
    if x.shape != y.shape:
        return constant(False, bool_)
    same = eq(x, y)
    if equal_nan and x.dtype.is_inexact and y.dtype.is_inexact:
        same = logical_or(same, logical_and(isnan(x), isnan(y)))
    return all_of(same)


def array_equiv(a1: Any, a2: Any) -> Value:
    """Whether the arrays broadcast together and are equal then."""
    try:
        x, y = operands("array_equiv", a1, a2)
    except ShapeError:
        return constant(False, bool_)
    return all_of(eq(x, y))
