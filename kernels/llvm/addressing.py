"""Addresses and values of a nest in LLVM: buffers, frame words, index expressions, loads, stores.

What varies along the vector loop is a vector, everything else a scalar that is spread over the
lanes where it meets vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from llvmlite import ir

from ...fusion.index import Atom, Dynamic, Index, Quotient, Var
from ...fusion.loops import Instruction, Store
from ...ir.dtypes import DType, int64
from ...ir.ops import OPS
from .form import WIDTH, Form
from .frame import BAKED
from .frame_code import FrameCode
from .handler import LLVMHandler, Typed
from .memory import (
    I64,
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

__all__ = ["LANE_NUMBERS", "Addressing", "Scope"]

LANE_NUMBERS = ir.Constant(ir.VectorType(I64, WIDTH), [I64(k) for k in range(WIDTH)])

ROW = 32 * 1024  # bytes of a row, the next of which may be asked for while this one is read
CHUNK = 256 * 1024  # more bytes than a chunk of a tile reads of one buffer
BYTES_AHEAD, TURNS_AHEAD = 3072, 16  # of prefetching, by measurement


class Scope:
    """What is known inside a loop body: values, partial index sums, the lane mask.

    ``mask`` is None where all lanes count; where there is one, ``full`` may be an i1 that tells
    whether it is set in all lanes. ``lines`` holds what a load reads along an unrolled reduction.
    """

    def __init__(self, parent: Scope | None = None) -> None:
        self.values: dict[int, Any] = dict(parent.values) if parent else {}
        self.spread: dict[int, Any] = dict(parent.spread) if parent else {}
        self.sums: dict[Index, Any] = dict(parent.sums) if parent else {}
        self.atoms: dict[Atom, Typed] = dict(parent.atoms) if parent else {}
        self.lines: dict[int, list[Typed]] = dict(parent.lines) if parent else {}
        self.mask: Any = parent.mask if parent else None
        self.full: Any = parent.full if parent else None


class Addressing(FrameCode):
    """What the code of a nest shares, whatever its loops do."""

    def __init__(self, module: Any, name: str, form: Form, outline: bool = False) -> None:
        super().__init__(module, name, form, WIDTH, outline)
        self.form, self.nest = form, form.nest
        self.limits: dict[int, tuple[Any, Any]] = {}  # bounds of loops other than their own
        self._spans: dict[tuple[int, int, int], Any] = {}  # of prefetching
        self.loops_of = self._dependences()
        self.expressions = tuple(dict.fromkeys(self._expressions()))

    # -- dependences ----------------------------------------------------------------------------

    def _dependences(self) -> list[frozenset[int]]:
        """For each instruction the loops it depends on; -1 stands for the nest's reductions."""
        found: list[frozenset[int]] = []
        for i in self.nest.tape:
            loops: set[int] = {-1} if i.kind in ("reduced", "scanned") else set()
            for operand in i.operands():
                loops |= found[operand]
            if i.index is not None:
                loops |= self._loops(i.index)
            if i.kind == "reduced":
                loops |= set(range(len(self.nest.extents) - 1))
            elif i.kind == "scanned":
                loops |= set(range(len(self.nest.extents)))
            found.append(frozenset(loops))
        return found

    def _loops(self, index: Index) -> set[int]:
        loops: set[int] = set()
        for atom, _ in index.terms:
            if isinstance(atom, Var):
                loops.add(atom.axis)
            elif not isinstance(atom, Dynamic):
                loops |= self._loops(atom.numerator)
        return loops

    def _expressions(self) -> Iterator[Index]:
        for i in self.nest.tape:
            if i.index is not None:
                yield from _with_numerators(i.index)
        for s in self.nest.stores:
            yield from _with_numerators(s.index)

    def is_vector(self, number: int) -> bool:
        return self.form.vector_loop in self.loops_of[number]

    # -- index values ---------------------------------------------------------------------------

    def index_is_vector(self, index: Index) -> bool:
        v = self.form.vector_loop
        if v is None:
            return False
        for atom, _ in index.terms:
            if isinstance(atom, Var):
                if atom.axis == v:
                    return True
            elif isinstance(atom, Dynamic):
                if self.is_vector(atom.number):
                    return True
            elif self.index_is_vector(atom.numerator):
                return True
        return False

    def index_value(self, index: Index, scope: Scope) -> Typed:
        """The expression as int64: a scalar, or a vector when it varies along the lanes."""
        b = self.builder
        total = scope.sums.get(index)
        if total is None:
            total = self.integer(index.const)
        value = Typed(total, int64)
        if not self.index_is_vector(index):
            for atom, c in index.terms:
                if not isinstance(atom, Var):
                    term = self.atom_value(atom, scope).value
                    value = Typed(b.add(value.value, b.mul(term, self.integer(c))), int64)
            return value
        value = self.splat(value)
        for atom, c in index.terms:
            if isinstance(atom, Var):
                if atom.axis != self.form.vector_loop:
                    continue
                lanes = Typed(LANE_NUMBERS, int64)
            else:
                lanes = self.as_vector(self.atom_value(atom, scope))
            if c != 1:
                factor = self.splat(Typed(self.integer(c), int64))
                lanes = self.vector.mul(lanes, factor)
            value = self.vector.add(value, lanes)
        return value

    def atom_value(self, atom: Atom, scope: Scope) -> Typed:
        found = scope.atoms.get(atom)
        if found is not None:
            return found
        if isinstance(atom, Dynamic):
            found = scope.values[atom.number]
        else:
            assert not isinstance(atom, Var)
            numerator = self.index_value(atom.numerator, scope)
            divisor = Typed(self.integer(atom.divisor), int64)
            b = self.builder
            if self.is_wide(numerator):
                divisor = self.splat(divisor)
            operation = b.udiv if isinstance(atom, Quotient) else b.urem
            found = Typed(operation(numerator.value, divisor.value), int64)
        scope.atoms[atom] = found
        return found

    def operand(self, number: int, wide: bool, scope: Scope) -> Any:
        """The value of an instruction; ``wide``: as a vector."""
        value = scope.values[number]
        if not wide or self.is_vector(number):
            return value
        found = scope.spread.get(number)
        if found is None:
            found = scope.spread[number] = self.as_vector(value)
        return found

    # -- loads and stores ----------------------------------------------------------------------

    def _load(self, i: Instruction, wide: bool, scope: Scope) -> Any:
        assert i.index is not None
        b, base, size = self.builder, self._bases[i.buffer], i.dtype.itemsize
        if not wide:
            offset = self.index_value(i.index, scope).value
            if i.guard >= 0:  # the element at 0 exists; it is not used
                offset = b.select(scope.values[i.guard].value, offset, I64(0))
            return load(self.scalar, address(b, base, offset, size), i.dtype)
        mask = self._mask(i, True, scope)
        if self.contiguous(i.index):
            offset = scope.sums.get(i.index, None)
            offset = self._add_atoms(i.index, offset, scope)
            place = address(b, base, offset, size)
            if i.guard >= 0 and not (self.is_vector(i.guard) and abs(i.index.const) <= BAKED):
                place = self._where_any(i.guard, mask, place, base, scope)
            ahead = self._ahead(i.index, size)
            if ahead is not None:
                prefetch(self.vector, b.add(place, ahead))
            behind = self._behind_chunk(i.index, size)
            if behind is not None:
                prefetch(self.vector, b.add(place, behind))
            return load_row(self.vector, place, i.dtype, mask)
        stride = self.lane_stride(i.index)
        if stride is not None:
            place = self.first_place(i.index, base, size, scope)
            pitch = b.mul(self.integer(stride), I64(size))
            return load_strided(self.vector, place, pitch, i.dtype, mask)
        places = self._places(i.index, base, size, scope)
        return load_lanes(self.vector, places, i.dtype, mask)

    def _where_any(self, guard: int, mask: Any, place: Any, base: Any, scope: Scope) -> Any:
        """``place`` if some lane reads there, else the buffer's beginning.

        A guarded row may lie far outside of its buffer. Nothing is read there, but the processor
        takes hundreds of cycles to find that out where no memory is mapped. (Not asked for windows
        that are a few elements off.)
        """
        b = self.builder
        if self.is_vector(guard):
            lanes = b.bitcast(mask, ir.IntType(self.vector.width))
            some = b.icmp_unsigned("!=", lanes, ir.Constant(lanes.type, 0))
        else:
            some = scope.values[guard].value
        return b.select(some, place, base)

    def _ahead(self, index: Index, size: int) -> Any:
        """How many bytes behind a row of lanes lies what will be read next but a few.

        Along the vector loop, or in another row where rows do not follow each other in memory;
        where vectors run across a reduction, some turns of that loop on.
        """
        loop, extents = self.form.vector_loop, self.nest.extents
        if self.form.strategy == "columns":
            turn = index.coefficient(len(extents) - 1)
            if turn:
                return self.builder.mul(self.integer(turn), I64(TURNS_AHEAD * size))
        elif loop:
            pitch = index.coefficient(loop - 1)
            if pitch and pitch != extents[loop]:
                return self._next_row(pitch, extents[loop], size)
        return I64(BYTES_AHEAD)

    def _next_row(self, pitch: int, extent: int, size: int) -> Any:
        """Bytes from a row to the next, or to one ``BYTES_AHEAD`` on if rows are short."""
        found = self._spans.get((pitch, extent, size))
        if found is None:
            b = self.builder
            with b.goto_entry_block():
                row = self._bytes(extent, size)
                some = b.or_(row, I64(1))  # a row may be empty
                rows = b.add(b.udiv(I64(BYTES_AHEAD), some), I64(1))
                span = b.mul(rows, self._bytes(pitch, size))
                found = self._spans[pitch, extent, size] = self._unless_far(span, row, ROW)
        return found

    def _bytes(self, count: int, size: int) -> Any:
        return self.builder.mul(self.integer(count), I64(size))

    def _unless_far(self, span: Any, count: Any, most: int) -> Any:
        """``span`` where ``count`` bytes are at most ``most``, else as far as along a row."""
        b = self.builder
        return b.select(b.icmp_unsigned("<=", count, I64(most)), span, I64(BYTES_AHEAD))

    def _behind_chunk(self, index: Index, size: int) -> Any:
        """How many bytes behind a row of lanes lies what a tile reads in its next chunk.

        A reduction that computes leaves the memory idle (softmax, logsumexp: a quarter of the
        time). The call's range is the chunk, if it is small; else this asks for what ``_ahead``
        does.
        """
        computes = self.nest.reduces and any(i.op is not None for i in self.nest.tape)
        pitch = index.coefficient(0) if len(self.nest.extents) > 1 else None
        if not computes or self.form.strategy != "rows" or not pitch:
            return None
        found = self._spans.get((pitch, 0, size))
        if found is None:
            b = self.builder
            with b.goto_entry_block():
                span = b.mul(b.sub(self.high, self.low), self._bytes(pitch, size))
                found = self._spans[pitch, 0, size] = self._unless_far(span, span, CHUNK)
        return found

    def contiguous(self, index: Index) -> bool:
        """Whether the lanes address consecutive elements."""
        assert self.form.vector_loop is not None
        if index.coefficient(self.form.vector_loop) != 1:
            return False
        return not any(self.is_vector(n) for n in index.dynamics())

    def lane_stride(self, index: Index) -> int | None:
        """Elements from lane to lane where that is one number, else None."""
        assert self.form.vector_loop is not None
        if any(self.is_vector(n) for n in index.dynamics()):
            return None
        return index.coefficient(self.form.vector_loop) or None

    def base_of(self, i: Instruction) -> Any:
        """Address of the buffer that an instruction reads."""
        return self._bases[i.buffer]

    def first_place(self, index: Index, base: Any, size: int, scope: Scope) -> Any:
        """Address of the first lane's element."""
        offset = self._add_atoms(index, scope.sums.get(index), scope)
        return address(self.builder, base, offset, size)

    def _add_atoms(self, index: Index, total: Any, scope: Scope) -> Any:
        b = self.builder
        if total is None:
            total = self.integer(index.const)
        for atom, c in index.terms:
            if not isinstance(atom, Var):
                term = self.atom_value(atom, scope).value
                total = b.add(total, term if c == 1 else b.mul(term, self.integer(c)))
        return total

    def _places(self, index: Index, base: Any, size: int, scope: Scope) -> Any:
        b = self.builder
        offsets = self.as_vector(self.index_value(index, scope))
        if size > 1:
            offsets = self.vector.mul(offsets, self.vector.const(size, int64))
        return b.add(self.splat(Typed(base, int64)).value, offsets.value)

    def _mask(self, i: Instruction, wide: bool, scope: Scope) -> Any:
        mask = scope.mask if wide else None
        if i.guard >= 0:
            guard = self.operand(i.guard, wide, scope).value
            mask = guard if mask is None else self.builder.and_(mask, guard)
        return mask

    def store_all(self, stores: Sequence[Store], scope: Scope, wide: bool) -> None:
        """Carry out stores of the nest in the current block.

        Where the mask may be set in all lanes they stand twice. A store under a mask takes twice
        the time where memory bounds (``x + 1`` of 4 million float64: 1.9 ms instead of 1.4): the
        processor cannot do without reading the line it writes.
        """
        if not (wide and stores and scope.full is not None):
            for s in stores:
                self._store(s, scope, wide)
            return
        with self.builder.if_else(scope.full, likely=True) as branches:
            for branch, mask in zip(branches, (None, scope.mask), strict=True):
                with branch:
                    inner = Scope(scope)
                    inner.mask, inner.full = mask, None
                    for s in stores:
                        self._store(s, inner, wide)

    def _store(self, s: Store, scope: Scope, wide: bool) -> None:
        value = scope.values[s.value]
        if not wide:
            self._store_scalar(s, value, scope)
            return
        b, base = self.builder, self._bases[s.buffer]
        size = _element_size(value)
        value = self.as_vector(value)
        mask = scope.mask
        if s.guard >= 0:
            guard = self.operand(s.guard, True, scope).value
            mask = guard if mask is None else b.and_(mask, guard)
        dtype = self._dtype_of(s)
        if self.contiguous(s.index):
            place = address(b, base, self._add_atoms(s.index, scope.sums.get(s.index), scope), size)
            if s.how != "set":
                old = load_row(self.vector, place, dtype, mask)
                value = self._merged(s.how, self.vector, old, value)
            store_row(self.vector, place, value, mask)
            return
        stride = self.lane_stride(s.index)
        if stride is not None and s.how == "set":
            place = self.first_place(s.index, base, size, scope)
            store_strided(self.vector, place, b.mul(self.integer(stride), I64(size)), value, mask)
            return
        places = self._places(s.index, base, size, scope)
        if s.how != "set":
            old = load_lanes(self.vector, places, dtype, mask)
            value = self._merged(s.how, self.vector, old, value)
        store_lanes(self.vector, places, value, mask)

    def _store_scalar(self, s: Store, value: Any, scope: Scope) -> None:
        b, base = self.builder, self._bases[s.buffer]
        offset = self._add_atoms(s.index, scope.sums.get(s.index), scope)
        guard = nullcontext() if s.guard < 0 else b.if_then(scope.values[s.guard].value)
        with guard:
            place = address(b, base, offset, _element_size(value))
            if s.how != "set":
                old = load(self.scalar, place, self._dtype_of(s))
                value = self._merged(s.how, self.scalar, old, value)
            store(self.scalar, place, value)

    def _dtype_of(self, s: Store) -> DType:
        return self.nest.tape[s.value].dtype

    def _merged(self, how: str, h: LLVMHandler, old: Any, new: Any) -> Any:
        op = OPS[{"min": "minimum", "max": "maximum"}.get(how, how)]
        program = op.scalar if isinstance(old, Typed) else op.complex_scalar
        params = {"tie": 0.5} if how in ("min", "max") else {}
        return program(h, old, new, **params)  # type: ignore[misc]


def _with_numerators(index: Index) -> Iterator[Index]:
    yield index
    for atom, _ in index.terms:
        if not isinstance(atom, (Var, Dynamic)):
            yield from _with_numerators(atom.numerator)


def _element_size(value: Any) -> int:
    """Bytes of an element in memory; a pair is a complex number."""
    if isinstance(value, Typed):
        return value.dtype.itemsize
    return 2 * int(value[0].dtype.itemsize)
