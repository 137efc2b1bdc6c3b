"""Where in the user's program a node was made."""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from types import CodeType
from typing import TypeVar

import numpy as np

__all__ = [
    "Location",
    "Place",
    "at_user_line",
    "location_of",
    "one_place",
    "own_places",
    "user_location",
    "user_place",
]

# Frames of this package are not the user's, but for what ships as a user of it (fits, tests). Those
# of contextlib stand between a function and a context manager that decorates it.
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OURS = (
    os.path.dirname(np.__file__) + os.sep,
    contextlib.__file__,
    *(_ROOT + folder + os.sep for folder in ("ir", "autodiff", "fusion", "kernels", "engine")),
)


@dataclass(frozen=True, slots=True)
class Location:
    """A line of source."""

    filename: str
    line: int

    def __str__(self) -> str:
        text = linecache.getline(self.filename, self.line).strip()
        return f"{self.filename}:{self.line}" + (f"\n    {text}" if text else "")


# A code object and the offset of an instruction in it: what a node notes of where it was made. The
# line is only looked for when somebody asks, since Python finds it by reading the function's line
# table from the start (1.5 us at line 100).
Place = tuple[CodeType, int]

# Whether the code of a file is tilegrad's own or NumPy's.
_OWN: dict[str, bool] = {}

# The place of all nodes that a rewrite of the web makes.
_FIXED: ContextVar[Place | None] = ContextVar("tilegrad_place", default=None)


def user_place(depth: int = 1) -> Place | None:
    """The innermost frame that is not tilegrad's own or NumPy's dispatch.

    The ``depth`` frames that end with the caller's are known to be our own.
    """
    fixed = _FIXED.get()
    if fixed is not None:
        return fixed
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        filename = code.co_filename
        own = _OWN.get(filename)
        if own is None:
            own = _OWN[filename] = filename.startswith(_OURS)
        if not own:
            return code, frame.f_lasti
        frame = frame.f_back  # type: ignore[assignment]
    return None


@contextlib.contextmanager
def one_place() -> Iterator[None]:
    """All nodes made meanwhile are of one place: that of the user's call that rewrites the web.

    Each frame between a node and the user costs 0.1 us to pass, and derivative rules are deep.
    """
    token = _FIXED.set(user_place())
    try:
        yield
    finally:
        _FIXED.reset(token)


@contextlib.contextmanager
def own_places() -> Iterator[None]:
    """Nodes made meanwhile are of their own lines again: a function of the user's runs."""
    token = _FIXED.set(None)
    try:
        yield
    finally:
        _FIXED.reset(token)


def location_of(place: Place | None) -> Location | None:
    """The line of source of a place."""
    if place is None:
        return None
    code, offset = place
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return Location(code.co_filename, line)
    return Location(code.co_filename, code.co_firstlineno)


def user_location() -> Location | None:
    """The line of the user's innermost frame, also within :func:`one_place`."""
    with own_places():
        return location_of(user_place())


_E = TypeVar("_E", bound=Exception)


def at_user_line(error: _E) -> _E:
    """``error`` with the user's own line added to its message, once."""
    if not hasattr(error, "location"):
        location = user_location()
        error.location = location  # type: ignore[attr-defined]
        if location is not None and error.args and "\n  at " not in str(error.args[0]):
            error.args = (f"{error.args[0]}\n  at {location}", *error.args[1:])
    return error
