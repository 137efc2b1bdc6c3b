"""How much work a step is, and in how many pieces threads share it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..fusion.lane_code import LaneProgram
from ..fusion.lanes import work as lane_work
from ..fusion.loops import Buffer, HostCall, MatMul, Nest, Region, Step, Tile
from ..fusion.memory import reads, writes
from ..fusion.realize import weight_of
from ..fusion.routines import Routine
from ..fusion.split import BLOCK
from .costs import current
from .cpu.blas import panels
from .llvm.form import LANES, strategy_of

__all__ = ["extent_and_pieces", "step_cost", "work_of"]

# In launches, what it costs to share a step (:mod:`.costs`): a step that is worth it has ten times
# that to do, a piece of it twice and a half.
WORTHWHILE = 10.0
SMALLEST = 2.5
LONGEST = 10_000_000.0  # nanoseconds of a piece
CACHED = 64_000_000  # bytes that may pass through the caches
PIECES_EACH = 4  # pieces a thread: evens out what the threads get done
ACROSS = 24  # least columns of a piece whose vectors run across them: whole cache lines
_ACROSS_ROWS = (("columns", 0), ("unrolled", 0))


def extent_and_pieces(step: Step, threads: int) -> tuple[int, int]:
    """Iterations of a native step's outermost loop, and the pieces that threads share them in.

    One piece when sharing costs more than it saves; else more than there are threads, and more in
    a long step, threads or not: an interrupt is looked for between two pieces.
    """
    launch = current(threads).launch
    if isinstance(step, Routine):
        shared = threads > 1 and step.error < 0 and work_of(step) > WORTHWHILE * launch
        return step.batch, step.batch if shared else 1
    if isinstance(step, MatMul):
        extent = step.batch * panels(step)[0]
        return extent, _matrix_pieces(extent, work_of(step), threads)
    if isinstance(step, LaneProgram):
        return step.extent, _lane_pieces(step, threads)
    assert isinstance(step, (Nest, Tile))
    nests = step.nests if isinstance(step, Tile) else (step,)
    first = nests[0]
    total = work_of(step)
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
    if threads > 1 and total >= WORTHWHILE * launch and not _is_held_up(step, total):
        wanted = max(wanted, min(PIECES_EACH * threads, int(total / (SMALLEST * launch))))
    most = extent // 512 if len(first.extents) == 1 else extent
    if inner and any(n.reduces and strategy_of(n) in _ACROSS_ROWS for n in nests):
        most = extent // ACROSS
    return extent, max(1, min(wanted, most))


def _matrix_pieces(extent: int, total: float, threads: int) -> int:
    """Pieces of a product's panels or matrices: single ones, unless there are many."""
    wanted = max(int(total / LONGEST), 1)
    if threads > 1 and total > WORTHWHILE * current(threads).launch:
        each = PIECES_EACH * threads
        wanted = max(wanted, extent if extent <= 4 * each else each)
    return min(wanted, extent)


def _lane_pieces(program: LaneProgram, threads: int) -> int:
    """Pieces of whole groups of lanes."""
    if program.recorded():  # who writes a tape may move it
        return 1
    total, launch = work_of(program), current(threads).launch
    wanted = int(total / LONGEST)
    if threads > 1 and total >= WORTHWHILE * launch:
        wanted = max(wanted, min(PIECES_EACH * threads, int(total / (SMALLEST * launch))))
    return max(1, min(wanted, program.extent // LANES))


def work_of(step: Step) -> float:
    """Nanoseconds that a native step takes, about."""
    if isinstance(step, Routine):
        return step.batch * (step.rows**2 * (step.sides or step.rows / 3)) * current().operation
    if isinstance(step, MatMul):
        return step.batch * step.rows * step.inner * step.columns * current().operation
    if isinstance(step, LaneProgram):
        # One operation waits for another in a program without lanes.
        each = current().operation if step.lanes else 1.0
        return step.extent * lane_work(step) * each
    assert isinstance(step, (Nest, Tile))
    nests = step.nests if isinstance(step, Tile) else (step,)
    computed = sum(_nest_work(n) for n in nests) * current().operation
    return max(computed, _streaming(step) / current().bandwidth)


def _streaming(step: Step) -> int:
    """Bytes that a single nest moves from memory and back, at most: an element of each buffer in
    each turn. 0 where they may stay in the caches."""
    if not isinstance(step, Nest):
        return 0
    sizes = {i.buffer: i.dtype.itemsize for i in step.tape if i.buffer >= 0}
    sizes.update({s.buffer: step.tape[s.value].dtype.itemsize for s in step.stores})
    moved = prod(step.extents) * sum(sizes.values())
    return moved if moved > CACHED else 0


def _is_held_up(step: Step, total: float) -> bool:
    """Whether one thread already moves all that the memory gives."""
    costs = current()
    alone = costs.shared_bandwidth < 1.1 * costs.bandwidth
    return alone and _streaming(step) / costs.bandwidth >= total


def _nest_work(nest: Nest) -> float:
    work = sum(_instruction_work(i) for i in nest.tape) + 2 * len(nest.stores)
    return prod(nest.extents) * work


def _instruction_work(i: object) -> float:
    op = getattr(i, "op", None)
    if op is not None:
        return weight_of(op)
    return 2.0 if getattr(i, "kind", "") == "load" else 0.0


def step_cost(step: Step, buffers: Sequence[Buffer]) -> tuple[int, int]:
    """(floating-point operations, bytes read and written) of one run of a step, as estimates.

    A loop whose number of trips is not known counts as one trip, branches as the dearest one.
    """
    if isinstance(step, Region):
        return _region_cost(step)
    nbytes = sum(buffers[n].nbytes for n in reads(step) | writes(step))
    if isinstance(step, LaneProgram):
        return int(step.extent * lane_work(step)), nbytes
    if isinstance(step, MatMul):
        return 2 * step.batch * step.rows * step.inner * step.columns, nbytes
    if isinstance(step, HostCall):
        return 0, nbytes
    if isinstance(step, Routine):
        return int(step.batch * step.rows**2 * (step.sides or step.rows / 3)), nbytes
    if isinstance(step, Tile):
        kept = {s.buffer for s in step.scratch}
        nbytes -= sum(buffers[n].nbytes for n in kept)
        return sum(step_cost(n, buffers)[0] for n in step.nests), nbytes
    work = sum(weight_of(i.op) for i in step.tape if i.op is not None)
    return int(prod(step.extents) * (work + len(step.reductions))), _nest_bytes(step, buffers)


def _nest_bytes(nest: Nest, buffers: Sequence[Buffer]) -> int:
    """Each buffer once, but no more than what the nest touches of it."""
    touched: dict[int, int] = {}
    times = prod(nest.extents)
    for n in [i.buffer for i in nest.tape if i.buffer >= 0] + [s.buffer for s in nest.stores]:
        touched[n] = touched.get(n, 0) + times * buffers[n].dtype.itemsize
    whole = {n: buffers[n].nbytes for n in reads(nest) | writes(nest)}
    return sum(min(size, touched.get(n, size)) for n, size in whole.items())


def _region_cost(region: Region) -> tuple[int, int]:
    found = []
    for part in region.parts:
        costs = [step_cost(step, part.schedule.buffers) for step in part.schedule.steps]
        found.append((sum(f for f, _ in costs), sum(n for _, n in costs)))
    if region.kind == "cond":
        return max(found)
    times = region.length if region.length >= 0 else 1
    return times * sum(f for f, _ in found), times * sum(n for _, n in found)
