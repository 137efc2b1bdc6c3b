"""Products of many small matrices: straight code for each shape, without loops inside.

The same sums as :mod:`.gemm`: an element is one chain of fused multiply-adds along the contracted
axis, begun at zero. So which of the two runs may be chosen freely, and is, by size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from ...fusion.loops import MatMul
from ...ir.dtypes import DType
from ..llvm.frame_code import SIGNATURE
from ..llvm.loops import counted_loop
from ..llvm.memory import I64, POINTER
from .registers import I32, Vectors

__all__ = ["SmallProduct", "emit_small_product", "small_frame", "small_product"]

# Most multiply-adds of vectors in straight code, and matrices that are worth it.
LONGEST, FEWEST = 128, 32


class SmallProduct(NamedTuple):
    """What the code of a small product depends on: shape, and strides (row, column) in elements."""

    dtype: DType
    sizes: tuple[int, int, int]
    strides: tuple[tuple[int, int], tuple[int, int], int]

    @property
    def name(self) -> str:
        """Text that stands for all of it."""
        return f"{self.dtype.name} {self.sizes} {self.strides}"


def small_product(step: MatMul) -> SmallProduct | None:
    """The product as straight code, None if it is not one for that."""
    vectors = -(-step.columns // Vectors.lanes_of(step.dtype))
    if step.batch < FEWEST or step.rows * step.inner * vectors > LONGEST or step.inner == 0:
        return None
    if step.inner * vectors > 16:  # all of y stays in registers
        return None
    (_, *x), (_, *y), (_, c, _) = step.x.strides, step.y.strides, step.c.strides
    sizes = (step.rows, step.inner, step.columns)
    return SmallProduct(step.dtype, sizes, ((x[0], x[1]), (y[0], y[1]), c))


def small_frame(step: MatMul) -> tuple[int, ...]:
    """Buffers, and bytes from one matrix to the next in each."""
    operands = (step.x, step.y, step.c)
    size = step.dtype.itemsize
    return (*(m.buffer for m in operands), *(m.strides[0] * size for m in operands))


def emit_small_product(module: Any, name: str, product: SmallProduct) -> Any:
    """A step function: iterations are the matrices."""
    function = ir.Function(module, SIGNATURE, name)
    function.linkage = "internal"
    k = Vectors(module, name, product.dtype)
    buffers, frame, low, high = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def word(number: int) -> Any:
        return b.load(b.gep(frame, [I64(number)], source_etype=I64), typ=I64)

    bases = []
    for n in range(3):
        at = b.add(word(n), I64(1))
        bases.append(b.load(b.gep(buffers, [at], source_etype=I64), typ=I64))
    moves = [word(3 + n) for n in range(3)]
    rows, inner, columns = product.sizes
    (x_row, x_column), (y_row, y_column), c_row = product.strides
    row_type = ir.VectorType(k.scalar, columns)
    fma = f"llvm.fma.v{columns}{k.suffix}"
    with counted_loop(b, low, high) as number:
        x, y, c = (
            b.inttoptr(b.add(base, b.mul(number, move)), POINTER)
            for base, move in zip(bases, moves, strict=True)
        )
        right = [
            _row(k, b, k.at(b, y, i * y_row * k.size), row_type, y_column) for i in range(inner)
        ]
        for i in range(rows):
            total = ir.Constant(row_type, None)
            for j, factors in enumerate(right):
                place = k.at(b, x, (i * x_row + j * x_column) * k.size)
                left = k.splat(b, k.load(b, place, k.scalar), columns)
                total = k.intrinsic(b, fma, row_type, [left, factors, total])
            k.store(b, total, k.at(b, c, i * c_row * k.size))
    b.ret_void()
    return function


def _row(k: Vectors, b: Any, start: Any, typ: Any, stride: int) -> Any:
    """A row of ``y``, which may lie across memory."""
    if stride == 1 or typ.count == 1:
        return k.load(b, start, typ)
    row = ir.Constant(typ, ir.Undefined)
    for n in range(typ.count):
        entry = k.load(b, k.at(b, start, n * stride * k.size), k.scalar)
        row = b.insert_element(row, entry, I32(n))
    return row
