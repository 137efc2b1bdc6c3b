"""Dense linear algebra: Cholesky factors and triangular systems.

Matrices are in the last two axes, all axes before them are a batch. Both ops read one triangle of
a matrix and nothing of the other. On bad input they raise NumPy's ``LinAlgError`` with the place in
the batch and the pivot, or, with ``check=False``, give NaN for that matrix alone (numerics 10).

Derivatives are closed forms in the same ops and matrix products, so they have derivatives of every
order: Murray, "Differentiation of the Cholesky decomposition" (2016), arXiv:1602.07527, eq. (8)
and (9); Giles, "An extended collection of matrix derivative results" (2008), section 2.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError
from ..graph import Node, Value, make
from ..types import TensorType, describe
from .comparison import eq, ge, gt
from .complexes import conj
from .dot import matmul
from .fill import zeros_of
from .leaves import constant, iota
from .registry import register
from .selection import where
from .shape import broadcast, moveaxis, reshape, transpose

__all__ = [
    *("CHOLESKY", "TRIANGULAR_SOLVE", "adjoint", "matrix_transpose", "not_positive_definite"),
    *("singular_triangle", "triangle"),
]


# ------------------------------------------------------------------------- parts of matrices


def matrix_transpose(x: Value) -> Value:
    """The matrices with rows and columns exchanged."""
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x: Value) -> Value:
    """The conjugate transpose of the matrices."""
    return conj(matrix_transpose(x))


def triangle(x: Value, *, lower: bool, strict: bool = False) -> Value:
    """One triangle of the matrices, zeros elsewhere; ``strict`` leaves the diagonal out."""
    row, column = (iota(x.shape, x.ndim - d) for d in (2, 1))
    first, second = (row, column) if lower else (column, row)
    return where((gt if strict else ge)(first, second), x, zeros_of(x.type))


def _place(index: Sequence[int]) -> str:
    return f" at batch index {tuple(index)}" if len(index) else ""


def _error(message: str, index: Sequence[int], pivot: int) -> np.linalg.LinAlgError:
    error = np.linalg.LinAlgError(message)
    error.index, error.pivot = tuple(index), pivot  # type: ignore[attr-defined]
    return error


def not_positive_definite(index: Sequence[int], pivot: int) -> np.linalg.LinAlgError:
    """The error for the matrix at ``index`` of the batch; ``pivot`` counts from 0."""
    return _error(
        f"cholesky: expected a positive definite matrix, got one{_place(index)} whose pivot "
        f"{pivot} is not a positive number; add a small multiple of the identity, or pass "
        f"check=False to get NaN for such a matrix",
        index,
        pivot,
    )


def singular_triangle(index: Sequence[int], pivot: int) -> np.linalg.LinAlgError:
    """The error for the triangular matrix at ``index`` of the batch; ``pivot`` counts from 0."""
    return _error(
        f"solve_triangular: expected a regular matrix, got one{_place(index)} whose diagonal "
        f"element {pivot} is zero or not finite; pass check=False to get NaN for such a matrix",
        index,
        pivot,
    )


def _check_square(name: str, a: TensorType) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name}: expected square matrices in the last two axes, got {a}")
    if not a.dtype.is_inexact:
        raise DTypeError(f"{name}: expected a floating or complex dtype, got {a}; use astype")


# ------------------------------------------------------------------------------------ cholesky


def _cholesky_type(a: TensorType, *, check: bool) -> TensorType:
    _check_square("cholesky", a)
    return TensorType(a.shape, a.dtype)


def _cholesky_value(a: Any, *, check: bool) -> Any:
    result = np.empty_like(a)
    for index in np.ndindex(a.shape[:-2]):
        result[index] = _factor(a[index], index, check)
    return result


def _factor(a: Any, index: tuple[int, ...], check: bool) -> Any:
    try:
        lower = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        lower = None
    if lower is not None and np.isfinite(np.diagonal(lower)).all():
        return lower
    if check:
        raise not_positive_definite(index, _failing_pivot(a))
    return np.full(a.shape, np.nan, a.dtype)


def _failing_pivot(a: Any) -> int:
    """The first pivot of the elimination that is no positive number."""
    rest = np.tril(a)
    for k in range(len(a)):
        pivot = rest[k, k].real
        if not 0 < pivot < np.inf:
            return k
        column = rest[k + 1 :, k] / np.sqrt(pivot)
        rest[k + 1 :, k + 1 :] -= np.tril(np.outer(column, column.conj()))
    return len(a) - 1  # rounding alone told the library otherwise


def _cholesky_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    """``L_dot = L Phi(L^-1 A_dot L^-H)``; Phi takes the lower triangle and half of the diagonal.

    From ``A = L L^H``: ``L^-1 A_dot L^-H = X + X^H`` with ``X = L^-1 L_dot`` lower triangular. A
    Hermitian matrix moves along Hermitian ones, so ``A_dot`` is taken to be its Hermitian part: the
    gradient is Hermitian, as that of a function of the whole matrix.
    """
    a_dot = tangents[0]
    if a_dot is None:
        return None
    low = node.out
    half = (a_dot + adjoint(a_dot)) * 0.5
    # Factors that are there are regular, and the ones that are not hold NaN already.
    once = _solve(low, half, check=False)
    return matmul(low, _phi(_solve(low, adjoint(once), check=False)))


def _phi(x: Value) -> Value:
    row, column = (iota(x.shape, x.ndim - d) for d in (2, 1))
    weight = where(eq(row, column), constant(0.5, x.dtype), constant(1.0, x.dtype))
    return triangle(x * weight, lower=True)


def _cholesky_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    a = moveaxis(operands[0], axes[0], 0)  # type: ignore[arg-type]
    return make(node.op, (a,), **dict(node.params)), 0


def _definite(rng: Any, dtype: Any, *shape: int) -> Any:
    """Well-conditioned Hermitian matrices."""
    x = _normal(rng, dtype, *shape)
    return (x @ x.conj().swapaxes(-1, -2) + 2 * np.eye(shape[-1])).astype(dtype)


def _normal(rng: Any, dtype: Any, *shape: int) -> Any:
    kind = np.dtype(dtype).kind
    if kind not in "fc":  # for the type rule to refuse
        return rng.integers(0, 2, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if kind == "c" else x).astype(dtype)


def _cholesky_samples(rng: Any, dtype: Any) -> Any:
    yield (_definite(rng, dtype, 4, 4),), {"check": True}
    yield (_definite(rng, dtype, 2, 3, 3),), {"check": False}


CHOLESKY = register(
    "cholesky",
    "linalg",
    infer=_cholesky_type,
    reference=_cholesky_value,
    jvp=_cholesky_jvp,
    batch=_cholesky_batch,
    doc="Lower triangular L with positive diagonal and L L^H = A, of which the lower triangle is "
    "read (numpy.linalg.cholesky). Its derivatives are by Hermitian matrices.",
    samples=_cholesky_samples,
    why_not={"transpose": "not linear; its tangent is made of solves and products"},
)


# ---------------------------------------------------------------------------- triangular_solve


def _solve_type(
    a: TensorType,
    b: TensorType,
    *,
    lower: bool,
    transpose: bool,
    conjugate: bool,
    unit_diagonal: bool,
    check: bool,
) -> TensorType:
    _check_square("triangular_solve", a)
    if a.dtype is not b.dtype:
        raise DTypeError(f"triangular_solve: expected equal dtypes, got {describe((a, b))}")
    if b.ndim < 2 or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(
            f"triangular_solve: expected right sides of as many rows and the same leading axes, "
            f"got {describe((a, b))}"
        )
    return TensorType(b.shape, b.dtype)


def _solve_value(
    a: Any,
    b: Any,
    *,
    lower: bool,
    transpose: bool,
    conjugate: bool,
    unit_diagonal: bool,
    check: bool,
) -> Any:
    """By substitution, one unknown after the other."""
    a = np.tril(a) if lower else np.triu(a)
    a = a.swapaxes(-1, -2) if transpose else a
    a = a.conj() if conjugate else a
    result = np.empty_like(b)
    n = b.shape[-2]
    order = range(n) if lower != transpose else range(n - 1, -1, -1)
    for index in np.ndindex(b.shape[:-2]):
        matrix, x = a[index], b[index].copy()
        pivots = np.ones(n, a.dtype) if unit_diagonal else np.diagonal(matrix)
        wrong = (pivots == 0) | ~np.isfinite(pivots)
        if wrong.any() and check:
            raise singular_triangle(index, int(np.argmax(wrong)))
        for i in order:
            x[i] /= pivots[i]
            for j in range(i + 1, n) if lower != transpose else range(i):
                x[j] -= matrix[j, i] * x[i]
        result[index] = np.nan if wrong.any() else x
    return result


def _solve(a: Value, b: Value, **changed: bool) -> Value:
    """``a^-1 b`` for lower triangular ``a``, but for what is ``changed``."""
    names = ("transpose", "conjugate", "unit_diagonal")
    params = {"lower": True, "check": True} | dict.fromkeys(names, False) | changed
    return make(TRIANGULAR_SOLVE, (a, b), **params)


def _solve_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    """``x_dot = op(A)^-1 (b_dot - op(A_dot) x)``, of ``A_dot`` the triangle that is read."""
    a, _ = node.inputs
    a_dot, right = tangents
    params = dict(node.params)
    if a_dot is not None:
        moved = triangle(a_dot, lower=params["lower"], strict=params["unit_diagonal"])
        moved = matrix_transpose(moved) if params["transpose"] else moved
        moved = conj(moved) if params["conjugate"] else moved
        product = matmul(moved, node.out)
        right = -product if right is None else right - product
    return None if right is None else make(node.op, (a, right), **params)


def _solve_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> Any:
    """Linear in ``b``: the same system transposed, not conjugated."""
    if linear[0]:
        return None, None
    params = dict(node.params)
    params["transpose"] = not params["transpose"]
    return None, make(node.op, (node.inputs[0], cotangent), **params)


def _solve_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    """A matrix that all examples share solves for all their right sides at once (BT13)."""
    (a, b), params = operands, dict(node.params)
    if axes[0] is None:
        at = b.ndim - 2  # in front of the columns
        b = moveaxis(b, axes[1], at)  # type: ignore[arg-type]
        columns = reshape(b, (*b.shape[:at], b.shape[at] * b.shape[-1]))
        return reshape(make(node.op, (a, columns), **params), b.shape), at
    a = moveaxis(a, axes[0], 0)
    if axes[1] is None:
        b = broadcast(b, (a.shape[0], *b.shape), tuple(range(1, b.ndim + 1)))
    else:
        b = moveaxis(b, axes[1], 0)
    return make(node.op, (a, b), **params), 0


def _solve_samples(rng: Any, dtype: Any) -> Any:
    """Every form of system once; the triangle that is not read is full."""
    for k, shape in enumerate(((4,), (3,), (2, 3), (3,), (2,))):
        n = shape[-1]
        a = (_normal(rng, dtype, *shape, n) + 4 * np.eye(n)).astype(dtype)
        yield (
            (a, _normal(rng, dtype, *shape, 2)),
            {
                "lower": k % 2 == 0,
                "transpose": k in (1, 2),
                "conjugate": k in (2, 3),
                "unit_diagonal": k == 4,
                # A table test puts zeros for the matrix, which only a unit diagonal makes regular.
                "check": k == 4,
            },
        )


TRIANGULAR_SOLVE = register(
    "triangular_solve",
    "linalg",
    infer=_solve_type,
    reference=_solve_value,
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    batch=_solve_batch,
    doc="x with op(A) x = b, op by transpose and conjugate; one triangle of A is read, and no "
    "diagonal if it is said to be one (scipy.linalg.solve_triangular).",
    samples=_solve_samples,
)
