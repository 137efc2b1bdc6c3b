"""Elementwise ops on tapes: loops over as many rows as there are."""

from __future__ import annotations

import numpy as np
import pytest
from plans import graph_of
from regions import agree, driven, loop, rng

from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64
from tilegrad.ir.errors import UnsupportedError
from tilegrad.ir.graph import Graph, make
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops.leaves import constant, input_node
from tilegrad.ir.ops.shape import BROADCAST
from tilegrad.ir.types import GROWING, TensorType


def over_rows(x, shape, axes):
    return make(BROADCAST, (x,), shape=(GROWING, *shape), axes=axes)


@pytest.mark.parametrize("trips", [0, 1, 20, 33])
def test_sums_of_tapes_between_loops(trips):
    def program(n, x):
        _, a, b = loop(lambda i, c: (c + 1.0, c, c * c), init=[x], count=n)
        both = ops.sin(a + b) * a
        (total,) = loop(
            lambda i, s, y, a: (s * 0.5 + y - a,), init=[x], xs=[both, a], count=n, reverse=True
        )
        return total, both

    arguments = [np.array(trips), rng(3)]
    results = agree(graph_of(program, *arguments), arguments, exact=False)
    assert results[1].shape == (trips, 3)


def test_a_row_for_all_rows():
    def program(n, x, w):
        _, a = loop(lambda i, c: (c + 1.0, c), init=[x], count=n)
        half = over_rows(constant(0.5), (3,), ())
        return (ops.maximum(a, half) * over_rows(ops.exp(w), (3,), (1,)),)

    x, w = rng(3), rng(3, seed=1)
    (found,) = driven(graph_of(program, np.array(1), x, w)).run([np.array(4), x, w])
    rows = np.maximum(x + np.arange(4)[:, None], 0.5) * np.exp(w)
    np.testing.assert_allclose(found, rows, rtol=1e-15)


@pytest.mark.parametrize("shape", [(), (4,), (0,)])
def test_tapes_that_are_given(shape):
    """What eager execution does: each op is a plan of its own."""
    kind = TensorType((GROWING, *shape), float64)
    a, b = input_node(kind, "a"), input_node(kind, "b")
    graph = Graph((a, b), (ops.maximum(a.out, b.out), a.out * b.out))
    plan = driven(graph)
    for rows in (3, 0, 50):
        arguments = [rng(rows, *shape), rng(rows, *shape, seed=1)]
        found = plan.run(arguments)
        for got, right in zip(found, interpret_graph(graph, arguments), strict=True):
            np.testing.assert_array_equal(got, right)
    assert plan.run([rng(3, *shape), rng(5, *shape)])[0].shape == (3, *shape)
    if shape != (0,):
        with pytest.raises(IndexError, match="fewer rows"):
            plan.run([rng(5, *shape), rng(3, *shape)])


def test_a_tape_of_nothing_but_constants_has_no_length():
    with pytest.raises(UnsupportedError, match="how many rows"):
        driven(graph_of(lambda x: over_rows(x, (), ()) + over_rows(x, (), ()), np.array(1.0)))
