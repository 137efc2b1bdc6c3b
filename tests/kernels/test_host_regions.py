"""Regions with library calls inside: loops of the host, the same bits."""

from __future__ import annotations

import numpy as np
from plans import graph_of
from regions import agree, cond, doubled, driven, loop, rng, while_

from tilegrad.ir import ops


def test_loops_with_library_calls_run_on_the_host():
    def body(i, c, x):
        return ops.sort(c + x, 0), ops.sum_(c)

    def program(c, xs):
        last, sums = loop(body, init=[c], xs=[xs], length=4)
        return last * 2.0, sums

    arguments = [rng(30), rng(4, 30)]
    graph = graph_of(program, *arguments)
    agree(graph, arguments, exact=False)
    plan = driven(graph)
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
