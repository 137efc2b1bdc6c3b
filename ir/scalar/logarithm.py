"""``log``, ``log1p``, ``log2`` and ``log10``.

Method (fdlibm ``e_log.c``, Sun Microsystems 1993, with a polynomial in place of its division):
``x = 2^k m`` with ``sqrt(1/2) <= m < sqrt(2)``, and with the exact ``f = m - 1`` ::

    log(1 + f) = f - f^2 / 2 + f^3 P(f)        P: minimax, see tests/ir/scalar/minimax.py
    log(x) = k ln2_high + (f - f^2 / 2) + (f^3 P(f) + k ln2_low)

``k ln2_high`` is exact, ``f - f^2 / 2`` and the sum of both are kept with their rounding errors.
Near ``x = 1``, ``k`` is zero and nothing cancels. Numbers below the smallest normal one get their
exponent from a multiple of themselves.
"""

from __future__ import annotations

from ..dtypes import DType, float32, float64
from .formats import format_of
from .polynomial import even_odd, fast_two_sum, two_sum
from .vocabulary import Handler, V

__all__ = [
    "log",
    "log10",
    "log1p",
    "log1p_sum",
    "log2",
    "log_near",
    "log_sum",
    "not_positive_normal",
    "positive_bits",
    "split",
]

LOG = {
    float64: (
        *(0.3333333333333314, -0.24999999999987982, 0.200000000000664, -0.16666666669824),
        *(0.14285714280110726, -0.12499999691617011, 0.11111111146809273, -0.10000015198719124),
        *(0.0909092394229733, -0.08332913715476817, 0.07691529811608008, -0.07149437272058246),
        *(0.0668458724162157, -0.061966934543064844, 0.05668400259674537, -0.05677742195202796),
        *(0.06503399106143282, -0.059817093369100155, 0.026151599875574298),
    ),
    float32: (
        *(0.3333333134651184, -0.2500081956386566, 0.20001226663589478, -0.1662335842847824),
        *(0.14201749861240387, -0.13160160183906555, 0.1276162564754486, -0.07634610682725906),
    ),
}
TWICE_LOG = {dtype: tuple(2 * c for c in row) for dtype, row in LOG.items()}
# 1 / (1 + f) within 1 %: the weight of a correction that is itself below one last place
RECIPROCAL = (1.0049951120225056, -1.0806127678408468, 0.914239070625031)


def not_positive_normal(h: Handler[V], bits: V, dtype: DType) -> V:
    """Whether a float given by its bits is anything but a positive, finite, normal number."""
    f = format_of(dtype)
    smallest = 1 << f.fraction
    above = h.sub(h.bitcast(bits, f.unsigned), h.const(smallest, f.unsigned))
    return h.ge(above, h.const(f.infinity_bits - smallest, f.unsigned))


def positive_bits(h: Handler[V], x: V) -> tuple[V, V]:
    """Bits of ``x > 0`` as if the exponent had no lower end; and whether ``x`` is not normal."""
    dtype = h.dtype(x)
    f = format_of(dtype)
    bits = h.bitcast(x, f.integer)
    special = not_positive_normal(h, bits, dtype)

    def enlarge() -> V:
        grown = h.bitcast(h.mul(x, h.const(2.0 ** (f.fraction + 2), dtype)), f.integer)
        return h.sub(grown, h.const((f.fraction + 2) << f.fraction, f.integer))

    return h.rarely(special, bits, enlarge), special


def split(h: Handler[V], bits: V, dtype: DType) -> tuple[V, V]:
    """``(k, m)``, ``k`` an integer, such that ``2**k m`` has these bits and ``m`` is near 1."""
    f = format_of(dtype)
    above = h.sub(bits, h.const(f.sqrt_half_bits, f.integer))
    digits = h.const(f.fraction, f.integer)
    k = h.shr(above, digits)
    return k, h.bitcast(h.sub(bits, h.shl(k, digits)), dtype)


def log_near(h: Handler[V], f: V) -> tuple[V, V]:
    """``log(1 + f)`` as an unevaluated sum, ``f`` from ``sqrt(1/2) - 1`` to ``sqrt(2) - 1``."""
    dtype = h.dtype(f)
    half = h.mul(f, h.const(0.5, dtype))
    square = h.mul(f, half)
    square_low = h.fma(f, half, h.neg(square))
    high = h.sub(f, square)
    low = h.sub(h.sub(h.sub(f, high), square), square_low)
    return high, h.fma(h.mul(f, square), even_odd(h, f, TWICE_LOG[dtype]), low)


def _with_special(h: Handler[V], x: V, special: V, usual: V, pole: V) -> V:
    """Values where the logarithm's argument, the sign of which ``pole`` has, is not normal."""
    dtype = h.dtype(x)

    def rare() -> V:
        zero, infinity = h.const(0.0, dtype), h.const(float("inf"), dtype)
        below = h.select(h.eq(pole, zero), h.neg(infinity), h.const(float("nan"), dtype))
        above = h.select(h.eq(pole, infinity), infinity, usual)
        return h.select(h.gt(pole, zero), above, below)

    return h.rarely(special, usual, rare)


def log(h: Handler[V], x: V) -> V:
    """Natural logarithm. ``log(+-0) = -inf``, ``log(inf) = inf``, NaN for negative numbers."""
    dtype = h.dtype(x)
    f = format_of(dtype)
    bits, special = positive_bits(h, x)
    k, m = split(h, bits, dtype)
    fraction, exponent = h.sub(m, h.const(1.0, dtype)), h.convert(k, dtype)
    near, rest = log_near(h, fraction)
    high, low = fast_two_sum(h, h.mul(exponent, h.const(f.ln2_high, dtype)), near)
    low = h.fma(exponent, h.const(f.ln2_low, dtype), h.add(low, rest))
    result = h.add(high, low)
    return _with_special(h, x, special, result, x)


def log_sum(h: Handler[V], x: V) -> tuple[V, V]:
    """``log(x)`` as an unevaluated sum; only for x positive and normal."""
    dtype = h.dtype(x)
    f = format_of(dtype)
    k, m = split(h, h.bitcast(x, f.integer), dtype)
    exponent = h.convert(k, dtype)
    near, rest = log_near(h, h.sub(m, h.const(1.0, dtype)))
    high, low = fast_two_sum(h, h.mul(exponent, h.const(f.ln2_high, dtype)), near)
    return fast_two_sum(h, high, h.fma(exponent, h.const(f.ln2_low, dtype), h.add(low, rest)))


def log1p_sum(h: Handler[V], x: V, x_low: V | None, extra: V | None = None) -> tuple[V, V, V]:
    """``log(1 + x + x_low) + extra * ln2`` as an unevaluated sum; and whether it is special.

    ``1 + x = u + u_low`` exactly and ``u = 2^k m``. Where ``k = 0``, ``f = x`` is used as it is;
    elsewhere the logarithm grows by ``u_low / u``, for which a rough reciprocal is good enough.
    """
    dtype = h.dtype(x)
    f = format_of(dtype)
    zero, one = h.const(0.0, dtype), h.const(1.0, dtype)
    u, u_low = two_sum(h, one, x)
    if x_low is not None:
        u_low = h.add(u_low, x_low)
    bits = h.bitcast(u, f.integer)
    k, m = split(h, bits, dtype)
    close = h.eq(k, h.const(0, f.integer))
    fraction = h.select(close, x, h.sub(m, one))
    digits = h.const(f.fraction, f.integer)
    scale = h.bitcast(h.sub(h.const(f.one_bits, f.integer), h.shl(k, digits)), dtype)
    far = h.ge(x, h.const(2.0 ** (f.fraction + 8), dtype))  # there u_low does not matter
    low = h.select(far, zero, h.mul(u_low, scale))
    low = h.select(close, zero if x_low is None else x_low, low)
    c0, c1, c2 = (h.const(c, dtype) for c in RECIPROCAL)
    low = h.mul(low, h.fma(fraction, h.fma(fraction, c2, c1), c0))
    if extra is not None:
        k = h.add(k, extra)
    exponent = h.convert(k, dtype)
    near, rest = log_near(h, fraction)
    high, error = fast_two_sum(h, h.mul(exponent, h.const(f.ln2_high, dtype)), near)
    rest = h.add(h.add(low, rest), error)
    rest = h.fma(exponent, h.const(f.ln2_low, dtype), rest)
    return high, rest, not_positive_normal(h, bits, dtype)


def log1p(h: Handler[V], x: V) -> V:
    """``log(1 + x)``; keeps the sign of zero, ``-inf`` at -1."""
    high, low, special = log1p_sum(h, x, None)
    result = h.copysign(h.add(high, low), x)
    return _with_special(h, x, special, result, h.add(x, h.const(1.0, h.dtype(x))))


def _other_base(h: Handler[V], x: V, factor: tuple[float, float], unit: tuple[float, float]) -> V:
    """``k unit + log(m) factor``, both products kept to twice the precision."""
    dtype = h.dtype(x)
    bits, special = positive_bits(h, x)
    k, m = split(h, bits, dtype)
    fraction, exponent = h.sub(m, h.const(1.0, dtype)), h.convert(k, dtype)
    high, low = fast_two_sum(h, *log_near(h, fraction))
    factor_high, factor_low = (h.const(c, dtype) for c in factor)
    unit_high, unit_low = (h.const(c, dtype) for c in unit)
    product = h.mul(high, factor_high)
    rest = h.fma(high, factor_high, h.neg(product))
    rest = h.fma(low, factor_high, h.fma(high, factor_low, rest))
    total, error = fast_two_sum(h, h.mul(exponent, unit_high), product)
    rest = h.add(error, h.fma(exponent, unit_low, rest))
    return _with_special(h, x, special, h.add(total, rest), x)


def log2(h: Handler[V], x: V) -> V:
    """Logarithm to base 2; exact for powers of two."""
    f = format_of(h.dtype(x))
    return _other_base(h, x, f.log2_e, (1.0, 0.0))


def log10(h: Handler[V], x: V) -> V:
    """Logarithm to base 10; exact for the powers of ten that are floats."""
    f = format_of(h.dtype(x))
    return _other_base(h, x, f.log10_e, (f.log10_2_high, f.log10_2_low))
