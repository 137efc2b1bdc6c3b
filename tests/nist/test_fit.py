"""All 54 runs reach their certified answers: with exact Jacobians from elsewhere, and with ours."""

from typing import Any

import numpy as np
import pytest

from tilegrad.nist import data, fit
from tilegrad.nist.problem import Problem

PROBLEMS = pytest.mark.parametrize("problem", data.PROBLEMS, ids=lambda p: p.name)


def stepped(problem: Problem) -> tuple[fit.Evaluator, fit.Evaluator]:
    """Residual and Jacobian in plain NumPy, the latter by complex steps (see test_data)."""
    x, y, h = problem.x(), problem.y(), 1e-200

    def residual(b: Any) -> Any:
        with np.errstate(all="ignore"):  # the solver tries steps whose exponentials overflow
            return problem.model(b, x) - y

    def jacobian(b: Any) -> Any:
        with np.errstate(all="ignore"):
            columns = [problem.model(b + step, x).imag / h for step in 1j * h * np.eye(len(b))]
        return np.stack(columns, axis=1)

    return residual, jacobian


def check(found: fit.Fit) -> None:
    assert found.passed, f"{found.digits:.2f} digits: {found.message}"
    assert found.nfev < fit.SOLVER["max_nfev"]
    assert 1 <= found.njev <= found.nfev
    wide = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps
    if found.problem.name == "Lanczos1":
        # Certified as 1.4e-25, far below what rounding the data to double precision leaves.
        assert found.rss < 1e-24
    else:
        assert found.rss_digits >= (10.0 if wide or found.problem.name != "Lanczos2" else 9.0)


@PROBLEMS
def test_solver_with_exact_jacobians(problem: Problem) -> None:
    """The solver's settings, independent of tilegrad: what fails here is not ours to mend."""
    residual, jacobian = stepped(problem)
    for start in (1, 2):
        check(fit.solve(problem, start, residual, jacobian))


@PROBLEMS
def test_solver_with_tilegrad(problem: Problem) -> None:
    runs = list(fit.fits([problem]))
    assert [run.start for run in runs] == [1, 2]
    for run in runs:
        check(run)


@PROBLEMS
def test_residual_and_jacobian_are_exact(problem: Problem) -> None:
    """Compiled and differentiated from the formula, against complex steps, entry by entry."""
    residual, jacobian = fit.compiled(problem)
    plain, stepwise = stepped(problem)
    for b in (*map(np.array, problem.starts), np.array(problem.certified)):
        value = np.asarray(residual(b))
        scale = np.abs(problem.y()) + np.abs(plain(b))
        assert value.shape == problem.y().shape
        assert value.dtype == np.float64
        assert np.all(np.abs(value - plain(b)) <= 1e-13 * scale)
        slopes, expected = np.asarray(jacobian(b)), stepwise(b)
        assert slopes.shape == expected.shape
        column = np.max(np.abs(expected), axis=0)
        assert np.all(np.abs(slopes - expected) <= 1e-11 * column)


@pytest.mark.parametrize("start", [0, 3])
def test_only_two_starts(start: int) -> None:
    problem = data.problem("Misra1a")
    with pytest.raises(ValueError, match=f"expected start 1 or 2, got {start}"):
        fit.solve(problem, start, *stepped(problem))


@pytest.mark.parametrize(
    ("found", "digits"),
    [
        ([2.0, 4.0], 11.0),
        ([2.0, 4.0004], 4.0),
        ([2.0, 40.0], 0.0),
        ([np.nan, 4.0], 0.0),
        ([np.inf, 4.0], 0.0),
    ],
)
def test_correct_digits(found: list[float], digits: float) -> None:
    assert fit.correct_digits(found, [2.0, 4.0]) == pytest.approx(digits, abs=1e-5)
