"""cbrt, hypot: accuracy over all exponents, exact cubes and triples, special values, bits."""

import mpmath as mp
import numpy as np
import pytest

from tilegrad.ir.scalar.roots import cbrt, hypot
from tilegrad.kernels.llvm.evaluate import evaluate

DTYPES = [np.float64, np.float32]
INF, NAN = np.inf, np.nan


def real_cbrt(x):
    return mp.sign(x) * mp.cbrt(abs(x))


def powers(rng, dtype, count, low=0.0, high=1.0):
    """Numbers of both signs, uniform in the exponent between two fractions of its range."""
    info = np.finfo(dtype)
    ends = np.log2(float(info.smallest_subnormal)), np.log2(float(info.max)) - 0.6
    exponent = rng.uniform(*(ends[0] + (ends[1] - ends[0]) * f for f in (low, high)), count)
    return (np.exp2(exponent) * rng.choice([-1, 1], count)).astype(dtype)


def pairs(rng, dtype):
    sides = []
    for low, high in ((0, 1), (0, 0.05), (0.95, 1), (0.25, 0.35), (0.7, 0.78), (0.48, 0.52)):
        sides.append((powers(rng, dtype, 700, low, high), powers(rng, dtype, 700, low, high)))
    base = powers(rng, dtype, 700, 0.1, 0.9)
    sides.append((base, (base * powers(rng, np.float64, 700, 0.49, 0.51)).astype(dtype)))
    return tuple(np.concatenate(side) for side in zip(*sides, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_accuracy_of_cbrt(dtype, rng, ulp_errors):
    groups = [rng.uniform(-9, 9, 2000), powers(rng, dtype, 2000), powers(rng, dtype, 1000, 0, 0.1)]
    x = np.concatenate([np.asarray(g, dtype) for g in groups])
    assert ulp_errors(cbrt, real_cbrt, x).max() <= 0.506


@pytest.mark.parametrize("dtype", DTYPES)
def test_accuracy_of_hypot(dtype, rng, ulp_errors):
    x, y = pairs(rng, dtype)
    errors = ulp_errors(hypot, mp.hypot, x, y)
    # results below the smallest normal number may round twice
    assert errors.max() <= 0.63, (x[errors.argmax()], y[errors.argmax()])


@pytest.mark.parametrize("dtype", DTYPES)
def test_cubes_have_exact_roots(dtype):
    limit = 208063 if dtype == np.float64 else 255  # the cube is exact
    n = np.arange(-limit, limit + 1).astype(dtype)
    assert (evaluate(cbrt, n**3) == n).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_pythagorean_triples(dtype):
    m, n = np.meshgrid(np.arange(1, 40), np.arange(1, 40))
    a, b, c = (v.ravel().astype(dtype) for v in (m * m - n * n, 2 * m * n, m * m + n * n))
    for scale in (1, np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max / dtype(2**13)):
        power = dtype(2.0 ** np.floor(np.log2(float(scale))))
        assert (evaluate(hypot, a * power, b * power) == c * power).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype):
    x = np.array([0.0, -0.0, INF, -INF, NAN], dtype)
    got = evaluate(cbrt, x)
    np.testing.assert_array_equal(got, x)
    assert np.signbit(got[:4]).tolist() == [False, True, False, True]
    x = np.array([0.0, -0.0, INF, NAN, -INF, NAN, 1, NAN, 0.0, -3], dtype)
    y = np.array([-0.0, -0.0, NAN, INF, 1, -INF, NAN, NAN, -2, 0.0], dtype)
    got = evaluate(hypot, x, y)
    np.testing.assert_array_equal(got, [0.0, 0.0, INF, INF, INF, INF, NAN, NAN, 2, 3])
    assert not np.signbit(got[:2]).any()
    largest = np.finfo(dtype).max
    assert evaluate(hypot, np.array([largest]), np.array([largest]))[0] == INF
    assert evaluate(hypot, np.array([largest]), np.array([0], dtype))[0] == largest


@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits(dtype, rng, assert_same_bits):
    special = np.array([0.0, -0.0, 1, -1, INF, -INF, NAN], dtype)
    assert_same_bits(cbrt, np.concatenate([powers(rng, dtype, 3000), special]))
    x, y = pairs(rng, dtype)
    grid_x, grid_y = np.meshgrid(special, special)
    x, y = np.concatenate([x, grid_x.ravel()]), np.concatenate([y, grid_y.ravel()])
    assert_same_bits(hypot, x, y)
