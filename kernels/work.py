"""How much work a step is, and in how many pieces threads share it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..fusion.loops import Buffer, HostCall, MatMul, Nest, Step, Tile
from ..fusion.memory import reads, writes
from ..fusion.realize import weight_of
from ..fusion.split import BLOCK
from .cpu.blas import panels

__all__ = ["extent_and_pieces", "step_cost"]

# Measured on Zen 4: a vectorized multiplication-add costs about 0.05 ns an element, waking a
# team of threads 2 us; a step is shared when each thread has ten times that to do.
NANOSECONDS = 0.06
WORTHWHILE = 20_000.0
SMALLEST = 5_000.0  # nanoseconds of a piece
LONGEST = 10_000_000.0
PIECES_EACH = 4  # pieces a thread: evens out what the threads get done


def extent_and_pieces(step: Step, threads: int) -> tuple[int, int]:
    """Iterations of a native step's outermost loop, and the pieces that threads share them in.

    One piece when sharing costs more than it saves; else more than there are threads, and more in
    a long step, threads or not: an interrupt is looked for between two pieces.
    """
    if isinstance(step, MatMul):
        extent = step.batch * panels(step)[0]
        total = step.batch * step.rows * step.inner * step.columns * NANOSECONDS
        return extent, extent if threads > 1 and total > WORTHWHILE else 1
    assert isinstance(step, (Nest, Tile))
    nests = step.nests if isinstance(step, Tile) else (step,)
    first = nests[0]
    total = sum(_nest_work(n) for n in nests) * NANOSECONDS
    wanted = int(total / LONGEST)
    if first.part == "blocks":
        blocks = -(-first.extents[0] // BLOCK)
        wanted = max(wanted, PIECES_EACH * threads if threads > 1 else 1)
        return blocks, min(wanted, blocks)
    inner = first.reduces or first.scan is not None  # the last loop is not shared
    if len(first.extents) == inner:
        return 1, 1
    extent = first.extents[0]
    if any(n.ordered for n in nests):
        return extent, 1
    if threads > 1 and total >= WORTHWHILE:
        wanted = max(wanted, min(PIECES_EACH * threads, int(total / SMALLEST)))
    most = extent // 512 if len(first.extents) == 1 else extent
    return extent, max(1, min(wanted, most))


def _nest_work(nest: Nest) -> float:
    work = sum(_instruction_work(i) for i in nest.tape) + 2 * len(nest.stores)
    return prod(nest.extents) * work


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
    if isinstance(step, Tile):
        kept = {s.buffer for s in step.scratch}
        nbytes -= sum(buffers[n].nbytes for n in kept)
        return sum(step_cost(n, buffers)[0] for n in step.nests), nbytes
    work = sum(weight_of(i.op) for i in step.tape if i.op is not None)
    return int(prod(step.extents) * (work + len(step.reductions))), nbytes
