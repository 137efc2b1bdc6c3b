"""Fit the certified problems with SciPy, residuals and Jacobians coming from tilegrad.

One setting serves all 54 runs (27 problems, two starting points each), see :data:`SOLVER`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .data import PROBLEMS
from .problem import Floats, Problem

Evaluator = Callable[[Floats], Any]

CERTIFIED_DIGITS = 11
"""Significant digits that NIST prints: no comparison can show more."""

REQUIRED_DIGITS = 6.0
"""What a fit must reach in every parameter to count as right."""

SOLVER: dict[str, Any] = {
    "method": "trf",
    # A few units of rounding: stop only where the sum of squares can tell no better. Even 1e-14
    # leaves ENSO with less than six digits, the default of 1e-8 leaves it with three.
    "ftol": 1e-15,
    "xtol": 1e-15,
    "gtol": 1e-15,
    # MGH17 walks along a curved valley from its far start for about 1,000 evaluations, twice
    # the default limit. Scaling the variables (x_scale="jac") is not needed: it solves all 54
    # runs too, with four times the evaluations on Bennett5.
    "max_nfev": 5000,
}
"""Arguments to :func:`scipy.optimize.least_squares`, the same for every problem and start."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What one run of the solver found.

    Parameters
    ----------
    problem : Problem
        What was fitted.
    start : int
        Which starting point, 1 (far) or 2 (near).
    parameters : ndarray of float64, shape (p,)
        The solution.
    rss : float
        Residual sum of squares there.
    nfev, njev : int
        Evaluations of the residuals and of the Jacobian.
    compile_seconds : float
        The first evaluation of both, which traces and compiles them if nothing did before.
    solve_seconds : float
        The solver's run after that.
    message : str
        Why the solver stopped.
    """

    problem: Problem
    start: int
    parameters: Floats = field(repr=False)
    rss: float
    nfev: int
    njev: int
    compile_seconds: float
    solve_seconds: float
    message: str = field(repr=False)

    @property
    def digits(self) -> float:
        """Correct significant digits of the worst parameter."""
        return correct_digits(self.parameters, self.problem.certified)

    @property
    def rss_digits(self) -> float:
        """Correct significant digits of the residual sum of squares."""
        return correct_digits([self.rss], [self.problem.rss])

    @property
    def passed(self) -> bool:
        """Whether every parameter is right to the digits required."""
        return self.digits >= REQUIRED_DIGITS


def correct_digits(found: Iterable[float], certified: Iterable[float]) -> float:
    """Digits to which the worst of several values agrees with its certified value.

    Parameters
    ----------
    found, certified : iterable of float
        Values and what they should be; no certified value is zero.

    Returns
    -------
    float
        Minus the decimal logarithm of the largest relative error, held between 0 and
        :data:`CERTIFIED_DIGITS`. A value that is not finite has no correct digit.

    Notes
    -----
    This is the log relative error (LRE) of B. D. McCullough, "Assessing the reliability of
    statistical software", The American Statistician 52 (1998), 358-366.

    Examples
    --------
    >>> round(correct_digits([1.0, 2.0002], [1.0, 2.0]), 6)
    4.0
    >>> correct_digits([float("nan")], [1.0])
    0.0
    """
    target = np.array(list(certified))
    error = np.max(np.abs(np.array(list(found)) - target) / np.abs(target))
    if not np.isfinite(error):
        return 0.0
    if error <= 10.0**-CERTIFIED_DIGITS:
        return float(CERTIFIED_DIGITS)
    return max(0.0, float(-np.log10(error)))


def compiled(problem: Problem) -> tuple[Evaluator, Evaluator]:
    """The residual of a problem and its Jacobian, as tilegrad compiles them.

    Parameters
    ----------
    problem : Problem
        What is to be fitted.

    Returns
    -------
    residual, jacobian : callable
        Functions of the parameters (shape (p,), float64) that return shapes (n,) and (n, p).
    """
    # Here and not above: the data and the solver's part serve without the engine.
    from .. import jacfwd, jit

    x, y = problem.x(), problem.y()

    def residual(b: Any) -> Any:
        return problem.model(b, x) - y

    return jit(residual), jit(jacfwd(residual))


def residual_sum_of_squares(problem: Problem, parameters: Iterable[float]) -> float:
    """The sum of squared residuals, in the widest floating type that NumPy has.

    Parameters
    ----------
    problem : Problem
        Model and data.
    parameters : iterable of float
        Where to evaluate them.

    Returns
    -------
    float

    Notes
    -----
    The residuals of Lanczos2 are a millionth of its data: in double precision their squares
    carry rounding errors of 1e-10, which would hide the tenth digit of a correct answer.
    """
    b = np.array(list(parameters), dtype=np.longdouble)
    r = problem.model(b, problem.x().astype(np.longdouble)) - problem.y().astype(np.longdouble)
    return float(r @ r)


def solve(problem: Problem, start: int, residual: Evaluator, jacobian: Evaluator) -> Fit:
    """Run the solver on one problem from one of its starting points.

    Parameters
    ----------
    problem : Problem
        What to fit.
    start : int
        1 for the far starting point, 2 for the near one.
    residual, jacobian : callable
        Functions of the parameters that return what NumPy can read as shapes (n,) and (n, p).

    Returns
    -------
    Fit
    """
    from scipy.optimize import least_squares

    if start not in (1, 2):
        raise ValueError(f"solve: expected start 1 or 2, got {start!r}")
    first = np.array(problem.starts[start - 1])

    began = time.perf_counter()
    np.asarray(residual(first))
    np.asarray(jacobian(first))
    ready = time.perf_counter()
    # From far starts the solver tries steps whose sum of squares overflows, and rejects them.
    with np.errstate(over="ignore"):
        result = least_squares(
            lambda b: np.asarray(residual(b)),
            first,
            jac=lambda b: np.asarray(jacobian(b)),
            **SOLVER,
        )
    ended = time.perf_counter()
    return Fit(
        problem=problem,
        start=start,
        parameters=result.x,
        rss=residual_sum_of_squares(problem, result.x),
        nfev=int(result.nfev),
        njev=int(result.njev),
        compile_seconds=ready - began,
        solve_seconds=ended - ready,
        message=str(result.message),
    )


def fits(problems: Iterable[Problem] = PROBLEMS) -> Iterator[Fit]:
    """Fit each problem from both starting points, compiling once for the two.

    Parameters
    ----------
    problems : iterable of Problem, optional
        All 27 unless given.

    Yields
    ------
    Fit
        As soon as each is found.
    """
    for problem in problems:
        residual, jacobian = compiled(problem)
        for start in (1, 2):
            yield solve(problem, start, residual, jacobian)
