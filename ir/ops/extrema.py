"""Extrema and their places: max, min, argmax, argmin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, int64
from ..graph import Node, Op, Value, make
from ..types import TensorType
from .comparison import eq, gt, lt
from .fill import filled
from .operands import as_value
from .reductions import (
    Axis,
    build_reduction,
    check_axes,
    check_not_empty,
    distinct_samples,
    reduction,
    spread,
    sum_,
)
from .registry import register
from .scaling import unscale
from .selection import MAXIMUM, MINIMUM, where
from .shape import Axes, axis_index, expand_dims, reshape

__all__ = ["ARGMAX", "ARGMIN", "MAX", "MIN", "argmax", "argmin", "max_", "min_"]


def _max_merge(h: Any, accumulator: Any, x: Any) -> Any:
    """The elementwise maximum, which gives one result in whatever order."""
    return MAXIMUM.scalar(h, x, accumulator, tie=0.5)  # type: ignore[misc]


def _min_merge(h: Any, accumulator: Any, x: Any) -> Any:
    """The elementwise minimum."""
    return MINIMUM.scalar(h, x, accumulator, tie=0.5)  # type: ignore[misc]


def _lowest(dtype: DType) -> Any:
    if dtype.is_bool:
        return False
    return -np.inf if dtype.is_floating else int(np.iinfo(dtype.numpy).min)


def _highest(dtype: DType) -> Any:
    if dtype.is_bool:
        return True
    return np.inf if dtype.is_floating else int(np.iinfo(dtype.numpy).max)


def _extremum_value(x: Any, axes: Axes, sign: int) -> Any:
    """NumPy's extremum, which leaves the sign of a zero open, with that sign settled."""
    y = np.asarray((np.max if sign > 0 else np.min)(x, axis=axes))
    if x.dtype.kind != "f" or not x.size:
        return y
    preferred = np.any((x == 0) & (np.signbit(x) == (sign < 0)), axis=axes)
    zero = np.copysign(0.0, np.where(preferred, sign, -sign)).astype(x.dtype)
    return np.where(y == 0, zero, y)


def _extremum_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    """Mean of the tangents of the tied elements; NaN where the extremum is NaN.

    "Not beyond" rather than "equal" marks the tied elements: a NaN extremum then marks all of
    them, and so poisons every entry of the cotangent too.
    """
    t = tangents[0]
    if t is None:
        return None
    x, out, axes = node.inputs[0], node.out, node.param("axes")
    beyond = (lt if node.op is MAX else gt)(x, spread(node, out))
    tied = where(beyond, 0.0, filled(x.shape, 1, t.dtype))
    count = where(eq(out, out), sum_(tied, axes), np.nan)
    return unscale(sum_(where(beyond, filled(x.shape, 0, t.dtype), t), axes), count)


MAX = reduction(
    "max",
    kinds="biuf",
    identity=_lowest,
    merge=_max_merge,
    reference=lambda x, *, axes: _extremum_value(x, axes, 1),
    jvp=_extremum_jvp,
    needs_elements=True,
    doc="Largest element; any NaN gives NaN, +0 is above -0 (IEEE 754-2019 maximum), of nothing an "
    "error. Ties share the derivative equally, a NaN maximum has NaN derivatives.",
    samples=distinct_samples,
    why_not={
        "transpose": "not linear; its tangent is a sum of selected tangents",
        "complex_scalar": "complex numbers have no order",
    },
)
MIN = reduction(
    "min",
    kinds="biuf",
    identity=_highest,
    merge=_min_merge,
    reference=lambda x, *, axes: _extremum_value(x, axes, -1),
    jvp=_extremum_jvp,
    needs_elements=True,
    doc="Smallest element; any NaN gives NaN, -0 is below +0 (IEEE 754-2019 minimum), of nothing "
    "an error. Ties share the derivative equally, a NaN minimum has NaN derivatives.",
    samples=distinct_samples,
    why_not=MAX.why_not,
)


def max_(x: Any, axis: Axis = None, keepdims: bool = False) -> Value:
    """NumPy's ``max``.

    Raises
    ------
    ShapeError
        (a ``ValueError``) when a reduced axis is empty.
    """
    return build_reduction(MAX, as_value(x), axis, keepdims)


def min_(x: Any, axis: Axis = None, keepdims: bool = False) -> Value:
    """NumPy's ``min``; raises as :func:`max_`."""
    return build_reduction(MIN, as_value(x), axis, keepdims)


def _argument_type(name: str) -> Callable[..., TensorType]:
    def infer(x: TensorType, *, axis: int) -> TensorType:
        check_axes(name, x, (axis,), "biuf")
        check_not_empty(name, x, (axis,))
        return TensorType(x.shape[:axis] + x.shape[axis + 1 :], int64)

    return infer


def _argument_merge(first: str) -> Callable[..., Any]:
    """Merge of (value, index) pairs: NaN first, then the extremum, then the smaller index."""

    def merge(h: Any, accumulator: tuple[Any, Any], element: tuple[Any, Any]) -> tuple[Any, Any]:
        (a, i), (x, j) = accumulator, element
        earlier = h.lt(j, i)
        if h.dtype(x).is_bool:  # x and not a, or the other way round
            beyond = h.and_(x, h.not_(a)) if first == "gt" else h.and_(h.not_(x), a)
            better = h.or_(beyond, h.and_(h.eq(x, a), earlier))
        else:
            better = h.or_(getattr(h, first)(x, a), h.and_(h.eq(x, a), earlier))
        if h.dtype(x).is_floating:
            x_nan, a_nan = h.ne(x, x), h.ne(a, a)
            better = h.or_(better, h.and_(x_nan, h.or_(h.not_(a_nan), earlier)))
        return h.select(better, x, a), h.select(better, j, i)

    return merge


def _argument_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    at: int = axes[0]  # type: ignore[assignment]
    axis = node.param("axis") + (node.param("axis") >= at)
    return make(node.op, operands, axis=axis), at - (axis < at)


def _argument_samples(rng: Any, dtype: Any) -> Any:
    x = rng.permutation(24).reshape(2, 3, 4).astype(dtype)
    yield (x,), {"axis": 1}
    yield (x % 3,), {"axis": 2}


def _argument(name: str, first: str, reference: Callable[..., Any], which: str) -> Op:
    return register(
        name,
        "reduction",
        infer=_argument_type(name),
        reference=lambda x, *, axis: np.asarray(reference(x, axis=axis), dtype=np.int64),
        scalar=_argument_merge(first),
        batch=_argument_batch,
        samples=_argument_samples,
        doc=f"Place of the first {which} element along an axis (int64); a NaN is more extreme than "
        "any number, the first one wins (NumPy). The monoid is the pair (value, index), merged to "
        "NaN first, then the extremum, then the smaller index: any split gives the same place.",
        why_not={
            "jvp": "the result is an integer",
            "transpose": "the result is an integer",
            "identity": "the first element starts the accumulator; of nothing it is an error",
            "complex_scalar": "complex numbers have no order",
        },
    )


ARGMAX = _argument("argmax", "gt", np.argmax, "largest")
ARGMIN = _argument("argmin", "lt", np.argmin, "smallest")


def _build_argument(op: Op, x: Any, axis: int | None, keepdims: bool) -> Value:
    value = as_value(x)
    if axis is None:
        y = make(op, (reshape(value, (value.size,)),), axis=0)
        return reshape(y, (1,) * value.ndim) if keepdims else y
    d = axis_index(op.name, axis, value.ndim)
    y = make(op, (value,), axis=d)
    return expand_dims(y, (d,)) if keepdims else y


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> Value:
    """NumPy's ``argmax`` (C order of the whole array without ``axis``); int64.

    Raises
    ------
    ShapeError
        (a ``ValueError``) when there is no element to choose from.
    """
    return _build_argument(ARGMAX, x, axis, keepdims)


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> Value:
    """NumPy's ``argmin``; see :func:`argmax`."""
    return _build_argument(ARGMIN, x, axis, keepdims)
