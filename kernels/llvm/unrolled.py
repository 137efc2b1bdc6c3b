"""Reductions over a few elements: all of them in registers, vectors across an outer loop.

A sum over the last axis of an array (n, 3) is a loop over n in vectors of eight rows, in which the
three elements stand one after the other. The order is that of numerics 7 for so few: element ``k``
alone in lane ``k``, added to the state of nothing, then lanes ``l`` with ``l + 8``, 4, 2, 1. Lanes
without an element hold the state of nothing, which changes no other (a sum that began at +0 is
never -0), and are left out.
"""

from __future__ import annotations

from typing import Any

from ...ir.dtypes import int64
from .addressing import Scope
from .form import LANES
from .handler import Typed
from .memory import I64
from .states import State, StateEmitter

__all__ = ["UnrolledEmitter"]

LIGHT = 120  # operations of an unrolled body that may stand twice


class UnrolledEmitter(StateEmitter):
    """Emits the function of a nest whose last loop reduces a few elements."""

    def build(self) -> Any:
        order = list(range(self.reduce_loop))
        self.descend(order, 0, Scope(), frozenset(), self._point, self.after)
        self.builder.ret_void()
        return self.function

    def is_light(self) -> bool:
        return len(self.nest.tape) * self.nest.extents[-1] <= LIGHT and super().is_light()

    def _point(self, scope: Scope) -> None:
        """One vector of results."""
        h = self.vector
        lanes: list[list[State]] = [[] for _ in self.monoids]
        tape = range(len(self.nest.tape))
        for k in range(self.nest.extents[-1]):
            inner = self.enter(scope, self.reduce_loop, I64(k))
            self.emit([n for n in tape if n not in inner.values and n not in self.after], inner)
            self.store_all(self.inner_stores, inner, True)
            position = self.splat(Typed(I64(k), int64))
            reductions = zip(self.monoids, self.nest.reductions, lanes, strict=True)
            for monoid, reduction, found in reductions:
                x = self.operand(reduction.value, True, inner)
                element = monoid.element(h, x, position)
                found.append(monoid.merge(h, self._identity(h, monoid), element))
        states = []
        for monoid, found in zip(self.monoids, lanes, strict=True):
            half = LANES // 2
            while half:
                for k in range(half, len(found)):
                    found[k - half] = monoid.merge(h, found[k - half], found[k])
                del found[half:]
                half //= 2
            states.append(found[0])
        self._finish(scope, states, h)
