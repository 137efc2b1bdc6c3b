"""Static views with holes and seams: slice, pad, concatenate, flip, shift."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from ..dtypes import bool_
from ..errors import DTypeError, ShapeError
from ..graph import Node, Op, Value, make
from ..location import at_user_line
from ..types import Shape, TensorType, describe
from .elementwise import batch_elementwise
from .fill import filled, scalar_of, zeros_of
from .operands import as_value, common_dtype, convert
from .reductions import sum_
from .registry import register
from .selection import where
from .shape import Axes, axis_index, broadcast, moveaxis

__all__ = ["CONCAT", "PAD", "SLICE", "concat", "flip", "pad", "shift", "slice_", "slice_axis"]


def _per_axis(name: str, what: str, numbers: Sequence[Any], ndim: int) -> None:
    if len(numbers) != ndim:
        raise ShapeError(f"{name}: expected {ndim} {what}, one an axis, got {list(numbers)}")


# --------------------------------------------------------------------------------------- slice


def _slice_type(x: TensorType, *, start: Axes, step: Axes, shape: Shape) -> TensorType:
    for what, numbers in (("starts", start), ("steps", step), ("extents", shape)):
        _per_axis("slice", what, numbers, x.ndim)
    for d, (first, by, count) in enumerate(zip(start, step, shape, strict=True)):
        if by == 0 or count < 0:
            raise ShapeError(
                f"slice: expected a nonzero step and a count of 0 or more at axis {d}, "
                f"got step {by} and count {count}"
            )
        last = first + by * (count - 1)
        if count and not (0 <= first < x.shape[d] and 0 <= last < x.shape[d]):
            raise IndexError(
                f"slice: expected positions in [0, {x.shape[d]}) at axis {d} of {x}, "
                f"got {first} to {last}"
            )
    return TensorType(shape, x.dtype, x.weak)


def _slice_value(x: Any, *, start: Axes, step: Axes, shape: Shape) -> Any:
    index = []
    for first, by, count in zip(start, step, shape, strict=True):
        stop = first + by * count
        index.append(slice(first, stop if stop >= 0 else None, by) if count else slice(0))
    return x[tuple(index)]


def _slice_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> tuple[Value]:
    """The cotangent laid out over zeros: reversed axes turned round, then padded."""
    start, step, shape = (node.param(name) for name in ("start", "step", "shape"))
    forward = flip(cotangent, [d for d, by in enumerate(step) if by < 0])
    low, high, interior = [], [], []
    for extent, first, by, count in zip(node.inputs[0].shape, start, step, shape, strict=True):
        ends = (first, first + by * (count - 1))
        low.append(min(ends) if count else extent)
        high.append(extent - 1 - max(ends) if count else 0)
        interior.append(abs(by) - 1 if count else 0)
    return (pad(forward, 0, low, high, interior),)


def _slice_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    x = moveaxis(operands[0], axes[0], 0)  # type: ignore[arg-type]
    start, step, shape = (node.param(name) for name in ("start", "step", "shape"))
    front = {"start": (0, *start), "step": (1, *step), "shape": (x.shape[0], *shape)}
    return make(SLICE, (x,), **front), 0


def _slice_samples(rng: Any, dtype: Any) -> Any:
    x = rng.standard_normal((5, 4)).astype(dtype)
    yield (x,), {"start": (4, 1), "step": (-2, 1), "shape": (3, 2)}
    yield (x,), {"start": (0, 3), "step": (1, -1), "shape": (0, 4)}


SLICE: Op = register(
    "slice",
    "view",
    infer=_slice_type,
    reference=_slice_value,
    jvp=lambda node, tangents: make(SLICE, (tangents[0],), **dict(node.params)),
    transpose=_slice_transpose,
    batch=_slice_batch,
    doc="Element [i, ...] is element [start + step * i, ...] of the operand, 0 <= i < shape; "
    "steps may be negative. Empty axes are written start 0, step 1.",
    samples=_slice_samples,
)


def slice_(
    x: Any,
    start: Sequence[int | None] | None = None,
    stop: Sequence[int | None] | None = None,
    step: Sequence[int | None] | None = None,
) -> Value:
    """``x[start:stop:step]`` on every axis, with Python's reading of each triple.

    Parameters
    ----------
    x : array-like
    start, stop, step : sequence of (int or None), optional
        One an axis. Out-of-range ends are cut and negative ones count from the end, as in
        Python; steps may be negative, not zero.

    Raises
    ------
    ShapeError
        For a zero step or a wrong number of entries.
    """
    value = as_value(x)
    unset = (None,) * value.ndim
    triples = [unset if numbers is None else tuple(numbers) for numbers in (start, stop, step)]
    try:
        for what, numbers in zip(("starts", "stops", "steps"), triples, strict=True):
            _per_axis("slice", what, numbers, value.ndim)
        if 0 in triples[2]:
            raise ShapeError("slice: expected a nonzero step, got 0")
    except ShapeError as error:
        raise at_user_line(error) from None
    firsts, bys, counts = [], [], []
    for extent, first, end, by in zip(value.shape, *triples, strict=True):
        span = range(*slice(first, end, by).indices(extent))
        counts.append(len(span))
        # One spelling for each view: a step says nothing where there are fewer than two elements.
        firsts.append(span.start if span else 0)
        bys.append(span.step if len(span) > 1 else 1)
    if tuple(counts) == value.shape and all(by == 1 for by in bys):
        return value
    return make(SLICE, (value,), start=tuple(firsts), step=tuple(bys), shape=tuple(counts))


def slice_axis(x: Any, axis: int, start: int | None, stop: int | None, step: int = 1) -> Value:
    """``slice_`` along one axis, the others whole."""
    value = as_value(x)
    d = axis_index("slice", axis, value.ndim)

    def only(number: int | None) -> list[int | None]:
        return [number if i == d else None for i in range(value.ndim)]

    return slice_(value, only(start), only(stop), only(step))


def flip(x: Any, axis: int | Sequence[int] | None = None) -> Value:
    """NumPy's ``flip``: the elements in reverse order along ``axis`` (all axes by default)."""
    value = as_value(x)
    if axis is None:
        axis = range(value.ndim)
    listed = axis if isinstance(axis, Iterable) else (axis,)
    axes = {axis_index("flip", d, value.ndim) for d in listed}
    return slice_(value, step=[-1 if d in axes else 1 for d in range(value.ndim)])


# ----------------------------------------------------------------------------------------- pad


def _pad_type(
    x: TensorType, value: TensorType, *, low: Axes, high: Axes, interior: Axes
) -> TensorType:
    for what, numbers in (("low", low), ("high", high), ("interior", interior)):
        _per_axis("pad", f"{what} amounts", numbers, x.ndim)
        if any(n < 0 for n in numbers):
            raise ShapeError(
                f"pad: expected amounts of 0 or more, got {what} {list(numbers)}; cut with a slice"
            )
    if value.shape != () or value.dtype is not x.dtype:
        raise DTypeError(f"pad: expected a value of type {x.dtype.short}[], got {value} for {x}")
    shape = tuple(
        before + n + max(n - 1, 0) * between + after
        for n, before, after, between in zip(x.shape, low, high, interior, strict=True)
    )
    return TensorType(shape, x.dtype, x.weak and value.weak)


def _pad_value(x: Any, value: Any, *, low: Axes, high: Axes, interior: Axes) -> Any:
    spread = [n + max(n - 1, 0) * between for n, between in zip(x.shape, interior, strict=True)]
    shape = [a + n + b for a, n, b in zip(low, spread, high, strict=True)]
    result = np.full(shape, value, x.dtype)
    index = [
        slice(before, before + n, between + 1)
        for before, n, between in zip(low, spread, interior, strict=True)
    ]
    result[tuple(index)] = x
    return result


def _pad_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    pair = [
        zeros_of(x.type) if t is None else t for x, t in zip(node.inputs, tangents, strict=True)
    ]
    return make(PAD, pair, **dict(node.params))


def _pad_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> Sequence[Value | None]:
    x = node.inputs[0]
    low, high, interior = (node.param(name) for name in ("low", "high", "interior"))
    x_bar = value_bar = None
    if linear[0]:
        count = x.shape
        stop = [a + n + max(n - 1, 0) * b for a, n, b in zip(low, count, interior, strict=True)]
        x_bar = slice_(cotangent, low, stop, [b + 1 for b in interior])
    if linear[1]:  # summed over the border alone: a difference of two sums would cancel
        inside = pad(filled(x.shape, False, bool_), True, low, high, interior)
        value_bar = sum_(where(inside, cotangent, zeros_of(cotangent.type)))
    return x_bar, value_bar


def _pad_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    amounts = {name: (0, *node.param(name)) for name in ("low", "high", "interior")}
    (x, value), _ = batch_elementwise(node, operands, axes)
    if axes[1] is None:
        return make(PAD, (x, operands[1]), **amounts), 0
    # Each example has its own border: pad with zero, then fill in the border by its mask.
    zero = filled((), 0, x.dtype)
    padded = make(PAD, (x, zero), **amounts)
    border = make(PAD, (filled(x.shape, False, bool_), filled((), True, bool_)), **amounts)
    return where(border, broadcast(value, padded.shape, (0,)), padded), 0


def _pad_samples(rng: Any, dtype: Any) -> Any:
    x, value = rng.standard_normal((3, 2)).astype(dtype), rng.standard_normal(()).astype(dtype)
    yield (x, value), {"low": (1, 0), "high": (0, 2), "interior": (2, 0)}
    yield (x[:0], value), {"low": (1, 0), "high": (1, 0), "interior": (2, 1)}


PAD = register(
    "pad",
    "view",
    infer=_pad_type,
    reference=_pad_value,
    jvp=_pad_jvp,
    transpose=_pad_transpose,
    batch=_pad_batch,
    doc="The operand with copies of a 0-d value around it (low, high) and between neighbours "
    "(interior): the transpose of a strided slice.",
    samples=_pad_samples,
)


def pad(
    x: Any,
    value: Any = 0,
    low: Sequence[int] = (),
    high: Sequence[int] = (),
    interior: Sequence[int] | None = None,
) -> Value:
    """Constant padding, between elements too.

    Parameters
    ----------
    x : array-like
    value : scalar array-like
        Of the dtype of ``x`` or a lower one.
    low, high : sequence of int
        Copies of ``value`` before the first and after the last element, one number an axis.
    interior : sequence of int, optional
        Copies between each two neighbours.

    Raises
    ------
    ShapeError
        For negative amounts or a wrong number of them.
    DTypeError
        When ``value`` does not fit the dtype of ``x``.
    """
    array = as_value(x)
    border = scalar_of("pad", value, array.type)
    between = (0,) * array.ndim if interior is None else interior
    before, after, inner = (tuple(map(index, amounts)) for amounts in (low, high, between))
    node = make(PAD, (array, border), low=before, high=after, interior=inner)
    return node if any(before + after + inner) else array


def shift(x: Value, axis: int, by: int, fill: Any = 0) -> Value:
    """``x`` moved by one place along a front-counted axis, ``fill`` where nothing comes in.

    ``by = 1``: element k is ``x[k - 1]``; ``by = -1``: element k is ``x[k + 1]``.
    """
    if x.shape[axis] == 0:
        return x
    low, high = [0] * x.ndim, [0] * x.ndim
    if by == 1:
        low[axis], kept = 1, slice_axis(x, axis, None, -1)
    else:
        high[axis], kept = 1, slice_axis(x, axis, 1, None)
    return pad(kept, fill, low, high)


# ------------------------------------------------------------------------------------- concat


def _concat_type(*types: TensorType, axis: int) -> TensorType:
    if not types:
        raise ShapeError("concat: expected at least one array, got none")
    first = types[0]
    axis_index("concat", axis, first.ndim)
    others = [t.shape[:axis] + t.shape[axis + 1 :] for t in types]
    if any(t.ndim != first.ndim or o != others[0] for t, o in zip(types, others, strict=True)):
        raise ShapeError(
            f"concat: expected shapes that agree but for axis {axis}, got {describe(types)}"
        )
    if any(t.dtype is not first.dtype for t in types):
        raise DTypeError(f"concat: expected equal dtypes, got {describe(types)}")
    total = sum(t.shape[axis] for t in types)
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    return TensorType(shape, first.dtype, all(t.weak for t in types))


def _concat_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    parts = [
        zeros_of(x.type) if t is None else t for x, t in zip(node.inputs, tangents, strict=True)
    ]
    return make(CONCAT, parts, axis=node.param("axis"))


def _concat_transpose(
    node: Node, cotangent: Value, linear: Sequence[bool]
) -> Sequence[Value | None]:
    axis, at = node.param("axis"), 0
    bars: list[Value | None] = []
    for x, on in zip(node.inputs, linear, strict=True):
        end = at + x.shape[axis]
        bars.append(slice_axis(cotangent, axis, at, end) if on else None)
        at = end
    return bars


def _concat_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    parts, _ = batch_elementwise(node, operands, axes)
    return make(CONCAT, parts, axis=node.param("axis") + 1), 0


def _concat_samples(rng: Any, dtype: Any) -> Any:
    x, y, z = (rng.standard_normal((2, n, 2)).astype(dtype) for n in (3, 0, 1))
    yield (x, y, z), {"axis": 1}


CONCAT = register(
    "concat",
    "view",
    infer=_concat_type,
    reference=lambda *xs, axis: np.concatenate(xs, axis),
    jvp=_concat_jvp,
    transpose=_concat_transpose,
    batch=_concat_batch,
    doc="Arrays one after the other along an axis.",
    samples=_concat_samples,
)


def concat(xs: Sequence[Any], axis: int = 0) -> Value:
    """The Array API's ``concat``: arrays joined along an existing axis, dtypes promoted.

    Raises
    ------
    ShapeError
        When there is no array, or shapes differ elsewhere than at ``axis``.
    IndexError
        When ``axis`` is out of range (0-d arrays have none).
    """
    values = [as_value(x) for x in xs]
    if not values:
        raise at_user_line(ShapeError("concat: expected at least one array, got none"))
    target = common_dtype([v.type for v in values])
    d = axis_index("concat", axis, values[0].ndim)
    if len(values) == 1:
        return values[0]
    return make(CONCAT, [convert(v, target) for v in values], axis=d)
