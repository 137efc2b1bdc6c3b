"""``lgamma``, the logarithm of ``|gamma|``.

For x > 0 with the recurrence and Stirling's formula (DLMF 5.5.1, 5.11.1), in one pass with one
logarithm, chosen by ``m``, the integer nearest to x, and ``d = x - m``, which is exact::

    m = 0, 1       lgamma(2 + d) - log(x (x + 1)),   lgamma(2 + d) - log(x)
    m = 2          lgamma(2 + d) = d ((1 - euler) + d Q(d))
    m = 3, 4, 5    lgamma(2 + d) + log((x - 1) ... (x - m + 2))
    x >= 5.5       x (log(x) - 1) - log(x) / 2 + log(2 pi) / 2 + S(1 / x^2) / x

so that both zeros, 1 and 2, keep their relative accuracy. Products, logarithms and sums carry a low
part. For x < 0 the reflection formula (DLMF 5.5.3),
``lgamma(x) = log(pi) - log|x sin(pi x)| - lgamma(-x)``, in the same way.

float32 goes through float64. The coefficients are made by ``tests/ir/scalar/gamma_tables.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from ..dtypes import float32, float64
from . import trigonometric
from .logarithm import log, log_sum
from .polynomial import even_odd, fast_two_sum, horner, two_product, two_sum
from .vocabulary import Handler, V

__all__ = ["in_float64", "lgamma"]

_H = float.fromhex
# (lgamma(2 + d) / d - (1 - euler)) / d for |d| <= 1/2; lgamma to 2^-59
NEAR_TWO = (
    _H("0x1.4a34cc4a60fa6p-2"),
    _H("-0x1.13e001a557607p-4"),
    _H("0x1.51322ac7d87f8p-6"),
    _H("-0x1.e404fc218f700p-8"),
    _H("0x1.7add6ead33e12p-9"),
    _H("-0x1.38ac5c2bf3711p-10"),
    _H("0x1.0b36afcd552e1p-11"),
    _H("-0x1.d3fd4c5bc3686p-13"),
    _H("0x1.a12787b371e00p-14"),
    _H("-0x1.78de6b7f97d55p-15"),
    _H("0x1.5814c005c2961p-16"),
    _H("-0x1.3cb8fe0d2b314p-17"),
    _H("0x1.24e3fe84bf859p-18"),
    _H("-0x1.1220f78caab35p-19"),
    _H("0x1.0b311d18c5919p-20"),
    _H("-0x1.d3f8b7149f74ap-22"),
    _H("0x1.0f384c6756f25p-23"),
    _H("-0x1.155ecfb26d47cp-23"),
    _H("0x1.1670583ac89a7p-23"),
)
# x (lgamma(x) - Stirling's formula) in 1 / x^2 for x >= 5.5; lgamma to 2^-64
STIRLING = (
    _H("0x1.5555555555555p-4"),
    _H("-0x1.6c16c16c128c1p-9"),
    _H("0x1.a01a0180e76d6p-11"),
    _H("-0x1.381366e0b2379p-11"),
    _H("0x1.b945c7d406108p-11"),
    _H("-0x1.f5049cdd7cb1bp-10"),
    _H("0x1.925133b58ad42p-8"),
    _H("-0x1.6c3844ad6e0f9p-6"),
    _H("0x1.c7956b0ded367p-5"),
)
# 1 - euler, pi and log(pi) in two parts
_SLOPE = _H("0x1.b0ee6072093cep-2"), _H("0x1.6cb90701fbfabp-58")
_PI = _H("0x1.921fb54442d18p+1"), _H("0x1.1a62633145c07p-53")
_LOG_PI = _H("0x1.250d048e7a1bdp+0"), _H("0x1.7abf2ad8d5088p-57")
_HALF_LOG_2_PI = _H("0x1.d67f1c864beb5p-1")
_SERIES_FROM = 5.5  # where Stirling's formula takes over
_TINY, _HUGE = 2.0**-60, 2.5e305  # outside: -log|x| is exact; the result may overflow

Pair = tuple[V, V]


def in_float64(h: Handler[V], x: V, program: Callable[[Handler[V], V], V]) -> V:
    """``program(h, x)``, float32 by way of float64."""
    if h.dtype(x) == float32:
        return h.convert(program(h, h.convert(x, float64)), float32)
    return program(h, x)


def lgamma(h: Handler[V], x: V) -> V:
    """``log|gamma(x)|``: +inf at the poles 0, -1, ... and at both infinities.

    Within 1 ulp for x > 0; for x < 0 within 1 ulp of the larger of result and 1, as the zeros there
    are at no floats.
    """
    return in_float64(h, x, _lgamma)


def _lgamma(h: Handler[V], x: V) -> V:
    def real(value: float) -> V:
        return h.const(value, float64)

    size = h.abs(x)
    inside = h.and_(h.ge(size, real(_TINY)), h.le(size, real(_HUGE)))
    argument = h.select(inside, size, real(1.0))
    high, low = _lgamma_sum(h, argument)
    usual = h.add(high, low)

    def rare() -> V:
        negative = h.lt(x, real(0.0))
        value = h.select(negative, _reflected(h, argument, high, low), usual)
        value = h.select(inside, value, h.neg(log(h, size)))  # tiny; +inf at 0
        huge = h.gt(size, real(_HUGE))
        value = h.select(huge, h.select(negative, real(inf), _huge(h, size)), value)
        return h.select(h.ne(x, x), x, value)

    return h.rarely(h.not_(h.and_(inside, h.gt(x, real(0.0)))), usual, rare)


def _huge(h: Handler[V], x: V) -> V:
    """``x (log(x) - 1)``, all of Stirling's formula that counts, up to where it overflows."""
    return h.mul(x, h.sub(log(h, x), h.const(1.0, float64)))


def _lgamma_sum(h: Handler[V], x: V) -> Pair[V]:
    """``lgamma(x)`` as an unevaluated sum, ``_TINY <= x <= _HUGE``."""

    def real(value: float) -> V:
        return h.const(value, float64)

    def choose(condition: V, x: Pair[V], y: Pair[V]) -> Pair[V]:
        return h.select(condition, x[0], y[0]), h.select(condition, x[1], y[1])

    zero, one = real(0.0), real(1.0)
    large = h.ge(x, real(_SERIES_FROM))
    m = h.rint(h.select(large, real(2.0), x))
    d = h.sub(h.select(large, real(2.0), x), m)
    # the argument of the logarithm
    factor, factor_low = fast_two_sum(h, one, x)
    product, product_low = two_product(h, x, factor)
    below = choose(h.eq(m, zero), (product, h.fma(x, factor_low, product_low)), (x, zero))
    first, second, third = (h.sub(x, real(k)) for k in (1.0, 2.0, 3.0))
    two, two_low = two_product(h, first, second)
    three, three_low = two_product(h, two, third)
    above = choose(h.eq(m, real(4.0)), (two, two_low), (first, zero))
    above = choose(h.eq(m, real(5.0)), (three, h.fma(two_low, third, three_low)), above)
    above = choose(h.eq(m, real(2.0)), (one, zero), above)
    small = h.lt(m, real(2.0))
    chosen = choose(small, below, above)
    argument, argument_low = choose(large, (x, one), chosen)
    # 1 / x, or what the low part of the argument adds to its logarithm
    quotient = h.div(argument_low, argument)
    log_high, log_low = log_sum(h, argument)
    # x < 5.5
    linear, linear_low = _near_two(h, d)
    near_log, near_low = log_high, h.add(log_low, quotient)
    near_log, near_low = choose(small, (h.neg(near_log), h.neg(near_low)), (near_log, near_low))
    near, error = two_sum(h, near_log, linear)
    near_low = h.add(error, h.add(near_low, linear_low))
    # x >= 5.5
    less, less_low = two_sum(h, log_high, real(-1.0))
    less_low = h.add(less_low, log_low)
    far, far_low = two_product(h, x, less)
    rest = h.fma(log_high, real(-0.5), real(_HALF_LOG_2_PI))
    series = horner(h, h.mul(quotient, quotient), STIRLING)
    rest = h.add(rest, h.fma(quotient, series, h.fma(x, less_low, far_low)))
    return choose(large, (far, rest), (near, near_low))


def _near_two(h: Handler[V], d: V) -> Pair[V]:
    """``lgamma(2 + d)`` as an unevaluated sum, ``|d| <= 1/2``: the first two terms with low parts.

    In single steps the roundings would add up to 2 ulp of the smallest values, around 1.46.
    """
    curve, first = even_odd(h, d, NEAR_TWO[1:]), h.const(NEAR_TWO[0], float64)
    slope = h.fma(d, curve, first)
    slope_low = h.fma(d, curve, h.sub(first, slope))
    bend, bend_low = two_product(h, d, slope)
    bend_low = h.fma(d, slope_low, h.add(bend_low, h.const(_SLOPE[1], float64)))
    factor, factor_low = fast_two_sum(h, h.const(_SLOPE[0], float64), bend)
    value, value_low = two_product(h, d, factor)
    return value, h.fma(d, h.add(factor_low, bend_low), value_low)


def _reflected(h: Handler[V], x: V, high: V, low: V) -> V:
    """``lgamma(-x)`` from ``lgamma(x) = high + low``."""

    def real(value: float) -> V:
        return h.const(value, float64)

    sine, sine_low = _sine_of_pi(h, x)
    pole = h.eq(sine, real(0.0))
    sine = h.select(pole, real(1.0), sine)
    product, product_low = two_product(h, x, sine)
    product_low = h.fma(x, sine_low, product_low)
    log_high, log_low = log_sum(h, product)
    log_low = h.add(log_low, h.div(product_low, product))
    first, first_low = two_sum(h, real(_LOG_PI[0]), h.neg(log_high))
    second, second_low = two_sum(h, first, h.neg(high))
    rest = h.add(h.sub(first_low, log_low), h.sub(second_low, low))
    value = h.add(second, h.add(rest, real(_LOG_PI[1])))
    return h.select(pole, real(inf), value)


def _sine_of_pi(h: Handler[V], x: V) -> Pair[V]:
    """``|sin(pi x)|`` as an unevaluated sum."""
    d = h.abs(h.sub(x, h.rint(x)))
    steep = h.gt(d, h.const(0.25, float64))
    r = h.select(steep, h.sub(h.const(0.5, float64), d), d)
    angle, angle_low = two_product(h, r, h.const(_PI[0], float64))
    angle_low = h.fma(r, h.const(_PI[1], float64), angle_low)
    sine, sine_low, cosine, cosine_low = trigonometric.sine_and_cosine(h, angle, angle_low)
    high, low = h.select(steep, cosine, sine), h.select(steep, cosine_low, sine_low)
    return fast_two_sum(h, high, low)
