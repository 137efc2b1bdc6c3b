"""Activation functions of neural networks."""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import as_dtype, float64
from ..graph import Value
from ..ops import abs_, eq, erfc, expm1, ge, gt, le, sqrt, tanh, where
from ..ops.leaves import iota
from ..ops.operands import as_value, convert
from ..ops.shape import expand_dims
from .arguments import as_inexact, fail, one_axis, static_int
from .special import sigmoid, softplus

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "silu",
    "soft_sign",
    "squareplus",
    "swish",
]


def relu(x: Any) -> Value:
    """``max(x, 0)`` with derivative 0 at 0; NaN stays NaN."""
    value = as_value(x)
    return where(le(value, 0), 0, value)


def relu6(x: Any) -> Value:
    """``min(max(x, 0), 6)`` with derivative 0 at both corners."""
    return _between(x, 0.0, 6.0)


def hard_tanh(x: Any) -> Value:
    """``x`` cut to [-1, 1], with derivative 0 at both corners."""
    return _between(x, -1.0, 1.0)


def _between(x: Any, low: float, high: float) -> Value:
    value = as_inexact("clip", x)
    return where(le(value, low), low, where(ge(value, high), high, value))


def hard_sigmoid(x: Any) -> Value:
    """``relu6(x + 3) / 6``."""
    return relu6(as_inexact("hard_sigmoid", x) + 3.0) / 6.0


def hard_silu(x: Any) -> Value:
    """``x * hard_sigmoid(x)``."""
    value = as_inexact("hard_silu", x)
    return value * hard_sigmoid(value)


def hard_swish(x: Any) -> Value:
    """Another name of :func:`hard_silu`."""
    return hard_silu(x)


def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Value:
    """``x`` where positive, else ``negative_slope * x``."""
    value = as_inexact("leaky_relu", x)
    return where(ge(value, 0), value, value * negative_slope)


def elu(x: Any, alpha: Any = 1.0) -> Value:
    """``x`` where positive, else ``alpha * (exp(x) - 1)``."""
    value = as_inexact("elu", x)
    positive = gt(value, 0)
    return where(positive, value, alpha * expm1(where(positive, 0.0, value)))


def celu(x: Any, alpha: Any = 1.0) -> Value:
    """``x`` where positive, else ``alpha * (exp(x / alpha) - 1)``."""
    value = as_inexact("celu", x)
    positive = gt(value, 0)
    return where(positive, value, alpha * expm1(where(positive, 0.0, value) / alpha))


def selu(x: Any) -> Value:
    """Scaled :func:`elu` with a fixed point at mean 0, variance 1 (Klambauer et al. 2017)."""
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def silu(x: Any) -> Value:
    """``x * sigmoid(x)``."""
    value = as_inexact("silu", x)
    return value * sigmoid(value)


def swish(x: Any) -> Value:
    """Another name of :func:`silu`."""
    return silu(x)


def mish(x: Any) -> Value:
    """``x * tanh(softplus(x))`` (Misra 2019)."""
    value = as_inexact("mish", x)
    return value * tanh(softplus(value))


def gelu(x: Any, approximate: bool = True) -> Value:
    """``x`` times the normal distribution function of ``x`` (Hendrycks and Gimpel 2016).

    The approximation by tanh is evaluated as x sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3);
    the exact form as x erfc(-x / sqrt 2) / 2. Both keep the relative accuracy of the left tail.
    """
    value = as_inexact("gelu", x)
    if not approximate:
        return 0.5 * value * erfc(value * -math.sqrt(0.5))
    inner = value + 0.044715 * (value * value * value)
    return value * sigmoid(2.0 * math.sqrt(2.0 / math.pi) * inner)


def glu(x: Any, axis: Any = -1) -> Value:
    """The first half along ``axis`` times the sigmoid of the second half."""
    from .joining import split

    value = as_inexact("glu", x)
    first, second = split(value, 2, one_axis("glu", axis, value.ndim))
    return first * sigmoid(second)


def soft_sign(x: Any) -> Value:
    """``x / (1 + |x|)``."""
    value = as_inexact("soft_sign", x)
    return value / (1.0 + abs_(value))


def squareplus(x: Any, b: Any = 4.0) -> Value:
    """``(x + sqrt(x^2 + b)) / 2``: a smooth relu without exponentials."""
    value = as_inexact("squareplus", x)
    return 0.5 * (value + sqrt(value * value + b))


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Value:
    """1 at the class that each integer of ``x`` names, 0 elsewhere (all 0 out of range)."""
    value = as_value(x)
    if not value.dtype.is_integer:
        fail(TypeError(f"one_hot: expected integers, got {value.type}"))
    count = static_int("one_hot", "num_classes", num_classes)
    d = one_axis("one_hot", axis, value.ndim + 1)
    shape = (*value.shape[:d], count, *value.shape[d:])
    on = eq(expand_dims(value, (d,)), convert(iota(shape, d), value.dtype))
    return convert(on, float64 if dtype is None else as_dtype(dtype))
