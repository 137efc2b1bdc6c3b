"""``exp``, ``exp2`` and ``expm1``.

Method (the argument reduction of W. J. Cody and W. Waite; see J.-M. Muller, *Elementary Functions*,
3rd ed., ch. 11): ``x = n ln2 + r`` with ``|r| <= ln2 / 2`` and ``n`` an integer. The subtraction of
``n ln2_high`` is exact, only that of ``n ln2_low`` rounds. Then ::

    e^r = 1 + r + r^2 (C(r^2) + r S(r^2))        C, S: minimax, see tests/ir/scalar/minimax.py

where ``1 + r`` is kept with its rounding error. ``C`` and ``S`` apart give ``cosh`` and ``sinh``
(``hyperbolic.py``). ``2^n`` is made by an integer addition to the exponent bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from ..dtypes import DType, float32, float64
from .formats import format_of
from .polynomial import fast_two_sum, horner
from .vocabulary import Handler, V

__all__ = [
    "COSH",
    "SINH",
    "Reduced",
    "exp",
    "exp2",
    "exp_sum",
    "expm1",
    "expm1_sum",
    "keep_tiny",
    "power_of_two",
    "reduce",
    "scale",
    "scale_far",
]

# cosh(r) = 1 + u C(u), sinh(r) = r + r u S(u), u = r^2 <= (ln2 / 2)^2
COSH = {
    float64: (
        *(0.5, 0.04166666666666671, 0.0013888888888863948),
        *(2.4801587363380574e-05, 2.755724183300539e-07, 2.0924424003672903e-09),
    ),
    float32: (0.5, 0.041666265577077866, 0.0013946231920272112),
}
SINH = {
    float64: (
        *(0.16666666666666677, 0.008333333333321624, 0.00019841269886142663),
        *(2.755724419379553e-06, 2.5109042024589803e-08),
    ),
    float32: (0.1666666716337204, 0.008333289064466953, 0.00019904962391592562),
}
# usual: within it the result is normal; over, under: beyond them it is infinite, zero
EXP_RANGE = {float64: (708.0, 709.8, -745.2), float32: (87.0, 88.8, -104.0)}
EXP2_RANGE = {float64: (1021.0, 1024.0, -1075.0), float32: (125.0, 128.0, -150.0)}
# below the first, expm1 is -1 + less than half a last place; above the second infinite
EXPM1_RANGE = {float64: (-40.0, 709.9), float32: (-20.0, 88.9)}


@dataclass(frozen=True, slots=True)
class Reduced(Generic[V]):
    """``x = n ln2 + r + r_low``; ``n`` stands in the lowest bits of ``shifted``."""

    shifted: V
    n: V
    r: V
    r_low: V


def reduce(h: Handler[V], x: V) -> Reduced[V]:
    """Split off the multiple of ``ln 2``; ``|x|`` below ``2**fraction / 2`` or the rest is lost."""
    f, dtype = format_of(h.dtype(x)), h.dtype(x)
    magic = h.const(f.magic, dtype)
    shifted = h.fma(x, h.const(f.log2_e[0], dtype), magic)
    n = h.sub(shifted, magic)
    exact = h.fma(n, h.const(-f.ln2_high, dtype), x)
    low = h.const(-f.ln2_low, dtype)
    r = h.fma(n, low, exact)
    return Reduced(shifted, n, r, h.fma(n, low, h.sub(exact, r)))


def power_of_two(h: Handler[V], shifted: V, exponent: int, dtype: DType) -> V:
    """``2**(n + exponent)`` for ``n`` in the low bits of ``shifted``; must be a normal number."""
    f = format_of(dtype)
    moved = h.shl(h.bitcast(shifted, f.integer), h.const(f.fraction, f.integer))
    bits = h.add(moved, h.const((f.bias + exponent) << f.fraction, f.integer))
    return h.bitcast(bits, dtype)


def scale(h: Handler[V], y: V, shifted: V) -> V:
    """``y * 2**n`` for a normal result."""
    dtype = h.dtype(y)
    f = format_of(dtype)
    moved = h.shl(h.bitcast(shifted, f.integer), h.const(f.fraction, f.integer))
    return h.bitcast(h.add(h.bitcast(y, f.integer), moved), dtype)


def scale_far(h: Handler[V], y: V, shifted: V) -> V:
    """``y * 2**n`` in two steps, the last of which may overflow or round to a subnormal."""
    dtype = h.dtype(y)
    f = format_of(dtype)
    n = h.sub(h.bitcast(shifted, f.integer), h.bitcast(h.const(f.magic, dtype), f.integer))
    half = h.shr(n, h.const(1, f.integer))
    for part in (half, h.sub(n, half)):
        biased = h.add(part, h.const(f.bias, f.integer))
        y = h.mul(y, h.bitcast(h.shl(biased, h.const(f.fraction, f.integer)), dtype))
    return y


def exp_sum(h: Handler[V], r: V, extra: V | None) -> V:
    """``e**(r + extra)`` for ``|r| <= ln2 / 2`` and an ``extra`` below its last place."""
    dtype = h.dtype(r)
    u = h.mul(r, r)
    rest = h.fma(r, horner(h, u, SINH[dtype]), horner(h, u, COSH[dtype]))
    high, low = fast_two_sum(h, h.const(1.0, dtype), r)
    if extra is not None:
        low = h.add(low, extra)
    return h.add(high, h.fma(u, rest, low))


def _finish(h: Handler[V], x: V, y: V, shifted: V, limits: tuple[float, float, float]) -> V:
    dtype = h.dtype(x)
    usual, over, under = limits
    far = h.not_(h.le(h.abs(x), h.const(usual, dtype)))  # true for NaN

    def rare() -> V:
        scaled = scale_far(h, y, shifted)
        infinite = h.ge(x, h.const(over, dtype))
        scaled = h.select(infinite, h.const(float("inf"), dtype), scaled)
        zero = h.le(x, h.const(under, dtype))
        scaled = h.select(zero, h.const(0.0, dtype), scaled)
        return h.select(h.ne(x, x), x, scaled)

    return h.rarely(far, scale(h, y, shifted), rare)


def exp(h: Handler[V], x: V) -> V:
    """``e**x``. ``exp(-inf) = 0``, ``exp(inf) = inf``, subnormal results are right."""
    dtype = h.dtype(x)
    f = format_of(dtype)
    magic = h.const(f.magic, dtype)
    shifted = h.fma(x, h.const(f.log2_e[0], dtype), magic)
    n = h.sub(shifted, magic)
    r = h.fma(n, h.const(-f.ln2_high, dtype), x)
    r = h.fma(n, h.const(-f.ln2_low, dtype), r)
    return _finish(h, x, exp_sum(h, r, None), shifted, EXP_RANGE[dtype])


def exp2(h: Handler[V], x: V) -> V:
    """``2**x``; exact for integers. ``x - rint(x)`` is exact and is multiplied by ``ln2``."""
    dtype = h.dtype(x)
    f = format_of(dtype)
    magic = h.const(f.magic, dtype)
    shifted = h.add(x, magic)
    d = h.sub(x, h.sub(shifted, magic))
    ln2, ln2_low = (h.const(c, dtype) for c in f.ln2)
    r = h.mul(d, ln2)
    extra = h.fma(d, ln2_low, h.fma(d, ln2, h.neg(r)))
    return _finish(h, x, exp_sum(h, r, extra), shifted, EXP2_RANGE[dtype])


def expm1_sum(h: Handler[V], x: V, halvings: int) -> tuple[V, V]:
    """``(e**x - 1) / 2**halvings`` as an unevaluated sum, ``-40 <= x <= 709.9`` (float64).

    With ``s = 2**n``: ``e**x - 1 = (s - 1) + s r + s r^2 / 2 + s (r_low + u (r S + u C'))`` where
    ``C = 1/2 + u C'``. The first three terms are added with their rounding errors; each is smaller
    than the sum before it.
    """
    dtype = h.dtype(x)
    p = reduce(h, x)
    s = power_of_two(h, p.shifted, -halvings, dtype)
    one = h.const(0.5**halvings, dtype)
    base = h.sub(s, one)
    base_low = h.sub(h.sub(s, base), one)  # e**x near 2**53 (float64): s - 1 is not exact
    u = h.mul(p.r, p.r)
    rest = h.fma(u, horner(h, u, COSH[dtype][1:]), h.mul(p.r, horner(h, u, SINH[dtype])))
    rest = h.fma(u, rest, p.r_low)
    half = h.mul(p.r, h.const(0.5, dtype))
    square = h.mul(p.r, half)
    rest = h.add(rest, h.fma(p.r, half, h.neg(square)))
    high = h.fma(s, p.r, base)
    low = h.add(h.fma(s, p.r, h.sub(base, high)), base_low)
    total = h.fma(s, square, high)
    low = h.add(low, h.fma(s, square, h.sub(high, total)))
    return total, h.fma(s, rest, low)


def keep_tiny(h: Handler[V], x: V, result: V) -> V:
    """``x`` where ``f(x) = x + O(x^2)`` rounds to it: halves of it might underflow."""
    tiny = h.const(2.0 ** -(format_of(h.dtype(x)).fraction + 2), h.dtype(x))
    return h.select(h.lt(h.abs(x), tiny), x, result)


def expm1(h: Handler[V], x: V) -> V:
    """``e**x - 1`` without cancellation; keeps the sign of zero."""
    dtype = h.dtype(x)
    lowest, highest = (h.const(c, dtype) for c in EXPM1_RANGE[dtype])
    clipped = h.select(h.lt(x, lowest), lowest, x)
    clipped = h.select(h.gt(clipped, highest), highest, clipped)
    high, low = expm1_sum(h, clipped, 1)  # halved: e**709.7 would need 2**1024
    half = h.add(high, low)
    return keep_tiny(h, x, h.copysign(h.add(half, half), x))
