"""lgamma and polygamma: the logarithm of the gamma function and its derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..graph import Value, make
from ..location import at_user_line
from ..scalar import log_gamma
from ..scalar import polygamma as _polygamma
from .domains import between, with_params
from .elementwise import elementwise
from .operands import inexact_operands
from .scaling import scale

__all__ = ["LGAMMA", "POLYGAMMA", "lgamma", "polygamma"]

_REAL = {
    "transpose": "not linear",
    "complex_scalar": "defined on real numbers alone so far",
}


_PI = np.longdouble("3.14159265358979323846264338327950288")
_FAR = 25  # from here on the asymptotic series are good to 64 bits


def _lgamma_value(x: Any) -> Any:
    """In extended precision: the recurrence up to 25, then Stirling's series (DLMF 5.11.1)."""
    wide = x.astype(np.longdouble)
    y = np.abs(wide)
    steps = np.ones_like(y)
    with np.errstate(all="ignore"):
        for _ in range(_FAR):
            low = y < _FAR
            steps = np.where(low, steps * y, steps)
            y = np.where(low, y + 1, y)
        value = (y - 0.5) * (np.log(y) - 1) - 0.5 + np.log(2 * _PI) / 2
        for k, b in enumerate(_polygamma.bernoulli(10), 1):
            value = value + np.longdouble(b.numerator) / b.denominator / (
                (2 * k * (2 * k - 1)) * y ** (2 * k - 1)
            )
        value = value - np.log(steps)
        # lgamma(x) + lgamma(-x) = log(pi / |x sin(pi x)|)
        sine = np.sin((wide - np.rint(wide)) * _PI)
        value = np.where(wide < 0, np.log(_PI / np.abs(wide * sine)) - value, value)
        pole = np.isinf(wide) | ((wide <= 0) & (wide == np.rint(wide)))
        value = np.where((wide == 1) | (wide == 2), 0, np.where(pole, np.inf, value))
        return value.astype(x.dtype)


LGAMMA = elementwise(
    "lgamma",
    kinds="f",
    reference=_lgamma_value,
    scalar=log_gamma.lgamma,
    partials=(lambda t, x, out: scale(t, polygamma(0, x)),),
    doc="log|gamma(x)| (DLMF 5.2.1); +inf at the poles 0, -1, ...",
    samples=between((0.3, 9)),
    why_not=_REAL,
)


def lgamma(x: Any) -> Value:
    return make(LGAMMA, inexact_operands("lgamma", x, kinds="f"))


def _polygamma_value(x: Any, *, n: int) -> Any:
    """In extended precision: the recurrence up to 25, then the asymptotic series (DLMF 5.15.8)."""
    wide = x.astype(np.longdouble)
    negative = wide < 0
    y = np.where(negative, 1 - wide, wide)
    total = np.zeros_like(y)
    factorial = np.longdouble(math.factorial(n))
    with np.errstate(all="ignore"):
        for _ in range(_FAR + n):
            low = y < _FAR + n
            total = total + np.where(low, factorial / y ** (n + 1), 0)
            y = np.where(low, y + 1, y)
        tail = -np.log(y) if n == 0 else math.factorial(n - 1) / y**n
        tail = tail + factorial / (2 * y ** (n + 1))
        for k, b in enumerate(_polygamma.bernoulli(10), 1):
            rising = math.factorial(2 * k + n - 1) / np.longdouble(math.factorial(2 * k))
            tail = tail + np.longdouble(b.numerator) / b.denominator * rising / y ** (2 * k + n)
        value = (total + tail) * (-1) ** (n + 1)
        # polygamma(n, x) = (-1)^n polygamma(n, 1 - x) - (d/dx)^n pi cot(pi x)
        cotangent = 1 / np.tan((wide - np.rint(wide)) * _PI)
        wave = sum(c * cotangent**k for k, c in enumerate(_polygamma.cotangent_derivative(n)))
        reflected = (-1) ** n * value - wave * _PI ** (n + 1)
        whole = wide == np.rint(wide)
        reflected = np.where(whole, np.inf if n % 2 else np.nan, reflected)
        value = np.where(negative, reflected, value)
        if n == 0:  # the sign of zero tells the side of the pole
            value = np.where(wide == 0, -np.copysign(np.inf, wide), value)
        return value.astype(x.dtype)


POLYGAMMA = elementwise(
    "polygamma",
    kinds="f",
    reference=_polygamma_value,
    scalar=_polygamma.polygamma,
    partials=(lambda t, x, out, n: scale(t, polygamma(n + 1, x)),),
    doc="Derivative number n of digamma (DLMF 5.15.1), n = 0 digamma itself.",
    samples=with_params(between((0.3, 9)), *({"n": n} for n in range(4))),
    why_not=_REAL,
)


def polygamma(n: int, x: Any) -> Value:
    """The ``n``-th derivative of digamma (SciPy's argument order)."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise at_user_line(
            ValueError(f"polygamma: expected an integer order of at least 0, got {n!r}")
        )
    return make(POLYGAMMA, inexact_operands("polygamma", x, kinds="f"), n=int(n))
