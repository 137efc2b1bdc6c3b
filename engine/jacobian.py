"""Whole Jacobians: one direction a batch element, all in one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ..autodiff import forward, reverse
from ..autodiff.batching import batch
from ..autodiff.custom import refuse_untransposed
from ..ir.errors import DTypeError
from ..ir.functions.creation import eye
from ..ir.graph import Value
from ..ir.location import at_user_line
from ..ir.ops.arithmetic import mul
from ..ir.ops.complexes import complex_, conj
from ..ir.ops.fill import filled
from ..ir.ops.operands import convert
from ..ir.ops.shape import moveaxis, reshape
from ..ir.types import TensorType
from .array import wrap
from .directional import jvp
from .gradient import Point, grad, require_floating, run_at_point
from .marking import strong, tangent_inputs
from .sparse_jacobian import sparse_hessian, sparse_jacobian
from .tracing import Trace
from .tree import put_together

__all__ = ["hessian", "hvp", "jacfwd", "jacobian", "jacrev"]


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by forward mode: one pass for each element of the arguments, batched.

    Parameters, result and conventions as in :func:`jacobian`.
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, lambda point: True)


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """The Jacobian by reverse mode: one pass for each element of the results, batched.

    Parameters, result and conventions as in :func:`jacobian`.
    """
    return _jacobian(fun, argnums, has_aux, holomorphic, lambda point: False)


def jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    sparsity: Any = None,
    check: bool = False,
) -> Callable[..., Any]:
    """The Jacobian: reverse mode if there are fewer results than arguments, else forward mode.

    Parameters
    ----------
    fun : callable
        Of pytrees of arrays, to a pytree of arrays.
    argnums : int or sequence of int
        Positional arguments to differentiate by.
    has_aux : bool
        ``fun`` returns ``(result, aux)``; then so does the Jacobian.
    holomorphic : bool
        For complex arguments: the complex derivative.
    sparsity : True, scipy.sparse matrix or 2-d array of bool, optional
        Compute a sparse Jacobian: by the pattern that is found (True), or by a given one.
    check : bool
        With a given pattern: compute by the one that is found too, and raise if an entry outside of
        the given one is not zero.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> tree``: for each array of the result, in its structure, for each
        array of the argument, in its structure, an array of shape ``result.shape +
        argument.shape``. With ``sparsity`` a ``scipy.sparse.csr_array``: a row for each element of
        the result, a column for each of the argument, arrays of a tree one after the other. Its
        structure is the pattern; entries that happen to be zero stay.

    Raises
    ------
    ValueError
        When called with ``check``: the pattern is too narrow.
    TracerError
        When called under ``jit`` or ``vmap`` with ``sparsity``: a SciPy matrix has values.

    Notes
    -----
    ``n`` arguments and ``m`` results cost ``min(n, m)`` passes. With ``sparsity`` columns that have
    no row in common share a pass (or rows, if that takes fewer): as many passes as a greedy
    colouring has colours (Curtis, Powell and Reid 1974), the width of the band for banded matrices.
    The pattern is found by following sets of arguments through the derivative, takes a few
    milliseconds for ten thousand elements, and holds at every point: it may be given for the next
    call. Complex results of real arguments have complex derivatives; a real result ``u`` of a
    complex argument ``a + ib`` has ``du/da + i du/db``, as in :func:`~tilegrad.grad`. Both may take
    twice the passes.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.jacobian(lambda x: x * x)(tg.asarray([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float64)
    >>> tg.jacobian(lambda x: x * x, sparsity=True)(tg.asarray([1.0, 2.0])).toarray()
    array([[2., 0.],
           [0., 4.]])
    """
    if sparsity is not None and sparsity is not False:
        _refuse_holomorphic("jacobian", holomorphic)
        return wraps(fun)(sparse_jacobian(fun, argnums, has_aux, sparsity, check))
    return _jacobian(
        fun,
        argnums,
        has_aux,
        holomorphic,
        lambda p: sum(x.size for x in p.out.values) >= sum(x.size for x in p.inputs.moving),
    )


def _refuse_holomorphic(title: str, holomorphic: bool) -> None:
    if holomorphic:
        raise at_user_line(
            ValueError(f"{title}: sparsity: expected real functions, got holomorphic=True")
        )


def _jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    goes_forward: Callable[[Point], bool],
) -> Callable[..., Any]:
    @wraps(fun)
    def whole(*args: Any, **kwargs: Any) -> Any:
        point = run_at_point("jacobian", fun, args, kwargs, argnums, has_aux, holomorphic)
        _check(point, holomorphic)
        blocks = _forward_blocks if goes_forward(point) else _reverse_blocks
        rows = [point.mirrored([wrap(x) for x in row]) for row in blocks(point, holomorphic)]
        result = put_together(point.out.spec, iter(rows))
        return (result, point.out.aux) if has_aux else result

    return whole


def _check(point: Point, holomorphic: bool) -> None:
    if holomorphic:
        return
    for x, name in zip(point.out.values, point.out.names, strict=True):
        if x.dtype.is_complex and any(y.dtype.is_complex for y in point.inputs.moving):
            raise at_user_line(
                DTypeError(
                    f"{point.title}: complex arguments: expected real results, got {name}: "
                    f"{x.type}; pass holomorphic=True, or split into real and imaginary parts"
                )
            )
        require_floating(point.title, x, name)


def _forward_blocks(point: Point, holomorphic: bool) -> list[list[Value]]:
    """For each result, for each argument, the block of shape result + argument."""
    outputs, moving = point.out.values, point.inputs.moving
    trace = Trace(point.title)
    columns = []
    for x, node in zip(moving, tangent_inputs(moving, trace), strict=True):
        tangents = forward.jvp(outputs, {x: node.out})
        refuse_untransposed(tangents)
        column = _batched(tangents, outputs, node.out, x, last=True)
        if x.dtype.is_complex and not holomorphic:  # real results: du/da + i du/db
            along = _batched(tangents, outputs, node.out, x, last=True, turn=1j)
            column = [complex_(du_da, du_db) for du_da, du_db in zip(column, along, strict=True)]
        columns.append(column)
    trace.active = False
    return [list(row) for row in zip(*columns, strict=True)] or [[] for _ in outputs]


def _reverse_blocks(point: Point, holomorphic: bool) -> list[list[Value]]:
    outputs, moving = point.out.values, point.inputs.moving
    pull = reverse.vjp(outputs, moving)
    trace = Trace(point.title)
    rows = []
    for i, (y, node) in enumerate(zip(outputs, tangent_inputs(outputs, trace), strict=True)):
        cotangents = pull([node.out if i == j else None for j in range(len(outputs))])
        row = _batched(cotangents, moving, node.out, y, last=False)
        if holomorphic or not y.dtype.is_complex:
            row = [x if holomorphic else conj(x) for x in row]
        else:  # u + iv of real arguments: Re(c * (du + i dv)) is du for c = 1 and dv for c = -i
            other = _batched(cotangents, moving, node.out, y, last=False, turn=-1j)
            row = [complex_(du, dv) for du, dv in zip(row, other, strict=True)]
        rows.append(row)
    trace.active = False
    return rows


def _batched(
    linear: Sequence[Value | None],
    like: Sequence[Value],
    direction: Value,
    of: Value,
    *,
    last: bool,
    turn: complex = 1.0,
) -> list[Value]:
    """Linear functions of ``direction`` along all unit directions of ``of``, times ``turn``.

    ``last`` tells whether the axes of ``of`` follow those of the result or precede them.
    """
    places = [i for i, x in enumerate(linear) if x is not None]
    values = [x for x in linear if x is not None]
    # Along a new first axis. (The one direction of a scalar is a number, which folds.)
    square = filled((1, 1), 1, of.dtype) if of.size == 1 else eye(of.size, dtype=of.dtype)
    basis = reshape(square, (of.size, *of.shape))
    units = (direction,)
    if turn != 1.0:
        basis, units = convert(mul(basis, turn), of.dtype), ()
    mapped = {direction: (basis, 0)}
    found = dict(zip(places, batch(values, mapped, of.size, units), strict=True))
    result = []
    for i, x in enumerate(like):
        shape = (*x.shape, *of.shape) if last else (*of.shape, *x.shape)
        value, axis = found.get(i, (None, None))
        if value is None or axis is None:  # no dependence
            result.append(strong(None, TensorType(shape, x.dtype)))
        else:
            moved = moveaxis(value, axis, value.ndim - 1 if last else 0)
            result.append(strong(reshape(moved, shape), TensorType(shape, x.dtype)))
    return result


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    sparsity: Any = None,
    check: bool = False,
) -> Callable[..., Any]:
    """The matrix of second derivatives: forward mode over reverse mode.

    Parameters as in :func:`jacobian`; for a scalar function of an array of shape ``s`` the result
    has shape ``s + s``. With ``sparsity`` it is a ``scipy.sparse.csr_array``, symmetric, with its
    diagonal; as many passes as a star colouring of the pattern has colours: three for a tridiagonal
    Hessian, two for an arrow (Gebremedhin et al. 2007).

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.hessian(lambda x: x[0] * x[0] * x[1])(tg.asarray([1.0, 2.0]))
    Array([[4., 2.],
           [2., 0.]], dtype=float64)
    """
    if sparsity is not None and sparsity is not False:
        _refuse_holomorphic("hessian", holomorphic)
        return wraps(fun)(sparse_hessian(fun, argnums, has_aux, sparsity, check))
    inner = jacrev(fun, argnums, has_aux, holomorphic=holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic=holomorphic)


def hvp(fun: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """The Hessian times a vector, without the Hessian: the derivative of the gradient.

    Parameters
    ----------
    fun : callable
        With one scalar result.
    primals, tangents : tuple
        Arguments, and the vector in their structure.

    Returns
    -------
    pytree
        Like ``primals[0]`` if there is one argument, else a tuple like ``primals``.
    """
    count = len(primals) if isinstance(primals, tuple | list) else 1
    gradient = grad(fun, 0 if count == 1 else tuple(range(count)))
    return jvp(gradient, primals, tangents)[1]
