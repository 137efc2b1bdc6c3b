"""Views: reshape, transpose, broadcast. They move no data; fusion turns them into index maps."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..graph import Node, Value, make
from ..location import at_user_line
from ..types import Shape, TensorType
from .domains import draw
from .registry import register

__all__ = [
    "BROADCAST",
    "RESHAPE",
    "TRANSPOSE",
    "axis_index",
    "broadcast",
    "broadcast_to",
    "expand_dims",
    "moveaxis",
    "reshape",
    "squeeze",
    "transpose",
]

Axes = tuple[int, ...]


def axis_index(name: str, axis: int, ndim: int) -> int:
    """``axis`` counted from the front; raises ``IndexError`` when there is none such."""
    axis = operator.index(axis)  # NumPy's integers are not ours to keep in params
    if not -ndim <= axis < ndim:
        raise at_user_line(
            IndexError(f"{name}: expected an axis in [{-ndim}, {ndim}), got {axis}: out of range")
        )
    return axis + ndim if axis < 0 else axis


def _samples(*params: dict[str, Any]) -> Callable[..., Any]:
    """A ``samples`` field: an operand of shape (2, 3, 2) for each set of params."""

    def pairs(rng: Any, dtype: Any) -> Any:
        for chosen in params:
            yield (draw(rng, dtype, -3, 3).reshape(2, 3, 2),), chosen

    return pairs


# ------------------------------------------------------------------------------------- reshape


def _reshape_type(x: TensorType, *, shape: Shape) -> TensorType:
    if prod(shape) != x.size:
        raise ShapeError(
            f"reshape: expected a shape of {x.size} elements, got {x} and {list(shape)} "
            f"({prod(shape)} elements); one extent may be -1"
        )
    return TensorType(shape, x.dtype, x.weak)


def _reshape_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    x = moveaxis(operands[0], axes[0], 0)  # type: ignore[arg-type]
    return reshape(x, (x.shape[0], *node.param("shape"))), 0


RESHAPE = register(
    "reshape",
    "view",
    infer=_reshape_type,
    reference=lambda x, *, shape: np.reshape(x, shape),
    jvp=lambda node, tangents: reshape(tangents[0], node.param("shape")),
    transpose=lambda node, cotangent, linear: (reshape(cotangent, node.inputs[0].shape),),
    batch=_reshape_batch,
    doc="The same elements in C order under another shape.",
    samples=_samples({"shape": (4, 3)}, {"shape": (12,)}, {"shape": (1, 2, 1, 6)}),
)


def reshape(x: Value, shape: int | Sequence[int]) -> Value:
    """NumPy's ``reshape`` in C order; one extent may be -1."""
    target = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    unknown = target.count(-1)
    if unknown:
        known = -prod(target) if unknown == 1 else 0
        if unknown > 1 or (known and x.size % known) or not known:
            raise at_user_line(
                ShapeError(f"reshape: expected a shape that fits {x.type}, got {list(target)}")
            )
        target = tuple(x.size // known if n == -1 else n for n in target)
    return x if target == x.shape else make(RESHAPE, (x,), shape=target)


def expand_dims(x: Value, axes: Sequence[int]) -> Value:
    """``x`` with axes of extent 1 inserted at ``axes`` of the result (front-counted)."""
    ndim = x.ndim + len(axes)
    rest = iter(x.shape)
    return reshape(x, tuple(1 if d in axes else next(rest) for d in range(ndim)))


def squeeze(x: Value, axes: Sequence[int]) -> Value:
    """``x`` without the given axes of extent 1 (front-counted)."""
    for d in axes:
        if x.shape[d] != 1:
            raise at_user_line(ShapeError(f"squeeze: expected extent 1 at axis {d}, got {x.type}"))
    return reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in axes))


# ----------------------------------------------------------------------------------- transpose


def _transpose_type(x: TensorType, *, axes: Axes) -> TensorType:
    if sorted(axes) != list(range(x.ndim)):
        raise ShapeError(
            f"transpose: expected a permutation of {x.ndim} axes for {x}, got {list(axes)}"
        )
    return TensorType(tuple(x.shape[d] for d in axes), x.dtype, x.weak)


def _inverse(axes: Axes) -> Axes:
    inverse = [0] * len(axes)
    for position, axis in enumerate(axes):
        inverse[axis] = position
    return tuple(inverse)


def _transpose_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    x = moveaxis(operands[0], axes[0], 0)  # type: ignore[arg-type]
    return transpose(x, (0, *(d + 1 for d in node.param("axes")))), 0


TRANSPOSE = register(
    "transpose",
    "view",
    infer=_transpose_type,
    reference=lambda x, *, axes: np.transpose(x, axes),
    jvp=lambda node, tangents: transpose(tangents[0], node.param("axes")),
    transpose=lambda node, cotangent, linear: (transpose(cotangent, _inverse(node.param("axes"))),),
    batch=_transpose_batch,
    doc="Axis d of the result is axis axes[d] of the operand.",
    samples=_samples({"axes": (2, 0, 1)}, {"axes": (1, 0, 2)}),
)


def transpose(x: Value, axes: Sequence[int] | None = None) -> Value:
    """Permuted axes; reversed when ``axes`` is None."""
    if axes is None:
        axes = range(x.ndim)[::-1]
    order = tuple(axis_index("transpose", int(d), x.ndim) for d in axes)
    return x if order == tuple(range(x.ndim)) else make(TRANSPOSE, (x,), axes=order)


def moveaxis(x: Value, source: int, destination: int) -> Value:
    """``x`` with one axis moved to a new place, the others in their order (front-counted)."""
    if source == destination:
        return x
    order = [d for d in range(x.ndim) if d != source]
    order.insert(destination, source)
    return transpose(x, order)


# ----------------------------------------------------------------------------------- broadcast


def _broadcast_type(x: TensorType, *, shape: Shape, axes: Axes) -> TensorType:
    if tuple([shape[d] for d in axes]) != x.shape or list(axes) != sorted(set(axes)):
        raise ShapeError(f"broadcast: {x} does not lie at axes {list(axes)} of {list(shape)}")
    return TensorType(shape, x.dtype, x.weak)


def _broadcast_value(x: Any, *, shape: Shape, axes: Axes) -> Any:
    aligned = [1] * len(shape)
    for extent, d in zip(x.shape, axes, strict=True):
        aligned[d] = extent
    return np.broadcast_to(x.reshape(aligned), shape)


def _broadcast_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> tuple[Value]:
    from .reductions import sum_  # reductions transpose to broadcasts and the other way round

    new = tuple(d for d in range(cotangent.ndim) if d not in node.param("axes"))
    return (sum_(cotangent, new),)


def _broadcast_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    x = moveaxis(operands[0], axes[0], 0)  # type: ignore[arg-type]
    shape = (x.shape[0], *node.param("shape"))
    return broadcast(x, shape, (0, *(d + 1 for d in node.param("axes")))), 0


BROADCAST = register(
    "broadcast",
    "view",
    infer=_broadcast_type,
    reference=_broadcast_value,
    jvp=lambda node, tangents: broadcast(tangents[0], node.param("shape"), node.param("axes")),
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    doc="Operand axis d becomes result axis axes[d] (increasing); the other axes repeat it.",
    samples=_samples(
        {"shape": (2, 5, 3, 2), "axes": (0, 2, 3)}, {"shape": (2, 3, 2, 1), "axes": (0, 1, 2)}
    ),
)


def broadcast(x: Value, shape: Shape, axes: Axes) -> Value:
    """``x`` repeated along every axis of ``shape`` that is not in ``axes``."""
    return x if x.shape == shape else make(BROADCAST, (x,), shape=tuple(shape), axes=tuple(axes))


def broadcast_to(x: Value, shape: Sequence[int]) -> Value:
    """NumPy's ``broadcast_to``: axes aligned from the right, extent 1 stretches."""
    target = tuple([int(n) for n in shape])
    if x.shape == target:
        return x
    kept = _kept_axes(x.shape, target)
    if kept is None:
        raise at_user_line(
            ShapeError(f"broadcast_to: expected a shape that {x.type} stretches to, got {shape}")
        )
    if len(kept) < x.ndim:  # axes of extent 1 go, so that they can be repeated
        x = reshape(x, [target[d] for d in kept])
    return broadcast(x, target, kept)


@lru_cache(maxsize=4096)
def _kept_axes(shape: Shape, target: Shape) -> Axes | None:
    """The axes of ``target`` that are axes of ``shape``; None if it does not stretch to it."""
    offset = len(target) - len(shape)
    pairs = list(enumerate(shape, offset))
    if offset < 0 or any(n not in (1, target[d]) for d, n in pairs):
        return None
    return tuple(d for d, n in pairs if n == target[d])
