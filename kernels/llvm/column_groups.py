"""Short columns of light bodies, four vectors of them at a time: a vector by a matrix.

Sixteen accumulators for each vector of columns do not fit the registers, so :mod:`.reduce` keeps
them in memory: two more accesses an element. Here a turn gathers lanes ``l`` and ``l + 8`` alone,
of four vectors, and reads the rows that belong to them::

    for l in 0 .. 7:
        for k = l, l + 16, ...:  low += row k;  high += row k + 8        (rows of four vectors)
        lanes[l] = low + high
    then lanes combine l with l + 4, 2, 1

What does not depend on the column is spread over a vector once for four.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...fusion.index import Index
from .addressing import Scope
from .form import LANES, WIDTH, has_aliased_rows
from .handler import Typed
from .memory import I64
from .row_groups import TINY
from .states import State, StateEmitter

__all__ = ["ColumnGroupEmitter"]

VECTORS = 4  # side by side: with two lanes of each eight sums, enough to wait for none
HALF = LANES // 2


class ColumnGroupEmitter(StateEmitter):
    """Reduces columns in groups."""

    _columns_together = False

    def has_column_groups(self) -> bool:
        """Whether columns may go in groups."""
        plain = not self.inner_stores and all(i.error < 0 for i in self.nest.tape)
        small = len(self.monoids) == 1 and self.work() <= TINY
        apart = not has_aliased_rows(self.nest)  # else wide rows one after the other are faster
        return self.form.grouped and apart and plain and small and len(self.monoids[0].parts) == 1

    def column_groups(self, scope: Scope, known: frozenset[int], across: int) -> None:
        """Reduce all columns that loop ``across`` goes through, and finish them."""
        b = self.builder
        start, stop = self.bounds(across)
        whole = b.add(start, b.and_(b.sub(stop, start), I64(-VECTORS * WIDTH)))
        for first, last, vectors in ((start, whole, VECTORS), (whole, stop, 1)):
            slots = self._slots(HALF * vectors, WIDTH)[0]
            with self.loop(first, last, vectors * WIDTH) as j:
                columns = []
                for v in range(vectors):
                    at = b.add(j, I64(v * WIDTH)) if v else j
                    column = self.enter(scope, across, at)
                    if vectors == 1:
                        self.masked(column, at, stop)
                    self._emit_known(column, known | {across})
                    columns.append(column)
                self._columns_together = True
                self._reduce_columns(scope, columns, known, slots)
                self._columns_together = False

    def _ahead(self, index: Index, size: int) -> Any:
        """Nothing in a group: asking costs a slot a load, and rows are read in no simple order."""
        return None if self._columns_together else super()._ahead(index, size)

    def _emit_known(self, scope: Scope, known: frozenset[int]) -> None:
        todo = [n for n, loops in enumerate(self.loops_of) if loops <= known]
        self.emit([n for n in todo if n not in scope.values and n not in self.after], scope)

    def _reduce_columns(
        self, scope: Scope, columns: list[Scope], known: frozenset[int], slots: list[Any]
    ) -> None:
        b, h, (monoid,) = self.builder, self.vector, self.monoids
        vectors = len(columns)
        extent = self.integer(self.nest.extents[self.reduce_loop])
        (value,) = monoid.identity()
        nothing = [h.const(value, monoid.parts[0]).value] * vectors
        with self.loop(I64(0), I64(HALF)) as lane:
            # Rows of lane l with a row of lane l + 8 behind them, then perhaps one without.
            turns = b.ashr(b.sub(b.add(extent, I64(LANES - HALF - 1)), lane), I64(4))
            last = b.add(lane, b.mul(turns, I64(LANES)))
            both = self._columns_turn(scope, columns, known, (0, HALF))
            running = self.carry(lane, last, LANES, nothing * 2, both)
            one = self._columns_turn(scope, columns, known, (0,))
            low = self.carry(last, extent, LANES, running[:vectors], one)
            for v, pair in enumerate(zip(low, running[vectors:], strict=True)):
                first, second = ((Typed(x, monoid.parts[0]),) for x in pair)
                at = b.add(b.mul(lane, I64(vectors)), I64(v))
                self._write(slots, monoid, at, monoid.merge(h, first, second), WIDTH)
        for v, column in enumerate(columns):
            lanes = [
                self._read(slots, monoid, I64(lane * vectors + v), WIDTH) for lane in range(HALF)
            ]
            while len(lanes) > 1:
                half = len(lanes) // 2
                lanes = [monoid.merge(h, lanes[k], lanes[k + half]) for k in range(half)]
            states: list[State] = [lanes[0]]
            self._finish(column, states, h)

    def _columns_turn(
        self, scope: Scope, columns: list[Scope], known: frozenset[int], rows: tuple[int, ...]
    ) -> Callable[[Any, list[Any]], list[Any]]:
        """Some rows from ``k`` on, each for sums of its own."""
        b, h, (monoid,) = self.builder, self.vector, self.monoids
        (reduction,) = self.nest.reductions
        loop = self.reduce_loop

        def body(k: Any, values: list[Any]) -> list[Any]:
            found = iter(values)
            results = []
            for behind in rows:
                here = b.add(k, I64(behind)) if behind else k
                row = self.enter(scope, loop, here)
                self._emit_known(row, known | {loop})
                for column in columns:
                    inner = self.enter(column, loop, here)
                    inner.values = {**row.values, **column.values}
                    inner.spread = {**row.spread, **column.spread}
                    self._emit_known(inner, frozenset(range(loop + 1)))
                    x = self.operand(reduction.value, True, inner)
                    old = (Typed(next(found), monoid.parts[0]),)
                    (new,) = monoid.merge(h, old, monoid.element(h, x, None))
                    results.append(new.value)
                    row.spread.update({n: inner.spread[n] for n in row.values if n in inner.spread})
            return results

        return body
