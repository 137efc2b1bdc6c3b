"""What a reduction carries and how it merges, over any scalar handler.

A state is a tuple of scalar values: one for sums and extrema, two for complex numbers and for
argmax/argmin, which carry the extremum and its position.
"""

from __future__ import annotations

from typing import Any

from ...fusion.loops import Reduction
from ...ir.dtypes import DType, int64
from ...ir.ops import OPS

__all__ = ["Monoid", "monoid_of"]

State = tuple[Any, ...]
_FAR = 2**63 - 1  # position of "no element yet": every real one is smaller


class Monoid:
    """A reduction of ordinary ops: the record's identity and merge program."""

    def __init__(self, reduction: Reduction, source: DType) -> None:
        self.op = OPS[reduction.monoid]
        self.source = source
        self.accumulator = reduction.accumulator
        self.result = reduction.dtype
        real = self.accumulator.real
        self.parts = (real, real) if self.accumulator.is_complex else (self.accumulator,)

    def identity(self) -> tuple[Any, ...]:
        """The state of nothing, as Python numbers."""
        value = self.op.identity(self.accumulator)
        if len(self.parts) == 2:
            return complex(value).real, complex(value).imag
        return (value,)

    def element(self, h: Any, x: Any, position: Any) -> State:
        """The state of one element."""
        if len(self.parts) == 2:
            return tuple(h.convert(part, p) for part, p in zip(x, self.parts, strict=True))
        return (h.convert(x, self.accumulator),)

    def merge(self, h: Any, a: State, b: State) -> State:
        if len(self.parts) == 2:
            return tuple(self.op.complex_scalar(h, a, b))
        return (self.op.scalar(h, a[0], b[0]),)

    def finish(self, h: Any, state: State) -> Any:
        """The result in the dtype it is stored in."""
        if len(self.parts) == 2:
            return tuple(h.convert(s, self.result.real) for s in state)
        return h.convert(state[0], self.result)


class Position(Monoid):
    """argmax and argmin: NaN before everything, then the extremum, ties to the first."""

    def __init__(self, reduction: Reduction, source: DType) -> None:
        super().__init__(reduction, source)
        self.largest = reduction.monoid == "argmax"
        self.parts = (source, int64)

    def identity(self) -> tuple[Any, ...]:
        op = OPS["max" if self.largest else "min"]
        return op.identity(self.source), _FAR  # type: ignore[misc]

    def element(self, h: Any, x: Any, position: Any) -> State:
        return x, position

    def merge(self, h: Any, a: State, b: State) -> State:
        (x, i), (y, j) = a, b
        first = h.lt(j, i)
        if self.source.is_bool:
            better = h.and_(y, h.not_(x)) if self.largest else h.and_(x, h.not_(y))
            take = h.or_(better, h.and_(h.not_(h.xor(x, y)), first))
        else:
            better = h.gt(y, x) if self.largest else h.lt(y, x)
            take = h.or_(better, h.and_(h.eq(x, y), first))
        if self.source.is_floating:
            x_nan, y_nan = h.ne(x, x), h.ne(y, y)
            both = h.and_(h.and_(x_nan, y_nan), first)
            take = h.or_(take, h.or_(both, h.and_(y_nan, h.not_(x_nan))))
        return h.select(take, y, x), h.select(take, j, i)

    def finish(self, h: Any, state: State) -> Any:
        return state[1]


def monoid_of(reduction: Reduction, source: DType) -> Monoid:
    """The monoid of a reduction whose elements have dtype ``source``."""
    kind = Position if reduction.monoid in ("argmax", "argmin") else Monoid
    return kind(reduction, source)
