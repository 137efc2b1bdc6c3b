"""Looking into running programs: ``debug.print``, ``debug.check``, ``debug.callback``.

They happen each time the program runs, in the order in which they are written: at once in eager
code and under ``grad``, at each call under ``jit``, for each example under ``vmap``. There a branch
shows the examples that take it; a loop goes on showing examples that are done, with the values of
one that is not.
"""

from __future__ import annotations

import builtins
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.errors import CheckError, DTypeError
from ..ir.location import Location, at_user_line, user_location
from ..ir.ops.host import HostFunction, effect
from .callbacks import Arguments, called_outside, own_copy, split_arguments
from .effects import perform
from .marking import name_of
from .signature import lift_leaf, type_of

__all__ = ["callback", "check", "print"]


@dataclass(frozen=True, slots=True)
class _Print(HostFunction):
    """Prints values in a format."""

    text: str
    arguments: Arguments

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        args, kwargs = self.arguments.tree(operands)
        builtins.print(self.text.format(*args, **kwargs))
        return ()


@dataclass(frozen=True, slots=True)
class _Check(HostFunction):
    """Raises unless its first operand is true everywhere."""

    text: str
    arguments: Arguments
    location: Location | None

    def __call__(self, holds: Any, *operands: Any) -> tuple[Any, ...]:
        if not np.all(holds):
            values = [own_copy(x) for x in operands]
            args, kwargs = self.arguments.tree(values)
            where = "" if self.location is None else f"\n  at {self.location}"
            raise CheckError(self.text.format(*args, **kwargs) + where, tuple(values))
        return ()


@dataclass(frozen=True, slots=True)
class _Callback(HostFunction):
    """Calls a function and forgets its result."""

    function: Callable[..., Any]
    arguments: Arguments

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        args, kwargs = self.arguments.tree([own_copy(x) for x in operands])
        called_outside(self.function, args, kwargs)
        return ()


def print(fmt: str, *args: Any, ordered: bool = True, **kwargs: Any) -> None:
    """Print values when they are there.

    Parameters
    ----------
    fmt : str
        As for ``str.format``: ``"x = {}, |g| = {norm:.3e}"``.
    args, kwargs
        Arrays, numbers, containers of them, and any other objects.
    ordered : bool
        Accepted for JAX's sake: prints are always in the order of the program.

    Raises
    ------
    IndexError, KeyError
        For a format that wants more values than are given; TypeError: one that shows fewer.

    Examples
    --------
    >>> import tilegrad as tg
    >>> @tg.jit
    ... def f(x):
    ...     tg.debug.print("x is {}", x)
    ...     return x * x
    >>> y = f(3.0)
    x is 3.0
    """
    _check_format("debug.print", fmt, args, kwargs)
    arguments, arrays = split_arguments(args, kwargs)
    perform(effect(_Print(fmt, arguments), _lifted(arrays)))


def check(
    pred: Any, fmt: str = "debug.check: a condition does not hold", *args: Any, **kwargs: Any
) -> None:
    """Raise :class:`~tilegrad.CheckError` when the program runs and ``pred`` does not hold.

    Parameters
    ----------
    pred : array or bool
        Must be true in every element.
    fmt : str
        The message, as for ``str.format``.
    args, kwargs
        Values for the message; also in the error's ``values``.

    Notes
    -----
    Under ``vmap`` the message is that of the first example that fails.

    Examples
    --------
    >>> import tilegrad as tg
    >>> @tg.jit
    ... def root(x):
    ...     tg.debug.check(x >= 0, "expected x >= 0, got {}", x)
    ...     return tg.sqrt(x)
    >>> root(-4.0)
    Traceback (most recent call last):
    ...
    tilegrad.ir.errors.CheckError: expected x >= 0, got -4.0
    ...
    """
    t = type_of(pred, "pred")
    if not t.dtype.is_bool:
        raise at_user_line(DTypeError(f"debug.check: pred: expected bool, got {t}; compare first"))
    _check_format("debug.check", fmt, args, kwargs)
    arguments, arrays = split_arguments(args, kwargs)
    function = _Check(fmt, arguments, user_location())
    perform(effect(function, _lifted([pred, *arrays])))


def callback(fun: Callable[..., Any], *args: Any, ordered: bool = True, **kwargs: Any) -> None:
    """Call a Python function for its effect when the program runs.

    Parameters
    ----------
    fun : callable
        Called with NumPy arrays of its own (read-only); its result is dropped.
    args, kwargs
        Arrays, numbers, containers of them, and any other objects.
    ordered : bool
        Accepted for JAX's sake: effects are always in the order of the program.

    Examples
    --------
    >>> import tilegrad as tg
    >>> seen = []
    >>> f = tg.jit(lambda x: tg.debug.callback(seen.append, x) or 2 * x)
    >>> _ = f(1.0), f(2.0)
    >>> [float(x) for x in seen]
    [1.0, 2.0]
    """
    if not callable(fun):
        raise at_user_line(TypeError(f"debug.callback: expected a function, got {name_of(fun)}"))
    arguments, arrays = split_arguments(args, kwargs)
    perform(effect(_Callback(fun, arguments), _lifted(arrays)))


def _lifted(arrays: Sequence[Any]) -> list[Any]:
    return [lift_leaf(x) for x in arrays]


def _check_format(what: str, fmt: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Whether a format shows what it is given: told when it is written, not when it is run."""
    used: set[Any] = set()
    automatic = 0
    stack = [fmt]
    while stack:
        try:
            fields = list(string.Formatter().parse(stack.pop()))
        except ValueError as error:
            raise at_user_line(ValueError(f"{what}: {error}: {fmt!r}")) from None
        for _, name, spec, _ in fields:
            if name is None:
                continue
            first = name.split(".")[0].split("[")[0]
            if first == "":
                used.add(automatic)
                automatic += 1
            else:
                used.add(int(first) if first.isdigit() else first)
            if spec:
                stack.append(spec)
    given = {*range(len(args)), *kwargs}
    missing = sorted(map(str, used - given))
    unused = sorted(map(str, given - used))
    if missing:
        kind = KeyError if all(not m.isdigit() for m in missing) else IndexError
        raise at_user_line(kind(f"{what}: no value for {', '.join(missing)} of {fmt!r}"))
    if unused:
        raise at_user_line(TypeError(f"{what}: {fmt!r} does not show {', '.join(unused)}"))
