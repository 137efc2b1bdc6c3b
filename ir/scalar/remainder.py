"""Division with remainder, for integers and floats; float remainders are exact.

``fmod`` of a float quotient below 2**52 is one step: ``q = trunc(x / y)`` may be one too large, the
fused ``x - q y`` is exact all the same, and one addition of ``y`` repairs it. Larger quotients are
rare. There ``x = m 2^e``, ``y = n 2^f`` with integer mantissas and ``e >= f``, and the remainder of
``m 2^(e - f)`` by ``n`` is computed by modular exponentiation: six bits of ``e - f`` at once, then
six squarings modulo ``n``. A product modulo ``n < 2**53`` is exact in 64-bit integers: the float
quotient ``a b / n`` is off by less than 3, so ``a b - q n``, which wraps, is known to lie within
``4 n``.
"""

from __future__ import annotations

from ..dtypes import DType, float64, int64
from .vocabulary import Handler, V

__all__ = ["floor_divide", "fmod", "remainder"]


# ------------------------------------------------------------------------------------- integers


def _floored(h: Handler[V], x: V, y: V) -> tuple[V, V]:
    """Quotient toward minus infinity and the remainder with the sign of ``y``."""
    dtype = h.dtype(x)
    q, r = h.idiv(x, y), h.irem(x, y)
    if not dtype.is_signed:
        return q, r
    zero, one = h.const(0, dtype), h.const(1, dtype)
    # signs differ and the remainder is not zero: one step down
    down = h.and_(h.ne(r, zero), h.lt(h.xor(r, y), zero))
    return h.select(down, h.sub(q, one), q), h.select(down, h.add(r, y), r)


# ---------------------------------------------------------------------------------------- floats


def _multiply_modulo(h: Handler[V], a: V, b: V, n: V, n_float: V) -> V:
    """``a b mod n`` for ``0 <= a, b < n < 2**53`` (int64)."""
    zero = h.const(0, int64)
    quotient = h.div(h.mul(h.convert(a, float64), h.convert(b, float64)), n_float)
    r = h.sub(h.mul(a, b), h.mul(h.convert(quotient, int64), n))
    for _ in range(2):
        r = h.select(h.lt(r, zero), h.add(r, n), r)
    for _ in range(2):
        r = h.select(h.ge(r, n), h.sub(r, n), r)
    return r


def _mantissa_and_exponent(h: Handler[V], x: V) -> tuple[V, V]:
    """Integers ``m < 2**53`` and ``e`` with ``x = m 2^(e - 1075)``, for a positive float64."""
    bits = h.bitcast(x, int64)
    exponent = h.shr(bits, h.const(52, int64))
    mantissa = h.and_(bits, h.const((1 << 52) - 1, int64))
    subnormal = h.eq(exponent, h.const(0, int64))
    full = h.or_(mantissa, h.const(1 << 52, int64))
    return h.select(subnormal, mantissa, full), h.select(subnormal, h.const(1, int64), exponent)


def _long_remainder(h: Handler[V], x: V, y: V) -> V:
    """``x mod y`` for float64 ``x > y > 0`` whatever the quotient."""
    m, e = _mantissa_and_exponent(h, x)
    n, f = _mantissa_and_exponent(h, y)
    zero, one, six = (h.const(c, int64) for c in (0, 1, 6))
    shift = h.sub(e, f)  # 0 <= shift < 2**11 + 2**6: 6 bits and 6 bits
    shift = h.select(h.lt(shift, zero), zero, shift)  # lanes that do not need this
    n = h.select(h.lt(n, one), one, n)
    n_float = h.convert(n, float64)
    power = h.irem(h.shl(one, h.shr(shift, six)), n)  # shift >> 6 is at most 32
    for place in range(5, -1, -1):
        power = _multiply_modulo(h, power, power, n, n_float)
        doubled = h.add(power, power)
        doubled = h.select(h.ge(doubled, n), h.sub(doubled, n), doubled)
        bit = h.and_(h.shr(shift, h.const(place, int64)), one)
        power = h.select(h.eq(bit, one), doubled, power)
    r = _multiply_modulo(h, h.irem(m, n), power, n, n_float)
    return _at_exponent(h, r, f)


def _at_exponent(h: Handler[V], r: V, biased: V) -> V:
    """``r 2^(biased - 1075)`` for an integer ``r < 2**53``, exactly.

    The result is a multiple of the unit in the last place of the divisor and below it, so it is
    representable. Two factors, as one may be subnormal or the other too large.
    """
    half = h.shr(biased, h.const(1, int64))
    rest = h.sub(biased, half)
    return h.mul(
        h.mul(h.convert(r, float64), _power(h, h.sub(half, h.const(537, int64)))),
        _power(h, h.sub(rest, h.const(538, int64))),
    )


def _power(h: Handler[V], exponent: V) -> V:
    """``2**exponent`` for a normal result."""
    biased = h.add(exponent, h.const(1023, int64))
    return h.bitcast(h.shl(biased, h.const(52, int64)), float64)


def _fmod(h: Handler[V], x: V, y: V) -> V:
    dtype: DType = h.dtype(x)
    zero = h.const(0.0, dtype)
    a, b = h.abs(x), h.abs(y)
    quotient = h.div(a, b)
    far = h.gt(quotient, h.const(2.0 ** (52 if dtype is float64 else 23), dtype))
    r = h.fma(h.neg(h.trunc(quotient)), b, a)
    usual = h.select(h.lt(r, zero), h.add(r, b), r)

    def long() -> V:
        wide = _long_remainder(h, h.convert(a, float64), h.convert(b, float64))
        return h.convert(wide, dtype)

    r = h.rarely(far, usual, long)
    inf = h.const(float("inf"), dtype)
    r = h.select(h.lt(a, b), a, r)  # also for an infinite divisor
    valid = h.and_(h.lt(a, inf), h.gt(b, zero))
    result = h.select(valid, h.copysign(r, x), h.const(float("nan"), dtype))
    return h.select(h.ne(y, y), y, h.select(h.ne(x, x), x, result))


def _settled(h: Handler[V], x: V, y: V) -> tuple[V, V]:
    """The truncated remainder, and whether it has to move by one divisor."""
    zero = h.const(0.0, h.dtype(x))
    r = _fmod(h, x, y)
    return r, h.and_(h.ne(r, zero), h.xor(h.lt(y, zero), h.lt(r, zero)))


def _float_remainder(h: Handler[V], x: V, y: V) -> V:
    zero = h.const(0.0, h.dtype(x))
    r, moves = _settled(h, x, y)
    return h.select(h.eq(r, zero), h.copysign(zero, y), h.select(moves, h.add(r, y), r))


def _float_floor_divide(h: Handler[V], x: V, y: V) -> V:
    """Python's and NumPy's rule (npy_divmod): the rounded exact quotient, made whole."""
    dtype = h.dtype(x)
    zero, one, half = (h.const(c, dtype) for c in (0.0, 1.0, 0.5))
    r, moves = _settled(h, x, y)
    quotient = h.div(h.sub(x, r), y)
    quotient = h.select(moves, h.sub(quotient, one), quotient)
    whole = h.floor(quotient)
    whole = h.select(h.gt(h.sub(quotient, whole), half), h.add(whole, one), whole)
    plain = h.div(x, y)
    whole = h.select(h.eq(quotient, zero), h.copysign(zero, plain), whole)
    return h.select(h.eq(y, zero), plain, whole)


# ------------------------------------------------------------------------------------- both kinds


def fmod(h: Handler[V], x: V, y: V) -> V:
    """The remainder with the sign of ``x``. Floats: exact; NaN for a zero divisor or infinite x."""
    return _fmod(h, x, y) if h.dtype(x).is_floating else h.irem(x, y)


def remainder(h: Handler[V], x: V, y: V) -> V:
    """The remainder with the sign of ``y``."""
    return _float_remainder(h, x, y) if h.dtype(x).is_floating else _floored(h, x, y)[1]


def floor_divide(h: Handler[V], x: V, y: V) -> V:
    """The quotient rounded down."""
    return _float_floor_divide(h, x, y) if h.dtype(x).is_floating else _floored(h, x, y)[0]
