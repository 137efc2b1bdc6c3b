"""``pow(x, y)`` with the special values of C99 (ISO/IEC 9899:1999, F.9.4.4).

float64: ``x = 2^k m`` and ``m c = 1 + z`` with ``c`` near ``1 / m`` from a table of 16, so that
``|z| <= 1/32`` (P. Tang, "Table-driven implementation of the logarithm function in IEEE
floating-point arithmetic", ACM TOMS 16(4), 1990). Then ``log x`` is
``(k ln2 - log c) + z - z^2 / 2 + z^3 P(z)``, kept as an unevaluated sum: every term but the last
with its rounding error, which leaves a relative error of ``2**-64``. So ``E = y log x`` is an
unevaluated sum too, with an absolute error below ``2**-54``, and the exponential of it loses
little more than its last rounding.

float32: the same in plain float64, with short polynomials and no table.
"""

from __future__ import annotations

from ..dtypes import DType, float32, float64
from .exponential import exp_sum, power_of_two, reduce, scale, scale_far
from .formats import format_of
from .logarithm import not_positive_normal, split
from .polynomial import even_odd, fast_two_sum
from .vocabulary import Handler, V

__all__ = ["pow"]

# Interval i holds the m whose bits are at least FIRST + i * 2**48; the tenth surrounds 1.
_FIRST = 0x3FE6800000000000
_INVERSE = (
    *(1.390625, 1.33203125, 1.28125, 1.23046875, 1.18359375, 1.14453125, 1.1015625, 1.06640625),
    *(1.03125, 1.0, 0.94140625, 0.890625, 0.84375, 0.80078125, 0.76171875, 0.7265625),
)
# -log(_INVERSE[i]): multiples of 2**-42, so that k ln2_high + it is exact, and the rest
_LOG_HIGH = tuple(
    float.fromhex(text)
    for text in (
        *("-0x1.51aad872ep-2", "-0x1.2596010df7p-2", "-0x1.fb9186d5e4p-3", "-0x1.a8becfc882p-3"),
        *("-0x1.59338d9982p-3", "-0x1.1478584674p-3", "-0x1.8c345d6318p-4", "-0x1.075983599p-4"),
        *("-0x1.f829b0e78p-6", "0x0p+0", "0x1.eea31c0068p-5", "0x1.da72763844p-4"),
        *("0x1.5bf406b544p-3", "0x1.c6ffbc6fp-3", "0x1.16b5ccbadp-2", "0x1.4718dc271cp-2"),
    )
)
_LOG_LOW = tuple(
    float.fromhex(text)
    for text in (
        *("0x1.f4bd8db0a7cc1p-44", "-0x1.8e7bc224ea3e3p-44", "0x1.d572aab993c87p-47"),
        *("-0x1.e3185cf21b9cfp-44", "-0x1.0ba68b7555d4ap-48", "-0x1.563451027c750p-46"),
        *("-0x1.b20f5acb42a66p-44", "0x1.b8ecfe4b59987p-44", "-0x1.980267c7e09e4p-45"),
        *("0x0p+0", "0x1.c3dd83606d891p-44", "0x1.a89401fa71733p-46"),
        *("-0x1.27023eb68981cp-46", "0x1.ee138d3a69d43p-44", "-0x1.23299042d74bfp-44"),
        "0x1.06c18fb4c14c5p-44",
    )
)
# (log(1 + z) - z + z^2 / 2) / z^3 for |z| <= 1/32
_LOG = (
    *(0.3333333333333333, -0.2499999999999918, 0.1999999999999819, -0.16666666673479805),
    *(0.14285714295450583, -0.12499981227389523, 0.11111089438678909, -0.1002109305569053),
    0.09112245351541282,
)
# float32: the same for sqrt(1/2) <= 1 + z < sqrt(2) within 2**-35; (e^r - 1 - r) / r^2
_SHORT_LOG = (
    *(0.3333333389155457, -0.24999997079757366, 0.1999991132691545, -0.16666854895507924),
    *(0.14290172752805366, -0.12498291430289298, 0.11014807814867185, -0.09924483771081405),
    *(0.0998837033509982, -0.09863357010076214, 0.05387282560137846),
)
_SHORT_EXP = (
    *(0.5000000077886461, 0.1666666686144535, 0.04166626995655673),
    *(0.008333264218833535, 0.0013946073372643605, 0.00019918446840767531),
)


def _with_special(h: Handler[V], x: V, y: V, special: V, usual: V, far: V) -> V:
    """``usual``, or where ``special`` the sign and the limits around ``far = |x|**y``."""
    dtype = h.dtype(x)

    def rare() -> V:
        zero, one = h.const(0.0, dtype), h.const(1.0, dtype)
        infinity, nan = h.const(float("inf"), dtype), h.const(float("nan"), dtype)
        size = h.abs(x)
        at_end = h.or_(h.eq(size, zero), h.eq(size, infinity))
        limit = h.or_(at_end, h.eq(h.abs(y), infinity))
        shrinks = h.xor(h.gt(size, one), h.gt(y, zero))
        result = h.select(limit, h.select(shrinks, zero, infinity), far)
        result = h.select(h.eq(size, one), one, result)
        # a negative base: odd integers change the sign, what is no integer has no power
        negative = h.eq(h.copysign(one, x), h.const(-1.0, dtype))
        half = h.mul(y, h.const(0.5, dtype))
        whole = h.eq(h.trunc(y), y)
        odd = h.and_(whole, h.ne(h.trunc(half), half))
        result = h.select(h.and_(negative, odd), h.neg(result), result)
        undefined = h.and_(h.and_(negative, h.not_(whole)), h.not_(at_end))
        undefined = h.or_(undefined, h.or_(h.ne(x, x), h.ne(y, y)))
        result = h.select(undefined, nan, result)
        return h.select(h.or_(h.eq(x, one), h.eq(y, zero)), one, result)

    return h.rarely(special, usual, rare)


def _log_sum(h: Handler[V], bits: V) -> tuple[V, V]:
    """Logarithm of a positive float64 given by its bits, as an unevaluated sum."""
    f = format_of(float64)
    above = h.sub(bits, h.const(_FIRST, f.integer))
    k = h.shr(above, h.const(52, f.integer))
    m = h.bitcast(h.sub(bits, h.shl(k, h.const(52, f.integer))), float64)
    place = h.and_(h.shr(above, h.const(48, f.integer)), h.const(15, f.integer))
    inverse = h.table(_INVERSE, place, float64)
    exponent = h.convert(k, float64)
    product = h.mul(m, inverse)
    z_low = h.fma(m, inverse, h.neg(product))
    z, z_low = fast_two_sum(h, h.sub(product, h.const(1.0, float64)), z_low)
    # k ln2_high - log c exactly, + z, - z^2 / 2, each addition with its error
    start = h.fma(exponent, h.const(f.ln2_high, float64), h.table(_LOG_HIGH, place, float64))
    low = h.fma(exponent, h.const(f.ln2_low, float64), h.table(_LOG_LOW, place, float64))
    high, error = fast_two_sum(h, start, z)
    low = h.add(h.add(low, z_low), error)
    half = h.mul(z, h.const(0.5, float64))
    square = h.mul(z, half)
    square_low = h.fma(z, z_low, h.fma(z, half, h.neg(square)))
    total = h.sub(high, square)
    low = h.add(low, h.sub(h.sub(h.sub(high, total), square), square_low))
    # z^3 / 3 is small enough for one rounding, but not for those of z^2 and z^3 as well
    twice = h.add(square, square)
    cube = h.mul(z, twice)
    cube_low = h.fma(z, h.add(square_low, square_low), h.fma(z, twice, h.neg(cube)))
    low = h.fma(cube_low, h.const(_LOG[0], float64), low)
    low = h.fma(cube, even_odd(h, z, _LOG), low)
    return fast_two_sum(h, total, low)


def _pow64(h: Handler[V], x: V, y: V) -> V:
    f = format_of(float64)
    bits = h.bitcast(x, f.integer)
    special = not_positive_normal(h, bits, float64)

    def positive() -> V:
        size = h.abs(x)
        grown = h.bitcast(h.mul(size, h.const(2.0**54, float64)), f.integer)
        grown = h.sub(grown, h.const(54 << 52, f.integer))
        subnormal = h.lt(size, h.const(f.smallest, float64))
        return h.select(subnormal, grown, h.bitcast(size, f.integer))

    log_high, log_low = _log_sum(h, h.rarely(special, bits, positive))
    high = h.mul(y, log_high)
    low = h.fma(y, log_low, h.fma(y, log_high, h.neg(high)))
    size, limit = h.abs(high), h.const(800.0, float64)
    inside = h.lt(size, limit)
    far = h.not_(h.le(size, h.const(708.0, float64)))
    high = h.select(inside, high, h.copysign(limit, high))
    low = h.select(inside, low, h.const(0.0, float64))
    p = reduce(h, high)
    result = exp_sum(h, *fast_two_sum(h, p.r, h.add(p.r_low, low)))
    usual = scale(h, result, p.shifted)
    return _with_special(h, x, y, h.or_(special, far), usual, scale_far(h, result, p.shifted))


def _pow32(h: Handler[V], x: V, y: V) -> V:
    f = format_of(float64)
    special = not_positive_normal(h, h.bitcast(x, format_of(float32).integer), float32)
    endless = h.not_(h.lt(h.abs(y), h.const(float("inf"), float32)))
    k, m = split(h, h.bitcast(h.convert(h.abs(x), float64), f.integer), float64)
    z, exponent = h.sub(m, h.const(1.0, float64)), h.convert(k, float64)
    rest = h.fma(z, even_odd(h, z, _SHORT_LOG), h.const(-0.5, float64))
    near = h.fma(h.mul(z, z), rest, z)
    e = h.mul(h.convert(y, float64), h.fma(exponent, h.const(f.ln2[0], float64), near))
    limit = h.const(200.0, float64)  # far beyond float32, whose conversion does the rest
    e = h.select(h.lt(h.abs(e), limit), e, h.copysign(limit, e))
    p = reduce(h, e)
    tail = h.fma(h.mul(p.r, p.r), even_odd(h, p.r, _SHORT_EXP), p.r)
    two_n = power_of_two(h, p.shifted, 0, float64)
    result = h.convert(h.fma(tail, two_n, two_n), float32)
    return _with_special(h, x, y, h.or_(special, endless), result, result)


def pow(h: Handler[V], x: V, y: V) -> V:
    """``x**y``. ``pow(x, 0) = pow(1, y) = 1`` for every ``x`` and ``y``, NaN too."""
    dtype: DType = h.dtype(x)
    return _pow64(h, x, y) if dtype == float64 else _pow32(h, x, y)
