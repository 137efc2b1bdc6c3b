"""Counting what is done: traces, compilations, kernels, bytes, allocations."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

from ..kernels.events import LISTENERS

__all__ = ["Counters", "counters"]


@dataclass(slots=True, eq=False)
class Counters:
    """Amounts since the context was entered; final once it is left.

    Attributes
    ----------
    traces : int
        Functions run on stand-ins for their arguments.
    plans : int
        Programs scheduled: each is a new graph or has new shapes.
    compilations, loads : int
        Times machine code was made, and times it was found on disk. Plans whose kernels differ in
        extents only share it.
    programs : int
        Compiled programs run.
    kernels : int
        Steps of these programs: loop nests, tiles, matrix products, library calls.
    library_calls : int
        Those of them that are calls of a NumPy routine.
    bytes : int
        Bytes that the steps read and wrote, each buffer once a step: an estimate from the
        schedule, which knows nothing of caches.
    flops : int
        Floating-point operations, an estimate from the schedule.
    allocations, allocated_bytes : int
        Arrays asked of the system for results and intermediates. Blocks that are used again do
        not count.
    """

    traces: int = 0
    plans: int = 0
    compilations: int = 0
    loads: int = 0
    programs: int = 0
    kernels: int = 0
    library_calls: int = 0
    bytes: int = 0
    flops: int = 0
    allocations: int = 0
    allocated_bytes: int = 0
    _lock: Any = field(default_factory=threading.Lock, repr=False)

    def add(self, amounts: dict[str, int]) -> None:
        """Add amounts by name."""
        with self._lock:
            for name, amount in amounts.items():
                setattr(self, name, getattr(self, name) + amount)

    def as_dict(self) -> dict[str, int]:
        """The amounts by name, as of now."""
        with self._lock:
            return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "_lock"}


@contextmanager
def counters() -> Iterator[Counters]:
    """A context that counts what tilegrad does inside, in all threads of this process.

    Contexts nest; each counts for itself. Outside of any the machinery only looks whether one is
    open.

    Returns
    -------
    context manager of Counters

    Notes
    -----
    Arrays are computed when they are looked at: what is still pending at the end of the context is
    not counted, so wait for it (:func:`tilegrad.eval`). Operations on single arrays that only move
    the view (``x.T``, ``x[1:]``) are NumPy's and no kernels.

    Examples
    --------
    >>> import tilegrad as tg
    >>> f = tg.jit(lambda x: tg.sum(tg.sin(x) ** 2))
    >>> x = tg.ones(1000)
    >>> with tg.counters() as first:
    ...     y = f(x)
    >>> with tg.counters() as second:
    ...     y = f(x)
    >>> first.traces, second.traces, second.compilations
    (1, 0, 0)
    >>> second.kernels, second.bytes  # one loop: 1000 numbers are read, one is written
    (1, 8008)
    """
    found = Counters()
    LISTENERS.append(found.add)
    try:
        yield found
    finally:
        LISTENERS.remove(found.add)
