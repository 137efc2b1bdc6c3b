"""Scalars of lane programs in LLVM: one value where all lanes agree, else a vector of lanes.

What a mask leaves out is computed like the rest, but it reads no memory, writes none and reports no
error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ...fusion.lane_code import LaneStore, Repeat, Scalar
from ...fusion.loops import Reduction
from ...ir.dtypes import int64
from .context import Words
from .form import LANES
from .frame import BAKED
from .frame_code import FrameCode
from .handler import LLVMHandler, Typed
from .lanes_form import LaneForm
from .memory import (
    I64,
    POINTER,
    address,
    load,
    load_lanes,
    load_row,
    load_strided,
    prefetch,
    store,
    store_lanes,
    store_row,
    store_strided,
)
from .monoids import State, monoid_of
from .regions import DATA

__all__ = ["LaneScalars", "parts_of", "whole_of"]

LINE = 64  # bytes of a cache line


class LaneScalars(FrameCode):
    """What the code of a lane program does but for its control flow."""

    def __init__(self, module: Any, name: str, form: LaneForm, outline: bool = False) -> None:
        super().__init__(module, name, form, form.width, outline)
        self.form, self.program = form, form.program
        self.scalars, self.varying, self.used = (
            form.program.scalars,
            form.program.varying,
            form.program.used,
        )
        self.numbers = ir.Constant(
            ir.VectorType(I64, self.width), [I64(k) for k in range(self.width)]
        )
        self.values: dict[int, Any] = {}
        self.spread: dict[int, Any] = {}  # values for all lanes, as vectors
        self.mask: Any = None  # lanes that count; None: all
        self.full: Any = None  # i1: whether these are all, where that is known
        self.lane: Any = None  # number of the first lane
        self.error_place = self._word(self.buffers, 0)
        self._literals = {
            n: self._frame_literal(form.literal_slot(n) or 0, self.scalars[n].dtype)
            for n in form.literal_slots
        }
        self._rows: dict[int, Any] = {}  # of tapes
        self._meets_lanes = self._uniform_operands()

    # -- scalars and vectors --------------------------------------------------------------------

    def _uniform_operands(self) -> set[int]:
        """Scalars that are the same in all lanes and meet some that are not."""
        found: set[int] = set()
        for number in self.used:
            if self.varying[number] and self.scalars[number].kind != "load":
                found.update(a for a in self.scalars[number].args if not self.varying[a])
        for block in self.program.blocks():
            for item in block.items:
                if isinstance(item, Repeat) and item.own_trips:
                    found.update({item.holds, item.count} - {None, -1})
        return {n for n in found if not self.varying[n]}

    def define(self, number: int, value: Any) -> None:
        """Give a scalar its value, here and in all that follows."""
        self.values[number] = value
        if number in self._meets_lanes:
            self.spread[number] = self.as_vector(value)

    def operand(self, number: int, wide: bool) -> Any:
        """A scalar; ``wide``: as a vector."""
        value = self.values[number]
        if not wide or self.varying[number]:
            return value
        found = self.spread.get(number)
        return self.as_vector(value) if found is None else found

    # -- instructions ---------------------------------------------------------------------------

    def compute(self, number: int) -> Any:
        """The value of an instruction, emitted into the current block."""
        x, wide = self.scalars[number], self.varying[number]
        h = self.vector if wide else self.scalar
        if x.kind == "const":
            found = self._literals.get(number)
            return self._baked_literal(x) if found is None else found
        if x.kind == "lane":
            first = self.splat(Typed(self.lane, int64))
            return Typed(self.builder.add(first.value, self.numbers), int64)
        if x.kind == "load":
            return self._load(x, wide)
        args = [self.operand(a, wide) for a in x.args]

        def report(bad: Typed, value: Typed | None) -> None:
            self.report(x.error, bad, value)

        if x.kind == "bounds":
            return self._position(h, x.high, args[0], report)
        if x.kind == "reduce":
            return self._reduce(h, x, args)
        if x.kind == "chain":
            total = h.const(0, x.dtype)
            for left, right in zip(args[::2], args[1::2], strict=True):
                total = h.fma(left, right, total)
            return total
        return self._apply(h, x, args, report)

    def _reduce(self, h: LLVMHandler, x: Scalar, args: Sequence[Any]) -> Any:
        """A few elements in the order of numerics 7: element k in lane k % 16, then halves.

        Merging with the identity once more changes nothing, so lanes without elements are left
        out, unless a complex product could turn an infinity into NaN.
        """
        assert x.op is not None
        assert x.accumulator is not None
        source = self.scalars[x.args[0]].dtype
        monoid = monoid_of(Reduction(x.op.name, 0, x.accumulator, x.dtype), source)
        pairs = zip(monoid.identity(), monoid.parts, strict=True)
        nothing: State = tuple(h.const(value, part) for value, part in pairs)
        whole = x.op.name == "prod" and x.accumulator.is_complex
        lanes: list[State | None] = [nothing if whole else None] * LANES
        for k, element in enumerate(args):
            state = monoid.element(h, element, h.const(k, int64))
            before = lanes[k % LANES]
            lanes[k % LANES] = monoid.merge(h, nothing if before is None else before, state)
        while len(lanes) > 1:
            half = len(lanes) // 2
            merged = []
            for low, high in zip(lanes[:half], lanes[half:], strict=True):
                both = low is not None and high is not None
                merged.append(monoid.merge(h, low, high) if both else low)
            lanes = merged
        return monoid.finish(h, lanes[0])

    # -- run-time checks ------------------------------------------------------------------------

    def report(self, error: int, bad: Typed, value: Typed | None = None) -> None:
        """Report an error where it is bad: anywhere, or in a lane that counts."""
        mask = self.mask if self.is_wide(bad) else None
        self._write_error(self.form.errors[error], bad, value, mask)

    def failed(self) -> Any:
        """Whether an error was reported, by whomever, as an i1."""
        b = self.builder
        word = b.load(b.inttoptr(self.error_place, POINTER), typ=I64)
        return b.icmp_unsigned("!=", word, I64(0))

    # -- memory ---------------------------------------------------------------------------------

    def _offset(self, x: Scalar | LaneStore) -> Any:
        """The element of the first lane, without what differs from lane to lane."""
        b = self.builder
        total = self.integer(x.offset)
        if x.lane_stride:
            total = b.add(total, b.mul(self.lane, self.integer(x.lane_stride)))
        for a, stride in zip(x.args, x.strides, strict=True):
            if not self.varying[a]:
                total = b.add(total, b.mul(self.values[a].value, self.integer(stride)))
        return total

    def _places(self, x: Scalar | LaneStore, base: Any, size: int) -> Any:
        """The address of each lane's element."""
        b = self.builder
        total = self.splat(Typed(self._offset(x), int64)).value
        if x.lane_stride:
            stride = self.splat(Typed(self.integer(x.lane_stride), int64))
            total = b.add(total, b.mul(stride.value, self.numbers))
        for a, stride in zip(x.args, x.strides, strict=True):
            if self.varying[a]:
                factor = self.splat(Typed(self.integer(stride), int64))
                total = b.add(total, b.mul(self.values[a].value, factor.value))
        if size > 1:
            total = b.mul(total, self.vector.const(size, int64).value)
        return b.add(self.splat(Typed(base, int64)).value, total)

    def tape(self, number: int) -> Words:
        """The header of a tape."""
        return Words(self.builder, self._bases[number])

    def open_tape(self, number: int) -> None:
        """Note where the rows of a tape lie, until it grows again."""
        self._rows[number] = self.tape(number)[DATA]

    def base(self, number: int) -> Any:
        """Where a buffer's elements begin."""
        return self._rows[number] if number in self.program.tapes else self._bases[number]

    def _load(self, x: Scalar, wide: bool) -> Any:
        base, size = self.base(x.buffer), x.dtype.itemsize
        if not wide:
            return load(self.scalar, address(self.builder, base, self._offset(x), size), x.dtype)
        if any(self.varying[a] for a in x.args):
            return load_lanes(self.vector, self._places(x, base, size), x.dtype, self.mask)
        place = address(self.builder, base, self._offset(x), size)
        if x.args and 0 < x.lane_stride <= BAKED and x.offset == 0:
            self._ask_ahead(place, x.lane_stride * size)
        if x.lane_stride == 1:
            return load_row(self.vector, place, x.dtype, self.mask)
        pitch = self.builder.mul(self.integer(x.lane_stride), I64(size))
        return load_strided(self.vector, place, pitch, x.dtype, self.mask)

    def _ask_ahead(self, place: Any, size: int) -> None:
        """Ask for the row of the next group of lanes, which reads it after the whole loop.

        Rows lie far apart: what the processor asks for by itself stays within a page. 100 rows of
        100,000 numbers, subtracted and multiplied in turn, took 12.7 ms and take 2.9.
        """
        row = self.width * size  # bytes of what the lanes have there
        for k in range(0, row, LINE):
            prefetch(self.vector, self.builder.add(place, I64(row + k)))

    def store(self, s: LaneStore) -> None:
        """Carry out a store in the current block."""
        dtype = self.scalars[s.value].dtype
        base, size = self.base(s.buffer), dtype.itemsize
        value = self.values[s.value]
        if not s.lane_stride:
            assert not self.varying[s.value]
            store(self.scalar, address(self.builder, base, self._offset(s), size), value)
            return
        value = self.as_vector(value)
        if any(self.varying[a] for a in s.args):
            store_lanes(self.vector, self._places(s, base, size), value, self.mask)
            return
        place = address(self.builder, base, self._offset(s), size)
        if s.lane_stride == 1:
            self._store_row(place, value)
            return
        pitch = self.builder.mul(self.integer(s.lane_stride), I64(size))
        store_strided(self.vector, place, pitch, value, self.mask)

    def _store_row(self, place: Any, value: Any) -> None:
        """A row of lanes; one of all lanes without a mask, which is faster where memory bounds."""
        if self.full is None:
            store_row(self.vector, place, value, self.mask)
            return
        with self.builder.if_else(self.full, likely=True) as (whole, part):
            with whole:
                store_row(self.vector, place, value, None)
            with part:
                store_row(self.vector, place, value, self.mask)


def parts_of(value: Any) -> list[Typed]:
    """A value as its real parts."""
    return [value] if isinstance(value, Typed) else list(value)


def whole_of(parts: Sequence[Typed], like: Any) -> Any:
    """Real parts as a value like ``like``."""
    return parts[0] if isinstance(like, Typed) else tuple(parts)
