"""Running sums, products, extrema, recurrences: values, zeros, ties, cuts."""

from __future__ import annotations

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

from tilegrad.autodiff.forward import jvp
from tilegrad.ir.errors import DTypeError
from tilegrad.ir.graph import toposort
from tilegrad.ir.ops import (
    OPS,
    cummax,
    cummin,
    cumprod,
    cumsum,
    linear_recurrence,
    logcumsumexp,
    slice_axis,
    sum_,
)
from tilegrad.ir.scalar.handlers.numpy import NumpyHandler

NAN, INF = np.nan, np.inf
ROWS = [
    (cumsum, np.cumsum),
    (cumprod, np.cumprod),
    (cummax, np.maximum.accumulate),
    (cummin, np.minimum.accumulate),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8", "uint8", "bool"])
@pytest.mark.parametrize(("ours", "theirs"), ROWS, ids=lambda f: getattr(f, "__name__", "np"))
def test_values_are_numpys(ours, theirs, dtype, rng):
    for shape in [(1,), (6,), (3, 4), (2, 1, 5), (0,), (0, 3), (3, 0)]:
        x = rng.integers(0, 4, shape).astype(dtype)
        for axis in range(-len(shape), len(shape)):
            got = evaluate(lambda v, a=axis: ours(v, a), x)
            np.testing.assert_array_equal(got, theirs(x, axis=axis), strict=True)
            got = evaluate(lambda v, a=axis: ours(v, a, reverse=True), x)
            expected = np.flip(theirs(np.flip(x, axis), axis=axis), axis)
            np.testing.assert_array_equal(got, expected, strict=True)


def test_no_axis_runs_over_all_elements():
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(evaluate(cumsum, x), np.cumsum(x))
    assert evaluate(cumsum, np.float64(3)).tolist() == [3]


def test_first_result_is_the_element_itself():
    assert np.signbit(evaluate(cumsum, np.array([-0.0, -0.0]))).all()
    assert np.signbit(evaluate(cumprod, np.array([-0.0, 2.0]))).all()


def test_running_extrema_take_nan_and_settle_zeros():
    x = np.array([-0.0, 0.0, -0.0, 1.0, NAN, 2.0])
    y = evaluate(cummax, x)
    np.testing.assert_array_equal(y, [0, 0, 0, 1, NAN, NAN])
    assert np.signbit(y[:3]).tolist() == [True, False, False]
    y = evaluate(cummin, np.array([0.0, -0.0, 0.0]))
    assert np.signbit(y).tolist() == [False, True, True]


def test_gradient_of_a_running_product_with_a_zero():
    """Case 50."""
    g = gradient(lambda v: sum_(cumprod(v)), np.array([3.0, 0.0, 4.0, 2.0]))
    np.testing.assert_array_equal(g, [1, 39, 0, 0])


@pytest.mark.parametrize("zeros", [(), (0,), (2,), (1, 3), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("reverse", [False, True])
def test_jacobian_of_a_running_product(zeros, reverse, rng):
    """dy_k / dx_i is the product of the other factors of y_k: exact for small integers."""
    x = rng.integers(1, 6, 5).astype(float)
    x[list(zeros)] = 0
    expected = np.zeros((5, 5))
    for k in range(5):
        used = range(k, 5) if reverse else range(k + 1)
        for i in used:
            expected[k, i] = np.prod([x[j] for j in used if j != i])
    f = lambda v: cumprod(v, 0, reverse)  # noqa: E731
    forward = np.stack([tangent(f, [x], [e]) for e in np.eye(5)], 1)
    backward = np.stack([cotangents(f, [x], e)[0] for e in np.eye(5)])
    np.testing.assert_array_equal(forward, expected)
    np.testing.assert_array_equal(backward, expected)


@pytest.mark.parametrize("reverse", [False, True])
def test_higher_derivatives_of_a_running_product_with_zeros(reverse, rng):
    x = rng.standard_normal((2, 5))
    x[0, 2] = x[1, 0] = x[1, 4] = 0
    f = lambda v: cumprod(v, 1, reverse)  # noqa: E731
    check_rules(f, [x], rng)
    check_rules(tangent_function(f, [rng.standard_normal(x.shape)]), [x], rng)


def test_ties_of_running_maxima_share_equally():
    x = np.array([2.0, 1.0, 2.0, 2.0, 3.0, 3.0])
    rows = np.stack([cotangents(cummax, [x], e)[0] for e in np.eye(6)])
    third = 1 / 3
    expected = [
        [1, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [0.5, 0, 0.5, 0, 0, 0],
        [third, 0, third, third, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0.5, 0.5],
    ]
    np.testing.assert_allclose(rows, expected, rtol=1e-15)
    forward = np.stack([tangent(cummax, [x], [e]) for e in np.eye(6)], 1)
    np.testing.assert_allclose(forward, expected, rtol=1e-15)
    rows = np.stack([cotangents(lambda v: cummin(v, 0, True), [-x[::-1]], e)[0] for e in np.eye(6)])
    np.testing.assert_allclose(rows[::-1, ::-1], expected, rtol=1e-15)


def test_derivative_after_a_nan_is_nan():
    x = np.array([1.0, NAN, 5.0])
    np.testing.assert_array_equal(tangent(cummax, [x], [np.ones(3)]), [1, NAN, NAN])


@pytest.mark.parametrize("f", [cumsum, cumprod, cummax, logcumsumexp])
def test_the_size_of_a_derivative_does_not_depend_on_the_extent(f):
    counts = []
    for n in (10, 10_000):
        x, t = node_like(np.ones(n)).out, node_like(np.ones(n)).out
        (dot,) = jvp([f(x)], {x: t})
        counts.append(len(toposort([dot])))
    assert counts[0] == counts[1] < 60


# ---------------------------------------------------------------------------- linear recurrence


def solved(a, b):
    """The recurrence in plain Python."""
    y = [b[0]]
    for p, q in zip(a[1:], b[1:], strict=True):
        y.append(q if p == 0 else p * y[-1] + q)
    return np.array(y)


def test_linear_recurrence_against_a_loop_and_a_matrix(rng):
    a, b = rng.standard_normal((2, 7))
    np.testing.assert_array_equal(evaluate(linear_recurrence, a, b), solved(a, b))
    backward = evaluate(lambda p, q: linear_recurrence(p, q, reverse=True), a, b)
    np.testing.assert_array_equal(backward, solved(a[::-1], b[::-1])[::-1])
    # (I - L) y = b with a on the subdiagonal
    matrix = np.eye(7) - np.diag(a[1:], -1)
    np.testing.assert_allclose(evaluate(linear_recurrence, a, b), np.linalg.solve(matrix, b))


def test_a_zero_coefficient_cuts_the_run():
    a = np.array([9.0, 1, 0, 2, -0.0, 3])
    b = np.array([INF, 1.0, 1, 1, NAN, 1])
    np.testing.assert_array_equal(evaluate(linear_recurrence, a, b), [INF, INF, 1, 3, NAN, NAN])


def test_linear_recurrence_broadcasts_and_takes_integers():
    y = evaluate(lambda b: linear_recurrence(2, b, 0), np.array([[1, 2], [3, 4]]))
    np.testing.assert_array_equal(y, [[1.0, 2], [5, 8]])


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "linear_recurrence"])
def test_the_step_program_is_the_reference(name, rng):
    op, h = OPS[name], NumpyHandler()
    xs = [rng.integers(-2, 3, (6, 4)) / 2 for _ in range(2 if name[0] == "l" else 1)]
    y = [xs[-1][0]]
    for k in range(1, 6):
        y.append(op.scalar(h, y[-1], *[x[k] for x in xs]))
    np.testing.assert_array_equal(np.stack(y), op.reference(*xs, axis=0, reverse=False))


def test_the_complex_step_program_is_the_reference(rng):
    h = NumpyHandler()
    for name in ("cumsum", "cumprod", "linear_recurrence"):
        op = OPS[name]
        count = 2 if name[0] == "l" else 1
        parts = rng.integers(-2, 3, (count, 2, 6, 4)) / 2
        xs = [p[0] + 1j * p[1] for p in parts]
        y = [(xs[-1][0].real, xs[-1][0].imag)]
        for k in range(1, 6):
            y.append(op.complex_scalar(h, y[-1], *[(x[k].real, x[k].imag) for x in xs]))
        got = np.stack([re + 1j * im for re, im in y])
        np.testing.assert_array_equal(got, op.reference(*xs, axis=0, reverse=False))


# --------------------------------------------------------------------------------- logcumsumexp


def test_logcumsumexp_against_logaddexp(rng):
    for scale in (1.0, 1000.0):
        x = scale * rng.standard_normal((3, 9))
        expected = np.logaddexp.accumulate(x, 1)
        np.testing.assert_allclose(evaluate(lambda v: logcumsumexp(v, 1), x), expected, 1e-14)
        expected = np.flip(np.logaddexp.accumulate(np.flip(x, 0), 0), 0)
        got = evaluate(lambda v: logcumsumexp(v, 0, reverse=True), x)
        np.testing.assert_allclose(got, expected, 1e-14)


def test_logcumsumexp_with_a_masked_prefix():
    """Case 56."""
    x = np.array([-INF, -INF, 0.0])
    np.testing.assert_array_equal(evaluate(logcumsumexp, x), [-INF, -INF, 0])
    last = lambda v: sum_(slice_axis(logcumsumexp(v), 0, 2, 3))  # noqa: E731
    np.testing.assert_array_equal(gradient(last, x), [0, 0, 1])
    np.testing.assert_array_equal(gradient(lambda v: sum_(logcumsumexp(v)), x), [0, 0, 1])


@pytest.mark.parametrize(
    "values", [[-INF, -1000.0, 1.0], [0.0, INF, 3.0], [1.0, NAN, 2.0], [-INF], [1000.0, -1000.0]]
)
def test_logcumsumexp_at_infinities(values):
    x = np.array(values)
    with np.errstate(invalid="ignore"):
        expected = np.logaddexp.accumulate(x)
    np.testing.assert_allclose(evaluate(logcumsumexp, x), expected, rtol=1e-15)


def test_logcumsumexp_rules(rng):
    x = rng.standard_normal((2, 5))
    x[1, :2] = -INF

    def f(v):
        return logcumsumexp(v, 1)

    finite = rng.standard_normal((2, 5))
    check_rules(f, [finite], rng)
    check_batch(f, [finite], rng)
    bars = cotangents(f, [x], np.ones((2, 5)))[0]
    assert np.isfinite(bars).all()
    assert (bars[1, :2] == 0).all()


def test_messages():
    with pytest.raises(IndexError, match=r"cumsum: expected an axis in \[-1, 1\), got 1"):
        cumsum(np.ones(3), 1)
    with pytest.raises(DTypeError, match=r"cummax: is not defined for c128\[2\]"):
        cummax(np.ones(2, complex))
