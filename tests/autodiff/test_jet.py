"""Taylor mode against nested forward mode, op by op."""

import numpy as np
import pytest
from small_functions import const, exp, op, sin, value_of

from tilegrad.autodiff.forward import jvp
from tilegrad.autodiff.jet import jet
from tilegrad.ir.dtypes import complex128, float64
from tilegrad.ir.errors import DTypeError, UnsupportedError
from tilegrad.ir.graph import Op, make, make_node, toposort
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.fill import zeros_of
from tilegrad.ir.ops.leaves import alias, constant

ORDER = 3
NAMES = sorted(
    name
    for name, record in OPS.items()
    if record.kind != "leaf" and record.samples is not None and record.jvp is not None
)


def cases_of(record, dtype, rng):
    found = record.samples(rng, dtype.numpy)
    return [(found, {})] if isinstance(found, tuple) else list(found)


def drawn(rng, x):
    """A term of a series like ``x``."""
    t = rng.standard_normal(x.shape)
    if x.dtype.is_complex:
        t = t + 1j * rng.standard_normal(x.shape)
    return constant((0.3 * t).astype(x.dtype.numpy))


def nested(outputs, series, order):
    """Derivatives along the curves by forward mode of forward mode."""
    terms = {x: [x, *[alias(t) for t in many]] for x, many in series.items()}
    rows, now = [], list(outputs)
    for k in range(order):
        moves = {many[j]: many[j + 1] for many in terms.values() for j in range(k + 1)}
        dots = jvp(now, moves)
        now = [zeros_of(y.type) if t is None else t for y, t in zip(now, dots, strict=True)]
        rows.append(now)
    return rows


def is_refused(record, arrays, params):
    """Whether the op is not there for operands of this dtype."""
    try:
        make_node(record, [constant(np.asarray(a)) for a in arrays], **params)
    except DTypeError:
        return True
    return False


@pytest.mark.parametrize("name", NAMES)
def test_every_op_to_third_order(name):
    record, rng, checked = OPS[name], np.random.default_rng(3), 0
    for dtype in (float64, complex128):
        if dtype is complex128 and record.complex_scalar is None and record.kind != "linalg":
            continue
        for arrays, params in cases_of(record, dtype, rng):
            if is_refused(record, arrays, params):
                continue
            xs = [alias(constant(np.asarray(a))) for a in arrays]
            node = make_node(record, xs, **params)
            moving = [x for x in xs if x.dtype.is_inexact]
            if not moving or not node.types[0].dtype.is_inexact:
                continue
            checked += 1
            series = {x: [drawn(rng, x) for _ in range(ORDER)] for x in moving}
            found = jet(node.outputs, series, ORDER)
            expected = nested(node.outputs, series, ORDER)
            for place, terms in enumerate(found):
                for term, row in zip(terms, expected, strict=True):
                    want = interpret([row[place]])[0]
                    got = np.zeros_like(want) if term is None else interpret([term])[0]
                    size = np.max(np.abs(want), initial=1e-3)
                    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12 * size)
    assert checked


def test_fifth_order_of_a_composition():
    def f(x, y):
        return op("div", sin(x * y) * op("tanh", x), op("add", exp(y), op("sqrt", x)))

    rng = np.random.default_rng(4)
    x, y = alias(const(rng.uniform(0.5, 2, 3))), alias(const(rng.uniform(0.5, 2, 3)))
    series = {x: [drawn(rng, x) for _ in range(5)], y: [drawn(rng, y) for _ in range(5)]}
    (found,) = jet([f(x, y)], series, 5)
    for term, (want,) in zip(found, nested([f(x, y)], series, 5), strict=True):
        np.testing.assert_allclose(value_of(term), value_of(want), rtol=1e-11)


def test_the_program_grows_with_the_square_of_the_order():
    """Nested forward mode doubles it with each order: more than 50,000 nodes for order 16."""

    def size(order):
        x = alias(const(0.5))
        one = [constant(1.0), *[None] * (order - 1)]
        (terms,) = jet([exp(sin(x * x)) / (op("tanh", x) + 2.0)], {x: one}, order)
        return len(toposort([t for t in terms if t is not None]))

    counts = [size(order) for order in (4, 8, 16)]
    assert counts[1] < 4.5 * counts[0]
    assert counts[2] < 4.5 * counts[1]
    assert counts[2] < 4000


def test_sine_and_cosine_are_each_others_tangents():
    x = alias(const(0.5))
    (terms,) = jet([sin(x)], {x: [constant(1.0), None, None, None, None]}, 5)
    names = [node.op.name for node in toposort(terms)]
    assert (names.count("sin"), names.count("cos")) == (1, 1)


def test_zeros_are_none():
    x, other = alias(const(np.ones(2))), alias(const(np.ones(2)))
    outputs = [other, op("floor", x), op("integer_power", x, n=0), x, op("neg", x)]
    found = jet(outputs, {x: [None, const(np.ones(2)), None]}, 3)
    present = [[t is not None for t in terms] for terms in found]
    still, second = [False] * 3, [False, True, False]
    assert present == [still, still, still, second, second]


def test_a_term_of_second_order_alone():
    """x(t) = 1 + t^2 / 2: exp(x(t)) has the derivatives 0, e, 0, 3 e."""
    x = alias(const(1.0))
    (terms,) = jet([exp(x)], {x: [None, constant(1.0), None, None]}, 4)
    got = [0.0 if t is None else float(value_of(t)) for t in terms]
    np.testing.assert_allclose(got, np.e * np.array([0, 1, 0, 3]), rtol=1e-15)


def test_some_results_of_a_node_may_be_given():
    """Result 0 of (2 x, x^2) moves as it is told, result 1 by x."""

    def tangents(node, dots):
        return dots[0] * 2.0, node.inputs[0] * dots[0] * 2.0

    record = Op("two", "elementwise", infer=lambda x: (x, x), jvp=tangents)
    x = alias(const(3.0))
    twice, square = make_node(record, (x,)).outputs
    series = {x: [constant(1.0), None], twice: [constant(5.0), constant(7.0)]}
    first, second = jet([twice, square], series, 2)
    env = {twice.node: (np.float64(6.0), np.float64(9.0))}
    got = [float(interpret([t], env)[0]) for t in (*first, *second)]
    assert got == [5.0, 7.0, 6.0, 2.0]
    still, moved = jet([square, twice], {twice: [constant(5.0), None]}, 2)
    assert still == [None, None]
    assert moved[0] is not None


def test_a_strong_zero_stays_zero():
    """``where`` lets no term of the branch not taken through, not even as ``0 * inf``."""
    x = alias(const(800.0))
    y = op("where", op("gt", x, constant(5.0)), x * x, exp(x))
    (terms,) = jet([y], {x: [constant(1.0), None, None]}, 3)
    got = [0.0 if t is None else float(value_of(t)) for t in terms]
    assert got == [1600.0, 2.0, 0.0]


def test_nothing_recurses():
    x = alias(const(0.1))
    y = x
    for _ in range(20_000):
        y = sin(y)
    (terms,) = jet([y], {x: [constant(1.0), None]}, 2)
    assert all(t is not None for t in terms)


def test_an_op_without_a_rule_is_refused():
    record = Op(
        "opaque",
        "elementwise",
        infer=lambda x: x,
        reference=lambda x: x,
        why_not={"jvp": "nobody knows it"},
    )
    x = alias(const(1.0))
    with pytest.raises(UnsupportedError, match=r"jet: opaque\(.*nobody knows it"):
        jet([sin(make(record, (x,)))], {x: [constant(1.0), None]}, 2)
