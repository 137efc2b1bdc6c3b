"""Order: sort, argsort, partition, lexsort, topk."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..graph import Value
from ..ops import argsort as _argsort
from ..ops import sort as _sort
from ..ops import take_along_axis, top_k
from ..ops.operands import as_value
from ..ops.shape import reshape
from .arguments import as_line, fail, one_axis, static_int, static_ints

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort", "top_k", "topk"]

_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def _line(name: str, a: Any, axis: Any, kind: Any, order: Any) -> tuple[Value, int]:
    if kind not in _KINDS or order is not None:
        fail(
            ValueError(f"{name}: expected a kind of {_KINDS} and no order, got {kind!r}, {order!r}")
        )
    x = as_value(a)
    if axis is None:
        return reshape(x, (x.size,)), 0
    return x, one_axis(name, axis, x.ndim)


def sort(
    a: Any,
    axis: Any = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Value:
    """``a`` sorted along ``axis`` (flattened when None); always stable, NaN last.

    The derivative follows the elements: it is permuted as they are.
    """
    x, d = _line("sort", a, axis, kind, order)
    return _sort(x, d, descending)


def argsort(
    a: Any,
    axis: Any = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = None,
    descending: bool = False,
) -> Value:
    """The int64 places that sort ``a`` along ``axis``; equal elements keep their order."""
    x, d = _line("argsort", as_line(as_value(a), axis), axis, kind, order)
    return _argsort(x, d, descending)


def _check_kth(name: str, kth: Any, extent: int) -> None:
    for k in static_ints(name, "kth", kth):
        if not -extent <= k < extent:
            fail(ValueError(f"{name}: expected kth in [{-extent}, {extent}), got {k}"))


def partition(a: Any, kth: Any, axis: Any = -1) -> Value:
    """``a`` with element ``kth`` at its sorted place, smaller ones before it: here, all sorted."""
    x, d = _line("partition", a, axis, None, None)
    _check_kth("partition", kth, x.shape[d])
    return _sort(x, d)


def argpartition(a: Any, kth: Any, axis: Any = -1) -> Value:
    """The places of :func:`partition`."""
    x, d = _line("argpartition", as_line(as_value(a), axis), axis, None, None)
    _check_kth("argpartition", kth, x.shape[d])
    return _argsort(x, d)


def topk(x: Any, k: Any, axis: Any = -1) -> tuple[Value, Value]:
    """The ``k`` largest elements along ``axis``, descending, and their places (:func:`top_k`)."""
    return top_k(x, static_int("topk", "k", k), axis)


def lexsort(keys: Any, axis: Any = -1) -> Value:
    """The places that sort by the last key, ties by the one before, and so on."""
    from .joining import unstack

    rows = list(keys) if isinstance(keys, (list, tuple)) else list(unstack(keys))
    values = [as_value(k) for k in rows]
    if not values:
        fail(TypeError("lexsort: expected one key at least"))
    if len({v.shape for v in values}) > 1:
        fail(ShapeError("lexsort: expected keys of one shape"))
    if values[0].ndim == 0:
        values = [reshape(v, (1,)) for v in values]
        return reshape(lexsort(values), ())
    d = one_axis("lexsort", axis, values[0].ndim)
    order = _argsort(values[0], d)
    for key in values[1:]:  # stable sorts, from the least to the most important key
        again = _argsort(take_along_axis(key, order, d), d)
        order = take_along_axis(order, again, d)
    return order
