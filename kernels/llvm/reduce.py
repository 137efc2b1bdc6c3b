"""Machine code of reductions, in the one order that numerics 7 fixes.

Element ``k`` of a block of 1024 goes to lane ``k % 16``; lanes combine ``l`` with ``l + 8``, then
4, 2, 1; blocks combine like the digits of a binary counter. Both strategies keep that order:

* ``rows``: vectors run along the reduction loop, two accumulator vectors are the 16 lanes;
* ``columns``: vectors run across the last outer loop, 16 accumulator vectors a column of vectors
  lie in memory, and rows of up to ``TILE`` vectors are read at a time.

A row longer than a block pushes block results on a stack of powers of two. When there is nothing
but one long reduction, threads share its blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir

from ...fusion.split import state_dtypes
from ...ir.dtypes import bool_, int64
from .addressing import LANE_NUMBERS, Scope
from .column_groups import ColumnGroupEmitter
from .form import BLOCK, LANES, WIDTH
from .handler import LLVMHandler, Typed
from .memory import I64, address, load, store
from .monoids import Monoid
from .row_groups import RowGroupEmitter
from .states import LEVELS, State

__all__ = ["TILE", "ReduceEmitter"]

TILE = 16  # vectors of a column tile
MEDIUM = 50  # operations of a body that may stand twice: two exponentials


class ReduceEmitter(RowGroupEmitter, ColumnGroupEmitter):
    """Emits the function of a nest whose last loop reduces."""

    def build(self) -> Any:
        outer = list(range(self.reduce_loop))
        if self.nest.part == "blocks":
            self.descend([], 0, Scope(), frozenset(), self._share_of_blocks, self.after)
        elif self.nest.part == "fold":
            self.descend([], 0, Scope(), frozenset(), self._fold_blocks, self.after)
        elif self.form.strategy == "rows":
            self._in_rows(outer)
        else:
            self._in_columns(outer)
        self.builder.ret_void()
        return self.function

    # -- rows -----------------------------------------------------------------------------------

    def _in_rows(self, outer: list[int]) -> None:
        if not self.has_groups():
            self.descend(outer, 0, Scope(), frozenset(), self._row, self.after)
            return

        def rows(scope: Scope) -> None:
            rest = self.groups(scope, outer[-1])
            with self.loop(rest, self.bounds(outer[-1])[1]) as i:
                inner = self.enter(scope, outer[-1], i)
                self.descend(outer, len(outer), inner, frozenset(outer), self._row, self.after)

        self.descend(outer[:-1], 0, Scope(), frozenset(), rows, self.after)

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
        """The result of elements ``start <= k < stop``, at most a block, in 16 lanes.

        The even and the odd vector of lanes are two running states. Whole turns of both have a
        loop without masks where the body is not too long to stand twice, or thrice where it is
        light; the last loop does the rest, or all.
        """
        b, h = self.builder, self.vector
        running: list[Any] = []
        for monoid in self.monoids:
            parts = zip(monoid.start(), monoid.running, strict=True)
            running.extend([h.const(value, part).value for value, part in parts] * 2)
        first = start
        if self.is_light():
            first = b.add(start, b.and_(b.sub(stop, start), I64(-LANES)))
            running = self.carry(start, first, LANES, running, self._turn(scope))
        elif self.work() <= MEDIUM:
            first = b.add(start, b.and_(b.sub(stop, start), I64(-LANES)))
            running = self.carry(start, first, WIDTH, running, self._half_turn(scope, None))
        # An even number of turns: the last one may be empty under its mask.
        end = b.add(first, b.and_(b.add(b.sub(stop, first), I64(LANES - 1)), I64(-LANES)))
        running = self.carry(first, end, WIDTH, running, self._half_turn(scope, stop))
        results = []
        for monoid, (low, high) in zip(self.monoids, self._by_monoid(running), strict=True):
            merged = monoid.merge(h, monoid.settle(h, low), monoid.settle(h, high))
            results.append(self._across(monoid, merged))
        return results

    def _by_monoid(self, values: list[Any]) -> list[tuple[State, State]]:
        """Values of a loop as the running states (even, odd) of each reduction."""
        rest = iter(values)
        found = []
        for monoid in self.monoids:
            pair = [tuple(Typed(next(rest), part) for part in monoid.running) for _ in range(2)]
            found.append((pair[0], pair[1]))
        return found

    def _turn(self, scope: Scope) -> Callable[[Any, list[Any]], list[Any]]:
        """Sixteen elements: one vector for the even lanes, one for the odd ones."""

        def body(k: Any, values: list[Any]) -> list[Any]:
            even, odd = zip(*self._by_monoid(values), strict=True)
            even = self._add_vector(scope, k, None, even)
            odd = self._add_vector(scope, self.builder.add(k, I64(WIDTH)), None, odd)
            return _flat(zip(even, odd, strict=True))

        return body

    def _half_turn(self, scope: Scope, stop: Any) -> Callable[[Any, list[Any]], list[Any]]:
        """Eight elements under a mask; even and odd lanes change places for the next turn."""

        def body(k: Any, values: list[Any]) -> list[Any]:
            now, then = zip(*self._by_monoid(values), strict=True)
            return _flat(zip(then, self._add_vector(scope, k, stop, now), strict=True))

        return body

    def _add_vector(
        self, scope: Scope, k: Any, stop: Any, running: tuple[State, ...]
    ) -> list[State]:
        """The running states with the elements at ``k``, those before ``stop`` if it is given."""
        b, h = self.builder, self.vector
        inner = self.enter(scope, self.reduce_loop, k)
        if stop is not None:
            self.masked(inner, k, stop)
        tape = range(len(self.nest.tape))
        self.emit([n for n in tape if n not in inner.values and n not in self.after], inner)
        self.store_all(self.inner_stores, inner, True)
        position = Typed(b.add(self.splat(Typed(k, int64)).value, LANE_NUMBERS), int64)
        results = []
        for monoid, reduction, old in zip(self.monoids, self.nest.reductions, running, strict=True):
            x = self.operand(reduction.value, True, inner)
            new = monoid.add(h, old, x, position)
            if stop is not None:
                active = Typed(inner.mask, bool_)
                new = tuple(h.select(active, a, c) for a, c in zip(new, old, strict=True))
            results.append(new)
        return results

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

    # -- columns --------------------------------------------------------------------------------

    def _in_columns(self, outer: list[int]) -> None:
        across = outer[-1]
        known = frozenset(outer[:-1])
        if self.has_column_groups():

            def groups(scope: Scope) -> None:
                self.column_groups(scope, known, across)

            self.descend(outer[:-1], 0, Scope(), frozenset(), groups, self.after)
            return
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
            self.masked(inner, j, last)
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
                self.masked(inner, j, last)
                tape = range(len(self.nest.tape))
                self.emit([n for n in tape if n not in inner.values and n not in self.after], inner)
                self.store_all(self.inner_stores, inner, True)
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


def _take(b: Any, x: Typed, places: list[Any]) -> Typed:
    """Some lanes of a vector; one lane is a scalar."""
    if len(places) == 1:
        return Typed(b.extract_element(x.value, places[0]), x.dtype)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
    return Typed(b.shuffle_vector(x.value, x.value, mask), x.dtype)


def _flat(pairs: Iterable[tuple[State, State]]) -> list[Any]:
    """The LLVM values of running states, in the order of ``_by_monoid``."""
    return [x.value for pair in pairs for state in pair for x in state]


def _elements(states: list[State]) -> list[Any]:
    """States as elements of their buffers: the parts of a complex sum are one number."""
    found: list[Any] = []
    for state in states:
        same = len(state) == 2 and state[0].dtype is state[1].dtype and state[0].dtype.is_floating
        found.extend([state] if same else state)
    return found
