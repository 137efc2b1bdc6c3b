"""Mantissa and exponent of floats: frexp and ldexp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import int32, int64
from ..errors import DTypeError, ShapeError
from ..graph import Node, Value, make
from ..location import at_user_line
from ..scalar import exponents as programs
from ..types import TensorType, describe
from .domains import SIZE, between, draw
from .elementwise import elementwise
from .operands import as_value, broadcast_shapes, convert, inexact_operands
from .registry import register
from .shape import broadcast_to

__all__ = ["FREXP_EXPONENT", "FREXP_MANTISSA", "LDEXP", "frexp", "ldexp"]

_NO_COMPLEX = {"complex_scalar": "a complex number has no exponent"}


def _mantissa_partial(t: Value, x: Value, out: Value) -> Value:
    return ldexp(t, -make(FREXP_EXPONENT, (x,)))


FREXP_MANTISSA = elementwise(
    "frexp_mantissa",
    kinds="f",
    reference=lambda x: np.frexp(x)[0],
    scalar=programs.frexp_mantissa,
    partials=(_mantissa_partial,),
    doc="m of x = m 2**e with 0.5 <= |m| < 1; zeros, infinities and NaN are their own (C99 frexp).",
    samples=between((1.1, 1.9), signed=True),
    why_not=_NO_COMPLEX | {"transpose": "not linear"},
)


def _exponent_value(x: Any) -> Any:
    return np.where(np.isfinite(x), np.frexp(x)[1], 0).astype(np.int32)


FREXP_EXPONENT = elementwise(
    "frexp_exponent",
    kinds="f",
    reference=_exponent_value,
    scalar=programs.frexp_exponent,
    result=int32,
    doc="e of x = m 2**e with 0.5 <= |m| < 1; 0 for zeros, infinities and NaN.",
    samples=between((0.3, 2), signed=True),
    why_not=_NO_COMPLEX | {"jvp": "integer result", "transpose": "integer result"},
)


def frexp(x: Any) -> tuple[Value, Value]:
    """Mantissa and exponent (int32) with ``x = mantissa * 2**exponent``, subnormal or not."""
    (x,) = inexact_operands("frexp", x, kinds="f")
    return make(FREXP_MANTISSA, (x,)), make(FREXP_EXPONENT, (x,))


def _ldexp_type(x: TensorType, n: TensorType) -> TensorType:
    if not x.dtype.is_floating or n.dtype is not int64:
        raise DTypeError(f"ldexp: expected a floating and an int64 operand, got {describe((x, n))}")
    if x.shape != n.shape:
        raise ShapeError(f"ldexp: expected equal shapes, got {describe((x, n))}")
    return TensorType(x.shape, x.dtype, x.weak and n.weak)


def _ldexp_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    return None if tangents[0] is None else ldexp(tangents[0], node.inputs[1])


def _ldexp_samples(rng: Any, dtype: Any) -> tuple[Any, Any]:
    return draw(rng, dtype, -3, 3), rng.integers(-3, 4, SIZE)


def _ldexp_value(x: Any, n: Any) -> Any:
    return np.ldexp(x, np.clip(n, -5000, 5000).astype(np.int32))


LDEXP = register(
    "ldexp",
    "elementwise",
    infer=_ldexp_type,
    reference=_ldexp_value,
    scalar=programs.ldexp,
    jvp=_ldexp_jvp,
    transpose=lambda node, cotangent, linear: (ldexp(cotangent, node.inputs[1]), None),
    doc="x 2**n, rounded once (C99 ldexp); no derivative in the integer n.",
    samples=_ldexp_samples,
    why_not=_NO_COMPLEX,
)


def ldexp(x: Any, n: Any) -> Value:
    """``x * 2**n`` for integers ``n``, exact but for overflow and underflow."""
    (x,) = inexact_operands("ldexp", x, kinds="f")
    n = as_value(n)
    if not (n.dtype.is_integer or n.dtype.is_bool):
        raise at_user_line(DTypeError(f"ldexp: expected integer exponents, got {n.type}"))
    shape = broadcast_shapes("ldexp", [x.type, n.type])
    return make(LDEXP, (broadcast_to(x, shape), broadcast_to(convert(n, int64), shape)))
