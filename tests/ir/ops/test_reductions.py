"""sum, prod, any, all: values, identities, derivatives, messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rule_checks import check_rules, evaluate, gradient, node_like, tangent_function

from tilegrad.autodiff.forward import jvp
from tilegrad.autodiff.reverse import vjp
from tilegrad.ir.dtypes import float32, float64
from tilegrad.ir.errors import DTypeError, ShapeError
from tilegrad.ir.graph import toposort
from tilegrad.ir.ops import OPS, all_, any_, argmax, argmin, max_, min_, prod, sum_
from tilegrad.ir.ops.leaves import constant

PAIRS = [(sum_, np.sum), (prod, np.prod), (any_, np.any), (all_, np.all), (max_, np.max)]
PAIRS += [(min_, np.min)]
SHAPES = [(), (1,), (5,), (2, 3), (1, 4, 1), (3, 2, 4), (0,), (0, 3), (2, 0, 2)]


def axis_choices(ndim):
    yield None
    for n in range(ndim + 1):
        yield from itertools.combinations(range(ndim), n)
    yield from range(-ndim, ndim)
    if ndim > 1:
        yield (-1, 0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "uint16", "bool"])
@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda f: f.__name__)
def test_values_are_numpys(ours, theirs, dtype, rng):
    for shape in SHAPES:
        x = (rng.integers(-3, 4, shape) if dtype != "bool" else rng.integers(0, 2, shape)).astype(
            dtype
        )
        for axis in axis_choices(len(shape)):
            for keepdims in (False, True):
                try:
                    expected = theirs(x, axis=axis, keepdims=keepdims)
                except ValueError:  # an extremum of nothing
                    with pytest.raises(ShapeError, match="at least one element"):
                        ours(node_like(x).out, axis, keepdims)
                    continue
                got = evaluate(lambda v, a=axis, k=keepdims: ours(v, a, k), x)
                np.testing.assert_array_equal(got, expected, strict=True)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_sum_and_product(dtype, rng):
    x = (rng.integers(-3, 4, (3, 4)) + 1j * rng.integers(-3, 4, (3, 4))).astype(dtype)
    np.testing.assert_array_equal(evaluate(sum_, x), np.sum(x), strict=True)
    np.testing.assert_array_equal(evaluate(lambda v: prod(v, 1), x), np.prod(x, 1), strict=True)


def test_single_precision_accumulates_in_double():
    """Case 26: a serial float32 accumulator sticks at 2**24."""
    ones = np.ones(2**20, np.float32)
    start = np.concatenate([np.full(1, 2.0**24, np.float32), ones])
    assert evaluate(sum_, start) == np.float32(2**24 + 2**20)
    # 1 + 2**-30 many times: the sum is rounded once, at the end
    x = np.full(2**10, 2.0**-30, np.float32)
    assert evaluate(sum_, np.append(x, np.float32(1))) == np.float32(1 + 2.0**-20)
    assert OPS["sum"].accumulator(float32) is float64
    # the product of 1e30, 1e30, 1e-30, 1e-30 overflows in float32 on its way
    assert evaluate(prod, np.array([1e30, 1e30, 1e-30, 1e-30], np.float32)) == np.float32(1)


def test_integers_wrap_in_their_own_type():
    x = np.array([2**62, 2**62, 5])
    assert evaluate(sum_, x) == np.sum(x)


def test_logical_reductions_compare_with_zero():
    x = np.array([[0.0, np.nan, 0.0], [0.0, 1.0, -0.0]])
    np.testing.assert_array_equal(evaluate(lambda v: any_(v, 0), x), [False, True, False])
    np.testing.assert_array_equal(evaluate(lambda v: all_(v, 0), x), [False, True, False])
    np.testing.assert_array_equal(evaluate(lambda v: all_(v, 0), np.zeros((0, 2))), [True, True])


# ------------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0, 0, 2, -3], [0, -30, 0, 0]),
        ([5.0, 0, 0, -3], [0, 0, 0, 0]),
        ([0.0, 0, 0], [0, 0, 0]),
        ([2.0], [1]),
        ([2.0, 3, 4], [12, 8, 6]),
        ([-0.0, 7.0], [7, 0]),
    ],
)
def test_gradient_of_a_product_is_the_product_of_the_others(values, expected):
    """Case 49."""
    np.testing.assert_array_equal(gradient(prod, np.array(values)), expected)


@pytest.mark.parametrize("zeros", [0, 1, 2, 3])
def test_second_derivative_of_a_product_with_zeros(zeros, rng):
    """d2/dxi dxj is the product of all but i and j, with any number of zeros."""
    x = rng.integers(1, 5, 5).astype(float)
    x[:zeros] = 0
    hessian = np.array([gradient(lambda v, k=k: weighted_gradient(v, k), x) for k in range(5)])
    expected = np.zeros((5, 5))
    for i, j in itertools.permutations(range(5), 2):
        expected[i, j] = np.prod(np.delete(x, [i, j]))
    np.testing.assert_array_equal(hessian, expected)


def weighted_gradient(v, k):
    """Component ``k`` of the gradient of the product, as a function of Values."""
    (bar,) = vjp([prod(v)], [v])([constant(1.0, "float64")])
    return sum_(bar * constant(np.eye(5)[k]))


def test_third_derivative_of_a_product(rng):
    x = rng.standard_normal((2, 3, 2))
    x[0, 0, 0] = x[1, 2, 1] = 0
    check_rules(lambda v: prod(v, (0, 2)), [x], rng)
    t = rng.standard_normal(x.shape)
    check_rules(tangent_function(lambda v: prod(v, (0, 2)), [t]), [x], rng)


def test_derivative_of_an_empty_product_and_sum():
    assert gradient(prod, np.zeros(0)).shape == (0,)
    assert gradient(lambda v: sum_(prod(v, 1)), np.zeros((3, 0))).shape == (3, 0)
    assert gradient(sum_, np.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("f", [sum_, prod, max_, min_])
def test_the_size_of_a_derivative_does_not_depend_on_the_extent(f):
    counts = []
    for n in (10, 10_000):
        x, t = node_like(np.ones(n)).out, node_like(np.ones(n)).out
        (dot,) = jvp([f(x)], {x: t})
        counts.append(len(toposort([dot])))
    assert counts[0] == counts[1] < 40


# ------------------------------------------------------------------------------------ messages


def test_messages():
    x = node_like(np.ones((2, 0, 3))).out
    with pytest.raises(IndexError, match=r"sum: expected an axis in \[-3, 3\), got 3"):
        sum_(x, 3)
    with pytest.raises(IndexError, match=r"argmax: expected an axis in \[-3, 3\), got -4"):
        argmax(x, -4)
    with pytest.raises(
        ShapeError, match=r"prod: expected each axis once, got \[0, -3\] for 3 axes"
    ):
        prod(x, (0, -3))
    with pytest.raises(ShapeError, match=r"max: expected at least one element along axes \[1\], "):
        max_(x, 1)
    with pytest.raises(ValueError, match="the argmin of nothing is not defined"):
        argmin(x)
    with pytest.raises(DTypeError, match=r"max: is not defined for c128\[2\]"):
        max_(np.ones(2, complex))
    with pytest.raises(IndexError, match=r"sum: expected an axis in \[0, 0\), got 0"):
        sum_(1.0, 0)


def test_messages_name_the_users_line():
    with pytest.raises(IndexError, match=r"at .*test_reductions\.py"):
        sum_(np.ones(3), 1)


def test_no_axes_still_check_the_type_and_params_hold_python_integers():
    with pytest.raises(DTypeError, match=r"max: is not defined for c128\[\]"):
        max_(1j)
    assert evaluate(lambda v: any_(v, ()), np.array([2.0, 0.0])).tolist() == [True, False]
    node = sum_(np.ones((2, 3)), np.int64(-1)).node
    assert [type(d) for d in node.param("axes")] == [int]
