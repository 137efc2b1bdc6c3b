"""Region nodes from small functions, and the slow ways of running them that tests compare with."""

from __future__ import annotations

from unittest import mock

import numpy as np
from plans import graph_of, plan_of_node, run_by_node

from tilegrad.fusion import regions
from tilegrad.ir import ops
from tilegrad.ir.graph import make_node
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops.leaves import constant
from tilegrad.ir.ops.regions import COND, Loop, While
from tilegrad.kernels.plan import compile_graph

NUMBER = ((), "int64")


def _pairs(values, cut=0):
    return [(v.shape[cut:], v.dtype) for v in values]


def loop(body, *, consts=(), init=(), xs=(), length=None, count=None, reverse=False, shared=0):
    """The results of a ``loop`` of ``body(i, *consts, *carry, *slices)``."""
    graph = graph_of(body, NUMBER, *_pairs((*consts, *init)), *_pairs(xs, 1))
    consts, init, xs = tuple(consts), tuple(init), tuple(xs)
    return Loop(graph, consts, init, xs, length, count, reverse, shared).node().outputs


def while_(cond, body, *, cond_consts=(), consts=(), init=(), limit=None):
    """Of a ``while`` of ``cond(*cond_consts, *carry)`` and ``body(i, *consts, *carry)``."""
    tested = graph_of(cond, *_pairs((*cond_consts, *init)))
    graph = graph_of(body, NUMBER, *_pairs((*consts, *init)))
    return (
        While(tested, graph, tuple(cond_consts), tuple(consts), tuple(init), limit).node().outputs
    )


def cond(index, branches, *operands):
    """The results of a ``cond``."""
    graphs = tuple([graph_of(branch, *_pairs(operands)) for branch in branches])
    return make_node(COND, (index, *operands), branches=graphs).outputs


_PLANS = {}


def _run_node(node, operands):
    """One op by a plan of its own."""
    key = (node.op, node.params, tuple(x.type for x in node.inputs))
    plan = _PLANS.get(key)
    if plan is None:
        plan = _PLANS[key] = plan_of_node(node)
    return plan.run([np.array(x) for x in operands])


def _freeze(active, new, old):
    if not active.ndim:
        return new
    return np.where(active.reshape(active.shape + (1,) * (new.ndim - active.ndim)), new, old)


def _run_step(node, operands):
    if node.op.kind != "region":
        return _run_node(node, operands)
    if node.op.name == "cond":
        branches = node.param("branches")
        return run_by_steps(
            branches[min(max(int(operands[0]), 0), len(branches) - 1)], operands[1:]
        )
    if node.op.name == "loop":
        return _run_loop(Loop.of(node), list(operands))
    return _run_while(While.of(node), list(operands))


def _run_loop(r, operands):
    counts = np.array(r.length) if r.count is None else operands.pop(0)
    n, m = len(r.consts), len(r.init)
    fixed, carry, xs = operands[:n], operands[n : n + m], operands[n + m :]
    trips = max(int(np.max(counts, initial=0)), 0)
    shapes = [v.type for v in r.body.outputs[m:]]
    records = [np.empty((trips, *t.shape), t.dtype.numpy) for t in shapes]
    for i in range(trips)[:: -1 if r.reverse else 1]:
        found = run_by_steps(r.body, [np.array(i), *fixed, *carry, *[x[i] for x in xs]])
        active = np.asarray(i < counts)
        own = m - r.shared
        carry = [_freeze(active, a, b) for a, b in zip(found[:own], carry, strict=False)] + found[
            own:m
        ]
        for record, y in zip(records, found[m:], strict=True):
            record[i] = y
    return [*carry, *records]


def _run_while(r, operands):
    n, m = len(r.cond_consts), len(r.body_consts)
    tested, fixed, carry = operands[:n], operands[n : n + m], operands[n + m :]
    (active,) = run_by_steps(r.cond, [*tested, *carry])
    counts, rows, i = np.zeros(active.shape, np.int64), [], 0
    while active.any():
        assert r.limit is None or i < r.limit
        found = run_by_steps(r.body, [np.array(i), *fixed, *carry])
        carry = [_freeze(active, a, b) for a, b in zip(found, carry, strict=False)]
        rows.append(found[len(carry) :])
        counts, i = counts + active, i + 1
        active = active & run_by_steps(r.cond, [*tested, *carry])[0]
    types = [v.type for v in r.body.outputs[len(carry) :]]
    records = [
        np.stack([row[k] for row in rows]) if rows else np.empty((0, *t.shape), t.dtype.numpy)
        for k, t in enumerate(types)
    ]
    return [*carry, counts, *records]


def run_by_steps(graph, arguments):
    """The outputs of a graph, every op of every iteration by a plan of its own."""
    return run_by_node(graph, arguments, _run_step)


def driven(graph):
    """The plan of a graph whose regions are all loops of the driver, however small."""
    with mock.patch.object(regions, "lane_program", return_value=None):
        return compile_graph(graph)


def agree(graph, arguments, *, threads=1, exact=True):
    """The outputs by the driver, after comparing them with those of single steps and of NumPy."""
    plan = driven(graph)
    found = plan.run([np.array(a) for a in arguments], threads)
    for got, right in zip(found, run_by_steps(graph, arguments), strict=True):
        assert (got.shape, got.dtype) == (right.shape, right.dtype)
        assert got.tobytes() == right.tobytes()
    for got, right in zip(found, interpret_graph(graph, arguments), strict=True):
        assert got.shape == right.shape
        if exact:
            np.testing.assert_array_equal(got, right)
        else:
            np.testing.assert_allclose(got, right, rtol=1e-12)
    again = plan.run([np.array(a) for a in arguments], threads)
    assert [a.tobytes() for a in again] == [a.tobytes() for a in found]
    return found


def doubled(limit=None):
    """Double until a bound is passed; records each value."""

    def program(bound, x):
        return while_(
            lambda bound, c, n: ops.lt(ops.sum_(c), bound),
            lambda i, c, n: (c * 2.0, n + i, c),
            cond_consts=[bound],
            init=[x, constant(0)],
            limit=limit,
        )

    return program


def rng(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)
