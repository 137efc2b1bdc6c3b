"""The reference interpreter."""

import warnings

import numpy as np
import pytest

from tilegrad.ir.dtypes import float32, float64
from tilegrad.ir.errors import TilegradError
from tilegrad.ir.graph import Graph, Node, Op
from tilegrad.ir.interpret import interpret, interpret_graph
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.arithmetic import add, div, mul, neg
from tilegrad.ir.ops.leaves import constant, input_node
from tilegrad.ir.types import TensorType

F3 = TensorType((3,), float64)


def test_values_in_order_of_outputs():
    x = input_node(F3, "x")
    y = mul(x.out, 2)
    shared = add(y, y)
    a, b, c, d = interpret([shared, x.out, y, shared], {x: [1, 2, 3]})
    np.testing.assert_array_equal(a, [4.0, 8.0, 12.0])
    np.testing.assert_array_equal(b, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(c, [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(d, a)
    assert b.dtype == np.float64


def test_any_node_may_be_given():
    x = input_node(F3, "x")
    y = neg(x.out)
    (z,) = interpret([mul(y, 3.0)], {y.node: np.ones(3)})
    np.testing.assert_array_equal(z, [3.0, 3.0, 3.0])


def test_data_nodes_read_their_memo_and_others_compute():
    data = Node(OPS["data"], (), (("type", F3),), (F3,), memo=(np.arange(3.0),))
    lying = Node(OPS["neg"], (data.out,), (), (F3,), memo=(np.full(3, 7.0),))
    (y,) = interpret([lying.out])
    np.testing.assert_array_equal(y, [-0.0, -1.0, -2.0])
    empty = Node(OPS["data"], (), (("type", F3),), (F3,))
    with pytest.raises(TilegradError, match="no array in its memo"):
        interpret([empty.out])


def test_missing_and_misfit_inputs():
    x = input_node(F3, "speed")
    with pytest.raises(TilegradError, match="the input 'speed': f64"):
        interpret([neg(x.out)])
    with pytest.raises(TilegradError, match=r"expected f64\[3\], the NumPy value is float64\[2\]"):
        interpret_graph(Graph((x,), (x.out,)), [np.ones(2)])


def test_results_are_held_against_the_types():
    t = TensorType((3,), float64)
    for reference in (lambda x: x.astype(np.float32), lambda x: x[:2], lambda x: (x, x)):
        op = Op("faulty", "elementwise", infer=lambda x: x, reference=reference)
        x = input_node(t, "x")
        y = Node(op, (x.out,), (), (t,)).out
        with pytest.raises(TilegradError, match=r"faulty.*expected"):
            interpret([y], {x: np.ones(3)})


def test_ops_without_reference_say_so():
    op = Op("opaque", "leaf", infer=lambda: F3, why_not={"reference": "a secret"})
    with pytest.raises(TilegradError, match="opaque has no NumPy reference: a secret"):
        interpret([Node(op, (), (), (F3,)).out])


def test_ieee_results_do_not_warn():
    x = input_node(TensorType((3,), float32), "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (y,) = interpret([div(x.out, constant(0.0))], {x: [1, 0, -1]})
    np.testing.assert_array_equal(y, np.array([np.inf, np.nan, -np.inf], np.float32))


def test_long_chains():
    x = input_node(TensorType((), float64), "x")
    y = x.out
    for _ in range(100_000):
        y = neg(y)
    (value,) = interpret([y], {x: 2.5})
    assert value == 2.5
