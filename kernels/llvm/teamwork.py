"""Sharing the pieces of a step among threads, in native code.

A *pool* is a row of int64 words in memory that worker threads and callers share; a *job* is the
context of a step on its caller's stack. Pieces are taken from a counter in the job, by the caller
too: it never waits for a worker that has not started, so a busy machine, a forked child without
workers or a second caller costs speed at most.

    caller:  take the pool (or do all pieces alone); publish the job; wake workers; take pieces
             until none is left; withdraw the job; wait until no worker holds it
    worker:  look for a job for a while, then sleep; hold; read the job; take pieces; let go
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir

from .calls import call_address, call_int_address
from .interrupt import Watch
from .loops import counted_loop
from .memory import I64, POINTER

__all__ = [
    "BUSY",
    "JOB",
    "LIBRARY_THREADS",
    "LIBRARY_USERS",
    "POOL_WORDS",
    "SEMAPHORE",
    "SYMBOLS",
    "TASK",
    "emit_library_entry",
    "emit_library_exit",
    "emit_shared",
    "emit_worker",
]

# Words of a pool; each group on a cache line of its own.
BUSY, JOB, HOLDERS = 0, 8, 16
SEMAPHORE = 24  # a sem_t
ADDRESSES = 32  # of the C functions of SYMBOLS
LIBRARY_USERS, LIBRARY_THREADS = 40, 41  # plans inside BLAS, and its own number of threads
POOL_WORDS = 48
SYMBOLS = ("sem_post", "sem_wait", "sem_trywait", "sched_yield")

# Words of a job that are not the task's own business.
PIECES, NEXT, RUN = 3, 5, 6
TASK = ir.FunctionType(ir.VoidType(), [POINTER, I64])

_NEVER = 1 << 62  # more pieces than any job has
LOOKS = 2000  # times a worker looks for the next job before it sleeps: about 50 us


def _at(b: Any, base: Any, word: int) -> Any:
    return b.gep(base, [I64(word)], source_etype=I64)


def _add(b: Any, place: Any, amount: int) -> Any:
    return b.atomic_rmw("add", place, I64(amount), "seq_cst")


def _read(b: Any, place: Any) -> Any:
    return b.atomic_rmw("or", place, I64(0), "seq_cst")


def _swap(b: Any, place: Any, value: Any) -> Any:
    return b.atomic_rmw("xchg", place, value, "seq_cst")


def _address(b: Any, pool: Any, name: str) -> Any:
    return b.load(_at(b, pool, ADDRESSES + SYMBOLS.index(name)), typ=I64)


def _pause(b: Any) -> None:
    """Tell an x86 processor that this is a waiting loop."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return
    name = "llvm.x86.sse2.pause"
    function = b.module.globals.get(name)
    if function is None:
        function = ir.Function(b.module, ir.FunctionType(ir.VoidType(), []), name)
    b.call(function, [])


def _take_pieces(b: Any, job: Any, run: Any) -> None:
    """``run`` pieces of a job until its counter is used up."""
    pieces = b.load(_at(b, job, PIECES), typ=I64)
    head, body = b.append_basic_block("take"), b.append_basic_block("piece")
    done = b.append_basic_block("taken")
    b.branch(head)
    b.position_at_end(head)
    piece = _add(b, _at(b, job, NEXT), 1)
    b.cbranch(b.icmp_signed("<", piece, pieces), body, done)
    b.position_at_end(body)
    run(job, piece)
    b.branch(head)
    b.position_at_end(done)


def emit_shared(b: Any, task: Any, job: Any, pool: Any, threads: Any, watch: Watch) -> None:
    """Caller's side: all pieces of ``job`` (a pointer to its words) by ``task``."""

    def run(job: Any, piece: Any) -> None:
        b.call(task, [job, piece])
        watch.look(b)
        with b.if_then(watch.stopped(b), likely=False):
            _swap(b, _at(b, job, NEXT), I64(_NEVER))  # nobody finds another piece

    b.store(I64(0), _at(b, job, NEXT))
    b.store(b.ptrtoint(task, I64), _at(b, job, RUN))
    taken = _swap(b, _at(b, pool, BUSY), I64(1))
    with b.if_else(b.icmp_unsigned("==", taken, I64(0))) as (ours, others):
        with ours:
            _swap(b, _at(b, pool, JOB), b.ptrtoint(job, I64))
            semaphore = _at(b, pool, SEMAPHORE)
            with counted_loop(b, I64(1), threads):
                call_address(b, _address(b, pool, "sem_post"), [semaphore])
            _take_pieces(b, job, run)
            _swap(b, _at(b, pool, JOB), I64(0))
            _wait_for_holders(b, pool, watch)
            _swap(b, _at(b, pool, BUSY), I64(0))
        with others:
            _take_pieces(b, job, run)


def _wait_for_holders(b: Any, pool: Any, watch: Watch) -> None:
    """Wait; a piece that never ends asks the watch itself whether to stop."""
    before = b.block
    head, body = b.append_basic_block("wait"), b.append_basic_block("waiting")
    tired, again = b.append_basic_block("yield"), b.append_basic_block("again")
    done = b.append_basic_block("alone")
    b.branch(head)
    b.position_at_end(head)
    looks = b.phi(I64)
    looks.add_incoming(I64(0), before)
    holders = _read(b, _at(b, pool, HOLDERS))
    b.cbranch(b.icmp_signed(">", holders, I64(0)), body, done)
    b.position_at_end(body)
    _pause(b)
    b.cbranch(b.icmp_signed(">", looks, I64(LOOKS)), tired, again)
    b.position_at_end(tired)
    call_address(b, _address(b, pool, "sched_yield"), [])
    watch.look(b)
    b.branch(again)
    b.position_at_end(again)
    looks.add_incoming(b.add(looks, I64(1)), b.block)
    b.branch(head)
    b.position_at_end(done)


def emit_library_entry(b: Any, pool: Any, get: Any, set_: Any) -> None:
    """Let BLAS run on one thread while plans are inside it: the first one in remembers."""
    users = _add(b, _at(b, pool, LIBRARY_USERS), 1)
    with b.if_then(b.icmp_signed("==", users, I64(0))):
        threads = call_int_address(b, get, [])
        b.store(b.sext(threads, I64), _at(b, pool, LIBRARY_THREADS))
        call_address(b, set_, [ir.IntType(32)(1)])


def emit_library_exit(b: Any, pool: Any, set_: Any) -> None:
    """The last plan that leaves BLAS gives it its threads back."""
    users = _add(b, _at(b, pool, LIBRARY_USERS), -1)
    with b.if_then(b.icmp_signed("==", users, I64(1))):
        threads = b.load(_at(b, pool, LIBRARY_THREADS), typ=I64)
        call_address(b, set_, [b.trunc(threads, ir.IntType(32))])


def emit_worker(b: Any, pool_address: Any) -> None:
    """A worker's endless loop over the pool at an i64 address."""
    pool = b.inttoptr(pool_address, POINTER)
    semaphore = _at(b, pool, SEMAPHORE)

    def run(job: Any, piece: Any) -> None:
        call_address(b, b.load(_at(b, job, RUN), typ=I64), [job, piece])

    start = b.append_basic_block("start")
    b.branch(start)
    b.position_at_end(start)
    _look_for_job(b, pool, semaphore)
    _add(b, _at(b, pool, HOLDERS), 1)
    job = _read(b, _at(b, pool, JOB))
    with b.if_then(b.icmp_unsigned("!=", job, I64(0))):
        _take_pieces(b, b.inttoptr(job, POINTER), run)
    _add(b, _at(b, pool, HOLDERS), -1)
    _leave_job(b, pool, job)
    b.branch(start)
    b.position_at_end(b.append_basic_block("never"))


def _look_for_job(b: Any, pool: Any, semaphore: Any) -> None:
    """Return when there is a job: look for a while, then drop stale wake-ups and sleep."""
    before = b.block
    head, body = b.append_basic_block("look"), b.append_basic_block("looking")
    drain, asleep = b.append_basic_block("drain"), b.append_basic_block("sleep")
    last_look, found = b.append_basic_block("last_look"), b.append_basic_block("found")
    b.branch(head)
    b.position_at_end(head)
    looks = b.phi(I64)
    looks.add_incoming(I64(0), before)
    job = b.load_atomic(_at(b, pool, JOB), "monotonic", 8, typ=I64)
    b.cbranch(b.icmp_unsigned("!=", job, I64(0)), found, body)
    b.position_at_end(body)
    _pause(b)
    more = b.add(looks, I64(1))
    looks.add_incoming(more, b.block)
    b.cbranch(b.icmp_signed("<", more, I64(LOOKS)), head, drain)
    b.position_at_end(drain)
    got = call_int_address(b, _address(b, pool, "sem_trywait"), [semaphore])
    b.cbranch(b.icmp_signed("==", got, ir.IntType(32)(0)), drain, last_look)
    b.position_at_end(last_look)
    job = _read(b, _at(b, pool, JOB))
    b.cbranch(b.icmp_unsigned("!=", job, I64(0)), found, asleep)
    b.position_at_end(asleep)
    call_int_address(b, _address(b, pool, "sem_wait"), [semaphore])
    b.branch(found)
    b.position_at_end(found)


def _leave_job(b: Any, pool: Any, job: Any) -> None:
    """Wait until a used-up job is withdrawn, for a while: holding it again would help nobody."""
    with b.if_then(b.icmp_unsigned("!=", job, I64(0))):
        before = b.block
        head, body = b.append_basic_block("leave"), b.append_basic_block("leaving")
        done = b.append_basic_block("left")
        b.branch(head)
        b.position_at_end(head)
        looks = b.phi(I64)
        looks.add_incoming(I64(0), before)
        now = b.load_atomic(_at(b, pool, JOB), "monotonic", 8, typ=I64)
        same = b.icmp_unsigned("==", now, job)
        b.cbranch(b.and_(same, b.icmp_signed("<", looks, I64(LOOKS))), body, done)
        b.position_at_end(body)
        _pause(b)
        looks.add_incoming(b.add(looks, I64(1)), b.block)
        b.branch(head)
        b.position_at_end(done)
