"""dynamic_slice and dynamic_update_slice: clamping, derivatives, batching, messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rule_checks import check_batch, check_rules, cotangents, evaluate, node_like

from tilegrad.autodiff.batching import batch
from tilegrad.ir.errors import DTypeError, ShapeError
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops import dynamic_slice, dynamic_update_slice

STARTS = range(-9, 9)


def first(start, extent, size):
    """Where the window begins, by the words of jax.lax.dynamic_slice."""
    start = start + extent if start < 0 else start
    return min(max(start, 0), extent - size)


@pytest.mark.parametrize("size", [0, 1, 3, 5])
def test_every_start_is_moved_inside(size):
    x = np.arange(5.0)
    for start in STARTS:
        k = first(start, 5, size)
        got = evaluate(lambda v, s: dynamic_slice(v, s, sizes=(size,)), x, np.int64(start))
        np.testing.assert_array_equal(got, x[k : k + size])
        got = evaluate(dynamic_update_slice, x, np.full(size, 7.0), np.int64(start))
        expected = x.copy()
        expected[k : k + size] = 7
        np.testing.assert_array_equal(got, expected)


def test_two_axes_and_any_integer_type(rng):
    x, u = rng.standard_normal((4, 5)), rng.standard_normal((2, 3))
    for i, j in itertools.product((0, 2, 3, -1), (-5, 1, 4)):
        a, b = first(i, 4, 2), first(j, 5, 3)
        starts = np.int8(i), np.int32(j)
        got = evaluate(lambda v, p, q: dynamic_slice(v, p, q, sizes=(2, 3)), x, *starts)
        np.testing.assert_array_equal(got, x[a : a + 2, b : b + 3])
        expected = x.copy()
        expected[a : a + 2, b : b + 3] = u
        np.testing.assert_array_equal(evaluate(dynamic_update_slice, x, u, *starts), expected)


def test_rules(rng):
    x, u = rng.standard_normal((4, 5)), rng.standard_normal((2, 3))
    for i, j in [(1, 0), (-1, 9)]:
        check_rules(lambda v: dynamic_slice(v, i, j, sizes=(2, 3)), [x], rng)  # noqa: B023
        check_rules(lambda v, w: dynamic_update_slice(v, w, i, j), [x, u], rng)  # noqa: B023
    x_bar, u_bar = cotangents(lambda v, w: dynamic_update_slice(v, w, 1), [x[0], u[0]], np.ones(5))
    np.testing.assert_array_equal(x_bar, [1, 0, 0, 0, 1])
    np.testing.assert_array_equal(u_bar, [1, 1, 1])


@pytest.mark.parametrize("starts", [(1, 0), (-1, 9), (-9, 2)])
def test_batching_with_starts_of_each_example(starts, rng):
    """The example axis of the starts is made by the test itself: a start is a scalar."""
    x, u = rng.standard_normal((4, 5)), rng.standard_normal((2, 3))
    i, j = (np.int64(s) for s in starts)
    check_batch(lambda v, p, q: dynamic_slice(v, p, q, sizes=(2, 3)), [x, i, j], rng)
    check_batch(dynamic_update_slice, [x, u, i, j], rng)


def test_batched_starts_that_differ(rng):
    x, starts = rng.standard_normal(6), np.array([0, -2, 9, 3, -9])
    u = rng.standard_normal((5, 2))
    v, s, w = node_like(x), node_like(np.int64(0)), node_like(u[0])
    many, all_u = node_like(starts), node_like(u)
    mapped = {s.out: (many.out, 0), w.out: (all_u.out, 0)}
    outputs = [
        dynamic_slice(v.out, s.out, sizes=(2,)),
        dynamic_update_slice(v.out, w.out, s.out),
    ]
    (a, at_a), (b, at_b) = batch(outputs, mapped, 5)
    assert at_a == at_b == 0
    windows, updated = interpret([a, b], {v: x, many: starts, all_u: u})
    for k, start in enumerate(starts):
        at = first(start, 6, 2)
        np.testing.assert_array_equal(windows[k], x[at : at + 2])
        expected = x.copy()
        expected[at : at + 2] = u[k]
        np.testing.assert_array_equal(updated[k], expected)


def test_messages():
    x = node_like(np.ones((4, 5))).out
    with pytest.raises(ShapeError, match="dynamic_slice: expected 2 starts and a window of 2 axes"):
        dynamic_slice(x, 0, sizes=(1, 1))
    with pytest.raises(ShapeError, match=r"a window that fits into f64\[4,5\], got \[5, 1\]"):
        dynamic_slice(x, 0, 0, sizes=(5, 1))
    with pytest.raises(DTypeError, match="dynamic_slice: expected integer indices"):
        dynamic_slice(x, 0.5, 0, sizes=(1, 1))
    with pytest.raises(ShapeError, match=r"dynamic_slice: expected scalar starts, got i64\[2\]"):
        dynamic_slice(x, [0, 1], 0, sizes=(1, 1))
    with pytest.raises(DTypeError, match="dynamic_update_slice: expected an update that int64"):
        dynamic_update_slice(np.ones(3, np.int64), np.ones(1), 0)
    with pytest.raises(ShapeError, match="dynamic_update_slice: expected a window that fits"):
        dynamic_update_slice(x, np.ones((1, 6)), 0, 0)
