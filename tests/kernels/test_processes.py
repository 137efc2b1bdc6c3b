"""Forks, pools of processes, threads that call at once, and Ctrl-C."""

from __future__ import annotations

import os
import sys

import pytest
from scripts import interrupted, run

N = 60_000  # enough that two threads share the work
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

PROGRAM = f"""
import threading
f = tg.jit(lambda x: tg.exp(tg.sin(x)) * 2.0)
x = np.random.default_rng(0).standard_normal({N})
tg.config.num_threads = 2
"""

# Waits for a child; prints how it ended.
WAIT = """
def wait(child):
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@forks
def test_a_forked_child_has_a_pool_of_its_own():
    """Case: threads were at work before the fork; parent and child go on with threads."""
    script = (
        PROGRAM
        + WAIT
        + """
right = np.asarray(f(x))
child = os.fork()
if not child:
    same = np.array_equal(np.asarray(f(x)), right)
    new = np.asarray(tg.jit(lambda x: tg.cos(x) + tg.exp(x))(x))
    count = len([t for t in os.listdir("/proc/self/task")]) if os.path.exists("/proc") else 2
    grandchild = os.fork()
    if not grandchild:
        os._exit(0 if np.array_equal(np.asarray(f(x)), right) else 5)
    below = os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1])
    os._exit(0 if same and np.allclose(new, np.cos(x) + np.exp(x)) and count >= 2 else 4 + below)
wait(child)
print(np.array_equal(np.asarray(f(x)), right))
"""
    )
    assert run(script) == ["0", "True"]


@forks
def test_a_fork_while_another_thread_compiles():
    """The child can compile, whatever the parent was doing."""
    script = (
        PROGRAM
        + WAIT
        + """
def work():
    for k in range(4):
        g = tg.jit(lambda x, k=k: tg.sum(tg.exp(x * (k + 2.5)) + tg.sin(x + k + 0.25)))
        np.asarray(g(x))

np.asarray(f(x))
busy = threading.Thread(target=work)
busy.start()
children = []
for n in range(6):
    child = os.fork()
    if not child:
        y = np.asarray(tg.jit(lambda x: tg.cos(x) * (n + 0.125) + x)(x))
        os._exit(0 if np.allclose(y, np.cos(x) * (n + 0.125) + x) else 3)
    children.append(child)
for child in children:
    wait(child)
busy.join()
"""
    )
    assert run(script) == ["0"] * 6


@forks
def test_a_fork_while_another_thread_runs():
    script = (
        PROGRAM
        + WAIT
        + """
right = np.asarray(f(x))
done = False

def work():
    while not done:
        np.asarray(f(x))

threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for _ in range(8):
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(np.asarray(f(x)), right) else 3)
    wait(child)
done = True
for t in threads: t.join()
"""
    )
    assert run(script) == ["0"] * 8


MODULE = f"""
import numpy as np
import tilegrad as tg

f = tg.jit(lambda x: tg.sum(tg.exp(tg.sin(x)) * 2.0))

def work(k):
    return float(f(np.full({N}, float(k))))
"""

POOLS = {
    "multiprocessing": """
import multiprocessing
def everywhere():
    with multiprocessing.get_context(os.environ["METHOD"]).Pool(2) as pool:
        return pool.map(module.work, range(6))
""",
    "concurrent.futures": """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
def everywhere():
    context = multiprocessing.get_context(os.environ["METHOD"])
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        return list(pool.map(module.work, range(6)))
""",
    "joblib": """
import joblib
def everywhere():
    return joblib.Parallel(2)(joblib.delayed(module.work)(k) for k in range(6))
""",
}


@pytest.mark.parametrize(
    ("pool", "method"),
    [
        *[("multiprocessing", method) for method in ("fork", "spawn", "forkserver")],
        *[("concurrent.futures", method) for method in ("fork", "spawn")],
        ("joblib", "fork"),  # it has a method of its own
    ],
)
def test_pools_of_processes(pool, method, tmp_path):
    """Functions that were compiled before the pool was made, and are called in it."""
    if pool == "joblib":
        pytest.importorskip("joblib")
    if method != "spawn" and sys.platform == "win32":
        pytest.skip("no fork here")
    (tmp_path / "module.py").write_text(MODULE)
    main = tmp_path / "main.py"
    main.write_text(
        "import os\nimport module\n"
        + POOLS[pool]
        + "if __name__ == '__main__':\n"
        + "    here = [module.work(k) for k in range(6)]\n"
        + "    print(everywhere() == here)\n"
    )
    script = f"import runpy; runpy.run_path({str(main)!r}, run_name='__main__')"
    found = run(script, tmp_path / "cache", PYTHONPATH=str(tmp_path), METHOD=method)
    assert found == ["True"]


def test_threads_that_need_the_same_code_at_once():
    """It is compiled once; all get the same bits."""
    script = (
        PROGRAM
        + """
gate = threading.Barrier(8)
found = [None] * 8

def work(k):
    gate.wait()
    g = f if k % 2 else tg.jit(lambda x: tg.exp(tg.sin(x)) * 2.0)
    found[k] = np.asarray(g(x)).tobytes()

threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
with tg.counters() as seen:
    for t in threads: t.start()
    for t in threads: t.join()
print(len(set(found)), None in found, seen.compilations)
"""
    )
    assert run(script) == ["1", "False", "1"]


# A call of a third of a second at least, which tells when it begins.
LONG = """
tg.config.num_threads = int(os.environ["THREADS"])

def long(x):
    for k in range(20):
        x = tg.sin(x + k) * tg.exp(tg.cos(x))
    return REDUCE(x)

f = tg.jit(long)
x = np.ones(SHAPE)
right = np.asarray(f(x)).tobytes()
print("begin", flush=True)
try:
    np.asarray(f(x))
    print("ran through")
except KeyboardInterrupt:
    print("interrupted")
print(np.asarray(f(x)).tobytes() == right)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way")
@pytest.mark.parametrize(
    ("threads", "reduce", "shape"),
    [
        (2, "(lambda x: x)", "6_000_000"),
        (2, "tg.sum", "6_000_000"),
        (1, "tg.sum", "(6_000, 1000)"),
    ],
)
def test_an_interrupt_stops_a_long_call(threads, reduce, shape):
    script = LONG.replace("REDUCE", reduce).replace("SHAPE", shape)
    interrupted(script, THREADS=str(threads))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way")
def test_a_handler_that_does_not_raise_changes_nothing():
    script = (
        PROGRAM
        + """
import signal
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(float(np.sum(np.asarray(f(x))))))
right = float(np.sum(np.asarray(f(x))))
long = tg.jit(lambda x: tg.sum(tg.sin(tg.exp(tg.cos(x * 1.5)))))
big = np.ones(24_000_000)
first = float(long(big))
signal.setitimer(signal.ITIMER_REAL, 0.02)
found = set()
while not seen:
    found.add(float(long(big)))
print(found == {first}, seen == [right])
"""
    )
    assert run(script) == ["True", "True"]
