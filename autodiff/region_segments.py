"""A loop as loops of loops, so that its derivative keeps less.

The transpose of a loop inside of a loop runs the inner one again (:mod:`.region_reverse`). So a
loop of ``c * m`` steps, written as ``c`` loops of ``m`` steps, keeps ``c`` carries and the records
of ``m`` steps instead of ``c * m`` records; deeper nests keep less (:mod:`.nested_segments`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt, prod

from ..ir.dtypes import float64, int64
from ..ir.graph import Graph, Value
from ..ir.ops import add, ceil, concat, floor_divide, maximum, minimum, mul, sqrt, sub
from ..ir.ops.leaves import constant, input_node
from ..ir.ops.operands import convert
from ..ir.ops.regions import Loop, strong
from ..ir.ops.shape import reshape
from ..ir.ops.slicing import slice_axis
from ..ir.rewrite import substitute
from ..ir.types import TensorType
from .nested_segments import pieces_of, segment

__all__ = ["segmented", "segmented_at_run_time", "segments_of"]

_INDEX = TensorType((), int64)

Pieces = Sequence[tuple[int, ...]]


def segments_of(loop: Loop, known: Loop, saved: Sequence[Value]) -> Pieces | None:
    """The nests that hold the records of a loop within its budget; None: it needs none.

    Parameters
    ----------
    loop : Loop
        With a known length and a ``checkpoint``.
    known : Loop
        Its known half: what is carried from segment to segment.
    saved : sequence of Value
        What a step records.

    Raises
    ------
    BudgetError
        If there is no way to stay within the budget: with the least one that would do.
    """
    steps = loop.length or 0
    tape = sum([x.type.nbytes for x in saved])
    if steps < 2 or not tape:
        return None
    carry = sum([x.type.nbytes for x in known.init])
    if loop.checkpoint == "sqrt":
        return pieces_of(steps, (max(isqrt(steps * max(carry, 1) // tape), 1),))
    assert isinstance(loop.checkpoint, int)
    found = segment(steps, carry, tape, loop.checkpoint)
    return found.pieces if found.levels > 1 else None


def segmented(loop: Loop, pieces: Pieces) -> list[Value]:
    """The results of ``loop`` computed by nests of the extents ``pieces``, outermost first."""
    carry = list(loop.init)
    starts, start = [], 0
    for extents in pieces:
        starts.append((start, extents))
        start += prod(extents)
    records: list[list[Value]] = []
    for first, extents in reversed(starts) if loop.reverse else starts:
        size = prod(extents)
        xs = [
            reshape(slice_axis(x, 0, first, first + size), (*extents, *x.shape[1:]))
            for x in loop.xs
        ]
        found = _nest(loop, extents, constant(first, int64), loop.consts, carry, xs)
        carry = found[: len(carry)]
        ys = found[len(carry) :]
        records.append([reshape(y, (size, *y.shape[len(extents) :])) for y in ys])
    if loop.reverse:
        records.reverse()
    joined = [list(parts) for parts in zip(*records, strict=True)]
    return [*carry, *[parts[0] if len(parts) == 1 else concat(parts, 0) for parts in joined]]


def segmented_at_run_time(loop: Loop, known: Loop, saved: Sequence[Value]) -> list[Value] | None:
    """The results of a loop whose count is known at run time only, as loops of loops.

    The inner ones have about ``sqrt(count * carry / tape)`` steps, so that both levels keep as
    much. None where that is not possible: with lanes or sequences.
    """
    count = loop.count
    if count is None or loop.lanes or loop.xs:
        return None
    carry = sum([x.type.nbytes for x in known.init])
    tape = sum([x.type.nbytes for x in saved])
    ratio = constant(max(carry, 1) / max(tape, 1), float64)
    steps = maximum(convert(ceil(sqrt(mul(convert(count, float64), ratio))), int64), 1)
    last = sub(add(count, steps), 1)
    index, total, size = (input_node(_INDEX, name) for name in ("i", "count", "steps"))
    fixed = [input_node(strong(x.type), "c") for x in loop.consts]
    state = [input_node(strong(x.type), "carry") for x in loop.init]
    start = mul(index.out, size.out)
    inner = _nest(
        replace(loop, count=minimum(size.out, sub(total.out, start))),
        (),
        start,
        [x.out for x in fixed],
        [x.out for x in state],
        (),
    )
    outer = replace(
        loop,
        body=Graph((index, total, size, *fixed, *state), tuple(inner), "segment"),
        consts=(count, steps, *loop.consts),
        count=floor_divide(last, steps),
        checkpoint=None,
    )
    return list(outer.node().outputs)


def _nest(
    loop: Loop,
    extents: tuple[int, ...],
    base: Value,
    consts: Sequence[Value],
    carry: Sequence[Value],
    xs: Sequence[Value],
) -> list[Value]:
    """A nest of loops; ``base`` is the index of its first step. Without extents: one loop of the
    count that ``loop`` has."""
    index, start = input_node(_INDEX, "i"), input_node(_INDEX, "base")
    if len(extents) <= 1:
        inner = loop.body.inputs
        moved = substitute(loop.body.outputs, {inner[0].out: add(start.out, index.out)})
        body = Graph((index, start, *inner[1:]), moved, loop.body.name)
    else:
        fixed = [input_node(strong(x.type), "c") for x in consts]
        state = [input_node(strong(x.type), "carry") for x in carry]
        slices = [input_node(TensorType(x.shape[1:], x.dtype), "x") for x in xs]
        first = add(start.out, mul(index.out, constant(prod(extents[1:]), int64)))
        results = _nest(
            loop,
            extents[1:],
            first,
            [x.out for x in fixed],
            [x.out for x in state],
            [x.out for x in slices],
        )
        body = Graph((index, start, *fixed, *state, *slices), tuple(results), "segment")
    new = replace(
        loop,
        body=body,
        consts=(base, *consts),
        init=tuple(carry),
        xs=tuple(xs),
        length=extents[0] if extents else None,
        checkpoint=None,
    )
    return list(new.node().outputs)
