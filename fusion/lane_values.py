"""Tensors of a lane program: arrays of scalar numbers, and what lies in memory.

A :class:`Tensor` holds the numbers of its scalars in a NumPy array, so views of tensors are NumPy's
views of those arrays. Along its lane axis, if it has one, a tensor has one element a lane, and the
array does not have that axis. Repetition is a stride of 0, whatever the extent.

Operands of a region stay in memory (:class:`Memory`) until they are used, for only then is it known
which of their axes runs over the lanes; so does an :class:`Iota`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from ..ir.dtypes import DType, int64
from ..ir.graph import Value
from .lane_code import LaneStore, Scalar
from .lane_writer import Refusal, Writer

__all__ = ["Iota", "Memory", "Operand", "Tensor", "Values", "behind", "checked_size", "thinly"]

Numbers = np.ndarray[Any, np.dtype[np.int64]]
Shape = tuple[int, ...]

MOST_ELEMENTS = 256  # of a tensor in registers
FEW = 64  # a tensor of more elements that has the lanes' extent has a lane axis


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """``ids`` are the numbers of the scalars, without the lane axis ``axis`` of the whole."""

    ids: Numbers
    axis: int | None = None

    def shape(self, lanes: int | None) -> Shape:
        """The whole shape."""
        if self.axis is None:
            return tuple(self.ids.shape)
        assert lanes is not None
        return (*self.ids.shape[: self.axis], lanes, *self.ids.shape[self.axis :])


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Elements ``offset + sum(args * places) + sum(index * strides)`` of a buffer."""

    buffer: int
    dtype: DType
    extents: Shape
    strides: tuple[int, ...]
    offset: int = 0
    args: tuple[int, ...] = ()
    places: tuple[int, ...] = ()

    def at(self, axis: int, number: int) -> Memory:
        """Without ``axis``, at the run-time position ``number``."""
        rest = [d for d in range(len(self.extents)) if d != axis]
        return replace(
            self,
            extents=tuple(self.extents[d] for d in rest),
            strides=tuple(self.strides[d] for d in rest),
            args=(*self.args, number),
            places=(*self.places, self.strides[axis]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Iota:
    """The position along ``along``."""

    dtype: DType
    extents: Shape
    along: int


Operand = Tensor | Memory | Iota


class Values:
    """The operands' side of an explosion.

    Parameters
    ----------
    writer : Writer
    lanes : int or None
        Extent of the lane axis.
    eager : bool
        Whether to take an axis of that extent for the lane axis where nothing else tells.
    """

    def __init__(self, writer: Writer, lanes: int | None, eager: bool) -> None:
        self.w = writer
        self.lanes = lanes
        self.eager = eager

    def constant(self, v: Value) -> int:
        """The buffer of a constant."""
        raise NotImplementedError

    def shape(self, x: Operand) -> Shape:
        return x.shape(self.lanes) if isinstance(x, Tensor) else x.extents

    def lane_axis(self, x: Operand) -> int | None:
        """The lane axis of an operand, or the one it most likely has."""
        if isinstance(x, Tensor):
            return x.axis
        n = self.lanes
        if n is None or not (self.eager or prod(x.extents) > FEW):
            return None
        for axis, extent in enumerate(x.extents):
            moves = x.along == axis if isinstance(x, Iota) else x.strides[axis] != 0
            if extent == n and moves:
                return axis
        return None

    def carry_axis(self, x: Operand) -> int | None:
        """The lane axis of a carry that begins as ``x``: what repeats may differ later."""
        axis = self.lane_axis(x)
        n = self.lanes
        if axis is not None or n is None or not isinstance(x, Tensor):
            return axis
        if self.eager or x.ids.size > FEW:
            for d, extent in enumerate(x.ids.shape):
                if extent == n and (n == 1 or not x.ids.strides[d]):
                    return d
        return None

    def common_axis(self, xs: Sequence[Operand]) -> int | None:
        """The lane axis of operands of one shape."""
        known = [x.axis for x in xs if isinstance(x, Tensor) and x.axis is not None]
        if known:
            return known[0]
        likely = [a for a in map(self.lane_axis, xs) if a is not None]
        return likely[0] if likely else None

    def tensor(self, x: Operand, axis: int | None) -> Tensor:
        """``x`` in registers, with this lane axis."""
        if isinstance(x, Tensor):
            return self._with_axis(x, axis)
        if axis is not None and x.extents[axis] != self.lanes:
            raise Refusal("two axes of lanes")
        if isinstance(x, Iota):
            return self._iota(x, axis)
        rest = [d for d in range(len(x.extents)) if d != axis]
        lane_stride = 0 if axis is None else x.strides[axis]
        strides = [x.strides[d] for d in rest]
        thin = tuple(
            1 if s == 0 and x.extents[d] else x.extents[d]
            for d, s in zip(rest, strides, strict=True)
        )
        if prod(thin) > MOST_ELEMENTS:
            raise Refusal(f"an operand of {prod(thin)} elements a lane")
        ids = np.empty(thin, np.int64)
        for index in np.ndindex(*thin):
            offset = x.offset + sum(i * s for i, s in zip(index, strides, strict=True))
            ids[index] = self.w.emit(
                Scalar(
                    "load",
                    x.dtype,
                    x.args,
                    buffer=x.buffer,
                    offset=offset,
                    strides=x.places,
                    lane_stride=lane_stride,
                )
            )
        return Tensor(np.broadcast_to(ids, tuple(x.extents[d] for d in rest)), axis)

    def _with_axis(self, x: Tensor, axis: int | None) -> Tensor:
        if x.axis == axis:
            return x
        if x.axis is not None or axis is None:
            raise Refusal("lanes that meet other lanes")
        if x.ids.shape[axis] != self.lanes:
            raise Refusal("two axes of lanes")
        if x.ids.shape[axis] != 1 and x.ids.strides[axis]:
            raise Refusal("a value that tells lanes apart by constants")
        return Tensor(np.take(_thin(x.ids, [axis]), 0, axis), axis)

    def _iota(self, x: Iota, axis: int | None) -> Tensor:
        extents = tuple(n for d, n in enumerate(x.extents) if d != axis)
        if axis == x.along:
            number = self.w.convert(self.w.emit(Scalar("lane", int64)), x.dtype)
            return Tensor(np.broadcast_to(np.int64(number), extents), axis)
        along = x.along - (axis is not None and axis < x.along)
        count = extents[along]
        if count > MOST_ELEMENTS:
            raise Refusal(f"positions along {count} elements")
        numbers = np.array([self.w.const(k, x.dtype) for k in range(count)], np.int64)
        aligned = numbers.reshape([count if d == along else 1 for d in range(len(extents))])
        return Tensor(np.broadcast_to(aligned, extents), axis)

    def tensors(self, xs: Sequence[Operand]) -> tuple[list[Numbers], int | None]:
        """Operands of one shape in registers, with their lane axis."""
        axis = self.common_axis(xs)
        return [self.tensor(x, axis).ids for x in xs], axis

    def scalar(self, x: Operand) -> int:
        """The number of the one element of a value that is the same in all lanes."""
        t = self.tensor(x, None)
        return int(t.ids.reshape(()))

    # -- memory ---------------------------------------------------------------------------------

    def store(self, x: Operand, target: Memory, axis: int | None) -> None:
        """Write ``x`` to ``target``; ``axis`` where it may have none of its own."""
        own = self.common_axis([x])
        t = self.tensor(x, axis if own is None else own)
        rest = [d for d in range(len(target.extents)) if d != t.axis]
        if t.ids.size > MOST_ELEMENTS:
            raise Refusal(f"a result of {t.ids.size} elements a lane")
        lane_stride = 0 if t.axis is None else target.strides[t.axis]
        for index in np.ndindex(*t.ids.shape):
            offset = sum(i * target.strides[d] for i, d in zip(index, rest, strict=True))
            self.w.block.items.append(
                LaneStore(
                    target.buffer,
                    target.offset + offset,
                    target.args,
                    target.places,
                    lane_stride,
                    int(t.ids[index]),
                )
            )


def _thin(ids: Numbers, axes: Sequence[int]) -> Numbers:
    """One element along each of ``axes``."""
    return ids[tuple(slice(0, 1) if d in axes else slice(None) for d in range(ids.ndim))]


def thinly(arrays: Sequence[Numbers], free: Sequence[int]) -> tuple[list[Numbers], list[int]]:
    """Arrays of one rank cut to one element along those axes of ``free`` that repeat in all."""
    cut = [
        d
        for d in free
        if all(a.shape[d] > 1 for a in arrays) and not any(a.strides[d] for a in arrays)
    ]
    return [_thin(a, cut) for a in arrays], cut


def behind(axis: int, lane: int | None) -> int:
    """Where ``axis`` of the whole lies without the lane axis."""
    return axis - (lane is not None and lane < axis)


def checked_size(ids: Any) -> Numbers:
    """``ids``, if they are not too many."""
    if ids.size > MOST_ELEMENTS:
        raise Refusal(f"a value of {ids.size} elements a lane")
    return np.asarray(ids, np.int64)
