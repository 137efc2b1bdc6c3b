"""Elementwise nests: views, broadcasts, gathers, every dtype and odd extents, against NumPy.

Each row is a function over ``ops`` and the NumPy expression it must equal exactly: the arithmetic
used is exact in both, so that only where elements come from and go to is in question.
"""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys

import numpy as np
import pytest
from guarded import run_guarded
from plans import plan_of, run, same

from tilegrad.ir import ops
from tilegrad.ir.dtypes import ALL, as_dtype, float32, float64, int8, int32, int64
from tilegrad.ir.ops.leaves import iota
from tilegrad.ir.ops.shape import broadcast, broadcast_to, reshape, transpose

RNG = np.random.default_rng(5)
A = RNG.standard_normal((5, 19))
B = RNG.standard_normal((19, 5))
V = RNG.standard_normal(19)
T = RNG.standard_normal((3, 5, 17))
S = np.array(2.5)
I = RNG.integers(-19, 19, (4, 3))  # noqa: E741
J = RNG.integers(-40, 40, (4, 3))
K = RNG.integers(-5, 5, (4, 3))


def _interior(x, fill, low, high, gap):
    """Padding by NumPy, one axis after the other."""
    for d in range(x.ndim):
        n = x.shape[d]
        shape = list(x.shape)
        shape[d] = low[d] + high[d] + (n + (n - 1) * gap[d] if n else 0)
        y = np.full(shape, fill, x.dtype)
        stop = shape[d] - high[d]
        y[(slice(None),) * d + (slice(low[d], stop, gap[d] + 1),)] = x
        x = y
    return x


ROWS = {
    # broadcasting and strides
    "same shape": (lambda a: a * 2.0 + a, lambda a: a * 2.0 + a, A),
    "row vector": (lambda a, v: a * v - a, lambda a, v: a * v - a, A, V),
    "column": (
        lambda a, v: a + broadcast(v, (5, 19), (0,)),
        lambda a, v: a + v[:, None],
        A,
        V[:5],
    ),
    "outer sum": (
        lambda v, w: broadcast(v, (19, 5), (0,)) + broadcast(w, (19, 5), (1,)),
        lambda v, w: v[:, None] + w,
        V,
        V[:5] * 3,
    ),
    "scalar operand": (lambda a, s: a * s, lambda a, s: a * s, A, S),
    "scalar result": (lambda s: s * s - 1.0, lambda s: np.asarray(s * s - 1.0), S),
    "one element": (lambda a: a + 1.0, lambda a: a + 1.0, A[:1, :1]),
    "unit axes": (lambda a: a + 1.0, lambda a: a + 1.0, A[:1, None, :, None]),
    "a broadcast alone": (
        lambda v: broadcast_to(v, (4, 3, 19)),
        lambda v: np.broadcast_to(v, (4, 3, 19)),
        V,
    ),
    # views
    "transposed operand": (lambda a, b: transpose(a) + b, lambda a, b: a.T + b, A, B),
    "transposed result": (lambda a: transpose(a + 1.0), lambda a: (a + 1.0).T, A),
    "permuted": (lambda t: transpose(t, (2, 0, 1)) * 2.0, lambda t: t.transpose(2, 0, 1) * 2, T),
    "step 3": (lambda v: ops.slice_axis(v, 0, 2, None, 3), lambda v: v[2::3], V),
    "step -1": (lambda v: ops.flip(v, 0) + v, lambda v: v[::-1] + v, V),
    "step -4": (lambda v: ops.slice_axis(v, 0, 17, None, -4), lambda v: v[17::-4], V),
    "both axes backwards": (lambda a: ops.flip(a) - a, lambda a: a[::-1, ::-1] - a, A),
    "slice of one": (lambda a: ops.slice_axis(a, 1, 7, 8) * 2.0, lambda a: a[:, 7:8] * 2, A),
    "merged axes": (lambda t: reshape(t, (15, 17)) + 1.0, lambda t: t.reshape(15, 17) + 1, T),
    "cut axes": (lambda a: reshape(a, (19, 5)) + 1.0, lambda a: a.reshape(19, 5) + 1, A),
    "cut after a transpose": (
        lambda t: reshape(transpose(t), (5, 51)) * 2.0,
        lambda t: t.T.reshape(5, 51) * 2.0,
        T,
    ),
    "cut of a slice": (
        lambda a: reshape(ops.slice_axis(a, 1, 1, 19, 3), (3, 10)),
        lambda a: a[:, 1::3].reshape(3, 10),
        A,
    ),
    # pad and concat
    "pad": (
        lambda a: ops.pad(a, 7.0, (1, 2), (3, 0)),
        lambda a: np.pad(a, ((1, 3), (2, 0)), constant_values=7.0),
        A,
    ),
    "pad between": (
        lambda a: ops.pad(a, -1.0, (0, 2), (1, 3), (2, 1)),
        lambda a: _interior(a, -1.0, (0, 2), (1, 3), (2, 1)),
        A,
    ),
    "pad of nothing": (
        lambda v: ops.pad(ops.slice_axis(v, 0, 3, 3), 5.0, (2,), (9,)),
        lambda v: np.full(11, 5.0),
        V,
    ),
    "pad value from an array": (
        lambda v, s: ops.pad(v, s, (3,), (4,)),
        lambda v, s: np.pad(v, (3, 4), constant_values=float(s)),
        V,
        S,
    ),
    "pad, then flip, then cut": (
        lambda a: reshape(ops.flip(ops.pad(a, 0.0, (0, 1), (1, 1)), 1), (9, 14)),
        lambda a: np.pad(a, ((0, 1), (1, 1)))[:, ::-1].reshape(9, 14),
        A,
    ),
    "concat rows": (
        lambda a, b: ops.concat([a, transpose(b), a], 0) * 2.0,
        lambda a, b: np.concatenate([a, b.T, a]) * 2.0,
        A,
        B,
    ),
    "concat columns": (
        lambda a, b: ops.concat([a, transpose(b) + 1.0, a], 1),
        lambda a, b: np.concatenate([a, b.T + 1.0, a], 1),
        A,
        B,
    ),
    "concat with nothing": (
        lambda v: ops.concat([ops.slice_axis(v, 0, 0, 0), v, ops.slice_axis(v, 0, 4, 4), v], 0),
        lambda v: np.concatenate([v, v]),
        V,
    ),
    "concat of many": (
        lambda v: ops.concat([v * float(k) for k in range(20)], 0),
        lambda v: np.concatenate([v * float(k) for k in range(20)]),
        V,
    ),
    # gathers
    "take rows": (lambda b, i: ops.gather(b, i), lambda b, i: b[i], B, I),
    "take columns": (
        lambda a, i: ops.gather(a, i, axes=(1,)),
        lambda a, i: np.moveaxis(a[:, i], 0, -1),
        A,
        I,
    ),
    "take elements": (
        lambda b, i, k: ops.gather(b, i, k),
        lambda b, i, k: b[i, k],
        B,
        I,
        K,
    ),
    "take middle axis": (
        lambda t, k: ops.gather(t, k, axes=(1,)),
        lambda t, k: np.moveaxis(t[:, k], 0, 2),
        T,
        K,
    ),
    "clip": (
        lambda v, j: ops.gather(v, j, mode="clip"),
        lambda v, j: np.take(v, j, mode="clip"),
        V,
        J,
    ),
    "wrap": (
        lambda v, j: ops.gather(v, j, mode="wrap"),
        lambda v, j: np.take(v, j, mode="wrap"),
        V,
        J,
    ),
    "fill": (
        lambda v, j: ops.gather(v, j, mode="fill", fill_value=9.0),
        lambda v, j: np.where((j >= -19) & (j < 19), v[np.clip(j, -19, 18)], 9.0),
        V,
        J,
    ),
    "fill from nothing": (
        lambda v, j: ops.gather(ops.slice_axis(v, 0, 2, 2), j, mode="fill", fill_value=9.0),
        lambda v, j: np.full(j.shape, 9.0),
        V,
        J,
    ),
    "one scalar index": (lambda b, i: ops.gather(b, i), lambda b, i: b[i], B, np.array(-2)),
    "no index at all": (lambda b, i: ops.gather(b, i), lambda b, i: b[i], B, np.zeros(0, int)),
    "gather at gathered indices": (
        lambda v, i: ops.gather(v, ops.gather(reshape(i, (12,)), iota((9,)) + 2)),
        lambda v, i: v[i.reshape(12)[2:11]],
        V,
        I,
    ),
    "gather in a concat": (
        lambda b, i, v: ops.concat([reshape(ops.gather(b, i), (60,)), v], 0),
        lambda b, i, v: np.concatenate([b[i].reshape(60), v]),
        B,
        I,
        V,
    ),
    "take along axis": (
        lambda a, k: ops.take_along_axis(a, k, 1),
        lambda a, k: np.take_along_axis(a, k, 1),
        A,
        RNG.integers(-19, 19, (5, 4)),
    ),
    # windows
    "window": (
        lambda a, i, j: ops.dynamic_slice(a, i, j, sizes=(2, 9)),
        lambda a, i, j: a[2:4, 3:12],
        A,
        np.array(2),
        np.array(3),
    ),
    "window beyond the end": (
        lambda a, i, j: ops.dynamic_slice(a, i, j, sizes=(2, 9)) * 2.0,
        lambda a, i, j: a[3:5, 0:9] * 2.0,
        A,
        np.array(99),
        np.array(-99),
    ),
    "window from the end": (
        lambda a, i, j: ops.dynamic_slice(a, i, j, sizes=(2, 3)),
        lambda a, i, j: a[1:3, 14:17],
        A,
        np.array(-4),
        np.array(-5),
    ),
    # iota
    "iota": (
        lambda v: v + ops.convert(iota((4, 19), 0), as_dtype("f8")),
        lambda v: v + np.arange(4.0)[:, None],
        V,
    ),
    "iota alone": (
        lambda: iota((3, 7), 1, int32),
        lambda: np.tile(np.arange(7, dtype="i4"), (3, 1)),
    ),
    # empties
    "empty": (lambda a: a + 1.0, lambda a: a + 1.0, np.zeros((0, 3))),
    "empty by empty": (lambda a: transpose(a) * 2.0, lambda a: a.T * 2.0, np.zeros((3, 0, 2))),
    "pad from empty": (
        lambda a: ops.pad(a, 3.0, (1, 0), (0, 0)),
        lambda a: np.full((1, 4), 3.0),
        np.zeros((0, 4)),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_row(name):
    function, reference, *arrays = ROWS[name]
    same(run(function, *arrays), reference(*arrays))


@pytest.mark.parametrize("name", ROWS)
def test_row_reads_nothing_beyond_its_operands(name):
    """The same with every array between inaccessible pages, at its end and at its beginning."""
    function, reference, *arrays = ROWS[name]
    plan = plan_of(function, *arrays)
    for at_end in (True, False):
        (got,) = run_guarded(plan, arrays, at_end=at_end)
        same(got, reference(*arrays))


def test_the_guard_works():
    """One byte beyond a guarded array is a crash: the test above can fail."""
    program = (
        "import ctypes, sys; sys.path.insert(0, sys.argv[1]); from guarded import guarded\n"
        "a = guarded(24, 'u1', at_end=sys.argv[2] == 'end')\n"
        "ctypes.string_at(a.ctypes.data + int(sys.argv[3]), 1)"
    )
    folder = str(pathlib.Path(run_guarded.__code__.co_filename).parent)
    for side, offset, fails in (("end", 23, 0), ("end", 24, 1), ("start", 0, 0), ("start", -1, 1)):
        command = [sys.executable, "-c", program, folder, side, str(offset)]
        status = subprocess.run(command, capture_output=True).returncode
        assert status == (-signal.SIGSEGV if fails else 0), (side, offset)


# ------------------------------------------------------------------------------------ all dtypes


def sample(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.random(shape) < 0.5
    if dtype.is_integer:
        return rng.integers(0, 100, shape).astype(dtype.numpy)
    x = rng.integers(-50, 50, shape) / 4
    if dtype.is_complex:
        x = x + 1j * rng.integers(-50, 50, shape) / 4
    return x.astype(dtype.numpy)


EXTENTS = [1, 7, 8, 17, 64]


@pytest.mark.parametrize(
    ("dtype", "extent"),
    [(d, n) for d in ALL for n in (EXTENTS if d in (int8, float64) else (7, 64))],
    ids=str,
)
def test_moving_elements_of_every_dtype(dtype, extent):
    """Contiguous, backwards, strided, transposed, padded and gathered reads; contiguous writes."""
    x = sample(dtype, (3, extent))
    i = np.random.default_rng(1).integers(-extent, extent, 2 * extent + 1)
    border = dtype.numpy.type(1)

    def function(x, i):
        strided = ops.slice_axis(x, 1, 0, None, 2)
        padded = ops.pad(x, border, (0, 1), (1, 2))
        gathered = ops.gather(x, i, axes=(1,))
        return ops.flip(x, 1), strided, transpose(x), padded, gathered, reshape(x, (3 * extent,))

    expected = (
        x[:, ::-1],
        x[:, ::2],
        x.T,
        np.pad(x, ((0, 1), (1, 2)), constant_values=1),
        x[:, i].T,
        x.reshape(-1),
    )
    for got, right in zip(run(function, x, i), expected, strict=True):
        same(got, right)


@pytest.mark.parametrize("dtype", [d for d in ALL if not d.is_bool], ids=str)
def test_exact_arithmetic_of_every_dtype(dtype):
    x, y = sample(dtype, (37,)), sample(dtype, (37,), seed=1)
    with np.errstate(all="ignore"):
        same(run(lambda a, b: a + b, x, y), x + y)
        same(run(lambda a, b: a - b, x, y), x - y)
        chosen = run(lambda a, b: ops.where(ops.eq(a, b), a, a * b), x, y)
        same(chosen, np.where(x == y, x, x * y))


@pytest.mark.parametrize("source", ALL, ids=str)
def test_conversion_to_every_dtype(source):
    x = abs(sample(source, (21,))) if source.kind in "fc" else sample(source, (21,))
    x = x.astype(source.numpy)
    targets = [d for d in ALL if d.is_complex or d.is_bool or not source.is_complex]
    outputs = run(lambda a: tuple(ops.convert(a, d) for d in targets), x)
    for got, target in zip(outputs, targets, strict=True):
        same(got, x.astype(target.numpy))


def test_comparisons_are_bytes_of_zero_and_one():
    got = run(lambda a: ops.gt(a, 0.0), A)
    assert set(got.view(np.uint8).ravel()) == {0, 1}
    same(got, A > 0)


def test_bools_combine_and_select():
    m = A > 0
    got = run(lambda a, m: ops.where(ops.and_(m, ops.not_(ops.gt(a, 1.0))), a, -a), A, m)
    same(got, np.where(m & ~(A > 1), A, -A))


def test_real_and_imaginary_parts_are_taken_apart_and_joined():
    z = A + 1j * B.T
    re, im, both = run(
        lambda z: (ops.real(z), ops.imag(z), ops.complex_(ops.imag(z), ops.real(z))), z
    )
    same(re, z.real)
    same(im, z.imag)
    same(both, z.imag + 1j * z.real)


def test_loads_of_mixed_widths_share_a_nest():
    x8 = np.arange(-20, 21, dtype=np.int8)
    x4 = np.linspace(0, 1, 41, dtype=np.float32)
    got = run(lambda a, b: ops.convert(a, float32) * b, x8, x4)
    same(got, x8.astype(np.float32) * x4)


# -------------------------------------------------------------------------- outputs and aliases


def test_outputs_that_are_inputs_constants_or_each_other_are_fresh_arrays():
    constant = ops.constant(np.arange(3.0))
    first, second, third, fourth = run(lambda x: (x, x + 1.0, x, constant), V)
    same(first, V)
    same(third, V)
    same(second, V + 1.0)
    same(fourth, np.arange(3.0))
    assert not np.shares_memory(first, third)
    assert not np.shares_memory(first, V)


def test_a_plan_keeps_no_state_between_calls():
    plan = plan_of(lambda a: ops.exp(a) * 2.0, V)
    first = plan.run([V])[0]
    kept = first.copy()
    plan.run([V * 100])
    same(first, kept)
    same(plan.run([V])[0], kept)


def test_large_and_negative_offsets():
    x = np.arange(5000.0)
    same(run(lambda x: ops.slice_axis(x, 0, 4999, None, -1234), x), x[4999::-1234])
    same(run(lambda x: ops.slice_axis(x, 0, 3000, 3001), x), x[3000:3001])
    i = np.array([-5000, 4999, 0, -1])
    same(run(lambda x, i: ops.gather(x, i), x, i), x[i])


def test_int64_indices_beyond_32_bits_are_compared_as_64(rng):
    i = np.array([2**40, -(2**40), 2**32 + 1, 3])
    got = run(lambda x, i: ops.gather(x, i, mode="clip"), V, i)
    same(got, V[[18, 0, 18, 3]])
    assert got.dtype == np.float64
    same(run(lambda i: ops.convert(i, int64), i), i)
