"""Tracing, differentiating and computing in many threads at once."""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import tilegrad as tg


@pytest.mark.usefixtures("fresh_plans")
def test_many_threads_in_the_same_and_in_different_functions() -> None:  # case 121
    fs = [tg.jit(lambda x, k=k: tg.sum(tg.sin(x) + k)) for k in range(4)]
    x = np.arange(20_000.0)
    before = tg.jit.stats().compiles
    with ThreadPoolExecutor(8) as pool:
        y = list(pool.map(lambda i: float(fs[i % 4](x)), range(200)))
    assert len({(i % 4, v) for i, v in enumerate(y)}) == 4
    assert y[0] == pytest.approx(np.sum(np.sin(x)), rel=1e-12)
    assert tg.jit.stats().compiles - before == 4, "each is compiled once"


def test_one_pending_array_looked_at_by_many() -> None:
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            y = tg.sin(tg.asarray(np.arange(100.0))) * 2.0
            found = list(pool.map(lambda _, y=y: np.asarray(y).tobytes(), range(8)))
            assert len(set(found)) == 1


def test_derivatives_in_threads_do_not_meet() -> None:
    barrier = Barrier(4)

    def work(n: int) -> list[float]:
        results = []
        for k in range(20):

            def f(x: Any, k: int = k) -> Any:
                if k == 0:
                    barrier.wait(timeout=30)  # all inside at once
                y = x * x * float(n + k)
                assert y > 0
                return y * x

            results.append(float(tg.grad(f)(2.0)))
            results.append(float(tg.jit(tg.vmap(tg.grad(lambda x: x * x * n)))(np.ones(2))[1]))
        return results

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(1, 5)))
    for n, results in enumerate(found, 1):
        expected = [v for k in range(20) for v in (12.0 * (n + k), 2.0 * n)]
        assert results == expected


def test_history_is_kept_for_the_thread_that_differentiates() -> None:
    def f(x: Any) -> Any:
        y = x * x
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(float, y).result() == 9.0  # another thread computes it
        return y * x

    assert float(tg.grad(f)(3.0)) == 27.0


def test_tracing_in_one_thread_does_not_hinder_another() -> None:
    inside, go_on = Barrier(2), Barrier(2)

    def slow(x: Any) -> Any:
        inside.wait(timeout=30)
        go_on.wait(timeout=30)
        return x * 2.0

    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(tg.jit(slow), 3.0)
        inside.wait(timeout=30)
        x = tg.asarray(2.0) * 3.0
        assert float(x) == 6.0
        assert float(tg.jit(lambda y: y * x)(2.0)) == 12.0
        go_on.wait(timeout=30)
        assert float(later.result()) == 6.0


def test_tracer_that_comes_in_from_another_thread() -> None:
    def f(x: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: tg.sin(x) * 2.0).result()

    assert float(tg.jit(f)(1.0)) == pytest.approx(2 * np.sin(1.0))
    assert float(tg.grad(f)(1.0)) == pytest.approx(2 * np.cos(1.0))


def test_limits_and_modes_leave_tracers_of_other_threads_alone() -> None:
    def f(x: Any) -> Any:
        def work() -> Any:
            y = x
            for _ in range(300):
                y = y * 0.5 + x
            return y

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work).result()

    for settings in ({"pending_limit": 10}, {"eager": True}):
        with tg.config(**settings):
            assert float(tg.jit(f)(1.0)) == 2.0
            assert float(tg.grad(f)(1.0)) == 2.0


def test_one_pending_array_looked_at_by_many_threads_at_once() -> None:
    """Also the results of one call, which are computed together."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for k in range(100):
            value, gradient = tg.value_and_grad(lambda w, k=k: tg.sum(w * w * k))(np.ones(3))
            single = tg.asarray(np.ones(3)) * 2.0 + k
            barrier = Barrier(6)

            def look(x: Any, barrier: Barrier = barrier) -> Any:
                barrier.wait()
                return np.asarray(x).tolist()

            with ThreadPoolExecutor(6) as pool:
                found = list(pool.map(look, [value, gradient, single] * 2))
            assert found == [3.0 * k, [2.0 * k] * 3, [2.0 + k] * 3] * 2
    finally:
        sys.setswitchinterval(interval)
