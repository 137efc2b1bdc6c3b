"""cholesky and solve_triangular: NumPy's and SciPy's functions over batches, dtypes, arguments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.linalg
from rule_checks import check_rules, evaluate

from tilegrad.engine.namespace import BUILDERS
from tilegrad.ir.graph import toposort
from tilegrad.ir.ops.leaves import input_node
from tilegrad.ir.ops.linear_algebra import TRIANGULAR_SOLVE

cholesky, solve = BUILDERS["linalg.cholesky"], BUILDERS["linalg.solve_triangular"]


def normal(rng, *shape, dtype="float64"):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def definite(rng, *shape, dtype="float64"):
    x = normal(rng, *shape, dtype=dtype)
    return x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)


def close(got, want, dtype):
    assert got.dtype == dtype
    tolerance = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 1, 4, 4), (0, 0)])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(upper, shape, dtype, rng):
    a = definite(rng, *shape, dtype=dtype)
    read = np.tri(shape[-1], dtype=bool)
    dirty = np.where(read.T if upper else read, a, np.nan).astype(dtype)
    got = evaluate(lambda x: cholesky(x, upper=upper), dirty)
    close(got, np.linalg.cholesky(a, upper=upper), dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_upper_factor_rules(dtype, rng):
    def upper(x):
        h = x + BUILDERS["conj"](BUILDERS["matrix_transpose"](x)) + 9.0 * BUILDERS["eye"](3)
        return cholesky(h, upper=True)

    check_rules(upper, [normal(rng, 3, 3, dtype=dtype)], rng, tol=1e-6)


def test_integers_become_float64():
    got = evaluate(cholesky, np.array([[4, 2], [2, 5]]))
    np.testing.assert_array_equal(got, np.array([[2.0, 0], [1, 2]]), strict=True)
    got = evaluate(lambda a: solve(a, [2, 3], lower=True), np.array([[2, 9], [1, 1]]))
    np.testing.assert_array_equal(got, np.array([1.0, 2.0]), strict=True)
    a, b = np.eye(2, dtype=np.float32), np.ones(2, np.float64)
    assert evaluate(solve, a, b).dtype == np.float64
    assert evaluate(solve, a, b.astype(np.complex64)).dtype == np.complex64


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        ((3, 3), (3,)),
        ((3, 3), (3, 2)),
        ((3, 3), (4, 3, 2)),
        ((3, 3), (4, 1, 3, 2)),
        ((4, 3, 3), (3,)),
        ((4, 3, 3), (3, 2)),
        ((4, 3, 3), (4, 3, 2)),
        ((4, 1, 3, 3), (5, 3, 2)),
        ((1, 1), (1,)),
    ],
)
def test_leading_axes_are_scipys(a_shape, b_shape, rng):
    a, b = normal(rng, *a_shape) + 4 * np.eye(a_shape[-1]), normal(rng, *b_shape)
    for trans, lower, unit in itertools.product((0, "T"), (False, True), (False, True)):
        got = evaluate(lambda x, y, k=(trans, lower, unit): solve(x, y, *k), a, b)
        want = scipy.linalg.solve_triangular(a, b, trans, lower, unit)
        assert got.shape == want.shape
        close(got, want, "float64")
    check_rules(solve, [a, b], rng, tol=1e-6)


def test_trans_is_scipys(rng):
    a, b = normal(rng, 3, 3, dtype="complex128") + 4 * np.eye(3), normal(rng, 3, dtype="complex128")
    for number, letter in enumerate("NTC"):
        for trans in (number, letter, np.int64(number)):
            got = evaluate(lambda x, y, t=trans: solve(x, y, trans=t), a, b)
            close(got, scipy.linalg.solve_triangular(a, b, letter), "complex128")


def test_empty_systems():
    for a, b in (((0, 0), (0,)), ((0, 0), (0, 2)), ((2, 2), (2, 0)), ((2, 2), (0, 2, 1))):
        assert evaluate(solve, np.ones(a), np.ones(b)).shape == b


def test_one_matrix_solves_once():
    a, b = (input_node(v.type, "x").out for v in (BUILDERS["eye"](3), BUILDERS["ones"]((7, 3, 2))))
    solves = [n for n in toposort([solve(a, b)]) if n.op is TRIANGULAR_SOLVE]
    assert [n.types[0].shape for n in solves] == [(3, 14)]


def test_check_off(rng):
    a = np.stack([definite(rng, 3, 3), -np.eye(3)])
    low = evaluate(lambda x: cholesky(x, check=False), a)
    assert np.isnan(low[1]).all()
    assert np.isfinite(low[0]).all()
    x = evaluate(lambda m, b: solve(m, b, check=False), np.zeros((2, 2)), np.ones(2))
    assert np.isnan(x).all()
