"""Leaves: where values come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import DType, as_dtype, complex128, float64, int64, uint64
from ..graph import Literal, Node, Value, make, make_node
from ..location import at_user_line
from ..types import Shape, TensorType
from .domains import between
from .registry import register

__all__ = [
    *("ALIAS", "CONSTANT", "DATA", "INPUT", "IOTA"),
    *("alias", "constant", "input_node", "iota", "number_key"),
]


def _input_type(*, type: TensorType, name: str, trace: Any = None) -> TensorType:
    return type


INPUT = register(
    "input",
    "leaf",
    infer=_input_type,
    doc="A formal parameter of a graph. ``trace`` tells the engine which trace it belongs to.",
)


def input_node(type: TensorType, name: str, trace: Any = None) -> Node:
    """A fresh input: distinct from every other node."""
    return make_node(INPUT, (), type=type, name=name, trace=trace)


def _constant_type(*, literal: Literal, weak: bool) -> TensorType:
    return TensorType(literal.shape, literal.dtype, weak)


CONSTANT = register(
    "constant",
    "leaf",
    infer=_constant_type,
    reference=lambda *, literal, weak: literal.array(),
    doc="Known data of moderate size, part of the program and of its key.",
)


_INT64_MAX = 2**63 - 1


# Constants of Python numbers in use, see number_key.
_NUMBERS: dict[Any, Value] = {}
_FEW = 4096
_WEAK = {int: int64, float: float64, complex: complex128}


def number_key(x: Any) -> Any:
    """What tells Python numbers apart by class and bits; a NaN is found as the same object only."""
    kind = type(x)
    # Equal floats have equal bits but for zeros, which are in complex numbers too.
    return (kind, x) if x and kind is not complex else (kind, str(x))


def constant(value: Any, dtype: Any = None, *, weak: bool = False) -> Value:
    """A constant from a Python scalar, NumPy scalar or array.

    Python scalars without ``dtype`` are weak: int64, float64 or complex128 that give way (a bool is
    strong). Equal ones are one value.
    """
    if dtype is not None:
        return _constant(value, as_dtype(dtype), weak)
    found = _WEAK.get(type(value))
    if found is None:
        return _constant(value, as_dtype(np.asarray(value).dtype), weak)
    key = number_key(value)
    known = _NUMBERS.get(key)
    if known is None:
        if len(_NUMBERS) >= _FEW:
            _NUMBERS.clear()
        if found is int64 and value > _INT64_MAX:
            found = uint64  # can still meet uint64 arrays
        if found is not float64 and found is not complex128 and not _holds(found, value):
            raise at_user_line(
                OverflowError(
                    f"Python integer {value} is out of bounds for {found}; convert it with float"
                )
            )
        known = _NUMBERS[key] = _constant(value, found, True)
    return known


def _holds(dtype: DType, value: int) -> bool:
    info = np.iinfo(dtype.numpy)
    return bool(info.min <= value <= info.max)


def _constant(value: Any, dtype: DType, weak: bool) -> Value:
    # It belongs to no line of the program: the next use may be somewhere else.
    literal = Literal.of(value, dtype)
    params = (("literal", literal), ("weak", weak))
    return Value(Node(CONSTANT, (), params, (TensorType(literal.shape, dtype, weak),)))


def _data_type(*, type: TensorType) -> TensorType:
    return type


DATA = register(
    "data",
    "leaf",
    infer=_data_type,
    doc="Data held by the engine (the node's ``memo``): a realized array. Lifted to an input when "
    "a graph is closed.",
)


def _alias_type(x: TensorType) -> TensorType:
    return x


ALIAS = register(
    "alias",
    "elementwise",
    infer=_alias_type,
    reference=lambda x: x,
    scalar=lambda h, x: x,
    complex_scalar=lambda h, x: x,
    jvp=lambda node, tangents: tangents[0],
    transpose=lambda node, cotangent, linear: (cotangent,),
    doc="The operand itself under a new identity: what a transform differentiates or batches "
    "with respect to. Dropped by canonicalization.",
    samples=between((-3, 3)),
)


def alias(x: Value) -> Value:
    return make(ALIAS, (x,))


def _iota_type(*, shape: Shape, axis: int, dtype: DType) -> TensorType:
    return TensorType(shape, dtype)


def _iota_value(*, shape: Shape, axis: int, dtype: DType) -> Any:
    steps = np.arange(shape[axis], dtype=dtype.numpy)
    return np.broadcast_to(
        steps.reshape([-1 if d == axis else 1 for d in range(len(shape))]), shape
    )


IOTA = register(
    "iota",
    "leaf",
    infer=_iota_type,
    reference=_iota_value,
    doc="Element [i0, i1, ...] is i_axis.",
)


def iota(shape: Shape, axis: int = 0, dtype: DType = int64) -> Value:
    return make(IOTA, (), shape=tuple(shape), axis=axis, dtype=dtype)
