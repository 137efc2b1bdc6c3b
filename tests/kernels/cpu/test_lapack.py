"""Library calls of linear algebra: values, bits for any threads, what is read, errors."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import scipy.linalg
from scripts import run as run_script

from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.graph import make
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.leaves import input_node
from tilegrad.ir.types import TensorType
from tilegrad.kernels.cpu import lapack
from tilegrad.kernels.cpu.library import fill
from tilegrad.kernels.cpu.openblas import thread_control

DTYPES = ["float32", "float64", "complex64", "complex128"]
LinAlgError = np.linalg.LinAlgError


def call(name, *arrays, threads=1, **params):
    operands = [input_node(TensorType(x.shape, as_dtype(x.dtype)), "x").out for x in arrays]
    node = make(OPS[name], operands, **params).node
    result = np.full(node.types[0].shape, 77, node.types[0].dtype.numpy)
    before = [x.copy() for x in arrays]
    fill(node, list(arrays), [result], threads)
    for x, y in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(x, y)  # operands are not written to
    return result


def cholesky(a, threads=1, check=True):
    return call("cholesky", a, threads=threads, check=check)


def solve(a, b, threads=1, lower=True, transpose=False, conjugate=False, unit=False, check=True):
    params = {"lower": lower, "transpose": transpose, "conjugate": conjugate}
    return call(
        "triangular_solve", a, b, threads=threads, unit_diagonal=unit, check=check, **params
    )


def normal(rng, *shape, dtype="float64"):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def definite(rng, *shape, dtype="float64"):
    x = normal(rng, *shape, dtype=dtype)
    return x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)


def regular(rng, *shape, dtype="float64"):
    n = shape[-1]
    return normal(rng, *shape, dtype=dtype) / n + 2 * np.eye(n, dtype=dtype)


def assert_near(got, want, factor=30):
    """Within rounding errors of the size of the whole."""
    assert got.dtype == want.dtype
    np.testing.assert_allclose(
        got, want, rtol=0, atol=factor * np.finfo(want.dtype).eps * np.abs(want).max()
    )


# ------------------------------------------------------------------------------------ cholesky

SIZES = [1, 2, 5, 63, 64, 65, 130]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_factors(n, dtype, rng):
    a = definite(rng, n, n, dtype=dtype)
    dirty = np.where(np.tri(n, dtype=bool), a, np.nan).astype(dtype)
    assert_near(cholesky(dirty), np.linalg.cholesky(a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [16, 33, 48, 50, 64, 90])
def test_factors_by_blocks(n, dtype, rng, monkeypatch):
    """Blocks and panels of all widths, with a last one that is narrower or not."""
    for block, panel in ((16, 8), (16, 24), (7, 128)):
        monkeypatch.setattr(lapack, "LARGE", 16)
        monkeypatch.setattr(lapack, "BLOCK", block)
        monkeypatch.setattr(lapack, "PANEL", panel)
        a = definite(rng, 2, n, n, dtype=dtype)
        dirty = np.where(np.tri(n, dtype=bool), a, np.nan).astype(dtype)
        expected = cholesky(dirty)
        assert_near(expected, np.linalg.cholesky(a))
        for threads in (2, 3):
            np.testing.assert_array_equal(cholesky(dirty, threads), expected)


def test_a_large_matrix(rng):
    n = lapack.LARGE + 3
    a = definite(rng, n, n)
    low = cholesky(a, 2)
    assert_near(low, np.linalg.cholesky(a))
    np.testing.assert_array_equal(low, cholesky(a, 1))


def test_failures_by_blocks(rng, monkeypatch):
    monkeypatch.setattr(lapack, "LARGE", 16)
    monkeypatch.setattr(lapack, "BLOCK", 16)
    for pivot in (0, 15, 16, 39):
        for value in (0.0, -1.0, np.nan, np.inf):
            a = np.stack([np.eye(40), definite(rng, 40, 40)])
            a[1, pivot, pivot] = value
            with pytest.raises(LinAlgError, match=rf"batch index \(1,\) whose pivot {pivot} "):
                cholesky(a)
            low = cholesky(a, check=False)
            assert np.isnan(low[1]).all()
            np.testing.assert_array_equal(low[0], a[0])


def test_a_batch(rng):
    a = definite(rng, 3, 2, 9, 9)
    low = cholesky(a, 2)
    for index in np.ndindex(3, 2):
        np.testing.assert_array_equal(low[index], cholesky(a[index]))  # as if alone
    a[2, 1, 4, 4] = -3
    a[1, 0, 2, 2] = -3
    with pytest.raises(LinAlgError, match=r"at batch index \(1, 0\) whose pivot 2 ") as info:
        cholesky(a)
    assert (info.value.index, info.value.pivot) == ((1, 0), 2)
    low = cholesky(a, check=False)
    assert np.isnan(low).all((2, 3)).tolist() == [[False, False], [True, False], [False, True]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_off_the_diagonal(value):
    a = np.eye(4)
    a[2, 1] = value
    with pytest.raises(LinAlgError, match="whose pivot 2 is not a positive number"):
        cholesky(a)


# ---------------------------------------------------------------------------- triangular_solve


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize("conjugate", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_solutions(lower, transpose, conjugate, unit, dtype, rng):
    for n, sides in ((1, 1), (6, 1), (6, 4), (70, 1), (70, 131)):
        a, b = regular(rng, n, n, dtype=dtype), normal(rng, n, sides, dtype=dtype)
        triangle = np.tri(n, k=-unit, dtype=bool)
        dirty = np.where(triangle if lower else triangle.T, a, np.nan).astype(dtype)
        x = solve(dirty, b, 1, lower, transpose, conjugate, unit)
        of = a.conj() if conjugate else a
        assert_near(x, scipy.linalg.solve_triangular(of, b, int(transpose), lower, unit))


def test_bits_do_not_depend_on_threads(rng, monkeypatch):
    monkeypatch.setattr(lapack, "WORTHWHILE", 0)
    for shape, sides in (((50,), 700), ((300,), 300), ((40, 8), 1), ((40, 8), 3)):
        a, b = regular(rng, *shape, shape[-1]), normal(rng, *shape, sides)
        expected = solve(a, b)
        for threads in (2, 3, 8):
            np.testing.assert_array_equal(solve(a, b, threads), expected)


def test_stacks(rng):
    a, b = regular(rng, 2, 3, 6, 6), normal(rng, 2, 3, 6, 200)
    x, y = solve(a, b, 2), solve(a, b[..., :1].copy(), 2)
    for index in np.ndindex(2, 3):
        np.testing.assert_array_equal(x[index], solve(a[index], b[index]))  # as if alone
        np.testing.assert_array_equal(y[index], solve(a[index], b[index][:, :1].copy()))


@pytest.mark.parametrize("sides", [1, 3])
@pytest.mark.parametrize("bad", [0.0, -0.0, np.nan, np.inf])
def test_singular(bad, sides, rng):
    a, b = regular(rng, 2, 2, 4, 4), normal(rng, 2, 2, 4, sides)
    good = solve(a, b)
    a[1, 0, 3, 3] = a[1, 1, 0, 0] = bad
    with pytest.raises(LinAlgError, match=r"batch index \(1, 0\) whose diagonal element 3") as info:
        solve(a, b)
    assert (info.value.index, info.value.pivot) == ((1, 0), 3)
    x = solve(a, b, check=False)
    assert np.isnan(x[1]).all()
    np.testing.assert_array_equal(x[0], good[0])
    assert np.isfinite(solve(a, b, unit=True)).all()


@pytest.mark.parametrize("sides", [1, 3])
@pytest.mark.parametrize("transpose", [True, False])
def test_a_number_that_is_none_is_not_lost_on_a_zero(sides, transpose):
    """0 * NaN is NaN: an element below the diagonal meets a solution of 0."""
    for n in (2, 5, 40, 150):
        a, b = np.eye(n), np.zeros((n, sides))
        a[n - 1, 0] = np.nan
        x = solve(a, b, transpose=transpose)
        met = 0 if transpose else n - 1
        assert np.isnan(x[met]).all()
        assert (np.delete(x, met, 0) == 0).all()


# ---------------------------------------------------------------------------------- the library


def test_blas_keeps_its_threads():
    get, set_ = thread_control()
    if not get:
        pytest.skip("this SciPy was not built with its own OpenBLAS")
    ask, tell = ctypes.CFUNCTYPE(ctypes.c_int)(get), ctypes.CFUNCTYPE(None, ctypes.c_int)(set_)
    before = ask()
    try:
        tell(2)
        cholesky(np.eye(5))
        assert ask() == 2
    finally:
        tell(before)


def test_scipy_is_not_imported():
    """Neither by the package nor by a call: where SciPy brings OpenBLAS as a file of its own."""
    if not thread_control()[0]:
        pytest.skip("this SciPy was not built with its own OpenBLAS")
    words = run_script(
        """
        print("scipy" in sys.modules)
        print(*np.asarray(tg.linalg.cholesky(tg.eye(2) * 4.0)).ravel())
        print("scipy.linalg" in sys.modules)
        """
    )
    assert words == ["False", "2.0", "0.0", "0.0", "2.0", "False"]


# ------------------------------------------------------------------------- large, by blocks


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [lapack.BLOCKED, 190, 200])
def test_large_systems(n, dtype, rng):
    """Whole and broken blocks and panels, every form; the triangle that is not read is full."""
    a = regular(rng, n, n, dtype=dtype)
    for sides in (2, 30, 150):
        b = normal(rng, n, sides, dtype=dtype)
        for lower in (True, False):
            for transpose in (True, False):
                for unit in (True, False):
                    got = solve(a, b, 2, lower, transpose, False, unit)
                    want = scipy.linalg.solve_triangular(
                        a, b, trans="T" if transpose else "N", lower=lower, unit_diagonal=unit
                    )
                    assert_near(got, want)
                    same = solve(a, b, 1, lower, transpose, False, unit)
                    np.testing.assert_array_equal(got, same)


@pytest.mark.parametrize(
    ("n", "dtype"),
    [(lapack.BLOCKED, "float64"), (400, "float64"), *[(191, d) for d in DTYPES]],
)
def test_large_factors(n, dtype, rng):
    a = definite(rng, 2, n, n, dtype=dtype)
    dirty = np.where(np.tri(n, dtype=bool), a, np.nan).astype(dtype)
    low = cholesky(dirty)
    assert_near(low, np.linalg.cholesky(a))
    np.testing.assert_array_equal(low, cholesky(dirty, 2))


@pytest.mark.parametrize("pivot", [0, 63, 64, 130, 199])
def test_failures_in_large_factors(pivot, rng):
    a = np.stack([np.eye(200), definite(rng, 200, 200)])
    for value in (0.0, -1.0, np.nan, np.inf):
        a[1, pivot, pivot] = value
        with pytest.raises(LinAlgError, match=rf"batch index \(1,\) whose pivot {pivot} "):
            cholesky(a)
        low = cholesky(a, check=False)
        assert np.isnan(low[1]).all()
        np.testing.assert_array_equal(low[0], a[0])
