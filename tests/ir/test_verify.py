"""The verifier: every rule of the IR has a graph that breaks it."""

import numpy as np
import pytest

from tilegrad.ir.dtypes import float32, float64, int64
from tilegrad.ir.graph import Graph, Literal, Node, Op, Value
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.arithmetic import add, mul, neg
from tilegrad.ir.ops.leaves import constant, input_node
from tilegrad.ir.types import TensorType
from tilegrad.ir.verify import VerificationError, verify

F3 = TensorType((3,), float64)


def make_input(t=F3, name="x"):
    return input_node(t, name)


def refused(graph, *parts, **options):
    with pytest.raises(VerificationError) as caught:
        verify(graph, **options)
    for part in parts:
        assert part in str(caught.value)
    return caught.value


def test_well_formed_graphs_pass():
    x = make_input()
    graph = Graph((x,), (add(mul(x.out, 2), constant(np.ones(3))), x.out))
    assert verify(graph) is graph
    verify(Graph((), ()))


@pytest.mark.parametrize(
    "wrong", [TensorType((4,), float64), TensorType((3,), float32), TensorType((3,), float64, True)]
)
def test_types_are_derived_anew(wrong):
    x = make_input()
    node = Node(OPS["neg"], (x.out,), (), (wrong,))
    error = refused(
        Graph((x,), (neg(node.out),)),
        f"the type rule gives f64[3], the node says {wrong}",
        f"in %1: {wrong} = neg(%0)",
    )
    assert error.node is node


def test_type_rule_that_refuses():
    x, y = make_input(), make_input(TensorType((4,), float64), "y")
    node = Node(OPS["add"], (x.out, y.out), (), (F3,))
    refused(Graph((x, y), (node.out,)), "the type rule refuses", "add(%0, %1)")


def test_wrong_params_and_operand_count():
    x = make_input()
    for node in (
        Node(OPS["reshape"], (x.out,), (("axis", 0),), (F3,)),
        Node(OPS["reshape"], (x.out, x.out), (("shape", (3,)),), (F3,)),
    ):
        refused(Graph((x,), (node.out,)), "the type rule refuses")


def test_foreign_inputs_are_named():
    x, y = make_input(), make_input(name="captured")
    refused(Graph((x,), (add(x.out, y.out),)), "input 'captured' is reached but is not among")


def test_data_is_lifted_before_a_graph_is_closed():
    data = Node(OPS["data"], (), (("type", F3),), (F3,), memo=(np.ones(3),))
    graph = Graph((), (neg(data.out),))
    refused(graph, "data held by the engine")
    verify(graph, allow_data=True)


def test_inputs():
    x = make_input()
    refused(Graph((x, x), (x.out,)), "listed twice")
    refused(Graph((neg(x.out).node,), ()), "not a node of op input")


def test_indices_and_values():
    x = make_input()
    refused(Graph((x,), (Value(x, 1),)), "output", "no result number 1")
    node = Node(OPS["neg"], (Value(x, 2),), (), (F3,))
    refused(Graph((x,), (node.out,)), "no result number 2")
    refused(Graph((x,), ("x",)), "expected a Value, got 'x'")


def test_ops_are_those_of_the_table():
    x = make_input()
    impostor = Op("neg", "elementwise", infer=OPS["neg"].infer)
    refused(Graph((x,), (Node(impostor, (x.out,), (), (F3,)).out,)), "not the record of the table")


def test_params_are_sorted_and_hashable():
    x = make_input()
    shape = (2, 3)
    good = Node(
        OPS["broadcast"],
        (x.out,),
        (("axes", (1,)), ("shape", shape)),
        (TensorType(shape, float64),),
    )
    verify(Graph((x,), (good.out,)))
    for params, message in (
        ((("shape", shape), ("axes", (1,))), "not in the order of their names"),
        ((("axes", (1,)), ("shape", [2, 3])), "is not hashable"),
        ((("axes", (1,)), ("axes", (1,)), ("shape", shape)), "not in the order"),
    ):
        refused(Graph((x,), (Node(good.op, good.inputs, params, good.types).out,)), message)


def test_literals_hold_the_bytes_of_their_type():
    literal = Literal(int64, (3,), b"\0" * 8)
    t = TensorType((3,), int64)
    node = Node(OPS["constant"], (), (("literal", literal), ("weak", False)), (t,))
    refused(Graph((), (node.out,)), "literal 'literal' holds 8 bytes")


def test_regions_are_verified():
    c, stranger = make_input(), make_input(name="stranger")
    body = Graph((c,), (add(c.out, stranger.out),))
    x = make_input()
    node = Node(OPS["neg"], (x.out,), (("body", body),), (F3,))
    refused(Graph((x,), (node.out,)), "'stranger'")
