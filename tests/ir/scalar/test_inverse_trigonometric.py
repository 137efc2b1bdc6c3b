"""asin, acos, atan, atan2: accuracy at the ends and the seams, special values of C99, bits."""

import mpmath as mp
import numpy as np
import pytest

from tilegrad.ir.scalar.inverse_trigonometric import acos, asin, atan, atan2
from tilegrad.kernels.llvm.evaluate import evaluate

DTYPES = [np.float64, np.float32]
PROGRAMS = [(asin, mp.asin), (acos, mp.acos), (atan, mp.atan)]
BOUND = 0.66  # documented: 1
INF, NAN, PI = np.inf, np.nan, np.pi


def powers(rng, dtype, count, low=None, high=None):
    """Numbers of both signs, uniform in the exponent."""
    info = np.finfo(dtype)
    low = np.log2(float(info.smallest_subnormal)) if low is None else low
    high = np.log2(float(info.max)) if high is None else high
    return (np.exp2(rng.uniform(low, high, count)) * rng.choice([-1, 1], count)).astype(dtype)


def around(values, dtype):
    values = np.asarray(values, dtype)
    return np.concatenate([np.nextafter(values, dtype(-9)), values, np.nextafter(values, dtype(9))])


def unit_arguments(rng, dtype):
    digits = np.finfo(dtype).nmant + 1
    near_one = 1 - np.abs(powers(rng, dtype, 1000, -digits, -1)).astype(dtype)
    seams = around([0.5, -0.5, 0.25, -0.75], dtype)
    ends = [1, -1, np.nextafter(dtype(1), dtype(0)), np.nextafter(dtype(-1), dtype(0))]
    groups = [rng.uniform(-1, 1, 2000), near_one, -near_one, powers(rng, dtype, 1000, high=0)]
    return np.concatenate([np.asarray(g, dtype) for g in (*groups, seams, ends)])


def line_arguments(rng, dtype):
    seams = around([0.25, 0.75, 1, 4 / 3, 4, -0.25, -0.75, -1, -4], dtype)
    groups = [rng.uniform(-1, 1, 1500), rng.uniform(-9, 9, 1500), powers(rng, dtype, 1500), seams]
    ends = [2.0**60, 2.0**61, np.finfo(dtype).max, np.finfo(dtype).tiny]
    return np.concatenate([np.asarray(g, dtype) for g in (*groups, ends)])


def plane_arguments(rng, dtype):
    info = np.finfo(dtype)
    tiny, largest = np.log2(float(info.smallest_subnormal)), np.log2(float(info.max))
    x = [rng.uniform(-1, 1, 1500), powers(rng, dtype, 1500)]
    y = [rng.uniform(-1, 1, 1500), powers(rng, dtype, 1500)]
    for low, high in ((tiny, tiny + 40), (largest - 5, largest), (-3, 3)):
        x.append(powers(rng, dtype, 700, low, high))
        y.append(powers(rng, dtype, 700, low, high))
    # results around the smallest normal number
    x.append(powers(rng, dtype, 700, -9, 9))
    y.append(powers(rng, dtype, 700, tiny, tiny + info.nmant + 9))
    return tuple(np.concatenate([np.asarray(g, dtype) for g in side]) for side in (y, x))


def arguments(program, rng, dtype):
    if program is atan2:
        return plane_arguments(rng, dtype)
    return ((line_arguments if program is atan else unit_arguments)(rng, dtype),)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("program", "reference"), PROGRAMS, ids=["asin", "acos", "atan"])
def test_accuracy(program, reference, dtype, rng, ulp_errors):
    (x,) = arguments(program, rng, dtype)
    errors = ulp_errors(program, reference, x)
    assert errors.max() <= BOUND, float(x[errors.argmax()]).hex()


@pytest.mark.parametrize("dtype", DTYPES)
def test_accuracy_of_atan2(dtype, rng, ulp_errors):
    y, x = plane_arguments(rng, dtype)
    errors = ulp_errors(atan2, mp.atan2, y, x)
    worst = errors.argmax()
    # a result below the smallest normal number is rounded twice
    assert errors[worst] <= 0.76, (float(y[worst]).hex(), float(x[worst]).hex())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", [asin, acos, atan, atan2])
def test_same_bits(program, dtype, rng, assert_same_bits):
    assert_same_bits(program, *arguments(program, rng, dtype))
    special = np.array([0.0, -0.0, 1, -1, 2, INF, -INF, NAN], dtype)
    if program is atan2:
        assert_same_bits(program, *(g.ravel() for g in np.meshgrid(special, special)))
    else:
        assert_same_bits(program, special)


def check_exactly(got, want):
    want = np.asarray(want, got.dtype)
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype):
    x = np.array([0.0, -0.0, 1.0, -1.0, 1.5, -INF, INF, NAN], dtype)
    check_exactly(evaluate(asin, x), [0.0, -0.0, PI / 2, -PI / 2, NAN, NAN, NAN, NAN])
    check_exactly(evaluate(acos, x), [PI / 2, PI / 2, 0.0, PI, NAN, NAN, NAN, NAN])
    want = [0.0, -0.0, PI / 4, -PI / 4, np.arctan(1.5), -PI / 2, PI / 2, NAN]
    check_exactly(evaluate(atan, x), want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values_of_atan2(dtype):
    """C99, F.9.1.4."""
    cases = [
        *[(0.0, -0.0, PI), (-0.0, -0.0, -PI), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0)],
        *[(0.0, -1.0, PI), (-0.0, -1.0, -PI), (0.0, 1.0, 0.0), (-0.0, 1.0, -0.0)],
        *[(0.0, -INF, PI), (-0.0, -INF, -PI), (0.0, INF, 0.0), (-0.0, INF, -0.0)],
        *[(1.0, 0.0, PI / 2), (1.0, -0.0, PI / 2), (-1.0, 0.0, -PI / 2), (-1.0, -0.0, -PI / 2)],
        *[(1.0, -INF, PI), (-1.0, -INF, -PI), (1.0, INF, 0.0), (-1.0, INF, -0.0)],
        *[(INF, 1.0, PI / 2), (-INF, 1.0, -PI / 2), (INF, -1.0, PI / 2), (-INF, 0.0, -PI / 2)],
        *[(INF, -INF, 3 * PI / 4), (-INF, -INF, -3 * PI / 4), (INF, INF, PI / 4)],
        *[(-INF, INF, -PI / 4), (NAN, 1.0, NAN), (1.0, NAN, NAN), (NAN, INF, NAN)],
        *[(INF, NAN, NAN), (NAN, 0.0, NAN), (0.0, NAN, NAN), (NAN, NAN, NAN)],
    ]
    y, x, want = np.array(cases, dtype).T
    check_exactly(evaluate(atan2, y, x), want)
