"""Values that wait: after nodes go, what read them comes later, memory decides the rest."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.fusion import order
from tilegrad.fusion.lower import lower
from tilegrad.fusion.memory import plan_memory
from tilegrad.fusion.order import latest, order_of
from tilegrad.fusion.realize import realize
from tilegrad.ir.dtypes import float64
from tilegrad.ir.graph import Graph, toposort
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops import cos, exp, matmul, sin, sum_
from tilegrad.ir.ops.checkpoint import after
from tilegrad.ir.ops.leaves import input_node
from tilegrad.ir.passes.manager import optimize
from tilegrad.ir.types import TensorType
from tilegrad.kernels.plan import Plan

T = TensorType((32, 32), float64)
X = np.random.default_rng(0).standard_normal((32, 32)) / 6


def ordered(graph):
    return order_of(graph, lambda g, nodes: realize(g, nodes, {}).reasons)


def is_topological(nodes, graph):
    seen = set(graph.inputs)
    for node in nodes:
        if not all(x.node in seen for x in node.inputs):
            return False
        seen.add(node)
    return {x.node for x in graph.outputs} <= seen


def layers(count):
    """A chain whose layers' inputs are computed again for the way back, as checkpoint makes it."""
    x, w = (input_node(T, name) for name in "xw")
    states = [x.out]
    for _ in range(count):
        states.append(exp(sin(matmul(states[-1], w.out)) * 0.5))
    c = cos(states[-1])
    gradients = []
    for state in reversed(states[:-1]):
        held = after(state, [c])
        inner = sin(matmul(held, w.out))
        outer = exp(inner * 0.5)
        gradients.append(matmul(outer, c))
        c = matmul(inner, c) * outer
    return Graph((x, w), (sum_(states[-1]), *reversed(gradients), c))


def test_a_program_without_them_is_as_it_was():
    x = input_node(T, "x")
    graph = Graph((x,), (sum_(exp(x.out)),))
    found = ordered(graph)
    assert found.graph is graph
    assert found.nodes == graph.nodes()
    assert not found.waits


def test_after_nodes_go_and_the_value_stays():
    graph = layers(3)
    found = ordered(graph)
    assert all(node.op.name != "after" for node in toposort(found.graph.outputs))
    assert is_topological(found.nodes, found.graph)
    assert len(found.waits) == 3
    arrays = [X, X + 0.1]
    for a, b in zip(
        interpret_graph(found.graph, arrays), interpret_graph(graph, arrays), strict=True
    ):
        assert a.tobytes() == b.tobytes()


def test_what_waits_is_computed_later():
    found = ordered(layers(4))
    place = {node: k for k, node in enumerate(found.nodes)}
    for node, awaited in found.waits.items():
        for x in awaited:
            assert place[x.node] < place[node]


def test_the_order_keeps_memory_low():
    graph = layers(12)
    schedule = lower(graph)
    temporary = plan_memory(schedule).size / T.nbytes
    # 12 states to come back to, and a few to work with. In the order of the text the two values
    # that each layer computes again would lie there until the gradients are made, 24 more.
    assert temporary <= 12 + 6


def test_the_plan_gives_the_bits_of_the_interpreter():
    graph = layers(3)
    plain = ordered(graph).graph
    arrays = [X, X + 0.1]
    found = Plan(lower(graph)).run(arrays)
    expected = Plan(lower(plain)).run(arrays)
    for a, b in zip(found, expected, strict=True):
        assert a.tobytes() == b.tobytes()


def gradient(rows):
    """Value and gradients of twelve layers, without anything that waits."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((16, 16)) / 4 for _ in range(12)]

    def loss(weights, x):
        for w in weights:
            x = tg.tanh(x @ w)
        return tg.sum(x * x)

    x = rng.standard_normal((rows, 16))
    return optimize(tg.trace(tg.value_and_grad(loss))(weights, x)), [*weights, x]


def test_large_programs_are_ordered_by_memory_without_being_asked():
    for rows, most in ((64, 30), (4096, 15)):
        graph, arrays = gradient(rows)
        temporary = plan_memory(lower(graph)).size / arrays[-1].nbytes
        assert most - 8 < temporary <= most


def test_the_order_does_not_change_bits(monkeypatch):
    graph, arrays = gradient(64)
    expected = Plan(lower(graph)).run(arrays)
    monkeypatch.setattr(order, "_LARGE", 0)
    schedule = lower(graph)
    assert plan_memory(schedule).size <= 15 * arrays[-1].nbytes
    for a, b in zip(Plan(schedule).run(arrays), expected, strict=True):
        assert a.tobytes() == b.tobytes()


def test_a_chain_of_waiting_values_and_results_that_wait():
    x, y = (input_node(T, name) for name in "xy")
    once = after(x.out, [y.out])
    twice = after(once, [sin(y.out)])
    graph = Graph((x, y), (twice, exp(twice), once))
    found = ordered(graph)
    assert found.graph.outputs[0] == x.out == found.graph.outputs[2]
    (node,) = found.waits
    assert {v.node.op.name for v in found.waits[node]} == {"input", "sin"}
    (a, b, c) = Plan(lower(graph)).run([X, X])
    np.testing.assert_array_equal(a, X)
    np.testing.assert_allclose(b, np.exp(X), rtol=1e-15)
    np.testing.assert_array_equal(c, X)


def test_latest_looks_through_what_has_no_home():
    x = input_node(T, "x").out
    a = sin(x)
    b = exp(a)
    waiting = cos(x)
    assert latest({waiting.node: (b,)}, [waiting.node], {a.node: 4}) == 4
    assert latest({waiting.node: (b,)}, [waiting.node], {a.node: 4, b.node: 7}) == 7
    assert latest({}, [waiting.node], {a.node: 4}) == -1


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_with_waiting_values(seed):
    rng = random.Random(seed)
    inputs = [input_node(T, name) for name in "xyz"]
    values = [n.out for n in inputs]
    for _ in range(25):
        a, b = rng.choice(values[-6:]), rng.choice(values[-6:])
        makes = [
            lambda a, b: sin(a),
            lambda a, b: a * b,
            lambda a, b: matmul(a, b) * 0.1,
            lambda a, b: exp(sin(a)),
            lambda a, b: after(a, [b]),
        ]
        values.append(rng.choice(makes)(a, b))
    graph = Graph(tuple(inputs), tuple(values[-3:]))
    found = ordered(graph)
    assert is_topological(found.nodes, found.graph)
    arrays = [X, X.T.copy(), X + 0.1]
    for a, b in zip(
        interpret_graph(found.graph, arrays), interpret_graph(graph, arrays), strict=True
    ):
        assert a.tobytes() == b.tobytes()
    for a, b in zip(
        Plan(lower(graph)).run(arrays), Plan(lower(found.graph)).run(arrays), strict=True
    ):
        assert a.tobytes() == b.tobytes()
