"""What a function reads from outside: the part of a trace's signature that is not an argument.

A traced function is a function of its code and of what the code finds in closures and globals. The
scalars there are part of the program, so a changed one must not get the old program; arrays there
become hidden inputs, so another array under the same name must not get the old data. The names a
function can read are known from its code object, and those of the helpers it calls from theirs.

Followed: globals, closure cells and defaults; plain functions, methods, partials and transformed
functions found there, with what they read; attributes and methods of modules, objects and classes,
and attributes of those, whose names occur in the code; the leaves of containers. Not followed:
NumPy arrays written to in place (they are told apart by identity), what ``getattr`` computes,
containers of more than a thousand leaves (told apart by identity).
"""

from __future__ import annotations

import functools
import sys
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np

from .array import Array
from .static import static_key
from .tree import take_apart

__all__ = ["Captures", "arrays_read_by"]

_SCALARS = (bool, int, float, complex, str, bytes, type(None), np.generic)
_OURS = {__name__.partition(".")[0], "numpy", "scipy"}
_LIBRARIES = (_OURS | sys.stdlib_module_names) - {"__main__"}
_CONTAINERS = (list, tuple, dict, OrderedDict, defaultdict)
_MISSING = object()
_MOST_LEAVES = 1024
_MOST_FUNCTIONS = 256
_MOST_VERSIONS = 256


class _Same:
    """Equal to itself alone: the key of what is told apart by identity (and kept alive)."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


class _Slots:
    """Attributes that an object keeps outside its ``__dict__``, read as from a mapping."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def get(self, name: str, default: Any) -> Any:
        return getattr(self.owner, name, default)


class Captures:
    """What one function reads, with a number for each state of it.

    Parameters
    ----------
    function : callable
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._versions: dict[Any, int] = {}
        self._scan: _Scan | None = None
        self._version = self._newest = -1

    def version(self) -> int:
        """A number that is the same as long as all that is read is the same."""
        scan = self._scan
        if scan is None or not (scan.reads_nothing or scan.holds()):
            scan = _Scan(self._function)
            key = tuple(scan.key)
            found = self._versions.get(key)
            if found is None:
                if len(self._versions) >= _MOST_VERSIONS:
                    del self._versions[next(iter(self._versions))]
                found = self._versions[key] = self._newest = self._newest + 1
            self._version = found
            self._scan = scan
        return self._version

    def arrays(self) -> list[Array]:
        """The arrays found at the last look."""
        return self._scan.arrays if self._scan is not None else []


def arrays_read_by(functions: Iterable[Callable[..., Any]]) -> list[Array]:
    """The arrays that some functions read from closures and globals, as of now."""
    return [x for function in functions for x in _Scan(function).arrays]


class _Scan:
    """One look at all places: their values, and a key made of them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.places: list[tuple[Mapping[str, Any] | _Slots, str, Any]] = []
        self.cells: list[tuple[Any, Any]] = []
        self.containers: list[tuple[Any, Any, list[Any]]] = []
        self.key: list[Any] = []
        self.arrays: list[Array] = []
        self._known: set[tuple[int, int]] = set()
        self._read: set[tuple[int, Any]] = set()
        self._todo: list[Any] = [function]
        while self._todo and len(self._known) < _MOST_FUNCTIONS:
            self._callable(self._todo.pop())
        self.reads_nothing = not (self.places or self.cells or self.containers)

    def holds(self) -> bool:
        """Whether every place still has the value it had."""
        for namespace, name, value in self.places:
            if namespace.get(name, _MISSING) is not value:
                return False
        try:
            for cell, value in self.cells:
                if cell.cell_contents is not value:
                    return False
        except ValueError:  # one without contents
            if any(_contents(cell) is not value for cell, value in self.cells):
                return False
        for container, spec, leaves in self.containers:
            found = _taken_apart(container)
            if found is None or found[0] != spec:
                return False
            for old, new in zip(leaves, found[1], strict=True):
                if old is not new:
                    return False
        return True

    def _callable(self, function: Any) -> None:
        # A bound method is made anew at each look; what it binds is not.
        inner = getattr(function, "__func__", function), getattr(function, "__self__", None)
        known = id(inner[0]), id(inner[1])
        if known in self._known:
            return
        self._known.add(known)
        if isinstance(function, functools.partial):
            self._value(function.func, frozenset())
            for value in (*function.args, *function.keywords.values()):
                self._value(value, frozenset())
        elif isinstance(function, types.MethodType):
            self._function(cast("Any", function.__func__), function.__self__)
        elif isinstance(function, types.FunctionType):
            self._function(function, None)
        elif callable(getattr(function, "__wrapped__", None)):
            self._value(function, frozenset())
        elif not isinstance(function, type):
            call = vars(type(function)).get("__call__")
            if isinstance(call, types.FunctionType) and not _is_library(call.__module__):
                self._function(call, function)

    def _function(self, function: types.FunctionType, owner: Any) -> None:
        # Not __module__: functools.wraps gives a wrapper the module of what it wraps.
        if _is_library(function.__globals__.get("__name__")):
            # A transform of ours around the user's function; other library code is constant.
            inner = getattr(function, "__wrapped__", None)
            if inner is not None:
                self._todo.append(inner)
            return
        code = function.__code__
        self.key.append(code)
        names = frozenset(_names(code))
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._value(default, names)
        for name in sorted(names):
            if name in function.__globals__:
                self._place(function.__globals__, name, names)
        for cell in function.__closure__ or ():
            value = _contents(cell)
            self.cells.append((cell, value))
            self._value(value, names)
        if owner is not None:
            self._value(owner, names)

    def _place(self, namespace: Mapping[str, Any], name: str, names: frozenset[str]) -> None:
        value = namespace[name]
        if isinstance(value, types.ModuleType) and _is_library(value.__name__):
            return
        self.places.append((namespace, name, value))
        self._value(value, names)

    def _value(self, value: Any, names: frozenset[str]) -> None:
        """Add a value that is read to the key, and look further where it leads."""
        kind = type(value)
        if isinstance(value, _SCALARS):
            self.key.append(static_key(value))
        elif kind is Array:
            self.arrays.append(value)
            self.key.append(_Same(value))
        elif kind in _CONTAINERS:
            self._container(value, names)
        elif isinstance(value, types.FunctionType | types.MethodType | functools.partial):
            self._todo.append(value)
        elif isinstance(value, types.ModuleType):
            if not _is_library(value.__name__):
                self._attributes(value.__dict__, names)
        elif value is not _MISSING:
            inner = getattr(value, "__wrapped__", None)
            if callable(inner):  # a jitted function: what it reads, its caller reads
                # So it is with the rules of a function that has its own derivatives.
                self._todo += (inner, *getattr(value, "__rules__", ()))
                return
            self.key.append(_Same(value))
            data = isinstance(value, np.ndarray) or _is_ours(kind.__module__)
            # Another function may read other attributes of the same object.
            if not data and (id(value), names) not in self._read:
                self._read.add((id(value), names))
                if isinstance(value, type):
                    self._class_attributes(value, None, names)
                    return
                own = getattr(value, "__dict__", {})
                self._attributes(own, names)
                self._class_attributes(kind, value, names.difference(own))
                if callable(value):
                    self._todo.append(value)

    def _attributes(self, namespace: Mapping[str, Any], names: frozenset[str]) -> None:
        """Attributes that the code names."""
        for name in sorted(names):
            if name in namespace:
                self._place(namespace, name, names)

    def _class_attributes(self, cls: type, owner: Any, names: frozenset[str]) -> None:
        """What the code reads from a class, by its own name or (``owner``) through an instance."""
        for name in sorted(names):
            home = next((c for c in cls.__mro__ if name in vars(c)), None)
            if home is None or _is_library(home.__module__):
                continue
            attribute = vars(home)[name]
            self.places.append((vars(home), name, attribute))
            if isinstance(attribute, types.MemberDescriptorType):
                if owner is not None:
                    held = getattr(owner, name, _MISSING)
                    self.places.append((_Slots(owner), name, held))
                    self._value(held, names)
                continue
            for c in cls.__mro__[: cls.__mro__.index(home)]:
                self.places.append((vars(c), name, _MISSING))  # what would hide it
            if owner is not None and hasattr(owner, "__dict__"):
                self.places.append((owner.__dict__, name, _MISSING))
            if isinstance(attribute, classmethod):
                attribute = types.MethodType(attribute.__func__, cls)
            elif isinstance(attribute, staticmethod):
                attribute = attribute.__func__
            elif isinstance(attribute, property | functools.cached_property):
                attribute = getattr(attribute, "fget", None) or getattr(attribute, "func", None)
                if owner is not None and attribute is not None:
                    attribute = types.MethodType(attribute, owner)
            elif isinstance(attribute, types.FunctionType) and owner is not None:
                attribute = types.MethodType(attribute, owner)
            self._value(attribute, names)

    def _container(self, value: Any, names: frozenset[str]) -> None:
        """The structure of a container and its leaves: by value for scalars, else by identity."""
        found = _taken_apart(value)
        if found is None:
            self.key.append(_Same(value))
            return
        spec, leaves = found
        self.containers.append((value, spec, leaves))
        self.key.append(spec)
        for leaf in leaves:
            self._value(leaf, names)


def _taken_apart(container: Any) -> tuple[Any, list[Any]] | None:
    """Structure and leaves of a container; None if it is large or contains itself."""
    leaves: list[Any] = []
    if len(container) > _MOST_LEAVES:
        return None
    try:
        spec = take_apart(container, leaves)
    except RecursionError:
        return None
    return None if len(leaves) > _MOST_LEAVES else (spec, leaves)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _MISSING


def _names(code: types.CodeType) -> Iterator[str]:
    """Names of globals and attributes in a code object and in those inside it."""
    stack = [code]
    while stack:
        current = stack.pop()
        yield from current.co_names
        stack.extend([c for c in current.co_consts if isinstance(c, types.CodeType)])


def _is_library(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _LIBRARIES


def _is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _OURS
