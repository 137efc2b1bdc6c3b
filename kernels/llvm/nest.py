"""Machine code of a nest: loops around a tape.

The function made for a nest is ::

    void nest(i64* buffers, i64* frame, i64 low, i64 high)

``buffers`` holds the addresses of all buffers of the plan behind one word for errors, ``frame``
the numbers of :class:`~.form.Form`. It runs iterations ``low <= i0 < high`` of the outermost
loop, so that threads can share it.

Each instruction is emitted once, in the outermost loop body that knows its operands: what does not
depend on the vector loop is computed as a scalar and spread over the lanes where it meets vectors.
The last vector of a row is the same code under a lane mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from llvmlite import ir

from ...fusion.index import Atom, Dynamic, Index, Quotient, Var
from ...fusion.loops import Instruction, Store
from ...ir.dtypes import DType, bool_, int64
from ...ir.ops import OPS
from .form import BAKED, WIDTH, Form
from .handler import LLVMHandler, Typed, llvm_type
from .loops import counted_loop
from .memory import I64, POINTER, address, load, load_lanes, load_row, store, store_lanes, store_row
from .outline import call_program, is_heavy

__all__ = ["NestEmitter", "SIGNATURE"]

SIGNATURE = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64, I64])
_LANE_NUMBERS = ir.Constant(ir.VectorType(I64, WIDTH), [I64(k) for k in range(WIDTH)])


class Scope:
    """What is known inside a loop body: values, partial index sums, the lane mask."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.values: dict[int, Any] = dict(parent.values) if parent else {}
        self.spread: dict[int, Any] = dict(parent.spread) if parent else {}
        self.sums: dict[Index, Any] = dict(parent.sums) if parent else {}
        self.atoms: dict[Atom, Typed] = dict(parent.atoms) if parent else {}
        self.mask: Any = parent.mask if parent else None


class NestEmitter:
    """Emits the function of one form; subclasses of the problem live in :mod:`.reduce`."""

    def __init__(self, module: Any, name: str, form: Form, outline: bool = False) -> None:
        self.form, self.nest = form, form.nest
        self.outline = outline  # call expensive programs instead of repeating them
        self.function = ir.Function(module, SIGNATURE, name)
        self.function.linkage = "internal"
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.buffers, self.frame, self.low, self.high = self.function.args
        self.scalar = LLVMHandler(self.builder, 1)
        self.vector = LLVMHandler(self.builder, WIDTH)
        self._integers: dict[int, Any] = {}
        self._bases = {number: self._base(k) for k, number in enumerate(form.buffers)}
        for value in form.parameters:
            self._integers[value] = self._frame_word(form.slot(value) or 0)
        self.loops_of = self._dependences()
        self.expressions = tuple(dict.fromkeys(self._expressions()))

    # -- constants of the call ------------------------------------------------------------------

    def _frame_word(self, k: int) -> Any:
        b = self.builder
        return b.load(b.gep(self.frame, [I64(k)], source_etype=I64), typ=I64)

    def _frame_literal(self, slot: int, dtype: DType) -> Typed:
        """A constant whose bits are a word of the frame."""
        b = self.builder
        word = self._frame_word(slot)
        if dtype.bits < 64:
            word = b.trunc(word, ir.IntType(dtype.bits))
        return Typed(b.bitcast(word, llvm_type(dtype, 1)) if dtype.is_floating else word, dtype)

    def _base(self, k: int) -> Any:
        """Address of local buffer ``k``; word 0 of the table is for errors."""
        b = self.builder
        number = b.add(self._frame_word(k), I64(1))
        return b.load(b.gep(self.buffers, [number], source_etype=I64), typ=I64)

    def integer(self, value: int) -> Any:
        """An integer of the schedule as an i64: a constant, or a word of the frame."""
        found = self._integers.get(value)
        if found is None:
            assert abs(value) <= BAKED, f"{value} is not a parameter of the form"
            found = self._integers[value] = I64(value)
        return found

    # -- dependences ----------------------------------------------------------------------------

    def _dependences(self) -> list[frozenset[int]]:
        """For each instruction the loops it depends on; -1 stands for the nest's reductions."""
        found: list[frozenset[int]] = []
        for i in self.nest.tape:
            loops: set[int] = {-1} if i.kind in ("reduced", "scanned") else set()
            for operand in i.operands():
                loops |= found[operand]
            if i.index is not None:
                loops |= self._loops(i.index)
            if i.kind == "reduced":
                loops |= set(range(len(self.nest.extents) - 1))
            elif i.kind == "scanned":
                loops |= set(range(len(self.nest.extents)))
            found.append(frozenset(loops))
        return found

    def _loops(self, index: Index) -> set[int]:
        loops: set[int] = set()
        for atom, _ in index.terms:
            if isinstance(atom, Var):
                loops.add(atom.axis)
            elif not isinstance(atom, Dynamic):
                loops |= self._loops(atom.numerator)
        return loops

    def _expressions(self) -> Iterator[Index]:
        for i in self.nest.tape:
            if i.index is not None:
                yield from _with_numerators(i.index)
        for s in self.nest.stores:
            yield from _with_numerators(s.index)

    def is_vector(self, number: int) -> bool:
        return self.form.vector_loop in self.loops_of[number]

    # -- loops ----------------------------------------------------------------------------------

    def loop(self, start: Any, stop: Any, step: int = 1) -> AbstractContextManager[Any]:
        """``for (i = start; i < stop; i += step)``; the body is the with block."""
        return counted_loop(self.builder, start, stop, step)

    def enter(self, scope: Scope, loop: int, i: Any) -> Scope:
        """The scope of the body of ``loop``: every index sum gets its term of that loop."""
        inner = Scope(scope)
        b = self.builder
        for expression in self.expressions:
            coefficient = 0
            for atom, c in expression.terms:
                if isinstance(atom, Var) and atom.axis == loop:
                    coefficient = c
            if not coefficient:
                continue
            term = i if coefficient == 1 else b.mul(i, self.integer(coefficient))
            known = inner.sums.get(expression)
            if known is None:
                known = self.integer(expression.const) if expression.const else None
            inner.sums[expression] = term if known is None else b.add(known, term)
        return inner

    def lane_mask(self, i: Any, stop: Any) -> Any:
        """Which lanes of the vector at ``i`` lie before ``stop``."""
        b = self.builder
        left = self.splat(Typed(b.sub(stop, i), int64))
        return b.icmp_signed("<", _LANE_NUMBERS, left.value)

    def bounds(self, loop: int) -> tuple[Any, Any]:
        """First and one-past-last iteration: the call's share of loop 0, all of the others."""
        if loop == 0:
            return self.low, self.high
        return I64(0), self.integer(self.nest.extents[loop])

    # -- index values ---------------------------------------------------------------------------

    def index_is_vector(self, index: Index) -> bool:
        v = self.form.vector_loop
        if v is None:
            return False
        for atom, _ in index.terms:
            if isinstance(atom, Var):
                if atom.axis == v:
                    return True
            elif isinstance(atom, Dynamic):
                if self.is_vector(atom.number):
                    return True
            elif self.index_is_vector(atom.numerator):
                return True
        return False

    def index_value(self, index: Index, scope: Scope) -> Typed:
        """The expression as int64: a scalar, or a vector when it varies along the lanes."""
        b = self.builder
        total = scope.sums.get(index)
        if total is None:
            total = self.integer(index.const)
        value = Typed(total, int64)
        if not self.index_is_vector(index):
            for atom, c in index.terms:
                if not isinstance(atom, Var):
                    term = self.atom_value(atom, scope).value
                    value = Typed(b.add(value.value, b.mul(term, self.integer(c))), int64)
            return value
        value = self.splat(value)
        for atom, c in index.terms:
            if isinstance(atom, Var):
                if atom.axis != self.form.vector_loop:
                    continue
                lanes = Typed(_LANE_NUMBERS, int64)
            else:
                lanes = self.as_vector(self.atom_value(atom, scope))
            if c != 1:
                factor = self.splat(Typed(self.integer(c), int64))
                lanes = self.vector.mul(lanes, factor)
            value = self.vector.add(value, lanes)
        return value

    def atom_value(self, atom: Atom, scope: Scope) -> Typed:
        found = scope.atoms.get(atom)
        if found is not None:
            return found
        if isinstance(atom, Dynamic):
            found = scope.values[atom.number]
        else:
            assert not isinstance(atom, Var)
            numerator = self.index_value(atom.numerator, scope)
            divisor = Typed(self.integer(atom.divisor), int64)
            b = self.builder
            if self.is_wide(numerator):
                divisor = self.splat(divisor)
            operation = b.udiv if isinstance(atom, Quotient) else b.urem
            found = Typed(operation(numerator.value, divisor.value), int64)
        scope.atoms[atom] = found
        return found

    # -- scalars and vectors --------------------------------------------------------------------

    @staticmethod
    def is_wide(x: Typed) -> bool:
        return isinstance(x.value.type, ir.VectorType)

    def splat(self, x: Typed) -> Typed:
        """A scalar in every lane."""
        b = self.builder
        typ = llvm_type(x.dtype, WIDTH)
        first = b.insert_element(ir.Constant(typ, ir.Undefined), x.value, I64(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), None)
        return Typed(b.shuffle_vector(first, ir.Constant(typ, ir.Undefined), zeros), x.dtype)

    def as_vector(self, x: Any) -> Any:
        if not isinstance(x, Typed):
            return tuple(self.as_vector(part) for part in x)
        return x if self.is_wide(x) else self.splat(x)

    def operand(self, number: int, wide: bool, scope: Scope) -> Any:
        value = scope.values[number]
        if not wide or self.is_vector(number):
            return value
        found = scope.spread.get(number)
        if found is None:
            found = scope.spread[number] = self.as_vector(value)
        return found

    # -- instructions ---------------------------------------------------------------------------

    def emit(self, numbers: Iterable[int], scope: Scope) -> None:
        """Emit instructions (in tape order) into the current block."""
        for number in numbers:
            scope.values[number] = self._emit_one(self.nest.tape[number], number, scope)

    def _emit_one(self, i: Instruction, number: int, scope: Scope) -> Any:
        wide = self.is_vector(number)
        h = self.vector if wide else self.scalar
        if i.kind == "const":
            assert i.literal is not None
            slot = self.form.literal_slot(number)
            if slot is not None:
                return self._frame_literal(slot, i.dtype)
            value = i.literal.item()
            if i.dtype.is_complex:
                real = i.dtype.real
                return h.const(value.real, real), h.const(value.imag, real)
            return h.const(value, i.dtype)
        if i.kind == "load":
            return self._load(i, wide, scope)
        if i.kind == "index":
            assert i.index is not None
            value = self.index_value(i.index, scope)
            return self.as_vector(value) if wide else value
        if i.kind == "inside":
            assert i.index is not None
            value = self.index_value(i.index, scope)
            bounds = [Typed(self.integer(n), int64) for n in (i.low, i.high)]
            if wide:
                value, bounds = self.as_vector(value), [self.splat(n) for n in bounds]
            return h.and_(h.ge(value, bounds[0]), h.lt(value, bounds[1]))
        args = [self.operand(a, wide, scope) for a in i.args]
        if i.kind == "bounds":
            return self._position(i, h, args[0], wide, scope)
        assert i.op is not None
        params = dict(i.params)
        if i.op.check is not None and i.error >= 0:
            bad = i.op.check(h, *args, **params)
            if bad is not None:
                self._report(i, bad, None, wide, scope)
        pairs = any(not isinstance(a, Typed) for a in args)
        if self.outline and not pairs and not i.dtype.is_complex and is_heavy(i.op):
            return call_program(h, i.op, args, params, i.dtype)
        program = i.op.complex_scalar if pairs else i.op.scalar
        return program(h, *args, **params)  # type: ignore[misc]

    def _load(self, i: Instruction, wide: bool, scope: Scope) -> Any:
        assert i.index is not None
        b, base, size = self.builder, self._bases[i.buffer], i.dtype.itemsize
        if not wide:
            offset = self.index_value(i.index, scope).value
            if i.guard >= 0:  # the element at 0 exists; it is not used
                offset = b.select(scope.values[i.guard].value, offset, I64(0))
            value = load(self.scalar, address(b, base, offset, size), i.dtype)
            return value
        mask = self._mask(i, True, scope)
        if self.contiguous(i.index):
            offset = scope.sums.get(i.index, None)
            offset = self._add_atoms(i.index, offset, scope)
            return load_row(self.vector, address(b, base, offset, size), i.dtype, mask)
        places = self._places(i.index, base, size, scope)
        return load_lanes(self.vector, places, i.dtype, mask)

    def contiguous(self, index: Index) -> bool:
        """Whether the lanes address consecutive elements."""
        assert self.form.vector_loop is not None
        if index.coefficient(self.form.vector_loop) != 1:
            return False
        return not any(self.is_vector(n) for n in index.dynamics())

    def _add_atoms(self, index: Index, total: Any, scope: Scope) -> Any:
        b = self.builder
        if total is None:
            total = self.integer(index.const)
        for atom, c in index.terms:
            if not isinstance(atom, Var):
                term = self.atom_value(atom, scope).value
                total = b.add(total, term if c == 1 else b.mul(term, self.integer(c)))
        return total

    def _places(self, index: Index, base: Any, size: int, scope: Scope) -> Any:
        b = self.builder
        offsets = self.as_vector(self.index_value(index, scope))
        if size > 1:
            offsets = self.vector.mul(offsets, self.vector.const(size, int64))
        return b.add(self.splat(Typed(base, int64)).value, offsets.value)

    def _mask(self, i: Instruction, wide: bool, scope: Scope) -> Any:
        mask = scope.mask if wide else None
        if i.guard >= 0:
            guard = self.operand(i.guard, wide, scope).value
            mask = guard if mask is None else self.builder.and_(mask, guard)
        if mask is None and wide:
            mask = self.vector.const(True, bool_).value
        return mask

    def store(self, s: Store, scope: Scope, wide: bool) -> None:
        """Carry out a store of the nest in the current block."""
        value = scope.values[s.value]
        if not wide:
            self._store_scalar(s, value, scope)
            return
        b, base = self.builder, self._bases[s.buffer]
        size = _element_size(value)
        value = self.as_vector(value)
        mask = scope.mask
        if s.guard >= 0:
            mask = b.and_(mask, self.operand(s.guard, True, scope).value)
        dtype = self._dtype_of(s)
        if self.contiguous(s.index):
            place = address(b, base, self._add_atoms(s.index, scope.sums.get(s.index), scope), size)
            if s.how != "set":
                old = load_row(self.vector, place, dtype, mask)
                value = self._merged(s.how, self.vector, old, value)
            store_row(self.vector, place, value, mask)
            return
        places = self._places(s.index, base, size, scope)
        if s.how != "set":
            old = load_lanes(self.vector, places, dtype, mask)
            value = self._merged(s.how, self.vector, old, value)
        store_lanes(self.vector, places, value, mask)

    def _store_scalar(self, s: Store, value: Any, scope: Scope) -> None:
        b, base = self.builder, self._bases[s.buffer]
        offset = self._add_atoms(s.index, scope.sums.get(s.index), scope)
        guard = nullcontext() if s.guard < 0 else b.if_then(scope.values[s.guard].value)
        with guard:
            place = address(b, base, offset, _element_size(value))
            if s.how != "set":
                old = load(self.scalar, place, self._dtype_of(s))
                value = self._merged(s.how, self.scalar, old, value)
            store(self.scalar, place, value)

    def _dtype_of(self, s: Store) -> DType:
        return self.nest.tape[s.value].dtype

    def _merged(self, how: str, h: LLVMHandler, old: Any, new: Any) -> Any:
        op = OPS[{"min": "minimum", "max": "maximum"}.get(how, how)]
        program = op.scalar if isinstance(old, Typed) else op.complex_scalar
        params = {"tie": 0.5} if how in ("min", "max") else {}
        return program(h, old, new, **params)  # type: ignore[misc]

    # -- run-time checks ------------------------------------------------------------------------

    def _position(
        self, i: Instruction, h: LLVMHandler, x: Typed, wide: bool, scope: Scope
    ) -> Typed:
        """A checked index: negative counts from the end; what is out of range is reported."""
        extent = Typed(self.integer(i.high), int64)
        if wide:
            extent = self.splat(extent)
        zero = h.const(0, int64)
        place = h.select(h.lt(x, zero), h.add(x, extent), x)
        bad = h.or_(h.lt(place, zero), h.ge(place, extent))
        self._report(i, bad, x, wide, scope)
        return h.select(bad, zero, place)

    def _report(
        self, i: Instruction, bad: Typed, value: Typed | None, wide: bool, scope: Scope
    ) -> None:
        """Write ``value << 16 | error number`` where an active element is bad."""
        b = self.builder
        flag = bad.value
        mask = self._mask(i, wide, scope)
        if mask is not None:
            flag = b.and_(flag, mask)
        lanes = None
        if wide:
            lanes = b.bitcast(flag, ir.IntType(WIDTH))
            flag = b.icmp_unsigned("!=", lanes, ir.Constant(lanes.type, 0))
        with b.if_then(flag, likely=False):
            code = self.integer(i.error + BAKED + 1)
            if value is not None:
                shown = value.value
                if wide:
                    lane = b.cttz(lanes, ir.Constant(ir.IntType(1), 0))
                    shown = b.extract_element(shown, b.zext(lane, I64))
                code = b.or_(b.shl(shown, I64(16)), code)
            word = b.load(self.buffers, typ=I64)
            b.store(code, b.inttoptr(word, POINTER))

    # -- plain loops ----------------------------------------------------------------------------

    def build(self) -> Any:
        """Emit the function of a nest without reductions."""
        order = list(range(len(self.nest.extents)))
        self.descend(order, 0, Scope(), frozenset(), self._leaf)
        self.builder.ret_void()
        return self.function

    def descend(
        self,
        order: list[int],
        position: int,
        scope: Scope,
        known: frozenset[int],
        leaf: Callable[[Scope], None],
        skip: frozenset[int] = frozenset(),
    ) -> None:
        """Emit what is known here, then the loops ``order[position:]``, then ``leaf`` inside."""
        todo = [
            n
            for n, loops in enumerate(self.loops_of)
            if n not in scope.values and n not in skip and loops <= known
        ]
        self.emit(todo, scope)
        if position == len(order):
            leaf(scope)
            return
        loop = order[position]
        start, stop = self.bounds(loop)
        vector = loop == self.form.vector_loop
        with self.loop(start, stop, WIDTH if vector else 1) as i:
            inner = self.enter(scope, loop, i)
            if vector:
                inner.mask = self.lane_mask(i, stop)
            self.descend(order, position + 1, inner, known | {loop}, leaf, skip)

    def _leaf(self, scope: Scope) -> None:
        wide = self.form.vector_loop is not None
        for s in self.nest.stores:
            self.store(s, scope, wide)


def _with_numerators(index: Index) -> Iterator[Index]:
    yield index
    for atom, _ in index.terms:
        if not isinstance(atom, (Var, Dynamic)):
            yield from _with_numerators(atom.numerator)


def _element_size(value: Any) -> int:
    """Bytes of an element in memory; a pair is a complex number."""
    if isinstance(value, Typed):
        return value.dtype.itemsize
    return 2 * int(value[0].dtype.itemsize)
