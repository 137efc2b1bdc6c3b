"""Keys of compiled code: digests of everything that it depends on.

The forms of the nests say what a plan computes; the sources of this package say how it is
translated; the versions of numba and llvmlite, the processor and the layout of Python's and NumPy's
objects do the rest. Sources are read, not asked for their version or time of change: it takes
3 ms, and an edit can never be missed.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .functions import Function, Product
from .objects import host

__all__ = ["entry_key", "plan_key"]

_PACKAGE = Path(__file__).parent.parent
_ROOT = __name__.partition(".")[0]
_TRANSLATING = ("ir", "fusion", "kernels")  # sub-packages that decide about code
_ASIDE = ("NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "NUMBA_CACHE_DIR")  # do not change code


def plan_key(functions: Sequence[Function]) -> str | None:
    """Key of a plan's code; None if it may not be kept on disk.

    That is so where a program is not part of this package (an op registered by the user), for then
    nobody can tell whether it is what it was.
    """
    texts = [f"matmul {f.name}" if isinstance(f, Product) else f.key for f in functions]
    if any(" at 0x" in text for text in texts):  # the address of an object says nothing
        return None
    sources = set()
    for program in _programs(functions):
        source = _source(getattr(program, "__module__", None) or "")
        if source is None:
            return None
        sources.add(source)
    return _key(["plan", *texts, *sorted(sources)])


def entry_key(name: str) -> str | None:
    """Key of code that this package emits under a name."""
    return _key([f"entry {name}"])


def _programs(functions: Iterable[Function]) -> Iterator[Any]:
    """The scalar programs of all ops, with the functions that they close over."""
    for function in functions:
        if not isinstance(function, Product):
            for op in function.ops():
                for program in (op.scalar, op.complex_scalar, op.check):
                    yield from _with_enclosed(program)


def _with_enclosed(program: Any) -> Iterator[Any]:
    if program is not None:
        yield program
        for cell in getattr(program, "__closure__", None) or ():
            if callable(cell.cell_contents):
                yield from _with_enclosed(cell.cell_contents)


def _key(texts: Sequence[str]) -> str | None:
    common = _environment()
    if common is None:
        return None
    digest = blake2b(common, digest_size=20)
    for text in texts:
        content = text.encode()
        digest.update(b"%d\n" % len(content))
        digest.update(content)
    return digest.hexdigest()


@cache
def _source(module: str) -> str | None:
    """Digest of the source of a scalar program outside of what all keys cover; None if foreign."""
    root, _, rest = module.partition(".")
    if root != _ROOT:
        return None
    if rest.partition(".")[0] in _TRANSLATING:
        return ""
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None:
        return None
    try:
        return blake2b(Path(path).read_bytes(), digest_size=20).hexdigest()
    except OSError:
        return None


@cache
def _environment() -> bytes | None:
    """Digest of what all code depends on; None if that cannot be told."""
    digest = blake2b(digest_size=32)
    count = 0
    for path in _sources():
        with open(path, "rb") as file:
            content = file.read()
        digest.update(f"{path[len(str(_PACKAGE)) :]} {len(content)}\n".encode())
        digest.update(content)
        count += 1
    if not count:  # installed without files, say in an archive
        return None
    import numpy

    settings = [f"{k}={v}" for k, v in os.environ.items() if k.startswith("NUMBA_")]
    facts = [
        *host(),
        *(_version(name) for name in ("numba", "llvmlite")),
        f"{sys.implementation.cache_tag} {sys.abiflags if os.name == 'posix' else ''}",
        f"{sys.version_info[:3]} {struct.calcsize('P')} {sys.byteorder} {object.__basicsize__}",
        f"numpy {numpy.__version__}",
        *sorted(s for s in settings if not s.startswith(_ASIDE)),
    ]
    digest.update("\n".join(facts).encode())
    return digest.digest()


def _sources() -> Iterator[str]:
    """Files of the translating sub-packages; compiled ones count where there is nothing else."""
    for part in _TRANSLATING:
        for folder, inner, names in os.walk(_PACKAGE / part):
            inner[:] = sorted(name for name in inner if name != "__pycache__")
            for name in sorted(names):
                if name.endswith((".py", ".pyc")):
                    yield os.path.join(folder, name)


def _version(name: str) -> str:
    """What tells versions of an installed package apart, without importing it."""
    spec = find_spec(name)
    if spec is None or not spec.origin:
        return f"{name} missing"
    folder = Path(spec.origin).parent
    try:
        text = (folder / "_version.py").read_text()
    except OSError:
        from importlib import metadata

        text = metadata.version(name)
    return f"{name} {text}"
