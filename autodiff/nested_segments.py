"""Checkpoints for loops that are graph nodes: a loop split into loops in loops.

A schedule of single actions (:mod:`.checkpoint_schedules`) would unroll a loop. What stays a loop
is *nested segmentation*: ``c1`` segments of ``c2`` segments of ... of ``ck`` steps. The forward run
keeps the carry at the start of each of the ``c1`` segments; the backward run takes them from the
last to the first, runs each again keeping ``c2`` carries, and so on; the innermost level keeps the
*tape*, all that the backward step reads.

With ``k`` levels every step is computed ``k`` times (once in the forward run, ``k - 1`` times
again), and ``sum(c[i] * carry for i < k) + c[k] * tape`` bytes are held, least near
``k * (n * carry^(k-1) * tape)^(1/k)``. One level is "store all", two are the square root of Chen et
al. 2016, ``log2(n)`` levels hold logarithmically little. Binomial schedules are ahead only near the
least memory: for 1e6 steps, a tape like the carry and room for 300 of them a step is computed 3
times here and 3.95 times there, for 60 of them 6 and 5.4 times, for 40 of them 10 and 5.9 times.

A length that is no product is a sum of such nests in decreasing order: ``1009 = 10 * 10 * 10 + 9``
is the pieces ``(10, 10, 10), (9,)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from ..ir.errors import BudgetError
from .checkpoint_schedules import Action

__all__ = ["Segmentation", "nested_actions", "pieces_of", "segment"]

# More levels than this are of no use to any length that an int64 counts.
_MOST_LEVELS = 63


@dataclass(frozen=True, slots=True)
class Segmentation:
    """A loop as a sequence of nests of loops.

    Attributes
    ----------
    steps : int
    pieces : tuple of tuples of int
        Extents of each nest, outermost first; the products add up to ``steps``.
    nbytes : int
        Most bytes of carries and tape held at one time.
    """

    steps: int
    pieces: tuple[tuple[int, ...], ...]
    nbytes: int

    @property
    def levels(self) -> int:
        """How often a step is computed, at most."""
        return max((len(piece) for piece in self.pieces), default=1)


def segment(steps: int, carry: int, tape: int, budget: int | None = None) -> Segmentation:
    """The segmentation of fewest levels whose bytes fit into a budget.

    Parameters
    ----------
    steps : int
        Trip count of the loop.
    carry, tape : int
        Bytes of the carry, and of what one step records for its backward step.
    budget : int, optional
        Bytes. None: store all.

    Raises
    ------
    BudgetError
        If no number of levels fits. ``needed`` is the least that any has.

    Notes
    -----
    Extents are integers near the real optimum, so a budget within a few per cent of the least for
    its level may be given one level more.

    Examples
    --------
    >>> segment(100, carry=8, tape=8, budget=160).pieces
    ((10, 10),)
    >>> segment(1_000_000, carry=16, tape=64, budget=64_000).levels
    2
    """
    best: Segmentation | None = None
    worse = 0
    for levels in range(1, _MOST_LEVELS + 1):
        found = _least(steps, carry, tape, levels)
        if budget is None or found.nbytes <= budget:
            return found
        if best is None or found.nbytes < best.nbytes:
            best, worse = found, 0
        else:  # more levels hold more again
            worse += 1
        if 2**levels >= steps or worse == 2:
            break
    assert best is not None
    two = _least(steps, carry, tape, 2).nbytes
    raise BudgetError(
        f"checkpoint: a loop of {steps} steps, with a carry of {carry} bytes and {tape} bytes of "
        f"tape a step: expected a budget of {best.nbytes} bytes at least ({best.levels} levels of "
        f"checkpoints), got {budget}; {two} bytes compute each step twice, "
        f"{steps * tape} bytes once",
        best.nbytes,
    )


def _least(steps: int, carry: int, tape: int, levels: int) -> Segmentation:
    """The best segmentation of so many levels, as far as extents near the real optimum tell."""
    if levels == 1 or steps <= 1:
        pieces: tuple[tuple[int, ...], ...] = ((steps,),) if steps else ()
        return Segmentation(steps, pieces, steps * tape)
    # Carries and tape share the memory evenly: c[i] * carry = c[k] * tape.
    unit = (steps * float(max(carry, 1)) ** (levels - 1) * max(tape, 1)) ** (1 / levels)
    inner = _near(unit / max(tape, 1), steps)
    outer = _near(unit / max(carry, 1), steps)
    best: Segmentation | None = None
    for last, middle in product(inner, outer):
        # Any number of the inner extents may be one more than the others.
        for more in range(levels - 1):
            inside = (*(middle + 1,) * more, *(middle,) * (levels - 2 - more), last)
            if prod(inside) > steps:
                break
            pieces = pieces_of(steps, inside)
            found = Segmentation(steps, pieces, _nbytes(pieces, carry, tape))
            if best is None or found.nbytes < best.nbytes:
                best = found
    return _least(steps, carry, tape, levels - 1) if best is None else best


def _near(real: float, most: int) -> tuple[int, ...]:
    low = max(1, min(int(real), most))
    return tuple(dict.fromkeys([low, min(low + 1, most), max(low - 1, 1)]))


def pieces_of(steps: int, inside: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """``steps`` in the mixed radix of the inner extents: nests in decreasing order.

    Examples
    --------
    >>> pieces_of(1009, (10, 10))
    ((10, 10, 10), (9,))
    """
    pieces = []
    rest = steps
    for depth in range(len(inside) + 1):
        size = prod(inside[depth:])
        if rest >= size > 0:
            pieces.append((rest // size, *inside[depth:]))
            rest %= size
    return tuple(pieces)


def _nbytes(pieces: Sequence[tuple[int, ...]], carry: int, tape: int) -> int:
    """The most that is held while the last piece, then the one before it, ... runs backwards."""
    held = most = 0
    for outer, *inside in pieces:
        # Forward, a piece keeps its outermost level only.
        held += outer * (carry if inside else tape)
        inner = sum(inside[:-1]) * carry + inside[-1] * tape if inside else 0
        most = max(most, held + inner)
    return most


def nested_actions(plan: Segmentation) -> Iterator[Action]:
    """The segmentation action by action, as the nests of loops carry it out.

    The innermost tapes are spelled as stored states, one a step. The start of a segment is its
    parent's slot, so as a schedule it needs fewer slots than the loops do.
    """
    starts: list[tuple[int, tuple[int, ...]]] = []
    here = 0
    for piece in plan.pieces:
        starts.append((here, piece))
        here += prod(piece)
    current = 0
    for start, piece in starts:
        yield from _forward(start, piece, current)
        current = start + prod(piece[1:]) * (piece[0] - 1)
    if plan.steps and current != plan.steps:
        yield Action("advance", current, plan.steps)
    for start, piece in reversed(starts):
        yield from _backward(start, piece)


def _forward(start: int, extents: tuple[int, ...], current: int) -> Iterator[Action]:
    """Run over a nest, keeping the start of each segment of its outermost level."""
    size = prod(extents[1:])
    for k in range(extents[0]):
        at = start + k * size
        if at != current:
            yield Action("advance", current, at)
        yield Action("store", at)
        current = at


def _backward(start: int, extents: tuple[int, ...]) -> Iterator[Action]:
    """Reverse a nest whose segment starts are stored."""
    size = prod(extents[1:])
    for k in reversed(range(extents[0])):
        at = start + k * size
        yield Action("restore", at)
        if size == 1 and len(extents) == 1:
            yield Action("reverse", at)
            yield Action("free", at)
            continue
        yield from _forward(at, extents[1:], at)
        yield from _backward(at, extents[1:])
