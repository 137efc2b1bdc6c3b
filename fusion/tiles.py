"""Tiles: nests that share their outer iterations run together, a few rows at a time.

A softmax is four nests over the rows of a matrix: maximum, exponentials, sum, quotient. Run one
after the other they move the matrix through memory four times. As a tile they run in turn over a
chunk of rows that fits the cache, and what only they read lives in a scratch of that size.

Nests may join when their leading loops agree on a number of rows and each reads from the others
only what the same row wrote. Nothing is computed in another order within a row, so tiles do not
change a bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from .index import Index
from .loops import Buffer, Nest, ScratchRow, Step, Tile
from .memory import reads, writes
from .normalize import normalize

__all__ = ["RawNest", "form_tiles", "is_by_rows"]

# Bytes of scratch that a chunk of rows may take: a quarter of a usual second-level cache.
SCRATCH = 192 * 1024
LEAST_ROWS = 4
MOST_NESTS = 24  # of a tile: joining looks at all of them


@dataclass(frozen=True, slots=True)
class RawNest:
    """A nest with all its loops, before normalization; the last ``inner`` are not outer ones."""

    nest: Nest
    inner: int


def form_tiles(
    steps: Iterable[RawNest | Step], buffers: Sequence[Buffer], shared: set[int]
) -> list[Step]:
    """Normalized steps, neighbours joined into tiles where they may and share data.

    ``shared`` are buffers that more than their own tile may need: inputs, outputs, constants and
    what library calls read.
    """
    result: list[Step] = []
    group: list[RawNest] = []
    rest = list(steps)
    for position, step in enumerate(rest):
        if isinstance(step, RawNest):
            if group and not _joins(group, step):
                result.extend(_close(group, rest[position:], buffers, shared))
                group = []
            group.append(step)
        else:
            result.extend(_close(group, rest[position:], buffers, shared))
            group = []
            result.append(step)
    result.extend(_close(group, [], buffers, shared))
    return result


def _outer(raw: RawNest) -> tuple[int, ...]:
    extents = raw.nest.extents
    return extents[: len(extents) - raw.inner]


def _row_counts(raw: RawNest) -> set[int]:
    """Numbers of rows that the leading loops of a nest can be seen as."""
    if raw.nest.ordered:
        return set()
    outer = _outer(raw)
    counts = {prod(outer[:k]) for k in range(1, len(outer) + 1)}
    return {n for n in counts if n >= LEAST_ROWS}


def _joins(group: Sequence[RawNest], new: RawNest) -> bool:
    return len(group) < MOST_NESTS and _rows_of([*group, new]) is not None


def _rows_of(group: Sequence[RawNest]) -> int | None:
    """The largest number of rows at which nests form a tile, None if there is none."""
    common = set.intersection(*(_row_counts(raw) for raw in group))
    newest = group[-1].nest
    earlier = [raw.nest for raw in group[:-1]]
    touched = set().union(*(reads(n) | writes(n) for n in earlier))
    if not touched & (reads(newest) | writes(newest)):
        return None
    for rows in sorted(common, reverse=True):
        nests = [normalize(raw.nest, raw.inner, rows) for raw in group]
        if all(is_by_rows(n, rows) for n in nests) and _rows_are_apart(nests):
            return rows
    return None


def is_by_rows(nest: Nest, rows: int) -> bool:
    """Whether loop 0 is the rows, and is not the loop that vectors run along best."""
    if not nest.extents or nest.extents[0] != rows:
        return False
    inner = nest.reduces or nest.scan is not None
    if inner and len(nest.extents) == 2:
        elements = (i.index for i in nest.tape if i.kind == "load" and i.index is not None)
        return not any(
            e.coefficient(0) == 1 and (e.depends_on(1) or e.dynamics()) for e in elements
        )
    return len(nest.extents) > inner


def _rows_are_apart(nests: Sequence[Nest]) -> bool:
    """Whether nests read from each other only within a row."""
    pitch: dict[int, int] = {}
    for nest in nests:
        for i in nest.tape:
            if i.buffer in pitch:
                assert i.index is not None
                if _pitch(i.index) != pitch[i.buffer]:
                    return False
        for s in nest.stores:
            row = _pitch(s.index)
            if row is None or s.buffer in pitch:
                return False
            pitch[s.buffer] = row
    return True


def _pitch(index: Index) -> int | None:
    """Elements from row to row, if an access stays within its row."""
    stride = index.coefficient(0)
    if not stride or index.dynamics():
        return None
    terms = tuple(t for t in index.terms if getattr(t[0], "axis", None) != 0)
    low, high = Index(index.const, terms).range()
    return stride if low >= 0 and high < stride else None


def _close(
    group: Sequence[RawNest],
    later: Sequence[RawNest | Step],
    buffers: Sequence[Buffer],
    shared: set[int],
) -> list[Step]:
    """A group as a tile, or as single nests when there is nothing to share."""
    if not group:
        return []
    if len(group) == 1:
        return [normalize(group[0].nest, group[0].inner)]
    rows = _rows_of(group)
    assert rows is not None
    nests = [normalize(raw.nest, raw.inner, rows) for raw in group]
    needed = set(shared)
    for step in later:
        needed |= reads(step.nest if isinstance(step, RawNest) else step)
    own = [b for n in nests for b in sorted(writes(n)) if b not in needed]
    row_bytes = {b: buffers[b].nbytes // rows for b in own}
    total = sum(_rounded(n) for n in row_bytes.values())
    if total > SCRATCH:
        return [normalize(raw.nest, raw.inner) for raw in group]
    touched = set().union(*(reads(n) | writes(n) for n in nests))
    everything = sum(buffers[b].nbytes // rows for b in touched)
    chunk = max(1, min(rows, SCRATCH // max(everything, 1)))
    scratch, offset = [], 0
    for b in own:
        scratch.append(ScratchRow(b, offset, row_bytes[b]))
        offset += _rounded(row_bytes[b] * chunk)
    return [Tile(tuple(nests), rows, chunk, tuple(scratch), offset)]


def _rounded(nbytes: int) -> int:
    return -(-nbytes // 64) * 64
