"""Cube root and length of a vector of two.

``cbrt``: with ``|x| = m 8^q``, m in [1, 8), a polynomial gives ``y ~ m^(-1/3)`` to 9 to 12 bits and
a step of ``y (1 - e)^(-1/3)``, ``e = 1 - m y^3``, as a series in ``e`` doubles or triples them
without a division. ``t = m y^2`` is then near the root, and its exact residual ``m - t^3`` corrects
it (Newton's step for the root itself); the last addition is the only rounding that counts, so
cubes of integers give integers.

``hypot``: the sum of squares is carried with its rounding errors, and the remainder of the square
root corrects it. Large and small operands are scaled. float32 is done in float64, where squares
are exact and nothing overflows.
"""

from __future__ import annotations

from typing import NamedTuple

from ..dtypes import DType, float32, float64, int32, int64
from .polynomial import fast_two_sum, horner
from .vocabulary import Handler, V

__all__ = ["cbrt", "hypot"]


class _Constants(NamedTuple):
    """What differs between the formats."""

    integer: DType
    mantissa: int  # explicit bits
    bias: int
    normal: float  # smallest normal number
    lift: int  # a multiple of 3: subnormal numbers times 2^lift are normal
    start: tuple[float, ...]  # m^(-1/3) on [1, 2)
    step: tuple[float, ...]  # ((1 - e)^(-1/3) - 1) / e


_H = float.fromhex
_CONSTANTS = {
    float64: _Constants(
        int64,
        52,
        1023,
        _H("0x1p-1022"),
        54,
        # relative error 2^-11.9
        (
            _H("0x1.8ab90075af995p+0"),
            _H("-0x1.9eb2ea0f1cd68p-1"),
            _H("0x1.456222f1865acp-2"),
            _H("-0x1.9915c1cc90deep-5"),
        ),
        (1.0 / 3.0, 2.0 / 9.0),
    ),
    float32: _Constants(
        int32,
        23,
        127,
        _H("0x1p-126"),
        24,
        # relative error 2^-9.1
        (_H("0x1.635e06p+0"), _H("-0x1.eeeb6ep-2"), _H("0x1.7e8e88p-4")),
        (1.0 / 3.0,),
    ),
}


def cbrt(h: Handler[V], x: V) -> V:
    """Real cube root, within 0.51 ulp; exact for cubes."""
    dtype = h.dtype(x)
    c = _CONSTANTS[dtype]

    def real(value: float) -> V:
        return h.const(value, dtype)

    def whole(value: int) -> V:
        return h.const(value, c.integer)

    size = h.abs(x)
    subnormal = h.lt(size, real(c.normal))
    normal = h.select(subnormal, h.mul(size, real(2.0**c.lift)), size)
    bits = h.bitcast(normal, c.integer)
    # e + bias = 3 (q + shift) + r; a third of a number below 3000 is (n * 43691) >> 17
    exponent = h.shr(bits, whole(c.mantissa))
    excess = (-c.bias) % 3
    raised = h.add(exponent, whole(excess))
    third = h.shr(h.mul(raised, whole(43691)), whole(17))
    r = h.sub(raised, h.mul(third, whole(3)))
    fraction = h.and_(bits, whole((1 << c.mantissa) - 1))
    m1 = h.bitcast(h.or_(fraction, whole(c.bias << c.mantissa)), dtype)  # in [1, 2)
    m = h.bitcast(
        h.or_(fraction, h.shl(h.add(r, whole(c.bias)), whole(c.mantissa))), dtype
    )  # in [1, 8)
    third_power = h.select(
        h.eq(r, whole(2)),
        real(2.0 ** (-2 / 3)),
        h.select(h.eq(r, whole(1)), real(2.0 ** (-1 / 3)), real(1.0)),
    )
    y = h.mul(horner(h, m1, c.start), third_power)
    e = h.fma(h.neg(h.mul(h.mul(m, y), y)), y, real(1.0))
    y = h.fma(h.mul(y, e), horner(h, e, c.step), y)
    y_square = h.mul(y, y)
    t = h.mul(m, y_square)
    # m - t^3, where t^2 and its product with t are split into value and error
    square = h.mul(t, t)
    square_error = h.fma(t, t, h.neg(square))
    cube = h.mul(square, t)
    cube_error = h.fma(square, t, h.neg(cube))
    residual = h.sub(h.sub(h.sub(m, cube), cube_error), h.mul(square_error, t))
    # (t + d)^3 = m gives d = residual / (3 t^2), and 1/t^2 = y^2
    root = h.fma(h.mul(residual, y_square), real(1.0 / 3.0), t)
    # 2^q; bias + excess = 3 * shift
    shift = (c.bias + excess) // 3
    lifted = h.select(subnormal, whole(-shift - c.lift // 3), whole(-shift))
    scale = h.add(h.add(third, lifted), whole(c.bias))
    root = h.mul(root, h.bitcast(h.shl(scale, whole(c.mantissa)), dtype))
    # 0, infinity and NaN are their own roots; x + x quiets a NaN
    proper = h.and_(h.gt(size, real(0.0)), h.lt(size, real(float("inf"))))
    return h.copysign(h.select(proper, root, h.add(size, size)), x)


def hypot(h: Handler[V], x: V, y: V) -> V:
    """``sqrt(x^2 + y^2)`` within 1 ulp; infinite if an operand is, even if the other is NaN."""
    if h.dtype(x) == float32:
        wide_x, wide_y = h.convert(x, float64), h.convert(y, float64)
        # squares are exact and the sum has 53 bits: this rounds a value good to 2^-52
        length = h.sqrt(h.fma(wide_x, wide_x, h.mul(wide_y, wide_y)))
        return _or_infinite(h, x, y, h.convert(length, float32))

    def real(value: float) -> V:
        return h.const(value, float64)

    x, y = h.abs(x), h.abs(y)
    swap = h.lt(x, y)
    a, b = h.select(swap, y, x), h.select(swap, x, y)
    large, small = h.gt(a, real(2.0**500)), h.lt(a, real(2.0**-400))
    scale = h.select(large, real(2.0**-600), h.select(small, real(2.0**600), real(1.0)))
    back = h.select(large, real(2.0**600), h.select(small, real(2.0**-600), real(1.0)))
    a, b = h.mul(a, scale), h.mul(b, scale)
    a_square, b_square = h.mul(a, a), h.mul(b, b)
    a_error = h.fma(a, a, h.neg(a_square))
    b_error = h.fma(b, b, h.neg(b_square))
    total, error = fast_two_sum(h, a_square, b_square)
    error = h.add(error, h.add(a_error, b_error))
    root = h.sqrt(total)
    # total + error = (root + d)^2; the tiny number makes 0/0 a zero
    remainder = h.add(h.fma(h.neg(root), root, total), error)
    root = h.add(root, h.div(remainder, h.add(h.add(root, root), real(2.0**-1000))))
    return _or_infinite(h, x, y, h.mul(root, back))


def _or_infinite(h: Handler[V], x: V, y: V, length: V) -> V:
    infinity = h.const(float("inf"), h.dtype(x))
    endless = h.or_(h.eq(h.abs(x), infinity), h.eq(h.abs(y), infinity))
    return h.select(endless, infinity, length)
