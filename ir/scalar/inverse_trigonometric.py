"""Inverse sine, cosine and tangent, and the angle of a point.

* ``asin``, ``acos``: for ``|x| <= 1/2`` the odd polynomial ``x + x z P(z)`` in ``z = x^2``; above,
  ``asin(x) = pi/2 - 2 asin(sqrt((1 - x)/2))``, which brings ``z`` into the same range [0, 1/4].
  The rounding error of the square root is put back from its remainder.
* ``atan``, ``atan2``: the smaller side by the larger one is in [0, 1], and ``atan(a/b) = atan(c) +
  atan((a - c b)/(b + c a))`` with the nearest ``c`` of 0, 1/2, 1 brings the quotient down to 1/4;
  ``a - c b`` is exact. An odd polynomial follows, and the rounding errors of the new denominator
  and of the quotient are put back from the remainder. Everything that is then added or
  subtracted (``atan(c)``, ``pi/2``, ``pi``) is one entry of a table with high and low part.

Constants of the form ``pi/2`` carry a low part, so the last sum rounds once (W. J. Cody and
W. Waite, *Software Manual for the Elementary Functions*, 1980, gives the reductions). Special
values are those of C99, annex F.9.1.
"""

from __future__ import annotations

from typing import NamedTuple

from ..dtypes import DType, float32, float64, int32, int64
from .polynomial import even_odd, horner
from .vocabulary import Handler, V

__all__ = ["acos", "asin", "atan", "atan2"]


class _Constants(NamedTuple):
    """What differs between the formats."""

    integer: DType
    half_pi: tuple[float, float]
    pi: tuple[float, float]
    tiny: float  # lost in a sum with any square root that is not zero; its inverse is finite
    small: float  # a side below is scaled up, so that remainders of quotients do not underflow,
    large: float  # if the other is below this
    scale: float
    huge: float  # twice this is finite
    arc_sine: tuple[float, ...]  # (asin s / s - 1) / s^2 in s^2 on [0, 1/4]
    arc_tangent: tuple[float, ...]  # (atan t / t - 1) / t^2 in t^2 on [0, 1/16]
    base: tuple[float, ...]  # what atan t is added to, see _angle
    base_low: tuple[float, ...]


_H = float.fromhex


def _table(*rows: str) -> tuple[float, ...]:
    return tuple(float.fromhex(entry) for row in rows for entry in row.split())


_CONSTANTS = {
    float64: _Constants(
        int64,
        (_H("0x1.921fb54442d18p+0"), _H("0x1.1a62633145c07p-54")),
        (_H("0x1.921fb54442d18p+1"), _H("0x1.1a62633145c07p-53")),
        _H("0x1p-1000"),
        _H("0x1p-700"),
        _H("0x1p700"),
        _H("0x1p300"),
        _H("0x1p1022"),
        # relative error 2^-59.9
        (
            _H("0x1.5555555555577p-3"),
            _H("0x1.333333332e131p-4"),
            _H("0x1.6db6db7212673p-5"),
            _H("0x1.f1c71a94f3be6p-6"),
            _H("0x1.6e8bdee01ae74p-6"),
            _H("0x1.1c49f06028bf6p-6"),
            _H("0x1.ca1f8d16197d7p-7"),
            _H("0x1.75858cca274bap-7"),
            _H("0x1.613c7994ce5f6p-7"),
            _H("0x1.e5f6bb4ddd3ddp-9"),
            _H("0x1.639c0cccddfb5p-6"),
            _H("-0x1.57fcdf74a133dp-6"),
            _H("0x1.0b4687e0b6452p-5"),
        ),
        # relative error 2^-57.5
        (
            _H("-0x1.55555555554c6p-2"),
            _H("0x1.9999999975242p-3"),
            _H("-0x1.2492490b3087ap-3"),
            _H("0x1.c71c60a8a0295p-4"),
            _H("-0x1.7459e3691ce36p-4"),
            _H("0x1.3ab9e037d4daap-4"),
            _H("-0x1.0b4d6c3e48ae6p-4"),
            _H("0x1.798429dde0f2cp-5"),
        ),
        _table(
            "0x0p0 0x1.dac670561bb4fp-2 0x1.921fb54442d18p-1 0x0p0",
            "0x1.921fb54442d18p+0 0x1.1b6e192ebbe44p+0 0x1.921fb54442d18p-1 0x0p0",
            "0x1.921fb54442d18p+1 0x1.56c6e7397f5aep+1 0x1.2d97c7f3321d2p+1 0x0p0",
            "0x1.921fb54442d18p+0 0x1.0468a8ace4df6p+1 0x1.2d97c7f3321d2p+1 0x0p0",
        ),
        _table(
            "0x0p0 0x1.a2b7f222f65e2p-56 0x1.1a62633145c07p-55 0x0p0",
            "0x1.1a62633145c07p-54 0x1.b1b466a88828ep-54 0x1.1a62633145c07p-55 0x0p0",
            "0x1.1a62633145c07p-53 0x1.660b64ece6f4bp-53 0x1.a79394c9e8a0ap-54 0x0p0",
            "0x1.1a62633145c07p-54 0x1.0620bf7406affp-55 0x1.a79394c9e8a0ap-54 0x0p0",
        ),
    ),
    float32: _Constants(
        int32,
        (_H("0x1.921fb6p+0"), _H("-0x1.777a5cp-25")),
        (_H("0x1.921fb6p+1"), _H("-0x1.777a5cp-24")),
        _H("0x1p-100"),
        _H("0x1p-60"),
        _H("0x1p80"),
        _H("0x1p47"),
        _H("0x1p126"),
        # relative error 2^-31.7
        (
            _H("0x1.55554cp-3"),
            _H("0x1.3338acp-4"),
            _H("0x1.6ca75ap-5"),
            _H("0x1.04d25ep-5"),
            _H("0x1.d532a8p-7"),
            _H("0x1.34bc0cp-5"),
        ),
        # relative error 2^-32.4
        (
            _H("-0x1.55555p-2"),
            _H("0x1.9992dcp-3"),
            _H("-0x1.234296p-3"),
            _H("0x1.933c9cp-4"),
        ),
        _table(
            "0x0p0 0x1.dac67p-2 0x1.921fb6p-1 0x0p0",
            "0x1.921fb6p+0 0x1.1b6e1ap+0 0x1.921fb6p-1 0x0p0",
            "0x1.921fb6p+1 0x1.56c6e8p+1 0x1.2d97c8p+1 0x0p0",
            "0x1.921fb6p+0 0x1.0468a8p+1 0x1.2d97c8p+1 0x0p0",
        ),
        _table(
            "0x0p0 0x1.586ed4p-28 -0x1.777a5cp-26 0x0p0",
            "-0x1.777a5cp-25 -0x1.a28838p-25 -0x1.777a5cp-26 0x0p0",
            "-0x1.777a5cp-24 -0x1.8d014ap-24 -0x1.99bc5cp-28 0x0p0",
            "-0x1.777a5cp-25 0x1.59c9bep-24 -0x1.99bc5cp-28 0x0p0",
        ),
    ),
}


def _arc(h: Handler[V], x: V) -> tuple[V, V, V]:
    """Whether ``|x| > 1/2``, and ``s`` and ``asin(s) - s`` where ``s`` is the reduced argument."""
    dtype = h.dtype(x)
    c = _CONSTANTS[dtype]
    half = h.const(0.5, dtype)
    size = h.abs(x)
    large = h.gt(size, half)
    z = h.select(large, h.mul(h.sub(h.const(1.0, dtype), size), half), h.mul(size, size))
    root = h.sqrt(z)
    # z = (root + e)^2 gives e = (z - root^2) / (2 root)
    remainder = h.fma(h.neg(root), root, z)
    error = h.mul(remainder, h.div(half, h.add(root, h.const(c.tiny, dtype))))
    s = h.select(large, root, size)
    more = h.select(large, error, h.const(0.0, dtype))
    return large, s, h.fma(h.mul(s, z), even_odd(h, z, c.arc_sine), more)


def asin(h: Handler[V], x: V) -> V:
    """Inverse sine, within 1 ulp; NaN outside [-1, 1]."""
    dtype = h.dtype(x)
    high, low = (h.const(part, dtype) for part in _CONSTANTS[dtype].half_pi)
    large, s, rest = _arc(h, x)
    # pi/2 - 2 (s + rest), where the first difference leaves an exact error
    twice = h.add(s, s)
    first = h.sub(high, twice)
    error = h.sub(h.sub(high, first), twice)
    reflected = h.add(first, h.add(error, h.fma(h.const(-2.0, dtype), rest, low)))
    return h.copysign(h.select(large, reflected, h.add(s, rest)), x)


def acos(h: Handler[V], x: V) -> V:
    """Inverse cosine, within 1 ulp; NaN outside [-1, 1].

    ``base - factor (s + rest)`` with base pi/2, 0 or pi and factor 1 or 2 times the sign of x.
    """
    dtype = h.dtype(x)
    c = _CONSTANTS[dtype]
    large, s, rest = _arc(h, x)
    negative = h.lt(x, h.const(0.0, dtype))

    def base(part: int) -> V:
        end = h.select(negative, h.const(c.pi[part], dtype), h.const(0.0, dtype))
        return h.select(large, end, h.const(c.half_pi[part], dtype))

    # from the right end the angle grows with s: 0 + 2 s; from the left one it falls: pi - 2 s
    size = h.select(large, h.const(-2.0, dtype), h.const(1.0, dtype))
    factor = h.select(negative, h.neg(size), size)
    factor = h.select(large, factor, h.copysign(h.const(1.0, dtype), x))
    high, move = base(0), h.mul(factor, s)
    first = h.sub(high, move)
    error = h.sub(h.sub(high, first), move)
    return h.add(first, h.add(error, h.fma(h.neg(factor), rest, base(1))))


def _angle(h: Handler[V], a: V, b: V, case: V, minus: V) -> V:
    """``+-atan(a/b)`` for ``0 <= a <= b`` plus what ``case`` says, a multiple of 4.

    Rows of the table: 0 ``atan(c)``, 4 ``pi/2 - atan(c)``, 8 ``pi - atan(c)`` and 12
    ``pi/2 + atan(c)``; columns: c = 0, 1/2, 1. ``minus`` is set in the middle two.
    """
    dtype = h.dtype(a)
    k = _CONSTANTS[dtype]

    def real(value: float) -> V:
        return h.const(value, dtype)

    def whole(value: int) -> V:
        return h.const(value, k.integer)

    middle, end = h.gt(a, h.mul(b, real(0.25))), h.gt(a, h.mul(b, real(0.75)))
    c = h.select(end, real(1.0), h.select(middle, real(0.5), real(0.0)))
    column = h.select(end, whole(2), h.select(middle, whole(1), whole(0)))
    index = h.or_(case, column)
    above, below = h.fma(h.neg(c), b, a), h.fma(c, a, b)
    below_low = h.fma(c, a, h.sub(b, below))
    inverse = h.div(real(1.0), below)
    t = h.mul(above, inverse)
    remainder = h.fma(h.neg(t), below_low, h.fma(h.neg(t), below, above))
    error = h.mul(remainder, inverse)
    z = h.mul(t, t)
    error = h.fma(h.neg(z), error, error)  # d atan t / dt = 1 - z + ...
    rest = h.fma(h.mul(t, z), horner(h, z, k.arc_tangent), error)
    # base + t, where the sum leaves an exact error
    base, base_low = h.table(k.base, index, dtype), h.table(k.base_low, index, dtype)
    move, rest = h.select(minus, h.neg(t), t), h.select(minus, h.neg(rest), rest)
    first = h.add(base, move)
    return h.add(first, h.add(h.add(h.sub(base, first), move), h.add(base_low, rest)))


def atan(h: Handler[V], x: V) -> V:
    """Inverse tangent, within 1 ulp."""
    dtype = h.dtype(x)
    integer = _CONSTANTS[dtype].integer
    one, huge = h.const(1.0, dtype), h.const(_H("0x1p60"), dtype)
    size = h.abs(x)
    size = h.select(h.gt(size, huge), huge, size)  # the result is the same, but for infinity
    steep = h.gt(size, one)
    case = h.select(steep, h.const(4, integer), h.const(0, integer))
    a, b = h.select(steep, one, size), h.select(steep, size, one)
    return h.copysign(_angle(h, a, b, case, steep), x)


def atan2(h: Handler[V], y: V, x: V) -> V:
    """Angle of the point ``(x, y)``, within 1 ulp, in [-pi, pi]; signed zeros count."""
    dtype = h.dtype(x)
    c = _CONSTANTS[dtype]
    zero, one, infinity = (h.const(value, dtype) for value in (0.0, 1.0, float("inf")))
    rise, run = h.abs(y), h.abs(x)
    steep = h.gt(rise, run)
    a, b = h.select(steep, run, rise), h.select(steep, rise, run)
    # 0/0 counts as 0/1, inf/inf as 1/1, finite/inf as 0/1
    endless = h.eq(b, infinity)
    finite = h.select(h.eq(a, infinity), one, h.mul(a, zero))  # a * 0 keeps NaN
    a = h.select(endless, finite, a)
    b = h.select(h.or_(endless, h.eq(b, zero)), one, b)
    tiny = h.lt(a, h.const(c.small, dtype))
    tiny = h.and_(tiny, h.lt(b, h.const(c.large, dtype)))
    # b + c a must not overflow either
    scale = h.select(h.gt(b, h.const(c.huge, dtype)), h.const(0.25, dtype), one)
    scale = h.select(tiny, h.const(c.scale, dtype), scale)
    left = h.lt(h.bitcast(x, c.integer), h.const(0, c.integer))
    zero_case = h.const(0, c.integer)
    case = h.or_(
        h.select(steep, h.const(4, c.integer), zero_case),
        h.select(left, h.const(8, c.integer), zero_case),
    )
    angle = _angle(h, h.mul(a, scale), h.mul(b, scale), case, h.xor(steep, left))
    return h.copysign(angle, y)
