"""Third and fourth derivatives of every elementwise op at smooth points, against mpmath (AD42).

Each op runs along a curve through one of its points; the curve of several operands is a line with a
slope of its own for each, so mixed derivatives count. Nested forward mode and Taylor mode both.
"""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from tilegrad.autodiff.forward import jvp
from tilegrad.autodiff.jet import jet
from tilegrad.ir.graph import make
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.leaves import alias, constant

SLOPES = (1.0, -0.5, 0.25)


def floored(x: Any, y: Any) -> Any:
    return x - y * mpmath.floor(x / y)


def truncated(x: Any, y: Any) -> Any:
    q = x / y
    return x - y * (mpmath.floor(q) if q > 0 else mpmath.ceil(q))


def copied(x: Any, y: Any) -> Any:
    return abs(x) if y > 0 else -abs(x)


def sine_ratio(n: int) -> Callable[[Any], Any]:
    """The derivatives of ``sin(x)/x`` from the series, which has no pole to cancel."""

    def value(x: Any) -> Any:
        def term(k: Any) -> Any:
            m = 2 * int(k)
            return mpf(-1) ** int(k) * mpmath.ff(m, n) * x ** max(m - n, 0) / mpmath.fac(m + 1)

        return mpmath.fsum(term(k) for k in range((n + 1) // 2, 40))

    return value


# name -> (function of mpmath, points, params); what is complex has complex points too
ANY = [(0.7,), (-1.3,), (2.1,)]
POSITIVE = [(0.4,), (1.7,), (3.5,)]
INSIDE = [(0.3,), (-0.8,)]
PAIRS = [(0.7, 1.9), (1.3, 0.6)]
SIGNED = [(-0.7, 1.9), (1.3, -2.6)]
Row = tuple[Callable[..., Any], list[tuple[complex, ...]], dict[str, Any]]

TABLE: dict[str, list[Row]] = {
    "exp": [(mpmath.exp, [*ANY, (0.3 + 0.4j,)], {})],
    "exp2": [(lambda x: mpf(2) ** x, ANY, {})],
    "expm1": [(mpmath.expm1, [*ANY, (1e-9,), (-30.0,)], {})],
    "log": [(mpmath.log, [*POSITIVE, (0.3 - 0.4j,)], {})],
    "log1p": [(mpmath.log1p, [(0.7,), (-0.6,), (1e-9,)], {})],
    "log2": [(lambda x: mpmath.log(x, 2), POSITIVE, {})],
    "log10": [(mpmath.log10, POSITIVE, {})],
    "sqrt": [(mpmath.sqrt, [*POSITIVE, (0.3 + 0.4j,)], {})],
    "rsqrt": [(lambda x: 1 / mpmath.sqrt(x), POSITIVE, {})],
    "cbrt": [(lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), ANY, {})],
    "sin": [(mpmath.sin, [*ANY, (40.0,), (0.3 + 0.4j,)], {})],
    "cos": [(mpmath.cos, [*ANY, (40.0,), (0.3 + 0.4j,)], {})],
    "tan": [(mpmath.tan, [(0.7,), (-1.3,), (0.3 + 0.4j,)], {})],
    "asin": [(mpmath.asin, INSIDE, {})],
    "acos": [(mpmath.acos, INSIDE, {})],
    "atan": [(mpmath.atan, ANY, {})],
    "atan2": [(mpmath.atan2, [*PAIRS, *SIGNED], {})],
    "sinh": [(mpmath.sinh, [*ANY, (0.3 + 0.4j,)], {})],
    "cosh": [(mpmath.cosh, [*ANY, (0.3 + 0.4j,)], {})],
    "tanh": [(mpmath.tanh, [*ANY, (0.3 + 0.4j,)], {})],
    "asinh": [(mpmath.asinh, ANY, {})],
    "acosh": [(mpmath.acosh, [(1.4,), (3.0,)], {})],
    "atanh": [(mpmath.atanh, INSIDE, {})],
    "erf": [(mpmath.erf, ANY, {})],
    "erfc": [(mpmath.erfc, [*ANY, (5.0,)], {})],
    "logistic": [(lambda x: 1 / (1 + mpmath.exp(-x)), [*ANY, (12.0,), (-12.0,)], {})],
    "logaddexp": [(lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)), PAIRS, {})],
    "lgamma": [(mpmath.loggamma, POSITIVE, {})],
    "polygamma": [
        (lambda x: mpmath.digamma(x), POSITIVE, {"n": 0}),
        (lambda x: mpmath.polygamma(2, x), POSITIVE, {"n": 2}),
    ],
    "sine_ratio": [
        (sine_ratio(n), [(0.4,), (-2.5,), (0.0,), (1e-5,)], {"n": n}) for n in (0, 1, 3)
    ],
    "pow": [
        (lambda x, y: x**y, [*PAIRS, (0.3 + 0.4j, 1.2 - 0.3j)], {}),
    ],
    "integer_power": [
        (lambda x, n=n: x**n, [*ANY, (0.0,), (0.3 + 0.4j,)], {"n": n}) for n in (2, 3, 4, 7)
    ],
    "mul": [(lambda x, y: x * y, [*SIGNED, (0.3 + 0.4j, 1j)], {})],
    "div": [(lambda x, y: x / y, [*SIGNED, (0.3 + 0.4j, 1 + 1j)], {})],
    "scale": [(lambda x, y: x * y, SIGNED, {"symmetric": s}) for s in (False, True)],
    "unscale": [(lambda x, y: x / y, SIGNED, {})],
    "hypot": [(mpmath.hypot, SIGNED, {})],
    "abs": [(abs, ANY, {})],
    "copysign": [(copied, SIGNED, {})],
    "maximum": [(max, SIGNED, {"tie": 0.5})],
    "minimum": [(min, SIGNED, {"tie": 0.5})],
    "remainder": [(floored, [(5.3, 2.1), (-5.3, 2.1)], {})],
    "fmod": [(truncated, [(5.3, 2.1), (-5.3, 2.1)], {})],
}

# Linear in all operands that move, or piecewise constant: nothing is left of the second order on.
FLAT = {
    *("add", "sub", "gap", "neg", "alias", "convert", "conj", "real", "imag", "complex", "where"),
    *(
        "ldexp",
        "frexp_mantissa",
        "hold",
        "checkpoint_name",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "sign",
    ),
    *("nextafter", "stop_gradient", "floor_divide"),
}


def test_every_elementwise_op_has_a_row() -> None:
    smooth = {n for n, op in OPS.items() if op.kind == "elementwise" and op.jvp is not None}
    assert smooth == set(TABLE) | FLAT


def derivatives(name: str, point: tuple[complex, ...], params: dict[str, Any]) -> Any:
    """Orders 1 to 4 along the line, by nested forward mode and by Taylor mode."""
    dtype = np.complex128 if any(isinstance(p, complex) for p in point) else np.float64
    xs = [alias(constant(np.asarray(p, dtype))) for p in point]
    slopes = [constant(np.asarray(s, dtype)) for s in SLOPES[: len(point)]]
    out = make(OPS[name], xs, **params)
    rows, now = [], out
    for _ in range(4):
        (t,) = jvp([now], dict(zip(xs, slopes, strict=True)))
        rows.append(t)
        if t is None:
            break
        now = t
    rows += [None] * (4 - len(rows))
    (terms,) = jet([out], {x: [s, None, None, None] for x, s in zip(xs, slopes, strict=True)}, 4)
    return [
        [0.0 if t is None else complex(interpret([t])[0]) for t in many] for many in (rows, terms)
    ]


@pytest.mark.parametrize("name", sorted(TABLE))
def test_to_fourth_order(name: str) -> None:
    for f, points, params in TABLE[name]:
        for point in points:
            with mpmath.workdps(80):
                start = [mpmath.mpmathify(p) for p in point]

                def along(t: Any, f: Any = f, start: Any = start) -> Any:
                    return f(*[x + mpf(s) * t for x, s in zip(start, SLOPES, strict=False)])

                exact = [complex(mpmath.diff(along, 0, k, h=mpf(10) ** -12)) for k in (1, 2, 3, 4)]
            for found in derivatives(name, point, params):
                # Terms of a sum may be larger than the sum.
                size = max(1.0, *[abs(e) for e in exact])
                np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-13 * size)
