"""``sinh``, ``cosh``, ``tanh`` and their inverses.

With ``x = n ln2 + r`` as in ``exponential.py``, ``cosh r = 1 + c``, ``sinh r = r + s`` and
``a = 2^(n-1) + 2^(-n-1)``, ``b = 2^(n-1) - 2^(-n-1)`` the addition theorems give ::

    sinh(x) = b + a r + (b c + a s)        cosh(x) = a + b r + (a c + b s)

whose leading two terms are added with their rounding error. For ``tanh``, ``x = n ln2/2 + r`` with
``|r| <= ln2 / 4`` (a bit more for a large ``n``, where it matters less), and ``R = r coth r``, an
even function without poles up to ``pi``, gives ::

    tanh(x) = (a R + b r) / (b R + a r)        a = 1 - 2^-n, b = 1 + 2^-n

The inverse functions are ``log1p`` of an unevaluated sum (``logarithm.py``), so nothing cancels::

    asinh(x) = log1p(x + (sqrt(x^2 + 1) - 1))      acosh(x) = log1p((x - 1) + sqrt(x^2 - 1))
    atanh(x) = log1p(2 x / (1 - x)) / 2
"""

from __future__ import annotations

from ..dtypes import float32, float64
from .exponential import COSH, SINH, keep_tiny, power_of_two, reduce
from .formats import format_of
from .logarithm import log1p_sum
from .polynomial import fast_two_sum, horner, two_sum
from .vocabulary import Handler, V

__all__ = ["acosh", "asinh", "atanh", "cosh", "sinh", "tanh"]

# beyond these sinh and cosh are infinite, tanh rounds to 1
_LARGEST = {float64: 710.5, float32: 89.5}
_FLAT = {float64: 19.0625, float32: 9.015625}
# a bit less than 2 / log(2), lest 2^-n get lost beside 1 before tanh does
_STEPS = {float64: 2.859, float32: 2.828}
# (r coth r - 1) / r^2 in r^2 for |r| <= log(2) / 4; errors of r coth r 2^-60.0, 2^-28.7
_COTH = {
    float64: (
        *(0.33333333333333204, -0.02222222222161093, 0.0021164020227014677),
        *(-0.0002116339414281823, 2.1187158218371024e-05),
    ),
    float32: (0.33333250880241394, -0.022133702412247658),
}


def _clip(h: Handler[V], x: V, limit: float) -> V:
    """``min(|x|, limit)``, NaN for NaN."""
    size, most = h.abs(x), h.const(limit, h.dtype(x))
    return h.select(h.gt(size, most), most, size)


def _sum_and_difference(h: Handler[V], x: V, *, odd: bool) -> V:
    """``sinh |x|`` if ``odd`` else ``cosh x``."""
    dtype = h.dtype(x)
    f = format_of(dtype)
    p = reduce(h, _clip(h, x, _LARGEST[dtype]))
    # everything is half as large: e**710 is above the largest float, sinh(710) is not
    grown = power_of_two(h, p.shifted, -2, dtype)
    moved = h.shl(h.bitcast(p.shifted, f.integer), h.const(f.fraction, f.integer))
    shrunk = h.bitcast(h.sub(h.const((f.bias - 2) << f.fraction, f.integer), moved), dtype)
    negligible = h.gt(p.n, h.const(float(f.fraction), dtype))
    shrunk = h.select(negligible, h.const(0.0, dtype), shrunk)
    a, a_low = fast_two_sum(h, grown, shrunk)
    b, b_low = fast_two_sum(h, grown, h.neg(shrunk))
    if odd:
        a, a_low, b, b_low = b, b_low, a, a_low
    u = h.mul(p.r, p.r)
    c = h.mul(u, horner(h, u, COSH[dtype]))
    s = h.fma(h.mul(u, p.r), horner(h, u, SINH[dtype]), p.r_low)
    high = h.fma(b, p.r, a)
    low = h.add(h.fma(b, p.r, h.sub(a, high)), h.fma(b_low, p.r, a_low))
    half = h.add(high, h.fma(a, c, h.fma(b, s, low)))
    return h.add(half, half)


def sinh(h: Handler[V], x: V) -> V:
    """Hyperbolic sine; keeps the sign of zero, infinite only where the result is."""
    return keep_tiny(h, x, h.copysign(_sum_and_difference(h, x, odd=True), x))


def cosh(h: Handler[V], x: V) -> V:
    """Hyperbolic cosine."""
    return _sum_and_difference(h, x, odd=False)


def tanh(h: Handler[V], x: V) -> V:
    """Hyperbolic tangent, by one division and a correction of its quotient."""
    dtype = h.dtype(x)
    f = format_of(dtype)
    one, magic = h.const(1.0, dtype), h.const(f.magic + f.bias, dtype)
    size, limit = h.abs(x), h.const(_FLAT[dtype], dtype)
    size = h.select(h.lt(limit, size), limit, size)
    # bias - n in the low bits, the exponent of 2^-n
    shifted = h.fma(size, h.const(-_STEPS[dtype], dtype), magic)
    power = h.bitcast(h.shl(h.bitcast(shifted, f.integer), h.const(f.fraction, f.integer)), dtype)
    # ln2 / 2 and, for n > 0, x are multiples of half a last place of 1/4, hence r has no error
    minus_n = h.sub(shifted, magic)
    r = h.fma(minus_n, h.const(0.5 * f.ln2[0], dtype), size)
    r_low = h.mul(minus_n, h.const(0.5 * f.ln2[1], dtype))
    # where b rounds, as to 1, a keeps its distance from it: that is what counts for a large x
    b = h.add(one, power)
    a = h.fma(power, h.const(-2.0, dtype), b)
    square = h.mul(r, r)
    rho = h.mul(square, horner(h, square, _COTH[dtype]))  # R - 1
    inverse = h.div(one, h.fma(b, rho, h.fma(a, r, b)))
    # half the digits of the quotient: the products with a and b are exact while they are short
    upper = h.const(-1 << ((f.fraction + 2) // 2), f.integer)
    quotient = h.mul(h.fma(a, rho, h.fma(b, r, a)), inverse)
    quotient = h.bitcast(h.and_(h.bitcast(quotient, f.integer), upper), dtype)
    minus = h.neg(quotient)
    by_one, by_r = h.fma(minus, b, a), h.fma(minus, a, b)
    # the remainder by_one R + by_r (r + r_low)
    rest = h.fma(r_low, by_r, h.fma(rho, by_one, h.fma(r, by_r, by_one)))
    return h.copysign(h.fma(rest, inverse, quotient), x)


def _square_root(h: Handler[V], x: V, one: V) -> tuple[V, V]:
    """``sqrt(x^2 + one)`` as an unevaluated sum, ``one`` being 1 or -1."""
    dtype = h.dtype(x)
    square = h.mul(x, x)
    low = h.fma(x, x, h.neg(square))
    radicand, error = two_sum(h, square, one)
    low = h.add(low, error)
    root = h.sqrt(radicand)
    rest = h.add(h.fma(h.neg(root), root, radicand), low)
    rest = h.div(rest, h.add(root, root))
    zero = h.const(0.0, dtype)
    return root, h.select(h.eq(root, zero), zero, rest)


def _log_of_large(h: Handler[V], size: V, high: V, low: V) -> V:
    """``log1p(high + low)``, or ``log(2 size)`` where squares might overflow and 1 is nothing."""
    dtype = h.dtype(size)
    f = format_of(dtype)
    large = h.ge(size, h.const(2.0 ** (f.fraction + 4), dtype))
    high, low = h.select(large, size, high), h.select(large, h.const(0.0, dtype), low)
    once = h.select(large, h.const(1, f.integer), h.const(0, f.integer))
    high, low, _ = log1p_sum(h, high, low, once)
    return h.add(high, low)


def asinh(h: Handler[V], x: V) -> V:
    """Inverse hyperbolic sine; keeps the sign of zero."""
    dtype = h.dtype(x)
    size = h.abs(x)
    root, root_low = _square_root(h, size, h.const(1.0, dtype))
    above, above_low = fast_two_sum(h, root, h.const(-1.0, dtype))
    high, low = fast_two_sum(h, size, above)
    high, low = fast_two_sum(h, high, h.add(low, h.add(above_low, root_low)))
    result = h.copysign(_log_of_large(h, size, high, low), x)
    endless = h.not_(h.lt(size, h.const(float("inf"), dtype)))
    return h.rarely(endless, result, lambda: x)


def acosh(h: Handler[V], x: V) -> V:
    """Inverse hyperbolic cosine; NaN below 1."""
    dtype = h.dtype(x)
    minus_one, infinity = h.const(-1.0, dtype), h.const(float("inf"), dtype)
    above, above_low = fast_two_sum(h, x, minus_one)
    root, root_low = _square_root(h, x, minus_one)
    high, low = fast_two_sum(h, root, above)
    high, low = fast_two_sum(h, high, h.add(low, h.add(above_low, root_low)))
    result = _log_of_large(h, x, high, low)
    inside = h.and_(h.ge(x, h.const(1.0, dtype)), h.lt(x, infinity))
    outside = h.not_(inside)
    nan = h.const(float("nan"), dtype)
    return h.rarely(outside, result, lambda: h.select(h.eq(x, infinity), infinity, nan))


def atanh(h: Handler[V], x: V) -> V:
    """Inverse hyperbolic tangent; infinite at 1 and -1, NaN beyond."""
    dtype = h.dtype(x)
    one, size = h.const(1.0, dtype), h.abs(x)
    bottom, bottom_low = fast_two_sum(h, one, h.neg(size))
    top = h.add(size, size)
    inverse = h.div(one, bottom)
    quotient = h.mul(top, inverse)
    minus = h.neg(quotient)
    rest = h.fma(minus, bottom_low, h.fma(minus, bottom, top))
    high, low, _ = log1p_sum(h, quotient, h.mul(rest, inverse))
    result = h.copysign(h.mul(h.add(high, low), h.const(0.5, dtype)), x)
    infinity, nan = h.const(float("inf"), dtype), h.const(float("nan"), dtype)

    def rare() -> V:
        return h.select(h.eq(size, one), h.copysign(infinity, x), nan)

    return h.rarely(h.not_(h.lt(size, one)), result, rare)
