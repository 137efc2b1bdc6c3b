"""Questions about arrays and element types: shape, result_type, can_cast, finfo, isdtype."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..ir.dtypes import ALL, DType, as_dtype, float64, int64
from ..ir.errors import DTypeError
from ..ir.location import at_user_line
from ..ir.ops.operands import as_value, common_dtype
from ..ir.types import TensorType
from .array import Array, lift

__all__ = [
    "__array_namespace_info__",
    "can_cast",
    "finfo",
    "iinfo",
    "iscomplexobj",
    "isdtype",
    "isrealobj",
    "ndim",
    "result_type",
    "shape",
    "size",
]


def shape(a: Any) -> tuple[int, ...]:
    """The shape of an array or of nested lists."""
    return a.shape if type(a) is Array else tuple(np.shape(a))


def ndim(a: Any) -> int:
    """The number of axes."""
    return len(shape(a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or the extent of one axis."""
    extents = shape(a)
    if axis is None:
        return math.prod(extents)
    axes = axis if isinstance(axis, tuple) else (axis,)
    return math.prod(extents[d] for d in axes)


def _dtype_of(x: Any) -> DType:
    if type(x) is Array:
        return x.dtype
    if isinstance(x, (DType, np.dtype, type, str)):
        return as_dtype(x)
    return as_value(lift(x)).dtype


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The element type that arrays, dtypes and Python scalars have together (NEP 50)."""
    types = []
    for x in arrays_and_dtypes:
        if isinstance(x, (DType, np.dtype, type, str)):
            types.append(TensorType((), as_dtype(x)))
        else:
            types.append(x._type if type(x) is Array else as_value(lift(x)).type)
    if not types:
        raise at_user_line(ValueError("result_type: expected one argument at least"))
    return common_dtype(types)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether one element type converts to another under NumPy's casting rule."""
    return bool(np.can_cast(_dtype_of(from_).numpy, as_dtype(to).numpy, casting))  # type: ignore[arg-type]


_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether ``dtype`` is another dtype, of a kind by name, or one of a tuple of these."""
    target = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(target, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise at_user_line(ValueError(f"isdtype: expected one of {list(_KINDS)}, got {kind!r}"))
        return target.kind in _KINDS[kind]
    return target is as_dtype(kind)


def finfo(type: Any) -> Any:
    """Limits of a floating type: ``bits eps max min smallest_normal dtype``."""
    target = _dtype_of(type)
    if not target.is_inexact:
        raise at_user_line(DTypeError(f"finfo: expected a floating dtype, got {target}"))
    return np.finfo(target.numpy)


def iinfo(type: Any) -> Any:
    """Limits of an integer type: ``bits max min dtype``."""
    target = _dtype_of(type)
    if not target.is_integer:
        raise at_user_line(DTypeError(f"iinfo: expected an integer dtype, got {target}"))
    return np.iinfo(target.numpy)


def isrealobj(x: Any) -> bool:
    """Whether the element type is not complex."""
    return not iscomplexobj(x)


def iscomplexobj(x: Any) -> bool:
    """Whether the element type is complex."""
    return _dtype_of(x).is_complex


def __array_namespace_info__() -> Any:  # noqa: N807 - the standard's name
    """What the Array API asks a namespace: capabilities, devices, dtypes."""

    def dtypes(*, device: Any = None, kind: Any = None) -> dict[str, DType]:
        return {d.name: d for d in ALL if kind is None or isdtype(d, kind)}

    def default_dtypes(*, device: Any = None) -> dict[str, DType]:
        return {
            "real floating": float64,
            "complex floating": as_dtype("complex128"),
            "integral": int64,
            "indexing": int64,
        }

    return SimpleNamespace(
        capabilities=lambda: {
            "boolean indexing": True,  # of known arrays
            "data-dependent shapes": True,
            "max dimensions": 64,
        },
        default_device=lambda: "cpu",
        devices=lambda: ["cpu"],
        dtypes=dtypes,
        default_dtypes=default_dtypes,
    )
