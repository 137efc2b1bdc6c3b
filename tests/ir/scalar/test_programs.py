"""Every scalar program against mpmath, at its special values, and in all its forms."""

from __future__ import annotations

import numpy as np
import pytest

from tilegrad.ir.dtypes import float32, float64
from tilegrad.ir.scalar import PROGRAMS
from tilegrad.ir.scalar.cases import CASES
from tilegrad.ir.scalar.handlers.numpy import run
from tilegrad.kernels.llvm.accuracy import measure, sample, table
from tilegrad.kernels.llvm.evaluate import evaluate

each_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
each_format = pytest.mark.parametrize("dtype", [float64, float32], ids=str)
POINTS = 4000


def same_bits(x, y):
    integer = np.dtype(f"u{x.dtype.itemsize}")
    return x.dtype == y.dtype and np.all((x.view(integer) == y.view(integer)) | (x != x) & (y != y))


def test_every_program_has_a_case():
    assert [case.name for case in CASES] == list(PROGRAMS)


@each_case
@each_format
def test_error_against_mpmath(case, dtype):
    # settle >= POINTS: each point is computed with mpmath, no reference in between
    found = measure(case, dtype, POINTS, settle=POINTS)
    assert found.points > POINTS // 2
    assert found.worst <= case.ulp[dtype == float32], found.where


@each_case
@each_format
@pytest.mark.parametrize("width", [1, 8])
def test_special_values(case, dtype, width):
    columns = np.array([operands for operands, _ in case.special], dtype.numpy).T
    expected = np.array([result for _, result in case.special], dtype.numpy)
    got = evaluate(PROGRAMS[case.name], *columns, width=width)
    assert same_bits(got, expected), list(zip(case.special, got.tolist(), strict=True))


@each_case
@each_format
def test_scalar_vector_and_numpy_agree_bit_for_bit(case, dtype):
    operands = sample(case, dtype, 3001, seed=1)
    special = np.array([operands for operands, _ in case.special], dtype.numpy).T
    operands = [np.concatenate([x, s, -s]) for x, s in zip(operands, special, strict=True)]
    vector = evaluate(PROGRAMS[case.name], *operands)
    assert same_bits(vector, evaluate(PROGRAMS[case.name], *operands, width=1))
    assert same_bits(vector, run(PROGRAMS[case.name], *operands))


def test_exact_results_are_exact():
    whole = np.arange(-1074, 1024)
    assert np.array_equal(evaluate(PROGRAMS["exp2"], whole * 1.0), np.ldexp(1.0, whole))
    assert np.array_equal(evaluate(PROGRAMS["log2"], np.ldexp(1.0, whole)), whole * 1.0)
    tens = np.array([float(10**k) for k in range(23)])
    assert np.array_equal(evaluate(PROGRAMS["log10"], tens), np.arange(23.0))
    squares = np.arange(1.0, 5000.0)
    assert np.array_equal(evaluate(PROGRAMS["pow"], squares, 2.0), squares**2)
    assert np.array_equal(evaluate(PROGRAMS["pow"], squares**2, 0.5), squares)
    assert np.array_equal(evaluate(PROGRAMS["pow"], -squares, 3.0), -(squares**3))
    anything = sample(CASES[0], float64, 3000)[0]
    assert same_bits(evaluate(PROGRAMS["pow"], anything, 1.0), anything)


def test_results_at_the_bounds_of_the_format():
    tiny = 5e-324
    assert evaluate(PROGRAMS["exp"], -740.0) == 85 * tiny  # exactly 84.78...
    assert evaluate(PROGRAMS["exp"], 709.782712893384) < np.inf
    assert evaluate(PROGRAMS["exp"], 709.7827128933841) == np.inf
    assert evaluate(PROGRAMS["cosh"], 710.4) == 1.6663642832806496e308
    assert evaluate(PROGRAMS["sinh"], 710.4758600739439) < np.inf
    assert evaluate(PROGRAMS["sinh"], -710.475860073944) == -np.inf
    for name in ("expm1", "log1p", "sinh", "tanh", "asinh", "atanh"):
        assert evaluate(PROGRAMS[name], -tiny) == -tiny, name


def test_table_of_errors_lists_functions_and_conventions():
    page = table([measure(CASES[0], float64, 300, settle=300)])
    assert "| `exp` | float64 | " in page
    assert "(-inf) = 0" in page
