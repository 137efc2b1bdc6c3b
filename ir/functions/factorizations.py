"""Factors of matrices, and systems of equations with them.

Matrices are in the last two axes, the axes before them are a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..graph import Value, make
from ..ops.linear_algebra import CHOLESKY, TRIANGULAR_SOLVE, adjoint
from ..ops.operands import broadcast_shapes, convert
from ..ops.shape import broadcast_to, moveaxis, reshape
from ..types import Shape, TensorType, describe
from .arguments import as_inexact, fail, promoted

__all__ = ["cholesky", "solve_triangular"]


def _square(name: str, x: Value) -> None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        fail(ShapeError(f"{name}: expected square matrices in the last two axes, got {x.type}"))


def cholesky(a: Any, upper: bool = False, check: bool = True) -> Value:
    """The Cholesky factor of Hermitian positive definite matrices.

    Parameters
    ----------
    a : array-like, shape (..., n, n)
        Only the lower triangle is read (with ``upper`` the upper one). Integers become float64.
    upper : bool
        Return ``U`` with ``U^H U = a`` in place of ``L`` with ``L L^H = a``.
    check : bool
        Raise for a matrix that is not positive definite; else it gives a factor of NaN.

    Returns
    -------
    Value, shape (..., n, n)
        Triangular, with positive diagonal and zeros in the other triangle.

    Raises
    ------
    LinAlgError
        NumPy's, with the attributes ``index`` (place in the batch) and ``pivot`` (from 0): when
        the factor is computed, in eager code and under ``jit``.
    ShapeError
        If the last two axes are not equally long.

    Notes
    -----
    The value reads one triangle, the derivative is that of a function of the whole matrix, which
    moves along Hermitian matrices: tangents are replaced by their Hermitian part, and gradients
    are Hermitian (as in PyTorch), so a step along one leaves a Hermitian matrix Hermitian. To
    differentiate by the entries of one triangle, build the matrix from them.

    Cost n^3 / 3 multiplications and additions, of the gradient 4 n^3 more. Rules: Murray (2016),
    arXiv:1602.07527.

    Examples
    --------
    >>> import tilegrad as tg
    >>> a = tg.asarray([[5.0, 2.0], [2.0, 3.0]])
    >>> low = tg.linalg.cholesky(a)
    >>> bool(tg.allclose(low @ low.T, a))
    True
    >>> log_det = lambda a: 2 * tg.sum(tg.log(tg.diag(tg.linalg.cholesky(a))))
    >>> tg.grad(log_det)(a) * 11
    Array([[ 3., -2.],
           [-2.,  5.]], dtype=float64)
    """
    x = as_inexact("cholesky", a)
    _square("cholesky", x)
    low = make(CHOLESKY, (adjoint(x) if upper else x,), check=bool(check))
    return adjoint(low) if upper else low


def _leading(a: Value, b: Value) -> Shape:
    """The leading axes of both, broadcast."""
    try:
        return broadcast_shapes("", [TensorType(x.shape[:-2], x.dtype) for x in (a, b)])
    except ShapeError:
        both = describe((a.type, b.type))
        text = "solve_triangular: expected leading axes that broadcast together, got "
        fail(ShapeError(text + both))


_FORMS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    check: bool = True,
) -> Value:
    """The solution ``x`` of ``a x = b`` for triangular ``a``: ``scipy.linalg.solve_triangular``.

    Parameters
    ----------
    a : array-like, shape (..., n, n)
        Only the triangle that ``lower`` names is read, in the gradient too.
    b : array-like, shape (n,) or (..., n, k)
        Leading axes broadcast with those of ``a``.
    trans : {0, 1, 2, "N", "T", "C"}
        Solve ``a x = b``, ``a^T x = b`` or ``a^H x = b``.
    lower : bool
        The lower triangle; by default the upper one.
    unit_diagonal : bool
        Take the diagonal to be one, and do not read it.
    check : bool
        Raise for a singular matrix; else it gives NaN.

    Returns
    -------
    Value
        Of the shape of ``b``, with the common leading axes.

    Raises
    ------
    LinAlgError
        NumPy's, with the attributes ``index`` (place in the batch) and ``pivot`` (from 0), if a
        diagonal element is zero or not finite: in eager code and under ``jit``.
    ShapeError
        If ``a`` is not square or ``b`` has another number of rows.

    Notes
    -----
    Substitution, n^2 multiplications and additions for each right side. A matrix without leading
    axes solves for all of ``b`` at once, whatever axes that has.

    Examples
    --------
    >>> import tilegrad as tg
    >>> a = tg.asarray([[2.0, 7.0], [1.0, 3.0]])  # the 7 is not read
    >>> tg.linalg.solve_triangular(a, tg.asarray([1.0, 2.0]), lower=True)
    Array([0.5, 0.5], dtype=float64)
    """
    matrix, right = (as_inexact("solve_triangular", x) for x in promoted(a, b))
    matrix, right = (convert(x, x.dtype) for x in (matrix, right))  # Python numbers too
    _square("solve_triangular", matrix)
    n, vector = matrix.shape[-1], right.ndim == 1
    if right.ndim == 0 or right.shape[0 if vector else -2] != n:
        fail(
            ShapeError(
                f"solve_triangular: expected a right side of {n} rows, got "
                f"{describe((matrix.type, right.type))}"
            )
        )
    form = _FORMS.get(trans) if isinstance(trans, (int, str, np.integer)) else None
    if form is None:
        fail(ValueError(f"solve_triangular: expected trans 0, 1, 2, N, T or C, got {trans!r}"))
    right = reshape(right, (n, 1)) if vector else right
    many = right.shape[:-2] if matrix.ndim == 2 else ()
    if many:  # all right sides as columns of one
        right = moveaxis(right, right.ndim - 2, 0)
        shape = right.shape
        right = reshape(right, (n, -1)) if right.size else reshape(right, (n, 0))
    lead = _leading(matrix, right)
    x = make(
        TRIANGULAR_SOLVE,
        (broadcast_to(matrix, (*lead, n, n)), broadcast_to(right, (*lead, *right.shape[-2:]))),
        lower=bool(lower),
        transpose=form != "N",
        conjugate=form == "C",
        unit_diagonal=bool(unit_diagonal),
        check=bool(check),
    )
    if many:
        x = moveaxis(reshape(x, shape), 0, len(shape) - 2)
    return reshape(x, x.shape[:-1]) if vector else x
