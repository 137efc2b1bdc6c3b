"""Forward mode."""

import numpy as np
import pytest
from small_functions import const, cos, derivative, exp, op, placeholder, sin, sum_, value_of

from tilegrad.autodiff.forward import jvp
from tilegrad.ir.dtypes import float32, float64, int64
from tilegrad.ir.errors import DTypeError, ShapeError, TilegradError, UnsupportedError
from tilegrad.ir.graph import Node, Op, Value, make, make_node
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops.arithmetic import add, div, mul, neg
from tilegrad.ir.ops.leaves import alias, constant
from tilegrad.ir.ops.operands import convert
from tilegrad.ir.types import TensorType


def two(x):
    """A test op of two results, ``2 x`` and ``x**2``."""
    return make_node(TWO, (x,))


def _two_jvp(node, tangents):
    (t,) = tangents
    return mul(t, 2.0), mul(mul(node.inputs[0], t), 2.0)


TWO = Op(
    "two",
    "elementwise",
    infer=lambda x: (x, x),
    reference=lambda x: (2 * x, x * x),
    jvp=_two_jvp,
)


def refusing(x, **fields):
    record = Op("opaque", "elementwise", infer=lambda x: x, reference=lambda x: x, **fields)
    return make(record, (x,))


def test_against_finite_difference(rng):
    def f(x):
        return sum_(mul(sin(mul(x, x)), exp(neg(x)))) / sum_(add(cos(x), 3.0))

    x, t = rng.standard_normal(5), rng.standard_normal(5)
    _, y_dot = derivative(f, const(x), const(t))
    step = 1e-6
    ahead, behind = (value_of(f(const(x + s * t))) for s in (step, -step))
    np.testing.assert_allclose(value_of(y_dot), (ahead - behind) / (2 * step), rtol=1e-8)


def test_dtype_and_shape_of_the_tangent_are_those_of_the_primal():
    x = const(np.ones((2, 3), np.float32))
    _, y_dot = derivative(lambda x: mul(sin(x), 2.5), x, const(np.ones((2, 3), np.float32)))
    assert (y_dot.shape, y_dot.dtype) == ((2, 3), float32)
    _, y_dot = derivative(lambda x: convert(x, float64), x, const(np.ones((2, 3), np.float32)))
    assert y_dot.dtype is float64


def test_structural_zeros_are_none():
    x, other = placeholder((3,)), placeholder((3,))
    outputs = [
        other.out,
        constant(1.0),
        convert(x.out, int64),
        convert(convert(x.out, int64), float64),
        op("lt", x.out, other.out),
    ]
    assert jvp(outputs, {x.out: const(np.ones(3))}) == [None] * 5


def test_an_output_may_be_the_moving_value_itself():
    x, t = placeholder((2,)), const(np.ones(2))
    assert jvp([x.out, x.out], {x.out: t}) == [t, t]
    assert jvp([x.out], {}) == [None]


def test_moving_values_inside_the_web_cut_it():
    x = placeholder()
    y = sin(x.out)
    z = mul(y, y)
    (z_dot,) = jvp([z], {y: constant(1.0, float64)})
    assert interpret([z_dot], {x: 0.3})[0] == 2 * np.sin(0.3)
    # with both moving, y moves along its own tangent, not along that of x
    one, ten = constant(1.0, float64), constant(10.0, float64)
    (z_dot,) = jvp([add(z, x.out)], {x.out: one, y: ten})
    np.testing.assert_allclose(interpret([z_dot], {x: 0.3})[0], 20 * np.sin(0.3) + 1)


def test_several_results():
    x = placeholder()
    double, square = two(sin(x.out)).outputs
    dots = jvp([square, double], {x.out: constant(1.0, float64)})
    found = interpret(dots, {x: 0.4})
    np.testing.assert_allclose(found, [2 * np.sin(0.4) * np.cos(0.4), 2 * np.cos(0.4)])


def test_one_of_several_results_may_move_by_itself():
    x = placeholder()
    double, square = two(x.out).outputs
    (z_dot,) = jvp([mul(double, square)], {double: constant(1.0, float64)})
    assert interpret([z_dot], {x: 3.0})[0] == 9.0  # the square stands still
    one = constant(1.0, float64)
    (z_dot,) = jvp([mul(double, square)], {double: one, x.out: one})
    assert interpret([z_dot], {x: 3.0})[0] == 9.0 + 6.0 * 6.0


def test_perturbations_are_not_confused():
    """Inventory AD33: d/dx (x * d/dy (x + y)) = 1."""

    def outer(x):
        _, inner = derivative(lambda y: add(x, y), constant(1.0, float64), constant(1.0, float64))
        return mul(x, inner)

    _, y_dot = derivative(outer, constant(1.0, float64), constant(1.0, float64))
    assert value_of(y_dot) == 1.0


def test_perturbations_of_the_same_value_are_not_confused():
    """Siskind and Pearlmutter 2005: d/dx (x * d/dy (x * y) at y = x) = 2 x, not more."""
    one = constant(1.0, float64)

    def outer(x):
        _, inner = derivative(lambda y: mul(x, y), x, one)
        return mul(x, inner)

    _, y_dot = derivative(outer, constant(3.0, float64), one)
    assert value_of(y_dot) == 6.0


def test_closures_over_several_levels():
    """Inventory AD14: d/da d/dx d/dy (a x^2 y^3) = 6 x y^2."""
    one = constant(1.0, float64)

    def level_a(a):
        def level_x(x):
            return derivative(lambda y: a * x * x * y * y * y, constant(2.0, float64), one)[1]

        return derivative(level_x, constant(5.0, float64), one)[1]

    assert value_of(derivative(level_a, constant(7.0, float64), one)[1]) == 6 * 5 * 4


def test_unrelated_nodes_are_shared_not_copied():
    x, w = placeholder((3,)), placeholder((3,), name="w")
    heavy = exp(w.out)
    (y_dot,) = jvp([mul(heavy, x.out)], {x.out: const(np.ones(3))})
    assert heavy in y_dot.node.inputs


def test_a_missing_rule_is_an_error_that_names_op_and_line():
    x = placeholder((3,))
    y = sin(refusing(x.out, why_not={"jvp": "it is a black box"}))
    with pytest.raises(UnsupportedError, match=r"opaque\(f64\[3\]\).*it is a black box") as caught:
        jvp([y], {x.out: const(np.ones(3))})
    assert caught.value.op == "opaque"
    assert "test_forward.py" in str(caught.value)
    # not reached: no error
    assert jvp([y], {placeholder((3,)).out: const(np.ones(3))}) == [None]
    # zero on purpose: no error
    assert jvp([refusing(x.out)], {x.out: const(np.ones(3))}) == [None]


def test_bad_tangents():
    x = placeholder((3,))
    with pytest.raises(ShapeError, match=r"tangent of f64\[3\]: expected this shape, got f64\[4\]"):
        jvp([x.out], {x.out: const(np.ones(4))})
    with pytest.raises(DTypeError, match=r"expected this dtype, got f32\[3\]"):
        jvp([x.out], {x.out: const(np.ones(3, np.float32))})
    k = placeholder((3,), "int64")
    with pytest.raises(DTypeError, match="expected a floating or complex value to differentiate"):
        jvp([k.out], {k.out: const(np.ones(3, np.int64))})


def test_a_rule_of_the_wrong_type_is_caught():
    x = placeholder((3,))
    for rule in (lambda node, t: sum_(t[0]), lambda node, t: convert(t[0], float32)):
        with pytest.raises(TilegradError, match="opaque: the jvp rule's result"):
            jvp([refusing(x.out, jvp=rule)], {x.out: const(np.ones(3))})


@pytest.mark.slow
def test_long_chain():
    x = placeholder()
    y = x.out
    for k in range(50_000):
        y = neg(y) if k % 10 else mul(neg(div(y, x.out)), neg(x.out))
    for _ in range(50_000):
        y = neg(y)
    (y_dot,) = jvp([y], {x.out: constant(1.0, float64)})
    value, dot = interpret([y, y_dot], {x: 1.5})
    np.testing.assert_allclose([value, dot], [1.5, 1.0], rtol=1e-9)


def test_values_are_not_nodes():
    """A tangent belongs to one result; aliases of one value move apart."""
    x = placeholder()
    a, b = alias(x.out), alias(x.out)
    (y_dot,) = jvp([mul(a, b)], {a: constant(1.0, float64)})
    assert interpret([y_dot], {x: 4.0})[0] == 4.0
    assert Value(x, 0) == x.out
    assert isinstance(x, Node)
    assert x.types[0] == TensorType((), float64)
