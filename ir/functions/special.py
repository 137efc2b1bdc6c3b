"""Functions of probability and information: softmax, logsumexp, sigmoid, entropies.

They are composed so that value and derivatives of every order stay finite wherever the exact ones
are, which decides how each formula is split.
"""

from __future__ import annotations

import math
from typing import Any

from ..errors import DTypeError
from ..graph import Value
from ..ops import (
    abs_,
    eq,
    erfc,
    exp,
    gap,
    ge,
    gt,
    isnan,
    le,
    log,
    log1p,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logistic,
    lt,
    stop_gradient,
    where,
)
from ..ops.leaves import constant
from ..ops.operands import inexact_operands
from ..ops.shape import broadcast_to
from .arguments import as_inexact, axes_of, fail, keep_axes

__all__ = [
    "entr",
    "expit",
    "kl_div",
    "log_expit",
    "log_sigmoid",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "rel_entr",
    "sigmoid",
    "softmax",
    "softplus",
    "xlog1py",
    "xlogy",
]


def _real(name: str, x: Any) -> Value:
    value = as_inexact(name, x)
    if value.dtype.is_complex:
        fail(DTypeError(f"{name}: is not defined for {value.dtype}; take the real part"))
    return value


def _shift(x: Value, axes: tuple[int, ...]) -> Value:
    """The maximum, kept as axes of extent 1, without derivative: it cancels in exact arithmetic."""
    from .reductions import amax

    if any(x.shape[d] == 0 for d in axes):
        return broadcast_to(constant(0, x.dtype), keep_axes(x.shape, axes))
    return stop_gradient(amax(x, axis=axes, keepdims=True))


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """``log(sum(b * exp(a)))`` without overflow.

    Parameters
    ----------
    a, b : array-like
        Exponents and (optional) factors, which broadcast together; real.
    axis : int, tuple of int or None
    keepdims, return_sign : bool
        ``return_sign`` returns the sign of the sum apart, and the logarithm of its magnitude.

    Notes
    -----
    The shift is the maximum, and differences of equal infinities are zero: all -inf gives -inf,
    +inf gives +inf. The gradient is the softmax, which +inf share as its limit says; of a sum that
    is zero (all -inf) it is 0, the zero of the log-semiring, where the limit does not exist.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.logsumexp(tg.asarray([1000.0, 1000.0]))
    Array(1000.69314718, dtype=float64)
    """
    from .reductions import sum as total

    x = _real("logsumexp", a)
    factor = None
    if b is not None:
        x, factor = inexact_operands("logsumexp", x, b)
        x = where(eq(factor, 0), -math.inf, x)
    axes = axes_of("logsumexp", axis, x.ndim, scalar=True)
    shift = _shift(x, axes)
    terms = exp(gap(x, shift))
    sums = total(terms if factor is None else factor * terms, axis=axes, keepdims=True)
    sign: Any = None
    if return_sign:
        from ..ops import sign as sign_of

        sign = where(eq(shift, -math.inf), 0.0, sign_of(sums))
        sums = abs_(sums)
    nothing = logical_or(eq(sums, 0), eq(shift, -math.inf))
    result = where(nothing, -math.inf, log(where(nothing, 1.0, sums)) + shift)
    if not keepdims:
        from ..ops.shape import squeeze

        result = squeeze(result, axes)
        sign = None if sign is None else squeeze(sign, axes)
    return (result, sign) if return_sign else result


def softmax(x: Any, axis: Any = -1) -> Value:
    """``exp(x) / sum(exp(x))`` along ``axis``; a slice with +inf or only -inf gives NaN.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.special.softmax(tg.asarray([1000.0, 0.0]))
    Array([1., 0.], dtype=float64)
    """
    from .reductions import sum as total

    value = _real("softmax", x)
    axes = axes_of("softmax", axis, value.ndim, scalar=True)
    terms = exp(value - _shift(value, axes))
    return terms / total(terms, axis=axes, keepdims=True)


def log_softmax(x: Any, axis: Any = -1) -> Value:
    """``log(softmax(x))`` as ``(x - m) - log(sum(exp(x - m)))``, ``m`` the maximum."""
    from .reductions import sum as total

    value = _real("log_softmax", x)
    axes = axes_of("log_softmax", axis, value.ndim, scalar=True)
    shifted = value - _shift(value, axes)
    return shifted - log(total(exp(shifted), axis=axes, keepdims=True))


def sigmoid(x: Any) -> Value:
    """``1 / (1 + exp(-x))``, which never overflows."""
    return logistic(_real("sigmoid", x))


def expit(x: Any) -> Value:
    """The logistic function (SciPy's name of :func:`sigmoid`)."""
    return sigmoid(x)


def softplus(x: Any) -> Value:
    """``log(1 + exp(x))`` as max(x, 0) + log1p(exp(-|x|)); its derivative is the sigmoid."""
    return logaddexp(_real("softplus", x), 0.0)


def log_sigmoid(x: Any) -> Value:
    """``log(sigmoid(x))`` as ``-softplus(-x)``."""
    return -softplus(-_real("log_sigmoid", x))


def log_expit(x: Any) -> Value:
    """SciPy's name of :func:`log_sigmoid`."""
    return log_sigmoid(x)


def logit(x: Any) -> Value:
    """``log(x / (1 - x))``.

    Away from the ends through log1p: near 1/2 the quotient form loses its leading digits
    (x / (1 - x) = 1 + (2 x - 1) / (1 - x)).
    """
    value = _real("logit", x)
    middle = logical_and(ge(value, 0.3), le(value, 0.65))
    inner = where(middle, value, 0.5)
    outer = where(middle, 0.25, value)
    return where(middle, log1p((2.0 * inner - 1.0) / (1.0 - inner)), log(outer) - log1p(-outer))


def xlogy(x: Any, y: Any) -> Value:
    """``x * log(y)``, and 0 where x is 0 (unless y is NaN).

    The derivative in x is ``log(y)``, at x = 0 too; at x = 0, y <= 0 (where the exact one is
    infinite or does not exist) both derivatives are 0.
    """
    p, q = inexact_operands("xlogy", x, y)
    # only there is 0 * log(y) not 0
    singular = logical_and(eq(p, 0), logical_not(logical_and(gt(q, 0), lt(q, math.inf))))
    singular = logical_and(singular, logical_not(isnan(q)))
    return where(singular, 0.0, p * log(where(singular, 1.0, q)))


def xlog1py(x: Any, y: Any) -> Value:
    """``x * log1p(y)``, and 0 where x is 0 (unless y is NaN); derivatives as in :func:`xlogy`."""
    p, q = inexact_operands("xlog1py", x, y)
    singular = logical_and(eq(p, 0), logical_not(logical_and(gt(q, -1), lt(q, math.inf))))
    singular = logical_and(singular, logical_not(isnan(q)))
    return where(singular, 0.0, p * log1p(where(singular, 0.0, q)))


def entr(x: Any) -> Value:
    """``-x log(x)``: 0 at 0, -inf below."""
    value = _real("entr", x)
    inside = logical_not(le(value, 0))  # NaN goes through the formula
    safe = where(inside, value, 1.0)
    return where(inside, -(safe * log(safe)), where(eq(value, 0), 0.0, -math.inf))


def rel_entr(x: Any, y: Any) -> Value:
    """``x log(x / y)`` for x, y > 0; 0 for x = 0, y >= 0; +inf elsewhere."""
    p, q = inexact_operands("rel_entr", x, y)
    inside = logical_and(logical_not(le(p, 0)), logical_not(le(q, 0)))
    safe_p, safe_q = where(inside, p, 1.0), where(inside, q, 1.0)
    nothing = logical_and(eq(p, 0), ge(q, 0))
    outside = where(nothing, 0.0, math.inf)
    return where(inside, safe_p * log(safe_p / safe_q), outside)


def kl_div(x: Any, y: Any) -> Value:
    """``x log(x / y) - x + y`` (SciPy's elementwise Kullback-Leibler term)."""
    p, q = inexact_operands("kl_div", x, y)
    terms = rel_entr(p, q)
    return where(eq(terms, math.inf), terms, terms - p + q)


def ndtr(x: Any) -> Value:
    """The normal distribution function, ``erfc(-x / sqrt(2)) / 2``: no cancellation on the left."""
    value = _real("ndtr", x)
    return 0.5 * erfc(value * -math.sqrt(0.5))
