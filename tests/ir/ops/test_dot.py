"""dot and NumPy's products: against einsum and NumPy, every arrangement of axes, messages."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rule_checks import check_batch, check_rules, evaluate, node_like

from tilegrad.ir.errors import DTypeError, ShapeError
from tilegrad.ir.graph import make
from tilegrad.ir.ops import dot, matmul, outer, tensordot, vecdot
from tilegrad.ir.ops.dot import DOT

SIZES = {"b": 2, "c": 3, "k": 4, "l": 1, "i": 2, "j": 5}


def arranged(x_names, y_names):
    """contract, batch and the einsum of two operands with named axes."""
    contract = [n for n in x_names if n in y_names and n in "kl"]
    batch = [n for n in x_names if n in y_names and n in "bc"]
    pair = lambda names: (  # noqa: E731
        tuple(x_names.index(n) for n in names),
        tuple(y_names.index(n) for n in names),
    )
    rest = [n for n in x_names + y_names if n not in contract + batch]
    return pair(contract), pair(batch), f"{x_names},{y_names}->{''.join(batch + rest)}"


ARRANGEMENTS = [
    ("".join(p), "".join(q))
    for p in itertools.permutations("bik")
    for q in itertools.permutations("bjk")
] + [("kli", "ljk"), ("bcki", "kcb"), ("cbk", "bkc"), ("i", "j"), ("", "j"), ("k", "k"), ("", "")]


@pytest.mark.parametrize(("x_names", "y_names"), ARRANGEMENTS)
def test_every_arrangement_is_einsums(x_names, y_names, rng):
    contract, batch, formula = arranged(x_names, y_names)
    x = rng.integers(-4, 5, [SIZES[n] for n in x_names]).astype(float)
    y = rng.integers(-4, 5, [SIZES[n] for n in y_names]).astype(float)
    f = lambda v, w: dot(v, w, contract, batch)  # noqa: E731
    np.testing.assert_array_equal(evaluate(f, x, y), np.einsum(formula, x, y))
    check_rules(f, [x, y], rng)
    check_batch(f, [x, y], rng)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "complex64", "bool"])
def test_element_types(dtype, rng):
    x = rng.integers(-9, 9, (3, 40)).astype(dtype)
    y = rng.integers(-9, 9, (40, 2)).astype(dtype)
    np.testing.assert_array_equal(evaluate(matmul, x, y), x @ y, strict=True)


def test_single_precision_accumulates_in_double():
    x = np.array([2.0**24, 1, 1], np.float32)
    assert evaluate(lambda v: vecdot(v, np.ones(3, np.float32)), x) == np.float32(2**24 + 2)


def test_empty_extents():
    assert evaluate(matmul, np.ones((0, 3)), np.ones((3, 2))).shape == (0, 2)
    np.testing.assert_array_equal(
        evaluate(matmul, np.ones((2, 0)), np.ones((0, 2))), np.zeros((2, 2))
    )


STACKS = [
    ((4,), (4,)),
    ((4,), (4, 3)),
    ((2, 4), (4,)),
    ((2, 4), (4, 3)),
    ((5, 2, 4), (4, 3)),
    ((2, 4), (5, 4, 3)),
    ((5, 2, 4), (5, 4, 3)),
    ((1, 2, 4), (5, 4, 3)),
    ((5, 2, 4), (1, 4, 3)),
    ((6, 1, 2, 4), (5, 4, 3)),
    ((6, 5, 2, 4), (6, 1, 4, 3)),
    ((6, 1, 2, 4), (1, 5, 4, 3)),
    ((1, 1, 2, 4), (1, 4, 3)),
    ((5, 2, 4), (4,)),
    ((4,), (5, 4, 3)),
    ((0, 2, 4), (1, 4, 3)),
]


@pytest.mark.parametrize(("x_shape", "y_shape"), STACKS)
def test_matmul_is_numpys(x_shape, y_shape, rng):
    x, y = rng.integers(-4, 5, x_shape).astype(float), rng.integers(-4, 5, y_shape).astype(float)
    np.testing.assert_array_equal(evaluate(matmul, x, y), np.matmul(x, y), strict=True)
    check_rules(matmul, [x, y], rng)


def test_a_stack_times_one_matrix_is_one_product():
    x, y = node_like(np.ones((5, 2, 4))).out, node_like(np.ones((1, 4, 3))).out
    node = matmul(x, y).node
    assert node.op is DOT
    assert node.param("batch") == ((), ())


@pytest.mark.parametrize("axes", [0, 1, 2, (1, 0), ([0, 2], [2, 1]), ((-1,), (-2,))])
def test_tensordot_is_numpys(axes, rng):
    x = rng.integers(-4, 5, (3, 2, 2) if axes == 2 else (2, 3, 2)).astype(float)
    y = rng.integers(-4, 5, (2, 2, 3) if axes == 2 else (3, 2, 2)).astype(float)
    if axes == 1 or axes == ((-1,), (-2,)):
        y = y.transpose(1, 2, 0)
    np.testing.assert_array_equal(
        evaluate(lambda v, w: tensordot(v, w, axes), x, y), np.tensordot(x, y, axes), strict=True
    )


def test_vecdot_conjugates_the_first_and_broadcasts(rng):
    x = (rng.integers(-4, 5, (3, 1, 4)) + 1j * rng.integers(-4, 5, (3, 1, 4))).astype(complex)
    y = (rng.integers(-4, 5, (2, 4)) + 1j * rng.integers(-4, 5, (2, 4))).astype(complex)
    np.testing.assert_array_equal(evaluate(vecdot, x, y), np.vecdot(x, y))
    got = evaluate(lambda v: vecdot(v, v, axis=0), x)
    np.testing.assert_array_equal(got, np.vecdot(x, x, axis=0))
    check_rules(vecdot, [rng.standard_normal((3, 1, 4)), rng.standard_normal((2, 4))], rng)


def test_outer_flattens(rng):
    x, y = rng.standard_normal((2, 3)), rng.standard_normal(4)
    np.testing.assert_array_equal(evaluate(outer, x, y), np.outer(x, y))
    np.testing.assert_array_equal(evaluate(outer, np.float64(3), y), np.outer(3, y))


def test_promotion():
    got = evaluate(matmul, np.ones((2, 2), np.int8), np.ones((2, 2), np.float32))
    assert got.dtype == np.float32
    assert evaluate(lambda v: matmul(v, [2, 3]), np.ones(2, np.float32)).dtype == np.float64


def test_messages():
    x, y = node_like(np.ones((2, 3))).out, node_like(np.ones((4, 2))).out
    with pytest.raises(
        ShapeError, match=r"matmul: expected equal inner extents, got f64\[2,3\] and "
    ):
        matmul(x, y)
    with pytest.raises(ShapeError, match="axis -1 of the first has 3, axis -1 of the second 2"):
        matmul(x, np.ones(2))
    with pytest.raises(ShapeError, match="matmul: expected one axis or more on both sides"):
        matmul(x, 2.0)
    with pytest.raises(ShapeError, match="matmul: expected leading axes that broadcast together"):
        matmul(np.ones((2, 3, 3)), np.ones((4, 3, 3)))
    with pytest.raises(ShapeError, match="dot: expected equal extents of contracted axes"):
        dot(x, y, ((1,), (1,)))
    with pytest.raises(ShapeError, match="dot: expected equal extents of batch axes"):
        dot(x, y, batch=((1,), (0,)))
    with pytest.raises(ShapeError, match=r"dot: expected as many contract axes on both sides"):
        dot(x, y, ((0, 1), (1,)))
    with pytest.raises(ShapeError, match=r"dot: expected each axis once, got \[0, 0\]"):
        dot(x, y, ((0,), (1,)), ((0,), (1,)))
    with pytest.raises(IndexError, match=r"dot: expected an axis in \[-2, 2\), got 2"):
        dot(x, y, ((2,), (0,)))
    with pytest.raises(ShapeError, match="tensordot: expected 0 to 2 axes"):
        tensordot(x, y, 3)
    with pytest.raises(ShapeError, match="vecdot: expected equal extents at axis -1"):
        vecdot(np.ones((2, 3)), np.ones((2, 1)))
    with pytest.raises(DTypeError, match="dot: expected equal dtypes"):
        make(DOT, (x, node_like(np.ones((3, 2), int)).out), contract=((1,), (0,)), batch=((), ()))
