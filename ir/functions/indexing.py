"""Reading and writing at keys: ``x[key]`` and ``x.at[key].set(values)``, by NumPy's rules.

A key is read once into a :class:`Key`, which says for each axis of the array what is taken from
it, and how the pieces are laid out. Reading is a slice, a gather if there are index arrays, a
transpose and a reshape, whichever of them are needed; writing goes the same way backwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import bool_, int64
from ..errors import ShapeError
from ..graph import Value
from ..ops.arithmetic import add, mul
from ..ops.comparison import lt
from ..ops.fill import filled
from ..ops.gather import as_index, gather
from ..ops.gather import take_along_axis as _take_along_axis
from ..ops.leaves import CONSTANT, constant, iota
from ..ops.operands import as_value, broadcast_shapes, convert
from ..ops.scatter import scatter
from ..ops.selection import maximum, minimum, where
from ..ops.shape import broadcast_to, reshape, transpose
from ..ops.slicing import flip, pad, slice_
from .arguments import fail, one_axis, static_int
from .concrete import concrete

__all__ = [
    "index",
    "index_update",
    "put_along_axis",
    "scatter_sum",
    "take",
    "take_along_axis",
]


@dataclass(frozen=True, slots=True)
class Key:
    """What an index expression takes from an array, axis by axis.

    Attributes
    ----------
    spans : tuple of range
        Positions taken from each axis (one position for an integer; all of it under an array).
    arrays : dict
        Axis -> int64 index array, all of shape ``block``.
    block : tuple of int
        Common shape of the index arrays; empty without any.
    place : int
        How many of the axes without an array come before the block in the result.
    shape : tuple of int
        Shape of the result.
    checked : bool
        Whether every index is known to be in range.
    """

    spans: tuple[range, ...]
    arrays: dict[int, Value]
    block: tuple[int, ...]
    place: int
    shape: tuple[int, ...]
    checked: bool

    @property
    def rest(self) -> list[int]:
        """Axes without an index array."""
        return [d for d in range(len(self.spans)) if d not in self.arrays]


# ------------------------------------------------------------------------------ reading keys


def _item(item: Any) -> Any:
    """One part of a key: None, Ellipsis, slice, int, or an index array or mask as a Value."""
    if item is None or item is Ellipsis or type(item) is int:
        return item
    if isinstance(item, slice):
        if item.step is not None and static_int("index", "a step", item.step) == 0:
            fail(ValueError("index: expected a slice step that is not 0"))
        parts = (item.start, item.stop, item.step)
        return slice(*(None if p is None else static_int("index", "a slice", p) for p in parts))
    if isinstance(item, np.integer):
        return int(item)
    if isinstance(item, (list, tuple)) and not any(type(v) is Value for v in item):
        item = np.asarray(item)
        if item.size == 0:
            item = item.astype(np.int64)
    elif isinstance(item, (list, tuple)):
        from .joining import stack

        item = stack(item)
    value = as_value(item)
    if not (value.dtype.is_integer or value.dtype.is_bool):
        fail(
            IndexError(
                f"index: expected integers, slices, '...', None, or integer or bool arrays, got "
                f"{value.type}"
            )
        )
    if value.ndim == 0 and value.dtype.is_integer and value.node.op is CONSTANT:
        return int(value.node.param("literal").item())
    return value


def _is_array(item: Any) -> bool:
    return type(item) is Value


def read_key(x: Value, key: Any) -> tuple[Value, Key]:
    """The key in normal form, and ``x`` with an axis of extent 1 more for each bool scalar."""
    items = [_item(item) for item in (key if type(key) is tuple else (key,))]
    used = sum(
        (item.ndim if _is_array(item) and item.dtype is bool_ else 1)
        for item in items
        if item is not None and item is not Ellipsis
    )
    if used > x.ndim:
        fail(
            IndexError(
                f"index: too many indices for {x.type}: it has {x.ndim} axes, got {used} indices"
            )
        )
    ellipses = sum(item is Ellipsis for item in items)
    if ellipses > 1:
        fail(IndexError("index: expected one '...' at most"))
    if not ellipses:
        items.append(Ellipsis)
    spans: list[range] = []
    layout: list[int | str] = []  # result pieces in order: an axis, "new", or "block"
    arrays: dict[int, Value] = {}
    scalars: list[int] = []  # axes of integers
    masks: list[bool] = []
    checked = True
    for item in items:
        d = len(spans)
        if item is None:
            layout.append("new")
        elif item is Ellipsis:
            for axis in range(d, d + x.ndim - used):
                spans.append(range(x.shape[axis]))
                layout.append(axis)
            if x.ndim == used and ellipses:
                layout.append("gap")
        elif type(item) is int:
            spans.append(_one(x, d, item))
            scalars.append(d)
            layout.append("block")
        elif isinstance(item, slice):
            spans.append(range(x.shape[d])[item] or range(0))  # one spelling for nothing
            layout.append(d)
        elif item.dtype is bool_ and item.ndim == 0:
            masks.append(bool(concrete("index", "a mask", item)))
            layout.append("block")
        elif item.dtype is bool_:
            for places in _mask_places(x, item, d):
                arrays[len(spans)] = constant(places, int64)
                spans.append(range(x.shape[len(spans)]))
            layout.append("block")
        else:
            index, inside = _checked(x, d, item)
            arrays[d] = index
            checked = checked and inside
            spans.append(range(x.shape[d]))
            layout.append("block")
    for on in masks:
        x = reshape(x, (*x.shape, 1))
        arrays[len(spans)] = constant(np.zeros(int(on), np.int64))
        spans.append(range(1))
    return x, _arrange(spans, arrays, layout, checked)


def _arrange(
    spans: list[range], arrays: dict[int, Value], layout: list[int | str], checked: bool
) -> Key:
    """Where the block of index arrays goes: to the first of them if they (and integers) are
    neighbours in the key, else to the front (NumPy, "Combining advanced and basic indexing")."""
    lengths = {d: len(span) for d, span in enumerate(spans)}
    if not arrays:
        shape = [1 if p == "new" else lengths[p] for p in layout if type(p) is int or p == "new"]  # type: ignore[index]
        return Key(tuple(spans), {}, (), 0, tuple(shape), True)
    try:
        block = broadcast_shapes("index", [v.type for v in arrays.values()])
    except ShapeError as error:
        fail(IndexError(str(error)))
    arrays = {d: broadcast_to(v, block) for d, v in arrays.items()}
    at = [i for i, p in enumerate(layout) if p == "block"]
    together = at[-1] - at[0] + 1 == len(at)
    first = at[0] if together else 0
    shape, place, inserted = [], 0, False
    for i, p in enumerate(layout):
        if i == first:
            shape.extend(block)
            inserted = True
        if type(p) is int:
            shape.append(lengths[p])
        elif p == "new":
            shape.append(1)
    assert inserted
    # axes in front of the block, integers (of extent 1 until the end) among them
    leading = [p for p in layout[:first] if type(p) is int]
    place = len([d for d in range(len(spans)) if d not in arrays and leading and d <= leading[-1]])
    return Key(tuple(spans), arrays, block, place, tuple(shape), checked)


def _one(x: Value, axis: int, position: int) -> range:
    extent = x.shape[axis]
    if not -extent <= position < extent:
        fail(
            IndexError(
                f"index: index {position} is out of bounds for axis {axis} with size {extent} "
                f"of {x.type}"
            )
        )
    position %= extent
    return range(position, position + 1)


def _checked(x: Value, axis: int, item: Value) -> tuple[Value, bool]:
    """An index array as int64; constants are checked here, on the user's line."""
    index = as_index("index", item)
    if index.node.op is not CONSTANT:
        return index, False
    data, extent = index.node.param("literal").array(), x.shape[axis]
    wrong = data[(data < -extent) | (data >= extent)]
    return (index, True) if not wrong.size else (index, False)


def _mask_places(x: Value, mask: Value, axis: int) -> tuple[np.ndarray[Any, Any], ...]:
    extents = x.shape[axis : axis + mask.ndim]
    if mask.shape != extents:
        fail(
            IndexError(
                f"index: expected a mask of shape {list(extents)} for axes {axis} to "
                f"{axis + mask.ndim - 1} of {x.type}, got {mask.type}"
            )
        )
    return concrete(
        "index", "a bool mask (use where(mask, x, 0), or nonzero(mask, size=...))", mask
    ).nonzero()


# ---------------------------------------------------------------------------- reading, writing


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
    part = slice_(
        value,
        [s.start for s in where_.spans],
        [s.stop if s.stop >= 0 else None for s in where_.spans],
        [s.step for s in where_.spans],
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
        As for :func:`index`.
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
    """Writing at ints and slices: the values laid out over the shape of ``x``, and a mask.

    It is elementwise, so it fuses with what is around it.
    """
    counts = tuple(len(s) for s in key.spans)
    if counts == x.shape and all(s.step == 1 for s in key.spans):
        return _MERGE[how](x, reshape(change, x.shape))
    change = reshape(change, counts)
    change = flip(change, [d for d, s in enumerate(key.spans) if s.step < 0])
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
    """
    x = as_value(a)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    d = one_axis("take", axis, x.ndim)
    places = as_value(np.asarray(indices) if isinstance(indices, (list, tuple)) else indices)
    if places.size == 0 and not places.dtype.is_integer:
        places = convert(places, int64)
    places, checked = _checked(x, d, places) if mode == "raise" else (places, False)
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
