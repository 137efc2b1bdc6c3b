"""Lane programs: a region with all its values as scalars, one set of them a lane.

A :class:`LaneProgram` is the step that a small region becomes. Its code is a tree of blocks of
scalar instructions in SSA form, with loops and branches among them; numbers name values throughout
the program. It runs once for each of ``extent`` lanes. Nothing but what :class:`LaneStore` writes
and ``load`` reads touches memory: whatever passes from an iteration to the next is a scalar.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..ir.dtypes import DType
from ..ir.graph import Literal, Op
from ..ir.records import record

__all__ = ["Block", "Branches", "LaneProgram", "LaneStore", "Repeat", "Scalar", "Speller"]


@record()
class Scalar:
    """One scalar instruction; operands are numbers of others.

    ============  =================================================================
    ``kind``      meaning
    ============  =================================================================
    ``const``     ``literal``
    ``op``        ``op`` applied to ``args``, with its domain check if ``error >= 0``
    ``reduce``    the elements ``args`` merged by the reduction ``op`` in ``accumulator``,
                  in the order of numerics 7
    ``chain``     ``args`` in pairs, multiplied and added up: fused, in order, from zero
    ``load``      element ``offset + sum(args * strides) + lane * lane_stride`` of ``buffer``
    ``bounds``    int64 ``args[0]`` as a position below ``high``: negative counts from the
                  end; out of range reports ``error``
    ``lane``      the number of the lane
    ``value``     what a loop or branches define
    ============  =================================================================
    """

    kind: str
    dtype: DType
    args: tuple[int, ...] = ()
    op: Op | None = None
    params: tuple[tuple[str, Any], ...] = ()
    literal: Literal | None = None
    buffer: int = -1
    offset: int = 0
    strides: tuple[int, ...] = ()
    lane_stride: int = 0
    high: int = 0
    error: int = -1
    accumulator: DType | None = None


@record(eq=False)
class LaneStore:
    """Element ``offset + sum(args * strides) + lane * lane_stride`` of ``buffer`` is ``value``."""

    buffer: int
    offset: int
    args: tuple[int, ...]
    strides: tuple[int, ...]
    lane_stride: int
    value: int


class Block:
    """Instructions and regions in order.

    ``kind`` is ``root``, ``loop`` (run each iteration: what does not depend on it moves out),
    ``body`` (the same behind the condition of an open loop, which is the block around it) or
    ``branch``.
    """

    __slots__ = ("depth", "items", "kind", "known", "parent")

    def __init__(self, kind: str, parent: Block | None = None) -> None:
        self.kind = kind
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.items: list[int | LaneStore | Repeat | Branches] = []
        self.known: dict[Scalar, int] = {}

    def walk(self) -> Iterator[Block]:
        """This block and all inside, outer ones first."""
        stack = [self]
        while stack:
            block = stack.pop()
            yield block
            for item in block.items:
                if isinstance(item, Repeat | Branches):
                    stack.extend(item.inside())

    def chain(self) -> Iterator[Block]:
        """This block and those around it, innermost first."""
        block: Block | None = self
        while block is not None:
            yield block
            block = block.parent


@dataclass(slots=True, eq=False)
class Repeat:
    """A loop.

    Attributes
    ----------
    index : int
        The iteration number.
    carried, initial, following, results : list of int
        Each carry inside, before, at the end of the body, and after the loop.
    body : Block
    count : int or None
        Number of an int64: trips, each lane its own if ``own_trips``. None: an open loop.
    reverse : bool
        Whether iterations run from the last to the first.
    test, holds : Block, int
        Of an open loop: the condition before each iteration; the block around ``body``.
    limit, error : int
        Of an open loop: more trips than ``limit`` report ``error``; -1: no limit.
    trips : int
        Of an open loop: the number of iterations, -1 where nobody asks.
    own_trips : bool
        Whether lanes leave the loop one by one; else all at once.
    recorded : list of (int, int)
        Tapes that it writes a row each iteration, and the bytes of a row.
    replayed : list of int
        Tapes that it reads a row each iteration.
    no_memory, too_short : int
        Errors of the tapes.
    guess : int
        How many trips it is likely to make.
    """

    index: int
    carried: list[int]
    initial: list[int]
    body: Block
    following: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    count: int | None = None
    reverse: bool = False
    test: Block | None = None
    holds: int = -1
    limit: int = -1
    error: int = -1
    trips: int = -1
    own_trips: bool = False
    recorded: list[tuple[int, int]] = field(default_factory=list)
    replayed: list[int] = field(default_factory=list)
    no_memory: int = -1
    too_short: int = -1
    guess: int = 1

    def inside(self) -> list[Block]:
        """Its blocks."""
        return [self.body] if self.test is None else [self.body, self.test]


@dataclass(slots=True, eq=False)
class Branches:
    """One of several blocks by the int64 ``index``, clamped into range; all lanes take the same."""

    index: int
    blocks: list[Block]
    outcomes: list[list[int]]
    results: list[int]

    def inside(self) -> list[Block]:
        """Its blocks."""
        return self.blocks


class Speller(Protocol):
    """How the integers, buffers and constants of a program are spelled in its text."""

    def integer(self, value: int) -> str: ...
    def error(self, number: int) -> str: ...
    def buffer(self, number: int) -> str: ...
    def literal(self, number: int, literal: Literal) -> str: ...


class _Plain:
    def integer(self, value: int) -> str:
        return str(value)

    def error(self, number: int) -> str:
        return str(number)

    def buffer(self, number: int) -> str:
        return f"b{number}"

    def literal(self, number: int, literal: Literal) -> str:
        return repr(literal.item())


@dataclass(frozen=True, slots=True, eq=False)
class LaneProgram:
    """A region as one step.

    Attributes
    ----------
    name : str
        The op of the region.
    extent : int
        Number of lanes.
    lanes : bool
        Whether lanes may run side by side; else there is one.
    scalars : tuple of Scalar
    varying : tuple of bool
        Which scalars differ from lane to lane.
    tapes : frozenset of int
        Buffers that are tapes: their address is that of a header, see kernels/llvm/regions.py.
    used : frozenset of int
        Scalars that anything depends on; the others need not be computed.
    root : Block
    """

    name: str
    extent: int
    lanes: bool
    scalars: tuple[Scalar, ...]
    varying: tuple[bool, ...]
    tapes: frozenset[int]
    used: frozenset[int]
    root: Block

    def reads(self) -> set[int]:
        """Buffers it reads."""
        return {self.scalars[n].buffer for n in self.used if self.scalars[n].kind == "load"}

    def writes(self) -> set[int]:
        """Buffers it writes."""
        return {s.buffer for s in self.stores()}

    def blocks(self) -> Iterator[Block]:
        """All blocks, outer ones first."""
        return self.root.walk()

    def recorded(self) -> set[int]:
        """Tapes that it writes; lanes share their rows."""
        items = [item for block in self.blocks() for item in block.items]
        return {tape for i in items if isinstance(i, Repeat) for tape, _ in i.recorded}

    def errors(self) -> set[int]:
        """Numbers of the errors it may report."""
        found = {self.scalars[n].error for n in self.used}
        for block in self.blocks():
            for item in block.items:
                if isinstance(item, Repeat):
                    found |= {item.error, item.no_memory, item.too_short}
        return found - {-1}

    def stores(self) -> Iterator[LaneStore]:
        for block in self.blocks():
            yield from (i for i in block.items if isinstance(i, LaneStore))

    def text(self) -> list[str]:
        """The program as lines of text."""
        kind = f"{self.extent} lanes" if self.lanes else "scalars"
        return [f"{self.name} over {kind}", *self.spelled(_Plain())]

    def spelled(self, speller: Speller) -> list[str]:
        """Everything but the extent, one line an instruction."""
        return list(_block_lines(self, self.root, speller, "  "))


def _block_lines(p: LaneProgram, block: Block, s: Speller, indent: str) -> Iterator[str]:
    inner = indent + "  "
    for item in block.items:
        if isinstance(item, int):
            if item in p.used:
                yield f"{indent}%{item}: {_scalar_text(item, p.scalars[item], p.varying[item], s)}"
        elif isinstance(item, LaneStore):
            place = _place(item.offset, item.args, item.strides, item.lane_stride, s)
            yield f"{indent}{s.buffer(item.buffer)}[{place}] = %{item.value}"
        elif isinstance(item, Branches):
            yield f"{indent}{_names(item.results)} = branch %{item.index}"
            for branch, outcome in zip(item.blocks, item.outcomes, strict=True):
                yield f"{indent}of"
                yield from _block_lines(p, branch, s, inner)
                yield f"{inner}give {_names(outcome)}"
        else:
            yield from _repeat_lines(p, item, s, indent)


def _repeat_lines(p: LaneProgram, item: Repeat, s: Speller, indent: str) -> Iterator[str]:
    inner = indent + "  "
    head = f"%{item.index} reverse{int(item.reverse)} own{int(item.own_trips)}"
    if item.count is not None:
        head += f" trips %{item.count}"
    else:
        limit = "" if item.limit < 0 else f" limit {s.integer(item.limit)},{s.error(item.error)}"
        head += f" counts %{item.trips}{limit}"
    for tape, nbytes in item.recorded:
        head += f" records {s.buffer(tape)},{s.integer(nbytes)},{s.error(item.no_memory)}"
    for tape in item.replayed:
        head += f" replays {s.buffer(tape)},{s.error(item.too_short)}"
    yield f"{indent}repeat {head} carries"
    for k, number in enumerate(item.carried):
        wide = "lanes" if p.varying[number] else "all"
        yield (
            f"{inner}%{number} {p.scalars[number].dtype.short} {wide} from %{item.initial[k]} "
            f"by %{item.following[k]} to %{item.results[k]}"
        )
    if item.test is not None:
        yield from _block_lines(p, item.test, s, inner)
        yield f"{indent}while %{item.holds}"
    yield from _block_lines(p, item.body, s, inner)


def _names(numbers: Sequence[int]) -> str:
    return ", ".join(f"%{n}" for n in numbers)


def _place(
    offset: int, args: Sequence[int], strides: Sequence[int], lane_stride: int, s: Speller
) -> str:
    parts = [s.integer(offset)]
    parts += [f"{s.integer(c)}*%{a}" for a, c in zip(args, strides, strict=True)]
    if lane_stride:
        parts.append(f"{s.integer(lane_stride)}*lane")
    return " + ".join(parts)


def _scalar_text(number: int, x: Scalar, varies: bool, s: Speller) -> str:
    text = f"{x.dtype.short}{' lanes' if varies else ''} = "
    if x.kind == "const":
        assert x.literal is not None
        return text + s.literal(number, x.literal)
    if x.kind == "load":
        place = _place(x.offset, x.args, x.strides, x.lane_stride, s)
        return f"{text}{s.buffer(x.buffer)}[{place}]"
    text += x.kind if x.op is None else f"{'' if x.kind == 'op' else x.kind + ' '}{x.op.name}"
    text += f"({_names(x.args)}"
    text += "".join(f", {k}={v}" for k, v in x.params) + ")"
    if x.accumulator is not None:
        text += f" in {x.accumulator.short}"
    if x.kind == "bounds":
        text += f" below {s.integer(x.high)}"
    return text + (f" error {s.error(x.error)}" if x.error >= 0 else "")
