"""Lanes of a program: the bits of the same steps one by one, whatever the lanes beside do."""

from __future__ import annotations

import numpy as np
import pytest
from lane_programs import check, joined, lanes_of, over, values
from plans import graph_of
from random_graphs import assert_same_bits
from regions import loop, while_

from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64
from tilegrad.ir.ops.leaves import constant
from tilegrad.ir.ops.shape import broadcast_to
from tilegrad.kernels import work
from tilegrad.kernels.llvm.lanes_form import lane_form
from tilegrad.kernels.plan import compile_graph

TAILS = [1, 8, 9, 100]


@pytest.mark.parametrize("lanes", TAILS)
def test_every_lane_has_its_own_trips(lanes):
    def body(i, c, n):
        return c * 0.5 + over(c, ops.convert(n, float64)), n + i

    counts = np.random.default_rng(lanes).integers(-2, 7, lanes)
    c, n = values("f8", lanes, 2), np.arange(lanes)
    found = check(lambda k, c, n: loop(body, init=[c, n], count=k), counts, c, n)
    untouched = counts <= 0
    assert found[0][untouched].tobytes() == c[untouched].tobytes()


@pytest.mark.parametrize("lanes", TAILS)
def test_open_loops_count_the_trips_of_each_lane(lanes):
    def program(bound, c):
        return while_(
            lambda bound, c: ops.lt(c, bound),
            lambda i, c: (c * broadcast_to(constant(2.0), c.shape),),
            cond_consts=[bound],
            init=[c],
        )

    bound = np.random.default_rng(lanes).uniform(0.1, 100.0, lanes)
    c, trips = check(program, bound, np.ones(lanes))
    assert trips.tolist() == np.maximum(np.ceil(np.log2(bound)), 0).tolist()
    assert c.tolist() == (2.0**trips).tolist()


@pytest.mark.parametrize("dtype", ["?", "i1", "i8", "f4", "f8", "c8", "c16"])
def test_lanes_of_every_dtype_and_layout(dtype):
    """Lanes side by side, apart, and along the second axis of a record."""

    def body(i, w, c, d, x):
        return d, c, joined(c, x), ops.where(ops.ne(d, w), d, w)

    check(
        lambda w, c, d, xs: loop(body, consts=[w], init=[c, d], xs=[xs], length=4),
        values(dtype, 70, 1, seed=1),
        values(dtype, 70, 1, seed=2),
        values(dtype, 70, 1, seed=3),
        values(dtype, 4, 70, 2, seed=4),
    )


def test_a_lane_that_is_done_reports_no_error_and_shows_no_nan():
    """Its index is out of range, its divisor 0, its logarithm NaN: in the next trip, never made."""

    def body(i, table, k, c, x):
        at = ops.gather(table, k)
        quotient = ops.floor_divide(c, at)
        return at, quotient, ops.log(x) * broadcast_to(constant(-1.0), x.shape)

    table = np.array([1, 7, 2, 0, 4, 5, 6])
    k, c = np.array([0, 1, 2, 3, 4]), np.full(5, 64)
    counts = np.array([2, 1, 2, 0, 3])
    arguments = [counts, table, k, c, np.full(5, np.e)]

    def program(n, t, k, c, x):
        return loop(body, consts=[t], init=[k, c, x], count=n)

    plan = compile_graph(graph_of(program, *arguments))
    assert lanes_of(plan)
    found = plan.run(arguments)
    assert found[0].tolist() == [7, 7, 2, 3, 4]
    assert found[1].tolist() == [9, 9, 16, 64, 1]
    assert found[2][[1, 3]].tolist() == [-1.0, np.e]
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 7"):
        plan.run([counts + np.array([0, 1, 0, 0, 0]), *arguments[1:]])
    with pytest.raises(ZeroDivisionError):
        plan.run([counts + np.array([0, 0, 0, 1, 0]), *arguments[1:]])


def test_lanes_beyond_the_last_report_nothing():
    """A group of lanes that is not full computes with zeros there."""

    def body(i, k, c):
        return (ops.floor_divide(c, k),)

    found = check(
        lambda k, c: loop(body, consts=[k], init=[c], length=2),
        np.full(65, 3),
        np.arange(65) * 9,
    )
    assert found[0].tolist() == list(range(65))


def test_one_slow_lane_does_not_change_its_neighbours():
    def program(n, c):
        return loop(lambda i, c: (ops.sin(c) + c,), init=[c], count=n)

    counts = np.array([1, 100_000, 2, 0, 3, 1, 1, 1, 4])
    c = np.linspace(0.1, 0.9, 9)
    found = compile_graph(graph_of(program, counts, c)).run([counts, c])[0]
    alone = [
        compile_graph(graph_of(program, counts[k : k + 1], c[k : k + 1])).run(
            [counts[k : k + 1], c[k : k + 1]]
        )[0][0]
        for k in range(9)
    ]
    assert found.tobytes() == np.array(alone).tobytes()


@pytest.mark.parametrize(
    ("carries", "width", "dtype"), [(1, 32, "f4"), (1, 32, "f8"), (8, 16, "f8"), (20, 8, "f8")]
)
def test_groups_of_every_width(carries, width, dtype):
    """Functions with tables, in groups that fill one register or several."""

    def body(i, *cs):
        first = ops.log(ops.abs_(cs[0]) + ops.exp(ops.neg(cs[-1] * cs[-1])))
        return (*cs[1:], ops.sinh(first) + ops.power(ops.abs_(cs[0]), first))

    def program(x):
        return loop(body, init=[x] * carries, length=3)

    x = values(dtype, 70)
    (step,) = lanes_of(compile_graph(graph_of(program, x)))
    assert lane_form(step).width == width
    check(program, x)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_share_lanes(threads, monkeypatch):
    monkeypatch.setattr(work, "WORTHWHILE", 0.0)
    monkeypatch.setattr(work, "SMALLEST", 1e-9)

    def program(n, c):
        return loop(lambda i, c: (c * broadcast_to(constant(0.7), c.shape),), init=[c], count=n)

    counts = np.random.default_rng(0).integers(0, 50, 5003)
    c = values("f8", 5003)
    plan = compile_graph(graph_of(program, counts, c))
    (step,) = lanes_of(plan)
    assert work.extent_and_pieces(step, threads)[1] > 1
    assert_same_bits(plan.run([counts, c]), plan.run([counts, c], threads))


def test_code_is_the_same_for_more_lanes_and_trips():
    def program(n, c):
        return loop(lambda i, c: (c * broadcast_to(constant(0.7), c.shape),), init=[c], count=n)

    plans = [
        compile_graph(graph_of(program, np.zeros(n, np.int64), np.zeros(n))) for n in (100, 1000)
    ]
    assert plans[0].code is plans[1].code
