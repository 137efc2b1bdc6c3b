"""Recording: graph values become scalar instructions over loop variables.

``Recorder.value(v, indices)`` is the element of ``v`` at ``indices``. Elementwise ops record one
instruction; views change the indices and record nothing; values that have a buffer are loaded.
This is lowering by interpretation: fusing a producer into its consumer is asking for its element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.dtypes import DType, bool_, int64
from ..ir.errors import UnsupportedError
from ..ir.graph import Literal, Node, Op, Value
from ..ir.ops import OPS
from .index import Dynamic, Index, linearize
from .intervals import Interval, interval_of
from .loops import Instruction
from .rules import RULES, clamped, position

__all__ = ["Recorder", "is_inlined_leaf"]

Indices = tuple[Index, ...]


def is_inlined_leaf(node: Node) -> bool:
    """Leaves without memory: iota and constants that are one number throughout."""
    if node.op.name == "iota":
        return True
    return node.op.name == "constant" and node.types[0].size <= 1


class Recorder:
    """Records the tape of one nest.

    Parameters
    ----------
    buffers : mapping
        Buffer number of every value that has memory.
    inline : set of Value
        Values of this nest itself: computed here although they have a buffer.
    report : callable
        ``report(error class, message) -> number`` of an error that the tape may raise.
    strides : callable
        Element strides of a value that has a buffer.
    """

    def __init__(
        self,
        buffers: Mapping[Value, int],
        inline: set[Value],
        report: Callable[[type[Exception], str], int],
        strides: Callable[[Value], tuple[int, ...]],
    ) -> None:
        self._strides = strides
        self.tape: list[Instruction] = []
        self.intervals: list[Interval] = []  # of each instruction; (0, -1): not an integer
        self.results: list[int] = []
        self._buffers = buffers
        self._inline = inline
        self.report = report
        self._values: dict[tuple[Node, int, int, int], int] = {}
        self._places: dict[Indices, int] = {}  # a number for each indices met
        self._known_places: dict[int, tuple[Indices, int]] = {}  # the same by identity
        self._offsets: dict[tuple[int, tuple[int, ...]], Index] = {}  # by place and strides
        self._known: dict[Any, int] = {}
        self.expressions: dict[int, Index] = {}  # integers that are functions of loop variables

    def computed(self) -> set[Node]:
        """Nodes whose elements the tape computes or loads."""
        return {node for node, _, _, _ in self._values}

    def emit(self, instruction: Instruction) -> int:
        """Number of the instruction, recorded once."""
        i = instruction
        key: Any = i
        if i.kind == "op":
            key = (i.op, i.dtype, i.args, i.params, i.guard, i.error)
        found = self._known.get(key)
        return self._add(i, key) if found is None else found

    def _add(self, instruction: Instruction, key: Any) -> int:
        found = self._known[key] = len(self.tape)
        self.tape.append(instruction)
        integer = instruction.dtype.is_integer or instruction.dtype.is_bool
        self.intervals.append(interval_of(instruction, self.intervals) if integer else (0, -1))
        return found

    def value(self, v: Value, indices: Indices, guard: int = -1) -> int:
        """Number of the instruction that is element ``indices`` of ``v``.

        ``guard`` is the number of a bool instruction: where it is false the element is never
        used, and ``indices`` may lie outside.
        """
        place = self._place(indices)
        node = v.node
        key = (node, v.index, place, guard)
        found = self._values.get(key)
        if found is None:
            if v in self._buffers and v not in self._inline and not is_inlined_leaf(node):
                found = self._load(v, indices, guard, place)
            elif node.op.kind == "elementwise":
                found = self._elementwise(node, indices, guard)
            else:
                rule = RULES.get(node.op.name)
                if rule is None:
                    raise UnsupportedError(
                        f"{node.op.name}: has no loop-level rule", op=node.op.name, device="cpu"
                    )
                found = rule(self, node, indices, guard)
            self._values[key] = found
        return found

    def _place(self, indices: Indices) -> int:
        """A number for indices, the same for equal ones."""
        place = self._known_places.get(id(indices))
        if place is None or place[0] is not indices:
            number = self._places.setdefault(indices, len(self._places))
            place = self._known_places[id(indices)] = (indices, number)
        return place[1]

    def _load(self, v: Value, indices: Indices, guard: int, place: int) -> int:
        strides = self._strides(v)
        index = self._offsets.get((place, strides))
        if index is None:
            index = self._offsets[place, strides] = linearize(indices, strides)
        return self.emit(
            Instruction("load", v.dtype, buffer=self._buffers[v], index=index, guard=guard)
        )

    def _elementwise(self, node: Node, indices: Indices, guard: int) -> int:
        args = tuple([self.value(x, indices, guard) for x in node.inputs])
        op, dtype = node.op, node.types[0].dtype
        if op.name in ("alias", "stop_gradient"):
            return args[0]
        if dtype.is_integer:
            known = self._as_index(node, args)
            if known is not None:
                return self.known_integer(known, dtype)
        error = -1
        if op.check is not None and self._may_fail(op, args):
            assert op.check_error is not None
            kind, text = op.check_error
            error = self.report(kind, text)
        else:
            guard = -1
        key = (op, dtype, args, node.params, guard, error)
        found = self._known.get(key)
        if found is not None:
            return found
        made = Instruction("op", dtype, args, op, node.params, guard=guard, error=error)
        return self._add(made, key)

    def _may_fail(self, op: Op, args: tuple[int, ...]) -> bool:
        """Whether an op tests its operands at run time: integer division and integer powers."""
        if not self.tape[args[-1]].dtype.is_integer:
            return False
        low, high = self.intervals[args[-1]]
        if op.name == "pow":
            return low < 0
        return low <= 0 <= high

    def _as_index(self, node: Node, args: tuple[int, ...]) -> Index | None:
        """An integer op of loop variables and constants as an index expression, if it is one."""
        x, *rest = (self.expressions.get(a) for a in args)
        if x is None or None in rest:
            return None
        name, dtype = node.op.name, node.types[0].dtype
        result: Index | None = None
        if name == "convert":
            result = x
        elif name == "neg":
            result = x * -1
        elif len(rest) == 1 and rest[0] is not None:
            result = _combine(name, x, rest[0])
        if result is None:
            return None
        info = np.iinfo(dtype.numpy)
        low, high = result.range()
        return result if info.min <= low and high <= info.max else None

    def known_integer(self, index: Index, dtype: DType) -> int:
        """The integer ``index``, which fits its dtype."""
        if index.terms:
            number = self.emit(Instruction("index", int64, index=index))
            if dtype is not int64:
                number = self.emit(
                    Instruction(
                        "op", dtype, (number,), op=OPS["convert"], params=(("dtype", dtype),)
                    )
                )
        else:
            number = self.const(index.const, dtype)
        self.expressions[number] = index
        return number

    def const(self, value: Any, dtype: Any) -> int:
        return self.emit(Instruction("const", dtype, literal=Literal.of(value, dtype)))

    def both(self, a: int, b: int) -> int:
        """Conjunction of two guards (-1 is true)."""
        if a < 0 or b < 0:
            return max(a, b)
        return self.emit(Instruction("op", bool_, (a, b), op=OPS["and"]))

    def integer_op(self, name: str, *args: int) -> int:
        """An int64 operation or comparison."""
        dtype = bool_ if name in ("lt", "ge", "gt") else int64
        return self.emit(Instruction("op", dtype, args, op=OPS[name]))

    def select(self, condition: int, x: int, y: int) -> int:
        dtype = self.tape[x].dtype
        return self.emit(Instruction("op", dtype, (condition, x, y), op=OPS["where"]))

    def inside(self, index: Index, low: int, high: int) -> int:
        """Guard ``low <= index < high``; -1 where that is proven."""
        least, most = index.range()
        if low <= least and most < high:
            return -1
        return self.emit(Instruction("inside", bool_, index=index, low=low, high=high))

    def dynamic(self, number: int, extent: int) -> Index:
        """The run-time integer ``number``, known to lie in ``[0, extent)``, as an index."""
        known = self.expressions.get(number)
        if known is not None:
            return known
        low, high = self.intervals[number]
        low, high = max(low, 0), min(high + 1, extent)
        return Index(0, ((Dynamic(number, low, max(high, low + 1)), 1),))

    def as_int64(self, number: int) -> int:
        if self.tape[number].dtype is int64:
            return number
        known = self.expressions.get(number)
        if known is not None:
            return self.known_integer(known, int64)
        convert = OPS["convert"]
        return self.emit(
            Instruction("op", int64, (number,), op=convert, params=(("dtype", int64),))
        )

    def positions(
        self,
        node: Node,
        shape: tuple[int, ...],
        index_arrays: Sequence[Value],
        at: Indices,
        rest: Indices,
        guard: int = -1,
    ) -> tuple[Indices, int]:
        """Indices into ``shape`` of a gather or scatter, and the guard that they are inside.

        ``at`` are the loop indices of the index arrays, ``rest`` those of the axes not indexed.
        """
        axes, others = node.param("axes"), iter(rest)
        places: list[Index] = []
        inside = -1
        for axis, extent in enumerate(shape):
            if axis not in axes:
                places.append(next(others))
                continue
            number = self.as_int64(self.value(index_arrays[axes.index(axis)], at, guard))
            place, fits = position(self, node, number, axis, extent, guard)
            inside = self.both(inside, fits)
            places.append(place)
        return tuple(places), inside

    def window_start(self, start: Value, extent: int, size: int, guard: int) -> Index:
        """A run-time start: negative counts from the end, then moved so that the window fits."""
        if size == extent:
            return Index(0)
        number = self.as_int64(self.value(start, (), guard))
        if self.intervals[number][0] < 0:
            moved = self.integer_op("add", number, self.const(extent, int64))
            negative = self.integer_op("lt", number, self.const(0, int64))
            number = self.select(negative, moved, number)
        return clamped(self, number, extent - size)


def _combine(name: str, x: Index, y: Index) -> Index | None:
    """An integer op of two index expressions as one, where it stays linear or divides."""
    if name == "add":
        return x + y
    if name == "sub":
        return x + y * -1
    if name == "mul" and not (x.terms and y.terms):
        return x * y.const if not y.terms else y * x.const
    if name in ("floor_divide", "remainder") and not y.terms and y.const > 0:
        return x.divmod(y.const)[name == "remainder"]
    return None
