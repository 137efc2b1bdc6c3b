"""Rows and columns that are reduced in groups, and rows that are turned in registers.

The order of sums is that of numerics 7 whatever runs; ``reduced`` reads it from the text.
"""

from __future__ import annotations

import numpy as np
import pytest
from llvmlite import ir
from order_of_sums import WIDE, draw, reduced
from plans import nests, plan_of, run, same, schedule_of

from tilegrad.ir import ops
from tilegrad.ir.ops.slicing import slice_axis
from tilegrad.kernels import flatten
from tilegrad.kernels.llvm.form import form_of
from tilegrad.kernels.llvm.reduce import ReduceEmitter
from tilegrad.kernels.llvm.unrolled import UnrolledEmitter

LENGTHS = (9, 16, 30, 31, 32, 33, 39, 40, 47, 48, 64, 100, 500, 1023, 1024)
ACROSS = (8, 19, 75)  # rows or columns: whole groups, some left, part of a vector


def by_rows(x, v):
    return ops.dot(x, v, ((1,), (0,)))


def by_columns(x, v):
    return ops.dot(x, v, ((0,), (0,)))


def dotted(x, y, axis):
    """Products in the accumulator's dtype, their sums in order, rounded once."""
    wide = WIDE.get(x.dtype.str[1:], x.dtype)
    factors = x.astype(wide), np.broadcast_to(y, x.shape).astype(wide)
    return reduced(run(lambda x, y: x * y, *factors), (axis,), np.add, 0).astype(x.dtype)


@pytest.fixture(autouse=True)
def _as_in_a_loop(monkeypatch):
    """Nests outside of loops do not run in groups: here they do."""
    monkeypatch.setattr(flatten, "form_of", lambda nest, often: form_of(nest, often=True))


WAYS = {"rows": (by_rows, 1), "columns": (by_columns, 0)}


def in_groups(function, *types):
    """Whether the first nest of a program runs in groups."""
    form = form_of(nests(schedule_of(function, *types))[0], often=True)
    emitter = ReduceEmitter(ir.Module(), "nest", form)
    if form.strategy == "rows":
        return emitter.has_groups()
    return form.strategy == "columns" and emitter.has_column_groups()


@pytest.mark.parametrize("way", WAYS)
def test_what_runs_in_groups(way):
    function, axis = WAYS[way]

    def shape(across, n):
        return (across, n) if axis else (n, across)

    assert in_groups(function, (shape(75, 64), "f8"), ((64,), "f8"))
    assert not in_groups(function, (shape(75, 1025), "f8"), ((1025,), "f8"))  # blocks on a stack
    assert in_groups(lambda x: ops.sum_(x, axis), (shape(75, 64), "f8")) == (way == "columns")
    assert not in_groups(lambda x: ops.argmax(x, axis), (shape(75, 64), "f8"))
    assert not in_groups(lambda x: ops.sum_(ops.exp(x), axis), (shape(75, 64), "f8"))


def test_rows_that_lie_pages_apart_run_one_after_the_other():
    assert not in_groups(by_columns, ((40, 512), "f8"), ((40,), "f8"))
    x, v = draw((40, 512), "f8"), draw((40,), "f8", 1)
    same(run(by_columns, x, v), reduced(x * v[:, None], (0,), np.add, 0.0))


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i4"])
@pytest.mark.parametrize("way", WAYS)
def test_a_matrix_by_a_vector_is_in_the_order_of_the_text(way, dtype):
    function, axis = WAYS[way]
    for n in LENGTHS:
        for across in ACROSS:
            x = draw((across, n) if axis else (n, across), dtype, n)
            v = draw((n,), dtype, across)
            same(run(function, x, v), dotted(x, v if axis else v[:, None], axis))


@pytest.mark.parametrize("way", WAYS)
def test_extrema_truths_and_products_in_groups(way):
    _, axis = WAYS[way]
    for n in (9, 40, 600):
        x = draw((21, n) if axis else (n, 43), "f8", n)
        x[x < -100] = np.nan
        near = 1 + 1e-3 * np.nan_to_num(x)

        def program(x, y):
            found = (
                ops.max_(x, axis),
                ops.any_(ops.lt(x, 0.0), axis),
                ops.sum_(ops.lt(x, 0.0), axis),
            )
            return *found, ops.prod(y * y, axis)

        largest, some, count, product = run(program, x, near)
        assert np.array_equal(largest, x.max(axis), equal_nan=True)
        same(some, (x < 0).any(axis))
        same(count, (x < 0).sum(axis))
        same(product, reduced(near * near, (axis,), np.multiply, 1.0))


@pytest.mark.parametrize("way", WAYS)
def test_what_is_made_of_the_results_of_a_group(way):
    """Stored apart, in another order, and with what was known before the reduction."""
    function, axis = WAYS[way]
    for across in ACROSS:
        x = draw((across, 37) if axis else (37, across), "f8")
        v, y = draw((37,), "f8", 1), draw((across,), "f8", 2)
        total = reduced(x * (v if axis else v[:, None]), (axis,), np.add, 0.0)

        def program(x, v, y):
            t = function(x, v)
            return t * y + 1.0, ops.flip(t, 0), t

        scaled, turned, plain = run(program, x, v, y)
        same(scaled, total * y + 1.0)
        same(turned, total[::-1])
        same(plain, total)


@pytest.mark.parametrize("way", WAYS)
def test_groups_of_a_batch_and_of_views(way):
    function, axis = WAYS[way]
    x, v = draw((3, 20, 40), "f8"), draw((3, 40 if axis else 20), "f8", 1)
    got = run(lambda x, v: ops.dot(x, v, ((1 + axis,), (1,)), ((0,), (0,))), x, v)
    for k in range(3):
        one = v[k] if axis else v[k][:, None]
        same(got[k], reduced(x[k] * one, (axis,), np.add, 0.0))
    rows = x[0, ::-1, 3:39]
    w = draw((36 if axis else 20,), "f8", 2)
    got = run(lambda x, w: function(slice_axis(ops.flip(x, 0), 1, 3, 39), w), x[0], w)
    same(got, reduced(rows * (w if axis else w[:, None]), (axis,), np.add, 0.0))


@pytest.mark.parametrize("way", WAYS)
def test_groups_on_several_threads(way):
    function, axis = WAYS[way]
    x = draw((40_003, 20) if axis else (100, 400), "f4")
    v = draw((20 if axis else 100,), "f4", 1)
    plan = plan_of(function, x, v)
    first = plan.run([x, v], 1)[0]
    same(first, dotted(x, v if axis else v[:, None], axis))
    for threads in (2, 3):
        same(plan.run([x, v], threads)[0], first)


# ------------------------------------------------------------------------------- turned by shuffles


def lines(function, *types):
    """How many loads of the one nest of a program go along rows."""
    (nest,) = nests(schedule_of(function, *types))
    emitter = UnrolledEmitter(ir.Module(), "nest", form_of(nest))
    return sum(emitter._is_line(n) for n in range(len(nest.tape)))


def test_which_loads_are_turned():
    def sums(x):
        return ops.sum_(x * 2.0, 1)

    assert lines(sums, ((41, 3), "f8")) == 1
    assert lines(lambda x: sums(slice_axis(x, 1, 1, 5)), ((41, 9), "f8")) == 1
    assert (
        lines(lambda x: sums(slice_axis(x, 1, 1, 4)), ((41, 9), "f8")) == 0
    )  # rows of 3 with gaps
    assert lines(lambda x: ops.sum_(x, 0), ((3, 41), "f8")) == 0
    assert lines(sums, ((41, 3), "i2")) == 0


@pytest.mark.parametrize(
    ("n", "dtype"),
    [*[(n, "f8") for n in range(2, 9)], *[(n, d) for n in (3, 8) for d in ("f4", "i8", "c8")]],
)
def test_rows_of_a_few_elements(n, dtype):
    for rows in (16, 41) if dtype == "f8" else (41,):
        x, v = draw((rows, n), dtype, n), draw((n,), dtype, 1)
        same(run(by_rows, x, v), dotted(x, v, 1))
        wide = draw((rows, n + 3), dtype, n)
        part = np.ascontiguousarray(wide[:, 2 : n + 2])
        same(
            run(lambda x: ops.sum_(slice_axis(x, 1, 2, n + 2), 1), wide),
            reduced(part, (1,), np.add, 0),
        )


@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_small_matrices_by_vectors(n):
    x, v = draw((101, n, n), "f8"), draw((101, n), "f8", 1)
    batch = ((0,), (0,))
    for axis in (1, 2):
        got = run(lambda x, v, a=axis: ops.dot(x, v, ((a,), (1,)), batch), x, v)
        factors = v[:, None, :] if axis == 2 else v[:, :, None]
        same(got, reduced(x * factors, (axis,), np.add, 0.0))
