"""Order along an axis: sort, argsort, top_k, searchsorted.

Sorting is always stable, NaN comes last in either direction (NumPy, ascending), and -0.0 equals
+0.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import int64
from ..errors import DTypeError, ShapeError
from ..graph import Node, Op, Value, make
from ..location import at_user_line
from ..types import TensorType
from .comparison import lt, ne
from .fill import filled
from .gather import gather, take_along_axis
from .logic import logical_and, logical_not, logical_or, shift_right
from .operands import as_value, common_dtype, convert
from .registry import register
from .selection import where
from .shape import axis_index

__all__ = ["ARGSORT", "SORT", "TOP_PLACES", "argsort", "searchsorted", "sort", "top_k"]


def _infer(name: str) -> Callable[..., TensorType]:
    def infer(x: TensorType, *, axis: int, descending: bool) -> TensorType:
        if x.dtype.is_complex:
            raise DTypeError(f"{name}: complex numbers have no order, got {x}")
        if not 0 <= axis < x.ndim:
            raise IndexError(f"{name}: expected an axis in [0, {x.ndim}) for {x}, got {axis}")
        return TensorType(x.shape, int64 if name == "argsort" else x.dtype)

    return infer


def _order(x: Any, *, axis: int, descending: bool) -> Any:
    """Stable order; a key that falls where ``x`` rises turns it round and leaves NaN last."""
    if descending:
        x = np.negative(x) if x.dtype.kind == "f" else np.invert(x)
    return np.argsort(x, axis, kind="stable").astype(np.int64, copy=False)


def _sort_value(x: Any, *, axis: int, descending: bool) -> Any:
    return np.take_along_axis(x, _order(x, axis=axis, descending=descending), axis)


def _sort_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    """The tangent in the same order: equal elements keep theirs (stable)."""
    if tangents[0] is None:
        return None
    order = make(ARGSORT, node.inputs, **dict(node.params))
    return take_along_axis(tangents[0], order, node.param("axis"), checked=True)


def _batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    at: int = axes[0]  # type: ignore[assignment]
    axis = node.param("axis")
    params = {"axis": axis + (axis >= at), "descending": node.param("descending")}
    return make(node.op, operands, **params), at


def _samples(rng: Any, dtype: Any) -> Any:
    x = rng.permutation(24).reshape(2, 4, 3).astype(dtype)
    yield (x,), {"axis": 1, "descending": False}
    # With ties, but not where one would differentiate: ties are kinks.
    yield (x if x.dtype.kind == "f" else x % 5,), {"axis": 2, "descending": True}


SORT = register(
    "sort",
    "sort",
    infer=_infer("sort"),
    reference=_sort_value,
    jvp=_sort_jvp,
    batch=_batch,
    doc="Elements in order along an axis: stable, NaN last in either direction. The tangent goes "
    "with its element; of equal elements each keeps its own.",
    samples=_samples,
    why_not={"transpose": "not linear; its tangent is a gather"},
)
ARGSORT = register(
    "argsort",
    "sort",
    infer=_infer("argsort"),
    reference=_order,
    batch=_batch,
    doc="Places (int64) of the elements in sorted order: stable, NaN last in either direction.",
    samples=_samples,
    why_not={"jvp": "the result is an integer", "transpose": "the result is an integer"},
)


def _infer_top(x: TensorType, *, axis: int, k: int) -> TensorType:
    _infer("top_places")(x, axis=axis, descending=True)
    if not 0 <= k <= x.shape[axis]:
        raise ShapeError(
            f"top_places: expected k in [0, {x.shape[axis]}] for axis {axis} of {x}, got {k}"
        )
    return TensorType((*x.shape[:axis], k, *x.shape[axis + 1 :]), int64)


def _top(x: Any, *, axis: int, k: int) -> Any:
    order = _order(x, axis=axis, descending=True)
    return np.ascontiguousarray(order[(*[slice(None)] * axis, slice(k))])


def _batch_top(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    at: int = axes[0]  # type: ignore[assignment]
    axis = node.param("axis")
    return make(node.op, operands, axis=axis + (axis >= at), k=node.param("k")), at


def _top_samples(rng: Any, dtype: Any) -> Any:
    x = rng.permutation(24).reshape(2, 4, 3).astype(dtype)
    yield (x,), {"axis": 1, "k": 2}
    yield (x % 5,), {"axis": 2, "k": 3}


TOP_PLACES = register(
    "top_places",
    "sort",
    infer=_infer_top,
    reference=_top,
    batch=_batch_top,
    doc="The first k places (int64) of the descending stable order along an axis; NaN last.",
    samples=_top_samples,
    why_not={"jvp": "the result is an integer", "transpose": "the result is an integer"},
)


def _build(op: Op, x: Any, axis: int, descending: bool) -> Value:
    value = as_value(x)
    d = axis_index(op.name, axis, value.ndim)
    return make(op, (value,), axis=d, descending=bool(descending))


def sort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Value:
    """The Array API's ``sort``; stable whatever ``stable`` says, NaN last in either direction."""
    return _build(SORT, x, axis, descending)


def argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Value:
    """The Array API's ``argsort`` (int64); order as in :func:`sort`."""
    return _build(ARGSORT, x, axis, descending)


def top_k(x: Any, k: int, axis: int = -1) -> tuple[Value, Value]:
    """The ``k`` largest elements along an axis, descending, and their places (int64).

    The first of equal elements comes first; NaN counts as the smallest.
    """
    value = as_value(x)
    d = axis_index("top_k", axis, value.ndim)
    if not 0 <= k <= value.shape[d]:
        raise at_user_line(
            ShapeError(
                f"top_k: expected k in [0, {value.shape[d]}] for axis {d} of {value.type}, got {k}"
            )
        )
    places = make(TOP_PLACES, (value,), axis=d, k=k)
    return take_along_axis(value, places, d, checked=True), places


def searchsorted(x: Any, v: Any, side: str = "left") -> Value:
    """Where ``v`` goes into the ascending 1-d array ``x`` (int64, NumPy's ``searchsorted``).

    Parameters
    ----------
    x : array-like, shape (n,)
        Ascending, NaN last.
    v : array-like
    side : {"left", "right"}
        Before or after equal elements.

    Notes
    -----
    A bisection unrolled to ``ceil(log2(n + 1))`` steps, each one gather and a few elementwise ops.
    """
    array, wanted = as_value(x), as_value(v)
    if array.ndim != 1 or side not in ("left", "right"):
        raise at_user_line(
            ShapeError(
                f"searchsorted: expected a 1-d array and side 'left' or 'right', got "
                f"{array.type} and {side!r}"
            )
        )
    target = common_dtype([array.type, wanted.type])
    array, wanted = convert(array, target), convert(wanted, target)
    n = array.size
    low, high = filled(wanted.shape, 0, int64), filled(wanted.shape, n, int64)
    for _ in range(n.bit_length()):  # invariant: the place is in [low, high]
        middle = shift_right(low + high, 1)
        open_ = lt(low, high)
        probe = gather(array, middle, mode="clip")
        before = _less(probe, wanted) if side == "left" else logical_not(_less(wanted, probe))
        low = where(logical_and(open_, before), middle + 1, low)
        high = where(logical_and(open_, logical_not(before)), middle, high)
    return low


def _less(a: Value, b: Value) -> Value:
    """a < b with NaN above all numbers."""
    below = lt(a, b)
    if not a.dtype.is_floating:
        return below
    return logical_or(below, logical_and(ne(b, b), logical_not(ne(a, a))))
