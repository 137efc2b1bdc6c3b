"""The parameters of a jitted function: which are static, which are donated, and by what names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..ir.location import at_user_line
from .array import Array
from .static import static_key
from .tree import paths, sorted_keys

__all__ = ["Parameters", "dynamic_places"]


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, Iterable) and not isinstance(x, str) else (x,)


class Parameters:
    """What ``jit`` knows of the parameters of a function.

    Attributes
    ----------
    static : frozenset
        Names of static parameters (numbers where the function does not tell names).
    donated : frozenset of int
        Positions of donated parameters.
    """

    def __init__(self, fun: Callable[..., Any], name: str, options: dict[str, Any]) -> None:
        self._name = name
        self._options = options
        try:
            self._signature: inspect.Signature | None = inspect.signature(fun)
        except (TypeError, ValueError):  # some builtins have none
            self._signature = None
        self._names = list(self._signature.parameters) if self._signature else []
        self.static = self._static_names()
        self.donated = self._donated_places()

    def _static_names(self) -> frozenset[Any]:
        """Names of static parameters (numbers where the function does not tell names)."""
        found: set[Any] = set()
        for name in _as_tuple(self._options["static_argnames"]):
            if self._names and name not in self._names and not self._takes_any_keyword():
                raise at_user_line(
                    ValueError(
                        f"jit({self._name}): static_argnames: expected one of "
                        f"{', '.join(self._names)}, got {name!r}"
                    )
                )
            found.add(name)
        for number in _as_tuple(self._options["static_argnums"]):
            count = len(self._names)
            place = number + count if number < 0 else number
            positional = self._positional()
            if self._signature is not None and not 0 <= place < len(positional):
                if not self._takes_any_position():
                    raise at_user_line(
                        ValueError(
                            f"jit({self._name}): static_argnums: expected a number below "
                            f"{len(positional)}, got {number}"
                        )
                    )
                found.add(place)
            else:
                found.add(positional[place] if place < len(positional) else place)
        return frozenset(found)

    def _donated_places(self) -> frozenset[int]:
        """Positions of donated parameters."""
        found = set()
        positional = self._positional()
        for number in _as_tuple(self._options["donate_argnums"]):
            place = number + len(positional) if number < 0 else number
            known = 0 <= place < len(positional) or (place >= 0 and self._takes_any_position())
            if not known:
                raise at_user_line(
                    ValueError(
                        f"jit({self._name}): donate_argnums: expected a number below "
                        f"{len(positional)}, got {number}"
                    )
                )
            found.add(place)
        return frozenset(found)

    def _positional(self) -> list[str]:
        if self._signature is None:
            return []
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [n for n, p in self._signature.parameters.items() if p.kind in kinds]

    def _takes_any_position(self) -> bool:
        return self._signature is None or any(
            p.kind is inspect.Parameter.VAR_POSITIONAL for p in self._signature.parameters.values()
        )

    def _takes_any_keyword(self) -> bool:
        return self._signature is None or any(
            p.kind is inspect.Parameter.VAR_KEYWORD for p in self._signature.parameters.values()
        )

    def bind(self, args: Any, kwargs: Any) -> tuple[Any, Any, tuple[Any, ...]]:
        """Positional and keyword arguments, dynamic ones only, and the static ones."""
        if self._signature is not None:
            try:
                bound = self._signature.bind(*args, **kwargs)
            except TypeError as error:
                raise at_user_line(TypeError(f"{self._name}() {error}")) from None
            args, kwargs = bound.args, bound.kwargs
        if not self.static:
            return args, kwargs, ()
        positional = self._positional()
        static: list[tuple[Any, Any]] = []
        dynamic: list[Any] = []
        for place, x in enumerate(args):
            name = positional[place] if place < len(positional) else place
            if name in self.static:
                static.append((place, self._static_value(name, x)))
            else:
                dynamic.append(x)
        rest = {}
        for name, x in kwargs.items():
            if name in self.static:
                static.append((name, self._static_value(name, x)))
            else:
                rest[name] = x
        return tuple(dynamic), rest, tuple(static)

    def _static_value(self, name: Any, value: Any) -> _Static:
        try:
            return _Static(value)
        except TypeError:
            shown = name if isinstance(name, str) else f"number {name}"
            raise at_user_line(
                TypeError(
                    f"jit({self._name}): static argument {shown}: expected a hashable value, got "
                    f"{type(value).__name__} {value!r}; pass a tuple or another hashable value, or "
                    f"do not make {shown} static"
                )
            ) from None

    def leaf_names(self, spec: Any, static: Any) -> list[str]:
        """How the user reaches each leaf: ``p['a'][0]``."""
        _, _, (args, kwargs) = spec
        positional = self._positional()
        places = dynamic_places(len(args[2]), static)
        names: list[str] = []
        for place, child in zip(places, args[2], strict=True):
            name = positional[place] if place < len(positional) else f"args[{place}]"
            names.extend(paths(child, name))
        for name, child in zip(sorted_keys(kwargs[1]), kwargs[2], strict=True):
            names.extend(paths(child, name))
        return names


class _Static:
    """A static argument: compared by type and bits."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        if isinstance(value, np.ndarray | Array):
            raise TypeError("arrays do not hash")
        self.value = value
        self.key = static_key(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Static and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return repr(self.value)


def dynamic_places(count: int, static: Any) -> list[int]:
    """Positions in the user's call of the ``count`` positional arguments that are not static."""
    taken = {place for place, _ in static if isinstance(place, int)}
    return [i for i in range(count + len(taken)) if i not in taken]
