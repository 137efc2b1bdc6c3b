"""Putting results into their containers: the fast way of a program that runs many times.

:func:`builder` writes the structure as one Python expression and compiles it. For
``{"b": *, "a": [*, *]}``, whose leaves are listed by sorted key, that is
``lambda x: {k0: x[2], k1: [x[0], x[1]]}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from .containers import kind_of
from .tree import put_together, sorted_keys

__all__ = ["builder"]

# Parentheses nested deeper than this are too much for Python's parser.
_DEEPEST = 40


def builder(spec: Any) -> Callable[[Sequence[Any]], Any]:
    """A function from the leaves of a structure (:mod:`.tree`) to the tree."""
    names: dict[str, Any] = {}
    try:
        body = _expression(spec, count(), names, 0)
    except _TooDeepError:
        return lambda leaves: put_together(spec, iter(leaves))
    built: Callable[[Sequence[Any]], Any] = eval(f"lambda x: {body}", names)
    return built


class _TooDeepError(Exception):
    """The parser would refuse."""


def _expression(spec: Any, places: Iterator[int], names: dict[str, Any], depth: int) -> str:
    if spec is None:
        return f"x[{next(places)}]"
    if depth > _DEEPEST:
        raise _TooDeepError
    cls, aux, children = spec
    parts = [_expression(child, places, names, depth + 1) for child in children]
    if cls is tuple:
        return "(" + "".join([part + "," for part in parts]) + ")"
    if cls is list:
        return "[" + ",".join(parts) + "]"
    if cls is type(None):
        return "None"
    if cls is dict:
        by_key = dict(zip(sorted_keys(aux), parts, strict=True))
        items = [f"{_named(key, names)}: {by_key[key]}" for key in aux]
        return "{" + ",".join(items) + "}"
    kind = kind_of(cls)
    assert kind is not None  # it was taken apart
    unflatten, data = _named(kind.unflatten, names), _named(aux.value, names)
    return f"{unflatten}({data}, [{','.join(parts)}])"


def _named(thing: Any, names: dict[str, Any]) -> str:
    """A name for something that the expression mentions."""
    name = f"k{len(names)}"
    names[name] = thing
    return name
