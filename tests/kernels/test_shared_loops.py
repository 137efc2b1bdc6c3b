"""Loops that fusion rearranges keep every bit: mixed nests, windows in place, strips."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from plans import plan_of
from random_graphs import assert_same_bits, programs

import tilegrad as tg
from tilegrad.fusion import lower
from tilegrad.fusion.loops import Nest
from tilegrad.ir import ops
from tilegrad.ir.ops.shape import broadcast_to, reshape, transpose
from tilegrad.kernels.plan import compile_graph

rng = np.random.default_rng(0)

# ------------------------------------------------------------------- points beside reductions


def _several(a, axes):
    e = ops.exp(a)
    return e, ops.sum_(e, axes), ops.sum_(a * a, axes), a * 2.0, ops.max_(a, axes)


@pytest.mark.parametrize("shape", [(100, 100), (20, 1500), (70_001,), (3, 200), (40, 5, 80)])
@pytest.mark.parametrize("whole", [False, True])
def test_points_and_reductions_in_one_nest(shape, whole):
    x = rng.normal(size=shape)
    axes = tuple(range(len(shape))) if whole else (len(shape) - 1,)
    apart = [
        plan_of(lambda a, k=k: _several(a, axes)[k], x).run([x])[0]  # each by itself
        for k in range(5)
    ]
    together = plan_of(lambda a: _several(a, axes), x)
    for threads in (1, 2, 3):
        assert_same_bits(apart, together.run([x], threads))


def test_they_do_share_a_nest():
    x = rng.normal(size=(100, 100))
    steps = plan_of(lambda a: _several(a, (1,)), x).schedule.steps
    assert len(steps) == 1
    assert isinstance(steps[0], Nest)
    assert len(steps[0].stores) == 5


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(programs(steps=15))
def test_random_programs_that_mix_wherever_they_may(program):
    arguments = [np.array(a, order="C") for a in program.arguments]
    usual = compile_graph(program.graph).run(arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lower, "_LONG_ROW", 1)
        patch.setattr(lower, "_MANY_ROWS", 1)
        mixed = compile_graph(program.graph).run(arguments)
    assert_same_bits(usual, mixed)


# ------------------------------------------------------------------------- windows in place

N = 4000
WINDOWS = {
    "same elements": (slice(7, 300), lambda w: w[7:300] * 2.0),
    "one behind": (slice(7, 300), lambda w: w[6:299] * 2.0),
    "one ahead": (slice(7, 300), lambda w: w[8:301] * 2.0),
    "beyond": (slice(7, 300), lambda w: w[300:593] * 2.0),
    "reversed": (slice(7, 300), lambda w: w[7:300][::-1] * 2.0),
    "one element": (slice(9, 10), lambda w: w[8:9] + w[10:11]),
    "a sum": (slice(7, 300), lambda w: w[7:300] + w.sum()),
    "nothing": (slice(5, 5), lambda w: w[5:5]),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
def test_a_window_reads_what_was_there(name, dtype):
    span, new = WINDOWS[name]
    x = np.arange(N).astype(dtype)

    def function(v):
        w = v + v  # a temporary that the update may take over
        return w.at[span].set(new(w).astype(w.dtype))

    expected = x + x
    expected[span] = new(x + x).astype(dtype)
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(tg.jit(function)(x)), expected)
    np.testing.assert_array_equal(x, np.arange(N).astype(dtype))  # the argument is untouched


def test_an_operand_that_is_needed_later_is_copied():
    x = np.arange(float(N))
    y, z = tg.jit(lambda v: (lambda w: (w.at[3].set(-1.0), w * 2.0))(v + 1.0))(x)
    assert np.asarray(y)[3] == -1.0
    np.testing.assert_array_equal(np.asarray(z), (x + 1.0) * 2.0)


def test_a_chain_of_updates_makes_one_copy():
    def chain(v):
        for k in range(1, 20):
            v = v.at[k].set(v[k - 1] * 0.5 + k)
        return v

    lowered = tg.jit(chain).lower(np.zeros((2000, 10)))
    assert lowered.cost()["arena"] == 0
    expected = np.zeros((2000, 10))
    for k in range(1, 20):
        expected[k] = expected[k - 1] * 0.5 + k
    np.testing.assert_array_equal(np.asarray(tg.jit(chain)(np.zeros((2000, 10)))), expected)


# ------------------------------------------------------------------------------ strips


@pytest.mark.parametrize("shape", [(33, 70), (100, 17), (64, 64), (700, 33), (16, 1100)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "bool", "c8", "c16"])
def test_transposes_in_strips(shape, dtype):
    x = (rng.normal(size=shape) * 9).astype(dtype)
    plan = plan_of(lambda a: transpose(a), x)
    assert plan.functions[0].strategy == "strips"
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(plan.run([x], threads)[0], x.T)


ACROSS = {
    "one": (lambda a, r, c: transpose(a) + 1.0, lambda a, r, c: a.T + 1.0),
    "two": (lambda a, r, c: transpose(a) * transpose(a + a), lambda a, r, c: a.T * (a + a).T),
    "row and column": (
        lambda a, r, c: transpose(a) * row(r, a) + column(c, a),
        lambda a, r, c: a.T * r[None, :] + c[:, None],
    ),
    "padded": (
        lambda a, r, c: ops.pad(transpose(a), 2.0, (3, 1), (0, 5)),
        lambda a, r, c: np.pad(a.T, ((3, 0), (1, 5)), constant_values=2.0),
    ),
    "heavy": (lambda a, r, c: ops.exp(transpose(a)) - 1.0, None),
}


def row(r, a):
    return broadcast_to(reshape(r, (1, a.shape[0])), a.shape[::-1])


def column(c, a):
    return broadcast_to(reshape(c, (a.shape[1], 1)), a.shape[::-1])


@pytest.mark.parametrize("kind", ACROSS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_bodies_around_transposes(kind, dtype):
    """Blocks of eight by eight and what is left at either edge give what NumPy gives."""
    function, reference = ACROSS[kind]
    for shape in ((16, 16), (17, 23), (31, 40), (40, 31), (600, 20), (20, 1050)):
        a, r, c = ((rng.normal(size=s)).astype(dtype) for s in (shape, shape[:1], shape[1:]))
        plan = plan_of(function, a, r, c)
        copy = a.T.copy()
        right = reference(a, r, c) if reference else plan_of(ops.exp, copy).run([copy])[0] - 1.0
        for threads in (1, 3):
            np.testing.assert_array_equal(plan.run([a, r, c], threads)[0], right.astype(dtype))


def test_transposes_of_three_dimensions():
    x = rng.normal(size=(20, 19, 37))
    for axes in ((2, 1, 0), (0, 2, 1), (1, 0, 2), (2, 0, 1), (1, 2, 0)):
        plan = plan_of(lambda x, a=axes: transpose(x, a) + 1.0, x)
        np.testing.assert_array_equal(plan.run([x], 1)[0], np.transpose(x, axes) + 1.0)
