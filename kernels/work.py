"""How much work a step is, and in how many pieces threads share it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..fusion.loops import Buffer, HostCall, MatMul, Nest, Step
from ..fusion.memory import reads, writes
from ..fusion.realize import weight_of

__all__ = ["pieces_of", "step_cost"]

# Measured on Zen 4: a vectorized multiplication-add costs about 0.05 ns an element, waking a
# team of threads 2 us; a step is shared when each thread has ten times that to do.
NANOSECONDS = 0.06
WORTHWHILE = 20_000.0
SMALLEST = 5_000.0  # of a piece
PIECES_EACH = 4  # pieces a thread: evens out what the threads get done


def pieces_of(nest: Nest, extent: int, threads: int) -> int:
    """Number of pieces of the outermost loop: 1 when sharing costs more than it saves."""
    if threads < 2 or nest.ordered:
        return 1
    work = sum(_instruction_work(i) for i in nest.tape) + 2 * len(nest.stores)
    total = prod(nest.extents) * work * NANOSECONDS
    if total < WORTHWHILE:
        return 1
    most = extent // 512 if len(nest.extents) == 1 else extent
    return max(1, min(PIECES_EACH * threads, most, int(total / SMALLEST)))


def _instruction_work(i: object) -> float:
    op = getattr(i, "op", None)
    if op is not None:
        return weight_of(op)
    return 2.0 if getattr(i, "kind", "") == "load" else 0.0


def step_cost(step: Step, buffers: Sequence[Buffer]) -> tuple[int, int]:
    """(floating-point operations, bytes read and written) of one run of a step, as estimates."""
    nbytes = sum(buffers[n].nbytes for n in reads(step) | writes(step))
    if isinstance(step, MatMul):
        return 2 * step.batch * step.rows * step.inner * step.columns, nbytes
    if isinstance(step, HostCall):
        return 0, nbytes
    work = sum(weight_of(i.op) for i in step.tape if i.op is not None)
    return int(prod(step.extents) * (work + len(step.reductions))), nbytes
