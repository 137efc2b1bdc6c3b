"""Long and wide programs: nothing recurses, and what repeats is compiled once."""

from __future__ import annotations

import sys

import numpy as np
from plans import graph_of, plan_of, run

from tilegrad.ir import ops
from tilegrad.ir.ops.shape import reshape, transpose
from tilegrad.kernels.plan import compile_graph

DEEP = 100_000


def test_a_chain_of_100000_nodes():
    x = np.arange(-20.0, 20.0)

    def chain(a):
        y = a
        for k in range(DEEP):
            y = y - a if k % 3 else ops.neg(y)
        return y

    expected = x
    for k in range(DEEP):
        expected = expected - x if k % 3 else -expected
    graph = graph_of(chain, x)
    assert len(graph.nodes()) >= DEEP
    plan = compile_graph(graph)
    assert np.array_equal(plan.run([x])[0], expected)
    assert len(plan.functions) < 20  # the steps have few forms
    assert plan.memory.size < 100 * x.nbytes  # and few places
    del plan, graph  # freed without recursion too


def test_the_recursion_limit_is_not_needed():
    """A thousand ops in one expression, with room for a few hundred frames."""
    x = np.arange(5.0)

    def chain(a):
        y = a
        for _ in range(1000):
            y = ops.abs_(y - a)
        return y

    def depth():
        frame, count = sys._getframe(), 0
        while frame is not None:
            frame, count = frame.f_back, count + 1
        return count

    expected = x
    for _ in range(1000):
        expected = abs(expected - x)
    limit = sys.getrecursionlimit()
    plan_of(ops.neg, x)  # numba compiles with frames of its own: not counted here
    sys.setrecursionlimit(depth() + 900)
    try:
        got = run(chain, x)
    finally:
        sys.setrecursionlimit(limit)
    assert np.array_equal(got, expected)


def test_a_chain_of_views_is_followed_without_recursion():
    x = np.arange(12.0).reshape(3, 4)

    def chain(a):
        for k in range(3001):
            a = ops.flip(transpose(a), k % 2)
        return a

    expected = x
    for k in range(3001):
        expected = np.flip(expected.T, k % 2)
    assert np.array_equal(run(chain, x), expected)


def test_a_value_used_a_thousand_times():
    x = np.arange(1.0, 6.0)

    def wide(a):
        e = ops.sqrt(a)
        y = e
        for k in range(1000):
            y = y + e * float(k % 7)
        return y

    expected = np.sqrt(x)
    for k in range(1000):
        expected = expected + np.sqrt(x) * float(k % 7)
    assert np.array_equal(run(wide, x), expected)


def test_doubling_does_not_double_the_work():
    """y + y two hundred times: the tree of uses has 2**200 leaves."""
    x = np.arange(3.0)

    def double(a):
        y = a
        for _ in range(200):
            y = (y + y) * 0.5
        return y

    assert np.array_equal(run(double, x), x)


def test_doubling_through_views_does_not_double_the_work():
    """Each level reads the one below at two places: the loads must not multiply."""
    x = np.arange(8.0)

    def mirror(a):
        y = a
        for _ in range(40):
            y = (y + ops.flip(y, 0)) * 0.5
        return y

    plan = plan_of(mirror, x)
    assert sum(len(step.tape) for step in plan.schedule.steps) < 1000
    assert np.array_equal(plan.run([x])[0], np.full(8, 3.5))


def test_doubling_through_shifts_does_not_multiply_the_work():
    """Each level reads the one below at shifted places: k levels have k + 1 of them, not 2**k."""
    x = np.arange(64.0)

    def smooth(a):
        y = a
        for _ in range(30):
            inner = ops.slice_axis(y, 0, 0, -1) + ops.slice_axis(y, 0, 1, None)
            y = inner * 0.5
        return y

    expected = x
    for _ in range(30):
        expected = (expected[:-1] + expected[1:]) * 0.5
    plan = plan_of(smooth, x)
    assert sum(len(step.tape) for step in plan.schedule.steps) < 6000
    assert np.array_equal(plan.run([x])[0], expected)


def test_a_stencil_program_through_reshapes():
    """Index expressions that do not simplify: each level would read several new places."""
    x = np.arange(24.0)

    def fold(a):
        y = a
        for k in range(12):
            shape = ((4, 6), (3, 8), (2, 12))[k % 3]
            y = (y + reshape(transpose(reshape(y, shape)), (24,))) * 0.5
        return y

    expected = x
    for k in range(12):
        shape = ((4, 6), (3, 8), (2, 12))[k % 3]
        expected = (expected + expected.reshape(shape).T.reshape(24)) * 0.5
    plan = plan_of(fold, x)
    assert sum(len(step.tape) for step in plan.schedule.steps) < 3000
    assert np.array_equal(plan.run([x])[0], expected)


def test_a_concat_of_hundreds():
    x = np.arange(4.0)
    got = run(lambda a: ops.concat([a * float(k) for k in range(300)], 0), x)
    assert np.array_equal(got, np.concatenate([x * float(k) for k in range(300)]))


def test_hundreds_of_outputs_and_inputs():
    arrays = [np.full(3, float(k)) for k in range(300)]

    def function(*xs):
        return tuple(x + y for x, y in zip(xs, xs[1:] + xs[:1], strict=True))

    for k, got in enumerate(run(function, *arrays)):
        assert np.array_equal(got, np.full(3, float(k + (k + 1) % 300)))
