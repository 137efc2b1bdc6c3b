"""Lanes with trip counts of their own."""

from __future__ import annotations

import numpy as np
import pytest
from plans import graph_of
from regions import agree, driven, loop, while_

from tilegrad.ir import ops
from tilegrad.ir.ops.leaves import constant

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
    plan = driven(graph)
    n, c = plan.run([counts, table, np.zeros(3, np.int64)])
    assert n.tolist() == [0, 0, 0]
    assert c.tolist() == [sum(60 // k for k in range(1, m + 1)) for m in (3, 1, 5)]
