"""Addresses of BLAS and LAPACK routines: those of the library that SciPy brings.

SciPy's wheels hold OpenBLAS as a file of its own, which loads in 6 ms; ``import scipy.linalg``,
which hands out the same functions, takes 300. Other builds of SciPy are asked in that way: its
``cython_blas`` exports its routines as capsules that hold C function pointers.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["routine_address", "thread_control"]


@cache
def _library() -> Any:
    """OpenBLAS of SciPy's wheel; None if this SciPy was built in another way."""
    spec = find_spec("scipy")
    if spec is not None and spec.origin:
        folder = Path(spec.origin).parent.parent / "scipy.libs"
        for path in sorted(folder.glob("libscipy_openblas*")):
            try:
                return ctypes.CDLL(str(path))
            except OSError:
                continue
    return None


def _address(name: str) -> int:
    function = getattr(_library(), name, None)
    return (ctypes.cast(function, ctypes.c_void_p).value or 0) if function is not None else 0


@cache
def routine_address(name: str) -> int:
    """Address of a BLAS or LAPACK routine (``dgemm``): Fortran's arguments, integers of 32 bits."""
    return _address(f"scipy_{name}_") or _exported(name)


def _exported(name: str) -> int:
    """The address in a capsule of ``scipy.linalg.cython_blas`` or ``cython_lapack``."""
    from scipy.linalg import cython_blas, cython_lapack

    known = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
    capsule = known[name]
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetName", ctypes.pythonapi)
    )
    pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    address = pointer_in(capsule, name_of(capsule))
    assert isinstance(address, int)
    return address


@cache
def thread_control() -> tuple[int, int]:
    """Addresses of OpenBLAS's ``get_num_threads`` and ``set_num_threads``; (0, 0) without them."""
    names = ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads")
    found = [_address(name) for name in names]
    return (found[0], found[1]) if all(found) else (0, 0)
