"""What the processor's registers hold, and how vectors are spelled in LLVM IR for our products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from llvmlite import ir

from ...ir.dtypes import DType
from ..llvm.handler import llvm_type
from ..llvm.memory import I64
from ..objects import host

__all__ = ["I32", "Shape", "Vectors", "has_product", "tile_shape"]

I32 = ir.IntType(32)


class Shape(NamedTuple):
    """Of a tile: rows, vectors in a row, lanes of a vector."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


@cache
def _vector_bits() -> int:
    """Width of the processor's vectors with fused multiply-add; 0 without."""
    facts = " ".join(host())
    if "+avx512f" in facts:
        return 512
    if "+avx2" in facts and "+fma" in facts:
        return 256
    return 128 if "aarch64" in facts or "arm64" in facts else 0


def tile_shape(dtype: DType) -> Shape:
    """The tile whose sums, with the operands of one step, just fit the registers."""
    bits = _vector_bits()
    lanes = bits // (8 * dtype.itemsize)
    return Shape(4 if bits == 256 else 8, 3, lanes)


def has_product(dtype: DType) -> bool:
    """Whether products of this dtype are computed here."""
    return dtype.is_floating and bool(_vector_bits())


class Vectors:
    """What the functions of a product share: element type, tile, and the spelling of loads."""

    def __init__(self, module: Any, name: str, dtype: DType) -> None:
        self.module, self.name = module, name
        self.size = dtype.itemsize
        self.scalar = llvm_type(dtype, 1)
        self.shape = tile_shape(dtype)
        self.vector = ir.VectorType(self.scalar, self.shape.lanes)
        self.suffix = "f64" if dtype.itemsize == 8 else "f32"

    @staticmethod
    def lanes_of(dtype: DType) -> int:
        """Elements of a vector; 1 where there are no products of ours."""
        return max(tile_shape(dtype).lanes, 1)

    def function(self, name: str, arguments: Sequence[Any]) -> tuple[Any, Any]:
        typ = ir.FunctionType(ir.VoidType(), arguments)
        function = ir.Function(self.module, typ, f"{self.name}.{name}")
        function.linkage = "internal"
        return function, ir.IRBuilder(function.append_basic_block("entry"))

    def intrinsic(self, b: Any, name: str, result: Any, operands: Sequence[Any]) -> Any:
        function = self.module.globals.get(name)
        if function is None:
            typ = ir.FunctionType(result, [o.type for o in operands])
            function = ir.Function(self.module, typ, name)
        return b.call(function, operands)

    def at(self, b: Any, pointer: Any, offset: Any) -> Any:
        """``pointer`` moved by bytes."""
        offset = I64(offset) if isinstance(offset, int) else offset
        return b.gep(pointer, [offset], source_etype=ir.IntType(8))

    def splat(self, b: Any, x: Any, lanes: int) -> Any:
        typ = ir.VectorType(x.type, lanes)
        first = b.insert_element(ir.Constant(typ, ir.Undefined), x, I32(0))
        places = ir.Constant(ir.VectorType(I32, lanes), [0] * lanes)
        return b.shuffle_vector(first, ir.Constant(typ, ir.Undefined), places)

    def first(self, b: Any, count: Any, lanes: int) -> Any:
        """The mask of the first ``count`` lanes."""
        numbers = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
        return b.icmp_signed("<", numbers, self.splat(b, b.trunc(count, I32), lanes))

    def load(self, b: Any, pointer: Any, typ: Any, mask: Any = None) -> Any:
        if mask is None:
            return b.load(pointer, typ=typ, align=self.size)
        name = f"llvm.masked.load.v{typ.count}{self.suffix}.p0"
        return self.intrinsic(b, name, typ, [pointer, I32(self.size), mask, ir.Constant(typ, None)])

    def store(self, b: Any, value: Any, pointer: Any, mask: Any = None) -> None:
        if mask is None:
            b.store(value, pointer, align=self.size)
            return
        name = f"llvm.masked.store.v{value.type.count}{self.suffix}.p0"
        self.intrinsic(b, name, ir.VoidType(), [value, pointer, I32(self.size), mask])
