"""Nodes with rules, at the level of graphs: what passes do with them, and what ties hold."""

import numpy as np
import pytest
from small_functions import cos, derivative, gradient, op, placeholder, sin, value_of, vmapped

from tilegrad.autodiff.custom import Forward, Reverse, filled_in, refuse_untransposed
from tilegrad.autodiff.forward import jvp
from tilegrad.autodiff.reverse import linear_transpose, linearize, transpose
from tilegrad.ir.compare import graphs_equal
from tilegrad.ir.dtypes import float64, int64
from tilegrad.ir.errors import UnsupportedError
from tilegrad.ir.graph import Graph
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops.arithmetic import add, mul
from tilegrad.ir.ops.custom import HOLD, Rule, Tie, custom_call, hold
from tilegrad.ir.ops.host import HostFunction, effect
from tilegrad.ir.ops.leaves import alias, constant
from tilegrad.ir.passes.manager import optimize
from tilegrad.ir.rewrite import substitute
from tilegrad.ir.text import text
from tilegrad.ir.types import TensorType
from tilegrad.ir.verify import verify


def ruled(f, push, *xs):
    """``f`` with a rule ``push(*xs, *dots) -> dot``."""
    tie = Tie()
    y = f(*[hold(x, tie) for x in xs])
    rule = Forward("test", len(xs), 0, lambda args, extras, dots: [push(*args, *dots)])
    return custom_call([y], xs, rule, tie)[0]


def sine(x, factor=2.0):
    return ruled(sin, lambda x, t: mul(mul(cos(x), factor), t), x)


def names(graph):
    return [node.op.name for node in graph.nodes()]


def test_rules_leave_nothing_in_an_optimized_graph():
    x = placeholder((3,))
    graph = Graph((x,), (add(sine(x.out), 1.0),))
    assert names(graph).count("custom_call") == names(graph).count("hold") == 1
    verify(graph)
    plain = optimize(Graph((x,), (add(sin(x.out), 1.0),)))
    assert graphs_equal(optimize(graph), plain)
    assert "rule=<Forward>" in text(graph)


def test_programs_that_differ_in_rules_alone_are_equal():
    """So compiled code is shared, and a region's key does not depend on who asks."""
    x = placeholder()
    one, other = (Graph((x,), (sine(x.out, k),)) for k in (2.0, 3.0))
    assert graphs_equal(one, other)
    assert Rule() == Tie()
    assert len({Rule(), Forward("a", 1, 0, None), Tie()}) == 1


def test_the_reference_passes_values_on():
    x = np.array([0.3, 2.0])
    y, t = derivative(sine, constant(x), constant(np.ones(2)))
    np.testing.assert_array_equal(value_of(y), np.sin(x))
    np.testing.assert_allclose(value_of(t), 2 * np.cos(x), rtol=1e-15)


def test_captured_values_have_the_derivative_of_the_function():
    """y = c sin(x): by c it is sin(x), and the mixed derivative is there once from each side."""

    def f(x, c):
        return ruled(lambda v: mul(c, sin(v)), lambda v, t: mul(mul(cos(v), 5.0), t), x)

    def by_c(x, c):
        return gradient(lambda c: f(x, c), c)

    x, c = constant(0.3), constant(2.0)
    np.testing.assert_allclose(value_of(by_c(x, c)), np.sin(0.3), rtol=1e-15)
    # The part that came with y is differentiated as if nothing had been held.
    mixed = gradient(lambda x: by_c(x, c), x)
    np.testing.assert_allclose(value_of(mixed), np.cos(0.3), rtol=1e-15)


def test_ties_tell_calls_of_one_argument_apart():
    """g(x) inside f(x) closes over the same x: only f's own argument is given back."""
    inner = []

    def f(x):
        def body(v):
            inner.append(ruled(sin, lambda v, t: mul(t, 100.0), x))
            return mul(v, inner[-1])

        return ruled(body, lambda v, t: mul(t, 7.0), x)

    x = constant(0.3)
    # by the rule 7; by what the body captures, x * 100
    np.testing.assert_allclose(value_of(gradient(f, x)), 7 + 0.3 * 100, rtol=1e-15)
    # d/dx (7 + x * 100): the rules' numbers are constant
    np.testing.assert_allclose(value_of(gradient(lambda x: gradient(f, x), x)), 100.0, rtol=1e-15)


def test_a_linear_function_with_a_rule_transposes_as_it_stands():
    x = placeholder((2,))
    y = ruled(lambda v: mul(v, 3.0), lambda v, t: mul(t, 5.0), x.out)
    bar = constant(np.array([1.0, 2.0]))
    (found,) = linear_transpose([y], [x.out])([bar])
    np.testing.assert_array_equal(value_of(found), [3.0, 6.0])


def test_zeros_of_a_linear_program_are_linear():
    x, y = placeholder().out, placeholder(name="y").out
    f = ruled(add, lambda x, y, s, t: add(*filled_in([s, t], [x.type, y.type])), x, y)
    (node,), (dot,) = linearize([f], [x])
    (bar,) = transpose([dot], [node], [constant(2.0)])
    assert value_of(bar) == 2.0
    assert filled_in([None], [TensorType((), int64)]) == [None]
    (zero,) = filled_in([None], [TensorType((2,), float64)])
    np.testing.assert_array_equal(value_of(zero), [0.0, 0.0])


def reverse_sine(x, factor=2.0):
    def fwd(args, extras):
        return list(args), lambda fixed, bars: [mul(mul(cos(fixed[0]), factor), bars[0])]

    tie = Tie()
    rule = Reverse("test", 1, 0, fwd, None)
    return custom_call([sin(hold(x, tie))], [x], rule, tie)[0]


def test_a_linear_function_known_by_its_transpose():
    x = constant(0.3)
    np.testing.assert_allclose(value_of(gradient(reverse_sine, x)), 2 * np.cos(0.3), rtol=1e-15)
    marked = alias(x)
    (dot,) = jvp([reverse_sine(marked)], {marked: constant(1.0)})
    with pytest.raises(UnsupportedError, match="only tells the reverse"):
        value_of(dot)
    with pytest.raises(UnsupportedError, match="only tells the reverse"):
        refuse_untransposed([None, add(dot, 1.0)])
    refuse_untransposed([x])


def test_batched_linear_functions_transpose():
    """Batched between linearization and transposition, as in the linear half of a loop."""
    ts = placeholder((3,), name="ts")
    one = alias(constant(0.3))
    (node,), (dot,) = linearize([reverse_sine(one)], [one])
    many = vmapped(lambda t: substitute([dot], {node.out: t})[0], ts.out)
    (bar,) = transpose([many], [ts], [constant(np.array([1.0, 2.0, 3.0]))])
    np.testing.assert_allclose(value_of(bar), 2 * np.cos(0.3) * np.array([1, 2, 3]), rtol=1e-15)


class Note(HostFunction):
    def __init__(self):
        self.seen = []

    def __call__(self, *operands):
        self.seen.append([float(x) for x in operands])
        return ()


def test_effects_are_not_merged():
    x, note = placeholder(), Note()
    tokens = [effect(note, [x.out]), effect(note, [x.out])]
    graph = optimize(Graph((x,), tuple(tokens)))
    assert names(graph) == ["effect", "effect"]
    interpret_graph(graph, [2.0])
    assert note.seen == [[2.0], [2.0]]


def test_held_values_are_batched_with_their_ties():
    x = constant(np.array([0.3, 2.0]))
    tie = Tie()
    y = vmapped(lambda v: op("exp", hold(v, tie)), x)
    (held,) = [n for n in Graph((), (y,)).nodes() if n.op is HOLD]
    assert held.param("tie") is tie
    assert held.inputs[0] is x
