"""Gradients of functions with one scalar result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from ..autodiff import reverse
from ..ir.errors import DTypeError, ShapeError
from ..ir.graph import Value
from ..ir.location import at_user_line
from ..ir.ops.complexes import conj
from ..ir.ops.fill import filled
from ..ir.ops.selection import stop_gradient as stop_gradient_value
from .array import lift, wrap
from .marking import (
    Inputs,
    Outputs,
    argument_names,
    marked_inputs,
    name_of,
    outputs,
    stand_ins,
    strong,
)
from .realize import make_peers
from .tracing import differentiating
from .tree import map as map_tree
from .tree import show

__all__ = [
    *("Point", "grad", "require_floating", "require_real", "run_at_point", "scalar_result"),
    *("stop_gradient", "value_and_grad"),
]


@dataclass(slots=True)
class Point:
    """A function run on marked arguments: what every derivative starts from."""

    title: str
    inputs: Inputs
    out: Outputs
    one: bool

    def mirrored(self, results: Sequence[Any]) -> Any:
        """Results in the shape of the argument, or of the tuple of arguments."""
        tree = self.inputs.tree(results)
        return tree[0] if self.one else tree


def run_at_point(
    transform: str,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool = False,
) -> Point:
    """Run ``fun`` with the arguments ``argnums`` marked."""
    title = f"{transform}({name_of(fun)})"
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    places = []
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise at_user_line(
                ValueError(
                    f"{title}: argnums: expected positions among {len(args)} positional arguments, "
                    f"got {number}; arguments given by keyword are not differentiated"
                )
            )
        places.append(number % len(args))
    if len(set(places)) != len(places):
        raise at_user_line(
            ValueError(f"{title}: argnums: expected each argument once, got {argnums}")
        )
    names = argument_names(fun, len(args))
    inputs = marked_inputs(
        title,
        [args[i] for i in places],
        [names[i] for i in places],
        holomorphic=holomorphic,
        allow_int=allow_int,
    )
    arguments = list(args)
    with differentiating(inputs.moving):
        for i, x in zip(places, stand_ins(inputs), strict=True):
            arguments[i] = x
        out = outputs(title, fun(*arguments, **kwargs), has_aux)
    return Point(title, inputs, out, isinstance(argnums, int))


def scalar_result(point: Point, holomorphic: bool) -> Value:
    """The one result of a function to take the gradient of."""
    title, out = point.title, point.out
    if out.spec is not None:
        raise at_user_line(
            TypeError(
                f"{title}: expected the function to return one scalar, got {show(out.spec)}; "
                f"has_aux=True if what follows the first item is auxiliary"
            )
        )
    value = out.values[0]
    if value.shape:
        raise at_user_line(
            ShapeError(
                f"{title}: expected the function to return a scalar, got {value.type}; reduce it "
                f"with tg.sum or tg.mean, or use tg.jacobian"
            )
        )
    if holomorphic and not value.dtype.is_complex:
        raise at_user_line(
            DTypeError(f"{title}: holomorphic=True: expected a complex result, got {value.type}")
        )
    if not holomorphic and value.dtype.is_complex:
        raise at_user_line(
            DTypeError(
                f"{title}: expected a real result, got {value.type}; take its real part or "
                f"absolute value, or pass holomorphic=True for the complex derivative"
            )
        )
    require_floating(title, value, out.names[0])
    return value


def require_floating(title: str, value: Value, name: str) -> None:
    """Refuse a result that has no derivative."""
    if not value.dtype.is_inexact:
        raise at_user_line(
            DTypeError(
                f"{title}: expected floating results, got {name}: {value.type}, which has no "
                f"derivative; convert with astype('float64')"
            )
        )


def require_real(point: Point) -> None:
    """Refuse complex arguments and results, and results that have no derivative."""
    inputs = [
        (x, name)
        for x, name in zip(point.inputs.values, point.inputs.names, strict=True)
        if x is not None
    ]
    for x, name in [*inputs, *zip(point.out.values, point.out.names, strict=True)]:
        if x.dtype.is_complex:
            raise at_user_line(
                DTypeError(
                    f"{point.title}: expected real arguments and results, got {name}: {x.type}; "
                    f"split into real and imaginary parts"
                )
            )
        require_floating(point.title, x, name)


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that returns the value of ``fun`` and its gradient; see :func:`grad`.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> (value, gradient)``, or ``((value, aux), gradient)``.
    """

    @wraps(fun)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        point = run_at_point("grad", fun, args, kwargs, argnums, has_aux, holomorphic, allow_int)
        value = scalar_result(point, holomorphic)
        moving = point.inputs.moving
        seed = filled((), 1, value.dtype)
        found = reverse.vjp([value], moving)([seed])
        values = [strong(c, x.type) for c, x in zip(found, moving, strict=True)]
        gradients = [wrap(x if holomorphic else conj(x)) for x in values]
        result = wrap(value)
        make_peers([result, *gradients])
        first = (result, point.out.aux) if has_aux else result
        return first, point.mirrored(gradients)

    return value_and_gradient


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The gradient of a function with one scalar result.

    Parameters
    ----------
    fun : callable
        Of pytrees of arrays, to a floating array of shape ().
    argnums : int or sequence of int
        Positional arguments to differentiate by.
    has_aux : bool
        ``fun`` returns ``(scalar, aux)``; then so does the gradient: ``(gradient, aux)``.
    holomorphic : bool
        The complex derivative of a holomorphic function, of complex arguments and result.
    allow_int : bool
        Integer arguments get the gradient None instead of an error.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> gradient``: like the argument in structure, shapes and dtypes; a
        tuple if ``argnums`` is one. Arguments that do not matter have gradient zero. Python
        numbers give float64 arrays; bool leaves of a container give None.

    Raises
    ------
    ShapeError, DTypeError
        When called: for a result that is no floating scalar, an integer or bool argument.

    Notes
    -----
    For a real function of complex arguments the gradient is ``dL/da + i dL/db`` with ``z = a + ib``
    (PyTorch's convention): ``z - lr * gradient`` descends. At ties and kinks: the table of
    conventions. Cost: a small multiple of the function's own.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.grad(lambda p: p["a"] * p["b"])({"a": 2.0, "b": tg.asarray(5.0)})
    {'a': Array(5., dtype=float64), 'b': Array(2., dtype=float64)}
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic=holomorphic, allow_int=allow_int)

    @wraps(fun)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, result = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return gradient


def stop_gradient(tree: Any) -> Any:
    """The same values with derivative zero, for each array of a tree.

    Examples
    --------
    >>> import tilegrad as tg
    >>> float(tg.grad(lambda x: x * tg.stop_gradient(x))(3.0))
    3.0
    """
    return map_tree(lambda x: wrap(stop_gradient_value(lift(x))), tree)
