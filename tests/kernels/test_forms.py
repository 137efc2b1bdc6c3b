"""Forms: what the code of a nest depends on. A new extent is a new frame, not a new compilation."""

from __future__ import annotations

import numpy as np
import pytest
from plans import graph_of, nests, plan_of, run, schedule_of

from tilegrad.ir import ops
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops.shape import broadcast, reshape, transpose
from tilegrad.kernels import machine
from tilegrad.kernels.llvm.form import form_of
from tilegrad.kernels.llvm.frame import BAKED


def keys(function, *shapes):
    return [form_of(n).key for n in nests(schedule_of(function, *((s, "f8") for s in shapes)))]


def softmax(x):
    e = ops.exp(x - broadcast(ops.max_(x, 1), x.shape, (0,)))
    return e / broadcast(ops.sum_(e, 1), x.shape, (0,))


SHARED = {
    "points": (lambda x: ops.exp(x) + 1.0, [(100,)], [(12345,)]),
    "two loops": (lambda x: transpose(x) + 1.0, [(40, 50)], [(99, 777)]),
    "a pad": (lambda x: ops.pad(x, 0.0, (1, 1), (1, 1)), [(40, 50)], [(99, 777)]),
    "broadcast": (lambda x, y: x * y, [(40, 50), (50,)], [(99, 777), (777,)]),
    "slices": (lambda x: ops.slice_axis(x, 0, 20, 90) * 2.0, [(100,)], [(200,)]),
    "rows": (lambda x: ops.sum_(x, 1), [(40, 50)], [(99, 777)]),
    "long rows": (lambda x: ops.sum_(x, 1), [(40, 5000)], [(99, 7770)]),
    "columns": (lambda x: ops.sum_(x, 0), [(40, 50)], [(99, 777)]),
    "softmax": (softmax, [(40, 70)], [(99, 777)]),
}


@pytest.mark.parametrize("name", SHARED)
def test_two_extents_share_their_code(name):
    function, first, second = SHARED[name]
    assert keys(function, *first) == keys(function, *second)
    a = plan_of(function, *((s, "f8") for s in first))
    known = len(machine._CACHE)
    b = plan_of(function, *((s, "f8") for s in second))
    assert len(machine._CACHE) == known
    assert b.code is a.code


def test_the_number_of_arrays_is_no_part_of_the_code():
    """It took minutes to compile a plan of 2000 arrays, and each number had a code of its own."""
    data = [np.arange(5.0) + k for k in range(300)]
    few, many = (plan_of(lambda *xs: xs[-1] * 2.0, *data[:n]) for n in (3, 300))
    assert few.code is many.code
    for n, plan in ((3, few), (300, many)):
        assert np.array_equal(plan.run(data[:n])[0], 2.0 * data[n - 1])
    every = plan_of(lambda *xs: tuple(x * 2.0 for x in xs), *data)
    for k, result in enumerate(every.run(data)):
        assert np.array_equal(result, 2.0 * data[k])


@pytest.mark.parametrize("name", SHARED)
def test_shared_code_has_the_values_of_code_of_its_own(name):
    """Run the second extent with code that was made for the first, against NumPy's view of it."""
    function, first, second = SHARED[name]
    rng = np.random.default_rng(0)
    for shapes in (first, second):
        arrays = [rng.standard_normal(s) for s in shapes]
        expected = graph_of(function, *arrays)
        np.testing.assert_allclose(
            run(function, *arrays), interpret_graph(expected, arrays)[0], rtol=1e-12, atol=1e-13
        )


DIFFERENT = {
    "another op": (lambda x: ops.exp(x), lambda x: ops.log(x)),
    "another constant": (lambda x: x * 0.0, lambda x: x * -0.0),
    "another view": (lambda x: x + 1.0, lambda x: ops.flip(x, 0) + 1.0),
    "another use": (lambda x: x - x * 2.0, lambda x: x * 2.0 - x),
    "another monoid": (lambda x: ops.max_(x, 0), lambda x: ops.min_(x, 0)),
    "another axis": (lambda x: ops.sum_(x, 0), lambda x: ops.sum_(x, 1)),
    "another store": (lambda x: transpose(x), lambda x: ops.flip(transpose(x), 0)),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_code_has_different_keys(name):
    first, second = DIFFERENT[name]
    assert keys(first, (40, 40)) != keys(second, (40, 40))


def test_another_dtype_is_another_form():
    function = lambda x: x + x  # noqa: E731
    forms = {
        form_of(nests(schedule_of(function, ((40,), d)))[0]).key
        for d in ("f8", "f4", "i8", "u8", "c8")
    }
    assert len(forms) == 5


def test_small_extents_are_part_of_the_code():
    function = lambda x: transpose(x) + 1.0  # noqa: E731
    assert keys(function, (3, 50)) != keys(function, (4, 50))
    assert keys(function, (BAKED + 1, 50)) == keys(function, (BAKED + 2, 51))


def test_equal_extents_may_not_be_read_as_one_when_they_differ():
    """A square matrix has one number where another shape needs two."""
    function = lambda x: ops.flip(transpose(x), 0) * 2.0  # noqa: E731
    for shape in ((40, 40), (40, 41), (41, 40), (1600, 40)):
        x = np.random.default_rng(0).standard_normal(shape)
        assert np.array_equal(run(function, x), x.T[::-1] * 2.0)


def test_extents_that_equal_other_numbers_of_the_nest():
    """Strides, offsets, extents and error numbers that happen to agree stay apart."""
    for n in (17, 18, 34, 51, 68, 1024, 1025):
        x = np.arange(float(17 * n)).reshape(17, n)
        i = np.array([16, 0, -17])
        got = run(
            lambda x, i: ops.gather(ops.slice_axis(x, 1, 17, None) if x.shape[1] > 17 else x, i),
            x,
            i,
        )
        assert np.array_equal(got, (x[:, 17:] if n > 17 else x)[i])
        with pytest.raises(IndexError, match="index 17 is out of bounds"):
            run(lambda x, i: ops.gather(x, i), x, np.array([17]))


def test_steps_of_one_form_share_a_function():
    def function(x):
        rows = [ops.sum_(ops.slice_axis(x, 1, 20 * k + 17, 20 * k + 57), 1) for k in range(1, 9)]
        return tuple(rows)

    plan = plan_of(function, ((40, 400), "f8"))
    assert len(plan.functions) <= len(plan.schedule.steps)
    x = np.random.default_rng(0).standard_normal((40, 400))
    for k, got in enumerate(plan.run([x]), 1):
        np.testing.assert_allclose(
            got, x[:, 20 * k + 17 : 20 * k + 57].sum(1), rtol=1e-13, atol=1e-13
        )


def test_the_form_does_not_depend_on_names_or_numbers_of_buffers():
    def second_of(function):
        return lambda x, y: function(y)

    first = keys(lambda x: ops.exp(x) + 1.0, (40,))
    assert keys(second_of(lambda x: ops.exp(x) + 1.0), (7,), (40,)) == first


def test_a_reshape_of_another_split_is_run_with_its_own_divisor():
    for shape in ((20, 30), (30, 20), (24, 25), (25, 24)):
        x = np.arange(600.0).reshape(20, 30)
        got = run(lambda x, s=shape: reshape(transpose(x), s) * 2.0, x)
        assert np.array_equal(got, x.T.reshape(shape) * 2.0)


def _scaled_rows(x, a, b):
    """Two values a row beside one element: the vectors still run along the row."""
    return ops.sum_(x * broadcast(a, x.shape, (0,)) + broadcast(b, x.shape, (0,)), 1)


STRATEGIES = {
    "rows": (lambda x: ops.sum_(x, 1), [((40, 100), "f8")]),
    "columns": (lambda x: ops.sum_(x, 0), [((40, 100), "f8")]),
    "rows with values": (_scaled_rows, [((40, 100), "f8"), ((40,), "f8"), ((40,), "f8")]),
    "columns of rows picked": (
        lambda x, i: ops.sum_(ops.gather(x, i), 0),
        [((40, 100), "f8"), ((50,), "i8")],
    ),
    "rows of rows picked": (
        lambda x, i: ops.sum_(ops.gather(x, i), 1),
        [((40, 100), "f8"), ((50,), "i8")],
    ),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_vectors_run_along_memory(name):
    function, types = STRATEGIES[name]
    nest = nests(schedule_of(function, *types))[-1]
    assert form_of(nest).strategy == name.split()[0]
