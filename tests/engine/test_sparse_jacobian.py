"""Sparse Jacobians and Hessians: values, passes, given patterns, errors."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import tilegrad as tg
from tilegrad.engine import sparse_jacobian

from .lines import raises_here

Fun = Callable[[Any], Any]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The number of directions of each linear program that is run."""
    sizes: list[int] = []
    batch = sparse_jacobian.batch

    def counted(outputs: Any, mapped: Any, size: int) -> Any:
        sizes.append(size)
        return batch(outputs, mapped, size)

    monkeypatch.setattr(sparse_jacobian, "batch", counted)
    return sizes


def broyden(x: Any) -> Any:
    """Broyden's tridiagonal function (More, Garbow, Hillstrom 1981, problem 30)."""
    before = tg.concatenate([tg.zeros(1), x[:-1]])
    behind = tg.concatenate([x[1:], tg.zeros(1)])
    return (3 - 2 * x) * x - before - 2 * behind + 1


def broyden_exact(x: np.ndarray) -> Any:
    n = len(x)
    return sparse.diags_array(
        [-np.ones(n - 1), 3 - 4 * x, -2 * np.ones(n - 1)], offsets=[-1, 0, 1]
    ).toarray()


def brown(x: Any) -> Any:
    """Brown's almost linear function (problem 27): all but the last row are full of ones."""
    linear = x[:-1] + tg.sum(x) - (x.shape[0] + 1)
    return tg.concatenate([linear, tg.prod(x)[None] - 1])


def rosenbrock(x: Any) -> Any:
    return tg.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rosenbrock_hessian(x: np.ndarray) -> Any:
    main = np.zeros(len(x))
    main[:-1] += 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    main[1:] += 200
    off = -400 * x[:-1]
    return sparse.diags_array([off, main, off], offsets=[-1, 0, 1]).toarray()


def bratu(u: Any) -> Any:
    """The five-point Laplacian with a source of its own at each point of a grid."""
    v = tg.pad(u, 1)
    near = v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2]
    return near - 4 * u + tg.exp(u)


def points(n: int) -> Any:
    return np.random.default_rng(n).uniform(-1, 1, n)


# ------------------------------------------------------------------------------------- jacobians


@pytest.mark.parametrize("n", [2, 5, 50])
def test_tridiagonal(n: int, passes: list[int]) -> None:
    x = points(n)
    found = tg.jacobian(broyden, sparsity=True)(x)
    assert type(found) is sparse.csr_array
    assert (found.shape, found.nnz, found.dtype) == ((n, n), 3 * n - 2, np.float64)
    assert found.has_sorted_indices
    np.testing.assert_allclose(found.toarray(), broyden_exact(x), rtol=1e-14)
    assert passes == [min(n, 3)]


@pytest.mark.parametrize("width", [1, 2, 4])
def test_passes_are_the_width_of_the_band(width: int, passes: list[int]) -> None:
    def f(x: Any) -> Any:
        y = tg.pad(x, (width, 0))
        return sum((y[k : k + 30] ** 2 * (k + 1.0) for k in range(width + 1)), 0.0)

    x = points(30)
    found = tg.jacobian(f, sparsity=True)(x)
    np.testing.assert_allclose(found.toarray(), np.asarray(tg.jacobian(f)(x)), rtol=1e-14)
    assert passes == [width + 1]


def test_ten_thousand_unknowns_take_three_passes(passes: list[int]) -> None:
    n = 10_000
    x = points(n)
    found = tg.jacobian(broyden, sparsity=True)(x)
    assert passes == [3]
    np.testing.assert_allclose(found.diagonal(), 3 - 4 * x, rtol=1e-14)
    np.testing.assert_array_equal(found.diagonal(1), np.full(n - 1, -2.0))
    assert found.nnz == 3 * n - 2


def test_five_points(passes: list[int]) -> None:
    u = points(144).reshape(12, 12)
    found = tg.jacobian(bratu, sparsity=True)(u)
    dense = np.asarray(tg.jacobian(bratu)(u)).reshape(144, 144)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-14)
    assert found.nnz == 5 * 144 - 4 * 12
    assert passes[0] <= 8


def test_brown_is_dense(passes: list[int]) -> None:
    x = points(7) + 1
    found = tg.jacobian(brown, sparsity=True)(x)
    assert found.nnz == 49
    expected = np.eye(7) + 1
    expected[-1] = np.prod(x) / x
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-14)
    assert passes == [7]


def test_a_full_row_among_sparse_ones_goes_by_rows(passes: list[int]) -> None:
    """Columns all meet in the last row: by rows two passes of reverse mode are enough."""
    x = points(40)
    f = lambda x: tg.concatenate([tg.sin(x), tg.sum(x * x)[None]])  # noqa: E731
    found = tg.jacobian(f, sparsity=True)(x)
    expected = np.vstack([np.diag(np.cos(x)), 2 * x])
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-14)
    assert passes == [2]


def test_trees_empty_rows_and_aux() -> None:
    def f(p: Any, scale: float) -> Any:
        result = {"a": scale * p["u"][:2] * p["v"], "b": tg.zeros(2), "c": p["u"] ** 2}
        return result, "aux"

    p = {"u": np.array([1.0, 2.0, 3.0]), "v": 4.0}
    found, aux = tg.jacobian(f, has_aux=True, sparsity=True)(p, 10.0)
    assert aux == "aux"
    expected = [
        [40, 0, 0, 10],
        [0, 40, 0, 20],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [2, 0, 0, 0],
        [0, 4, 0, 0],
        [0, 0, 6, 0],
    ]
    np.testing.assert_array_equal(found.toarray(), expected)
    assert np.diff(found.indptr).tolist() == [2, 2, 0, 0, 1, 1, 1]
    none = tg.jacobian(lambda x: tg.zeros(2), sparsity=True)(np.ones(3))
    assert (none.shape, none.nnz) == ((2, 3), 0)
    empty = tg.jacobian(lambda x: x * 2, sparsity=True)(np.zeros(0))
    assert empty.shape == (0, 0)


def test_single_precision() -> None:
    found = tg.jacobian(lambda x: x * x, sparsity=True)(points(6).astype(np.float32))
    assert found.dtype == np.float32


def test_a_rule_for_reverse_mode_alone() -> None:
    """Rows need no forward mode; columns do."""
    f = tg.custom_vjp(lambda x: tg.sum(x * x))
    f.defvjp(lambda x: (tg.sum(x * x), x), lambda x, c: (2 * x * c,))
    found = tg.jacobian(lambda x: f(x)[None], sparsity=True)(np.array([1.0, 2.0]))
    np.testing.assert_array_equal(found.toarray(), [[2.0, 4.0]])


# ------------------------------------------------------------------------------------ hessians


def test_rosenbrock(passes: list[int]) -> None:
    x = points(30)
    found = tg.hessian(rosenbrock, sparsity=True)(x)
    np.testing.assert_allclose(found.toarray(), rosenbrock_hessian(x), rtol=1e-13, atol=1e-13)
    assert found.nnz == 3 * 30 - 2
    assert passes == [3]
    assert abs(found - found.T).max() == 0


def test_ten_thousand_unknowns_of_a_chain(passes: list[int]) -> None:
    x = points(10_000)
    found = tg.hessian(rosenbrock, sparsity=True)(x)
    np.testing.assert_allclose(found.diagonal(1), -400 * x[:-1], rtol=1e-13)
    assert passes == [3]


def test_an_arrow_takes_two_passes(passes: list[int]) -> None:
    f = lambda x: tg.sum(tg.sin(x[1:] * x[0])) + tg.sum(x**4)  # noqa: E731
    x = points(50)
    found = tg.hessian(f, sparsity=True)(x)
    np.testing.assert_allclose(found.toarray(), np.asarray(tg.hessian(f)(x)), rtol=1e-12)
    assert passes == [2]


def test_hessian_of_what_does_not_matter() -> None:
    found = tg.hessian(lambda p: tg.sum(p["a"] ** 3), sparsity=True)(
        {"a": np.array([1.0, 2.0]), "b": np.ones(2)}
    )
    np.testing.assert_array_equal(found.toarray(), np.diag([6.0, 12.0, 0.0, 0.0]))


# ------------------------------------------------------------------------------- given patterns


def test_a_pattern_may_be_given(passes: list[int]) -> None:
    x = points(20)
    first = tg.jacobian(broyden, sparsity=True)(x)
    for given in (first, first != 0, first.toarray() != 0, sparse.coo_matrix(first)):
        again = tg.jacobian(broyden, sparsity=given)(x + 1)
        np.testing.assert_allclose(again.toarray(), broyden_exact(x + 1), rtol=1e-14)
    wide = tg.jacobian(broyden, sparsity=np.ones((20, 20), bool), check=True)(x)
    np.testing.assert_allclose(wide.toarray(), broyden_exact(x), rtol=1e-14)
    assert passes == [3, 3, 3, 3, 3, 20, 3]
    # Half of a symmetric pattern is enough.
    half = sparse.csr_array(np.triu(np.tri(20, 20, 1)))
    found = tg.hessian(rosenbrock, sparsity=half)(x)
    np.testing.assert_allclose(found.toarray(), rosenbrock_hessian(x), rtol=1e-13, atol=1e-13)


def test_a_pattern_that_is_too_narrow_is_found_out() -> None:
    x = points(6)
    narrow = np.tri(6, 6, 1, bool) & ~np.tri(6, 6, -1, bool)
    with raises_here(ValueError, r"without 5 of them: first \(1, 0\), which is -1.0"):
        tg.jacobian(broyden, sparsity=narrow, check=True)(x)  # here
    with raises_here(ValueError, r"without 10 of them: first \(0, 1\)"):
        tg.hessian(rosenbrock, sparsity=np.eye(6, dtype=bool), check=True)(x)  # here


def test_errors() -> None:
    with raises_here(tg.ShapeError, r"expected shape \[3, 3\] .*, got \[2, 3\]"):
        tg.jacobian(broyden, sparsity=np.ones((2, 3), bool))(np.ones(3))  # here
    with raises_here(TypeError, "expected True, a SciPy sparse matrix or a matrix of bool, got f"):
        tg.jacobian(broyden, sparsity=np.ones((3, 3)))(np.ones(3))  # here
    with raises_here(tg.DTypeError, "expected real arguments and results, got x: c128"):
        tg.jacobian(lambda x: x, sparsity=True)(np.ones(3) + 0j)  # here
    with raises_here(ValueError, "got holomorphic=True"):
        tg.jacobian(broyden, sparsity=True, holomorphic=True)  # here
    with raises_here(tg.ShapeError, "expected the function to return a scalar"):
        tg.hessian(broyden, sparsity=True)(np.ones(3))  # here
    with pytest.raises(tg.TracerError):
        tg.jit(lambda x: tg.jacobian(broyden, sparsity=True)(x).data)(np.ones(3))


def test_a_newton_solver() -> None:
    """Broyden's system by sparse Newton steps: the root is known by its residual alone."""
    x = -np.ones(200)
    pattern: Any = True
    for _ in range(8):
        matrix = tg.jacobian(broyden, sparsity=pattern)(x)
        pattern = matrix
        x = x - sparse.linalg.spsolve(matrix.tocsc(), np.asarray(broyden(x)))
    np.testing.assert_allclose(broyden(x), np.zeros(200), atol=1e-13)
