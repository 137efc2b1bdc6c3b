"""Derivatives at infinite operands: limits where there are any, and no 0 * inf from zero tangents.

The expected values are limits worked out by hand; where a limit can be approached, a row also holds
large finite operands against the same values.
"""

import numpy as np
import pytest

import tilegrad as tg

INF, NAN = np.inf, np.nan


def both_modes(f, *xs, argnums=0):
    """The Jacobian by forward and by reverse mode, which must agree to the bit but for NaN bits."""
    xs = [tg.asarray(x) for x in xs]
    forward = np.asarray(tg.jacfwd(f, argnums=argnums)(*xs))
    np.testing.assert_array_equal(forward, np.asarray(tg.jacrev(f, argnums=argnums)(*xs)))
    return forward


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("x", "y", "slopes"),
    [
        (INF, 1.0, (1, 0)),
        (-INF, 1.0, (-1, 0)),
        (INF, 0.0, (1, 0)),
        (2.0, -INF, (0, -1)),
        (INF, INF, (NAN, NAN)),  # any direction of length 1 is a limit of some approach
        (INF, NAN, (NAN, 0)),
        (1e30, 1.0, (1, 1e-30)),
        (0.0, 0.0, (0, 0)),
    ],
)
def test_hypot(x, y, slopes, dtype):
    x, y = np.array(x, dtype), np.array(y, dtype)
    for k in (0, 1):
        expected = NAN if np.isnan(y) else slopes[k]
        np.testing.assert_allclose(both_modes(tg.hypot, x, y, argnums=k), expected, rtol=1e-6)


def test_second_derivatives_of_hypot_vanish_at_infinity():
    h = tg.hessian(lambda v: tg.hypot(v[0], v[1]))(tg.asarray([INF, 1.0]))
    np.testing.assert_array_equal(h, np.zeros((2, 2)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("x", [0.0, -0.0, 8.0, -8.0, 1e-3])
def test_cbrt_to_third_order(x, dtype):
    """x^(-2/3) / 3, -2 x^(-5/3) / 9, 10 x^(-8/3) / 27; at zeros the limits from their side."""
    root = np.cbrt(np.array(x, dtype)).astype(float)
    with np.errstate(divide="ignore"):
        expected = [root**-2.0 / 3, -2 * root**-5.0 / 9, 10 * root**-8.0 / 27]
    f = tg.cbrt
    for order in expected:
        f = tg.grad(f)
        rtol = 1e-13 if dtype == "float64" else 3e-6
        np.testing.assert_allclose(f(tg.asarray(np.array(x, dtype))), order, rtol=rtol)


def test_a_zero_tangent_does_not_meet_the_pole_of_cbrt():
    def f(x):
        return tg.where(x > 0, tg.cbrt(x), 3 * x)

    assert [float(tg.grad(f)(0.0)), float(tg.grad(tg.grad(f))(0.0))] == [3.0, 0.0]


@pytest.mark.parametrize(
    ("x", "share"),
    [
        ([INF, 1.0], [1, 0]),
        ([INF, 2.0, INF], [0.5, 0, 0.5]),
        ([INF, -INF], [1, 0]),
        ([-INF, 0.0], [0, 1]),
        ([-INF, -INF], [0, 0]),
        ([NAN, INF], [NAN, NAN]),
        ([1e5, 2.0, 1e5], [0.5, 0, 0.5]),
    ],
)
def test_logsumexp(x, share):
    np.testing.assert_array_equal(both_modes(tg.logsumexp, x), share)


def test_logsumexp_of_infinities_shares_by_weight_and_row():
    def f(x):
        return tg.logsumexp(x, b=tg.asarray([1.0, 3.0, 1.0]))

    np.testing.assert_array_equal(both_modes(f, [INF, INF, 1.0]), [0.25, 0.75, 0])
    rows = [[INF, 0.0], [0.0, 0.0], [-INF, -INF]]
    g = tg.grad(lambda x: tg.sum(tg.where(tg.isfinite(y := tg.logsumexp(x, axis=1)), y, 2 * y)))
    np.testing.assert_array_equal(g(tg.asarray(rows)), [[2, 0], [0.5, 0.5], [0, 0]])


def test_hessian_of_logsumexp_at_infinities_is_that_of_the_shares():
    p = np.array([0.5, 0.5, 0.0])
    h = tg.hessian(tg.logsumexp)(tg.asarray([INF, INF, 1.0]))
    np.testing.assert_array_equal(h, np.diag(p) - np.outer(p, p))


def test_values_of_logsumexp_at_infinities_are_scipys():
    from scipy.special import logsumexp

    for row in ([INF, 1.0], [-INF, -INF], [INF, -INF], [NAN, 1.0], [-INF, 3.0], [700.0, 710.0]):
        np.testing.assert_allclose(tg.logsumexp(tg.asarray(row)), logsumexp(row), rtol=1e-15)
    value, sign = tg.logsumexp(tg.asarray([2.0, 1.0]), b=[1.0, -3.0], return_sign=True)
    theirs = logsumexp([2.0, 1.0], b=[1.0, -3.0], return_sign=True)
    np.testing.assert_allclose([float(value), float(sign)], theirs)


def test_logcumsumexp():
    x = [-INF, 0.0, INF, 1.0, INF]
    np.testing.assert_array_equal(tg.logcumsumexp(tg.asarray(x)), [-INF, 0, INF, INF, INF])
    expected = np.zeros((5, 5))
    expected[1, 1] = expected[2, 2] = expected[3, 2] = 1
    expected[4, [2, 4]] = 0.5
    np.testing.assert_array_equal(both_modes(tg.logcumsumexp, x), expected)
    back = both_modes(lambda v: tg.logcumsumexp(v, reverse=True), x[::-1])
    np.testing.assert_array_equal(back, expected[::-1, ::-1])


# ------------------------------------------------- zero tangents under products that are no `mul`


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_cumprod_is_like_the_products_written_out(dtype):
    def written(v):
        return tg.stack([v[0], v[0] * v[1], v[0] * v[1] * v[2]])

    x = np.array([2, INF, 3], dtype)
    expected = [[1, 0, 0], [INF, 2, 0], [INF, 6, INF]]
    if dtype != "complex128":
        np.testing.assert_array_equal(both_modes(written, x), expected)
        np.testing.assert_array_equal(both_modes(tg.cumprod, x), expected)
        return
    # A complex infinity times a complex number is partly NaN; but a zero tangent stays zero.
    _, dot = tg.jvp(tg.cumprod, (tg.asarray(x),), (tg.asarray(np.array([0, 0, 1], dtype)),))
    assert np.asarray(dot)[:2].tolist() == [0, 0]


def test_second_derivatives_of_cumprod_with_an_infinity():
    h = np.asarray(tg.jacfwd(tg.jacrev(tg.cumprod))(tg.asarray([2.0, INF, 3.0])))
    mixed = np.zeros((3, 3, 3))  # d2 (x0 x1) = 1; d2 (x0 x1 x2) = the third factor
    mixed[1, 0, 1] = mixed[1, 1, 0] = 1
    for i, j, third in ((0, 1, 3.0), (0, 2, INF), (1, 2, 2.0)):
        mixed[2, i, j] = mixed[2, j, i] = third
    np.testing.assert_array_equal(h, mixed)


def test_linear_recurrence_with_an_infinite_coefficient():
    def f(b):
        return tg.linear_recurrence(tg.asarray([1.0, INF, 2.0]), b)

    expected = [[1, 0, 0], [INF, 1, 0], [INF, 2, 1]]
    np.testing.assert_array_equal(both_modes(f, [1.0, 1.0, 1.0]), expected)


def test_scatter_multiply():
    index = tg.asarray([0, 0, 1])

    def f(x, u):
        return x.at[index].multiply(u)

    x, u = [1.0, 2.0, 5.0], [3.0, INF, 4.0]
    expected = [[INF, 0, 0], [0, 4, 0], [0, 0, 1]]
    np.testing.assert_array_equal(both_modes(f, x, u), expected)
    expected = [[INF, 3, 0], [0, 0, 2], [0, 0, 0]]
    np.testing.assert_array_equal(both_modes(f, x, u, argnums=1), expected)


def test_bits_of_the_recurrence_of_tangents_in_compiled_code():
    """Compiled against the reference, with zeros, infinities and NaN on either side."""
    from tilegrad.ir.ops import OPS

    rng = np.random.default_rng(4)
    special = np.array([0.0, -0.0, 1.5, -2.0, INF, -INF, NAN])
    a, b = special[rng.integers(0, 7, (2, 40, 9))]
    b[rng.random(b.shape) < 0.6] = 0.0
    _, f = tg.vjp(lambda v: tg.linear_recurrence(tg.asarray(a), v, 1, reverse=True), tg.asarray(b))
    (got,) = f(tg.asarray(b))
    ahead = np.concatenate([np.ones((40, 1)), a[:, :-1]], axis=1)
    reference = OPS["tangent_recurrence"].reference(ahead, b, axis=1, reverse=False)
    np.testing.assert_array_equal(got, reference)
    assert (np.signbit(got) == np.signbit(reference))[reference == 0].all()
