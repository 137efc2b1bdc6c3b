"""What a reduction carries and how it merges, over any scalar handler.

A state is a tuple of scalar values: one for sums and extrema, two for complex numbers and for
argmax/argmin, which carry the extremum and its position.
"""

from __future__ import annotations

from typing import Any

from ...fusion.loops import Reduction
from ...ir.dtypes import DType, int64
from ...ir.ops import OPS
from ...ir.scalar.formats import format_of

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

    # Running states gather elements in the lanes of a block; where that pays they have parts of
    # their own.

    @property
    def running(self) -> tuple[DType, ...]:
        return self.parts

    def start(self) -> tuple[Any, ...]:
        """The running state of nothing, as Python numbers."""
        return self.identity()

    def add(self, h: Any, running: State, x: Any, position: Any) -> State:
        """The running state with one more element."""
        return self.merge(h, running, self.element(h, x, position))

    def settle(self, h: Any, running: State) -> State:
        """The state that a running state stands for."""
        return running

    def finish(self, h: Any, state: State) -> Any:
        """The result in the dtype it is stored in."""
        if len(self.parts) == 2:
            return tuple(h.convert(s, self.result.real) for s in state)
        return h.convert(state[0], self.result)


class Extremum(Monoid):
    """max and min of floats. As a running state they are three integer extrema of the bits.

    Among positive numbers and +0 the order is that of their bits, among negative ones and -0 it
    is the reverse, and beyond the infinities come the NaN. So with the largest bits ``s`` as
    signed, ``u`` as unsigned and the smallest ``v`` as unsigned numbers ::

        max = NaN if u > bits(-inf) else s if s >= 0 else v      (a NaN s > bits(inf) is positive)
        min = NaN if s > bits(+inf) else u if u < 0 else v       (a NaN u > bits(-inf) is negative)

    Three operations an element, each of one cycle, where comparing numbers takes seven to tell
    zeros by sign and to keep NaN.
    """

    def __init__(self, reduction: Reduction, source: DType) -> None:
        super().__init__(reduction, source)
        self.largest = reduction.monoid == "max"
        self.format = format_of(self.accumulator)

    @property
    def running(self) -> tuple[DType, ...]:
        f = self.format
        return f.integer, f.unsigned, f.unsigned

    def start(self) -> tuple[Any, ...]:
        f = self.format
        infinity = f.infinity_bits
        if not self.largest:
            return infinity, infinity, infinity
        lowest = infinity | 1 << (f.integer.bits - 1)
        return lowest - (1 << f.integer.bits), lowest, lowest

    def add(self, h: Any, running: State, x: Any, position: Any) -> State:
        signed = h.bitcast(x, self.format.integer)
        unsigned = h.convert(signed, self.format.unsigned)
        s, u, v = running
        return (
            h.select(h.gt(signed, s), signed, s),
            h.select(h.gt(unsigned, u), unsigned, u),
            h.select(h.lt(unsigned, v), unsigned, v),
        )

    def settle(self, h: Any, running: State) -> State:
        f = self.format
        s, u, v = running
        zero = h.const(0, f.integer)
        above, below = h.convert(u, f.integer), h.convert(v, f.integer)
        if self.largest:
            lowest = h.const(f.infinity_bits | 1 << (f.integer.bits - 1), f.unsigned)
            bits = h.select(h.ge(s, zero), s, below)
            bits = h.select(h.gt(u, lowest), above, bits)
        else:
            bits = h.select(h.lt(above, zero), above, below)
            bits = h.select(h.gt(s, h.const(f.infinity_bits, f.integer)), s, bits)
        return (h.bitcast(bits, self.accumulator),)


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
    if reduction.monoid in ("argmax", "argmin"):
        return Position(reduction, source)
    if reduction.monoid in ("max", "min") and source.is_floating:
        return Extremum(reduction, source)
    return Monoid(reduction, source)
