"""One value everywhere: a 0-d constant under a broadcast, which costs no memory."""

from __future__ import annotations

from typing import Any

from ..dtypes import DType
from ..errors import DTypeError, ShapeError
from ..graph import Value
from ..location import at_user_line
from ..types import Shape, TensorType, describe
from .leaves import constant
from .operands import as_value, common_dtype, convert
from .shape import broadcast

__all__ = ["filled", "scalar_of", "zeros_of"]


def filled(shape: Shape, value: Any, dtype: DType) -> Value:
    """An array of ``shape`` with ``value`` in every element."""
    return broadcast(constant(value, dtype), tuple(shape), ())


def zeros_of(type: TensorType) -> Value:
    """Zeros of the shape and dtype of ``type``: a tangent or cotangent that is not there."""
    return filled(type.shape, 0, type.dtype)


def scalar_of(name: str, value: Any, x: TensorType) -> Value:
    """``value`` as a scalar that arrays of type ``x`` can hold."""
    scalar = as_value(value)
    if scalar.shape != ():
        raise at_user_line(ShapeError(f"{name}: expected a scalar value, got {scalar.type}"))
    if common_dtype([TensorType(x.shape, x.dtype), scalar.type]) is not x.dtype:
        raise at_user_line(
            DTypeError(
                f"{name}: expected a value that {x.dtype} holds, got {describe((x, scalar.type))}; "
                f"convert with astype"
            )
        )
    return convert(scalar, x.dtype)
