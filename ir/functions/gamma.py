"""The gamma function's logarithm, its derivatives, and what is composed of it: beta."""

from __future__ import annotations

from typing import Any

from .. import ops
from ..graph import Value
from ..ops import eq, exp, floor, lgamma, logical_and, lt, ne, signbit, where
from ..ops.operands import inexact_operands

__all__ = ["beta", "betaln", "digamma", "gammaln", "gammasgn", "polygamma", "psi"]


def gammaln(x: Any) -> Value:
    """``log|gamma(x)|``.

    Parameters
    ----------
    x : array-like
        Real; integers become float64.

    Returns
    -------
    Array
        Of the shape of ``x``; +inf at 0, -1, -2, ... and at both infinities.

    Notes
    -----
    Within 1 ulp for x > 0, also around the zeros 1 and 2; for x < 0 within 1 ulp of the larger of
    result and 1. The derivative is :func:`digamma`. Formulas: ``ir/scalar/log_gamma.py``.

    Examples
    --------
    >>> import tilegrad as tg
    >>> float(tg.special.gammaln(11.0))  # log(10!)
    15.104412573075516
    """
    return lgamma(x)


def digamma(x: Any) -> Value:
    """The derivative of :func:`gammaln`.

    Within 1 ulp for x > 0, around its zero 1.46 too; NaN at -1, -2, ..., and at the pole 0 the
    infinity of the side that the sign of the zero tells, as in SciPy. Derivatives: polygamma.

    Examples
    --------
    >>> import tilegrad as tg
    >>> float(tg.special.digamma(1.0))  # -euler
    -0.5772156649015329
    """
    return ops.polygamma(0, x)


def psi(x: Any) -> Value:
    """SciPy's other name of :func:`digamma`."""
    return digamma(x)


def polygamma(n: int, x: Any) -> Value:
    """The ``n``-th derivative of :func:`digamma`.

    Parameters
    ----------
    n : int
        Order, at least 0; part of the program, not an array.
    x : array-like
        Real.

    Raises
    ------
    ValueError
        If ``n`` is not a Python integer of at least 0.

    Notes
    -----
    Within about ``4 + n`` ulp for x > 0; for x < 0 of the largest summand of the reflection
    formula. At the poles +inf for odd n, NaN at the negative ones for even n.

    Examples
    --------
    >>> import tilegrad as tg
    >>> float(tg.special.polygamma(1, 1.0))  # pi^2 / 6
    1.6449340668482264
    """
    return ops.polygamma(n, x)


def gammasgn(x: Any) -> Value:
    """The sign of ``gamma(x)``: 1.0, or -1.0 in (-1, 0), (-3, -2), ...; NaN at -1, -2, ...

    At the pole 0 it is the sign of the zero.
    """
    (x,) = inexact_operands("gammasgn", x, kinds="f")
    whole = floor(x)
    odd = ne(floor(whole * 0.5) * 2.0, whole)
    negative = logical_and(signbit(x), logical_and(lt(x, 0), odd))
    sign = where(negative, -1.0, 1.0) * where(ne(x, x), x, 1.0)
    sign = where(logical_and(eq(x, 0), signbit(x)), -1.0, sign)
    return where(logical_and(lt(x, 0), eq(whole, x)), float("nan"), sign)


def betaln(a: Any, b: Any) -> Value:
    """``log|beta(a, b)| = gammaln(a) + gammaln(b) - gammaln(a + b)``.

    The error is that of the largest of the three: relative accuracy is lost where they cancel, as
    for one large and one small argument. NaN where both ``a`` or ``b`` and ``a + b`` are poles.
    """
    a, b = inexact_operands("betaln", a, b, kinds="f")
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def beta(a: Any, b: Any) -> Value:
    """``gamma(a) gamma(b) / gamma(a + b)``, for negative arguments too.

    Notes
    -----
    The exponential of :func:`betaln` with the sign of the gammas; relative error about
    ``1e-16`` times the largest of the three logarithms.
    """
    a, b = inexact_operands("beta", a, b, kinds="f")
    return gammasgn(a) * gammasgn(b) * gammasgn(a + b) * exp(betaln(a, b))
