"""What this machine takes for what steps are made of; threads share a step where that pays.

The constants in the text are those of one machine (Zen 5, two threads). A process that has computed
for a while measures its own, which takes about 0.2 s, and keeps them beside the code on disk, a few
numbers in JSON; later processes find them there. Where nothing can be kept nothing is measured, and
what a machine shows while others have its processors is not believed.
They decide in how many pieces a step is cut and nothing else: no bit of a result depends on them.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from .cache import store
from .objects import host

__all__ = ["Costs", "current", "measure", "remember"]


@dataclass(frozen=True, slots=True)
class Costs:
    """Constants of a machine.

    Attributes
    ----------
    operation : float
        Nanoseconds of one operation on one element, in vectors, from the first-level cache.
    launch : float
        Nanoseconds that sharing a step among all threads takes beyond its even share of work.
    bandwidth, shared_bandwidth : float
        Bytes a nanosecond that one thread moves and all threads move, from memory and back.
    threads : int
        How many "all" were.
    """

    operation: float = 0.06
    launch: float = 2000.0
    bandwidth: float = 12.0
    shared_bandwidth: float = 20.0
    threads: int = 2

    def is_sound(self) -> bool:
        """Whether they may be true of a machine: they come from a file."""
        numbers = (self.operation, self.launch, self.bandwidth, self.shared_bandwidth)
        if not all(isinstance(n, float) and np.isfinite(n) for n in numbers):
            return False
        return 1e-3 < self.operation < 10 and 100 <= self.launch < 1e6 and min(numbers[2:]) > 0.01


BUILT_IN = Costs()
BUSY = 20.0  # seconds of CPU time after which a process does not feel the measurement
TRIES = 3

_lock = threading.Lock()
_current: Costs | None = None
_tries = 0  # measurements still allowed: none once the constants are known


def current(threads: int = 1) -> Costs:
    """The constants as far as they are known; measures them in a busy process of many threads."""
    global _current, _tries
    found = _current
    if found is None:
        kept = _kept()
        found = _current = kept or BUILT_IN
        _tries = 0 if kept or not store().limit else TRIES
    wait = BUSY * (TRIES + 1 - _tries)
    if threads > 1 and _tries and time.process_time() > wait and _lock.acquire(False):
        try:
            _tries -= 1  # before: what is measured asks for them too
            measured = measure(threads)
            if measured is not None:
                remember(measured)
        finally:
            _lock.release()
    return _current or found


def remember(costs: Costs) -> bool:
    """Use these from now on, and keep them for other processes; whether that worked."""
    global _current, _tries
    if not costs.is_sound():
        return False
    _current, _tries = costs, 0
    return store().put(_key(), json.dumps(asdict(costs)).encode())


def _key() -> str:
    text = "\n".join([*host(), str(os.cpu_count())])
    return f"costs-{blake2b(text.encode(), digest_size=16).hexdigest()}"


def _kept() -> Costs | None:
    """What another process has measured on this machine."""
    block = store().get(_key())
    if block is None:
        return None
    try:
        found = Costs(**json.loads(block))
    except (ValueError, TypeError):
        return None
    return found if found.is_sound() else None


def measure(threads: int) -> Costs | None:
    """Measure this machine with plans of our own; the best of some tries, for we are not alone.

    None where work shared by all threads was not done much faster than by one.
    """
    near, far = np.full(4096, 0.5), np.full(2_000_000, 0.5)
    shared = np.full(65_536, 0.5)
    operation = _best(_plan(_horner, near), near, 1, 50) / (near.size * 2 * _DEGREE)
    long, stream = _plan(_horner, shared), _plan(_scaled, far)
    alone, together = (_best(long, shared, n, 20) for n in (1, threads))
    if together > 0.75 * alone:
        return None
    moved = 2 * far.nbytes
    return Costs(
        operation=operation,
        launch=min(max(together - alone / threads, 500.0), 20_000.0),
        bandwidth=moved / _best(stream, far, 1, 5),
        shared_bandwidth=moved / _best(stream, far, threads, 5),
        threads=threads,
    )


_DEGREE = 32


def _horner(x: Any) -> Any:
    y = x
    for _ in range(_DEGREE):
        y = y * x + 0.5
    return y


def _scaled(x: Any) -> Any:
    return x * 1.5


def _plan(function: Any, x: np.ndarray[Any, Any]) -> Any:
    from ..ir.dtypes import float64
    from ..ir.graph import Graph
    from ..ir.ops.leaves import input_node
    from ..ir.types import TensorType
    from .plan import compile_graph

    node = input_node(TensorType(x.shape, float64), "x")
    return compile_graph(Graph((node,), (function(node.out),)))


def _best(plan: Any, x: np.ndarray[Any, Any], threads: int, tries: int) -> float:
    """Nanoseconds of the fastest call."""
    fastest = float("inf")
    for _ in range(tries + 2):
        start = time.perf_counter_ns()
        plan.run([x], threads)
        fastest = min(fastest, time.perf_counter_ns() - start)
    return max(fastest, 1.0)
