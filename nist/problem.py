"""What one certified regression problem is, and the notation its numbers are kept in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Model = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """A nonlinear regression with certified answers.

    Parameters
    ----------
    name : str
        The name under which NIST publishes the data set.
    level : str
        NIST's grade of difficulty: ``"lower"``, ``"average"`` or ``"higher"``.
    model : callable
        ``model(b, x)``, the fitted curve: ``b`` is the vector of parameters, ``x`` the predictor
        of shape (n,), or the predictors of shape (p, n) where there are p > 1 of them.
    predictors : tuple of str
        One string of numbers for each predictor, read by :func:`numbers`.
    response : str
        The measured values in the same notation.
    start1, start2 : tuple of float
        The two published starting points, the far one first.
    certified, deviations : tuple of float
        The certified parameters and their standard deviations, 11 significant digits each.
    rss : float
        The certified residual sum of squares.
    transform : callable, optional
        Applied to the measurements before they are fitted (Nelson's are fitted as logarithms).
    """

    name: str
    level: str
    model: Model
    predictors: tuple[str, ...] = field(repr=False)
    response: str = field(repr=False)
    start1: tuple[float, ...]
    start2: tuple[float, ...]
    certified: tuple[float, ...]
    deviations: tuple[float, ...]
    rss: float
    transform: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if not self.predictors:
            raise ValueError(f"{self.name}: expected at least one predictor, got none")
        lengths = [len(numbers(text)) for text in (*self.predictors, self.response)]
        if len(set(lengths)) != 1:
            raise ValueError(f"{self.name}: expected columns of one length, got {lengths}")
        counts = [len(t) for t in (self.start1, self.start2, self.certified, self.deviations)]
        if len(set(counts)) != 1:
            raise ValueError(f"{self.name}: expected one count of parameters, got {counts}")

    @property
    def starts(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Both starting points, the far one first."""
        return self.start1, self.start2

    def x(self) -> Floats:
        """The predictor of shape (n,), or all of them as rows of shape (p, n)."""
        columns = [numbers(text) for text in self.predictors]
        return np.array(columns[0] if len(columns) == 1 else columns)

    def y(self) -> Floats:
        """The values that the model is fitted to, of shape (n,)."""
        measured = np.array(numbers(self.response))
        return measured if self.transform is None else np.asarray(self.transform(measured))


def numbers(text: str) -> list[float]:
    """Read a column of numbers in compact notation.

    Parameters
    ----------
    text : str
        Items between blanks: a decimal number; ``3*1.5``, the same number three times; or
        ``2..5``, the whole numbers from the first to the last.

    Returns
    -------
    list of float

    Examples
    --------
    >>> numbers("1..4 2*.5 -7e-1")
    [1.0, 2.0, 3.0, 4.0, 0.5, 0.5, -0.7]
    """
    values: list[float] = []
    for item in text.split():
        if ".." in item:
            first, last = item.split("..")
            values.extend(float(i) for i in range(int(first), int(last) + 1))
        elif "*" in item:
            times, value = item.split("*")
            values.extend([float(value)] * int(times))
        else:
            values.append(float(item))
    return values
