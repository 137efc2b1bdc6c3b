"""Trigonometric functions and their inverses: sin, cos, tan, asin, acos, atan, atan2."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Value, make
from ..scalar import complexes
from ..scalar import inverse_trigonometric as inverses
from ..scalar import trigonometric as programs
from .arithmetic import neg
from .comparison import eq
from .domains import between
from .elementwise import elementwise
from .logic import or_
from .operands import inexact_operands
from .powers import rsqrt
from .rounding import abs_
from .scaling import scale, unscale
from .selection import stop_gradient, where

__all__ = [
    *("ACOS", "ASIN", "ATAN", "ATAN2", "COS", "SIN", "TAN"),
    *("acos", "asin", "atan", "atan2", "cos", "sin", "tan"),
]

_NOT_LINEAR = {"transpose": "not linear"}
_REAL = _NOT_LINEAR | {"complex_scalar": "defined on real numbers alone so far"}

SIN = elementwise(
    "sin",
    kinds="fc",
    reference=np.sin,
    scalar=programs.sin,
    complex_scalar=complexes.sin,
    partials=(lambda t, x, out: scale(t, cos(x)),),
    doc="Sine of x in radians; NaN at infinities.",
    samples=between((-3, 3)),
    why_not=_NOT_LINEAR,
)


def sin(x: Any) -> Value:
    return make(SIN, inexact_operands("sin", x))


COS = elementwise(
    "cos",
    kinds="fc",
    reference=np.cos,
    scalar=programs.cos,
    complex_scalar=complexes.cos,
    partials=(lambda t, x, out: neg(scale(t, sin(x))),),
    doc="Cosine of x in radians; NaN at infinities.",
    samples=between((-3, 3)),
    why_not=_NOT_LINEAR,
)


def cos(x: Any) -> Value:
    return make(COS, inexact_operands("cos", x))


TAN = elementwise(
    "tan",
    kinds="fc",
    reference=np.tan,
    scalar=programs.tan,
    complex_scalar=complexes.tan,
    partials=(lambda t, x, out: scale(t, 1 + out * out),),
    doc="Tangent of x in radians; NaN at infinities.",
    samples=between((-1.3, 1.3)),
    why_not=_NOT_LINEAR,
)


def tan(x: Any) -> Value:
    return make(TAN, inexact_operands("tan", x))


def _arc_slope(x: Value) -> Value:
    """``1 / sqrt(1 - x^2)``, factored so that it is accurate near the ends."""
    return rsqrt(scale(1 - x, 1 + x, symmetric=True))


ASIN = elementwise(
    "asin",
    kinds="f",
    reference=np.arcsin,
    scalar=inverses.asin,
    partials=(lambda t, x, out: scale(t, _arc_slope(x)),),
    doc="Angle in [-pi/2, pi/2] with this sine; NaN outside [-1, 1].",
    samples=between((-0.9, 0.9)),
    why_not=_REAL,
)


def asin(x: Any) -> Value:
    return make(ASIN, inexact_operands("asin", x, kinds="f"))


ACOS = elementwise(
    "acos",
    kinds="f",
    reference=np.arccos,
    scalar=inverses.acos,
    partials=(lambda t, x, out: neg(scale(t, _arc_slope(x))),),
    doc="Angle in [0, pi] with this cosine; NaN outside [-1, 1].",
    samples=between((-0.9, 0.9)),
    why_not=_REAL,
)


def acos(x: Any) -> Value:
    return make(ACOS, inexact_operands("acos", x, kinds="f"))


ATAN = elementwise(
    "atan",
    kinds="f",
    reference=np.arctan,
    scalar=inverses.atan,
    # x * x may overflow: the quotient is then zero, as it should be
    partials=(lambda t, x, out: unscale(t, 1 + x * x),),
    doc="Angle in [-pi/2, pi/2] with this tangent.",
    samples=between((-3, 3)),
    why_not=_REAL,
)


def atan(x: Any) -> Value:
    return make(ATAN, inexact_operands("atan", x, kinds="f"))


def _angle_slope(t: Value, along: Value, y: Value, x: Value) -> Value:
    """``t along / (x^2 + y^2)`` without overflow; zero where the radius is zero or infinite.

    Everything is divided by ``s = |x| + |y|``. The quotient does not depend on ``s``, so ``s`` is
    held constant, which keeps higher derivatives short.
    """
    s = stop_gradient(abs_(x) + abs_(y))
    u, v = x / s, y / s
    slope = unscale(scale(t, (along / s) / (u * u + v * v)), s)
    return where(or_(eq(s, 0), eq(s, np.inf)), 0, slope)


ATAN2 = elementwise(
    "atan2",
    kinds="f",
    reference=np.arctan2,
    scalar=inverses.atan2,
    partials=(
        lambda t, y, x, out: _angle_slope(t, x, y, x),
        lambda t, y, x, out: neg(_angle_slope(t, y, y, x)),
    ),
    doc="Angle in [-pi, pi] of the point (x, y); operands in the order y, x. Derivatives of every "
    "order are zero at the origin and at infinity.",
    samples=between((0.3, 3), (0.3, 3), signed=True),
    why_not=_REAL,
)


def atan2(y: Any, x: Any) -> Value:
    return make(ATAN2, inexact_operands("atan2", y, x, kinds="f"))
