"""Derivatives along directions: jvp, vjp, linearize, linear_transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autodiff import forward, reverse
from ..autodiff.custom import refuse_untransposed
from ..ir.errors import DTypeError
from ..ir.location import at_user_line
from ..ir.rewrite import substitute
from .array import wrap
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
from .realize import make_peers
from .signature import type_of
from .tracing import Trace, differentiating, placeholder, tracing
from .tree import paths, put_together, take_apart

__all__ = ["as_sequence", "jvp", "linear_transpose", "linearize", "vjp"]


def as_sequence(title: str, what: str, x: Any) -> tuple[Any, ...]:
    if not isinstance(x, tuple | list):
        raise at_user_line(
            TypeError(
                f"{title}: {what}: expected a tuple, one entry an argument, got "
                f"{type(x).__name__}; write ({what[:-1]},)"
            )
        )
    return tuple(x)


def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False) -> Any:
    """The value of a function and its derivative along a direction.

    Parameters
    ----------
    fun : callable
        Of pytrees of arrays, to a pytree of arrays.
    primals : tuple
        The arguments; floating or complex leaves.
    tangents : tuple
        The direction: like ``primals`` in structure, shapes and dtypes.
    has_aux : bool
        ``fun`` returns a pair; its second part is passed through as a third result.

    Returns
    -------
    value, tangent : pytrees
        ``tangent`` has the structure, shapes and dtypes of ``value``.

    Raises
    ------
    DTypeError, ShapeError, ValueError
        If a tangent does not fit its primal, or a primal is integer or bool.

    Notes
    -----
    Cost: at most a small multiple of the function's own, whatever the number of arguments.

    Examples
    --------
    >>> import tilegrad as tg
    >>> y, y_dot = tg.jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> float(y), float(y_dot)
    (9.0, 6.0)
    """
    title = f"jvp({name_of(fun)})"
    primals = as_sequence(title, "primals", primals)
    tangents = as_sequence(title, "tangents", tangents)
    inputs = marked_inputs(title, primals, argument_names(fun, len(primals)))
    if len(inputs.moving) != len(inputs.leaves):
        at = inputs.names[inputs.values.index(None)]
        raise at_user_line(
            DTypeError(
                f"{title}: expected floating or complex primals, got a bool at {at}; close over it"
            )
        )
    moving = inputs.moving
    directions = directions_like(
        title, "tangent", tangents, inputs.spec, [x.type for x in moving], inputs.names
    )
    with differentiating(moving):
        out = outputs(title, fun(*stand_ins(inputs)), has_aux)
    found = forward.jvp(out.values, dict(zip(moving, directions, strict=True)))
    refuse_untransposed(found)
    value = out.tree(out.values)
    tangent = out.tree([strong(t, x.type) for t, x in zip(found, out.values, strict=True)])
    join(value, tangent)
    return (value, tangent, out.aux) if has_aux else (value, tangent)


def linearize(fun: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of a function and its derivative at that point, as a linear function.

    Returns
    -------
    value : pytree
    push : callable
        ``push(*tangents) -> tangent of the value``; the function itself does not run again.
    """
    title = f"linearize({name_of(fun)})"
    inputs = marked_inputs(title, primals, argument_names(fun, len(primals)))
    moving = inputs.moving
    with differentiating(moving):
        out = outputs(title, fun(*stand_ins(inputs)), False)
    nodes, tangents = reverse.linearize(out.values, moving)
    types = [x.type for x in out.values]
    results = [strong(t, x) for t, x in zip(tangents, types, strict=True)]

    def push(*directions: Any) -> Any:
        given = directions_like(
            title, "tangent", directions, inputs.spec, [x.type for x in moving], inputs.names
        )
        refuse_untransposed(results)
        replaced = substitute(results, dict(zip([n.out for n in nodes], given, strict=True)))
        return out.tree(replaced)

    return out.tree(out.values), push


# --------------------------------------------------------------------------- reverse mode


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of a function and its pullback: cotangents of the value to those of the arguments.

    Parameters
    ----------
    fun : callable
    primals : pytrees of arrays
    has_aux : bool
        ``fun`` returns a pair; its second part is passed through as a third result.

    Returns
    -------
    value : pytree
    pullback : callable
        ``pullback(cotangent) -> tuple``, one entry an argument, like the arguments; None for bool
        and integer leaves. It may be called again and again; the function does not run again.

    Notes
    -----
    Complex values are paired by ``Re(sum(cotangent * tangent))``, without conjugation: the pullback
    of ``z -> a * z`` is ``c -> a * c``. (:func:`grad` conjugates, so that descent descends.)

    Examples
    --------
    >>> import tilegrad as tg
    >>> y, pullback = tg.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> [float(c) for c in pullback(1.0)]
    [4.0, 3.0]
    """
    title = f"vjp({name_of(fun)})"
    inputs = marked_inputs(title, primals, argument_names(fun, len(primals)), allow_int=True)
    moving = inputs.moving
    with differentiating(moving):
        out = outputs(title, fun(*stand_ins(inputs)), has_aux)
    pull = reverse.vjp(out.values, moving)
    types = [x.type for x in out.values]

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        given = directions_like(title, "cotangent", cotangent, out.spec, types, out.names)
        found = pull([c if c.dtype.is_inexact else None for c in given])
        results = [wrap(strong(c, x.type)) for c, x in zip(found, moving, strict=True)]
        make_peers(results)
        return inputs.tree(results)  # type: ignore[no-any-return]

    value = out.tree(out.values)
    return (value, pullback, out.aux) if has_aux else (value, pullback)


def linear_transpose(fun: Callable[..., Any], *types: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear function.

    Parameters
    ----------
    fun : callable
        Linear in all its arguments together.
    types : pytrees of arrays or of types
        Only shapes and dtypes matter: ``tg.ShapeDtype(shape, dtype)``.

    Returns
    -------
    callable
        ``transpose(cotangent) -> tuple``, one entry an argument.

    Raises
    ------
    UnsupportedError
        When the transpose is called, if the function is not linear; it names the operation.
    """
    title = f"linear_transpose({name_of(fun)})"
    leaves: list[Any] = []
    spec = take_apart(tuple(types), leaves)
    names = argument_names(fun, len(types))
    where = [p for n, child in zip(names, spec[2], strict=True) for p in paths(child, n)]
    trace = Trace(title)
    with tracing(trace):
        inputs = [placeholder(type_of(x, n), n, trace) for x, n in zip(leaves, where, strict=True)]
        result = fun(*put_together(spec, iter([wrap(x) for x in inputs])))
        out = outputs(title, result, False)
    pull = reverse.linear_transpose(out.values, inputs)

    def transpose(cotangent: Any) -> tuple[Any, ...]:
        given = directions_like(
            title, "cotangent", cotangent, out.spec, [x.type for x in out.values], out.names
        )
        found = [strong(c, x.type) for c, x in zip(pull(given), inputs, strict=True)]
        return put_together(spec, iter([wrap(x) for x in found]))  # type: ignore[no-any-return]

    return transpose
