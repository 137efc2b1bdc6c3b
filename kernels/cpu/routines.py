"""Fortran routines (BLAS, LAPACK) called piece by piece, the pieces shared by our threads.

A library call that is worth threads is cut into pieces by the shape alone: matrices of a batch,
panels of right sides. Each piece is one call of the routine, which itself runs on one thread
(:mod:`.openblas`), so the bits do not depend on how many threads there are.

All arguments of a Fortran routine are addresses, and from piece to piece they move evenly. So one
small native function for each number of arguments does for all routines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from ..llvm.calls import call_address
from ..llvm.driver import JOB_WORDS, data_pointer
from ..llvm.interrupt import Watch
from ..llvm.loops import counted_loop
from ..llvm.memory import I64, POINTER
from ..llvm.teamwork import PIECES, TASK, emit_library_entry, emit_library_exit, emit_shared
from ..machine import Code, compile_entry
from ..pool import pool_address
from .openblas import routine_address, thread_control

__all__ = ["Argument", "call_routine", "integer", "letter", "letters", "number", "word"]

Array = np.ndarray[Any, Any]

# Words of a job that are ours: address of the routine, table of its arguments, pieces of a group.
_ROUTINE, _TABLE, _GROUP = 0, 1, 2


class Argument(NamedTuple):
    """Where an argument lies: for piece ``p`` of group ``g`` at address ``start + g * group_step +
    p * step``. Who makes the call keeps that memory alive."""

    start: int
    group_step: int = 0
    step: int = 0


@cache
def letter(c: str) -> Argument:
    """A character."""
    return letters(c)


@cache
def letters(text: str) -> Argument:
    """Several characters one behind the other."""
    return _kept(np.frombuffer(text.encode(), np.uint8))


@cache
def integer(n: int) -> Argument:
    """A Fortran integer."""
    return _kept(np.array([n], np.int32))


@cache
def word(n: int) -> Argument:
    """An integer of 64 bits: an address, say."""
    return _kept(np.array([n], np.int64))


@cache
def number(value: int, dtype: np.dtype[Any]) -> Argument:
    """A real or complex number."""
    return _kept(np.array([value], dtype))


# Memory of the arguments above.
_KEPT: list[Array] = []


def _kept(array: Array) -> Argument:
    _KEPT.append(array)
    return Argument(array.ctypes.data)


def call_routine(
    name: str | int, arguments: Sequence[Argument], groups: int, pieces: int, threads: int
) -> None:
    """Call a routine for every piece of every group, in any order.

    Parameters
    ----------
    name : str or int
        Without Fortran's underscore: ``dpotrf``. Or the address of a routine like it.
    arguments : sequence of Argument
    groups, pieces : int
        How many groups there are, and pieces in each.
    threads : int
        How many may share them.
    """
    pool = pool_address(threads)
    get, set_ = thread_control() if pool else (0, 0)
    table = np.array(arguments, np.int64)
    _code(len(arguments)).call(
        name if isinstance(name, int) else routine_address(name),
        table,
        pieces,
        groups * pieces,
        pool,
        threads,
        get,
        set_,
    )


@cache
def _code(arity: int) -> Code:
    """``run(routine, table, group, pieces, pool, threads, get, set)`` for routines of an arity."""

    def emit(module: Any, b: Any, values: Sequence[Any]) -> Any:
        return _emit_run(module, b, values, arity)

    return compile_entry(f"routine{arity}", "ioiiiiii", emit)


def _emit_run(module: Any, b: Any, values: Sequence[Any], arity: int) -> Any:
    """All pieces: shared if there are several and a pool, one after the other if not."""
    routine, table_object, group, pieces, pool, threads, get, set_ = values
    table = b.ptrtoint(data_pointer(b, table_object), I64)
    task = _emit_task(module, arity)
    job = b.alloca(I64, size=I64(JOB_WORDS))
    for word, value in ((_ROUTINE, routine), (_TABLE, table), (_GROUP, group), (PIECES, pieces)):
        b.store(value, b.gep(job, [I64(word)], source_etype=I64))
    watch = Watch(b)
    shared = b.inttoptr(pool, POINTER)
    controlled = b.icmp_unsigned("!=", set_, I64(0))
    with b.if_then(controlled):
        emit_library_entry(b, shared, get, set_)
    team = b.and_(b.icmp_signed(">", threads, I64(1)), b.icmp_signed(">", pieces, I64(1)))
    with b.if_else(b.and_(team, b.icmp_unsigned("!=", pool, I64(0)))) as (together, alone):
        with together:
            emit_shared(b, task, job, shared, threads, watch)
        with alone, counted_loop(b, I64(0), pieces) as piece, b.if_then(b.not_(watch.stopped(b))):
            b.call(task, [job, piece])
            watch.look(b)
    with b.if_then(controlled):
        emit_library_exit(b, shared, set_)
    return I64(0)


def _emit_task(module: Any, arity: int) -> Any:
    """``task(job, piece)``: one call."""
    function = ir.Function(module, TASK, module.get_unique_name("task"))
    function.linkage = "internal"
    job, piece = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def word(pointer: Any, k: int) -> Any:
        return b.load(b.gep(pointer, [I64(k)], source_etype=I64), typ=I64)

    group = word(job, _GROUP)
    table = b.inttoptr(word(job, _TABLE), POINTER)
    outer, inner = b.sdiv(piece, group), b.srem(piece, group)
    operands = []
    for k in range(arity):
        start, group_step, step = (word(table, 3 * k + j) for j in range(3))
        moved = b.add(b.mul(outer, group_step), b.mul(inner, step))
        operands.append(b.inttoptr(b.add(start, moved), POINTER))
    call_address(b, word(job, _ROUTINE), operands)
    b.ret_void()
    return function
