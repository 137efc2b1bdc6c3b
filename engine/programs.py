"""From graphs to plans: the pass pipeline and the compiler, with the table of what is compiled."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from ..ir.graph import Graph
from .config import config

__all__ = ["PlanTable", "Ready", "Stats", "compile_program", "fitted"]


def compile_program(graph: Graph) -> Any:
    """The plan of a closed graph: passes, then code. Imports the compiler at first need."""
    from ..ir.passes.manager import optimize
    from ..kernels.plan import compile_graph

    nodes = graph.nodes()
    if len(nodes) == 1 and nodes[0].op.kind not in (
        "custom",
        "region",
    ):  # nothing to optimize; eager code makes
        return compile_graph(graph)  # many of these
    start = time.perf_counter()
    optimized = optimize(graph)
    seconds = time.perf_counter() - start
    plan = compile_graph(optimized)
    plan.seconds = {"optimize": seconds, **plan.seconds}
    return plan


def fitted(graph: Graph, budget: int) -> Graph:
    """The graph, optimized, or one of the same bits that is compiled into so many bytes."""
    from ..fusion.fit import fit
    from ..ir.passes.manager import optimize

    return fit(optimize(graph), budget, f"jit({graph.name})")


# Elements below which waking other threads costs more than they save.
_WORTH_THREADS = 32_768


class Ready:
    """A plan with the way to run it.

    Attributes
    ----------
    plan : Plan
        What the compiler made.
    run : callable
        ``run(buffers) -> list of buffers``: the plan's own, or for a large program one that adds
        the threads of the configuration.
    """

    __slots__ = ("plan", "run")

    def __init__(self, graph: Graph) -> None:
        self.plan = compile_program(graph)
        types = [t for node in (*graph.inputs, *graph.nodes()) for t in node.types]
        large = any(t.size >= _WORTH_THREADS for t in types)
        self.run: Callable[[list[Any]], list[Any]] = self.plan.run
        if large:
            self.run = self._run_large
        elif self.plan.short is not None:
            self.run = self.plan.short.run

    def run_over(self, buffers: list[Any], donated: tuple[int, ...]) -> list[Any]:
        """The same, where results may lie in the memory of the buffers at these places."""
        threads = config.num_threads if self.run == self._run_large else 1
        return self.plan.run(buffers, threads, donated)  # type: ignore[no-any-return]

    def _run_large(self, buffers: list[Any]) -> list[Any]:
        return self.plan.run(buffers, config.num_threads)  # type: ignore[no-any-return]


@dataclass(slots=True)
class Stats:
    """Counters since the start of the process.

    Attributes
    ----------
    calls : int
        Programs run.
    traces : int
        Functions traced.
    compiles : int
        Programs compiled, but for those whose code was found on disk.
    hits : int
        Times a compiled program was found in the table.
    """

    calls: int = 0
    traces: int = 0
    compiles: int = 0
    hits: int = 0


_TABLES: weakref.WeakSet[PlanTable] = weakref.WeakSet()


def _after_fork() -> None:
    for table in _TABLES:
        table._renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class PlanTable:
    """Plans by canonical key; the oldest are dropped when there are too many.

    Safe under threads: a key is compiled once, others wait for it.
    """

    def __init__(self, limit: int) -> None:
        self.stats = Stats()
        self._limit = limit
        self._plans: dict[Hashable, Any] = {}
        self._seen: dict[Hashable, int] = {}  # how often, before there is a plan
        self._renew_locks()
        _TABLES.add(self)

    def _renew_locks(self) -> None:
        """New locks, at the start and in a forked child: nobody is there to let go of the old."""
        self._lock = threading.Lock()
        self._compiling: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable) -> Any:
        """The plan of a key, or None."""
        return self._plans.get(key)

    def put(self, key: Hashable, plan: Any) -> None:
        """Let a plan be found by another key too."""
        with self._lock:
            self._make_room()
            self._plans[key] = plan

    def seen(self, key: Hashable, times: int = 1) -> bool:
        """Whether the key was asked for so many times before; remembers that it is now."""
        with self._lock:
            if key in self._plans:
                return True
            known = self._seen.get(key, 0)
            if known < times:
                if len(self._seen) >= 2 * self._limit:
                    self._seen.clear()
                self._seen[key] = known + 1
                return False
            self._seen.pop(key, None)
        return True

    def compiled(self, key: Hashable, graph: Callable[[], Graph]) -> Any:
        """The plan of a key, compiled from ``graph()`` if it is not there yet."""
        plan = self._plans.get(key)
        if plan is not None:
            self.stats.hits += 1
            return plan
        with self._lock:
            own = self._compiling.setdefault(key, threading.Lock())
        with own:
            plan = self._plans.get(key)
            if plan is not None:
                self.stats.hits += 1
                return plan
            plan = Ready(graph())
            with self._lock:
                self._make_room()
                self._plans[key] = plan
                self.stats.compiles += not plan.plan.from_disk
                self._compiling.pop(key, None)
        return plan

    def _make_room(self) -> None:
        if len(self._plans) >= self._limit:
            for key in list(self._plans)[: self._limit // 2]:
                del self._plans[key]

    def clear(self) -> None:
        """Forget all plans."""
        with self._lock:
            self._plans.clear()
            self._seen.clear()

    def __len__(self) -> int:
        return len(self._plans)
