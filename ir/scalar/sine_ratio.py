"""Derivatives of ``f(u) = sin(u) / u``.

From ``u f = sin u``, differentiated n times: ``f_n = (sin^(n)(u) - n f_(n-1)) / u``. An error grows
by the factor ``n! / u^n`` on the way, so for ``|u| < max(2, n / e)`` the power series is summed::

    f_n(u) = sum_k (-1)^k u^(2k - n) / ((2k + 1) (2k - n)!),   2k >= n
"""

from __future__ import annotations

from math import e, factorial

from . import trigonometric
from .polynomial import horner
from .vocabulary import Handler, V

__all__ = ["sine_ratio"]


def _series(n: int, limit: float) -> list[float]:
    """Coefficients in powers of ``u^2``, after the factor ``u`` of an odd n."""
    odd = n % 2
    coefficients: list[float] = []
    power = odd
    while not coefficients or limit**power / factorial(power) > 2.0**-58:
        k = (n + power) // 2
        coefficients.append((-1) ** k / ((2 * k + 1) * factorial(power)))
        power += 2
    return coefficients


def sine_ratio(h: Handler[V], x: V, *, n: int) -> V:
    """The ``n``-th derivative of ``sin(x) / x``; absolute error of a few ulp of ``1 / (n + 1)``."""
    dtype = h.dtype(x)
    zero, one = h.const(0.0, dtype), h.const(1.0, dtype)
    sin = trigonometric.sin(h, x)
    if n == 0:
        return h.select(h.eq(x, zero), one, h.div(sin, x))
    limit = max(2.0, n / e)
    near = h.lt(h.abs(x), h.const(limit, dtype))
    u = h.select(near, h.const(limit, dtype), x)
    cos = trigonometric.cos(h, x)
    value = h.div(sin, u)
    for k in range(1, n + 1):
        wave = (sin, cos, h.neg(sin), h.neg(cos))[k % 4]
        value = h.div(h.sub(wave, h.mul(h.const(float(k), dtype), value)), u)
    v = h.select(near, x, zero)
    series = horner(h, h.mul(v, v), _series(n, limit))
    return h.select(near, h.mul(v, series) if n % 2 else series, value)
