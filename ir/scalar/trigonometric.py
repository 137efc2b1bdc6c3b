"""Sine, cosine and tangent.

Method: reduce ``|x|`` to ``n pi/2 + high + low`` with ``|high| <= pi/4``, then evaluate minimax
polynomials for both the sine and the cosine of the remainder and pick by the parity of ``n``.

* Usual reduction (Cody and Waite, *Software Manual for the Elementary Functions*, 1980, with fused
  multiply-add): ``pi/2 = p1 + p2 + p3`` where ``p1`` has all the bits of the format. ``x - n p1``
  is exact, for it is a multiple of ``ulp(p1)`` (or of ``ulp(x)``) below 1. ``p2`` is so short that
  ``n p2`` is exact, so the next remainder has an error that is again representable, and ``p3``
  only touches ``low``. Together this is ``pi/2`` to 140 (float32: 62) bits.
* Rare reduction, for large float64 arguments (Payne and Hanek, SIGNUM 1983): multiply by those bits
  of ``2/pi`` alone that matter modulo 4. Large float32 arguments take the float64 program.

The low part matters near multiples of ``pi/2``: ``high`` may be as small as ``2^-61``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..dtypes import DType, float32, float64, int32, int64
from .polynomial import fast_two_sum, horner, two_sum
from .two_over_pi import FIRST_BUCKET, SCALE, TWO_OVER_PI
from .vocabulary import Handler, V

__all__ = ["cos", "sin", "sine_and_cosine", "tan"]


class _Constants(NamedTuple):
    """What differs between the formats."""

    integer: DType
    limit: float  # the usual reduction holds up to here: n < 2^20, 2^12
    magic: float  # 1.5 * 2^(bits - 1): adding it rounds to an integer, kept in the low bits
    two_over_pi: float
    parts: tuple[float, float, float]  # pi/2
    sine: tuple[float, ...]  # (sin r / r - 1) / r^2 in r^2
    cosine: tuple[float, ...]  # (cos r - 1 + r^2 / 2) / r^4 in r^2


_H = float.fromhex
_CONSTANTS = {
    float64: _Constants(
        int64,
        1.6e6,
        _H("0x1.8p52"),
        _H("0x1.45f306dc9c883p-1"),
        (_H("0x1.921fb54442d18p+0"), _H("0x1.1a62633100000p-54"), _H("0x1.1701b839a2520p-88")),
        # relative error 2^-57.9 of the sine
        (
            _H("-0x1.5555555555548p-3"),
            _H("0x1.111111110f731p-7"),
            _H("-0x1.a01a019be955ap-13"),
            _H("0x1.71de355564e76p-19"),
            _H("-0x1.ae5e4bb83108ep-26"),
            _H("0x1.5d8b66609f7f8p-33"),
        ),
        # relative error 2^-63.9 of the cosine
        (
            _H("0x1.555555555554bp-5"),
            _H("-0x1.6c16c16c15015p-10"),
            _H("0x1.a01a019c8f23bp-16"),
            _H("-0x1.27e4f7f18ef5ap-22"),
            _H("0x1.1ee9dbccc3707p-29"),
            _H("-0x1.8fa68328b8e8fp-37"),
        ),
    ),
    float32: _Constants(
        int32,
        6400.0,
        _H("0x1.8p23"),
        _H("0x1.45f3060000000p-1"),
        (_H("0x1.921fb60000000p+0"), _H("-0x1.7780000000000p-25"), _H("0x1.68c2340000000p-39")),
        # relative errors 2^-27.9, 2^-33.0
        (_H("-0x1.555546p-3"), _H("0x1.110778p-7"), _H("-0x1.99540ap-13")),
        (_H("0x1.55554ap-5"), _H("-0x1.6c0c28p-10"), _H("0x1.99e80cp-16")),
    ),
}


def _reduce(h: Handler[V], x: V) -> tuple[V, V, V]:
    """Quadrant, high and low part of a positive ``x`` up to the limit."""
    dtype = h.dtype(x)
    c = _CONSTANTS[dtype]
    magic = h.const(c.magic, dtype)
    shifted = h.fma(x, h.const(c.two_over_pi, dtype), magic)
    n = h.neg(h.sub(shifted, magic))
    part_1, part_2, part_3 = (h.const(part, dtype) for part in c.parts)
    first = h.fma(n, part_1, x)
    high = h.fma(n, part_2, first)
    low = h.fma(n, part_2, h.sub(first, high))
    return h.bitcast(shifted, c.integer), high, h.fma(n, part_3, low)


def _reduce_large(h: Handler[V], x: V) -> tuple[V, V, V]:
    """The same for a positive float64 ``x`` of any size, infinity included (gives NaN).

    The four products with the parts of ``2/pi`` are split exactly into value and error; multiples
    of 4 are taken off the large ones; the sum is carried to twice the format's length.
    """
    c = _CONSTANTS[float64]

    def real(value: float) -> V:
        return h.const(value, float64)

    def modulo_4(value: V) -> V:
        return h.fma(h.rint(h.mul(value, real(0.25))), real(-4.0), value)

    def whole(value: int) -> V:
        return h.const(value, int64)

    # lanes with a small x take part as well: their index is made harmless
    bucket = h.sub(h.shr(h.bitcast(x, int64), whole(57)), whole(FIRST_BUCKET))
    bucket = h.select(h.lt(bucket, whole(0)), whole(0), bucket)
    scaled = h.mul(x, real(1.0 / SCALE))
    parts = [h.table(column, bucket, float64) for column in TWO_OVER_PI]
    products = [h.mul(scaled, part) for part in parts]
    errors = [
        h.fma(scaled, part, h.neg(product)) for part, product in zip(parts, products, strict=True)
    ]
    total, error_0 = two_sum(h, modulo_4(products[0]), modulo_4(errors[0]))
    total, error_1 = two_sum(h, total, modulo_4(products[1]))
    shifted = h.add(total, real(c.magic))
    total = h.sub(total, h.sub(shifted, real(c.magic)))
    low = h.add(errors[2], products[3])
    for term in (error_0, error_1, errors[1], products[2]):
        total, error = two_sum(h, total, term)
        low = h.add(low, error)
    total, low = fast_two_sum(h, total, low)
    # times pi/2
    part_1, tail = real(c.parts[0]), real(c.parts[1] + c.parts[2])
    high = h.mul(total, part_1)
    error = h.fma(total, part_1, h.neg(high))
    return h.bitcast(shifted, int64), high, h.add(error, h.fma(total, tail, h.mul(low, part_1)))


def sine_and_cosine(h: Handler[V], high: V, low: V) -> tuple[V, V, V, V]:
    """Sine and cosine of ``high + low``, each as two terms to be added."""
    dtype = h.dtype(high)
    c = _CONSTANTS[dtype]
    half, one = h.const(0.5, dtype), h.const(1.0, dtype)
    z = h.mul(high, high)
    half_z = h.mul(z, half)
    one_less = h.sub(one, half_z)  # 1 - z/2
    # sin = high + (low cos(high) + high z S(z))
    sine_low = h.fma(h.mul(high, z), horner(h, z, c.sine), h.mul(low, one_less))
    # cos = (1 - z/2) + (rounding error of this difference + z^2 C(z) - high low)
    rounding = h.sub(h.sub(one, one_less), half_z)
    cosine_low = h.fma(h.mul(z, z), horner(h, z, c.cosine), h.fma(h.neg(high), low, rounding))
    return high, sine_low, one_less, cosine_low


def _odd(h: Handler[V], quadrant: V) -> V:
    integer = h.dtype(quadrant)
    one = h.const(1, integer)
    return h.eq(h.and_(quadrant, one), one)


def _flip(h: Handler[V], x: V, sign: V) -> V:
    """``x`` with its sign bit flipped by the top bit of ``sign``, an integer or a float."""
    dtype = h.dtype(x)
    integer = _CONSTANTS[dtype].integer
    top = h.const(-(1 << (integer.bits - 1)), integer)
    return h.bitcast(h.xor(h.bitcast(x, integer), h.and_(h.bitcast(sign, integer), top)), dtype)


def _evaluate(h: Handler[V], x: V, finish: Callable[[Handler[V], V, V, V, V], V]) -> V:
    """Reduce ``|x|`` and apply ``finish(h, quadrant, high, low, x)``."""
    dtype = h.dtype(x)
    size = h.abs(x)
    usual = finish(h, *_reduce(h, size), x)

    def rare() -> V:
        wide = h.convert(x, float64)
        return h.convert(finish(h, *_reduce_large(h, h.abs(wide)), wide), dtype)

    return h.rarely(h.gt(size, h.const(_CONSTANTS[dtype].limit, dtype)), usual, rare)


def _sine(h: Handler[V], quadrant: V, high: V, low: V, x: V) -> V:
    """Sine of the reduced argument. The sign of ``x`` is put back as a bit, which keeps -0.0."""
    return _flip(h, _cosine(h, h.sub(quadrant, h.const(1, h.dtype(quadrant))), high, low, x), x)


def _cosine(h: Handler[V], quadrant: V, high: V, low: V, x: V) -> V:
    integer = h.dtype(quadrant)
    sine_high, sine_low, cosine_high, cosine_low = sine_and_cosine(h, high, low)
    odd = _odd(h, quadrant)
    value = h.add(h.select(odd, sine_high, cosine_high), h.select(odd, sine_low, cosine_low))
    # negative in quadrants 1 and 2: bit 1 of quadrant + 1 becomes the sign
    half_turn = h.shl(h.add(quadrant, h.const(1, integer)), h.const(integer.bits - 2, integer))
    return _flip(h, value, half_turn)


def _tangent(h: Handler[V], quadrant: V, high: V, low: V, x: V) -> V:
    """Tangent of the reduced argument.

    The quotient ``sin/cos`` or ``-cos/sin`` of two-term numbers; the remainder of the first
    quotient, taken with the low terms, corrects it.
    """
    terms = sine_and_cosine(h, high, low)
    sine, cosine = fast_two_sum(h, *terms[:2]), fast_two_sum(h, *terms[2:])
    odd = _odd(h, quadrant)
    above, above_low = (h.select(odd, c, s) for c, s in zip(cosine, sine, strict=True))
    below, below_low = (h.select(odd, s, c) for c, s in zip(cosine, sine, strict=True))
    inverse = h.div(h.const(1.0, h.dtype(high)), below)
    quotient = h.mul(above, inverse)
    remainder = h.fma(h.neg(quotient), below, above)
    remainder = h.add(remainder, h.fma(h.neg(quotient), below_low, above_low))
    value = h.fma(remainder, inverse, quotient)
    integer = h.dtype(quadrant)
    turn = h.shl(quadrant, h.const(integer.bits - 1, integer))  # an odd quadrant negates
    return _flip(h, _flip(h, value, turn), x)


def sin(h: Handler[V], x: V) -> V:
    """Sine, within 1 ulp for every finite argument; NaN for infinities."""
    return _evaluate(h, x, _sine)


def cos(h: Handler[V], x: V) -> V:
    """Cosine, within 1 ulp for every finite argument; NaN for infinities."""
    return _evaluate(h, x, _cosine)


def tan(h: Handler[V], x: V) -> V:
    """Tangent, within 1 ulp for every finite argument; NaN for infinities."""
    return _evaluate(h, x, _tangent)
