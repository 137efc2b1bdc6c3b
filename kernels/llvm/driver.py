"""The entry of a plan: one function that runs a range of its steps.

::

    i64 plan(i64 table, i64 first, i64 last, i64 arena, i64 pool, i64 threads, i64 arrays)

``table``, ``arena`` and the words at ``arrays`` are *addresses of NumPy array objects*
(``id(array)``): the data pointer stands right behind the object header in every NumPy array
(``PyArrayObject_fields`` of NumPy's C interface), and reading it here costs nothing, while asking
for it from Python costs a microsecond.

The table is a row of int64 numbers made for one set of extents and threads::

    buffer count, place of the steps, addresses of BLAS's get and set of its threads (or 0), and of
        the functions for loops and branches (or 0)
    for each buffer: -1 - (number of its array), or its byte offset in the arena
    for each step: extent of its outermost loop, pieces that threads share, place and number of
        its calls, rows of a chunk (0: not a tile), place and number of its scratch rows,
        bytes of scratch, and work as a watch counts it
    for each call: function, place of its frame
    for each scratch row: buffer, byte offset, bytes a row
    the frames, see :mod:`.form`
    regions, see :mod:`.regions`; the step of one has its kind for the rows of a chunk, and the
        place of its words for that of its calls

Steps inside regions stand behind those outside; steps and buffers are numbered throughout.

The result is 0, or the error word of the step that failed. A step has more than one piece also
where nobody shares them, if it is long: an interrupt is looked for after each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from .calls import call_address
from .context import (
    BUFFERS,
    CONTEXT_WORDS,
    ERROR,
    JOB,
    POOL,
    RUN,
    STEPS,
    TABLE,
    THREADS,
    WATCH,
    Words,
)
from .entry import c_function
from .interrupt import Watch
from .loops import counted_loop
from .memory import I64, POINTER
from .teamwork import PIECES, TASK, emit_library_entry, emit_library_exit, emit_shared

__all__ = ["BRANCHES", "HEADER", "ITERATION", "STEP_WORDS", "emit_driver"]

HEADER = 6  # words before the buffers
# What the step of a region has for the rows of a chunk.
ITERATION, BRANCHES = -1, -2
STEP_WORDS = 9
JOB_WORDS = 8  # buffers, table, extent, pieces, step, two of .teamwork, buffer count
_DATA_OFFSET = 16  # of PyArrayObject_fields.data: after ob_refcnt and ob_type


def emit_driver(
    module: Any, builder: Any, functions: Sequence[Any], arguments: Sequence[Any]
) -> Any:
    """Emit the body of the entry at ``builder``; returns the i64 result.

    Parameters
    ----------
    module : llvmlite.ir.Module
    builder : llvmlite.ir.IRBuilder
    functions : sequence of llvmlite.ir.Function
        The nest functions by number, of type ``SIGNATURE``.
    arguments : sequence of i64 values
        table, first, last, arena, pool, threads, arrays.
    """
    b = builder
    table_object, first, last, arena, pool, threads, given = arguments
    table = Words(b, data_pointer(b, table_object))
    count, steps = table[0], table[1]
    # Addresses of all buffers: a buffer is an array of this call or a place in the arena.
    arrays = Words(b, given)
    base = b.ptrtoint(data_pointer(b, arena), I64)
    buffers = Words(b, b.alloca(I64, size=b.add(count, I64(1))))
    context = Words(b, b.alloca(I64, size=I64(CONTEXT_WORDS)))
    buffers[0] = context.address(ERROR)
    with counted_loop(b, I64(0), count) as k:
        source = table[b.add(k, I64(HEADER))]
        with b.if_else(b.icmp_signed("<", source, I64(0))) as (is_array, in_arena):
            with is_array:
                array = arrays[b.sub(I64(-1), source)]
                buffers[b.add(k, I64(1))] = b.ptrtoint(data_pointer(b, array), I64)
            with in_arena:
                buffers[b.add(k, I64(1))] = b.add(base, source)
    run = _emit_run(module, functions)
    job = Words(b, b.alloca(I64, size=I64(JOB_WORDS)))
    job[0] = b.ptrtoint(buffers.pointer, I64)
    job[1] = b.ptrtoint(table.pointer, I64)
    job[7] = count
    for word, value in (
        (ERROR, I64(0)),
        (BUFFERS, job[0]),
        (TABLE, job[1]),
        (STEPS, table.address(steps)),
        (RUN, b.ptrtoint(run, I64)),
        (POOL, pool),
        (THREADS, threads),
        (JOB, b.ptrtoint(job.pointer, I64)),
    ):
        context[word] = value
    Watch(b, context.place(WATCH)).begin(b)
    pool_pointer = b.inttoptr(pool, POINTER)
    get_threads, set_threads = table[2], table[3]
    uses_library = b.icmp_unsigned("!=", set_threads, I64(0))
    with b.if_then(uses_library):
        emit_library_entry(b, pool_pointer, get_threads, set_threads)
    b.call(run, [context.pointer, first, last])
    with b.if_then(uses_library):
        emit_library_exit(b, pool_pointer, set_threads)
    return context[ERROR]


_RUN = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64])


def _emit_run(module: Any, functions: Sequence[Any]) -> Any:
    """``run(context, first, last)``: a range of steps, until something says stop."""
    run = ir.Function(module, _RUN, module.get_unique_name("run"))
    run.linkage = "internal"
    calls = _emit_calls(module, functions)
    task = _emit_task(module, calls)
    context_pointer, first, last = run.args
    b = ir.IRBuilder(run.append_basic_block("entry"))
    context = Words(b, context_pointer)
    watch = Watch(b, context.place(WATCH))
    table, steps, job = (Words(b, context[k]) for k in (TABLE, STEPS, JOB))
    with counted_loop(b, first, last) as number, b.if_then(b.not_(watch.stopped(b))):
        step = steps.part(b.mul(number, I64(STEP_WORDS)))
        kind = step[4]
        with b.if_else(b.icmp_signed("<", kind, I64(0)), likely=False) as (region, plain):
            with region:
                is_loop = b.icmp_signed("==", kind, I64(ITERATION))
                function = b.select(is_loop, table[4], table[5])
                call_address(b, function, [context_pointer, table.place(step[2])])
            with plain:
                _emit_step(b, context, step, job, task, calls, watch)
    b.ret_void()
    return run


def _emit_step(
    b: Any, context: Words, step: Words, job: Words, task: Any, calls: Any, watch: Watch
) -> None:
    """One step: alone, piece by piece, or shared by threads."""
    extent, pieces = step[0], step[1]
    simple = b.and_(b.icmp_signed("<=", pieces, I64(1)), b.icmp_signed("==", step[4], I64(0)))
    with b.if_else(simple) as (at_once, in_pieces):
        with at_once:
            buffers, table = (b.inttoptr(context[k], POINTER) for k in (BUFFERS, TABLE))
            b.call(calls, [buffers, table, step.pointer, I64(0), extent])
        with in_pieces:
            job[2], job[PIECES], job[4] = extent, pieces, step.address(0)
            pool, threads = context[POOL], context[THREADS]
            several = b.icmp_signed(">", pieces, I64(1))
            is_shared = b.and_(several, b.icmp_unsigned("!=", pool, I64(0)))
            with b.if_else(is_shared) as (shared, alone):
                with shared:
                    pool_pointer = b.inttoptr(pool, POINTER)
                    emit_shared(b, task, job.pointer, pool_pointer, threads, watch)
                with (
                    alone,
                    counted_loop(b, I64(0), pieces) as piece,
                    b.if_then(b.not_(watch.stopped(b))),
                ):
                    b.call(task, [job.pointer, piece])
                    with b.if_then(several):
                        watch.look(b)
    watch.worked(b, step[8])


def data_pointer(b: Any, array_object: Any) -> Any:
    """The data pointer of the NumPy array object at an i64 address."""
    field = b.inttoptr(b.add(array_object, I64(_DATA_OFFSET)), POINTER)
    return b.load(field, typ=POINTER)


def _emit_task(module: Any, calls: Any) -> Any:
    """``task(job, piece)``: one piece of one step.

    A plain step calls its functions over the piece. A tile does so chunk by chunk, with a table of
    buffers in which those that live in scratch are placed so that row numbers still fit.
    """
    function = ir.Function(module, TASK, module.get_unique_name("task"))
    function.linkage = "internal"
    job, piece = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def word(pointer: Any, k: Any) -> Any:
        at = I64(k) if isinstance(k, int) else k
        return b.load(b.gep(pointer, [at], source_etype=I64), typ=I64)

    buffers, table, step = (b.inttoptr(word(job, k), POINTER) for k in (0, 1, 4))
    extent, pieces, count = word(job, 2), word(job, PIECES), word(job, 7)
    # Long pieces begin at multiples of 16, so that vectors stay on cache lines.
    long = b.icmp_signed(">=", extent, b.mul(pieces, I64(512)))
    keep = b.select(long, I64(-16), I64(-1))
    after = b.add(piece, I64(1))
    low = b.and_(b.sdiv(b.mul(extent, piece), pieces), keep)
    high = b.and_(b.sdiv(b.mul(extent, after), pieces), keep)
    high = b.select(b.icmp_signed("==", after, pieces), extent, high)
    chunk = word(step, 4)
    with b.if_else(b.icmp_signed("==", chunk, I64(0))) as (plain, tiled):
        with plain:
            b.call(calls, [buffers, table, step, low, high])
        with tiled:
            scratch_at, scratch_count, scratch_bytes = (word(step, k) for k in (5, 6, 7))
            own = b.alloca(I64, size=b.add(count, I64(1)))
            copy = c_function(module, "memcpy", POINTER, POINTER, POINTER, I64)
            b.call(copy, [own, buffers, b.mul(b.add(count, I64(1)), I64(8))])
            scratch = b.ptrtoint(b.alloca(ir.IntType(8), size=b.add(scratch_bytes, I64(64))), I64)
            scratch = b.and_(b.add(scratch, I64(63)), I64(-64))
            with _chunks(b, low, high, chunk) as (start, stop):
                with counted_loop(b, I64(0), scratch_count) as k:
                    at = b.add(scratch_at, b.mul(k, I64(3)))
                    number, offset, row_bytes = (word(table, b.add(at, I64(j))) for j in range(3))
                    place = b.sub(b.add(scratch, offset), b.mul(start, row_bytes))
                    b.store(place, b.gep(own, [b.add(number, I64(1))], source_etype=I64))
                b.call(calls, [own, table, step, start, stop])
    b.ret_void()
    return function


@contextmanager
def _chunks(b: Any, low: Any, high: Any, chunk: Any) -> Iterator[tuple[Any, Any]]:
    """``for (start = low; start < high; start = stop)`` with stop = min(start + chunk, high)."""
    count = b.sdiv(b.add(b.sub(high, low), b.sub(chunk, I64(1))), chunk)
    with counted_loop(b, I64(0), count) as k:
        start = b.add(low, b.mul(k, chunk))
        stop = b.add(start, chunk)
        yield start, b.select(b.icmp_signed("<", stop, high), stop, high)


_CALLS = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, POINTER, I64, I64])


def _emit_calls(module: Any, functions: Sequence[Any]) -> Any:
    """``calls(buffers, table, step, low, high)``: the functions of a step, in turn."""
    function = ir.Function(module, _CALLS, module.get_unique_name("calls"))
    function.linkage = "internal"
    buffers, table, step, low, high = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def word(pointer: Any, at: Any) -> Any:
        return b.load(b.gep(pointer, [at], source_etype=I64), typ=I64)

    first, count = word(step, I64(2)), word(step, I64(3))
    with counted_loop(b, I64(0), count) as k:
        at = b.add(first, b.mul(k, I64(2)))
        number, frame = word(table, at), word(table, b.add(at, I64(1)))
        frame_pointer = b.gep(table, [frame], source_etype=I64)
        done = b.append_basic_block("done")
        switch = b.switch(number, done)
        for n, callee in enumerate(functions):
            block = b.append_basic_block(f"function{n}")
            switch.add_case(I64(n), block)
            b.position_at_end(block)
            b.call(callee, [buffers, frame_pointer, low, high])
            b.branch(done)
        b.position_at_end(done)
    b.ret_void()
    return function
