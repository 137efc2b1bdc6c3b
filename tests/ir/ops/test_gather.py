"""gather: values and modes against plain indexing, derivatives, messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rule_checks import check_batch, check_rules, cotangents, evaluate, node_like

from tilegrad.ir.errors import DTypeError, ShapeError, TracerError
from tilegrad.ir.graph import make
from tilegrad.ir.ops import gather, take_along_axis
from tilegrad.ir.ops.gather import GATHER


def looked_up(x, indices, axes, resolve, fill=None):
    """Element by element: ``resolve(i, n)`` is the position, or None for ``fill``."""
    rest = [d for d in range(x.ndim) if d not in axes]
    out = np.empty(indices[0].shape + tuple(x.shape[d] for d in rest), x.dtype)
    for place in np.ndindex(*indices[0].shape):
        found = [resolve(int(i[place]), x.shape[d]) for i, d in zip(indices, axes, strict=True)]
        if None in found:
            out[place] = fill
            continue
        where = [slice(None)] * x.ndim
        for d, k in zip(axes, found, strict=True):
            where[d] = k
        out[place] = x[tuple(where)]
    return out


RESOLVE = {
    "raise": lambda i, n: i % n,
    "clip": lambda i, n: min(max(i, 0), n - 1),
    "wrap": lambda i, n: i % n,
    "fill": lambda i, n: i % n if -n <= i < n else None,
}


@pytest.mark.parametrize("mode", RESOLVE)
@pytest.mark.parametrize("index_shape", [(), (1,), (5,), (2, 3), (0,)])
def test_values_over_axes_and_modes(mode, index_shape, rng):
    x = rng.standard_normal((3, 4, 2))
    for count in (1, 2, 3):
        for axes in itertools.permutations(range(3), count):
            reach = 1 if mode == "raise" else 3
            indices = [
                rng.integers(-reach * x.shape[d], reach * x.shape[d], index_shape) for d in axes
            ]
            fill = {"fill_value": -7.0} if mode == "fill" else {}
            got = evaluate(
                lambda v, *i, a=axes, f=fill: gather(v, *i, axes=a, mode=mode, **f), x, *indices
            )
            np.testing.assert_array_equal(got, looked_up(x, indices, axes, RESOLVE[mode], -7.0))


def test_negative_axes_broadcast_indices_and_integer_types(rng):
    x = rng.standard_normal((3, 4))
    i, j = np.array([[0], [2]], np.int8), np.array([1, -1, 3], np.int32)
    got = evaluate(lambda v: gather(v, i, j, axes=(0, -1)), x)
    np.testing.assert_array_equal(got, x[i, j])
    got = evaluate(lambda v: gather(v, np.array([3, 0], np.uint64), axes=(1,)), x)
    np.testing.assert_array_equal(got, x[:, [3, 0]].T)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float32", np.nan), ("complex128", np.nan), ("int8", -128), ("uint8", 255), ("bool", True)],
)
def test_default_fill_values(dtype, expected):
    x = np.zeros(2, dtype)
    got = evaluate(lambda v: gather(v, [2, 0, -3], mode="fill"), x)
    np.testing.assert_array_equal(got, np.array([expected, 0, expected], dtype), strict=True)


def test_out_of_range_names_index_axis_and_extent():
    """Case 32."""
    x = np.arange(5)
    for index in (7, 5, -6):
        with pytest.raises(
            IndexError, match=rf"gather: index {index} is out of bounds for axis 0 with size 5"
        ):
            evaluate(lambda v, i=index: gather(v, [0, i]), x)
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 2 with size 3"):
        evaluate(lambda v: gather(v, 0, 3, axes=(0, 2)), np.ones((2, 2, 3)))
    np.testing.assert_array_equal(
        evaluate(lambda v: gather(v, [7, -6], mode="fill", fill_value=-1), x), [-1, -1]
    )


def test_uint64_beyond_int64_is_out_of_range_not_negative():
    with pytest.raises(IndexError, match="out of bounds"):
        evaluate(lambda v: gather(v, np.array([2**64 - 1], np.uint64)), np.arange(3.0))


def test_empty_axes():
    empty = np.zeros((0, 2))
    assert evaluate(lambda v: gather(v, np.zeros(0, int)), empty).shape == (0, 2)
    with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
        evaluate(lambda v: gather(v, [0]), empty)
    np.testing.assert_array_equal(
        evaluate(lambda v: gather(v, [0], mode="fill", fill_value=4.0), empty), [[4.0, 4.0]]
    )
    for mode in ("clip", "wrap"):
        with pytest.raises(IndexError, match=r"axis 0 of f64\[0,2\] is empty"):
            gather(empty, [0], mode=mode)


@pytest.mark.parametrize("mode", RESOLVE)
def test_repeated_indices_add_up_in_the_cotangent(mode, rng):
    x = rng.standard_normal((4, 2))
    i = np.array([1, -3, 1, 0]) if mode == "raise" else np.array([1, -3, 9, 1, -9])
    fill = {"fill_value": 3.0} if mode == "fill" else {}
    f = lambda v: gather(v, i, mode=mode, **fill)  # noqa: E731
    check_rules(f, [x], rng)
    ct = rng.integers(-4, 4, (len(i), 2)).astype(float)
    expected = np.zeros((4, 2))
    for k, row in zip(i, ct, strict=True):
        position = RESOLVE[mode](int(k), 4)
        if position is not None:
            expected[position] += row
    np.testing.assert_array_equal(cotangents(f, [x], ct)[0], expected)


def test_fill_value_reaches_no_derivative(rng):
    f = lambda v: gather(v, [5, 0], mode="fill", fill_value=np.nan)  # noqa: E731
    np.testing.assert_array_equal(cotangents(f, [np.ones(2)], np.ones(2))[0], [1, 0])


@pytest.mark.parametrize("mode", RESOLVE)
def test_batching(mode, rng):
    x = rng.standard_normal((3, 4, 2))
    i, j = rng.integers(-3, 3, (2, 2)), rng.integers(-2, 2, (2, 2))
    if mode != "raise":
        i, j = 2 * i, 3 * j
    check_batch(lambda v, p, q: gather(v, p, q, axes=(0, 2), mode=mode), [x, i, j], rng)
    check_batch(lambda v, p: gather(v, p, axes=(1,), mode=mode), [x, i], rng)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_axis_is_numpys(axis, rng):
    x = rng.standard_normal((3, 4, 2))
    shape = list(x.shape)
    shape[axis] = 5
    i = rng.integers(-x.shape[axis], x.shape[axis], shape)
    got = evaluate(lambda v, p: take_along_axis(v, p, axis), x, i)
    np.testing.assert_array_equal(got, np.take_along_axis(x, i, axis))
    check_rules(lambda v: take_along_axis(v, i, axis), [x], rng)
    one = np.zeros((1, 1, 1), int)
    got = evaluate(lambda v, p: take_along_axis(v, p, axis), x, one)
    np.testing.assert_array_equal(got, np.take_along_axis(x, one, axis))


def test_messages():
    x = node_like(np.ones((2, 3))).out
    with pytest.raises(DTypeError, match=r"gather: expected integer indices, got f64\[1\]"):
        gather(x, [0.0])
    with pytest.raises(DTypeError, match=r"got bool\[2\]; select with a mask"):
        gather(x, [True, False])
    with pytest.raises(IndexError, match=r"gather: expected an axis in \[-2, 2\), got 2"):
        gather(x, [0], axes=(2,))
    with pytest.raises(ShapeError, match=r"gather: expected each axis once, got \[1, 1\]"):
        gather(x, [0], [0], axes=(1, -1))
    with pytest.raises(ShapeError, match="expected one index array an axis, got 1 for axes"):
        gather(x, [0], axes=(0, 1))
    with pytest.raises(ShapeError, match="expected one index array an axis, got 0"):
        gather(x)
    with pytest.raises(ShapeError, match="gather: expected shapes that broadcast together"):
        gather(x, [0, 1], [0, 1, 2])
    with pytest.raises(ShapeError, match="expected a mode of raise clip wrap fill, got 'drop'"):
        gather(x, [0], mode="drop")
    with pytest.raises(DTypeError, match="gather: expected a value that int64 holds"):
        gather(np.ones(2, np.int64), [0], mode="fill", fill_value=0.5)
    with pytest.raises(TracerError, match="gather: expected a known fill_value"):
        gather(x, [0], mode="fill", fill_value=node_like(np.float64(1)).out)
    with pytest.raises(DTypeError, match=r"gather: expected int64 indices, got i32\[1\]"):
        make(
            GATHER,
            (x, node_like(np.zeros(1, np.int32)).out),
            axes=(0,),
            mode="raise",
            fill_value=None,
            checked=False,
        )
    with pytest.raises(ShapeError, match="expected indices of 2 axes"):
        take_along_axis(x, [0], 0)
