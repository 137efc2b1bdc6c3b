"""How the coefficients of the trigonometric, root and error functions and of tanh were made.

``python tests/ir/scalar/minimax_tables.py`` (half a minute, with gmpy2) fits every table anew and
says whether the package has the same numbers. The Remez exchange runs on a fixed grid of Chebyshev
points in 200 bits. *Progressive* rounding rounds the leading coefficients one by one and fits the
others again each time.
"""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np

from tilegrad.ir.dtypes import float32, float64
from tilegrad.ir.scalar import (
    error_function,
    hyperbolic,
    inverse_trigonometric,
    roots,
    trigonometric,
)
from tilegrad.ir.scalar.error_function_tables import ERF_32, ERF_64, ERFC_64

mp.mp.prec = 200
Real = Callable[[Any], Any]


def nearest(x: Any, digits: int) -> Any:
    """``x`` in float64 (53) or float32 (24)."""
    return mp.mpf(float(x) if digits == 53 else float(np.float32(float(x))))


def exchange(values: list[Any], weights: list[Any], rows: list[list[Any]]) -> list[Any]:
    """Best coefficients on a grid: weighted errors of the largest size alternate."""
    count, points = len(rows[0]), len(rows)
    chosen = [round((points - 1) * k / count) for k in range(count + 1)]
    best: tuple[Any, list[Any]] = (mp.inf, [])
    for _ in range(30):
        matrix = mp.matrix(count + 1, count + 1)
        right = mp.matrix(count + 1, 1)
        for k, i in enumerate(chosen):
            for j in range(count):
                matrix[k, j] = rows[i][j] * weights[i]
            matrix[k, count], right[k] = (-1) ** k, values[i] * weights[i]
        solution = mp.lu_solve(matrix, right)
        c, level = [solution[j] for j in range(count)], abs(solution[count])
        errors = [
            w * (v - mp.fdot(c, row)) for v, w, row in zip(values, weights, rows, strict=True)
        ]
        worst = max(map(abs, errors))
        if worst < best[0]:
            best = worst, c
        extrema: list[int] = []
        for i, e in enumerate(errors):
            if extrema and (errors[extrema[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[extrema[-1]]):
                    extrema[-1] = i
            else:
                extrema.append(i)
        while len(extrema) > count + 1:  # drop the least, and a neighbour to keep the signs
            sizes = [abs(errors[i]) for i in extrema]
            k = min(range(len(extrema)), key=sizes.__getitem__)
            if len(extrema) == count + 2:
                extrema.pop(0 if sizes[0] < sizes[-1] else -1)
            elif k in (0, len(extrema) - 1):
                extrema.pop(k)
            else:
                other = k + 1 if sizes[k + 1] < sizes[k - 1] else k - 1
                del extrema[min(k, other) : max(k, other) + 1]
        if worst <= level * mp.mpf("1.001") or len(extrema) < count + 1:
            break
        chosen = extrema
    return best[1]


def fit(
    target: Real,
    weight: Real,
    low: Any,
    high: Any,
    powers: Sequence[int],
    digits: int,
    progressive: int,
    skip: int = 0,
) -> tuple[list[float], float]:
    """Rounded coefficients of ``powers`` and log2 of the largest weighted error they leave.

    The first ``progressive`` are rounded one by one. The first ``skip`` are set to zero at last.
    """
    low, high, points = mp.mpf(low), mp.mpf(high), 20 * (len(powers) + 2)
    angles = [mp.pi * (k + mp.mpf(1) / 2) / points for k in range(points)]
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(a) for a in angles]
    values, weights = [target(x) for x in grid], [weight(x) for x in grid]
    rows = [[x**p for p in powers] for x in grid]
    result: list[Any] = []
    rest = values
    for k in range(len(powers)):
        c = exchange(rest, weights, [row[k:] for row in rows])
        if k == progressive:
            result += [nearest(x, digits) for x in c]
            break
        result.append(nearest(c[0], digits))
        rest = [v - result[-1] * row[k] for v, row in zip(rest, rows, strict=True)]
    result[:skip] = [mp.mpf(0)] * skip
    errors = [
        abs(w * (v - mp.fdot(result, row))) for v, w, row in zip(values, weights, rows, strict=True)
    ]
    return [float(c) for c in result], float(mp.log(max(errors), 2))


def odd_function(f: Real, high: Any, count: int, digits: int) -> tuple[list[float], float]:
    """``(f(s) / s - 1) / s^2`` in ``z = s^2``, with the error relative to ``f``."""

    def target(z: Any) -> Any:
        return (f(mp.sqrt(z)) / mp.sqrt(z) - 1) / z

    def weight(z: Any) -> Any:
        return z * mp.sqrt(z) / f(mp.sqrt(z))

    progressive = 3 if digits == 53 else count
    return fit(target, weight, mp.mpf("1e-9"), high, range(count), digits, progressive)


def cosine(high: Any, count: int, digits: int) -> tuple[list[float], float]:
    def target(z: Any) -> Any:
        return (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2

    progressive = 3 if digits == 53 else count
    weight = lambda z: z**2 / mp.cos(mp.sqrt(z))  # noqa: E731
    return fit(target, weight, mp.mpf("1e-9"), high, range(count), digits, progressive)


def exponential(count: int) -> tuple[list[float], float]:
    def target(r: Any) -> Any:
        return (mp.exp(r) - 1 - r - r * r / 2) / r**3 if r else mp.mpf(1) / 6

    weight = lambda r: r**3 * mp.exp(-r)  # noqa: E731
    bound = mp.mpf("0.34661")
    return fit(target, weight, -bound, bound, range(count), 53, 3)


def hyperbolic_cotangent(count: int, digits: int) -> tuple[list[float], float]:
    """``(r coth r - 1) / r^2`` in ``z = r^2``."""

    def target(z: Any) -> Any:
        return (mp.sqrt(z) * mp.coth(mp.sqrt(z)) - 1) / z

    high = (mp.log(2) / 4) ** 2 * (1 + mp.mpf(2) ** -20)
    return fit(target, lambda z: z, mp.mpf("1e-9"), high, range(count), digits, 2)


def inverse_cube_root(count: int, digits: int) -> tuple[list[float], float]:
    return fit(lambda m: m ** (-mp.mpf(1) / 3), mp.cbrt, 1, 2, range(count), digits, 0)


def accurate_centre(near: Any, step: Any, digits: int, extra: int) -> tuple[Any, Any]:
    """The first multiple of ``step`` from ``near`` on whose erf has ``digits + extra`` bits."""
    for k in range(20000):
        for sign in (1, -1):
            centre = near + sign * k * step
            value = mp.erf(centre)
            if abs(value - nearest(value, digits)) < mp.mpf(2) ** -(digits + extra) * value:
                return centre, nearest(value, digits)
    raise ValueError("no such point")


def erf_table(spacing: Any, count: int, digits: int, step: Any, extra: int) -> Any:
    """Columns of ``ERF_64``, ``ERF_32``; ``count - 1`` coefficients after the slope."""
    rows, errors = [], []
    margin = 1 + mp.mpf("1e-6")
    for k in range(16):
        if k == 0:
            slope = nearest(2 / mp.sqrt(mp.pi), digits)
            target = lambda d, s=slope: mp.erf(d) - s * d  # noqa: E731
            powers = range(1, count, 2)
            found, error = fit(
                target, lambda d: 1 / mp.erf(d), "1e-9", spacing / 2 * margin, powers, digits, 99
            )
            rest = [0.0] * (count - 1)
            rest[::2] = found
            rows.append([0.0, 0.0, float(slope), *rest])
        else:
            centre, value = accurate_centre(k * spacing, step, digits, extra)
            exact = mp.diff(mp.erf, centre)
            unit = mp.mpf(2) ** (int(mp.floor(mp.log(exact, 2))) - 6)
            slope = mp.nint(exact / unit) * unit
            target = lambda d, c=centre, v=value, s=slope: mp.erf(c + d) - v - s * d  # noqa: E731
            weight = lambda d, c=centre: 1 / mp.erf(c + d)  # noqa: E731
            half = spacing / 2 * margin
            low, high = k * spacing - half - centre, k * spacing + half - centre
            found, error = fit(target, weight, low, high, range(count), digits, 0, skip=1)
            rows.append([float(centre), float(value), float(slope), *found[1:]])
        errors.append(error)
    return tuple(zip(*rows, strict=True)), max(errors)


def erfc_rest(w: Any) -> Any:
    """``erfc(x) exp(x^2) (1 + x/2)`` with ``w = 1/(1 + x/2)``."""
    x = 2 / w - 2
    return mp.exp(x * x) * mp.erfc(x) / w


def erfc_table() -> Any:
    """Columns of ``ERFC_64``."""
    rows, errors = [], []
    width = mp.mpf(1) / 32
    for k in range(1, 17):
        centre = mp.mpf(k) / 16
        low, high = max(-width, mp.mpf(1) / 15.02 - centre), min(width, 1 - centre)
        value = nearest(erfc_rest(centre), 53)
        target = lambda d, c=centre, v=value: erfc_rest(c + d) - v  # noqa: E731
        weight = lambda d, c=centre: 1 / erfc_rest(c + d)  # noqa: E731
        found, error = fit(target, weight, low, high, range(10), 53, 0)
        rows.append([float(value), *found])
        errors.append(error)
    return tuple(zip(*rows, strict=True)), max(errors)


def erfc_32() -> tuple[list[float], float]:
    return fit(erfc_rest, lambda w: 1 / erfc_rest(w), "0.163", 1, range(12), 53, 0)


def main() -> None:
    quarter_pi = (mp.pi / 4) ** 2 * (1 + mp.mpf(2) ** -20)
    quarter = mp.mpf(1) / 16 * (1 + mp.mpf(2) ** -20)
    waves, arcs = trigonometric._CONSTANTS, inverse_trigonometric._CONSTANTS
    cubes = roots._CONSTANTS
    tables = [
        ("sine", waves[float64].sine, odd_function(mp.sin, quarter_pi, 6, 53)),
        ("sine, float32", waves[float32].sine, odd_function(mp.sin, quarter_pi, 3, 24)),
        ("cosine", waves[float64].cosine, cosine(quarter_pi, 6, 53)),
        ("cosine, float32", waves[float32].cosine, cosine(quarter_pi, 3, 24)),
        ("asin", arcs[float64].arc_sine, odd_function(mp.asin, 0.25, 13, 53)),
        ("asin, float32", arcs[float32].arc_sine, odd_function(mp.asin, 0.25, 6, 24)),
        ("atan", arcs[float64].arc_tangent, odd_function(mp.atan, quarter, 8, 53)),
        ("atan, float32", arcs[float32].arc_tangent, odd_function(mp.atan, quarter, 4, 24)),
        ("tanh", hyperbolic._COTH[float64], hyperbolic_cotangent(5, 53)),
        ("tanh, float32", hyperbolic._COTH[float32], hyperbolic_cotangent(2, 24)),
        ("cbrt", cubes[float64].start, inverse_cube_root(4, 53)),
        ("cbrt, float32", cubes[float32].start, inverse_cube_root(3, 24)),
        ("exp", error_function._EXP_64, exponential(10)),
        ("exp, float32", error_function._EXP_32, exponential(4)),
        ("erfc, float32", error_function._ERFC_32, erfc_32()),
        ("erfc", ERFC_64, erfc_table()),
        ("erf", ERF_64, erf_table(mp.mpf(25) / 64, 14, 53, mp.mpf(2) ** -16, 10)),
        ("erf, float32", ERF_32, erf_table(mp.mpf(17) / 64, 7, 24, mp.mpf(2) ** -14, 8)),
    ]
    for name, have, (found, error) in tables:
        print(f"{name}: error 2^{error:.1f}, {'same' if tuple(found) == have else found}")


if __name__ == "__main__":
    main()
