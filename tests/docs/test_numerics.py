"""Rows of ``docs/numerics.md`` that no other test shows."""

from __future__ import annotations

import math
import re
import warnings

import mpmath
import numpy as np
import pytest
from ways import in_every_way, same_bits

import tilegrad as tg

inf, nan = math.inf, math.nan


def test_conversion_to_bool_and_to_integers() -> None:
    """NaN is true; floats truncate toward zero and saturate; NaN gives 0."""
    x = np.array([0.0, -0.0, nan, 2.0, -inf])
    got = in_every_way(lambda x: tg.astype(x, tg.bool_), x)
    np.testing.assert_array_equal(got, [False, False, True, True, True])
    got = in_every_way(lambda x: tg.astype(x, tg.int64), np.array([-2.7, 2.7, 1e30, -1e30, nan]))
    top = np.iinfo(np.int64)
    np.testing.assert_array_equal(got, [-2, 2, top.max, top.min, 0])


def test_no_floating_operation_raises_or_warns() -> None:
    """Values outside a domain give IEEE's value, on every way of running."""
    x = np.array([-1.0, 0.0, inf, -inf, nan, 1e308])
    functions = (tg.log, tg.sqrt, tg.exp, tg.acos, tg.acosh, tg.atanh, tg.log1p, lambda x: 1 / x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in (*functions, lambda x: x / (x - x), lambda x: x * x):
            in_every_way(f, x)
        slopes = tg.vmap(tg.grad(tg.log))(tg.asarray(x))
        np.testing.assert_array_equal(slopes, [-1, inf, 0, -0.0, nan, 1e-308])


def test_subnormal_numbers_are_kept() -> None:
    """Nothing is flushed to zero: not in vectors, not in threads, not as an operand."""
    tiny = np.full(40_001, 5e-324)
    np.testing.assert_array_equal(in_every_way(lambda x: x * 3.0, tiny), 3 * tiny)
    np.testing.assert_array_equal(in_every_way(lambda x: x / 2.0 + x, tiny), tiny)
    single = np.full(40_001, 1e-45, np.float32)
    np.testing.assert_array_equal(in_every_way(lambda x: x + x, single), single + single)


def test_a_product_and_a_sum_are_rounded_each() -> None:
    """A fused multiply-add would give 2**-60; compiled code does not contract."""
    x = np.full(1001, 1 + 2.0**-30)
    got = in_every_way(lambda x: x * x - (1 + 2.0**-29), x)
    np.testing.assert_array_equal(got, np.zeros(1001))
    code = tg.jit(lambda x: x * x + 1.0).lower(x).as_text("llvm")
    assert re.search(r"\bfmul <8 x double>", code)
    assert not re.search(r"\bf(add|sub|mul|div) [^<\n]*(fast|contract|reassoc)", code)


@pytest.mark.parametrize("shapes", [((301, 333), (333, 700)), ((3, 200, 150), (3, 150, 210))])
def test_matrix_products_have_one_set_of_bits(shapes, rng) -> None:
    a, b = (rng.standard_normal(s) for s in shapes)
    f = tg.jit(lambda a, b: a @ b)
    results = []
    for threads in (1, 2, 3, 8):
        with tg.config(num_threads=threads):
            results.append(np.asarray(f(a, b)))
    for result in results:
        same_bits(result, results[0])
    np.testing.assert_allclose(results[0], a @ b, rtol=1e-12, atol=1e-12)


def test_slopes_of_logarithms_tangent_and_cosine() -> None:
    for x in (3.0, 0.1, -2.0):
        assert float(tg.grad(tg.log2)(x)) == pytest.approx(1 / (x * math.log(2)), rel=4e-16)
        assert float(tg.grad(tg.log10)(x)) == pytest.approx(1 / (x * math.log(10)), rel=4e-16)
        exact = 1 + mpmath.tan(x) ** 2
        assert float(tg.grad(tg.tan)(x)) == pytest.approx(float(exact), rel=1e-15)
    slope = np.asarray(tg.grad(tg.cos)(0.0))
    assert slope == 0
    assert np.signbit(slope)  # -(sin(0) * 1)


def test_variance_of_too_few_elements() -> None:
    """n <= ddof divides by zero: 0/0 of one element, x/0 of two."""
    assert np.isnan(in_every_way(lambda x: tg.var(x, ddof=1), np.array([3.0])))
    assert in_every_way(lambda x: tg.var(x, ddof=2), np.array([1.0, 2.0])) == inf


def test_a_weak_exponent_is_rounded_first() -> None:
    """x**0.1 of single precision is x**float32(0.1): far from 1 the results are apart."""
    x = np.array([1e38, 3e38, 7e37, 1e-37, 3e-38], np.float32)

    def exact(y: float) -> np.ndarray:
        return np.array([float(mpmath.power(float(v), y)) for v in x]).astype(np.float32)

    got = in_every_way(lambda x: x**0.1, x)
    assert got.dtype == np.float32
    apart = exact(float(np.float32(0.1))) != exact(0.1)
    assert apart.sum() >= 3
    np.testing.assert_array_equal(got[apart], exact(float(np.float32(0.1)))[apart])


def test_the_shift_of_softmax_has_no_derivative_of_its_own() -> None:
    """The shift drops out in exact arithmetic: derivatives are those of the formula without it."""
    x = np.array([0.3, -1.0, 2.0])
    plain = lambda x: tg.log(tg.sum(tg.exp(x)))  # noqa: E731
    for order in (tg.grad, tg.hessian):
        np.testing.assert_allclose(order(tg.logsumexp)(x), order(plain)(x), rtol=1e-13, atol=1e-16)
    text = tg.jit(tg.logsumexp).lower(x).as_text("ir")
    assert "stop_gradient" in text


def test_relu_lets_nan_through_in_every_way() -> None:
    x = np.array([-1.0, -0.0, 0.0, 2.0, nan])
    np.testing.assert_array_equal(in_every_way(tg.nn.relu, x), [0, 0, 0, 2, nan])
    slope = lambda x: tg.vmap(tg.grad(tg.nn.relu))(x)  # noqa: E731
    np.testing.assert_array_equal(in_every_way(slope, x[:-1]), [0, 0, 0, 1])


def test_sign_and_nan_to_num_are_flat() -> None:
    x = np.array([-2.0, 0.0, 3.0, nan])
    np.testing.assert_array_equal(in_every_way(tg.sign, x), [-1, 0, 1, nan])
    np.testing.assert_array_equal(tg.vmap(tg.grad(tg.sign))(x[:-1]), np.zeros(3))
    top = np.finfo(np.float64).max
    got = in_every_way(tg.nan_to_num, np.array([nan, inf, -inf, 1.0]))
    np.testing.assert_array_equal(got, [0, top, -top, 1])


def test_argmax_of_ties_and_zeros() -> None:
    """The first of equal elements; +0 and -0 are equal."""
    assert in_every_way(tg.argmax, np.array([1.0, 3.0, 3.0])) == 1
    assert in_every_way(tg.argmax, np.array([-0.0, 0.0])) == 0
    assert in_every_way(tg.argmin, np.array([[2, 1], [1, 1]])) == 1


def test_running_sums_round_in_their_dtype() -> None:
    """cumsum in float32 is sequential in float32, unlike sum; its cotangent runs backward."""
    x = np.array([2.0**24, 1.0, 1.0], np.float32)
    np.testing.assert_array_equal(in_every_way(tg.cumsum, x), np.cumsum(x))
    assert in_every_way(tg.sum, x) == np.float32(2**24 + 2)
    weights = np.array([1.0, 10.0, 100.0])
    got = tg.grad(lambda v: tg.sum(tg.cumsum(v) * weights))(np.ones(3))
    np.testing.assert_array_equal(got, [111, 110, 100])
    got = in_every_way(lambda v: tg.cumsum(v), np.ones((2, 2)))
    np.testing.assert_array_equal(got, [1, 2, 3, 4])
