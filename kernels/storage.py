"""Memory for results and arenas: large blocks are used again instead of asking the system.

A fresh block of 32 MB costs the kernel thousands of page faults, more than adding up its numbers.
Blocks that nobody refers to any more are therefore kept, up to a bound, and handed out again: a
block is free when the pool holds the only reference to it, so arrays, their views and exported
buffers keep it alive as usual.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import numpy as np

from .events import LISTENERS, tell

__all__ = ["LARGE", "block", "is_alone", "new_array", "release"]

LARGE = 256 * 1024  # smaller blocks come fast from the allocator
KEPT = 512 * 1024 * 1024  # most bytes kept in all
LINE = 64  # bytes of a cache line

_blocks: list[np.ndarray[Any, Any]] = []
_lock = threading.Lock()


def _references(blocks: list[np.ndarray[Any, Any]], k: int) -> int:
    return sys.getrefcount(blocks[k])


# References to a block that only the list holds, with those that asking makes.
_ALONE = _references([np.empty(0)], 0)


def _holders(array: np.ndarray[Any, Any]) -> int:
    return sys.getrefcount(array.base)


def _lent_once() -> int:
    whole = np.empty(1)
    pool = [whole]
    part = whole[:]
    del whole
    return _holders(part) if pool else 0


# References to a block that the pool and one array hold, with those that asking makes.
_LENT_ONCE = _lent_once()


def is_alone(arrays: list[np.ndarray[Any, Any]], k: int) -> bool:
    """Whether nobody but this list can reach the memory of ``arrays[k]``, views included."""
    if _references(arrays, k) != _ALONE:
        return False
    if arrays[k].base is None:  # its own memory, or some that Python knows nothing of
        return arrays[k].flags.owndata
    with _lock:  # a block of ours; others may have more owners than Python knows of
        return any(arrays[k].base is x for x in _blocks) and _holders(arrays[k]) == _LENT_ONCE


def block(nbytes: int) -> np.ndarray[Any, Any]:
    """``nbytes`` bytes, uninitialized; a large block begins on a cache line."""
    if nbytes < LARGE:
        return _fresh(nbytes)
    room = nbytes + LINE
    with _lock:
        for k in range(len(_blocks)):
            if _blocks[k].nbytes == room and _references(_blocks, k) == _ALONE:
                found = _blocks.pop(k)
                _blocks.append(found)  # most recently used last
                return _on_line(found, nbytes)
        fresh = _fresh(room)
        _blocks.append(fresh)
        _make_room()
        return _on_line(fresh, nbytes)


def _on_line(whole: np.ndarray[Any, Any], nbytes: int) -> np.ndarray[Any, Any]:
    """The part of a block that begins on a cache line; it refers to the whole."""
    skip = -whole.ctypes.data % LINE
    return whole[skip : skip + nbytes]


def _fresh(nbytes: int) -> np.ndarray[Any, Any]:
    if LISTENERS:
        tell(allocations=1, allocated_bytes=nbytes)
    return np.empty(nbytes, np.uint8)


def _make_room() -> None:
    """Let go of the least recently used blocks beyond the bound; their users keep them."""
    total = sum(b.nbytes for b in _blocks)
    while total > KEPT and len(_blocks) > 1:
        total -= _blocks.pop(0).nbytes


def new_array(shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int) -> np.ndarray[Any, Any]:
    """An uninitialized array in C order; ``nbytes`` is its size."""
    if nbytes < LARGE:
        if LISTENERS:
            tell(allocations=1, allocated_bytes=nbytes)
        return np.empty(shape, dtype)
    return block(nbytes).view(dtype).reshape(shape)


def release() -> None:
    """Give all kept blocks back (those in use live on with their users)."""
    with _lock:
        _blocks.clear()


def _after_fork() -> None:
    """In a forked child nobody is there to let go of the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
