"""Compile one scalar program and run it over arrays.

Used by tests and by the accuracy tables: what runs here is the code that fused kernels contain.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from ...ir.dtypes import DType, as_dtype
from .handler import LLVMHandler, Typed, llvm_type

__all__ = ["Compiled", "compile_program", "evaluate", "module_text"]

_INT64, _POINTER = ir.IntType(64), ir.PointerType()
_ENTRY = "run"


def _target_machine() -> Any:
    """A target machine for this host: always a new one, as an engine frees its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        jit=True,
    )


def _memory_type(dtype: DType, width: int) -> Any:
    if not dtype.is_bool:
        return llvm_type(dtype, width)
    return ir.IntType(8) if width == 1 else ir.VectorType(ir.IntType(8), width)


def _load(handler: LLVMHandler, pointer: Any, dtype: DType) -> Typed:
    builder, typ = handler.builder, _memory_type(dtype, handler.width)
    value = builder.load(pointer, typ=typ, align=dtype.itemsize)
    if dtype.is_bool:
        value = builder.trunc(value, llvm_type(dtype, handler.width))
    return Typed(value, dtype)


def _store(handler: LLVMHandler, x: Typed, pointer: Any) -> None:
    value = x.value
    if x.dtype.is_bool:
        value = handler.builder.zext(value, _memory_type(x.dtype, handler.width))
    handler.builder.store(value, pointer, align=x.dtype.itemsize)


def _emit_loop(
    builder: Any,
    program: Callable[..., Any],
    dtypes: tuple[DType, ...],
    pointers: tuple[Any, ...],
    bounds: tuple[Any, Any],
    width: int,
) -> DType:
    """``for i in range(*bounds, width): out[i] = program(in[i])``; returns the result's dtype."""
    start, stop = bounds
    before = builder.block
    head, body = builder.append_basic_block("head"), builder.append_basic_block("body")
    done = builder.append_basic_block("done")
    builder.branch(head)
    builder.position_at_end(head)
    i = builder.phi(_INT64)
    i.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", i, stop), body, done)
    builder.position_at_end(body)
    handler = LLVMHandler(builder, width)

    def at(pointer: Any, dtype: DType) -> Any:
        typ = _memory_type(dtype, 1)
        return builder.gep(pointer, [i], inbounds=True, source_etype=typ)

    *inputs, output = pointers
    operands = [_load(handler, at(p, d), d) for p, d in zip(inputs, dtypes, strict=True)]
    result = program(handler, *operands)
    _store(handler, result, at(output, result.dtype))
    i.add_incoming(builder.add(i, _INT64(width)), builder.block)
    builder.branch(head)
    builder.position_at_end(done)
    dtype: DType = result.dtype
    return dtype


def _module(
    program: Callable[..., Any], dtypes: tuple[DType, ...], width: int
) -> tuple[Any, DType]:
    module = ir.Module("evaluate")
    module.triple = llvm.get_default_triple()
    signature = ir.FunctionType(ir.VoidType(), [_INT64, *[_POINTER] * (len(dtypes) + 1)])
    function = ir.Function(module, signature, _ENTRY)
    for pointer in function.args[1:]:
        pointer.add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    count, *pointers = function.args
    zero, places = _INT64(0), tuple(pointers)
    tail = zero
    if width > 1:
        tail = builder.and_(count, _INT64(-width))
        _emit_loop(builder, program, dtypes, places, (zero, tail), width)
    result = _emit_loop(builder, program, dtypes, places, (tail, count), 1)
    builder.ret_void()
    return module, result


def module_text(program: Callable[..., Any], *dtypes: Any, width: int = 8) -> str:
    """The LLVM IR that :func:`evaluate` compiles, before optimization."""
    return str(_module(program, tuple(as_dtype(d) for d in dtypes), width)[0])


class Compiled:
    """One program in machine code; call it with contiguous arrays.

    Attributes
    ----------
    dtypes : tuple of DType
        What it takes.
    result : DType
        What it gives.
    """

    def __init__(
        self, program: Callable[..., Any], dtypes: tuple[DType, ...], width: int = 8
    ) -> None:
        self.dtypes = dtypes
        machine = _target_machine()
        module, self.result = _module(program, dtypes, width)
        self._module = llvm.parse_assembly(str(module))
        self._module.verify()
        self.text = str(self._module)
        self._engine = llvm.create_mcjit_compiler(self._module, machine)
        self._engine.finalize_object()
        kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (len(dtypes) + 1))
        self._run = kind(self._engine.get_function_address(_ENTRY))

    def __call__(self, *arrays: np.ndarray[Any, Any], out: Any = None) -> np.ndarray[Any, Any]:
        if out is None:
            out = np.empty(arrays[0].shape, self.result.numpy)
        self._run(out.size, *[a.ctypes.data for a in arrays], out.ctypes.data)
        result: np.ndarray[Any, Any] = out
        return result

    def assembly(self) -> str:
        """Machine code in text form."""
        text: str = _target_machine().emit_assembly(self._module)
        return text


@lru_cache(maxsize=512)
def compile_program(
    program: Callable[..., Any], dtypes: tuple[DType, ...], width: int = 8
) -> Compiled:
    """Compile ``program`` for operands of the given types; cached."""
    return Compiled(program, dtypes, width)


def evaluate(program: Callable[..., Any], *arrays: Any, width: int = 8) -> np.ndarray[Any, Any]:
    """Run one scalar program elementwise over arrays.

    Parameters
    ----------
    program : callable
        ``program(h, *operands)``.
    *arrays : array_like
        Broadcast against each other; dtypes stay as they are.
    width : int
        Lanes of the main loop; 1 runs everything in the scalar loop.

    Returns
    -------
    numpy.ndarray

    Examples
    --------
    >>> evaluate(lambda h, x: h.add(x, x), np.array([1.0, 2.0]))
    array([2., 4.])
    """
    broadcast = np.broadcast_arrays(*[np.asarray(a) for a in arrays])
    ready = [np.ascontiguousarray(a) for a in broadcast]
    dtypes = tuple(as_dtype(a.dtype) for a in ready)
    out = compile_program(program, dtypes, width)(*[a.reshape(-1) for a in ready])
    return out.reshape(broadcast[0].shape)
