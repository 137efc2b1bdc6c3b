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
from tilegrad.ir.ops.shape import transpose
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
