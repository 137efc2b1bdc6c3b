"""Matrix products: BLAS for floating types, our own loops for vectors and integers."""

from __future__ import annotations

import numpy as np
import pytest
from guarded import run_guarded
from plans import plan_of, run

from tilegrad.ir import ops
from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.ops.shape import transpose

FLOATING = ["f4", "f8", "c8", "c16"]
INTEGER = ["i1", "i4", "i8", "u1", "u8"]


def draw(shape, dtype, seed=0):
    """Small integers: products and sums of a few of them are exact in every type but int8."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == "?":
        return rng.random(shape) < 0.3
    x = rng.integers(0 if dtype[0] == "u" else -4, 5, shape)
    if dtype[0] == "c":
        x = x + 1j * rng.integers(-4, 5, shape)
    return x.astype(dtype)


def same(got, expected):
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    assert np.array_equal(got, expected)


SHAPES = {
    "matrix matrix": ((5, 7), (7, 3)),
    "row matrix": ((1, 7), (7, 3)),
    "matrix column": ((5, 7), (7, 1)),
    "outer": ((5, 1), (1, 6)),
    "inner one": ((1, 7), (7, 1)),
    "one": ((1, 1), (1, 1)),
    "vector vector": ((9,), (9,)),
    "matrix vector": ((5, 7), (7,)),
    "vector matrix": ((7,), (7, 4)),
    "batch": ((4, 5, 7), (4, 7, 3)),
    "two batches": ((2, 3, 5, 7), (2, 3, 7, 2)),
    "broadcast batch": ((4, 5, 7), (7, 3)),
    "batch of both": ((4, 1, 5, 7), (3, 7, 2)),
    "batch vector": ((4, 5, 7), (7,)),
    "larger": ((67, 130), (130, 33)),
}
SOME = ("matrix matrix", "matrix vector", "batch", "larger")


@pytest.mark.parametrize("dtype", [*FLOATING, *INTEGER, "?"])
def test_matmul_as_numpys(dtype):
    every = dtype in ("f4", "c16", "i8")  # one of each way; the others on a few shapes
    for left, right in SHAPES.values() if every else map(SHAPES.get, SOME):
        x, y = draw(left, dtype), draw(right, dtype, 1)
        same(run(ops.matmul, x, y), np.asarray(x @ y))


@pytest.mark.parametrize("dtype", [*FLOATING, "i8"])
def test_transposed_operands(dtype):
    for m, k, n in ((5, 7, 3), (1, 7, 3), (5, 1, 3), (5, 7, 1), (40, 33, 20)):
        x, y = draw((m, k), dtype), draw((k, n), dtype, 1)
        xt, yt = np.ascontiguousarray(x.T), np.ascontiguousarray(y.T)
        same(run(lambda x, y: ops.matmul(transpose(x), y), xt, y), x @ y)
        same(run(lambda x, y: ops.matmul(x, transpose(y)), x, yt), x @ y)
        same(run(lambda x, y: ops.matmul(transpose(x), transpose(y)), xt, yt), x @ y)
        same(run(lambda x, y: transpose(ops.matmul(x, y)), x, y), (x @ y).T)


EINSUMS = {
    "ij,kj->ik": (((5, 7), (3, 7)), ((1,), (1,)), ((), ())),
    "ji,jk->ik": (((7, 5), (7, 3)), ((0,), (0,)), ((), ())),
    "ijk,kjl->il": (((4, 3, 6), (6, 3, 5)), ((1, 2), (1, 0)), ((), ())),
    "ijk,jkl->il": (((4, 3, 6), (3, 6, 5)), ((1, 2), (0, 1)), ((), ())),
    "bij,bjk->bik": (((3, 4, 5), (3, 5, 2)), ((2,), (1,)), ((0,), (0,))),
    "ibj,jkb->bik": (((4, 3, 5), (5, 2, 3)), ((2,), (0,)), ((1,), (2,))),
    "iabj,jbka->abik": (((2, 3, 4, 5), (5, 4, 6, 3)), ((3,), (0,)), ((1, 2), (3, 1))),
    "ij,kl->ijkl": (((2, 3), (4, 5)), ((), ()), ((), ())),
    "bi,bj->bij": (((6, 3), (6, 4)), ((), ()), ((0,), (0,))),
    "ijk,ijk->": (((2, 3, 4), (2, 3, 4)), ((0, 1, 2), (0, 1, 2)), ((), ())),
    "bi,bi->b": (((6, 30), (6, 30)), ((1,), (1,)), ((0,), (0,))),
}


@pytest.mark.parametrize("dtype", ["f8", "c8", "i4"])
@pytest.mark.parametrize("name", EINSUMS)
def test_any_contraction(name, dtype):
    shapes, contract, batch = EINSUMS[name]
    x, y = (draw(shape, dtype, k) for k, shape in enumerate(shapes))
    got = run(lambda x, y: ops.dot(x, y, contract=contract, batch=batch), x, y)
    same(got, np.einsum(name, x, y))


@pytest.mark.parametrize("dtype", [*FLOATING, "i8", "?"])
def test_an_empty_inner_dimension_gives_zeros(dtype):
    """Memory that the library does not write must not be shown."""
    for left, right in (((3, 0), (0, 4)), ((2, 3, 0), (2, 0, 4)), ((0,), (0,)), ((3, 0), (0,))):
        x, y = np.zeros(left, dtype), np.zeros(right, dtype)
        same(run(ops.matmul, x, y), np.asarray(x @ y))
        same(
            run(lambda x, y: ops.matmul(ops.not_(x) if dtype == "?" else x + 1, y), x, y),
            np.asarray(x @ y),
        )


@pytest.mark.parametrize("dtype", ["f8", "i8"])
def test_empty_results(dtype):
    for left, right in (((0, 3), (3, 4)), ((3, 4), (4, 0)), ((0, 3, 2), (0, 2, 4)), ((0, 3), (3,))):
        x, y = np.zeros(left, dtype), np.zeros(right, dtype)
        same(run(lambda x, y: ops.matmul(x, y) + 1, x, y), x @ y + 1)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_general_values_to_rounding(dtype):
    rng = np.random.default_rng(3)
    x, y = (
        rng.standard_normal((30, 200)).astype(dtype),
        rng.standard_normal((200, 25)).astype(dtype),
    )
    got = run(ops.matmul, x, y)
    exact = x.astype("f8") @ y.astype("f8")
    bound = 200 * np.finfo(dtype).eps * (abs(x).astype("f8") @ abs(y).astype("f8"))
    assert (abs(got - exact) <= bound).all()


def test_nan_and_infinity_pass_through_products():
    x = np.array([[np.nan, 0.0], [np.inf, 1.0], [0.0, 2.0]])
    y = np.array([[1.0, 0.0, 2.0], [1.0, 1.0, np.inf]])
    with np.errstate(all="ignore"):
        expected = np.einsum("ij,jk->ik", x, y)
    assert np.array_equal(run(ops.matmul, x, y), expected, equal_nan=True)


def test_expressions_around_a_product():
    x, y = draw((6, 7), "f8"), draw((7, 5), "f8", 1)

    def function(x, y):
        z = x + 1.0
        return (
            ops.matmul(z, y * 2.0) - 1.0,
            ops.sum_(z, 0),
            transpose(z),
            ops.matmul(transpose(y), transpose(z)),
        )

    got = run(function, x, y)
    expected = (x + 1) @ (y * 2) - 1, (x + 1).sum(0), (x + 1).T, y.T @ (x + 1).T
    for a, b in zip(got, expected, strict=True):
        same(a, b)


def test_a_product_that_is_made_late_does_not_change_what_came_before():
    """An operand stored for BLAS is written before anybody who shares it reads it."""
    x, y = draw((6, 7), "f8"), draw((7, 5), "f8", 1)

    def function(x, y):
        z = x + 1.0
        first = ops.sum_(z * z, 0)
        return first, ops.matmul(z, y), ops.matmul(transpose(y), ops.flip(transpose(z), 0))

    got = run(function, x, y)
    z = x + 1.0
    for a, b in zip(got, ((z * z).sum(0), z @ y, y.T @ z.T[::-1]), strict=True):
        same(a, b)


def test_a_chain_of_products():
    x = draw((5, 5), "f8")
    got = run(lambda x: ops.matmul(ops.matmul(ops.matmul(x, x), transpose(x)), x), x)
    same(got, x @ x @ x.T @ x)


def test_the_square_of_a_matrix_and_its_gram_matrices():
    x = draw((5, 5), "f8")
    same(run(lambda x: ops.matmul(x, x), x), x @ x)
    same(run(lambda x: ops.matmul(x, transpose(x)), x), x @ x.T)
    same(run(lambda x: ops.matmul(transpose(x), x), x), x.T @ x)


@pytest.mark.parametrize("dtype", FLOATING)
def test_products_touch_only_their_matrices(dtype):
    cases = [
        ((5, 7), (7, 3)),
        ((1, 7), (7, 3)),
        ((3, 0), (0, 4)),
        ((4, 5, 7), (4, 7, 3)),
        ((8,), (8,)),
    ]
    for left, right in cases:
        x, y = draw(left, dtype), draw(right, dtype, 1)
        plan = plan_of(ops.matmul, x, y)
        for at_end in (True, False):
            (got,) = run_guarded(plan, (x, y), at_end=at_end)
            same(got, np.asarray(x @ y))


def test_a_product_of_mixed_types_converts():
    x, y = draw((3, 4), "f4"), draw((4, 2), "i8")
    got = run(
        lambda x, y: ops.matmul(ops.convert(x, as_dtype("f8")), ops.convert(y, as_dtype("f8"))),
        x,
        y,
    )
    same(got, x.astype("f8") @ y)
