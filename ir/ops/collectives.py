"""Operations along a named axis of ``vmap``: gather_axis, scatter_axis.

Both have the *index* of the example as a second operand: a stand-in that ``vmap`` maps over ``0, 1,
...``. A function of one example cannot tell what others hold, so these ops have no value; batching
along that axis gives them one, and what it gives is ordinary operations::

    gather_axis(x, index)    the x of all examples along a new first axis: the same for all of them
    scatter_axis(y, index)   of the y of all examples the sum, whose element ``index`` it is

Each is the other's transpose. Everything else along an axis (sums, means, extrema, permutations) is
made of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtypes import int64
from ..errors import DTypeError, ShapeError
from ..graph import Node, Value, make
from ..types import TensorType
from .arithmetic import mul
from .operands import convert
from .reductions import sum_
from .registry import register
from .shape import broadcast, moveaxis

__all__ = ["GATHER_AXIS", "SCATTER_AXIS", "gather_axis", "scatter_axis"]

_NO_VALUE = {
    "reference": "has a value for all examples of vmap together, not for one",
    "samples": "has no value outside of vmap: tests/engine/test_collectives.py",
}


def _check_index(name: str, index: TensorType) -> None:
    if index.shape or index.dtype is not int64:
        raise DTypeError(f"{name}: index: expected i64[], got {index}")


def _repeated(x: Value, size: int) -> Value:
    return broadcast(x, (size, *x.shape), tuple(range(1, x.ndim + 1)))


# ---------------------------------------------------------------------------------- gather_axis


def _gather_type(x: TensorType, index: TensorType, *, size: int) -> TensorType:
    _check_index("gather_axis", index)
    return TensorType((size, *x.shape), x.dtype, x.weak)


def _gather_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    x, index = operands
    at, own = axes
    size = node.param("size")
    if own is None:  # along another axis
        assert at is not None
        return gather_axis(x, index, size), at + 1
    return (_repeated(x, size) if at is None else moveaxis(x, at, 0)), None


GATHER_AXIS = register(
    "gather_axis",
    "custom",
    infer=_gather_type,
    jvp=lambda node, tangents: gather_axis(tangents[0], node.inputs[1], node.param("size")),
    transpose=lambda node, cotangent, linear: (scatter_axis(cotangent, node.inputs[1]), None),
    batch=_gather_batch,
    doc="The operand of all examples of a vmap, along a new first axis (jax.lax.all_gather).",
    why_not=_NO_VALUE,
)


def gather_axis(x: Value, index: Value, size: int) -> Value:
    """``x`` of each of ``size`` examples; ``index`` is that of the example."""
    return make(GATHER_AXIS, (x, index), size=size)


# --------------------------------------------------------------------------------- scatter_axis


def _scatter_type(y: TensorType, index: TensorType) -> TensorType:
    _check_index("scatter_axis", index)
    if not y.shape:
        raise ShapeError(f"scatter_axis: expected an element for each example, got {y}")
    return TensorType(y.shape[1:], y.dtype)


def _scatter_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    y, index = operands
    at, own = axes
    if own is None:  # along another axis, which comes to lie behind that of the elements
        assert at is not None
        return scatter_axis(moveaxis(y, at, 1), index), 0
    if at is None:
        return convert(mul(y, y.shape[0]), y.dtype), 0
    return sum_(y, at), 0


SCATTER_AXIS = register(
    "scatter_axis",
    "custom",
    infer=_scatter_type,
    jvp=lambda node, tangents: scatter_axis(tangents[0], node.inputs[1]),
    transpose=lambda node, cotangent, linear: (
        gather_axis(cotangent, node.inputs[1], node.inputs[0].shape[0]),
        None,
    ),
    batch=_scatter_batch,
    doc="Element `index` of the sum of the operands of all examples of a vmap "
    "(jax.lax.psum_scatter).",
    why_not=_NO_VALUE,
)


def scatter_axis(y: Value, index: Value) -> Value:
    """Element ``index`` of the sum over examples of ``y``."""
    return make(SCATTER_AXIS, (y, index))
