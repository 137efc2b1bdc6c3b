"""The table of fits, and what its exit status says."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from tilegrad.__main__ import main
from tilegrad.nist import fit
from tilegrad.nist.problem import Problem


def certified(problems: Iterable[Problem]) -> Iterator[fit.Fit]:
    """Stands in for the solver: every answer is the certified one."""
    for problem in problems:
        for start in (1, 2):
            yield fit.Fit(
                problem=problem,
                start=start,
                parameters=np.array(problem.certified),
                rss=problem.rss,
                nfev=9,
                njev=8,
                compile_seconds=0.25,
                solve_seconds=0.125,
                message="",
            )


def test_all_problems_unless_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fit, "fits", certified)
    assert main(["demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "               correct digits   evaluations             seconds",
        "problem  start parameter   rss  value slope      compile    solve",
        "Misra1a      1      11.0  11.0      9     8        0.250    0.125",
    ]
    assert len(lines) == 2 + 54 + 2
    assert lines[-2].startswith("54 of 54 fits are right to 6 digits or more")


def test_status_1_if_a_fit_falls_short(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def second_misses(problems: Iterable[Problem]) -> Iterator[fit.Fit]:
        first, second = certified(problems)
        yield first
        yield replace(second, parameters=second.parameters * (1 + 2e-6))

    monkeypatch.setattr(fit, "fits", second_misses)
    assert main(["demo", "danwood"]) == 1
    shown = capsys.readouterr().out
    assert "0.125  too few" in shown
    assert "1 of 2 fits" in shown
    assert "the worst is DanWood from start 2 with 5.7" in shown


def test_unknown_name_ends_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "Misra1e"]) == 2
    assert "expected the name of a NIST problem, got 'Misra1e'" in capsys.readouterr().err


def test_fits_with_tilegrad(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "Misra1a", "Nelson"]) == 0
    assert "4 of 4 fits" in capsys.readouterr().out
