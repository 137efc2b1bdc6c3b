"""Reading and writing at run-time places, on tensors of scalars and on operands in memory.

Registers have no addresses: an element at a run-time place is chosen among all it may be. What lies
in memory is loaded from its address. Places mean what :mod:`.rules` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..ir.dtypes import int64
from ..ir.graph import Node
from ..ir.ops import OPS
from .lane_code import Scalar
from .lane_values import (
    MOST_ELEMENTS,
    Iota,
    Memory,
    Numbers,
    Operand,
    Tensor,
    Values,
    behind,
    checked_size,
)
from .lane_writer import Refusal, Writer

__all__ = ["INDEXED", "choose"]


# --------------------------------------------------------------------------------------- places


def _clamped(w: Writer, number: int, most: int) -> int:
    zero, last = w.integer(0), w.integer(most)
    number = w.select(w.op("lt", number, zero), zero, number)
    return w.select(w.op("gt", number, last), last, number)


def _window_start(w: Writer, number: int, extent: int, size: int) -> int:
    """A negative start counts from the end; then the window is moved inside."""
    known = w.known_integer(number)
    if size == extent:
        return w.integer(0)
    if known is not None:
        known = known + extent if known < 0 else known
        return w.integer(min(max(known, 0), extent - size))
    moved = w.op("add", number, w.integer(extent))
    negative = w.op("lt", number, w.integer(0))
    return _clamped(w, w.select(negative, moved, number), extent - size)


def _place(w: Writer, node: Node, number: int, axis: int, extent: int) -> tuple[int, int]:
    """An element of an index array as a position in ``[0, extent)``; -1 or the guard of "fill"."""
    mode = node.param("mode")
    if extent == 0:
        raise Refusal("an empty axis that is indexed")
    known = w.known_integer(number)
    if known is not None and 0 <= known < extent:
        return number, -1
    if mode == "raise":
        error = w.report(
            IndexError,
            f"{node.op.name}: index {{value}} is out of bounds for axis {axis} with size "
            f"{extent}; mode='clip', 'wrap' or 'fill' gives it a meaning",
        )
        return w.emit(Scalar("bounds", int64, (number,), high=extent, error=error)), -1
    if mode == "wrap":
        return w.op("remainder", number, w.integer(extent)), -1
    if mode == "clip":
        return _clamped(w, number, extent - 1), -1
    zero, size = w.integer(0), w.integer(extent)
    counted = w.select(w.op("lt", number, zero), w.op("add", number, size), number)
    fits = w.op("and", w.op("ge", counted, zero), w.op("lt", counted, size))
    return w.select(fits, counted, zero), fits


def choose(w: Writer, place: int, options: Sequence[Numbers]) -> Numbers:
    """``options[place]``, element by element."""
    known = w.known_integer(place)
    if known is not None:
        return options[known]
    result = options[0]
    for k in range(1, len(options)):
        here = w.op("eq", place, w.integer(k))
        merged = np.empty(result.shape, np.int64)
        for index in np.ndindex(*result.shape):
            merged[index] = w.select(here, int(options[k][index]), int(result[index]))
        result = merged
    return result


def _both(w: Writer, a: int, b: int) -> int:
    return max(a, b) if a < 0 or b < 0 else w.op("and", a, b)


# -------------------------------------------------------------------------------------- windows


def _dynamic_slice(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    x, *starts = xs
    sizes, extents = node.types[0].shape, v.shape(x)
    if isinstance(x, Iota):
        x = v.tensor(x, v.lane_axis(x))
    places = [
        _window_start(v.w, v.scalar(s), n, size)
        for s, n, size in zip(starts, extents, sizes, strict=True)
    ]
    if isinstance(x, Memory):
        moving = [d for d, (n, size) in enumerate(zip(extents, sizes, strict=True)) if n != size]
        return replace(
            x,
            extents=sizes,
            args=(*x.args, *(places[d] for d in moving)),
            places=(*x.places, *(x.strides[d] for d in moving)),
        )
    ids = x.ids
    for d, (n, size, place) in enumerate(zip(extents, sizes, places, strict=True)):
        if d == x.axis or n == size:
            if d == x.axis and n != size:
                raise Refusal("a window of the lanes")
            continue
        own = behind(d, x.axis)
        windows = [np.take(ids, range(k, k + size), own) for k in range(n - size + 1)]
        ids = choose(v.w, place, windows)
    return Tensor(ids, x.axis)


def _dynamic_update_slice(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    w = v.w
    starts = xs[2:]
    extents, sizes = node.types[0].shape, v.shape(xs[1])
    known = [x.axis for x in xs[:2] if isinstance(x, Tensor) and x.axis is not None]
    axis = known[0] if known else v.common_axis(xs[:1])
    if axis is not None and sizes[axis] != extents[axis]:
        raise Refusal("a window of the lanes")
    old, new = (v.tensor(x, axis).ids for x in xs[:2])
    checked_size(old)
    inside: dict[int, list[int]] = {}  # by axis, for each position: whether the window covers it
    for d, (n, size) in enumerate(zip(extents, sizes, strict=True)):
        if n == size:
            continue
        own = behind(d, axis)
        place = _window_start(w, v.scalar(starts[d]), n, size)
        shifted = []
        for k in range(n - size + 1):
            # What lies outside of the window is never chosen: any element will do.
            source = np.clip(np.arange(n) - k, 0, max(size - 1, 0))
            shifted.append(np.take(new, source, own) if size else old)
        new = choose(w, place, shifted)
        end = w.op("add", place, w.integer(size))
        positions = [w.integer(k) for k in range(n)]
        inside[own] = [w.op("and", w.op("le", place, k), w.op("lt", k, end)) for k in positions]
    out = np.empty(old.shape, np.int64)
    for index in np.ndindex(*out.shape):
        guard = -1
        for own, fits in inside.items():
            guard = _both(w, guard, fits[index[own]])
        pair = int(new[index]), int(old[index])
        out[index] = pair[0] if guard < 0 else w.select(guard, *pair)
    return Tensor(out, axis)


# --------------------------------------------------------------------------------- index arrays


class _Indices:
    """Index arrays of a gather or scatter in registers.

    ``axis`` is the lane axis among the leading axes, ``own`` the indexed axis whose index is the
    lane itself: each lane has an array of its own.
    """

    def __init__(self, v: Values, node: Node, xs: Sequence[Operand]) -> None:
        self.v, self.node = v, node
        self.axes = node.param("axes")
        known = [x.axis for x in xs if isinstance(x, Tensor) and x.axis is not None]
        self.axis = known[0] if known else v.common_axis(xs)
        self.own: int | None = None
        self.arrays: dict[int, Numbers] = {}
        for d, x in zip(self.axes, xs, strict=True):
            lane = isinstance(x, Iota) and self.axis is not None and x.along == self.axis
            if lane and self.own is None:
                self.own = d
            else:
                self.arrays[d] = v.tensor(x, self.axis).ids
        whole = v.shape(xs[0])
        self.shape = tuple(n for d, n in enumerate(whole) if d != self.axis)
        if np.prod(self.shape, dtype=object) > MOST_ELEMENTS:
            raise Refusal("many indices a lane")

    def check(self, extents: Sequence[int]) -> None:
        """An array of each lane's own must have the lanes' extent."""
        if self.own is not None and extents[self.own] != self.v.lanes:
            raise Refusal("lanes as indices of something else")

    def at(self, index: tuple[int, ...], extents: Sequence[int]) -> tuple[dict[int, int], int]:
        """The place along each indexed axis, and the guard of mode "fill"."""
        places: dict[int, int] = {}
        inside = -1
        for d, array in self.arrays.items():
            place, fits = _place(self.v.w, self.node, int(array[index]), d, extents[d])
            places[d] = place
            inside = _both(self.v.w, inside, fits)
        return places, inside


def _gather(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    indices = _Indices(v, node, xs[1:])
    x, extents = xs[0], v.shape(xs[0])
    indices.check(extents)
    rest = [d for d in range(len(extents)) if d not in indices.axes]
    lane = indices.axis
    if isinstance(x, Memory):
        if indices.shape == () and lane is None and node.param("mode") != "fill":
            places, _ = indices.at((), extents)
            for d in sorted(places, reverse=True):
                x = x.at(d, places[d])
            return x
        read = _from_memory
    else:
        x = v.tensor(x, indices.own if lane is not None else v.lane_axis(x))
        if x.axis is not None and lane is None:
            if x.axis not in rest:
                raise Refusal("indices into the lanes")
            lane = len(indices.shape) + rest.index(x.axis)
        read = _from_registers
    rest_shape = tuple(extents[d] for d in rest if not (isinstance(x, Tensor) and x.axis == d))
    out = np.empty((*indices.shape, *rest_shape), np.int64)
    checked_size(out)
    for index in np.ndindex(*indices.shape):
        places, inside = indices.at(index, extents)
        found = read(v, x, indices, places)
        if inside >= 0:
            fill = v.w.literal(node.param("fill_value"))
            found = _chosen(v.w, inside, found, np.full(found.shape, fill))
        out[index] = found
    return Tensor(out, lane)


def _chosen(w: Writer, condition: int, x: Numbers, y: Numbers) -> Numbers:
    out = np.empty(x.shape, np.int64)
    for index in np.ndindex(*x.shape):
        out[index] = w.select(condition, int(x[index]), int(y[index]))
    return out


def _from_memory(v: Values, x: Operand, indices: _Indices, places: dict[int, int]) -> Numbers:
    """The window of one set of places in memory."""
    assert isinstance(x, Memory)
    lane_stride = 0 if indices.own is None else x.strides[indices.own]
    rest = [d for d in range(len(x.extents)) if d not in indices.axes]
    out = np.empty([x.extents[d] for d in rest], np.int64)
    checked_size(out)
    for index in np.ndindex(*out.shape):
        offset = x.offset + sum(i * x.strides[d] for i, d in zip(index, rest, strict=True))
        out[index] = v.w.emit(
            Scalar(
                "load",
                x.dtype,
                (*x.args, *places.values()),
                buffer=x.buffer,
                offset=offset,
                strides=(*x.places, *(x.strides[d] for d in places)),
                lane_stride=lane_stride,
            )
        )
    return out


def _from_registers(v: Values, x: Operand, indices: _Indices, places: dict[int, int]) -> Numbers:
    assert isinstance(x, Tensor)
    ids = x.ids
    for d in sorted(places, reverse=True):
        own = behind(d, x.axis)
        ids = choose(v.w, places[d], [np.take(ids, k, own) for k in range(ids.shape[own])])
    return ids


def _scatter(v: Values, node: Node, xs: Sequence[Operand]) -> Operand:
    w, how = v.w, node.param("how")
    if node.types[0].dtype.is_bool and how != "set":
        raise Refusal("bools that merge are a library's work")
    indices = _Indices(v, node, xs[2:])
    extents = node.types[0].shape
    indices.check(extents)
    lead = len(indices.shape) + (indices.axis is not None)
    rest = [d for d in range(len(extents)) if d not in indices.axes]
    axis = indices.own
    if axis is None:
        axis = v.lane_axis(xs[0])
        updates = v.lane_axis(xs[1])
        if updates is not None and axis is None and updates >= lead:
            axis = rest[updates - lead]
    if indices.axis is not None and indices.own is None:
        raise Refusal("lanes that write to one array")
    if axis is not None and indices.own is None and axis not in rest:
        raise Refusal("indices into the lanes")
    ids = np.array(v.tensor(xs[0], axis).ids)
    checked_size(ids)
    of_updates = indices.axis
    if indices.own is None and axis is not None:
        of_updates = lead + rest.index(axis)
    new = v.tensor(xs[1], of_updates).ids
    for index in np.ndindex(*indices.shape):
        places, inside = indices.at(index, extents)
        _update(w, how, ids, axis, places, inside, new[index])
    return Tensor(ids, axis)


def _update(
    w: Writer,
    how: str,
    ids: Numbers,
    axis: int | None,
    places: dict[int, int],
    inside: int,
    new: Numbers,
) -> None:
    """Merge ``new`` into ``ids`` at one set of places."""
    own = {behind(d, axis): place for d, place in places.items()}
    rest = [d for d in range(ids.ndim) if d not in own]
    for index in np.ndindex(*ids.shape):
        guard, never = inside, False
        for d, place in own.items():
            known = w.known_integer(place)
            if known is not None:
                never = never or known != index[d]
            else:
                guard = _both(w, guard, w.op("eq", place, w.integer(index[d])))
        if never:
            continue
        old, update = int(ids[index]), int(new[tuple(index[d] for d in rest)])
        if how != "set":
            update = _merge(w, how, old, update)
        ids[index] = update if guard < 0 else w.select(guard, update, old)


def _merge(w: Writer, how: str, old: int, new: int) -> int:
    op = OPS[{"min": "minimum", "max": "maximum"}.get(how, how)]
    params = (("tie", 0.5),) if how in ("min", "max") else ()
    return w.emit(Scalar("op", w.dtype(old), (old, new), op=op, params=params))


INDEXED = {
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "scatter": _scatter,
}
