"""Machine code of recurrences along an axis: cumulative sums, products, extrema, linear recurrences.

The order is the one the op defines, element after element, so there is one result whatever the
strategy. ``scan rows`` carries the running result in registers along a row; ``scan columns`` runs
vectors of recurrences side by side and finds the previous results where it has just stored them.
"""

from __future__ import annotations

from typing import Any

from ...ir.dtypes import int64
from .handler import Typed, llvm_type
from .memory import I64, address, load_row
from .nest import NestEmitter, Scope

__all__ = ["ScanEmitter"]


class ScanEmitter(NestEmitter):
    """Emits the function of a nest with a scan."""

    def build(self) -> Any:
        count = len(self.nest.extents)
        self.scan_loop = count - 1
        assert self.nest.scan is not None
        self.scan = self.nest.scan
        self.after = frozenset(n for n, loops in enumerate(self.loops_of) if -1 in loops)
        if self.form.strategy == "scan rows":
            outer = list(range(count - 1))
            self.descend(outer, 0, Scope(), frozenset(), self._row, self.after)
        else:
            order = [*range(count - 2), self.scan_loop, count - 2]
            self.descend(order, 0, Scope(), frozenset(), self._column, self.after)
        self.builder.ret_void()
        return self.function

    def bounds(self, loop: int) -> tuple[Any, Any]:
        if loop == self.scan_loop:  # never shared, even when it is the only loop
            return I64(0), self.integer(self.nest.extents[loop])
        return super().bounds(loop)

    def _step(self, h: Any, carry: Any, elements: list[Any], first: Any) -> Any:
        """The next running result; the first one is the last element itself."""
        op = self.scan.op
        pair = not isinstance(carry, Typed)
        program = op.complex_scalar if pair else op.scalar
        new, start = program(h, carry, *elements), elements[-1]  # type: ignore[misc]
        if pair:
            return tuple(h.select(first, s, n) for s, n in zip(start, new, strict=True))
        return h.select(first, start, new)

    def _row(self, scope: Scope) -> None:
        b, h = self.builder, self.scalar
        dtype = self.nest.tape[self.scan.elements[-1]].dtype
        parts = (dtype.real, dtype.real) if dtype.is_complex else (dtype,)
        with b.goto_entry_block():
            slots = [b.alloca(llvm_type(part, 1)) for part in parts]
        for slot, part in zip(slots, parts, strict=True):
            b.store(h.const(0, part).value, slot)
        with self.loop(*self.bounds(self.scan_loop)) as k:
            inner = self.enter(scope, self.scan_loop, k)
            tape = range(len(self.nest.tape))
            self.emit([n for n in tape if n not in inner.values and n not in self.after], inner)
            old = [
                Typed(b.load(slot, typ=llvm_type(part, 1)), part)
                for slot, part in zip(slots, parts, strict=True)
            ]
            carry = tuple(old) if dtype.is_complex else old[0]
            first = h.eq(Typed(k, int64), h.const(0, int64))
            elements = [inner.values[n] for n in self.scan.elements]
            result = self._step(h, carry, elements, first)
            for slot, x in zip(slots, result if dtype.is_complex else [result], strict=True):
                b.store(x.value, slot)
            self._finish(inner, result, False)

    def _column(self, scope: Scope) -> None:
        """One vector of recurrences at one place of the scan loop."""
        b, h = self.builder, self.vector
        store = self.nest.stores[0]
        dtype = self.nest.tape[store.value].dtype
        stride = store.index.coefficient(self.scan_loop)
        assert stride is not None
        here = self._add_atoms(store.index, scope.sums.get(store.index), scope)
        before = b.sub(here, self.integer(stride)) if stride else here
        first = h.eq(self.splat(Typed(self._position, int64)), h.const(0, int64))
        known = b.and_(scope.mask, h.not_(first).value)
        place = address(b, self._bases[store.buffer], before, dtype.itemsize)
        carry = load_row(h, place, dtype, known)
        elements = [self.operand(n, True, scope) for n in self.scan.elements]
        self._finish(scope, self._step(h, carry, elements, first), True)

    def enter(self, scope: Scope, loop: int, i: Any) -> Scope:
        if loop == self.scan_loop:
            self._position = i
        return super().enter(scope, loop, i)

    def _finish(self, scope: Scope, result: Any, wide: bool) -> None:
        for n, i in enumerate(self.nest.tape):
            if i.kind == "scanned":
                scope.values[n] = result
        self.emit([n for n in sorted(self.after) if n not in scope.values], scope)
        for s in self.nest.stores:
            self.store(s, scope, wide)
