"""Results in the memory of arguments that the caller gives away.

``takeover`` decides on the schedule alone, so it never changes a bit of a result: an argument's
memory becomes a result's when the argument has been read to the end before the first element of
the result is written, or when both happen in one elementwise loop that reads just the element it
is about to write. A copy of the argument into the result, with which updates (``x.at[i].set(v)``)
begin, then falls away: the update costs what it writes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..fusion.index import Index
from ..fusion.loops import Buffer, HostCall, Nest, Region, Schedule, Step
from ..fusion.memory import reads, writes
from .storage import LARGE

__all__ = ["Takeover", "takeover"]


@dataclass(frozen=True, slots=True)
class Takeover:
    """What lies where.

    Attributes
    ----------
    inputs : dict of int to int
        For the number of a result's buffer the place among the arguments whose memory it gets.
    segments : list
        Native steps as (first, last), host calls as themselves, without needless copies.
    """

    inputs: dict[int, int]
    segments: list[tuple[int, int] | HostCall]


def takeover(schedule: Schedule, donated: Collection[int]) -> Takeover:
    """Results that may lie in the memory of the inputs at the places ``donated``."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for k, step in enumerate(schedule.steps):
        for number in writes(step):
            first.setdefault(number, k)
        for number in reads(step):
            last[number] = k
    returned = set(schedule.outputs)
    given = [
        b
        for b in schedule.buffers
        if b.kind == "input" and b.slot in donated and b.number not in returned
    ]
    inputs: dict[int, int] = {}
    copies: set[int] = set()
    for result in schedule.buffers:
        if result.kind != "output" or result.nbytes < LARGE or result.number not in first:
            continue
        k = first[result.number]
        for old in given:
            end = last.get(old.number, -1)
            if not _alike(old, result) or end > k:
                continue
            if end == k and not _goes_along(schedule.steps[k], old.number, result.number):
                continue
            if end == k and _is_copy(schedule.steps[k]):
                copies.add(k)
            inputs[result.number] = old.slot
            given.remove(old)
            break
    return Takeover(inputs, _segments(schedule.steps, copies))


def _alike(old: Buffer, new: Buffer) -> bool:
    return old.shape == new.shape and old.dtype is new.dtype


def _goes_along(step: Step, old: int, new: int) -> bool:
    """Whether a step reads of ``old`` just the element of ``new`` that it writes next.

    With one store all that is loaded in an iteration is needed before it, so no compiler puts a
    load behind it.
    """
    if isinstance(step, Region):  # a carry that is updated in place begins as a copy
        pairs = [(c.initial, c.result) for c in step.carries if c.slot < 0]
        return (old, new) in pairs and step.operands.count(old) == 1
    if not isinstance(step, Nest) or step.reduces or step.scan is not None or step.ordered:
        return False
    if step.part or len(step.stores) != 1:
        return False
    (store,) = step.stores
    if store.buffer != new or store.how != "set" or store.guard >= 0:
        return False
    for i in step.tape:
        if i.buffer == old and (i.index is None or i.index + store.index * -1 != Index(0)):
            return False
    return True


def _is_copy(step: Step) -> bool:
    return isinstance(step, Nest) and len(step.tape) == 1 and step.tape[0].kind == "load"


def _segments(steps: Collection[Step], left_out: set[int]) -> list[tuple[int, int] | HostCall]:
    found: list[tuple[int, int] | HostCall] = []
    native = 0
    for k, step in enumerate(steps):
        if isinstance(step, HostCall):
            found.append(step)
            continue
        if k not in left_out:
            before = found[-1] if found else None
            if isinstance(before, tuple) and before[1] == native:
                found[-1] = (before[0], native + 1)
            else:
                found.append((native, native + 1))
        native += 1
    return found
