"""Elementwise functions that are made of others: roundings, scalings, replacements, sinc, frexp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..dtypes import bool_, float64, int32, promote
from ..errors import DTypeError
from ..graph import Value
from ..ops import (
    abs_,
    atan2,
    complex_,
    copysign,
    eq,
    exp2,
    floor,
    floor_divide,
    ge,
    gt,
    imag,
    isfinite,
    isinf,
    isnan,
    log2,
    logical_and,
    logical_or,
    lt,
    maximum,
    minimum,
    nextafter,
    power,
    real,
    remainder,
    rint,
    trunc,
    where,
)
from ..ops import clip as _clip
from ..ops.leaves import constant
from ..ops.operands import as_value, convert, inexact_operands, operands
from ..ops.shape import broadcast
from .arguments import as_inexact, fail, static_int

__all__ = [
    "angle",
    "around",
    "clip",
    "copy",
    "deg2rad",
    "divmod",
    "fabs",
    "fix",
    "float_power",
    "fmax",
    "fmin",
    "frexp",
    "heaviside",
    "iscomplex",
    "isneginf",
    "isposinf",
    "isreal",
    "ldexp",
    "minmax",
    "modf",
    "nan_to_num",
    "positive",
    "rad2deg",
    "round",
    "spacing",
]


def _real(name: str, x: Any) -> Value:
    value = as_inexact(name, x)
    if value.dtype.is_complex:
        fail(DTypeError(f"{name}: is not defined for {value.dtype}; take the real part"))
    return value


def positive(x: Any) -> Value:
    """``+x``: the operand itself."""
    return operands("positive", x, kinds="iufc")[0]


def copy(a: Any, order: str = "K") -> Value:
    """The array itself: arrays are immutable, a copy cannot be told from it."""
    return as_value(a)


def round(x: Any, decimals: Any = 0) -> Value:
    """``x`` rounded to ``decimals`` places, halves to even; derivative 0.

    Computed as ``rint(x 10^d) / 10^d``, NumPy's formula.
    """
    value, digits = as_value(x), static_int("round", "decimals", decimals)
    if value.dtype.is_complex:
        return complex_(round(real(value), digits), round(imag(value), digits))
    if value.dtype.is_bool:
        fail(DTypeError("round: is not defined for bool; convert with astype"))
    if value.dtype.is_integer:
        if digits >= 0:
            return value
        step = 10.0**-digits
        return convert(rint(convert(value, float64) / step) * step, value.dtype)
    if digits == 0:
        return rint(value)
    step = 10.0 ** abs(digits)
    return rint(value * step) / step if digits > 0 else rint(value / step) * step


def clip(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Value:
    """``minimum(maximum(a, a_min), a_max)``; ``None`` is no bound, NaN stays.

    ``min`` and ``max`` are the Array API's names of the bounds. At a bound the derivative goes to
    the bound, that of ``a`` is 0.
    """
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    return _clip(a, low, high)


def around(a: Any, decimals: Any = 0) -> Value:
    """NumPy's other name of :func:`round`."""
    return round(a, decimals)


def fix(x: Any) -> Value:
    """``x`` rounded towards zero."""
    return trunc(x)


def fabs(x: Any) -> Value:
    """Magnitude of real numbers, floating."""
    return abs_(_real("fabs", x))


def deg2rad(x: Any) -> Value:
    """Degrees to radians."""
    return _real("deg2rad", x) * (math.pi / 180.0)


def rad2deg(x: Any) -> Value:
    """Radians to degrees."""
    return _real("rad2deg", x) * (180.0 / math.pi)


def angle(z: Any, deg: bool = False) -> Value:
    """The argument of complex numbers, in [-pi, pi]; in degrees if ``deg``."""
    value = as_inexact("angle", z)
    result = (
        atan2(imag(value), real(value))
        if value.dtype.is_complex
        else atan2(constant(0.0, value.dtype), value)
    )
    return rad2deg(result) if deg else result


def float_power(x1: Any, x2: Any) -> Value:
    """``x1 ** x2`` in float64 (complex128) at least."""
    x, y = operands("float_power", x1, x2)
    target = promote(x.dtype, float64)
    return power(convert(x, target), convert(y, target))


def divmod(x1: Any, x2: Any) -> tuple[Value, Value]:
    """Floor quotient and remainder."""
    return floor_divide(x1, x2), remainder(x1, x2)


def modf(x: Any) -> tuple[Value, Value]:
    """Fractional and integral parts, both with the sign of ``x``."""
    value = _real("modf", x)
    whole = trunc(value)
    part = where(isinf(value), 0.0, value - whole)
    return where(eq(part, 0), copysign(constant(0.0, value.dtype), value), part), whole


def _scaled(x: Value, exponent: Value) -> Value:
    """``x * 2**exponent`` in float64, rounded once.

    Powers of two are applied in pieces that do not overflow; the small piece first, so that only
    the last product can be subnormal without vanishing altogether.
    """
    bounded = minimum(maximum(exponent, -3000), 3000)
    steps = where(
        gt(bounded, 1000),
        where(gt(bounded, 2000), 2, 1),
        where(lt(bounded, -1000), where(lt(bounded, -2000), -2, -1), 0),
    )
    first = convert(bounded - steps * 1000, float64)
    half = where(gt(steps, 0), 2.0**1000, where(lt(steps, 0), 2.0**-1000, 1.0))
    twice = where(gt(steps, 1), 2.0**1000, where(lt(steps, -1), 2.0**-1000, 1.0))
    return x * exp2(first) * half * twice


def ldexp(x1: Any, x2: Any) -> Value:
    """``x1 * 2**x2``, rounded once; ``x2`` is an integer."""
    value, exponent = _real("ldexp", x1), as_value(x2)
    if not exponent.dtype.is_integer:
        fail(DTypeError(f"ldexp: expected integer exponents, got {exponent.type}"))
    exponent = convert(exponent, "int64")
    return convert(_scaled(convert(value, float64), exponent), value.dtype)


def frexp(x: Any) -> tuple[Value, Value]:
    """Mantissa in [0.5, 1) and int32 exponent with ``x = mantissa * 2**exponent``.

    0, inf and NaN are their own mantissa, with exponent 0. The derivative of the mantissa is
    ``2**-exponent``.
    """
    original = _real("frexp", x)
    value = convert(original, float64)
    usual = logical_and(isfinite(value), logical_or(gt(value, 0), lt(value, 0)))
    safe = where(usual, value, 1.0)
    tiny = lt(abs_(safe), 2.0**-1000)
    safe = where(tiny, safe * 2.0**100, safe)
    guess = convert(floor(log2(abs_(safe))), "int64") + 1
    part = _scaled(safe, -guess)  # off by one place at most: log2 is within an ulp
    big, small = ge(abs_(part), 1.0), lt(abs_(part), 0.5)
    part = where(big, part * 0.5, where(small, part * 2.0, part))
    exponent = guess + where(big, 1, where(small, -1, 0)) - where(tiny, 100, 0)
    mantissa = convert(where(usual, part, value), original.dtype)
    return mantissa, convert(where(usual, exponent, 0), int32)


def spacing(x: Any) -> Value:
    """The distance to the next number away from zero."""
    value = _real("spacing", x)
    away = copysign(constant(math.inf, value.dtype), value)
    return nextafter(value, away) - value


def heaviside(x1: Any, x2: Any) -> Value:
    """0 below zero, ``x2`` at zero, 1 above; NaN stays NaN."""
    x, middle = inexact_operands("heaviside", x1, x2, kinds="f")
    step = where(lt(x, 0), 0.0, where(eq(x, 0), middle, 1.0))
    return where(isnan(x), math.nan, step)


def fmax(x1: Any, x2: Any) -> Value:
    """The larger one; of a number and NaN the number."""
    x, y = operands("fmax", x1, x2)
    if not x.dtype.is_inexact:
        return maximum(x, y)
    return where(isnan(x), y, where(isnan(y), x, maximum(x, y)))


def fmin(x1: Any, x2: Any) -> Value:
    """The smaller one; of a number and NaN the number."""
    x, y = operands("fmin", x1, x2)
    if not x.dtype.is_inexact:
        return minimum(x, y)
    return where(isnan(x), y, where(isnan(y), x, minimum(x, y)))


def minmax(x1: Any, x2: Any) -> tuple[Value, Value]:
    """The smaller and the larger one."""
    return minimum(x1, x2), maximum(x1, x2)


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Value:
    """NaN and infinities replaced: by 0 and the largest finite numbers unless given.

    The derivative at a replaced element is 0 (with respect to ``x``).
    """
    value = as_value(x)
    if not value.dtype.is_inexact:
        return value
    if value.dtype.is_complex:
        parts = (nan_to_num(part, copy, nan, posinf, neginf) for part in (real(value), imag(value)))
        return complex_(*parts)
    limits = np.finfo(value.dtype.numpy)
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf
    result = where(isnan(value), nan, value)
    result = where(eq(value, math.inf), high, result)
    return convert(where(eq(value, -math.inf), low, result), value.dtype)


def isposinf(x: Any) -> Value:
    """Whether elements are +inf."""
    return eq(_real("isposinf", x), math.inf)


def isneginf(x: Any) -> Value:
    """Whether elements are -inf."""
    return eq(_real("isneginf", x), -math.inf)


def isreal(x: Any) -> Value:
    """Whether imaginary parts are 0."""
    value = as_value(x)
    if value.dtype.is_complex:
        return eq(imag(value), 0)
    return broadcast(constant(True, bool_), value.shape, ())


def iscomplex(x: Any) -> Value:
    """Whether imaginary parts are not 0."""
    from ..ops import logical_not

    return logical_not(isreal(x))
