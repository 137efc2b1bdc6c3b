"""Magnitude, sign and rounding: abs, sign, floor, ceil, trunc, rint, copysign, and float bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import bool_, int32, int64
from ..graph import Op, Value, make
from ..scalar.complexes import absolute
from .comparison import eq
from .complexes import complex_, conj, imag, real
from .domains import SIZE, between
from .elementwise import elementwise
from .operands import as_value, inexact_operands, operands
from .scaling import scale
from .selection import where

__all__ = [
    *("ABS", "CEIL", "COPYSIGN", "FLOOR", "NEXTAFTER", "RINT", "SIGN", "SIGNBIT", "TRUNC"),
    *("abs_", "ceil", "copysign", "floor", "nextafter", "rint", "sign", "signbit", "trunc"),
]

# ------------------------------------------------------------------------------- abs and sign


def _abs_partial(t: Value, x: Value, out: Value) -> Value:
    """d|x| = sign(x) dx, zero at zero; for complex x it is Re(conj(x / |x|) dx)."""
    direction = sign(x)
    return real(scale(t, conj(direction))) if x.dtype.is_complex else scale(t, direction)


ABS = elementwise(
    "abs",
    kinds="biufc",
    reference=np.absolute,
    scalar=lambda h, x: h.abs(x) if h.dtype(x).kind in "if" else x,
    complex_scalar=absolute,
    partials=(_abs_partial,),
    result=lambda d: d.real,
    doc="|x|: wraps at the integer minimum, +0 for both zeros, the real modulus of a complex "
    "number without overflow. The derivative at zero is zero (numerics 3).",
    samples=between((0.3, 2), signed=True),
    why_not={"transpose": "not linear"},
)


def abs_(x: Any) -> Value:
    return make(ABS, operands("abs", x))


def _sign(h: Any, x: Any) -> Any:
    dtype = h.dtype(x)
    zero, one = h.const(0, dtype), h.const(1, dtype)
    if not dtype.is_floating and not dtype.is_signed:
        return h.select(h.gt(x, zero), one, zero)
    # The last choice is zero or NaN; -0 gives +0.
    rest = h.select(h.eq(x, zero), zero, x)
    return h.select(h.gt(x, zero), one, h.select(h.lt(x, zero), h.const(-1, dtype), rest))


SIGN = elementwise(
    "sign",
    kinds="iuf",
    reference=np.sign,
    scalar=_sign,
    partials=(None,),
    doc="-1, 0 or 1; NaN for NaN.",
    samples=between((0.3, 2), signed=True),
    why_not={
        "transpose": "its derivative is zero",
        "complex_scalar": "the builder composes x / |x|, which has a derivative",
    },
)


def sign(x: Any) -> Value:
    """-1, 0 or 1; for complex ``x`` it is ``x / |x|``, and 0 at 0 (NumPy 2)."""
    x = as_value(x)
    if not x.dtype.is_complex:
        return make(SIGN, operands("sign", x, kinds="iuf"))
    size = abs_(x)
    return where(eq(size, 0), 0, complex_(real(x) / size, imag(x) / size))


# ---------------------------------------------------------------------------------- rounding

_ROUNDING_WHY_NOT = {
    "transpose": "its derivative is zero",
    "complex_scalar": "complex numbers have no order to round in",
}


def _between_integers(rng: Any, dtype: Any) -> tuple[Any]:
    return ((rng.integers(-5, 5, SIZE) + rng.uniform(0.1, 0.4, SIZE)).astype(dtype),)


def _unless_whole(op: Op, x: Any) -> Value:
    """``x`` rounded by ``op``; integers and bools are whole already (NumPy 2.1, Array API)."""
    value = as_value(x)
    if value.dtype.is_integer or value.dtype.is_bool:
        return value
    return make(op, operands(op.name, value, kinds="f"))


FLOOR = elementwise(
    "floor",
    kinds="f",
    reference=np.floor,
    scalar=lambda h, x: h.floor(x),
    partials=(None,),
    doc="Largest whole number not above x; keeps the sign of zero.",
    samples=_between_integers,
    why_not=_ROUNDING_WHY_NOT,
)


def floor(x: Any) -> Value:
    return _unless_whole(FLOOR, x)


CEIL = elementwise(
    "ceil",
    kinds="f",
    reference=np.ceil,
    scalar=lambda h, x: h.ceil(x),
    partials=(None,),
    doc="Smallest whole number not below x; keeps the sign (-0.5 gives -0).",
    samples=_between_integers,
    why_not=_ROUNDING_WHY_NOT,
)


def ceil(x: Any) -> Value:
    return _unless_whole(CEIL, x)


TRUNC = elementwise(
    "trunc",
    kinds="f",
    reference=np.trunc,
    scalar=lambda h, x: h.trunc(x),
    partials=(None,),
    doc="x without its fraction; keeps the sign.",
    samples=_between_integers,
    why_not=_ROUNDING_WHY_NOT,
)


def trunc(x: Any) -> Value:
    return _unless_whole(TRUNC, x)


RINT = elementwise(
    "rint",
    kinds="f",
    reference=np.rint,
    scalar=lambda h, x: h.rint(x),
    partials=(None,),
    doc="Nearest whole number, ties to even; keeps the sign.",
    samples=_between_integers,
    why_not=_ROUNDING_WHY_NOT,
)


def rint(x: Any) -> Value:
    """Integers become float64 (NumPy); both parts of a complex number are rounded."""
    x = inexact_operands("rint", x)[0]
    if x.dtype.is_complex:
        return complex_(rint(real(x)), rint(imag(x)))
    return make(RINT, (x,))


# --------------------------------------------------------------------------------- float bits

COPYSIGN = elementwise(
    "copysign",
    kinds="f",
    reference=np.copysign,
    scalar=lambda h, x, y: h.copysign(x, y),
    partials=(lambda t, x, y, out: scale(t, sign(x) * copysign(1, y)), None),
    doc="|x| with the sign bit of y, that of a zero or NaN included.",
    samples=between((0.3, 2), (0.3, 2), signed=True),
    why_not={"transpose": "not linear", "complex_scalar": "a complex number has no sign bit"},
)


def copysign(x: Any, y: Any) -> Value:
    return make(COPYSIGN, inexact_operands("copysign", x, y, kinds="f"))


def _float_bits(h: Any, x: Any) -> Any:
    """The bits of a float as a signed integer."""
    return h.bitcast(x, int64 if h.dtype(x).bits == 64 else int32)


def _signbit(h: Any, x: Any) -> Any:
    bits = _float_bits(h, x)
    return h.lt(bits, h.const(0, h.dtype(bits)))


SIGNBIT = elementwise(
    "signbit",
    kinds="f",
    reference=np.signbit,
    scalar=_signbit,
    result=bool_,
    doc="Whether the sign bit is set: true for -0 too.",
    samples=between((0.3, 2), signed=True),
    why_not={
        "jvp": "the result is bool",
        "transpose": "the result is bool",
        "complex_scalar": "a complex number has no sign bit",
    },
)


def signbit(x: Any) -> Value:
    return make(SIGNBIT, inexact_operands("signbit", x, kinds="f"))


def _nextafter(h: Any, x: Any, y: Any) -> Any:
    """Neighbours of one sign have neighbouring bits, taken as integers."""
    dtype, bits = h.dtype(x), _float_bits(h, x)
    zero, one = h.const(0.0, dtype), h.const(1, h.dtype(bits))
    inward = h.xor(h.gt(y, x), h.gt(x, zero))
    step = h.select(inward, h.sub(bits, one), h.add(bits, one))
    smallest = h.copysign(h.bitcast(one, dtype), y)
    moved = h.select(h.eq(x, zero), smallest, h.bitcast(step, dtype))
    missing = h.or_(h.ne(x, x), h.ne(y, y))
    return h.select(missing, h.add(x, y), h.select(h.eq(x, y), y, moved))


NEXTAFTER = elementwise(
    "nextafter",
    kinds="f",
    reference=np.nextafter,
    scalar=_nextafter,
    partials=(lambda t, x, y, out: t, None),
    doc="The neighbour of x in the direction of y; y where they are equal. x plus a rounding "
    "error, so its derivative is one.",
    samples=between((0.3, 2), (0.3, 2), signed=True),
    why_not={"transpose": "not linear", "complex_scalar": "complex numbers have no order"},
)


def nextafter(x: Any, y: Any) -> Value:
    return make(NEXTAFTER, inexact_operands("nextafter", x, y, kinds="f"))
