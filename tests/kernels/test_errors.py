"""What refuses its operands at run time says so, and only for elements that are used."""

from __future__ import annotations

import numpy as np
import pytest
from plans import plan_of, run

import tilegrad as tg
from tilegrad.ir import ops
from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.ops.leaves import iota
from tilegrad.ir.ops.shape import transpose

X = np.arange(12.0).reshape(3, 4)


# ---------------------------------------------------------------------------------------- indices


def test_the_message_names_index_axis_extent_and_way_out():
    with pytest.raises(IndexError) as caught:
        run(lambda x, i: ops.gather(x, i, axes=(1,)), X, np.array([0, 7, 1]))
    assert str(caught.value) == (
        "gather: index 7 is out of bounds for axis 1 with size 4; "
        "mode='clip', 'wrap' or 'fill' gives it a meaning"
    )


def _pick_here(x, i):
    return x[i] * 3.0  # here


def _pick_there(x, i):
    return x[i] * 3.0  # there


@pytest.mark.parametrize("wrap", [tg.jit, lambda f: f])
def test_the_line_is_the_callers_though_the_program_is_shared(wrap):
    x = tg.asarray([1.0, 2.0])
    here, there = wrap(_pick_here), wrap(_pick_there)
    for _ in range(2):
        for function, comment in ((here, "# here"), (there, "# there")):
            with pytest.raises(IndexError, match="index 7 is out of bounds") as caught:
                np.asarray(function(x, tg.asarray([0, 7])))
            assert str(caught.value).count(f"return x[i] * 3.0  {comment}") == 1
            assert str(caught.value).count("  at ") == 1


@pytest.mark.parametrize("index", [3, -4, 100, -100, 2**31, -(2**31), 2**40, -(2**40)])
@pytest.mark.parametrize("count", [1, 3, 8, 9, 100])
def test_any_index_out_of_range_at_any_place(index, count):
    for place in {0, count // 2, count - 1}:
        i = np.zeros(count, int)
        i[place] = index
        with pytest.raises(
            IndexError, match=f"index {index} is out of bounds for axis 0 with size 3"
        ):
            run(lambda x, i: ops.gather(x, i), X, i)


@pytest.mark.parametrize("index", [2**47, 2**62, -(2**63), 2**63 - 1])
def test_an_index_beyond_48_bits_is_refused_too(index):
    with pytest.raises(IndexError, match="is out of bounds for axis 0 with size 3"):
        run(lambda x, i: ops.gather(x, i), X, np.array([0, index]))


def test_valid_indices_do_not_raise():
    i = np.array([-3, -1, 0, 2])
    assert np.array_equal(run(lambda x, i: ops.gather(x, i), X, i), X[i])


def test_each_of_two_axes_is_checked():
    function = lambda x, i, j: ops.gather(x, i, j)  # noqa: E731
    good, bad = np.array([0, 1]), np.array([0, 9])
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 3"):
        run(function, X, bad, good)
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 1 with size 4"):
        run(function, X, good, bad)


def test_an_empty_axis_has_no_valid_index():
    empty = np.zeros((0,))
    with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
        run(lambda x, i: ops.gather(x, i), empty, np.array([0]))
    assert run(lambda x, i: ops.gather(x, i), empty, np.zeros(0, int)).shape == (0,)


def test_an_index_in_a_reduction_is_checked():
    plan = plan_of(lambda x, i: ops.sum_(ops.gather(x, i), 0), X, np.zeros(1500, int))
    i = np.zeros(1500, int)
    plan.run([X, i])
    i[1400] = 3
    with pytest.raises(IndexError, match="index 3 is out of bounds"):
        plan.run([X, i])


def test_an_index_of_several_dtypes_is_checked_in_its_own_range():
    for dtype in ("i1", "u1", "i4", "u8"):
        with pytest.raises(IndexError, match="index 100 is out of bounds"):
            run(lambda x, i: ops.gather(x, i), X, np.array([1, 100], dtype))
    with pytest.raises(IndexError, match="is out of bounds"):
        run(lambda x, i: ops.gather(x, i), X, np.array([2**64 - 1], "u8"))


# --------------------------------------------------------------------------------------- division


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u8"])
def test_integer_division_by_zero(name, dtype):
    function = getattr(ops, name)
    x, y = np.arange(20, dtype=dtype), np.ones(20, dtype)
    run(function, x, y)
    for place in (0, 9, 19):
        bad = y.copy()
        bad[place] = 0
        with pytest.raises(
            ZeroDivisionError, match=f"{name}: expected integer divisors other than 0"
        ):
            run(function, x, bad)


def test_division_errors_name_the_line():
    with pytest.raises(ZeroDivisionError, match=r"at .*\n +np.asarray\(tg.arange\(3\) // 0\)"):
        np.asarray(tg.arange(3) // 0)


def test_smallest_integer_by_minus_one_wraps_without_a_trap():
    for dtype in ("i1", "i2", "i4", "i8"):
        low = np.iinfo(dtype).min
        x, y = np.full(11, low, dtype), np.full(11, -1, dtype)
        q, r = run(lambda x, y: (ops.floor_divide(x, y), ops.remainder(x, y)), x, y)
        assert (q == low).all()
        assert (r == 0).all()


def test_floating_division_by_zero_is_a_value():
    got = run(
        lambda x: (ops.floor_divide(x, 0.0), ops.remainder(x, 0.0)), np.array([1.0, -1.0, 0.0])
    )
    with np.errstate(all="ignore"):
        assert np.array_equal(got[0], np.array([1.0, -1.0, 0.0]) // 0.0, equal_nan=True)
    assert np.isnan(got[1]).all()


def test_a_negative_power_of_an_integer():
    with pytest.raises(ValueError, match="power"):
        run(ops.power, np.arange(1, 12), np.array([2] * 10 + [-1]))


# ------------------------------------------------------------------- elements that are not used


BAD_INDEX = np.array([0, 1, 99, 2])


def _gathered(x, i):
    return ops.gather(x, i, axes=(1,))  # row 2 of the result is out of range


def test_what_a_slice_drops_is_not_checked():
    got = run(lambda x, i: ops.slice_axis(_gathered(x, i), 0, 0, 2), X, BAD_INDEX)
    assert np.array_equal(got, X.T[:2])
    got = run(lambda x, i: ops.slice_axis(_gathered(x, i), 0, 3, None, -3), X, BAD_INDEX)
    assert np.array_equal(got, X.T[[2, 0]])


def test_what_a_concat_does_not_take_is_not_checked():
    """The guard of a piece covers what is read of the piece beside it."""

    def function(x, i):
        y = _gathered(x, i)
        first, last = ops.slice_axis(y, 0, 0, 2), ops.slice_axis(y, 0, 3, 4)
        return ops.concat([first, last, transpose(x)], 0)

    got = run(function, X, BAD_INDEX)
    assert np.array_equal(got, np.concatenate([X.T[:2], X.T[2:3], X.T]))


def test_what_padding_covers_is_not_checked():
    """Outside of the operand the index array is read beyond its end."""

    def function(x, i):
        return ops.pad(ops.gather(x, i), 0.0, (3, 0), (20, 0))

    got = run(function, X, np.array([2, 0]))
    assert np.array_equal(got, np.pad(X[[2, 0]], ((3, 20), (0, 0))))
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        run(function, X, np.array([2, 5]))


def test_division_under_padding_sees_only_its_own_elements():
    def function(x, y):
        return ops.pad(ops.floor_divide(x, y), 7, (2,), (13,), (1,))

    got = run(function, np.arange(5), np.array([1, 2, 3, 4, 5]))
    assert got[:2].tolist() == [7, 7]
    assert got[2:11:2].tolist() == [0, 0, 0, 0, 0]
    with pytest.raises(ZeroDivisionError):
        run(function, np.arange(5), np.array([1, 2, 3, 4, 0]))


def test_fill_reads_and_checks_only_inside():
    """An index out of range reads nothing: not even the checked index array behind it."""

    def function(x, i, j):
        return ops.gather(ops.gather(x, i), j, mode="fill", fill_value=-1.0)

    x = np.arange(4.0)
    got = run(function, x, np.array([3, 2]), np.array([0, 1, 2, -1, -3, 500]))
    assert got.tolist() == [3.0, 2.0, -1.0, 2.0, -1.0, -1.0]


def test_masked_lanes_of_the_last_vector_are_not_checked():
    for count in (1, 7, 9, 15, 23):
        i = np.zeros(count, int)
        got = run(lambda x, i: ops.gather(x, i) + ops.floor_divide(12, i + 1), np.arange(3.0), i)
        assert (got == 12.0).all()


def test_both_branches_of_where_are_computed_and_checked():
    """``where`` chooses between values: that an index must be valid is stated in its docs."""
    with pytest.raises(IndexError):
        run(
            lambda x, i: ops.where(ops.lt(i, 3), ops.gather(x, i), 0.0),
            np.arange(3.0),
            np.array([0, 5]),
        )


def test_of_two_faults_one_is_reported():
    def function(x, i):
        return ops.gather(x, i), ops.floor_divide(i, i - 9)

    with pytest.raises((IndexError, ZeroDivisionError)):
        run(function, np.arange(3.0), np.array([9, 1]))


def test_a_fault_behind_a_step_of_the_host():
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 3"):
        run(lambda x, i: ops.gather(ops.sort(x, 0), i), np.arange(3.0), np.array([4]))


def test_a_plan_runs_again_after_an_error():
    plan = plan_of(lambda x, i: ops.exp(ops.gather(x * 2.0, i)), np.arange(3.0), np.arange(2))
    for _ in range(3):
        with pytest.raises(IndexError):
            plan.run([np.arange(3.0), np.array([0, 3])])
        (got,) = plan.run([np.arange(3.0), np.array([0, 2])])
        np.testing.assert_allclose(got, np.exp([0.0, 4.0]), rtol=1e-15)


def test_an_index_computed_in_a_narrow_type_is_checked_after_it_wraps():
    """300 as int8 is 44: what counts is the value that the program has."""

    def narrow():
        return ops.convert(iota((2,)) * 300, as_dtype("i1"))

    assert run(narrow).tolist() == [0, 44]
    with pytest.raises(IndexError, match="index 44 is out of bounds"):
        run(lambda x: ops.gather(x, narrow()), np.arange(40.0))
    assert run(lambda x: ops.gather(x, narrow()), np.arange(45.0)).tolist() == [0, 44]
