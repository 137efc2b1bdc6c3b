"""``digamma``, the derivative of ``lgamma``, and its own derivatives, ``polygamma``.

digamma(x), x > 0: ``(x - x0) R(x)`` on [1, 2) with its zero ``x0`` in two parts, from there by the
recurrence (DLMF 5.5.2) down to 0 and up to 3, then the asymptotic series (DLMF 5.11.2), the sum of
the leading terms with its low part. For x < 0
``digamma(x) = digamma(-x) - 1 / x - pi / tan(pi x)`` (DLMF 5.5.4, 5.5.2).

polygamma(n, x) = ``(-1)^(n + 1) n! zeta(n + 1, x)`` (DLMF 5.15.1), the Hurwitz zeta function by
Euler-Maclaurin summation (DLMF 25.11.28), all of whose terms that matter are positive.

float32 goes through float64. The coefficients are made by ``tests/ir/scalar/gamma_tables.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import factorial, inf, nan, pi

from ..dtypes import float64
from . import trigonometric
from .log_gamma import in_float64
from .logarithm import log, log_sum
from .polynomial import even_odd, fast_two_sum, horner, two_product, two_sum
from .vocabulary import Handler, V

__all__ = ["bernoulli", "cotangent_derivative", "digamma", "polygamma"]

_H = float.fromhex
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
# the zero x0 of digamma, digamma(3/2) / (3/2 - x0), in two parts
_ZERO = _H("0x1.762d86356be3fp+0"), _H("0x1.b86a722197829p-54")
_MIDDLE = _H("0x1.e6f0cbb873616p-1"), _H("0x1.8f70c7a125e6ap-55")
_TINY, _HUGE = 2.0**-60, 2.5e305  # outside: -1 / x and log(x) are exact


def digamma(h: Handler[V], x: V) -> V:
    """The derivative of ``lgamma``: -inf at 0, +inf at -0, NaN at -1, -2, ... and -inf.

    Within 1 ulp for x > 0; for x < 0 within 4 ulp of the largest summand of the formula.
    """
    return in_float64(h, x, _digamma)


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
    middle, middle_low = two_product(h, distance, shape)
    middle_low = h.fma(distance, shape_low, h.fma(distance_low, shape, middle_low))
    outside = h.or_(lower, moved)
    step = h.select(outside, h.select(lower, h.neg(inverse), inverse), zero)
    step_low = h.select(outside, h.select(lower, h.neg(inverse_low), inverse_low), zero)
    near, near_low = two_sum(h, step, middle)
    near_low = h.add(near_low, h.add(step_low, middle_low))
    # x >= 3
    log_high, log_low = log_sum(h, h.select(h.le(size, real(_HUGE)), size, one))
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
    return in_float64(h, x, lambda h, x: _polygamma(h, x, n))


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
