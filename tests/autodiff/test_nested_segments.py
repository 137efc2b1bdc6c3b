"""Loops in loops as checkpoints: bytes counted by playing them, budgets kept."""

from __future__ import annotations

from math import prod

import pytest

from tilegrad.autodiff.checkpoint_schedules import Action, count
from tilegrad.autodiff.nested_segments import (
    Segmentation,
    nested_actions,
    pieces_of,
    segment,
)
from tilegrad.ir.errors import BudgetError


def held(plan: Segmentation, carry: int, tape: int) -> int:
    """Most bytes while the nests run backwards, counted loop by loop."""
    most = 0

    def backward(piece, before):
        nonlocal most
        outer, *inside = piece
        here = before + outer * (carry if inside else tape)
        most = max(most, here)
        if inside:  # each segment in turn, with all of this level's carries still there
            backward(inside, here)

    before = 0
    for piece in plan.pieces:
        backward(piece, before)
        before += piece[0] * (carry if len(piece) > 1 else tape)
    return max(most, before)


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 10, 60, 97, 100, 1009, 4096])
@pytest.mark.parametrize(("carry", "tape"), [(1, 1), (16, 96), (96, 16), (8, 0)])
def test_the_bytes_are_those_held_and_no_budget_is_exceeded(steps, carry, tape):
    least = None
    for budget in sorted({1, 50, 200, 1000, 5000, steps * tape, 10**6}, reverse=True):
        try:
            plan = segment(steps, carry, tape, budget)
        except BudgetError as error:
            least = error.needed
            assert least > budget
            continue
        assert plan.nbytes == held(plan, carry, tape) <= budget
        assert sum(prod(piece) for piece in plan.pieces) == steps
    if least is not None:
        assert segment(steps, carry, tape, least).nbytes <= least


@pytest.mark.parametrize("steps", [1, 2, 5, 30, 64, 97, 100])
def test_played_action_by_action_each_step_is_computed_once_a_level(steps):
    for budget in (steps, 20, 14, 12):
        try:
            plan = segment(steps, 1, 1, budget)
        except BudgetError:
            continue
        counts = count(nested_actions(plan), steps)
        assert counts.repetitions <= plan.levels
        assert counts.slots <= plan.nbytes


def test_a_hundred_steps_in_ten_segments():
    plan = segment(100, 1, 1, 20)
    assert plan.pieces == ((10, 10),)
    assert plan.nbytes == 10 + 100 // 10
    assert count(nested_actions(plan), 100).repetitions == 2


def test_fewest_levels_first():
    levels = [segment(10_000, 8, 8, budget).levels for budget in (80_000, 1_600, 600, 400)]
    assert levels == [1, 2, 3, 4]
    assert segment(10_000, 8, 8).pieces == ((10_000,),)  # no budget


def test_a_carry_that_dwarfs_the_tape_is_kept_seldom():
    (outer, inner), *_ = segment(10_000, 100, 1, 2_100).pieces
    assert outer <= 11
    assert inner >= 900


def test_lengths_that_are_no_products():
    assert pieces_of(1009, (10, 10)) == ((10, 10, 10), (9,))
    assert pieces_of(95, (10, 10)) == ((9, 10), (5,))
    assert pieces_of(0, (10,)) == ()


def test_what_does_not_fit_says_how_much_is_needed():
    with pytest.raises(BudgetError, match=r"expected a budget of \d+ bytes .*got 100") as caught:
        segment(1_000_000, 8, 8, 100)
    needed = caught.value.needed
    assert 8 * 20 <= needed <= 8 * 2 * 21  # two carries a level of log2(1e6)
    assert segment(1_000_000, 8, 8, needed).nbytes == needed
    assert isinstance(caught.value, MemoryError)


def test_an_order_that_a_nest_does_not_have_is_noticed():
    actions = list(nested_actions(segment(100, 1, 1, 20)))
    swapped = [Action("free", 0), *actions]
    with pytest.raises(ValueError, match="no slot"):
        count(swapped, 100)
