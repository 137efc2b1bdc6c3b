"""Tiles: nests that share their outer iterations run together, a few rows at a time.

A softmax is four nests over the rows of a matrix: maximum, exponentials, sum, quotient. Run one
after the other they move the matrix through memory four times. As a tile they run in turn over a
chunk of rows that fits the cache, and what only they read lives in a scratch of that size.

Nests may join when their leading loops agree on a number of rows and each reads from the others
only what the same row wrote. Nothing is computed in another order within a row, so tiles do not
change a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

from .index import Index
from .loops import Buffer, Nest, ScratchRow, Step, Tile
from .memory import reads, writes
from .normalize import normalize

__all__ = ["RawNest", "form_tiles", "is_by_rows"]

# Bytes of scratch that a chunk of rows may take: a quarter of a usual second-level cache.
SCRATCH = 192 * 1024
# Bytes that a chunk reads and writes: as many as a usual first-level cache holds. Measured, a
# softmax of 4096x1000: 0.71 ns an element, 0.84 with four times as many.
CHUNK = 40 * 1024
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
    group: _Group | None = None
    rest = list(steps)
    last: dict[int, int] = {}  # position of the last step that reads a buffer
    for position, step in enumerate(rest):
        for number in reads(step.nest if isinstance(step, RawNest) else step):
            last[number] = position

    def is_over(number: int, position: int) -> bool:
        return number not in shared and last.get(number, -1) < position

    for position, step in enumerate(rest):
        if isinstance(step, RawNest):
            if group is None or not group.takes(step):
                if group is not None:
                    result.extend(_close(group, partial(is_over, position=position), buffers))
                group = _Group(step)
            continue
        if group is not None:
            result.extend(_close(group, partial(is_over, position=position), buffers))
            group = None
        result.append(step)
    if group is not None:
        result.extend(_close(group, partial(is_over, position=len(rest)), buffers))
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


class _Rows:
    """Nests seen as rows, with the elements from row to row of each buffer they write."""

    def __init__(self) -> None:
        self.nests: list[Nest] = []
        self.pitch: dict[int, int] = {}

    def fits(self, nest: Nest) -> bool:
        """Whether a nest reads from these, and they from it, only within a row."""
        for i in nest.tape:
            if i.buffer in self.pitch:
                assert i.index is not None
                if _pitch(i.index) != self.pitch[i.buffer]:
                    return False
        return all(s.buffer not in self.pitch and _pitch(s.index) is not None for s in nest.stores)

    def add(self, nest: Nest) -> None:
        self.nests.append(nest)
        for s in nest.stores:
            row = _pitch(s.index)
            assert row is not None
            self.pitch[s.buffer] = row


class _Group:
    """Nests that may become a tile: those so far, at each number of rows that suits all."""

    def __init__(self, first: RawNest) -> None:
        self.raw = [first]
        self.touched = reads(first.nest) | writes(first.nest)
        self._by_rows: dict[int, _Rows] | None = None

    def takes(self, new: RawNest) -> bool:
        """Add a nest if it shares data and some number of rows suits it too."""
        touched = reads(new.nest) | writes(new.nest)
        if len(self.raw) >= MOST_NESTS or self.touched.isdisjoint(touched):
            return False
        if self._by_rows is None:
            alone = {rows: _Rows() for rows in _row_counts(self.raw[0])}
            self._by_rows = _survivors(alone, self.raw[0])
        left = _survivors(self._by_rows, new)
        if not left:
            return False
        self._by_rows = left
        self.raw.append(new)
        self.touched |= touched
        return True

    def tile(self) -> tuple[int, list[Nest]]:
        """The largest number of rows, and the nests seen so; of two nests or more."""
        assert self._by_rows
        rows = max(self._by_rows)
        return rows, self._by_rows[rows].nests


def _survivors(candidates: Mapping[int, _Rows], new: RawNest) -> dict[int, _Rows]:
    """The numbers of rows at which a nest fits; it is added to these."""
    found: dict[int, _Rows] = {}
    for rows in candidates.keys() & _row_counts(new):
        nest = normalize(new.nest, new.inner, rows)
        if is_by_rows(nest, rows) and candidates[rows].fits(nest):
            candidates[rows].add(nest)
            found[rows] = candidates[rows]
    return found


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


def _pitch(index: Index) -> int | None:
    """Elements from row to row, if an access stays within its row."""
    stride = index.coefficient(0)
    if not stride or index.dynamics():
        return None
    terms = tuple(t for t in index.terms if getattr(t[0], "axis", None) != 0)
    low, high = Index(index.const, terms).range()
    return stride if low >= 0 and high < stride else None


def _close(group: _Group, is_over: Callable[[int], bool], buffers: Sequence[Buffer]) -> list[Step]:
    """A group as a tile, or as single nests when there is nothing to share.

    ``is_over`` tells of a buffer that nobody behind the group reads it.
    """
    if len(group.raw) == 1:
        return [normalize(group.raw[0].nest, group.raw[0].inner)]
    rows, nests = group.tile()
    own = [b for n in nests for b in sorted(writes(n)) if is_over(b)]
    row_bytes = {b: buffers[b].nbytes // rows for b in own}
    total = sum(_rounded(n) for n in row_bytes.values())
    if total > SCRATCH:
        return [normalize(raw.nest, raw.inner) for raw in group.raw]
    everything = sum(buffers[b].nbytes // rows for b in group.touched)
    chunk = max(1, min(rows, CHUNK // max(everything, 1)))
    scratch, offset = [], 0
    for b in own:
        scratch.append(ScratchRow(b, offset, row_bytes[b]))
        offset += _rounded(row_bytes[b] * chunk)
    return [Tile(tuple(nests), rows, chunk, tuple(scratch), offset)]


def _rounded(nbytes: int) -> int:
    return -(-nbytes // 64) * 64
