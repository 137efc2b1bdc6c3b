"""Basic indexing by recipe: what ``x[1:3, 0]`` builds is found once for each type and key.

Integers, slices, ``...`` and ``None`` decide the nodes of an index expression by themselves. The
builder is asked the first time; afterwards its nodes are made again on other arrays of the type.
"""

from __future__ import annotations

from typing import Any

from ..ir.functions.indexing import index
from ..ir.graph import Node, Op, Params, Value
from ..ir.location import user_place
from ..ir.ops.leaves import input_node
from ..ir.types import TensorType

__all__ = ["read"]

Recipe = tuple[tuple[Op, Params, tuple[TensorType, ...]], ...]

_RECIPES: dict[tuple[TensorType, Any], Recipe] = {}
_MOST = 4096


def read(x: Value, key: Any) -> Value:
    """``x[key]``; raises ``IndexError`` at the user's line."""
    plain = _hashable(key)
    if plain is None:
        return index(x, key)
    type = x.node.types[x.index]
    recipe = _RECIPES.get((type, plain))
    if recipe is None:
        found = _recipe(type, key)
        if found is None:
            return index(x, key)
        if len(_RECIPES) >= _MOST:
            _RECIPES.clear()
        recipe = _RECIPES[type, plain] = found
    place = user_place()
    for op, params, types in recipe:
        x = Value(Node(op, (x,), params, types, place), 0)
    return x


def _hashable(key: Any) -> Any:
    """A hashable spelling of a basic key; None for any other."""
    kind = type(key)
    if kind is int:
        return key
    if kind is slice:
        parts = (key.start, key.stop, key.step)
        for part in parts:
            if part is not None and type(part) is not int:
                return None
        return slice, *parts
    if kind is tuple:
        items = [_ITEMS.get(id(item)) or _hashable(item) for item in key]
        return None if None in items else tuple(items)
    return _ITEMS.get(id(key))


# What stands for itself in a key.
_ITEMS = {id(Ellipsis): "...", id(None): "new axis"}


def _recipe(type: TensorType, key: Any) -> Recipe | None:
    """The nodes of ``x[key]``, if they are a chain."""
    start = input_node(type, "x")
    steps: list[Any] = []
    node = index(start.out, key).node
    while node is not start:
        if len(node.inputs) != 1 or len(node.types) != 1:
            return None
        steps.append((node.op, node.params, node.types))
        node = node.inputs[0].node
    return tuple(reversed(steps))
