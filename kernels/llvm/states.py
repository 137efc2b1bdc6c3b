"""States of reductions in registers and memory, and the stack of blocks.

Block results go on a stack of powers of two: block ``n`` merges with as many levels as ``n`` has
trailing one bits, so ``p`` blocks, the largest power of two below their number, merge before the
rest does (numerics 7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...ir.dtypes import DType, bool_
from .addressing import Scope
from .form import Form
from .handler import LLVMHandler, Typed, llvm_type
from .memory import I64
from .monoids import Monoid, monoid_of
from .nest import NestEmitter

__all__ = ["LEVELS", "State", "StateEmitter"]

LEVELS = 40  # of the block stack: 2**40 blocks
_ZERO, _ONE = I64(0), I64(1)

State = tuple[Typed, ...]


class StateEmitter(NestEmitter):
    """What all emitters of reductions need."""

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

    # -- running states in a loop ------------------------------------------------------------------

    def carry(
        self,
        start: Any,
        stop: Any,
        step: int,
        values: list[Any],
        body: Callable[[Any, list[Any]], list[Any]],
    ) -> list[Any]:
        """``for (k = start; k < stop; k += step) values = body(k, values)``."""
        b = self.builder
        before = b.block
        head, inside = b.append_basic_block("lanes"), b.append_basic_block("body")
        done = b.append_basic_block("done")
        b.branch(head)
        b.position_at_end(head)
        k = b.phi(I64)
        k.add_incoming(start, before)
        phis = [b.phi(value.type) for value in values]
        for phi, value in zip(phis, values, strict=True):
            phi.add_incoming(value, before)
        b.cbranch(b.icmp_signed("<", k, stop), inside, done)
        b.position_at_end(inside)
        for phi, value in zip(phis, body(k, phis), strict=True):
            phi.add_incoming(value, b.block)
        k.add_incoming(b.add(k, I64(step)), b.block)
        b.branch(head)
        b.position_at_end(done)
        return phis

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

    # -- the stack of blocks --------------------------------------------------------------------

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
        self.store_all(self.outer_stores, scope, wide)


def _stored(part: DType, width: int) -> Any:
    if not part.is_bool:
        return llvm_type(part, width)
    return ir.IntType(8) if width == 1 else ir.VectorType(ir.IntType(8), width)
