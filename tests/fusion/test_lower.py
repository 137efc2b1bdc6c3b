"""Lowering: what shares a nest, and the text of a few small schedules."""

from __future__ import annotations

import re

import numpy as np
import pytest
from plans import loads, nests, run, schedule_of, tiles

from tilegrad.ir import ops
from tilegrad.ir.ops.shape import broadcast, transpose

X = ((40, 30), "f8")
Y = ((40, 30), "f8")
V = ((30,), "f8")


def shape_of(schedule):
    """Outputs of each nest."""
    return [len(n.stores) for n in nests(schedule)]


# ---------------------------------------------------------------------------- horizontal merging


def test_outputs_over_one_domain_share_a_nest_and_its_loads():
    schedule = schedule_of(lambda x, y: (x + y, x * y, ops.exp(x)), X, Y)
    assert shape_of(schedule) == [3]
    assert len(loads(nests(schedule)[0])) == 2


def test_an_output_of_an_output_is_read_from_its_register():
    def function(x):
        y = ops.exp(x)
        return y, y * 2.0

    schedule = schedule_of(function, X)
    assert shape_of(schedule) == [2]
    assert len(loads(nests(schedule)[0])) == 1


def test_reductions_over_the_same_axes_share_a_nest():
    schedule = schedule_of(lambda x: (ops.sum_(x, 1), ops.max_(x, 1), ops.argmin(x, 1)), X)
    assert shape_of(schedule) == [3]


def test_reductions_over_other_axes_do_not():
    assert shape_of(schedule_of(lambda x: (ops.sum_(x, 1), ops.sum_(x, 0)), X)) == [1, 1]


def test_other_domains_do_not():
    assert shape_of(schedule_of(lambda x, v: (x + 1.0, v + 1.0), X, V)) == [1, 1]


def test_an_output_read_elsewhere_than_where_it_is_written_waits_for_its_nest():
    def function(x):
        y = ops.exp(x)
        return y, ops.flip(y, 0) * 2.0

    assert shape_of(schedule_of(function, X)) == [1, 1]
    x = np.random.default_rng(0).standard_normal(X[0])
    first, second = run(function, x)
    assert np.array_equal(second, first[::-1] * 2.0)


def test_a_reduction_cannot_join_the_nest_that_computes_its_operand_by_reduction():
    def function(x):
        top = ops.max_(x, 1)
        return ops.sum_(x - broadcast(top, x.shape, (0,)), 1), top

    assert shape_of(schedule_of(function, X)) == [1, 1]
    x = np.random.default_rng(0).integers(-9, 9, X[0]).astype(float)
    total, top = run(function, x)
    assert np.array_equal(top, x.max(1))
    assert np.array_equal(total, (x - x.max(1, keepdims=True)).sum(1))


def test_a_later_value_does_not_join_a_nest_before_what_it_reads():
    """The first and the last nest have the same loops; a transposed sum lies between them."""

    def function(x):
        first = ops.exp(x)
        totals = ops.sum_(first, 0)
        return first, x + broadcast(totals, x.shape, (1,))

    schedule = schedule_of(function, X)
    assert shape_of(schedule) == [1, 1, 1]
    x = np.random.default_rng(0).standard_normal(X[0])
    first, last = run(function, x)
    np.testing.assert_allclose(last, x + first.sum(0), rtol=1e-13)


def test_the_same_output_twice_is_stored_once():
    def function(x):
        y = ops.exp(x)
        return y, y

    assert shape_of(schedule_of(function, X)) == [1]


def test_an_input_as_output_has_no_step():
    assert schedule_of(lambda x: x, X).steps == ()


def test_a_value_nobody_needs_is_not_computed():
    def function(x):
        ops.exp(x)
        return x + 1.0

    assert shape_of(schedule_of(function, X)) == [1]


# ----------------------------------------------------------------------- producers and consumers


def test_a_chain_into_a_reduction_is_one_nest():
    (nest,) = nests(schedule_of(lambda x: ops.sum_(ops.exp(x * 2.0) + 1.0, 1), X))
    assert nest.reduces
    assert len(loads(nest)) == 1


def test_loops_that_every_access_sees_as_one_are_merged():
    (nest,) = nests(schedule_of(lambda x, y: ops.exp(x) * y, ((4, 5, 6), "f8"), ((4, 5, 6), "f8")))
    assert nest.extents == (120,)
    (nest,) = nests(schedule_of(lambda x: transpose(x, (2, 0, 1)) * 2.0, ((4, 5, 6), "f8")))
    assert nest.extents == (6, 20)
    (nest,) = nests(schedule_of(lambda x: ops.sum_(x, (0, 1)), ((4, 5, 6), "f8")))
    assert nest.extents == (6, 20)


def test_unit_loops_are_dropped():
    (nest,) = nests(schedule_of(lambda x: transpose(x) * 2.0, ((1, 50, 1), "f8")))
    assert nest.extents == (50,)
    (nest,) = nests(schedule_of(lambda x: x * 2.0, ((), "f8")))
    assert nest.extents == ()


def test_softmax_is_one_tile_over_the_rows():
    def softmax(x):
        e = ops.exp(x - broadcast(ops.max_(x, 1), x.shape, (0,)))
        return e / broadcast(ops.sum_(e, 1), x.shape, (0,))

    schedule = schedule_of(softmax, X)
    (tile,) = tiles(schedule)
    assert tile.rows == 40
    kept = {s.buffer for s in tile.scratch}
    assert kept == {b.number for b in schedule.buffers if b.kind == "temporary"}


# ------------------------------------------------------------------------------------------ texts

TEXTS = {
    "x * x + y": (
        lambda x, y: x * x + y,
        [X, Y],
        """\
b0: f64[40,30] input
b1: f64[40,30] input
b2: f64[40,30] output
step 0:
  nest i0<1200
    %0: f64 = b0[i0]
    %1: f64 = mul(%0, %0)
    %2: f64 = b1[i0]
    %3: f64 = add(%1, %2)
    b2[i0] = %3
return b2""",
    ),
    "row times matrix, transposed": (
        lambda x, v: transpose(x * v),
        [X, V],
        """\
b0: f64[40,30] input
b1: f64[30] input
b2: f64[30,40] output
step 0:
  nest i0<30 i1<40
    %0: f64 = b0[i0 + 30*i1]
    %1: f64 = b1[i0]
    %2: f64 = mul(%0, %1)
    b2[40*i0 + i1] = %2
return b2""",
    ),
    "sum of a flipped transpose in single precision": (
        lambda x: ops.sum_(ops.flip(transpose(x), 1) * 2.0, 1),
        [((40, 30), "f4")],
        """\
b0: f32[40,30] input
b1: f32[30] output
step 0:
  nest i0<30 i1<40 (last loop reduces)
    %0: f32 = b0[-30*i1 + i0 + 1170]
    %1: f32 = 2.0
    %2: f32 = mul(%0, %1)
    %3: f32 = reduction 0
    reduction 0: sum of %2 in f64
    b1[i0] = %3
return b1""",
    ),
    "gather beside padding": (
        lambda x, i: ops.concat([ops.gather(x, i), ops.pad(x, 7.0, (1,), (0,))], 0),
        [((40,), "f8"), ((5,), "i4")],
        """\
b0: f64[40] input
b1: i32[5] input
b2: f64[46] output
step 0:
  nest i0<46
    %0: bool = 0 <= i0 + -5 < 41
    %1: bool = 0 <= i0 + -6 < 40
    %2: f64 = 7.0
    %3: bool = and(%0, %1)
    %4: f64 = b0[i0 + -6] where %3
    %5: f64 = where(%1, %4, %2)
    %6: bool = 0 <= i0 < 5
    %7: i32 = b1[i0] where %6
    %8: i64 = convert(%7, dtype=int64)
    %9: i64 = position(%8, 40) where %6
    %10: f64 = b0[%9] where %6
    %11: f64 = where(%6, %10, %5)
    b2[i0] = %11
return b2""",
    ),
    "a layer": (
        lambda x, w: ops.tanh(ops.matmul(x, transpose(w))),
        [X, ((20, 30), "f8")],
        """\
b0: f64[40,30] input
b1: f64[20,30] input
b2: f64[40,20] temporary
b3: f64[40,20] output
step 0:
  matmul f64 1x[40,30]@[30,20] b2 = b0[0, 30, 1] @ b1[0, 1, 30]
step 1:
  nest i0<800
    %0: f64 = b2[i0]
    %1: f64 = tanh(%0)
    b3[i0] = %1
return b3""",
    ),
}


def normalized(text):
    """Terms of a sum in one order: which comes first is an accident of how it was made."""

    def ordered(match):
        return "[" + " + ".join(sorted(match.group(1).split(" + "))) + "]"

    return re.sub(r"\[([^\]]*)\]", ordered, text)


@pytest.mark.parametrize("name", TEXTS)
def test_text_of_a_schedule(name):
    function, types, text = TEXTS[name]
    assert normalized(schedule_of(function, *types).text()) == normalized(text)


@pytest.mark.parametrize("name", TEXTS)
def test_the_schedule_is_a_function_of_the_graph(name):
    function, types, _ = TEXTS[name]
    assert schedule_of(function, *types).text() == schedule_of(function, *types).text()
