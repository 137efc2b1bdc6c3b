"""Tiles: nests that share their rows, run a few rows at a time, change no bit."""

from __future__ import annotations

import numpy as np
import pytest
from guarded import run_guarded
from plans import graph_of, run_by_node, tiles

from tilegrad.ir import ops
from tilegrad.ir.ops.shape import broadcast, reshape, transpose
from tilegrad.kernels.plan import compile_graph


def along_rows(v, like):
    return broadcast(v, like.shape, tuple(range(v.ndim)))


def softmax(x):
    e = ops.exp(x - along_rows(ops.max_(x, 1), x))
    return e / along_rows(ops.sum_(e, 1), x)


def layer_norm(x):
    count = float(x.shape[1])
    centered = x - along_rows(ops.sum_(x, 1) / count, x)
    variance = ops.sum_(centered * centered, 1) / count
    return centered / along_rows(ops.sqrt(variance + 1e-5), x)


def log_sum_exp(x):
    top = ops.max_(x, 1)
    return ops.log(ops.sum_(ops.exp(x - along_rows(top, x)), 1)) + top


def middle_axis(x):
    """Rows of a three-dimensional array: reduced over the last axis, then over the middle one."""
    s = ops.sum_(ops.exp(x), 2)
    return x / broadcast(s, x.shape, (0, 1)), ops.max_(s, 1)


def flipped_rows(x):
    e = ops.exp(x)
    s = ops.sum_(e, 1)
    return ops.flip(e / along_rows(s, e), 1)


def other_rows(x):
    """Each row needs the sum of another row: no tile may split them."""
    s = ops.sum_(ops.exp(x), 1)
    return x + along_rows(ops.flip(s, 0), x)


def previous_row(x):
    s = ops.sum_(ops.exp(x), 1)
    shifted = ops.pad(ops.slice_axis(s, 0, 0, -1), 0.0, (1,), (0,))
    return x * along_rows(shifted, x)


def columns_and_rows(x):
    e = ops.exp(x)
    return e / broadcast(ops.sum_(e, 0), x.shape, (1,)), e / along_rows(ops.sum_(e, 1), x)


def running(x):
    c = ops.cumsum(ops.exp(x), 1)
    return c / along_rows(ops.max_(c, 1), c)


def picked(x):
    """A gather reads rows chosen at run time, which may not be computed yet."""
    e = ops.exp(x)
    s = ops.sum_(e, 1)
    i = ops.argmax(x, 1)
    return along_rows(ops.gather(s, ops.remainder(i, x.shape[0])), x) + e


def sorted_rows(x):
    e = ops.exp(x)
    return ops.sort(e, 1) / along_rows(ops.sum_(e, 1), e)


def reshaped(x):
    s = softmax(x)
    return reshape(s, (x.shape[0] * x.shape[1],)), ops.sum_(s, 0)


def transposed_result(x):
    return transpose(softmax(x))


def used_outside(x):
    """What a tile keeps to itself must not be what a later product reads."""
    s = softmax(x)
    return ops.matmul(transpose(s), s), ops.sum_(s, 1)


FUNCTIONS = [
    softmax,
    layer_norm,
    log_sum_exp,
    flipped_rows,
    other_rows,
    previous_row,
    columns_and_rows,
    running,
    picked,
    sorted_rows,
    reshaped,
    transposed_result,
    used_outside,
]
SHAPES = [(4, 3), (400, 300), (3, 2000), (1100, 9), (1, 50)]


def check(function, x):
    graph = graph_of(function, x)
    plan = compile_graph(graph)
    expected = run_by_node(graph, [x])
    for threads in (1, 2, 3):
        for got, right in zip(plan.run([x], threads), expected, strict=True):
            assert got.tobytes() == right.tobytes(), threads


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_same_bits_as_node_by_node(function):
    for shape in SHAPES:
        check(function, np.random.default_rng(0).standard_normal(shape))


@pytest.mark.parametrize("shape", [(7, 20, 30), (50, 3, 3), (1, 9, 40)])
def test_rows_of_three_dimensions(shape):
    check(middle_axis, np.random.default_rng(0).standard_normal(shape))


@pytest.mark.parametrize("function", [softmax, layer_norm, log_sum_exp], ids=lambda f: f.__name__)
def test_row_programs_are_one_tile(function):
    plan = compile_graph(graph_of(function, ((400, 300), "f8")))
    (tile,) = tiles(plan.schedule)
    assert len(plan.schedule.steps) == 1
    assert 1 <= tile.chunk < tile.rows  # several chunks in the test of bits above
    assert plan.memory.size == 0  # nothing of full size is kept


@pytest.mark.parametrize(
    "function", [softmax, layer_norm, flipped_rows, previous_row, picked], ids=lambda f: f.__name__
)
def test_a_tile_touches_only_its_own_memory(function):
    for shape in ((5, 40), (37, 17), (400, 300)):
        x = np.random.default_rng(0).standard_normal(shape)
        plan = compile_graph(graph_of(function, x))
        expected = plan.run([x])
        for at_end in (True, False):
            got = run_guarded(plan, [x], at_end=at_end)
            for a, b in zip(got, expected, strict=True):
                assert a.tobytes() == b.tobytes()


def test_errors_inside_a_tile_are_raised():
    def function(x, i):
        picked = ops.gather(x, i, axes=(0,))
        return picked / along_rows(ops.sum_(picked, 1), picked)

    x = np.random.default_rng(0).random((50, 40))
    plan = compile_graph(graph_of(function, x, np.zeros(100, int)))
    i = np.arange(100) % 50
    np.testing.assert_allclose(plan.run([x, i])[0].sum(1), 1.0, rtol=1e-14)
    for place in (0, 57, 99):
        bad = i.copy()
        bad[place] = -51
        for threads in (1, 2):
            with pytest.raises(IndexError, match="index -51 is out of bounds"):
                plan.run([x, bad], threads)
