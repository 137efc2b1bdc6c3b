"""sin, cos, tan: accuracy near multiples of pi/2 and at large arguments, special values, bits."""

import mpmath as mp
import numpy as np
import pytest

from tilegrad.ir.scalar.trigonometric import cos, sin, tan
from tilegrad.ir.scalar.two_over_pi import FIRST_BUCKET, SCALE, TWO_OVER_PI
from tilegrad.kernels.llvm.evaluate import evaluate

PROGRAMS = [(sin, mp.sin), (cos, mp.cos), (tan, mp.tan)]
BOUND = {sin: 0.8, cos: 0.8, tan: 0.95}  # documented: 1
# The float64 number closest to a multiple of pi/2 in relative terms (Kahan's minimal example; see
# J.-M. Muller, Elementary Functions, 3rd ed., table 11.1), and others known to be hard.
HARD = [6381956970095103.0 * 2.0**797, 5.497891479999999e300, 1e22, 1.7976931348623157e308]
HARD += [
    6411027962775774.0 * 2.0**-48,
    2.0**1023,
    1.6e6,
    np.nextafter(1.6e6, 2e6),
    884279719003555.0,
]


def arguments(rng, dtype):
    tiny, largest = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    limit = 1.6e6 if dtype == np.float64 else 6400.0
    multiple = np.arange(1, 1500) * (np.pi / 2)
    multiple = np.concatenate([multiple, rng.integers(1, 2 * limit / np.pi, 500) * (np.pi / 2)])
    near = multiple.astype(dtype)
    with np.errstate(over="ignore"):
        spread = np.exp2(rng.uniform(np.log2(float(tiny)), np.log2(float(largest)), 1500))
    groups = [
        rng.uniform(-1.6, 1.6, 1000),
        rng.uniform(-limit, limit, 1000),
        near,
        np.nextafter(near, dtype(0)),
        np.nextafter(near, dtype(np.inf)),
        -near,
        spread,
        [tiny, 3 * tiny, np.finfo(dtype).tiny, largest, np.pi / 4, limit],
        HARD if dtype == np.float64 else [],
    ]
    return np.concatenate([np.asarray(g, dtype) for g in groups])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("program", "reference"), PROGRAMS, ids=["sin", "cos", "tan"])
def test_accuracy(program, reference, dtype, rng, ulp_errors):
    x = arguments(rng, dtype)
    errors = ulp_errors(program, reference, x)
    worst = errors.argmax()
    assert errors[worst] <= BOUND[program], float(x[worst]).hex()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("program", [sin, cos, tan])
def test_same_bits(program, dtype, rng, assert_same_bits):
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
    assert_same_bits(program, np.concatenate([arguments(rng, dtype), special]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_special_values(dtype):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
    for program in (sin, tan):
        got = evaluate(program, x)
        assert got[:2].tolist() == [0.0, 0.0]
        assert np.signbit(got[:2]).tolist() == [False, True]
        assert np.isnan(got[2:]).all()
    got = evaluate(cos, x)
    assert got[:2].tolist() == [1.0, 1.0]
    assert np.isnan(got[2:]).all()


def test_one_large_lane_changes_no_other():
    x = np.linspace(-3, 3, 64)
    mixed = x.copy()
    mixed[::8] = 1e200
    for program in (sin, cos, tan):
        usual = np.arange(64) % 8 != 0
        assert (evaluate(program, mixed)[usual] == evaluate(program, x)[usual]).all()


def test_bits_of_two_over_pi():
    with mp.workprec(2000):
        for row, parts in enumerate(zip(*TWO_OVER_PI, strict=True)):
            unit = mp.mpf(2) ** (1077 - 32 * (row + FIRST_BUCKET))
            rest = (2 / mp.pi) % unit * SCALE
            for part in parts:
                assert part == float(rest)
                rest -= part
