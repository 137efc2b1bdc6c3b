"""Running sums, products, extrema and recurrences along an axis: one place after the other."""

from __future__ import annotations

import numpy as np
import pytest
from guarded import run_guarded
from plans import graph_of, nests, plan_of, run, same, schedule_of

from tilegrad.ir import ops
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops.shape import transpose
from tilegrad.kernels import plan as plan_module
from tilegrad.kernels.llvm.form import form_of

SCANS = {
    "cumsum": (ops.cumsum, np.cumsum),
    "cumprod": (ops.cumprod, np.cumprod),
    "cummax": (ops.cummax, np.maximum.accumulate),
    "cummin": (ops.cummin, np.minimum.accumulate),
}
SHAPES = [
    ((17,), 0),
    ((1,), 0),
    ((1000,), 0),
    ((5, 40), 1),
    ((40, 21), 0),
    ((3, 20, 9), 1),
    ((2, 1), 0),
]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", SCANS)
def test_as_numpys(name, reverse):
    scan, reference = SCANS[name]
    for shape, axis in SHAPES:
        x = np.random.default_rng(0).standard_normal(shape)
        got = run(lambda x, a=axis: scan(x, a, reverse=reverse), x)
        turned = np.flip(x, axis) if reverse else x
        expected = reference(turned, axis=axis)
        same(got, np.flip(expected, axis) if reverse else expected)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i1", "i8", "u4", "?"])
@pytest.mark.parametrize("name", SCANS)
def test_dtypes_have_the_bits_of_the_reference(name, dtype):
    if dtype[0] == "c" and name in ("cummax", "cummin"):
        return  # complex numbers have no order: the type rule refuses it
    rng = np.random.default_rng(0)
    for shape, axis in (((50,), 0), ((40, 21), 0), ((5, 40), 1)):
        x = rng.integers(0, 2 if dtype == "?" else 4, shape).astype(dtype)
        if dtype[0] in "fc":
            x = x + np.asarray(rng.standard_normal(shape), x.real.dtype)
        graph = graph_of(lambda x, a=axis: SCANS[name][0](x, a), x)
        got = plan_module.compile_graph(graph).run([x])
        (expected,) = interpret_graph(graph, [x])
        if dtype == "c8":
            np.testing.assert_allclose(got[0], expected, rtol=1e-5, atol=1e-5)
        elif dtype == "c16" and name == "cumprod":
            np.testing.assert_allclose(got[0], expected, rtol=1e-12)
        else:
            same(got[0], expected)


@pytest.mark.parametrize("layout", [((60,), 0), ((60, 9), 0), ((9, 60), 1)])
def test_nan_and_signed_zeros(layout):
    shape, axis = layout
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    x[rng.random(shape) < 0.02] = np.nan
    for name, (scan, reference) in SCANS.items():
        got = run(lambda x, s=scan: s(x, axis), x)
        assert np.array_equal(got, reference(x, axis=axis), equal_nan=True), name
    zeros = np.where(rng.random(shape) < 0.5, 0.0, -0.0)
    top, bottom = run(lambda x: (ops.cummax(x, axis), ops.cummin(x, axis)), zeros)
    seen = np.maximum.accumulate(~np.signbit(zeros), axis=axis)
    assert np.array_equal(~np.signbit(top), seen)
    assert np.array_equal(np.signbit(bottom), np.maximum.accumulate(np.signbit(zeros), axis=axis))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("layout", [((60,), 0), ((60, 19), 0), ((9, 60), 1), ((1, 5), 1)])
def test_a_linear_recurrence(layout, reverse):
    shape, axis = layout
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, shape), rng.standard_normal(shape)
    got = run(lambda a, b: ops.linear_recurrence(a, b, axis=axis, reverse=reverse), a, b)
    a, b, out = (np.moveaxis(v, axis, 0) for v in (a, b, np.empty(shape)))
    if reverse:
        a, b, out = a[::-1], b[::-1], out[::-1]
    for k in range(len(b)):
        out[k] = b[k] if k == 0 else a[k] * out[k - 1] + b[k]
    got = np.moveaxis(got, axis, 0)
    np.testing.assert_allclose(got[::-1] if reverse else got, out, rtol=1e-13, atol=1e-13)


def test_a_scan_of_an_expression_and_what_follows():
    x = np.random.default_rng(0).standard_normal((7, 30))

    def function(x):
        y = ops.cumsum(transpose(x) * 2.0, 0)
        return y, ops.sum_(y, 1), ops.flip(y, 0) - 1.0

    y, total, flipped = run(function, x)
    expected = np.cumsum(x.T * 2.0, 0)
    same(y, expected)
    same(flipped, expected[::-1] - 1.0)
    np.testing.assert_allclose(total, expected.sum(1), rtol=1e-13)


def test_a_scan_of_gathered_elements_is_checked():
    plan = plan_of(lambda x, i: ops.cumsum(ops.gather(x, i), 0), np.arange(5.0), np.zeros(30, int))
    i = np.arange(30) % 5
    same(plan.run([np.arange(5.0), i])[0], np.cumsum(i.astype(float)))
    i[29] = 5
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        plan.run([np.arange(5.0), i])


def test_empty_scans():
    for shape, axis in (((0,), 0), ((0, 4), 0), ((4, 0), 0), ((4, 0), 1)):
        same(run(lambda x, a=axis: ops.cumsum(x, a), np.zeros(shape)), np.zeros(shape))


def test_scans_side_by_side_and_along_rows_take_vectors_and_scalars():
    def strategy(shape, axis):
        (nest,) = nests(schedule_of(lambda x: ops.cumsum(x, axis), (shape, "f8")))
        return form_of(nest).strategy

    assert strategy((40, 21), 0) == "scan columns"
    assert strategy((40, 21), 1) == "scan rows"
    assert strategy((40,), 0) == "scan rows"


@pytest.mark.parametrize("name", SCANS)
def test_a_scan_touches_only_its_own_memory(name):
    for shape, axis in SHAPES:
        for reverse in (False, True):
            x = np.random.default_rng(0).standard_normal(shape)
            plan = plan_of(lambda x, a=axis, r=reverse: SCANS[name][0](x, a, reverse=r), x)
            (expected,) = plan.run([x])
            for at_end in (True, False):
                (got,) = run_guarded(plan, [x], at_end=at_end)
                same(got, expected)


@pytest.mark.parametrize("shape", [(300, 301), (90_000,)])
def test_the_same_bits_on_every_number_of_threads(shape):
    x = np.random.default_rng(0).standard_normal(shape)
    for axis in range(x.ndim):
        plan = plan_of(lambda x, a=axis: ops.exp(ops.cumsum(ops.sin(x), a) * 1e-3), x)
        expected = plan.run([x], 1)[0]
        for threads in (2, 3):
            same(plan.run([x], threads)[0], expected)
