"""A matrix product of our own for float32 and float64: packed panels, and tiles in registers.

``c = x @ y`` in blocks of ``DEPTH`` along the contracted axis. Within a block an element of ``c``
is one chain of fused multiply-adds in the order of that axis, begun at zero; the sums of blocks are
added in their order. Nothing else decides about bits: not the tiles, the panels, the threads, the
layout of the operands, nor the vectors of the processor.

The shape of the loops is that of Goto and van de Geijn, "Anatomy of high-performance matrix
multiplication", ACM TOMS 34 (2008), with the roles that rows in memory suggest: vectors run along
the columns of ``c``, whose operand ``y`` is packed into slabs as wide as a tile, in the
second-level cache; elements of ``x`` are broadcast, from where they lie if that is near together::

    for each block of columns, for each block of the contracted axis:
        pack the block of y (DEPTH x at most SLABS tiles), unless it lies well already
        for each GROUP of tiles below each other:
            pack their rows of x, unless they lie well already
            for each tile of the group, for each slab: tile(x rows, y slab) -> c
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from llvmlite import ir

from ...fusion.loops import MatMul
from ...ir.dtypes import DType
from ..llvm.calls import call_address
from ..llvm.frame_code import SIGNATURE
from ..llvm.loops import counted_loop
from ..llvm.memory import I64, POINTER
from ..machine import compile_entry
from .microkernels import (
    DEPTH,
    GROUP,
    emit_pack_columns,
    emit_pack_rows,
    emit_pack_x,
    emit_tile,
    pitch,
)
from .registers import Vectors, tile_shape

__all__ = ["ROWS_PACKED", "TURNED", "Panels", "emit_product", "product_frame"]

SLABS = 5  # tiles side by side whose operand is packed at once: 240 KiB of it

# How a panel reads y: where it lies, or packed from rows or from columns. What it does with c.
IN_PLACE, ROWS_PACKED, TURNED = 0, 1, 2
SET, SUBTRACT = 0, 1
# Words of the frame: buffers, batch strides in bytes, strides (row, column) in bytes, sizes, panels
_BUFFERS, _BATCH, _X, _Y, _C, _SIZES, _PANELS, _MOVES, _PACKS = 0, 3, 6, 8, 10, 11, 14, 17, 20
_ADDRESS = 22


def product_frame(step: MatMul, cut: tuple[int, int, int]) -> tuple[int, ...]:
    """The frame of a product that is cut into panels: number, rows and columns of one."""
    size = step.dtype.itemsize
    shape = tile_shape(step.dtype)
    count, rows, columns = cut
    by_rows = columns == step.columns
    (xb, xr, xc), (yb, yr, yc), (cb, cr, _) = (
        tuple(n * size for n in m.strides) for m in (step.x, step.y, step.c)
    )
    # As they lie: x if a few rows are near together, y if its rows are, or if it is used but once.
    near_x = xc == size or step.inner == 1 or columns <= shape.columns or step.rows == 1
    near_x = near_x or (xr == size and xc <= 2048 and xc % 512 != 0)
    in_rows = yc == size or step.columns == 1
    near_y = in_rows and (yr <= 1024 or rows <= 2 * shape.rows)
    return (
        *(step.x.buffer, step.y.buffer, step.c.buffer),
        *(xb, yb, cb),
        *(xr, xc, yr, yc, cr),
        *(step.rows, step.inner, step.columns),
        *(count, rows, columns),
        rows * xr if by_rows else 0,
        0 if by_rows else columns * yc,
        rows * cr if by_rows else columns * size,
        *(int(not near_x), IN_PLACE if near_y else ROWS_PACKED if in_rows else TURNED),
        product_address(step.dtype),
    )


@cache
def product_address(dtype: DType) -> int:
    """The address of the step function of all products of a dtype, compiled once and for itself."""

    def entry(module: Any, b: Any, values: Any) -> Any:
        return b.ptrtoint(_emit_step(module, "product", dtype), I64)

    return int(compile_entry(f"product {dtype.name} {tile_shape(dtype)}", "i", entry).call(0))


def emit_product(module: Any, name: str) -> Any:
    """A step function that calls the one whose address is in its frame."""
    function = ir.Function(module, SIGNATURE, name)
    function.linkage = "internal"
    frame = function.args[1]
    b = ir.IRBuilder(function.append_basic_block("entry"))
    address = b.load(b.gep(frame, [I64(_ADDRESS)], source_etype=I64), typ=I64)
    call_address(b, address, list(function.args))
    b.ret_void()
    return function


class Panels(Vectors):
    """Products of one dtype, for code that is being emitted in ``module``."""

    def __init__(self, module: Any, name: str, dtype: DType) -> None:
        super().__init__(module, name, dtype)
        self.run = _emit_panel(self)

    def subtract(
        self,
        b: Any,
        x: Any,
        y: Any,
        c: Any,
        x_strides: tuple[Any, Any],
        y_strides: tuple[Any, Any],
        c_row: Any,
        sizes: tuple[Any, Any, Any],
        packs_x: Any,
        packs_y: Any,
    ) -> None:
        """``c -= x @ y``; strides in bytes, sizes are rows, depth and columns."""
        operands = [x, y, c, *x_strides, *y_strides, c_row, *sizes, packs_x, packs_y]
        b.call(self.run, [*operands, I64(SUBTRACT)])


def _emit_step(module: Any, name: str, dtype: DType) -> Any:
    """The step function of products of a dtype; iterations are panels, batch by batch."""
    function = ir.Function(module, SIGNATURE, name)
    function.linkage = "internal"
    panels = Panels(module, name, dtype)
    buffers, frame, low, high = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def word(number: int) -> Any:
        return b.load(b.gep(frame, [I64(number)], source_etype=I64), typ=I64)

    def address(number: int) -> Any:
        at = b.add(word(_BUFFERS + number), I64(1))
        return b.load(b.gep(buffers, [at], source_etype=I64), typ=I64)

    bases = [address(n) for n in range(3)]
    batch = [word(_BATCH + n) for n in range(3)]
    moves = [word(_MOVES + n) for n in range(3)]
    rows, inner, columns = (word(_SIZES + n) for n in range(3))
    count, height, width = (word(_PANELS + n) for n in range(3))
    by_rows = b.icmp_signed("==", width, columns)
    strides = [word(n) for n in range(_X, _SIZES)]
    packs = [word(_PACKS), word(_PACKS + 1)]
    with counted_loop(b, low, high) as k:
        number, part = b.sdiv(k, count), b.srem(k, count)
        left_rows = b.sub(rows, b.select(by_rows, b.mul(part, height), I64(0)))
        left_columns = b.sub(columns, b.select(by_rows, I64(0), b.mul(part, width)))
        x, y, c = (
            b.inttoptr(b.add(base, b.add(b.mul(step, number), b.mul(move, part))), POINTER)
            for base, step, move in zip(bases, batch, moves, strict=True)
        )
        sizes = [_least(b, height, left_rows), inner, _least(b, width, left_columns)]
        b.call(panels.run, [x, y, c, *strides, *sizes, *packs, I64(SET)])
    b.ret_void()
    return function


def _least(b: Any, x: Any, y: Any) -> Any:
    return b.select(b.icmp_signed("<", x, y), x, y)


def _emit_panel(k: Vectors) -> Any:
    """``panel(x, y, c, strides of each, rows, depth, columns, pack x, pack y, what to do)``."""
    tiles = [emit_tile(k, n + 1) for n in range(k.shape.vectors)]
    pack_x, pack_rows, pack_columns = emit_pack_x(k), emit_pack_rows(k), emit_pack_columns(k)
    function, b = k.function("panel", [POINTER] * 3 + [I64] * 11)
    x, y, c, xr, xc, yr, yc, cr, rows, inner, columns, packs_x, packs_y, how = function.args
    slab = DEPTH * pitch(k)
    few_size = DEPTH * k.shape.rows * k.size
    scratch = b.alloca(ir.IntType(8), size=I64(SLABS * slab + GROUP * few_size + 64))
    space = b.inttoptr(b.and_(b.add(b.ptrtoint(scratch, I64), I64(63)), I64(-64)), POINTER)
    few = k.at(b, space, SLABS * slab)  # where rows of x are packed
    block, height, size = SLABS * k.shape.columns, k.shape.rows, I64(k.size)
    packing_x = b.icmp_signed("!=", packs_x, I64(0))
    packing_y = b.icmp_signed("!=", packs_y, I64(0))
    in_rows = b.icmp_signed("==", packs_y, I64(ROWS_PACKED))
    subtracts = b.icmp_signed("==", how, I64(SUBTRACT))
    # How to go through a slab, and from one to the next.
    y_step = b.select(packing_y, I64(pitch(k)), yr)
    y_next = b.select(packing_y, I64(slab), b.mul(yc, I64(k.shape.columns)))
    x_row, x_step = b.select(packing_x, size, xr), b.select(packing_x, I64(height * k.size), xc)
    # One turn also over an empty axis: it stores zeros.
    turns = b.select(b.icmp_signed(">", inner, I64(0)), inner, I64(1))
    with counted_loop(b, I64(0), columns, block) as j, counted_loop(b, I64(0), turns, DEPTH) as p:
        wide = _least(b, I64(block), b.sub(columns, j))
        deep = _least(b, I64(DEPTH), b.sub(inner, p))
        here = k.at(b, y, b.add(b.mul(j, yc), b.mul(p, yr)))
        with b.if_then(packing_y), counted_loop(b, I64(0), wide, k.shape.columns) as s:
            target = k.at(b, space, b.mul(s, I64(slab // k.shape.columns)))
            source, left = k.at(b, here, b.mul(s, yc)), b.sub(wide, s)
            some = _least(b, left, I64(k.shape.columns))
            with b.if_else(in_rows) as (straight, turned):
                with straight:
                    b.call(pack_rows, [target, source, yr, deep, some])
                with turned:
                    b.call(pack_columns, [target, source, yc, deep, some])
        y_base = b.select(packing_y, space, here)
        begins = b.zext(b.icmp_signed("==", p, I64(0)), I64)
        begins = b.select(subtracts, I64(-1), begins)
        with counted_loop(b, I64(0), rows, height) as i:
            left = k.at(b, x, b.add(b.mul(i, xr), b.mul(p, xc)))
            in_group = b.and_(i, I64(GROUP * height - 1))
            new_group = b.icmp_signed("==", in_group, I64(0))
            with b.if_then(b.and_(packing_x, new_group)):
                many = _least(b, b.sub(rows, i), I64(GROUP * height))
                b.call(pack_x, [few, left, xr, xc, deep, many])
            packed = k.at(b, few, b.mul(in_group, I64(few_size // height)))
            x_base = b.select(packing_x, packed, left)
            some_rows = _least(b, b.sub(rows, i), I64(height))
            c_row = k.at(b, c, b.add(b.mul(i, cr), b.mul(j, size)))
            with counted_loop(b, I64(0), wide, k.shape.columns) as s:
                some = _least(b, b.sub(wide, s), I64(k.shape.columns))
                number = b.sdiv(s, I64(k.shape.columns))
                y_slab = k.at(b, y_base, b.mul(number, y_next))
                target = k.at(b, c_row, b.mul(s, size))
                _emit_choice(
                    k, b, tiles, some,
                    [x_base, x_row, x_step, y_slab, y_step, target, cr, deep, some_rows],
                    begins,
                )  # fmt: skip
    b.ret_void()
    return function


def _emit_choice(
    k: Vectors, b: Any, tiles: Sequence[Any], columns: Any, arguments: list[Any], begins: Any
) -> None:
    """The tile of as few vectors as hold the columns."""
    done = b.append_basic_block("stored")
    for n, tile in reversed(list(enumerate(tiles))):
        before = n * k.shape.lanes
        fits, narrower = b.append_basic_block("fits"), b.append_basic_block("narrower")
        b.cbranch(b.icmp_signed(">", columns, I64(before)), fits, narrower)
        b.position_at_end(fits)
        b.call(tile, [*arguments, b.sub(columns, I64(before)), begins])
        b.branch(done)
        b.position_at_end(narrower)
    b.branch(done)
    b.position_at_end(done)
