"""Object files in memory: what they need, their loading, and functions of Python on top.

Loading takes a millisecond and llvmlite, but no numba. What is loaded stays for the life of the
process: worker threads and functions may be inside it at any time.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

__all__ = ["host", "is_loadable", "load", "python_function"]

_FASTCALL = 0x0080  # METH_FASTCALL of CPython's methodobject.h


class _MethodDef(ctypes.Structure):
    """PyMethodDef of CPython."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_KEPT: list[Any] = []  # engines and method definitions


@cache
def host() -> tuple[str, str, str]:
    """Triple, processor and features that code is made for, as LLVM names them."""
    from llvmlite import binding

    triple, processor = binding.get_process_triple(), binding.get_host_cpu_name()
    return triple, processor, binding.get_host_cpu_features().flatten()


@cache
def _target_machine() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    triple, processor, features = host()
    target = binding.Target.from_triple(triple)
    return target.create_target_machine(
        cpu=processor, features=features, codemodel="jitdefault", jit=True
    )


def load(code: bytes, symbol: str) -> int:
    """Load an object file; the address of a function in it, 0 if it is not there.

    The file must be :func:`is_loadable`: LLVM ends the process if a symbol is missing.
    """
    from llvmlite import binding

    empty = binding.parse_assembly(f'target triple = "{host()[0]}"')
    engine = binding.create_mcjit_compiler(empty, _target_machine())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _KEPT.append(engine)
    return int(engine.get_function_address(symbol))


def python_function(name: str, address: int) -> Callable[..., int]:
    """The builtin function whose C function, of convention METH_FASTCALL, is at an address."""
    definition = _MethodDef(name.encode(), address, _FASTCALL, None)
    _KEPT.append(definition)
    # Bound to a prototype of our own: `ctypes.pythonapi` is shared with everybody.
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    function: Callable[..., int] = make(ctypes.addressof(definition), None, None)
    return function


def is_loadable(code: bytes) -> bool:
    """Whether an object file can be loaded into a process that has not imported numba.

    Its undefined symbols must be found among those of the process; numba has some of its own. That
    can be checked for ELF files where a process has one list of symbols: not on macOS or Windows.
    """
    if code[:5] != b"\x7fELF\x02" or os.name != "posix":
        return False
    process: Any = ctypes.CDLL(None)
    try:
        return all(getattr(process, name, None) is not None for name in _undefined(code))
    except (struct.error, ValueError, IndexError):  # no object file, whatever it begins with
        return False


def _undefined(code: bytes) -> Iterator[str]:
    """Undefined symbols of a 64-bit ELF file (System V ABI, "Object Files")."""
    order = "<" if code[5] == 1 else ">"
    (sections_at,) = struct.unpack_from(f"{order}Q", code, 40)
    size, count = struct.unpack_from(f"{order}HH", code, 58)
    # of each section: name, type, flags, address, offset, size, link, info, alignment, entry size
    sections = [
        struct.unpack_from(f"{order}IIQQQQIIQQ", code, sections_at + k * size) for k in range(count)
    ]
    for _, kind, _, _, start, length, link, _, _, entry in sections:
        if kind != 2:  # SHT_SYMTAB
            continue
        names = sections[link][4]
        for at in range(start + entry, start + length, entry):
            name, _, _, section = struct.unpack_from(f"{order}IBBH", code, at)
            if section == 0 and name:
                first = names + name
                yield code[first : code.index(b"\0", first)].decode()
