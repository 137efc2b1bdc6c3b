"""The loop level: what a kernel does, without saying how it is vectorized or threaded.

A :class:`Nest` is a set of perfectly nested loops around one *tape*: a list of scalar
instructions in SSA form, each recorded once (a value read twice is loaded once). Its loops are
``outer`` loops, free of dependences, and at most one ``inner`` reduction loop. What the tape
computes leaves the nest through stores; reductions turn a value of the inner loop into a value of
the outer ones.

A :class:`Schedule` is a list of steps (nests, library calls, host calls) over numbered buffers.
It is complete: the code of a plan is a function of the schedule alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..ir.dtypes import DType
from ..ir.graph import Literal, Node, Op, Value
from ..ir.records import record
from ..ir.types import GROWING
from .index import Index
from .lane_code import LaneProgram
from .routines import Routine

__all__ = [
    "Buffer",
    "Carry",
    "HostCall",
    "Instruction",
    "MatMul",
    "Nest",
    "Part",
    "Reduction",
    "Region",
    "Rows",
    "Scan",
    "Schedule",
    "ScratchRow",
    "Step",
    "Store",
    "Strided",
    "Tile",
]


FIRST_ROWS = 16  # of a tape
NO_MEMORY = "loop: no memory is left for what it records"
SHORT_TAPE = "loop: a sequence has fewer rows than the loop has iterations"


@dataclass(frozen=True, slots=True)
class Buffer:
    """``size`` elements of memory in C order.

    ``kind`` is ``input`` (position ``slot`` of the graph's inputs), ``output``, ``constant``
    (position ``slot`` among the schedule's constants) or ``temporary``. A *tape* has the leading
    extent ``GROWING``; its size is that of the first rows that are made room for.
    """

    number: int
    kind: str
    dtype: DType
    shape: tuple[int, ...]
    slot: int = -1

    @property
    def size(self) -> int:
        total = 1
        for extent in self.shape:
            total *= FIRST_ROWS if extent == GROWING else extent
        return total

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_tape(self) -> bool:
        return self.shape[:1] == (GROWING,)

    def __str__(self) -> str:
        extents = ",".join(["?" if n == GROWING else str(n) for n in self.shape])
        return f"b{self.number}: {self.dtype.short}[{extents}] {self.kind}"


@record()
class Instruction:
    """One scalar instruction; operands are numbers of earlier ones.

    ============  =================================================================
    ``kind``      meaning
    ============  =================================================================
    ``const``     ``literal``
    ``load``      element ``index`` of buffer ``buffer``; where ``guard`` is false: 0
    ``index``     the integer ``index`` itself (int64)
    ``inside``    bool: ``low <= index < high``
    ``op``        ``op`` applied to ``args``; its domain check, if it has one, applies
                  where ``guard`` is true
    ``bounds``    int64 ``args[0]`` as a position below ``high``: negative counts from the
                  end; out of range reports error ``error`` where ``guard`` is true
    ``reduced``   result of reduction number ``low`` of the nest
    ``scanned``   the running result of the nest's scan
    ============  =================================================================
    """

    kind: str
    dtype: DType
    args: tuple[int, ...] = ()
    op: Op | None = None
    params: tuple[tuple[str, Any], ...] = ()
    buffer: int = -1
    index: Index | None = None
    literal: Literal | None = None
    guard: int = -1
    low: int = 0
    high: int = 0
    error: int = -1

    def operands(self) -> tuple[int, ...]:
        """Numbers of all instructions this one reads."""
        used = self.args if self.guard < 0 else (*self.args, self.guard)
        return (*used, *self.index.dynamics()) if self.index is not None else used

    def __str__(self) -> str:
        args = ", ".join(f"%{a}" for a in self.args)
        if self.kind == "const":
            assert self.literal is not None
            text = repr(self.literal.item())
        elif self.kind == "load":
            text = f"b{self.buffer}[{self.index}]"
        elif self.kind == "index":
            text = str(self.index)
        elif self.kind == "inside":
            text = f"{self.low} <= {self.index} < {self.high}"
        elif self.kind == "bounds":
            text = f"position({args}, {self.high})"
        elif self.kind == "reduced":
            text = f"reduction {self.low}"
        elif self.kind == "scanned":
            text = "running result"
        else:
            assert self.op is not None
            extra = "".join(f", {k}={v}" for k, v in self.params)
            text = f"{self.op.name}({args}{extra})"
        return text + (f" where %{self.guard}" if self.guard >= 0 else "")


@record()
class Store:
    """``buffer[index] = %value``, once an iteration of the loops that ``value`` lives in.

    ``how`` other than ``set`` merges into what is there (``add mul min max``); where ``guard`` is
    false nothing is written.
    """

    buffer: int
    index: Index
    value: int
    how: str = "set"
    guard: int = -1


@dataclass(frozen=True, slots=True)
class Reduction:
    """``monoid`` over the inner loop of instruction ``value``, accumulated in ``accumulator``.

    Order (numerics 7), a function of the extent alone: element ``k`` of a block of 1024 goes to
    lane ``k % 16``; lanes combine as ``l`` with ``l + 8``, then 4, 2, 1; blocks combine in a
    binary tree of aligned powers of two, smallest first.
    """

    monoid: str
    value: int
    accumulator: DType
    dtype: DType


@dataclass(frozen=True, slots=True)
class Scan:
    """``y[k] = step(y[k - 1], *elements[k])`` along the last loop, in order; ``y[0]`` is the last
    element. ``op`` holds the step as its scalar program."""

    op: Op
    elements: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops ``extents``, outermost first.

    The last one is the reduction loop if ``reduces``, the loop of the recurrence if there is a
    ``scan``. In an ``ordered`` nest iterations may write the same element and run in order.

    One long reduction is two nests (:mod:`.split`): ``part`` ``"blocks"`` leaves the state of each
    block in the ``states`` buffers, ``"fold"`` merges them and goes on with the results.
    """

    extents: tuple[int, ...]
    tape: tuple[Instruction, ...]
    stores: tuple[Store, ...]
    reductions: tuple[Reduction, ...] = ()
    scan: Scan | None = None
    ordered: bool = False
    part: str = ""
    states: tuple[int, ...] = ()

    @property
    def reduces(self) -> bool:
        return bool(self.reductions)

    def text(self) -> list[str]:
        """The nest as lines of text."""
        loops = " ".join(f"i{d}<{n}" for d, n in enumerate(self.extents))
        kind = " (last loop reduces)" if self.reduces else ""
        if self.part:
            states = " ".join(f"b{b}" for b in self.states)
            kind = f" ({self.part} of a long reduction, states in {states})"
        if self.scan is not None:
            kind = f" (last loop runs {self.scan.op.name})"
        lines = [f"nest {loops}{kind}{' in order' if self.ordered else ''}"]
        for number, instruction in enumerate(self.tape):
            lines.append(f"  %{number}: {instruction.dtype.short} = {instruction}")
        for k, r in enumerate(self.reductions):
            lines.append(f"  reduction {k}: {r.monoid} of %{r.value} in {r.accumulator.short}")
        if self.scan is not None:
            elements = ", ".join(f"%{n}" for n in self.scan.elements)
            lines.append(f"  scan: {self.scan.op.name} of {elements}")
        for store in self.stores:
            sign = "=" if store.how == "set" else f"{store.how}="
            guard = f" where %{store.guard}" if store.guard >= 0 else ""
            lines.append(f"  b{store.buffer}[{store.index}] {sign} %{store.value}{guard}")
        return lines


@dataclass(frozen=True, slots=True)
class ScratchRow:
    """A buffer that exists a chunk of rows at a time: ``row_bytes`` a row, from byte ``offset`` of
    the tile's scratch."""

    buffer: int
    offset: int
    row_bytes: int


@dataclass(frozen=True, slots=True)
class Tile:
    """Nests that run in turn over chunks of ``chunk`` of their ``rows`` outer iterations."""

    nests: tuple[Nest, ...]
    rows: int
    chunk: int
    scratch: tuple[ScratchRow, ...]
    scratch_bytes: int

    def text(self) -> list[str]:
        kept = " ".join(f"b{s.buffer}" for s in self.scratch) or "nothing"
        lines = [f"tile of {self.rows} rows, {self.chunk} at a time, keeps {kept}"]
        for nest in self.nests:
            lines.extend("  " + line for line in nest.text())
        return lines


@dataclass(frozen=True, slots=True)
class Strided:
    """A matrix stack inside a buffer: offset and element strides of (batch, row, column)."""

    buffer: int
    offset: int
    strides: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class MatMul:
    """``c[b] = x[b] @ y[b]`` for ``batch`` matrices of (rows, inner) by (inner, columns)."""

    dtype: DType
    batch: int
    rows: int
    inner: int
    columns: int
    x: Strided
    y: Strided
    c: Strided

    def text(self) -> list[str]:
        return [
            f"matmul {self.dtype.short} {self.batch}x[{self.rows},{self.inner}]@"
            f"[{self.inner},{self.columns}] b{self.c.buffer} = "
            f"b{self.x.buffer}{list(self.x.strides)} @ b{self.y.buffer}{list(self.y.strides)}"
        ]


@dataclass(frozen=True, slots=True)
class HostCall:
    """One op on whole buffers by a library, or by its NumPy reference where no library has it."""

    node: Node
    arguments: tuple[int, ...]
    results: tuple[int, ...]
    reason: str

    def text(self) -> list[str]:
        args = ", ".join(f"b{a}" for a in self.arguments)
        outs = ", ".join(f"b{b}" for b in self.results)
        return [f"host {outs} = {self.node.op.name}({args})  # {self.reason}"]


@dataclass(frozen=True, slots=True)
class Part:
    """A program inside a region.

    Its temporaries lie at ``offsets`` of the region's scratch; ``links`` are pairs (buffer outside,
    buffer inside) of the same memory.
    """

    schedule: Schedule
    offsets: dict[int, int]
    links: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Carry:
    """What an iteration hands to the next one, in turns in ``result`` and at byte ``slot`` of the
    scratch; the first one reads ``initial``. ``slot`` is -1 where the body updates it in place.

    ``read`` and ``written`` are buffers of the body, ``tested`` one of the condition (or -1).
    """

    initial: int
    result: int
    slot: int
    nbytes: int
    read: int
    written: int
    tested: int = -1


@dataclass(frozen=True, slots=True)
class Rows:
    """Row ``i`` of the buffer ``outside`` is the buffer ``inside`` of iteration ``i``."""

    outside: int
    inside: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Region:
    """A ``cond``, ``loop`` or ``while`` node that runs without leaving native code.

    Attributes
    ----------
    parts : tuple of Part
        The branches; the body; the condition and the body.
    operands, results : tuple of int
        Buffers of the node.
    scratch : int
        Buffer in which the parts have their temporaries.
    count : int
        Buffer of the number of a branch or of trips; -1: there is one branch, or there are
        ``length`` trips; if that is -1 too, as many as the first sequence has rows.
    index, holds : int
        Bytes of the scratch: the number of the iteration, the value of the condition.
    trips : int
        Buffer that gets the number of trips; -1: nobody asks.
    limit : int
        Most trips; -1: no limit. Then ``errors`` are reported: too many trips, no memory for a
        tape, a tape shorter than the loop that reads it.
    """

    kind: str
    node: Node
    parts: tuple[Part, ...]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    scratch: int
    count: int = -1
    length: int = -1
    reverse: bool = False
    index: int = -1
    holds: int = -1
    trips: int = -1
    limit: int = -1
    errors: tuple[int, int, int] = (-1, -1, -1)
    carries: tuple[Carry, ...] = ()
    sequences: tuple[Rows, ...] = ()
    records: tuple[Rows, ...] = ()

    def text(self) -> list[str]:
        lines = [self._headline()]
        for c in self.carries:
            how = "in place" if c.slot < 0 else "in turns"
            lines.append(f"  carry b{c.result} from b{c.initial}: {c.read} -> {c.written}, {how}")
        lines += [f"  row of b{r.outside}: reads {r.inside}" for r in self.sequences]
        lines += [f"  row of b{r.outside}: writes {r.inside}" for r in self.records]
        for k, part in enumerate(self.parts):
            name = f"branch {k}" if self.kind == "cond" else "body"
            if self.kind == "while" and k == 0:
                name = "condition"
            links = ", ".join(f"{inside} is b{outside}" for outside, inside in part.links)
            lines.append(f"  {name}{': ' if links else ''}{links}")
            lines.extend("    " + line for line in part.schedule.text().split("\n"))
        return lines

    def _headline(self) -> str:
        outs = ", ".join(f"b{b}" for b in self.results)
        if self.kind == "cond":
            which = f"b{self.count}" if self.count >= 0 else "0"
            return f"branch {which} for {outs}"
        if self.kind == "while":
            trips = "while" if self.limit < 0 else f"while, at most {self.limit} times,"
            return f"loop {trips} for {outs}"
        trips = f"b{self.count}" if self.count >= 0 else str(self.length)
        if self.count < 0 and self.length < 0:
            return f"loop over the rows of b{self.sequences[0].outside} for {outs}"
        return f"loop {trips} times{' down' if self.reverse else ''} for {outs}"


Step = Nest | Tile | MatMul | HostCall | Region | LaneProgram | Routine


@dataclass(frozen=True, slots=True)
class Schedule:
    """Everything a back end needs: buffers, steps in order, errors that steps may report.

    Attributes
    ----------
    buffers : tuple of Buffer
        By number.
    steps : tuple of Step
    outputs : tuple of int
        Buffer of each graph output.
    constants : tuple of Literal
    errors : tuple of (class, message)
        What error number e of an instruction means; a function of the message for a class.
    reasons : dict
        Why each value that has a buffer was realized.
    places : dict
        The buffer of each of them.
    """

    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    constants: tuple[Literal, ...]
    errors: tuple[tuple[Callable[[str], Exception], str], ...]
    reasons: dict[Value, str] = field(default_factory=dict)
    places: dict[Value, int] = field(default_factory=dict)

    def text(self) -> str:
        """The schedule as text: buffers with the reason they exist, then the steps."""
        named = {b.number: str(b) for b in self.buffers}
        lines = [named[b.number] for b in self.buffers]
        for k, step in enumerate(self.steps):
            lines.append(f"step {k}:")
            lines.extend("  " + line for line in step.text())
        lines.append("return " + ", ".join(f"b{b}" for b in self.outputs))
        return "\n".join(lines)
