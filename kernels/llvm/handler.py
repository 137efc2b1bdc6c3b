"""Scalar programs as LLVM IR.

:class:`LLVMHandler` gives the vocabulary of :mod:`tilegrad.ir.scalar.vocabulary` its meaning over
llvmlite values: scalars for ``width=1``, explicit vectors ``<width x T>`` otherwise. For
``h.fma(x, y, z)`` on float64 and width 8 it emits ::

    %r = call <8 x double> @llvm.fma.v8f64(<8 x double> %x, <8 x double> %y, <8 x double> %z)

No instruction carries a fast-math flag, so LLVM may neither contract nor re-associate, and every
width gives the same bits.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from ctypes import c_float
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir

from ...ir.dtypes import DType, bool_, int32, int64

__all__ = ["LLVMHandler", "Typed", "llvm_type"]


class Typed(NamedTuple):
    """An LLVM value and the element type we mean by it (LLVM integers have no sign)."""

    value: Any
    dtype: DType


@cache
def llvm_type(dtype: DType, width: int) -> Any:
    """The LLVM type of a value in registers; bool is ``i1``."""
    if dtype.kind == "f":
        scalar: Any = ir.DoubleType() if dtype.itemsize == 8 else ir.FloatType()
    else:
        scalar = ir.IntType(1 if dtype.kind == "b" else dtype.bits)
    return scalar if width == 1 else ir.VectorType(scalar, width)


@lru_cache(maxsize=1)
def _host_has_avx512() -> bool:
    features = llvm.get_host_cpu_features()
    return bool(features.get("avx512f") and features.get("avx512vl"))


class _Literal(ir.Constant):  # type: ignore[misc]  # llvmlite has no types
    """A constant whose text we write ourselves, once (llvmlite formats vectors item by item)."""

    def __init__(self, typ: Any, text: str) -> None:
        self.type = typ
        self.constant = text

    def _get_reference(self) -> Any:
        return self.constant


class _Call(ir.Instruction):  # type: ignore[misc]
    """A call whose operands and result may be printed without llvmlite's general checks."""

    def __init__(self, block: Any, function: Any, operands: Sequence[Any]) -> None:
        super().__init__(block, function.function_type.return_type, "call", operands)
        self.callee = function

    def descr(self, buf: list[str]) -> None:
        operands = ", ".join([f"{o.type} {o.get_reference()}" for o in self.operands])
        buf.append(f"call {self.type} {self.callee.get_reference()}({operands})\n")


_SPLAT_SYNTAX = llvm.llvm_version_info[0] >= 19  # "splat (double 1.0)", shorter to write and parse


def _constant_text(value: bool | int | float, kind: str, itemsize: int) -> str:
    if kind == "f":
        number = float(value) if itemsize == 8 else c_float(value).value
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if kind == "b":
        return "true" if value else "false"
    return str(int(value))


class LLVMHandler:
    """The vocabulary over LLVM values.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
        Where instructions go. Its block changes when a program says ``rarely``.
    width : int
        1 for scalars, else the number of lanes.
    avx512 : bool, optional
        Whether the code may use AVX-512 permutes for small tables; by default what the host has.
        The result is the same, bit for bit.
    """

    __slots__ = ("builder", "width", "avx512", "_constants", "_functions", "_tables")

    def __init__(self, builder: Any, width: int = 1, *, avx512: bool | None = None) -> None:
        self.builder = builder
        self.width = width
        self.avx512 = _host_has_avx512() if avx512 is None else avx512
        self._constants: dict[Any, Typed] = {}
        self._functions: dict[Any, Any] = {}
        self._tables: dict[Any, Any] = {}

    # -- values ---------------------------------------------------------------------------------
    def dtype(self, x: Typed) -> DType:
        return x.dtype

    def typed(self, value: Any, dtype: DType) -> Typed:
        """Wrap an LLVM value, for instance one just loaded."""
        return Typed(value, dtype)

    def const(self, value: bool | int | float, dtype: DType) -> Typed:
        # 0.0 == -0.0, so a zero is told apart by its text; the dtype tells True, 1 and 1.0 apart
        key = (value if value else str(value), dtype.name)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = Typed(self._constant(value, dtype), dtype)
        return found

    def _constant(self, value: bool | int | float, dtype: DType) -> Any:
        text = _constant_text(value, dtype.kind, dtype.itemsize)
        typ = llvm_type(dtype, self.width)
        if self.width == 1:
            return _Literal(typ, text)
        item = f"{typ.element} {text}"
        if _SPLAT_SYNTAX:
            return _Literal(typ, f"splat ({item})")
        return _Literal(typ, f"<{', '.join([item] * self.width)}>")

    def _intrinsic(self, name: str, result: DType, *operands: DType) -> Any:
        key = (name, result.name, *[d.name for d in operands])
        found = self._functions.get(key)
        if found is None:
            prefix = "" if self.width == 1 else f"v{self.width}"
            suffix = (result, operands[0]) if name.endswith(".sat") else (result,)
            full = f"llvm.{name}" + "".join(f".{prefix}{d.short}" for d in suffix)
            types = [llvm_type(d, self.width) for d in operands]
            found = self._declare(full, llvm_type(result, self.width), types)
            self._functions[key] = found
        return found

    def _declare(self, name: str, result: Any, operands: Sequence[Any]) -> Any:
        module = self.builder.module
        found = module.globals.get(name)
        if found is None:
            found = ir.Function(module, ir.FunctionType(result, operands), name)
        return found

    def _insert_call(self, function: Any, operands: Sequence[Any], dtype: DType) -> Typed:
        builder = self.builder
        call = _Call(builder.block, function, operands)
        builder._insert(call)
        return Typed(call, dtype)

    def _call(self, name: str, *operands: Typed) -> Typed:
        dtype = operands[0].dtype
        function = self._intrinsic(name, dtype, *[x.dtype for x in operands])
        return self._insert_call(function, [x.value for x in operands], dtype)

    # -- arithmetic -----------------------------------------------------------------------------
    def add(self, x: Typed, y: Typed) -> Typed:
        b = self.builder
        return Typed((b.fadd if x.dtype.kind == "f" else b.add)(x.value, y.value), x.dtype)

    def sub(self, x: Typed, y: Typed) -> Typed:
        b = self.builder
        return Typed((b.fsub if x.dtype.kind == "f" else b.sub)(x.value, y.value), x.dtype)

    def mul(self, x: Typed, y: Typed) -> Typed:
        b = self.builder
        return Typed((b.fmul if x.dtype.kind == "f" else b.mul)(x.value, y.value), x.dtype)

    def div(self, x: Typed, y: Typed) -> Typed:
        if x.dtype.kind != "f":
            return self.idiv(x, y)
        return Typed(self.builder.fdiv(x.value, y.value), x.dtype)

    def neg(self, x: Typed) -> Typed:
        if x.dtype.kind == "f":
            return Typed(self.builder.fneg(x.value), x.dtype)
        return self.sub(self.const(0, x.dtype), x)

    def fma(self, x: Typed, y: Typed, z: Typed) -> Typed:
        dtype = x.dtype
        function = self._functions.get(dtype.name)
        if function is None:
            function = self._intrinsic("fma", dtype, dtype, dtype, dtype)
            self._functions[dtype.name] = function
        return self._insert_call(function, (x.value, y.value, z.value), dtype)

    def sqrt(self, x: Typed) -> Typed:
        return self._call("sqrt", x)

    def abs(self, x: Typed) -> Typed:
        if x.dtype.kind == "f":
            return self._call("fabs", x)
        if x.dtype.kind != "i":
            return x
        return self.select(self.lt(x, self.const(0, x.dtype)), self.neg(x), x)

    def copysign(self, x: Typed, y: Typed) -> Typed:
        return self._call("copysign", x, y)

    def floor(self, x: Typed) -> Typed:
        return self._call("floor", x)

    def ceil(self, x: Typed) -> Typed:
        return self._call("ceil", x)

    def trunc(self, x: Typed) -> Typed:
        return self._call("trunc", x)

    def rint(self, x: Typed) -> Typed:
        return self._call("roundeven", x)

    def idiv(self, x: Typed, y: Typed) -> Typed:
        b, dtype = self.builder, x.dtype
        zero, one = self.const(0, dtype), self.const(1, dtype)
        by_zero = self.eq(y, zero)
        if dtype.kind != "i":
            quotient = Typed(b.udiv(x.value, self.select(by_zero, one, y).value), dtype)
            return self.select(by_zero, zero, quotient)
        by_minus_one = self.eq(y, self.const(-1, dtype))
        divisor = self.select(self.or_(by_zero, by_minus_one), one, y)
        quotient = Typed(b.sdiv(x.value, divisor.value), dtype)
        return self.select(by_zero, zero, self.select(by_minus_one, self.neg(x), quotient))

    def irem(self, x: Typed, y: Typed) -> Typed:
        # the remainder by 0 and by -1 is 0, and so is the one by 1, which cannot trap
        b, dtype = self.builder, x.dtype
        one = self.const(1, dtype)
        bad = self.eq(y, self.const(0, dtype))
        if dtype.kind == "i":
            bad = self.or_(bad, self.eq(y, self.const(-1, dtype)))
        divisor = self.select(bad, one, y)
        remainder = b.srem if dtype.kind == "i" else b.urem
        return Typed(remainder(x.value, divisor.value), dtype)

    # -- comparisons ----------------------------------------------------------------------------
    def _compare(self, sign: str, x: Typed, y: Typed) -> Typed:
        kind, b = x.dtype.kind, self.builder
        if kind == "f":
            compare = b.fcmp_unordered if sign == "!=" else b.fcmp_ordered
        else:
            compare = b.icmp_signed if kind == "i" else b.icmp_unsigned
        return Typed(compare(sign, x.value, y.value), bool_)

    def lt(self, x: Typed, y: Typed) -> Typed:
        return self._compare("<", x, y)

    def le(self, x: Typed, y: Typed) -> Typed:
        return self._compare("<=", x, y)

    def gt(self, x: Typed, y: Typed) -> Typed:
        return self._compare(">", x, y)

    def ge(self, x: Typed, y: Typed) -> Typed:
        return self._compare(">=", x, y)

    def eq(self, x: Typed, y: Typed) -> Typed:
        return self._compare("==", x, y)

    def ne(self, x: Typed, y: Typed) -> Typed:
        return self._compare("!=", x, y)

    # -- bits -----------------------------------------------------------------------------------
    def and_(self, x: Typed, y: Typed) -> Typed:
        return Typed(self.builder.and_(x.value, y.value), x.dtype)

    def or_(self, x: Typed, y: Typed) -> Typed:
        return Typed(self.builder.or_(x.value, y.value), x.dtype)

    def xor(self, x: Typed, y: Typed) -> Typed:
        return Typed(self.builder.xor(x.value, y.value), x.dtype)

    def not_(self, x: Typed) -> Typed:
        ones = self.const(True if x.dtype.kind == "b" else -1, x.dtype)
        return Typed(self.builder.xor(x.value, ones.value), x.dtype)

    def shl(self, x: Typed, y: Typed) -> Typed:
        return Typed(self.builder.shl(x.value, y.value), x.dtype)

    def shr(self, x: Typed, y: Typed) -> Typed:
        b = self.builder
        return Typed((b.ashr if x.dtype.kind == "i" else b.lshr)(x.value, y.value), x.dtype)

    def select(self, condition: Typed, x: Typed, y: Typed) -> Typed:
        return Typed(self.builder.select(condition.value, x.value, y.value), x.dtype)

    def bitcast(self, x: Typed, dtype: DType) -> Typed:
        if (x.dtype.kind == "f") == (dtype.kind == "f"):
            return Typed(x.value, dtype)
        return Typed(self.builder.bitcast(x.value, llvm_type(dtype, self.width)), dtype)

    def convert(self, x: Typed, dtype: DType) -> Typed:
        source, b = x.dtype, self.builder
        if source is dtype or source == dtype:
            return x
        if dtype.kind == "b":
            return self.ne(x, self.const(0, source))
        typ = llvm_type(dtype, self.width)
        if dtype.kind == "f":
            if source.kind == "f":
                resize = b.fpext if dtype.itemsize > source.itemsize else b.fptrunc
                return Typed(resize(x.value, typ), dtype)
            return Typed((b.sitofp if source.kind == "i" else b.uitofp)(x.value, typ), dtype)
        if source.kind == "f":
            name = "fptosi.sat" if dtype.kind == "i" else "fptoui.sat"
            return self._insert_call(self._intrinsic(name, dtype, source), (x.value,), dtype)
        bits = 1 if source.kind == "b" else source.bits
        if bits == dtype.bits:
            return Typed(x.value, dtype)
        if bits > dtype.bits:
            return Typed(b.trunc(x.value, typ), dtype)
        return Typed((b.sext if source.kind == "i" else b.zext)(x.value, typ), dtype)

    # -- tables ---------------------------------------------------------------------------------
    def table(self, entries: Sequence[float], index: Typed, dtype: DType) -> Typed:
        count = len(entries)
        if self.width > 8:
            return self._by_halves(entries, index, dtype)
        if self.avx512 and self.width == 8 and dtype.kind == "f" and count <= 64:
            return self._permute(entries, index, dtype)
        b = self.builder
        key = (tuple(entries), dtype.name)
        pointer = self._tables.get(key)
        if pointer is None:
            pointer = self._tables[key] = self._global_table(entries, dtype)
        typ = llvm_type(dtype, 1)
        if self.width == 1:
            place = b.gep(pointer, [index.value], inbounds=True, source_etype=typ)
            return Typed(b.load(place, typ=typ), dtype)
        # A gather is micro-code on AMD; eight loads and inserts are as fast or faster.
        result: Any = ir.Constant(llvm_type(dtype, self.width), ir.Undefined)
        for lane in range(self.width):
            position = ir.IntType(32)(lane)
            place = b.extract_element(index.value, position)
            place = b.gep(pointer, [place], inbounds=True, source_etype=typ)
            result = b.insert_element(result, b.load(place, typ=typ), position)
        return Typed(result, dtype)

    def _by_halves(self, entries: Sequence[float], index: Typed, dtype: DType) -> Typed:
        """Half of the lanes at a time, down to a register of them."""
        b, half = self.builder, self.width // 2
        handler = LLVMHandler(b, half, avx512=self.avx512)
        found = []
        for first in (0, half):
            places = [ir.IntType(32)(first + k) for k in range(half)]
            mask = ir.Constant(ir.VectorType(ir.IntType(32), half), places)
            lanes = b.shuffle_vector(index.value, index.value, mask)
            found.append(handler.table(entries, Typed(lanes, index.dtype), dtype).value)
        whole = [ir.IntType(32)(k) for k in range(self.width)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.width), whole)
        return Typed(b.shuffle_vector(*found, mask), dtype)

    def _global_table(self, entries: Sequence[float], dtype: DType) -> Any:
        module, item = self.builder.module, llvm_type(dtype, 1)
        body = ", ".join(
            [f"{item} {_constant_text(e, dtype.kind, dtype.itemsize)}" for e in entries]
        )
        name = f"table.{blake2b(body.encode(), digest_size=8).hexdigest()}"
        pointer = module.globals.get(name)
        if pointer is None:
            typ = ir.ArrayType(item, len(entries))
            pointer = ir.GlobalVariable(module, typ, name)
            pointer.global_constant = True
            pointer.linkage = "internal"
            pointer.initializer = _Literal(typ, f"[{body}]")
        return pointer

    def _permute(self, entries: Sequence[float], index: Typed, dtype: DType) -> Typed:
        """A small table held in registers: ``vpermi2pd`` picks from 16 entries at once."""
        if len(entries) > 16:
            half = 1 << ((len(entries) - 1).bit_length() - 1)
            high = self.ge(index, self.const(half, index.dtype))
            low_value = self._permute(entries[:half], index, dtype)
            return self.select(high, self._permute(entries[half:], index, dtype), low_value)
        wide = dtype.itemsize == 8
        integer = int64 if wide else int32
        vector, places = llvm_type(dtype, 8), llvm_type(integer, 8)
        name, suffix = ("pd", "512") if wide else ("ps", "256")
        padded = [*entries, *[0.0] * (-len(entries) % 8)]
        parts = [
            _Literal(
                vector,
                "<"
                + ", ".join(
                    f"{vector.element} {_constant_text(e, dtype.kind, dtype.itemsize)}"
                    for e in padded[start : start + 8]
                )
                + ">",
            )
            for start in range(0, len(padded), 8)
        ]
        place = self.convert(index, integer).value
        if len(parts) == 1:
            parts = parts * 2
        function = self._declare(
            f"llvm.x86.avx512.vpermi2var.{name}.{suffix}", vector, [vector, places, vector]
        )
        return self._insert_call(function, (parts[0], place, parts[1]), dtype)

    # -- control --------------------------------------------------------------------------------
    def rarely(self, condition: Typed, usual: Typed, rare: Callable[[], Typed]) -> Typed:
        b = self.builder
        some = condition.value
        if self.width > 1:
            mask = b.bitcast(some, ir.IntType(self.width))
            some = b.icmp_unsigned("!=", mask, ir.Constant(mask.type, 0))
        start = b.block
        rare_block, done = b.append_basic_block("rare"), b.append_basic_block("done")
        b.cbranch(some, rare_block, done)
        b.position_at_end(rare_block)
        result = rare()
        if self.width > 1:
            result = self.select(condition, result, usual)
        end = b.block
        b.branch(done)
        b.position_at_end(done)
        merged = b.phi(result.value.type)
        merged.add_incoming(usual.value, start)
        merged.add_incoming(result.value, end)
        return Typed(merged, result.dtype)
