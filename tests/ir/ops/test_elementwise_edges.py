"""Derivatives where formulas break: kinks, poles, branches not taken, zeros times infinities.

Each value is held in every composition of forward and reverse mode: for order two forward over
forward, forward over reverse, reverse over forward, reverse over reverse.
"""

from __future__ import annotations

import itertools
from math import inf, isnan, log, nan, pi, sqrt

import mpmath
import numpy as np
import pytest
from rule_checks import cotangents, evaluate, node_like, tangent, tangent_function

from tilegrad.autodiff.reverse import linear_transpose, vjp
from tilegrad.ir import ops
from tilegrad.ir.errors import UnsupportedError
from tilegrad.ir.ops.fill import zeros_of
from tilegrad.ir.ops.leaves import constant


def forward(f, operand):
    def derivative(*xs):
        moves = [np.ones(x.shape) if i == operand else None for i, x in enumerate(xs)]
        return tangent_function(f, moves)(*xs)

    return derivative


def reverse(f, operand):
    def derivative(*xs):
        out = f(*xs)
        (bar,) = vjp([out], [xs[operand]])([constant(np.ones(out.shape))])
        return zeros_of(out.type) if bar is None else bar

    return derivative


def derivatives(f, *at, operand=0, order=1):
    """The values that all compositions of modes give."""
    at = [np.float64(v) for v in at]
    for modes in itertools.product((forward, reverse), repeat=order):
        g = f
        for mode in modes:
            g = mode(g, operand)
        yield float(evaluate(g, *at))


def assert_derivative(expected, f, *at, operand=0, order=1, rtol=1e-14):
    for got in derivatives(f, *at, operand=operand, order=order):
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=0)


# ------------------------------------------------------------------------- branches not taken


BRANCHES = {
    # name: (function, place, first and second derivative of the branch taken)
    "sqrt at 0": (lambda x: ops.where(x < 1, 3 * x, ops.sqrt(x)), 0.0, 3, 0),
    "exp overflows": (lambda x: ops.where(x > 5, 2 * x, ops.exp(x)), 800.0, 2, 0),
    "product overflows": (lambda x: ops.where(x > 5, 2 * x, x * ops.exp(x)), 800.0, 2, 0),
    "tower overflows": (lambda x: ops.where(x > 5, x * x, ops.exp(ops.exp(x))), 800.0, 1600, 2),
    "log at 0": (lambda x: ops.where(x > 0, ops.log(x), 5 * x), 0.0, 5, 0),
    "log below 0": (lambda x: ops.where(x > 0, ops.sqrt(ops.log(x)), 5 * x), -1.0, 5, 0),
    "quotient 0/0": (lambda x: ops.where(ops.eq(x, 0), 7 * x, ops.sin(x) / x), 0.0, 7, 0),
    "power": (lambda x: ops.where(x > 0, x**0.5, x), 0.0, 1, 0),
    "rsqrt": (lambda x: ops.where(x > 0, ops.rsqrt(x), x), 0.0, 1, 0),
    "cbrt": (lambda x: ops.where(x > 0, ops.cbrt(x), x), 0.0, 1, 0),
    "sin of inf": (lambda x: ops.where(x > 5, 2 * x, ops.sin(x)), inf, 2, 0),
    "NaN inside": (lambda x: ops.where(x < 1, 3 * x, (x - nan) ** 2), 0.5, 3, 0),
    "asin outside": (lambda x: ops.where(x > 1, x, ops.asin(x)), 2.0, 1, 0),
    "atanh at 1": (lambda x: ops.where(x < 1, ops.atanh(x), 4 * x), 1.0, 4, 0),
    "division by x": (lambda x: ops.where(x > 0, 1 / x, x), 0.0, 1, 0),
    "maximum": (lambda x: ops.where(x > 5, x, ops.maximum(ops.exp(x), x)), 800.0, 1, 0),
    "logaddexp": (lambda x: ops.where(x > 5, x, ops.logaddexp(x, nan)), 800.0, 1, 0),
    "erfc": (lambda x: ops.where(x > 5, x, ops.exp(x) * ops.erfc(-x)), 800.0, 1, 0),
    "atan2": (lambda x: ops.where(x > 5, x, ops.atan2(x, x - x) / (x - x)), 800.0, 1, 0),
    "hypot": (lambda x: ops.where(x > 5, x, ops.hypot(ops.exp(x), x)), 800.0, 1, 0),
}


@pytest.mark.parametrize("case", BRANCHES)
def test_a_branch_not_taken_has_no_derivative(case):
    f, at, first, second = BRANCHES[case]
    assert_derivative(first, f, at)
    assert_derivative(second, f, at, order=2)


def test_masked_data_may_be_nan():
    """The kind of the case: observations that are missing drop out of a fit."""

    def residual(p, y):
        return ops.where(ops.isnan(y), 0.0, (y - p) ** 2)

    assert_derivative(0, residual, 1.0, nan)
    assert_derivative(-4, residual, 1.0, 3.0)


def test_rows_of_a_jacobian_stay_apart():
    """A zero tangent is zero after a pole too: forward mode along basis vectors."""
    x = np.array([0.0, 2.0])
    np.testing.assert_array_equal(tangent(ops.log, [x], [np.array([0.0, 1.0])]), [0, 0.5])
    np.testing.assert_array_equal(cotangents(ops.log, [x], np.array([0.0, 1.0]))[0], [0, 0.5])


# ------------------------------------------------------------------------ strong zeros themselves


def test_scale_and_unscale_have_the_bits_of_mul_and_div(rng):
    x = rng.standard_normal(200) * 10.0 ** rng.integers(-300, 300, 200)
    x[::7], x[::11] = 0.0, -0.0
    y = rng.permutation(x)
    for ours, theirs in ((ops.scale, ops.mul), (ops.unscale, ops.div)):
        got, plain = evaluate(ours, x, y), evaluate(theirs, x, y)
        same = ~np.isnan(plain)
        np.testing.assert_array_equal(got[same].view("i8"), plain[same].view("i8"))
        assert np.all(got[~same] == 0)  # 0 / 0


@pytest.mark.parametrize("bad", [inf, -inf, nan])
def test_only_a_zero_tangent_is_strong(bad):
    def value(f, *at):
        return float(evaluate(f, *map(np.float64, at)))

    assert value(ops.scale, 0, bad) == 0
    assert isnan(value(ops.scale, bad, 0))
    assert value(lambda x, y: ops.scale(x, y, symmetric=True), bad, 0) == 0
    assert value(ops.unscale, 0, 0) == 0
    assert value(ops.unscale, 0, nan) == 0
    assert isnan(value(ops.scale, 1, nan))


def test_a_zero_factor_does_not_hide_a_pole():
    """exp(log(x)) at 0: forward mode says that it does not know; see docs/design/002."""
    f = lambda x: ops.exp(ops.log(x))  # noqa: E731
    assert isnan(float(evaluate(forward(f, 0), np.float64(0))))
    assert float(evaluate(reverse(f, 0), np.float64(0))) == 0


# ------------------------------------------------------------------------------ conventions


def test_power_in_the_base_at_zero():
    for y, first in ((0.0, 0), (1.0, 1), (2.0, 0), (0.5, inf), (3, 0), (1, 1), (0, 0)):
        assert_derivative(first, lambda x, y=y: x**y, 0.0)
    assert_derivative(0, lambda x: x**0.0, 0.0)
    for y in (0.0, 1.0, 2.0, 0.5):
        assert_derivative(
            {0.0: 0, 1.0: 1, 2.0: 0, 0.5: inf}[y], ops.power, 0.0, y
        )  # the exponent known at run time only
    assert_derivative(2, lambda x: x**2.0, 0.0, order=2)
    assert_derivative(2, lambda x: x**2, 0.0, order=2)
    assert_derivative(6, lambda x: x**3, 0.0, order=3)
    assert_derivative(0, lambda x: x**2, 0.0, order=3)


def test_power_in_the_exponent():
    for x, y in ((0.0, 1.0), (0.0, 2.0), (0.0, 0.0), (-1.0, 2.0), (-2.0, 3.0), (inf, -1.0)):
        assert_derivative(0, ops.power, x, y, operand=1)
    assert_derivative(0, ops.power, 0.0, 2.0, operand=1, order=2)
    assert_derivative(nan, ops.power, nan, 2.0, operand=1)
    assert_derivative(8 * log(2), lambda x: 2.0**x, 3.0)
    assert_derivative(8 * log(2) ** 2, lambda x: 2.0**x, 3.0, order=2)


def test_mixed_derivative_of_power_at_a_zero_exponent():
    """d/dy (y x^(y-1)) = 1 / x at y = 0: the zero exponent masks the value, not its derivative."""
    mixed = forward(reverse(ops.power, 0), 1)
    assert float(evaluate(mixed, np.float64(4.0), np.float64(0.0))) == 0.25


def test_square_root_is_flat_at_zero():
    for order in (1, 2, 3):
        assert_derivative(0, ops.sqrt, 0.0, order=order)
        assert_derivative(0, ops.sqrt, -0.0, order=order)
    for x in (-1.0, -inf):
        assert_derivative(nan, ops.sqrt, x)
        assert_derivative(nan, ops.sqrt, x, order=2)
    # so a norm is, too
    norm = lambda x: ops.sqrt(x * x + 0.0)  # noqa: E731
    assert_derivative(0, norm, 0.0)


KINKS = [
    (ops.abs_, 0.0, 0, 0),
    (ops.abs_, -0.0, 0, 0),
    (ops.abs_, nan, nan, 0),
    (lambda x: (abs(x) + 2) ** 4 + ops.exp(x), 0.0, 1, 1),
    (lambda x: ops.maximum(x, 0.0, tie=0.0), 0.0, 0, 0),
    (lambda x: ops.maximum(x, 2.0), 2.0, 0.5, 0),
    (lambda x: ops.minimum(x, 2.0), 2.0, 0.5, 0),
    (lambda x: ops.maximum(2.0, x), 2.0, 0.5, 0),
    (lambda x: ops.maximum(x, x), 2.0, 1, 0),
    (lambda x: ops.clip(x, 1.0, 5.0), 1.0, 0, 0),
    (lambda x: ops.clip(x, 1.0, 5.0), 5.0, 0, 0),
    (lambda x: ops.clip(x, 1.0, 5.0), 3.0, 1, 0),
    (lambda x: ops.clip(x, None, 5.0), 7.0, 0, 0),
    (lambda x: ops.clip(x, None, 5.0), -inf, 1, 0),
    (lambda x: ops.clip(2.0, x, 5.0), 2.0, 1, 0),
    (lambda x: ops.clip(2.0, 1.0, x), 2.0, 1, 0),
    (ops.floor, 0.5, 0, 0),
    (ops.rint, 0.5, 0, 0),
    (ops.sign, 0.0, 0, 0),
    (lambda x: x - ops.stop_gradient(x) + ops.stop_gradient(ops.rint(x)), 0.3, 1, 0),
    (lambda x: ops.copysign(x, -1.0), 3.0, -1, 0),
    (lambda x: ops.copysign(x, 1.0), -3.0, -1, 0),
]


@pytest.mark.parametrize(("f", "at", "first", "second"), KINKS)
def test_kinks(f, at, first, second):
    assert_derivative(first, f, at)
    assert_derivative(second, f, at, order=2)


POLES = [
    # function, place, first derivative; from the formulas of numerics and inventory EW15-EW28
    (ops.log, -2.0, -0.5),
    (ops.log, 0.0, inf),
    (ops.log1p, -1.0, inf),
    (ops.log10, 0.0, inf),
    (ops.atan, 1e200, 0),
    (ops.atan, inf, 0),
    (ops.asin, 1.0, inf),
    (ops.acos, 1.0, -inf),
    (ops.asin, 2.0, nan),
    (ops.asinh, 1e200, 1e-200),
    (ops.asinh, -inf, 0),
    (ops.asinh, 1.0, sqrt(0.5)),
    (ops.acosh, 1.0, inf),
    (ops.acosh, 1e300, 1e-300),
    (ops.atanh, 1.0, inf),
    (ops.atanh, 2.0, -1 / 3),
    (ops.cbrt, 0.0, inf),
    (ops.cbrt, 8.0, 1 / 12),
    (ops.exp, -inf, 0),
    (ops.expm1, -800.0, 0),
    (ops.tanh, inf, 0),
    (ops.logistic, 1e4, 0),
    (ops.logistic, -1e4, 0),
    (ops.erf, inf, 0),
    (ops.rsqrt, 0.0, -inf),
]


@pytest.mark.parametrize(("f", "at", "first"), POLES)
def test_poles_and_ends(f, at, first):
    assert_derivative(first, f, at, rtol=4e-16)


def test_inverse_sine_is_accurate_near_its_end():
    """d asin = 1 / sqrt((1 - x)(1 + x)), factored: x * x would lose all digits."""
    x = 1 - 2.0**-53
    exact = mpmath.mpf(1) / mpmath.sqrt(1 - mpmath.mpf(x) ** 2)
    assert_derivative(float(exact), ops.asin, x, rtol=4 * 2.2e-16)
    assert_derivative(float(-exact), ops.acos, x, rtol=4 * 2.2e-16)


def test_hyperbolic_sine_inverse_has_no_seam_at_one():
    """The formula changes at |x| = 1, which must not show in the second derivative."""
    for x in (1.0, -1.0, 0.0, 2.0):
        exact = -x / (1 + x * x) ** 1.5
        assert_derivative(exact, ops.asinh, x, order=2, rtol=1e-15)


def test_softplus_and_its_kin_at_the_tie():
    softplus = lambda x: ops.logaddexp(x, 0.0)  # noqa: E731
    log_sigmoid = lambda x: -ops.logaddexp(-x, 0.0)  # noqa: E731
    assert_derivative(0.5, softplus, 0.0)
    assert_derivative(0.5, log_sigmoid, 0.0)
    assert_derivative(0.25, softplus, 0.0, order=2)
    assert_derivative(-0.25, log_sigmoid, 0.0, order=2)
    for x, y, first in ((inf, inf, 0.5), (-inf, -inf, 0.5), (inf, 0.0, 1), (-inf, 0.0, 0)):
        assert_derivative(first, ops.logaddexp, x, y)
        assert_derivative(0, ops.logaddexp, x, y, order=2)
    assert float(evaluate(ops.logaddexp, *np.float64([1000, 1000]))) == 1000 + log(2)


def test_hypot_near_underflow_overflow_and_origin():
    small, large = (3e-200, 4e-200), (3e200, 4e200)
    for x, y in (small, large):
        assert_derivative(0.6, ops.hypot, x, y)
        assert_derivative(0.8, ops.hypot, x, y, operand=1)
    for operand in (0, 1):
        for order in (1, 2):
            assert_derivative(0, ops.hypot, 0.0, 0.0, operand=operand, order=order)
    # d2/dx2 = y^2 / r^3
    assert_derivative(16 / 125, ops.hypot, 3.0, 4.0, order=2)


def test_atan2_everywhere():
    for y, x in ((1.0, 2.0), (1e-300, 1e-300), (1e300, 2e300), (-3.0, 0.5), (0.0, -1.0)):
        exact = mpmath.mpf(x) / (mpmath.mpf(x) ** 2 + mpmath.mpf(y) ** 2)
        assert_derivative(float(exact), ops.atan2, y, x, rtol=1e-15)
        exact = -mpmath.mpf(y) / (mpmath.mpf(x) ** 2 + mpmath.mpf(y) ** 2)
        assert_derivative(float(exact), ops.atan2, y, x, operand=1, rtol=1e-15)
    for y, x in ((0.0, 0.0), (inf, 1.0), (1.0, inf), (-inf, inf)):
        for operand in (0, 1):
            for order in (1, 2):
                assert_derivative(0, ops.atan2, y, x, operand=operand, order=order)
    assert_derivative(nan, ops.atan2, nan, 1.0)
    assert_derivative(-4 / 25, ops.atan2, 1.0, 2.0, order=2)  # -2 x y / (x^2 + y^2)^2


def test_sinc_has_every_derivative_at_and_near_zero():
    even = [(-1) ** (n // 2) * pi**n / (n + 1) if n % 2 == 0 else 0 for n in range(5)]
    for order in (1, 2, 3, 4):
        assert_derivative(even[order], ops.sinc, 0.0, order=order)
    mpmath.mp.dps = 40
    for x in (1e-9, -1e-4, 0.01, 0.3, 0.6366, 0.64, 1.7, -12.3):
        for order in (1, 2, 3):
            exact = mpmath.diff(lambda v: mpmath.sin(v) / v, mpmath.mpf(x), order)
            got = float(evaluate(lambda v, n=order: ops.sine_ratio(v, n), np.float64(x)))
            assert abs(got - exact) <= 1e-15 / (order + 1) * 4, (x, order)


def test_remainder_slopes_come_from_exact_quotients():
    """x / y alone rounds 1e17 / 3 and 0.3 / 0.1 to the next integer."""
    assert_derivative(-33333333333333333, ops.fmod, 1e17, 3.0, operand=1)
    assert_derivative(-2, ops.fmod, 0.3, 0.1, operand=1)
    assert_derivative(1, ops.fmod, -7.5, 2.0)
    assert_derivative(3, ops.fmod, -7.5, 2.0, operand=1)
    assert_derivative(4, ops.remainder, -7.5, 2.0, operand=1)
    assert_derivative(0, ops.floor_divide, -7.5, 2.0, operand=1)


def test_division_does_not_square_its_divisor():
    x = np.float32(1e-25)
    got = tangent(ops.div, [x, x], [None, np.float32(1)])
    np.testing.assert_allclose(got, np.float32(-1e25), rtol=1e-6)


def test_complex_modulus():
    """Re(conj(z / |z|) dz), zero at zero, no overflow; the cotangent of a loss descends."""
    z = np.array([3 + 4j, 0j, 1e300 + 1e300j])
    t = np.array([1j, 1 + 1j, 1.0])
    np.testing.assert_allclose(tangent(ops.abs_, [z], [t]), [0.8, 0, sqrt(0.5)], rtol=1e-15)
    (bar,) = cotangents(ops.abs_, [z], np.ones(3))
    np.testing.assert_allclose(np.conj(bar), [0.6 + 0.8j, 0, (1 + 1j) * sqrt(0.5)], rtol=1e-15)


def test_transposing_what_is_not_linear_says_so():
    x = node_like(np.float64(1)).out
    with pytest.raises(UnsupportedError, match=r"exp.*not linear"):
        linear_transpose([ops.exp(x)], [x])([constant(np.float64(1))])
    with pytest.raises(UnsupportedError, match=r"scale.*product of two linear values"):
        linear_transpose([ops.scale(x, x)], [x])([constant(np.float64(1))])
