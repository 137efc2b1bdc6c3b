"""Work along one axis of an array, cut into pieces of lines that threads share.

A *line* is what an index along one axis runs over. Pieces hold whole lines and are cut by the shape
alone; each is computed by itself, so the number of threads changes no bit.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np

__all__ = ["Lines", "Scratch", "pieces_of", "share"]

Array = np.ndarray[Any, Any]
_T = TypeVar("_T")

# Bytes of a piece: with its intermediates it fits the second-level cache, and it takes long enough
# (a millisecond) that threads seldom wait for the interpreter lock.
PIECE = 256 * 1024
# Bytes above which starting threads (about 60 us each) pays for work like sorting.
WORTHWHILE = 512 * 1024


class Lines:
    """The lines of an array along ``axis``, piece by piece as contiguous matrices."""

    def __init__(self, x: Array, axis: int) -> None:
        before, after = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
        self.extent = x.shape[axis]
        # Lines that lie in memory one after the other are the rows of a matrix.
        self.in_rows = after == 1
        self._array = x.reshape((before, self.extent, after))

    def view(self, piece: tuple[int, int, int]) -> Array:
        """(lines, extent) of a piece, in the array's own memory."""
        if self.in_rows:
            return self._array[piece[1] : piece[2], :, 0]
        return self._array[piece[0], :, piece[1] : piece[2]].T


class Scratch:
    """Intermediate arrays of one thread, the same memory for every piece.

    A fresh array of this size would be mapped and zeroed by the system each time.
    """

    def __init__(self) -> None:
        self._blocks: dict[str, Array] = {}

    def array(self, name: str, shape: Sequence[int], dtype: Any) -> Array:
        """An uninitialized array; it is overwritten when ``name`` is next asked for."""
        kind = np.dtype(dtype)
        need = prod(shape) * kind.itemsize
        block = self._blocks.get(name)
        if block is None or block.nbytes < need:
            block = self._blocks[name] = np.empty(need, np.uint8)
        found: Array = block[:need].view(kind).reshape(shape)
        return found


def pieces_of(shape: Sequence[int], axis: int, itemsize: int = 8) -> list[tuple[int, int, int]]:
    """(block, first line, last line) of each piece of an array of this shape."""
    before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
    blocks, lines = (1, before) if after == 1 else (before, after)
    step = max(1, PIECE // max(shape[axis] * itemsize, 1))
    if after > 1:
        step = max(step, 8)  # a cache line of each element of an axis
    return [
        (block, first, min(first + step, lines))
        for block in range(blocks)
        for first in range(0, lines, step)
    ]


def share(
    work: Callable[[Iterator[_T]], None], pieces: Sequence[_T], nbytes: int, threads: int
) -> None:
    """Call ``work(pieces)`` in each thread; together they get every piece once.

    Threads are started for the call: nothing is left behind that a fork could break. An error in
    one of them ends the work and is raised here.
    """
    threads = min(threads, len(pieces)) if nbytes >= WORTHWHILE else 1
    if threads < 2:
        work(iter(pieces))
        return
    numbers = itertools.count()  # ``next`` on it is atomic
    stop = False
    errors: list[BaseException] = []

    def mine() -> Iterator[_T]:
        while not stop and (k := next(numbers)) < len(pieces):
            yield pieces[k]

    def run() -> None:
        nonlocal stop
        try:
            work(mine())
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            stop = True
            errors.append(error)

    others = [threading.Thread(target=run, daemon=True) for _ in range(threads - 1)]
    try:
        for thread in others:
            thread.start()
        run()
    finally:
        stop = True
        for thread in others:
            if thread.ident is not None:
                thread.join()
    if errors:
        raise errors[0]
