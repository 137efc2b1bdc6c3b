"""erf, erfc: accuracy in the tails and at the seams of the table, special values, bits."""

import mpmath as mp
import numpy as np
import pytest

from tilegrad.ir.scalar.error_function import erf, erfc
from tilegrad.ir.scalar.error_function_tables import ERF_32, ERF_64
from tilegrad.kernels.llvm.evaluate import evaluate

DTYPES = [np.float64, np.float32]
TAIL = {np.float64: 27.2, np.float32: 10.05}  # where erfc becomes subnormal and vanishes


def arguments(rng, dtype):
    info = np.finfo(dtype)
    tiny = np.exp2(rng.uniform(np.log2(float(info.smallest_subnormal)), 0, 1000))
    spacing = 25 / 64 if dtype == np.float64 else 17 / 64
    seams = (np.arange(16) + 0.5) * spacing
    seams = np.concatenate([seams + d for d in (-1e-6, 0, 1e-6)])
    tail = TAIL[dtype]
    groups = [rng.uniform(-1, 1, 1500), rng.uniform(-7, 7, 1500), rng.uniform(0, tail, 1500)]
    groups += [rng.uniform(0.95 * tail, tail, 1000), rng.uniform(0.13, 0.25, 500)]
    return np.concatenate([np.asarray(g, dtype) for g in (*groups, seams, -seams, tiny, -tiny)])


@pytest.mark.parametrize(
    ("program", "reference", "dtype", "bound"),
    [
        (erf, mp.erf, np.float64, 0.9),  # 0.65 for normal results
        (erf, mp.erf, np.float32, 1.05),  # 0.57 for normal results
        (erfc, mp.erfc, np.float64, 0.85),
        (erfc, mp.erfc, np.float32, 0.6),
    ],
)
def test_accuracy(program, reference, dtype, bound, rng, ulp_errors):
    x = arguments(rng, dtype)
    errors = ulp_errors(program, reference, x)
    assert errors.max() <= bound, float(x[errors.argmax()]).hex()


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, 30.0, -30.0, np.nan], dtype)
    got = evaluate(erf, x)
    np.testing.assert_array_equal(got, [0.0, -0.0, 1.0, -1.0, 1.0, -1.0, np.nan])
    assert np.signbit(got[:2]).tolist() == [False, True]
    np.testing.assert_array_equal(evaluate(erfc, x), [1.0, 1.0, 0.0, 2.0, 0.0, 2.0, np.nan])


@pytest.mark.parametrize("dtype", DTYPES)
def test_erf_reaches_one_and_stays(dtype):
    x = np.linspace(3.5, 8.0, 100_000).astype(dtype)
    got = evaluate(erf, x)
    assert (got <= 1).all()
    assert (got[x > (5.93 if dtype == np.float64 else 3.95)] == 1).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", [erf, erfc])
def test_same_bits(program, dtype, rng, assert_same_bits):
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 30.0, -30.0], dtype)
    assert_same_bits(program, np.concatenate([arguments(rng, dtype), special]))


@pytest.mark.parametrize("columns", [ERF_64, ERF_32])
def test_centres_are_accurate(columns):
    """The leading constants have ten bits more than they show."""
    digits = 53 if columns is ERF_64 else 24
    with mp.workprec(200):
        for centre, value in zip(*columns[:2], strict=True):
            exact = mp.erf(mp.mpf(centre))
            assert abs(exact - value) <= exact * mp.mpf(2) ** -(digits + 8)
