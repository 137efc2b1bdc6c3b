"""What a scalar program costs: how often it uses each method.

Values are nothing but their dtype. Work inside ``rarely`` is kept apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ...dtypes import DType, bool_

__all__ = ["COST", "FLOPS", "CountHandler", "cost", "count", "flops"]

# Floating-point operations in the usual way of counting.
FLOPS = {"add": 1, "sub": 1, "mul": 1, "div": 1, "sqrt": 1, "fma": 2}

# Reciprocal throughput of vector code, in additions (AMD Zen 4 and 5, 512-bit registers:
# A. Fog, "Instruction tables"). Comparisons, selects and bit operations share ports with
# arithmetic, so they count as well.
COST = {
    **dict.fromkeys(("add", "sub", "mul", "fma", "floor", "ceil", "trunc", "rint"), 1.0),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne", "select", "convert"), 1.0),
    **dict.fromkeys(("and", "or", "xor", "not", "shl", "shr", "neg", "abs", "copysign"), 0.5),
    "div": 8.0,
    "sqrt": 12.0,
    "idiv": 40.0,
    "irem": 40.0,
    "table": 6.0,
    "bitcast": 0.0,
    "rarely": 1.5,
}


class CountHandler:
    """The vocabulary as tallies.

    Attributes
    ----------
    usual : collections.Counter
        Uses of each method (by its name without a trailing underscore), for integers and
        floats alike.
    rare : collections.Counter
        The same for what stands inside ``rarely``.
    """

    __slots__ = ("usual", "rare", "_tally")

    def __init__(self) -> None:
        self.usual: Counter[str] = Counter()
        self.rare: Counter[str] = Counter()
        self._tally = self.usual

    def _use(self, op: str, dtype: DType) -> DType:
        self._tally[op] += 1
        return dtype

    def dtype(self, x: DType) -> DType:
        return x

    def const(self, value: bool | int | float, dtype: DType) -> DType:
        return dtype

    def add(self, x: DType, y: DType) -> DType:
        return self._use("add", x)

    def sub(self, x: DType, y: DType) -> DType:
        return self._use("sub", x)

    def mul(self, x: DType, y: DType) -> DType:
        return self._use("mul", x)

    def div(self, x: DType, y: DType) -> DType:
        return self._use("div" if x.is_floating else "idiv", x)

    def neg(self, x: DType) -> DType:
        return self._use("neg", x)

    def fma(self, x: DType, y: DType, z: DType) -> DType:
        return self._use("fma", x)

    def sqrt(self, x: DType) -> DType:
        return self._use("sqrt", x)

    def abs(self, x: DType) -> DType:
        return self._use("abs", x)

    def copysign(self, x: DType, y: DType) -> DType:
        return self._use("copysign", x)

    def floor(self, x: DType) -> DType:
        return self._use("floor", x)

    def ceil(self, x: DType) -> DType:
        return self._use("ceil", x)

    def trunc(self, x: DType) -> DType:
        return self._use("trunc", x)

    def rint(self, x: DType) -> DType:
        return self._use("rint", x)

    def idiv(self, x: DType, y: DType) -> DType:
        return self._use("idiv", x)

    def irem(self, x: DType, y: DType) -> DType:
        return self._use("irem", x)

    def lt(self, x: DType, y: DType) -> DType:
        return self._use("lt", bool_)

    def le(self, x: DType, y: DType) -> DType:
        return self._use("le", bool_)

    def gt(self, x: DType, y: DType) -> DType:
        return self._use("gt", bool_)

    def ge(self, x: DType, y: DType) -> DType:
        return self._use("ge", bool_)

    def eq(self, x: DType, y: DType) -> DType:
        return self._use("eq", bool_)

    def ne(self, x: DType, y: DType) -> DType:
        return self._use("ne", bool_)

    def and_(self, x: DType, y: DType) -> DType:
        return self._use("and", x)

    def or_(self, x: DType, y: DType) -> DType:
        return self._use("or", x)

    def xor(self, x: DType, y: DType) -> DType:
        return self._use("xor", x)

    def not_(self, x: DType) -> DType:
        return self._use("not", x)

    def shl(self, x: DType, y: DType) -> DType:
        return self._use("shl", x)

    def shr(self, x: DType, y: DType) -> DType:
        return self._use("shr", x)

    def select(self, condition: DType, x: DType, y: DType) -> DType:
        return self._use("select", x)

    def bitcast(self, x: DType, dtype: DType) -> DType:
        return self._use("bitcast", dtype)

    def convert(self, x: DType, dtype: DType) -> DType:
        return self._use("convert", dtype)

    def table(self, entries: Sequence[float], index: DType, dtype: DType) -> DType:
        return self._use("table", dtype)

    def rarely(self, condition: DType, usual: DType, rare: Callable[[], DType]) -> DType:
        self._use("rarely", usual)
        outer, self._tally = self._tally, self.rare
        rare()
        self._tally = outer
        return usual


def count(program: Callable[..., Any], *dtypes: DType) -> CountHandler:
    """Tally a program for operands of the given types."""
    handler = CountHandler()
    program(handler, *dtypes)
    return handler


def flops(program: Callable[..., Any], *dtypes: DType) -> int:
    """Floating-point operations per element on the usual path; an fma counts two."""
    return sum(FLOPS.get(op, 0) * n for op, n in count(program, *dtypes).usual.items())


def cost(program: Callable[..., Any], *dtypes: DType) -> float:
    """Time per element on the usual path, in additions (see :data:`COST`)."""
    return sum(COST[op] * n for op, n in count(program, *dtypes).usual.items())
