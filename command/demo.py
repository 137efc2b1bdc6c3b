"""Fit NIST's 27 certified regressions and count the correct digits."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..nist.fit import Fit

_HEADER = (
    "               correct digits   evaluations             seconds\n"
    "problem  start parameter   rss  value slope      compile    solve"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the subcommand takes."""
    parser.add_argument(
        "problems", nargs="*", metavar="PROBLEM", help="NIST's names, such as Misra1a; default all"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each fit, and how they went together.

    Parameters
    ----------
    arguments : argparse.Namespace
        ``problems``: names of those to fit, or none for all.

    Returns
    -------
    int
        0; 1 if a fit misses the required digits; 2 if a name is not known.
    """
    from ..nist.data import PROBLEMS, problem
    from ..nist.fit import fits

    try:
        chosen = [problem(name) for name in arguments.problems] or list(PROBLEMS)
    except KeyError as error:
        print(f"tilegrad demo: {error.args[0]}", file=sys.stderr)
        return 2
    print(_HEADER)
    done = []
    for fit in fits(chosen):
        print(_row(fit), flush=True)
        done.append(fit)
    print(_summary(done))
    return 0 if all(fit.passed for fit in done) else 1


def _row(fit: Fit) -> str:
    mark = "" if fit.passed else "  too few"
    return (
        f"{fit.problem.name:<8} {fit.start:>5} {fit.digits:>9.1f} {fit.rss_digits:>5.1f}"
        f" {fit.nfev:>6} {fit.njev:>5} {fit.compile_seconds:>12.3f} {fit.solve_seconds:>8.3f}{mark}"
    )


def _summary(done: list[Fit]) -> str:
    from ..nist.fit import REQUIRED_DIGITS

    right = sum(fit.passed for fit in done)
    worst = min(done, key=lambda fit: fit.digits)
    compiling = sum(fit.compile_seconds for fit in done)
    solving = sum(fit.solve_seconds for fit in done)
    return (
        f"{right} of {len(done)} fits are right to {REQUIRED_DIGITS:.0f} digits or more in every "
        f"parameter;\nthe worst is {worst.problem.name} from start {worst.start} with "
        f"{worst.digits:.1f}. Compiling took {compiling:.2f} s, solving {solving:.2f} s."
    )
