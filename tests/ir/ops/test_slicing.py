"""slice, flip, pad, shift, concat: against NumPy's indexing, gradients, messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rule_checks import check_batch, check_rules, cotangents, evaluate, gradient, node_like

from tilegrad.ir.errors import DTypeError, ShapeError
from tilegrad.ir.graph import make
from tilegrad.ir.ops import concat, flip, pad, slice_, slice_axis, sum_
from tilegrad.ir.ops.slicing import CONCAT, PAD, SLICE, shift

BOUNDS = [None, 0, 1, 3, 5, 9, -1, -2, -5, -9]
STEPS = [None, 1, 2, 7, -1, -2, -9]


def test_every_triple_of_bounds_and_step_is_pythons():
    x = np.arange(5.0)
    for start, stop, step in itertools.product(BOUNDS, BOUNDS, STEPS):
        got = evaluate(lambda v: slice_(v, [start], [stop], [step]), x)  # noqa: B023
        np.testing.assert_array_equal(got, x[start:stop:step], strict=True)


def test_transposes_of_slices_put_every_cotangent_back():
    x = np.arange(5.0)
    for start, stop, step in itertools.product(BOUNDS, BOUNDS, STEPS):
        f = lambda v: slice_(v, [start], [stop], [step])  # noqa: E731, B023
        size = x[start:stop:step].size
        expected = np.zeros(5)
        expected[start:stop:step] = ct = np.arange(1.0, size + 1)
        np.testing.assert_array_equal(cotangents(f, [x], ct)[0], expected)


def test_several_axes_and_empty_arrays(rng):
    x = rng.standard_normal((4, 3, 5))
    got = evaluate(lambda v: slice_(v, [3, None, 1], [None, None, -1], [-2, None, 2]), x)
    np.testing.assert_array_equal(got, x[3::-2, :, 1:-1:2])
    assert evaluate(lambda v: slice_(v, [2, 0], [4, 1]), np.ones((0, 3))).shape == (0, 1)
    assert evaluate(lambda v: slice_(v), np.float64(3)) == 3
    assert slice_axis(node_like(x).out, -1, 1, 3).shape == (4, 3, 2)


def test_one_spelling_for_each_view():
    x = node_like(np.ones((4, 3))).out
    assert slice_(x) is x
    assert slice_(x, [0, -9], [9, None], [1, 1]) is x
    one = slice_(x, [2, 0], [3, 3], [5, 1])
    assert one.node.param("step") == (1, 1)
    empty = slice_(x, [3, 0], [1, 3], [2, 1])
    assert (empty.node.param("start"), empty.shape) == ((0, 0), (0, 3))


def test_gradient_through_a_negative_step():
    """Case 41."""
    g = gradient(lambda x: sum_(slice_(x, step=[-2]) * np.array([1.0, 2, 3])), np.arange(6.0))
    np.testing.assert_array_equal(g, [0, 3, 0, 2, 0, 1])


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), ()])
def test_flip_is_numpys(axis, rng):
    x = rng.standard_normal((2, 3, 4))
    np.testing.assert_array_equal(evaluate(lambda v: flip(v, axis), x), np.flip(x, axis))


# ----------------------------------------------------------------------------------------- pad


@pytest.mark.parametrize("dtype", ["float64", "int8", "bool", "complex64"])
def test_pad_is_numpys(dtype, rng):
    x = rng.integers(0, 2, (2, 3)).astype(dtype)
    value = np.asarray(1, dtype)
    got = evaluate(lambda v: pad(v, value, (1, 0), (2, 3)), x)
    np.testing.assert_array_equal(
        got, np.pad(x, ((1, 2), (0, 3)), constant_values=value), strict=True
    )


@pytest.mark.parametrize("shape", [(3, 2), (1, 2), (0, 2), (2, 0)])
def test_interior_padding_against_assignment(shape, rng):
    x = rng.standard_normal(shape)
    low, high, interior = (1, 0), (0, 2), (2, 1)
    extents = [
        a + n + max(n - 1, 0) * k + b for a, n, b, k in zip(low, shape, high, interior, strict=True)
    ]
    expected = np.full(extents, 7.0)
    for i, j in np.ndindex(*shape):
        expected[1 + 3 * i, 2 * j] = x[i, j]
    np.testing.assert_array_equal(evaluate(lambda v: pad(v, 7.0, low, high, interior), x), expected)


def test_cotangent_of_the_border_is_summed_over_the_border_alone():
    """A difference of two sums would give 0 here."""
    x = np.zeros(1)
    ct = np.array([1.0, 1e20, 1.0])
    f = lambda v, c: pad(v, c, (1,), (1,))  # noqa: E731
    x_bar, value_bar = cotangents(f, [x, np.float64(0)], ct)
    assert x_bar == [1e20]
    assert value_bar == 2


def test_batched_border_and_array(rng):
    f = lambda v, c: pad(v, c, (1, 0), (0, 2), (1, 0))  # noqa: E731
    check_batch(f, [rng.standard_normal((3, 2)), np.float64(3)], rng)
    check_rules(f, [rng.standard_normal((3, 2)), np.float64(3)], rng)


def test_shift(rng):
    x = np.arange(1.0, 7).reshape(2, 3)
    np.testing.assert_array_equal(evaluate(lambda v: shift(v, 1, 1, 9), x), [[9, 1, 2], [9, 4, 5]])
    np.testing.assert_array_equal(evaluate(lambda v: shift(v, 0, -1), x), [[4, 5, 6], [0, 0, 0]])
    assert evaluate(lambda v: shift(v, 0, 1), np.zeros((0, 2))).shape == (0, 2)


# -------------------------------------------------------------------------------------- concat


def test_concat_is_numpys(rng):
    xs = [rng.standard_normal((2, n, 3)) for n in (1, 0, 4)]
    for axis in (1, -2):
        got = evaluate(lambda *v, a=axis: concat(v, a), *xs)
        np.testing.assert_array_equal(got, np.concatenate(xs, axis), strict=True)
    mixed = [np.ones(2, np.int8), np.ones(1, np.float32), np.ones(3, np.int64)]
    got = evaluate(lambda *v: concat(v), *mixed)
    np.testing.assert_array_equal(got, np.concatenate(mixed), strict=True)


def test_concat_of_one_value_twice(rng):
    x = rng.standard_normal(3)
    f = lambda v: concat([v, v * v, v])  # noqa: E731
    check_rules(f, [x], rng)
    np.testing.assert_allclose(cotangents(f, [x], np.ones(9))[0], 2 + 2 * x, rtol=1e-15)


# ------------------------------------------------------------------------------------ messages


def test_messages():
    x = node_like(np.ones((2, 3))).out
    with pytest.raises(ShapeError, match="slice: expected a nonzero step, got 0"):
        slice_(x, step=[1, 0])
    with pytest.raises(ShapeError, match=r"slice: expected 2 starts, one an axis, got \[1\]"):
        slice_(x, [1])
    with pytest.raises(IndexError, match=r"expected positions in \[0, 2\) at axis 0 of f64\[2,3\]"):
        make(SLICE, (x,), start=(1, 0), step=(1, 1), shape=(2, 3))
    with pytest.raises(ShapeError, match="pad: expected amounts of 0 or more, got low"):
        pad(x, 0, (-1, 0), (0, 0))
    with pytest.raises(ShapeError, match=r"pad: expected 2 high amounts, one an axis"):
        pad(x, 0, (1, 0), (1,))
    with pytest.raises(DTypeError, match="pad: expected a value that int64 holds"):
        pad(np.ones(2, np.int64), 0.5, (1,), (0,))
    with pytest.raises(ShapeError, match=r"pad: expected a scalar value, got f64\[2\]"):
        pad(x, np.ones(2), (1, 0), (0, 0))
    with pytest.raises(DTypeError, match=r"pad: expected a value of type f64\[\], got i64\[\]"):
        make(PAD, (x, node_like(np.int64(1)).out), low=(0, 0), high=(0, 0), interior=(0, 0))
    with pytest.raises(ShapeError, match=r"but for axis 1, got f64\[2,3\] and f64\[3,3\]"):
        concat([x, np.ones((3, 3))], 1)
    with pytest.raises(ShapeError, match="concat: expected at least one array"):
        concat([])
    with pytest.raises(IndexError, match=r"concat: expected an axis in \[0, 0\)"):
        concat([1.0, 2.0])
    with pytest.raises(DTypeError, match="concat: expected equal dtypes"):
        make(CONCAT, (x, node_like(np.ones((2, 3), int)).out), axis=0)
    with pytest.raises(IndexError, match=r"flip: expected an axis in \[-2, 2\), got 2"):
        flip(x, 2)
