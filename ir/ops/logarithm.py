"""Logarithms: log, log1p, log2, log10.

Their derivatives are divisions, one rounding, and keep the formula's value outside the domain:
``log'(-2) = -0.5`` although ``log(-2)`` is NaN.
"""

from __future__ import annotations

from math import log as math_log
from typing import Any

import numpy as np

from ..graph import Value, make
from ..scalar import complexes
from ..scalar import logarithm as programs
from .complexes import complex_, imag, real
from .domains import between
from .elementwise import elementwise
from .operands import inexact_operands
from .scaling import unscale

__all__ = ["LOG", "LOG10", "LOG1P", "LOG2", "log", "log10", "log1p", "log2"]

_NOT_LINEAR = {"transpose": "not linear"}
_REAL = _NOT_LINEAR | {"complex_scalar": "defined on real numbers alone so far"}

LOG = elementwise(
    "log",
    kinds="fc",
    reference=np.log,
    scalar=programs.log,
    complex_scalar=complexes.log,
    partials=(lambda t, x, out: unscale(t, x),),
    doc="Natural logarithm: -inf at 0, NaN below; complex: imaginary part in [-pi, pi].",
    samples=between((0.2, 3)),
    why_not=_NOT_LINEAR,
)


def log(x: Any) -> Value:
    return make(LOG, inexact_operands("log", x))


LOG1P = elementwise(
    "log1p",
    kinds="f",
    reference=np.log1p,
    scalar=programs.log1p,
    partials=(lambda t, x, out: unscale(t, 1 + x),),
    doc="log(1 + x) without cancellation near 0: -inf at -1, NaN below, keeps the sign of zero.",
    samples=between((-0.8, 3)),
    why_not=_REAL,
)


def log1p(x: Any) -> Value:
    return make(LOG1P, inexact_operands("log1p", x, kinds="f"))


def _complex_log(x: Value, base: float) -> Value:
    """Both parts divided by a real number: a complex one would make NaN of an infinite part."""
    y = log(x)
    return complex_(real(y) / math_log(base), imag(y) / math_log(base))


LOG2 = elementwise(
    "log2",
    kinds="f",
    reference=np.log2,
    scalar=programs.log2,
    partials=(lambda t, x, out: unscale(t, x * math_log(2.0)),),
    doc="Logarithm to base 2, exact for powers of two.",
    samples=between((0.2, 3)),
    why_not=_REAL | {"complex_scalar": "the builder divides log(x) by log(2)"},
)


def log2(x: Any) -> Value:
    (x,) = inexact_operands("log2", x)
    return _complex_log(x, 2.0) if x.dtype.is_complex else make(LOG2, (x,))


LOG10 = elementwise(
    "log10",
    kinds="f",
    reference=np.log10,
    scalar=programs.log10,
    partials=(lambda t, x, out: unscale(t, x * math_log(10.0)),),
    doc="Logarithm to base 10, exact for powers of ten.",
    samples=between((0.2, 3)),
    why_not=_REAL | {"complex_scalar": "the builder divides log(x) by log(10)"},
)


def log10(x: Any) -> Value:
    (x,) = inexact_operands("log10", x)
    return _complex_log(x, 10.0) if x.dtype.is_complex else make(LOG10, (x,))
