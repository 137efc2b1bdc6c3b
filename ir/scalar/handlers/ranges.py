"""Bounds of the values of a scalar program: interval arithmetic over all its methods.

Every method is correctly rounded, and rounding is monotone, so bounds of a result are the method's
own results at bounds of its operands, evaluated by NumPy. Bounds are sound, not always tight:
operands count as independent. The sign of zero is not told apart.

>>> from tilegrad.ir.dtypes import float64
>>> square = bounds(lambda h, x: h.mul(x, x), Range(float64, -2.0, 3.0))
>>> square.low, square.high, square.nan
(-6.0, 9.0, False)
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ...dtypes import DType, bool_
from .numpy import NumpyHandler

__all__ = ["Range", "RangeHandler", "bounds", "everything"]

_numpy = NumpyHandler()


@dataclass(frozen=True, slots=True)
class Range:
    """All values from ``low`` to ``high``, and NaN if ``nan``.

    Integers and bool (0 and 1) have Python integers as bounds. A value that can only be NaN has
    ``low = inf`` and ``high = -inf``.
    """

    dtype: DType
    low: int | float
    high: int | float
    nan: bool = False

    def __contains__(self, value: Any) -> bool:
        if value != value:
            return self.nan
        return bool(self.low <= value <= self.high)

    @property
    def empty(self) -> bool:
        """Whether there is no number in it (only NaN)."""
        return self.low > self.high


def everything(dtype: DType) -> Range:
    """The range of all values of a type, NaN included."""
    if dtype.is_floating:
        return Range(dtype, -math.inf, math.inf, True)
    if dtype.is_bool:
        return Range(dtype, 0, 1)
    info = np.iinfo(dtype.numpy)
    return Range(dtype, int(info.min), int(info.max))


def _within(dtype: DType, low: int, high: int) -> Range:
    """An integer range, or everything where it might wrap around."""
    full = everything(dtype)
    return Range(dtype, low, high) if full.low <= low and high <= full.high else full


def _floats(dtype: DType, values: Iterable[Any], nan: bool) -> Range:
    """Hull of results at corners; a NaN there is ``0 * inf`` and the like, next to zero."""
    numbers = [float(v) for v in values]
    if any(v != v for v in numbers):
        nan, numbers = True, [0.0 if v != v else v for v in numbers]
    if not numbers:
        return Range(dtype, math.inf, -math.inf, True)
    return Range(dtype, min(numbers), max(numbers), nan)


def _union(x: Range, y: Range) -> Range:
    return Range(x.dtype, min(x.low, y.low), max(x.high, y.high), x.nan or y.nan)


def _truth(true: bool, false: bool) -> Range:
    """A bool known to be true, known to be false, or unknown."""
    return Range(bool_, 1 if true else 0, 0 if false else 1)


def _corner(op: Callable[..., Any], dtype: DType, *values: int | float) -> Any:
    return op(*[dtype.numpy.type(v) for v in values])


def _ends(x: Range) -> tuple[int | float, ...]:
    return () if x.empty else (x.low, x.high)


class RangeHandler:
    """The vocabulary over :class:`Range`."""

    __slots__ = ()

    def dtype(self, x: Range) -> DType:
        return x.dtype

    def const(self, value: bool | int | float, dtype: DType) -> Range:
        if not dtype.is_floating:
            return Range(dtype, int(value), int(value))
        number = float(dtype.numpy.type(value))
        return _floats(dtype, [] if number != number else [number], number != number)

    def _corners(self, op: Callable[..., Any], *operands: Range) -> Range:
        """A floating operation that is monotone in each operand."""
        dtype = operands[0].dtype
        corners = product(*[_ends(x) for x in operands])
        nan = any(x.nan for x in operands)
        return _floats(dtype, [_corner(op, dtype, *c) for c in corners], nan)

    def _integers(self, op: Callable[[int, int], int], x: Range, y: Range) -> Range:
        values = [op(int(a), int(b)) for a, b in product(_ends(x), _ends(y))]
        return _within(x.dtype, min(values), max(values))

    def add(self, x: Range, y: Range) -> Range:
        if not x.dtype.is_floating:
            return self._integers(operator.add, x, y)
        return self._sum(self._corners(_numpy.add, x, y), (x, y))

    def sub(self, x: Range, y: Range) -> Range:
        if not x.dtype.is_floating:
            return self._integers(operator.sub, x, y)
        return self._sum(self._corners(_numpy.sub, x, y), (x, y))

    def _sum(self, result: Range, operands: tuple[Range, ...]) -> Range:
        """Where ``inf - inf`` is possible at a corner, what lies next to it may be anything."""
        if result.nan and not any(x.nan for x in operands):
            return everything(result.dtype)
        infinite = sum(math.isinf(x.low) or math.isinf(x.high) for x in operands)
        return everything(result.dtype) if infinite > 1 else result

    def mul(self, x: Range, y: Range) -> Range:
        if not x.dtype.is_floating:
            return self._integers(operator.mul, x, y)
        result = self._corners(_numpy.mul, x, y)
        return Range(x.dtype, result.low, result.high, result.nan or self._zero_times(x, y))

    def _zero_times(self, x: Range, y: Range) -> bool:
        """Whether zero may meet infinity."""

        def endless(r: Range) -> bool:
            return math.isinf(r.low) or math.isinf(r.high)

        return (0.0 in x and endless(y)) or (0.0 in y and endless(x))

    def div(self, x: Range, y: Range) -> Range:
        if not x.dtype.is_floating:
            return self.idiv(x, y)
        if 0.0 in y:
            return everything(x.dtype)
        return self._corners(_numpy.div, x, y)

    def neg(self, x: Range) -> Range:
        if x.dtype.is_floating:
            return self._corners(_numpy.neg, x)
        return _within(x.dtype, -int(x.high), -int(x.low))

    def fma(self, x: Range, y: Range, z: Range) -> Range:
        result = self._corners(_numpy.fma, x, y, z)
        if self._zero_times(x, y):
            return everything(x.dtype)
        product_range = self._corners(_numpy.mul, x, y)
        return self._sum(result, (product_range, z))

    def sqrt(self, x: Range) -> Range:
        inside = Range(x.dtype, max(x.low, 0.0), x.high, x.nan or x.low < 0)
        return self._corners(_numpy.sqrt, inside)

    def abs(self, x: Range) -> Range:
        low = 0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))
        if x.dtype.is_floating:
            return (
                self._corners(_numpy.abs, x)
                if x.empty
                else Range(x.dtype, float(low), max(abs(x.low), abs(x.high)), x.nan)
            )
        return _within(x.dtype, int(low), int(max(abs(x.low), abs(x.high))))

    def copysign(self, x: Range, y: Range) -> Range:
        size = self.abs(x)
        if y.low > 0 and not y.nan:
            return size
        negative = self.neg(size)
        return negative if y.high < 0 and not y.nan else _union(negative, size)

    def floor(self, x: Range) -> Range:
        return self._corners(_numpy.floor, x)

    def ceil(self, x: Range) -> Range:
        return self._corners(_numpy.ceil, x)

    def trunc(self, x: Range) -> Range:
        return self._corners(_numpy.trunc, x)

    def rint(self, x: Range) -> Range:
        return self._corners(_numpy.rint, x)

    def idiv(self, x: Range, y: Range) -> Range:
        if x.low >= 0 and y.low > 0:
            return Range(x.dtype, int(x.low) // int(y.high), int(x.high) // int(y.low))
        full, most = everything(x.dtype), max(abs(int(x.low)), abs(int(x.high)))
        return Range(x.dtype, max(full.low, -most), min(full.high, most))

    def irem(self, x: Range, y: Range) -> Range:
        most = max(abs(int(y.low)), abs(int(y.high)), 1) - 1
        low = -min(most, -int(x.low)) if x.low < 0 else 0
        return Range(x.dtype, low, min(most, int(x.high)) if x.high > 0 else 0)

    def lt(self, x: Range, y: Range) -> Range:
        return _truth(x.high < y.low and not (x.nan or y.nan), x.low >= y.high)

    def le(self, x: Range, y: Range) -> Range:
        return _truth(x.high <= y.low and not (x.nan or y.nan), x.low > y.high)

    def gt(self, x: Range, y: Range) -> Range:
        return self.lt(y, x)

    def ge(self, x: Range, y: Range) -> Range:
        return self.le(y, x)

    def eq(self, x: Range, y: Range) -> Range:
        apart = x.high < y.low or y.high < x.low
        same = x.low == x.high == y.low == y.high
        return _truth(same and not (x.nan or y.nan), apart)

    def ne(self, x: Range, y: Range) -> Range:
        return self.not_(self.eq(x, y))

    def and_(self, x: Range, y: Range) -> Range:
        if x.dtype.is_bool:
            return Range(bool_, min(x.low, y.low), min(x.high, y.high))
        bounded = [int(r.high) for r in (x, y) if r.low >= 0]
        return Range(x.dtype, 0, min(bounded)) if bounded else everything(x.dtype)

    def or_(self, x: Range, y: Range) -> Range:
        if x.dtype.is_bool:
            return Range(bool_, max(x.low, y.low), max(x.high, y.high))
        if x.low < 0 or y.low < 0:
            return everything(x.dtype)
        digits = max(int(x.high), int(y.high)).bit_length()
        return Range(x.dtype, max(x.low, y.low), (1 << digits) - 1)

    def xor(self, x: Range, y: Range) -> Range:
        if x.dtype.is_bool:
            if x.low != x.high or y.low != y.high:
                return everything(bool_)
            value = int(x.low) ^ int(y.low)
            return Range(bool_, value, value)
        if x.low < 0 or y.low < 0:
            return everything(x.dtype)
        digits = max(int(x.high), int(y.high)).bit_length()
        return Range(x.dtype, 0, (1 << digits) - 1)

    def not_(self, x: Range) -> Range:
        mirror = everything(x.dtype)
        total = int(mirror.low) + int(mirror.high)
        return Range(x.dtype, total - int(x.high), total - int(x.low))

    def shl(self, x: Range, y: Range) -> Range:
        if not 0 <= y.low <= y.high < x.dtype.bits:
            return everything(x.dtype)
        return self._integers(operator.lshift, x, y)

    def shr(self, x: Range, y: Range) -> Range:
        if not 0 <= y.low <= y.high < x.dtype.bits:
            return everything(x.dtype)
        return self._integers(operator.rshift, x, y)

    def select(self, condition: Range, x: Range, y: Range) -> Range:
        if condition.low == condition.high:
            return x if condition.low else y
        return _union(x, y)

    def bitcast(self, x: Range, dtype: DType) -> Range:
        source = x.dtype
        if source.is_floating == dtype.is_floating:
            full = everything(dtype)
            if dtype.is_floating or (full.low <= x.low and x.high <= full.high):
                return Range(dtype, x.low, x.high, x.nan)
            return full
        # positive floats and their bits grow together; a zero might be negative
        if source.is_floating:
            if x.nan or x.low <= 0:
                return everything(dtype)
        elif x.low < 0 or x.high > int(_numpy.bitcast(dtype.numpy.type(np.inf), source)):
            return everything(dtype)
        ends = [_numpy.bitcast(source.numpy.type(v), dtype).item() for v in _ends(x)]
        return Range(dtype, ends[0], ends[1])

    def convert(self, x: Range, dtype: DType) -> Range:
        source = x.dtype
        if dtype.is_bool:
            return self.ne(x, self.const(0, source))
        if dtype.is_floating:
            ends = [_numpy.convert(source.numpy.type(v), dtype) for v in _ends(x)]
            return _floats(dtype, ends, x.nan)
        if source.is_floating:
            whole = [int(_numpy.convert(source.numpy.type(v), dtype)) for v in _ends(x)]
            whole += [0] if x.nan else []
            return Range(dtype, min(whole), max(whole))
        return _within(dtype, int(x.low), int(x.high))

    def table(self, entries: Sequence[float], index: Range, dtype: DType) -> Range:
        chosen = entries[max(0, int(index.low)) : int(index.high) + 1] or entries
        values = [float(dtype.numpy.type(e)) for e in chosen]
        return _floats(dtype, [v for v in values if v == v], any(v != v for v in values))

    def rarely(self, condition: Range, usual: Range, rare: Callable[[], Range]) -> Range:
        if condition.low == condition.high:
            return rare() if condition.low else usual
        return _union(rare(), usual)


def bounds(program: Callable[..., Any], *operands: Range) -> Range:
    """Range of a program's result for operands within the given ranges."""
    result: Range = program(RangeHandler(), *operands)
    return result
