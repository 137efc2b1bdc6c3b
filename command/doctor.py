"""Show versions, processor, threads and cache folder, and what is missing."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator
from importlib import metadata, util

from ..kernels.cache import store

_REQUIRED = ("numpy", "scipy", "numba", "llvmlite")
_OPTIONAL = {
    "cupy": ("CUDA devices", "cuda"),
    "mpi4py": ("several hosts", "mpi"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the subcommand takes: nothing."""


def run(arguments: argparse.Namespace) -> int:
    """Print the report.

    Returns
    -------
    int
        0; 1 if something is missing that tilegrad cannot do without.
    """
    missing = [name for name in _REQUIRED if _version(name) is None]
    for title, text in _report():
        print(f"{title:<18} {text}")
    for name in missing:
        print(f"{name} is missing, and tilegrad needs it: pip install {name}")
    return 1 if missing else 0


def _report() -> Iterator[tuple[str, str]]:
    yield "tilegrad", metadata.version("tilegrad")
    yield "python", f"{platform.python_version()} ({platform.python_implementation()})"
    yield "system", platform.platform()
    for name in _REQUIRED:
        yield name, _version(name) or "missing"
    for name, (purpose, extra) in _OPTIONAL.items():
        hint = f"not installed (optional, for {purpose}: pip install 'tilegrad[{extra}]')"
        yield name, _version(name) or hint
    yield from _processor()
    yield from _threads()
    yield "CUDA devices", _cuda_devices()
    yield "cache folder", _cache_state()


def _version(module: str) -> str | None:
    """The version of an importable module, without importing it.

    The distribution may bear another name than the module (cupy comes as cupy-cuda12x).
    """
    if util.find_spec(module) is None:
        return None
    for distribution in metadata.packages_distributions().get(module, [module]):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return "installed, version unknown"


def _processor() -> Iterator[tuple[str, str]]:
    if _version("llvmlite") is None:
        yield "processor", platform.processor() or platform.machine()
        return
    from llvmlite import binding

    yield "processor", f"{binding.get_host_cpu_name()}, {os.cpu_count()} logical cores"
    features = binding.get_host_cpu_features()
    yield "features", " ".join(sorted(name for name, present in features.items() if present))


def _threads() -> Iterator[tuple[str, str]]:
    """Our own pool shares the work; it needs unnamed semaphores (Linux)."""
    from ..engine.config import config
    from ..kernels.pool import pool_address

    usable = pool_address(1) != 0
    yield "threading layer", "own pool of workers" if usable else "none (no unnamed semaphores)"
    yield "threads", str(config.num_threads)


def _cuda_devices() -> str:
    if _version("cupy") is None:
        return "none (no cupy)"
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"none ({error})"
    return str(count)


def _cache_state() -> str:
    kept = store()
    folder = kept.folder
    if not kept.limit:
        return f"{folder} (switched off)"
    if not folder.exists():
        return f"{folder} (not made yet)"
    if not os.access(folder, os.W_OK):
        return f"{folder} (not writable: nothing will be kept)"
    count, size = kept.usage()
    return f"{folder} ({count} files, {size / 1e6:.1f} MB)"
