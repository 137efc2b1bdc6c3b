"""One workload, measured: values compared first, then times, then what it should cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .machine import Machine
from .sides import OURS, Side, is_there, side
from .timing import Times, alternate
from .workloads import Case, Fresh, Workload

__all__ = ["Prepared", "Result", "measure", "prepare"]

# Programs that touch fewer bytes may find them in a cache, for which the floor does not hold.
CACHED = 16_000_000


@dataclass(frozen=True)
class Result:
    """What came out.

    Attributes
    ----------
    group, name, target
        Of the workload.
    size : int
    against : str
        The peer that the target is meant against.
    times : dict of Times
        By side; ours is missing if we cannot run it.
    nbytes, flops : int or None
        What our program moves and computes, by its own estimate.
    floor : float or None
        Seconds that this takes the machine at least.
    fault : str
        Why there are no times: a wrong value, an error.
    """

    group: str
    name: str
    target: float
    size: int
    against: str = ""
    times: dict[str, Times] = field(default_factory=dict)
    nbytes: int | None = None
    flops: int | None = None
    floor: float | None = None
    fault: str = ""

    @property
    def peer(self) -> str | None:
        """The side that ours is held against: the first one there."""
        return next((name for name in self.times if name != OURS), None)

    @property
    def over(self) -> bool | None:
        """Whether we are slower than the target, which holds against one peer only."""
        return None if self.ratio is None or self.peer != self.against else self.ratio > self.target

    @property
    def ratio(self) -> float | None:
        """Our time to the peer's."""
        if self.peer is None or OURS not in self.times:
            return None
        return self.times[OURS].median / self.times[self.peer].median

    @property
    def share(self) -> float | None:
        """The part of our time that the machine needs at least."""
        if self.floor is None or OURS not in self.times:
            return None
        return self.floor / self.times[OURS].median


def measure(
    work: Workload,
    size: int,
    machine: Machine | None = None,
    peers: Sequence[str] | None = None,
    budget: float = 1.0,
) -> Result:
    """Run a workload at one size on our side and on the peers that are there.

    Parameters
    ----------
    work : Workload
    size : int
    machine : Machine, optional
        For the floor.
    peers : sequence of str, optional
        Sides to hold against, of those the workload names.
    budget : float
        Seconds.

    Returns
    -------
    Result
        A workload that fails is a result with its fault.
    """
    try:
        case = work.build(size)
        names = [OURS]
        names += [p for p in case.peers if (peers is None or p in peers) and is_there(p)]
        if isinstance(case, Fresh):
            taken: dict[str, list[float]] = {name: [] for name in names}
            for _ in range(case.repeats):
                for name in names:
                    taken[name].append(case.seconds(name))
            times = {name: Times.of(seconds) for name, seconds in taken.items()}
            return Result(work.group, work.name, work.target, size, case.peers[0], times)
        return _measure_case(work, size, case, names, machine, budget)
    except Exception as error:  # noqa: BLE001 - the row shows it, the others go on
        first = (str(error).splitlines() or [""])[0]
        fault = f"{type(error).__name__}: {first}"
        return Result(work.group, work.name, work.target, size, fault=fault)


@dataclass(frozen=True)
class Prepared:
    """A case ready to be timed: a call a side, whose values agree, and the cost of ours."""

    calls: dict[str, Callable[[], None]]
    cost: dict[str, Any]


def prepare(case: Case, names: Iterable[str]) -> Prepared:
    """Build a case for some sides, ours first, and compare the values.

    Raises
    ------
    ArithmeticError
        If a result differs from ours in shape, or in value by more than the case allows.
    """
    calls: dict[str, Callable[[], None]] = {}
    values: dict[str, list[np.ndarray]] = {}
    cost: dict[str, Any] = {}
    for name in names:
        this = side(name)
        function = case.program(this)
        arguments = _lifted(case.arguments, this) if case.lift else case.arguments
        this.wait(arguments)
        if case.jit:
            function = this.jit(function)
            if name == OURS:
                cost = function.lower(*arguments).cost()
        values[name] = list(_arrays(function(*arguments)))
        calls[name] = _call(this, function, arguments)
    for name in calls:
        _compare(values[OURS], values[name], name, case.tolerance)
    return Prepared(calls, cost)


def _measure_case(
    work: Workload,
    size: int,
    case: Case,
    names: Sequence[str],
    machine: Machine | None,
    budget: float,
) -> Result:
    prepared = prepare(case, names)
    times = alternate(prepared.calls, budget)
    nbytes, flops = prepared.cost.get("bytes"), prepared.cost.get("flops")
    floor = None
    if machine is not None and nbytes is not None and flops is not None and nbytes > CACHED:
        floor = machine.floor(nbytes, flops)
    against = case.peers[0]
    return Result(work.group, work.name, work.target, size, against, times, nbytes, flops, floor)


def _call(this: Side, function: Callable[..., Any], arguments: Any) -> Callable[[], None]:
    return lambda: this.wait(function(*arguments))


def _lifted(tree: Any, this: Side) -> Any:
    if isinstance(tree, dict):
        return {key: _lifted(x, this) for key, x in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)([_lifted(x, this) for x in tree])
    return this.asarray(tree)


def _arrays(tree: Any) -> Iterator[np.ndarray]:
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield from _arrays(tree[key])
    elif isinstance(tree, (tuple, list)):
        for x in tree:
            yield from _arrays(x)
    else:
        yield np.asarray(tree)


def _compare(ours: list[Any], theirs: list[Any], peer: str, tolerance: float) -> None:
    """Raise unless two results agree in shapes, and in values up to the tolerance."""
    for k, (u, v) in enumerate(zip(ours, theirs, strict=True)):
        if u.shape != v.shape:
            raise ArithmeticError(f"result {k}: shape {u.shape}, but {peer} gives {v.shape}")
        scale = max(1.0, float(np.max(np.abs(v), initial=0)))
        if not np.allclose(u, v, rtol=tolerance, atol=tolerance * scale):
            error = np.max(np.abs(u - v)) / scale
            raise ArithmeticError(f"result {k}: is off {peer}'s by {error:.1e} of the largest")
