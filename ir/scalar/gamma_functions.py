"""``lgamma`` (the logarithm of ``|gamma|``), ``digamma`` and the polygamma functions.

lgamma(x), x > 0, with the recurrence and Stirling's formula (DLMF 5.5.1, 5.11.1), in one pass with
one logarithm, chosen by ``m``, the integer nearest to x, and ``d = x - m``, which is exact::

    m = 0, 1       lgamma(2 + d) - log(x (x + 1)),   lgamma(2 + d) - log(x)
    m = 2          lgamma(2 + d) = d ((1 - euler) + d Q(d))
    m = 3, 4, 5    lgamma(2 + d) + log((x - 1) ... (x - m + 2))
    x >= 5.5       x (log(x) - 1) - log(x) / 2 + log(2 pi) / 2 + S(1 / x^2) / x

so that both zeros, 1 and 2, keep their relative accuracy. Products, logarithms and sums carry a low
part. For x < 0 the reflection formula (DLMF 5.5.3),
``lgamma(x) = log(pi) - log|x sin(pi x)| - lgamma(-x)``, in the same way.

digamma(x), x > 0: ``(x - x0) R(x)`` on [1, 2) with its zero ``x0`` in two parts, from there by the
recurrence (DLMF 5.5.2) down to 0 and up to 3, then the asymptotic series (DLMF 5.11.2), the sum of
the leading terms with its low part. For x < 0
``digamma(x) = digamma(-x) - 1 / x - pi / tan(pi x)`` (DLMF 5.5.4, 5.5.2).

polygamma(n, x) = ``(-1)^(n + 1) n! zeta(n + 1, x)`` (DLMF 5.15.1), the Hurwitz zeta function by
Euler-Maclaurin summation (DLMF 25.11.28), all of whose terms that matter are positive.

float32 goes through float64. The coefficients are made by ``tests/ir/scalar/gamma_tables.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import factorial, inf, nan, pi

from ..dtypes import float32, float64, int64
from . import trigonometric
from .formats import format_of
from .logarithm import log, log_near, split
from .polynomial import even_odd, fast_two_sum, horner, two_sum
from .vocabulary import Handler, V

__all__ = ["bernoulli", "cotangent_derivative", "digamma", "lgamma", "polygamma"]

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
# (digamma(x) / (x - x0) - _MIDDLE) / (x - 3/2) for 1 <= x <= 2; digamma to 2^-57
DIGAMMA = (
    _H("-0x1.b1cb63005ee99p-2"),
    _H("0x1.eca189b8e6f6dp-3"),
    _H("-0x1.2feeeb98a7767p-3"),
    _H("0x1.8512e590391bap-4"),
    _H("-0x1.fb44202a42e6cp-5"),
    _H("0x1.4de9aa17600f5p-5"),
    _H("-0x1.b9f8b11271f40p-6"),
    _H("0x1.25647183b5803p-6"),
    _H("-0x1.86356585e5b3ap-7"),
    _H("0x1.03c0ab47f8b39p-7"),
    _H("-0x1.5a067df823c32p-8"),
    _H("0x1.cd20a769905e2p-9"),
    _H("-0x1.33703e17b2469p-9"),
    _H("0x1.99c8fa4e12e39p-10"),
    _H("-0x1.0f9a0b6c01da0p-10"),
    _H("0x1.6abc704316326p-11"),
    _H("-0x1.fecfbafd5d688p-12"),
    _H("0x1.504eed800d736p-12"),
    _H("-0x1.2b3a9118c2a8dp-13"),
    _H("0x1.ae9c2437e39a7p-14"),
    _H("-0x1.79268cd466352p-13"),
    _H("0x1.ddac2bef0ecfep-14"),
)
# x^2 (log(x) - 1 / (2 x) - digamma(x)) in 1 / x^2 for x >= 3; digamma to 2^-62
DIGAMMA_FAR = (
    _H("0x1.5555555555536p-4"),
    _H("-0x1.11111110e2c68p-7"),
    _H("0x1.041040a3f8cd6p-8"),
    _H("-0x1.1110de6b16b64p-8"),
    _H("0x1.f06c2b3c940a4p-8"),
    _H("-0x1.58c2c9a0e7147p-6"),
    _H("0x1.4dbfd8eeecff1p-4"),
    _H("-0x1.92e375e56b96cp-2"),
    _H("0x1.03e090106467bp+1"),
    _H("-0x1.2ec810c53f72fp+3"),
    _H("0x1.1072381c696b8p+5"),
    _H("-0x1.3f1e006b67903p+6"),
    _H("0x1.630e1c490d0c3p+6"),
)
# in two parts: 1 - euler, the zero x0 of digamma, digamma(3/2) / (3/2 - x0), pi, log(pi)
_SLOPE = _H("0x1.b0ee6072093cep-2"), _H("0x1.6cb90701fbfabp-58")
_ZERO = _H("0x1.762d86356be3fp+0"), _H("0x1.b86a722197829p-54")
_MIDDLE = _H("0x1.e6f0cbb873616p-1"), _H("0x1.8f70c7a125e6ap-55")
_PI = _H("0x1.921fb54442d18p+1"), _H("0x1.1a62633145c07p-53")
_LOG_PI = _H("0x1.250d048e7a1bdp+0"), _H("0x1.7abf2ad8d5088p-57")
_HALF_LOG_2_PI = _H("0x1.d67f1c864beb5p-1")
_SERIES_FROM = 5.5  # where Stirling's formula takes over
_TINY, _HUGE = 2.0**-60, 2.5e305  # outside: -log|x| is exact; the result may overflow

Pair = tuple[V, V]


def _in_float64(h: Handler[V], x: V, program: Callable[[Handler[V], V], V]) -> V:
    if h.dtype(x) == float32:
        return h.convert(program(h, h.convert(x, float64)), float32)
    return program(h, x)


# ------------------------------------------------------------------------------------ lgamma


def lgamma(h: Handler[V], x: V) -> V:
    """``log|gamma(x)|``: +inf at the poles 0, -1, ... and at both infinities.

    Within 1 ulp for x > 0; for x < 0 within 1 ulp of the larger of result and 1, as the zeros there
    are at no floats.
    """
    return _in_float64(h, x, _lgamma)


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


def _log_sum(h: Handler[V], x: V) -> Pair[V]:
    """``log(x)`` as an unevaluated sum, x positive and normal (see ``logarithm.py``)."""
    f = format_of(float64)
    k, m = split(h, h.bitcast(x, int64), float64)
    exponent = h.convert(k, float64)
    near, rest = log_near(h, h.sub(m, h.const(1.0, float64)))
    high, low = fast_two_sum(h, h.mul(exponent, h.const(f.ln2_high, float64)), near)
    return fast_two_sum(h, high, h.fma(exponent, h.const(f.ln2_low, float64), h.add(low, rest)))


def _product(h: Handler[V], x: V, y: V) -> Pair[V]:
    """``x y`` exactly."""
    product = h.mul(x, y)
    return product, h.fma(x, y, h.neg(product))


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
    product, product_low = _product(h, x, factor)
    below = choose(h.eq(m, zero), (product, h.fma(x, factor_low, product_low)), (x, zero))
    first, second, third = (h.sub(x, real(k)) for k in (1.0, 2.0, 3.0))
    two, two_low = _product(h, first, second)
    three, three_low = _product(h, two, third)
    above = choose(h.eq(m, real(4.0)), (two, two_low), (first, zero))
    above = choose(h.eq(m, real(5.0)), (three, h.fma(two_low, third, three_low)), above)
    above = choose(h.eq(m, real(2.0)), (one, zero), above)
    small = h.lt(m, real(2.0))
    chosen = choose(small, below, above)
    argument, argument_low = choose(large, (x, one), chosen)
    # 1 / x, or what the low part of the argument adds to its logarithm
    quotient = h.div(argument_low, argument)
    log_high, log_low = _log_sum(h, argument)
    # x < 5.5
    linear, linear_low = _near_two(h, d)
    near_log, near_low = log_high, h.add(log_low, quotient)
    near_log, near_low = choose(small, (h.neg(near_log), h.neg(near_low)), (near_log, near_low))
    near, error = two_sum(h, near_log, linear)
    near_low = h.add(error, h.add(near_low, linear_low))
    # x >= 5.5
    less, less_low = two_sum(h, log_high, real(-1.0))
    less_low = h.add(less_low, log_low)
    far, far_low = _product(h, x, less)
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
    bend, bend_low = _product(h, d, slope)
    bend_low = h.fma(d, slope_low, h.add(bend_low, h.const(_SLOPE[1], float64)))
    factor, factor_low = fast_two_sum(h, h.const(_SLOPE[0], float64), bend)
    value, value_low = _product(h, d, factor)
    return value, h.fma(d, h.add(factor_low, bend_low), value_low)


def _reflected(h: Handler[V], x: V, high: V, low: V) -> V:
    """``lgamma(-x)`` from ``lgamma(x) = high + low``."""

    def real(value: float) -> V:
        return h.const(value, float64)

    sine, sine_low = _sine_of_pi(h, x)
    pole = h.eq(sine, real(0.0))
    sine = h.select(pole, real(1.0), sine)
    product, product_low = _product(h, x, sine)
    product_low = h.fma(x, sine_low, product_low)
    log_high, log_low = _log_sum(h, product)
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
    angle, angle_low = _product(h, r, h.const(_PI[0], float64))
    angle_low = h.fma(r, h.const(_PI[1], float64), angle_low)
    sine, sine_low, cosine, cosine_low = trigonometric.sine_and_cosine(h, angle, angle_low)
    high, low = h.select(steep, cosine, sine), h.select(steep, cosine_low, sine_low)
    return fast_two_sum(h, high, low)


# ----------------------------------------------------------------------------------- digamma


def digamma(h: Handler[V], x: V) -> V:
    """The derivative of ``lgamma``: -inf at 0, +inf at -0, NaN at -1, -2, ... and -inf.

    Within 1 ulp for x > 0; for x < 0 within 4 ulp of the largest summand of the formula.
    """
    return _in_float64(h, x, _digamma)


def _digamma(h: Handler[V], x: V) -> V:
    def real(value: float) -> V:
        return h.const(value, float64)

    zero, one = real(0.0), real(1.0)
    size = h.abs(x)
    large, lower = h.ge(size, real(3.0)), h.lt(size, one)
    moved = h.and_(h.ge(size, real(2.0)), h.not_(large))
    y, y_low = fast_two_sum(h, one, size)
    less = h.sub(size, one)
    y, y_low = h.select(lower, y, size), h.select(lower, y_low, zero)
    y = h.select(moved, less, y)
    # inverse + inverse_low is 1 / x, or 1 / (x - 1) where that is added
    divisor = h.select(moved, less, size)
    inverse = h.div(one, divisor)
    inverse_low = h.mul(inverse, h.fma(h.neg(inverse), divisor, one))
    # x < 3
    t = h.sub(y, real(1.5))
    curve = even_odd(h, t, DIGAMMA)
    shape = h.fma(t, curve, real(_MIDDLE[0]))
    shape_low = h.add(h.fma(t, curve, h.sub(real(_MIDDLE[0]), shape)), real(_MIDDLE[1]))
    distance, distance_low = h.sub(y, real(_ZERO[0])), h.sub(y_low, real(_ZERO[1]))
    middle, middle_low = _product(h, distance, shape)
    middle_low = h.fma(distance, shape_low, h.fma(distance_low, shape, middle_low))
    outside = h.or_(lower, moved)
    step = h.select(outside, h.select(lower, h.neg(inverse), inverse), zero)
    step_low = h.select(outside, h.select(lower, h.neg(inverse_low), inverse_low), zero)
    near, near_low = two_sum(h, step, middle)
    near_low = h.add(near_low, h.add(step_low, middle_low))
    # x >= 3
    log_high, log_low = _log_sum(h, h.select(h.le(size, real(_HUGE)), size, one))
    square = h.mul(inverse, inverse)
    far, far_low = fast_two_sum(h, log_high, h.mul(inverse, real(-0.5)))
    far_low = h.add(far_low, h.fma(inverse_low, real(-0.5), log_low))
    far_low = h.sub(far_low, h.mul(square, horner(h, square, DIGAMMA_FAR)))
    usual = h.add(h.select(large, far, near), h.select(large, far_low, near_low))
    inside = h.and_(h.ge(x, real(_TINY)), h.le(x, real(_HUGE)))

    def rare() -> V:
        tiny = h.lt(size, real(_TINY))
        value = h.select(tiny, h.neg(h.div(one, size)), usual)
        value = h.select(h.gt(size, real(_HUGE)), log(h, size), value)
        turn = h.mul(_cotangent(h, size), real(pi))
        reflected = h.add(h.sub(value, h.div(one, x)), turn)
        reflected = h.select(tiny, h.neg(h.div(one, x)), reflected)
        whole = h.and_(h.eq(h.rint(x), x), h.lt(x, zero))
        reflected = h.select(whole, real(nan), reflected)
        value = h.select(h.lt(h.copysign(one, x), zero), reflected, value)
        return h.select(h.ne(x, x), x, value)

    return h.rarely(h.not_(inside), usual, rare)


def _cotangent(h: Handler[V], x: V) -> V:
    """``cot(pi x)``, right also where it is small: exactly zero at 1/2."""
    fraction = h.sub(x, h.rint(x))
    d = h.abs(fraction)
    steep = h.gt(d, h.const(0.25, float64))
    r = h.select(steep, h.sub(h.const(0.5, float64), d), d)
    tangent = trigonometric.tan(h, h.mul(r, h.const(pi, float64)))
    value = h.select(steep, tangent, h.div(h.const(1.0, float64), tangent))
    return h.copysign(value, fraction)


# --------------------------------------------------------------------------------- polygamma


def polygamma(h: Handler[V], x: V, *, n: int) -> V:
    """The ``n``-th derivative of ``digamma``, within about ``4 + n`` ulp for x > 0."""
    if n == 0:
        return digamma(h, x)
    return _in_float64(h, x, lambda h, x: _polygamma(h, x, n))


def _polygamma(h: Handler[V], x: V, n: int) -> V:
    def real(value: float) -> V:
        return h.const(value, float64)

    zero = real(0.0)
    negative = h.lt(x, zero)
    positive = _scaled_zeta(h, h.select(negative, h.sub(real(1.0), x), x), n)
    usual = h.neg(positive) if n % 2 == 0 else positive

    def rare() -> V:
        # (-1)^(n + 1) polygamma(n, x) + polygamma(n, 1 - x) = (-1)^n (d/dx)^n pi cot(pi x)
        cotangent = _cotangent(h, x)
        powers = cotangent_derivative(n)
        wave = horner(
            h, h.mul(cotangent, cotangent), [pi ** (n + 1) * c for c in powers[n % 2 == 0 :: 2]]
        )
        if n % 2 == 0:
            wave = h.mul(wave, cotangent)
        value = h.neg(h.add(positive, wave))
        whole = h.eq(h.rint(x), x)
        return h.select(negative, h.select(whole, real(inf if n % 2 else nan), value), usual)

    return h.rarely(negative, usual, rare)


def cotangent_derivative(n: int) -> list[int]:
    """The polynomial p with ``(d/dx)^n cot(x) = p(cot(x))``: ``p' -> -(1 + c^2) p'``."""
    p = [0, 1]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(p)][1:]
        p = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return p


def bernoulli(count: int) -> list[Fraction]:
    """``B_2, B_4, ...``, from their recurrence (DLMF 24.5.3)."""
    numbers = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        total, binomial = Fraction(0), 1
        for k, b in enumerate(numbers):
            total += binomial * b
            binomial = binomial * (m + 1 - k) // (k + 1)
        numbers.append(-total / (m + 1))
    return numbers[2::2]


def _scaled_zeta(h: Handler[V], x: V, n: int) -> V:
    """``n! zeta(n + 1, x)`` for x >= 0; ten terms of the tail, from ``x + 10 + n`` on."""

    def real(value: float) -> V:
        return h.const(value, float64)

    one, shift = real(1.0), 10 + n
    total = h.const(0.0, float64)
    for k in reversed(range(shift)):
        total = h.add(total, _power(h, h.div(one, h.add(x, real(float(k)))), n + 1))
    inverse = h.div(one, h.add(x, real(float(shift))))
    coefficients: Sequence[float] = [
        float(b * factorial(n + 2 * j - 1) / (factorial(2 * j) * factorial(n)))
        for j, b in enumerate(bernoulli(10), 1)
    ]
    square = h.mul(inverse, inverse)
    tail = h.fma(square, horner(h, square, coefficients), h.mul(inverse, real(0.5)))
    tail = h.mul(h.add(real(1.0 / n), tail), _power(h, inverse, n))
    return h.mul(h.add(total, tail), real(float(factorial(n))))


def _power(h: Handler[V], x: V, n: int) -> V:
    """``x^n`` by squaring, ``n >= 1``."""
    result: V | None = None
    while True:
        if n & 1:
            result = x if result is None else h.mul(result, x)
        n >>= 1
        if not n:
            assert result is not None
            return result
        x = h.mul(x, x)
