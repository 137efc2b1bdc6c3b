"""New arrays: zeros, ones, ranges, grids, triangles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import DType, as_dtype, bool_, float64, int64
from ..errors import DTypeError, ShapeError
from ..graph import Value
from ..ops import eq, floor, ge, log10, power, sign, where
from ..ops.leaves import constant, iota
from ..ops.operands import as_value, common_dtype, convert
from ..ops.shape import broadcast, broadcast_to, moveaxis, reshape
from .arguments import as_inexact, fail, one_axis, promoted, shape_of, static_array, static_int

__all__ = [
    "arange",
    "bartlett",
    "blackman",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "hamming",
    "hanning",
    "identity",
    "indices",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tri",
    "tril",
    "tril_indices",
    "triu",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "vander",
    "zeros",
    "zeros_like",
]


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Value:
    """An array of ``shape`` filled with ``fill_value`` (a scalar or what broadcasts)."""
    value = as_value(fill_value)
    return broadcast_to(
        convert(value, value.dtype if dtype is None else dtype), shape_of("full", shape)
    )


def _filled(name: str, shape: Any, fill: int, dtype: Any) -> Value:
    target = float64 if dtype is None else as_dtype(dtype)
    return broadcast(constant(fill, target), shape_of(name, shape), ())


def zeros(shape: Any, dtype: Any = None) -> Value:
    """Zeros of ``shape``; float64 unless ``dtype`` says otherwise."""
    return _filled("zeros", shape, 0, dtype)


def ones(shape: Any, dtype: Any = None) -> Value:
    """Ones of ``shape``; float64 unless ``dtype`` says otherwise."""
    return _filled("ones", shape, 1, dtype)


def empty(shape: Any, dtype: Any = None) -> Value:
    """Like :func:`zeros`: arrays are immutable, so there is nothing to fill in later."""
    return _filled("empty", shape, 0, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Value:
    """``fill_value`` in the shape and element type of ``x``."""
    like = as_value(x)
    return full(like.shape if shape is None else shape, fill_value, dtype or like.dtype)


def zeros_like(x: Any, dtype: Any = None, shape: Any = None) -> Value:
    """Zeros in the shape and element type of ``x``."""
    return full_like(x, 0, dtype, shape)


def ones_like(x: Any, dtype: Any = None, shape: Any = None) -> Value:
    """Ones in the shape and element type of ``x``."""
    return full_like(x, 1, dtype, shape)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None) -> Value:
    """Like :func:`zeros_like`."""
    return full_like(prototype, 0, dtype, shape)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Value:
    """``start, start + step, ...`` up to, not including, ``stop``; the bounds must be known.

    Element i is ``start + i * delta`` with ``delta = (start + step) - start``, as in NumPy.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.arange(2, 11, 3)
    Array([2, 5, 8], dtype=int64)
    """
    if stop is None:
        start, stop = 0, start
    bounds = [start, stop, 1 if step is None else step]
    if dtype is None:
        target = common_dtype([as_value(b).type for b in bounds])
        target = int64 if target is bool_ else target
    else:
        target = as_dtype(dtype)
    first, last, delta = (static_array("arange", "the bounds", b).item() for b in bounds)
    if isinstance(first + last + delta, complex):
        fail(DTypeError("arange: expected real bounds, got complex ones"))
    if delta == 0:
        fail(ZeroDivisionError("arange: expected a step that is not 0"))
    quotient = (last - first) / delta
    if isinstance(first + last + delta, int):
        length = max(0, -((first - last) // delta))
    elif math.isfinite(quotient):
        length = max(0, math.ceil(quotient))
    else:
        fail(ShapeError(f"arange: expected finite bounds, got {first}, {last}, {delta}"))
    if target is bool_ and length > 2:
        fail(DTypeError("arange: a bool range has two elements at most; convert with astype"))
    if target is bool_:
        return convert(iota((length,)) * delta + first, bool_)
    begin = np.asarray(first).astype(target.numpy)
    spacing = np.asarray(first + delta).astype(target.numpy) - begin
    steps = _steps(length, target)
    scaled = steps if spacing == 1 else steps * constant(spacing, target)
    return scaled if begin == 0 else scaled + constant(begin, target)


def _steps(length: int, dtype: DType) -> Value:
    """0, 1, ... of any number type (counted as int64, so that small types wrap, not overflow)."""
    if dtype is int64 or (dtype.itemsize == 8 and dtype.is_floating):
        return iota((length,), 0, dtype)
    return convert(iota((length,)), dtype)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """``num`` evenly spaced numbers from ``start`` to ``stop``, which may be arrays and traced.

    The last element is ``stop`` exactly when ``endpoint``. Differentiable in both bounds.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.linspace(0.0, 1.0, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float64)
    """
    num = static_int("linspace", "num", num)
    if num < 0:
        fail(ShapeError(f"linspace: expected a non-negative num, got {num}"))
    first, last = (as_inexact("linspace", v) for v in promoted(start, stop))
    computed = first.dtype
    target = computed if dtype is None else as_dtype(dtype)
    delta = last - first
    parts = num - 1 if endpoint else num
    place = (num,) + (1,) * delta.ndim
    index = iota(place, 0)
    steps = convert(index, computed.real)
    if parts > 0:
        step = delta / parts
        # a subnormal delta: multiply before the division underflows
        points = where(eq(step, 0), steps / parts * delta, steps * step) + first
    else:
        step = delta * math.nan
        points = steps * delta + first
    if endpoint and num > 1:
        points = where(eq(index, num - 1), last, points)
    if target.is_integer:
        points = floor(points)
    result = convert(points, target)
    if axis != 0:
        result = moveaxis(result, 0, one_axis("linspace", axis, result.ndim))
    return (result, step) if retstep else result


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Value:
    """``base ** linspace(start, stop, num)``."""
    points = power(base, linspace(start, stop, num, endpoint, axis=axis))
    return points if dtype is None else convert(points, dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Value:
    """``num`` numbers from ``start`` to ``stop`` with a constant ratio; both ends are exact.

    ``start`` and ``stop`` are real, not zero and of one sign (elsewhere the result is NaN).
    """
    num = static_int("geomspace", "num", num)
    first, last = (as_inexact("geomspace", v) for v in promoted(start, stop))
    if first.dtype.is_complex:
        fail(DTypeError("geomspace: is not defined for complex bounds; use exp(linspace(...))"))
    side = sign(first)
    points = logspace(log10(first * side), log10(last * side), num, endpoint) * side
    index = iota((num,) + (1,) * (points.ndim - 1), 0)
    points = where(eq(index, 0), first, points)
    if endpoint and num > 1:
        points = where(eq(index, num - 1), last, points)
    if axis != 0:
        points = moveaxis(points, 0, one_axis("geomspace", axis, points.ndim))
    return points if dtype is None else convert(points, dtype)


def _band(rows: int, columns: int, k: Any) -> Value:
    """True on and below diagonal ``k``."""
    shape = (rows, columns)
    return ge(iota(shape, 0) + static_int("tri", "k", k), iota(shape, 1))


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Value:
    """Ones on diagonal ``k`` of an ``N`` by ``M`` matrix."""
    shape = shape_of("eye", (N, N if M is None else M))
    on = eq(iota(shape, 0) + static_int("eye", "k", k), iota(shape, 1))
    return convert(on, float64 if dtype is None else dtype)


def identity(n: Any, dtype: Any = None) -> Value:
    """The identity matrix of ``n`` rows."""
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Value:
    """Ones on and below diagonal ``k``."""
    rows, columns = shape_of("tri", (N, N if M is None else M))
    return convert(_band(rows, columns, k), float64 if dtype is None else dtype)


def _matrix(name: str, x: Any) -> Value:
    value = as_value(x)
    if value.ndim == 1:  # NumPy broadcasts a vector to a square matrix
        value = broadcast_to(value, (value.shape[0], value.shape[0]))
    if value.ndim < 2:
        fail(ShapeError(f"{name}: expected an array of two axes or more, got {value.type}"))
    return value


def tril(m: Any, k: Any = 0) -> Value:
    """The lower triangle: elements above diagonal ``k`` become zero."""
    x = _matrix("tril", m)
    return where(_band(x.shape[-2], x.shape[-1], k), x, constant(0, x.dtype))


def triu(m: Any, k: Any = 0) -> Value:
    """The upper triangle: elements below diagonal ``k`` become zero."""
    x = _matrix("triu", m)
    below = _band(x.shape[-2], x.shape[-1], static_int("triu", "k", k) - 1)
    return where(below, constant(0, x.dtype), x)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, ...]:
    """Row and column indices of the lower triangle of an ``n`` by ``m`` matrix."""
    return tuple(constant(i, int64) for i in np.tril_indices(n, k, m))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Value, ...]:
    """Row and column indices of the upper triangle of an ``n`` by ``m`` matrix."""
    return tuple(constant(i, int64) for i in np.triu_indices(n, k, m))


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Value, ...]:
    """:func:`tril_indices` of the shape of a matrix."""
    rows, columns = as_value(arr).shape
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Value, ...]:
    """:func:`triu_indices` of the shape of a matrix."""
    rows, columns = as_value(arr).shape
    return triu_indices(rows, k, columns)


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Value, ...]:
    """Coordinate arrays of the grid spanned by vectors ``xi``.

    ``indexing="xy"`` (Cartesian) puts the first vector along axis 1, ``"ij"`` (matrix) along 0.
    """
    if indexing not in ("xy", "ij"):
        fail(ValueError(f"meshgrid: expected indexing 'xy' or 'ij', got {indexing!r}"))
    vectors = [reshape(as_value(x), (-1,)) if as_value(x).ndim != 1 else as_value(x) for x in xi]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    shape = [0] * len(order)
    for vector, d in zip(vectors, order, strict=True):
        shape[d] = vector.shape[0]
    if sparse:
        return tuple(
            reshape(v, tuple(v.shape[0] if e == d else 1 for e in range(len(order))))
            for v, d in zip(vectors, order, strict=True)
        )
    return tuple(broadcast(v, tuple(shape), (d,)) for v, d in zip(vectors, order, strict=True))


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """The index of each element of a grid: one array an axis, stacked unless ``sparse``."""
    shape = shape_of("indices", dimensions)
    target = as_dtype(dtype)
    if sparse:
        return tuple(
            convert(iota(tuple(n if e == d else 1 for e in range(len(shape))), d), target)
            for d, n in enumerate(shape)
        )
    if not shape:
        return zeros((0,), target)
    from .joining import stack  # joining builds on this module

    return stack([convert(iota(shape, d), target) for d in range(len(shape))])


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Value:
    """The Vandermonde matrix: powers of ``x`` as columns, highest first unless ``increasing``."""
    value = as_value(x)
    if value.ndim != 1:
        fail(ShapeError(f"vander: expected a vector, got {value.type}"))
    count = value.shape[0] if N is None else static_int("vander", "N", N)
    from .calculus import cumulative_prod
    from .manipulation import flip

    columns = (value.shape[0], count)
    factors = broadcast(value, columns, (0,))
    factors = where(eq(iota(columns, 1), 0), constant(1, value.dtype), factors)
    powers = cumulative_prod(factors, axis=1, dtype=value.dtype)
    return powers if increasing else flip(powers, 1)


def _window(M: Any, *weights: float) -> Value:
    """Sum of cosines over ``M`` points (Harris, Proc. IEEE 66, 1978)."""
    from ..ops import cos

    count = static_int("window", "M", M)
    if count < 2:
        return ones((max(count, 0),))
    angle = iota((count,), 0, float64) * (2 * math.pi / (count - 1))
    total: Any = weights[0]
    for k, weight in enumerate(weights[1:], 1):
        total = total + weight * cos(k * angle)
    return total  # type: ignore[no-any-return]


def hanning(M: Any) -> Value:
    """The Hann window of ``M`` points."""
    return _window(M, 0.5, -0.5)


def hamming(M: Any) -> Value:
    """The Hamming window of ``M`` points."""
    return _window(M, 0.54, -0.46)


def blackman(M: Any) -> Value:
    """The Blackman window of ``M`` points."""
    return _window(M, 0.42, -0.5, 0.08)


def bartlett(M: Any) -> Value:
    """The triangular window of ``M`` points, zero at both ends."""
    count = static_int("bartlett", "M", M)
    if count < 2:
        return ones((max(count, 0),))
    place = iota((count,), 0, float64) * (2.0 / (count - 1))
    return where(ge(1.0, place), place, 2.0 - place)
