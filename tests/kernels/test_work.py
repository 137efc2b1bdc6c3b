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
