"""Reductions: the order that numerics 7 fixes, bit for bit, against a slow reading of its text."""

from __future__ import annotations

import numpy as np
import pytest
from order_of_sums import draw, in_order, reduced
from plans import nests, plan_of, run, same, schedule_of

from tilegrad.ir import ops
from tilegrad.ir.ops.shape import broadcast_to, reshape, transpose
from tilegrad.kernels.llvm.form import form_of

LENGTHS = [0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 100, 1023, 1024, 1025, 2049, 3000]


def test_the_slow_reference_adds_what_numpy_adds():
    x = np.random.default_rng(0).integers(-9, 9, (3000, 2)).astype(float)
    assert np.array_equal(in_order(x, np.add, 0.0), x.sum(0))


# -------------------------------------------------------------------------------------- the order


LAYOUTS = {
    "one row": (lambda n: (n,), (0,), "rows"),
    "rows": (lambda n: (5, n), (1,), "rows"),
    "columns": (lambda n: (n, 41), (0,), "columns"),  # unrolled up to 8
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_in_the_order_of_the_text(layout, dtype):
    shape, axes, _ = LAYOUTS[layout]
    for n in LENGTHS:
        x = draw(shape(n), dtype, n)
        same(run(lambda x: ops.sum_(x, axes), x), reduced(x, axes, np.add, 0.0))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_has_its_strategy(layout):
    shape, axes, strategy = LAYOUTS[layout]
    (nest,) = nests(schedule_of(lambda x: ops.sum_(x, axes), (shape(100), "f8")))
    assert form_of(nest).strategy == strategy


@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_are_in_the_order_of_the_text(layout):
    shape, axes, _ = LAYOUTS[layout]
    for n in (0, 1, 9, 16, 17, 1025, 2049):
        x = 1.0 + 0.01 * np.random.default_rng(n).standard_normal(shape(n))
        same(run(lambda x: ops.prod(x, axes), x), reduced(x, axes, np.multiply, 1.0))


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((4, 5, 6), (0, 2)),
        ((4, 5, 6), (0, 1, 2)),
        ((4, 5, 6), (0, 1)),
        ((40, 300, 5), (1,)),
        ((2, 1500, 37), (1,)),
        ((40, 3, 50), (0, 2)),
        ((3, 1, 70), (1,)),
        ((1, 1), (0, 1)),
        ((50, 2, 3, 30), (0, 3)),
        ((3, 0, 4), (1,)),
        ((0, 3), (1,)),
    ],
)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_the_order_over_several_axes(shape, axes, dtype):
    x = draw(shape, dtype)
    same(run(lambda x: ops.sum_(x, axes), x), reduced(x, axes, np.add, 0.0))


def test_the_order_is_that_of_the_operand_not_of_its_memory():
    """A view of an array reduces as its copy does."""
    x = draw((60, 1100), "f8")
    same(run(lambda x: ops.sum_(transpose(x), 0), x), reduced(x.T, (0,), np.add, 0.0))
    same(run(lambda x: ops.sum_(transpose(x), 1), x), reduced(x.T, (1,), np.add, 0.0))
    same(run(lambda x: ops.sum_(ops.flip(x, 1), 1), x), reduced(x[:, ::-1], (1,), np.add, 0.0))
    y = x.reshape(2, 33000)
    same(run(lambda x: ops.sum_(reshape(x, (2, 33000)), 1), x), reduced(y, (1,), np.add, 0.0))


def test_an_expression_reduces_as_its_stored_value_does():
    x = draw((7, 2000), "f8")
    inside = run(lambda x: ops.sum_(ops.exp(x * 1e-3) + x, 1), x)
    stored = run(lambda x: ops.exp(x * 1e-3) + x, x)
    same(inside, reduced(stored, (1,), np.add, 0.0))


BODIES = {  # by how often the code of a row holds them: thrice, twice, once
    "light": lambda x: x * x + 1.0,
    "medium": lambda x: ops.exp(x * 1e-3),
    "heavy": lambda x: ops.exp(ops.sin(x * 1e-3) + ops.cos(x)) + ops.tanh(x),
}


@pytest.mark.parametrize("body", BODIES)
def test_rows_of_every_length_for_bodies_of_every_size(body):
    """Whole vectors and the last ones: each element counts once, and is stored where asked."""
    for n in (1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 1000, 1023, 1024, 1025, 1040):
        x = draw((3, n), "f8", n)
        stored = run(BODIES[body], x)
        expected = reduced(stored, (1,), np.add, 0.0)
        same(run(lambda x: ops.sum_(BODIES[body](x), 1), x), expected)
        also, total = run(lambda x: (BODIES[body](x), ops.sum_(BODIES[body](x), 1)), x)
        same(also, stored)
        same(total, expected)


def test_the_order_does_not_depend_on_what_else_is_reduced():
    """Alone, in company of other rows, and beside other reductions: the same bits."""
    x = draw((33, 1300), "f8")
    together, _, _ = run(lambda x: (ops.sum_(x, 1), ops.max_(x, 1), ops.sum_(x * x, 1)), x)
    for k in (0, 17, 32):
        same(run(lambda r: ops.sum_(r, 0), x[k]), together[k])
    columns = run(lambda x: ops.sum_(x, 0), np.ascontiguousarray(x.T))
    same(columns, together)


def test_single_precision_rounds_once():
    x = np.full(3000, 0.1, np.float32)
    assert run(lambda x: ops.sum_(x), x) == np.float32(np.float64(np.float32(0.1)) * 3000)
    big = np.array([3e38, 3e38, -3e38], np.float32)
    assert run(lambda x: ops.sum_(x), big) == np.float32(3e38)  # no overflow on the way


# ------------------------------------------------------------------------- few elements, unrolled


FEW = {
    "rows": (lambda n: (41, n), (1,)),
    "columns": (lambda n: (n, 41), (0,)),
    "between": (lambda n: (37, n, 3), (1,)),
    "blocks": (lambda n: (19, 2, n, 2), (2,)),
}


@pytest.mark.parametrize("layout", FEW)
def test_few_elements_are_unrolled(layout):
    shape, axes = FEW[layout]
    for n, few in ((1, False), (2, True), (8, True), (9, False)):  # one element is no loop
        (nest,) = nests(schedule_of(lambda x: ops.sum_(x, axes), (shape(n), "f8")))
        assert (form_of(nest).strategy == "unrolled") == few or n == 1


@pytest.mark.parametrize(
    ("layout", "dtype"),
    [*[(x, "f8") for x in FEW], *[(x, d) for x in list(FEW)[:2] for d in ("f4", "c16", "i8")]],
)
def test_few_elements_in_the_order_of_the_text(layout, dtype):
    """Sums, what they are made of stored beside them, and what is made of them."""
    shape, axes = FEW[layout]
    for n in (2, 3, 8):
        x = draw(shape(n), dtype, n)

        def program(x):
            total = ops.sum_(x * x, axes)
            return ops.sum_(x, axes), ops.prod(x, axes), x * x, total, total * 3

        got = run(program, x)
        with np.errstate(all="ignore"):
            square = run(lambda x: x * x, x)
            expected = [reduced(x, axes, np.add, 0.0), None, square]
            expected.append(reduced(square, axes, np.add, 0.0))
        for found, right in zip(got, expected, strict=False):
            if right is not None:
                same(found, right)
        same(got[4], run(lambda t: t * 3, got[3]))
        if dtype in ("f8", "i8"):
            same(got[1], reduced(x, axes, np.multiply, 1))


def test_few_zeros_and_nan():
    """A sum begins at +0: of negative zeros it is +0; NaN and infinities come through."""
    x = np.full((41, 3), -0.0)
    x[5, 1], x[7, 2], x[9, 0], x[9, 1] = np.nan, np.inf, np.inf, -np.inf
    total = run(lambda x: ops.sum_(x, 1), x)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(total, x.sum(1), equal_nan=True)
    assert not np.signbit(total[[0, 20, 40]]).any()


@pytest.mark.parametrize("layout", FEW)
def test_extrema_of_few(layout):
    shape, (axis,) = FEW[layout]
    for n in (1, 2, 5, 8):
        x = np.random.default_rng(n).integers(-4, 4, shape(n)).astype(float)  # with ties
        x[np.random.default_rng(n).random(x.shape) < 0.1] = np.nan
        got = run(lambda x: (ops.max_(x, axis), ops.argmax(x, axis), ops.argmin(x, axis)), x)
        assert np.array_equal(got[0], x.max(axis), equal_nan=True)
        assert np.array_equal(got[1], x.argmax(axis))
        assert np.array_equal(got[2], x.argmin(axis))
        y = x > 0
        some, every = run(lambda y: (ops.any_(y, axis), ops.all_(y, axis)), y)
        assert np.array_equal(some, y.any(axis))
        assert np.array_equal(every, y.all(axis))


def test_few_elements_by_run_time_places_and_in_pieces():
    """Gathered operands, guards of a padding, a vector that is not full, three threads."""
    rng = np.random.default_rng(0)
    table, places = rng.standard_normal(50), rng.integers(0, 50, (5003, 3))
    x = rng.standard_normal((5001, 3))

    def program(t, i, x):
        gathered = ops.gather(t, i)
        return ops.sum_(gathered, 1), ops.sum_(ops.pad(x, 1.5, (1, 0), (1, 0)), 1)

    args = [table, places, x]
    plan = plan_of(program, *args)
    padded = np.pad(x, [(1, 1), (0, 0)], constant_values=1.5)
    for threads in (1, 3):
        first, second = plan.run(args, threads)
        same(first, reduced(table[places], (1,), np.add, 0.0))
        same(second, reduced(padded, (1,), np.add, 0.0))


# -------------------------------------------------------------------------------- integers, bools


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u4", "u8"])
def test_integers_wrap_in_their_own_type(dtype):
    from tilegrad.ir.graph import make
    from tilegrad.ir.ops import OPS

    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, (5, 1500), dtype, endpoint=True)
    for name, reference in (("sum", np.sum), ("prod", np.prod)):
        for axes in ((1,), (0,)):
            got = run(lambda x, n=name, a=axes: make(OPS[n], (x,), axes=a), x)
            same(got, reference(x, axis=axes, dtype=dtype))


def test_any_and_all():
    for n in (0, 1, 16, 17, 1500):
        x = np.random.default_rng(n).random((40, n)) < 1e-2
        y = ~x
        for axis in (0, 1):
            got = run(lambda x, y, a=axis: (ops.any_(x, a), ops.all_(y, a)), x, y)
            same(got[0], x.any(axis))
            same(got[1], y.all(axis))


def test_a_sum_of_bools_counts():
    x = np.random.default_rng(0).random((3, 2000)) < 0.5
    same(run(lambda x: ops.sum_(x, 1), x), x.sum(1))


# ---------------------------------------------------------------------------------------- extrema


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i1", "u8", "?"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_extrema_and_their_places(layout, dtype):
    shape, (axis,), _ = LAYOUTS[layout]
    for n in (1, 8, 17, 1025, 3000):
        x = np.random.default_rng(n).integers(0, 2 if dtype == "?" else 100, shape(n))
        x = (x - (50 if dtype[0] in "fi" else 0)).astype(dtype)  # with many ties

        def four(x):
            places = ops.argmax(x, axis), ops.argmin(x, axis)
            return ops.max_(x, (axis,)), ops.min_(x, (axis,)), *places

        expected = x.max(axis), x.min(axis), x.argmax(axis), x.argmin(axis)
        for got, right in zip(run(four, x), expected, strict=True):
            same(got, np.asarray(right))


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("value", [-np.inf, np.inf])
def test_extrema_of_infinities_have_the_first_place(layout, value):
    shape, (axis,), _ = LAYOUTS[layout]
    x = np.full(shape(40), value)
    most, where, least, there = run(
        lambda x: (ops.max_(x, axis), ops.argmax(x, axis), ops.min_(x, axis), ops.argmin(x, axis)),
        x,
    )
    assert (most == value).all()
    assert (least == value).all()
    assert not where.any()
    assert not there.any()


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_nan_wins_and_the_first_one_is_the_place(layout, dtype):
    shape, (axis,), _ = LAYOUTS[layout]
    rng = np.random.default_rng(0)
    for n in (5, 20, 1100):
        x = rng.standard_normal(shape(n)).astype(dtype)
        x[rng.random(x.shape) < 3 / n] = np.nan
        most, where, least, there = run(
            lambda x: (
                ops.max_(x, axis),
                ops.argmax(x, axis),
                ops.min_(x, axis),
                ops.argmin(x, axis),
            ),
            x,
        )
        assert np.array_equal(most, x.max(axis), equal_nan=True)
        assert np.array_equal(least, x.min(axis), equal_nan=True)
        assert np.array_equal(where, x.argmax(axis))
        assert np.array_equal(there, x.argmin(axis))


@pytest.mark.parametrize("layout", ["one row", "rows", "columns"])
def test_zeros_of_both_signs(layout):
    """max(-0, +0) is +0 and min is -0, wherever they stand; argmax takes the first zero."""
    shape, (axis,), _ = LAYOUTS[layout]
    for n in (2, 9, 30):
        for place in range(0, n, 4):
            x = np.full(shape(n), -0.0)
            np.moveaxis(x, axis, 0)[place] = 0.0
            most, where = run(lambda x: (ops.max_(x, axis), ops.argmax(x, axis)), x)
            least, there = run(lambda x: (ops.min_(x, axis), ops.argmin(x, axis)), -x)
            assert not np.signbit(most).any()
            assert np.signbit(least).all()
            assert not where.any()
            assert not there.any()


def slow_extremum(values, largest):
    """max or min of one row by the text of numerics 3 and 4: +0 above -0, NaN above all."""
    if np.isnan(values).any():
        return values.dtype.type(np.nan)
    best = values[0]
    for x in values[1:]:
        ahead = x > best if largest else x < best
        zeros = x == best == 0 and np.signbit(best) == largest  # the other zero may be better
        best = x if ahead or (zeros and np.signbit(x) != largest) else best
    return best


SIGNALLING = {"f8": (0x7FF0000000000001, 0xFFF0000000000001), "f4": (0x7F800001, 0xFF800001)}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_extrema_of_special_values_bit_for_bit(layout, dtype):
    """All signs and sizes of numbers, infinities, subnormals, zeros; NaN of either sign, quiet or
    not, wherever they stand."""
    shape, (axis,), _ = LAYOUTS[layout]
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    usual = [1.5, -1.5, info.max, -info.max, info.tiny, -info.tiny, 3e-39, -3e-39, 0.0, -0.0]
    nans = np.array(SIGNALLING[dtype], f"u{info.dtype.itemsize}").view(dtype)
    pools = {
        "all": [*usual, np.inf, -np.inf],
        "negative": [-1.5, -info.max, -info.tiny, -3e-39, -0.0],
        "positive": [1.5, info.max, info.tiny, 3e-39, 0.0],
        "zeros": [0.0, -0.0],
        "infinities": [np.inf, -np.inf],
        "NaN": [np.nan, -np.nan, *nans, 1.0, -np.inf],
    }
    lengths = (1, 2, 8, 15, 17, 33, 1030, *([70_000] if layout == "one row" else []))
    for pool in pools.values():
        for n in lengths:
            x = rng.choice(np.array(pool, dtype), shape(n))
            x[rng.random(x.shape) < 0.3] = x.flat[0]
            got = run(lambda x: (ops.max_(x, (axis,)), ops.min_(x, (axis,))), x)
            for values, largest in zip(got, (True, False), strict=True):
                right = np.apply_along_axis(slow_extremum, axis, x, largest)
                assert np.array_equal(np.isnan(values), np.isnan(right))
                known = ~np.isnan(right)
                assert values[known].tobytes() == right[known].tobytes()


def test_a_sum_with_nan_or_both_infinities_is_nan():
    x = np.zeros((3, 50))
    x[0, 7], x[1, 3], x[1, 40] = np.nan, np.inf, -np.inf
    x[2, 9] = -np.inf
    got = run(lambda x: ops.sum_(x, 1), x)
    assert np.isnan(got[:2]).all()
    assert got[2] == -np.inf


# --------------------------------------------------------------------------- around the reduction


def test_a_reduction_of_a_broadcast_reads_the_same_element():
    v = draw((9,), "f8")
    got = run(lambda v: ops.sum_(broadcast_to(v, (1100, 9)), 0), v)
    same(got, reduced(np.broadcast_to(v, (1100, 9)), (0,), np.add, 0.0))


def test_a_reduction_of_padding_and_concat():
    x = draw((6, 30), "f8")

    def function(x):
        joined = ops.concat(
            [ops.pad(x, 1.0, (0, 2), (0, 3)), ops.flip(ops.pad(x, 0, (0, 0), (0, 5)), 0)], 1
        )
        return ops.sum_(joined, 1), ops.sum_(joined, 0)

    joined = np.concatenate(
        [np.pad(x, ((0, 0), (2, 3)), constant_values=1.0), np.pad(x, ((0, 0), (0, 5)))[::-1]], 1
    )
    rows, columns = run(function, x)
    same(rows, reduced(joined, (1,), np.add, 0.0))
    same(columns, reduced(joined, (0,), np.add, 0.0))


def test_a_reduction_of_gathered_rows():
    x = draw((50, 40), "f8")
    i = np.random.default_rng(0).integers(-50, 50, 1200)
    got = run(lambda x, i: ops.sum_(ops.gather(x, i), 0), x, i)
    same(got, reduced(x[i], (0,), np.add, 0.0))


def test_softmax_is_one_pass_a_step_and_the_rows_sum_to_one():
    x = draw((4, 300), "f8") * 1e-2

    def softmax(x):
        e = ops.exp(x - broadcast_to(reshape(ops.max_(x, 1), (4, 1)), (4, 300)))
        return e / broadcast_to(reshape(ops.sum_(e, 1), (4, 1)), (4, 300))

    e = np.exp(x - x.max(1, keepdims=True))
    got = run(softmax, x)
    np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=4e-15)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_order_is_the_same_on_several_threads(layout, threads):
    shape, axes, _ = LAYOUTS[layout]
    n = 300_001 if layout == "one row" else 9_001
    x = draw(shape(n), "f8")
    plan = plan_of(lambda x: ops.sum_(ops.exp(x * 1e-4) + x, axes), x)
    same(plan.run([x], threads)[0], plan.run([x], 1)[0])
