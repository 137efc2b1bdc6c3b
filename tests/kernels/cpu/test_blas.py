"""BLAS layouts: any contraction of any permutation of its operands, with exact integers."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from guarded import run_guarded
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import plan_of

import tilegrad as tg
from tilegrad.fusion.loops import MatMul, Strided
from tilegrad.ir import ops
from tilegrad.ir.dtypes import complex128
from tilegrad.ir.ops.shape import transpose
from tilegrad.kernels.cpu.blas import blas_frame, panels
from tilegrad.kernels.cpu.openblas import routine_address, thread_control
from tilegrad.kernels.llvm.teamwork import LIBRARY_THREADS, LIBRARY_USERS, POOL_WORDS
from tilegrad.kernels.pool import pool_address

LETTERS = "abcdefgh"


@st.composite
def contractions(draw):
    """(einsum text, shapes, contract, batch, permutations): axes of extent 0 to 5 in any order."""
    counts = [draw(st.integers(0, 2)) for _ in range(4)]  # batch, free x, free y, contracted
    names = iter(LETTERS)
    batch, free_x, free_y, inner = ([next(names) for _ in range(n)] for n in counts)
    extents = {
        a: draw(st.sampled_from((1, 2, 3, 5, 4, 0))) for a in batch + free_x + free_y + inner
    }
    x = draw(st.permutations(batch + free_x + inner))
    y = draw(st.permutations(batch + free_y + inner))
    result = batch + [a for a in x if a in free_x] + [a for a in y if a in free_y]
    text = f"{''.join(x)},{''.join(y)}->{''.join(result)}"
    pairs = [tuple(tuple(v.index(a) for a in group) for v in (x, y)) for group in (inner, batch)]
    shapes = [tuple(extents[a] for a in v) for v in (x, y)]
    orders = [tuple(draw(st.permutations(range(len(v))))) for v in (x, y)]
    return text, shapes, pairs, orders


@settings(max_examples=120)
@given(contractions(), st.sampled_from(["f8", "c8"]), st.booleans())
def test_any_contraction_of_any_layout(case, dtype, at_end):
    text, shapes, (contract, batch), orders = case
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, s).astype(dtype) for s in shapes)

    def function(u, v):
        # The operands arrive permuted and are turned back by views.
        x, y = (transpose(w, np.argsort(o)) for w, o in zip((u, v), orders, strict=True))
        return ops.dot(x, y, contract=contract, batch=batch)

    u, v = (np.ascontiguousarray(w.transpose(o)) for w, o in zip((x, y), orders, strict=True))
    u, v = u.reshape(x.transpose(orders[0]).shape), v.reshape(y.transpose(orders[1]).shape)
    plan = plan_of(function, u, v)
    (got,) = run_guarded(plan, (u, v), at_end=at_end)
    expected = np.einsum(text, x, y)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    assert np.array_equal(got, expected), text


@pytest.mark.parametrize("name", ["sgemm", "dgemm", "cgemm", "zgemm"])
def test_routines_have_addresses(name):
    assert routine_address(name) > 0


def test_the_address_is_that_of_the_product():
    """Call dgemm through it as C would: [[1, 2], [3, 4]] @ [[5, 6], [7, 8]] by columns."""
    integer, real = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double)
    letter = ctypes.c_char_p
    types = [letter, letter, integer, integer, integer, real, real, integer, real, integer, real]
    dgemm = ctypes.CFUNCTYPE(None, *types, real, integer)(routine_address("dgemm"))
    a, b, c = (np.array(v, float) for v in ([1, 3, 2, 4], [5, 7, 6, 8], [9, 9, 9, 9]))
    two, one, zero = ctypes.byref(ctypes.c_int(2)), ctypes.c_double(1), ctypes.c_double(0)

    def pointer(x):
        return x.ctypes.data_as(real)

    sizes = (ctypes.cast(two, integer),) * 3
    lead = sizes[0]
    dgemm(
        b"N", b"N", *sizes, ctypes.byref(one), pointer(a), lead, pointer(b), lead,
        ctypes.byref(zero), pointer(c), lead,
    )  # fmt: skip
    assert c.tolist() == [19, 43, 22, 50]


FRAMES = [
    # x strides (row, column), y strides, letters, leading dimensions; rows 4, inner 5, columns 6
    ((5, 1), (6, 1), "NN", (5, 6)),
    ((1, 4), (6, 1), "TN", (4, 6)),
    ((5, 1), (1, 5), "NT", (5, 5)),
    ((1, 4), (1, 5), "TT", (4, 5)),
    ((50, 1), (60, 1), "NN", (50, 60)),  # rows of a wider matrix
]


@pytest.mark.parametrize(("x", "y", "letters", "leading"), FRAMES)
def test_frame_of_a_product(x, y, letters, leading):
    step = MatMul(
        complex128,
        1,
        4,
        5,
        6,
        Strided(0, 0, (0, *x)),
        Strided(1, 0, (0, *y)),
        Strided(2, 0, (24, 6, 1)),
    )
    frame = blas_frame(step, panels(step))
    assert [chr(w) for w in frame[6:8]] == list(letters)
    assert frame[8:11] == (6, 4, 5)  # Fortran's m, n, k of the transposed product
    assert frame[11:14] == (*leading, 6)


def test_blas_runs_on_one_thread_inside_a_plan():
    """Our threads share the panels: BLAS is told so by the first plan inside, and told back."""
    get, _ = thread_control()
    assert get
    threads = ctypes.CFUNCTYPE(ctypes.c_int)(get)
    words = (ctypes.c_int64 * POOL_WORDS).from_address(pool_address(1))
    before = threads()
    words[LIBRARY_THREADS] = -1
    x = np.ones((40, 40), complex)  # real products are not BLAS's
    tg.eval(tg.jit(lambda a: a @ a)(x))
    assert words[LIBRARY_THREADS] == before  # what the plan found, and put back
    assert words[LIBRARY_USERS] == 0
    assert threads() == before
