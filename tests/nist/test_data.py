"""The typed figures and formulas agree with what NIST certifies, by NumPy alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilegrad.nist import data, fit, models
from tilegrad.nist.problem import Problem, numbers

PROBLEMS = pytest.mark.parametrize("problem", data.PROBLEMS, ids=lambda p: p.name)

# Number of observations and residual standard deviation as NIST prints them: figures that the
# package itself does not hold, so that a slip in typing shows.
PUBLISHED = {
    "Bennett5": (154, 1.8629312528e-3),
    "BoxBOD": (6, 1.7088072423e1),
    "Chwirut1": (214, 3.3616721320),
    "Chwirut2": (54, 3.1717133040),
    "DanWood": (6, 3.2853114039e-2),
    "ENSO": (168, 2.2269642403),
    "Eckerle4": (35, 6.7629245447e-3),
    "Gauss1": (250, 2.3317980180),
    "Gauss2": (250, 2.2704790782),
    "Gauss3": (250, 2.2677077625),
    "Hahn1": (236, 8.1803852243e-2),
    "Kirby2": (151, 1.6354535131e-1),
    "Lanczos1": (24, 8.9156129349e-14),
    "Lanczos2": (24, 1.1130395851e-6),
    "Lanczos3": (24, 2.9923229172e-5),
    "MGH09": (11, 6.6279236551e-3),
    "MGH10": (16, 2.6009740065),
    "MGH17": (33, 1.3970497866e-3),
    "Misra1a": (14, 1.0187876330e-1),
    "Misra1b": (14, 7.9301471998e-2),
    "Misra1c": (14, 5.8428615257e-2),
    "Misra1d": (14, 6.8568272111e-2),
    "Nelson": (128, 1.7430280130e-1),
    "Rat42": (9, 1.1587725499),
    "Rat43": (15, 2.8262414662e1),
    "Roszman1": (25, 4.8542984060e-3),
    "Thurber": (37, 1.3714600784e1),
}


def step_jacobian(problem: Problem) -> Callable[[Any], np.ndarray]:
    """The model's Jacobian by complex steps: exact to rounding, and nothing of tilegrad in it.

    For analytic f, f'(b) = Im f(b + ih) / h up to O(h^2), without any difference of near numbers
    (Squire and Trapp, SIAM Review 40 (1998), 110-112).
    """
    x, h = problem.x(), 1e-200

    def jacobian(b: Any) -> np.ndarray:
        steps = 1j * h * np.eye(len(b))
        with np.errstate(all="ignore"):
            return np.stack([problem.model(b + step, x).imag / h for step in steps], axis=1)

    return jacobian


def test_there_are_27() -> None:
    assert sorted(p.name for p in data.PROBLEMS) == sorted(PUBLISHED)
    counts = dict.fromkeys(("lower", "average", "higher"), 0)
    for problem in data.PROBLEMS:
        counts[problem.level] += 1
    assert counts == {"lower": 8, "average": 11, "higher": 8}


@PROBLEMS
def test_shapes(problem: Problem) -> None:
    count, _ = PUBLISHED[problem.name]
    assert problem.y().shape == (count,)
    assert problem.x().shape == ((2, count) if problem.name == "Nelson" else (count,))
    assert problem.model(np.array(problem.certified), problem.x()).shape == (count,)


@PROBLEMS
def test_residual_deviation_is_the_published_one(problem: Problem) -> None:
    count, deviation = PUBLISHED[problem.name]
    freedom = count - len(problem.certified)
    assert np.sqrt(problem.rss / freedom) == pytest.approx(deviation, rel=1e-10)


@PROBLEMS
def test_certified_rss_at_the_certified_parameters(problem: Problem) -> None:
    found = fit.residual_sum_of_squares(problem, problem.certified)
    if problem.name == "Lanczos1":
        # Its certified sum is 1.4e-25: parameters of 11 digits leave residuals of 1e-11.
        assert found < 1e-20
    else:
        assert found == pytest.approx(problem.rss, rel=1e-10)


@PROBLEMS
def test_certified_rss_in_double_precision(problem: Problem) -> None:
    residual = problem.model(np.array(problem.certified), problem.x()) - problem.y()
    if problem.name != "Lanczos1":
        assert residual @ residual == pytest.approx(problem.rss, rel=1e-9)


@PROBLEMS
def test_gradient_vanishes_at_the_certified_parameters(problem: Problem) -> None:
    """Gauss-Newton has nowhere to go from there, but for the rounding of 11 digits."""
    b = np.array(problem.certified)
    residual = problem.model(b, problem.x()) - problem.y()
    step, *_ = np.linalg.lstsq(step_jacobian(problem)(b) * b, residual, rcond=None)
    assert np.max(np.abs(step)) < 1e-8


@PROBLEMS
def test_certified_deviations(problem: Problem) -> None:
    """Standard deviations follow from the Jacobian: sqrt(diag(inv(J'J))) times the residual's."""
    b = np.array(problem.certified)
    jacobian = step_jacobian(problem)(b) * b
    _, r = np.linalg.qr(jacobian)
    inverse = np.linalg.inv(r)
    _, deviation = PUBLISHED[problem.name]
    found = np.sqrt(np.sum(inverse**2, axis=1)) * np.abs(b) * deviation
    np.testing.assert_allclose(found, problem.deviations, rtol=1e-6)


@PROBLEMS
def test_both_starts_differ_from_the_answer(problem: Problem) -> None:
    for start in problem.starts:
        assert fit.correct_digits(start, problem.certified) < 3
    assert problem.start1 != problem.start2


def test_models_are_all_used() -> None:
    written = {name for name, value in vars(models).items() if callable(value) and name != "Any"}
    assert {p.model.__name__ for p in data.PROBLEMS} == written


def test_problem_by_name() -> None:
    assert data.problem("mgh17").name == "MGH17"
    with pytest.raises(KeyError, match="expected the name of a NIST problem, got 'MGH18'"):
        data.problem("MGH18")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("1 -.5 2e3", [1.0, -0.5, 2000.0]),
        ("3*.25 1", [0.25, 0.25, 0.25, 1.0]),
        ("-1..2", [-1.0, 0.0, 1.0, 2.0]),
        ("4\n   5", [4.0, 5.0]),
    ],
)
def test_numbers(text: str, values: list[float]) -> None:
    assert numbers(text) == values


def test_columns_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"crooked: expected columns of one length, got \[3, 2\]"):
        Problem(
            "crooked",
            "lower",
            models.power,
            predictors=("1 2 3",),
            response="1 2",
            start1=(1.0, 1.0),
            start2=(2.0, 2.0),
            certified=(1.0, 1.0),
            deviations=(1.0, 1.0),
            rss=1.0,
        )


def test_differing_counts_of_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="crooked: expected one count of parameters"):
        Problem(
            "crooked",
            "lower",
            models.power,
            predictors=("1 2",),
            response="1 2",
            start1=(1.0, 1.0),
            start2=(2.0, 2.0),
            certified=(1.0,),
            deviations=(1.0, 1.0),
            rss=1.0,
        )
