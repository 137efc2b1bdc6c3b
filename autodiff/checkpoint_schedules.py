"""In which order a chain of steps is reversed when not all of its states fit into memory.

A chain ``z[k + 1] = step(z[k])``, ``k = 0 .. steps - 1``, is run backwards: ``reverse(k)``, for
``k = steps - 1`` down to ``0``, needs ``z[k]``. With a slot for every state nothing is computed
twice; with fewer, states are computed again from the last one that was kept. A *schedule* is the
list of actions, over integers alone; :func:`count` plays it and refuses one that cannot be carried
out. What a schedule costs is its number of ``advance`` steps: ``reverse`` runs its own step.

- :func:`binomial`: the least advances possible for a number of slots (Griewank, Walther, Algorithm
  799: revolve, ACM TOMS 26, 2000);
- :func:`uniform`: segments, each stored whole when its turn comes (Chen et al., 2016): every step
  is computed twice at most;
- :func:`online`: for a chain whose length shows only at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import comb

from ..ir.records import record

__all__ = [
    "Action",
    "Counts",
    "advances",
    "binomial",
    "count",
    "longest",
    "online",
    "repetitions",
    "thinned_stride",
    "uniform",
]


@record()
class Action:
    """One action of a schedule on the state ``z[at]``.

    ============  =========================================================
    ``kind``      meaning
    ============  =========================================================
    ``store``     write the current state, ``z[at]``, into a free slot
    ``restore``   make ``z[at]``, which is in a slot, the current state
    ``free``      give up the slot of ``z[at]``
    ``advance``   from the current state ``z[at]`` to ``z[to]``
    ``reverse``   the backward step from ``z[at + 1]`` to the current ``z[at]``
    ============  =========================================================
    """

    kind: str
    at: int
    to: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    """What a schedule does: advances in all, the most for one step, the most slots in use."""

    advances: int
    repetitions: int
    slots: int


def count(actions: Iterable[Action], steps: int) -> Counts:
    """Play a schedule for a chain of ``steps``.

    Raises
    ------
    ValueError
        If an action needs a state that is not there, or the chain is not reversed as a whole.
    """
    current: int | None = 0
    kept: set[int] = set()
    done = steps
    times = [0] * (steps + 1)  # differences, summed at the end
    total = most = 0
    for action in actions:
        kind, at = action.kind, action.at
        if kind == "restore" or kind == "free":
            if at not in kept:
                raise ValueError(f"{kind} {at}: the state is in no slot")
            if kind == "free":
                kept.remove(at)
            else:
                current = at
            continue
        if current != at:
            raise ValueError(f"{kind} {at}: the current state is {current}")
        if kind == "store":
            kept.add(at)
            most = max(most, len(kept))
        elif kind == "advance":
            if not at < action.to <= steps:
                raise ValueError(f"advance {at} to {action.to}: not forward, or beyond the end")
            times[at] += 1
            times[action.to] -= 1
            total += action.to - at
            current = action.to
        elif kind == "reverse":
            if at != done - 1:
                raise ValueError(f"reverse {at}: expected reverse {done - 1}")
            done, current = at, None
    if done:
        raise ValueError(f"the first {done} steps are not reversed")
    most_times = running = 0
    for change in times:
        running += change
        most_times = max(most_times, running)
    return Counts(total, most_times, most)


# ------------------------------------------------------------------------------------ binomial


def longest(slots: int, repetitions: int) -> int:
    """beta(s, t) = C(s + t, s): the longest chain for ``s`` slots when no step advances more than
    ``t`` times (Griewank, Optimization Methods and Software 1, 1992)."""
    return comb(slots + repetitions, slots)


def repetitions(steps: int, slots: int) -> int:
    """The least ``t`` with ``longest(slots, t) >= steps``."""
    _check(steps, slots)
    t, reach = 0, 1
    while reach < steps:
        t += 1
        reach = reach * (slots + t) // t  # C(s + t, s) from C(s + t - 1, s)
    return t


def advances(steps: int, slots: int) -> int:
    """The least advances of any schedule: ``t * steps - C(s + t, t - 1)``, t the repetitions.

    (Griewank, Walther 2000, proposition 1; zero for one step.)
    """
    t = repetitions(steps, slots)
    return t * steps - comb(slots + t, t - 1) if t else 0


def binomial(steps: int, slots: int) -> Iterator[Action]:
    """The schedule of least advances; the first slot holds ``z[0]`` throughout.

    Parameters
    ----------
    steps : int
    slots : int
        1 at least. More than ``steps`` are of no use.

    Notes
    -----
    A chain of ``l`` steps advances ``m``, keeps ``z[m]``, reverses the rest with one slot less, and
    then the first ``m`` with the slot back. Any ``m`` is best for which the first part is one of
    repetition number ``t - 1`` and the rest one of ``t``: there the cost is linear in ``m`` and its
    slopes cancel. The largest is taken.
    """
    _check(steps, slots)
    if steps == 0:
        return
    yield Action("store", 0)
    yield from _reversal(0, steps, slots, 0)
    yield Action("free", 0)


def _reversal(first: int, last: int, slots: int, current: int | None) -> Iterator[Action]:
    """Reverse the steps from ``first`` to ``last``; ``z[first]`` is in one of the slots.

    The stack holds what is still to be done: (first, last, slots), or (state, -1, 0): free it.
    """
    stack = [(first, last, slots)]
    while stack:
        start, stop, free = stack.pop()
        if stop < 0:
            yield Action("free", start)
            continue
        if current != start:
            yield Action("restore", start)
        length = stop - start
        if length == 1:
            yield Action("reverse", start)
            current = None
        elif free == 1:
            yield Action("advance", start, stop - 1)
            yield Action("reverse", stop - 1)
            current = None
            stack.append((start, stop - 1, 1))
        else:
            current = middle = start + _split(length, free)
            yield Action("advance", start, middle)
            yield Action("store", middle)
            stack += [(start, middle, free), (middle, -1, 0), (middle, stop, free - 1)]


def _split(length: int, slots: int) -> int:
    """How far to advance before the next state is kept; ``length``, ``slots`` 2 at least."""
    t = repetitions(length, slots)
    return min(longest(slots, t - 1), length - longest(slots - 1, t - 1))


def _check(steps: int, slots: int) -> None:
    if steps < 0 or slots < 1:
        raise ValueError(f"expected steps >= 0 and slots >= 1, got {steps} and {slots}")


# ------------------------------------------------------------------------------------- uniform


def uniform(steps: int, segments: int) -> Iterator[Action]:
    """Keep the start of each of ``segments`` segments; store each whole when its turn comes.

    Notes
    -----
    ``segments + ceil(steps / segments) - 1`` slots at most (the start of a segment is one of its
    states), every step computed twice at most; least for ``segments`` near ``sqrt(steps)``.
    """
    if steps < 0 or segments < 1:
        raise ValueError(f"expected steps >= 0 and segments >= 1, got {steps} and {segments}")
    segments = min(segments, steps)
    starts = [k * steps // segments for k in range(segments)]
    for here, there in zip([0, *starts], starts, strict=False):
        if here != there:
            yield Action("advance", here, there)
        yield Action("store", there)
    for start, stop in zip(reversed(starts), [steps, *reversed(starts)], strict=False):
        if stop != steps:
            yield Action("restore", start)
        for k in range(start + 1, stop):
            yield Action("advance", k - 1, k)
            yield Action("store", k)
        for k in reversed(range(start, stop)):
            yield Action("restore", k)
            yield Action("reverse", k)
            yield Action("free", k)


# -------------------------------------------------------------------------------------- online


def thinned_stride(steps: int, slots: int) -> int:
    """The stride of the states that :func:`online` holds after ``steps`` steps: the least power of
    two of which ``slots`` multiples reach that far. Below ``2 * steps / slots``, or 1."""
    stride = 1
    while -(-steps // stride) > slots:
        stride *= 2
    return stride


def online(steps: int, slots: int) -> Iterator[Action]:
    """A schedule whose forward part does not know how long the chain will be.

    Notes
    -----
    Half of the slots (rounded up) hold every ``2**k``-th state; when they are full every second
    one is given up and k grows by one. The segments between them are then reversed from the last
    to the first by :func:`binomial` with the other half, and with what is free by then. A step
    advances ``1 + repetitions(stride, slots - kept + 1)`` times at most.
    """
    _check(steps, slots)
    trail = -(-slots // 2)
    kept: list[int] = []
    stride = 1
    here = 0
    for k in range(steps):
        if k % stride:
            continue
        if len(kept) == trail:
            stride *= 2
            for state in [s for s in kept if s % stride]:
                yield Action("free", state)
            kept = [s for s in kept if not s % stride]
            if k % stride:
                continue
        if k != here:
            yield Action("advance", here, k)
        yield Action("store", k)
        here = k
        kept.append(k)
    # Where the chain ended the state was not kept; the last segment starts from its own.
    if kept and here != steps:
        yield Action("advance", here, steps)
    stop = steps
    while kept:
        start = kept[-1]
        yield from _reversal(start, stop, slots - len(kept) + 1, None)
        yield Action("free", start)
        kept.pop()
        stop = start
