"""Passes: golden texts, what must not change, and the manager."""

import numpy as np
import pytest

from tilegrad.ir.compare import graphs_equal
from tilegrad.ir.dtypes import ALL, bool_, complex128, float32, float64, int8, int32, int64, uint8
from tilegrad.ir.errors import TilegradError
from tilegrad.ir.graph import Graph, Literal, Node, make
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.arithmetic import add, div, mul, neg, sub
from tilegrad.ir.ops.leaves import alias, constant, input_node
from tilegrad.ir.ops.operands import CONVERT, convert
from tilegrad.ir.ops.shape import BROADCAST, RESHAPE, TRANSPOSE, broadcast_to, reshape, transpose
from tilegrad.ir.passes.canonicalize import canonicalize, lossless
from tilegrad.ir.passes.cse import eliminate_common_subexpressions as cse
from tilegrad.ir.passes.dce import drop_unused_inputs, unused_inputs
from tilegrad.ir.passes.fold import fold
from tilegrad.ir.passes.manager import PASSES, Pass, dump_to_stderr, optimize, run_passes
from tilegrad.ir.rewrite import rewrite, substitute
from tilegrad.ir.text import text
from tilegrad.ir.types import TensorType
from tilegrad.ir.verify import VerificationError, verify


def one_input(build, t=None):
    x = input_node(t or TensorType((3, 4), float64), "x")
    outputs = build(x.out)
    return Graph((x,), outputs if type(outputs) is tuple else (outputs,))


def body(graph):
    """The statements of a graph's text, without frame."""
    return [line.strip() for line in text(graph).splitlines()[1:-1]]


def after(run, build, t=None):
    graph = run(verify(one_input(build, t)))
    return body(verify(graph))


# -------------------------------------------------------------------------- canonicalization

SAME = ["return %0"]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (alias, SAME),
        (lambda x: neg(neg(neg(neg(x)))), SAME),
        (lambda x: convert(convert(x, complex128), float64), SAME),
        (lambda x: transpose(transpose(x)), SAME),
        (lambda x: reshape(reshape(x, (12,)), (3, 4)), SAME),
        (lambda x: make(RESHAPE, (x,), shape=(3, 4)), SAME),
        (lambda x: make(TRANSPOSE, (x,), axes=(0, 1)), SAME),
        (lambda x: make(BROADCAST, (x,), shape=(3, 4), axes=(0, 1)), SAME),
        (lambda x: make(CONVERT, (x,), dtype=float64), SAME),
        (lambda x: mul(1.0, mul(x, 1.0)), SAME),
        (lambda x: div(x, 1), SAME),
        (lambda x: sub(x, 0.0), SAME),
        (lambda x: add(x, -0.0), SAME),
        (lambda x: add(-0.0, x), SAME),
        (
            lambda x: reshape(reshape(reshape(x, (2, 6)), (12,)), (6, 2)),
            ["%1: f64[6,2] = reshape(%0) {shape=(6, 2)}", "return %1"],
        ),
        (
            lambda x: transpose(transpose(broadcast_to(x, (2, 3, 4)), (1, 2, 0)), (1, 0, 2)),
            [
                "%1: f64[4,3] = transpose(%0) {axes=(1, 0)}",
                "%2: f64[4,3,2] = broadcast(%1) {axes=(0, 1), shape=(4, 3, 2)}",
                "return %2",
            ],
        ),
        (
            lambda x: transpose(broadcast_to(x, (2, 3, 4)), (1, 0, 2)),
            ["%1: f64[3,2,4] = broadcast(%0) {axes=(0, 2), shape=(3, 2, 4)}", "return %1"],
        ),
        (
            lambda x: broadcast_to(broadcast_to(x, (2, 3, 4)), (5, 2, 3, 4)),
            ["%1: f64[5,2,3,4] = broadcast(%0) {axes=(2, 3), shape=(5, 2, 3, 4)}", "return %1"],
        ),
        (
            lambda x: convert(constant(np.float32(0.1)), float64),
            ["%1: f64[] = constant 0.10000000149011612", "return %1"],
        ),
        (
            lambda x: reshape(broadcast_to(constant(2, float64), (3, 4)), (12,)),
            [
                "%1: f64[] = constant 2.0",
                "%2: f64[12] = broadcast(%1) {axes=(), shape=(12,)}",
                "return %2",
            ],
        ),
    ],
)
def test_canonical_forms(build, expected):
    assert after(canonicalize, build) == expected


SLICE = {"start": (0, 3), "step": (2, -1), "shape": (2, 4)}


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda x, s: s(x, (0, 0), (1, 1), (3, 4)), SAME),
        (
            lambda x, s: s(s(x, (0, 3), (2, -1), (2, 4)), (1, 0), (-1, 3), (2, 2)),
            ["%1: f64[2,2] = slice(%0) {shape=(2, 2), start=(2, 3), step=(-2, -3)}", "return %1"],
        ),
        (
            lambda x, s: s(x, (2, 3), (-2, 1), (1, 0)),
            ["%1: f64[1,0] = slice(%0) {shape=(1, 0), start=(2, 0), step=(1, 1)}", "return %1"],
        ),
        (
            lambda x, s: s(broadcast_to(constant(1, float64), (3, 4)), (1, 1), (1, 2), (2, 2)),
            [
                "%1: f64[] = constant 1.0",
                "%2: f64[2,2] = broadcast(%1) {axes=(), shape=(2, 2)}",
                "return %2",
            ],
        ),
    ],
)
def test_canonical_slices(build, expected):
    def slice_(x, start, step, shape):
        return make(OPS["slice"], (x,), start=start, step=step, shape=shape)

    assert after(canonicalize, lambda x: build(x, slice_)) == expected


def test_canonical_pads_and_joins():
    nothing = {"low": (0, 0), "high": (0, 0), "interior": (0, 0)}
    zero = constant(0, float64)
    assert after(canonicalize, lambda x: make(OPS["pad"], (x, zero), **nothing)) == SAME
    empty = constant(np.zeros((3, 0)))
    join = OPS["concat"]
    assert after(canonicalize, lambda x: make(join, (empty, x, empty), axis=1)) == SAME
    assert after(canonicalize, lambda x: make(join, (empty, empty), axis=1)) == [
        "%1: f64[3,0] = constant []",
        "return %1",
    ]


def test_known_choices():
    where = OPS["where"]

    def pick(flag):
        condition = broadcast_to(constant(flag), (3, 4))
        return lambda x: make(where, (condition, x, neg(x)))

    assert after(canonicalize, pick(True)) == SAME
    assert after(canonicalize, pick(False)) == ["%1: f64[3,4] = neg(%0)", "return %1"]
    t = TensorType((3, 4), bool_)
    y = constant(np.ones((3, 4)))
    found = after(canonicalize, lambda c: make(where, (c, y, y)), t)
    assert len(found) == 2
    assert found[0].startswith("%1: f64[3,4] = constant")


THREES = constant(np.full((3, 4), 3.0))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: add(x, 0.0),  # -0.0 + 0.0 is 0.0
        lambda x: sub(x, -0.0),
        lambda x: sub(0.0, x),
        lambda x: mul(x, 0.0),  # infinities, NaN, signs
        lambda x: sub(x, x),
        lambda x: div(x, x),
        lambda x: div(1.0, x),
        lambda x: mul(x, -1.0),
        lambda x: sub(add(x, THREES), THREES),
        lambda x: convert(convert(x, float32), float64),
    ],
)
def test_what_changes_bits_stays(build):
    graph = one_input(build)
    assert graphs_equal(optimize(graph), graph)


def test_complex_products_with_one_stay():
    t = TensorType((2,), complex128)
    graph = one_input(lambda z: mul(z, 1.0), t)
    z = np.array([complex(np.inf, 1.0), complex(-0.0, -0.0)])
    assert np.isnan(interpret_graph(graph, [z])[0][0].imag)
    assert graphs_equal(canonicalize(graph), graph)


def test_types_do_not_change_weakness():
    weak = TensorType((), float64, weak=True)
    graph = one_input(lambda x: convert(x, float64), weak)
    assert graphs_equal(canonicalize(graph), graph)


@pytest.mark.parametrize("source", ALL, ids=str)
@pytest.mark.parametrize("through", ALL, ids=str)
def test_lossless_is_what_it_says(source, through):
    """Every extreme value is there as the same number, and comes back to the bit; or one is not."""
    values = _extremes(source)
    there = interpret_graph(
        one_input(lambda x: convert(x, through), _vector(source, values)), [values]
    )
    back = interpret_graph(one_input(lambda x: convert(x, source), _vector(through, values)), there)
    same_number = values.tolist() == there[0].tolist()
    same_bits = np.array_equal(back[0].view("u1"), values.view("u1"))
    assert (same_number and same_bits) == lossless(source, through)


@pytest.mark.parametrize("source", ALL, ids=str)
@pytest.mark.parametrize("through", ALL, ids=str)
def test_conversion_chains_keep_every_value(source, through):
    values = _extremes(source)
    for target in ALL:
        t = _vector(source, values)
        graph = one_input(lambda x, d=target: convert(convert(x, through), d), t)
        expected, got = (interpret_graph(g, [values])[0] for g in (graph, canonicalize(graph)))
        assert np.array_equal(expected.view("u1"), got.view("u1")), (source, through, target)


def _vector(dtype, values):
    return TensorType(values.shape, dtype)


def _extremes(dtype):
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        return np.array([info.min, info.max, info.max - 1, 0, 1, 77], dtype.numpy)
    info = np.finfo(dtype.real.numpy)
    parts = [
        0.0,
        -0.0,
        1.5,
        -300.7,
        info.max,
        info.smallest_subnormal,
        np.inf,
        -np.inf,
        1 + info.eps,
    ]
    x = np.array(parts, dtype.real.numpy)
    if not dtype.is_complex:
        return x
    z = np.zeros(x.shape, dtype.numpy)
    z.real, z.imag = x, x[::-1]
    return z


# --------------------------------------------------------------------------------------- CSE


def test_equal_nodes_merge():
    def build(x):
        return add(mul(x, x), mul(x, x)), mul(add(x, 2.0), add(x, 2.0))

    assert after(cse, build) == [
        "%1: f64[3,4] = mul(%0, %0)",
        "%2: f64[3,4] = add(%1, %1)",
        "%3: f64[] = constant 2.0",
        "%4: f64[3,4] = broadcast(%3) {axes=(), shape=(3, 4)}",
        "%5: f64[3,4] = add(%0, %4)",
        "%6: f64[3,4] = mul(%5, %5)",
        "return %2, %6",
    ]


NAN_A, NAN_B = (Literal(float64, (), (0x7FF8 << 48 | k).to_bytes(8, "little")) for k in (0, 1))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (constant(0.0), constant(-0.0)),
        (constant(1), constant(1.0)),
        (constant(1), constant(True)),
        (constant(1.0), constant(1.0, float64)),  # weak and strong
        (constant(1.0, float32), constant(1.0, float64)),
        (constant(np.zeros(2)), constant(np.zeros((2, 1)))),
        (constant(complex(0.0, -0.0)), constant(complex(0.0, 0.0))),
        *[tuple(make(OPS["constant"], (), literal=x, weak=False) for x in (NAN_A, NAN_B))],
    ],
)
def test_different_constants_stay_two(a, b):
    again = Node(a.node.op, (), a.node.params, a.node.types).out
    graph = cse(Graph((), (a, b, again)))
    assert graph.outputs[0] != graph.outputs[1]
    assert graph.outputs[0] == graph.outputs[2]


def test_order_of_operands_and_params_count():
    def build(x):
        y = neg(x)
        return add(x, y), add(y, x), reshape(x, (4, 3)), transpose(x), reshape(x, (2, 6))

    assert len(set(cse(one_input(build)).outputs)) == 5


def test_inputs_and_data_are_themselves():
    t = TensorType((2,), float64)
    x, y = input_node(t, "x"), input_node(t, "x")
    data = [Node(OPS["data"], (), (("type", t),), (t,), memo=(np.full(2, k),)) for k in (1.0, 2.0)]
    graph = Graph((x, y), (neg(x.out), neg(y.out), neg(data[0].out), neg(data[1].out)))
    assert len(set(cse(graph).outputs)) == 4


def test_merging_is_transitive_over_long_chains():
    x = input_node(TensorType((), float64), "x")
    left = right = x.out
    for _ in range(20_000):
        left, right = neg(left), neg(right)
    graph = cse(Graph((x,), (left, right)))
    assert graph.outputs[0] == graph.outputs[1]


# ----------------------------------------------------------------------------------- folding


def test_folds_what_is_exact():
    def build(x):
        return mul(x, div(constant(1, float64), constant(3, float64)))

    assert after(fold, build)[0] == f"%1: f64[] = constant {1 / 3!r}"


def test_folds_across_dtypes_and_views():
    wrapped = add(constant(127, int8), constant(1, int8))
    assert after(fold, lambda x: wrapped)[0] == "%1: i8[] = constant -128"
    wide = convert(neg(constant(1, uint8)), int32)
    assert after(fold, lambda x: wide)[0] == "%1: i32[] = constant 255"
    turned = transpose(constant(np.array([[1.0, -0.0], [2.0, 3.0]])))
    assert after(fold, lambda x: turned)[0] == "%1: f64[2,2] = constant [1.0, 2.0, -0.0, 3.0]"


def test_leaves_large_and_repeated_constants():
    for build in (
        lambda x: neg(constant(np.ones(5000))),
        lambda x: broadcast_to(constant(1.0), (3, 4)),
    ):
        graph = one_input(build)
        assert fold(graph) is graph


def test_transcendental_functions_wait_for_the_engine():
    exp = OPS["exp"]
    graph = one_input(lambda x: make(exp, (constant(2.0),)))
    assert fold(graph) is graph
    given = fold(graph, lambda node, operands: (np.float64(7.0),))
    assert body(given)[0] == "%1: f64[]~ = constant 7.0"
    assert fold(graph, lambda node, operands: None) is graph


def test_run_time_faults_stay_for_the_run():
    graph = one_input(lambda x: neg(constant(2.0)))

    def divide(node, operands):
        raise ZeroDivisionError("integer division by zero")

    assert fold(graph, divide) is graph


def test_integer_division_by_zero_is_not_folded():
    op = OPS["floor_divide"]
    graph = one_input(lambda x: make(op, (constant(1, int64), constant(0, int64))))
    assert fold(graph) is graph


# --------------------------------------------------------------------------------------- DCE


def test_unused_inputs_are_reported_and_dropped():
    a, b, c = (input_node(TensorType((), float64), name) for name in "abc")
    graph = Graph((a, b, c), (neg(c.out),))
    assert unused_inputs(graph) == (a, b)
    less, kept = drop_unused_inputs(graph)
    assert kept == (2,)
    assert less.inputs == (c,)
    verify(less)
    assert drop_unused_inputs(less) == (less, (0,))
    assert unused_inputs(Graph((a,), (a.out,))) == ()


# ----------------------------------------------------------------------------------- manager


def test_order_names_and_tags():
    names = [step.name for step in PASSES]
    assert names[:4] == ["inline", "canonicalize", "fold", "cse"]
    assert names[4:] == ["bodies", "prune", "hoist", "merge"]
    assert {step.keeps for step in PASSES} == {"bitwise"}


def test_fixpoint_repeats_until_nothing_changes():
    def build(x):  # folding makes a one, which canonicalization then drops
        return mul(x, div(constant(2, float64), constant(2, float64)))

    graph = one_input(build)
    assert body(run_passes(graph)) != SAME
    assert body(run_passes(graph, fixpoint=True)) == SAME


def test_dump_sees_before_and_after():
    seen = []
    graph = one_input(lambda x: neg(neg(x)))
    run_passes(graph, dump=lambda when, name, g: seen.append((when, name, len(g.nodes()))))
    assert seen[:2] == [("before", "inline", 2), ("after", "inline", 2)]
    assert seen[2:4] == [("before", "canonicalize", 2), ("after", "canonicalize", 0)]
    assert len(seen) == 2 * len(PASSES)


def test_dump_by_environment(monkeypatch, capsys):
    graph = one_input(lambda x: neg(neg(x)))
    monkeypatch.setenv("TILEGRAD_DUMP", "cse, nothing")
    run_passes(graph)
    printed = capsys.readouterr().err
    assert "# before cse\ngraph main(" in printed
    assert "canonicalize" not in printed
    monkeypatch.setenv("TILEGRAD_DUMP", "all")
    run_passes(graph)
    assert "# after canonicalize" in capsys.readouterr().err
    dump_to_stderr("now", "mine", graph)
    assert capsys.readouterr().err.startswith("# now mine\ngraph")


def _break_types(graph):
    x = graph.outputs[0]
    wrong = Node(OPS["neg"], (x,), (), (TensorType((9,), float64),))
    back = Node(OPS["neg"], (wrong.out,), (), (x.type,))
    return Graph(graph.inputs, (back.out,), graph.name)


def test_a_bad_pass_is_caught_by_name(monkeypatch):
    graph = one_input(neg)
    bad = Pass("breaker", _break_types, "bitwise", "")
    with pytest.raises(VerificationError, match="after pass breaker: verify: the type rule gives"):
        run_passes(graph, [bad], check=True)
    run_passes(graph, [bad], check=False)
    monkeypatch.setenv("TILEGRAD_VERIFY", "1")
    with pytest.raises(VerificationError):
        run_passes(graph, [bad])
    shrink = Pass("shrink", lambda g: Graph((), ()), "bitwise", "")
    with pytest.raises(TilegradError, match="pass shrink: changed the inputs or the types"):
        run_passes(graph, [shrink])


# --------------------------------------------------------------------------------- rewriting


def test_rewrite_refuses_another_type():
    graph = one_input(neg)
    with pytest.raises(TilegradError, match="the types differ"):
        rewrite(graph.outputs, lambda node: constant(1.0))


def test_rewrite_keeps_what_it_does_not_touch_and_the_users_line():
    x = input_node(TensorType((), float64), "x")
    kept, moved = neg(x.out), neg(alias(x.out))
    (a, b) = rewrite(
        [kept, moved], lambda node: node.inputs[0] if node.op.name == "alias" else None
    )
    assert a is kept or a == kept
    assert b != moved
    assert b.node.location == moved.node.location
    assert b.node.location.filename.endswith("test_passes.py")


def test_substitute_derives_types_anew_and_stops_at_replacements():
    x = input_node(TensorType((2,), float64), "x")
    y = neg(x.out)
    z = add(y, y)
    wide = input_node(TensorType((5, 2), float64), "wide")
    (found,) = substitute([z], {y: wide.out})
    assert found.shape == (5, 2)
    (nested,) = substitute([z], {y: mul(y, y)})  # the replacement itself keeps the old y
    assert nested.node.inputs[0].node.inputs == (y, y)
    assert substitute([z], {}) == (z,)


def test_passes_do_not_recurse():
    x = input_node(TensorType((2,), float64), "x")
    value = x.out
    for _ in range(50_000):
        value = neg(alias(value))
    assert body(optimize(Graph((x,), (value,)))) == SAME
