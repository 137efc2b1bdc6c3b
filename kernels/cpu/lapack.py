"""Cholesky factors and triangular systems by LAPACK and BLAS, on arrays in C order.

Fortran sees a matrix in C order transposed: the lower triangle of ours is the upper one of its. So
nothing is copied but the operand that becomes the result:

    A = L L^H    is  conj(A) = A' = (L')^H L'    upper factor of the Hermitian A' (potrf)
    op(A) X = B  is  X' op(A)' = B'              matrix on the right of the unknown (trsm)

where ``'`` is the transpose; ``X'`` has the right sides as its rows. ``conj(A) X = B`` has no form
in BLAS and is solved as ``A conj(X) = conj(B)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.dtypes import as_dtype
from ...ir.ops.linear_algebra import not_positive_definite, singular_triangle
from .blocks import block_routine
from .openblas import routine_address
from .registers import has_product
from .routines import Argument, call_routine, integer, letter, letters, number, word

__all__ = ["cholesky", "triangular_solve"]

Array = np.ndarray[Any, Any]

_PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_SQUARE = 64  # rows of a block in which a triangle is cut out by a mask
_ABOVE = np.triu(np.ones((_SQUARE, _SQUARE), bool), 1)

# Right sides, columns or rows of a piece: enough that packing the matrix anew costs little.
PANEL = 128
# Columns of a block of the factorization, and the extent from which it is worth pieces.
BLOCK, LARGE = 256, 640
# Extent from which products of our own do most of the work (:mod:`.blocks`).
BLOCKED = 128
# Multiplications above which waking other threads pays.
WORTHWHILE = 200_000


def _panels(extent: int) -> tuple[int, Array]:
    """The extent of a panel and that of each: equal but for the last."""
    count = max(1, -(-extent // PANEL))
    each = -(-extent // count)
    each = min(extent, -(-each // 8) * 8)  # whole vectors
    count = -(-extent // max(each, 1))
    return each, np.array([min(each, extent - k * each) for k in range(count)], np.int32)


# ------------------------------------------------------------------------------------ cholesky


def cholesky(a: Array, out: Array, threads: int, *, check: bool) -> None:
    """The lower factors of ``a`` in ``out``; only lower triangles are read."""
    n = a.shape[-1]
    out[...] = a
    matrices = out.reshape(-1, n, n)
    if n < LARGE:
        info = _factored(matrices, threads)
    else:
        info = np.array([_factored_by_blocks(m, threads) for m in matrices], np.int32)
    pivots = np.diagonal(matrices, 0, 1, 2)
    finite = np.isfinite(pivots)
    wrong = (info > 0) | ~finite.all(1)
    _clear_upper(matrices)
    if wrong.any():
        if check:
            first = int(np.argmax(wrong))
            pivot = info[first] - 1 if info[first] > 0 else np.argmin(finite[first])
            raise not_positive_definite(_index(first, a), int(pivot))
        matrices[wrong] = np.nan


def _index(number: int, a: Array) -> tuple[int, ...]:
    """Place in the batch of the matrix with this number."""
    return tuple(int(k) for k in np.unravel_index(number, a.shape[:-2])) if a.ndim > 2 else ()


def _factored(matrices: Array, threads: int) -> Array:
    """Factor each matrix by itself; LAPACK's ``info`` of each."""
    count, n, _ = matrices.shape
    info = np.zeros(count, np.int32)
    place = Argument(matrices.ctypes.data, matrices.strides[0])
    found = Argument(info.ctypes.data, info.itemsize)
    routine, arguments = _PREFIX[matrices.dtype.name] + "potrf", (letter("U"), integer(n), place)
    arguments = (*arguments, integer(n), found)
    if _by_blocks(n, matrices.dtype):
        library = [word(routine_address(routine[0] + name)) for name in ("potrf", "trsm")]
        routine = block_routine("factor", matrices.dtype.name)
        arguments = (*library, integer(n), place, found)
    call_routine(
        routine,
        arguments,
        count,
        1,
        threads if count * n**3 > 3 * WORTHWHILE else 1,
    )
    return info


def _by_blocks(n: int, dtype: np.dtype[Any]) -> bool:
    return n >= BLOCKED and has_product(as_dtype(dtype))


def _factored_by_blocks(matrix: Array, threads: int) -> int:
    """Factor a large matrix block by block (right-looking); LAPACK's ``info``.

    In Fortran's view, with the upper factor U: factor the diagonal block, divide the block row
    right of it by U_jj^H (panels of columns), subtract the product of that row from the rest.
    """
    n, size, prefix = len(matrix), matrix.itemsize, _PREFIX[matrix.dtype.name]
    one, minus_one = number(1, matrix.dtype), number(-1, matrix.dtype)
    start, across = matrix.ctypes.data, matrix.strides[0]  # between columns; `size` between rows
    leading = integer(n)
    for at in range(0, n, BLOCK):
        width = min(BLOCK, n - at)
        info = np.zeros(1, np.int32)
        diagonal = Argument(start + at * (across + size))
        arguments = (letter("U"), integer(width), diagonal, leading, Argument(info.ctypes.data))
        call_routine(prefix + "potrf", arguments, 1, 1, 1)
        if info[0]:
            return at + int(info[0])
        rest = at + width
        if rest == n:
            break
        each, extents = _panels(n - rest)
        columns = Argument(extents.ctypes.data, 0, extents.itemsize)
        row = Argument(start + rest * across + at * size, 0, each * across)
        arguments = (
            *(letter("L"), letter("U"), letter("C"), letter("N")),
            *(integer(width), columns, one, diagonal, leading, row, leading),
        )
        call_routine(prefix + "trsm", arguments, 1, len(extents), threads)
        # A panel of columns down to its own diagonal; what it writes below that is not read.
        down = np.cumsum(extents, dtype=np.int32)
        arguments = (
            *(letter("C"), letter("N"), Argument(down.ctypes.data, 0, down.itemsize), columns),
            *(integer(width), minus_one, Argument(row.start), leading, row, leading),
            *(one, Argument(start + rest * (across + size), 0, each * across), leading),
        )
        call_routine(prefix + "gemm", arguments, 1, len(extents), threads)
    return 0


def _clear_upper(matrices: Array) -> None:
    """Zeros above the diagonals."""
    n = matrices.shape[-1]
    for i in range(0, n, _SQUARE):
        j = min(i + _SQUARE, n)
        matrices[:, i:j, j:] = 0
        np.copyto(matrices[:, i:j, i:j], 0, where=_ABOVE[: j - i, : j - i])


# ---------------------------------------------------------------------------- triangular_solve


def triangular_solve(
    a: Array,
    b: Array,
    out: Array,
    threads: int,
    *,
    lower: bool,
    transpose: bool,
    conjugate: bool,
    unit_diagonal: bool,
    check: bool,
) -> None:
    """The solutions of ``op(a) x = b`` in ``out``; only one triangle of each matrix is read."""
    n = a.shape[-1]
    matrices = a.reshape(-1, n, n)
    wrong = None if unit_diagonal else _wrong_pivots(matrices)
    if wrong is not None and check:
        first = int(np.argmax(wrong.any(1)))
        raise singular_triangle(_index(first, a), int(np.argmax(wrong[first])))
    turned = conjugate and a.dtype.kind == "c"
    if turned:
        np.conjugate(b, out=out)
    else:
        out[...] = b
    solutions = out.reshape(len(matrices), n, -1)
    solve = _solve_one if solutions.shape[2] == 1 else _solve
    triangle, diagonal = "U" if lower else "L", "U" if unit_diagonal else "N"
    solve(triangle, transpose, diagonal, matrices, solutions, threads)
    if turned:
        np.conjugate(out, out=out)
    if wrong is not None:
        solutions[wrong.any(1)] = np.nan


def _solve(
    triangle: str,
    transpose: bool,
    diagonal: str,
    matrices: Array,
    solutions: Array,
    threads: int,
) -> None:
    """In place, panels of right sides each by themselves."""
    size = matrices.itemsize
    n, sides = solutions.shape[1:]
    each, extents = _panels(sides)
    width = Argument(extents.ctypes.data, 0, extents.itemsize)
    matrix = Argument(matrices.ctypes.data, n * n * size)
    right = Argument(solutions.ctypes.data, n * sides * size, each * size)
    routine: str | int
    if has_product(as_dtype(matrices.dtype)):
        routine = block_routine("solve", matrices.dtype.name)
        down = (triangle == "U") != transpose
        form = letters("".join(chr(flag) for flag in (transpose, diagonal == "U", down)))
        arguments: tuple[Argument, ...] = (
            *(form, integer(n), matrix, right, integer(sides), width),
        )
    else:
        routine = _PREFIX[matrices.dtype.name] + "trsm"
        forms = [letter(c) for c in ("R", triangle, "T" if transpose else "N", diagonal)]
        one = number(1, matrices.dtype)
        arguments = (*forms, width, integer(n), one, matrix, integer(n), right, integer(sides))
    call_routine(
        routine,
        arguments,
        len(matrices),
        len(extents),
        threads if len(matrices) * n * n * sides > WORTHWHILE else 1,
    )


def _solve_one(
    triangle: str,
    transpose: bool,
    diagonal: str,
    matrices: Array,
    solutions: Array,
    threads: int,
) -> None:
    """In place, one right side each, by the routine for vectors: the matrix is read once.

    A matrix on the right of a row is its transpose on the left of a column.
    """
    size = matrices.itemsize
    n = solutions.shape[1]
    call_routine(
        _PREFIX[matrices.dtype.name] + "trsv",
        (
            *(letter(c) for c in (triangle, "N" if transpose else "T", diagonal)),
            integer(n),
            *(Argument(matrices.ctypes.data, n * n * size), integer(n)),
            *(Argument(solutions.ctypes.data, n * size), integer(1)),
        ),
        len(matrices),
        1,
        threads if len(matrices) * n * n > WORTHWHILE else 1,
    )


def _wrong_pivots(matrices: Array) -> Array | None:
    """Which diagonal elements are zero or not finite; None if none is."""
    pivots = np.diagonal(matrices, 0, 1, 2)
    wrong = (pivots == 0) | ~np.isfinite(pivots)
    return wrong if wrong.any() else None
