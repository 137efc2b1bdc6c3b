"""sort, argsort, top_k, searchsorted: order, ties, NaN, derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from rule_checks import check_batch, check_rules, cotangents, evaluate, gradient, tangent

from tilegrad.ir.errors import DTypeError, ShapeError
from tilegrad.ir.ops import argsort, searchsorted, slice_axis, sort, sum_, top_k

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint64", "bool"])
@pytest.mark.parametrize("shape", [(1,), (9,), (3, 5), (2, 1, 6), (0,), (3, 0)])
def test_ascending_is_numpys(dtype, shape, rng):
    x = rng.integers(0, 4, shape).astype(dtype)
    if x.dtype.kind == "f" and x.size > 4:
        x.reshape(-1)[[1, 4]] = NAN, -INF
    for axis in range(-x.ndim, x.ndim):
        np.testing.assert_array_equal(
            evaluate(lambda v, a=axis: sort(v, a), x), np.sort(x, axis), strict=True
        )
        np.testing.assert_array_equal(
            evaluate(lambda v, a=axis: argsort(v, a), x),
            np.argsort(x, axis, kind="stable"),
            strict=True,
        )


@pytest.mark.parametrize("dtype", ["float64", "int8", "uint8", "bool"])
def test_descending_is_stable(dtype, rng):
    """Against Python's sorted with reverse=True, which is stable."""
    x = rng.integers(0, 4, 12).astype(dtype)
    if dtype == "int8":
        x[3] = -128  # has no negative
    expected = sorted(range(12), key=lambda k: x[k], reverse=True)
    assert evaluate(lambda v: argsort(v, descending=True), x).tolist() == expected
    np.testing.assert_array_equal(evaluate(lambda v: sort(v, descending=True), x), x[expected])


def test_nan_comes_last_in_either_direction():
    x = np.array([NAN, 1.0, -INF, NAN, INF])
    np.testing.assert_array_equal(evaluate(sort, x), [-INF, 1, INF, NAN, NAN])
    np.testing.assert_array_equal(
        evaluate(lambda v: sort(v, descending=True), x), [INF, 1, -INF, NAN, NAN]
    )
    assert evaluate(lambda v: argsort(v, descending=True), x).tolist() == [4, 1, 2, 0, 3]


def test_signed_zeros_are_equal_and_keep_their_order():
    x = np.array([0.0, -0.0, 0.0, -0.0])
    for descending in (False, True):
        y = evaluate(lambda v: sort(v, descending=descending), x)  # noqa: B023
        assert np.signbit(y).tolist() == [False, True, False, True]


def test_ties_keep_their_own_derivatives():
    """Case 52: a stable sort sends the cotangent of place 1 to the second of the tied."""
    x = np.array([1.0, 1, 3])
    g = gradient(lambda v: sum_(slice_axis(sort(v), 0, 1, 2)), x)
    np.testing.assert_array_equal(g, [0, 1, 0])
    np.testing.assert_array_equal(tangent(sort, [x], [np.array([5.0, 6, 7])]), [5, 6, 7])
    down = lambda v: sort(v, descending=True)  # noqa: E731
    np.testing.assert_array_equal(cotangents(down, [x], np.array([1.0, 2, 3]))[0], [2, 3, 1])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_rules_and_batching(axis, descending, rng):
    x = rng.permutation(12).reshape(3, 4) / 4
    f = lambda v: sort(v * v * v, axis, descending)  # noqa: E731
    check_rules(f, [x], rng, tol=1e-5)
    check_batch(lambda v: sort(v, axis, descending), [x], rng)
    check_batch(lambda v: argsort(v, axis, descending), [x], rng)


def test_top_k(rng):
    x = np.array([[3.0, 7, 7, NAN, 1], [0.0, -1, 5, 5, 9]])
    values, places = (evaluate(lambda v, n=n: top_k(v, 3)[n], x) for n in (0, 1))
    np.testing.assert_array_equal(values, [[7, 7, 3], [9, 5, 5]])
    np.testing.assert_array_equal(places, [[1, 2, 0], [4, 2, 3]])
    bars = cotangents(lambda v: top_k(v, 2)[0], [x], np.array([[1.0, 2], [3, 4]]))[0]
    np.testing.assert_array_equal(bars, [[0, 1, 2, 0, 0], [0, 0, 4, 0, 3]])
    check_rules(lambda v: top_k(v, 2, 0)[0], [rng.permutation(12).reshape(4, 3) / 4], rng)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 9, 100])
def test_searchsorted_is_numpys(side, n, rng):
    x = np.sort(rng.integers(0, 20, n)).astype(float)
    v = np.append(
        rng.integers(-2, 23, (30,)) + 0.5 * rng.integers(0, 2, 30), [INF, -INF, NAN, -0.0]
    )
    got = evaluate(lambda a, b: searchsorted(a, b, side), x, v)
    np.testing.assert_array_equal(got, np.searchsorted(x, v, side), strict=True)
    if n > 2:
        x[-2:] = NAN
        got = evaluate(lambda a, b: searchsorted(a, b, side), x, v)
        np.testing.assert_array_equal(got, np.searchsorted(x, v, side))


def test_messages():
    with pytest.raises(IndexError, match=r"sort: expected an axis in \[-1, 1\), got 1"):
        sort(np.ones(3), 1)
    with pytest.raises(IndexError, match=r"argsort: expected an axis in \[0, 0\), got -1"):
        argsort(1.0)
    with pytest.raises(DTypeError, match="sort: complex numbers have no order"):
        sort(np.ones(2, complex))
    with pytest.raises(ShapeError, match=r"top_k: expected k in \[0, 3\]"):
        top_k(np.ones(3), 4)
    with pytest.raises(ShapeError, match="searchsorted: expected a 1-d array"):
        searchsorted(np.ones((2, 2)), 1.0)
