"""The classes that are containers of a pytree: how each is taken apart and put together."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ..ir.location import at_user_line
from .static import static_key

__all__ = [
    "KINDS",
    "Aux",
    "kind_of",
    "leaf_class",
    "register_dataclass",
    "register_node",
    "register_node_class",
]

_T = TypeVar("_T")


class Aux:
    """Static data of a container: compared by type and bits, see :mod:`.static`."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = static_key(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is Aux and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)


@dataclasses.dataclass(frozen=True, slots=True)
class _Kind:
    """How a registered class is taken apart: children, aux data, names of the children."""

    flatten: Callable[[Any], tuple[Sequence[Any], Any]]
    unflatten: Callable[[Any, Sequence[Any]], Any]
    names: Callable[[Any], Sequence[str]]


def _key_names(keys: Iterable[Any]) -> list[str]:
    return [f"[{key!r}]" for key in keys]


# Classes met so far that are not built in: a _Kind, or None for the class of a leaf. The order of
# an OrderedDict is part of its structure, and so is what a defaultdict makes.
KINDS: dict[type, _Kind | None] = {
    OrderedDict: _Kind(
        lambda x: (list(x.values()), tuple(x)),
        lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
        _key_names,
    ),
    defaultdict: _Kind(
        lambda x: (list(x.values()), (x.default_factory, tuple(x))),
        lambda aux, children: defaultdict(aux[0], zip(aux[1], children, strict=True)),
        lambda aux: _key_names(aux[1]),
    ),
}


def register_node(
    cls: type,
    flatten: Callable[[Any], tuple[Sequence[Any], Any]],
    unflatten: Callable[[Any, Sequence[Any]], Any],
) -> None:
    """Make instances of ``cls`` containers.

    Parameters
    ----------
    cls : type
        Subclasses are not included.
    flatten : callable
        ``flatten(instance) -> (children, aux)``; ``aux`` must be hashable.
    unflatten : callable
        ``unflatten(aux, children) -> instance``. Children may be any object, not only arrays.

    Raises
    ------
    ValueError
        If the class is a container already.

    Examples
    --------
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> register_node(Pair, lambda p: ((p.a, p.b), None), lambda aux, children: Pair(*children))
    >>> from tilegrad import tree
    >>> tree.leaves(Pair(1.0, [2.0, 3.0]))
    [1.0, 2.0, 3.0]
    """
    if cls in (dict, list, tuple, type(None)) or KINDS.get(cls) is not None:
        raise at_user_line(ValueError(f"register_node: {cls.__name__} is a container already"))
    KINDS[cls] = _Kind(flatten, unflatten, lambda aux: ())


def register_node_class(cls: type[_T]) -> type[_T]:
    """Class decorator for classes with ``tree_flatten()`` and ``tree_unflatten(aux, children)``."""
    register_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_dataclass(
    cls: type[_T],
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] = (),
) -> type[_T]:
    """Say which fields of a dataclass are children; the others are static data.

    A dataclass that is not registered is a container too: all fields are children, but for those
    declared with ``field(metadata={"static": True})``.

    Parameters
    ----------
    cls : type
        A dataclass (or any class whose fields are attributes).
    data_fields : sequence of str, optional
        Default: all dataclass fields that are not in ``meta_fields``.
    meta_fields : sequence of str
        Static data, hashable.
    """
    meta = tuple(meta_fields)
    if data_fields is None:
        data = tuple(f.name for f in dataclasses.fields(cls) if f.name not in meta)  # type: ignore[arg-type]
    else:
        data = tuple(data_fields)
    KINDS[cls] = _fields_kind(cls, data, meta)
    return cls


def _fields_kind(cls: type, data: tuple[str, ...], meta: tuple[str, ...]) -> _Kind:
    def take_apart(x: Any) -> tuple[Sequence[Any], Any]:
        return [getattr(x, n) for n in data], tuple([getattr(x, n) for n in meta])

    def put_together(aux: Any, children: Sequence[Any]) -> Any:
        # Past __init__: it may compute with its arguments, and children may be anything.
        x: Any = object.__new__(cls)
        for name, value in (*zip(data, children, strict=True), *zip(meta, aux, strict=True)):
            object.__setattr__(x, name, value)
        return x

    return _Kind(take_apart, put_together, lambda aux: ["." + name for name in data])


def kind_of(cls: type) -> _Kind | None:
    """The kind of a class that is neither built in nor a leaf, found once."""
    if cls in KINDS:
        return KINDS[cls]
    kind: _Kind | None = None
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        names = ["." + name for name in cls._fields]
        kind = _Kind(
            lambda x: (tuple(x), None), lambda aux, children: cls(*children), lambda aux: names
        )
    elif dataclasses.is_dataclass(cls):
        fields = dataclasses.fields(cls)
        static = tuple(f.name for f in fields if f.metadata.get("static"))
        kind = _fields_kind(cls, tuple(f.name for f in fields if f.name not in static), static)
    KINDS[cls] = kind
    return kind


def leaf_class(cls: type) -> type:
    """Class decorator: instances are leaves, however much they look like containers."""
    KINDS[cls] = None
    return cls
