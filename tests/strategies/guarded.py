"""Arrays that end where memory ends: one byte beyond, or one before, is a segmentation fault."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from tilegrad.kernels import plan as plan_module

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


def run_guarded(plan, arrays, threads=1, *, at_end=True):
    """Run a plan with operands, results and arena between inaccessible pages, each of its own."""
    made = []

    def result(shape, dtype, nbytes):
        made.append(nbytes)
        return guarded(shape, dtype, at_end=at_end)

    plan._arenas.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "new_array", result)
        patch.setattr(plan_module, "block", lambda n: guarded((n,), np.uint8, at_end=at_end))
        patch.setattr(plan, "short", None)  # small results come straight from NumPy
        outputs = plan.run([guarded_copy(a, at_end=at_end) for a in arrays], threads)
    assert len(made) == len(plan.results)  # or a plan gets its memory elsewhere, unguarded
    return outputs
