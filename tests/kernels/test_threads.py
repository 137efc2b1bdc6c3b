"""Threads: the same bits for every number of them, and plans that several Python threads share."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from plans import graph_of, plan_of

from tilegrad.ir import ops
from tilegrad.ir.dtypes import float32
from tilegrad.ir.ops.shape import broadcast, transpose
from tilegrad.kernels.plan import compile_graph

N = 70_001  # odd, and enough work to be shared


def _softmax(x):
    top = broadcast(ops.max_(x, 1), x.shape, (0,))
    e = ops.exp(x - top)
    return e / broadcast(ops.sum_(e, 1), x.shape, (0,))


PROGRAMS = {
    "points": (lambda x: ops.exp(ops.sin(x)) * 2.0, (N,)),
    "points of few rows": (lambda x: ops.exp(x) + x, (3, N // 3)),
    "transposed": (lambda x: transpose(ops.exp(x)), (211, 333)),
    "rows": (lambda x: ops.sum_(ops.exp(x), 1), (211, 333)),
    "columns": (lambda x: ops.sum_(ops.exp(x), 0), (333, 211)),
    "one sum": (lambda x: ops.sum_(ops.exp(x)), (N * 3,)),
    "softmax": (_softmax, (97, 700)),
    "several outputs": (lambda x: (ops.exp(x), ops.sum_(x, 0), ops.argmax(x, 1)), (300, 301)),
    "single precision": (lambda x: ops.tanh(ops.convert(x, float32)), (N,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_number_of_threads_gives_the_same_bits(name):
    function, shape = PROGRAMS[name]
    x = np.random.default_rng(0).standard_normal(shape)
    plan = plan_of(function, x)
    expected = plan.run([x], 1)
    for threads in (2, 3, 8):
        for got, right in zip(plan.run([x], threads), expected, strict=True):
            assert got.tobytes() == right.tobytes()


def test_a_step_with_less_rows_than_threads():
    x = np.random.default_rng(0).standard_normal((1, N))
    plan = plan_of(lambda x: (ops.exp(x), ops.sum_(ops.exp(x), 0)), x)
    for got, right in zip(plan.run([x], 8), plan.run([x], 1), strict=True):
        assert got.tobytes() == right.tobytes()


def test_errors_in_any_piece_are_raised():
    x = np.arange(float(N))
    plan = plan_of(lambda x, i: ops.exp(ops.gather(x, i)), x, np.zeros(N, int))
    for place in (0, N // 2, N - 1):
        i = np.zeros(N, int)
        i[place] = N + place
        with pytest.raises(IndexError, match=f"index {N + place} is out of bounds"):
            plan.run([x, i], 2)
    plan.run([x, np.zeros(N, int)], 2)  # the error is not kept


@pytest.mark.parametrize("threads", [1, 2])
def test_python_threads_share_a_plan(threads):
    shape = (150, 401)
    plan = plan_of(lambda x: (_softmax(x), ops.sum_(x * x, 0)), (shape, "f8"))
    inputs = [np.random.default_rng(k).standard_normal(shape) for k in range(6)]
    expected = [plan.run([x]) for x in inputs]

    def work(k):
        for _ in range(20):
            for got, right in zip(plan.run([inputs[k]], threads), expected[k], strict=True):
                assert got.tobytes() == right.tobytes()

    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(work, k) for k in range(6)]:
            future.result()


def test_python_threads_compile_at_the_same_time():
    """New code and shared code, all at once from the start."""
    x = np.linspace(0.1, 2.0, 37)
    start = threading.Barrier(8)

    def work(k):
        graph = graph_of(lambda x: ops.log(x * float(k % 3 + 2)) + float(k % 2), x)
        start.wait()
        return compile_graph(graph).run([x])[0]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    for k, got in enumerate(results):
        np.testing.assert_allclose(got, np.log(x * (k % 3 + 2)) + k % 2, rtol=1e-15, atol=1e-15)


def test_the_first_call_of_a_process_may_come_from_several_threads():
    """numba itself is imported and the threading layer started under the race."""
    program = """
import sys; sys.path.insert(0, sys.argv[1])
import threading
import numpy as np
from plans import plan_of
from tilegrad.ir import ops
x = np.linspace(0.0, 1.0, 70001)
out, start = {}, threading.Barrier(4)
def work(k):
    start.wait()
    out[k] = plan_of(lambda x: ops.exp(x) * float(k), x).run([x], 2)[0]
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
assert all(np.allclose(out[k], np.exp(x) * k, rtol=1e-14) for k in range(4))
print("fine")
"""
    folder = str(Path(plan_of.__code__.co_filename).parent)
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr[-2000:]


def _in_a_process(program):
    folder = str(Path(plan_of.__code__.co_filename).parent)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, folder]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_a_forked_child_has_threads_of_its_own():
    """The parent's workers do not exist in the child; both go on."""
    program = """
import os, sys; sys.path.insert(0, sys.argv[1])
import numpy as np
from plans import plan_of
from tilegrad.ir import ops
x = np.linspace(0.0, 1.0, 200001)
plan = plan_of(lambda x: ops.exp(x) * 2.0, x)
right = plan.run([x], 1)[0].tobytes()
assert plan.run([x], 2)[0].tobytes() == right
child = os.fork()
for _ in range(20):
    assert plan.run([x], 2)[0].tobytes() == right
if child == 0:
    os._exit(0)
_, status = os.waitpid(child, 0)
print("fine" if status == 0 else status)
"""
    done = _in_a_process(program)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr[-2000:]


def test_a_process_ends_with_workers_asleep_or_at_work():
    program = """
import sys, threading; sys.path.insert(0, sys.argv[1])
import numpy as np
from plans import plan_of
from tilegrad.ir import ops
x = np.linspace(0.0, 1.0, 300001)
plan = plan_of(lambda x: ops.exp(ops.sin(x)), x)
plan.run([x], 4)
def work():
    while True:
        plan.run([x], 4)
threading.Thread(target=work, daemon=True).start()
plan.run([x], 4)
print("end")
"""
    for _ in range(3):
        done = _in_a_process(program)
        assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr[-2000:]


def test_many_short_steps_in_a_row_keep_their_order():
    """Each step waits for all pieces of the one before: a chain of transposes would show it."""
    x = np.random.default_rng(0).standard_normal((300, 301))

    def function(x):
        for _ in range(12):
            x = transpose(ops.cumsum(x, 0)) * 1e-2
        return x

    plan = plan_of(function, x)
    (expected,) = plan.run([x], 1)
    for _ in range(10):
        assert plan.run([x], 3)[0].tobytes() == expected.tobytes()
