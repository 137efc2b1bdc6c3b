"""Division with remainder: floor_divide, remainder, fmod, for integers and floats.

Integers wrap; division by zero raises ``ZeroDivisionError`` on the CPU (numerics 6), the scalar
programs are total. Floating remainders are exact: see :mod:`..scalar.remainder`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import int8
from ..graph import Op, Value, make
from ..scalar import remainder as programs
from .arithmetic import neg
from .domains import SIZE, between, draw
from .elementwise import elementwise
from .operands import as_value, common_dtype, operands
from .rounding import rint
from .scaling import scale

__all__ = ["FLOOR_DIVIDE", "FMOD", "REMAINDER", "floor_divide", "fmod", "remainder"]


def _divisor_is_zero(h: Any, x: Any, y: Any) -> Any:
    dtype = h.dtype(y)
    return h.eq(y, h.const(0, dtype)) if dtype.is_integer else None


def _checked(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function with our rule for integer division by zero."""

    def value(x: Any, y: Any) -> Any:
        if y.dtype.kind in "iu" and np.any(y == 0):
            raise ZeroDivisionError(_message(name))
        with np.errstate(all="ignore"):
            return function(x, y)

    return value


def _message(name: str) -> str:
    return (
        f"{name}: expected integer divisors other than 0, got one that is 0; replace it, as in "
        f"x // where(y == 0, 1, y), or convert to a floating type"
    )


def _division(name: str, function: Callable[..., Any], scalar: Any, partials: Any, doc: str) -> Op:
    return elementwise(
        name,
        kinds="iuf",
        reference=_checked(name, function),
        scalar=scalar,
        partials=partials,
        doc=doc,
        samples=_samples,
        check=_divisor_is_zero,
        check_error=(ZeroDivisionError, _message(name)),
        why_not={
            "transpose": "not linear; its tangent is a sum of scaled tangents",
            "complex_scalar": "complex numbers have no order to round in",
        },
    )


def _samples(rng: Any, dtype: Any) -> tuple[Any, Any]:
    """Quotients whose fraction is between 0.1 and 0.9."""
    if np.dtype(dtype).kind != "f":
        x, y = between((0, 100), (1, 9), signed=True)(rng, dtype)
        return x, y
    y = draw(rng, dtype, 0.5, 2, signed=True)
    quotient = rng.integers(-9, 9, SIZE) + rng.uniform(0.1, 0.9, SIZE)
    return (quotient * y).astype(dtype), y


def _divided(name: str, x: Any, y: Any) -> Sequence[Value]:
    """Real operands of one type; two bools become int8 (NumPy)."""
    values = [as_value(x), as_value(y)]
    both = common_dtype([v.type for v in values]).is_bool
    return operands(name, *values, kinds="iuf", dtype=int8 if both else None)


FLOOR_DIVIDE = _division(
    "floor_divide",
    np.floor_divide,
    programs.floor_divide,
    (None, None),
    "floor(x / y) of the exact quotient; float quotients as Python and NumPy round them, zeros "
    "keep the sign of x / y.",
)


def floor_divide(x: Any, y: Any) -> Value:
    return make(FLOOR_DIVIDE, _divided("floor_divide", x, y))


REMAINDER = _division(
    "remainder",
    np.remainder,
    programs.remainder,
    (lambda t, x, y, out: t, lambda t, x, y, out: neg(scale(t, floor_divide(x, y)))),
    "x - floor(x / y) y, exactly for floats but for one rounding where signs differ; has the sign "
    "of y, a zero too (Python, NumPy).",
)


def remainder(x: Any, y: Any) -> Value:
    return make(REMAINDER, _divided("remainder", x, y))


FMOD = _division(
    "fmod",
    np.fmod,
    programs.fmod,
    # The quotient is taken from the remainder: x / y alone may round up to the next integer.
    (lambda t, x, y, out: t, lambda t, x, y, out: neg(scale(t, rint((x - out) / y)))),
    "x - trunc(x / y) y, exactly; has the sign of x (C99 fmod).",
)


def fmod(x: Any, y: Any) -> Value:
    return make(FMOD, _divided("fmod", x, y))
