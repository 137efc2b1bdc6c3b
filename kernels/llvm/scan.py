"""Machine code of recurrences along an axis: running sums, products, extrema, linear ones.

The order is the one the op defines, element after element, so there is one result whatever the
strategy. ``scan rows`` carries the running result in registers along a row; ``scan columns`` runs
vectors of recurrences side by side and finds the previous results where it has just stored them.
"""

from __future__ import annotations

from typing import Any

from ...ir.dtypes import int64
from .addressing import Scope
from .handler import Typed, llvm_type
from .memory import I64, address, load_row
from .nest import NestEmitter

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

    def _step(self, h: Any, carry: Any, elements: list[Any]) -> Any:
        op = self.scan.op
        program = op.complex_scalar if type(carry) is tuple else op.scalar
        return program(h, carry, *elements)  # type: ignore[misc]

    def _row(self, scope: Scope) -> None:
        """One recurrence: its first place apart, so that the loop carries nothing but the step."""
        b, h = self.builder, self.scalar
        stop = self.integer(self.nest.extents[self.scan_loop])
        first = self._place(scope, I64(0))
        carry = first.values[self.scan.elements[-1]]
        self._finish(first, carry, False)
        parts = list(carry) if type(carry) is tuple else [carry]
        before = b.block
        head, body = b.append_basic_block("scan"), b.append_basic_block("body")
        done = b.append_basic_block("done")
        b.branch(head)
        b.position_at_end(head)
        k = b.phi(I64)
        k.add_incoming(I64(1), before)
        phis = []
        for x in parts:
            phi = b.phi(llvm_type(x.dtype, 1))
            phi.add_incoming(x.value, before)
            phis.append(phi)
        b.cbranch(b.icmp_signed("<", k, stop), body, done)
        b.position_at_end(body)
        inner = self._place(scope, k)
        old = [Typed(phi, x.dtype) for phi, x in zip(phis, parts, strict=True)]
        elements = [inner.values[n] for n in self.scan.elements]
        result = self._step(h, tuple(old) if type(carry) is tuple else old[0], elements)
        self._finish(inner, result, False)
        for phi, x in zip(phis, result if type(carry) is tuple else [result], strict=True):
            phi.add_incoming(x.value, b.block)
        k.add_incoming(b.add(k, I64(1)), b.block)
        b.branch(head)
        b.position_at_end(done)

    def _place(self, scope: Scope, k: Any) -> Scope:
        """The elements at place ``k`` of a row."""
        inner = self.enter(scope, self.scan_loop, k)
        tape = range(len(self.nest.tape))
        self.emit([n for n in tape if n not in inner.values and n not in self.after], inner)
        return inner

    def _column(self, scope: Scope) -> None:
        """One vector of recurrences at one place of the scan loop."""
        b, h = self.builder, self.vector
        store = self.nest.stores[0]
        dtype = self.nest.tape[store.value].dtype
        stride = store.index.coefficient(self.scan_loop)
        assert stride is not None
        here = self._add_atoms(store.index, scope.sums.get(store.index), scope)
        before = b.sub(here, self.integer(stride)) if stride else here
        first = h.eq(self.splat(Typed(self._step_number, int64)), h.const(0, int64))
        known = h.not_(first).value
        if scope.mask is not None:
            known = b.and_(scope.mask, known)
        place = address(b, self._bases[store.buffer], before, dtype.itemsize)
        carry = load_row(h, place, dtype, known)
        elements = [self.operand(n, True, scope) for n in self.scan.elements]
        new, start = self._step(h, carry, elements), elements[-1]
        if type(carry) is tuple:
            result: Any = tuple(h.select(first, s, n) for s, n in zip(start, new, strict=True))
        else:
            result = h.select(first, start, new)
        self._finish(scope, result, True)

    def enter(self, scope: Scope, loop: int, i: Any) -> Scope:
        if loop == self.scan_loop:
            self._step_number = i
        return super().enter(scope, loop, i)

    def _finish(self, scope: Scope, result: Any, wide: bool) -> None:
        for n, i in enumerate(self.nest.tape):
            if i.kind == "scanned":
                scope.values[n] = result
        self.emit([n for n in sorted(self.after) if n not in scope.values], scope)
        self.store_all(self.nest.stores, scope, wide)
