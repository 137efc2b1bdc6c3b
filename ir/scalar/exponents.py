"""Mantissa and exponent of floats by their bits: frexp and ldexp."""

from __future__ import annotations

from typing import NamedTuple

from ..dtypes import DType, float32, float64, int32, int64
from .vocabulary import Handler, V

__all__ = ["frexp_exponent", "frexp_mantissa", "ldexp"]


class _Layout(NamedTuple):
    """Where the bits are."""

    integer: DType
    mantissa: int  # explicit bits
    bias: int

    @property
    def mask(self) -> int:
        """All ones in the place of the exponent."""
        return 2 * self.bias + 1


_LAYOUT = {float64: _Layout(int64, 52, 1023), float32: _Layout(int32, 23, 127)}
_LIFT = 64  # subnormal numbers times 2**64 are normal


def _power(h: Handler[V], n: V, layout: _Layout, dtype: DType) -> V:
    """``2**n`` for a normal result."""
    biased = h.add(n, h.const(layout.bias, layout.integer))
    return h.bitcast(h.shl(biased, h.const(layout.mantissa, layout.integer)), dtype)


def _split(h: Handler[V], x: V) -> tuple[V, V, V]:
    """Mantissa in [0.5, 1), exponent, and whether ``x`` has them (not zero, infinite or NaN)."""
    dtype = h.dtype(x)
    layout = _LAYOUT[dtype]

    def const(value: int) -> V:
        return h.const(value, layout.integer)

    size = h.abs(x)
    proper = h.and_(h.gt(size, h.const(0.0, dtype)), h.lt(size, h.const(float("inf"), dtype)))
    subnormal = h.lt(size, h.const(2.0 ** (1 - layout.bias), dtype))
    lifted = h.select(subnormal, h.mul(x, h.const(2.0**_LIFT, dtype)), x)
    bits = h.bitcast(lifted, layout.integer)
    place = const(layout.mantissa)
    exponent = h.and_(h.shr(bits, place), const(layout.mask))
    exponent = h.sub(
        exponent, h.select(subnormal, const(layout.bias - 1 + _LIFT), const(layout.bias - 1))
    )
    rest = h.and_(bits, h.not_(const(layout.mask << layout.mantissa)))
    half = h.or_(rest, const((layout.bias - 1) << layout.mantissa))
    return h.bitcast(half, dtype), exponent, proper


def frexp_mantissa(h: Handler[V], x: V) -> V:
    """``m`` of ``x = m 2**e`` with ``0.5 <= |m| < 1``; zeros, infinities and NaN are their own."""
    mantissa, _, proper = _split(h, x)
    return h.select(proper, mantissa, x)


def frexp_exponent(h: Handler[V], x: V) -> V:
    """``e`` of ``x = m 2**e`` (int32); 0 for zeros, infinities and NaN."""
    _, exponent, proper = _split(h, x)
    found = h.convert(exponent, int32)
    return h.select(proper, found, h.const(0, int32))


def ldexp(h: Handler[V], x: V, n: V) -> V:
    """``x 2**n``, rounded once; ``n`` is int64.

    Beyond the exponents of one normal factor there are two more steps. Downward a step keeps the
    bits of a mantissa in reserve: if it rounds, the result is below half the smallest number.
    """
    dtype = h.dtype(x)
    layout = _LAYOUT[dtype]
    top, bottom = layout.bias, 1 - layout.bias
    down = bottom + layout.mantissa + 1
    limit = 3 * top
    n = h.select(h.gt(n, h.const(limit, int64)), h.const(limit, int64), n)
    n = h.select(h.lt(n, h.const(-limit, int64)), h.const(-limit, int64), n)
    n = h.convert(n, layout.integer)

    def const(value: int) -> V:
        return h.const(value, layout.integer)

    for _ in range(2):
        high, low = h.gt(n, const(top)), h.lt(n, const(bottom))
        one = h.const(1.0, dtype)
        factor = h.select(
            high, h.const(2.0**top, dtype), h.select(low, h.const(2.0**down, dtype), one)
        )
        x = h.mul(x, factor)
        n = h.select(high, h.sub(n, const(top)), h.select(low, h.sub(n, const(down)), n))
    n = h.select(h.gt(n, const(top)), const(top), n)
    n = h.select(h.lt(n, const(bottom)), const(bottom), n)
    return h.mul(x, _power(h, n, layout, dtype))
