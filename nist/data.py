"""All 27 certified problems, easy ones first."""

from __future__ import annotations

from .average import AVERAGE
from .higher import HIGHER
from .lower import LOWER
from .problem import Problem

PROBLEMS: tuple[Problem, ...] = LOWER + AVERAGE + HIGHER


def problem(name: str) -> Problem:
    """The problem of that name.

    Parameters
    ----------
    name : str
        NIST's name of the data set; upper and lower case count as equal.

    Returns
    -------
    Problem

    Raises
    ------
    KeyError
        If there is no such problem; the message lists those there are.

    Examples
    --------
    >>> problem("misra1a").certified
    (238.94212918, 0.00055015643181)
    """
    for candidate in PROBLEMS:
        if candidate.name.lower() == name.lower():
            return candidate
    known = ", ".join(sorted(p.name for p in PROBLEMS))
    raise KeyError(f"expected the name of a NIST problem, got {name!r}; there are {known}")
