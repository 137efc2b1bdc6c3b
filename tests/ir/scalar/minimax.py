"""Minimax polynomials by the Remez exchange, in mpmath: how the coefficients were made.

``python tests/ir/scalar/minimax.py`` prints the tables of ``exponential.py``, ``logarithm.py`` and
``power.py``.

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


def show_power_table() -> None:
    """``c`` near the reciprocal of each interval of ``power.py``, ``-log c`` in two parts."""
    rows = []
    for i in range(16):
        bits = np.array([0, 1 << 48]) + 0x3FE6800000000000 + (i << 48)
        low, high = bits.view(np.float64).tolist()
        c = mp.mpf(1) if low < 1 < high else mp.nint(256 * 2 / (mp.mpf(low) + high)) / 256
        log_high = mp.nint(-mp.log(c) * 2**42) / 2**42
        rows.append((float(c), float(log_high).hex(), float(-mp.log(c) - log_high).hex()))
    for name, column in zip(
        ("_INVERSE", "_LOG_HIGH", "_LOG_LOW"), zip(*rows, strict=True), strict=True
    ):
        print(f"power {name}\n{column}")


if __name__ == "__main__":
    f64, f32 = np.float64, np.float32
    odd = _series(lambda k: 1 / mp.factorial(2 * k + 3))
    even = _series(lambda k: 1 / mp.factorial(2 * k + 2))
    both = _series(lambda k: 1 / mp.factorial(k + 2))
    half = float(mp.log(2) / 2) * 1.0001
    low, high = float(mp.sqrt(0.5)) - 1, float(mp.sqrt(2)) - 1

    def relative(f: Any) -> Any:
        return f**3 / mp.log1p(f) if f else f * f

    # the error of sinh(r) relative to r, of cosh(r) and e^r absolute, of the logarithm relative
    show("exponential SINH", odd, lambda u: u, 0.0, half**2, (5, f64), (3, f32))
    show("exponential COSH", even, lambda u: u, 0.0, half**2, (6, f64), (3, f32))
    show("logarithm LOG", _log_rest, relative, low, high, (19, f64), (8, f32))
    show("logarithm RECIPROCAL", lambda f: 1 / (1 + f), lambda f: 1 + f, low, high, (3, f64))
    show("power _LOG", _log_rest, relative, -1.0001 / 32, 1.0001 / 32, (9, f64))
    show("power _SHORT_LOG", _log_rest, relative, low, high, (11, f64))
    show("power _SHORT_EXP", both, lambda r: r * r, -half, half, (6, f64))
    show_power_table()
