"""The inner pieces of a matrix product: a tile of sums in registers, and the packing of operands.

Each is a small function of its own that :mod:`.gemm` calls in its loops.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..llvm.loops import counted_loop
from ..llvm.memory import I64, POINTER
from .registers import I32, Vectors

__all__ = [
    *("DEPTH", "GROUP", "emit_pack_columns", "emit_pack_rows", "emit_pack_x", "emit_tile"),
    "pitch",
]

DEPTH = 256  # elements of the contracted axis in a block: fixed, since the order of sums follows it
GROUP = 4  # tiles below each other whose rows are packed at once: whole cache lines are read

_TILE = [POINTER, I64, I64, POINTER, I64, POINTER, I64, I64, I64, I64, I64]


def emit_tile(k: Vectors, vectors: int) -> Any:
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
    k: Vectors, b: Any, sums: Any, c: Any, c_row: Any, rows: Any, mask: Any, merge: Any
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


def emit_pack_x(k: Vectors) -> Any:
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


def emit_pack_rows(k: Vectors) -> Any:
    """``pack(to, y, step, depth, columns)``: one slab of a ``y`` that lies in rows."""
    function, b = k.function("pack_rows", _PACK_Y)
    to, y, step, depth, columns = function.args
    width = k.shape.lanes
    masks = [k.first(b, b.sub(columns, I64(v * width)), width) for v in range(k.shape.vectors)]
    with counted_loop(b, I64(0), depth) as i:
        source, target = k.at(b, y, b.mul(i, step)), k.at(b, to, b.mul(i, I64(pitch(k))))
        for v, mask in enumerate(masks):
            value = k.load(b, k.at(b, source, v * width * k.size), k.vector, mask)
            k.store(b, value, k.at(b, target, v * width * k.size))
    b.ret_void()
    return function


def pitch(k: Vectors) -> int:
    """Bytes of a row of a packed slab."""
    return k.shape.columns * k.size


def emit_pack_columns(k: Vectors) -> Any:
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
            target = k.at(b, into, b.mul(i, I64(pitch(k))))
            for r, row in enumerate(_turned(b, square)):
                k.store(b, row, k.at(b, target, r * pitch(k)))
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
