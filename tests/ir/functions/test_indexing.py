"""Index expressions against NumPy's: drawn at random, and the rules one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_checks import cotangents, evaluate, gradient, node_like

from tilegrad.ir.errors import DTypeError, ShapeError, TracerError
from tilegrad.ir.functions.indexing import index, index_update, put_along_axis, take
from tilegrad.ir.functions.reductions import sum as total
from tilegrad.ir.graph import Value
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops.leaves import constant


def lifted(key):
    """The key with its arrays as values: the data is the program's, not Python's."""
    if isinstance(key, tuple):
        return tuple(lifted(k) for k in key)
    return constant(key) if isinstance(key, np.ndarray) else key


def value(x):
    return interpret([x])[0]


# ------------------------------------------------------------------------- random expressions


@st.composite
def expressions(draw):
    """An array and a key, which NumPy may refuse (what comes behind ``...`` meets other axes)."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    block = draw(st.sampled_from([(), (2,), (3,), (2, 3), (1, 3), (0,)]))
    items, axis = [], 0
    while axis < len(shape):
        n = shape[axis]
        kind = draw(
            st.sampled_from(["int", "slice", "slice", "array", "mask", "new", "stop", "wide"])
        )
        if kind == "stop":
            break
        if kind == "new":
            items.append(None)
            continue
        if kind == "int":
            items.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            ends = st.one_of(st.none(), st.integers(-n - 2, n + 2))
            step = draw(st.one_of(st.none(), st.sampled_from([1, 2, -1, -2, 3])))
            items.append(slice(draw(ends), draw(ends), step))
        elif kind == "array":
            cut = draw(st.integers(0, len(block)))
            part = tuple(draw(st.sampled_from([1, k])) for k in block[cut:])
            size = int(np.prod(part))
            flat = draw(st.lists(st.integers(-n, n - 1), min_size=size, max_size=size))
            items.append(np.array(flat, dtype=np.int64).reshape(part))
        elif kind == "mask":
            items.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))))
        else:
            pair = shape[axis : axis + 2]
            count = int(np.prod(pair))
            flat = draw(st.lists(st.booleans(), min_size=count, max_size=count))
            items.append(np.array(flat).reshape(pair))
            axis += len(pair) - 1
        axis += 1
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), Ellipsis)
    key = tuple(items)
    x = np.arange(float(np.prod(shape))).reshape(shape)
    return x, key


@settings(max_examples=600)
@given(expressions())
def test_reading(case):
    x, key = case
    try:
        want = x[key]
    except IndexError:
        with pytest.raises(IndexError):
            value(index(x, lifted(key)))
        return
    got = value(index(x, lifted(key)))
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@settings(max_examples=400)
@given(expressions(), st.sampled_from(["set", "add", "multiply", "min", "max"]))
def test_writing(case, how):
    x, key = case
    try:
        shape = x[key].shape
    except IndexError:
        return
    change = np.arange(1.0, 1 + np.prod(shape)).reshape(shape) / 4
    want = x.copy()
    if how == "set":
        want[key] = change
    else:
        ufunc = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}[how]
        places = np.arange(x.size).reshape(x.shape)[key]  # ufunc.at does not take every key
        flat = want.reshape(-1)
        ufunc.at(flat, places, change)
    got = value(index_update(x, lifted(key), change, how))
    np.testing.assert_allclose(got, want, rtol=1e-15)


# ------------------------------------------------------------------------------ fixed readings

X = np.arange(24.0).reshape(2, 3, 4)
I = np.array([1, 0, 1])  # noqa: E741
KEYS = [
    *[0, -1, np.int64(1), slice(None), slice(None, None, -1), None, ..., ()],
    *[(0, 1, 2), (..., 1), (slice(None), 1), (None, 0, ..., None, 2)],
    *[[1, 0], (slice(None), [2, 0]), (slice(None), [2, 0], [0, 1]), ([0, 1], slice(None), [0, 3])],
    *[(0, slice(None), [1, 2]), (slice(None), 0, [1, 2]), ([1], 0, slice(None))],
    *[(I, None, I), (I, ..., I), (None, I), (slice(None), None, I), (I[:, None], I)],
    *[True, False, (True, 0), (np.array(True), I), (slice(None), True, I), (np.array(False),)],
    *[X > 7, (X[0] > 5,) * 0 + (0, X[0] > 5), (X[:, 0, 0] > 3), (slice(None), X[0] > 5)],
    *[[], (slice(None), []), (slice(5, 1), I[:0] * 0), np.array(1), (np.array(1), np.array(2))],
]


@pytest.mark.parametrize("key", KEYS, ids=[str(i) for i in range(len(KEYS))])
def test_rules(key):
    try:
        want = X[key]
    except IndexError:
        with pytest.raises(IndexError):
            value(index(X, key))
        return
    for k in (key, lifted(key)):
        got = value(index(X, k))
        assert got.shape == want.shape
        np.testing.assert_array_equal(got, want)


def test_traced_scalars_and_arrays():
    x = np.arange(20.0)[10:]
    np.testing.assert_array_equal(
        evaluate(lambda i: index(x, i), -np.arange(10)), [10, 19, 18, 17, 16, 15, 14, 13, 12, 11]
    )
    got = evaluate(lambda i, j: index(X, (i, slice(1, None), j)), np.array(-1), np.array([0, 3]))
    np.testing.assert_array_equal(got, X[-1, 1:, [0, 3]])


# -------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (7, r"index 7 is out of bounds for axis 0 with size 2"),
        ((0, -4), r"index -4 is out of bounds for axis 1 with size 3"),
        ((0, 0, 0, 0), r"too many indices.*3 axes, got 4"),
        ((..., ...), r"one '\.\.\.' at most"),
        (1.0, r"expected integers, slices"),
        ((np.array([True, True, False]),), r"mask of shape \[2\]"),
        ((np.zeros((2, 2)) > 1,), r"mask of shape \[2, 3\]"),
        (([0, 1], [0, 1, 2]), r"broadcast together"),
        (slice(1.5), r"an integer for a slice"),
    ],
)
def test_bad_keys(key, message):
    error = TypeError if "slice" in message and "integers" not in message else IndexError
    with pytest.raises(error, match=message):
        index(X, key)


def test_arrays_out_of_range_name_axis_index_and_extent():
    x = np.arange(5)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5"):
        evaluate(lambda i: index(x, i), np.array([0, 7]))
    with pytest.raises(IndexError, match="index -4 is out of bounds for axis 1 with size 3"):
        evaluate(lambda i: index(X, (0, i, slice(None))), np.array([0, -4]))
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 2 with size 4"):
        evaluate(lambda i: take(X, i, axis=2), np.array([9]))
    got = evaluate(lambda i: take(x, i, mode="fill", fill_value=-1), np.array([7, -6]))
    np.testing.assert_array_equal(got, [-1, -1])


def test_modes():
    x = np.arange(5.0)
    i = np.array([-7, -1, 6])
    for mode, want in (("clip", [0, 0, 4]), ("wrap", [3, 4, 1]), ("fill", [np.nan, 4, np.nan])):
        got = evaluate(lambda i, m=mode: index(x, i, mode=m), i)
        np.testing.assert_array_equal(got, want)
    got = evaluate(lambda i: index_update(x, i, 9.0, mode="fill"), i)
    np.testing.assert_array_equal(got, [0, 1, 2, 3, 9])


def test_traced_masks_are_refused_with_the_way_out():
    node = node_like(np.array([True, False]))
    with pytest.raises(TracerError, match=r"use where\(mask, x, 0\)"):
        index(np.arange(2.0), node.out)


def test_values_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"broadcast to \[3, 4\], got f64\[5\]"):
        index_update(X, 0, np.zeros(5))
    with pytest.raises(DTypeError, match="int64 can hold, got f64"):
        index_update(np.arange(3), 0, np.float64(1.5))
    with pytest.raises(DTypeError, match="int64 can hold, got a float"):
        index_update(np.arange(3), 0, 1.5)
    with pytest.raises(ValueError, match="one of"):
        index_update(X, 0, 1.0, "divide")


def test_updates_keep_the_dtype():
    for x in (np.zeros(3, np.float32), np.zeros(3, np.int8), np.zeros(3, np.complex64)):
        got = value(index_update(x, 1, 2))
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, [0, 2, 0])


def test_put_along_axis_returns_the_changed_array():
    x, i = X[0].copy(), np.array([[0], [3], [1]])
    want = x.copy()
    np.put_along_axis(want, i, -1.0, axis=1)
    np.testing.assert_array_equal(value(put_along_axis(x, i, -1.0, 1)), want)


# ----------------------------------------------------------------------------------- gradients


def test_gradient_through_a_negative_step():
    w = np.array([1.0, 2, 3])
    got = gradient(lambda x: total(w * index(x, slice(None, None, -2))), np.arange(6.0))
    np.testing.assert_array_equal(got, [0, 3, 0, 2, 0, 1])


def test_repeated_set_last_writer_wins_in_value_and_gradient():
    w = np.array([10.0, 1.0])

    def f(v):
        return total(index_update(np.zeros(2), constant(np.array([0, 0, 1])), v) * w)

    v = np.array([1.0, 2.0, 3.0])
    assert evaluate(f, v) == 23
    np.testing.assert_array_equal(gradient(f, v), [0, 10, 1])


def test_repeated_add_is_exact_and_repeatable():
    n = 30_000
    i, ones = np.arange(n) % 3, np.ones(n)
    first = value(index_update(np.zeros(3), i, ones, "add"))
    np.testing.assert_array_equal(first, [n / 3] * 3)


@pytest.mark.parametrize("how", ["set", "add", "multiply"])
@pytest.mark.parametrize("key", [1, slice(None, None, 2), (slice(None), [2, 0]), ([1, 1], 0)])
def test_gradients_of_updates(how, key, rng):
    """The cotangent of both operands against central differences."""
    x = rng.standard_normal((3, 4))
    v = rng.standard_normal(x[key].shape)
    ct = rng.standard_normal(x.shape)

    def f(x, v):
        return index_update(x, lifted(key), v, how)

    for which, bar in enumerate(cotangents(f, (x, v), ct)):
        t = rng.standard_normal(bar.shape)
        h = 1e-6
        ends = []
        for sign in (1, -1):
            moved = [x, v]
            moved[which] = moved[which] + sign * h * t
            ends.append(np.sum(evaluate(f, *moved) * ct))
        np.testing.assert_allclose(np.sum(bar * t), (ends[0] - ends[1]) / (2 * h), rtol=1e-6)


def test_static_updates_are_elementwise():
    """Writing at ints and slices needs no scatter: it fuses."""
    from tilegrad.ir.graph import toposort

    x = node_like(X).out
    kinds = {n.op.name for n in toposort([index_update(x, (0, slice(1, 3)), 1.0, "add")])}
    assert "scatter" not in kinds
    assert isinstance(x, Value)
