"""The context of a call of the driver, and rows of int64 words in general."""

from __future__ import annotations

from typing import Any

from .interrupt import WATCH_WORDS
from .memory import I64, POINTER

__all__ = [
    *("BUFFERS", "CONTEXT_WORDS", "ERROR", "JOB", "POOL", "RUN", "STEPS", "TABLE", "THREADS"),
    *("WATCH", "Words"),
]

# Words of a context: the error word, addresses of the buffers' row, the table and its steps, of the
# function that runs a range of steps, pool, threads, the job of a step, the watch.
ERROR, BUFFERS, TABLE, STEPS, RUN, POOL, THREADS, JOB, WATCH = range(9)
CONTEXT_WORDS = WATCH + WATCH_WORDS


class Words:
    """Words in memory: ``words[k]`` emits a load, ``words[k] = value`` a store."""

    def __init__(self, b: Any, pointer: Any) -> None:
        """``pointer``: or the i64 address of the first word."""
        self._b = b
        self.pointer = b.inttoptr(pointer, POINTER) if pointer.type == I64 else pointer

    def place(self, k: Any) -> Any:
        """A pointer to word ``k``, a number or an i64 value."""
        at = I64(k) if isinstance(k, int) else k
        return self._b.gep(self.pointer, [at], source_etype=I64)

    def address(self, k: Any) -> Any:
        """The i64 address of word ``k``."""
        return self._b.ptrtoint(self.place(k), I64)

    def __getitem__(self, k: Any) -> Any:
        return self._b.load(self.place(k), typ=I64)

    def __setitem__(self, k: Any, value: Any) -> None:
        self._b.store(value, self.place(k))

    def part(self, k: Any) -> Words:
        """The words from ``k`` on."""
        return Words(self._b, self.place(k))
