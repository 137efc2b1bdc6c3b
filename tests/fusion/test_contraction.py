"""Which contractions become library calls, and how their operands are handed over."""

from __future__ import annotations

import numpy as np
import pytest
from plans import nests, products, run, schedule_of

from tilegrad.ir import ops
from tilegrad.ir.ops.shape import broadcast, reshape, transpose

X, Y = ((40, 30), "f8"), ((30, 20), "f8")


def copies(schedule):
    """Steps other than the products: with plain operands each is a copy."""
    return len(schedule.steps) - len(products(schedule))


def check_values(function, types, reference):
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, s).astype(d) for s, d in types]
    assert np.array_equal(run(function, *arrays), reference(*arrays))


CALLS = {
    # name: (function, operand types, reference, sizes (batch, rows, inner, columns), copies)
    "plain": (ops.matmul, (X, Y), lambda x, y: x @ y, (1, 40, 30, 20), 0),
    "left transposed": (
        lambda x, y: ops.matmul(transpose(x), y),
        (((30, 40), "f8"), Y),
        lambda x, y: x.T @ y,
        (1, 40, 30, 20),
        0,
    ),
    "right transposed": (
        lambda x, y: ops.matmul(x, transpose(y)),
        (X, ((20, 30), "f8")),
        lambda x, y: x @ y.T,
        (1, 40, 30, 20),
        0,
    ),
    "both transposed": (
        lambda x, y: ops.matmul(transpose(x), transpose(y)),
        (((30, 40), "f8"), ((20, 30), "f8")),
        lambda x, y: x.T @ y.T,
        (1, 40, 30, 20),
        0,
    ),
    "transposed twice": (
        lambda x, y: ops.matmul(transpose(transpose(x)), y),
        (X, Y),
        lambda x, y: x @ y,
        (1, 40, 30, 20),
        0,
    ),
    "contracted first axis": (
        lambda x, y: ops.dot(x, y, contract=((0,), (0,))),
        (((30, 40), "f8"), Y),
        lambda x, y: x.T @ y,
        (1, 40, 30, 20),
        0,
    ),
    "two contracted axes in memory order": (
        lambda x, y: ops.dot(x, y, contract=((1, 2), (0, 1))),
        (((4, 5, 6), "f8"), ((5, 6, 7), "f8")),
        lambda x, y: np.tensordot(x, y, 2),
        (1, 4, 30, 7),
        0,
    ),
    "two contracted axes crossed": (
        lambda x, y: ops.dot(x, y, contract=((1, 2), (1, 0))),
        (((4, 5, 6), "f8"), ((6, 5, 7), "f8")),
        lambda x, y: np.einsum("ijk,kjl->il", x, y),
        (1, 4, 30, 7),
        1,
    ),
    "batch": (ops.matmul, (((3, 4, 5), "f8"), ((3, 5, 6), "f8")), np.matmul, (3, 4, 5, 6), 0),
    "batch in the middle": (
        lambda x, y: ops.matmul(transpose(x, (1, 0, 2)), y),
        (((4, 3, 5), "f8"), ((3, 5, 6), "f8")),
        lambda x, y: np.matmul(x.transpose(1, 0, 2), y),
        (3, 4, 5, 6),
        0,
    ),
    "batch innermost": (
        lambda x, y: ops.matmul(transpose(x, (2, 0, 1)), y),
        (((4, 5, 3), "f8"), ((3, 5, 6), "f8")),
        lambda x, y: np.matmul(x.transpose(2, 0, 1), y),
        (3, 4, 5, 6),
        1,
    ),
    "slice": (
        lambda x, y: ops.matmul(ops.slice_axis(x, 0, 3, 9), y),
        (X, Y),
        lambda x, y: x[3:9] @ y,
        (1, 6, 30, 20),
        1,
    ),
    "backwards": (
        lambda x, y: ops.matmul(ops.flip(x, 1), y),
        (X, Y),
        lambda x, y: x[:, ::-1] @ y,
        (1, 40, 30, 20),
        1,
    ),
    "expression": (
        lambda x, y: ops.matmul(x * 2.0, y),
        (X, Y),
        lambda x, y: (x * 2.0) @ y,
        (1, 40, 30, 20),
        1,
    ),
    "broadcast": (
        lambda x, y: ops.matmul(broadcast(x, (4, 30), (1,)), y),
        (((30,), "f8"), Y),
        lambda x, y: np.tile(x, (4, 1)) @ y,
        (1, 4, 30, 20),
        1,
    ),
    "reshape": (
        lambda x, y: ops.matmul(reshape(x, (60, 20)), transpose(y)),
        (X, ((7, 20), "f8")),
        lambda x, y: x.reshape(60, 20) @ y.T,
        (1, 60, 20, 7),
        1,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_library_call(name):
    function, types, reference, sizes, copied = CALLS[name]
    schedule = schedule_of(function, *types)
    (step,) = products(schedule)
    assert (step.batch, step.rows, step.inner, step.columns) == sizes
    assert copies(schedule) == copied
    check_values(function, types, reference)


@pytest.mark.parametrize("name", CALLS)
def test_matrices_lie_inside_their_buffers(name):
    """The last element that the call may touch exists, and one stride is 1 as BLAS wants it."""
    function, types, *_ = CALLS[name]
    schedule = schedule_of(function, *types)
    (step,) = products(schedule)
    shapes = ((step.rows, step.inner), (step.inner, step.columns), (step.rows, step.columns))
    for matrix, (rows, columns) in zip((step.x, step.y, step.c), shapes, strict=True):
        batch, row, column = matrix.strides
        last = matrix.offset + (step.batch - 1) * batch + (rows - 1) * row + (columns - 1) * column
        assert last < schedule.buffers[matrix.buffer].size
        assert 1 in (row, column) or rows == 1 or columns == 1


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_every_inexact_type_goes_to_the_library(dtype):
    assert len(products(schedule_of(ops.matmul, (X[0], dtype), (Y[0], dtype)))) == 1


@pytest.mark.parametrize("dtype", ["i1", "i8", "u4", "?"])
def test_exact_types_are_loops(dtype):
    schedule = schedule_of(ops.matmul, (X[0], dtype), (Y[0], dtype))
    assert products(schedule) == []
    assert [n.reduces for n in nests(schedule)] == [True]


@pytest.mark.parametrize(
    "shapes",
    [
        ((30,), (30,)),
        ((40, 30), (30,)),
        ((30,), (30, 20)),
        ((1, 30), (30, 20)),
        ((40, 30), (30, 1)),
    ],
)
def test_products_with_a_vector_are_loops_that_fuse(shapes):
    types = [(s, "f8") for s in shapes]
    schedule = schedule_of(lambda x, y: ops.matmul(x * 2.0, y), *types)
    assert products(schedule) == []
    assert len(schedule.steps) == 1
    check_values(lambda x, y: ops.matmul(x * 2.0, y), types, lambda x, y: (x * 2.0) @ y)


def test_one_copy_serves_several_products():
    def function(x, y):
        z = x * 2.0
        return ops.matmul(z, y), ops.matmul(transpose(y), transpose(z)), ops.matmul(z, y * 3.0)

    schedule = schedule_of(function, X, Y)
    assert len(products(schedule)) == 3
    assert copies(schedule) == 2  # z and y * 3


def test_an_empty_product_has_no_step():
    assert schedule_of(ops.matmul, ((0, 3), "f8"), ((3, 4), "f8")).steps == ()


def test_text_of_a_call():
    lines = schedule_of(lambda x, y: ops.matmul(transpose(x), y), ((30, 40), "f8"), Y).text()
    assert "matmul f64 1x[40,30]@[30,20] b2 = b0[0, 1, 40] @ b1[0, 20, 1]" in lines
