"""Factors and triangular systems inside loops: native, with the bits of the host's calls."""

from __future__ import annotations

import numpy as np
import pytest
from plans import graph_of
from regions import agree, driven, loop, rng

from tilegrad.ir import ops
from tilegrad.ir.graph import make
from tilegrad.ir.ops.linear_algebra import CHOLESKY, TRIANGULAR_SOLVE
from tilegrad.ir.ops.shape import transpose

DTYPES = ("float32", "float64", "complex64", "complex128")


def cholesky(a, check=True):
    return make(CHOLESKY, (a,), check=check)


def solve(a, b, **how):
    params = {"lower": True, "transpose": False, "conjugate": False, "unit_diagonal": False}
    return make(TRIANGULAR_SOLVE, (a, b), **{**params, "check": True, **how})


def matrices(dtype, *shape):
    n = shape[-1]
    x = rng(*shape, n) + (1j * rng(*shape, n, seed=1) if dtype.startswith("c") else 0)
    a = x @ np.swapaxes(x, -1, -2).conj() + n * np.eye(n)
    return a.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 5), (2, 2, 17)])
def test_factors(dtype, shape):
    a = matrices(dtype, *shape)

    def program(a):
        return loop(lambda i, a, c: (cholesky(a + c), c), consts=[a], init=[a], length=3)

    graph = graph_of(program, a)
    plan = driven(graph)
    assert plan.cost()["host_loops"] == 0
    found, steps = plan.run([a])
    c = a
    for _ in range(3):
        c = driven(graph_of(lambda a, c: cholesky(a + c), a, a)).run([a, c])[0]
    assert found.tobytes() == c.tobytes()
    assert np.array_equal(np.triu(found, 1), np.zeros_like(found))
    assert len(steps) == 3


HOW = [
    {},
    {"lower": False},
    {"transpose": True},
    {"conjugate": True},
    {"transpose": True, "conjugate": True, "lower": False},
    {"unit_diagonal": True},
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("sides", [1, 4])
def test_triangular_systems(dtype, how, sides):
    a = matrices(dtype, 2, 6)
    b = matrices(dtype, 2, 6)[:, :, :sides].copy()

    def program(a, b):
        return loop(lambda i, a, c: (solve(a, c, **how),), consts=[a], init=[b], length=3)

    graph = graph_of(program, a, b)
    plan = driven(graph)
    assert plan.cost()["host_loops"] == 0
    (found,) = plan.run([a, b])
    c = b
    single = driven(graph_of(lambda a, c: solve(a, c, **how), a, b))
    for _ in range(3):
        (c,) = single.run([a, c])
    assert found.tobytes() == c.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_bad_matrices_are_named(dtype):
    a = matrices(dtype, 3, 2, 4)
    a[1, 1] = np.diag([1, 2, -1, 1])

    def factors(check):
        body = lambda i, a, c: (cholesky(a, check) + a * 0,)  # noqa: E731
        return driven(graph_of(lambda a: loop(body, consts=[a], init=[a], length=2), a))

    with pytest.raises(np.linalg.LinAlgError, match=r"batch index \(1, 1\) whose pivot 2") as seen:
        factors(True).run([a])
    assert (seen.value.index, seen.value.pivot) == ((1, 1), 2)
    (found,) = factors(False).run([a])
    right = driven(graph_of(lambda a: cholesky(a, False) + a * 0, a)).run([a])[0]
    assert found.tobytes() == right.tobytes()
    assert np.isnan(found[1, 1]).all()
    assert np.isfinite(found[0]).all()


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_bad_triangles_are_named(value):
    a = matrices("float64", 5)
    a[3, 3] = value
    b = rng(5, 2)

    def solutions(check):
        body = lambda i, a, c: (solve(a, c, check=check),)  # noqa: E731
        return driven(graph_of(lambda a, b: loop(body, consts=[a], init=[b], length=2), a, b))

    with pytest.raises(np.linalg.LinAlgError, match="diagonal element 3"):
        solutions(True).run([a, b])
    assert np.isnan(solutions(False).run([a, b])[0]).all()


def test_large_matrices_are_the_hosts():
    a = ((650, 650), "float64")
    plan = driven(graph_of(lambda a: loop(lambda i, c: (cholesky(c),), init=[a], length=1), a))
    assert plan.cost()["host_loops"] == 1


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_share_a_batch(threads):
    a = matrices("float64", 64, 30)

    def program(a):
        body = lambda i, a, c: (cholesky(a + c * c, False),)  # noqa: E731
        return loop(body, consts=[a], init=[a], length=3)

    plan = driven(graph_of(program, a))
    assert plan.run([a], threads)[0].tobytes() == plan.run([a])[0].tobytes()


def test_a_kalman_filter():
    """Means and covariances in one native loop, against NumPy."""
    n, m, steps = 4, 2, 12
    f, h = np.eye(n) + 0.1 * rng(n, n), rng(m, n, seed=1)
    q, r = 0.1 * np.eye(n), 0.5 * np.eye(m)
    ys, mean, cov = rng(steps, m, seed=2), rng(n, seed=3), np.eye(n)

    def turned(x):
        return transpose(x)

    def body(i, f, h, q, r, mean, cov, y):
        mean = ops.matmul(f, mean)
        cov = ops.matmul(ops.matmul(f, cov), turned(f)) + q
        s = ops.matmul(ops.matmul(h, cov), turned(h)) + r
        factor = cholesky(s)
        gain = solve(factor, solve(factor, ops.matmul(h, cov)), transpose=True)  # S^-1 H P
        innovation = y - ops.matmul(h, mean)
        mean = mean + ops.matmul(turned(gain), innovation)
        cov = cov - ops.matmul(turned(gain), ops.matmul(h, cov))
        return mean, cov, mean

    def program(f, h, q, r, mean, cov, ys):
        return loop(body, consts=[f, h, q, r], init=[mean, cov], xs=[ys], length=steps)

    arguments = [f, h, q, r, mean, cov, ys]
    graph = graph_of(program, *arguments)
    assert driven(graph).cost()["host_loops"] == 0
    means = agree(graph, arguments, exact=False)[2]
    for k, y in enumerate(ys):
        mean, cov = f @ mean, f @ cov @ f.T + q
        gain = cov @ h.T @ np.linalg.inv(h @ cov @ h.T + r)
        mean, cov = mean + gain @ (y - h @ mean), cov - gain @ h @ cov
        np.testing.assert_allclose(means[k], mean, rtol=1e-9)
