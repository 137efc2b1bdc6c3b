"""Machine code of a nest: loops around a tape.

The function made for a nest is ::

    void nest(i64* buffers, i64* frame, i64 low, i64 high)

``buffers`` holds the addresses of all buffers of the plan behind one word for errors, ``frame``
the numbers of :class:`~.form.Form`. It runs iterations ``low <= i0 < high`` of the outermost
loop, so that threads can share it.

Each instruction is emitted once, in the outermost loop body that knows its operands: what does not
depend on the vector loop is computed as a scalar and spread over the lanes where it meets vectors.
The last vector of a row is the same code under a lane mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

from llvmlite import ir

from ...fusion.index import Var
from ...fusion.loops import Instruction
from ...fusion.realize import weight_of
from ...ir.dtypes import int64
from .addressing import LANE_NUMBERS, Addressing, Scope
from .crossing import emit_strips
from .form import WIDTH
from .handler import Typed
from .loops import counted_loop
from .memory import I64
from .outline import hidden

__all__ = ["NestEmitter"]

LIGHT = 24  # operations of a body that may stand twice, in reductions thrice


class NestEmitter(Addressing):
    """Emits the function of one form; subclasses of the problem live in :mod:`.reduce`."""

    hides_counters = False  # from LLVM's search for better addresses, see :mod:`.outline`

    # -- loops ----------------------------------------------------------------------------------

    def loop(self, start: Any, stop: Any, step: int = 1) -> AbstractContextManager[Any]:
        """``for (i = start; i < stop; i += step)``; the body is the with block."""
        return counted_loop(self.builder, start, stop, step)

    def enter(self, scope: Scope, loop: int, i: Any) -> Scope:
        """The scope of the body of ``loop``: every index sum gets its term of that loop."""
        inner = Scope(scope)
        b = self.builder
        if self.hides_counters and not isinstance(i, ir.Constant):
            i = hidden(b, i)
        for expression in self.expressions:
            coefficient = 0
            for atom, c in expression.terms:
                if isinstance(atom, Var) and atom.axis == loop:
                    coefficient = c
            if not coefficient:
                continue
            term = i if coefficient == 1 else b.mul(i, self.integer(coefficient))
            known = inner.sums.get(expression)
            if known is None:
                known = self.integer(expression.const) if expression.const else None
            inner.sums[expression] = term if known is None else b.add(known, term)
        return inner

    def lane_mask(self, i: Any, stop: Any) -> Any:
        """Which lanes of the vector at ``i`` lie before ``stop``."""
        b = self.builder
        left = self.splat(Typed(b.sub(stop, i), int64))
        return b.icmp_signed("<", LANE_NUMBERS, left.value)

    def masked(self, scope: Scope, i: Any, stop: Any) -> Scope:
        """``scope`` with the mask of the vector at ``i``, the last one before ``stop`` or not."""
        b = self.builder
        scope.mask = self.lane_mask(i, stop)
        scope.full = b.icmp_signed("<=", b.add(i, I64(WIDTH)), stop)
        return scope

    def work(self) -> int:
        """Operations of the tape, about."""
        work = sum(weight_of(i.op) for i in self.nest.tape if i.op is not None)
        return work + len(self.nest.tape)

    def is_light(self) -> bool:
        """Whether whole vectors have a loop of their own, without masks."""
        return self.work() <= LIGHT

    def bounds(self, loop: int) -> tuple[Any, Any]:
        """First and one-past-last iteration: the call's share of loop 0, all of the others."""
        if loop in self.limits:
            return self.limits[loop]
        if loop == 0:
            return self.low, self.high
        return I64(0), self.integer(self.nest.extents[loop])

    # -- instructions ---------------------------------------------------------------------------

    def emit(self, numbers: Iterable[int], scope: Scope) -> None:
        """Emit instructions (in tape order) into the current block."""
        for number in numbers:
            scope.values[number] = self._emit_one(self.nest.tape[number], number, scope)

    def _emit_one(self, i: Instruction, number: int, scope: Scope) -> Any:
        wide = self.is_vector(number)
        h = self.vector if wide else self.scalar
        if i.kind == "const":
            slot = self.form.literal_slot(number)
            if slot is not None:
                return self._frame_literal(slot, i.dtype)
            return self._baked_literal(i)
        if i.kind == "load":
            return self._load(i, wide, scope)
        if i.kind == "index":
            assert i.index is not None
            value = self.index_value(i.index, scope)
            return self.as_vector(value) if wide else value
        if i.kind == "inside":
            assert i.index is not None
            value = self.index_value(i.index, scope)
            bounds = [Typed(self.integer(n), int64) for n in (i.low, i.high)]
            if wide:
                value, bounds = self.as_vector(value), [self.splat(n) for n in bounds]
            return h.and_(h.ge(value, bounds[0]), h.lt(value, bounds[1]))
        args = [self.operand(a, wide, scope) for a in i.args]

        def report(bad: Typed, value: Typed | None) -> None:
            self._write_error(i.error, bad, value, self._mask(i, wide, scope))

        if i.kind == "bounds":
            return self._position(h, i.high, args[0], report)
        return self._apply(h, i, args, report)

    # -- plain loops ----------------------------------------------------------------------------

    def build(self) -> Any:
        """Emit the function of a nest without reductions."""
        order = list(range(len(self.nest.extents)))
        if self.form.strategy == "strips":
            emit_strips(self, order)
        else:
            self.descend(order, 0, Scope(), frozenset(), self.leaf)
        self.builder.ret_void()
        return self.function

    def descend(
        self,
        order: list[int],
        position: int,
        scope: Scope,
        known: frozenset[int],
        leaf: Callable[[Scope], None],
        skip: frozenset[int] = frozenset(),
    ) -> None:
        """Emit what is known here, then the loops ``order[position:]``, then ``leaf`` inside."""
        todo = [
            n
            for n, loops in enumerate(self.loops_of)
            if n not in scope.values and n not in skip and loops <= known
        ]
        self.emit(todo, scope)
        if position == len(order):
            leaf(scope)
            return
        loop = order[position]
        start, stop = self.bounds(loop)
        vector = loop == self.form.vector_loop

        def body(i: Any, end: Any = None) -> None:
            inner = self.enter(scope, loop, i)
            if end is not None:
                self.masked(inner, i, end)
            self.descend(order, position + 1, inner, known | {loop}, leaf, skip)

        if not vector:
            with self.loop(start, stop) as i:
                body(i)
        elif self.is_light():
            b = self.builder
            whole = b.add(start, b.and_(b.sub(stop, start), I64(-WIDTH)))
            with self.loop(start, whole, WIDTH) as i:
                body(i)
            with b.if_then(b.icmp_signed("<", whole, stop)):
                body(whole, stop)
        else:
            with self.loop(start, stop, WIDTH) as i:
                body(i, stop)

    def leaf(self, scope: Scope) -> None:
        """Carry out the stores, in the innermost body."""
        wide = self.form.vector_loop is not None
        self.store_all(self.nest.stores, scope, wide)
