"""Short rows of light bodies, eight at a time: a matrix by a vector.

A row alone pays for its sixteen lanes: two chains of additions, each as long as an addition takes,
and three steps that combine the lanes of one vector. Eight rows have sixteen chains, share what
does not depend on the row, and combine their lanes together, seven additions for eight results::

    lanes l with l + 8:     eight times   low + high
    lanes l with l + 4:     [a0..a3 b0..b3] + [a4..a7 b4..b7]                  for rows a, b
    lanes l with l + 2:     [a0 a1 b0 b1 c0 c1 d0 d1] + [a2 a3 b2 b3 c2 c3 d2 d3]
    lanes l with l + 1:     the even lanes of two vectors + the odd ones

So each row has its additions in the order of numerics 7, and the results stand in the order of the
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...fusion.index import Index
from ...ir.dtypes import bool_
from .addressing import Scope
from .form import LANES, WIDTH
from .handler import Typed
from .memory import I64, address, shuffle, store_row
from .monoids import Monoid
from .states import State, StateEmitter

__all__ = ["RowGroupEmitter"]

ROWS = WIDTH  # of a group: their results fill a vector
SHORTEST = 32  # elements of a row, unless they are whole turns
STAYS = 256 * 1024  # bytes of an operand in the caches
TINY = 12  # operations of a body that may stand 32 times


class RowGroupEmitter(StateEmitter):
    """Reduces rows in groups; what is left of them is for :mod:`.reduce`."""

    _in_group = False

    def has_groups(self) -> bool:
        """Whether rows may go in groups: registers for sixteen states, nothing else to do.

        Bare sums are bound by memory but for the smallest, and spared 10 ms of compilation.
        """
        fits = all(len(m.parts) == len(m.running) == 1 for m in self.monoids)
        plain = not self.inner_stores and all(i.error < 0 for i in self.nest.tape)
        small = len(self.monoids) == 1 and self.work() <= TINY
        some = self.reduce_loop > 0 and self.nest.extents[self.reduce_loop - 1] >= ROWS
        computes = any(i.op is not None and i.op.name != "convert" for i in self.nest.tape)
        return self.form.grouped and some and computes and fits and plain and small

    def groups(self, scope: Scope, loop: int) -> Any:
        """Reduce groups of the last outer loop; returns the first row that is left."""
        b = self.builder
        start, stop = self.bounds(loop)
        whole = b.add(start, b.and_(b.sub(stop, start), I64(-ROWS)))
        whole = b.select(self._pays(loop), whole, start)
        with self.loop(start, whole, ROWS) as i:
            self._in_group = True
            self._reduce_rows(scope, loop, i)
            self._in_group = False
        return whole

    def _pays(self, loop: int) -> Any:
        """Whether groups are faster: rows of some length, of words of 8 bytes only in the caches.

        What comes from further away is mostly read faster row by row, with prefetching: 256x256
        float64 by a vector take 4.0 us so and in groups 4.8, 1024x1024 71 and 80 (but 300x300 6.8
        and 5.1). Elements that are converted (float32) leave the memory time anyway.
        """
        b = self.builder
        extent = self.integer(self.nest.extents[self.reduce_loop])
        even = b.icmp_signed("==", b.and_(extent, I64(LANES - 1)), I64(0))
        pays = b.or_(even, b.icmp_signed(">=", extent, I64(SHORTEST)))
        for i, loops in zip(self.nest.tape, self.loops_of, strict=True):
            if i.kind == "load" and loops >= {loop, self.reduce_loop} and i.dtype.itemsize >= 8:
                for outer in range(self.reduce_loop):
                    pitch = i.index.coefficient(outer)
                    if not pitch:
                        continue
                    step = self._bytes(pitch, i.dtype.itemsize)
                    step = b.select(b.icmp_signed("<", step, I64(0)), b.neg(step), step)
                    span = b.mul(step, self.integer(self.nest.extents[outer]))
                    pays = b.and_(pays, b.icmp_signed("<=", span, I64(STAYS)))
        return pays

    def _reduce_rows(self, scope: Scope, loop: int, i: Any) -> None:
        b, h, (monoid,) = self.builder, self.vector, self.monoids
        known = frozenset(range(self.reduce_loop))
        rows = [self.enter(scope, loop, b.add(i, I64(r))) for r in range(ROWS)]
        for row in rows:
            self.emit([n for n in self._before(row) if self.loops_of[n] <= known], row)
        stop = self.integer(self.nest.extents[self.reduce_loop])
        (value,) = monoid.start()
        running = [h.const(value, monoid.parts[0]).value] * (2 * ROWS)
        whole = b.and_(stop, I64(-LANES))
        add = self._adding(scope, rows, loop)

        def turn(k: Any, values: list[Any], end: Any = None) -> list[Any]:
            high = b.add(k, I64(WIDTH))
            return [*add(k, values[:ROWS], end), *add(high, values[ROWS:], end)]

        running = self.carry(I64(0), whole, LANES, running, turn)
        running = self.carry(whole, stop, LANES, running, lambda k, v: turn(k, v, stop))
        states: list[State] = []
        for pair in zip(running[:ROWS], running[ROWS:], strict=True):
            low, high = ((Typed(x, monoid.parts[0]),) for x in pair)
            states.append(monoid.merge(h, low, high))
        self._finish_group(rows, loop, self._across_rows(monoid, states))

    def _before(self, scope: Scope) -> list[int]:
        """Instructions before the reduction that are not known yet."""
        tape = range(len(self.nest.tape))
        return [n for n in tape if n not in scope.values and n not in self.after]

    def _adding(
        self, scope: Scope, rows: list[Scope], loop: int
    ) -> Callable[[Any, list[Any], Any], list[Any]]:
        """``add(k, running, stop)``: a vector of each row, what of it lies before ``stop``."""
        h, (monoid,) = self.vector, self.monoids
        (reduction,) = self.nest.reductions
        common = [n for n, loops in enumerate(self.loops_of) if loop not in loops]

        def add(k: Any, running: list[Any], stop: Any) -> list[Any]:
            shared = self.enter(scope, self.reduce_loop, k)
            if stop is not None:
                self.masked(shared, k, stop)
            self.emit([n for n in self._before(shared) if n in common], shared)
            found = []
            for row, value in zip(rows, running, strict=True):
                inner = self.enter(row, self.reduce_loop, k)
                inner.values = {**shared.values, **inner.values}
                inner.mask, inner.full = shared.mask, shared.full
                self.emit(self._before(inner), inner)
                old = (Typed(value, monoid.parts[0]),)
                (new,) = monoid.add(h, old, self.operand(reduction.value, True, inner), None)
                if stop is not None:
                    new = h.select(Typed(shared.mask, bool_), new, old[0])
                found.append(new.value)
            return found

        return add

    def _across_rows(self, monoid: Monoid, states: list[State]) -> State:
        """Eight states of eight lanes as one, a lane a row: l with l + 4, then 2, then 1."""
        h = self.vector
        for half in (4, 2, 1):
            merged = []
            for x, y in zip(states[::2], states[1::2], strict=True):
                parts = []
                for first in (0, half):
                    starts = range(first, 2 * WIDTH, 2 * half)
                    places = [start + lane for start in starts for lane in range(half)]
                    parts.append(
                        tuple(
                            Typed(shuffle(h, a.value, c.value, places), a.dtype)
                            for a, c in zip(x, y, strict=True)
                        )
                    )
                merged.append(monoid.merge(h, parts[0], parts[1]))
            states = merged
        return states[0]

    def _finish_group(self, rows: list[Scope], loop: int, state: State) -> None:
        """Store the results of all rows, together if nothing is made of them."""
        b = self.builder
        result = self.monoids[0].finish(self.vector, state)
        if all(self._is_plain(s.value, s.index, s.how, s.guard, loop) for s in self.outer_stores):
            for s in self.outer_stores:
                offset = self._add_atoms(s.index, rows[0].sums.get(s.index), rows[0])
                place = address(b, self._bases[s.buffer], offset, result.dtype.itemsize)
                store_row(self.vector, place, result, None)
            return
        for r, row in enumerate(rows):
            one = tuple(Typed(b.extract_element(x.value, I64(r)), x.dtype) for x in state)
            self._finish(row, [one], self.scalar)

    def _is_plain(self, value: int, index: Index, how: str, guard: int, loop: int) -> bool:
        """Whether a store puts results side by side."""
        is_result = self.nest.tape[value].kind == "reduced"
        return is_result and how == "set" and guard < 0 and index.coefficient(loop) == 1

    # -- prefetching: the processor follows eight rows by itself, and asking costs a slot a load --

    def _ahead(self, index: Index, size: int) -> Any:
        return None if self._in_group else super()._ahead(index, size)

    def _behind_chunk(self, index: Index, size: int) -> Any:
        return None if self._in_group else super()._behind_chunk(index, size)
