"""Our own matrix products: one order of sums, whatever the layout, the tiles and the threads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from guarded import run_guarded
from plans import plan_of, run

from tilegrad.fusion.loops import MatMul, Strided
from tilegrad.ir import ops
from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.ops.shape import transpose
from tilegrad.kernels.cpu import gemm, microkernels, registers, small
from tilegrad.kernels.cpu.blas import panels

pytestmark = pytest.mark.skipif(
    not registers.has_product(as_dtype("f8")), reason="no fused multiply-add: products are BLAS's"
)

DTYPES = ["f4", "f8"]


def draw(shape, dtype, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def fused(a, b, c):
    """``a * b + c`` rounded once: through integers for float64, through float64 for float32.

    A float32 product is exact in float64; the sum is rounded to odd there, so that rounding it
    again gives what one rounding would (Boldo and Melquiond, IEEE Trans. Computers 57, 2008).
    """
    if a.dtype == np.float32:
        product, addend = float(a) * float(b), float(c)
        total = np.float64(product + addend)
        error = math.fsum((product, addend, -float(total)))
        if error and not int(total.view(np.int64)) & 1:
            total = np.nextafter(total, np.inf if error > 0 else -np.inf)
        return np.float32(total)
    (an, ad), (bn, bd), (cn, cd) = (float(v).as_integer_ratio() for v in (a, b, c))
    return np.float64((an * bn * cd + cn * ad * bd) / (ad * bd * cd))


def reference(x, y):
    """The order of sums, written from its text: chains in blocks of DEPTH, blocks added in turn."""
    result = np.zeros((x.shape[0], y.shape[1]), x.dtype)
    for i, j in np.ndindex(result.shape):
        for start in range(0, x.shape[1], microkernels.DEPTH):
            chain = x.dtype.type(0)
            for k in range(start, min(start + microkernels.DEPTH, x.shape[1])):
                chain = fused(x[i, k], y[k, j], chain)
            result[i, j] = chain if start == 0 else result[i, j] + chain
    return result


def same(got, expected):
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    assert np.array_equal(got.view(f"u{got.itemsize}"), expected.view(f"u{got.itemsize}"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3, 2), (3, 256, 3), (2, 257, 4), (3, 700, 2)])
def test_the_order_of_sums(dtype, shape):
    m, k, n = shape
    x, y = draw((m, k), dtype), draw((k, n), dtype, 1)
    same(run(ops.matmul, x, y), reference(x, y))


@pytest.mark.parametrize("dtype", DTYPES)
def test_layouts_have_the_same_bits(dtype):
    """Rows, columns, wide rows, packed or not: each pair of layouts, at sizes that need both."""
    for m, k, n in ((5, 9, 7), (33, 300, 70), (70, 520, 260), (9, 40, 600)):
        x, y = draw((m, k), dtype), draw((k, n), dtype, 1)
        xt, yt = np.ascontiguousarray(x.T), np.ascontiguousarray(y.T)
        expected = run(ops.matmul, x, y)
        same(run(lambda x, y: ops.matmul(transpose(x), y), xt, y), expected)
        same(run(lambda x, y: ops.matmul(x, transpose(y)), x, yt), expected)
        same(run(lambda x, y: ops.matmul(transpose(x), transpose(y)), xt, yt), expected)
        bound = k * np.finfo(dtype).eps * (abs(x).astype("f8") @ abs(y).astype("f8"))
        assert (abs(expected - x.astype("f8") @ y.astype("f8")) <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_element_does_not_depend_on_its_neighbours(dtype):
    """Part of a product, batched or alone, has the bits that the whole has there."""
    x, y = draw((50, 300), dtype), draw((300, 61), dtype, 1)
    whole = run(ops.matmul, x, y)
    same(run(ops.matmul, x[7:19], y[:, 3:5].copy()), whole[7:19, 3:5].copy())
    batch = run(ops.matmul, np.stack([x[:20], x[20:40]]), np.stack([y, y]))
    same(batch.reshape(40, 61), whole[:40].copy())


@pytest.mark.parametrize("bits", [128, 256])
@pytest.mark.parametrize("dtype", DTYPES)
def test_narrower_vectors_have_the_same_bits(monkeypatch, bits, dtype):
    """The code for other processors, as far as this one can run it."""
    cases = [
        (draw((m, k), dtype), draw((k, n), dtype, 1)) for m, k, n in ((5, 9, 7), (70, 520, 90))
    ]
    expected = [(run(ops.matmul, x, y), run(product_of_transposes, x, y)) for x, y in cases]
    monkeypatch.setattr(registers, "_vector_bits", lambda: bits)
    narrow = gemm.product_address.__wrapped__(as_dtype(dtype))
    assert narrow != gemm.product_address(as_dtype(dtype))
    monkeypatch.setattr(gemm, "product_address", lambda dtype: narrow)
    for (x, y), (plain, turned) in zip(cases, expected, strict=True):
        same(run(ops.matmul, x, y), plain)
        same(run(product_of_transposes, x, y), turned)


def product_of_transposes(x, y):
    """Both operands lie by columns."""
    return ops.matmul(transpose(y), transpose(x))


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_large_products_touch_only_their_matrices(dtype, at_end):
    for m, k, n in ((41, 261, 131), (300, 70, 50), (9, 33, 300)):
        x, y = draw((m, k), dtype), draw((k, n), dtype, 1)
        for function, operands in (
            (ops.matmul, (x, y)),
            (lambda x, y: ops.matmul(transpose(x), y), (np.ascontiguousarray(x.T), y)),
            (lambda x, y: ops.matmul(x, transpose(y)), (x, np.ascontiguousarray(y.T))),
        ):
            (got,) = run_guarded(plan_of(function, *operands), operands, at_end=at_end)
            same(got, run(ops.matmul, x, y))


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype):
    """NaN and infinity reach the elements that read them, and no others; -0 is what IEEE says."""
    x, y = np.ones((9, 30), dtype), np.ones((30, 50), dtype)
    x[2, 3], x[4, 5], y[7, 11] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        expected = np.einsum("ik,kj->ij", x, y)
    assert np.array_equal(run(ops.matmul, x, y), expected, equal_nan=True)
    tiny = np.finfo(dtype).smallest_subnormal
    x, y = np.full((2, 2), tiny, dtype), np.eye(2, dtype=dtype)
    same(run(ops.matmul, x, y), x)


def test_one_frame_serves_every_size():
    """What the code depends on is the dtype; a frame of other extents is only other numbers."""

    def frame(m, k, n):
        step = MatMul(
            as_dtype("f8"),
            1,
            m,
            k,
            n,
            Strided(0, 0, (0, k, 1)),
            Strided(1, 0, (0, n, 1)),
            Strided(2, 0, (0, n, 1)),
        )
        return gemm.product_frame(step, panels(step))

    assert len(frame(3, 4, 5)) == len(frame(3000, 400, 500))
    assert frame(3, 4, 5)[11:14] == (3, 4, 5)


# ---------------------------------------------------------------------------- many small ones

SMALL = [(4, 4, 4), (3, 3, 3), (2, 8, 2), (10, 3, 10), (2, 4, 5), (5, 1, 7), (7, 2, 16), (8, 8, 8)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SMALL)
def test_small_products_have_the_bits_of_large_ones(dtype, shape):
    """Straight code for a batch; the same sums as for one matrix, in every layout."""
    m, k, n = shape
    x, y = draw((small.FEWEST + 3, m, k), dtype), draw((small.FEWEST + 3, k, n), dtype, 1)
    expected = np.stack([reference(*pair) for pair in zip(x, y, strict=True)])
    xt, yt = (np.ascontiguousarray(v.swapaxes(1, 2)) for v in (x, y))
    for function, operands in (
        (ops.matmul, (x, y)),
        (lambda x, y: ops.matmul(transpose(x, (0, 2, 1)), y), (xt, y)),
        (lambda x, y: ops.matmul(x, transpose(y, (0, 2, 1))), (x, yt)),
    ):
        plan = plan_of(function, *operands)
        if min(shape) > 1:
            assert any(isinstance(f, small.SmallProduct) for f in plan.functions)
        for at_end in (True, False):
            (got,) = run_guarded(plan, operands, at_end=at_end)
            same(got, expected)


def test_a_small_matrix_that_all_share():
    x, y = draw((small.FEWEST, 3, 4), "f8"), draw((4, 2), "f8", 1)
    whole = run(ops.matmul, x, np.broadcast_to(y, (small.FEWEST, 4, 2)).copy())
    same(run(ops.matmul, x, y), whole)


def test_what_is_not_small():
    """Few matrices, or large ones, run as tiles: their code serves every size."""
    for m, k, n, batch in ((4, 4, 4, small.FEWEST - 1), (40, 40, 40, 100)):
        plan = plan_of(ops.matmul, draw((batch, m, k), "f8"), draw((batch, k, n), "f8"))
        assert as_dtype("f8") in plan.functions
