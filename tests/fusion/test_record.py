"""Recording: views are maps, never copies; what is proven of an index needs no check."""

from __future__ import annotations

import numpy as np
import pytest
from plans import checks, loads, nests, run, schedule_of

from tilegrad.fusion.intervals import interval_of
from tilegrad.fusion.loops import Instruction
from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64, int8, int16, int32, int64, uint8
from tilegrad.ir.ops.leaves import iota
from tilegrad.ir.ops.shape import broadcast_to, expand_dims, reshape, squeeze, transpose

X = np.arange(24.0).reshape(4, 6)
TABLE = np.arange(40.0) * 1.5


def only_nest(schedule):
    (step,) = schedule.steps
    return step


def op_names(nest):
    return [i.op.name for i in nest.tape if i.op is not None]


# ------------------------------------------------------------------------------------------ views


def _six_views(x):
    y = ops.slice_axis(transpose(ops.flip(x, 0)), 0, 1, 6, 2)
    return reshape(ops.flip(transpose(y), 1), (2, 6))


def _six_views_numpy(x):
    return x[::-1].T[1:6:2].T[:, ::-1].reshape(2, 6)


def _with_pad(x):
    y = ops.flip(ops.slice_axis(transpose(x), 0, 0, 6, 2), 1)
    return reshape(ops.pad(y, 0.0, (1, 2), (0, 0)), (3, 8))


def _with_pad_numpy(x):
    return np.pad(x.T[::2][:, ::-1], [(1, 0), (2, 0)]).reshape(3, 8)


VIEWS = {
    "transpose": (transpose, lambda x: x.T),
    "slice": (lambda x: ops.slice_axis(x, 1, 1, 5, 2), lambda x: x[:, 1:5:2]),
    "backwards": (lambda x: ops.slice_axis(x, 1, 4, None, -2), lambda x: x[:, 4::-2]),
    "reshape": (lambda x: reshape(x, (2, 12)), lambda x: x.reshape(2, 12)),
    "unit axes": (lambda x: squeeze(expand_dims(x, (0, 2)), (0,)), lambda x: x[:, None]),
    "broadcast": (
        lambda x: broadcast_to(expand_dims(x, (0,)), (3, 4, 6)),
        lambda x: np.broadcast_to(x, (3, 4, 6)),
    ),
    "six": (_six_views, _six_views_numpy),
    "pad": (_with_pad, _with_pad_numpy),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_chain_of_views_is_one_load_in_one_nest(name):
    function, reference = VIEWS[name]
    schedule = schedule_of(lambda x: function(x) + 1.0, X)
    assert len(loads(only_nest(schedule))) == 1
    assert [b.kind for b in schedule.buffers] == ["input", "output"]
    assert np.array_equal(run(lambda x: function(x) + 1.0, X), reference(X) + 1.0)


def test_views_under_a_concat_are_one_load_a_piece():
    def function(x):
        y = ops.flip(transpose(x), 0)
        padded = ops.pad(y, 7.0, (1, 0), (0, 0))
        return reshape(ops.concat([y, ops.slice_axis(y, 0, 1, 3), padded], 0), (60,))

    def reference(x):
        y = x.T[::-1]
        padded = np.pad(y, [(1, 0), (0, 0)], constant_values=7.0)
        return np.concatenate([y, y[1:3], padded]).reshape(60)

    nest = only_nest(schedule_of(function, X))
    assert len(loads(nest)) == 3
    assert np.array_equal(run(function, X), reference(X))


def test_a_view_of_an_expression_is_the_expression_elsewhere():
    nest = only_nest(schedule_of(lambda x: transpose(ops.exp(x)) * 2.0, X))
    assert op_names(nest).count("exp") == 1
    assert len(loads(nest)) == 1


# ------------------------------------------------------------------------------ each thing once


def test_a_value_read_twice_is_loaded_once():
    nest = only_nest(schedule_of(lambda x: x * x, X))
    assert len(loads(nest)) == 1


def test_equal_expressions_made_twice_are_recorded_once():
    nest = only_nest(schedule_of(lambda x: ops.exp(x) + ops.exp(x), X))
    assert op_names(nest) == ["exp", "add"]


def test_a_transpose_of_a_transpose_reads_the_same_element():
    nest = only_nest(schedule_of(lambda x: transpose(transpose(x)) * x, X))
    assert len(loads(nest)) == 1


def test_two_elements_of_one_array_are_two_loads():
    nest = only_nest(schedule_of(lambda x: ops.flip(x, 0) * x, X))
    assert len(loads(nest)) == 2


# --------------------------------------------------------------------------- proofs about indices


INSIDE = {
    "iota": lambda: iota((9,)),
    "affine": lambda: iota((9,)) * 4 + 3,
    "backwards": lambda: 39 - iota((9,)) * 4,
    "times 3 modulo 40": lambda: ops.remainder(iota((100,)) * 3, 40),
    "divided": lambda: ops.floor_divide(iota((100,)), 3),
    "int32": lambda: ops.convert(iota((9,), 0, int32) * 2, int64),
    "int8": lambda: iota((9,), 0, int8),
    "reshaped": lambda: reshape(iota((3, 4), 1) + iota((3, 4), 0) * 10, (12,)),
    "reversed": lambda: ops.flip(iota((9,)), 0),
}


@pytest.mark.parametrize("name", INSIDE)
def test_indices_made_of_iota_are_read_directly_without_a_check(name):
    nest = only_nest(schedule_of(lambda x: ops.gather(x, INSIDE[name]()), TABLE))
    assert checks(nest) == []
    assert all(load.index.dynamics() == [] for load in loads(nest))
    assert len(loads(nest)) == 1  # no index array is read
    i = run(lambda: (INSIDE[name](), iota((1,))))[0]
    assert np.array_equal(run(lambda x: ops.gather(x, INSIDE[name]()), TABLE), TABLE[i])


BOUNDED = {
    "remainder": lambda i: ops.remainder(i, 40),
    "clipped": lambda i: ops.minimum(ops.maximum(i, 0), 39),
    "small remainder plus iota": lambda i: ops.remainder(i, 30) + iota((7,)),
    "where": lambda i: ops.where(ops.gt(i, 0), 3, 39),
    "absolute": lambda i: ops.abs_(ops.remainder(i, 39)),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_indices_of_a_proven_interval_are_not_checked(name, rng):
    i = rng.integers(-1000, 1000, 7)
    function = lambda x, k: ops.gather(x, BOUNDED[name](k))  # noqa: E731
    nest = only_nest(schedule_of(function, TABLE, i))
    assert [c.kind for c in nest.tape if c.kind == "bounds"] == []
    at = run(lambda k: BOUNDED[name](k), i)
    assert np.array_equal(run(function, TABLE, i), TABLE[at])


def test_bytes_into_a_table_of_256_are_not_checked():
    nest = only_nest(schedule_of(lambda x, i: ops.gather(x, i), ((256,), float64), ((5,), uint8)))
    assert checks(nest) == []


OUTSIDE = {
    "iota too far": lambda i: iota((41,)),
    "negative": lambda i: iota((9,)) - 1,
    "an array": lambda i: i,
    "remainder by 41": lambda i: ops.remainder(i, 41),
    "product that may wrap": lambda i: ops.minimum(ops.abs_(i) * 2, 39),
    "abs of the smallest": lambda i: ops.minimum(ops.abs_(i), 39),
    "int8 that wraps": lambda i: ops.convert(iota((9,), 0, int8) * 100, int64),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_indices_that_may_lie_outside_keep_their_check(name):
    nest = only_nest(schedule_of(lambda x, i: ops.gather(x, OUTSIDE[name](i)), TABLE, np.arange(7)))
    assert [c.kind for c in checks(nest)] == ["bounds"]


def test_division_by_a_loop_constant_needs_no_check_and_by_an_array_does():
    free = only_nest(schedule_of(lambda: ops.floor_divide(iota((9,)) * 5, 3) + 1))
    assert checks(free) == []
    checked = only_nest(schedule_of(lambda x: ops.floor_divide(iota((9,)), x), np.arange(9)))
    assert [c.op.name for c in checks(checked)] == ["floor_divide"]


def test_integers_of_iota_wrap_as_numpys():
    def function():
        i = iota((9,), 0, int8)
        return i * 100, i * 100 + 100, ops.convert(iota((9,)) * 100, int8), -i - 120

    i = np.arange(9, dtype=np.int8)
    with np.errstate(all="ignore"):
        expected = (i * np.int8(100), i * np.int8(100) + np.int8(100))
        expected += ((np.arange(9) * 100).astype(np.int8), -i - np.int8(120))
    for got, right in zip(run(function), expected, strict=True):
        assert got.dtype == right.dtype
        assert np.array_equal(got, right)


# -------------------------------------------------------------------------------------- intervals


BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
}
BOUNDS = [-32768, -300, -7, -1, 0, 1, 5, 200, 32767]


@pytest.mark.parametrize("name", BINARY)
def test_the_interval_of_an_op_encloses_its_values(name):
    intervals = [(a, b) for a in BOUNDS for b in BOUNDS if a <= b]
    op = ops.OPS[name]
    instruction = Instruction("op", int16, (0, 1), op=op)
    for x in intervals[::3]:
        for y in intervals[::2]:
            samples = [np.unique([s[0], s[1], *np.clip(BOUNDS, *s)]) for s in (x, y)]
            u, v = (s.astype(np.int16) for s in np.meshgrid(*samples))
            if name in ("floor_divide", "remainder"):
                u, v = u[v != 0], v[v != 0]
            with np.errstate(all="ignore"):
                values = BINARY[name](u, v)
            low, high = interval_of(instruction, [x, y])
            if values.size:
                assert low <= values.min(), (x, y)
                assert high >= values.max(), (x, y)


def test_intervals_narrow():
    def of(name, *intervals):
        instruction = Instruction("op", int16, tuple(range(len(intervals))), op=ops.OPS[name])
        return interval_of(instruction, intervals)

    assert of("add", (0, 9), (3, 3)) == (3, 12)
    assert of("mul", (-2, 9), (3, 3)) == (-6, 27)
    assert of("remainder", (0, 9), (3, 3)) == (0, 2)
    assert of("remainder", (0, 2), (3, 3)) == (0, 2)
    assert of("floor_divide", (-1, 9), (3, 3)) == (-1, 3)
    assert of("neg", (0, 9)) == (-9, 0)
    assert of("where", (0, 1), (0, 9), (20, 20)) == (0, 20)
    assert of("add", (0, 32767), (0, 1)) == (-32768, 32767)  # may wrap around


# ------------------------------------------------------------------------------------- schedules


def test_a_gathered_array_stays_in_memory_and_its_index_does_not():
    def function(x, i):
        return ops.gather(x * 2.0, i + 1)

    schedule = schedule_of(function, TABLE, np.arange(7))
    first, second = nests(schedule)
    assert op_names(first) == ["mul"]
    assert len(loads(second)) == 2  # the index array and the product
    assert np.array_equal(run(function, TABLE, np.arange(7)), TABLE[1:8] * 2.0)
