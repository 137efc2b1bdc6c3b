"""Loops, open loops and branches of the driver: the bits of the same steps run one by one."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from plans import graph_of
from regions import agree, cond, doubled, driven, loop, rng, while_
from scripts import interrupted, run

from tilegrad.ir import ops
from tilegrad.ir.dtypes import float32, int32, int64
from tilegrad.ir.errors import ConvergenceError
from tilegrad.ir.ops.leaves import constant
from tilegrad.ir.ops.shape import broadcast_to, reshape

# ----------------------------------------------------------------------------------- counted loops


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_with_constants_carries_sequences_and_records(trips, reverse):
    def body(i, w, c, n, x):
        new = ops.sin(c * w) + x
        return new, n + i, c * 2.0, n * 3

    def program(w, c, n, xs):
        return loop(body, consts=[w], init=[c, n], xs=[xs], length=trips, reverse=reverse)

    arguments = [rng(3), rng(3), np.array(7), rng(trips, 3)]
    agree(graph_of(program, *arguments), arguments, exact=False)


@pytest.mark.parametrize("trips", [1, 2, 5])
@pytest.mark.parametrize("shape", [(), (7,), (40, 30)])
def test_the_bits_of_the_unrolled_program(trips, shape):
    def body(i, w, c, d, x):
        s = ops.sum_(ops.tanh(c * w))
        return ops.sin(d) + x * s, c - ops.exp(x), ops.maximum(c, d)

    def rolled(w, c, d, xs):
        return loop(body, consts=[w], init=[c, d], xs=[xs], length=trips)

    def unrolled(w, c, d, xs):
        rows = []
        for i in range(trips):
            x = reshape(ops.slice_axis(xs, 0, i, i + 1), shape)
            c, d, row = body(constant(i), w, c, d, x)
            rows.append(reshape(row, (1, *shape)))
        return c, d, ops.concat(rows, 0)

    arguments = [rng(*shape), rng(*shape, seed=1), rng(*shape, seed=2), rng(trips, *shape)]
    right = driven(graph_of(unrolled, *arguments)).run(arguments)
    found = driven(graph_of(rolled, *arguments)).run(arguments)
    assert [a.tobytes() for a in found] == [a.tobytes() for a in right]


MIXED = [
    np.array([True, False, True]),
    np.arange(4, dtype=np.int32),
    np.float32([1.5, -2.0]),
    np.array(0.25),
    np.array([[1 + 2j, 3 - 1j]]),
    np.empty((0, 3)),
    np.array(5, np.uint8),
]


@pytest.mark.parametrize("trips", [0, 1, 4, 5])
def test_carries_of_every_kind(trips):
    def body(i, flag, whole, single, scalar, z, nothing, byte):
        two = ops.convert(constant(2.0), float32)
        return (
            ops.not_(flag),
            whole + ops.convert(i, int32),
            single * two,
            scalar + 1.0,
            z * z,
            nothing + 1.0,
            byte + byte,
            flag,
            z,
        )

    graph = graph_of(lambda *init: loop(body, init=init, length=trips), *MIXED)
    agree(graph, MIXED)


def test_a_loop_without_carries():
    graph = graph_of(lambda xs: loop(lambda i, x: (x * x, i), xs=[xs], length=5), rng(5, 2))
    agree(graph, [rng(5, 2)])


def test_a_loop_that_only_counts():
    graph = graph_of(lambda x: loop(lambda i, x: (x,), init=[x], length=5), rng(2))
    agree(graph, [rng(2)])


def test_carries_change_places():
    def body(i, a, b, c):
        return b, c, a, a, a

    arguments = [rng(3), rng(3, seed=1), rng(3, seed=2)]
    for trips in range(5):
        graph = graph_of(lambda *v, n=trips: loop(body, init=v, length=n), *arguments)
        agree(graph, arguments)


def test_carries_that_are_constants_and_inputs():
    def body(i, w, c, d):
        return constant(3.0), broadcast_to(constant(2.0), (3,)), w, i

    graph = graph_of(
        lambda w, c, d: loop(body, consts=[w], init=[c, d], length=3),
        rng(2),
        np.array(1.0),
        rng(3),
    )
    agree(graph, [rng(2), np.array(1.0), rng(3)])


def test_the_same_value_as_constant_carry_and_sequence():
    def body(i, w, c, x):
        return c + w + x, w, x

    def program(a):
        b = ops.sum_(a, 0)
        return loop(body, consts=[b], init=[b], xs=[a], length=4)

    agree(graph_of(program, rng(4, 3)), [rng(4, 3)])


@pytest.mark.parametrize("trips", [-3, 0, 1, 6])
def test_a_count_known_at_run_time(trips):
    def program(n, x):
        return loop(lambda i, c: (c * 1.5 + 1.0, c), init=[x], count=n)

    arguments = [np.array(trips), rng(4)]
    results = agree(graph_of(program, *arguments), arguments)
    assert results[1].shape == (max(trips, 0), 4)


# -------------------------------------------------------------------------------------- open loops


@pytest.mark.parametrize("bound", [0.0, 3.5, 7.0, 100.0, 1e30])
def test_an_open_loop(bound):
    arguments = [np.array(bound), np.ones(3)]
    agree(graph_of(doubled(), *arguments), arguments)


def test_an_open_loop_over_its_limit():
    plan = driven(graph_of(doubled(10), np.array(1.0), np.ones(3)))
    assert plan.run([np.array(3 * 2.0**10), np.ones(3)])[2] == 10
    with pytest.raises(ConvergenceError, match="still holds after max_steps=10 steps"):
        plan.run([np.array(3 * 2.0**10 + 1), np.ones(3)])
    assert plan.run([np.array(4.0), np.ones(3)])[2] == 1


def test_a_condition_that_is_a_carry():
    def program(go, x):
        return while_(lambda go, c: go, lambda i, go, c: (ops.lt(c, 9.0), c + 1.0), init=[go, x])

    for go in (True, False):
        arguments = [np.array(go), np.array(0.5)]
        agree(graph_of(program, *arguments), arguments)


# ---------------------------------------------------------------------------------------- branches


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9])
def test_branches(index):
    branches = [
        lambda x, y: (x + y, x),
        lambda x, y: (x * y, y),
        lambda x, y: (constant(np.arange(3.0)), ops.exp(x)),
    ]
    graph = graph_of(lambda k, x, y: cond(k, branches, x, y), np.array(0), rng(3), rng(3))
    agree(graph, [np.array(index), rng(3), rng(3, seed=1)], exact=False)


def test_the_other_branch_does_not_run():
    def bad(x, n):
        return ops.floor_divide(n, n * 0)

    branches = [bad, lambda x, n: n + 1]
    graph = graph_of(lambda k, x, n: cond(k, branches, x, n), np.array(0), rng(3), np.array(4))
    plan = driven(graph)
    assert plan.run([np.array(1), rng(3), np.array(4)])[0] == 5
    with pytest.raises(ZeroDivisionError):
        plan.run([np.array(0), rng(3), np.array(4)])


# ----------------------------------------------------------------------------------------- nesting


def collatz(n):
    """Trips of a loop whose body is a branch, as an open loop."""

    def step(i, n, count):
        even = ops.eq(ops.remainder(n, 2), 0)
        (new,) = cond(
            ops.convert(even, int64),
            [lambda n: n * 3 + 1, lambda n: ops.floor_divide(n, 2)],
            n,
        )
        return new, count + 1

    return while_(lambda n, count: ops.ne(n, 1), step, init=[n, constant(0)])


def test_branches_in_open_loops_in_loops():
    def body(i, n, total):
        last, trips, _ = collatz(n + i)
        return n, total + trips, last

    graph = graph_of(lambda n, t: loop(body, init=[n, t], length=6), np.array(7), np.array(0))
    results = agree(graph, [np.array(7), np.array(0)])
    assert results[1] == 16 + 3 + 19 + 6 + 14 + 9


@pytest.mark.parametrize("trips", [(0, 3), (3, 0), (1, 1), (4, 3)])
def test_loops_in_loops(trips):
    outer, inner = trips

    def body(i, w, c, x):
        d, ys = loop(lambda j, w, d, x: (d * w + x, d), consts=[w], init=[c], xs=[x], length=inner)
        return d, ys, ops.sum_(ys)

    def program(w, c, xs):
        return loop(body, consts=[w], init=[c], xs=[xs], length=outer)

    arguments = [rng(2), rng(2), rng(outer, inner, 2)]
    agree(graph_of(program, *arguments), arguments, exact=False)


def test_loops_in_branches_with_work_around():
    def long(x, n):
        c, ys = loop(lambda i, c: (ops.tanh(c) + 0.5, c), init=[x], length=9)
        return c + ops.sum_(ys, 0), n + 1

    def short(x, n):
        return x * 2.0, n

    def body(i, w, c, n):
        d, m = cond(ops.remainder(i, 3) - 1, [long, short], ops.matmul(c, w), n)
        return d / 2.0, m

    def program(w, c, n):
        last, m = loop(body, consts=[w * 1.5], init=[ops.exp(c), n], length=7)
        return ops.sum_(last), m, last

    arguments = [rng(4, 4) / 4, rng(4), np.array(0)]
    agree(graph_of(program, *arguments), arguments, exact=False)


# ------------------------------------------------------------------------------ errors, interrupts


def test_an_error_ends_all_loops_at_once():
    def inner(j, n):
        return (n - ops.floor_divide(n, n),)

    def body(i, n):
        (m,) = loop(inner, init=[n], length=1 << 60)
        return (m,)

    plan = driven(graph_of(lambda n: loop(body, init=[n], length=1 << 60), np.array(3)))
    with pytest.raises(ZeroDivisionError):
        plan.run([np.array(3)])


def test_an_error_that_is_not_met_does_not_count():
    """The body of a loop without trips, the condition that has ended a loop."""

    def body(i, n, m):
        return n, ops.floor_divide(m, n)

    graph = graph_of(lambda n, m, k: loop(body, init=[n, m], count=k), *[np.array(1)] * 3)
    plan = driven(graph)
    assert plan.run([np.array(0), np.array(8), np.array(0)])[1] == 8
    assert plan.run([np.array(2), np.array(8), np.array(3)])[1] == 1
    with pytest.raises(ZeroDivisionError):
        plan.run([np.array(0), np.array(8), np.array(1)])


def test_an_index_error_tells_the_index():
    def body(i, x, c):
        return (c + ops.gather(x, i * 2, axes=(0,)),)

    graph = graph_of(
        lambda x, c: loop(body, consts=[x], init=[c], length=10), rng(7), np.array(0.0)
    )
    plan = driven(graph)
    with pytest.raises(IndexError, match="index 8 is out of bounds for axis 0 with size 7"):
        plan.run([rng(7), np.array(0.0)])


# ----------------------------------------------------------------------------------------- threads


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_do_not_change_a_bit(threads):
    def body(i, w, c):
        s = ops.sum_(ops.exp(c), 1)
        return ops.tanh(ops.matmul(c, w)) + reshape(s, (-1, 1)) * 1e-3, s

    arguments = [rng(200, 200) / 20, rng(300, 200)]
    graph = graph_of(lambda w, c: loop(body, consts=[w], init=[c], length=3), *arguments)
    plan = driven(graph)
    right = plan.run(arguments, 1)
    for got, expected in zip(plan.run(arguments, threads), right, strict=True):
        assert got.tobytes() == expected.tobytes()


def test_many_callers_of_one_plan():
    plan = driven(graph_of(doubled(), np.array(1.0), rng(500)))
    bounds = [10.0**k for k in range(2, 12)]
    arguments = [[np.array(bound), np.ones(500)] for bound in bounds]
    right = [plan.run(a) for a in arguments]
    wrong = []

    def call(k):
        for _ in range(20):
            found = plan.run(arguments[k])
            if any(a.tobytes() != b.tobytes() for a, b in zip(found, right[k], strict=True)):
                wrong.append(k)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(len(bounds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ------------------------------------------------------------------------------------ processes

STRATEGIES = Path(__file__).parents[2] / "strategies"

ENDLESS = f"""
sys.path.insert(0, {str(STRATEGIES)!r})
from plans import graph_of
from regions import driven, loop, while_
from tilegrad.ir import ops

def tiny(x):
    return while_(lambda c: ops.ne(c, -1.0), lambda i, c: (ops.abs_(c) * 0.5,), init=[x])

def nested(x):
    inner = lambda i, c: loop(lambda j, c: (ops.abs_(c) * 0.5,), init=[c], length=3)
    return while_(lambda c: ops.ne(c, -1.0), inner, init=[x])

plan = driven(graph_of(PROGRAM, np.array(1.0)))
assert plan.run([np.array(-1.0)])[0] == -1
print("begin", flush=True)
try:
    plan.run([np.array(1.0)])
except KeyboardInterrupt:
    print("interrupted")
print(plan.run([np.array(-1.0)])[0] == -1)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way")
@pytest.mark.parametrize("program", ["tiny", "nested"])
def test_an_interrupt_ends_an_endless_loop(program):
    interrupted(ENDLESS.replace("PROGRAM", program))


STORED = f"""
sys.path.insert(0, {str(STRATEGIES)!r})
from plans import graph_of
from regions import cond, doubled, driven, loop, rng
from tilegrad.ir import ops

def program(bound, x):
    last, _, trips, tape = doubled()(bound, x)
    total, rows = loop(lambda i, c, x: (c + x, c), init=[last], xs=[tape], count=trips)
    (chosen,) = cond(trips - 3, [lambda v: v * 2.0, lambda v: v + 1.0], total)
    return chosen, rows

def plain(bound, x):
    return ops.sum_(x) + bound

plan = driven(graph_of(program, np.array(0.0), rng(3)))
found = plan.run([np.array(100.0), rng(3) ** 2])
same_steps = driven(graph_of(plain, np.array(0.0), rng(3))).run([np.array(1.0), rng(3)])
print(plan.from_disk, "numba" in sys.modules, *[a.tobytes().hex() for a in found])
"""


def test_code_from_disk(tmp_path):
    compiled, *right = run(STORED, tmp_path)
    loaded, *found = run(STORED, tmp_path)
    assert (compiled, loaded) == ("False", "True")
    assert found[0] == "False"  # nothing of numba is needed
    assert found[1:] == right[1:]


def test_code_with_and_without_regions_is_told_apart():
    """A loop without steps of its own, and a program of nothing but the same step."""
    counting = graph_of(lambda x: loop(lambda i: (i * 2,), length=4), np.array(1.0))
    doubling = graph_of(lambda n: n * 2, np.array(1))
    assert driven(counting).run([np.array(1.0)])[0].tolist() == [0, 2, 4, 6]
    assert driven(doubling).run([np.array(5)])[0] == 10
