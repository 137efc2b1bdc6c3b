"""Regions become steps: their programs are lowered by themselves and run as native code.

A body's inputs and outputs are no memory of its own: the driver points them at constants, at the
two places between which a carry goes to and fro, at rows of sequences and of what is recorded
(:mod:`..kernels.llvm.regions`). So nothing is copied between iterations. A body's temporaries
lie in a scratch that belongs to the step.

A region that needs a library between its native steps is a call of the host, which then runs its
programs itself (:mod:`..kernels.host_regions`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ..ir.dtypes import bool_
from ..ir.errors import ConvergenceError, UnsupportedError
from ..ir.graph import Graph, Node, Value
from ..ir.ops.leaves import alias
from ..ir.ops.regions import OUT_OF_STEPS, Loop, While
from .donation import origin
from .lane_masks import without_lanes
from .lanes import lane_program
from .loops import NO_MEMORY, SHORT_TAPE, Buffer, Carry, HostCall, Part, Region, Rows, Schedule
from .memory import plan_memory
from .own_loops import may_take_over
from .tape_rows import is_tape

if TYPE_CHECKING:
    from .lower import Lowering

__all__ = ["Inside", "one_program", "place_region", "tape_errors"]

# Schedules of programs inside, by the program and what it may overwrite: lowered once.
Inside = dict[tuple[Graph, frozenset[int]], Schedule]

_LINE = 64  # bytes of a cache line


def place_region(node: Node, lowering: Lowering) -> None:
    """Add the step of a region."""
    program = lane_program(node, lowering)
    if program is not None:
        lowering.add_step(program, node)
        return
    if node.op.name == "cond":
        step = _branches(node, node.inputs[0], node.inputs[1:], node.param("branches"), lowering)
    elif node.op.name == "loop":
        loop = Loop.of(node)
        step = _lanes(node, lowering) if loop.lanes else _Iteration(node, lowering).loop(loop)
    else:
        open_loop = While.of(node)
        lanes = open_loop.lanes
        step = _lanes(node, lowering) if lanes else _Iteration(node, lowering).open_loop(open_loop)
    lowering.add_step(step, node)


def _lanes(node: Node, lowering: Lowering) -> Region | HostCall:
    """Lanes with trip counts of their own: the program that says so without lanes, run once."""
    return _branches(node, None, node.inputs, (without_lanes(node),), lowering)


class _Scratch:
    """Places in the memory of a region; programs that do not run at a time share theirs."""

    def __init__(self) -> None:
        self._end = 0
        self._most = 0

    def place(self, nbytes: int) -> int:
        offset = self._end
        self._end += -(-max(nbytes, 1) // _LINE) * _LINE
        return offset

    def part(self, schedule: Schedule, links: Sequence[tuple[int, int]]) -> Part:
        """A program behind all places given out so far; no more may be asked for."""
        memory = plan_memory(schedule)
        self._most = max(self._most, memory.size)
        offsets = {number: self._end + offset for number, offset in memory.offsets.items()}
        return Part(schedule, offsets, tuple(links))

    def buffer(self, lowering: Lowering) -> int:
        number = len(lowering.buffers)
        size = self._end + self._most
        lowering.buffers.append(Buffer(number, "temporary", bool_, (size,)))
        return number


def _inside(graph: Graph, donated: Collection[int], lowering: Lowering) -> Schedule:
    """The schedule of a program of a region; each output has memory of its own, but for updates of
    ``donated`` inputs (numbers of outputs)."""
    from .lower import lower

    key = (graph, frozenset(donated))
    found = lowering.inside.get(key)
    if found is None:
        outputs, seen = [], set()
        for k, v in enumerate(graph.outputs):
            leaf = v.node.op.name in ("input", "constant") or v in seen
            seen.add(v)
            if leaf and not (k in donated and v.node.op.name == "input"):
                if is_tape(v.type):
                    raise UnsupportedError(
                        f"{v.node.op.name}: a tape passes through a region unchanged",
                        op=v.node.op.name,
                        device="cpu",
                    )
                v = alias(v)
            outputs.append(v)
        own = Graph(graph.inputs, tuple(outputs), graph.name)
        found = lowering.inside[key] = lower(own, donated, within=True)
    return found


def _on_host(node: Node, lowering: Lowering, *schedules: Schedule) -> HostCall | None:
    """The call that runs a region on the host if one of its programs leaves native code."""
    for schedule in schedules:
        for step in schedule.steps:
            if isinstance(step, HostCall):
                reason = step.reason
                if step.node.op.kind != "region":
                    reason = f"a loop of the host: {reason}"
                return HostCall(
                    node,
                    tuple(lowering.buffer(v) for v in node.inputs),
                    tuple(lowering.buffer(v) for v in node.outputs),
                    reason,
                )
    return None


def one_program(graph: Graph, consts: Sequence[int], lowering: Lowering) -> tuple[Part, int, int]:
    """The part of a loop with this body, whose inputs after the first are linked to ``consts``;
    the place of the number of the iteration, and the scratch."""
    scratch = _Scratch()
    index = scratch.place(8)
    links = [(outside, 1 + k) for k, outside in enumerate(consts)]
    part = scratch.part(_inside(graph, (), lowering), links)
    return part, index, scratch.buffer(lowering)


def tape_errors(lowering: Lowering) -> tuple[int, int]:
    """Numbers of the errors that loops over tapes report."""
    return lowering.report(MemoryError, NO_MEMORY), lowering.report(IndexError, SHORT_TAPE)


# ------------------------------------------------------------------------------------- branches


def _branches(
    node: Node,
    index: Value | None,
    operands: Sequence[Value],
    branches: Sequence[Graph],
    lowering: Lowering,
) -> Region | HostCall:
    taken = _taken_by_branches(node, operands, branches, lowering)
    while True:
        schedules = [_inside(branch, taken, lowering) for branch in branches]
        kept = {
            k for k, j in taken.items() if all(schedule.outputs[k] == j for schedule in schedules)
        }
        if len(kept) == len(taken):
            break
        taken = {k: j for k, j in taken.items() if k in kept}
    called = _on_host(node, lowering, *schedules)
    if called is not None:
        return called
    for k, j in taken.items():
        lowering.numbers[node.outputs[k]] = lowering.numbers[operands[j]]
    outside = [lowering.buffer(v) for v in operands]
    results = [lowering.buffer(v) for v in node.outputs]
    scratch = _Scratch()
    parts = []
    for schedule in schedules:
        links = [(b, k) for k, b in enumerate(outside)]
        links += [
            (results[k], inside) for k, inside in enumerate(schedule.outputs) if k not in taken
        ]
        parts.append(scratch.part(schedule, links))
    return Region(
        "cond",
        node,
        tuple(parts),
        tuple(lowering.buffer(v) for v in node.inputs),
        tuple(results),
        scratch.buffer(lowering),
        count=lowering.buffer(index) if index is not None else -1,
    )


def _taken_by_branches(
    node: Node, operands: Sequence[Value], branches: Sequence[Graph], lowering: Lowering
) -> dict[int, int]:
    """Results that every branch makes in the memory of one operand, which nobody needs any more:
    numbers of result and operand."""
    found: dict[int, int] = {}
    for k in range(len(node.outputs)):
        origins = [origin(branch.outputs[k]).node for branch in branches]
        places = {
            branch.inputs.index(source) if source in branch.inputs else -1
            for branch, source in zip(branches, origins, strict=True)
        }
        if len(places) != 1:
            continue
        (j,) = places
        if j >= 0 and j not in found.values() and may_take_over(operands[j], node, lowering):
            found[k] = j
    return found


# ---------------------------------------------------------------------------------------- loops


class _Iteration:
    """The step of a loop in the making."""

    def __init__(self, node: Node, lowering: Lowering) -> None:
        self.node = node
        self.lowering = lowering
        self.scratch = _Scratch()

    def loop(self, loop: Loop) -> Region | HostCall:
        """A counted loop, of one trip count for all."""
        lowering = self.lowering
        body = _inside(loop.body, self._donated(loop.body, len(loop.consts), loop.init), lowering)
        called = _on_host(self.node, lowering, body)
        if called is not None:
            return called
        index = self.scratch.place(8)
        first = 1 + len(loop.consts)
        carries = self._carries(loop.init, body, first)
        last = first + len(loop.init)
        sequences = [self._rows(lowering.buffer(v), body, last + k) for k, v in enumerate(loop.xs)]
        links = [(lowering.buffer(v), 1 + k) for k, v in enumerate(loop.consts)]
        return self._region(
            "loop",
            (self.scratch.part(body, links),),
            index,
            carries,
            count=-1 if loop.count is None else lowering.buffer(loop.count),
            length=-1 if loop.length is None else loop.length,
            reverse=loop.reverse,
            sequences=tuple(sequences),
            records=self._records(body, len(loop.init), len(loop.init)),
        )

    def open_loop(self, loop: While) -> Region | HostCall:
        """A loop with one condition for all."""
        lowering = self.lowering
        donated = self._donated(loop.body, len(loop.body_consts), loop.init)
        body = _inside(loop.body, donated, lowering)
        cond = _inside(loop.cond, (), lowering)
        called = _on_host(self.node, lowering, cond, body)
        if called is not None:
            return called
        index, holds = self.scratch.place(8), self.scratch.place(1)
        carries = self._carries(loop.init, body, 1 + len(loop.body_consts), len(loop.cond_consts))
        tested = [(lowering.buffer(v), k) for k, v in enumerate(loop.cond_consts)]
        links = [(lowering.buffer(v), 1 + k) for k, v in enumerate(loop.body_consts)]
        limit, error = -1, -1
        if loop.limit is not None:
            limit = loop.limit
            error = lowering.report(ConvergenceError, OUT_OF_STEPS.format(limit=limit))
        count = len(loop.init)
        return self._region(
            "while",
            (self.scratch.part(cond, tested), self.scratch.part(body, links)),
            index,
            carries,
            holds=holds,
            trips=lowering.buffer(self.node.outputs[count]),
            limit=limit,
            limit_error=error,
            records=self._records(body, count, count + 1),
        )

    def _region(
        self,
        kind: str,
        parts: tuple[Part, ...],
        index: int,
        carries: Sequence[Carry],
        limit_error: int = -1,
        **rest: object,
    ) -> Region:
        lowering = self.lowering
        tapes = any(is_tape(v.type) for v in (*self.node.inputs, *self.node.outputs))
        errors = (limit_error, *(tape_errors(lowering) if tapes else (-1, -1)))
        return Region(
            kind,
            self.node,
            parts,
            tuple(lowering.buffer(v) for v in self.node.inputs),
            tuple(lowering.buffer(v) for v in self.node.outputs),
            self.scratch.buffer(lowering),
            index=index,
            carries=tuple(carries),
            errors=errors,
            **rest,  # type: ignore[arg-type]  # fields of a Region, given above
        )

    def _donated(self, body: Graph, consts: int, init: Sequence[Value]) -> tuple[int, ...]:
        """Numbers of carries that the body may make in the memory of the last ones."""
        first = 1 + consts
        return tuple(
            k for k in range(len(init)) if origin(body.outputs[k]).node is body.inputs[first + k]
        )

    def _carries(
        self, init: Sequence[Value], body: Schedule, first: int, tested: int = -1
    ) -> list[Carry]:
        """How each carry goes from iteration to iteration; input ``first`` is the first of them."""
        carries = []
        for k, v in enumerate(init):
            in_place = body.outputs[k] == first + k
            if in_place and may_take_over(v, self.node, self.lowering):
                self.lowering.numbers[self.node.outputs[k]] = self.lowering.numbers[v]
            result = self.lowering.buffer(self.node.outputs[k])
            buffer = self.lowering.buffers[result]
            carries.append(
                Carry(
                    self.lowering.buffer(v),
                    result,
                    -1 if in_place else self.scratch.place(buffer.nbytes),
                    buffer.nbytes,
                    first + k,
                    body.outputs[k],
                    -1 if tested < 0 else tested + k,
                )
            )
        return carries

    def _rows(self, outside: int, body: Schedule, inside: int) -> Rows:
        return Rows(outside, inside, body.buffers[inside].nbytes)

    def _records(self, body: Schedule, first: int, result: int) -> tuple[Rows, ...]:
        """Rows for outputs of the body from ``first`` on, results of the node from ``result``."""
        outputs = self.node.outputs
        return tuple(
            self._rows(self.lowering.buffer(outputs[result + k]), body, inside)
            for k, inside in enumerate(body.outputs[first:])
        )
