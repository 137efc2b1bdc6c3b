"""Steps that call LAPACK and BLAS for small matrices, a call for each matrix of a batch.

What :mod:`.lapack` does from the host for one matrix, in the same calls; see there for how arrays
in C order look to Fortran.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from ...fusion.routines import Routine
from ...ir.dtypes import DType
from ..llvm.calls import call_address
from ..llvm.context import Words
from ..llvm.entry import c_function
from ..llvm.frame import BAKED
from ..llvm.frame_code import SIGNATURE
from ..llvm.loops import counted_loop
from ..llvm.memory import I32, I64, POINTER
from .openblas import routine_address
from .registers import has_product

__all__ = ["RoutineForm", "emit_routine", "routine_form"]

_PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_I8 = ir.IntType(8)
# Words of the frame: matrices, operand to copy, result, rows, right sides, address, error word.
_A, _B, _OUT, _ROWS, _SIDES, _ADDRESS, _ERROR = range(7)


@dataclass(frozen=True, slots=True)
class RoutineForm:
    """The code of a step and its frame; ``letters`` are Fortran's options."""

    name: str
    dtype: DType
    letters: str
    conjugates: bool
    unit_diagonal: bool
    check: bool
    buffers: tuple[int, ...]
    parameters: tuple[int, ...]

    @property
    def key(self) -> str:
        return (
            f"routine {self.name} {self.dtype} {self.letters!r} conjugates {self.conjugates} "
            f"unit {self.unit_diagonal} check {self.check}"
        )

    @property
    def frame(self) -> tuple[int, ...]:
        return (*self.buffers, *self.parameters)

    @staticmethod
    def ops() -> tuple[Any, ...]:
        """Ops of which scalar programs are emitted: none."""
        return ()


def routine_form(step: Routine, error: int) -> RoutineForm:
    """The form of a step; ``error`` is the number of its error in the plan."""
    from .blocks import block_routine  # which compiles its own code: not while this is imported

    dtype, params = step.node.types[0].dtype, dict(step.node.params)
    turned, unit = False, True
    if step.node.op.name == "cholesky":
        name, letters = "potrf", "U"
    else:
        lower, transpose = params["lower"], params["transpose"]
        unit = params["unit_diagonal"]
        turned = params["conjugate"] and dtype.is_complex
        triangle, diagonal = "U" if lower else "L", "U" if unit else "N"
        if step.sides == 1:
            name, letters = "trsv", triangle + ("N" if transpose else "T") + diagonal
        elif has_product(dtype):
            name = "solve"
            letters = "".join(chr(flag) for flag in (transpose, unit, lower != transpose))
        else:
            name, letters = "trsm", "R" + triangle + ("T" if transpose else "N") + diagonal
    if name == "solve":
        address = block_routine(name, dtype.name)
    else:
        address = routine_address(_PREFIX[dtype.name] + name)
    return RoutineForm(
        name,
        dtype,
        letters,
        turned,
        unit,
        params["check"],
        (step.arguments[0], step.arguments[-1], step.result),
        (step.rows, step.sides, address, error + BAKED + 1),
    )


class _Emitter:
    def __init__(self, module: Any, name: str, form: RoutineForm) -> None:
        self.form = form
        self.function = ir.Function(module, SIGNATURE, name)
        self.function.linkage = "internal"
        buffers, frame, self.low, self.high = self.function.args
        self.b = b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.table, self.words = Words(b, buffers), Words(b, frame)
        self.size = form.dtype.itemsize
        self.real = ir.DoubleType() if form.dtype.real.itemsize == 8 else ir.FloatType()
        self.parts = 2 if form.dtype.is_complex else 1
        self.rows, self.sides = self.words[_ROWS], self.words[_SIDES]
        options = b.alloca(_I8, size=I64(len(form.letters)))
        self.letters = [
            b.gep(options, [I64(k)], source_etype=_I8) for k in range(len(form.letters))
        ]
        for c, place in zip(form.letters, self.letters, strict=True):
            b.store(_I8(ord(c)), place)
        self.n = self._kept(b.trunc(self.rows, I32), I32)
        self.m = self._kept(b.trunc(self.sides, I32), I32)
        self.one = b.alloca(self.real, size=I64(2))
        for k, value in enumerate((1.0, 0.0)):
            place = b.gep(self.one, [I64(k)], source_etype=self.real)
            b.store(ir.Constant(self.real, value), place)
        self.one_integer = self._kept(I32(1), I32)
        self.info = self._kept(I32(0), I32)
        self.wrong = b.alloca(I64)  # -1, or the pivot that is no good

    def _kept(self, value: Any, kind: Any) -> Any:
        slot = self.b.alloca(kind)
        self.b.store(value, slot)
        return slot

    def _base(self, word: int) -> Any:
        return self.table[self.b.add(self.words[word], I64(1))]

    def _pointer(self, address: Any) -> Any:
        return self.b.inttoptr(address, POINTER)

    def build(self) -> Any:
        b = self.b
        matrix = b.mul(b.mul(self.rows, self.rows), I64(self.size))
        solves = self.form.name != "potrf"
        moved = b.mul(b.mul(self.rows, self.sides), I64(self.size)) if solves else matrix
        bases = [self._base(word) for word in (_A, _B, _OUT)]
        copy = c_function(b.module, "memcpy", POINTER, POINTER, POINTER, I64)
        with counted_loop(b, self.low, self.high) as k:
            a = b.add(bases[0], b.mul(matrix, k))
            source = self._pointer(b.add(bases[1], b.mul(moved, k)))
            out = b.add(bases[2], b.mul(moved, k))
            b.store(I64(-1), self.wrong)
            b.call(copy, [self._pointer(out), source, moved])
            if solves:
                self._solve(a, out, moved)
            else:
                self._factor(out)
            pivot = b.load(self.wrong, typ=I64)
            with b.if_then(b.icmp_signed(">=", pivot, I64(0)), likely=False):
                self._bad(k, pivot, out, moved)
        b.ret_void()
        return self.function

    def _factor(self, out: Any) -> None:
        b = self.b
        place = self._pointer(out)
        operands = [self.letters[0], self.n, place, self.n, self.info]
        call_address(b, self.words[_ADDRESS], operands)
        self._look_at_pivots(out, zero_is_wrong=False)
        info = b.sext(b.load(self.info, typ=I32), I64)
        with b.if_then(b.icmp_signed(">", info, I64(0)), likely=False):
            b.store(b.sub(info, I64(1)), self.wrong)
        clear = c_function(b.module, "memset", POINTER, POINTER, I32, I64)
        with counted_loop(b, I64(0), self.rows) as i:
            above = b.sub(b.sub(self.rows, i), I64(1))
            first = b.add(b.add(b.mul(i, self.rows), i), I64(1))
            start = self._pointer(b.add(out, b.mul(first, I64(self.size))))
            b.call(clear, [start, I32(0), b.mul(above, I64(self.size))])

    def _solve(self, a: Any, out: Any, moved: Any) -> None:
        b, form = self.b, self.form
        if not form.unit_diagonal:
            self._look_at_pivots(a, zero_is_wrong=True)
        if form.conjugates:
            self._conjugate(out, moved)
        matrix, x = self._pointer(a), self._pointer(out)
        if form.name == "trsv":
            operands = [*self.letters, self.n, matrix, self.n, x, self.one_integer]
        elif form.name == "solve":  # its options are bytes one behind the other
            operands = [self.letters[0], self.n, matrix, x, self.m, self.m]
        else:
            operands = [*self.letters, self.m, self.n, self.one, matrix, self.n, x, self.m]
        call_address(b, self.words[_ADDRESS], operands)
        if form.conjugates:
            self._conjugate(out, moved)

    def _look_at_pivots(self, matrix: Any, zero_is_wrong: bool) -> None:
        """Note the first element of the diagonal that is not finite, or zero."""
        b = self.b
        across = b.mul(b.add(self.rows, I64(1)), I64(self.size))
        with counted_loop(b, I64(0), self.rows) as i:
            place = self._pointer(b.add(matrix, b.mul(i, across)))
            numbers = [
                b.load(b.gep(place, [I64(k)], source_etype=self.real), typ=self.real)
                for k in range(self.parts)
            ]
            bad, zero = ir.IntType(1)(0), ir.IntType(1)(1)
            for x in numbers:
                bad = b.or_(bad, b.fcmp_unordered("uno", x, b.fsub(x, x)))
                zero = b.and_(zero, b.fcmp_ordered("==", x, ir.Constant(self.real, 0.0)))
            if zero_is_wrong:
                bad = b.or_(bad, zero)
            unseen = b.icmp_signed("<", b.load(self.wrong, typ=I64), I64(0))
            with b.if_then(b.and_(bad, unseen), likely=False):
                b.store(i, self.wrong)

    def _conjugate(self, out: Any, moved: Any) -> None:
        b = self.b
        place = self._pointer(out)
        with counted_loop(b, I64(0), b.sdiv(moved, I64(self.size))) as k:
            at = b.gep(place, [b.add(b.mul(k, I64(2)), I64(1))], source_etype=self.real)
            b.store(b.fneg(b.load(at, typ=self.real)), at)

    def _bad(self, k: Any, pivot: Any, out: Any, moved: Any) -> None:
        """Report the first bad matrix, or fill its result with NaN."""
        b = self.b
        if not self.form.check:
            place = self._pointer(out)
            parts = [ir.Constant(self.real, x) for x in (float("nan"), 0.0)[: self.parts]]
            with counted_loop(b, I64(0), b.sdiv(moved, I64(self.size))) as j:
                first = b.mul(j, I64(self.parts))
                for part, value in enumerate(parts):
                    at = b.add(first, I64(part))
                    b.store(value, b.gep(place, [at], source_etype=self.real))
            return
        word = Words(b, self.table[0])
        with b.if_then(b.icmp_signed("==", word[0], I64(0))):
            value = b.add(b.mul(k, self.rows), pivot)
            word[0] = b.or_(b.shl(value, I64(16)), self.words[_ERROR])


def emit_routine(module: Any, name: str, form: RoutineForm) -> Any:
    """The function of a step; iterations are matrices."""
    return _Emitter(module, name, form).build()
