"""What a workload is, and the table of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .sides import Side

__all__ = ["GROUPS", "WORKLOADS", "Case", "Fresh", "Workload", "chosen", "workload"]

GROUPS = ("call", "elementwise", "rows", "dense", "ml", "loop", "compile")


@dataclass(frozen=True)
class Case:
    """A workload at one size.

    Attributes
    ----------
    program : callable
        ``program(side)`` is the function of arrays to be timed.
    arguments : tuple
        Pytrees of NumPy arrays.
    jit : bool
        Whether the function is compiled as a whole.
    lift : bool
        Whether the arguments become arrays of the side before the clock starts.
    tolerance : float
        By which results may differ, relative to the largest.
    peers : tuple of str
        Sides beside ours that run it; the workload's target is meant against the first.
    """

    program: Callable[[Side], Callable[..., Any]]
    arguments: tuple[Any, ...]
    jit: bool = True
    lift: bool = True
    tolerance: float = 1e-9
    peers: tuple[str, ...] = ("jax",)


@dataclass(frozen=True)
class Fresh:
    """A workload that needs new processes: ``seconds(side name)`` runs one and returns its time."""

    seconds: Callable[[str], float]
    peers: tuple[str, ...] = ("jax",)
    repeats: int = 3


@dataclass(frozen=True)
class Workload:
    """A named program with its sizes.

    Attributes
    ----------
    group, name : str
    target : float
        Largest ratio of our time to the first peer's that we are content with.
    sizes : tuple of int
        Ascending; a plot shows all, a test runs the first.
    size : int
        The one that the table shows.
    build : callable
        ``build(size) -> Case`` or ``Fresh``.
    """

    group: str
    name: str
    target: float
    sizes: tuple[int, ...]
    size: int
    build: Callable[[int], Case | Fresh]


WORKLOADS: list[Workload] = []


def workload(
    group: str, name: str, target: float, sizes: Iterable[int] = (1,), size: int | None = None
) -> Callable[[Callable[[int], Case | Fresh]], Callable[[int], Case | Fresh]]:
    """Decorator that enters ``build(size)`` into the table; the last size is shown by default."""
    if group not in GROUPS:
        raise ValueError(f"workload: expected a group of {', '.join(GROUPS)}, got {group!r}")

    def add(build: Callable[[int], Case | Fresh]) -> Callable[[int], Case | Fresh]:
        all_sizes = tuple(sizes)
        shown = all_sizes[-1] if size is None else size
        WORKLOADS.append(Workload(group, name, target, all_sizes, shown, build))
        return build

    return add


def chosen(groups: Iterable[str] = (), only: str = "") -> list[Workload]:
    """The workloads of some groups (all if none are named) whose name contains ``only``."""
    from . import calls, compiling, dense, elementwise, learning, loops, rows  # noqa: F401 - enter theirs

    wanted = tuple(groups) or GROUPS
    for group in wanted:
        if group not in GROUPS:
            raise ValueError(f"expected a group of {', '.join(GROUPS)}, got {group!r}")
    found = [w for w in WORKLOADS if w.group in wanted and only in w.name]
    return sorted(found, key=lambda w: GROUPS.index(w.group))
