"""Cases of the group linalg, those whose functions are built: Cholesky and triangular systems."""

import numpy as np
import pytest
from ways import in_every_way

import tilegrad as tg


def log_det(a):
    return 2 * tg.sum(tg.log(tg.diag(tg.linalg.cholesky(a))))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_chol(n, rng):
    """The gradient of log det is the inverse, whole and symmetric; the Hessian follows."""
    x = rng.normal(size=(n, n))
    a = x @ x.T + n * np.eye(n)
    inverse = np.linalg.inv(a)

    def all_of(a):
        return log_det(a), tg.grad(log_det)(a), tg.jacfwd(log_det)(a), tg.hessian(log_det)(a)

    value, g, forward, h = in_every_way(all_of, a, ways=("jit",))
    np.testing.assert_allclose(value, np.linalg.slogdet(a)[1], rtol=1e-13)
    np.testing.assert_allclose(g, inverse, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(g, g.T)
    np.testing.assert_allclose(forward, inverse, rtol=1e-12, atol=1e-14)
    # along symmetric directions E: -inverse E inverse
    e = rng.normal(size=(n, n))
    e = e + e.T
    along = np.einsum("ijkl,kl->ij", h, e)
    np.testing.assert_allclose(along, -inverse @ e @ inverse, rtol=1e-11, atol=1e-14)
    batch = np.stack([a, np.eye(n) * 4, a])
    mapped = tg.jit(tg.vmap(tg.grad(log_det)))(batch)
    np.testing.assert_allclose(mapped[1], np.eye(n) / 4, rtol=1e-15)
    np.testing.assert_allclose(mapped[2], inverse, rtol=1e-12, atol=1e-14)


def test_chol_given_values():
    a = np.array([[5.0, 2], [2, 3]])
    np.testing.assert_allclose(tg.grad(log_det)(a), np.array([[3, -2], [-2, 5]]) / 11, rtol=1e-14)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_solvetri(lower, n, rng):
    """Anything in the other triangle changes nothing, and gets no gradient."""
    m = rng.normal(size=(n, n)) + 4 * np.eye(n)
    m[~np.tri(n, dtype=bool) if lower else np.tri(n, k=-1, dtype=bool)] = np.nan
    b, w = rng.normal(size=n), rng.normal(size=n)
    triangle = np.where(np.isnan(m), 0.0, m)
    x = np.linalg.solve(triangle, b)
    bar = np.linalg.solve(triangle.T, w)

    def loss(m, b):
        return tg.sum(tg.linalg.solve_triangular(m, b, lower=lower) * w)

    def all_of(m, b):
        return (
            tg.linalg.solve_triangular(m, b, lower=lower),
            tg.grad(loss, argnums=(0, 1))(m, b),
            tg.jacfwd(loss, argnums=1)(m, b),
        )

    got, (gm, gb), forward = in_every_way(all_of, m, b, ways=("jit",))
    np.testing.assert_allclose(got, x, rtol=1e-12)
    np.testing.assert_allclose(gb, bar, rtol=1e-12)
    np.testing.assert_allclose(forward, bar, rtol=1e-12)
    expected = np.where(np.isnan(m), 0.0, -np.outer(bar, x))
    np.testing.assert_allclose(gm, expected, rtol=1e-12, atol=1e-15)


def test_solvetri_given_values():
    m, b = np.array([[2.0, 7.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    x = tg.linalg.solve_triangular(m, b, lower=True)
    np.testing.assert_allclose(x, [0.5, 0.5], rtol=1e-15)
    g = tg.grad(lambda m: tg.sum(tg.linalg.solve_triangular(m, b, lower=True)))(m)
    np.testing.assert_allclose(g, [[-1 / 6, 0], [-1 / 6, -1 / 6]], rtol=1e-15)
