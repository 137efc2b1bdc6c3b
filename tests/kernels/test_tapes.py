"""Tapes: what loops of unknown length record, and its memory."""

from __future__ import annotations

import resource

import numpy as np
import pytest
from plans import graph_of
from regions import agree, doubled, driven, loop, rng, while_

from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64
from tilegrad.ir.graph import Graph
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops.leaves import constant, input_node
from tilegrad.ir.types import GROWING, TensorType


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

    last, tape = driven(graph_of(program, np.array(1), rng(3))).run([np.array(5), rng(3)])
    given = input_node(TensorType((GROWING, 3), float64), "tape")
    start, number = input_node(TensorType((3,), float64), "c"), graph_of(lambda n: n, np.array(1))
    (count,) = number.inputs
    outputs = loop(
        lambda i, c, x: (c - x, x), init=[start.out], xs=[given.out], count=count.out, reverse=True
    )
    graph = Graph((count, start, given), outputs)
    plan = driven(graph)
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


def test_tapes_are_freed_after_an_error():
    def program(bound, n):
        return while_(
            lambda c, n: ops.lt(ops.sum_(c), 1e300),
            lambda i, n, c, m: (c + 1.0, ops.floor_divide(60_000, m) * 0 + m - n, c),
            consts=[n],
            init=[bound, constant(300)],
            limit=1000,
        )

    plan = driven(graph_of(program, rng(1000), np.array(1)))
    peaks = []
    for _ in range(60):
        with pytest.raises(ZeroDivisionError):
            plan.run([rng(1000), np.array(1)])
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert peaks[-1] - peaks[10] < 20_000  # kilobytes; 120 MB if none were freed
