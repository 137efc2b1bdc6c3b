"""Error function and its complement.

``erf`` is odd, and a polynomial of degree 13 (float32: 6) on each of 16 intervals up to 6 (4), all
of one width, so the interval is a rounded multiple and its coefficients are table entries. Each
interval has its own centre ``c`` where ``erf(c)`` is a floating-point number to ten bits more than
the format (S. Gal and B. Bachelis, ACM TOMS 17 (1991): accurate tables), so the leading constant
has no error; nor has the product of ``d = x - c`` with the leading bits of the slope.

``erfc(x) = exp(-x^2) w h(w)`` with ``w = 1/(1 + x/2)`` for ``x >= 0``, ``h`` smooth (W. J. Cody,
Math. Comp. 23 (1969) splits off the exponential; the variable is that of M. M. Shepherd and
J. G. Laframboise, Math. Comp. 36 (1981)) and 2 minus that for ``x < 0``. All factors, and ``x^2``,
carry a low part, so only the last rounding counts: the tail is right to the last subnormal.
"""

from __future__ import annotations

from ..dtypes import float32, float64, int32, int64
from .error_function_tables import ERF_32, ERF_64, ERFC_64
from .polynomial import fast_two_sum, horner, table_horner, two_sum
from .vocabulary import Handler, V

__all__ = ["erf", "erfc"]

_H = float.fromhex
# ((exp r - 1 - r) / r^2 - 1/2) / r for |r| <= log(2)/2; relative errors of exp 2^-63.6, 2^-27.8
_EXP_64 = (
    _H("0x1.555555555555dp-3"),
    _H("0x1.555555555556cp-5"),
    _H("0x1.111111110e53dp-7"),
    _H("0x1.6c16c16c0a308p-10"),
    _H("0x1.a01a01b5fd2dap-13"),
    _H("0x1.a01a01e96e77dp-16"),
    _H("0x1.71ddea8f780f4p-19"),
    _H("0x1.27e447cc3b40fp-22"),
    _H("0x1.af7485c4e3b0dp-26"),
    _H("0x1.20565a4ffb16cp-29"),
)
_EXP_32 = (
    _H("0x1.5554668493c0cp-3"),
    _H("0x1.555300bb8085ep-5"),
    _H("0x1.12578582894d9p-7"),
    _H("0x1.6fed9f17f1920p-10"),
)
# h(w) for 0 <= x <= 10.2, that is 0.163 <= w <= 1; relative error 2^-31.6
_ERFC_32 = (
    _H("0x1.20de71d1ae6f1p-2"),
    _H("0x1.20be17444da87p-2"),
    _H("0x1.fcf365ee12ca5p-3"),
    _H("0x1.4cf9b18cdf5aap-3"),
    _H("0x1.406a605ae0ecep-3"),
    _H("-0x1.107c953dc4a3bp-2"),
    _H("0x1.2fcf8b1731414p-1"),
    _H("-0x1.27b01df9c752dp+0"),
    _H("0x1.34938f2ea4a37p+0"),
    _H("-0x1.6559dceb7b07bp-1"),
    _H("0x1.bd89a4119ffefp-3"),
    _H("-0x1.d89a2f16ff3c6p-6"),
)
_LOG2_E = _H("0x1.71547652b82fep+0")
# 32 bits and the rest: 11-bit multiples of the first are exact
_LOG_2, _LOG_2_LOW = _H("0x1.62e42fefp-1"), _H("0x1.473de6af278edp-34")


def erf(h: Handler[V], x: V) -> V:
    """Error function, within 1 ulp."""
    dtype = h.dtype(x)
    wide = dtype == float64
    integer, columns, magic, end, spacing = (
        (int64, ERF_64, 1.5 * 2.0**52, 6.0, 25 / 64)
        if wide
        else (int32, ERF_32, 1.5 * 2.0**23, 4.0, 17 / 64)
    )
    size, limit = h.abs(x), h.const(end, dtype)
    size = h.select(h.lt(limit, size), limit, size)  # the result is 1 from there on
    # adding 1.5 * 2^52 rounds to an integer, which is found in the low bits
    shifted = h.fma(size, h.const(1.0 / spacing, dtype), h.const(magic, dtype))
    index = h.and_(h.bitcast(shifted, integer), h.const(15, integer))
    centre, value, slope = (h.table(column, index, dtype) for column in columns[:3])
    d = h.sub(size, centre)
    # value + d slope with its rounding error
    first = h.fma(d, slope, value)
    error = h.fma(d, slope, h.sub(value, first))
    rest = h.fma(d, table_horner(h, d, columns[3:], index), error)
    return h.copysign(h.add(first, rest), x)


def erfc(h: Handler[V], x: V) -> V:
    """Complement ``1 - erf(x)``, within 1 ulp, subnormal results included."""
    if h.dtype(x) == float32:
        return _erfc_32(h, x)

    def real(value: float) -> V:
        return h.const(value, float64)

    one, magic = real(1.0), real(1.5 * 2.0**52)
    size = h.abs(x)
    size = h.select(h.gt(size, real(28.0)), real(28.0), size)  # 0 or 2 from there on
    # w + w_low = 1 / (1 + size / 2)
    below, below_low = two_sum(h, one, h.mul(size, real(0.5)))
    w = h.div(one, below)
    remainder = h.fma(h.neg(w), below_low, h.fma(h.neg(w), below, one))
    w_low = h.mul(w, remainder)
    # g + g_low = h(w); the low bits of the shifted number are k - 1
    offset = h.sub(magic, one)
    shifted = h.fma(w, real(16.0), offset)
    index = h.and_(h.bitcast(shifted, int64), h.const(15, int64))
    k = h.sub(shifted, offset)
    d = h.add(h.fma(k, real(-0.0625), w), w_low)
    g, g_low = fast_two_sum(
        h, h.table(ERFC_64[0], index, float64), table_horner(h, d, ERFC_64[1:], index)
    )
    # (e + e_low) 2^n = exp(-size^2)
    square = h.mul(size, size)
    square_low = h.fma(size, size, h.neg(square))
    shifted = h.fma(square, real(-_LOG2_E), magic)
    n = h.sub(shifted, magic)
    r = h.fma(n, real(-_LOG_2), h.neg(square))
    r, r_low = fast_two_sum(h, r, h.fma(n, real(-_LOG_2_LOW), h.neg(square_low)))
    e, e_low = fast_two_sum(h, one, r)
    quadratic = h.mul(h.mul(r, r), h.fma(r, horner(h, r, _EXP_64), real(0.5)))
    e_low = h.add(e_low, h.fma(r_low, e, quadratic))
    # (g + g_low) (e + e_low) (w + w_low)
    first = h.mul(g, e)
    first_low = h.fma(g, e_low, h.fma(g_low, e, h.fma(g, e, h.neg(first))))
    product = h.mul(first, w)
    product_low = h.fma(first, w_low, h.fma(first_low, w, h.fma(first, w, h.neg(product))))
    # two factors whose product is 2^n, for n goes down to -1131 and only the second may round
    exponent = h.sub(h.bitcast(shifted, int64), h.bitcast(magic, int64))
    half = h.shr(exponent, h.const(1, int64))
    scale, scale_more = _power(h, half), _power(h, h.sub(exponent, half))
    tail = h.mul(h.mul(h.add(product, product_low), scale), scale_more)
    product = h.mul(h.mul(product, scale), scale_more)
    product_low = h.mul(h.mul(product_low, scale), scale_more)
    first, error = fast_two_sum(h, real(2.0), h.neg(product))
    return h.select(h.lt(x, real(0.0)), h.add(first, h.sub(error, product_low)), tail)


def _power(h: Handler[V], exponent: V) -> V:
    """``2^exponent`` in float64, as long as that is a normal number."""
    biased = h.add(exponent, h.const(1023, int64))
    return h.bitcast(h.shl(biased, h.const(52, int64)), float64)


def _erfc_32(h: Handler[V], x: V) -> V:
    """The same in float64, where rounding errors do not matter."""

    def real(value: float) -> V:
        return h.const(value, float64)

    one, magic = real(1.0), real(1.5 * 2.0**52)
    wide = h.convert(x, float64)
    size = h.abs(wide)
    size = h.select(h.gt(size, real(10.2)), real(10.2), size)  # 0 or 2 from there on
    w = h.div(one, h.fma(size, real(0.5), one))
    square = h.mul(size, size)
    shifted = h.fma(square, real(-_LOG2_E), magic)
    n = h.sub(shifted, magic)
    r = h.fma(n, real(-_LOG_2 - _LOG_2_LOW), h.neg(square))
    exp = h.fma(h.mul(r, r), h.fma(r, horner(h, r, _EXP_32), real(0.5)), h.add(r, one))
    scale = _power(h, h.sub(h.bitcast(shifted, int64), h.bitcast(magic, int64)))
    tail = h.mul(h.mul(horner(h, w, _ERFC_32), w), h.mul(exp, scale))
    return h.convert(h.select(h.lt(wide, real(0.0)), h.sub(real(2.0), tail), tail), float32)
