"""Triangular systems and Cholesky factors by blocks, for float32 and float64.

What is far from the diagonal is matrix products (:mod:`.gemm`), and they are nearly all of the
work. Small systems on the diagonal are solved by substitution; small factors are the library's.

The routines here are called like Fortran's: every argument is an address (:mod:`.routines`).
Matrices lie in rows; the library sees them transposed.

    solve:   for each block of ROWS, top down if the matrix is lower:
                 X[block] = D^-1 B[block];  B[others] -= A[others, block] X[block]
    factor:  for each block of COLUMNS, left to right:
                 A[below, block] -= L[below, left] L[block, left]';  the diagonal;  what is below it
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir

from ...ir.dtypes import as_dtype
from ..llvm.calls import call_address
from ..llvm.loops import counted_loop
from ..llvm.memory import I64, POINTER
from ..machine import compile_entry
from .gemm import ROWS_PACKED, TURNED, Panels

__all__ = ["block_routine"]

# Rows of a block: its depth makes products worth it, and the share of the diagonal small.
ROWS, COLUMNS = 32, 64
WIDE = 6  # vectors of right sides at a time: as many chains of multiply-adds
_I8, _I32 = ir.IntType(8), ir.IntType(32)


@cache
def block_routine(name: str, dtype: str) -> int:
    """The address of ``solve`` or ``factor`` for a dtype.

    ``solve(form, n, a, b, sides, width)``: in place, ``width`` columns of ``b``, which has
    ``sides``. ``form`` are three bytes: whether ``a`` is to be transposed, whether its diagonal is
    not read but one, and whether rows are solved downwards.
    ``factor(potrf, trsm, n, a, info)``: the lower factor in place; the other triangle is spoiled.
    """
    emit = {"solve": _emit_solve, "factor": _emit_factor}[name]

    def entry(module: Any, b: Any, values: Any) -> Any:
        return b.ptrtoint(emit(module, dtype), I64)

    return int(compile_entry(f"blocks {name} {dtype}", "i", entry).call(0))


class _Routine:
    """A routine being emitted: its arguments, and what both have in common."""

    def __init__(self, module: Any, name: str, dtype: str, arity: int) -> None:
        self.panels = Panels(module, name, as_dtype(dtype))
        self.size = self.panels.size
        self.real = self.panels.scalar
        self.function, self.b = self.panels.function("run", [POINTER] * arity)
        self.at = self.panels.at
        self.one = self.place(ir.Constant(self.real, 1.0))

    def place(self, value: Any) -> Any:
        """Memory that holds a value."""
        slot = self.b.alloca(value.type)
        self.b.store(value, slot)
        return slot

    def word(self, pointer: Any, typ: Any = I64, number: int = 0) -> Any:
        at = self.b.gep(pointer, [I64(number)], source_etype=typ)
        return self.b.load(at, typ=typ)

    def small(self, value: Any) -> Any:
        """Memory that holds a number as Fortran's integer."""
        return self.place(self.b.trunc(value, _I32))

    def letter(self, c: str) -> Any:
        return self.place(_I8(ord(c)))

    def least(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.icmp_signed("<", x, y), x, y)


def _emit_solve(module: Any, dtype: str) -> Any:
    r = _Routine(module, "solve", dtype, 6)
    small = _emit_substitution(r)
    b = r.b
    form, n_at, a, right, sides_at, width_at = r.function.args
    n, sides, width = (b.sext(r.word(p, _I32), I64) for p in (n_at, sides_at, width_at))
    turned, unit, down = (b.icmp_signed("!=", r.word(form, _I8, k), _I8(0)) for k in range(3))
    size, row = I64(r.size), b.mul(n, I64(r.size))
    # The strides of op(A). Its rows are read where they lie, if they lie in rows.
    x_row, x_column = b.select(turned, size, row), b.select(turned, row, size)
    packs = b.zext(turned, I64)
    pitch = b.mul(sides, size)
    blocks = b.sdiv(b.add(n, I64(ROWS - 1)), I64(ROWS))
    with counted_loop(b, I64(0), blocks) as turn:
        block = b.select(down, turn, b.sub(b.sub(blocks, I64(1)), turn))
        first = b.mul(block, I64(ROWS))
        height = r.least(I64(ROWS), b.sub(n, first))
        corner = r.at(b, a, b.add(b.mul(first, row), b.mul(first, size)))
        here = r.at(b, right, b.mul(first, pitch))
        b.call(small, [corner, x_row, x_column, here, pitch, height, width, unit, down])
        after = b.add(first, height)
        start = b.select(down, after, I64(0))
        rest = b.select(down, b.sub(n, after), first)
        with b.if_then(b.icmp_signed(">", rest, I64(0))):
            left = r.at(b, a, b.add(b.mul(start, x_row), b.mul(first, x_column)))
            target = r.at(b, right, b.mul(start, pitch))
            r.panels.subtract(
                b, left, here, target, (x_row, x_column), (pitch, size), pitch,
                (rest, height, width), packs, I64(ROWS_PACKED),
            )  # fmt: skip
    b.ret_void()
    return r.function


def _emit_substitution(r: _Routine) -> Any:
    """``small(a, row, column, b, pitch, height, width, unit, down)``: a system in place.

    Row by row: from each the multiples of those solved before, in their order, each by one fused
    multiply-add; then the quotient by the diagonal.
    """
    k, flag = r.panels, ir.IntType(1)
    function, b = k.function("small", [POINTER, I64, I64, POINTER, I64, I64, I64, flag, flag])
    a, a_row, a_column, right, pitch, height, width, unit, down = function.args
    lanes, last = k.shape.lanes, b.sub(height, I64(1))
    fma = f"llvm.fma.v{lanes}{k.suffix}"

    def place(turn: Any) -> Any:
        return b.select(down, turn, b.sub(last, turn))

    with counted_loop(b, I64(0), width, WIDE * lanes) as first:
        left = b.sub(width, first)
        masks = [k.first(b, b.sub(left, I64(v * lanes)), lanes) for v in range(WIDE)]
        columns = k.at(b, right, b.mul(first, I64(k.size)))

        def vectors(row: Any, columns: Any = columns) -> list[Any]:
            start = k.at(b, columns, b.mul(row, pitch))
            return [k.at(b, start, v * lanes * k.size) for v in range(WIDE)]

        with counted_loop(b, I64(0), height) as turn:
            row = place(turn)
            entries, targets = k.at(b, a, b.mul(row, a_row)), vectors(row)
            given = [k.load(b, p, k.vector, m) for p, m in zip(targets, masks, strict=True)]
            before = b.block
            head, body, done = (b.append_basic_block(n) for n in ("head", "body", "solved"))
            b.branch(head)
            b.position_at_end(head)
            step = b.phi(I64)
            step.add_incoming(I64(0), before)
            sums = [b.phi(k.vector) for _ in range(WIDE)]
            for total, value in zip(sums, given, strict=True):
                total.add_incoming(value, before)
            b.cbranch(b.icmp_signed("<", step, turn), body, done)
            b.position_at_end(body)
            other = place(step)
            entry = k.load(b, k.at(b, entries, b.mul(other, a_column)), k.scalar)
            factor = k.splat(b, b.fneg(entry), lanes)
            for total, source, mask in zip(sums, vectors(other), masks, strict=True):
                solved = k.load(b, source, k.vector, mask)
                total.add_incoming(k.intrinsic(b, fma, k.vector, [factor, solved, total]), body)
            step.add_incoming(b.add(step, I64(1)), body)
            b.branch(head)
            b.position_at_end(done)
            with b.if_else(unit) as (plain, divided):
                with plain:
                    for total, target, mask in zip(sums, targets, masks, strict=True):
                        k.store(b, total, target, mask)
                with divided:
                    pivot = k.load(b, k.at(b, entries, b.mul(row, a_column)), k.scalar)
                    pivot = k.splat(b, pivot, lanes)
                    for total, target, mask in zip(sums, targets, masks, strict=True):
                        k.store(b, b.fdiv(total, pivot), target, mask)
    b.ret_void()
    return function


def _emit_factor(module: Any, dtype: str) -> Any:
    r = _Routine(module, "factor", dtype, 5)
    b = r.b
    potrf, trsm, n_at, a, info = r.function.args
    n = b.sext(r.word(n_at, _I32), I64)
    size, row = I64(r.size), b.mul(n, I64(r.size))
    factor, solve = r.word(potrf), r.word(trsm)
    upper, left_side, turned, plain = (r.letter(c) for c in "ULTN")
    height_slot, rest_slot = b.alloca(_I32), b.alloca(_I32)
    b.store(_I32(0), info)
    blocks = b.sdiv(b.add(n, I64(COLUMNS - 1)), I64(COLUMNS))
    with counted_loop(b, I64(0), blocks) as block:
        good = b.icmp_signed("==", b.load(info, typ=_I32), _I32(0))
        with b.if_then(good):
            first = b.mul(block, I64(COLUMNS))
            height = r.least(I64(COLUMNS), b.sub(n, first))
            b.store(b.trunc(height, _I32), height_slot)
            rows = r.at(b, a, b.mul(first, row))
            corner = r.at(b, rows, b.mul(first, size))
            with b.if_then(b.icmp_signed(">", first, I64(0))):
                r.panels.subtract(
                    b, rows, rows, corner, (row, size), (size, row), row,
                    (b.sub(n, first), first, height), I64(0), I64(TURNED),
                )  # fmt: skip
            call_address(b, factor, [upper, height_slot, corner, n_at, info])
            found = b.load(info, typ=_I32)
            wrong = b.icmp_signed("!=", found, _I32(0))
            with b.if_then(wrong):
                b.store(b.add(found, b.trunc(first, _I32)), info)
            after = b.add(first, height)
            rest = b.sub(n, after)
            more = b.and_(b.not_(wrong), b.icmp_signed(">", rest, I64(0)))
            with b.if_then(more):
                b.store(b.trunc(rest, _I32), rest_slot)
                below = r.at(b, a, b.add(b.mul(after, row), b.mul(first, size)))
                call_address(
                    b, solve,
                    [left_side, upper, turned, plain, height_slot, rest_slot, r.one, corner, n_at,
                     below, n_at],
                )  # fmt: skip
    b.ret_void()
    return r.function
