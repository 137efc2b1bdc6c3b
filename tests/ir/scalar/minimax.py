"""Minimax polynomials by the Remez exchange, in mpmath: how the coefficients were made.

``python tests/ir/scalar/minimax.py`` prints every coefficient table of ``ir/scalar``.

Each table approximates ``target`` by a polynomial in ``x`` (or in ``u = x**2``) so that the largest
``|weight * (p - target)|`` over the interval is least; then coefficients are rounded to the working
precision. The programs add such a polynomial to leading terms that they know exactly, so its own
rounding does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.prec = 200


def remez(
    target: Callable[[Any], Any],
    weight: Callable[[Any], Any],
    low: float,
    high: float,
    count: int,
) -> list[Any]:
    """Coefficients, lowest degree first, of the best polynomial with ``count`` of them."""
    low, high = mp.mpf(low), mp.mpf(high)
    middle, half = (low + high) / 2, (high - low) / 2
    # an odd number of intervals keeps the grid away from a zero of the weight in the middle
    grid = [middle - half * mp.cos(mp.pi * k / 801) for k in range(802)]
    known = [(x, target(x), weight(x)) for x in grid if abs(x) > half / 10**6]
    nodes = [middle - half * mp.cos(mp.pi * k / count) for k in range(count + 1)]
    nodes = [x if abs(x) > half / 1000 else half / 1000 for x in nodes]
    coefficients: list[Any] = []
    for _ in range(40):
        rows = [[x**k for k in range(count)] + [(-1) ** i / weight(x)] for i, x in enumerate(nodes)]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([target(x) for x in nodes]))
        coefficients, level = [solution[k] for k in range(count)], abs(solution[count])
        values = [(x, w * (mp.polyval(coefficients[::-1], x) - t)) for x, t, w in known]
        extrema: list[tuple[Any, Any]] = []
        for x, e in values:  # the largest error of each run of one sign
            if extrema and (extrema[-1][1] > 0) == (e > 0):
                if abs(e) > abs(extrema[-1][1]):
                    extrema[-1] = (x, e)
            else:
                extrema.append((x, e))
        while len(extrema) > count + 1:
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        worst = max(abs(e) for _, e in values)
        if len(extrema) < count + 1 or worst < level * mp.mpf("1.02"):
            break
        nodes = [x for x, _ in extrema]
    return coefficients


def rounded(
    target: Callable[[Any], Any],
    weight: Callable[[Any], Any],
    low: float,
    high: float,
    count: int,
    dtype: Any = np.float64,
) -> tuple[list[float], float]:
    """Coefficients rounded to ``dtype``, and log2 of the largest weighted error they leave."""
    exact = remez(target, weight, low, high, count)
    values = [float(c) if dtype is np.float64 else float(np.float32(float(c))) for c in exact]
    low, high = mp.mpf(low), mp.mpf(high)
    worst = max(
        abs(weight(x) * (mp.polyval([mp.mpf(c) for c in values[::-1]], x) - target(x)))
        for x in (low + (high - low) * k / 1999 for k in range(2000))
        if x != 0
    )
    return values, float(mp.log(worst, 2))


def _series(terms: Callable[[int], Any]) -> Callable[[Any], Any]:
    table = [terms(k) for k in range(40)]
    return lambda u: mp.polyval(table[::-1], u)


def _log_rest(f: Any) -> Any:
    """(log(1 + f) - f + f**2 / 2) / f**3."""
    if abs(f) < mp.mpf(2) ** -30:
        return mp.mpf(1) / 3 - f / 4 + f * f / 5 - f**3 / 6
    return (mp.log1p(f) - f + f * f / 2) / f**3


def show(name: str, target: Any, weight: Any, low: float, high: float, *sizes: Any) -> None:
    for count, dtype in sizes:
        values, size = rounded(target, weight, low, high, count, dtype)
        print(f"{name} {dtype.__name__}: error 2**{size:.1f}")
        print("(" + ", ".join(repr(v) for v in values) + ")")


if __name__ == "__main__":
    f64, f32 = np.float64, np.float32
    odd = _series(lambda k: 1 / mp.factorial(2 * k + 3))
    even = _series(lambda k: 1 / mp.factorial(2 * k + 2))
    half = float(mp.log(2) / 2) * 1.0001
    # error of sinh(r) relative to r and of cosh(r) absolute
    show("sinh", odd, lambda u: u, 0.0, half**2, (5, f64), (2, f32), (3, f32))
    show("cosh", even, lambda u: u, 0.0, half**2, (6, f64), (5, f64), (3, f32), (2, f32))
    root = float(mp.sqrt(2))
    near = lambda f: f**3 / mp.log1p(f) if f else f * f  # noqa: E731
    show("log", _log_rest, near, root / 2 - 1, root - 1, (17, f64), (18, f64), (19, f64))
    show("log", _log_rest, near, root / 2 - 1, root - 1, (6, f32), (7, f32), (8, f32), (9, f32))
    show("log near one", _log_rest, near, -1 / 32, 1 / 32, (6, f64), (7, f64), (8, f64))
