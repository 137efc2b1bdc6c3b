"""Batching: the web along a new axis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import programs, random_array
from small_functions import (
    const,
    derivative,
    exp,
    gradient,
    op,
    placeholder,
    sin,
    sum_,
    value_of,
    vmapped,
)

from tilegrad.autodiff.batching import batch
from tilegrad.ir.dtypes import float64
from tilegrad.ir.errors import ShapeError, TilegradError, UnsupportedError
from tilegrad.ir.graph import Op, make, make_node
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops.arithmetic import add, mul, neg
from tilegrad.ir.ops.leaves import constant
from tilegrad.ir.ops.operands import convert
from tilegrad.ir.types import TensorType

SIZE = 3


@given(programs(steps=12, special=False), st.data())
@settings(max_examples=200)
def test_batched_programs_are_loops(program, data):
    """Any program, any choice of mapped inputs and axes: example k is the program on example k."""
    graph = program.graph
    rng = np.random.default_rng(2)
    mapped, stacks, env, axes = {}, {}, {}, {}
    for node, argument in zip(graph.inputs, program.arguments, strict=True):
        env[node] = argument
        axis = data.draw(st.none() | st.integers(0, argument.ndim))
        if axis is None:
            continue
        examples = [random_array(rng, node.types[0], special=False) for _ in range(SIZE)]
        stack = np.stack(examples, axis)
        whole = placeholder(stack.shape, stack.dtype)
        mapped[node.out] = (whole.out, axis)
        env[whole], stacks[node], axes[node] = stack, examples, axis
    found = batch(graph.outputs, mapped, SIZE)
    for k in range(SIZE):
        alone = interpret(graph.outputs, {**env, **{n: e[k] for n, e in stacks.items()}})
        whole = interpret([value for value, _ in found], env)
        for expected, got, (_, axis) in zip(alone, whole, found, strict=True):
            one = got if axis is None else np.take(got, k, axis)
            # sums over another layout add in another order in NumPy
            assert one.dtype == expected.dtype
            tolerance = 1e-3 if _coarse(graph) else 1e-8
            np.testing.assert_allclose(one, expected, rtol=tolerance, atol=tolerance)


def _coarse(graph):
    nodes = (*graph.inputs, *graph.nodes())
    return any(t.dtype.real.name == "float32" for node in nodes for t in node.types)


def test_what_does_not_depend_stays():
    """Inventory BT02: w @ w is computed once."""
    x, w = placeholder((3,)), placeholder((3,), name="w")
    heavy = exp(w.out)
    xs = placeholder((5, 3), name="xs")
    (y, y_axis), (kept, kept_axis) = batch([mul(x.out, heavy), heavy], {x.out: (xs.out, 0)}, 5)
    assert (kept, kept_axis) == (heavy, None)
    assert y_axis == 0
    assert y.node.inputs[1].node.inputs == (heavy,)  # one broadcast of the shared value


def test_every_position_of_the_axis():
    f = lambda x, y: sum_(mul(sin(x), y), (1,))  # noqa: E731
    x, y = np.arange(24.0).reshape(2, 3, 4), np.arange(6.0).reshape(2, 3) / 7
    for axis in range(3):
        stack = const(np.moveaxis(x.transpose(2, 0, 1), 0, axis))
        got = value_of(vmapped(f, stack, const(y), axes=(axis, None)))
        expected = np.stack([(np.sin(x[:, :, k]) * y).sum(1) for k in range(4)])
        np.testing.assert_allclose(got, expected, rtol=1e-14)


def test_params_are_kept():
    x = const(np.arange(6.0).reshape(2, 3) - 3)
    assert value_of(vmapped(lambda x: convert(x, "int32"), x)).dtype == np.int32


def test_per_example_gradients():
    """Inventory BT05: vmap of grad is the loop of grads, grad of the sum of vmap their sum."""
    f = lambda w, x: sum_(exp(mul(w, sin(x))))  # noqa: E731
    w, xs = np.array([0.3, -0.2]), np.arange(8.0).reshape(4, 2)
    loop = np.stack([np.exp(w * np.sin(x)) * np.sin(x) for x in xs])
    each = vmapped(lambda w, x: gradient(lambda v: f(v, x), w), const(w), const(xs), axes=(None, 0))
    np.testing.assert_allclose(value_of(each), loop, rtol=1e-14)
    total = gradient(lambda v: sum_(vmapped(lambda x: f(v, x), const(xs))), const(w))
    np.testing.assert_allclose(value_of(total), loop.sum(0), rtol=1e-14)


def test_forward_mode_inside_and_outside():
    xs, ts = np.arange(3.0), np.array([1.0, 2.0, 3.0])
    inside = vmapped(lambda x, t: derivative(sin, x, t)[1], const(xs), const(ts))
    outside = derivative(lambda x: vmapped(sin, x), const(xs), const(ts))[1]
    np.testing.assert_allclose(value_of(inside), np.cos(xs) * ts, rtol=1e-15)
    np.testing.assert_allclose(value_of(outside), np.cos(xs) * ts, rtol=1e-15)


def test_a_hessian_is_a_batch_of_products():
    f = lambda x: sum_(mul(mul(x, x), exp(x)))  # noqa: E731
    x = const(np.array([0.1, 0.5, -1.0]))
    hessian = vmapped(lambda v: derivative(lambda y: gradient(f, y), x, v)[1], const(np.eye(3)))
    at = value_of(x)
    np.testing.assert_allclose(
        value_of(hessian), np.diag((at**2 + 4 * at + 2) * np.exp(at)), rtol=1e-13, atol=1e-15
    )


def test_nested_batches():
    x, y = np.arange(3.0), np.arange(4.0)
    inner = lambda a: vmapped(lambda b: add(mul(a, 10.0), b), const(y))  # noqa: E731
    np.testing.assert_array_equal(value_of(vmapped(inner, const(x))), 10 * x[:, None] + y)


def test_results_without_the_batch_and_empty_batches():
    x = placeholder()
    c = constant(1.0)
    assert batch([c], {x.out: (const(np.ones(3)), 0)}, 3) == [(c, None)]
    empty = vmapped(lambda x: mul(x, 2.0), const(np.ones((0, 3))))
    assert value_of(empty).shape == (0, 3)


def test_several_results_with_axes_of_their_own():
    pair = Op(
        "pair",
        "custom",
        infer=lambda x: (x, TensorType((), x.dtype)),
        reference=lambda x: (2 * x, np.asarray(x.sum())),
        batch=lambda node, xs, axes: (
            (mul(xs[0], 2.0), sum_(xs[0], tuple(d for d in range(xs[0].ndim) if d != axes[0]))),
            (axes[0], 0),
        ),
    )
    x = placeholder((2,))
    first, second = make_node(pair, (x.out,)).outputs
    stack = const(np.arange(6.0).reshape(2, 3))
    (a, a_axis), (b, b_axis) = batch([first, neg(second)], {x.out: (stack, 1)}, 3)
    assert (a_axis, b_axis) == (1, 0)
    np.testing.assert_array_equal(value_of(a), 2 * np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(value_of(b), [-3.0, -5.0, -7.0])


def test_errors():
    x = placeholder((2,))
    for stack, axis in ((np.ones((4, 2)), 0), (np.ones((3, 2)), 1), (np.ones((3, 5)), 0)):
        with pytest.raises(ShapeError, match="vmap: expected extent 3 at axis"):
            batch([x.out], {x.out: (const(stack), axis)}, 3)
    with pytest.raises(TilegradError, match="another dtype"):
        batch([x.out], {x.out: (const(np.ones((3, 2), np.float32)), 0)}, 3)


def test_missing_and_faulty_rules():
    x = placeholder((2,))
    mapped = {x.out: (const(np.ones((3, 2))), 0)}

    def of_rule(rule, **fields):
        return make(Op("odd", "custom", infer=lambda x: x, batch=rule, **fields), (x.out,))

    with pytest.raises(UnsupportedError, match=r"vmap: odd.*no batching rule") as caught:
        batch([of_rule(None)], mapped, 3)
    assert caught.value.op == "odd"
    assert "test_batching.py" in str(caught.value)
    with pytest.raises(UnsupportedError, match="it is a secret"):
        batch([of_rule(None, why_not={"batch": "it is a secret"})], mapped, 3)
    with pytest.raises(TilegradError, match="odd: the batching rule made"):
        batch([of_rule(lambda node, xs, axes: (sum_(xs[0]), 0))], mapped, 3)


@pytest.mark.slow
def test_long_chain():
    x = placeholder()
    y = x.out
    for _ in range(100_000):
        y = neg(y)
    ((ys, axis),) = batch([y], {x.out: (const(np.array([1.0, 2.0])), 0)}, 2)
    assert axis == 0
    np.testing.assert_array_equal(value_of(ys), [1.0, 2.0])


def test_rebuilt_nodes_keep_the_users_line():
    x = placeholder()
    y = op("sin", x.out)
    ((ys, _),) = batch([y], {x.out: (const(np.ones(2)), 0)}, 2)
    assert ys.node.location == y.node.location
    assert ys.dtype is float64
