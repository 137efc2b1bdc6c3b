"""Sparse Jacobians and Hessians: their pattern, few directions, and SciPy matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autodiff import forward, reverse
from ..autodiff.batching import batch
from ..autodiff.custom import refuse_untransposed
from ..autodiff.sparsity import sparsity as sparsity_of
from ..autodiff.sparsity_coloring import colored_columns, rows_of, star_colored, star_places
from ..ir.errors import ShapeError
from ..ir.graph import Value
from ..ir.location import at_user_line
from ..ir.ops.fill import filled
from ..ir.ops.shape import moveaxis, reshape
from .array import from_numpy, wrap
from .gradient import Point, require_real, run_at_point, scalar_result
from .marking import strong, tangent_inputs
from .realize import make_peers
from .tracing import Trace

__all__ = ["sparse_hessian", "sparse_jacobian"]

Fun = Callable[..., Any]
Matrix = Any  # scipy.sparse.csr_array
_Linear = list["Value | None"]


def sparse_jacobian(
    fun: Fun, argnums: int | Sequence[int], has_aux: bool, sparsity: Any, check: bool
) -> Fun:
    """:func:`~.jacobian.jacobian` with ``sparsity``."""

    def whole(*args: Any, **kwargs: Any) -> Any:
        point = run_at_point("jacobian", fun, args, kwargs, argnums, has_aux, False)
        require_real(point)
        linear = _Tangents(point, point.out.values)
        found = _pattern(linear, sparsity, symmetric=False)
        result = _jacobian(point, linear, found)
        if check and sparsity is not True:
            _check(point.title, found, _jacobian(point, linear, linear.pattern()))
        return (result, point.out.aux) if has_aux else result

    return whole


def sparse_hessian(
    fun: Fun, argnums: int | Sequence[int], has_aux: bool, sparsity: Any, check: bool
) -> Fun:
    """:func:`~.jacobian.hessian` with ``sparsity``."""

    def whole(*args: Any, **kwargs: Any) -> Any:
        point = run_at_point("hessian", fun, args, kwargs, argnums, has_aux, False)
        require_real(point)
        value = scalar_result(point, False)
        moving = point.inputs.moving
        gradient = reverse.vjp([value], moving)([filled((), 1, value.dtype)])
        linear = _Tangents(
            point, [strong(c, x.type) for c, x in zip(gradient, moving, strict=True)]
        )
        found = _pattern(linear, sparsity, symmetric=True)
        result = _hessian(linear, found)
        if check and sparsity is not True:
            _check(point.title, found, _hessian(linear, _symmetric(linear.pattern())))
        return (result, point.out.aux) if has_aux else result

    return whole


# -------------------------------------------------------------------------------- linear programs


class _Tangents:
    """The tangents of some values along directions of the arguments.

    Attributes
    ----------
    directions : list of Value
    results : list of (Value or None)
    """

    def __init__(self, point: Point, values: Sequence[Value]) -> None:
        trace = Trace(point.title)
        self.title = point.title
        self.values = list(values)
        self.moving = point.inputs.moving
        self.directions = [node.out for node in tangent_inputs(self.moving, trace)]
        moves = dict(zip(self.moving, self.directions, strict=True))
        self.results: _Linear = forward.jvp(values, moves)
        trace.active = False

    @property
    def shape(self) -> tuple[int, int]:
        return sum(x.size for x in self.values), sum(x.size for x in self.moving)

    def pattern(self) -> Matrix:
        sizes = [x.size for x in self.values]
        return sparsity_of(self.results, self.directions, sizes, self.moving)

    def compressed(self, colors: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """For each colour the sum of its columns."""
        refuse_untransposed(self.results)
        return _along(self.results, self.values, self.directions, colors)


def _along(
    linear: Sequence[Value | None],
    like: Sequence[Value],
    directions: Sequence[Value],
    colors: np.ndarray[Any, Any],
) -> np.ndarray[Any, Any]:
    """A linear program along one direction a colour: its elements are ones."""
    count = int(colors.max(initial=-1)) + 1
    places: dict[Value, tuple[Value, int]] = {}
    at = 0
    for x in directions:
        own = colors[at : at + x.size]
        seed = np.zeros((count, x.size), x.dtype.numpy)
        seed[own, np.arange(x.size)] = 1
        places[x] = (from_numpy(seed.reshape(count, *x.shape))._value, 0)
        at += x.size
    present = [y for y in linear if y is not None]
    found = iter(batch(present, places, count) if count else [])
    rows = []
    for y, t in zip(like, linear, strict=True):
        value, axis = (None, None) if t is None or not count else next(found)
        if value is None or axis is None:
            rows.append(np.zeros((count, y.size), y.dtype.numpy))
        else:
            rows.append(wrap(reshape(moveaxis(value, axis, 0), (count, y.size))))
    make_peers([x for x in rows if not isinstance(x, np.ndarray)])
    return np.concatenate([np.asarray(x) for x in rows], axis=1) if rows else np.zeros((count, 0))


def _jacobian(point: Point, linear: _Tangents, pattern: Matrix) -> Matrix:
    """By columns in forward mode, or by rows in reverse mode if those need fewer passes."""
    columns = colored_columns(pattern)
    count = int(columns.max(initial=-1)) + 1
    rows, places = rows_of(pattern), pattern.indices
    # A colouring of the rows needs as many colours as a column has entries, at least.
    if np.bincount(places, minlength=1).max(initial=0) < count:
        across = colored_columns(pattern.T.tocsr())
        if int(across.max(initial=-1)) + 1 < count:
            trace = Trace(point.title)
            seeds = [node.out for node in tangent_inputs(linear.values, trace)]
            pulled = reverse.vjp(linear.values, linear.moving)(seeds)
            trace.active = False
            found = _along(pulled, linear.moving, seeds, across)
            return _csr(pattern, found[across[rows], places])
    return _csr(pattern, linear.compressed(columns)[columns[places], rows])


def _hessian(linear: _Tangents, pattern: Matrix) -> Matrix:
    colors = star_colored(pattern)
    color, row = star_places(pattern, colors)
    return _csr(pattern, linear.compressed(colors)[color, row])


def _csr(pattern: Matrix, data: np.ndarray[Any, Any]) -> Matrix:
    from scipy import sparse

    parts = data, pattern.indices.copy(), pattern.indptr.copy()
    return sparse.csr_array(parts, shape=pattern.shape)


# ------------------------------------------------------------------------------------- patterns


def _pattern(linear: _Tangents, given: Any, symmetric: bool) -> Matrix:
    """The pattern to compute: found, or as the user knows it."""
    from scipy import sparse

    if given is True:
        found = linear.pattern()
        found.sort_indices()
        return _symmetric(found) if symmetric else found
    if sparse.issparse(given):
        found = sparse.csr_array(given)
        found = sparse.csr_array(
            (np.ones(found.nnz, bool), found.indices, found.indptr), shape=found.shape
        )
    elif isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype == bool:
        found = sparse.csr_array(given)
    else:
        shown = given.dtype if isinstance(given, np.ndarray) else type(given).__name__
        raise at_user_line(
            TypeError(
                f"{linear.title}: sparsity: expected True, a SciPy sparse matrix or a matrix of "
                f"bool, got {shown}"
            )
        )
    if found.shape != linear.shape:
        raise at_user_line(
            ShapeError(
                f"{linear.title}: sparsity: expected shape {list(linear.shape)} (elements of the "
                f"result, of the argument), got {list(found.shape)}"
            )
        )
    found.sum_duplicates()
    found.sort_indices()
    return _symmetric(found) if symmetric else found


def _symmetric(pattern: Matrix) -> Matrix:
    """With both places of each element, and the diagonal."""
    from scipy import sparse

    diagonal = sparse.eye_array(pattern.shape[0], dtype=bool, format="csr")
    found = (pattern + pattern.T.tocsr() + diagonal).tocsr()
    found.sort_indices()
    return found


def _check(title: str, given: Matrix, whole: Matrix) -> None:
    """Whether a derivative has no entry outside of the pattern it was given."""
    rows, columns = rows_of(whole), whole.indices
    n = whole.shape[1]
    inside = np.isin(
        rows.astype(np.int64) * n + columns, rows_of(given).astype(np.int64) * n + given.indices
    )
    wrong = np.flatnonzero(~inside & (whole.data != 0))
    if len(wrong):
        k = wrong[0]
        raise at_user_line(
            ValueError(
                f"{title}: sparsity: expected a pattern with every entry that is not zero, got one "
                f"without {len(wrong)} of them: first ({rows[k]}, {columns[k]}), which is "
                f"{whole.data[k]}; sparsity=True finds the pattern"
            )
        )
