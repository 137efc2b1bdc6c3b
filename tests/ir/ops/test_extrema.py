"""max, min, argmax, argmin: NaN, signed zeros, ties, merge programs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rule_checks import cotangents, evaluate, gradient, tangent

from tilegrad.autodiff.reverse import vjp
from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.ops import OPS, argmax, argmin, max_, min_, sum_
from tilegrad.ir.ops.leaves import constant
from tilegrad.ir.scalar.handlers.numpy import NumpyHandler

NAN, INF = np.nan, np.inf


def bits(x):
    return np.asarray(x).view(np.int64)


@pytest.mark.parametrize(("ours", "theirs"), [(argmax, np.argmax), (argmin, np.argmin)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint64", "bool"])
def test_places_are_numpys(ours, theirs, dtype, rng):
    for shape in [(), (1,), (7,), (3, 4), (2, 1, 5), (0, 3)]:
        x = rng.integers(0, 3, shape).astype(dtype)
        if x.dtype.kind == "f" and x.size > 3:
            x.reshape(-1)[3] = NAN
        for axis in [None, *range(-x.ndim, x.ndim)]:
            if (axis is None and not x.size) or (axis is not None and not x.shape[axis]):
                continue
            for keepdims in (False, True):
                got = evaluate(lambda v, a=axis, k=keepdims: ours(v, a, k), x)
                expected = theirs(x, axis=axis, keepdims=keepdims)
                np.testing.assert_array_equal(got, expected, strict=True)


def test_first_nan_wins():
    """Case 23."""
    assert evaluate(argmax, np.array([2.0, NAN, 7.0])) == 1
    assert evaluate(argmin, np.full(3, NAN)) == 0
    big = np.zeros(5000)
    big[[4000, 4500]] = NAN
    assert evaluate(argmax, big) == 4000 == evaluate(argmin, big)
    assert np.isnan(evaluate(max_, big))
    assert np.isnan(evaluate(min_, big))


def test_signs_of_zeros_do_not_depend_on_the_order():
    for x in itertools.product([0.0, -0.0], repeat=4):
        x = np.array(x)
        assert bits(evaluate(max_, x)) == bits(-0.0 if np.signbit(x).all() else 0.0)
        assert bits(evaluate(min_, x)) == bits(-0.0 if np.signbit(x).any() else 0.0)
    single = evaluate(max_, np.array([-0.0, 0.0, -1.0], np.float32))
    assert single.dtype == np.float32
    assert not np.signbit(single)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 4, 4, 2], [0, 0.5, 0.5, 0]),
        ([3.0, 3, 3, 3], [0.25] * 4),
        ([1.0, 2.0], [0, 1]),
        ([0.0, -0.0], [0.5, 0.5]),
        ([INF, 1.0, INF], [0.5, 0, 0.5]),
        ([1.0, NAN, 2.0], [NAN, NAN, NAN]),
    ],
)
def test_ties_share_equally(values, expected):
    """Case 52, inventory RD05."""
    x = np.array(values)
    np.testing.assert_array_equal(gradient(max_, x), expected)
    np.testing.assert_array_equal(gradient(min_, -x), expected)
    for k in range(len(x)):  # forward mode says the same
        np.testing.assert_array_equal(tangent(max_, [x], [np.eye(len(x))[k]]), expected[k])


def test_ties_over_several_axes():
    x = np.array([[5.0, 1], [5, 5], [0, 5]])
    np.testing.assert_array_equal(gradient(max_, x), (x == 5) / 4)
    bars = cotangents(lambda v: max_(v, 0), [x], np.array([2.0, 6.0]))[0]
    np.testing.assert_array_equal(bars, [[1, 0], [1, 3], [0, 3]])


def test_infinite_tangents_of_losers_stay_out():
    x = np.array([1.0, 3.0])
    assert tangent(max_, [x], [np.array([INF, 2.0])]) == 2
    np.testing.assert_array_equal(cotangents(max_, [x], np.array(INF))[0], [0, INF])


def test_second_derivative_of_max_of_squares():
    """max(x^2): gradient 2 x_i at the winner, its derivative 2."""
    x = np.array([1.0, -3.0, 2.0])
    np.testing.assert_array_equal(gradient(lambda v: max_(v * v), x), [0, -6, 0])

    def total(v):
        (bar,) = vjp([max_(v * v)], [v])([constant(1.0, "float64")])
        return sum_(bar)

    np.testing.assert_array_equal(gradient(total, x), [0, 2, 0])


# ------------------------------------------------------------------------------- merge programs


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint64", "bool"])
def test_merging_from_the_identity_is_the_reduction(name, dtype, rng):
    op, h = OPS[name], NumpyHandler()
    if (name in ("any", "all")) != (dtype == "bool"):
        return
    x = rng.integers(0, 4, (6, 5)).astype(dtype)
    if x.dtype.kind == "f" and name in ("max", "min"):
        x = np.array(list(itertools.permutations([0.0, -0.0, 2.0, NAN, -INF])), dtype).T
    with np.errstate(all="ignore"):
        accumulator = np.full(x.shape[1:], op.identity(as_dtype(dtype)), dtype)
        for row in x:
            accumulator = op.scalar(h, accumulator, row)
        expected = op.reference(x, axes=(0,))
    np.testing.assert_array_equal(accumulator, expected)
    if x.dtype.kind == "f":
        same = np.isnan(expected) | (np.signbit(accumulator) == np.signbit(expected))
        assert same.all()


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_merging_pairs_in_any_split_is_the_argument(name):
    op, h = OPS[name], NumpyHandler()
    rows = np.array(list(itertools.product([0.0, 1.0, NAN, -0.0], repeat=4)))
    pairs = [(rows[:, k], np.full(len(rows), k)) for k in range(4)]
    expected = op.reference(rows, axis=1)
    for order in itertools.permutations(range(4)):
        a, b, c, d = (pairs[k] for k in order)
        chain = op.scalar(h, op.scalar(h, op.scalar(h, a, b), c), d)
        tree = op.scalar(h, op.scalar(h, a, b), op.scalar(h, c, d))
        np.testing.assert_array_equal(chain[1], expected)
        np.testing.assert_array_equal(tree[1], expected)
