"""Taylor mode for users: ``jet`` and ``laplacian``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from math import factorial
from typing import Any

from ..autodiff import jet as taylor
from ..autodiff.custom import refuse_untransposed
from ..autodiff.jet_laplacian import laplacian as laplacian_of
from ..ir.errors import DTypeError
from ..ir.graph import Value
from ..ir.location import at_user_line
from ..ir.ops.operands import convert
from .array import wrap
from .directional import as_sequence
from .gradient import require_real, run_at_point
from .marking import (
    argument_names,
    directions_like,
    join,
    marked_inputs,
    name_of,
    outputs,
    stand_ins,
    strong,
)
from .tracing import differentiating
from .tree import put_together

__all__ = ["jet", "laplacian"]


def jet(
    fun: Callable[..., Any], primals: Any, series: Any, factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """Derivatives of a function along a curve, all orders in one sweep (Taylor mode).

    Parameters
    ----------
    fun : callable
        Of pytrees of arrays, to a pytree of arrays.
    primals : tuple
        The arguments ``x(0)``; floating or complex leaves.
    series : tuple
        For each argument the sequence of the derivatives ``x'(0), x''(0), ...`` of its curve, each
        like the argument; as many for every argument.
    factorial_scaled : bool
        False: Taylor coefficients ``x''(0) / 2``, ``x'''(0) / 6``, ... come in and go out.

    Returns
    -------
    value : pytree
        ``fun(*primals)``.
    series : pytree
        In the structure of the value, with a list in place of each array: the derivatives of
        ``fun(x(t))`` at 0 of order 1 to that of the series given.

    Raises
    ------
    ValueError
        If the arguments' series differ in length.
    ShapeError, DTypeError
        If a term does not fit its argument, or an argument is integer or bool.

    Notes
    -----
    Names and meaning are those of ``jax.experimental.jet``. Order ``K`` costs a linear operation
    ``K`` times its own, a product ``K**2 / 2``, other functions between ``K**2`` and ``K**3``;
    nested ``jvp`` costs ``2**K``. Every operation that has a ``jvp`` rule takes part, loops and
    branches and functions with rules of the user's too. Conventions at kinks and poles are those of
    ``jvp``. Source: Griewank and Walther, Evaluating Derivatives (2008), chapter 13.

    Examples
    --------
    >>> import tilegrad as tg
    >>> y, (first, second, third) = tg.jet(tg.exp, (0.0,), ([2.0, 0.0, 0.0],))
    >>> float(y), float(first), float(second), float(third)
    (1.0, 2.0, 4.0, 8.0)
    """
    title = f"jet({name_of(fun)})"
    primals = as_sequence(title, "primals", primals)
    given = [
        _terms(f"{title}: the series of argument {i}", terms)
        for i, terms in enumerate(as_sequence(title, "series", series))
    ]
    order = _order(title, len(primals), given)
    inputs = marked_inputs(title, primals, argument_names(fun, len(primals)))
    if len(inputs.moving) != len(inputs.leaves):
        at = inputs.names[inputs.values.index(None)]
        raise at_user_line(
            DTypeError(
                f"{title}: expected floating or complex primals, got a bool at {at}; close over it"
            )
        )
    moving = inputs.moving
    types = [x.type for x in moving]
    rows = []
    for k in range(order):
        what = f"term {k + 1}"
        terms = tuple([many[k] for many in given])
        row = directions_like(title, what, terms, inputs.spec, types, inputs.names)
        rows.append(row if factorial_scaled else [_scaled(x, factorial(k + 1)) for x in row])
    with differentiating(moving):
        out = outputs(title, fun(*stand_ins(inputs)), False)
    curves = {x: [row[i] for row in rows] for i, x in enumerate(moving)}
    found = taylor.jet(out.values, curves, order)
    refuse_untransposed([x for terms in found for x in terms])
    results = []
    for y, terms in zip(out.values, found, strict=True):
        values = [strong(x, y.type) for x in terms]
        if not factorial_scaled:
            values = [_scaled(x, 1 / factorial(k)) for k, x in enumerate(values, 1)]
        results.append([wrap(x) for x in values])
    value = out.tree(out.values)
    derivatives = put_together(out.spec, iter(results))
    join(value, derivatives)
    return value, derivatives


def _terms(what: str, terms: Any) -> list[Any]:
    """The terms of one argument, from a sequence or from an array along its first axis."""
    try:
        return list(terms)
    except TypeError:
        raise at_user_line(
            TypeError(f"{what}: expected a sequence of terms, got {type(terms).__name__}")
        ) from None


def _scaled(x: Value, by: float) -> Value:
    return convert(x * by, x.dtype)


def _order(title: str, arguments: int, series: Sequence[Sequence[Any]]) -> int:
    if len(series) != arguments:
        raise at_user_line(
            ValueError(
                f"{title}: series: expected one sequence of terms an argument, got {len(series)} "
                f"for {arguments} arguments"
            )
        )
    lengths = {len(terms) for terms in series}
    if len(lengths) > 1:
        raise at_user_line(
            ValueError(
                f"{title}: series: expected as many terms for each argument, got "
                f"{[len(terms) for terms in series]}; fill up with zeros"
            )
        )
    return lengths.pop() if lengths else 0


def laplacian(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The Laplacian: the sum of all second derivatives by one element, without the Hessian.

    Parameters
    ----------
    fun : callable
        Of pytrees of real arrays, to a pytree of real arrays.
    argnums : int or sequence of int
        The positional arguments whose elements are summed over.
    has_aux : bool
        ``fun`` returns ``(result, aux)``; then so does the Laplacian.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> tree`` like the result: for each of its elements the trace of the
        Hessian.

    Raises
    ------
    DTypeError
        When called: for complex, integer or bool arguments or results.

    Notes
    -----
    The forward Laplacian (Li et al., A computational framework for neural network-based variational
    Monte Carlo with forward Laplacian, 2023, arXiv:2307.08214): value, the ``n`` first derivatives
    and one Laplacian go through the function together, ``L(f(x)) = f'(x) L(x) + sum_i f''(x)[x_i,
    x_i]``. ``n`` elements cost about ``n + 2`` times the function where its linear operations
    dominate; the Hessian by :func:`hessian` costs about twice as much.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.laplacian(lambda x: tg.sum(x**3))(tg.asarray([1.0, 2.0]))
    Array(18., dtype=float64)
    """

    @wraps(fun)
    def traced(*args: Any, **kwargs: Any) -> Any:
        point = run_at_point("laplacian", fun, args, kwargs, argnums, has_aux, False)
        moving = point.inputs.moving
        require_real(point)
        found = laplacian_of(point.out.values, moving)
        refuse_untransposed(found)
        values = [strong(x, y.type) for x, y in zip(found, point.out.values, strict=True)]
        result = point.out.tree(values)
        join(result)
        return (result, point.out.aux) if has_aux else result

    return traced
