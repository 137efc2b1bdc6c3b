"""Tapes of a run: headers in the arena, their memory, and NumPy arrays made of them.

A header is three words: address, bytes of memory that is ours, rows (:mod:`.llvm.regions`). The
memory grows by the C library's ``realloc`` in native code and is freed when the run is over,
whatever has ended it. Of what is given as an array the address alone is noted.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..fusion.loops import Buffer
from .events import LISTENERS, tell
from .llvm.regions import TAPE_WORDS

__all__ = ["Tapes"]

Array = np.ndarray[Any, Any]


class Tapes:
    """The tapes of a plan: places of their headers in the arena, by number of the buffer."""

    def __init__(self, places: dict[int, int]) -> None:
        self._places = places
        self._first = min(places.values())
        self._free: Any = ctypes.CDLL(None).free
        self._free.argtypes = [ctypes.c_void_p]
        self._free.restype = None

    def __contains__(self, number: int) -> bool:
        return number in self._places

    def _headers(self, arena: Array) -> Array:
        size = 8 * TAPE_WORDS * len(self._places)
        words = arena[self._first : self._first + size].view(np.int64)
        return words.reshape(-1, TAPE_WORDS)

    def _header(self, arena: Array, number: int) -> Array:
        row = (self._places[number] - self._first) // (8 * TAPE_WORDS)
        return self._headers(arena)[row]  # type: ignore[no-any-return]

    def begin(self, arena: Array) -> None:
        """Empty tapes."""
        self._headers(arena)[...] = 0

    def release(self, arena: Array) -> None:
        """Free what native code has allocated."""
        headers = self._headers(arena)
        for header in headers:
            if header[1]:
                if LISTENERS:
                    tell(allocations=1, allocated_bytes=int(header[1]))
                self._free(int(header[0]))
        headers[...] = 0

    def view(self, arena: Array, number: int, buffer: Buffer) -> Array:
        """The rows of a tape, in its own memory."""
        address, _, rows = map(int, self._header(arena, number))
        shape = (rows, *buffer.shape[1:])
        dtype = buffer.dtype.numpy
        nbytes = int(np.prod(shape)) * dtype.itemsize
        if not nbytes:
            return np.empty(shape, dtype)
        memory = (ctypes.c_char * nbytes).from_address(address)
        return np.frombuffer(memory, dtype).reshape(shape)

    def point(self, arena: Array, number: int, rows: Array) -> None:
        """Let a tape be an array, which the caller keeps."""
        self._header(arena, number)[:] = (rows.ctypes.data, 0, len(rows))
