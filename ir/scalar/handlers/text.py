"""Scalar programs as text: one numbered value a line.

>>> from tilegrad.ir.dtypes import float64
>>> print(listing(lambda h, x: h.fma(x, x, h.const(0.5, h.dtype(x))), float64))
program(%0: f64):
  %1 = fma %0, %0, 0.5 : f64
  return %1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...dtypes import DType, bool_

__all__ = ["Name", "TextHandler", "listing"]


@dataclass(frozen=True, slots=True)
class Name:
    """A printed value: ``%7``, or the text of a constant."""

    text: str
    dtype: DType


class TextHandler:
    """The vocabulary as lines of text.

    Attributes
    ----------
    lines : list of str
        What was printed so far, without indentation of the whole.
    """

    __slots__ = ("lines", "_count", "_indent")

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0
        self._indent = "  "

    def fresh(self, dtype: DType) -> Name:
        """A new value name."""
        self._count += 1
        return Name(f"%{self._count - 1}", dtype)

    def _print(self, op: str, dtype: DType, *operands: str) -> Name:
        name = self.fresh(dtype)
        self.lines.append(f"{self._indent}{name.text} = {op} {', '.join(operands)} : {dtype.short}")
        return name

    def dtype(self, x: Name) -> DType:
        return x.dtype

    def const(self, value: bool | int | float, dtype: DType) -> Name:
        if dtype.is_bool:
            return Name("true" if value else "false", dtype)
        return Name(repr(float(value)) if dtype.is_floating else str(int(value)), dtype)

    def add(self, x: Name, y: Name) -> Name:
        return self._print("add", x.dtype, x.text, y.text)

    def sub(self, x: Name, y: Name) -> Name:
        return self._print("sub", x.dtype, x.text, y.text)

    def mul(self, x: Name, y: Name) -> Name:
        return self._print("mul", x.dtype, x.text, y.text)

    def div(self, x: Name, y: Name) -> Name:
        return self._print("div", x.dtype, x.text, y.text)

    def neg(self, x: Name) -> Name:
        return self._print("neg", x.dtype, x.text)

    def fma(self, x: Name, y: Name, z: Name) -> Name:
        return self._print("fma", x.dtype, x.text, y.text, z.text)

    def sqrt(self, x: Name) -> Name:
        return self._print("sqrt", x.dtype, x.text)

    def abs(self, x: Name) -> Name:
        return self._print("abs", x.dtype, x.text)

    def copysign(self, x: Name, y: Name) -> Name:
        return self._print("copysign", x.dtype, x.text, y.text)

    def floor(self, x: Name) -> Name:
        return self._print("floor", x.dtype, x.text)

    def ceil(self, x: Name) -> Name:
        return self._print("ceil", x.dtype, x.text)

    def trunc(self, x: Name) -> Name:
        return self._print("trunc", x.dtype, x.text)

    def rint(self, x: Name) -> Name:
        return self._print("rint", x.dtype, x.text)

    def idiv(self, x: Name, y: Name) -> Name:
        return self._print("idiv", x.dtype, x.text, y.text)

    def irem(self, x: Name, y: Name) -> Name:
        return self._print("irem", x.dtype, x.text, y.text)

    def lt(self, x: Name, y: Name) -> Name:
        return self._print("lt", bool_, x.text, y.text)

    def le(self, x: Name, y: Name) -> Name:
        return self._print("le", bool_, x.text, y.text)

    def gt(self, x: Name, y: Name) -> Name:
        return self._print("gt", bool_, x.text, y.text)

    def ge(self, x: Name, y: Name) -> Name:
        return self._print("ge", bool_, x.text, y.text)

    def eq(self, x: Name, y: Name) -> Name:
        return self._print("eq", bool_, x.text, y.text)

    def ne(self, x: Name, y: Name) -> Name:
        return self._print("ne", bool_, x.text, y.text)

    def and_(self, x: Name, y: Name) -> Name:
        return self._print("and", x.dtype, x.text, y.text)

    def or_(self, x: Name, y: Name) -> Name:
        return self._print("or", x.dtype, x.text, y.text)

    def xor(self, x: Name, y: Name) -> Name:
        return self._print("xor", x.dtype, x.text, y.text)

    def not_(self, x: Name) -> Name:
        return self._print("not", x.dtype, x.text)

    def shl(self, x: Name, y: Name) -> Name:
        return self._print("shl", x.dtype, x.text, y.text)

    def shr(self, x: Name, y: Name) -> Name:
        return self._print("shr", x.dtype, x.text, y.text)

    def select(self, condition: Name, x: Name, y: Name) -> Name:
        return self._print("select", x.dtype, condition.text, x.text, y.text)

    def bitcast(self, x: Name, dtype: DType) -> Name:
        return self._print("bitcast", dtype, x.text)

    def convert(self, x: Name, dtype: DType) -> Name:
        return self._print("convert", dtype, x.text)

    def table(self, entries: Sequence[float], index: Name, dtype: DType) -> Name:
        values = ", ".join([repr(float(e)) for e in entries])
        return self._print("table", dtype, f"[{values}]", index.text)

    def rarely(self, condition: Name, usual: Name, rare: Callable[[], Name]) -> Name:
        self.lines.append(f"{self._indent}rarely {condition.text}:")
        outer, self._indent = self._indent, self._indent + "  "
        result = rare()
        self._indent = outer
        return self._print("merge", usual.dtype, condition.text, result.text, usual.text)


def listing(program: Callable[..., Any], *dtypes: DType) -> str:
    """The program printed for operands of the given types."""
    handler = TextHandler()
    operands = [handler.fresh(d) for d in dtypes]
    result = program(handler, *operands)
    head = ", ".join(f"{x.text}: {x.dtype.short}" for x in operands)
    return "\n".join([f"program({head}):", *handler.lines, f"  return {result.text}"])
