"""Windows whose place is known at run time only: dynamic_slice, dynamic_update_slice.

The start of each axis is an int64 scalar. As in JAX, a negative start counts from the end, and then
the start is moved so that the window lies inside: nothing is ever out of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import int64
from ..errors import DTypeError, ShapeError
from ..graph import Node, Value, make
from ..location import at_user_line
from ..types import Shape, TensorType, describe
from .comparison import lt
from .elementwise import batch_elementwise
from .fill import zeros_of
from .gather import as_index, gather
from .leaves import constant, iota
from .operands import as_value, common_dtype, convert
from .registry import register
from .scatter import scatter
from .selection import maximum, minimum, where
from .shape import broadcast, moveaxis

__all__ = ["DYNAMIC_SLICE", "DYNAMIC_UPDATE_SLICE", "dynamic_slice", "dynamic_update_slice"]


def _check(name: str, x: TensorType, starts: Sequence[TensorType], sizes: Shape) -> None:
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise ShapeError(
            f"{name}: expected {x.ndim} starts and a window of {x.ndim} axes for {x}, got "
            f"{len(starts)} starts and {list(sizes)}"
        )
    if any(not 0 <= n <= extent for n, extent in zip(sizes, x.shape, strict=True)):
        raise ShapeError(f"{name}: expected a window that fits into {x}, got {list(sizes)}")
    for t in starts:
        if t.shape != () or t.dtype is not int64:
            raise DTypeError(f"{name}: expected starts of type i64[], got {t}")


def _window(shape: Shape, starts: Sequence[Any], sizes: Shape) -> tuple[slice, ...]:
    index = []
    for n, start, size in zip(shape, starts, sizes, strict=True):
        first = int(start) + n if start < 0 else int(start)
        first = min(max(first, 0), n - size)
        index.append(slice(first, first + size))
    return tuple(index)


def _window_indices(x: Value, starts: Sequence[Value], sizes: Shape) -> list[Value]:
    """The window of each example as index arrays ``[example, *sizes]``, inside by construction."""
    count = starts[0].shape[0]
    whole = (count, *sizes)
    indices = [iota(whole, 0)]
    for d, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        n = x.shape[d + 1]
        first = where(lt(start, 0), start + n, start)
        first = minimum(maximum(first, 0), n - size)
        indices.append(broadcast(first, whole, (0,)) + iota(whole, d + 1))
    return indices


def _int_scalar(name: str, x: Any) -> Value:
    start = as_index(name, x)
    if start.shape != ():
        raise at_user_line(ShapeError(f"{name}: expected scalar starts, got {start.type}"))
    return start


# ------------------------------------------------------------------------------- dynamic_slice


def _slice_type(x: TensorType, *starts: TensorType, sizes: Shape) -> TensorType:
    _check("dynamic_slice", x, starts, sizes)
    return TensorType(sizes, x.dtype, x.weak)


def _slice_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    t = tangents[0]
    return None if t is None else make(DYNAMIC_SLICE, (t, *node.inputs[1:]), **dict(node.params))


def _slice_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> Any:
    x, *starts = node.inputs
    x_bar = make(DYNAMIC_UPDATE_SLICE, (zeros_of(x.type), cotangent, *starts))
    return x_bar, *(None for _ in starts)


def _slice_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    sizes = node.param("sizes")
    if all(a is None for a in axes[1:]):
        x = moveaxis(operands[0], axes[0], 0)  # type: ignore[arg-type]
        whole = (x, constant(0, int64), *operands[1:])
        return make(DYNAMIC_SLICE, whole, sizes=(x.shape[0], *sizes)), 0
    (x, *starts), _ = batch_elementwise(node, operands, axes)
    example, *indices = _window_indices(x, starts, sizes)
    if axes[0] is None:
        return gather(operands[0], *indices, checked=True), 0
    return gather(x, example, *indices, checked=True), 0


def _slice_samples(rng: Any, dtype: Any) -> Any:
    x = rng.standard_normal((5, 4)).astype(dtype)
    yield (x, np.int64(1), np.int64(2)), {"sizes": (3, 2)}
    yield (x, np.int64(-2), np.int64(9)), {"sizes": (2, 3)}


DYNAMIC_SLICE = register(
    "dynamic_slice",
    "index",
    infer=_slice_type,
    reference=lambda x, *starts, sizes: x[_window(x.shape, starts, sizes)],
    jvp=_slice_jvp,
    transpose=_slice_transpose,
    batch=_slice_batch,
    doc="A window of static size at starts known at run time; a negative start counts from the "
    "end, then the window is moved inside (jax.lax.dynamic_slice).",
    samples=_slice_samples,
)


def dynamic_slice(x: Any, *starts: Any, sizes: Sequence[int]) -> Value:
    """A window of ``x`` of static ``sizes`` at run-time ``starts`` (integer scalars, one an axis).

    Starts are clamped as in JAX: a negative one counts from the end, and the window is moved so
    that it lies inside.

    Raises
    ------
    ShapeError
        For a window larger than ``x`` or a wrong number of starts.
    """
    value = as_value(x)
    scalars = [_int_scalar("dynamic_slice", s) for s in starts]
    return make(DYNAMIC_SLICE, (value, *scalars), sizes=tuple(int(n) for n in sizes))


# ------------------------------------------------------------------------ dynamic_update_slice


def _update_type(x: TensorType, update: TensorType, *starts: TensorType) -> TensorType:
    if update.dtype is not x.dtype:
        raise DTypeError(
            f"dynamic_update_slice: expected equal dtypes, got {describe((x, update))}"
        )
    _check("dynamic_update_slice", x, starts, update.shape)
    return TensorType(x.shape, x.dtype)


def _update_value(x: Any, update: Any, *starts: Any) -> Any:
    y = np.array(x)
    y[_window(x.shape, starts, update.shape)] = update
    return y


def _update_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    pair = [
        zeros_of(x.type) if t is None else t
        for x, t in zip(node.inputs[:2], tangents[:2], strict=True)
    ]
    return make(DYNAMIC_UPDATE_SLICE, (*pair, *node.inputs[2:]))


def _update_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> Any:
    _, update, *starts = node.inputs
    x_bar = update_bar = None
    if linear[0]:
        x_bar = make(DYNAMIC_UPDATE_SLICE, (cotangent, zeros_of(update.type), *starts))
    if linear[1]:
        update_bar = make(DYNAMIC_SLICE, (cotangent, *starts), sizes=update.shape)
    return x_bar, update_bar, *(None for _ in starts)


def _update_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    (x, update, *starts), _ = batch_elementwise(node, operands, axes)
    if all(a is None for a in axes[2:]):
        return make(DYNAMIC_UPDATE_SLICE, (x, update, constant(0, int64), *operands[2:])), 0
    indices = _window_indices(x, starts, update.shape[1:])
    return scatter(x, update, *indices, checked=True), 0


def _update_samples(rng: Any, dtype: Any) -> Any:
    x, u = rng.standard_normal((5, 4)).astype(dtype), rng.standard_normal((2, 3)).astype(dtype)
    yield (x, u, np.int64(1), np.int64(-2)), {}


DYNAMIC_UPDATE_SLICE = register(
    "dynamic_update_slice",
    "index",
    infer=_update_type,
    reference=_update_value,
    jvp=_update_jvp,
    transpose=_update_transpose,
    batch=_update_batch,
    doc="The operand with a window overwritten; starts as in dynamic_slice.",
    samples=_update_samples,
)


def dynamic_update_slice(x: Any, update: Any, *starts: Any) -> Value:
    """``x`` with the window at run-time ``starts`` replaced by ``update``; clamped as in JAX."""
    value, change = as_value(x), as_value(update)
    if common_dtype([value.type, change.type]) is not value.dtype:
        raise at_user_line(
            DTypeError(
                f"dynamic_update_slice: expected an update that {value.dtype} holds, got "
                f"{describe((value.type, change.type))}; convert with astype"
            )
        )
    scalars = [_int_scalar("dynamic_update_slice", s) for s in starts]
    change = convert(change, value.dtype)
    return make(DYNAMIC_UPDATE_SLICE, (convert(value, value.dtype), change, *scalars))
