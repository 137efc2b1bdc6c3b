"""Reverse mode: jvp, split, transpose."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from random_graphs import drawable_ops, programs, random_array
from small_functions import (
    const,
    cos,
    derivative,
    exp,
    gradient,
    ones_like,
    op,
    placeholder,
    sin,
    sum_,
    value_of,
)

from tilegrad.autodiff.forward import jvp
from tilegrad.autodiff.reverse import linear_transpose, linearize, transpose, vjp
from tilegrad.ir.dtypes import complex128, float32, float64
from tilegrad.ir.errors import DTypeError, ShapeError, TilegradError, UnsupportedError
from tilegrad.ir.graph import Graph, Op, make_node, toposort
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops.arithmetic import add, div, mul, neg, sub
from tilegrad.ir.ops.leaves import alias, constant
from tilegrad.ir.ops.operands import convert
from tilegrad.ir.passes.manager import optimize
from tilegrad.ir.text import text

ONE = constant(1.0, float64)


# ------------------------------------------------------------------------- values


def test_against_hand_derivative():
    """Inventory AD11: a shared node, a broadcast operand."""
    x, b = placeholder((2, 3)), placeholder(name="b")
    shared = mul(x.out, b.out)
    y = sum_(mul(shared, sin(shared)))
    x_bar, b_bar = vjp([y], [x.out, b.out])([ones_like(y)])
    at = np.arange(6.0).reshape(2, 3) / 4, 1.7
    s = at[0] * at[1]
    inner = np.sin(s) + s * np.cos(s)
    found = interpret([x_bar, b_bar], dict(zip((x, b), at, strict=True)))
    np.testing.assert_allclose(found[0], inner * at[1], rtol=1e-14)
    np.testing.assert_allclose(found[1], np.sum(inner * at[0]), rtol=1e-14)


DIFFERENTIABLE = (np.float64, np.float32)


@given(programs(steps=12, dtypes=(float64, float32), special=False))
@settings(max_examples=200)
def test_inner_products_agree(program):
    """<c, J t> = <J^T c, t> for every program: forward and reverse are the same Jacobian."""
    graph = program.graph
    wrt = [node.out for node in graph.inputs]
    outputs = [y for y in graph.outputs if y.dtype.is_inexact]
    rng = np.random.default_rng(1)
    ts = [random_array(rng, x.type, special=False) for x in wrt]
    cs = [random_array(rng, y.type, special=False) for y in outputs]
    dots = jvp(outputs, {x: const(t) for x, t in zip(wrt, ts, strict=True)})
    bars = vjp(outputs, wrt)([const(c) for c in cs])
    env = dict(zip(graph.inputs, program.arguments, strict=True))
    forward = list(_products(cs, dots, env))
    backward = list(_products(ts, bars, env))
    terms = np.abs([*forward, *backward])
    if not np.isfinite(terms).all() or any(_too_large(v, env) for v in (*dots, *bars)):
        return
    coarse = any(v.dtype.real is float32 for v in (*wrt, *outputs, *_inner_values(outputs)))
    scale = _scale(cs, dots, env) + _scale(ts, bars, env)
    bound = (1e-3 if coarse else 1e-9) * scale + 1e-300
    assert abs(sum(forward) - sum(backward)) <= bound


def _inner_values(outputs):
    return [v for node in toposort(outputs) for v in node.outputs]


def _products(arrays, values, env):
    for a, v in zip(arrays, values, strict=True):
        if v is not None and v.size:
            yield np.sum(a * interpret([v], env)[0], dtype=complex).real


def _scale(arrays, values, env):
    total = 0.0
    for a, v in zip(arrays, values, strict=True):
        if v is not None and v.size:
            total += np.abs(a * interpret([v], env)[0]).sum(dtype=np.float64)
    return total


def _too_large(value, env):
    """Beyond this the intermediate sums may overflow on one way and not on the other."""
    if value is None:
        return False
    x = interpret([value], env)[0]
    return not np.isfinite(x).all() or (x.size and np.abs(x).max() > 1e30)


def test_pullback_is_reusable_and_linear():
    x = placeholder((3,))
    y = sin(x.out)
    pullback = vjp([y], [x.out])
    at = np.array([0.1, 0.2, 0.3])
    for c in (np.ones(3), np.array([2.0, 0.0, -1.0])):
        (x_bar,) = pullback([const(c)])
        np.testing.assert_array_equal(interpret([x_bar], {x: at})[0], c * np.cos(at))
    assert pullback([None]) == [None]


def test_several_outputs_and_repeated_ones():
    x = placeholder()
    y = mul(x.out, x.out)
    (x_bar,) = vjp([y, x.out, y, constant(3.0)], [x.out])(
        [ONE, constant(10.0, float64), constant(100.0, float64), constant(1.0)]
    )
    assert interpret([x_bar], {x: 3.0})[0] == 6.0 + 10.0 + 600.0


def test_several_results_of_one_node():
    def transposed(node, cotangents, linear):
        a, b = cotangents
        parts = [mul(c, k) for c, k in ((a, 2.0), (b, 3.0)) if c is not None]
        return (parts[0] if len(parts) == 1 else add(*parts),)

    both = Op(
        "both",
        "elementwise",
        infer=lambda x: (x, x),
        reference=lambda x: (2 * x, 3 * x),
        jvp=lambda node, tangents: make_node(both, tangents).outputs,
        transpose=transposed,
    )
    x = placeholder()
    a, b = make_node(both, (sin(x.out),)).outputs
    cotangents = constant(1.0, float64), constant(10.0, float64)
    for outputs, expected in (([a, b], 32.0), ([b], 3.0), ([a], 2.0)):
        (x_bar,) = vjp(outputs, [x.out])(cotangents[: len(outputs)])
        np.testing.assert_allclose(interpret([x_bar], {x: 0.2})[0], expected * np.cos(0.2))


# ---------------------------------------------------------------------- structure


def test_unused_inputs_are_none():
    x, y = placeholder((2,)), placeholder((2,))
    k = convert(convert(y.out, "int64"), "float64")
    assert vjp([add(x.out, k)], [y.out])([const(np.ones(2))]) == [None]
    assert vjp([x.out], [x.out, y.out])([const(np.ones(2))])[1] is None


def test_an_output_that_is_the_argument():
    x, c = placeholder((2,)), const(np.ones(2))
    assert vjp([x.out], [x.out])([c]) == [c]


def test_no_nodes_for_what_needs_no_gradient():
    """Inventory AD12: the loss of a linear layer by its weights makes no product by the weights."""
    data, weights = placeholder((4, 3), name="data"), placeholder((3, 2), name="weights")
    params = {"contract": ((1,), (0,)), "batch": ((), ())}
    y = sum_(op("dot", data.out, weights.out, **params))
    (weights_bar,) = vjp([y], [weights.out])([ones_like(y)])
    graph = optimize(Graph((data, weights), (weights_bar,)))
    assert sum(node.op.name == "dot" for node in graph.nodes()) == 1
    used = {x.node for node in graph.nodes() for x in node.inputs}
    assert weights not in used


def test_order_of_sums_is_fixed():
    def build():
        x = placeholder((3,))
        parts = [sin(x.out), mul(x.out, x.out), exp(x.out), neg(x.out)]
        y = sum_(add(add(parts[0], parts[1]), add(parts[2], parts[3])))
        return Graph((x,), tuple(vjp([y], [x.out])([ones_like(y)])))

    assert text(build()) == text(build())


def test_cost_is_a_small_multiple():
    """Inventory AD10: a gradient of products, sums and sines costs at most 5 times the program."""
    rng = np.random.default_rng(5)
    counted = {"add", "sub", "mul", "div", "neg", "sin", "cos"}
    for _ in range(10):
        inputs = [placeholder() for _ in range(3)]
        pool = [n.out for n in inputs]
        for _ in range(60):
            a, b = (pool[i] for i in rng.integers(0, len(pool), 2))
            pool.append((mul(a, b), add(a, b), sub(a, b), sin(a))[rng.integers(0, 4)])
        y = pool[-1]
        bars = vjp([y], [n.out for n in inputs])([ONE])
        graphs = [
            optimize(Graph(tuple(inputs), tuple(v for v in vs if v is not None)))
            for vs in ([y], [y, *bars])
        ]
        work, total = (sum(n.op.name in counted for n in g.nodes()) for g in graphs)
        assert total <= 5 * work


# ------------------------------------------------------------------- higher orders


def rosenbrock_like(x):
    """sum(sin(x_i x_{i+1})) + sum(x^3): its Hessian is known."""
    left = op("slice", x, start=(0,), step=(1,), shape=(x.size - 1,))
    right = op("slice", x, start=(1,), step=(1,), shape=(x.size - 1,))
    return add(sum_(sin(mul(left, right))), sum_(mul(x, mul(x, x))))


def hessian_by_hand(x):
    h = np.diag(6 * x)
    for i in range(len(x) - 1):
        a, b = x[i], x[i + 1]
        s, c = np.sin(a * b), np.cos(a * b)
        h[i, i] -= b * b * s
        h[i + 1, i + 1] -= a * a * s
        h[i, i + 1] = h[i + 1, i] = c - a * b * s
    return h


def basis(n):
    return [const(row) for row in np.eye(n)]


@pytest.mark.parametrize("modes", list(itertools.product("fr", repeat=2)), ids="".join)
def test_four_ways_to_a_hessian(modes):
    """Inventory AD09: forward and reverse mode in each order, to 1e-12."""
    x = np.array([0.3, -1.2, 0.8, 2.0])
    f = rosenbrock_like

    def first(y, v):  # the derivative of f along v
        return derivative(f, y, v)[1] if modes[0] == "f" else sum_(mul(gradient(f, y), v))

    rows = []
    for v in basis(4):
        if modes[1] == "f":
            rows.append(
                [value_of(derivative(lambda y, v=v: first(y, v), const(x), w)[1]) for w in basis(4)]
            )
        else:
            rows.append(value_of(gradient(lambda y, v=v: first(y, v), const(x))))
    np.testing.assert_allclose(np.array(rows), hessian_by_hand(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("modes", list(itertools.product("fr", repeat=3)), ids="".join)
def test_third_order(modes):
    """d^3/dx^3 of exp(sin x) in all eight nestings."""

    def differentiated(f, mode):
        if mode == "f":
            return lambda x: derivative(f, x, ONE)[1]
        return lambda x: gradient(f, x)

    f = lambda x: exp(sin(x))  # noqa: E731  (a value to be wrapped three times)
    for mode in modes:
        f = differentiated(f, mode)
    s, c = np.sin(0.7), np.cos(0.7)
    np.testing.assert_allclose(
        value_of(f(constant(0.7, float64))), np.exp(s) * (c**3 - 3 * s * c - c), rtol=1e-13
    )


def test_hessian_vector_product_is_one_sweep_each():
    """Inventory AD44: the size of an hvp does not depend on the number of variables."""

    def nodes(n):
        x, v = placeholder((n,)), placeholder((n,), name="v")
        _, product = derivative(lambda y: gradient(rosenbrock_like, y), x.out, v.out)
        return len(Graph((x, v), (product,)).nodes())

    assert nodes(4) == nodes(40)


def test_closures_over_outer_values():
    """Inventory AD14: a physics-informed loss, u_xx inside, the parameters outside."""

    def loss(w):
        def u(x):
            return sin(mul(w, x))

        u_xx = gradient(lambda x: gradient(u, x), constant(0.5, float64))
        return mul(u_xx, u_xx)

    w = 1.3
    value = w**4 * np.sin(w * 0.5) ** 2
    slope = 4 * w**3 * np.sin(w * 0.5) ** 2 + w**4 * 2 * np.sin(w * 0.5) * np.cos(w * 0.5) * 0.5
    np.testing.assert_allclose(value_of(loss(constant(w, float64))), value, rtol=1e-13)
    np.testing.assert_allclose(value_of(gradient(loss, constant(w, float64))), slope, rtol=1e-13)


def test_perturbations_are_not_confused():
    def outer(x):
        return mul(x, gradient(lambda y: mul(x, y), x))

    assert value_of(gradient(outer, constant(3.0, float64))) == 6.0


# ------------------------------------------------------------------------- complex


def test_complex_pairing():
    """Re(sum(c J t)) = Re(sum(J^T c t)) for a map that mixes conj, real and products."""
    z = placeholder((3,), complex128)
    w = const(np.array([1 + 2j, -0.5j, 3.0]))
    y = mul(op("conj", mul(z.out, z.out)), w)
    rng = np.random.default_rng(0)
    at, t, c = (random_array(rng, z.types[0], special=False) for _ in range(3))
    (y_dot,) = jvp([y], {z.out: const(t)})
    (z_bar,) = vjp([y], [z.out])([const(c)])
    left = np.sum(c * interpret([y_dot], {z: at})[0]).real
    right = np.sum(t * interpret([z_bar], {z: at})[0]).real
    np.testing.assert_allclose(left, right, rtol=1e-13)


def test_complex_gradient_of_a_real_loss_descends():
    """The cotangent of |z|^2 is 2 conj(z); its conjugate is the direction of steepest ascent."""
    z = placeholder((), complex128)
    re, im = op("real", z.out), op("imag", z.out)
    (z_bar,) = vjp([add(mul(re, re), mul(im, im))], [z.out])([ONE])
    assert z_bar.dtype is complex128
    assert interpret([z_bar], {z: 3 + 4j})[0] == 6 - 8j


def test_holomorphic_functions_give_the_complex_derivative():
    z = placeholder((), complex128)
    (z_bar,) = vjp([mul(z.out, mul(z.out, z.out))], [z.out])([constant(1.0, complex128)])
    np.testing.assert_allclose(interpret([z_bar], {z: 1 + 2j})[0], 3 * (1 + 2j) ** 2, rtol=1e-14)


# -------------------------------------------------------------- linear programs, errors


def test_linearize_names_its_inputs_and_captures_the_rest():
    x = placeholder((2,))
    inputs, (y_dot, zero) = linearize([sin(x.out), constant(1.0)], [x.out])
    assert zero is None
    assert inputs[0].types[0] == x.types[0]
    found = interpret([y_dot], {x: [0.0, 1.0], inputs[0]: [2.0, 3.0]})[0]
    np.testing.assert_array_equal(found, [2.0, 3.0] * np.cos([0.0, 1.0]))
    with pytest.raises(TilegradError, match="must be distinct"):
        linearize([x.out], [x.out, x.out])


def test_linear_transpose():
    x, w = placeholder((2, 3)), placeholder((2, 3), name="w")
    y = sum_(mul(w.out, sub(x.out, neg(x.out))), (0,))
    pullback = linear_transpose([y], [x.out])
    (x_bar,) = pullback([const(np.array([1.0, 10.0, 100.0]))])
    weights = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(
        interpret([x_bar], {w: weights})[0], 2 * weights * [1.0, 10.0, 100.0]
    )


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda x: mul(x, x), "product of two linear values"),
        (lambda x: add(x, 1.0), "affine, not linear"),
        (lambda x: div(ONE, x), "not linear in operand 1"),
        (sin, r"sin\(f64\[\]\) cannot be transformed: not linear"),
    ],
)
def test_programs_that_are_not_linear(f, reason):
    x = placeholder()
    with pytest.raises(UnsupportedError, match=reason) as caught:
        linear_transpose([f(x.out)], [x.out])([ONE])
    assert "\n  at " in str(caught.value)


def test_transpose_of_zero_and_of_nodes():
    x = placeholder()
    assert transpose([None], [x], [ONE]) == [None]
    assert transpose([neg(x.out)], [x], [None]) == [None]
    (x_bar,) = transpose([neg(x.out)], [x], [ONE])
    assert value_of(x_bar) == -1.0


def test_bad_cotangents():
    x = placeholder((3,))
    pullback = vjp([x.out], [x.out])
    with pytest.raises(
        ShapeError, match=r"cotangent 0: expected the shape of f64\[3\], got f64\[\]"
    ):
        pullback([ONE])
    with pytest.raises(DTypeError, match=r"cotangent 0: expected the dtype of f64\[3\]"):
        pullback([const(np.ones(3, np.float32))])
    with pytest.raises(TilegradError, match="expected 1 cotangents, one an output, got 2"):
        pullback([None, None])


def test_integer_arguments_are_refused():
    k = placeholder((3,), "int64")
    with pytest.raises(DTypeError, match="floating or complex"):
        vjp([k.out], [k.out])


def test_faulty_transpose_rules_are_caught():
    def make_op(rule):
        record = Op(
            "crooked", "elementwise", infer=lambda x: x, reference=lambda x: x, transpose=rule,
            jvp=lambda node, tangents: make_node(record, tangents).out,
        )  # fmt: skip
        return record

    x = placeholder((3,))
    for rule, message in (
        (lambda node, c, linear: (sum_(c),), r"crooked.*expected f64\[3\], got f64\[\]"),
        (lambda node, c, linear: (None,), "not linear in operand 0"),
        (None, "it is not linear"),
    ):
        y = make_node(make_op(rule), (x.out,)).out
        with pytest.raises(TilegradError, match=message):
            vjp([y], [x.out])([const(np.ones(3))])


@pytest.mark.slow
def test_long_chain():
    x = placeholder()
    y = alias(x.out)
    for k in range(50_000):
        y = neg(y) if k % 10 else mul(neg(div(y, x.out)), neg(x.out))
    for _ in range(50_000):
        y = neg(y)
    (x_bar,) = vjp([y], [x.out])([ONE])
    np.testing.assert_allclose(interpret([x_bar], {x: 1.5})[0], 1.0, rtol=1e-9)


def test_every_drawable_op_was_meant():
    assert set(drawable_ops()) >= {"add", "mul", "sin", "sum", "dot", "cos"}
    assert cos(ONE).dtype is float64
