"""Taking times: sides take turns, the median counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median, quantiles

__all__ = ["Times", "alternate"]

WARM_UP = 3
FEWEST, MOST = 7, 2000


@dataclass(frozen=True)
class Times:
    """Seconds of one side.

    Attributes
    ----------
    median, p95 : float
        Of all calls; the best ones flatter, the mean is the neighbours'.
    calls : int
    """

    median: float
    p95: float
    calls: int

    @staticmethod
    def of(seconds: list[float]) -> Times:
        """The summary of some calls."""
        high = quantiles(seconds, n=20)[-1] if len(seconds) > 1 else seconds[0]
        return Times(median(seconds), high, len(seconds))


def alternate(calls: Mapping[str, Callable[[], object]], budget: float) -> dict[str, Times]:
    """Times of each call, which take turns until ``budget`` seconds have gone by.

    At least 7 rounds are made, so that a slow call may take longer than the budget; 3 go before.
    """
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + budget
    rounds = 0
    while rounds < FEWEST or (rounds < MOST and time.perf_counter() < end):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
        rounds += 1
    return {name: Times.of(taken) for name, taken in seconds.items()}
