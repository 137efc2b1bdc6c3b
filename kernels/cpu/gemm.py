"""A matrix product of our own for float32 and float64: packed panels, and tiles in registers.

``c = x @ y`` in blocks of ``DEPTH`` along the contracted axis. Within a block an element of ``c``
is one chain of fused multiply-adds in the order of that axis, begun at zero; the sums of blocks are
added in their order. Nothing else decides about bits: not the tiles, the panels, the threads, the
layout of the operands, nor the vectors of the processor.

The shape of the loops is that of Goto and van de Geijn, "Anatomy of high-performance matrix
multiplication", ACM TOMS 34 (2008), with the roles that rows in memory suggest: vectors run along
the columns of ``c``, whose operand ``y`` is packed into slabs as wide as a tile, in the
second-level cache; elements of ``x`` are broadcast, straight from where they lie if that is near together::

    for each block of columns, for each block of the contracted axis:
        pack the block of y (DEPTH x at most SLABS tiles), unless it lies well already
        for each GROUP of tiles below each other:
            pack their rows of x, unless they lie well already
            for each tile of the group, for each slab: tile(x rows, y slab) -> c
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from llvmlite import ir

from ...fusion.loops import MatMul
from ...ir.dtypes import DType
from ..llvm.addressing import SIGNATURE
from ..llvm.handler import llvm_type
from ..llvm.loops import counted_loop
from ..llvm.memory import I64, POINTER
from ..objects import host

__all__ = [
    *("DEPTH", "ROWS_PACKED", "TURNED", "Panels", "emit_product", "has_product", "product_frame"),
    "tile_shape",
]

DEPTH = 256  # elements of the contracted axis in a block: fixed, since the order of sums follows it
SLABS = 5  # tiles side by side whose operand is packed at once: 240 KiB of it

GROUP = 4  # tiles below each other whose rows are packed at once: whole cache lines are read

# How a panel reads y: where it lies, or packed from rows or from columns. What it does with c.
IN_PLACE, ROWS_PACKED, TURNED = 0, 1, 2
SET, SUBTRACT = 0, 1

I32 = ir.IntType(32)
# Words of the frame: buffers, batch strides in bytes, strides (row, column) in bytes, sizes, panels
_BUFFERS, _BATCH, _X, _Y, _C, _SIZES, _PANELS, _MOVES, _PACKS = 0, 3, 6, 8, 10, 11, 14, 17, 20


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
    )


class _Builder:
    """What the functions of a product share: element type, tile, and the spelling of loads."""

    def __init__(self, module: Any, name: str, dtype: DType) -> None:
        self.module, self.name = module, name
        self.size = dtype.itemsize
        self.scalar = llvm_type(dtype, 1)
        self.shape = tile_shape(dtype)
        self.vector = ir.VectorType(self.scalar, self.shape.lanes)
        self.suffix = "f64" if dtype.itemsize == 8 else "f32"

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


_TILE = [POINTER, I64, I64, POINTER, I64, POINTER, I64, I64, I64, I64, I64]


def _emit_tile(k: _Builder, vectors: int) -> Any:
    """``tile(x, x row, x step, y, y step, c, c row, depth, rows, lanes, begins)``, steps in bytes.

    ``rows`` and ``lanes`` (of the last vector) tell how much of the tile there is. Rows that there
    are not repeat the last one, and are not stored.
    """
    function, b = k.function(f"tile{vectors}", _TILE)
    x, x_row, x_step, y, y_step, c, c_row, depth, rows, lanes, begins = function.args
    count, width = k.shape.rows, k.shape.lanes
    mask = k.first(b, lanes, width)
    last = b.sub(rows, I64(1))
    at_rows = []
    for r in range(count):
        row = b.select(b.icmp_signed("<", last, I64(r)), last, I64(r)) if r else I64(0)
        at_rows.append(k.at(b, x, b.mul(row, x_row)))
    fma = f"llvm.fma.v{width}{k.suffix}"
    before = b.block
    head, body, done = (b.append_basic_block(n) for n in ("head", "body", "done"))
    b.branch(head)
    b.position_at_end(head)
    i, x_at, y_at = b.phi(I64), b.phi(I64), b.phi(POINTER)
    sums = [[b.phi(k.vector) for _ in range(vectors)] for _ in range(count)]
    i.add_incoming(I64(0), before)
    x_at.add_incoming(I64(0), before)
    y_at.add_incoming(y, before)
    for row in sums:
        for total in row:
            total.add_incoming(ir.Constant(k.vector, None), before)
    b.cbranch(b.icmp_signed("<", i, depth), body, done)
    b.position_at_end(body)
    right = [
        k.load(b, k.at(b, y_at, v * width * k.size), k.vector, mask if v == vectors - 1 else None)
        for v in range(vectors)
    ]
    for place, row in zip(at_rows, sums, strict=True):
        left = k.splat(b, k.load(b, k.at(b, place, x_at), k.scalar), width)
        for factor, total in zip(right, row, strict=True):
            total.add_incoming(k.intrinsic(b, fma, k.vector, [left, factor, total]), body)
    i.add_incoming(b.add(i, I64(1)), body)
    x_at.add_incoming(b.add(x_at, x_step), body)
    y_at.add_incoming(k.at(b, y_at, y_step), body)
    b.branch(head)
    b.position_at_end(done)
    for number, merge in ((1, None), (0, b.fadd), (-1, b.fsub)):
        with b.if_then(b.icmp_signed("==", begins, I64(number))):
            _emit_result(k, b, sums, c, c_row, rows, mask, merge)
    b.ret_void()
    return function


def _emit_result(
    k: _Builder, b: Any, sums: Any, c: Any, c_row: Any, rows: Any, mask: Any, merge: Any
) -> None:
    """Store a tile row by row, merged with what is there if so."""
    for r, row in enumerate(sums):
        with b.if_then(b.icmp_signed("<", I64(r), rows)):
            place = k.at(b, c, b.mul(c_row, I64(r)))
            for v, total in enumerate(row):
                target = k.at(b, place, v * k.shape.lanes * k.size)
                used = mask if v == len(row) - 1 else None
                if merge is not None:
                    total = merge(k.load(b, target, k.vector, used), total)
                k.store(b, total, target, used)


def _emit_pack_x(k: _Builder) -> Any:
    """``pack(to, x, row stride, step, depth, rows)``: rows of up to ``GROUP`` tiles.

    Each tile's rows, element by element of the depth. Rows that there are not are left as they
    are; nobody reads them.
    """
    function, b = k.function("pack_x", [POINTER, POINTER, I64, I64, I64, I64])
    to, x, row, step, depth, rows = function.args
    count = k.shape.rows
    typ = ir.VectorType(k.scalar, count)
    masks = [k.first(b, b.sub(rows, I64(t * count)), count) for t in range(GROUP)]
    with b.if_else(b.icmp_signed("==", row, I64(k.size))) as (together, apart):
        with together, counted_loop(b, I64(0), depth) as i:
            source, target = k.at(b, x, b.mul(i, step)), k.at(b, to, b.mul(i, I64(count * k.size)))
            for t, mask in enumerate(masks):
                value = k.load(b, k.at(b, source, t * count * k.size), typ, mask)
                k.store(b, value, k.at(b, target, t * DEPTH * count * k.size))
        with apart, counted_loop(b, I64(0), rows) as r:
            tile, place = b.sdiv(r, I64(count)), b.srem(r, I64(count))
            first = b.add(b.mul(tile, I64(DEPTH * count)), place)
            with counted_loop(b, I64(0), depth) as i:
                source = k.at(b, x, b.add(b.mul(i, step), b.mul(r, row)))
                at = b.mul(b.add(first, b.mul(i, I64(count))), I64(k.size))
                b.store(b.load(source, typ=k.scalar), k.at(b, to, at))
    b.ret_void()
    return function


_PACK_Y = [POINTER, POINTER, I64, I64, I64]


def _emit_pack_rows(k: _Builder) -> Any:
    """``pack(to, y, step, depth, columns)``: one slab of a ``y`` that lies in rows."""
    function, b = k.function("pack_rows", _PACK_Y)
    to, y, step, depth, columns = function.args
    width = k.shape.lanes
    masks = [k.first(b, b.sub(columns, I64(v * width)), width) for v in range(k.shape.vectors)]
    with counted_loop(b, I64(0), depth) as i:
        source, target = k.at(b, y, b.mul(i, step)), k.at(b, to, b.mul(i, I64(_pitch(k))))
        for v, mask in enumerate(masks):
            value = k.load(b, k.at(b, source, v * width * k.size), k.vector, mask)
            k.store(b, value, k.at(b, target, v * width * k.size))
    b.ret_void()
    return function


def _pitch(k: _Builder) -> int:
    """Bytes of a row of a packed slab."""
    return k.shape.columns * k.size


def _emit_pack_columns(k: _Builder) -> Any:
    """``pack(to, y, stride, depth, columns)``: one slab of a ``y`` that lies in columns.

    Squares are turned in registers; ``DEPTH`` is a multiple of their extent, so the last one stays
    inside the slab's place.
    """
    function, b = k.function("pack_columns", _PACK_Y)
    to, y, stride, depth, columns = function.args
    width = k.shape.lanes
    last = b.sub(columns, I64(1))
    squares = b.sdiv(b.add(columns, I64(width - 1)), I64(width))
    with counted_loop(b, I64(0), squares) as v:
        places = []
        for r in range(width):
            column = b.add(b.mul(v, I64(width)), I64(r))
            column = b.select(b.icmp_signed("<", last, column), last, column)
            places.append(k.at(b, y, b.mul(column, stride)))
        into = k.at(b, to, b.mul(v, I64(width * k.size)))
        with counted_loop(b, I64(0), depth, width) as i:
            mask = k.first(b, b.sub(depth, i), width)
            moved = b.mul(i, I64(k.size))
            square = [k.load(b, k.at(b, place, moved), k.vector, mask) for place in places]
            target = k.at(b, into, b.mul(i, I64(_pitch(k))))
            for r, row in enumerate(_turned(b, square)):
                k.store(b, row, k.at(b, target, r * _pitch(k)))
    b.ret_void()
    return function


def _turned(b: Any, rows: list[Any]) -> list[Any]:
    """A square of vectors transposed, by exchanging ever larger blocks."""
    n = len(rows)
    rows = list(rows)
    step = 1
    while step < n:
        upper = [j + n - step if j & step else j for j in range(n)]
        lower = [j + n if j & step else j + step for j in range(n)]
        for i in range(n):
            if not i & step:
                first, second = rows[i], rows[i + step]
                rows[i], rows[i + step] = (
                    b.shuffle_vector(first, second, ir.Constant(ir.VectorType(I32, n), places))
                    for places in (upper, lower)
                )
        step *= 2
    return rows


class Panels(_Builder):
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


def emit_product(module: Any, name: str, dtype: DType) -> Any:
    """A step function for products of one dtype; iterations are panels, batch by batch."""
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


def _emit_panel(k: _Builder) -> Any:
    """``panel(x, y, c, strides of each, rows, depth, columns, pack x, pack y, what to do)``."""
    tiles = [_emit_tile(k, n + 1) for n in range(k.shape.vectors)]
    pack_x, pack_rows, pack_columns = _emit_pack_x(k), _emit_pack_rows(k), _emit_pack_columns(k)
    function, b = k.function("panel", [POINTER] * 3 + [I64] * 11)
    x, y, c, xr, xc, yr, yc, cr, rows, inner, columns, packs_x, packs_y, how = function.args
    slab = DEPTH * _pitch(k)
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
    y_step = b.select(packing_y, I64(_pitch(k)), yr)
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
    k: _Builder, b: Any, tiles: Sequence[Any], columns: Any, arguments: list[Any], begins: Any
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
