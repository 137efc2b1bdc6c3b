"""Elementwise functions as scalar programs over a vocabulary that has many readings."""

from __future__ import annotations

from typing import Any

from .error_function import erf, erfc
from .exponential import exp, exp2, expm1
from .hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from .inverse_trigonometric import acos, asin, atan, atan2
from .logarithm import log, log1p, log2, log10
from .power import pow
from .roots import cbrt, hypot
from .trigonometric import cos, sin, tan
from .vocabulary import Program

__all__ = ["PROGRAMS"]

_ALL: tuple[Program[Any], ...] = (
    *(exp, exp2, expm1, log, log1p, log2, log10, pow),
    *(sinh, cosh, tanh, asinh, acosh, atanh),
    *(sin, cos, tan, asin, acos, atan, atan2),
    *(erf, erfc, cbrt, hypot),
)
PROGRAMS: dict[str, Program[Any]] = {program.__name__: program for program in _ALL}
