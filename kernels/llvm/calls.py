"""Calls through addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from .memory import POINTER

__all__ = ["call_address", "call_int_address"]


class _IndirectCall(ir.Instruction):  # type: ignore[misc]  # llvmlite has no types
    """A call of a pointer; llvmlite's own call wants a function it can see."""

    def __init__(self, block: Any, result: Any, pointer: Any, operands: Sequence[Any]) -> None:
        super().__init__(block, result, "call", [pointer, *operands])

    def descr(self, buf: list[str]) -> None:
        pointer, *rest = self.operands
        operands = ", ".join([f"{o.type} {o.get_reference()}" for o in rest])
        buf.append(f"call {self.type} {pointer.get_reference()}({operands})\n")


def call_address(b: Any, address: Any, operands: Sequence[Any]) -> None:
    """Call the void function at an i64 address."""
    pointer = b.inttoptr(address, POINTER)
    b._insert(_IndirectCall(b.block, ir.VoidType(), pointer, operands))


def call_int_address(b: Any, address: Any, operands: Sequence[Any]) -> Any:
    """Call the function that returns a C int at an i64 address."""
    pointer = b.inttoptr(address, POINTER)
    call = _IndirectCall(b.block, ir.IntType(32), pointer, operands)
    b._insert(call)
    return call
