"""Nested schedules as one numbering of buffers, steps, functions and errors: the table of a plan.

The programs inside a region get numbers behind those outside, their temporaries places inside the
scratch of the region. What the driver does with it is told in :mod:`.llvm.driver`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from ..fusion.lane_code import LaneProgram
from ..fusion.loops import (
    Buffer,
    HostCall,
    MatMul,
    Nest,
    Part,
    Region,
    Rows,
    Schedule,
    Step,
    Tile,
)
from ..fusion.memory import MemoryPlan
from ..fusion.routines import Routine
from ..ir.dtypes import bool_
from ..ir.graph import Literal
from .cpu.blas import calls_blas, matmul_frame, product_key
from .cpu.routine_steps import RoutineForm, routine_form
from .functions import Function
from .llvm.driver import BRANCHES, HEADER, ITERATION, STEP_WORDS
from .llvm.form import Form, form_of
from .llvm.frame import BAKED
from .llvm.interrupt import LOOK_EVERY
from .llvm.lanes_form import LaneForm, lane_form
from .llvm.regions import LOOP_WORDS, TAPE_WORDS, emit_regions
from .machine import compile_entry
from .work import extent_and_pieces, work_of

__all__ = ["Flat"]

Errors = list[tuple[Callable[[str], Exception], str]]

_LINE = 64  # bytes
_TICK = 200.0  # nanoseconds of a unit of work as a watch counts it


@cache
def region_code() -> tuple[int, int]:
    """Addresses of the functions for loops and for branches, which all plans share."""

    def emit(module: Any, builder: Any, values: Sequence[Any]) -> Any:
        return emit_regions(module, builder, values[0])

    code = compile_entry("regions", "i", emit)
    return code.call(0), code.call(1)


@dataclass(slots=True)
class _Row:
    """A native step: its calls (function, frame), or the words of its region."""

    step: Step
    shift: int  # of its buffers' numbers
    calls: list[tuple[int, tuple[int, ...]]]
    words: list[int]


class Flat:
    """A schedule with all that its regions hold.

    Attributes
    ----------
    buffers : list of Buffer
        By number; those of the schedule itself first.
    constants : list of (int, Literal)
        Buffers with constant data.
    functions : list
        Forms of nests, dtypes of matrix products.
    errors : list of (class, message)
        What error number e means.
    segments : list
        Runs of native steps as (first, last), calls of the host as themselves.
    size : int
        Bytes of the arena.
    tapes : dict
        Place in the arena of the header of each tape; ``tapes_at`` is that of the first one.
    has_regions, uses_blas : bool
    """

    def __init__(self, schedule: Schedule, memory: MemoryPlan) -> None:
        self.buffers: list[Buffer] = []
        self.constants: list[tuple[int, Literal]] = []
        self.functions: list[Function] = []
        self.errors: Errors = []
        self.tapes: dict[int, int] = {}
        self.has_regions = self.uses_blas = False
        self._numbers: dict[Any, int] = {}
        self._rows: list[_Row | None] = []
        self._offsets: dict[int, int] = {}
        self._error_numbers: dict[tuple[Callable[[str], Exception], str], int] = {}
        self.tapes_at = -(-memory.size // _LINE) * _LINE
        native = [s for s in schedule.steps if not isinstance(s, HostCall)]
        self._add(schedule, memory.offsets, 0, native)
        self.segments = list(_segments(schedule.steps))
        self.size = self.tapes_at + 8 * TAPE_WORDS * len(self.tapes) if self.tapes else memory.size

    # -- numbering ------------------------------------------------------------------------------

    def _add(
        self, schedule: Schedule, offsets: dict[int, int], base: int, steps: Sequence[Step]
    ) -> tuple[int, int]:
        """Number a schedule whose temporaries lie at ``offsets`` from ``base``: number of its
        first buffer and place of its first step."""
        shift, first = len(self.buffers), len(self._rows)
        for b in schedule.buffers:
            number = shift + b.number
            self.buffers.append(b)
            if b.kind == "constant":
                self.constants.append((number, schedule.constants[b.slot]))
            elif b.is_tape and (b.kind == "temporary" or not shift):
                place = self.tapes_at + 8 * TAPE_WORDS * len(self.tapes)
                self.tapes[number] = self._offsets[number] = place
            elif b.number in offsets:
                self._offsets[number] = base + offsets[b.number]
        self._rows += [None] * len(steps)
        for k, step in enumerate(steps):
            self._rows[first + k] = self._row(step, shift, schedule)
        return shift, first

    def _row(self, step: Step, shift: int, schedule: Schedule) -> _Row:
        if isinstance(step, Region):
            self.has_regions = True
            return _Row(step, shift, [], self._region(step, shift, schedule))
        if isinstance(step, MatMul):
            self.uses_blas |= calls_blas(step.dtype)
            frame = matmul_frame(step)
            moved = (*(n + shift for n in frame[:3]), *frame[3:])
            key = product_key(step)
            return _Row(step, shift, [(self._function(key, key), moved)], [])
        if isinstance(step, LaneProgram):
            self.has_regions |= bool(step.tapes)
            program = lane_form(step, lambda e: self._error(e, schedule))
            return _Row(step, shift, [self._call(program, shift)], [])
        if isinstance(step, Routine):
            self.uses_blas = True
            error = self._error(step.error, schedule) if step.error >= 0 else 0
            return _Row(step, shift, [self._call(routine_form(step, error), shift)], [])
        nests = step.nests if isinstance(step, Tile) else (step,)
        calls = []
        for nest in nests:
            assert isinstance(nest, Nest)
            calls.append(
                self._call(form_of(self._with_own_errors(nest, schedule), shift > 0), shift)
            )
        return _Row(step, shift, calls, [])

    def _call(self, form: Form | LaneForm | RoutineForm, shift: int) -> tuple[int, tuple[int, ...]]:
        """The number of a function and the frame of its call."""
        moved = (*(n + shift for n in form.buffers), *form.frame[len(form.buffers) :])
        return self._function(form.key, form), moved

    def _function(self, key: Any, function: Function) -> int:
        """Nests of one form share a function."""
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.functions)
            self.functions.append(function)
        return found

    def _error(self, number: int, schedule: Schedule) -> int:
        entry = schedule.errors[number]
        found = self._error_numbers.get(entry)
        if found is None:
            found = self._error_numbers[entry] = len(self.errors)
            self.errors.append(entry)
        return found

    def _with_own_errors(self, nest: Nest, schedule: Schedule) -> Nest:
        if all(i.error < 0 for i in nest.tape):
            return nest
        tape = [
            i if i.error < 0 else replace(i, error=self._error(i.error, schedule))
            for i in nest.tape
        ]
        return replace(nest, tape=tuple(tape))

    # -- regions --------------------------------------------------------------------------------

    def _place(self, offset: int) -> int:
        """Number of a buffer that is nothing but a place in the arena."""
        number = len(self.buffers)
        self.buffers.append(Buffer(number, "place", bool_, ()))
        self._offsets[number] = offset
        return number

    def _part(self, part: Part, base: int) -> tuple[int, int, int]:
        """First step, step after the last and first buffer of a program of a region."""
        steps = part.schedule.steps
        shift, first = self._add(part.schedule, part.offsets, base, steps)
        return first, first + len(steps), shift

    def _region(self, region: Region, shift: int, schedule: Schedule) -> list[int]:
        base = self._offsets[shift + region.scratch]
        parts = [self._part(part, base) for part in region.parts]
        links = [
            [
                number
                for outside, inside in part.links
                for number in (shift + outside, inner + inside)
            ]
            for part, (_, _, inner) in zip(region.parts, parts, strict=True)
        ]
        if region.kind == "cond":
            return self._branches(region, shift, parts, links)
        return self._loop(region, shift, schedule, parts, links, base)

    @staticmethod
    def _branches(
        region: Region,
        shift: int,
        parts: Sequence[tuple[int, int, int]],
        links: Sequence[list[int]],
    ) -> list[int]:
        number = shift + region.count if region.count >= 0 else -1
        words = [number, 3, len(parts)]
        at = len(words) + 4 * len(parts)
        for (first, last, _), link in zip(parts, links, strict=True):
            words += [first, last, at, len(link) // 2]
            at += len(link)
        for link in links:
            words += link
        return words

    def _loop(
        self,
        region: Region,
        shift: int,
        schedule: Schedule,
        parts: Sequence[tuple[int, int, int]],
        links: Sequence[list[int]],
        base: int,
    ) -> list[int]:
        body_first, body_last, body = parts[-1]
        tested_first, tested_last, tested = parts[0]
        condition = len(parts) > 1
        self._offsets[body] = base + region.index  # the number of the iteration is input 0
        holds = -1
        if condition:
            holds = tested + region.parts[0].schedule.outputs[0]
            self._offsets[holds] = base + region.holds
        carries: list[int] = []
        for c in region.carries:
            result = shift + c.result
            other = result if c.slot < 0 else self._place(base + c.slot)
            again = body + c.read if c.tested < 0 else tested + c.tested
            carries += [shift + c.initial, result, other, c.nbytes]
            carries += [body + c.read, body + c.written, again]
        words = [tested_first, tested_last, int(condition), body_first, body_last]
        words += [region.length, shift + region.count if region.count >= 0 else -1]
        words += [int(region.reverse), body, holds]
        words += [shift + region.trips if region.trips >= 0 else -1, region.limit]
        words += [self._error(e, schedule) + BAKED + 1 if e >= 0 else 0 for e in region.errors]
        lists = [
            ([n for link in links[-1:] for n in link], 2),
            (carries, 7),
            (self._rows_of(region.sequences, shift, body), 4),
            (self._rows_of(region.records, shift, body), 4),
        ]
        if condition:
            lists[0] = ([*links[0], *links[1]], 2)
        at = LOOP_WORDS
        for numbers, size in lists:
            words += [at, len(numbers) // size]
            at += len(numbers)
        for numbers, _ in lists:
            words += numbers
        return words

    def _rows_of(self, rows: Sequence[Rows], shift: int, body: int) -> list[int]:
        words = []
        for r in rows:
            tape = int(self.buffers[shift + r.outside].is_tape)
            words += [shift + r.outside, body + r.inside, r.nbytes, tape]
        return words

    # -- the table ------------------------------------------------------------------------------

    def table(self, threads: int, array_of: dict[int, int], control: tuple[int, int]) -> list[int]:
        """The table of a call, see :mod:`.llvm.driver`.

        ``array_of`` are numbers of arrays by buffer, ``control`` the addresses that ask for and
        set the threads of BLAS.
        """
        sources = []
        for number in range(len(self.buffers)):
            if number in self.tapes:
                sources.append(self.tapes[number])
            elif number in array_of:
                sources.append(-1 - array_of[number])
            else:
                sources.append(self._offsets.get(number, 0))
        steps_at = HEADER + len(self.buffers)
        rest_at = steps_at + STEP_WORDS * len(self._rows)
        steps: list[int] = []
        rest: list[int] = []  # regions, scratch rows, frames and calls
        for row in self._rows:
            assert row is not None
            if isinstance(row.step, Region):
                kind = BRANCHES if row.step.kind == "cond" else ITERATION
                steps += [0, 1, rest_at + len(rest), 0, kind, 0, 0, 0, 0]
                rest += row.words
            else:
                steps += self._step_words(row, threads, rest, rest_at)
        regions = region_code() if self.has_regions else (0, 0)
        header = [len(self.buffers), steps_at, *control, *regions]
        return [*header, *sources, *steps, *rest]

    @staticmethod
    def _step_words(row: _Row, threads: int, rest: list[int], rest_at: int) -> list[int]:
        step = row.step
        scratch = step.scratch if isinstance(step, Tile) else ()
        scratch_at = rest_at + len(rest)
        rest += [n for s in scratch for n in (s.buffer + row.shift, s.offset, s.row_bytes)]
        words = []
        for number, frame in row.calls:
            words += [number, rest_at + len(rest)]
            rest += frame
        extent, pieces = extent_and_pieces(step, threads)
        chunk, size = (step.chunk, step.scratch_bytes) if isinstance(step, Tile) else (0, 0)
        calls_at = rest_at + len(rest)
        rest += words
        ticks = min(int(work_of(step) / _TICK) + 1, LOOK_EVERY)
        return [
            *(extent, pieces, calls_at, len(row.calls)),
            *(chunk, scratch_at, len(scratch), size, ticks),
        ]


def _segments(steps: Sequence[Step]) -> Iterator[tuple[int, int] | HostCall]:
    first = native = 0
    for step in steps:
        if isinstance(step, HostCall):
            if native > first:
                yield (first, native)
            first = native
            yield step
        else:
            native += 1
    if native > first:
        yield (first, native)
