"""The planned peak is what a call allocates: by our counters, and by Python's own account."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.kernels import storage
from tilegrad.kernels.cpu import lines

RNG = np.random.default_rng(0)
SQUARE = RNG.standard_normal((300, 300))
TALL = RNG.standard_normal((20_000, 12))
LONG = RNG.standard_normal(400_000)


def straight(x):
    """Column means are needed before the next loop can begin: intermediates in the arena."""
    for _ in range(3):
        x = tg.tanh(x - tg.mean(x, axis=0, keepdims=True))
    return x, tg.sum(x * x, axis=1)


def updated(x):
    """Rows of an intermediate overwritten one after the other, in its own memory."""
    y = tg.sort(x, axis=0)
    for k in range(5):
        y = y.at[k].set(tg.sin(x[k]))
    return tg.sum(y, axis=0)


def added(x):
    y = tg.sort(x, axis=0)
    return tg.sum(y.at[tg.arange(3) // 2].add(1.5), axis=1)


def library(x):
    """Sorted copies: library calls between loops."""
    y = tg.sort(tg.exp(x), axis=1)
    return tg.sort(y * x, axis=0), tg.sum(y, axis=1)


def products(x):
    y = x @ x
    return (y * 0.5) @ x + y


def split_sums(v):
    """Long reductions leave a state for each block."""
    return tg.sum(tg.exp(v)), tg.max(v * v)


def gradient(x):
    return tg.grad(lambda y: tg.sum(tg.tanh(y @ y) ** 2))(x)


PROGRAMS = [
    (straight, TALL),
    (straight, SQUARE[:5]),
    (updated, TALL),
    (added, TALL),
    (library, SQUARE),
    (products, SQUARE),
    (gradient, SQUARE),
    (split_sums, LONG),
]
IDS = [f"{f.__name__}-{x.shape}" for f, x in PROGRAMS]


def allocated(function, x):
    """Bytes that a call asks the system for, without what aligns large blocks."""
    storage.release()
    with tg.counters() as count:
        tg.eval(function(x))
    return count


@pytest.mark.parametrize(("program", "data"), PROGRAMS, ids=IDS)
def test_planned_is_counted(program, data):
    function, x = tg.jit(program), tg.asarray(data)
    cost = function.lower(x).cost()
    count = allocated(function, x)
    spare = count.allocated_bytes - (cost["peak_memory"] - x.nbytes)
    assert 0 <= spare <= storage.LINE * count.allocations
    results = cost["peak_memory"] - x.nbytes - cost["arena"]
    again = allocated(function, x)  # the arena stays with the plan
    assert results <= again.allocated_bytes <= results + storage.LINE * again.allocations


@pytest.mark.parametrize(("program", "data"), PROGRAMS, ids=IDS)
def test_planned_is_measured(program, data):
    """NumPy tells tracemalloc of each block of an array; scratch of tiles is on the stack."""
    square = data.ndim == 2 and data.shape[0] == data.shape[1]

    def cut(n):  # for a plan that never ran: it has no arena yet
        return tg.asarray(np.ascontiguousarray(data[:-n, :-n] if square else data[:-n]))

    function, x = tg.jit(program), cut(1)
    tg.eval(function(cut(2)))  # what is imported at first need is not counted
    planned = function.lower(x).cost()["peak_memory"] - x.nbytes
    storage.release()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        tg.eval(function(x))
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    copied = 0  # a sort works on copies of a few lines in each thread
    if program in (updated, added, library):
        copied = tg.config.num_threads * max(8 * 8 * len(x), 2 * lines.PIECE)
    assert planned <= peak <= planned + copied + 30_000  # what is not arrays


def test_updates_in_place_need_no_second_array():
    x = tg.asarray(TALL)
    arena = tg.jit(updated).lower(x).cost()["arena"]
    assert TALL.nbytes <= arena < 1.1 * TALL.nbytes


def test_a_chain_needs_two_places_however_long():
    def chain(x, length):
        for _ in range(length):
            x = tg.sort(x, axis=0)
        return tg.sum(x, axis=0)

    x = tg.asarray(TALL)
    for length in (2, 9):
        arena = tg.jit(chain, static_argnums=1).lower(x, length).cost()["arena"]
        assert arena == 2 * TALL.nbytes
