"""Leaves: where values come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import DType, as_dtype, bool_, complex128, float64, int64, uint64
from ..graph import Literal, Node, Value, make, make_node
from ..types import Shape, TensorType
from .domains import between
from .registry import register

__all__ = ["ALIAS", "CONSTANT", "DATA", "INPUT", "IOTA", "alias", "constant", "input_node", "iota"]


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


def constant(value: Any, dtype: Any = None, *, weak: bool = False) -> Value:
    """A constant from a Python scalar, NumPy scalar or array.

    Python scalars without ``dtype`` are weak: bool, int64, float64 or complex128 that give way.
    """
    if dtype is None:
        found: DType
        kind = type(value)
        if kind is float:
            found, weak = float64, True
        elif kind is int:
            # Integers beyond int64 can still meet uint64 arrays.
            found, weak = (uint64 if value > _INT64_MAX else int64), True
        elif kind is bool:
            found = bool_
        elif kind is complex:
            found, weak = complex128, True
        else:
            found = as_dtype(np.asarray(value).dtype)
    else:
        found = as_dtype(dtype)
    return make(CONSTANT, (), literal=Literal.of(value, found), weak=weak)


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
    return np.broadcast_to(steps.reshape([-1 if d == axis else 1 for d in range(len(shape))]), shape)


IOTA = register(
    "iota",
    "leaf",
    infer=_iota_type,
    reference=_iota_value,
    doc="Element [i0, i1, ...] is i_axis.",
)


def iota(shape: Shape, axis: int = 0, dtype: DType = int64) -> Value:
    return make(IOTA, (), shape=tuple(shape), axis=axis, dtype=dtype)
