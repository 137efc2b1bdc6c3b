"""The ops cond, loop and while: type rules, reference values, text, parts."""

from dataclasses import replace

import numpy as np
import pytest

from tilegrad.ir.compare import graphs_equal
from tilegrad.ir.dtypes import float32, float64, int64
from tilegrad.ir.errors import ConvergenceError, DTypeError, ShapeError, TilegradError
from tilegrad.ir.graph import Graph, make_node
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops import add, convert, floor_divide, gather, lt, mul, sub, sum_, where
from tilegrad.ir.ops.leaves import constant, input_node
from tilegrad.ir.ops.regions import COND, LOOP, WHILE, Loop, While, may_fail
from tilegrad.ir.ops.shape import broadcast
from tilegrad.ir.parse import parse
from tilegrad.ir.text import text
from tilegrad.ir.types import GROWING, TensorType
from tilegrad.ir.verify import verify


def fresh(shape=(), dtype=float64, name="x"):
    return input_node(TensorType(shape, dtype), name)


def values(node, env):
    """The results of a node for {input: array}."""
    return interpret(node.outputs, env)


def power_sum(length, count=None, reverse=False, xs_extent=None):
    """carry' = carry * c + x[i] + i, recording the carry."""
    i, c, carry, x = fresh((), int64, "i"), fresh(), fresh(), fresh()
    step = add(add(mul(carry.out, c.out), x.out), convert(i.out, float64))
    body = Graph((i, c, carry, x), (step, carry.out), "body")
    extent = length if xs_extent is None else xs_extent
    outer = [fresh(), fresh(), fresh((extent,))]
    loop = Loop(body, (outer[0].out,), (outer[1].out,), (outer[2].out,), length, count, reverse)
    return loop.node(), outer


def expected_sum(c, carry, xs, reverse):
    records = [0.0] * len(xs)
    for i in reversed(range(len(xs))) if reverse else range(len(xs)):
        records[i] = carry
        carry = carry * c + xs[i] + i
    return carry, records


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1, 5])
def test_loop_value(length, reverse):
    node, outer = power_sum(length, reverse=reverse)
    xs = np.linspace(-1, 1, length)
    carry, records = values(
        node, dict(zip(outer, (np.float64(0.5), np.float64(2), xs), strict=True))
    )
    after, recorded = expected_sum(0.5, 2.0, xs, reverse)
    assert carry == after
    np.testing.assert_array_equal(records, recorded)
    assert records.shape == (length,)


@pytest.mark.parametrize("reverse", [False, True])
def test_tapes_pass_from_loop_to_loop(reverse):
    """A while records a tape; a loop of as many trips reads it, in either direction."""
    i, n, x = fresh((), int64, "i"), fresh((), int64), fresh()
    body = Graph(
        (i, n, x), (add(n.out, constant(1, int64)), mul(x.out, constant(0.5, float64)), x.out)
    )
    limit, m, y = fresh((), int64), fresh((), int64), fresh()
    cond = Graph((limit, m, y), (lt(m.out, limit.out),))
    most, start = fresh((), int64), fresh()
    first = While(cond, body, (most.out,), (), (constant(0, int64), start.out)).node()
    assert first.types[2:] == (TensorType((), int64), TensorType((GROWING,), float64))
    j, total, row = fresh((), int64, "i"), fresh(), fresh()
    adding = Graph((j, total, row), (sub(row.out, total.out), total.out))
    zero = constant(0.0, float64)
    second = Loop(adding, (), (zero,), (first.outputs[3],), None, first.outputs[2], reverse).node()
    for trips in (0, 1, 4):
        env = {most: np.int64(trips), start: np.float64(8)}
        tape = 8 * 0.5 ** np.arange(trips)
        np.testing.assert_array_equal(interpret([first.outputs[3]], env)[0], tape)
        expected = 0.0
        for value in tape[::-1] if reverse else tape:
            expected = value - expected
        assert interpret([second.outputs[0]], env)[0] == expected


def test_lanes_stop_one_by_one():
    """A count of shape (4,): each lane has its own, and a finished one keeps its bits."""
    i, x = fresh((), int64, "i"), fresh((4, 2))
    body = Graph((i, x), (mul(x.out, broadcast(constant(-1.5, float64), (4, 2), ())),))
    count, start = fresh((4,), int64), fresh((4, 2))
    node = Loop(body, (), (start.out,), (), None, count.out).node()
    x0 = np.array([[1.0, -0.0], [2, 3], [np.nan, np.inf], [0, 5]])
    trips = np.array([0, 3, 1, 2])
    (got,) = values(node, {count: trips, start: x0})
    np.testing.assert_array_equal(got, x0 * (-1.5) ** trips[:, None])
    assert np.signbit(got[0, 1])


def test_shared_carries_belong_to_no_lane():
    i, x, total = fresh((), int64, "i"), fresh((3,)), fresh()
    more = add(total.out, sum_(x.out))
    body = Graph((i, x, total), (mul(x.out, broadcast(constant(2.0, float64), (3,), ())), more))
    count, start = fresh((3,), int64), fresh((3,))
    zero = constant(0.0, float64)
    node = Loop(body, (), (start.out, zero), (), None, count.out, shared=1).node()
    lanes, total = values(node, {count: np.array([1, 0, 2]), start: np.ones(3)})
    np.testing.assert_array_equal(lanes, [2, 1, 4])
    assert total == (1 + 1 + 1) + (2 + 1 + 2)


def test_while_counts_and_has_a_limit():
    i, n = fresh((), int64, "i"), fresh((2,), int64)
    one = broadcast(constant(1, int64), (2,), ())
    body = Graph((i, n), (add(n.out, one),))
    m = fresh((2,), int64)
    cond = Graph((m,), (lt(m.out, broadcast(constant(5, int64), (2,), ())),))
    start = fresh((2,), int64)
    loop = While(cond, body, (), (), (start.out,))
    after, trips = values(loop.node(), {start: np.array([3, 9])})
    np.testing.assert_array_equal(after, [5, 9])
    np.testing.assert_array_equal(trips, [2, 0])
    short = While(cond, body, (), (), (start.out,), 1).node()
    with pytest.raises(ConvergenceError, match="max_steps=1"):
        values(short, {start: np.array([3, 9])})


def test_cond_clamps():
    x = fresh()
    branches = tuple([Graph((x,), (mul(x.out, constant(float(k), float64)),)) for k in (1, 2, 3)])
    index, y = fresh((), int64), fresh()
    node = make_node(COND, (index.out, y.out), branches=branches)
    for k, factor in [(-4, 1), (0, 1), (1, 2), (2, 3), (99, 3)]:
        assert values(node, {index: np.int64(k), y: np.float64(5)})[0] == 5 * factor


def programs():
    loop, outer = power_sum(3)
    yield loop, outer
    x, y, index = fresh(), fresh(), fresh((), int64)
    branches = (Graph((x,), (x.out,)), Graph((x,), (mul(x.out, x.out),)))
    yield make_node(COND, (index.out, y.out), branches=branches), [index, y]
    i, n, m, start = (fresh((), int64) for _ in range(4))
    body = Graph((i, n), (add(n.out, constant(1, int64)), n.out))
    cond = Graph((m,), (lt(m.out, constant(5, int64)),))
    yield While(cond, body, (), (), (start.out,), 7).node(), [start]


@pytest.mark.parametrize("number", range(3))
def test_text_reads_back(number):
    node, inputs = list(programs())[number]
    graph = Graph(tuple(inputs), node.outputs)
    again = parse(text(verify(graph)))
    assert graphs_equal(graph, verify(again))
    assert text(again) == text(graph)


def test_parts_of_a_node_make_it_again():
    (loop, _), _, (while_, _) = programs()
    assert Loop.of(loop).node().params == loop.params
    assert While.of(while_).node().params == while_.params


def test_type_rules_refuse():
    loop = Loop.of(power_sum(3)[0])

    def with_operands(**parts):
        return replace(loop, **parts).node()

    with pytest.raises(ShapeError, match="leading extent 3"):
        with_operands(xs=(fresh((4,)).out,))
    with pytest.raises(DTypeError, match=r"input of the body 2: expected f32\[\], got f64\[\]"):
        with_operands(init=(fresh((), float32).out,))
    with pytest.raises(TilegradError, match="expected 3 values, got 4"):
        with_operands(consts=())
    lanes = fresh((2,), int64).out
    with pytest.raises(ShapeError, match=r"lanes \[2\] in front"):
        with_operands(length=None, count=lanes, xs=(fresh((GROWING,)).out,))
    with pytest.raises(DTypeError, match="index: expected i64"):
        make_node(COND, (fresh().out,), branches=(Graph((), ()),))
    x = fresh()
    wide = broadcast(x.out, (2,), ())
    with pytest.raises(ShapeError, match="result of branch 1"):
        make_node(
            COND,
            (fresh((), int64).out, fresh().out),
            branches=(Graph((x,), (x.out,)), Graph((x,), (wide,))),
        )
    i, n, m = fresh((), int64), fresh((), int64), fresh((), int64)
    with pytest.raises(DTypeError, match="condition: expected bool"):
        While(
            Graph((m,), (m.out,)), Graph((i, n), (n.out,)), (), (), (fresh((), int64).out,)
        ).node()


def test_what_may_fail():
    x, n = fresh((3,)), fresh((3,), int64)
    assert not may_fail(Graph((x,), (where(lt(x.out, x.out), x.out, mul(x.out, x.out)),)))
    assert may_fail(Graph((n,), (floor_divide(n.out, n.out),)))
    assert may_fail(Graph((x, n), (gather(x.out, n.out, axes=(0,), mode="raise"),)))
    loops = list(programs())
    assert not may_fail(Graph(tuple(loops[0][1]), loops[0][0].outputs))
    assert may_fail(Graph(tuple(loops[2][1]), loops[2][0].outputs))
    inner = Graph((n,), (floor_divide(n.out, n.out),))
    outer = make_node(COND, (fresh((), int64).out, n.out), branches=(inner, inner))
    assert may_fail(Graph((), outer.outputs))
    assert LOOP.kind == WHILE.kind == "region"
