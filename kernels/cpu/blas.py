"""Matrix products as steps of a plan: our own, or the BLAS that SciPy ships, called by address.

Products of float32 and float64 are ours where the processor has fused multiply-add (:mod:`.gemm`);
the others go to BLAS, whose arguments are Fortran's: all by reference, integers 32 bits wide.

A large product is computed in panels of rows or columns, which our own threads share; BLAS then
runs on one thread (:func:`.openblas.thread_control`). The panels depend on the shape alone,
so the bits do not depend on how many threads there are; and BLAS never waits for a thread of its
own that the system has not scheduled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...fusion.loops import MatMul
from ...ir.dtypes import DType
from ..llvm.calls import call_address
from ..llvm.frame_code import SIGNATURE
from ..llvm.loops import counted_loop
from ..llvm.memory import I64, POINTER
from .gemm import emit_product, product_frame
from .openblas import routine_address
from .registers import has_product
from .small import SmallProduct, emit_small_product, small_frame, small_product

__all__ = ["blas_frame", "calls_blas", "emit_matmul", "matmul_frame", "panels", "product_key"]

_ROUTINES = {"float32": "sgemm", "float64": "dgemm", "complex64": "cgemm", "complex128": "zgemm"}
_I32, _I8 = ir.IntType(32), ir.IntType(8)
# Words of the frame
_X, _Y, _C, _STEPS, _TRANSPOSE, _SIZES, _LEADING, _ADDRESS = 0, 1, 2, 3, 6, 8, 11, 14
_PANELS, _ROWS, _COLUMNS, _PANEL_STEPS = 15, 16, 17, 18

# A product is worth panels from this many multiplications on. A panel has about 256 rows, since
# each packs the other operand anew (with 96 rows that took 40 % more time, with 256 12 %).
_WORTHWHILE = 1_000_000
_PANEL, _MOST_PANELS = 256, 16
_ALWAYS_SHARED = 16_000_000  # multiplications that are worth two smaller panels
_TILE = 24  # rows of three tiles of ours, or columns of one: no panel is cut within a tile


def panels(step: MatMul) -> tuple[int, int, int]:
    """(number of panels, rows of one, columns of one): a function of the shape alone."""
    if step.rows * step.inner * step.columns < _WORTHWHILE or step.batch > _MOST_PANELS:
        return 1, step.rows, step.columns
    longest = max(step.rows, step.columns)
    work = step.rows * step.inner * step.columns
    ours = not calls_blas(step.dtype)
    shortest, whole = (2 * _TILE, _TILE) if ours else (_PANEL // 2, 32)
    least = 2 if work >= _ALWAYS_SHARED and longest >= shortest else 1
    count = min(_MOST_PANELS, max(least, round(longest / _PANEL)))
    each = -(-longest // (count * whole)) * whole
    count = -(-longest // each)
    if step.rows >= step.columns:
        return count, each, step.columns
    return count, step.rows, each


def calls_blas(dtype: DType) -> bool:
    """Whether products of this dtype go to BLAS."""
    return not has_product(dtype)


def product_key(step: MatMul) -> DType | SmallProduct:
    """What the code of a product depends on: its dtype, or all of it."""
    if calls_blas(step.dtype):
        return step.dtype
    return small_product(step) or step.dtype


def matmul_frame(step: MatMul) -> tuple[int, ...]:
    """The frame of a matrix product, ours or the library's."""
    if isinstance(product_key(step), SmallProduct):
        return small_frame(step)
    cut = panels(step)
    return blas_frame(step, cut) if calls_blas(step.dtype) else product_frame(step, cut)


def blas_frame(step: MatMul, cut: tuple[int, int, int]) -> tuple[int, ...]:
    """Buffers, batch strides, shapes, leading dimensions, address, panels.

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
    count, rows, columns = cut
    by_rows = columns == step.columns
    return (
        *(step.x.buffer, step.y.buffer, step.c.buffer),
        *(m.strides[0] * size for m in (step.x, step.y, step.c)),
        *(trans_x, trans_y),
        *(step.columns, step.rows, step.inner),
        *(lead_x, lead_y, max(step.columns, 1)),
        routine_address(_ROUTINES[step.dtype.name]),
        *(count, rows, columns),
        rows * step.x.strides[1] * size if by_rows else 0,
        0 if by_rows else columns * step.y.strides[2] * size,
        (rows * step.columns if by_rows else columns) * size,
    )


def emit_matmul(module: Any, name: str, key: DType | SmallProduct) -> Any:
    """A step function for matrix products of a key; iterations are panels, batch by batch."""
    if isinstance(key, SmallProduct):
        return emit_small_product(module, name, key)
    dtype = key
    if not calls_blas(dtype):
        return emit_product(module, name)
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
    columns, rows = word(_SIZES), word(_SIZES + 1)
    inner = reference(b.trunc(word(_SIZES + 2), _I32), _I32)
    leading = [reference(b.trunc(word(_LEADING + k), _I32), _I32) for k in range(3)]
    panel_rows, panel_columns = b.alloca(_I32), b.alloca(_I32)
    one, zero = (_scalar(b, dtype, value) for value in (1.0, 0.0))
    bases = [address(k) for k in (_X, _Y, _C)]
    steps = [word(_STEPS + k) for k in range(3)]
    count, height, width = word(_PANELS), word(_ROWS), word(_COLUMNS)
    moves = [word(_PANEL_STEPS + k) for k in range(3)]
    by_rows = b.icmp_signed("==", width, columns)
    gemm = word(_ADDRESS)
    with counted_loop(b, low, high) as k:
        number, panel = b.sdiv(k, count), b.srem(k, count)
        done_rows = b.select(by_rows, b.mul(panel, height), I64(0))
        done_columns = b.select(by_rows, I64(0), b.mul(panel, width))
        for slot, most, left in (
            (panel_rows, height, b.sub(rows, done_rows)),
            (panel_columns, width, b.sub(columns, done_columns)),
        ):
            size = b.select(b.icmp_signed("<", left, most), left, most)
            b.store(b.trunc(size, _I32), slot)
        x, y, c = (
            b.inttoptr(b.add(base, b.add(b.mul(step, number), b.mul(move, panel))), POINTER)
            for base, step, move in zip(bases, steps, moves, strict=True)
        )
        call_address(
            b,
            gemm,
            [
                *(trans[1], trans[0], panel_columns, panel_rows, inner),
                *(one, y, leading[1], x, leading[0], zero, c, leading[2]),
            ],
        )
    b.ret_void()
    return function


def _scalar(b: Any, dtype: DType, value: float) -> Any:
    """A place that holds a real number in the dtype of the product."""
    real = ir.DoubleType() if dtype.real.itemsize == 8 else ir.FloatType()
    parts = 2 if dtype.is_complex else 1
    slot = b.alloca(real, size=I64(parts))
    for k in range(parts):
        number = ir.Constant(real, 0.0 if k else value)
        b.store(number, b.gep(slot, [I64(k)], source_etype=real))
    return slot
