"""Exponentials: exp, expm1, exp2."""

from __future__ import annotations

from math import log as math_log
from typing import Any

import numpy as np

from ..graph import Value, make
from ..scalar import complexes
from ..scalar import exponential as programs
from .domains import between
from .elementwise import elementwise
from .operands import inexact_operands
from .scaling import scale

__all__ = ["EXP", "EXP2", "EXPM1", "exp", "exp2", "expm1"]

_NOT_LINEAR = {"transpose": "not linear"}
_REAL = _NOT_LINEAR | {"complex_scalar": "defined on real numbers alone so far"}

EXP = elementwise(
    "exp",
    kinds="fc",
    reference=np.exp,
    scalar=programs.exp,
    complex_scalar=complexes.exp,
    partials=(lambda t, x, out: scale(t, out),),
    doc="e**x.",
    samples=between((-3, 3)),
    why_not=_NOT_LINEAR,
)


def exp(x: Any) -> Value:
    return make(EXP, inexact_operands("exp", x))


EXPM1 = elementwise(
    "expm1",
    kinds="f",
    reference=np.expm1,
    scalar=programs.expm1,
    # not 1 + out, which cancels for large negative x
    partials=(lambda t, x, out: scale(t, exp(x)),),
    doc="e**x - 1 without cancellation near 0; keeps the sign of zero.",
    samples=between((-3, 3)),
    why_not=_REAL,
)


def expm1(x: Any) -> Value:
    return make(EXPM1, inexact_operands("expm1", x, kinds="f"))


EXP2 = elementwise(
    "exp2",
    kinds="f",
    reference=np.exp2,
    scalar=programs.exp2,
    partials=(lambda t, x, out: scale(t * math_log(2.0), out),),
    doc="2**x, exact for whole x.",
    samples=between((-3, 3)),
    why_not=_REAL,
)


def exp2(x: Any) -> Value:
    return make(EXP2, inexact_operands("exp2", x, kinds="f"))
