"""Cases of the group linalg: factors, systems, what is read, errors, a Gaussian process."""

import numpy as np
import pytest
import scipy.linalg
from ways import in_every_way

import tilegrad as tg

LinAlgError = np.linalg.LinAlgError


def log_det(a):
    return 2 * tg.sum(tg.log(tg.diag(tg.linalg.cholesky(a))))


def definite(rng, n):
    x = rng.standard_normal((n, n))
    return x @ x.T + n * np.eye(n)


def test_chol():
    first = np.array([[5.0, 2], [2, 3]])
    g = in_every_way(tg.grad(log_det), first)
    np.testing.assert_allclose(g, np.array([[3, -2], [-2, 5]]) / 11, rtol=1e-15)
    batch = np.stack([first, np.diag([1.0, 4.0])])
    g = np.asarray(tg.vmap(tg.grad(log_det))(batch))
    np.testing.assert_allclose(g[0], np.array([[3, -2], [-2, 5]]) / 11, rtol=1e-15)
    np.testing.assert_array_equal(g[1], np.diag([1, 0.25]))


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_chol_of_any_size(n, rng):
    """Gradient inv(A), second derivative -inv(A) E inv(A), exactly symmetric."""
    a, e = definite(rng, n), rng.standard_normal((n, n))
    e = e + e.T

    def both(a, e):
        return tg.grad(log_det)(a), tg.jvp(tg.grad(log_det), (a,), (e,))[1]

    g, h = in_every_way(both, a, e)
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(g, inverse, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(h, -inverse @ e @ inverse, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(g, g.T)
    np.testing.assert_array_equal(h, h.T)


def test_chol_of_one_triangle(rng):
    """What is above the diagonal is not read; the gradient is the one of the symmetric matrix."""
    a = definite(rng, 5)
    dirty = np.tril(a) + np.triu(np.full((5, 5), np.nan), 1)
    np.testing.assert_array_equal(
        np.asarray(tg.linalg.cholesky(dirty)), np.asarray(tg.linalg.cholesky(a))
    )
    g = np.asarray(tg.grad(log_det)(tg.asarray(dirty)))
    np.testing.assert_allclose(g, np.linalg.inv(a), rtol=1e-12)
    upper = in_every_way(lambda a: tg.linalg.cholesky(a, upper=True), np.triu(a))
    np.testing.assert_allclose(upper.T @ upper, a, rtol=1e-14)


def test_solvetri():
    def f(a, b):
        return tg.linalg.solve_triangular(a, b, lower=True)

    a, b = np.array([[2.0, 7.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    x, g = in_every_way(lambda a, b: (f(a, b), tg.grad(lambda m: tg.sum(f(m, b)))(a)), a, b)
    np.testing.assert_array_equal(x, [0.5, 0.5])
    np.testing.assert_allclose(g, np.array([[-1, 0], [-1, -1]]) / 6, rtol=1e-15)
    assert g[0, 1] == 0


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("trans", [0, 1])
def test_solvetri_of_any_size(lower, trans, rng):
    """Derivative -op(A)^-1 E x; NaN in the other triangle reaches neither value nor gradient."""
    n = 6
    a = rng.standard_normal((n, n)) + 4 * np.eye(n)
    read = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
    dirty = np.where(read, a, np.nan)
    b, c = rng.standard_normal((2, n, 3))

    def f(a, b, c):
        return tg.sum(c * tg.linalg.solve_triangular(a, b, trans, lower))

    ga, gb = in_every_way(tg.grad(f, argnums=(0, 1)), dirty, b, c)
    x = scipy.linalg.solve_triangular(a, b, trans, lower)
    w = scipy.linalg.solve_triangular(a, c, 1 - trans, lower)
    expected = -(x @ w.T if trans else w @ x.T)
    np.testing.assert_allclose(gb, w, rtol=1e-13)
    np.testing.assert_allclose(ga[read], expected[read], rtol=1e-12)
    assert (ga[~read] == 0).all()


def test_numpys_functions_are_ours(rng):
    a = tg.asarray(definite(rng, 3))
    assert isinstance(np.linalg.cholesky(a), tg.Array)
    traced = tg.jit(lambda a: np.linalg.cholesky(a, upper=True))(a)
    np.testing.assert_allclose(np.asarray(traced), np.linalg.cholesky(np.asarray(a)).T, rtol=1e-15)


@pytest.mark.parametrize("way", ["eager", "jit", "grad"])
def test_bad_matrices_raise_wherever_they_are_met(way):
    run = {"eager": lambda f: f, "jit": tg.jit, "grad": lambda f: tg.grad(lambda x: tg.sum(f(x)))}
    a = np.stack([np.eye(3), np.diag([1.0, -1, 1])])
    text = r"cholesky: expected a positive definite matrix, got one at batch index \(1,\)"
    with pytest.raises(LinAlgError, match=text) as info:
        tg.eval(run[way](tg.linalg.cholesky)(tg.asarray(a)))
    assert (info.value.index, info.value.pivot) == ((1,), 1)
    text = "solve_triangular: expected a regular matrix, got one whose diagonal element 0 is zero"
    with pytest.raises(LinAlgError, match=text):
        tg.eval(run[way](lambda m: tg.linalg.solve_triangular(m, tg.ones(2)))(tg.zeros((2, 2))))


def test_a_failing_example_of_vmap():
    """Each raises by its number; with check=False it is NaN, and the others are what they are."""
    a = np.stack([np.eye(2), -np.eye(2), 4 * np.eye(2)])
    with pytest.raises(LinAlgError, match=r"batch index \(1,\)"):
        tg.eval(tg.vmap(tg.linalg.cholesky)(a))
    low, g = tg.vmap(
        lambda a: (
            tg.linalg.cholesky(a, check=False),
            tg.grad(lambda a: tg.sum(tg.linalg.cholesky(a, check=False)))(a),
        )
    )(a)
    np.testing.assert_array_equal(np.asarray(low)[[0, 2]], [np.eye(2), 2 * np.eye(2)])
    assert np.isnan(np.asarray(low)[1]).all()
    assert np.isfinite(np.asarray(g)[[0, 2]]).all()


def test_an_error_leaves_jit_usable():
    f = tg.jit(tg.linalg.cholesky)
    with pytest.raises(LinAlgError):
        tg.eval(f(-tg.eye(3)))
    np.testing.assert_array_equal(np.asarray(f(4 * tg.eye(3))), 2 * np.eye(3))


# -------------------------------------------------------------------------- a Gaussian process


def kernel(m, theta, x):
    length, scale, noise = m.exp(theta[0]), m.exp(theta[1]), m.exp(theta[2])
    distance = (x[:, None] - x[None, :]) / length
    return scale * m.exp(-0.5 * distance**2) + noise * m.eye(x.shape[0])


def negative_log_likelihood(theta, x, y):
    low = tg.linalg.cholesky(kernel(tg, theta, x))
    z = tg.linalg.solve_triangular(low, y, lower=True)
    return 0.5 * tg.sum(z * z) + tg.sum(tg.log(tg.diagonal(low)))


def test_gaussian_process(rng):
    """Gradient and Hessian by the trace formulas (Rasmussen and Williams 2006, eq. 5.9)."""
    x = np.sort(rng.uniform(0, 10, 30))
    y, theta = np.sin(x) + 0.1 * rng.standard_normal(30), np.log([0.8, 1.3, 0.1])
    k = kernel(np, theta, x)
    r2 = ((x[:, None] - x[None, :]) / np.exp(theta[0])) ** 2
    smooth, noise = k - np.exp(theta[2]) * np.eye(30), np.exp(theta[2]) * np.eye(30)
    first = [smooth * r2, smooth, noise]
    second = [[smooth * (r2**2 - 2 * r2), smooth * r2, 0 * k], [smooth * r2, smooth, 0 * k]]
    second += [[0 * k, 0 * k, noise]]
    inverse = np.linalg.inv(k)
    w = inverse @ y
    value = 0.5 * y @ w + 0.5 * np.linalg.slogdet(k)[1]
    gradient = [0.5 * np.trace(inverse @ d) - 0.5 * w @ d @ w for d in first]
    hessian = [
        [
            0.5 * np.trace(inverse @ second[i][j] - inverse @ first[i] @ inverse @ first[j])
            + w @ first[i] @ inverse @ first[j] @ w
            - 0.5 * w @ second[i][j] @ w
            for j in range(3)
        ]
        for i in range(3)
    ]

    def all_three(theta, x, y):
        f = negative_log_likelihood
        return (*tg.value_and_grad(f)(theta, x, y), tg.hessian(f)(theta, x, y))

    v, g, h = in_every_way(all_three, theta, x, y, ways=("jit", "jit, 2 threads"))
    np.testing.assert_allclose(v, value, rtol=1e-11)
    np.testing.assert_allclose(g, gradient, rtol=1e-9)
    np.testing.assert_allclose(h, hessian, rtol=1e-8)


def test_gaussian_process_work():
    """Of n^3 operations the gradient needs one factor, two solves and one product."""
    x, y = np.linspace(0, 1, 20), np.ones(20)
    lowered = tg.jit(tg.value_and_grad(negative_log_likelihood)).lower(np.zeros(3), x, y)
    text = lowered.as_text("optimized")
    assert text.count(" cholesky(") == 1
    assert text.count("f64[20,20] = triangular_solve(") == 2
    assert text.count("f64[20,1] = triangular_solve(") == 2
    assert lowered.as_text("fused").count("matmul") == 1
