"""Matrix products through the BLAS that SciPy ships, called by address from native code.

``scipy.linalg.cython_blas`` exports its routines as capsules that hold C function pointers; their
arguments are Fortran's, all by reference, integers 32 bits wide.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from llvmlite import ir

from ...fusion.loops import MatMul
from ...ir.dtypes import DType
from ..llvm.calls import call_address
from ..llvm.loops import counted_loop
from ..llvm.memory import I64, POINTER
from ..llvm.nest import SIGNATURE

__all__ = ["emit_matmul", "matmul_frame", "routine_address"]

_ROUTINES = {"float32": "sgemm", "float64": "dgemm", "complex64": "cgemm", "complex128": "zgemm"}
_I32, _I8 = ir.IntType(32), ir.IntType(8)
# Words of the frame
_X, _Y, _C, _STEPS, _TRANSPOSE, _SIZES, _LEADING, _ADDRESS = 0, 1, 2, 3, 6, 8, 11, 14


@cache
def routine_address(name: str) -> int:
    """Address of a BLAS routine of SciPy."""
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    assert isinstance(address, int)
    return address


def matmul_frame(step: MatMul) -> tuple[int, ...]:
    """The frame of a matrix product: buffers, batch strides, shapes, leading dimensions, address.

    BLAS stores matrices by columns, so ``c = x @ y`` by rows is asked for as ``c' = y' x'``; an
    operand with unit column stride is then passed as it is, one with unit row stride transposed.
    """

    def layout(strides: tuple[int, int, int], rows: int, columns: int) -> tuple[int, int]:
        _, row, column = strides
        if columns == 1 or column == 1:
            return ord("N"), max(row, columns, 1)
        return ord("T"), max(column, rows, 1)

    trans_x, lead_x = layout(step.x.strides, step.rows, step.inner)
    trans_y, lead_y = layout(step.y.strides, step.inner, step.columns)
    size = step.dtype.itemsize
    return (
        *(step.x.buffer, step.y.buffer, step.c.buffer),
        *(m.strides[0] * size for m in (step.x, step.y, step.c)),
        *(trans_x, trans_y),
        *(step.columns, step.rows, step.inner),
        *(lead_x, lead_y, max(step.columns, 1)),
        routine_address(_ROUTINES[step.dtype.name]),
    )


def emit_matmul(module: Any, name: str, dtype: DType) -> Any:
    """A step function for matrix products of one dtype: iterations are the batch."""
    function = ir.Function(module, SIGNATURE, name)
    function.linkage = "internal"
    buffers, frame, low, high = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def word(k: int) -> Any:
        return b.load(b.gep(frame, [I64(k)], source_etype=I64), typ=I64)

    def address(k: int) -> Any:
        number = b.add(word(k), I64(1))
        return b.load(b.gep(buffers, [number], source_etype=I64), typ=I64)

    def reference(value: Any, typ: Any) -> Any:
        slot = b.alloca(typ)
        b.store(value, slot)
        return slot

    trans = [reference(b.trunc(word(_TRANSPOSE + k), _I8), _I8) for k in (0, 1)]
    sizes = [reference(b.trunc(word(_SIZES + k), _I32), _I32) for k in range(3)]
    leading = [reference(b.trunc(word(_LEADING + k), _I32), _I32) for k in range(3)]
    real = ir.DoubleType() if dtype.real.itemsize == 8 else ir.FloatType()
    parts = 2 if dtype.is_complex else 1
    scalars = []
    for value in (1.0, 0.0):
        slot = b.alloca(real, size=I64(parts))
        for k in range(parts):
            number = ir.Constant(real, value if k == 0 else 0.0)
            b.store(number, b.gep(slot, [I64(k)], source_etype=real))
        scalars.append(slot)
    bases = [address(k) for k in (_X, _Y, _C)]
    steps = [word(_STEPS + k) for k in range(3)]
    gemm = word(_ADDRESS)
    with counted_loop(b, low, high) as k:
        x, y, c = (
            b.inttoptr(b.add(base, b.mul(step, k)), POINTER)
            for base, step in zip(bases, steps, strict=True)
        )
        call_address(
            b,
            gemm,
            [
                *(trans[1], trans[0], *sizes, scalars[0], y, leading[1], x, leading[0]),
                *(scalars[1], c, leading[2]),
            ],
        )
    b.ret_void()
    return function
