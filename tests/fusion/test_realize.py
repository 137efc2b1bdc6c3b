"""Which values get memory: each rule, with the reason it leaves in the schedule."""

from __future__ import annotations

import numpy as np
import pytest
from plans import graph_of, host_calls, nests, run, schedule_of

from tilegrad.fusion.realize import MOST_INLINED, realize, weight_of
from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64, int64
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.leaves import iota
from tilegrad.ir.ops.shape import broadcast, reshape, transpose

X = ((40, 30), "f8")
V = ((30,), "f8")


def _two_sums_of_exp(x):
    e = ops.exp(x)
    return ops.sum_(e, 0), ops.sum_(e * 2.0, 1)


def _two_sums_of_add(x):
    y = x + 1.0
    return ops.sum_(y, 0), ops.sum_(y * 2.0, 1)


def reasons(function, *types):
    """Op name and reason of everything that has a buffer, but for inputs."""
    schedule = schedule_of(function, *types)
    return {(v.node.op.name, r) for v, r in schedule.reasons.items() if r != "input"}


OUTPUT = "output of the graph"
RULES = {
    "outputs, and nothing inside an expression": (
        lambda x: ops.exp(x) * 2.0 + 1.0,
        [X],
        {("add", OUTPUT)},
    ),
    "views cost nothing": (
        lambda x: ops.flip(transpose(reshape(x, (30, 40))), 0) * 2.0,
        [X],
        {("mul", OUTPUT)},
    ),
    "reduction": (
        lambda x: ops.sum_(x, 1) * 2.0,
        [X],
        {("sum", "result of a reduction"), ("mul", OUTPUT)},
    ),
    "contraction by loops": (
        lambda x, v: ops.matmul(x, v) * 2.0,
        [X, V],
        {("dot", "result of a contraction"), ("mul", OUTPUT)},
    ),
    "contraction by the library": (
        lambda x: ops.matmul(x + 1.0, transpose(x)) * 2.0,
        [X],
        {("add", "operand of dot"), ("dot", "result of dot"), ("mul", OUTPUT)},
    ),
    "gathered array": (
        lambda x, v: ops.gather(x * 2.0, ops.convert(v, int64)) + 1.0,
        [X, V],
        {("mul", "read at run-time indices"), ("add", OUTPUT)},
    ),
    "window": (
        lambda v: ops.dynamic_slice(v * 2.0, 3, sizes=(9,)) + 1.0,
        [V],
        {("mul", "read from a run-time start"), ("add", OUTPUT)},
    ),
    "operand and result of a host op": (
        lambda v: ops.sort(v * 2.0, 0) + 1.0,
        [V],
        {("mul", "operand of sort"), ("sort", "result of sort"), ("add", OUTPUT)},
    ),
    "constant array": (
        lambda v: v + np.arange(30.0),
        [V],
        {("constant", "constant array"), ("add", OUTPUT)},
    ),
    "one number and iota are no memory": (
        lambda v: v * 2.0 + ops.convert(iota((30,)), float64),
        [V],
        {("add", OUTPUT)},
    ),
    "expensive along a broadcast": (
        lambda v: broadcast(ops.exp(v), (50, 30), (1,)) * 2.0,
        [V],
        {("exp", "expensive and repeated along an axis"), ("mul", OUTPUT)},
    ),
    "cheap along a broadcast": (
        lambda v: broadcast(v + 1.0, (50, 30), (1,)) * 2.0,
        [V],
        {("mul", OUTPUT)},
    ),
    "one element along a broadcast": (
        lambda v: broadcast(ops.exp(v), (50, 30), ()) * 2.0,
        [((), "f8")],
        {("mul", OUTPUT)},
    ),
    "expensive in two nests": (
        _two_sums_of_exp,
        [X],
        {("exp", "computed in 2 nests"), ("sum", OUTPUT)},
    ),
    "cheap in two nests": (
        _two_sums_of_add,
        [X],
        {("sum", OUTPUT)},
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rule(name):
    function, types, expected = RULES[name]
    assert reasons(function, *types) == expected


def test_long_expressions_are_cut():
    def chain(v):
        for _ in range(3 * MOST_INLINED):
            v = ops.neg(v)
        return v

    found = schedule_of(chain, V).reasons.values()
    cut = f"more than {MOST_INLINED} operations in one expression"
    assert 2 <= sum(r == cut for r in found) <= 4


def test_each_cut_leaves_the_small_side_inlined():
    """What is realized is the largest operand, not the one that comes first."""

    def function(v):
        long = v
        for _ in range(MOST_INLINED - 1):
            long = ops.neg(long)
        return (v + 1.0) * long

    schedule = schedule_of(function, V)
    cut = [v.node.op.name for v, r in schedule.reasons.items() if r.startswith("more than")]
    assert cut == ["neg"]


def test_a_caller_may_ask_for_memory():
    graph = graph_of(lambda v: ops.exp(v) + 1.0, V)
    (exponential,) = (n.out for n in graph.nodes() if n.op.name == "exp")
    found = realize(graph, graph.nodes(), {exponential: "wanted"})
    assert found.reasons[exponential] == "wanted"
    assert exponential in found


def test_every_buffer_has_a_reason():
    def function(x, v):
        y = ops.matmul(x, transpose(ops.exp(x))) + 1.0
        return ops.sort(y, 0), ops.sum_(ops.gather(y, ops.convert(v, int64)), 0)

    schedule = schedule_of(function, X, V)
    assert len(schedule.reasons) == len(schedule.buffers)


def test_host_calls_say_why():
    (call,) = host_calls(schedule_of(lambda v: ops.sort(v, 0), V))
    assert call.reason == "sort is a library's work"


def test_weights_are_ordered_by_cost():
    names = ["transpose", "add", "div", "exp"]
    weights = [weight_of(OPS[n]) for n in names]
    assert weights == sorted(weights)
    assert len(set(weights)) == 4


def test_a_realized_value_is_computed_once():
    def function(x):
        e = ops.exp(x)
        return ops.sum_(e, 0), ops.sum_(e, 1), transpose(e)

    schedule = schedule_of(function, X)
    count = sum(i.op is OPS["exp"] for n in nests(schedule) for i in n.tape)
    assert count == 1
    x = np.random.default_rng(0).standard_normal(X[0])
    e = run(ops.exp, x)
    assert np.array_equal(run(function, x)[2], e.T)
