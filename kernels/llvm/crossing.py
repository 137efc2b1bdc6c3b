"""Machine code of nests that read across memory: transposes, in strips and blocks.

The vector loop (*along*) is the one whose elements are written side by side; the *crossing* loop is
the one along which operands lie. A strip of the vector loop runs around the crossing loop: it reads
``STRIP`` runs of memory and uses each up in the next iterations of the crossing loop, while it
writes long runs.

Within a strip, where the body is light, eight iterations of either loop are a block: eight vectors
are read as they lie and become eight vectors of the other orientation by shuffles in registers::

    a0 a1 ..      a0 b0 ..
    b0 b1 ..  ->  a1 b1 ..
    ..            ..

What is left at the edges runs lane by lane. Orientation changes no value.
"""

from __future__ import annotations

from typing import Any

from ...fusion.loops import Instruction
from .addressing import Scope
from .form import WIDTH, crossing_loop
from .handler import Typed
from .memory import I64, load_row, shuffle

__all__ = ["emit_strips"]

STRIP = 512  # as many cache lines as the first-level cache holds
MOST_WORK = 12  # operations of a body that may stand eight times


def emit_strips(e: Any, order: list[int]) -> None:
    """Emit the loops of a nest of strategy ``strips`` into emitter ``e``."""
    across, along = crossing_loop(e.nest), e.form.vector_loop
    rest = [loop for loop in order if loop not in (across, along)]
    crossing = _crossing_loads(e, across, along) if e.work() <= MOST_WORK else []
    b = e.builder

    def plain(scope: Scope, columns: tuple[Any, Any], rows: tuple[Any, Any]) -> None:
        e.limits = {across: columns, along: rows}
        e.descend([across, along], 0, Scope(scope), frozenset(rest), e.leaf)
        e.limits = {}

    def strips(scope: Scope) -> None:
        low, high = e.bounds(across)
        start, stop = e.bounds(along)
        with e.loop(start, stop, STRIP) as first:
            end = b.add(first, I64(STRIP))
            end = b.select(b.icmp_signed("<", end, stop), end, stop)
            if not crossing:
                plain(scope, (low, high), (first, end))
                return
            square, whole = _whole(b, low, high), _whole(b, first, end)
            with e.loop(low, square, WIDTH) as a, e.loop(first, whole, WIDTH) as i:
                _block(e, scope, crossing, (across, a), (along, i))
            plain(scope, (square, high), (first, end))
            plain(scope, (low, square), (whole, end))

    e.descend(rest, 0, Scope(), frozenset(), strips)


def _whole(b: Any, start: Any, stop: Any) -> Any:
    """The end of the whole vectors of ``start .. stop``."""
    return b.add(start, b.and_(b.sub(stop, start), I64(-WIDTH)))


def _crossing_loads(e: Any, across: int | None, along: int | None) -> list[int]:
    """The loads that read across memory, if blocks can do all of them."""
    found = []
    for n, i in enumerate(e.nest.tape):
        if i.kind != "load" or along not in e.loops_of[n]:
            continue
        if e.contiguous(i.index):
            continue
        if not _turns(i, across, along):
            return []
        found.append(n)
    return found


def _turns(i: Instruction, across: int | None, along: int | None) -> bool:
    """Whether a load is one of consecutive elements along the crossing loop."""
    assert i.index is not None
    if i.index.dynamics() or i.guard >= 0 or i.dtype.is_complex or i.dtype.is_bool:
        return False
    return i.index.coefficient(across) == 1 and bool(i.index.coefficient(along))


def _block(
    e: Any, scope: Scope, crossing: list[int], across: tuple[int, Any], along: tuple[int, Any]
) -> None:
    """Eight iterations of the loop ``across[0]`` by eight of ``along[0]``."""
    b = e.builder
    corner = e.enter(e.enter(scope, *across), *along)
    turned = {n: _turned(e, e.nest.tape[n], corner, along[0]) for n in crossing}
    for k in range(WIDTH):
        a = b.add(across[1], I64(k)) if k else across[1]
        inner = e.enter(e.enter(scope, across[0], a), *along)
        inner.values.update({n: vectors[k] for n, vectors in turned.items()})
        e.emit([n for n in range(len(e.nest.tape)) if n not in inner.values], inner)
        e.leaf(inner)


def _turned(e: Any, i: Instruction, corner: Scope, along: int) -> list[Typed]:
    """The vectors of a load along loop ``along``, for eight iterations of the crossing loop."""
    b, h, size = e.builder, e.vector, i.dtype.itemsize
    assert i.index is not None
    stride = i.index.coefficient(along)
    assert stride is not None
    pitch = b.mul(e.integer(stride), I64(size))
    place = e.first_place(i.index, e.base_of(i), size, corner)
    vectors = []
    for _ in range(WIDTH):
        vectors.append(load_row(h, place, i.dtype, None).value)
        place = b.add(place, pitch)
    for bit in (1, 2, 4):  # lane k of row r goes where bits of k and r have changed places
        for r in range(WIDTH):
            if not r & bit:
                x, y = vectors[r], vectors[r | bit]
                lanes = range(WIDTH)
                vectors[r] = shuffle(h, x, y, [k & ~bit | (k & bit and WIDTH) for k in lanes])
                vectors[r | bit] = shuffle(h, x, y, [k | bit | (k & bit and WIDTH) for k in lanes])
    return [Typed(v, i.dtype) for v in vectors]
