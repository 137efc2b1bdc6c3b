"""A long reduction to one result, split at its blocks so that threads can share it.

The order of numerics 7 adds up blocks of 1024 elements each by itself and merges them in a tree, so
computing the blocks apart changes nothing: the split is chosen by the extent alone and costs a
buffer of one state a block.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..ir.dtypes import DType, int64
from .loops import Buffer, Nest, Reduction, Step

__all__ = ["BLOCK", "split_long", "state_dtypes"]

BLOCK = 1024  # elements that one set of accumulators adds up
LONG = 64 * BLOCK


def split_long(steps: Iterable[Step], buffers: list[Buffer]) -> list[Step]:
    """Steps with long single reductions split in two; buffers of states are appended."""
    result: list[Step] = []
    for step in steps:
        single = isinstance(step, Nest) and step.reduces and len(step.extents) == 1
        if not single or step.extents[0] < LONG:  # type: ignore[union-attr]
            result.append(step)
            continue
        assert isinstance(step, Nest)
        count = -(-step.extents[0] // BLOCK)
        states = []
        for reduction in step.reductions:
            for dtype in state_dtypes(reduction, step.tape[reduction.value].dtype):
                states.append(len(buffers))
                buffers.append(Buffer(len(buffers), "temporary", dtype, (count,)))
        own = tuple(states)
        inner = tuple(s for s in step.stores if s.index.depends_on(0))
        outer = tuple(s for s in step.stores if not s.index.depends_on(0))
        result.append(replace(step, stores=inner, part="blocks", states=own))
        result.append(replace(step, stores=outer, part="fold", states=own))
    return result


def state_dtypes(reduction: Reduction, source: DType) -> tuple[DType, ...]:
    """What a reduction carries: its accumulator, or an extremum and its position."""
    if reduction.monoid in ("argmax", "argmin"):
        return source, int64
    return (reduction.accumulator,)
