"""Passes over regions: pruning, hoisting, merging. Each keeps every bit."""

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.ir.dtypes import int64
from tilegrad.ir.graph import Graph
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops import add, floor_divide, mul
from tilegrad.ir.ops.leaves import input_node
from tilegrad.ir.ops.regions import Loop
from tilegrad.ir.passes import merge_regions as merging
from tilegrad.ir.passes.manager import optimize
from tilegrad.ir.passes.merge_regions import merge_regions
from tilegrad.ir.passes.regions import hoist_invariants, prune_regions
from tilegrad.ir.types import TensorType
from tilegrad.ir.verify import verify

XS = np.linspace(0, 1, 4)


def regions(graph, name=None):
    return [n for n in graph.nodes() if n.op.kind == "region" and name in (None, n.op.name)]


def names(graph):
    return [node.op.name for node in graph.nodes()]


def same(graph, changed, *arguments):
    """``changed`` is well formed and has the same values to the bit; returns it."""
    verify(changed)
    given = [np.asarray(a) for a in arguments]
    found = zip(interpret_graph(graph, given), interpret_graph(changed, given), strict=True)
    for a, b in found:
        assert a.tobytes() == b.tobytes()
    return changed


# ------------------------------------------------------------------------------------ pruning


def test_unread_records_and_carries_go():
    def program(xs):
        def step(c, x):
            a, b, unread = c
            return (a * 2 + x, b + a, unread + b), (x * a, tg.sin(b))

        (a, _, _), (first, _) = tg.scan(step, (1.0, 0.5, 0.0), xs)
        return a, first

    graph = tg.trace(program)(XS)
    (loop,) = regions(same(graph, prune_regions(graph), XS))
    assert loop.param("carries") == 1
    assert len(loop.types) == 2
    assert "sin" not in names(loop.param("body"))


def test_what_never_changes_is_captured():
    def program(x):
        return tg.fori_loop(0, 4, lambda i, c: (c[0], c[1] * c[0]), (x, 1.0))

    graph = tg.trace(program)(3.0)
    changed = same(graph, prune_regions(graph), 3.0)
    (loop,) = regions(changed)
    assert (loop.param("carries"), loop.param("consts")) == (1, 1)
    assert changed.outputs[0].node is not loop


def test_a_loop_that_nobody_reads_goes():
    def program(x):
        return tg.fori_loop(0, 4, lambda i, c: (c[0], c[1] * c[0]), (x, 1.0))[0]

    graph = tg.trace(program)(3.0)
    assert not regions(same(graph, prune_regions(graph), 3.0))


def test_while_keeps_what_its_condition_reads():
    def program(x):
        return tg.while_loop(
            lambda c: c["n"] < 5,
            lambda c: {"n": c["n"] + 1, "y": c["y"] * x, "unread": c["unread"] + c["y"]},
            {"n": 0, "y": 1.0, "unread": 0.0},
        )["y"]

    graph = tg.trace(program)(1.5)
    (loop,) = regions(same(graph, prune_regions(graph), 1.5))
    assert loop.param("carries") == 2


def test_cond_loses_results_and_operands():
    def program(p, x, y):
        return tg.cond(p, lambda: (x, y), lambda: (2 * x, tg.exp(y)))[0]

    graph = tg.trace(program)(True, 1.0, 2.0)
    (node,) = regions(same(graph, prune_regions(graph), True, 1.0, 2.0))
    assert len(node.types) == 1
    assert len(node.inputs) == 2


# ------------------------------------------------------------------------------------ hoisting


def test_invariants_move_out():
    def loss(w, x):
        return tg.fori_loop(0, 5, lambda i, c: tg.sin(c) * tg.exp(w) + w, x)

    graph = tg.trace(tg.grad(loss))(0.3, 1.0)
    for loop in regions(same(graph, optimize(graph), 0.3, 1.0)):
        assert "exp" not in names(loop.param("body"))


def test_what_may_fail_stays():
    i, n, c = (input_node(TensorType((), int64), name) for name in "inc")
    risky, safe = floor_divide(n.out, n.out), mul(n.out, n.out)
    body = Graph((i, n, c), (add(add(c.out, risky), safe),))
    a, b = (input_node(TensorType((), int64), name) for name in "ab")
    graph = Graph((a, b), Loop(body, (a.out,), (b.out,), (), 0).node().outputs)
    changed = hoist_invariants(graph)
    (loop,) = regions(changed)
    assert names(loop.param("body")).count("floor_divide") == 1
    assert "mul" not in names(loop.param("body"))
    assert interpret_graph(changed, [np.int64(0), np.int64(7)]) == [7]  # no trip, no division


# ------------------------------------------------------------------------------------- merging


def recurrence(x, xs):
    return tg.scan(lambda c, t: (tg.sin(c * x) + t, c * t), x, xs)


def summed(x):
    carry, ys = recurrence(x, XS)
    return carry + tg.sum(ys)


@pytest.mark.parametrize(
    ("program", "count"),
    [
        (lambda x: tg.jvp(summed, (x,), (1.0,)), 1),
        (tg.value_and_grad(summed), 2),
        (lambda x: (summed(x), tg.grad(summed)(x), tg.jvp(summed, (x,), (1.0,))), 2),
    ],
    ids=["jvp", "vjp", "both"],
)
def test_value_and_derivatives_share_loops(program, count):
    graph = tg.trace(program)(0.7)
    changed = same(graph, optimize(graph), 0.7, *[XS] * (len(graph.inputs) - 1))
    assert len(regions(changed, "loop")) == count
    forward = [n for n in regions(changed) if not n.param("reverse")]
    assert names(forward[0].param("body")).count("sin") == 1


def test_value_and_gradient_of_a_while_run_it_once():
    def root(a):
        return tg.while_loop(lambda x: tg.abs(x * x - a) > 1e-9, lambda x: 0.5 * (x + a / x), a)

    graph = tg.trace(tg.value_and_grad(root))(2.0)
    changed = same(graph, optimize(graph), 2.0)
    assert len(regions(changed, "while")) == len(regions(changed, "loop")) == 1


def test_branches_on_one_index_merge():
    def program(p, x):
        return tg.value_and_grad(lambda x: tg.cond(p, tg.sin, tg.exp, x))(x)

    graph = tg.trace(program)(True, 0.3)
    assert len(regions(same(graph, optimize(graph), True, 0.3), "cond")) == 1


def test_different_loops_stay():
    def program(x):
        a = tg.fori_loop(0, 3, lambda i, c: c * x, 1.0)
        b = tg.fori_loop(0, 3, lambda i, c: c + x, 1.0)
        c = tg.fori_loop(0, 4, lambda i, c: c * x, 1.0)
        return a, b, c

    graph = tg.trace(program)(1.5)
    assert len(regions(same(graph, merge_regions(graph), 1.5))) == 3


def test_a_loop_does_not_merge_with_one_that_waits_for_it():
    def double(z):
        return tg.fori_loop(0, 3, lambda i, c: c * 2, z)

    def program(x):
        first = double(x)
        return first, tg.jvp(double, (x,), (first,))[1]

    graph = tg.trace(program)(1.5)
    same(graph, optimize(graph), 1.5)


def test_merging_tries_few_pairs(monkeypatch):
    """Of 40 loops, each with its derivative: not each with each, again after each merge."""
    tried = []
    absorb = merging._ABSORB["loop"]
    monkeypatch.setitem(merging._ABSORB, "loop", lambda *pair: tried.append(pair) or absorb(*pair))

    def program(x):
        return sum(tg.fori_loop(0, 3, lambda i, c, k=k: tg.sin(c) + k, x) for k in range(40))

    graph = tg.trace(tg.value_and_grad(program))(0.5)
    changed = same(graph, optimize(graph), 0.5)
    assert len(regions(changed, "loop")) == 80  # 40 forward, 40 backward
    assert len(tried) < 200


# ------------------------------------------------------------------------------ loops of no trips


def test_loops_that_make_no_trip_go():
    def program(x, n):
        carry, ys = tg.scan(lambda c, t: (c * t, (c, tg.sin(t))), 2.0, x)
        lanes = tg.vmap(lambda n: tg.while_loop(lambda c: c < n, lambda c: c + 1, 0))(n)
        return carry, ys, lanes

    graph = tg.trace(program)(np.zeros(0), np.zeros(0, np.int64))
    changed = same(graph, prune_regions(graph), np.zeros(0), np.zeros(0, np.int64))
    assert not regions(changed)


def test_what_finished_lanes_could_fail_on_stays_a_carry():
    def program(n, d, x):
        body = lambda i, c: (c[0] // d, c[1] * x)  # noqa: E731
        return tg.fori_loop(0, n, body, (100, 1.0))

    n, d, x = np.array([0, 2, 1]), np.array([0, 3, 5]), np.array([0.5, 1.5, 2.0])
    graph = tg.trace(tg.vmap(program))(n, d, x)
    changed = same(graph, optimize(graph), n, d, x)
    (loop,) = regions(changed)
    assert (loop.param("carries"), loop.param("consts")) == (3, 1)  # the divisor travels along


# ------------------------------------------------------------------- work that nobody asked for


def test_unused_cotangents_do_no_work():
    graph = optimize(tg.trace(tg.grad(lambda x: recurrence(x, XS)[0]))(0.7))
    (backward,) = [n for n in regions(graph, "loop") if n.param("reverse")]
    # One carry's cotangent and one sum; no sequence of cotangents.
    assert [t.shape for t in backward.types if t.shape] == []


def test_loops_that_only_add_need_no_tape():
    def loss(w, xs):
        return tg.scan(lambda c, x: (c + w * x, None), 0.0, xs)[0]

    graph = optimize(tg.trace(tg.grad(loss))(2.0, XS))
    assert not [n for n in regions(graph) if any(t.shape for t in n.types)]


@pytest.mark.parametrize(
    "twice",
    [
        lambda: tg.jit(lambda x: tg.scan(lambda c, t: (c * 1.5, c * t), 1.0, XS * x)[1]),
        lambda: tg.jit(lambda x: tg.scan(lambda c, _: (c * 1.5, c * x), 1.0, None, 3)[1]),
        lambda: tg.jit(
            lambda x: tg.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))
        ),
    ],
    ids=["sequence", "captured", "while"],
)
def test_a_program_called_twice_is_two_results(twice):
    """Two nodes with one body and different operands: merged, each keeps its own."""
    inner = twice()
    graph = tg.trace(lambda x, y: (inner(x), inner(y)))(2.0, 5.0)
    changed = optimize(graph)
    found = interpret_graph(
        changed, [np.float64(2), np.float64(5), *[XS] * (len(graph.inputs) - 2)]
    )
    each = [np.asarray(v) for x in (2.0, 5.0) for v in tg.tree.leaves(inner(x))]
    for a, b in zip(found, each, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-15)


def test_branches_called_twice_on_one_index():
    inner = tg.jit(lambda i, x: tg.cond(i, lambda x: x * 3, lambda x: x - 1, x))
    graph = tg.trace(lambda i, x, y: (inner(i, x), inner(i, y)))(True, 1.0, 2.0)
    changed = optimize(graph)
    assert len(regions(changed)) == 1
    for flag, expected in ((True, [3, 6]), (False, [0, 1])):
        assert interpret_graph(changed, [flag, np.float64(1), np.float64(2)]) == expected
