"""Where in the user's program a node was made."""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

__all__ = ["Location", "at_user_line", "user_location"]

# Frames of this package are not the user's, but for what ships as a user of it (fits, tests).
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OURS = (
    os.path.dirname(np.__file__) + os.sep,
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


def user_location() -> Location | None:
    """The innermost frame that is not tilegrad's own or NumPy's dispatch."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(_OURS):
            return Location(filename, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None


_E = TypeVar("_E", bound=Exception)


def at_user_line(error: _E) -> _E:
    """``error`` with the user's own line added to its message, once."""
    if not hasattr(error, "location"):
        location = user_location()
        error.location = location  # type: ignore[attr-defined]
        if location is not None and error.args:
            error.args = (f"{error.args[0]}\n  at {location}", *error.args[1:])
    return error
