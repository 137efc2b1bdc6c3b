"""What this machine can do at best, measured: the floor under every time."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

import numpy as np

__all__ = ["Machine", "measure"]


@dataclass(frozen=True)
class Machine:
    """Rates of all the CPUs that this process may use.

    Attributes
    ----------
    bandwidth : float
        Bytes a second read and written by a copy that no cache holds.
    peak : float
        float64 operations a second (a multiplication-addition is two), reached by the matrix
        product of the BLAS.
    cpus : int
    """

    bandwidth: float
    peak: float
    cpus: int

    def floor(self, nbytes: float, flops: float) -> float:
        """Seconds that moving so much and computing so much take at least (Williams, Waterman and
        Patterson 2009, the roofline model)."""
        return max(nbytes / self.bandwidth, flops / self.peak)


def measure(megabytes: int = 160, order: int = 1024, repeats: int = 5) -> Machine:
    """Measure this machine; the best of some tries, for the machine is never all ours."""
    try:
        cpus = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cpus = os.cpu_count() or 1
    count = megabytes * 1_000_000 // 8
    source, target = np.ones(count), np.zeros(count)
    copied = min(_copy(source, target, cpus) for _ in range(repeats))
    x = np.random.default_rng(0).normal(size=(order, order))
    multiplied = min(_seconds(x) for _ in range(repeats))
    return Machine(2 * source.nbytes / copied, 2 * order**3 / multiplied, cpus)


def _copy(source: np.ndarray, target: np.ndarray, threads: int) -> float:
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads), strict=True))
    workers = [threading.Thread(target=np.copyto, args=(t, s)) for s, t in parts[1:]]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    np.copyto(parts[0][1], parts[0][0])
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def _seconds(x: np.ndarray) -> float:
    start = time.perf_counter()
    x @ x
    return time.perf_counter() - start
