"""Index expressions in normal form: what ``x[key]`` takes from each axis, by NumPy's rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import bool_, int64
from ..errors import ShapeError
from ..graph import Value
from ..ops.gather import as_index
from ..ops.leaves import CONSTANT, constant
from ..ops.operands import as_value, broadcast_shapes
from ..ops.shape import broadcast_to, reshape
from .arguments import fail, static_int
from .concrete import concrete, is_known

__all__ = ["Key", "checked_index", "read_key", "traced_mask"]


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
    if not isinstance(item, Value):
        item = np.asarray(item)
    if item.dtype.kind not in "biu":
        shown = item.type if isinstance(item, Value) else f"{item.dtype} {item.tolist()!r}"
        fail(
            IndexError(
                f"index: expected integers, slices, '...', None, or integer or bool arrays, got "
                f"{shown}"
            )
        )
    value = as_value(item)
    if value.ndim == 0 and value.dtype.is_integer and value.node.op is CONSTANT:
        return int(value.node.param("literal").item())
    return value


def _is_array(item: Any) -> bool:
    return type(item) is Value


def traced_mask(x: Value, key: Any) -> tuple[Value, int] | None:
    """A traced bool mask, if that is all ``key`` says: laid out over ``x``, and its end axis.

    Whole slices and an Ellipsis may stand beside it. How many elements it takes is not known, so
    it is of use only where the result keeps the shape of ``x``.
    """
    items = [_item(item) for item in (key if type(key) is tuple else (key,))]
    masks = [i for i in items if _is_array(i) and i.dtype is bool_ and i.ndim and not is_known(i)]
    others = [item for item in items if not any(item is mask for mask in masks)]
    whole = all(item is Ellipsis or item == slice(None) for item in others if not _is_array(item))
    if len(masks) != 1 or not whole or any(_is_array(item) for item in others):
        return None
    (mask,) = masks
    given = mask.ndim + sum(item is not Ellipsis for item in others)
    if given > x.ndim or sum(item is Ellipsis for item in others) > 1:
        return None  # an error that reading the key tells
    axis = 0
    for item in items:
        if item is mask:
            break
        axis += x.ndim - given if item is Ellipsis else 1
    _check_mask(x, mask, axis)
    after = axis + mask.ndim
    return broadcast_to(reshape(mask, mask.shape + (1,) * (x.ndim - after)), x.shape), after


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
            index, inside = checked_index(x, d, item)
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


def checked_index(x: Value, axis: int, item: Value) -> tuple[Value, bool]:
    """An index array as int64; constants are checked here, on the user's line."""
    index = as_index("index", item)
    if index.node.op is not CONSTANT:
        return index, False
    data, extent = index.node.param("literal").array(), x.shape[axis]
    wrong = data[(data < -extent) | (data >= extent)]
    return (index, True) if not wrong.size else (index, False)


def _check_mask(x: Value, mask: Value, axis: int) -> None:
    extents = x.shape[axis : axis + mask.ndim]
    if mask.shape != extents:
        fail(
            IndexError(
                f"index: expected a mask of shape {list(extents)} for axes {axis} to "
                f"{axis + mask.ndim - 1} of {x.type}, got {mask.type}"
            )
        )


def _mask_places(x: Value, mask: Value, axis: int) -> tuple[np.ndarray[Any, Any], ...]:
    _check_mask(x, mask, axis)
    return concrete(
        "index", "a bool mask (use where(mask, x, 0), or nonzero(mask, size=...))", mask
    ).nonzero()
