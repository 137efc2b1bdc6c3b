"""Reading and writing at keys: ``x[key]`` and ``x.at[key].set(values)``, by NumPy's rules.

A key is read once into a :class:`Key`, which says for each axis of the array what is taken from
it, and how the pieces are laid out. Reading is a slice, a gather if there are index arrays, a
transpose and a reshape, whichever of them are needed; writing goes the same way backwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import bool_, int64
from ..errors import ShapeError
from ..graph import Value
from ..ops.arithmetic import add, mul
from ..ops.comparison import lt
from ..ops.dynamic import dynamic_update_slice
from ..ops.fill import filled
from ..ops.gather import as_index, gather
from ..ops.gather import take_along_axis as _take_along_axis
from ..ops.leaves import constant, iota
from ..ops.operands import as_value, convert
from ..ops.scatter import scatter
from ..ops.selection import maximum, minimum, where
from ..ops.shape import broadcast_to, reshape, transpose
from ..ops.slicing import flip, pad, slice_
from .arguments import as_line, fail, one_axis
from .keys import Key, checked_index, read_key, traced_mask

__all__ = [
    "index",
    "index_update",
    "put_along_axis",
    "scatter_sum",
    "take",
    "take_along_axis",
]


def index(x: Any, key: Any, *, mode: str = "raise", fill_value: Any = None) -> Value:
    """``x[key]``.

    Parameters
    ----------
    x : array-like
    key : int, slice, None, Ellipsis, integer or bool array, or a tuple of them
        NumPy's rules for basic and advanced indices. Bool masks must be known.
    mode : {"raise", "clip", "wrap", "fill"}
        What an index array out of range means; integers out of range are an error at once.
    fill_value : scalar, optional
        For ``mode="fill"``.

    Raises
    ------
    IndexError
        With axis, index and extent: at once for integers, else when the value is computed.
    TracerError
        For a traced mask.
    """
    value, where_ = read_key(as_value(x), key)
    part, spans = value, where_.spans
    if any(s != range(n) for s, n in zip(spans, value.shape, strict=True)):
        part = slice_(
            value,
            [s.start for s in spans],
            [s.stop if s.stop >= 0 else None for s in spans],
            [s.step for s in spans],
        )
    if where_.arrays:
        part = gather(
            part,
            *where_.arrays.values(),
            axes=tuple(where_.arrays),
            mode=mode,
            fill_value=fill_value,
            checked=where_.checked and mode == "raise",
        )
        part = transpose(part, _block_order(where_))
    return reshape(part, where_.shape)


def _block_order(key: Key) -> list[int]:
    """The permutation that moves the block from the front to its place."""
    width, count = len(key.block), len(key.rest)
    rest = range(width, width + count)
    return [*rest[: key.place], *range(width), *rest[key.place :]]


_MERGE: dict[str, Callable[[Any, Any], Value]] = {
    "set": lambda old, new: new,
    "add": add,
    "mul": mul,
    "min": minimum,
    "max": maximum,
}
_NAMES = {"multiply": "mul", **{name: name for name in _MERGE}}


def index_update(x: Any, key: Any, values: Any, how: str = "set", *, mode: str = "raise") -> Value:
    """``x`` with ``values`` written, added, ... at ``key``: the value of ``x.at[key].set(values)``.

    Parameters
    ----------
    x : array-like
    key
        As for :func:`index`. A mask may be traced if the values have no axis along it: the update
        is then ``where(mask, values, x)``.
    values : array-like
        Broadcast to the shape of ``x[key]``, of the dtype of ``x`` or a lower kind.
    how : {"set", "add", "multiply", "min", "max"}
        Repeated places: ``set`` keeps the last one, the others apply in index order.
    mode : {"raise", "clip", "wrap", "fill"}
        What an index array out of range means; "fill" drops the update.
    """
    if how not in _NAMES:
        fail(ValueError(f"index_update: expected one of {sorted(_NAMES)}, got {how!r}"))
    how = _NAMES[how]
    original = as_value(x)
    masked = traced_mask(original, key)
    if masked is not None:
        mask, after = masked
        change = as_value(values)
        if change.ndim <= original.ndim - after:  # the same for all that the mask takes
            change = broadcast_to(_fitted(change, original.shape[after:], original), original.shape)
            return where(mask, _MERGE[how](original, change), original)
    value, where_ = read_key(original, key)
    change = _fitted(as_value(values), where_.shape, value)
    if 0 in where_.shape:
        return convert(original, original.dtype)
    if not where_.arrays:
        return _overlay(value, change, where_, how)
    result = _scatter(value, change, where_, how, mode)
    return reshape(result, original.shape)


def _fitted(change: Value, shape: tuple[int, ...], x: Value) -> Value:
    if not np.can_cast(change.dtype.numpy, x.dtype.numpy, "same_kind") and not change.type.weak:
        from ..errors import DTypeError

        fail(
            DTypeError(
                f"index_update: expected values that {x.dtype} can hold, got {change.type}; "
                f"convert one with astype"
            )
        )
    if change.type.weak and change.dtype.is_inexact and not x.dtype.is_inexact:
        from ..errors import DTypeError

        fail(DTypeError(f"index_update: expected values that {x.dtype} can hold, got a float"))
    extra = change.ndim - len(shape)
    if extra > 0 and change.shape[:extra] == (1,) * extra:  # as NumPy's assignment
        change = reshape(change, change.shape[extra:])
    offset = len(shape) - change.ndim
    if offset < 0 or any(n not in (1, shape[offset + d]) for d, n in enumerate(change.shape)):
        fail(
            ShapeError(
                f"index_update: expected values that broadcast to {list(shape)}, got {change.type}"
            )
        )
    return broadcast_to(convert(change, x.dtype), shape)


def _overlay(x: Value, change: Value, key: Key, how: str) -> Value:
    """Writing at ints and slices.

    A window is updated as such: a small one in place where nobody else needs ``x``. Spans with
    steps are laid out over the shape of ``x`` and chosen by a mask, which fuses with the rest.
    """
    counts = tuple(len(s) for s in key.spans)
    if counts == x.shape and all(s.step == 1 for s in key.spans):
        return _MERGE[how](x, reshape(change, x.shape))
    change = reshape(change, counts)
    change = flip(change, [d for d, s in enumerate(key.spans) if s.step < 0])
    if all(len(s) < 2 or abs(s.step) == 1 for s in key.spans):
        starts = [min(s[0], s[-1]) for s in key.spans]
        if how != "set":
            shape = zip(starts, counts, strict=True)
            change = _MERGE[how](slice_(x, starts, [a + n for a, n in shape]), change)
        return dynamic_update_slice(x, change, *starts)
    low = [min(s[0], s[-1]) for s in key.spans]
    high = [n - 1 - max(s[0], s[-1]) for n, s in zip(x.shape, key.spans, strict=True)]
    between = [abs(s.step) - 1 if len(s) > 1 else 0 for s in key.spans]
    laid = pad(change, constant(0, x.dtype), low, high, between)
    inside = pad(filled(counts, True, bool_), constant(False, bool_), low, high, between)
    return where(inside, _MERGE[how](x, laid), x)


def _scatter(x: Value, change: Value, key: Key, how: str, mode: str) -> Value:
    """Writing at index arrays; slices that are not whole become index arrays too."""
    rest = key.rest
    partial = [d for d in rest if key.spans[d] != range(x.shape[d])]
    whole = [d for d in rest if d not in partial]
    counts = tuple(len(key.spans[d]) for d in partial)
    shape = (*key.block, *counts)
    width = len(key.block)
    # values: the block goes from its place to the front, then partial axes, then whole ones
    change = reshape(
        change,
        (
            *(len(key.spans[d]) for d in rest[: key.place]),
            *key.block,
            *(len(key.spans[d]) for d in rest[key.place :]),
        ),
    )
    at = {d: i if i < key.place else i + width for i, d in enumerate(rest)}
    block = range(key.place, key.place + width)
    change = transpose(change, [*block, *(at[d] for d in partial), *(at[d] for d in whole)])
    indices = []
    for array in key.arrays.values():
        indices.append(broadcast_to(reshape(array, (*key.block, *(1 for _ in counts))), shape))
    for i, d in enumerate(partial):
        span = key.spans[d]
        indices.append(iota(shape, width + i) * span.step + span.start)
    return scatter(
        x,
        change,
        *indices,
        axes=(*key.arrays, *partial),
        how=how,
        mode=mode,
        checked=key.checked and mode == "raise",
    )


# ------------------------------------------------------------------------------ along an axis


def take(
    a: Any, indices: Any, axis: Any = None, *, mode: str = "raise", fill_value: Any = None
) -> Value:
    """Elements of ``a`` at ``indices`` along ``axis`` (of the flattened array when None).

    Parameters
    ----------
    a, indices : array-like
        Negative indices count from the end, except in mode "clip" (as in NumPy).
    axis : int or None
    mode : {"raise", "clip", "wrap", "fill"}
        What an index out of range means.
    fill_value : scalar, optional
        For "fill"; NaN, or the extreme integer, by default.

    Raises
    ------
    IndexError
        In mode "raise", with axis, index and extent.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.take(tg.asarray([1.0, 2.0, 4.0]), tg.asarray([0, -1, 9]), mode="fill", fill_value=0.0)
    Array([1., 4., 0.], dtype=float64)
    """
    x = as_line(as_value(a), axis)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    d = one_axis("take", axis, x.ndim)
    places = as_value(np.asarray(indices) if isinstance(indices, (list, tuple)) else indices)
    if places.size == 0 and not places.dtype.is_integer:
        places = convert(places, int64)
    places, checked = checked_index(x, d, places) if mode == "raise" else (places, False)
    part = gather(x, places, axes=(d,), mode=mode, fill_value=fill_value, checked=checked)
    width = places.ndim
    rest = range(width, width + x.ndim - 1)
    return transpose(part, [*rest[:d], *range(width), *rest[d:]])


def take_along_axis(arr: Any, indices: Any, axis: Any = -1, *, mode: str = "raise") -> Value:
    """Element ``indices[..., i, ...]`` of each line along ``axis``; other axes broadcast."""
    x, places = as_value(arr), as_value(indices)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    return _take_along_axis(x, places, one_axis("take_along_axis", axis, x.ndim), mode=mode)


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: Any, *, how: str = "set", mode: str = "raise"
) -> Value:
    """``arr`` with ``values`` at ``indices`` of each line along ``axis``.

    NumPy's function writes into its argument; arrays here are immutable, so this one returns the
    changed array.
    """
    original = as_value(arr)
    x, places = original, as_index("put_along_axis", indices)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    d = one_axis("put_along_axis", axis, x.ndim)
    if places.ndim != x.ndim:
        fail(ShapeError(f"put_along_axis: expected indices of {x.ndim} axes, got {places.type}"))
    shape = tuple(places.shape[e] if e == d else n for e, n in enumerate(x.shape))
    places = broadcast_to(places, shape)
    every = [places if e == d else iota(shape, e) for e in range(x.ndim)]
    change = _fitted(as_value(values), shape, x)
    result = scatter(x, change, *every, how=_NAMES.get(how, how), mode=mode)
    return reshape(result, original.shape)


def scatter_sum(x: Value, places: Any, updates: Any, *, drop: bool = False) -> Value:
    """``x`` with ``updates[i]`` added to slice ``places[i]``, in order; ``drop`` those outside."""
    index_ = as_index("scatter", places)
    if drop:  # a negative place is outside too, it does not count from the end
        index_ = where(lt(index_, 0), x.shape[0], index_)
    change = convert(as_value(updates), x.dtype)
    return scatter(x, change, index_, how="add", mode="fill" if drop else "raise")
