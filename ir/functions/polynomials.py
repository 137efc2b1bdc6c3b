"""Polynomials as vectors of coefficients, highest power first (NumPy's ``poly*`` functions)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..graph import Value
from ..ops.leaves import constant
from ..ops.operands import as_value
from ..ops.shape import broadcast, broadcast_to, reshape
from ..ops.slicing import pad, slice_axis
from .arguments import as_inexact, fail, promoted, static_int
from .convolution import convolve
from .joining import concatenate
from .manipulation import ravel

__all__ = ["polyadd", "polyder", "polyint", "polymul", "polysub", "polyval"]


def polyval(p: Any, x: Any) -> Value:
    """The polynomial with coefficients ``p``, highest power first, at ``x`` (Horner's rule).

    It starts from ``p[0]``, so that at infinity the limit comes out and not NaN.
    """
    coefficients, at = as_value(p), as_value(x)
    if coefficients.ndim != 1:
        fail(ShapeError(f"polyval: expected a vector of coefficients, got {coefficients.type}"))
    count = coefficients.shape[0]
    if count == 0:
        return broadcast(constant(0, at.dtype), at.shape, ())

    def coefficient(k: int) -> Value:
        return reshape(slice_axis(coefficients, 0, k, k + 1), ())

    result, at = promoted(coefficient(0), at)
    result = broadcast_to(result, at.shape)
    for k in range(1, count):
        result = result * at + coefficient(k)
    return result


def _aligned(a1: Any, a2: Any) -> tuple[Value, Value]:
    x, y = (ravel(v) for v in promoted(a1, a2))
    length = max(x.size, y.size)
    return pad(x, 0, [length - x.size], [0]), pad(y, 0, [length - y.size], [0])


def polyadd(a1: Any, a2: Any) -> Value:
    """Coefficients of the sum of two polynomials, highest power first."""
    x, y = _aligned(a1, a2)
    return x + y


def polysub(a1: Any, a2: Any) -> Value:
    """Coefficients of the difference of two polynomials."""
    x, y = _aligned(a1, a2)
    return x - y


def polymul(a1: Any, a2: Any) -> Value:
    """Coefficients of the product of two polynomials (leading zeros are kept)."""
    return convolve(ravel(a1), ravel(a2))


def polyder(p: Any, m: Any = 1) -> Value:
    """Coefficients of derivative number ``m``."""
    result = as_value(p)
    for _ in range(static_int("polyder", "m", m)):
        count = result.shape[0]
        powers = np.arange(count - 1, 0, -1)
        result = slice_axis(result, 0, 0, max(count - 1, 0)) * constant(powers)
    return result


def polyint(p: Any, m: Any = 1, k: Any = None) -> Value:
    """Coefficients of an antiderivative (``m`` times), with constants of integration ``k``."""
    result = as_inexact("polyint", p)
    count = static_int("polyint", "m", m)
    constants = ravel(0.0 if k is None else k)
    if constants.size == 1:
        constants = broadcast_to(constants, (count,))
    if constants.size < count:
        fail(ShapeError(f"polyint: expected {count} constants, got {constants.size}"))
    for i in range(count):
        powers = np.arange(result.shape[0], 0, -1, dtype=np.float64)
        result = concatenate(
            (result / constant(powers, result.dtype.real), slice_axis(constants, 0, i, i + 1))
        )
    return result
