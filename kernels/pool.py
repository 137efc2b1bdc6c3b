"""The one pool of worker threads that all plans share.

Workers are daemon threads that sleep in native code without the interpreter lock; see
:mod:`.llvm.teamwork` for what they do. They are started when a step is first worth sharing. A
forked child has no workers: its pool is new and empty, and starts them again when it needs them.
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

import numpy as np

from .llvm.teamwork import ADDRESSES, POOL_WORDS, SEMAPHORE, SYMBOLS, emit_worker
from .machine import Code, compile_entry

__all__ = ["pool_address"]

_MOST_WORKERS = 255


class _Pool:
    def __init__(self) -> None:
        self._memory = np.zeros(POOL_WORDS + 8, np.int64)
        start = self._memory.ctypes.data
        self.address = start + (-start) % 64  # a cache line
        self.workers = 0
        self.most = _MOST_WORKERS
        self._lock = threading.Lock()
        self._worker: Code | None = None
        self.usable = self._prepare()

    def _prepare(self) -> bool:
        """Fill in the C functions; False where the platform has no unnamed semaphores."""
        library: Any = ctypes.CDLL(None)
        words = (ctypes.c_int64 * POOL_WORDS).from_address(self.address)
        for k, name in enumerate(SYMBOLS):
            function = getattr(library, name, None)
            if function is None:
                return False
            words[ADDRESSES + k] = ctypes.cast(function, ctypes.c_void_p).value or 0
        semaphore = ctypes.c_void_p(self.address + 8 * SEMAPHORE)
        return bool(library.sem_init(semaphore, 0, 0) == 0)

    def grow(self, workers: int) -> None:
        """Have at least so many workers."""
        with self._lock:
            if self._worker is None:
                self._worker = compile_entry("worker", "i", _worker_body)
            while self.workers < min(workers, self.most):
                name = f"tilegrad-{self.workers}"
                call = self._worker.call
                worker = threading.Thread(target=call, args=(self.address,), name=name, daemon=True)
                try:
                    worker.start()
                except RuntimeError:  # no more threads for this process, or it is about to end
                    self.most = self.workers
                    return
                self.workers += 1


def _worker_body(module: Any, builder: Any, values: Any) -> Any:
    emit_worker(builder, values[0])
    return values[0]


_POOL: list[_Pool] = []
_LOCK = threading.Lock()


def pool_address(threads: int) -> int:
    """Address of the pool, with workers for ``threads`` threads at work; 0 if there can be none."""
    if not _POOL:
        with _LOCK:
            if not _POOL:
                _POOL.append(_Pool())
    pool = _POOL[0]
    if not pool.usable:
        return 0
    if pool.workers < min(threads - 1, pool.most):
        pool.grow(threads - 1)
    return pool.address


def _forget() -> None:
    """In a forked child: the parent's workers are not here, its locks may be held."""
    global _LOCK
    _POOL.clear()
    _LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
