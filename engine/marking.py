"""Marking: the arguments a function is differentiated by, and what it returns.

Each floating or complex leaf gets a fresh ``alias`` node; the function runs on the marked arrays;
:mod:`tilegrad.autodiff` rewrites the web between marks and results. Outside ``jit`` and ``vmap``
the marked arrays keep their values, so Python ``if`` and ``while`` on them work. What the function
captures is a constant to it, and to an enclosing transform whatever it is there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.errors import DTypeError, ShapeError
from ..ir.graph import Node, Value
from ..ir.location import at_user_line
from ..ir.ops.fill import zeros_of
from ..ir.ops.leaves import alias, constant
from ..ir.ops.operands import convert
from ..ir.types import TensorType
from .array import wrap
from .realize import make_peers
from .signature import lift_leaf, type_of
from .traced import output_value
from .tracing import Trace, placeholder
from .tree import match, paths, put_together, take_apart

__all__ = [
    "Inputs",
    "Outputs",
    "argument_names",
    "directions_like",
    "join",
    "marked_inputs",
    "name_of",
    "outputs",
    "stand_ins",
    "strong",
    "tangent_inputs",
]


def name_of(fun: Callable[..., Any]) -> str:
    """What to call a function in messages."""
    return getattr(fun, "__name__", type(fun).__name__)


def argument_names(fun: Callable[..., Any], count: int) -> list[str]:
    """Names of the first positional parameters, for messages."""
    try:
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = inspect.signature(fun).parameters.values()
        names = [p.name for p in parameters if p.kind in kinds]
    except (TypeError, ValueError):
        names = []
    return [names[i] if i < len(names) else f"args[{i}]" for i in range(count)]


# ----------------------------------------------------------------------------- marking


@dataclass(slots=True)
class Inputs:
    """The leaves of some arguments, and which of them are differentiated by.

    Attributes
    ----------
    spec : structure of the tuple of arguments
    leaves : list
        As given.
    names : list of str
        The way to each leaf.
    values : list of Value or None
        What is marked; None for integers and bools, which have no derivative.
    """

    spec: Any
    leaves: list[Any]
    names: list[str]
    values: list[Value | None]

    @property
    def moving(self) -> list[Value]:
        return [x for x in self.values if x is not None]

    def tree(self, results: Sequence[Any]) -> Any:
        """A tuple like the arguments, of one result a moving leaf and None for the others."""
        rest = iter(results)
        return put_together(
            self.spec, iter([None if x is None else next(rest) for x in self.values])
        )


def marked_inputs(
    title: str,
    arguments: Sequence[Any],
    names: Sequence[str],
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Inputs:
    """Mark the floating and complex leaves of ``arguments``."""
    leaves: list[Any] = []
    spec = take_apart(tuple(arguments), leaves)
    where = [p for n, child in zip(names, spec[2], strict=True) for p in paths(child, n)]
    alone = {n for n, child in zip(names, spec[2], strict=True) if child is None}
    values = [
        _marked(title, x, name, name in alone, allow_int)
        for x, name in zip(leaves, where, strict=True)
    ]
    if holomorphic:
        for x, name in zip(values, where, strict=True):
            if x is not None and not x.dtype.is_complex:
                raise at_user_line(
                    DTypeError(
                        f"{title}: holomorphic=True: expected complex arguments, got {name}: "
                        f"{x.type}; convert with astype"
                    )
                )
    return Inputs(spec, leaves, where, values)


def _marked(title: str, x: Any, name: str, alone: bool, allow_int: bool) -> Value | None:
    kind = type(x)
    if kind is int:  # a Python number is a float that happens to be whole
        return alias(constant(float(x)))
    t = type_of(x, name)
    if t.dtype.is_inexact:
        return alias(lift_leaf(x))
    if allow_int or (t.dtype.is_bool and not alone):
        return None
    raise at_user_line(
        DTypeError(
            f"{title}: expected a floating or complex argument to differentiate by, got {name}: "
            f"{t}; convert it with astype('float64'), or pass it as another argument"
        )
    )


def stand_ins(inputs: Inputs) -> Any:
    """The arguments with marked arrays in place of the leaves that move."""
    return put_together(
        inputs.spec,
        iter(
            [x if v is None else wrap(v) for x, v in zip(inputs.leaves, inputs.values, strict=True)]
        ),
    )


@dataclass(slots=True)
class Outputs:
    """What a differentiated function returned."""

    spec: Any
    names: list[str]
    values: list[Value]
    aux: Any = None

    def tree(self, results: Sequence[Value]) -> Any:
        return put_together(self.spec, iter([wrap(x) for x in results]))


def checked_pair(title: str, result: Any, pair: str, who: str = "the function") -> tuple[Any, Any]:
    """What a function of the user's returned, which has to be a ``pair``."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise at_user_line(
            TypeError(
                f"{title}: expected {who} to return a pair {pair}, got {type(result).__name__}"
            )
        )
    return result


def outputs(title: str, result: Any, has_aux: bool) -> Outputs:
    aux = None
    if has_aux:
        result, aux = checked_pair(f"{title}: has_aux=True", result, "(result, aux)")
    leaves: list[Any] = []
    spec = take_apart(result, leaves)
    names = paths(spec, "the result")
    values = [output_value(x, f"{title}: {n}") for x, n in zip(leaves, names, strict=True)]
    return Outputs(spec, names, values, aux)


def strong(x: Value | None, type: TensorType) -> Value:
    """A derivative of the given type: zeros where there is none, never weak."""
    if x is None:
        return zeros_of(TensorType(type.shape, type.dtype))
    return convert(x, type.dtype)


def directions_like(
    title: str, what: str, given: Any, spec: Any, types: Sequence[TensorType], names: Sequence[str]
) -> list[Value]:
    """Tangents or cotangents from a tree like ``spec``, checked leaf by leaf."""
    leaves = match(given, spec, f"{title}: {what}s")
    result = []
    for x, t, name in zip(leaves, types, names, strict=True):
        found = type_of(x, f"{what} of {name}")
        value = lift_leaf(x)
        if found.shape != t.shape:
            raise at_user_line(
                ShapeError(f"{title}: {what} of {name}: expected the shape of {t}, got {found}")
            )
        python = isinstance(x, bool | int | float | complex) and not isinstance(x, np.generic)
        if found.dtype is not t.dtype and not (python or found.weak):
            raise at_user_line(
                DTypeError(
                    f"{title}: {what} of {name}: expected the dtype of {t}, got {found}; convert "
                    f"with astype"
                )
            )
        result.append(convert(value, t.dtype))
    return result


def join(*trees: Any) -> None:
    """Arrays of one call are computed together."""
    leaves: list[Any] = []
    take_apart(trees, leaves)
    make_peers(leaves)


def tangent_inputs(values: Sequence[Value], trace: Trace) -> list[Node]:
    """A fresh placeholder for a tangent or cotangent of each value."""
    return [
        placeholder(TensorType(x.shape, x.dtype), f"direction {i}", trace).node
        for i, x in enumerate(values)
    ]
