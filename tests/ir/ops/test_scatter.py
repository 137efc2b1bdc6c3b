"""scatter: order of duplicates, modes, derivatives of all five ways, messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rule_checks import (
    check_batch,
    check_rules,
    cotangents,
    evaluate,
    gradient,
    node_like,
    tangent,
    tangent_function,
)

from tilegrad.autodiff.reverse import transpose
from tilegrad.ir.errors import DTypeError, ShapeError, UnsupportedError
from tilegrad.ir.ops import scatter, sum_
from tilegrad.ir.ops.leaves import constant

HOW = ("set", "add", "mul", "min", "max")
RESOLVE = {
    "raise": lambda i, n: i % n,
    "clip": lambda i, n: min(max(i, 0), n - 1),
    "wrap": lambda i, n: i % n,
    "fill": lambda i, n: i % n if -n <= i < n else None,
}
STEP = {
    "set": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": np.minimum,
    "max": np.maximum,
}


def written(x, updates, indices, axes, how, resolve):
    """One update after the other."""
    y = x.copy()
    for place in np.ndindex(*indices[0].shape):
        found = [resolve(int(i[place]), x.shape[d]) for i, d in zip(indices, axes, strict=True)]
        if None in found:
            continue
        where = [slice(None)] * x.ndim
        for d, k in zip(axes, found, strict=True):
            where[d] = k
        y[tuple(where)] = STEP[how](y[tuple(where)], updates[place])
    return y


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("mode", RESOLVE)
def test_values_over_axes_and_modes(how, mode, rng):
    x = rng.standard_normal((3, 4, 2))
    for index_shape in [(), (7,), (3, 4), (0,)]:
        for axes in [(0,), (2,), (1, 0), (0, 1, 2), (2, 0)]:
            reach = 1 if mode == "raise" else 2
            indices = [
                rng.integers(-reach * x.shape[d], reach * x.shape[d], index_shape) for d in axes
            ]
            rest = tuple(n for d, n in enumerate(x.shape) if d not in axes)
            updates = rng.standard_normal(index_shape + rest)
            got = evaluate(
                lambda v, u, *i, a=axes: scatter(v, u, *i, axes=a, how=how, mode=mode),
                *(x, updates, *indices),
            )
            np.testing.assert_array_equal(
                got, written(x, updates, indices, axes, how, RESOLVE[mode])
            )


@pytest.mark.parametrize("dtype", ["int8", "uint64", "bool", "float32", "complex64"])
@pytest.mark.parametrize("how", HOW)
def test_element_types(dtype, how, rng):
    if dtype == "complex64" and how in ("min", "max"):
        with pytest.raises(DTypeError, match="complex numbers have no"):
            scatter(np.ones(2, dtype), np.ones(1, dtype), [0], how=how)
        return
    x, u = rng.integers(0, 2, 4).astype(dtype), rng.integers(0, 2, 6).astype(dtype)
    i = rng.integers(-4, 4, 6)
    got = evaluate(lambda v, w: scatter(v, w, i, how=how), x, u)
    np.testing.assert_array_equal(got, written(x, u, [i], (0,), how, RESOLVE["raise"]), strict=True)


def test_each_sum_is_rounded_in_index_order():
    x, u = np.zeros(1, np.float32), np.array([2.0**24, 1, 1], np.float32)
    assert evaluate(lambda v, w: scatter(v, w, [0, 0, 0], how="add"), x, u) == [2.0**24]
    assert evaluate(lambda v, w: scatter(v, w, [0, 0, 0], how="add"), x, u[::-1]) == [2.0**24 + 2]


def test_signs_of_zeros_do_not_depend_on_the_order():
    for x, *u in itertools.product([0.0, -0.0], repeat=3):
        top = evaluate(lambda v, w: scatter(v, w, [0, 0], how="max"), np.array([x]), np.array(u))
        low = evaluate(lambda v, w: scatter(v, w, [0, 0], how="min"), np.array([x]), np.array(u))
        assert np.signbit(top[0]) == all(np.signbit([x, *u]))
        assert np.signbit(low[0]) == any(np.signbit([x, *u]))


def test_updates_broadcast_and_convert_within_their_kind():
    x = np.zeros((2, 3), np.float32)
    got = evaluate(lambda v: scatter(v, 2.5, [1]), x)
    np.testing.assert_array_equal(got, np.array([[0, 0, 0], [2.5] * 3], np.float32), strict=True)
    got = evaluate(lambda v: scatter(v, np.arange(3), [0, 1]), x)
    np.testing.assert_array_equal(got, np.array([[0, 1, 2]] * 2, np.float32), strict=True)


# ------------------------------------------------------------------------------- derivatives


def test_only_the_last_writer_gets_a_cotangent():
    """Case 37: value 23, gradient [0, 10, 1]."""
    f = lambda v: sum_(scatter(np.zeros(2), v, [0, 0, 1]) * np.array([10.0, 1.0]))  # noqa: E731
    v = np.array([1.0, 2.0, 3.0])
    assert evaluate(f, v) == 23
    np.testing.assert_array_equal(gradient(f, v), [0, 10, 1])


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("mode", RESOLVE)
def test_rules_with_duplicates(how, mode, rng):
    x = rng.standard_normal((3, 2))
    u = rng.standard_normal((6, 2))
    i = np.array([1, -2, 1, 0, 1, -3]) if mode == "raise" else np.array([1, -2, 1, 7, -1, 9])
    f = lambda v, w: scatter(v, w, i, how=how, mode=mode)  # noqa: E731
    check_rules(f, [x, u], rng)


def test_rules_over_two_axes(rng):
    x, u = rng.standard_normal((3, 2, 2)), rng.standard_normal((2, 3, 2))
    i, j = rng.integers(-3, 3, (2, 3)), rng.integers(-2, 2, (2, 3))
    for how in HOW:
        f = lambda v, w: scatter(v, w, i, j, axes=(0, 2), how=how)  # noqa: E731, B023
        check_rules(f, [x, u], rng)
        check_batch(
            lambda v, w, p, q: scatter(v, w, p, q, axes=(0, 2), how=how),  # noqa: B023
            [x, u, i, j],
            rng,
        )


@pytest.mark.parametrize("zeros", [(), (0,), (0, 2), (0, 1, 2, 3)])
def test_product_of_the_others_with_zeros(zeros, rng):
    """x[0] * u0 * u1 * u2, x[1] * u3: every partial is the product of the other factors."""
    x, u = np.array([2.0, 3.0, 5.0]), np.array([7.0, 11, 13, 17])
    u[list(zeros)] = 0
    f = lambda v, w: scatter(v, w, [0, 0, 0, 1], how="mul")  # noqa: E731
    x_bar, u_bar = cotangents(f, [x, u], np.ones(3))
    np.testing.assert_array_equal(x_bar, [u[0] * u[1] * u[2], u[3], 1])
    np.testing.assert_array_equal(u_bar, [2 * u[1] * u[2], 2 * u[0] * u[2], 2 * u[0] * u[1], 3])
    check_rules(f, [x, u], rng)
    check_rules(tangent_function(f, [np.ones(3), np.arange(4.0)]), [x, u], rng)


def test_dropped_updates_take_no_part_in_products(rng):
    """Index 9 is dropped; index 2 would be its clipped neighbour."""
    x, u = np.ones(3), np.array([2.0, 3, 5, 7])
    f = lambda v, w: scatter(v, w, [2, 9, 2, -9], how="mul", mode="fill")  # noqa: E731
    x_bar, u_bar = cotangents(f, [x, u], np.ones(3))
    np.testing.assert_array_equal(x_bar, [1, 1, 10])
    np.testing.assert_array_equal(u_bar, [5, 0, 2, 0])


def test_ties_for_an_extremum_share_equally():
    x, u = np.array([4.0, 1.0, 2.0]), np.array([4.0, 4.0, 3.0, 0.0])
    f = lambda v, w: scatter(v, w, [0, 0, 1, 1], how="max")  # noqa: E731
    x_bar, u_bar = cotangents(f, [x, u], np.array([3.0, 5, 7]))
    np.testing.assert_array_equal(x_bar, [1, 0, 7])
    np.testing.assert_array_equal(u_bar, [1, 1, 5, 0])


def test_nan_of_an_extremum_is_nan_only_where_an_update_took_part():
    x, u = np.array([np.nan, 1.0, np.nan]), np.array([np.nan, 2.0])
    f = lambda v, w: scatter(v, w, [1, 0], how="max")  # noqa: E731
    got = tangent(f, [x, u], [np.ones(3), np.ones(2)])
    np.testing.assert_array_equal(got, [np.nan, np.nan, 1.0])


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("mode", ["raise", "fill", "clip", "wrap"])
def test_batching(how, mode, rng):
    x, u = rng.standard_normal((3, 2)), rng.standard_normal((5, 2))
    i = rng.integers(-3, 3, 5) * (1 if mode == "raise" else 2)
    check_batch(lambda v, w, p: scatter(v, w, p, how=how, mode=mode), [x, u, i], rng)


def test_batched_derivatives(rng):
    x, u = rng.standard_normal((3, 2)), rng.standard_normal((4, 2))
    i = np.array([1, 0, 1, -1])
    for how in HOW:
        f = tangent_function(
            lambda v, w: scatter(v, w, i, how=how),  # noqa: B023
            [rng.standard_normal(x.shape), rng.standard_normal(u.shape)],
        )
        check_batch(f, [x, u], rng)


def test_messages():
    x = node_like(np.ones((2, 3))).out
    with pytest.raises(
        IndexError, match="scatter: index 2 is out of bounds for axis 0 with size 2"
    ):
        evaluate(lambda v: scatter(v, 1.0, [2]), np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"updates that broadcast to \[4, 3\]"):
        scatter(x, np.ones((2, 3)), [0, 1, 0, 1])
    with pytest.raises(DTypeError, match="scatter: expected updates that int64 can take"):
        scatter(np.ones(2, np.int64), 0.5, [0])
    with pytest.raises(DTypeError, match="scatter: expected updates that float64 can take"):
        scatter(np.ones(2), 1j, [0])
    with pytest.raises(ShapeError, match="expected one of set add mul min max, got 'sub'"):
        scatter(x, 1.0, [0], how="sub")
    with pytest.raises(OverflowError, match="300 is out of bounds for int8"):
        scatter(np.ones(2, np.int8), 300, [0])


@pytest.mark.parametrize(("how", "operand"), [("mul", 1), ("max", 0), ("min", 1)])
def test_what_is_not_linear_is_not_transposed(how, operand):
    nodes = [node_like(np.ones(3)), node_like(np.ones(2))]
    out = scatter(nodes[0].out, nodes[1].out, [0, 1], how=how)
    with pytest.raises(UnsupportedError, match=f"scatter.* is not linear in operand {operand}"):
        transpose([out], [nodes[operand].out], [constant(np.ones(3))])
