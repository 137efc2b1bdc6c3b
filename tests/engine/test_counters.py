"""What ``tg.counters`` counts, and that it counts nothing twice."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.kernels import storage
from tilegrad.kernels.events import LISTENERS


def softmax(x):
    e = tg.exp(x - tg.max(x, axis=-1, keepdims=True))
    return e / tg.sum(e, axis=-1, keepdims=True)


def test_a_function_is_traced_and_compiled_once():
    f = tg.jit(lambda x: tg.cos(x) * 3.25 + x)
    x = tg.ones(10)
    with tg.counters() as first:
        tg.eval(f(x))
    with tg.counters() as second:
        tg.eval(f(x), f(x))
    assert (first.traces, first.plans, first.programs) == (1, 1, 1)
    assert first.compilations == 1
    assert (second.traces, second.plans, second.compilations) == (0, 0, 0)
    assert (second.programs, second.kernels, second.library_calls) == (2, 2, 0)


def test_a_new_extent_is_traced_but_not_compiled():
    f = tg.jit(lambda x: tg.tan(x) - 1.75)
    tg.eval(f(tg.ones(1000)))
    x = tg.ones(3456)
    with tg.counters() as count:
        tg.eval(f(x))
    assert (count.traces, count.plans, count.compilations) == (1, 1, 0)


def test_bytes_are_those_of_the_buffers_a_step_touches():
    n = 500
    f = tg.jit(lambda x, y: x * y + 1.0)
    x, y = tg.ones(n), tg.ones(n)
    tg.eval(f(x, y))
    with tg.counters() as count:
        tg.eval(f(x, y))
    assert count.bytes == 3 * 8 * n
    assert count.flops == 2 * n


def test_a_fused_softmax_moves_the_matrix_twice():
    x = tg.asarray(np.random.default_rng(0).normal(size=(64, 100)))
    f = tg.jit(softmax)
    tg.eval(f(x))
    with tg.counters() as count:
        tg.eval(f(x))
    assert count.kernels == 1
    assert count.bytes == 2 * 8 * 6400


def test_counts_are_what_cost_foretells():
    f = tg.jit(tg.grad(lambda x: tg.sum(softmax(x) ** 2)))
    x = tg.asarray(np.random.default_rng(0).normal(size=(32, 50)))
    cost = f.lower(x).cost()
    tg.eval(f(x))
    with tg.counters() as count:
        tg.eval(f(x))
    assert {k: getattr(count, k) for k in ("bytes", "flops", "kernels")} == {
        k: cost[k] for k in ("bytes", "flops", "kernels")
    }


def test_library_calls():
    f = tg.jit(lambda x: tg.sort(x) * 2.0)
    x = tg.ones(9)
    tg.eval(f(x))
    with tg.counters() as count:
        tg.eval(f(x))
    assert (count.kernels, count.library_calls) == (2, 1)


def test_large_blocks_are_allocated_once():
    storage.release()
    n = storage.LARGE // 8 + 640
    f = tg.jit(lambda x: tg.exp(x) + 0.5)
    x = tg.ones(n)
    with tg.counters() as first:
        y = f(x)
        tg.eval(y)
    del y
    with tg.counters() as second:
        tg.eval(f(x))
    assert first.allocated_bytes >= 8 * n
    assert second.allocated_bytes < 8 * n


def test_contexts_nest_and_end():
    f = tg.jit(lambda x: x * 1.5 - 2.0)
    x = tg.ones(3)
    with tg.counters() as outer:
        tg.eval(f(x))
        with tg.counters() as inner:
            tg.eval(f(x))
        tg.eval(f(x))
    tg.eval(f(x))
    assert (outer.programs, inner.programs) == (3, 1)
    assert LISTENERS == []


def test_a_context_ends_on_an_error():
    with pytest.raises(RuntimeError), tg.counters():
        raise RuntimeError
    assert LISTENERS == []


def test_no_count_is_lost_between_threads():
    f = tg.jit(lambda x: x * 1.25 - 3.0)
    x = tg.ones(5)
    tg.eval(f(x))
    threads = [
        threading.Thread(target=lambda: [tg.eval(f(x)) for _ in range(200)]) for _ in range(4)
    ]
    with tg.counters() as count:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (count.programs, count.kernels) == (800, 800)
    assert count.as_dict()["programs"] == 800


def test_eager_operations_count():
    x = tg.ones(7)
    tg.eval(x + 1.0)
    with tg.counters() as count:
        tg.eval(x + 1.0)
    assert (count.programs, count.kernels, count.traces) == (1, 1, 0)
