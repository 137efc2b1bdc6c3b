"""Scalar programs evaluated with NumPy, bit for bit what the machine code gives.

NumPy has no fused multiply-add; :func:`fma64` and :func:`fma32` round ``x * y + z`` once, by
error-free transformations and rounding to odd (S. Boldo, G. Melquiond, "Emulation of FMA and
correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 57(4),
2008). Operands are scaled to mantissas first, so that no step overflows or underflows; results in
the subnormal range are computed with integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ...dtypes import DType, as_dtype

__all__ = ["NumpyHandler", "fma32", "fma64", "run"]

Array = Any  # an array or a NumPy scalar of one of our dtypes
_quiet = np.errstate(all="ignore")


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """Rounded sum and its exact error (Knuth)."""
    total = x + y
    shadow = total - x
    return total, (x - (total - shadow)) + (y - shadow)


def _split(x: Array) -> tuple[Array, Array]:
    """Two 26-bit halves (Dekker, Veltkamp)."""
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


def _two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """Rounded product and its exact error."""
    product = x * y
    (xh, xl), (yh, yl) = _split(x), _split(y)
    return product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl


def _add_to_odd(x: Array, y: Array) -> Array:
    """``x + y`` rounded to odd: an inexact result has an odd last bit."""
    total, error = _two_sum(x, y)
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    outward = (error > 0) == (total > 0)
    return (bits + np.where(inexact, np.where(outward, 1, -1), 0)).view(np.float64)


def _round_fraction(value: Fraction) -> float:
    """Nearest float64; only called for results below the smallest normal number or near it."""
    units = value * (1 << 1074)
    if abs(units) >= 1 << 53:
        return float(value)  # normal: Fraction's own division rounds to nearest even
    return round(units) * 5e-324


@_quiet
def fma64(x: Array, y: Array, z: Array) -> Array:
    """``x * y + z`` on float64, rounded once."""
    x, y, z = np.broadcast_arrays(*[np.asarray(v, np.float64) for v in (x, y, z)])
    shape = x.shape
    x, y, z = x.reshape(-1), y.reshape(-1), z.reshape(-1)
    product = x * y
    result = product + z  # right when an operand is zero, infinite or NaN
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    result = np.where(np.isinf(z) & np.isfinite(x) & np.isfinite(y), z, result)
    where = np.flatnonzero(finite & (x != 0) & (y != 0))
    if where.size:
        x, y, z = x[where], y[where], z[where]
        (mx, ex), (my, ey), (mz, ez) = np.frexp(x), np.frexp(y), np.frexp(z)
        exponent = ex + ey
        # Beyond 130 binades apart only the sign of the smaller summand matters.
        distance = ez - exponent
        near = np.where(z == 0, 0, np.clip(distance, -130, 130))
        high, low = _two_product(mx, my)
        sum_high, sum_low = _two_sum(np.ldexp(mz, near), low)
        top, rest = _two_sum(high, sum_high)
        value = top + _add_to_odd(sum_low, rest)
        scale = np.where(z == 0, exponent, exponent + distance - near)
        scale = np.where(distance < near, exponent, scale)
        exact = np.ldexp(value, scale)
        for i in np.flatnonzero((np.abs(exact) < 2.0**-1020) & (value != 0)):
            total = Fraction(float(x[i])) * Fraction(float(y[i])) + Fraction(float(z[i]))
            exact[i] = np.copysign(_round_fraction(abs(total)), value[i])
        result[where] = exact
    return result.reshape(shape)[()]


@_quiet
def fma32(x: Array, y: Array, z: Array) -> Array:
    """``x * y + z`` on float32, rounded once: the product is exact in float64."""
    wide_x, wide_y, wide_z = (np.asarray(v, np.float32).astype(np.float64) for v in (x, y, z))
    product = wide_x * wide_y
    odd = _add_to_odd(np.asarray(product), np.asarray(wide_z))
    # an exact sum keeps the sign of zero that IEEE addition gives
    total = product + wide_z
    return np.where(total == 0, total, odd).astype(np.float32)[()]


class NumpyHandler:
    """The vocabulary over NumPy arrays and scalars."""

    __slots__ = ()

    def dtype(self, x: Array) -> DType:
        return as_dtype(x.dtype)

    def const(self, value: bool | int | float, dtype: DType) -> Array:
        return dtype.numpy.type(value)

    @_quiet
    def add(self, x: Array, y: Array) -> Array:
        return x + y

    @_quiet
    def sub(self, x: Array, y: Array) -> Array:
        return x - y

    @_quiet
    def mul(self, x: Array, y: Array) -> Array:
        return x * y

    @_quiet
    def div(self, x: Array, y: Array) -> Array:
        return x / y if x.dtype.kind == "f" else self.idiv(x, y)

    @_quiet
    def neg(self, x: Array) -> Array:
        return -x if x.dtype.kind != "u" else np.subtract(x.dtype.type(0), x)

    @_quiet
    def fma(self, x: Array, y: Array, z: Array) -> Array:
        return fma64(x, y, z) if x.dtype.itemsize == 8 else fma32(x, y, z)

    @_quiet
    def sqrt(self, x: Array) -> Array:
        return np.sqrt(x)

    @_quiet
    def abs(self, x: Array) -> Array:
        return np.abs(x)

    @_quiet
    def copysign(self, x: Array, y: Array) -> Array:
        return np.copysign(x, y)

    @_quiet
    def floor(self, x: Array) -> Array:
        return np.floor(x)

    @_quiet
    def ceil(self, x: Array) -> Array:
        return np.ceil(x)

    @_quiet
    def trunc(self, x: Array) -> Array:
        return np.trunc(x)

    @_quiet
    def rint(self, x: Array) -> Array:
        return np.rint(x)

    @_quiet
    def idiv(self, x: Array, y: Array) -> Array:
        one, minus = y.dtype.type(1), y == -1 if y.dtype.kind == "i" else y != y
        divisor = np.where((y == 0) | minus, one, y)
        # NumPy's quotient is rounded down; x - fmod(x, d) is a multiple of d
        quotient = (x - np.fmod(x, divisor)) // divisor
        return np.where(y == 0, y.dtype.type(0), np.where(minus, self.neg(x), quotient))[()]

    @_quiet
    def irem(self, x: Array, y: Array) -> Array:
        minus = y == -1 if y.dtype.kind == "i" else y != y
        return np.fmod(x, np.where((y == 0) | minus, y.dtype.type(1), y))

    @_quiet
    def lt(self, x: Array, y: Array) -> Array:
        return x < y

    @_quiet
    def le(self, x: Array, y: Array) -> Array:
        return x <= y

    @_quiet
    def gt(self, x: Array, y: Array) -> Array:
        return x > y

    @_quiet
    def ge(self, x: Array, y: Array) -> Array:
        return x >= y

    @_quiet
    def eq(self, x: Array, y: Array) -> Array:
        return x == y

    @_quiet
    def ne(self, x: Array, y: Array) -> Array:
        return x != y

    def and_(self, x: Array, y: Array) -> Array:
        return x & y

    def or_(self, x: Array, y: Array) -> Array:
        return x | y

    def xor(self, x: Array, y: Array) -> Array:
        return x ^ y

    def not_(self, x: Array) -> Array:
        return ~x

    def shl(self, x: Array, y: Array) -> Array:
        return np.left_shift(x, y)

    def shr(self, x: Array, y: Array) -> Array:
        return np.right_shift(x, y)

    def select(self, condition: Array, x: Array, y: Array) -> Array:
        result: Array = np.where(condition, x, y)
        return result[()]

    def bitcast(self, x: Array, dtype: DType) -> Array:
        bits: Array = np.asarray(x)
        result: Array = bits.view(dtype.numpy)
        return result[()]

    @_quiet
    def convert(self, x: Array, dtype: DType) -> Array:
        target = dtype.numpy
        if not (dtype.is_integer and x.dtype.kind == "f"):
            plain: Array = np.asarray(x).astype(target)
            return plain[()]
        info, whole = np.iinfo(target), np.trunc(np.asarray(x, np.float64))
        # 2**63 is a float, 2**63 - 1 is not: compare with the first value above the range
        high, low = whole >= float(info.max) + (dtype.bits < 64), whole < float(info.min)
        inside = np.where(high | low | np.isnan(whole), 0.0, whole).astype(target)
        bounded: Array = np.where(high, info.max, np.where(low, info.min, inside))
        return bounded.astype(target)[()]

    def table(self, entries: Sequence[float], index: Array, dtype: DType) -> Array:
        return np.asarray(entries, dtype.numpy)[index]

    def rarely(self, condition: Array, usual: Array, rare: Callable[[], Array]) -> Array:
        if not np.any(condition):
            return usual
        return self.select(condition, rare(), usual)


def run(program: Callable[..., Any], *operands: Any) -> Array:
    """Evaluate a program on NumPy operands (Python scalars become float64 or int64)."""
    return program(NumpyHandler(), *[np.asarray(x)[()] for x in operands])
