"""Schedules of reversal: optimal by dynamic programming, legal by playing them."""

from __future__ import annotations

from functools import cache
from math import comb

import pytest

from tilegrad.autodiff.checkpoint_schedules import (
    Action,
    advances,
    binomial,
    count,
    longest,
    online,
    repetitions,
    thinned_stride,
    uniform,
)


@cache
def least(steps: int, slots: int) -> int:
    """Bellman's recursion over all ways to keep a state next."""
    if steps <= 1:
        return 0
    if slots == 1:
        return steps * (steps - 1) // 2
    return min(m + least(steps - m, slots - 1) + least(m, slots) for m in range(1, steps))


@cache
def reach(slots: int, times: int) -> int:
    """The longest chain by the recurrence of the theorem, from its boundaries."""
    if times == 0:
        return 1
    if slots == 1:
        return times + 1
    return reach(slots, times - 1) + reach(slots - 1, times)


@pytest.mark.parametrize("slots", range(1, 9))
def test_binomial_schedules_are_optimal(slots):
    for steps in range(1, 70):
        counts = count(binomial(steps, slots), steps)
        assert counts.advances == advances(steps, slots) == least(steps, slots)
        assert counts.repetitions <= repetitions(steps, slots)
        assert counts.slots <= slots


@pytest.mark.parametrize("slots", range(1, 9))
@pytest.mark.parametrize("times", range(9))
def test_the_table_of_lengths(slots, times):
    steps = longest(slots, times)
    assert steps == reach(slots, times) == comb(slots + times, slots)
    assert repetitions(steps, slots) == times
    assert repetitions(steps + 1, slots) == times + 1
    counts = count(binomial(steps, slots), steps)
    assert counts.repetitions == times
    assert counts.advances == advances(steps, slots)


def test_long_binomial_schedules_are_listed_without_recursion():
    steps, slots = 200_000, 1_000
    counts = count(binomial(steps, slots), steps)
    assert counts.slots == slots
    assert counts.advances == advances(steps, slots)
    assert counts.repetitions == repetitions(steps, slots) == 2
    assert count(binomial(3_000, 5_000), 3_000).repetitions == 1  # more slots than steps


def test_uniform_segments():
    counts = count(uniform(100, 10), 100)
    assert counts.slots == 10 + 100 // 10 - 1
    assert counts.repetitions == 2
    assert counts.advances == 90 + 10 * 9
    for steps in range(1, 40):
        for segments in range(1, steps + 3):
            counts = count(uniform(steps, segments), steps)
            used = min(segments, steps)
            assert counts.slots <= used + -(-steps // used) - 1
            assert counts.repetitions <= 2


def test_chains_of_no_and_one_step():
    for make in (binomial, uniform, online):
        assert list(make(0, 3)) == []
        assert count(make(1, 3), 1).slots == 1
    assert advances(0, 1) == advances(1, 1) == 0


@pytest.mark.parametrize("slots", [1, 2, 3, 5, 8, 16])
def test_online_schedules_keep_their_bounds(slots):
    trail = -(-slots // 2)
    for steps in [*range(1, 60), 257, 1000]:
        counts = count(online(steps, slots), steps)
        stride = thinned_stride(steps, trail)
        assert counts.slots <= slots
        assert stride == 1 or stride * trail < 2 * steps
        assert counts.repetitions <= 1 + repetitions(stride, slots - trail + 1)


def test_the_forward_part_of_an_online_schedule_does_not_know_the_end():
    def forward(steps):
        actions = []
        for action in online(steps, 6):
            if action.kind in ("restore", "reverse"):
                break
            actions.append(action)
        return actions

    def stores(steps, limit):
        return [(a.kind, a.at) for a in forward(steps) if a.kind != "advance" and a.at < limit]

    for steps in range(1, 50):
        longer = stores(80, steps)
        assert stores(steps, steps) == longer[: len(stores(steps, steps))]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([Action("restore", 0)], "in no slot"),
        ([Action("reverse", 0)], "expected reverse 1"),
        ([Action("advance", 1, 2)], "the current state is 0"),
        ([Action("advance", 0, 3)], "beyond the end"),
        ([Action("advance", 0, 1), Action("reverse", 1)], "first 1 steps are not reversed"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(actions, message):
    with pytest.raises(ValueError, match=message):
        count(actions, 2)


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="slots >= 1"):
        list(binomial(3, 0))
    with pytest.raises(ValueError, match="segments >= 1"):
        list(uniform(3, 0))
