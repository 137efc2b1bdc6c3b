"""Machine code of reductions, in the one order that numerics 7 fixes.

Element ``k`` of a block of 1024 goes to lane ``k % 16``; lanes combine ``l`` with ``l + 8``, then
4, 2, 1; blocks combine like the digits of a binary counter. Both strategies keep that order:

* ``rows``: vectors run along the reduction loop, two accumulator vectors are the 16 lanes;
* ``columns``: vectors run across the last outer loop, 16 accumulator vectors a column of vectors
  lie in memory, and rows of up to ``TILE`` vectors are read at a time.

A row longer than a block pushes block results on a stack of powers of two. When there is nothing
but one long reduction, threads share its blocks (:class:`Partial`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...fusion.split import state_dtypes
from ...ir.dtypes import DType, bool_, int64
from .addressing import Scope
from .form import BLOCK, LANES, WIDTH, Form
from .handler import LLVMHandler, Typed, llvm_type
from .memory import I64, address, load, store
from .monoids import Monoid, monoid_of
from .nest import NestEmitter

__all__ = ["TILE", "ReduceEmitter"]

TILE = 16  # vectors of a column tile
LEVELS = 40  # of the block stack: 2**40 blocks
_ZERO, _ONE = I64(0), I64(1)

State = tuple[Typed, ...]


class ReduceEmitter(NestEmitter):
    """Emits the function of a nest whose last loop reduces."""

    def __init__(self, module: Any, name: str, form: Form, outline: bool = False) -> None:
        super().__init__(module, name, form, outline)
        tape = self.nest.tape
        self.monoids = [monoid_of(r, tape[r.value].dtype) for r in self.nest.reductions]
        self.reduce_loop = len(self.nest.extents) - 1
        self.after = frozenset(n for n, loops in enumerate(self.loops_of) if -1 in loops)
        loop = self.reduce_loop
        self.inner_stores = [s for s in self.nest.stores if loop in self._loops(s.index)]
        self.outer_stores = [s for s in self.nest.stores if loop not in self._loops(s.index)]
        self.wanted = self._needed_by_stores()

    def _needed_by_stores(self) -> frozenset[int]:
        needed = {s.value for s in self.outer_stores}
        for n in range(len(self.nest.tape) - 1, -1, -1):
            if n in needed:
                needed.update(self.nest.tape[n].operands())
        for s in self.outer_stores:
            needed.update(s.index.dynamics())
        return frozenset(needed)

    def build(self) -> Any:
        outer = list(range(self.reduce_loop))
        if self.nest.part == "blocks":
            self.descend([], 0, Scope(), frozenset(), self._share_of_blocks, self.after)
        elif self.nest.part == "fold":
            self.descend([], 0, Scope(), frozenset(), self._fold_blocks, self.after)
        elif self.form.strategy == "rows":
            self.descend(outer, 0, Scope(), frozenset(), self._row, self.after)
        else:
            self._in_columns(outer)
        self.builder.ret_void()
        return self.function

    # -- states in registers and memory ---------------------------------------------------------

    def _slots(self, count: int, width: int) -> list[list[Any]]:
        """Stack memory for ``count`` states of each reduction, a slot array a part."""
        with self.builder.goto_entry_block():
            return [
                [
                    self.builder.alloca(_stored(part, width), size=I64(count))
                    for part in monoid.parts
                ]
                for monoid in self.monoids
            ]

    def _read(self, slots: list[Any], monoid: Monoid, at: Any, width: int) -> State:
        b = self.builder
        result = []
        for slot, part in zip(slots, monoid.parts, strict=True):
            typ = _stored(part, width)
            value = b.load(b.gep(slot, [at], source_etype=typ), typ=typ)
            if part.is_bool:
                value = b.trunc(value, llvm_type(bool_, width))
            result.append(Typed(value, part))
        return tuple(result)

    def _write(self, slots: list[Any], monoid: Monoid, at: Any, state: State, width: int) -> None:
        b = self.builder
        for slot, part, x in zip(slots, monoid.parts, state, strict=True):
            typ = _stored(part, width)
            value = b.zext(x.value, typ) if part.is_bool else x.value
            b.store(value, b.gep(slot, [at], source_etype=typ))

    def _identity(self, h: LLVMHandler, monoid: Monoid) -> State:
        pairs = zip(monoid.identity(), monoid.parts, strict=True)
        return tuple(h.const(value, part) for value, part in pairs)

    # -- rows -----------------------------------------------------------------------------------

    def _row(self, scope: Scope) -> None:
        """One outer iteration: reduce the row, then the epilogue."""
        start, stop = self._row_bounds()
        states = self._reduce_row(scope, start, stop)
        self._finish(scope, states, self.scalar)

    def _row_bounds(self) -> tuple[Any, Any]:
        if self.reduce_loop == 0:  # a single row: the call's range is one iteration
            return I64(0), self.integer(self.nest.extents[0])
        return I64(0), self.integer(self.nest.extents[self.reduce_loop])

    def _reduce_row(self, scope: Scope, start: Any, stop: Any) -> list[State]:
        if self.form.short:
            return self._block(scope, start, stop)
        stack = self._slots(LEVELS, 1)
        count = self._block_loop(scope, start, stop, stack)
        return self._fold_stack(stack, count, self.scalar)

    def _block_loop(self, scope: Scope, start: Any, stop: Any, stack: Any) -> Any:
        """Reduce each block and push it on the stack; returns the number of blocks."""
        b = self.builder
        with self.loop(start, stop, BLOCK) as first:
            end = b.add(first, I64(BLOCK))
            end = b.select(b.icmp_signed("<", end, stop), end, stop)
            states = self._block(Scope(scope), first, end)
            number = b.sdiv(b.sub(first, start), I64(BLOCK))
            self._push(stack, number, states, self.scalar, I64(0), I64(1))
        return b.sdiv(b.add(b.sub(stop, start), I64(BLOCK - 1)), I64(BLOCK))

    def _block(self, scope: Scope, start: Any, stop: Any) -> list[State]:
        """The result of elements ``start <= k < stop``, at most a block, in 16 lanes."""
        b, h = self.builder, self.vector
        identities = [self._identity(h, m) for m in self.monoids]
        before = b.block
        head, body = b.append_basic_block("lanes"), b.append_basic_block("body")
        done = b.append_basic_block("done")
        b.branch(head)
        b.position_at_end(head)
        k = b.phi(I64)
        k.add_incoming(start, before)
        # Two phis a part: the even and the odd vector of lanes take turns.
        turns = [
            [
                [
                    self._phi(part, identity.value, before)
                    for part, identity in zip(m.parts, ids, strict=True)
                ]
                for _ in range(2)
            ]
            for m, ids in zip(self.monoids, identities, strict=True)
        ]
        # An even number of turns: the last one may be empty under its mask.
        span = b.and_(b.add(b.sub(stop, start), I64(LANES - 1)), I64(-LANES))
        b.cbranch(b.icmp_signed("<", k, b.add(start, span)), body, done)
        b.position_at_end(body)
        inner = self.enter(scope, self.reduce_loop, k)
        inner.mask = self.lane_mask(k, stop)
        todo = [
            n for n in range(len(self.nest.tape)) if n not in inner.values and n not in self.after
        ]
        self.emit(todo, inner)
        for s in self.inner_stores:
            self.store(s, inner, True)
        active = Typed(inner.mask, bool_)
        position = Typed(b.add(self.splat(Typed(k, int64)).value, _lanes()), int64)
        for monoid, reduction, (now, then) in zip(
            self.monoids, self.nest.reductions, turns, strict=True
        ):
            x = self.operand(reduction.value, True, inner)
            old = tuple(Typed(p, part) for p, part in zip(now, monoid.parts, strict=True))
            new = monoid.merge(h, old, monoid.element(h, x, position))
            kept = [h.select(active, a, c) for a, c in zip(new, old, strict=True)]
            for a, c, value in zip(now, then, kept, strict=True):
                a.add_incoming(c, b.block)
                c.add_incoming(value.value, b.block)
        k.add_incoming(b.add(k, I64(WIDTH)), b.block)
        b.branch(head)
        b.position_at_end(done)
        results = []
        for monoid, (even, odd) in zip(self.monoids, turns, strict=True):
            low = tuple(Typed(p, part) for p, part in zip(even, monoid.parts, strict=True))
            high = tuple(Typed(p, part) for p, part in zip(odd, monoid.parts, strict=True))
            results.append(self._across(monoid, monoid.merge(h, low, high)))
        return results

    def _phi(self, part: DType, value: Any, block: Any) -> Any:
        phi = self.builder.phi(llvm_type(part, WIDTH))
        phi.add_incoming(value, block)
        return phi

    def _across(self, monoid: Monoid, state: State) -> State:
        """Lanes combine l with l + 4, then 2, then 1."""
        b = self.builder
        for half in (4, 2, 1):
            h = LLVMHandler(b, half)
            parts = []
            for first in (0, half):
                places = [ir.IntType(32)(first + k) for k in range(half)]
                parts.append(tuple(_take(b, x, places) for x in state))
            state = monoid.merge(h, parts[0], parts[1])
        return state

    # -- the stack of blocks --------------------------------------------------------------------

    def _share_of_blocks(self, scope: Scope) -> None:
        """Blocks ``low .. high`` of a long reduction: their states go to the state buffers."""
        b = self.builder
        stop = self.integer(self.nest.extents[0])
        with self.loop(self.low, self.high) as number:
            first = b.mul(number, I64(BLOCK))
            end = b.add(first, I64(BLOCK))
            end = b.select(b.icmp_signed("<", end, stop), end, stop)
            states = self._block(Scope(scope), first, end)
            for (base, size), x in zip(self._state_places(), _elements(states), strict=True):
                store(self.scalar, address(b, base, number, size), x)

    def _fold_blocks(self, scope: Scope) -> None:
        """Merge the states of all blocks, in the order in which a single thread would."""
        b = self.builder
        extent = self.integer(self.nest.extents[0])
        count = b.sdiv(b.add(extent, I64(BLOCK - 1)), I64(BLOCK))
        stack = self._slots(LEVELS, 1)
        with self.loop(I64(0), count) as number:
            states: list[State] = []
            places = iter(self._state_places())
            for monoid, reduction in zip(self.monoids, self.nest.reductions, strict=True):
                source = self.nest.tape[reduction.value].dtype
                parts: list[Typed] = []
                for dtype in state_dtypes(reduction, source):
                    base, size = next(places)
                    x = load(self.scalar, address(b, base, number, size), dtype)
                    parts.extend(x if type(x) is tuple else [x])
                assert len(parts) == len(monoid.parts)
                states.append(tuple(parts))
            self._push(stack, number, states, self.scalar, I64(0), I64(1))
        self._finish(scope, self._fold_stack(stack, count, self.scalar), self.scalar)

    def _state_places(self) -> list[tuple[Any, int]]:
        """Address and element size of each state buffer."""
        sizes = [
            dtype.itemsize
            for r in self.nest.reductions
            for dtype in state_dtypes(r, self.nest.tape[r.value].dtype)
        ]
        bases = [self._bases[number] for number in self.nest.states]
        return list(zip(bases, sizes, strict=True))

    def _push(
        self, stack: Any, number: Any, states: list[State], h: LLVMHandler, lane: Any, pitch: Any
    ) -> None:
        """Add block ``number``: merge with as many levels as it has trailing one bits."""
        b = self.builder
        before = b.block
        head, body = b.append_basic_block("merge"), b.append_basic_block("body")
        done = b.append_basic_block("done")
        b.branch(head)
        b.position_at_end(head)
        level = b.phi(I64)
        level.add_incoming(I64(0), before)
        phis = []
        for state in states:
            row = []
            for x in state:
                phi = b.phi(x.value.type)
                phi.add_incoming(x.value, before)
                row.append(phi)
            phis.append(row)
        bit = b.and_(b.lshr(number, level), I64(1))
        b.cbranch(b.icmp_unsigned("!=", bit, I64(0)), body, done)
        b.position_at_end(body)
        at = b.add(b.mul(level, pitch), lane)
        for monoid, slots, row in zip(self.monoids, stack, phis, strict=True):
            below = self._read(slots, monoid, at, h.width)
            state = tuple(Typed(p, part) for p, part in zip(row, monoid.parts, strict=True))
            for phi, x in zip(row, monoid.merge(h, below, state), strict=True):
                phi.add_incoming(x.value, b.block)
        level.add_incoming(b.add(level, I64(1)), b.block)
        b.branch(head)
        b.position_at_end(done)
        at = b.add(b.mul(level, pitch), lane)
        for monoid, slots, row in zip(self.monoids, stack, phis, strict=True):
            state = tuple(Typed(p, part) for p, part in zip(row, monoid.parts, strict=True))
            self._write(slots, monoid, at, state, h.width)

    def _fold_stack(
        self, stack: Any, count: Any, h: LLVMHandler, lane: Any = _ZERO, pitch: Any = _ONE
    ) -> list[State]:
        """Merge what the stack holds after ``count`` blocks, smallest level first."""
        b = self.builder
        total = self._slots(1, h.width)
        for monoid, slots in zip(self.monoids, total, strict=True):
            self._write(slots, monoid, I64(0), self._identity(h, monoid), h.width)
        low = b.cttz(count, ir.Constant(ir.IntType(1), 0))
        with b.if_then(b.icmp_signed(">", count, I64(0))):
            at = b.add(b.mul(low, pitch), lane)
            for monoid, slots, result in zip(self.monoids, stack, total, strict=True):
                state = self._read(slots, monoid, at, h.width)
                self._write(result, monoid, I64(0), state, h.width)
            with self.loop(b.add(low, I64(1)), I64(LEVELS)) as level:
                bit = b.and_(b.lshr(count, level), I64(1))
                with b.if_then(b.icmp_unsigned("!=", bit, I64(0))):
                    at = b.add(b.mul(level, pitch), lane)
                    for monoid, slots, result in zip(self.monoids, stack, total, strict=True):
                        above = self._read(slots, monoid, at, h.width)
                        below = self._read(result, monoid, I64(0), h.width)
                        state = monoid.merge(h, above, below)
                        self._write(result, monoid, I64(0), state, h.width)
        return [
            self._read(slots, monoid, I64(0), h.width)
            for monoid, slots in zip(self.monoids, total, strict=True)
        ]

    # -- epilogue -------------------------------------------------------------------------------

    def _finish(self, scope: Scope, states: list[State], h: LLVMHandler) -> None:
        """Give the results to the tape, emit what depends on them, store."""
        for n, i in enumerate(self.nest.tape):
            if i.kind == "reduced":
                scope.values[n] = self.monoids[i.low].finish(h, states[i.low])
        todo = [n for n in sorted(self.wanted) if n not in scope.values]
        self.emit(todo, scope)
        wide = h.width > 1
        for s in self.outer_stores:
            self.store(s, scope, wide)

    # -- columns --------------------------------------------------------------------------------

    def _in_columns(self, outer: list[int]) -> None:
        across = outer[-1]
        known = frozenset(outer[:-1])
        accumulators = self._slots(LANES * TILE, WIDTH)
        stack = self._slots(1 if self.form.short else LEVELS * TILE, WIDTH)

        def tiles(scope: Scope) -> None:
            start, stop = self.bounds(across)
            with self.loop(start, stop, WIDTH * TILE) as first:
                b = self.builder
                last = b.add(first, I64(WIDTH * TILE))
                last = b.select(b.icmp_signed("<", last, stop), last, stop)
                self._tile(scope, known, across, (first, last), accumulators, stack)

        self.descend(outer[:-1], 0, Scope(), frozenset(), tiles, self.after)

    def _each_vector(self, first: Any, last: Any, body: Callable[[Any, Any], None]) -> None:
        """``body(first element, number in the tile)`` for the vectors of a tile."""
        with self.loop(first, last, WIDTH) as j:
            body(j, self.builder.sdiv(self.builder.sub(j, first), I64(WIDTH)))

    def _tile(
        self,
        scope: Scope,
        known: frozenset[int],
        across: int,
        tile: tuple[Any, Any],
        accumulators: Any,
        stack: Any,
    ) -> None:
        b, h = self.builder, self.vector
        first, last = tile
        extent = self.integer(self.nest.extents[self.reduce_loop])
        blocks = I64(1)
        if self.form.short:
            self._columns_block(scope, known, across, tile, accumulators, I64(0), extent)
        else:
            with self.loop(I64(0), extent, BLOCK) as start:
                end = b.add(start, I64(BLOCK))
                end = b.select(b.icmp_signed("<", end, extent), end, extent)
                self._columns_block(scope, known, across, tile, accumulators, start, end)
                number = b.sdiv(start, I64(BLOCK))

                def push(j: Any, t: Any) -> None:
                    states = self._fold_lanes(accumulators, t)
                    self._push(stack, number, states, h, t, I64(TILE))

                self._each_vector(first, last, push)
            blocks = b.sdiv(b.add(extent, I64(BLOCK - 1)), I64(BLOCK))

        def finish(j: Any, t: Any) -> None:
            if self.form.short:
                states = self._fold_lanes(accumulators, t)
            else:
                states = self._fold_stack(stack, blocks, h, t, I64(TILE))
            inner = self.enter(scope, across, j)
            inner.mask = self.lane_mask(j, last)
            self._finish(inner, states, h)

        self._each_vector(first, last, finish)

    def _columns_block(
        self,
        scope: Scope,
        known: frozenset[int],
        across: int,
        tile: tuple[Any, Any],
        accumulators: Any,
        start: Any,
        end: Any,
    ) -> None:
        b, h = self.builder, self.vector
        first, last = tile
        with self.loop(I64(0), I64(LANES * TILE)) as n:
            for monoid, slots in zip(self.monoids, accumulators, strict=True):
                self._write(slots, monoid, n, self._identity(h, monoid), WIDTH)
        with self.loop(start, end) as k:
            row = self.enter(scope, self.reduce_loop, k)
            ready = known | {self.reduce_loop}
            self.emit(
                [
                    n
                    for n, loops in enumerate(self.loops_of)
                    if n not in row.values and n not in self.after and loops <= ready
                ],
                row,
            )
            lane = b.mul(b.and_(k, I64(LANES - 1)), I64(TILE))

            def add(j: Any, t: Any) -> None:
                inner = self.enter(row, across, j)
                inner.mask = self.lane_mask(j, last)
                tape = range(len(self.nest.tape))
                self.emit([n for n in tape if n not in inner.values and n not in self.after], inner)
                for s in self.inner_stores:
                    self.store(s, inner, True)
                at = b.add(lane, t)
                position = self.splat(Typed(k, int64))
                for monoid, reduction, slots in zip(
                    self.monoids, self.nest.reductions, accumulators, strict=True
                ):
                    x = self.operand(reduction.value, True, inner)
                    old = self._read(slots, monoid, at, WIDTH)
                    new = monoid.merge(h, old, monoid.element(h, x, position))
                    self._write(slots, monoid, at, new, WIDTH)

            self._each_vector(first, last, add)

    def _fold_lanes(self, accumulators: Any, t: Any) -> list[State]:
        """The 16 lanes of a column vector: l with l + 8, then 4, 2, 1."""
        b, h = self.builder, self.vector
        results = []
        for monoid, slots in zip(self.monoids, accumulators, strict=True):
            lanes = [
                self._read(slots, monoid, b.add(I64(lane * TILE), t), WIDTH)
                for lane in range(LANES)
            ]
            while len(lanes) > 1:
                half = len(lanes) // 2
                lanes = [monoid.merge(h, lanes[k], lanes[k + half]) for k in range(half)]
            results.append(lanes[0])
        return results


def _stored(part: DType, width: int) -> Any:
    if not part.is_bool:
        return llvm_type(part, width)
    return ir.IntType(8) if width == 1 else ir.VectorType(ir.IntType(8), width)


def _take(b: Any, x: Typed, places: list[Any]) -> Typed:
    """Some lanes of a vector; one lane is a scalar."""
    if len(places) == 1:
        return Typed(b.extract_element(x.value, places[0]), x.dtype)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
    return Typed(b.shuffle_vector(x.value, x.value, mask), x.dtype)


def _lanes() -> Any:
    return ir.Constant(ir.VectorType(I64, WIDTH), [I64(k) for k in range(WIDTH)])


def _elements(states: list[State]) -> list[Any]:
    """States as elements of their buffers: the parts of a complex sum are one number."""
    found: list[Any] = []
    for state in states:
        same = len(state) == 2 and state[0].dtype is state[1].dtype and state[0].dtype.is_floating
        found.extend([state] if same else state)
    return found
