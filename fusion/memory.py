"""The memory plan: places for temporary buffers in one arena, by liveness."""

from __future__ import annotations

from dataclasses import dataclass

from .lane_code import LaneProgram
from .loops import HostCall, MatMul, Nest, Region, Schedule, Step, Tile
from .routines import Routine

__all__ = ["MemoryPlan", "plan_memory", "reads", "writes"]

ALIGNMENT = 64  # bytes: a cache line, a vector register


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Byte offset of each temporary buffer in an arena of ``size`` bytes."""

    offsets: dict[int, int]
    size: int


def reads(step: Step) -> set[int]:
    """Buffers a step reads."""
    if isinstance(step, Nest):
        merged = {s.buffer for s in step.stores if s.how != "set"}
        if step.part == "fold":
            merged |= set(step.states)
        return merged | {i.buffer for i in step.tape if i.buffer >= 0}
    if isinstance(step, Tile):
        return set().union(*(reads(nest) for nest in step.nests))
    if isinstance(step, MatMul):
        return {step.x.buffer, step.y.buffer}
    if isinstance(step, Region):
        return set(step.operands)
    if isinstance(step, LaneProgram):
        return step.reads()
    return set(step.arguments)


def writes(step: Step) -> set[int]:
    """Buffers a step writes."""
    if isinstance(step, Nest):
        states = set(step.states) if step.part == "blocks" else set()
        return states | {s.buffer for s in step.stores}
    if isinstance(step, Tile):
        return set().union(*(writes(nest) for nest in step.nests))
    if isinstance(step, MatMul):
        return {step.c.buffer}
    if isinstance(step, Region):
        return {*step.results, step.scratch}
    if isinstance(step, Routine):
        return {step.result}
    if isinstance(step, LaneProgram):
        return step.writes()
    assert isinstance(step, HostCall)
    return set(step.results)


def plan_memory(schedule: Schedule) -> MemoryPlan:
    """First fit over the steps in order: a place is free after the last step that reads it.

    Tapes have no place here: they grow in memory of their own.
    """
    scratch = {s.buffer for t in schedule.steps if isinstance(t, Tile) for s in t.scratch}
    last: dict[int, int] = {}
    for k, step in enumerate(schedule.steps):
        for number in reads(step) | writes(step):
            last[number] = k
    ending: dict[int, list[int]] = {}
    for number, k in last.items():
        ending.setdefault(k, []).append(number)
    offsets: dict[int, int] = {}
    free: list[tuple[int, int]] = []  # (offset, size), sorted, none adjacent
    end = 0
    for k, step in enumerate(schedule.steps):
        for number in sorted(writes(step)):
            if number in offsets or number in scratch:
                continue
            buffer = schedule.buffers[number]
            if buffer.kind != "temporary" or buffer.is_tape:
                continue
            need = _rounded(schedule.buffers[number].nbytes)
            for place, (offset, size) in enumerate(free):
                if size >= need:
                    offsets[number] = offset
                    rest = (offset + need, size - need)
                    free[place : place + 1] = [rest] if rest[1] else []
                    break
            else:
                offsets[number], end = end, end + need
        for number in ending.get(k, ()):
            if number in offsets:
                need = _rounded(schedule.buffers[number].nbytes)
                free = _joined(free, (offsets[number], need))
    return MemoryPlan(offsets, end)


def _rounded(nbytes: int) -> int:
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT


def _joined(free: list[tuple[int, int]], piece: tuple[int, int]) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for offset, size in sorted([*free, piece]):
        if result and result[-1][0] + result[-1][1] == offset:
            result[-1] = (result[-1][0], result[-1][1] + size)
        else:
            result.append((offset, size))
    return result
