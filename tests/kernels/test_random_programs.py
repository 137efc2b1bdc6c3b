"""Random programs: compiled whole, node by node, optimized and threaded, with the same bits.

And in memory that ends where the operands end, so that a stray read or write is a crash.
"""

from __future__ import annotations

import numpy as np
import pytest
import random_graphs
from guarded import run_guarded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plans import run_by_node
from random_graphs import assert_same_bits, programs

from tilegrad.fusion import tiles
from tilegrad.ir.dtypes import ALL, complex128, float32, float64, int8, int64
from tilegrad.ir.passes.manager import optimize
from tilegrad.kernels import work
from tilegrad.kernels.plan import compile_graph

MOVING = (
    "reshape",
    "transpose",
    "broadcast",
    "slice",
    "pad",
    "concat",
    "gather",
    "sum",
    "max",
    "add",
)


def some(count):
    return settings(
        max_examples=count,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def arguments_of(program):
    return [np.array(a) for a in program.arguments]


@some(30)
@given(programs(steps=10))
def test_fused_equals_node_by_node(program):
    arguments = arguments_of(program)
    for a in arguments:
        a.setflags(write=False)
    before = [a.copy() for a in arguments]
    whole = compile_graph(program.graph).run(arguments)
    assert_same_bits(before, arguments)  # a plan does not write to its operands
    assert_same_bits(run_by_node(program.graph, arguments), whole)


@some(25)
@given(programs(steps=14), st.sampled_from([2, 3]))
def test_optimized_and_threaded_equals_plain(program, threads):
    arguments = arguments_of(program)
    plain = compile_graph(program.graph).run(arguments)
    assert_same_bits(plain, compile_graph(optimize(program.graph)).run(arguments, threads))


@some(40)
@given(programs(steps=10, ops=MOVING, dtypes=ALL), st.booleans())
def test_programs_that_move_elements_have_the_values_of_the_interpreter(program, at_end):
    """Every dtype; what is not a sum is exact, sums of a handful of numbers are close."""
    arguments = arguments_of(program)
    plan = compile_graph(program.graph)
    outputs = run_guarded(plan, arguments, at_end=at_end)
    sums = any(n.op.name in ("sum", "max") for n in program.graph.nodes())
    for got, right in zip(outputs, program.run(), strict=True):
        assert (got.shape, got.dtype) == (right.shape, right.dtype)
        if sums and right.dtype.kind in "fc":
            close(got, right)
        else:
            assert_same_bits([right], [got])


def close(got, right):
    with np.errstate(all="ignore"):
        scale = np.nanmax(np.where(np.isfinite(right), abs(right), 0), initial=1.0)
        tolerance = 1e-4 if right.dtype in (np.float32, np.complex64) else 1e-12
        np.testing.assert_allclose(got, right, rtol=tolerance, atol=tolerance * scale)


@some(20)
@given(programs(steps=10, dtypes=(float64, float32, int64, int8, complex128)))
def test_a_plan_touches_only_its_own_memory(program):
    arguments = arguments_of(program)
    plan = compile_graph(program.graph)
    expected = plan.run(arguments)
    for at_end in (True, False):
        assert_same_bits(expected, run_guarded(plan, arguments, at_end=at_end))


@st.composite
def larger_programs(draw, **options):
    """Programs with extents that fill vectors and make tiles of several rows."""
    usual = random_graphs.EXTENTS
    random_graphs.EXTENTS = (5, 9, 20, 1, 33)
    try:
        return draw(programs(**options))
    finally:
        random_graphs.EXTENTS = usual


@some(25)
@given(larger_programs(steps=12))
def test_steps_cut_into_the_smallest_pieces(program):
    """Every step is shared among threads however small, tiles hold a row or two."""
    arguments = arguments_of(program)
    expected = run_by_node(program.graph, arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "WORTHWHILE", 0.0)
        patch.setattr(work, "SMALLEST", 1e-6)
        patch.setattr(tiles, "CHUNK", 2048)
        plan = compile_graph(program.graph)
        for threads in (1, 3):
            got = run_guarded(plan, arguments, threads, at_end=threads == 1)
            assert_same_bits(expected, got)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(programs(steps=25))
def test_long_programs(program):
    arguments = arguments_of(program)
    whole = compile_graph(program.graph).run(arguments)
    assert_same_bits(run_by_node(program.graph, arguments), whole)
    assert_same_bits(whole, compile_graph(optimize(program.graph)).run(arguments, 2))
