"""Loops, open loops and branches as native code: the bits of the same steps run one by one."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from plans import graph_of, plan_of
from regions import cond, loop, run_by_steps, while_

from tilegrad.fusion import regions
from tilegrad.ir import ops
from tilegrad.ir.dtypes import float32, float64, int32, int64
from tilegrad.ir.errors import ConvergenceError
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from tilegrad.ir.ops.leaves import constant
from tilegrad.ir.ops.shape import broadcast_to, reshape
from tilegrad.kernels.plan import compile_graph


@pytest.fixture(autouse=True)
def _driver_only(monkeypatch):
    """Small regions too run as loops of the driver."""
    monkeypatch.setattr(regions, "lane_program", lambda node, lowering: None)


def agree(graph, arguments, *, threads=1, exact=True):
    """The compiled outputs, after comparing them with those of single steps and of NumPy."""
    plan = compile_graph(graph)
    found = plan.run([np.array(a) for a in arguments], threads)
    for got, right in zip(found, run_by_steps(graph, arguments), strict=True):
        assert (got.shape, got.dtype) == (right.shape, right.dtype)
        assert got.tobytes() == right.tobytes()
    for got, right in zip(found, interpret_graph(graph, arguments), strict=True):
        assert got.shape == right.shape
        if exact:
            np.testing.assert_array_equal(got, right)
        else:
            np.testing.assert_allclose(got, right, rtol=1e-12)
    again = plan.run([np.array(a) for a in arguments], threads)
    assert [a.tobytes() for a in again] == [a.tobytes() for a in found]
    return found


def rng(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# ------------------------------------------------------------------------------ counted loops


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


# --------------------------------------------------------------------------------- open loops


def doubled(limit=None):
    """Double until a bound is passed; records each value."""

    def program(bound, x):
        return while_(
            lambda bound, c, n: ops.lt(ops.sum_(c), bound),
            lambda i, c, n: (c * 2.0, n + i, c),
            cond_consts=[bound],
            init=[x, constant(0)],
            limit=limit,
        )

    return program


@pytest.mark.parametrize("bound", [0.0, 3.5, 7.0, 100.0, 1e30])
def test_an_open_loop(bound):
    arguments = [np.array(bound), np.ones(3)]
    agree(graph_of(doubled(), *arguments), arguments)


def test_an_open_loop_over_its_limit():
    plan = plan_of(doubled(10), np.array(1.0), np.ones(3))
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


# ----------------------------------------------------------------------------------- branches


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

    plan = plan_of(
        lambda k, x, n: cond(k, [bad, lambda x, n: n + 1], x, n), np.array(0), rng(3), np.array(4)
    )
    assert plan.run([np.array(1), rng(3), np.array(4)])[0] == 5
    with pytest.raises(ZeroDivisionError):
        plan.run([np.array(0), rng(3), np.array(4)])


# ------------------------------------------------------------------------------------ nesting


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


# -------------------------------------------------------------------------------------- tapes


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("bound", [0.0, 10.0, 1e12])
def test_a_tape_from_one_loop_to_another(bound, reverse):
    def program(bound, x):
        last, _, trips, tape = doubled()(bound, x)
        back = loop(
            lambda i, c, x: (c * 0.5 + x, c - x),
            init=[last],
            xs=[tape],
            count=trips,
            reverse=reverse,
        )
        return (*back, trips)

    arguments = [np.array(bound), rng(3) ** 2]
    agree(graph_of(program, *arguments), arguments)


def test_a_tape_inside_a_loop():
    """A tape of its own for each outer iteration."""

    def body(i, c):
        bound = ops.convert(i, float64) * 5.0 + 1.0
        _, _, trips, tape = doubled()(bound, c * 0.0 + 1.0)
        total, _ = loop(
            lambda i, s, x: (s + x, s), init=[c * 0.0], xs=[tape], count=trips, reverse=True
        )
        return total, total, trips

    graph = graph_of(lambda x: loop(body, init=[x], length=8), rng(2))
    agree(graph, [rng(2)])


def test_a_tape_as_input_may_have_any_length():
    def program(n, x):
        return loop(lambda i, c: (c + 1.0, c * 2.0), init=[x], count=n)

    last, tape = plan_of(program, np.array(1), rng(3)).run([np.array(5), rng(3)])
    from tilegrad.ir.graph import Graph
    from tilegrad.ir.ops.leaves import input_node
    from tilegrad.ir.types import GROWING, TensorType

    given = input_node(TensorType((GROWING, 3), float64), "tape")
    start, number = input_node(TensorType((3,), float64), "c"), graph_of(lambda n: n, np.array(1))
    (count,) = number.inputs
    outputs = loop(
        lambda i, c, x: (c - x, x), init=[start.out], xs=[given.out], count=count.out, reverse=True
    )
    graph = Graph((count, start, given), outputs)
    plan = compile_graph(graph)
    for rows in (5, 2, 0):
        results = plan.run([np.array(rows), last, np.ascontiguousarray(tape[:rows])])
        right = interpret_graph(graph, [np.array(rows), last, tape[:rows]])
        for got, expected in zip(results, right, strict=True):
            np.testing.assert_array_equal(got, expected)
    with pytest.raises(IndexError, match="fewer rows"):
        plan.run([np.array(6), last, tape])


def test_tapes_of_nothing():
    def program(n, x):
        return loop(lambda i, c: (c, c), init=[x], count=n)

    arguments = [np.array(4), np.empty((0, 2))]
    results = agree(graph_of(program, *arguments), arguments)
    assert results[1].shape == (4, 0, 2)


# -------------------------------------------------------------------------------------- lanes


COUNTS = [np.array([3, 0, 5]), np.array([[2], [7]]), np.array([0, 0]), np.zeros(0, np.int64)]


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_lanes_with_counts_of_their_own(counts, reverse):
    shape = (*counts.shape, 2)

    def body(i, w, c, total):
        return c * w + 1.0, total + ops.sum_(c), c

    def program(n, w, x, total):
        c, total, _ = loop(body, consts=[w], init=[x, total], count=n, reverse=reverse, shared=1)
        return c, total

    arguments = [counts, np.array(1.5), np.ones(shape), np.array(0.0)]
    agree(graph_of(program, *arguments), arguments)


@pytest.mark.parametrize("start", [[1.0, 100.0, 7.0], [200.0, 300.0], [1e-3], []], ids=str)
def test_lanes_of_an_open_loop(start):
    def program(bound, x):
        return while_(
            lambda bound, c: ops.lt(c, bound),
            lambda i, w, c: (c * w + 0.5,),
            cond_consts=[bound],
            consts=[constant(1.25)],
            init=[x],
        )

    arguments = [np.array(150.0), np.array(start, dtype=np.float64)]
    results = agree(graph_of(program, *arguments), arguments)
    assert results[1].shape == (len(start),)


def test_finished_lanes_cannot_go_wrong():
    """A lane that is done would divide by zero, or go out of bounds, or never end."""

    def body(i, table, n, c):
        (looped, _) = while_(
            lambda m: ops.any_(ops.ne(m, 0)),
            lambda j, m: (ops.maximum(m - 1, ops.minimum(m, 0)),),
            init=[n],
        )
        taken = ops.gather(table, n, axes=(0,))
        return n - 1, c + ops.floor_divide(60, n) + looped, taken

    def program(counts, table, c):
        n, c, _ = loop(body, consts=[table], init=[counts, c], count=counts)
        return n, c

    counts = np.array([3, 1, 5])
    table = np.arange(6)
    graph = graph_of(program, counts, table, np.zeros(3, np.int64))
    plan = compile_graph(graph)
    n, c = plan.run([counts, table, np.zeros(3, np.int64)])
    assert n.tolist() == [0, 0, 0]
    assert c.tolist() == [sum(60 // k for k in range(1, m + 1)) for m in (3, 1, 5)]


# --------------------------------------------------------------------------- updates in place


def rows_updated(i, c, x):
    row = dynamic_slice(c, i, constant(0), sizes=(1, c.shape[1]))
    return (dynamic_update_slice(c, reshape(x, (1, -1)) + row * 0.5, i + 1, constant(0)),)


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_rows_of_a_carry(trips):
    def program(c, xs):
        return loop(rows_updated, init=[c], xs=[xs], length=trips)

    arguments = [rng(40, 50), rng(trips, 50)]
    graph = graph_of(program, *arguments)
    agree(graph, arguments)
    before = arguments[0].copy()
    compile_graph(graph).run(arguments)
    assert arguments[0].tobytes() == before.tobytes()  # the caller's array is as it was


def test_updates_cost_their_rows():
    """A thousand rows of a carry of 8 MB: no copy of it but the first."""

    def program(c, xs):
        return loop(rows_updated, init=[c], xs=[xs], length=1000)

    plan = plan_of(program, ((1001, 1000), float64), ((1000, 1000), float64))
    assert plan.cost()["arena"] < 100_000
    assert plan.cost()["bytes"] < 50e6


def test_updates_through_branches_and_loops_inside():
    def add(c, i):
        old = dynamic_slice(c, i, constant(0), sizes=(1, 1))
        return dynamic_update_slice(c, old + 1.0, i, constant(1))

    def body(i, c):
        (d,) = cond(ops.remainder(i, 2), [add, lambda c, i: c], c, i)
        return loop(
            lambda j, i, d: (
                dynamic_update_slice(d, dynamic_slice(d, i, j, sizes=(1, 1)) * 2.0, j, i),
            ),
            consts=[i],
            init=[d],
            length=3,
        )

    def program(c):
        return loop(body, init=[c], length=5)

    arguments = [rng(40, 50)]
    graph = graph_of(program, *arguments)
    agree(graph, arguments)
    assert compile_graph(graph).cost()["arena"] < 8 * 40 * 50


def test_old_values_are_read_before_they_are_overwritten():
    def body(i, c, total):
        old = dynamic_slice(c, i, sizes=(1,))
        new = dynamic_update_slice(c, old * 2.0 + total, i)
        return (
            new,
            total + ops.sum_(old) + ops.sum_(c),
            dynamic_slice(c, i, sizes=(2,)),
            ops.max_(c),
        )

    def program(c, total):
        return loop(body, init=[c, reshape(total, (1,))], length=6)

    arguments = [rng(2000), np.array(0.25)]
    agree(graph_of(program, *arguments), arguments)


def test_two_carries_that_read_each_other():
    def body(i, a, b):
        new_a = dynamic_update_slice(a, dynamic_slice(b, i, sizes=(3,)) + 1.0, i)
        new_b = dynamic_update_slice(b, dynamic_slice(a, i + 1, sizes=(3,)) * 2.0, i)
        return new_a, new_b

    def crossed(i, a, b):
        return body(i, b, a)

    arguments = [rng(2000), rng(2000, seed=1)]
    for step in (body, crossed):
        graph = graph_of(lambda a, b, step=step: loop(step, init=[a, b], length=7), *arguments)
        agree(graph, arguments)


def test_the_same_start_for_two_carries():
    def body(i, a, b):
        return dynamic_update_slice(a, ops.sum_(b, keepdims=True), i), b * 0.5

    def program(x):
        y = ops.exp(x)
        return (*loop(body, init=[y, y], length=5), ops.sum_(y))

    agree(graph_of(program, rng(1500)), [rng(1500)], exact=False)


def test_an_open_loop_in_place():
    def body(i, c, n):
        return dynamic_update_slice(c, reshape(ops.convert(n, float64), (1,)), n), n + 1

    def program(c):
        return while_(lambda c, n: ops.lt(n, 5), body, init=[c, constant(0)])

    agree(graph_of(program, rng(3000)), [rng(3000)])


# ------------------------------------------------------------------------- errors, interrupts


def test_an_error_ends_all_loops_at_once():
    def inner(j, n):
        return (n - ops.floor_divide(n, n),)

    def body(i, n):
        (m,) = loop(inner, init=[n], length=1 << 60)
        return (m,)

    plan = plan_of(lambda n: loop(body, init=[n], length=1 << 60), np.array(3))
    with pytest.raises(ZeroDivisionError):
        plan.run([np.array(3)])


def test_an_index_error_tells_the_index():
    def body(i, x, c):
        return (c + ops.gather(x, i * 2, axes=(0,)),)

    plan = plan_of(lambda x, c: loop(body, consts=[x], init=[c], length=10), rng(7), np.array(0.0))
    with pytest.raises(IndexError, match="index 8 is out of bounds for axis 0 with size 7"):
        plan.run([rng(7), np.array(0.0)])


def test_tapes_are_freed_after_an_error():
    import resource

    def program(bound, n):
        return while_(
            lambda c, n: ops.lt(ops.sum_(c), 1e300),
            lambda i, n, c, m: (c + 1.0, ops.floor_divide(60_000, m) * 0 + m - n, c),
            consts=[n],
            init=[bound, constant(300)],
            limit=1000,
        )

    plan = plan_of(program, rng(1000), np.array(1))
    peaks = []
    for _ in range(60):
        with pytest.raises(ZeroDivisionError):
            plan.run([rng(1000), np.array(1)])
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert peaks[-1] - peaks[10] < 20_000  # kilobytes; 120 MB if none were freed


# ------------------------------------------------------------------------------------ threads


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_do_not_change_a_bit(threads):
    def body(i, w, c):
        s = ops.sum_(ops.exp(c), 1)
        return ops.tanh(ops.matmul(c, w)) + reshape(s, (-1, 1)) * 1e-3, s

    arguments = [rng(200, 200) / 20, rng(300, 200)]
    graph = graph_of(lambda w, c: loop(body, consts=[w], init=[c], length=3), *arguments)
    plan = compile_graph(graph)
    right = plan.run(arguments, 1)
    for got, expected in zip(plan.run(arguments, threads), right, strict=True):
        assert got.tobytes() == expected.tobytes()


def test_many_callers_of_one_plan():
    plan = plan_of(doubled(), np.array(1.0), rng(500))
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


# --------------------------------------------------------------------------------------- host


def test_loops_with_library_calls_run_on_the_host():
    def body(i, c, x):
        return ops.sort(c + x, 0), ops.sum_(c)

    def program(c, xs):
        last, sums = loop(body, init=[c], xs=[xs], length=4)
        return last * 2.0, sums

    arguments = [rng(30), rng(4, 30)]
    graph = graph_of(program, *arguments)
    agree(graph, arguments, exact=False)
    plan = compile_graph(graph)
    assert plan.cost()["host_loops"] == 1
    assert "a loop of the host: sort is a library's work" in plan.as_text("fused")


def test_open_loops_and_branches_on_the_host():
    def program(x):
        last, trips, tape = while_(
            lambda c: ops.lt(ops.max_(c), 50.0),
            lambda i, c: (ops.sort(c * -1.5, 0), c),
            init=[x],
        )
        back = loop(lambda i, c, x: (c + x,), init=[last], xs=[tape], count=trips)
        (chosen,) = cond(trips - 3, [lambda v: ops.sort(v, 0), lambda v: v * 2.0], last)
        return (*back, trips, tape, chosen)

    agree(graph_of(program, rng(9)), [rng(9)])


def test_lanes_on_the_host():
    def body(i, c):
        return (ops.sort(c * -1.5, 1),)

    def program(n, x):
        return loop(body, init=[x], count=n)

    arguments = [np.array([2, 0, 3]), rng(3, 5)]
    agree(graph_of(program, *arguments), arguments)


def test_a_tape_that_the_host_reads():
    """Written by native code, read by a loop of the host, and the other way round."""

    def program(bound, x):
        last, _, trips, tape = doubled()(bound, x)
        total, sorted_rows = loop(
            lambda i, c, x: (c + x, ops.sort(x, 0)), init=[last], xs=[tape], count=trips
        )
        return loop(
            lambda i, c, x: (c * 0.5 + x,),
            init=[total],
            xs=[sorted_rows],
            count=trips,
            reverse=True,
        )

    arguments = [np.array(1e4), rng(5) ** 2]
    agree(graph_of(program, *arguments), arguments)
