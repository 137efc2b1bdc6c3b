"""Pytrees: nested containers of arrays, taken apart into leaves and put together again.

Containers are dict, list, tuple, OrderedDict, defaultdict, named tuples, dataclasses, None (a
container of nothing) and registered classes; everything else is a leaf. Dictionaries keep their
insertion order when they are rebuilt, while their leaves are listed by sorted key: two dictionaries
with the same items have the same leaves and equal structures whatever their order.

The structure is a nested tuple, so that it hashes and compares at C speed:

==================================  =======================================================
leaf                                ``None``
list, tuple, named tuple            ``(type, None, children)``
None                                ``(NoneType, None, ())``
dict                                ``(dict, keys in insertion order, children by sorted key)``
registered class, dataclass         ``(type, Aux, children)``
==================================  =======================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..ir.location import at_user_line
from .containers import (
    KINDS,
    Aux,
    kind_of,
    register_dataclass,
    register_node,
    register_node_class,
)

__all__ = [
    "TreeDef",
    "flatten",
    "leaves",
    "map",
    "reduce",
    "register_dataclass",
    "register_node",
    "register_node_class",
    "structure",
    "unflatten",
]

Spec = Any
NONE: Spec = (type(None), None, ())

_builtin_map = map


# --------------------------------------------------------------------------- taking apart


def sorted_keys(keys: Iterable[Any]) -> list[Any]:
    """Dictionary keys in the order their leaves are listed; as given if they do not compare."""
    keys = list(keys)
    try:
        return sorted(keys)
    except TypeError:
        return keys


def take_apart(tree: Any, out: list[Any], is_leaf: Callable[[Any], bool] | None = None) -> Spec:
    """Append the leaves of ``tree`` to ``out`` and return its structure."""
    if is_leaf is not None and is_leaf(tree):
        out.append(tree)
        return None
    cls = type(tree)
    if cls is dict:
        return (
            dict,
            tuple(tree),
            tuple([take_apart(tree[key], out, is_leaf) for key in sorted_keys(tree)]),
        )
    if cls is list or cls is tuple:
        return cls, None, tuple([take_apart(item, out, is_leaf) for item in tree])
    if tree is None:
        return NONE
    kind = KINDS[cls] if cls in KINDS else kind_of(cls)
    if kind is None:
        out.append(tree)
        return None
    children, aux = kind.flatten(tree)
    return cls, Aux(aux), tuple([take_apart(child, out, is_leaf) for child in children])


def put_together(spec: Spec, source: Iterator[Any]) -> Any:
    """The tree of structure ``spec`` with the next leaves of ``source``."""
    if spec is None:
        return next(source)
    cls, aux, children = spec
    items = [put_together(child, source) for child in children]
    if cls is tuple:
        return tuple(items)
    if cls is list:
        return items
    if cls is dict:
        by_key = dict(zip(sorted_keys(aux), items, strict=True))
        return {key: by_key[key] for key in aux}
    if cls is type(None):
        return None
    kind = KINDS[cls]
    assert kind is not None
    return kind.unflatten(aux.value, items)


def count(spec: Spec) -> int:
    """Number of leaves."""
    return 1 if spec is None else sum([count(child) for child in spec[2]])


def _child_names(spec: Spec) -> list[str]:
    """How each child is reached from its parent: ``[0]``, ``['a']``, ``.x``."""
    cls, aux, children = spec
    if cls is dict:
        return [f"[{key!r}]" for key in sorted_keys(aux)]
    kind = KINDS.get(cls)
    names = list(kind.names(aux.value)) if kind is not None else []
    return names or [f"[{i}]" for i in range(len(children))]


def paths(spec: Spec, prefix: str = "") -> list[str]:
    """The way to each leaf, for messages: ``p['a'][0]`` for ``prefix`` ``p``."""
    if spec is None:
        return [prefix]
    return [
        path
        for name, child in zip(_child_names(spec), spec[2], strict=True)
        for path in paths(child, prefix + name)
    ]


def _unordered(spec: Spec) -> Spec:
    """``spec`` with dictionary keys sorted: what equality of structures looks at."""
    if spec is None:
        return None
    cls, aux, children = spec
    if cls is dict:
        aux = tuple(sorted_keys(aux))
    return cls, aux, tuple([_unordered(child) for child in children])


class TreeDef:
    """The structure of a tree: hashable, equal whatever the insertion order of dictionaries."""

    __slots__ = ("_key", "spec")

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._key = _unordered(spec)

    @property
    def num_leaves(self) -> int:
        return count(self.spec)

    def paths(self, prefix: str = "") -> list[str]:
        """The way to each leaf, such as ``p['a'][0]``."""
        return paths(self.spec, prefix)

    def __eq__(self, other: object) -> bool:
        return type(other) is TreeDef and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"TreeDef({show(self.spec)})"


def show(spec: Spec) -> str:
    """``{'a': *, 'b': [*, None]}``: a structure with ``*`` for leaves."""
    if spec is None:
        return "*"
    cls, aux, children = spec
    parts = [show(child) for child in children]
    if cls is list:
        return f"[{', '.join(parts)}]"
    if cls is tuple:
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if cls is type(None):
        return "None"
    if cls is dict:
        by_key = dict(zip(sorted_keys(aux), parts, strict=True))
        return "{" + ", ".join([f"{key!r}: {by_key[key]}" for key in aux]) + "}"
    static = [] if aux.value in (None, ()) else [repr(aux)]
    return f"{cls.__name__}({', '.join([*parts, *static])})"


# --------------------------------------------------------------------------- public functions


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree and its structure.

    Parameters
    ----------
    tree : pytree
    is_leaf : callable, optional
        ``is_leaf(subtree)``: true stops the descent there.

    Examples
    --------
    >>> flatten({"b": 1.0, "a": [2.0, None]})
    ([2.0, 1.0], TreeDef({'b': *, 'a': [*, None]}))
    """
    out: list[Any] = []
    spec = take_apart(tree, out, is_leaf)
    return out, TreeDef(spec)


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of that structure with these leaves.

    Raises
    ------
    ValueError
        If there are too few or too many leaves.
    """
    items = list(leaves)
    if len(items) != treedef.num_leaves:
        raise at_user_line(
            ValueError(
                f"unflatten: expected {treedef.num_leaves} leaves for {treedef}, got {len(items)}"
            )
        )
    return put_together(treedef.spec, iter(items))


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree; None is no leaf."""
    out: list[Any] = []
    take_apart(tree, out, is_leaf)
    return out


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeDef:
    """The structure of a tree."""
    return TreeDef(take_apart(tree, [], is_leaf))


def map(
    function: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Apply a function to the leaves of one or several trees of the same structure.

    Raises
    ------
    ValueError
        If the structures differ.

    Examples
    --------
    >>> map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    first: list[Any] = []
    spec = take_apart(tree, first, is_leaf)
    columns = [first]
    for number, other in enumerate(rest, 2):
        columns.append(match(other, spec, f"tree.map: tree {number}", is_leaf))
    return put_together(spec, _builtin_map(function, *columns))


def reduce(function: Callable[[Any, Any], Any], tree: Any, *initial: Any) -> Any:
    """Combine the leaves from the first to the last, ``functools.reduce`` of :func:`leaves`."""
    items = [*initial, *leaves(tree)]
    if not items:
        raise at_user_line(
            TypeError("tree.reduce: expected a leaf or an initial value, got an empty tree")
        )
    total = items[0]
    for item in items[1:]:
        total = function(total, item)
    return total


# --------------------------------------------------------------------------- matching


def match(
    tree: Any, spec: Spec, what: str, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any]:
    """The leaves of ``tree``, which must have structure ``spec``; raises ``ValueError``."""
    out: list[Any] = []
    found = take_apart(tree, out, is_leaf)
    if found != spec and _unordered(found) != _unordered(spec):
        raise at_user_line(
            ValueError(f"{what}: expected the structure {show(spec)}, got {show(found)}")
        )
    return out


def spread(prefix: Any, spec: Spec, what: str, path: str = "") -> list[Any]:
    """One entry for each leaf of ``spec``, from a tree of entries that may stop early.

    An entry stands for all leaves below it: ``0`` or ``None`` for the whole tree, ``(0, None)`` for
    a pair. Entries are integers and None.

    Raises
    ------
    ValueError
        If the prefix does not fit; the message says where.
    """
    if prefix is None or isinstance(prefix, int):
        return [prefix] * count(spec)
    where = f"{what}{path}"
    items = _prefix_children(prefix, spec)
    if items is None:
        raise at_user_line(
            ValueError(
                f"{where}: expected an int, None or the container {show(spec)}, got {prefix!r}"
            )
        )
    return [
        entry
        for item, name, child in zip(items, _child_names(spec), spec[2], strict=True)
        for entry in spread(item, child, what, path + name)
    ]


def _prefix_children(prefix: Any, spec: Spec) -> list[Any] | None:
    """The entries of ``prefix`` for the children of ``spec``, or None if the containers differ."""
    if spec is None:
        return None
    cls, aux, children = spec
    if cls in (tuple, list) and type(prefix) in (tuple, list):
        items = list(prefix)
    elif cls is not type(prefix):
        return None
    elif cls is dict:
        if set(prefix) != set(aux):
            return None
        items = [prefix[key] for key in sorted_keys(aux)]
    else:
        kind = KINDS.get(cls)
        if kind is None:
            return None
        items = list(kind.flatten(prefix)[0])
    return items if len(items) == len(children) else None
