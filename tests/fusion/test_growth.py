"""What scheduling costs grows with the number of nodes, not faster."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.bench.deep import deep_net, deep_point
from tilegrad.bench.sides import OURS, side
from tilegrad.fusion.lower import lower
from tilegrad.ir.passes.manager import optimize

X = np.linspace(0.0, 1.0, 40)


def random_net(layers):
    """A net of elementwise and reduction layers with its gradient."""
    function = tg.jit(deep_net(side(OURS), layers))
    return optimize(function.lower(*deep_point()).graph)


def gradient_of_a_chain(length):
    def chain(x):
        y = x
        for _ in range(length):
            y = tg.sin(y) * x
        return tg.sum(y)

    return optimize(tg.jit(tg.grad(chain)).lower(X).graph)


def many_results(count):
    """As many nests that share nothing: each result has a shape of its own."""

    def wide(x):
        return [tg.sum(tg.sin(x[k % 7 :]) * float(k), keepdims=True) for k in range(count)]

    return optimize(tg.jit(wide).lower(X).graph)


def one_reader(count):
    """A concatenation of as many results, each too large to be computed inside it with the rest."""

    def wide(x):
        return tg.stack([tg.sum(x * float(k + 1)) for k in range(count)])

    return optimize(tg.jit(wide).lower(X).graph)


def calls_of(function, argument):
    """Python and C functions called: what time stands for, without its noise."""
    count = 0

    def look(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        function(argument)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    ("program", "size"),
    [(random_net, 20), (gradient_of_a_chain, 300), (many_results, 60), (one_reader, 300)],
)
def test_work_grows_with_the_nodes(program, size):
    small, large = program(size), program(4 * size)
    growth = len(large.nodes()) / len(small.nodes())
    assert growth > 3
    assert calls_of(lower, large) < 1.25 * growth * calls_of(lower, small)


def test_a_node_costs_few_calls():
    """Three rounds of placing and one of recording: it was 1700 calls a node."""
    graph = random_net(40)
    assert calls_of(lower, graph) < 400 * len(graph.nodes())


def test_the_random_net_is_right():
    """Compiled as a whole and node by node: the same bits."""
    function, arguments = deep_net(side(OURS), 12), deep_point()
    value, slopes = tg.jit(function)(*arguments)
    plain_value, plain_slopes = function(*arguments)
    assert float(value) == float(plain_value)
    for got, expected in zip(slopes, plain_slopes, strict=True):
        assert np.array_equal(got, expected)
    first = np.asarray(slopes[0])
    for k in (0, 5):
        moved = [np.array(p) for p in arguments[0]]
        step = 1e-6
        moved[0][k] += step
        above = float(function(moved, arguments[1])[0])
        moved[0][k] -= 2 * step
        below = float(function(moved, arguments[1])[0])
        assert (above - below) / (2 * step) == pytest.approx(first[k], rel=1e-5, abs=1e-8)
