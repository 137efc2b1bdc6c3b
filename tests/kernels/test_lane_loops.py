"""Loops of lane programs: inside each other, with errors and limits, tapes and interrupts."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from lane_programs import check, lanes_of, over, values
from plans import graph_of
from random_graphs import assert_same_bits
from regions import cond, loop, while_
from scripts import interrupted

from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64
from tilegrad.ir.errors import ConvergenceError
from tilegrad.ir.ops.leaves import constant
from tilegrad.ir.ops.shape import broadcast_to
from tilegrad.kernels.plan import compile_graph

STRATEGIES = Path(__file__).parent.parent / "strategies"


# ------------------------------------------------------------------------------- loops in loops


def inside(i, c, n):
    """A loop of i trips, branches and an open loop."""
    (c,) = loop(lambda j, c: (c * 0.5 + ops.convert(j, float64),), init=[c], count=i)
    c, n = cond(
        ops.remainder(n, 3),
        [lambda c, n: (c + 1.0, n), lambda c, n: (ops.flip(c, [0]), n + 1), lambda c, n: (c, n)],
        c,
        n,
    )
    c, trips = while_(lambda c: ops.gt(ops.sum_(c), 4.0), lambda j, c: (c * 0.25,), init=[c])
    return c, n + trips + 1


def test_loops_and_branches_nest():
    check(lambda c, n: loop(inside, init=[c, n], length=9), values("f8", 3, seed=4) * 5, 1)


def test_a_loop_in_lanes_has_trips_of_each_lane_too():
    def body(i, n, c):
        (c,) = loop(
            lambda j, c: (c * 0.5 + over(c, broadcast_to(ops.convert(j, float64), (20,))),),
            init=[c],
            count=n + broadcast_to(i, n.shape),
        )
        return (ops.flip(c, [1]),)

    check(
        lambda m, n, c: loop(body, consts=[n], init=[c], count=m),
        np.arange(20) % 4,
        np.arange(20) % 5 - 1,
        values("f8", 20, 2, seed=4),
    )


def test_a_limit_of_trips_is_kept():
    def program(c):
        return while_(lambda c: ops.lt(c, 100.0), lambda i, c: (c + 1.0,), init=[c], limit=40)

    graph = graph_of(program, np.array(0.0))
    plan = compile_graph(graph)
    assert lanes_of(plan)
    assert [float(x) for x in plan.run([np.array(60.0)])] == [100.0, 40.0]
    with pytest.raises(ConvergenceError, match="max_steps=40"):
        plan.run([np.array(59.0)])


def test_nothing_runs_on_what_an_error_left():
    """The first step fails and leaves the element at 0, a NaN: the loop would never end."""

    def program(table, k):
        x = ops.gather(table, k)
        return while_(lambda x: ops.not_(ops.eq(x, x)), lambda i, x: (x + 1.0,), init=[x])[0]

    table = np.array([np.nan, 1.0])
    plan = compile_graph(graph_of(program, table, np.array(1)))
    assert lanes_of(plan)
    assert plan.run([table, np.array(1)])[0] == 1.0
    with pytest.raises(IndexError):
        plan.run([table, np.array(2)])


def test_an_error_inside_ends_the_loop():
    """The index is out of range in the third trip; the element at 0 would keep the loop going."""

    def program(table, k):
        return while_(
            lambda table, k: ops.lt(k, 50),
            lambda i, table, k: (ops.gather(table, k),),
            cond_consts=[table],
            consts=[table],
            init=[k],
        )[0]

    table = np.array([0, 2, 40, 99])
    plan = compile_graph(graph_of(program, table, np.array(3)))
    assert plan.run([table, np.array(3)])[0] == 99
    with pytest.raises(IndexError, match="index 40"):
        plan.run([table, np.array(1)])


# ---------------------------------------------------------------------------------------- tapes


@pytest.mark.parametrize("trips", [0, 1, 16, 17, 1000])
def test_tapes_grow_and_are_read_backwards(trips):
    def program(bound, c):
        last, count, rows, marks = while_(
            lambda bound, c: ops.lt(ops.sum_(c), bound),
            lambda i, c: (c + 1.0, c, ops.gt(i, 3)),
            cond_consts=[bound],
            init=[c],
        )
        total, _ = loop(
            lambda i, c, x, m: (c * 0.5 + ops.where(broadcast_to(m, x.shape), x, ops.neg(x)), x),
            init=[last],
            xs=[rows, marks],
            count=count,
            reverse=True,
        )
        return total, count

    start = np.array([0.25, 0.5])
    bound = start.sum() + 2 * trips
    graph = graph_of(program, np.array(bound), start)
    plan = compile_graph(graph)
    assert len(lanes_of(plan)) == 2
    for _ in range(2):  # the second run finds the arena of the first
        total, count = plan.run([np.array(bound), start])
        assert count == trips
        expected = start + trips
        for i in reversed(range(trips)):
            row = start + i
            expected = expected * 0.5 + (row if i > 3 else -row)
        assert total.tobytes() == expected.tobytes()


def test_a_counted_loop_records_to_a_tape_of_its_length():
    def program(n, c):
        last, rows = loop(lambda i, c: (c * 0.5, c), init=[c], count=n)
        return loop(lambda i, c, x: (c + x,), init=[last], xs=[rows], count=n)[0]

    plan = compile_graph(graph_of(program, np.array(3), np.array(1.0)))
    assert len(lanes_of(plan)) == 2
    for n in (0, 1, 5, 40):
        found = plan.run([np.array(n), np.array(1.0)])[0]
        assert found == 0.5**n + sum(0.5**k for k in range(n))


@pytest.mark.parametrize("lanes", [1, 9, 70])
def test_lanes_share_the_rows_of_a_tape(lanes):
    """Each lane reads back what it recorded, as many rows as it made trips."""

    def program(bound, c):
        last, count, rows = while_(
            lambda bound, c: ops.lt(ops.sum_(c, 1), bound),
            lambda i, c: (c + broadcast_to(constant(1.0), c.shape), c),
            cond_consts=[bound],
            init=[c],
        )
        total = loop(
            lambda i, c, x: (c * broadcast_to(constant(0.5), c.shape) + x,),
            init=[last],
            xs=[rows],
            count=count,
            reverse=True,
        )[0]
        return total, count

    start = np.random.default_rng(0).uniform(0, 1, (lanes, 2))
    wanted = np.random.default_rng(1).integers(0, 40, lanes)
    bound = start.sum(1) + 2 * wanted - 0.5
    plan = compile_graph(graph_of(program, bound, start))
    assert [p.lanes for p in lanes_of(plan)] == [True, True]
    for threads in (1, 2):
        total, count = plan.run([bound, start], threads)
        assert count.tolist() == wanted.tolist()
        for k, n in enumerate(wanted):
            row = start[k]
            rows = [row := row + 1.0 if i else row for i in range(n + 1)]
            expected = rows[-1]
            for i in reversed(range(n)):
                expected = expected * 0.5 + rows[i]
            assert total[k].tobytes() == expected.tobytes()


def test_a_tape_of_one_length_for_all_lanes():
    def program(n, c):
        half = broadcast_to(constant(0.5), c.shape)
        last, rows = loop(lambda i, c: (c * half_of(c), c), init=[c], count=n)
        return loop(lambda i, c, x: (c + x,), init=[last * half], xs=[rows], count=n)[0]

    def half_of(c):
        return broadcast_to(constant(0.5), c.shape)

    c = values("f8", 100)
    plan = compile_graph(graph_of(program, np.array(3), c))
    assert [p.lanes for p in lanes_of(plan)] == [True, True]
    for n in (0, 5, 40):
        expected = c * 0.5**n * 0.5
        for k in range(n):
            expected = expected + c * 0.5**k
        assert_same_bits([expected], plan.run([np.array(n), c]))


# ----------------------------------------------------------------------------------- interrupts

ENDLESS = f"""
sys.path.insert(0, {str(STRATEGIES)!r})
import numpy as np
from plans import graph_of
from regions import loop, while_
from tilegrad.fusion.lane_code import LaneProgram
from tilegrad.ir import ops
from tilegrad.kernels import work
from tilegrad.kernels.llvm.lanes_form import lane_form
from tilegrad.kernels.plan import compile_graph

work.WORTHWHILE = 0.0
shape = SHAPE

def forever(c):
    return while_(lambda c: ops.eq(c, c), lambda i, c: (c * c,), init=[c])[0]

def nested(c):
    inner = lambda i, c: (loop(lambda j, c: (c * c,), init=[c], length=1000)[0],)
    return while_(lambda c: ops.eq(c, c), inner, init=[c])[0]

x = np.ones(shape)
plan = compile_graph(graph_of(PROGRAM, x))
assert isinstance(plan.schedule.steps[0], LaneProgram)
print("begin", flush=True)
try:
    plan.run([x], THREADS)
except KeyboardInterrupt:
    print("interrupted")
print(plan.run([np.full(shape, np.nan)])[0].shape == shape)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way")
@pytest.mark.parametrize(
    ("program", "shape", "threads"),
    [("nested", (), 1), ("forever", (9,), 1), ("forever", (4000,), 2)],
)
def test_an_interrupt_ends_an_endless_loop(program, shape, threads):
    text = ENDLESS.replace("PROGRAM", program).replace("SHAPE", str(shape))
    interrupted(text.replace("THREADS", str(threads)))
