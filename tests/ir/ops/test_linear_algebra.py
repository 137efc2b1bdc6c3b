"""cholesky and triangular_solve: against NumPy, SciPy and closed forms; every rule; messages."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from rule_checks import (
    check_batch,
    check_jvp,
    check_rules,
    cotangents,
    evaluate,
    gradient,
    node_like,
    tangent,
)

from tilegrad.autodiff.batching import batch
from tilegrad.autodiff.forward import jvp
from tilegrad.ir.errors import DTypeError, ShapeError
from tilegrad.ir.graph import make, toposort
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops import log, sum_, where
from tilegrad.ir.ops.leaves import constant
from tilegrad.ir.ops.linear_algebra import CHOLESKY, TRIANGULAR_SOLVE, adjoint, triangle

DTYPES = ["float32", "float64", "complex64", "complex128"]
LinAlgError = np.linalg.LinAlgError


def normal(rng, *shape, dtype="float64"):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def definite(rng, *shape, dtype="float64"):
    x = normal(rng, *shape, dtype=dtype)
    return x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)


def regular(rng, *shape, dtype="float64"):
    return normal(rng, *shape, dtype=dtype) + 4 * np.eye(shape[-1], dtype=dtype)


def cholesky(a, check=True):
    return make(CHOLESKY, (a,), check=check)


def solver(lower=True, transpose=False, conjugate=False, unit_diagonal=False, check=True):
    params = {"lower": lower, "transpose": transpose, "conjugate": conjugate}
    params |= {"unit_diagonal": unit_diagonal, "check": check}
    return lambda a, b: make(TRIANGULAR_SOLVE, (a, b), **params)


FORMS = [
    pytest.param(
        lower, transpose, conjugate, unit, id=f"{lower:d}{transpose:d}{conjugate:d}{unit:d}"
    )
    for lower in (True, False)
    for transpose in (True, False)
    for conjugate in (True, False)
    for unit in (True, False)
]


def close(x, y, rtol=1e-12, **options):
    np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol, **options)


# ------------------------------------------------------------------------------------ cholesky


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 3, 3), (0, 3, 3), (2, 0, 0)])
def test_cholesky_is_numpys_and_reads_the_lower_triangle(shape, dtype, rng):
    a = definite(rng, *shape, dtype=dtype)
    dirty = np.where(np.tri(shape[-1], dtype=bool), a, np.nan).astype(dtype)
    np.testing.assert_array_equal(evaluate(cholesky, dirty), np.linalg.cholesky(a), strict=True)


def hermitian_direction(rng, a):
    x = normal(rng, *a.shape, dtype=a.dtype)
    return x + x.conj().swapaxes(-1, -2)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_cholesky_tangent_solves_the_product_rule(dtype, rng):
    """L_dot is the lower triangular matrix with L_dot L^H + L L_dot^H = A_dot."""
    a = definite(rng, 2, 4, 4, dtype=dtype)
    t = hermitian_direction(rng, a)
    low, dot = np.linalg.cholesky(a), tangent(cholesky, [a], [t])
    close(dot, np.tril(dot))
    close(np.diagonal(dot, 0, 1, 2).imag, 0)
    product = dot @ low.conj().swapaxes(-1, -2)
    close(product + product.conj().swapaxes(-1, -2), t)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_cholesky_moves_along_the_hermitian_part(dtype, rng):
    """The tangent of any direction is that of its Hermitian part; gradients are Hermitian."""
    a, t = definite(rng, 3, 3, dtype=dtype), normal(rng, 3, 3, dtype=dtype)
    half = (t + t.conj().T) / 2
    close(tangent(cholesky, [a], [t]), tangent(cholesky, [a], [half]))
    (bar,) = cotangents(cholesky, [a], normal(rng, 3, 3, dtype=dtype))
    np.testing.assert_array_equal(bar, bar.conj().T)


def test_cholesky_rules_of_all_orders(rng):
    """Of a matrix that is Hermitian by construction, so that any difference quotient will do."""
    for dtype in ("float64", "complex128"):

        def factor(x):
            return cholesky(x + adjoint(x) + constant(12 * np.eye(3, dtype=x.dtype.numpy)))

        check_rules(factor, [normal(rng, 3, 3, dtype=dtype)], rng, tol=1e-6)


def log_det(a):
    n = a.shape[0]
    low = cholesky(a)
    on = constant(np.eye(n, dtype=bool))
    return 2.0 * sum_(log(where(on, low, constant(np.ones((n, n))))), (0, 1))


def test_log_det_three_times(rng):
    """d log det A = tr(A^-1 E), second -tr(A^-1 E A^-1 F), third 2 tr of the symmetric product."""
    a = definite(rng, 4, 4)
    e, f, g = (hermitian_direction(rng, a) for _ in range(3))
    inverse = np.linalg.inv(a)
    close(gradient(log_det, a), inverse)

    def along(function, t):
        return lambda x: jvp([function(x)], {x: constant(t)})[0]

    second, third = along(along(log_det, e), f), along(along(along(log_det, e), f), g)
    p, q, r = (inverse @ t for t in (e, f, g))
    close(evaluate(second, a), -np.trace(p @ q))
    close(evaluate(third, a), np.trace(p @ q @ r) + np.trace(p @ r @ q))


def test_higher_orders_grow_by_a_constant_factor(rng):
    """No expansion into elements: the third derivative has as many nodes for 3 rows as for 30."""

    def nodes(n):
        x = node_like(np.eye(n)).out
        out = log_det(x)
        for _ in range(3):
            (out,) = jvp([out], {x: constant(np.eye(n))})
        return len(toposort([out]))

    assert nodes(3) == nodes(30) < 600


def test_cholesky_batched(rng):
    a = np.stack([definite(rng, 3, 3) for _ in range(4)])
    for axis in (0, 1, 2):
        whole, one = node_like(np.moveaxis(a, 0, axis)), node_like(a[0])
        out = cholesky(one.out)
        ((value, at),) = batch([out], {one.out: (whole.out, axis)}, 4)
        (got,) = interpret([value], {whole: np.moveaxis(a, 0, axis)})
        np.testing.assert_array_equal(np.moveaxis(got, at, 0), np.linalg.cholesky(a))


@pytest.mark.parametrize(
    ("index", "pivot", "value"), [((0, 2), 1, -1.0), ((1, 0), 0, 0.0), ((1, 2), 2, np.nan)]
)
def test_cholesky_says_which_matrix_and_pivot(index, pivot, value, rng):
    a = np.broadcast_to(np.eye(3), (2, 3, 3, 3)).copy()
    a[(*index, pivot, pivot)] = value
    text = rf"cholesky: expected a positive definite matrix, got one at batch index \({index[0]}, "
    with pytest.raises(LinAlgError, match=text + rf"{index[1]}\) whose pivot {pivot}") as info:
        evaluate(cholesky, a)
    assert (info.value.index, info.value.pivot) == (index, pivot)
    got = evaluate(lambda v: cholesky(v, check=False), a)
    assert np.isnan(got[index]).all()
    got[index] = np.eye(3)
    np.testing.assert_array_equal(got, np.broadcast_to(np.eye(3), a.shape))


def test_an_indefinite_matrix_without_a_negative_diagonal():
    with pytest.raises(LinAlgError, match="got one whose pivot 1 is not a positive number") as info:
        evaluate(cholesky, np.array([[1.0, 2], [2, 1]]))
    assert (info.value.index, info.value.pivot) == ((), 1)


# ---------------------------------------------------------------------------- triangular_solve


def operator(a, lower, transpose, conjugate, unit):
    """The matrix that is meant, by NumPy."""
    a = np.tril(a) if lower else np.triu(a)
    if unit:
        a = a - np.diag(np.diag(a)) + np.eye(len(a), dtype=a.dtype)
    a = a.T if transpose else a
    return a.conj() if conjugate else a


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("lower", "transpose", "conjugate", "unit"), FORMS)
def test_solutions_fulfil_the_equations(lower, transpose, conjugate, unit, dtype, rng):
    a, b = regular(rng, 5, 5, dtype=dtype), normal(rng, 5, 3, dtype=dtype)
    dirty = np.where(np.tri(5, dtype=bool) if lower else np.tri(5, dtype=bool).T, a, np.nan)
    if unit:
        np.fill_diagonal(dirty, np.nan)
    x = evaluate(solver(lower, transpose, conjugate, unit), dirty.astype(dtype), b)
    assert x.dtype == b.dtype
    want = np.linalg.solve(operator(a, lower, transpose, conjugate, unit), b)
    tolerance = 50 * np.finfo(dtype).eps
    np.testing.assert_allclose(x, want, rtol=tolerance, atol=tolerance * np.abs(want).max())
    if not conjugate or transpose:
        trans = 2 if conjugate else int(transpose)
        want = scipy.linalg.solve_triangular(a, b, trans, lower, unit)
        np.testing.assert_allclose(x, want, rtol=tolerance, atol=tolerance * np.abs(want).max())


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("lower", "transpose", "conjugate", "unit"), FORMS)
def test_solve_rules(lower, transpose, conjugate, unit, dtype, rng):
    a, b = regular(rng, 3, 3, dtype=dtype), normal(rng, 3, 2, dtype=dtype)
    f = solver(lower, transpose, conjugate, unit)
    check_rules(f, [a, b], rng, tol=1e-6)
    check_batch(f, [a, b], rng, equal=close)


@pytest.mark.parametrize("lower", [True, False])
def test_gradient_of_the_other_triangle_is_zero(lower, rng):
    a, b = regular(rng, 4, 4), normal(rng, 4, 2)
    for unit in (False, True):
        f = solver(lower, unit_diagonal=unit)
        bar, _ = cotangents(f, [a, b], normal(rng, 4, 2))
        read = np.tri(4, k=-unit, dtype=bool)
        read = read if lower else read.T
        assert (bar[~read] == 0).all()
        assert (bar[read] != 0).all()
        check_jvp(f, [a, b], rng)


def test_a_shared_matrix_solves_once_for_all_right_sides(rng):
    """BT13: one solve of 5 x 2 columns, not five solves."""
    a, b = node_like(np.eye(3)), node_like(np.ones((3, 2)))
    whole = node_like(np.ones((5, 3, 2)))
    out = solver()(a.out, b.out)
    ((value, at),) = batch([out], {b.out: (whole.out, 0)}, 5)
    solves = [n for n in toposort([value]) if n.op is TRIANGULAR_SOLVE]
    assert [n.types[0].shape for n in solves] == [(3, 10)]
    assert solves[0].inputs[0] == a.out
    assert at == 1


def test_stacks_are_solved_one_by_one(rng):
    a, b = regular(rng, 2, 3, 4, 4), normal(rng, 2, 3, 4, 2)
    x = evaluate(solver(lower=False), a, b)
    for index in np.ndindex(2, 3):
        close(x[index], scipy.linalg.solve_triangular(a[index], b[index]))


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_singular_matrices_are_named(bad, rng):
    a, b = np.stack([np.eye(3)] * 2), np.ones((2, 3, 1))
    a[1, 2, 2] = bad
    with pytest.raises(
        LinAlgError,
        match=r"solve_triangular: expected a regular matrix, got one at batch index "
        r"\(1,\) whose diagonal element 2 is zero or not finite; pass check=False",
    ) as info:
        evaluate(solver(), a, b)
    assert (info.value.index, info.value.pivot) == ((1,), 2)
    x = evaluate(solver(check=False), a, b)
    assert np.isnan(x[1]).all()
    np.testing.assert_array_equal(x[0], b[0])
    assert np.isfinite(evaluate(solver(unit_diagonal=True), a, b)).all()


def test_triangle(rng):
    x = normal(rng, 2, 3, 4)
    f = lambda **k: evaluate(lambda v: triangle(v, **k), x)  # noqa: E731
    np.testing.assert_array_equal(f(lower=True), np.tril(x))
    np.testing.assert_array_equal(f(lower=False), np.triu(x))
    np.testing.assert_array_equal(f(lower=True, strict=True), np.tril(x, -1))
    np.testing.assert_array_equal(f(lower=False, strict=True), np.triu(x, 1))


# ------------------------------------------------------------------------------------ messages


def test_messages():
    rectangle, square = node_like(np.ones((2, 3))).out, node_like(np.ones((3, 3))).out
    whole = node_like(np.ones((3, 3), int)).out
    with pytest.raises(
        ShapeError, match=r"cholesky: expected square matrices in the last two axes, got f64\[2,3\]"
    ):
        cholesky(rectangle)
    with pytest.raises(DTypeError, match="cholesky: expected a floating or complex dtype, got i64"):
        cholesky(whole)
    with pytest.raises(ShapeError, match=r"triangular_solve: expected square matrices"):
        solver()(rectangle, square)
    with pytest.raises(ShapeError, match=r"right sides of as many rows .* got f64\[3,3\] and "):
        solver()(square, rectangle)
    with pytest.raises(DTypeError, match=r"triangular_solve: expected equal dtypes"):
        solver()(square, node_like(np.ones((3, 1), np.float32)).out)
