"""What the functions of nests and lane programs share: words of the frame, lanes, checked ops.

What is the same in all lanes is a scalar, everything else a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ...fusion.lane_code import Scalar
from ...fusion.loops import Instruction
from ...ir.dtypes import DType, int64
from .frame import BAKED, Framed
from .handler import LLVMHandler, Typed, llvm_type
from .memory import I64, POINTER
from .outline import call_program, is_heavy

__all__ = ["SIGNATURE", "FrameCode", "Report"]

SIGNATURE = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64, I64])
_BIT = ir.IntType(1)

Report = Callable[[Typed, Typed | None], None]


class FrameCode:
    """A function ``(buffers, frame, low, high)``; subclasses emit what it does."""

    def __init__(self, module: Any, name: str, form: Framed, width: int, outline: bool) -> None:
        self.width = width
        self.outline = outline  # call expensive programs instead of repeating them
        self.function = ir.Function(module, SIGNATURE, name)
        self.function.linkage = "internal"
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.buffers, self.frame, self.low, self.high = self.function.args
        self.scalar = LLVMHandler(self.builder, 1)
        self.vector = LLVMHandler(self.builder, width)
        self._integers: dict[int, Any] = {}
        self._bases = {number: self._base(k) for k, number in enumerate(form.buffers)}
        for value in form.parameters:
            self._integers[value] = self._word(self.frame, form.slot(value) or 0)

    # -- words of the call ----------------------------------------------------------------------

    def _word(self, base: Any, k: Any) -> Any:
        at = I64(k) if isinstance(k, int) else k
        return self.builder.load(self.builder.gep(base, [at], source_etype=I64), typ=I64)

    def _base(self, k: int) -> Any:
        """Address of local buffer ``k``; word 0 of the table is for errors."""
        number = self.builder.add(self._word(self.frame, k), I64(1))
        return self._word(self.buffers, number)

    def _frame_literal(self, slot: int, dtype: DType) -> Typed:
        """A constant whose bits are a word of the frame."""
        b = self.builder
        word = self._word(self.frame, slot)
        if dtype.bits < 64:
            word = b.trunc(word, ir.IntType(dtype.bits))
        return Typed(b.bitcast(word, llvm_type(dtype, 1)) if dtype.is_floating else word, dtype)

    def _baked_literal(self, x: Instruction | Scalar) -> Any:
        """A constant that is part of the code."""
        assert x.literal is not None
        value, h = x.literal.item(), self.scalar
        if x.dtype.is_complex:
            return h.const(value.real, x.dtype.real), h.const(value.imag, x.dtype.real)
        return h.const(value, x.dtype)

    def integer(self, value: int) -> Any:
        """An integer of the schedule as an i64: a constant, or a word of the frame."""
        found = self._integers.get(value)
        if found is None:
            assert abs(value) <= BAKED, f"{value} is not a parameter of the form"
            found = self._integers[value] = I64(value)
        return found

    # -- scalars and vectors --------------------------------------------------------------------

    @staticmethod
    def is_wide(x: Typed) -> bool:
        return isinstance(x.value.type, ir.VectorType)

    def splat(self, x: Typed) -> Typed:
        """A scalar in every lane."""
        b = self.builder
        typ = llvm_type(x.dtype, self.width)
        first = b.insert_element(ir.Constant(typ, ir.Undefined), x.value, I64(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.width), None)
        return Typed(b.shuffle_vector(first, ir.Constant(typ, ir.Undefined), zeros), x.dtype)

    def as_vector(self, x: Any) -> Any:
        if not isinstance(x, Typed):
            return tuple(self.as_vector(part) for part in x)
        return x if self.is_wide(x) else self.splat(x)

    def any(self, flags: Any) -> tuple[Any, Any]:
        """Whether an i1 vector has a set lane, as an i1; and the lanes as the bits of a number."""
        lanes = self.builder.bitcast(flags, ir.IntType(self.width))
        return self.builder.icmp_unsigned("!=", lanes, ir.Constant(lanes.type, 0)), lanes

    # -- ops and their checks -------------------------------------------------------------------

    def _apply(
        self, h: LLVMHandler, x: Instruction | Scalar, args: Sequence[Any], report: Report
    ) -> Any:
        """An op, after its domain check if the instruction has one."""
        assert x.op is not None
        params = dict(x.params)
        if x.op.check is not None and x.error >= 0:
            bad = x.op.check(h, *args, **params)
            if bad is not None:
                report(bad, None)
        pairs = any(not isinstance(a, Typed) for a in args)
        if self.outline and not pairs and not x.dtype.is_complex and is_heavy(x.op):
            return call_program(h, x.op, args, params, x.dtype)
        program = x.op.complex_scalar if pairs else x.op.scalar
        return program(h, *args, **params)  # type: ignore[misc]

    def _position(self, h: LLVMHandler, high: int, index: Typed, report: Report) -> Typed:
        """A checked index: negative counts from the end; what is out of range is reported."""
        extent = Typed(self.integer(high), int64)
        if self.is_wide(index):
            extent = self.splat(extent)
        zero = h.const(0, int64)
        place = h.select(h.lt(index, zero), h.add(index, extent), index)
        bad = h.or_(h.lt(place, zero), h.ge(place, extent))
        report(bad, index)
        return h.select(bad, zero, place)

    def _write_error(self, number: int, bad: Typed, value: Typed | None, mask: Any) -> None:
        """Write ``value << 16 | error number`` where an element that counts is bad."""
        b, wide = self.builder, self.is_wide(bad)
        flag, lanes = bad.value, None
        if mask is not None:
            flag = b.and_(flag, mask)
        if wide:
            flag, lanes = self.any(flag)
        with b.if_then(flag, likely=False):
            code = self.integer(number + BAKED + 1)
            if value is not None:
                shown = value.value
                if wide:
                    lane = b.cttz(lanes, ir.Constant(_BIT, 0))
                    shown = b.extract_element(shown, b.zext(lane, I64))
                code = b.or_(b.shl(shown, I64(16)), code)
            b.store(code, b.inttoptr(self._word(self.buffers, 0), POINTER))
