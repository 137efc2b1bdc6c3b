"""The memory plan: nothing that is still needed is overwritten, and places are used again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import run, schedule_of, tiles
from random_graphs import programs

from tilegrad.fusion.index import Index, variable
from tilegrad.fusion.loops import Buffer, Instruction, Nest, Schedule, Store, Tile
from tilegrad.fusion.lower import lower
from tilegrad.fusion.memory import ALIGNMENT, plan_memory, reads, writes
from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64

KINDS = ("input", "temporary", "temporary", "temporary", "output")


def nest(inputs, outputs):
    index = variable(0, 4)
    tape = [Instruction("load", float64, buffer=b, index=index) for b in inputs]
    tape.append(Instruction("index", float64, index=Index(0)))
    return Nest((4,), tuple(tape), tuple(Store(b, index, 0) for b in outputs))


@st.composite
def schedules(draw):
    """Schedules of nests that read what was written before; each buffer is written once."""
    buffers, steps, written = [], [], []
    for _ in range(draw(st.integers(1, 4))):
        buffers.append(
            Buffer(len(buffers), "input", float64, (draw(st.integers(0, 40)),), len(buffers))
        )
        written.append(len(buffers) - 1)
    for _ in range(draw(st.integers(1, 15))):
        sources = draw(st.lists(st.sampled_from(written), max_size=3, unique=True))
        new = []
        for _ in range(draw(st.integers(1, 3))):
            kind = draw(st.sampled_from(KINDS[1:]))
            buffers.append(Buffer(len(buffers), kind, float64, (draw(st.integers(0, 40)),)))
            new.append(len(buffers) - 1)
        steps.append(nest(sources, new))
        written += new
    return Schedule(tuple(buffers), tuple(steps), (), (), ())


def lifetimes(schedule):
    """Steps (first, last) of each temporary in the arena: from its writer to its last reader."""
    found = {}
    kept = {s.buffer for t in tiles(schedule) for s in t.scratch}
    for k, step in enumerate(schedule.steps):
        for number in reads(step) | writes(step):
            if schedule.buffers[number].kind == "temporary" and number not in kept:
                first, _ = found.get(number, (k, k))
                found[number] = (first, k)
    return found


def check_scratch(tile, schedule):
    """Rows that a tile keeps to itself: apart from each other, and of use to nobody else."""
    end = 0
    for kept in sorted(tile.scratch, key=lambda s: s.offset):
        assert kept.offset >= end
        end = kept.offset + kept.row_bytes * tile.chunk
        assert kept.row_bytes * tile.rows == schedule.buffers[kept.buffer].nbytes
        assert schedule.buffers[kept.buffer].kind == "temporary"
        others = [s for s in schedule.steps if s is not tile]
        assert not any(kept.buffer in reads(s) | writes(s) for s in others)
    assert end <= tile.scratch_bytes


def check(schedule):
    plan = plan_memory(schedule)
    lives = lifetimes(schedule)
    assert set(plan.offsets) == set(lives)  # temporaries only, and all of them
    for step in schedule.steps:
        if isinstance(step, Tile):
            check_scratch(step, schedule)
    for number, offset in plan.offsets.items():
        assert offset % ALIGNMENT == 0
        assert offset + schedule.buffers[number].nbytes <= plan.size
    for a, (first, last) in lives.items():
        for b, (other_first, other_last) in lives.items():
            if a < b and first <= other_last and other_first <= last:
                x, y = plan.offsets[a], plan.offsets[b]
                m, n = schedule.buffers[a].nbytes, schedule.buffers[b].nbytes
                assert x + m <= y or y + n <= x, f"b{a} and b{b} overlap while both are needed"
    return plan


@given(schedules())
def test_no_two_live_buffers_overlap(schedule):
    plan = check(schedule)
    sizes = [-(-max(b.nbytes, 1) // ALIGNMENT) * ALIGNMENT for b in schedule.buffers]
    live = [
        sum(sizes[n] for n, (first, last) in lifetimes(schedule).items() if first <= k <= last)
        for k in range(len(schedule.steps))
    ]
    assert max(live) <= plan.size <= sum(sizes[n] for n in plan.offsets)


@settings(max_examples=60)
@given(programs(steps=20))
def test_no_two_live_buffers_of_a_real_schedule_overlap(program):
    check(lower(program.graph))


def test_a_chain_lives_in_two_places():
    """One is read while the other is written."""

    def chain(x):
        for _ in range(10):
            x = ops.sort(x, 0)
        return x

    schedule = schedule_of(chain, ((100,), "f8"))
    temporaries = [b for b in schedule.buffers if b.kind == "temporary"]
    assert len(temporaries) == 9
    assert check(schedule).size == 2 * 832  # 800 bytes, rounded up to a cache line


def test_what_is_needed_later_keeps_its_place():
    def function(x):
        first = ops.sort(x, 0)
        y = first
        for _ in range(4):
            y = ops.sort(-y, 0)
        return ops.sort(y + first, 0)

    check(schedule_of(function, ((100,), "f8")))
    x = np.random.default_rng(0).standard_normal(100)
    first = y = np.sort(x)
    for _ in range(4):
        y = np.sort(-y)
    assert np.array_equal(run(function, x), np.sort(y + first))


def test_freed_neighbours_are_joined_for_a_larger_one():
    buffers = [Buffer(0, "input", float64, (8,), 0)]
    buffers += [Buffer(k, "temporary", float64, (n,)) for k, n in ((1, 8), (2, 8), (3, 16), (4, 8))]
    steps = (nest([0], [1, 2]), nest([1, 2], [4]), nest([4], [3]))
    plan = check(Schedule(tuple(buffers), steps, (), (), ()))
    assert plan.size == 3 * 64  # the large one takes the two places that were freed together
    assert plan.offsets[3] == 0


@pytest.mark.parametrize("kind", ["input", "output", "constant"])
def test_only_temporaries_lie_in_the_arena(kind):
    buffers = (Buffer(0, "input", float64, (8,), 0), Buffer(1, kind, float64, (8,)))
    assert plan_memory(Schedule(buffers, (nest([0], [1]),), (), (), ())).size == 0
