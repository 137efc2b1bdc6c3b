"""Arrays that end where memory ends: one byte beyond, or one before, is a segmentation fault."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


def guarded(shape, dtype, *, at_end=True):
    """An uninitialized array that touches an inaccessible page with its last (or first) byte."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    nbytes = count * dtype.itemsize
    inner = max(-(-nbytes // PAGE), 1) * PAGE
    memory = mmap.mmap(-1, inner + 2 * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for place in (start, start + PAGE + inner):
        if _libc.mprotect(ctypes.c_void_p(place), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    first = PAGE + (inner - nbytes if at_end else 0)
    flat = np.frombuffer(memory, np.uint8, nbytes, first)
    flat[...] = 0xA5  # no zeros by luck
    return flat.view(dtype).reshape(shape)


def guarded_copy(array, *, at_end=True):
    array = np.asarray(array)
    copy = guarded(array.shape, array.dtype, at_end=at_end)
    copy[...] = array
    return copy


class GuardedNumpy:
    """NumPy with ``empty`` from guarded memory: what a plan allocates stands at a guard too."""

    def __init__(self, at_end):
        self.at_end = at_end

    def __getattr__(self, name):
        return getattr(np, name)

    def empty(self, shape, dtype=float):
        return guarded(shape, dtype, at_end=self.at_end)
