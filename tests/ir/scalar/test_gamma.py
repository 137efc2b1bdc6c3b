"""lgamma, digamma, polygamma: accuracy on both sides of every seam, zeros, poles, bits."""

import mpmath as mp
import numpy as np
import pytest

from tilegrad.ir.scalar.log_gamma import lgamma
from tilegrad.ir.scalar.polygamma import digamma, polygamma
from tilegrad.kernels.llvm.evaluate import evaluate

DTYPES = [np.float64, np.float32]
ZERO = 1.4616321449683623  # of digamma; where lgamma is least


def log_gamma(x):
    return mp.re(mp.loggamma(x))


def psi(x):
    """mpmath sums too many terms for huge arguments, where the logarithm is all there is."""
    return mp.log(x) - 1 / (2 * x) if x > 1e30 else mp.digamma(x)


def positive(rng, dtype):
    """Uniform around the seams, dense around 1, 2 and the zero of digamma, all magnitudes."""
    count, top = 600, 120 if dtype == np.float32 else 1010
    near = [
        centre + sign * np.exp2(rng.uniform(-50, -1, count // 2))
        for centre in (1.0, 2.0, ZERO)
        for sign in (-1, 1)
    ]
    wide = np.exp2(rng.uniform(-top, top, count))
    seams = np.array([0.5, 1.5, 2.5, 3.0, 3.5, 4.5, 5.5])
    seams = np.concatenate([seams, np.nextafter(seams, 0), np.nextafter(seams, 9)])
    groups = [rng.uniform(0, 0.6, count), rng.uniform(0.4, 6, 3 * count), seams, wide, *near]
    return np.concatenate([*groups, rng.uniform(5, 60, count)]).astype(dtype)


def scaled_errors(program, reference, x, least):
    """Errors in units of the last place of the larger of result and ``least`` (at the operand)."""
    got = evaluate(program, x)
    sizes = []
    with mp.workprec(160):
        for value, operand in zip(got.tolist(), x.tolist(), strict=True):
            exact = reference(mp.mpf(operand))
            floor = least(operand) if callable(least) else least
            place = float(np.spacing(x.dtype.type(max(abs(exact), floor))))
            sizes.append(float(abs(value - exact)) / place)
    return np.array(sizes)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("program", "reference", "bound"), [(lgamma, log_gamma, 0.95), (digamma, psi, 0.9)]
)
def test_accuracy_of_positive_arguments(program, reference, bound, dtype, rng, ulp_errors):
    x = positive(rng, dtype)
    errors = ulp_errors(program, reference, x)
    assert errors.max() <= (bound if dtype == np.float64 else 0.51), float(x[errors.argmax()]).hex()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("program", "reference", "least", "bound"),
    [
        (lgamma, log_gamma, 1.0, 0.7),
        # of the largest summand of the reflection formula
        (digamma, mp.digamma, lambda x: abs(float(mp.digamma(-x))) + 1, 4.0),
    ],
)
def test_accuracy_of_negative_arguments(program, reference, least, bound, dtype, rng):
    tiny = np.exp2(rng.uniform(-100, -1, 300))
    x = -np.concatenate([rng.uniform(0, 3, 1000), rng.uniform(3, 40, 500), tiny]).astype(dtype)
    x = np.concatenate([x, -np.exp(rng.uniform(3, 9, 200)).astype(dtype)])
    x = x[x != np.rint(x)]
    errors = scaled_errors(program, reference, x, least)
    assert errors.max() <= (bound if dtype == np.float64 else 0.51), float(x[errors.argmax()]).hex()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_accuracy_of_derivatives(n, dtype, rng):
    x = np.concatenate([rng.uniform(0.01, 12, 150), np.exp(rng.uniform(2, 9, 50))]).astype(dtype)

    def program(h, x):
        return polygamma(h, x, n=n)

    def reference(x):
        return mp.polygamma(n, x)

    errors = scaled_errors(program, reference, x, 0.0)
    assert errors.max() <= (4 + n if dtype == np.float64 else 0.51)
    below = -rng.uniform(0.05, 5, 100).astype(dtype)
    below = below[np.abs(below - np.rint(below)) > 0.05]
    # the largest summand of the reflection formula, away from the poles
    least = float(np.pi ** (n + 1) * mp.factorial(n))
    assert scaled_errors(program, reference, below, least).max() <= 4 + n


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values(dtype):
    inf, nan = np.inf, np.nan
    top = float(np.finfo(dtype).max)
    x = np.array([1.0, 2.0, 0.0, -0.0, -1.0, -2.0, -(2.0**60), inf, -inf, nan, top], dtype)
    expected = [0.0, 0.0, inf, inf, inf, inf, inf, inf, inf, nan, inf]
    np.testing.assert_array_equal(evaluate(lgamma, x), np.array(expected, dtype))
    expected = [-inf, inf, nan, nan, nan, inf, nan, nan]
    np.testing.assert_array_equal(evaluate(digamma, x[2:10]), np.array(expected, dtype))
    odd = evaluate(lambda h, x: polygamma(h, x, n=1), x[2:10])
    np.testing.assert_array_equal(odd, np.array([inf, inf, inf, inf, inf, 0, inf, nan], dtype))
    even = evaluate(lambda h, x: polygamma(h, x, n=2), x[2:10])
    np.testing.assert_array_equal(even, np.array([-inf, -inf, nan, nan, nan, 0, nan, nan], dtype))


def test_bounds_of_overflow():
    most = mp.mpf(2) ** 1024 - mp.mpf(2) ** 970  # rounds to infinity
    bound = float(most / (mp.lambertw(most / mp.e)))  # x (log(x) - 1) = most
    around = bound * (1 + np.array([-1e-13, 1e-13]))
    np.testing.assert_array_equal(np.isinf(evaluate(lgamma, around)), [False, True])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "program", [lgamma, digamma, lambda h, x: polygamma(h, x, n=2)], ids=["lgamma", "digamma", "2"]
)
def test_same_bits(program, dtype, rng, assert_same_bits):
    x = positive(rng, dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -2.5, 5e-324, 1e308], np.float64)
    with np.errstate(over="ignore"):
        assert_same_bits(program, np.concatenate([x, -x[x < 100], special.astype(dtype)]))
