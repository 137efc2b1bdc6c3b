"""checkpoint nodes under the transforms, on graphs and by the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tilegrad.autodiff import reverse
from tilegrad.autodiff.batching import batch
from tilegrad.autodiff.forward import jvp
from tilegrad.autodiff.recompute import Recompute, checkpoint_call, of_predicate
from tilegrad.ir.dtypes import float64
from tilegrad.ir.errors import TilegradError
from tilegrad.ir.graph import Graph, make_node, toposort
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops import exp, matmul, sin
from tilegrad.ir.ops.checkpoint import CHECKPOINT
from tilegrad.ir.ops.leaves import input_node
from tilegrad.ir.passes.inline import inline
from tilegrad.ir.passes.manager import optimize
from tilegrad.ir.types import TensorType
from tilegrad.ir.verify import verify

T = TensorType((3, 3), float64)
X = np.random.default_rng(0).standard_normal((3, 3))


def checkpointed(f, *operands, saveable=None):
    inputs = [input_node(x.type, f"x{k}") for k, x in enumerate(operands)]
    rule = Recompute("checkpoint(f)", of_predicate(saveable))
    outputs = f(*[n.out for n in inputs])
    return checkpoint_call(inputs, outputs, operands, [False] * len(operands), rule)


def f(x, y):
    return sin(matmul(x, y)) * x, exp(y)


def ops(values):
    return [node.op.name for node in toposort(values)]


@pytest.fixture
def operands():
    return [input_node(T, name).out for name in "xy"]


def test_its_types_and_value_are_those_of_the_body(operands):
    found = checkpointed(f, *operands)
    env = {operands[0].node: X, operands[1].node: X + 1}
    for a, b in zip(interpret(found, env), interpret(f(*operands), env), strict=True):
        assert a.tobytes() == b.tobytes()
    verify(Graph(tuple(x.node for x in operands), found))


def test_the_pullback_reads_arguments_alone(operands):
    found = checkpointed(f, *operands)
    (c,) = [input_node(T, "c").out]
    back = reverse.vjp(found, operands)([c, None])
    assert set(ops(back)) == {"input", "checkpoint", "add"}  # the uses of x are added up outside
    (node,) = [n for n in toposort(back) if n.op is CHECKPOINT]
    assert node.param("held") == (True, True, False)
    assert [x for x in node.inputs if x not in operands] == [c]
    body = node.param("body")
    assert "exp" not in ops(body.outputs)  # nobody reads it
    assert {"sin", "cos"} <= set(ops(body.outputs))


def test_operands_that_nobody_reads_are_not_held(operands):
    (found,) = checkpointed(lambda x, y: (exp(y) + x,), *operands)
    (back,) = reverse.vjp([found], [operands[0]])([input_node(T, "c").out])
    assert operands[1].node not in toposort([back])


def test_a_policy_moves_a_value_to_the_forward_part(operands):
    saveable = lambda op, *types, **params: op == "dot"  # noqa: E731
    found = checkpointed(f, *operands, saveable=saveable)
    back = reverse.vjp(found, operands)([input_node(T, "c").out, None])
    nodes = [n for n in toposort(back) if n.op is CHECKPOINT]
    known, linear = nodes
    assert ops(known.param("body").outputs)[-1] == "dot"
    assert not any(known.param("held"))
    assert "dot" in ops(linear.param("body").outputs)  # those of the cotangents
    assert known.out in linear.inputs


def test_inlined_the_forward_part_is_shared_and_the_backward_part_is_not(operands):
    found = checkpointed(f, *operands)
    c = input_node(T, "c")
    back = reverse.vjp(found, operands)([c.out, None])
    graph = Graph((*[x.node for x in operands], c), (*found, *back))
    plain = optimize(graph)
    verify(plain)
    names = ops(plain.outputs)
    assert "checkpoint" not in names
    assert names.count("sin") == 1 + 1
    assert names.count("dot") == 1 + 1 + 2  # forward, again, and two of the derivative
    assert names.count("after") == 2
    env = {n: X + k for k, n in enumerate(graph.inputs)}
    for a, b in zip(interpret(plain.outputs, env), interpret(graph.outputs, env), strict=True):
        assert a.tobytes() == b.tobytes()


def test_forward_mode_shares_everything(operands):
    found = checkpointed(f, *operands)
    moved = jvp(found, {operands[0]: operands[1]})
    graph = Graph(tuple(x.node for x in operands), (*found, *[m for m in moved if m is not None]))
    assert "after" not in ops(optimize(graph).outputs)
    assert ops(optimize(graph).outputs).count("sin") == 1


def test_batching_keeps_what_is_held(operands):
    found = checkpointed(f, *operands)
    c = input_node(T, "c").out
    back = reverse.vjp(found, operands)([c, None])
    whole = input_node(TensorType((3, 5, 3), float64), "many").out
    (first, axis), _ = batch(back, {c: (whole, 1)}, 5)
    (node,) = [n for n in toposort([first]) if n.op is CHECKPOINT]
    assert node.param("held") == (True, True, False)
    many = np.random.default_rng(1).standard_normal((3, 5, 3))
    env = {operands[0].node: X, operands[1].node: X + 1}
    (batched,) = interpret([first], {**env, whole.node: many})
    for k in range(5):
        (one,) = interpret([back[0]], {**env, c.node: many[:, k]})
        np.testing.assert_allclose(np.take(batched, k, axis), one, rtol=1e-14)


def test_bodies_in_bodies_are_inlined(operands):
    inner = lambda x, y: checkpointed(lambda a, b: (sin(a * b),), x, y)  # noqa: E731
    found = checkpointed(lambda x, y: (exp(inner(x, y)[0]),), *operands)
    back = reverse.vjp(found, operands)([input_node(T, "c").out])
    inputs = [n for n in toposort(back) if n.op.name == "input"]
    flat = inline(Graph(tuple(inputs), tuple(back)))
    assert "checkpoint" not in ops(flat.outputs)
    plain = Graph(flat.inputs, flat.outputs)
    assert inline(plain) is plain


def test_operands_of_other_types_are_refused(operands):
    body = checkpointed(f, *operands)[0].node.param("body")
    rule = Recompute("f", of_predicate(None))
    with pytest.raises(TilegradError, match=r"checkpoint: expected operands f64\[3,3\]"):
        make_node(CHECKPOINT, operands[:1], body=body, held=(False,), rule=rule)
