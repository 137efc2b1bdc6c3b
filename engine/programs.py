"""From graphs to plans: the pass pipeline and the compiler, with the table of what is compiled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from ..ir.graph import Graph
from ..ir.types import TensorType
from .config import config

__all__ = ["PlanTable", "Stats", "compile_program", "is_large", "run_plan"]


def compile_program(graph: Graph) -> Any:
    """The plan of a closed graph: passes, then code. Imports the compiler at first need."""
    from ..ir.passes.manager import optimize
    from ..kernels.plan import compile_graph

    return compile_graph(optimize(graph))


# Elements below which waking other threads costs more than they save.
_WORTH_THREADS = 32_768


def is_large(types: Iterable[TensorType]) -> bool:
    """Whether a program with values of these types is worth several threads."""
    return any(t.size >= _WORTH_THREADS for t in types)


def run_plan(plan: Any, buffers: list[Any], large: bool) -> list[Any]:
    """The outputs of a plan, on the threads of the configuration if it is large."""
    if large and config.num_threads > 1:
        return plan.run(buffers, config.num_threads)  # type: ignore[no-any-return]
    return plan.run(buffers)  # type: ignore[no-any-return]


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
        Programs compiled.
    hits : int
        Times a compiled program was found in the table.
    """

    calls: int = 0
    traces: int = 0
    compiles: int = 0
    hits: int = 0


class PlanTable:
    """Plans by canonical key; the oldest are dropped when there are too many.

    Safe under threads: a key is compiled once, others wait for it.
    """

    def __init__(self, limit: int) -> None:
        self.stats = Stats()
        self._limit = limit
        self._plans: dict[Hashable, Any] = {}
        self._lock = threading.Lock()
        self._compiling: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable) -> Any:
        """The plan of a key, or None."""
        return self._plans.get(key)

    def seen(self, key: Hashable) -> bool:
        """Whether the key was asked for before; remembers it."""
        if key in self._plans:
            return True
        with self._lock:
            self._make_room()
            self._plans[key] = None
        return False

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
            plan = compile_program(graph())
            with self._lock:
                self._make_room()
                self._plans[key] = plan
                self.stats.compiles += 1
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

    def __len__(self) -> int:
        return len(self._plans)
