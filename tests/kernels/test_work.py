"""In how many pieces threads share a step."""

from __future__ import annotations

import numpy as np
import pytest
from plans import plan_of

from tilegrad.fusion.loops import MatMul, Nest
from tilegrad.ir import ops
from tilegrad.kernels.work import ACROSS, extent_and_pieces


def steps(function, *shapes):
    rng = np.random.default_rng(0)
    plan = plan_of(function, *(rng.standard_normal(s) for s in shapes))
    return plan.schedule.steps


@pytest.mark.parametrize("columns", [50, 90, 400])
def test_pieces_across_columns_hold_whole_cache_lines(columns):
    """Sums down the columns: a narrow piece would read lines that it shares with another."""
    (step,) = steps(lambda x: ops.sum_(x, 0), (20000, columns))
    assert isinstance(step, Nest)
    extent, pieces = extent_and_pieces(step, 8)
    assert (extent, pieces > 1) == (columns, True)
    assert extent // pieces >= ACROSS


def test_rows_are_shared_finely():
    (step,) = steps(lambda x: ops.sum_(x, 1), (64, 20000))
    assert extent_and_pieces(step, 8) == (64, 32)


def test_a_large_product_of_a_narrow_result_is_shared():
    (step,) = steps(lambda x: ops.dot(x, x, contract=((0,), (0,))), (20000, 50))
    assert isinstance(step, MatMul)
    assert extent_and_pieces(step, 2) == (2, 2)
    assert extent_and_pieces(step, 1) == (2, 1)


def test_many_small_products_are_shared_in_few_pieces():
    """One piece for each of 100,000 matrices made two threads three times as slow as one."""
    (step,) = steps(ops.matmul, (100_000, 3, 3), (100_000, 3, 3))
    assert extent_and_pieces(step, 2) == (100_000, 8)
    assert extent_and_pieces(step, 1) == (100_000, 1)


def test_a_long_product_has_pieces_between_which_an_interrupt_is_seen():
    (step,) = steps(ops.matmul, (2000, 1500), (1500, 1500))
    extent, pieces = extent_and_pieces(step, 1)
    assert extent >= pieces > 4
