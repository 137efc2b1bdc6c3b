"""The op table, row by row: no field is missing without a reason, and the rules agree.

Nothing here knows an op by name: operands come from the ``samples`` of the record, and each rule is
held against another one: types against the NumPy reference, tangents against differences of
values, transposes against tangents, batching against a loop.
"""

import itertools

import numpy as np
import pytest
from random_graphs import random_array, sample_cases

from tilegrad.autodiff.batching import batch
from tilegrad.autodiff.forward import jvp
from tilegrad.autodiff.reverse import vjp
from tilegrad.ir.dtypes import ALL, as_dtype, complex128, float64
from tilegrad.ir.errors import DTypeError, TilegradError
from tilegrad.ir.graph import Graph, Op, Value, make_node
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.leaves import constant, input_node
from tilegrad.ir.ops.registry import register
from tilegrad.ir.parse import parse
from tilegrad.ir.text import text
from tilegrad.ir.types import TensorType
from tilegrad.ir.verify import verify

NAMES = sorted(name for name, op in OPS.items() if op.kind != "leaf")
KINDS = {"leaf", "elementwise", "reduction", "cumulative", "view", "index", "dot", "sort", "linalg"}
KINDS |= {"region", "custom", "host", "order"}
RULES = ("reference", "jvp", "transpose", "samples")
# Rules of a kind, beyond those of all ops.
OF_KIND = {"elementwise": ("scalar", "complex_scalar"), "leaf": ()}

# The derivative is zero by decree, not by mathematics: no difference quotient shows it.
BY_DECREE = {"stop_gradient"}
# Functions of Hermitian matrices: they read one triangle, and move along Hermitian matrices.
HERMITIAN = {"cholesky"}


def cases_of(op, dtype, seed=0):
    """Samples of ``op`` for a dtype that its type rule accepts; none where it is not defined."""
    if op.samples is None:
        return []
    try:
        cases = sample_cases(op, np.random.default_rng(seed), dtype.numpy)
        operands, params = cases[0]
        op.infer(*[_type_of(x) for x in operands], **params)
    except (DTypeError, TypeError, ValueError, OverflowError):
        return []
    return [([np.asarray(x) for x in operands], params) for operands, params in cases]


def _type_of(x):
    x = np.asarray(x)
    return TensorType(x.shape, as_dtype(x.dtype))


def some_cases(op):
    """Samples in float64, or in the first dtype that has any."""
    for dtype in (float64, *ALL):
        cases = cases_of(op, dtype)
        if cases:
            return cases
    return []


def inputs_for(arrays):
    return [input_node(_type_of(x), f"x{i}") for i, x in enumerate(arrays)]


def evaluate(values, nodes, arrays):
    return interpret(values, dict(zip(nodes, arrays, strict=True)))


def moving(arrays):
    """Positions of the operands that can have a tangent."""
    return [i for i, x in enumerate(arrays) if x.dtype.kind in "fc"]


def direction(rng, x):
    t = rng.standard_normal(x.shape)
    return (t + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else t).astype(x.dtype)


def directions(op, rng, arrays):
    """A direction in the domain of the op for each operand that moves, by its position."""
    found = {i: direction(rng, arrays[i]) for i in moving(arrays)}
    if op.name in HERMITIAN:
        found = {i: t + t.conj().swapaxes(-1, -2) for i, t in found.items()}
    return found


# --------------------------------------------------------------------------------- completeness


@pytest.mark.parametrize("name", sorted(OPS))
def test_no_field_is_missing_without_a_reason(name):
    op = OPS[name]
    assert op.name == name
    assert op.kind in KINDS
    assert op.doc.strip()
    if op.kind == "leaf":
        return
    extra = OF_KIND.get(op.kind, ("batch",))
    missing = [f for f in (*RULES, *extra) if getattr(op, f) is None and f not in op.why_not]
    assert not missing, f"{name}: no {missing}, and no reason in why_not"


@pytest.mark.parametrize("name", sorted(OPS))
def test_reasons_are_for_fields_that_are_missing(name):
    op = OPS[name]
    for field, reason in op.why_not.items():
        assert field in Op.__dataclass_fields__, field
        assert getattr(op, field) is None, f"{name} has {field} and a reason for having none"
        assert reason.strip()


@pytest.mark.parametrize("name", NAMES)
def test_samples_exist_in_some_dtype(name):
    op = OPS[name]
    assert some_cases(op) or "samples" in op.why_not


# ------------------------------------------------------------------- types, reference, text


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_type_rule_and_reference_agree(name, dtype):
    """Shape, dtype and number of results are what the type rule says, for all dtypes it accepts."""
    for arrays, params in cases_of(OPS[name], dtype):
        nodes = inputs_for(arrays)
        node = make_node(OPS[name], [n.out for n in nodes], **params)
        evaluate(node.outputs, nodes, arrays)  # checks, see interpret


@pytest.mark.parametrize("name", NAMES)
def test_nodes_print_and_parse(name):
    for arrays, params in some_cases(OPS[name]):
        nodes = inputs_for(arrays)
        node = make_node(OPS[name], [n.out for n in nodes], **params)
        graph = verify(Graph(tuple(nodes), node.outputs))
        assert text(verify(parse(text(graph)))) == text(graph)


SHAPES = [(), (1,), (0,), (3, 0), (1, 1, 1), (2, 6), (2, 3, 2)]


@pytest.mark.parametrize("name", [n for n in NAMES if OPS[n].kind == "elementwise"])
def test_elementwise_means_elementwise(name):
    """Any shape and any layout: each element is what it is in a flat array.

    Up to 4 ulp: some of NumPy's functions depend on the layout, and the reference is NumPy's.
    """
    for arrays, params in some_cases(OPS[name]):
        nodes = inputs_for(arrays)
        flat = evaluate([make_node(OPS[name], [n.out for n in nodes], **params).out], nodes, arrays)
        for shape in SHAPES:
            count = int(np.prod(shape))
            parts = [x[:count].reshape(shape) for x in arrays]
            _assert_values(name, params, parts, flat[0][:count].reshape(shape))
        spread = [np.repeat(x, 2)[::2] for x in arrays]  # strided
        _assert_values(name, params, spread, flat[0])
        _assert_values(name, params, [x[::-1] for x in arrays], flat[0][::-1])
        stretched = [np.broadcast_to(x, (3, *x.shape)) for x in arrays]
        _assert_values(name, params, stretched, np.broadcast_to(flat[0], (3, *flat[0].shape)))


def _assert_values(name, params, arrays, expected):
    nodes = inputs_for(arrays)
    found = evaluate([make_node(OPS[name], [n.out for n in nodes], **params).out], nodes, arrays)
    assert found[0].shape == expected.shape
    np.testing.assert_allclose(found[0], expected, rtol=1e-15, atol=0)


# -------------------------------------------------------------------------------- derivatives

INEXACT = (float64, complex128)


def tangent_program(op, arrays, params):
    """Operand inputs, tangent inputs, results and their tangents, for all operands that move."""
    nodes = inputs_for(arrays)
    node = make_node(op, [n.out for n in nodes], **params)
    where = moving(arrays)
    dots = {i: input_node(nodes[i].types[0], f"dot{i}") for i in where}
    outputs = [y for y in node.outputs if y.dtype.is_inexact]
    found = jvp(outputs, {nodes[i].out: dots[i].out for i in where})
    return nodes, dots, outputs, found


def stepped(arrays, ts, size):
    return [x if i not in ts else x + size * ts[i] for i, x in enumerate(arrays)]


def difference(values, nodes, arrays, ts, more=(), step=1e-4):
    """Fourth-order central difference of ``values`` along ``ts``.

    ``more``: further inputs that move, as (node, where, direction).
    """

    def at(size):
        env = dict(zip(nodes, stepped(arrays, ts, size), strict=True))
        return interpret(values, env | {node: x + size * t for node, x, t in more})

    far, near = (
        [(p - m) for p, m in zip(at(k * step), at(-k * step), strict=True)] for k in (2, 1)
    )
    return [(8 * n - f) / (12 * step) for n, f in zip(near, far, strict=True)]


@pytest.mark.parametrize("dtype", INEXACT, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_tangents_are_difference_quotients(name, dtype):
    op = OPS[name]
    if "jvp" in op.why_not or name in BY_DECREE:
        return
    rng = np.random.default_rng(1)
    for arrays, params in cases_of(op, dtype):
        where = moving(arrays)
        for chosen in [*({i} for i in where), set(where)]:  # each operand alone, and all
            nodes, dots, outputs, found = tangent_program(op, arrays, params)
            ts = {i: t * (i in chosen) for i, t in directions(op, rng, arrays).items()}
            expected = difference(outputs, nodes, arrays, ts)
            env = dict(zip(nodes, arrays, strict=True)) | {dots[i]: ts[i] for i in where}
            for y_dot, quotient in zip(found, expected, strict=True):
                got = np.zeros(quotient.shape) if y_dot is None else interpret([y_dot], env)[0]
                np.testing.assert_allclose(got, quotient, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("dtype", INEXACT, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_second_order(name, dtype):
    """The tangent of the tangent program is the difference quotient of the tangents."""
    op = OPS[name]
    if "jvp" in op.why_not or name in BY_DECREE:
        return
    rng = np.random.default_rng(2)
    for arrays, params in cases_of(op, dtype):
        nodes, dots, _, found = tangent_program(op, arrays, params)
        firsts = [y for y in found if y is not None]
        where = moving(arrays)
        ts, vs, ws = (directions(op, rng, arrays) for _ in range(3))
        moved = {nodes[i].out: constant(vs[i]) for i in where}
        moved |= {dots[i].out: constant(ws[i]) for i in where}
        seconds = jvp(firsts, moved)
        places = [(dots[i], ts[i], ws[i]) for i in where]
        expected = difference(firsts, nodes, arrays, vs, places)
        env = dict(zip(nodes, arrays, strict=True)) | {dots[i]: ts[i] for i in where}
        for y, quotient in zip(seconds, expected, strict=True):
            got = np.zeros(quotient.shape) if y is None else interpret([y], env)[0]
            np.testing.assert_allclose(got, quotient, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", INEXACT, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_reverse_mode_is_the_transpose_of_forward_mode(name, dtype):
    """Re <c, J t> = Re <J^T c, t>, for one operand at a time, for all, and at second order."""
    op = OPS[name]
    if "jvp" in op.why_not:
        return
    rng = np.random.default_rng(3)
    for arrays, params in cases_of(op, dtype):
        nodes, dots, outputs, found = tangent_program(op, arrays, params)
        env = dict(zip(nodes, arrays, strict=True))
        env |= {dots[i]: direction(rng, arrays[i]) for i in dots}
        for chosen in [*([i] for i in dots), list(dots)]:
            _check_transpose(outputs, [nodes[i].out for i in chosen], env, rng)
        firsts = [y for y in found if y is not None]
        for chosen in (nodes, [*dots.values()], [*nodes, *dots.values()]):
            wrt = [n.out for n in chosen if n.types[0].dtype.is_inexact]
            _check_transpose(firsts, wrt, env, rng)


def _check_transpose(outputs, wrt, env, rng):
    if not wrt or not outputs:
        return
    ts = [direction(rng, env[x.node]) for x in wrt]
    cs = [random_array(rng, y.type, special=False) for y in outputs]
    dots = jvp(outputs, {x: constant(t) for x, t in zip(wrt, ts, strict=True)})
    bars = vjp(outputs, wrt)([constant(c) for c in cs])
    for x, bar in zip(wrt, bars, strict=True):
        assert bar is None or (bar.shape, bar.dtype) == (x.shape, x.dtype)
    left = [c * interpret([v], env)[0] for c, v in zip(cs, dots, strict=True) if v is not None]
    right = [t * interpret([v], env)[0] for t, v in zip(ts, bars, strict=True) if v is not None]
    size = sum(np.abs(p).sum() for p in (*left, *right))
    gap = sum(p.sum().real for p in left) - sum(p.sum().real for p in right)
    assert abs(gap) <= 1e-12 * size + 1e-300


@pytest.mark.parametrize("dtype", INEXACT, ids=str)
@pytest.mark.parametrize("name", [n for n in NAMES if OPS[n].transpose is not None])
def test_transposes_of_linear_ops(name, dtype):
    """For each operand the op is linear in (the others held), and for all operands together."""
    op, checked = OPS[name], 0
    rng = np.random.default_rng(4)
    for arrays, params in cases_of(op, dtype):
        where = moving(arrays)
        flags = [tuple(k == i for k in range(len(arrays))) for i in where]
        if len(where) > 1 and _additive(op, arrays, params, where):
            flags.append(tuple(k in where for k in range(len(arrays))))
        checked += sum(_check_rule(op, arrays, params, linear, rng) for linear in flags)
    # A rule may say None for an operand (a divisor) or for some params, but not always.
    assert checked or not cases_of(op, dtype)


def _linear_part(op, arrays, params, linear, ts):
    def at(moved):
        now = [m if on else x for x, m, on in zip(arrays, moved, linear, strict=True)]
        nodes = inputs_for(now)
        return evaluate([make_node(op, [n.out for n in nodes], **params).out], nodes, now)[0]

    return at(ts) - at([np.zeros_like(x) for x in arrays])


def _additive(op, arrays, params, where):
    """Whether the op is linear in all moving operands at once (a sum, not a product)."""
    linear = [i in where for i in range(len(arrays))]
    twice = [2 * x if on else x for x, on in zip(arrays, linear, strict=True)]
    once = _linear_part(op, arrays, params, linear, arrays)
    return np.allclose(_linear_part(op, arrays, params, linear, twice), 2 * once, rtol=1e-12)


def _check_rule(op, arrays, params, linear, rng):
    """One transpose rule by an inner product; 0 where it says None: not linear in that operand."""
    nodes = inputs_for(arrays)
    node = make_node(op, [n.out for n in nodes], **params)
    if not node.out.dtype.is_inexact:
        return 0
    c = random_array(rng, node.out.type, special=False)
    bars = op.transpose(node, constant(c), linear)
    ts = [direction(rng, x) if on else x for x, on in zip(arrays, linear, strict=True)]
    chosen = [(t, bar) for t, bar, on in zip(ts, bars, linear, strict=True) if on]
    if any(bar is None for _, bar in chosen):
        return 0
    left = np.sum(c * _linear_part(op, arrays, params, linear, ts)).real
    env = dict(zip(nodes, arrays, strict=True))
    right = sum(np.sum(t * interpret([bar], env)[0]).real for t, bar in chosen)
    np.testing.assert_allclose(left, right, rtol=1e-11, atol=1e-11)
    return 1


# ----------------------------------------------------------------------------------- batching

BATCH = 3


@pytest.mark.parametrize("name", NAMES)
def test_batched_is_a_loop(name):
    """Each choice of mapped operands, with the batch axis first and last: BT06."""
    op = OPS[name]
    if "batch" in op.why_not:
        return
    dtypes = [d for d in (float64, complex128, *ALL) if cases_of(op, d)][:2]
    for dtype in dtypes:
        draws = [cases_of(op, dtype, seed) for seed in range(BATCH)]
        for k, (arrays, params) in enumerate(draws[0]):
            examples = [draw[k][0] for draw in draws]
            for mapped in _choices(len(arrays)):
                for axis in ("first", "last"):
                    _check_batch(op, arrays, params, examples, mapped, axis)


def _choices(count):
    """The ways to map operands; of many operands each alone, each spared, and all."""
    if count <= 3:
        sets = itertools.product((False, True), repeat=count)
        return [s for s in sets if any(s)]
    alone = [tuple(i == k for i in range(count)) for k in range(count)]
    return [*alone, *(tuple(not on for on in s) for s in alone), (True,) * count]


def _check_batch(op, arrays, params, examples, mapped, axis):
    nodes = inputs_for(arrays)
    node = make_node(op, [n.out for n in nodes], **params)
    placed, env = {}, dict(zip(nodes, arrays, strict=True))
    for i, on in enumerate(mapped):
        if on:
            at = 0 if axis == "first" else arrays[i].ndim
            stack = np.stack([e[i] for e in examples], at)
            whole = input_node(_type_of(stack), "stack")
            placed[nodes[i].out], env[whole] = (whole.out, at), stack
    found = batch(node.outputs, placed, BATCH)
    for k in range(BATCH):
        now = [
            examples[k][i] if on else x
            for i, (x, on) in enumerate(zip(arrays, mapped, strict=True))
        ]
        alone = evaluate(node.outputs, nodes, now)
        for expected, (value, at) in zip(alone, found, strict=True):
            whole = interpret([value], env)[0]
            one = whole if at is None else np.take(whole, k, at)
            assert one.dtype == expected.dtype
            np.testing.assert_allclose(one, expected, rtol=1e-12, atol=1e-12)


# ------------------------------------------------------------------------------ the table itself


def test_names_are_words_of_graph_text():
    for name in OPS:
        assert name.replace("_", "").isalnum()
        assert name == name.lower()


def test_the_table_is_closed():
    with pytest.raises(ValueError, match="registered already"):
        register("add", "elementwise", infer=lambda x: x)
    assert all(isinstance(op, Op) for op in OPS.values())
    assert issubclass(DTypeError, TilegradError)
    assert Value.__slots__
