"""Reductions over a few elements: all of them in registers, vectors across an outer loop.

A sum over the last axis of an array (n, 3) is a loop over n in vectors of eight rows, in which the
three elements stand one after the other. The order is that of numerics 7 for so few: element ``k``
alone in lane ``k``, added to the state of nothing, then lanes ``l`` with ``l + 8``, 4, 2, 1. Lanes
without an element hold the state of nothing, which changes no other (a sum that began at +0 is
never -0), and are left out.

Where the elements of a row lie side by side, the rows of a vector are read as they lie and turned
by shuffles: eight rows of four are four vectors, and eight shuffles instead of 32 loads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.dtypes import int64
from .addressing import BYTES_AHEAD, Scope
from .form import LANES, WIDTH
from .handler import Typed, llvm_type
from .memory import I64, POINTER, prefetch, shuffle
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

    def descend(
        self,
        order: list[int],
        position: int,
        scope: Scope,
        known: frozenset[int],
        leaf: Callable[[Scope], None],
        skip: frozenset[int] = frozenset(),
    ) -> None:
        if self.form.vector_loop in known and scope.mask is None:
            for n in range(len(self.nest.tape)):
                ready = self.loops_of[n] <= known | {self.reduce_loop}
                if ready and n not in scope.lines and self._is_line(n):
                    scope.lines[n] = self._line(n, self.enter(scope, self.reduce_loop, I64(0)))
        super().descend(order, position, scope, known, leaf, skip)

    def _is_line(self, number: int) -> bool:
        """Whether a load goes along rows whose elements lie side by side."""
        i, count = self.nest.tape[number], self.nest.extents[-1]
        if i.kind != "load" or i.guard >= 0 or i.dtype.is_complex or i.dtype.itemsize < 4:
            return False
        if i.index.coefficient(self.reduce_loop) != 1 or i.index.dynamics():
            return False
        pitch = self.lane_stride(i.index) or 0
        return pitch == count or (pitch > count and count in (2, 4, 8))

    def _line(self, number: int, scope: Scope) -> list[Typed]:
        """All elements of a load along the reduction, for the rows of a whole vector."""
        b, h, i = self.builder, self.vector, self.nest.tape[number]
        size, count = i.dtype.itemsize, self.nest.extents[-1]
        pitch = self.lane_stride(i.index)
        start = self.first_place(i.index, self.base_of(i), size, scope)

        def piece(elements: int, at: Any) -> Any:
            prefetch(h, b.add(b.add(start, at), I64(BYTES_AHEAD)))
            place = b.inttoptr(b.add(start, at), POINTER)
            return b.load(place, typ=llvm_type(i.dtype, elements), align=size)

        if pitch == count:
            flat = [piece(WIDTH, I64(k * WIDTH * size)) for k in range(count)]
        else:
            step = b.mul(self.integer(pitch), I64(size))
            flat = [piece(count, b.mul(step, I64(row))) for row in range(WIDTH)]
            while len(flat) > count:
                n = flat[0].type.count
                pairs = zip(flat[::2], flat[1::2], strict=True)
                flat = [shuffle(h, x, y, list(range(2 * n))) for x, y in pairs]
        return [Typed(x, i.dtype) for x in self._every(flat, count)]

    def _every(self, flat: list[Any], count: int) -> list[Any]:
        """Elements 0, ``count``, 2 ``count`` ... of a row of vectors, then 1, 1 + ``count`` ..."""
        h = self.vector
        if count == 1:
            return flat
        if count % 2:
            found = []
            for first in range(count):
                places = [first + lane * count for lane in range(WIDTH)]
                total = flat[0]
                for k, x in enumerate(flat[1:], 1):
                    inside = [p - k * WIDTH for p in places]
                    lanes = [
                        WIDTH + q if 0 <= q < WIDTH else (places[lane] if k == 1 else lane) % WIDTH
                        for lane, q in enumerate(inside)
                    ]
                    total = shuffle(h, total, x, lanes)
                found.append(total)
            return found
        halves = []
        for odd in (0, 1):
            pairs = zip(flat[::2], flat[1::2], strict=True)
            places = list(range(odd, 2 * WIDTH, 2))
            halves.append(self._every([shuffle(h, x, y, places) for x, y in pairs], count // 2))
        return [x for pair in zip(*halves, strict=True) for x in pair]

    def _point(self, scope: Scope) -> None:
        """One vector of results."""
        h = self.vector
        lanes: list[list[State]] = [[] for _ in self.monoids]
        tape = range(len(self.nest.tape))
        for k in range(self.nest.extents[-1]):
            inner = self.enter(scope, self.reduce_loop, I64(k))
            inner.values.update((n, line[k]) for n, line in scope.lines.items())
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
