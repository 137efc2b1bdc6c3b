"""Special functions: erf, erfc, logistic, logaddexp, sinc."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..graph import Value, make
from ..scalar import error_function, exponential, logarithm
from ..scalar.sine_ratio import sine_ratio as _sine_ratio_program
from .arithmetic import neg
from .comparison import eq, isinf
from .domains import between, with_params
from .elementwise import elementwise
from .exponential import exp
from .logic import and_
from .operands import inexact_operands
from .scaling import scale
from .selection import where

__all__ = [
    *("ERF", "ERFC", "LOGADDEXP", "LOGISTIC", "SINE_RATIO"),
    *("erf", "erfc", "logaddexp", "logaddexp2", "logistic", "sinc", "sine_ratio"),
]

_REAL = {
    "transpose": "not linear",
    "complex_scalar": "defined on real numbers alone so far",
}


def _by_element(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A reference from Python's :mod:`math`, which NumPy lacks."""

    def value(x: Any) -> Any:
        flat = [function(float(v)) for v in x.reshape(-1)]
        return np.array(flat, dtype=x.dtype).reshape(x.shape)

    return value


def _bell(t: Value, x: Value) -> Value:
    """``t 2 / sqrt(pi) e^(-x^2)``, the tangent of erf."""
    return scale(t * (2 / math.sqrt(math.pi)), exp(neg(x * x)))


ERF = elementwise(
    "erf",
    kinds="f",
    reference=_by_element(math.erf),
    scalar=error_function.erf,
    partials=(lambda t, x, out: _bell(t, x),),
    doc="2 / sqrt(pi) times the integral of exp(-s*s) from 0 to x (DLMF 7.2.1).",
    samples=between((-2, 2)),
    why_not=_REAL,
)


def erf(x: Any) -> Value:
    return make(ERF, inexact_operands("erf", x, kinds="f"))


ERFC = elementwise(
    "erfc",
    kinds="f",
    reference=_by_element(math.erfc),
    scalar=error_function.erfc,
    partials=(lambda t, x, out: neg(_bell(t, x)),),
    doc="1 - erf(x) without cancellation for large x (DLMF 7.2.2).",
    samples=between((-2, 2)),
    why_not=_REAL,
)


def erfc(x: Any) -> Value:
    return make(ERFC, inexact_operands("erfc", x, kinds="f"))


# -------------------------------------------------------------------------- logistic, logaddexp


def _logistic(h: Any, x: Any) -> Any:
    dtype = h.dtype(x)
    one = h.const(1.0, dtype)
    z = exponential.exp(h, h.neg(h.abs(x)))
    return h.div(h.select(h.lt(x, h.const(0.0, dtype)), z, one), h.add(one, z))


def _logistic_value(x: Any) -> Any:
    z = np.exp(-np.abs(x))
    return np.where(x < 0, z, x.dtype.type(1)) / (1 + z)


LOGISTIC = elementwise(
    "logistic",
    kinds="f",
    reference=_logistic_value,
    scalar=_logistic,
    # 1 - out would lose the upper tail, so it is computed from the other side
    partials=(lambda t, x, out: scale(t, out * logistic(neg(x))),),
    doc="1 / (1 + exp(-x)); with z = exp(-|x|) it is 1 / (1 + z) or z / (1 + z), which never "
    "overflows.",
    samples=between((-3, 3)),
    why_not=_REAL,
)


def logistic(x: Any) -> Value:
    return make(LOGISTIC, inexact_operands("logistic", x, kinds="f"))


def _logaddexp(h: Any, x: Any, y: Any) -> Any:
    higher = h.select(h.gt(x, y), x, y)
    distance = h.abs(h.sub(x, y))
    usual = h.add(higher, logarithm.log1p(h, exponential.exp(h, h.neg(distance))))
    # equal infinities have no distance
    return h.select(h.eq(x, y), h.add(x, h.const(math.log(2.0), h.dtype(x))), usual)


def _difference(x: Value, y: Value) -> Value:
    """``x - y``, zero for equal infinities, and differentiable where ``x = y`` is finite."""
    return where(and_(eq(x, y), isinf(x)), 0, x - y)


LOGADDEXP = elementwise(
    "logaddexp",
    kinds="f",
    reference=np.logaddexp,
    scalar=_logaddexp,
    partials=(
        lambda t, x, y, out: scale(t, logistic(_difference(x, y))),
        lambda t, x, y, out: scale(t, logistic(_difference(y, x))),
    ),
    doc="log(e**x + e**y) = max + log1p(exp(min - max)). The derivatives are logistic functions of "
    "the difference, so equal operands share it equally, equal infinities too.",
    samples=between((-3, 3), (-3, 3)),
    why_not=_REAL,
)


def logaddexp(x: Any, y: Any) -> Value:
    return make(LOGADDEXP, inexact_operands("logaddexp", x, y, kinds="f"))


def logaddexp2(x: Any, y: Any) -> Value:
    """``log2(2**x + 2**y)``."""
    x, y = inexact_operands("logaddexp2", x, y, kinds="f")
    return logaddexp(x * math.log(2.0), y * math.log(2.0)) * (1 / math.log(2.0))


# --------------------------------------------------------------------------------------- sinc


def _sine_ratio_value(x: Any, *, n: int) -> Any:
    """In extended precision: ``x f_n + n f_(n-1) = sin^(n)(x)``, near 0 the power series."""
    wide = x.astype(np.longdouble)
    near = np.abs(wide) < (max(4, n) if n else 0.5)
    u = np.where(near, 1, wide)
    turns = np.sin(u), np.cos(u), -np.sin(u), -np.cos(u)
    value = turns[0] / u
    for k in range(1, n + 1):
        value = (turns[k % 4] - k * value) / u
    v = np.where(near, wide, 0)
    series, power = np.zeros_like(v), v ** (n % 2)  # power: (-1)^k v^m / m!, m = 2k - n
    sign = (-1) ** ((n + 1) // 2)
    for m in range(n % 2, 80 + n, 2):
        series = series + sign * power / (m + n + 1)
        power, sign = power * v * v / ((m + 1) * (m + 2)), -sign
    return np.where(near, series, value).astype(x.dtype)


SINE_RATIO = elementwise(
    "sine_ratio",
    kinds="f",
    reference=_sine_ratio_value,
    scalar=_sine_ratio_program,
    partials=(lambda t, x, out, n: scale(t, sine_ratio(x, n + 1)),),
    doc="Derivative number n of sin(x) / x, so that sinc has right derivatives of every order at "
    "and near 0, where the quotient rule cancels.",
    samples=with_params(between((-6, 6)), *({"n": n} for n in range(5))),
    why_not=_REAL,
)


def sine_ratio(x: Any, n: int = 0) -> Value:
    """The ``n``-th derivative of ``sin(x) / x`` (1 at 0 for ``n = 0``)."""
    return make(SINE_RATIO, inexact_operands("sine_ratio", x, kinds="f"), n=n)


def sinc(x: Any) -> Value:
    """``sin(pi x) / (pi x)``, 1 at 0 (NumPy)."""
    (x,) = inexact_operands("sinc", x, kinds="f")
    return sine_ratio(x * math.pi)
