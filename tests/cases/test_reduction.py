"""Cases of the group reduction: empty axes, NaN, cancellation, float32 beyond 2^24."""

import math

import numpy as np
import pytest
from ways import in_every_way, same_bits

import tilegrad as tg

nan = math.nan
# around vectors of 8, lanes of 16, blocks of 1024 and what two threads divide
LENGTHS = [1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 1000, 1023, 1024, 1025, 2049, 5000, 70_000]

TOTAL = ("sum", "prod", "any", "all", "count_nonzero")  # what has a value of nothing


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 0)])
def test_emptyred(shape):
    x = np.zeros(shape)
    for axis in [None, *range(x.ndim), *([(0, 1)] if x.ndim > 1 else [])]:
        every = in_every_way(lambda x, a=axis: [getattr(tg, n)(x, axis=a) for n in TOTAL], x)
        for name, got in zip(TOTAL, every, strict=True):
            same_bits(got, np.asarray(getattr(np, name)(x, axis=axis)))
        for name in ("min", "max", "argmin", "argmax"):
            if isinstance(axis, tuple) and name.startswith("arg"):
                continue
            ours, theirs = getattr(tg, name), getattr(np, name)
            try:
                expected = theirs(x, axis=axis)
            except ValueError:
                for run in (ours, lambda x, axis, f=ours: tg.jit(lambda x: f(x, axis=axis))(x)):
                    with pytest.raises(ValueError, match="expected at least one element"):
                        run(tg.asarray(x), axis=axis)
            else:
                got = in_every_way(lambda x, f=ours, a=axis: f(x, axis=a), x)
                same_bits(got, np.asarray(expected))
    assert in_every_way(lambda x: tg.max(x, initial=2.5), x) == 2.5


@pytest.mark.parametrize("name", ["mean", "var", "std", "median"])
def test_emptyred_of_averages(name):
    """The mean of nothing is NaN."""
    f = getattr(tg, name)
    assert np.isnan(in_every_way(f, np.zeros(0)))
    assert in_every_way(lambda x: f(x, axis=1), np.zeros((0, 3))).shape == (0,)
    assert np.isnan(in_every_way(lambda x: f(x, axis=0), np.zeros((0, 3)))).tolist() == [True] * 3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", LENGTHS)
def test_argmaxnan(n, dtype, rng):
    """The first NaN wins; without one the first extremum; max and min agree."""
    x = rng.integers(-3, 4, n).astype(dtype)

    def all_four(x):
        return tg.argmax(x), tg.argmin(x), tg.max(x), tg.min(x)

    columns = [x, x.copy(), x.copy()]
    columns[1][n // 2] = nan
    columns[2][[0, n - 1]] = nan
    got = in_every_way(lambda x: [f(x, axis=1) for f in (tg.argmax, tg.argmin)], np.stack(columns))
    same_bits(got[0], np.argmax(columns, axis=1))
    same_bits(got[1], np.argmin(columns, axis=1))
    compiled = tg.jit(all_four)
    for x in columns:
        high, low, most, least = map(np.asarray, compiled(x))
        assert (high, low) == (np.argmax(x), np.argmin(x))
        np.testing.assert_array_equal([most, least], [np.max(x), np.min(x)])


def test_argmaxnan_given_values():
    assert int(tg.argmax(tg.array([2.0, nan, 7.0]))) == 1
    assert int(tg.argmin(tg.full(3, nan))) == 0
    big = tg.zeros(5000).at[4000].set(nan)
    assert int(tg.argmax(big)) == 4000
    assert math.isnan(float(tg.max(big)))


@pytest.mark.parametrize("mean", [0.0, 1e9, -1e9, 2.0**40])
@pytest.mark.parametrize("n", [4, 1000, 5000])
def test_varcancel(mean, n):
    """Exact: the deviations are multiples of 3/2 and small against 2^53."""
    deviations = 3.0 * (np.arange(n) - (n - 1) / 2)
    x = np.random.default_rng(0).permutation(mean + deviations)
    exact = 9 * (n**2 - 1) / 12
    got = in_every_way(lambda x: (tg.var(x), tg.std(x), tg.var(x, ddof=1), tg.mean(x)), x)
    expected = [exact, math.sqrt(exact), exact * n / (n - 1), mean]
    np.testing.assert_allclose(got, expected, rtol=1e-14)
    rows = in_every_way(lambda x: tg.var(x, axis=1), np.stack([x, x[::-1]]))
    np.testing.assert_allclose(rows, exact, rtol=1e-14)


def test_varcancel_given_values():
    x = 1e9 + tg.array([0.0, 3.0, 6.0, 9.0])
    assert float(tg.var(x)) == 11.25
    assert float(tg.std(x)) == 3.3541019662496847
    assert float(tg.var(x, ddof=1)) == 15.0


def test_varcancel_gradient():
    """2 (x - mean) / n, where the textbook formula cancels."""
    x = 1e9 + np.array([0.0, 3.0, 6.0, 9.0])
    np.testing.assert_array_equal(tg.grad(tg.var)(x), (x - 1e9 - 4.5) / 2)
    np.testing.assert_allclose(tg.hessian(tg.var)(x), (np.eye(4) - 0.25) / 2, atol=1e-16)


def test_f32ones():
    x = tg.ones(2**25, dtype="float32")
    row = tg.ones((1, 2**25), dtype="float32")
    for threads in (1, 2):
        with tg.config(num_threads=threads):
            assert float(tg.sum(x)) == 2.0**25
            assert float(tg.jit(lambda x: tg.sum(x * 1.0))(x)) == 2.0**25
            assert tg.sum(row, axis=1, keepdims=True).tolist() == [[2.0**25]]
            assert float(tg.mean(x)) == 1.0


@pytest.mark.parametrize("axis", [0, 1, None])
def test_f32ones_rounds_once(axis, rng):
    """float32 sums, means and dot products are those of float64, rounded once."""
    x = rng.normal(1e4, 1.0, (300, 500)).astype(np.float32)
    total, mean = in_every_way(lambda x: (tg.sum(x, axis=axis), tg.mean(x, axis=axis)), x)
    wide = np.sum(x.astype(np.longdouble), axis=axis)
    assert total.dtype == mean.dtype == np.float32
    spacing = np.spacing(np.abs(total)) * 0.5001
    assert (np.abs(total - wide) <= spacing).all()
    count = x.size / np.size(total)
    assert (np.abs(mean - wide / count) <= np.spacing(np.abs(mean)) * 0.5001).all()


@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 1), (2, 1, 3), (0, 2), (2, 0)])
def test_allaxis1(shape, rng):
    x = rng.integers(0, 2, shape).astype(float)
    options = [
        {"axis": a, "keepdims": k} for a in (None, *range(x.ndim), -1) for k in (True, False)
    ]

    def reductions(m, x):
        return [
            np.asarray(f(x, **o)) if m is np else f(x, **o) for f in (m.all, m.any) for o in options
        ]

    got = in_every_way(lambda x: reductions(tg, x), x, ways=("jit", "jit, 2 threads", "vmap"))
    for value, right in zip(got, reductions(np, x), strict=True):
        same_bits(value, right)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex128"])
def test_segempty(dtype):
    def segments(x, i):
        return tg.segment_sum(x, i, num_segments=3)

    got = in_every_way(segments, np.zeros(0, dtype), np.zeros(0, int))
    same_bits(got, np.zeros(3, dtype))
    rows = in_every_way(segments, np.zeros((0, 2), dtype), np.zeros(0, int))
    same_bits(rows, np.zeros((3, 2), dtype))
    # a segment that nothing falls into
    got = in_every_way(segments, np.array([1, 2, 4], dtype), np.array([2, 0, 2]))
    same_bits(got, np.array([2, 0, 5], dtype))
    same_bits(
        in_every_way(lambda i: tg.bincount(i, minlength=2, length=2), np.zeros(0, int)), [0, 0]
    )
    assert tg.bincount(tg.zeros(0, dtype="int64"), minlength=2).tolist() == [0, 0]


def test_segempty_gradient():
    i = np.array([2, 0, 2])
    g = tg.grad(lambda x: tg.sum(tg.segment_sum(x, i, num_segments=3) ** 2))(np.array([1.0, 2, 4]))
    np.testing.assert_array_equal(g, [10.0, 4.0, 10.0])
    empty = tg.grad(lambda x: tg.sum(tg.segment_sum(x, i[:0], num_segments=3)))(np.zeros(0))
    assert empty.shape == (0,)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 7, 31, 32, 33, 63, 65, 1000, 1025])
def test_softrow(n, dtype):
    """The result of a row is used again by all its elements."""
    x = np.arange(3.0 * n).reshape(3, n).astype(dtype)
    y = in_every_way(lambda x: tg.exp(x - tg.max(x, axis=1, keepdims=True)), x)
    same_bits(y[:, -1], np.ones(3, dtype))
    row = np.asarray(tg.exp(tg.asarray(np.arange(1.0 - n, 1.0).astype(dtype))))
    same_bits(y, np.stack([row] * 3))
    np.testing.assert_allclose(y[0], np.exp(np.arange(1.0 - n, 1.0)), rtol=1e-6, atol=1e-45)
    columns = in_every_way(lambda x: tg.exp(x - tg.max(x, axis=0)), x.T.copy())
    same_bits(columns.T, y)
    soft = in_every_way(lambda x: tg.nn.softmax(x, axis=1), x)
    np.testing.assert_allclose(soft.sum(1), 1, rtol=1e-6 if dtype == "float32" else 1e-14)
