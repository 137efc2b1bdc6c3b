"""Hyperbolic functions and their inverses: sinh, cosh, tanh, asinh, acosh, atanh."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Value, make
from ..scalar import complexes
from ..scalar import hyperbolic as programs
from .comparison import gt
from .domains import between
from .elementwise import elementwise
from .operands import inexact_operands
from .powers import reciprocal, rsqrt
from .rounding import abs_
from .scaling import scale, unscale
from .selection import where

__all__ = [
    *("ACOSH", "ASINH", "ATANH", "COSH", "SINH", "TANH"),
    *("acosh", "asinh", "atanh", "cosh", "sinh", "tanh"),
]

_NOT_LINEAR = {"transpose": "not linear"}
_REAL = _NOT_LINEAR | {"complex_scalar": "defined on real numbers alone so far"}

SINH = elementwise(
    "sinh",
    kinds="fc",
    reference=np.sinh,
    scalar=programs.sinh,
    complex_scalar=complexes.sinh,
    partials=(lambda t, x, out: scale(t, cosh(x)),),
    doc="(e**x - e**-x) / 2.",
    samples=between((-3, 3)),
    why_not=_NOT_LINEAR,
)


def sinh(x: Any) -> Value:
    return make(SINH, inexact_operands("sinh", x))


COSH = elementwise(
    "cosh",
    kinds="fc",
    reference=np.cosh,
    scalar=programs.cosh,
    complex_scalar=complexes.cosh,
    partials=(lambda t, x, out: scale(t, sinh(x)),),
    doc="(e**x + e**-x) / 2.",
    samples=between((-3, 3)),
    why_not=_NOT_LINEAR,
)


def cosh(x: Any) -> Value:
    return make(COSH, inexact_operands("cosh", x))


TANH = elementwise(
    "tanh",
    kinds="fc",
    reference=np.tanh,
    scalar=programs.tanh,
    complex_scalar=complexes.tanh,
    partials=(lambda t, x, out: scale(t, (1 - out) * (1 + out)),),
    doc="sinh(x) / cosh(x), within [-1, 1].",
    samples=between((-2, 2)),
    why_not=_NOT_LINEAR,
)


def tanh(x: Any) -> Value:
    return make(TANH, inexact_operands("tanh", x))


def _asinh_slope(x: Value) -> Value:
    """``1 / sqrt(1 + x^2)``, for large x as ``r / sqrt(1 + r^2)`` with ``r = 1 / |x|``."""
    large = gt(abs_(x), 1)
    inverse = reciprocal(abs_(x))
    r = where(large, inverse, 1)
    u = where(large, inverse, x)
    return r * rsqrt(1 + u * u)


ASINH = elementwise(
    "asinh",
    kinds="f",
    reference=np.arcsinh,
    scalar=programs.asinh,
    partials=(lambda t, x, out: scale(t, _asinh_slope(x)),),
    doc="Inverse of sinh, odd.",
    samples=between((-3, 3)),
    why_not=_REAL,
)


def asinh(x: Any) -> Value:
    return make(ASINH, inexact_operands("asinh", x, kinds="f"))


ACOSH = elementwise(
    "acosh",
    kinds="f",
    reference=np.arccosh,
    scalar=programs.acosh,
    # factored: accurate near 1, no overflow
    partials=(lambda t, x, out: scale(t, rsqrt(x - 1) * rsqrt(x + 1)),),
    doc="Inverse of cosh, not negative; NaN below 1.",
    samples=between((1.2, 4)),
    why_not=_REAL,
)


def acosh(x: Any) -> Value:
    return make(ACOSH, inexact_operands("acosh", x, kinds="f"))


ATANH = elementwise(
    "atanh",
    kinds="f",
    reference=np.arctanh,
    scalar=programs.atanh,
    partials=(lambda t, x, out: unscale(t, scale(1 - x, 1 + x, symmetric=True)),),
    doc="Inverse of tanh: infinite at -1 and 1, NaN outside, where the derivative keeps the value "
    "of its formula.",
    samples=between((-0.9, 0.9)),
    why_not=_REAL,
)


def atanh(x: Any) -> Value:
    return make(ATANH, inexact_operands("atanh", x, kinds="f"))
