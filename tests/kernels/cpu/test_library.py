"""Library calls of plans: the bits of the reference for all kinds of data and any threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.graph import make
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.leaves import input_node
from tilegrad.ir.types import TensorType
from tilegrad.kernels.cpu import lines, sorting
from tilegrad.kernels.cpu.library import LIBRARY, fill

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]


def call(name, x, threads=1, **params):
    """Result and reference of one op, both as bits."""
    node = make(OPS[name], (input_node(TensorType(x.shape, as_dtype(x.dtype)), "x").out,), **params)
    result = np.zeros(node.type.shape, node.type.dtype.numpy)
    fill(node.node, [x], [result], threads)
    return result, OPS[name].reference(x, **params)


def assert_same_bits(got, expected):
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(
        np.ascontiguousarray(got).view(np.uint8), np.ascontiguousarray(expected).view(np.uint8)
    )


def check(x, axis, threads=1):
    for descending in (False, True):
        for name in ("sort", "argsort"):
            assert_same_bits(*call(name, x, threads, axis=axis, descending=descending))
    n = x.shape[axis]
    for k in sorted({0, min(1, n), n // 5, n // 2, n}):
        assert_same_bits(*call("top_places", x, threads, axis=axis, k=k))


def special(dtype, shape, rng):
    """Ties, zeros of both signs, infinities, subnormals, NaNs of several payloads."""
    info = np.finfo(dtype)
    quiet = np.array([np.nan, -np.nan], dtype)
    word = np.dtype(f"i{info.bits // 8}")
    payload = (np.array(np.nan, dtype).view(word) + 5).view(dtype)
    pool = [0.0, -0.0, 1, -1, 1, np.inf, -np.inf, info.smallest_subnormal, -info.tiny, info.max]
    return rng.choice(np.array([*pool, *quiet, payload], dtype), shape)


@pytest.mark.parametrize("dtype", [*DTYPES, *FLOATS])
def test_ties_and_extremes(dtype, rng):
    if dtype == "bool":
        x = rng.integers(0, 2, (7, 40)).astype(bool)
    elif dtype in FLOATS:
        x = special(dtype, (7, 40), rng)
    else:
        info = np.iinfo(dtype)
        pool = np.array([info.min, info.min + 1, 0, 1, 5, info.max - 1, info.max], dtype)
        x = rng.choice(pool, (7, 40))
    check(x, 1)
    check(x, 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(1,), (2, 1), (0,), (3, 0), (0, 3), (5, 3, 4), (2, 3, 1), (2000,)]
)
def test_shapes_and_axes(dtype, shape, rng):
    x = special(dtype, shape, rng)
    for axis in range(x.ndim):
        check(x, axis)


def test_values_that_differ_in_their_last_bits_only(rng):
    """A place takes the low bits of a 64-bit word: what they tell must not be lost."""
    steps = rng.integers(0, 300, (6, 500))
    check((1.0 + steps * np.finfo(float).eps) * np.array([1, -1, 1, 3, -7, 1e-300])[:, None], 1)
    check(steps + np.int64(2**62), 1)
    check((steps + np.uint64(2**63)).astype(np.uint64), 1)


def test_selection_meets_a_tie_at_its_bound():
    """The last one selected agrees in the high bits with one outside that is larger."""
    x = np.linspace(0, 1, 1024)[None].repeat(2, 0)
    x[:, 700] = 2.0
    x[0, 20] = np.nextafter(2.0, 3)  # the largest, and comes first anyway
    x[1, 900] = np.nextafter(2.0, 3)  # the largest, and comes last by place
    assert call("top_places", x, axis=1, k=1)[0].tolist() == [[20], [900]]
    check(x, 1)


@pytest.mark.parametrize("axis", [0, 1])
def test_bits_do_not_depend_on_threads(axis, rng, monkeypatch):
    monkeypatch.setattr(lines, "WORTHWHILE", 0)
    monkeypatch.setattr(lines, "PIECE", 4096)
    x = np.where(
        rng.random((120, 130)) < 0.5, special("float64", (120, 130), rng), rng.random((120, 130))
    )
    expected = call("sort", x, 1, axis=axis, descending=False)[0]
    for threads in (1, 2, 3, 8):
        assert_same_bits(call("sort", x, threads, axis=axis, descending=False)[0], expected)
        check(x, axis, threads)


def test_all_threads_take_part_and_end():
    meet = threading.Barrier(3, timeout=30)
    done = []

    def work(pieces):
        for piece in pieces:
            meet.wait()  # passes only when three threads are here at once
            done.append(piece)

    before = threading.active_count()
    lines.share(work, range(3), lines.WORTHWHILE, 3)
    assert sorted(done) == [0, 1, 2]
    assert threading.active_count() == before


def test_small_work_starts_no_thread():
    seen = []
    lines.share(lambda pieces: seen.append((threading.get_ident(), list(pieces))), "ab", 100, 8)
    assert seen == [(threading.get_ident(), ["a", "b"])]


def test_an_error_in_any_thread_reaches_the_caller():
    def work(pieces):
        for piece in pieces:
            if piece == 5:
                raise MemoryError("piece 5")

    with pytest.raises(MemoryError, match="piece 5"):
        lines.share(work, range(9), lines.WORTHWHILE, 4)


def test_pieces_hold_every_line_once():
    for shape, axis in [((5, 7), 1), ((5, 7), 0), ((3, 4000, 11), 1), ((9000, 2), 1), ((4,), 0)]:
        x = np.zeros(shape, np.int64)
        whole = lines.Lines(x, axis)
        for piece in lines.pieces_of(shape, axis):
            view = whole.view(piece)
            assert view.shape[1] == shape[axis]
            view += 1
        assert (x == 1).all()


def test_random_sweep(rng):
    """Many small arrays of every kind against the references."""
    for _ in range(60):
        dtype = rng.choice([*DTYPES, *FLOATS])
        shape = tuple(rng.integers(1, 12, rng.integers(1, 4)))
        if dtype in FLOATS and rng.random() < 0.7:
            x = special(dtype, shape, rng)
        else:
            x = rng.integers(-4, 5, shape).astype(dtype)
        check(x, int(rng.integers(x.ndim)))


def test_every_entry_is_an_op():
    assert set(LIBRARY) <= set(OPS)


def test_sorting_is_what_plans_call(rng, monkeypatch):
    """A plan reaches the library, with the threads of the call."""
    from plans import plan_of

    from tilegrad.ir.ops import sort

    seen = []

    def spy(x, out, threads, **params):
        seen.append(threads)
        sorting.sort(x, out, threads, **params)

    monkeypatch.setitem(LIBRARY, "sort", spy)
    x = rng.random((3, 5))
    (y,) = plan_of(lambda v: sort(v * 2.0, 1, True), x).run([x], 3)
    np.testing.assert_array_equal(y, -np.sort(-2 * x, 1))
    assert seen == [3]
