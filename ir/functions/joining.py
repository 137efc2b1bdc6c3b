"""Joining, splitting and repeating: concatenate, stack, block, split, tile, repeat, insert."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..dtypes import int64
from ..errors import ShapeError
from ..graph import Value
from ..ops import shape as views
from ..ops.leaves import constant
from ..ops.operands import as_value, convert
from ..ops.slicing import concat as _concat
from ..ops.slicing import slice_axis
from ..types import describe
from .arguments import (
    as_line,
    fail,
    one_axis,
    promoted,
    result_dtype,
    static_array,
    static_int,
    static_ints,
)
from .creation import zeros
from .manipulation import atleast_1d, atleast_2d, atleast_3d, ravel

__all__ = [
    "append",
    "array_split",
    "block",
    "column_stack",
    "concat",
    "concatenate",
    "delete",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "insert",
    "repeat",
    "resize",
    "split",
    "stack",
    "tile",
    "unstack",
    "vsplit",
    "vstack",
]


def _sequence(name: str, arrays: Any) -> list[Value]:
    """The operands of a join: a sequence, or the slices of one array along its first axis."""
    if type(arrays) is Value or isinstance(arrays, np.ndarray):
        value = as_value(arrays)
        if value.ndim == 0:
            fail(ShapeError(f"{name}: expected a sequence of arrays, got {value.type}"))
        return list(unstack(value))
    return [as_value(x) for x in arrays]


def concatenate(arrays: Any, axis: Any = 0, *, dtype: Any = None) -> Value:
    """Arrays joined along an existing axis; ``axis=None`` flattens them first.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.concatenate([tg.asarray([1.0]), [2.0, 3.0]])
    Array([1., 2., 3.], dtype=float64)
    """
    values = _sequence("concatenate", arrays)
    if not values:
        fail(ShapeError("concatenate: expected one array at least, got none"))
    if axis is None:
        values, axis = [ravel(v) for v in values], 0
    first = values[0]
    if any(v.ndim == 0 for v in values):
        fail(
            ShapeError(
                f"concatenate: expected arrays with an axis, got "
                f"{describe(tuple(v.type for v in values))}; use stack"
            )
        )
    d = one_axis("concatenate", axis, first.ndim)
    if any(v.ndim != first.ndim or _without(v, d) != _without(first, d) for v in values):
        fail(
            ShapeError(
                f"concatenate: expected shapes that agree except along axis {d}, got "
                f"{describe(tuple(v.type for v in values))}"
            )
        )
    values = promoted(*values, dtype=dtype or result_dtype(*values))
    return values[0] if len(values) == 1 else _concat(values, d)


def _without(x: Value, axis: int) -> tuple[int, ...]:
    return x.shape[:axis] + x.shape[axis + 1 :]


def concat(arrays: Any, axis: Any = 0) -> Value:
    """Arrays joined along an existing axis (Array API)."""
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: Any = 0, *, dtype: Any = None) -> Value:
    """Arrays of one shape joined along a new axis."""
    values = _sequence("stack", arrays)
    if not values:
        fail(ShapeError("stack: expected one array at least, got none"))
    if len({v.shape for v in values}) > 1:
        fail(
            ShapeError(
                f"stack: expected equal shapes, got {describe(tuple(v.type for v in values))}"
            )
        )
    d = one_axis("stack", axis, values[0].ndim + 1)
    return concatenate([views.expand_dims(v, (d,)) for v in values], d, dtype=dtype)


def vstack(tup: Any, *, dtype: Any = None) -> Value:
    """Arrays stacked as rows."""
    return concatenate([atleast_2d(v) for v in _sequence("vstack", tup)], 0, dtype=dtype)


def hstack(tup: Any, *, dtype: Any = None) -> Value:
    """Arrays joined along axis 1 (vectors along axis 0)."""
    values = [atleast_1d(v) for v in _sequence("hstack", tup)]
    return concatenate(values, 0 if values and values[0].ndim == 1 else 1, dtype=dtype)


def dstack(tup: Any) -> Value:
    """Arrays joined along the third axis."""
    return concatenate([atleast_3d(v) for v in _sequence("dstack", tup)], 2)


def column_stack(tup: Any) -> Value:
    """Vectors as columns (matrices as they are) joined along axis 1."""
    values = [atleast_1d(v) for v in _sequence("column_stack", tup)]
    return concatenate([v if v.ndim > 1 else views.expand_dims(v, (1,)) for v in values], 1)


def append(arr: Any, values: Any, axis: Any = None) -> Value:
    """``values`` joined to the end of ``arr`` (both flattened when ``axis`` is None)."""
    return concatenate((as_value(arr), as_value(values)), axis)


def block(arrays: Any) -> Value:
    """An array from nested lists of blocks: the innermost lists join along the last axis."""

    def depth(item: Any) -> int:
        if not isinstance(item, list):
            return 0
        if not item:
            fail(ShapeError("block: expected no empty list"))
        levels = {depth(part) for part in item}
        if len(levels) > 1:
            fail(ShapeError("block: expected lists nested to one depth"))
        return 1 + levels.pop()

    def leaves(item: Any) -> list[Value]:
        if isinstance(item, list):
            return [leaf for part in item for leaf in leaves(part)]
        return [as_value(item)]

    def join(item: Any, level: int, ndim: int) -> Value:
        if not isinstance(item, list):
            value = as_value(item)
            return views.reshape(value, (1,) * (ndim - value.ndim) + value.shape)
        return concatenate([join(part, level - 1, ndim) for part in item], -level)

    levels = depth(arrays)
    return join(arrays, levels, max(levels, *(v.ndim for v in leaves(arrays)), 0))


def unstack(x: Any, *, axis: Any = 0) -> tuple[Value, ...]:
    """The slices of ``x`` along ``axis``, without it."""
    value = as_value(x)
    d = one_axis("unstack", axis, value.ndim)
    return tuple(
        views.reshape(slice_axis(value, d, i, i + 1), _without(value, d))
        for i in range(value.shape[d])
    )


def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Value]:
    """Pieces of ``ary``: as many as stated (the first ones longer), or cut before each index."""
    value = as_value(ary)
    d = one_axis("split", axis, value.ndim)
    extent = value.shape[d]
    if np.ndim(_plain(indices_or_sections)) == 0:
        sections = static_int("split", "the number of sections", indices_or_sections)
        if sections <= 0:
            fail(ShapeError(f"split: expected one section at least, got {sections}"))
        each, extra = divmod(extent, sections)
        lengths = [each + 1] * extra + [each] * (sections - extra)
        edges = [0, *np.cumsum(lengths).tolist()]
    else:
        points = static_ints("split", "the indices", indices_or_sections)
        edges = [0, *points, extent]
    pieces = []
    for low, high in pairwise(edges):
        start, stop, _ = slice(low, high).indices(extent)
        pieces.append(slice_axis(value, d, start, max(start, stop)))
    return pieces


def _plain(x: Any) -> Any:
    return static_array("split", "the indices", x) if type(x) is Value else x


def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Value]:
    """Equal pieces of ``ary`` along ``axis``, or pieces cut before each of the given indices."""
    value = as_value(ary)
    if np.ndim(_plain(indices_or_sections)) == 0:
        sections = static_int("split", "the number of sections", indices_or_sections)
        extent = value.shape[one_axis("split", axis, value.ndim)]
        if sections <= 0 or extent % sections:
            fail(
                ShapeError(
                    f"split: expected a number of sections that divides the extent {extent} of "
                    f"axis {axis}, got {sections}; array_split allows unequal pieces"
                )
            )
    return array_split(value, indices_or_sections, axis)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Value]:
    """:func:`split` along axis 1 (vectors along axis 0)."""
    value = as_value(ary)
    return split(value, indices_or_sections, 0 if value.ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Value]:
    """:func:`split` along axis 0 of an array of two axes or more."""
    if as_value(ary).ndim < 2:
        fail(ShapeError(f"vsplit: expected two axes or more, got {as_value(ary).type}"))
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Value]:
    """:func:`split` along axis 2."""
    if as_value(ary).ndim < 3:
        fail(ShapeError(f"dsplit: expected three axes or more, got {as_value(ary).type}"))
    return split(ary, indices_or_sections, 2)


def tile(A: Any, reps: Any) -> Value:
    """``A`` repeated ``reps`` times along each axis (counted from the last)."""
    value, counts = as_value(A), static_ints("tile", "reps", reps)
    if any(n < 0 for n in counts):
        fail(ShapeError(f"tile: expected non-negative reps, got {list(counts)}"))
    ndim = max(value.ndim, len(counts))
    shape = (1,) * (ndim - value.ndim) + value.shape
    counts = (1,) * (ndim - len(counts)) + counts
    # each axis n becomes a pair (count, n), merged afterwards
    pairs = tuple(extent for pair in zip(counts, shape, strict=True) for extent in pair)
    copies = views.broadcast(views.reshape(value, shape), pairs, tuple(range(1, 2 * ndim, 2)))
    return views.reshape(copies, tuple(c * n for c, n in zip(counts, shape, strict=True)))


def repeat(a: Any, repeats: Any, axis: Any = None) -> Value:
    """Each element repeated: as often as ``repeats`` (an integer, or one for each element) says."""
    value = as_line(as_value(a), axis)
    if axis is None:
        value, axis = ravel(value), 0
    d = one_axis("repeat", axis, value.ndim)
    counts = static_array("repeat", "repeats", repeats)
    if counts.dtype.kind not in "iu" and counts.size:
        fail(TypeError(f"repeat: expected integer repeats, got {counts.dtype}"))
    if (counts < 0).any():
        fail(ShapeError("repeat: expected non-negative repeats"))
    extent = value.shape[d]
    if counts.size == 1:
        count = int(counts.reshape(()))
        shape = (*value.shape[: d + 1], count, *value.shape[d + 1 :])
        axes = tuple(e for e in range(value.ndim + 1) if e != d + 1)
        copies = views.broadcast(value, shape, axes)
        return views.reshape(copies, (*value.shape[:d], extent * count, *value.shape[d + 1 :]))
    if counts.shape != (extent,):
        fail(ShapeError(f"repeat: expected {extent} repeats, got {list(counts.shape)}"))
    return _pick(value, np.repeat(np.arange(extent), counts), d)


def _pick(x: Value, places: np.ndarray[Any, Any], axis: int) -> Value:
    from .indexing import take  # indexing builds on this module

    return take(x, constant(places, int64), axis)


def resize(a: Any, new_shape: Any) -> Value:
    """``a`` repeated in C order, or slice_axis, to fill ``new_shape``."""
    value, shape = ravel(a), static_ints("resize", "the shape", new_shape)
    size = int(np.prod(shape, dtype=np.int64))
    if any(n < 0 for n in shape):
        fail(ShapeError(f"resize: expected non-negative extents, got {list(shape)}"))
    if value.size == 0 or size == 0:
        return zeros(shape, value.dtype)
    copies = tile(value, -(-size // value.size))
    return views.reshape(slice_axis(copies, 0, 0, size), shape)


def _positions(name: str, obj: Any, extent: int) -> Any:
    """``obj`` of ``insert`` and ``delete`` as NumPy takes it, checked against the extent."""
    if isinstance(obj, slice):
        return np.arange(extent)[obj]
    places = static_array(name, "the indices", obj)
    return places.astype(np.int64) if places.size == 0 else places


def delete(arr: Any, obj: Any, axis: Any = None) -> Value:
    """``arr`` without the slices ``obj`` (integer, slice, integers or mask) along ``axis``."""
    value = as_value(arr)
    if axis is None:
        value, axis = ravel(value), 0
    d = one_axis("delete", axis, value.ndim)
    extent = value.shape[d]
    places = _positions("delete", obj, extent)
    try:
        kept = np.delete(np.arange(extent), places)
    except IndexError as error:
        fail(IndexError(f"delete: {error}"))
    return _pick(value, kept, d)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Value:
    """``values`` inserted into ``arr`` before the indices ``obj`` along ``axis``."""
    value, new = as_value(arr), as_value(values)
    if axis is None:
        value, axis = ravel(value), 0
    d = one_axis("insert", axis, value.ndim)
    extent = value.shape[d]
    places = _positions("insert", obj, extent)
    if new.ndim < value.ndim:
        new = views.reshape(new, (1,) * (value.ndim - new.ndim) + new.shape)
    if places.ndim == 0:
        new = views.moveaxis(new, 0, d)
        count = new.shape[d]
    else:
        count = places.size
    try:
        order = np.insert(np.arange(extent), places, extent + np.arange(count))
    except (IndexError, ValueError) as error:
        fail(IndexError(f"insert: {error}"))
    shape = (*value.shape[:d], count, *value.shape[d + 1 :])
    both = (value, views.broadcast_to(convert(new, value.dtype), shape))
    return _pick(concatenate(both, d), order, d)
