"""Powers and roots: power, integer_power, square, reciprocal, sqrt, rsqrt, cbrt, hypot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import int8
from ..graph import Value, make
from ..location import at_user_line
from ..scalar import complexes, roots
from ..scalar import power as programs
from .arithmetic import complex_mul, div
from .comparison import eq, isfinite, isinf, le
from .domains import between, draw, with_params
from .elementwise import elementwise
from .logarithm import log
from .logic import logical_and
from .operands import as_value, common_dtype, convert, inexact_operands, operands
from .rounding import copysign
from .scaling import scale, unscale
from .selection import where

__all__ = [
    *("CBRT", "HYPOT", "INTEGER_POWER", "POW", "RSQRT", "SQRT"),
    *("cbrt", "hypot", "integer_power", "power", "reciprocal", "rsqrt", "sqrt", "square"),
]

_NOT_LINEAR = {"transpose": "not linear"}
_REAL = _NOT_LINEAR | {"complex_scalar": "defined on real numbers alone so far"}

# ------------------------------------------------------------------------------- integer_power

# Beyond, n - 1 roundings are worse than those of ``pow``, and no cheaper.
_LARGEST_EXPONENT = 64


def _by_squaring(x: Any, n: int, multiply: Callable[[Any, Any], Any]) -> Any:
    """``x**n`` for ``n > 0``: the product of the ``x**(2**k)`` of the bits of n, lowest first."""
    result = None
    while True:
        if n & 1:
            result = x if result is None else multiply(result, x)
        n >>= 1
        if not n:
            return result
        x = multiply(x, x)


def _integer_power(h: Any, x: Any, *, n: int) -> Any:
    return _by_squaring(x, n, h.mul) if n else h.const(1, h.dtype(x))


def _complex_integer_power(h: Any, x: Any, *, n: int) -> Any:
    if not n:
        return h.const(1.0, h.dtype(x[0])), h.const(0.0, h.dtype(x[0]))
    return _by_squaring(x, n, lambda a, b: complex_mul(h, a, b))


def _integer_power_partial(t: Value, x: Value, out: Value, n: int) -> Value | None:
    if n < 2:
        return t if n else None
    return scale(t, n * integer_power(x, n - 1))


INTEGER_POWER = elementwise(
    "integer_power",
    kinds="iufc",
    reference=lambda x, *, n: _by_squaring(x, n, np.multiply) if n else np.ones_like(x),
    scalar=_integer_power,
    complex_scalar=_complex_integer_power,
    partials=(_integer_power_partial,),
    doc="x**n for a whole n >= 0 known beforehand, by squaring and multiplying: x**2 is x*x to the "
    "bit, x**0 is 1, integers wrap.",
    samples=with_params(between((-3, 3)), *({"n": n} for n in (0, 1, 2, 3, 7))),
    why_not={"transpose": "not linear, but for n = 1, which the builder leaves out"},
)


def integer_power(x: Any, n: int) -> Value:
    """``x**n`` by repeated multiplication, ``n >= 0``."""
    (x,) = operands("power", x, kinds="iufc")
    return x if n == 1 else make(INTEGER_POWER, (x,), n=n)


# --------------------------------------------------------------------------------------- power


def _pow(h: Any, x: Any, y: Any) -> Any:
    """Floats: C99 pow. Integers: squaring, one step a bit; few exponents have a high bit."""
    dtype = h.dtype(x)
    if dtype.is_floating:
        return programs.pow(h, x, y)
    bits = dtype.bits - dtype.is_signed
    usual = min(bits, 8)
    one = h.const(1, dtype)

    def steps(state: tuple[Any, Any, Any], count: int) -> tuple[Any, Any, Any]:
        result, base, rest = state
        for _ in range(count):
            odd = h.eq(h.and_(rest, one), one)
            result = h.mul(result, h.select(odd, base, one))
            base, rest = h.mul(base, base), h.shr(rest, one)
        return result, base, rest

    state = steps((one, x, y), usual)
    more = h.ne(state[2], h.const(0, dtype))
    return h.rarely(more, state[0], lambda: steps(state, bits - usual)[0])


def _exponent_is_negative(h: Any, x: Any, y: Any) -> Any:
    dtype = h.dtype(y)
    return h.lt(y, h.const(0, dtype)) if dtype.is_signed else None


_NEGATIVE_EXPONENT = (
    "power: expected exponents of integers to be at least 0, got a negative one; convert the base "
    "or the exponent to a floating type"
)


def _pow_value(x: Any, y: Any) -> Any:
    if y.dtype.kind == "i" and np.any(y < 0):
        raise ValueError(_NEGATIVE_EXPONENT)
    with np.errstate(all="ignore"):
        return np.power(x, y)


def _base_partial(t: Value, x: Value, y: Value, out: Value) -> Value:
    """``y x^(y - 1)``; zero for a zero exponent even where ``x^(y - 1)`` is infinite."""
    return scale(t, scale(y, power(x, y - 1)))


def _exponent_partial(t: Value, x: Value, y: Value, out: Value) -> Value:
    """``x^y log x``; zero for x <= 0, which the exponent cannot move along."""
    nothing = eq(x, 0) if x.dtype.is_complex else le(x, 0)
    return scale(t, where(nothing, 0, scale(out, log(x))))


def _pow_samples(rng: Any, dtype: Any) -> tuple[Any, Any]:
    if np.dtype(dtype).kind in "iu":
        return draw(rng, dtype, -5, 5), draw(rng, dtype, 0, 9)
    return draw(rng, dtype, 0.3, 2), draw(rng, dtype, 0.3, 3)


POW = elementwise(
    "pow",
    kinds="iufc",
    reference=_pow_value,
    scalar=_pow,
    complex_scalar=complexes.pow,
    partials=(_base_partial, _exponent_partial),
    doc="x**y: C99 pow for floats (0**0 = 1, NaN for a negative base and a fractional exponent), "
    "wrapping integers with exponents >= 0, exp(y log x) for complex numbers.",
    samples=_pow_samples,
    check=_exponent_is_negative,
    check_error=(ValueError, _NEGATIVE_EXPONENT),
    why_not=_NOT_LINEAR,
)


def power(x: Any, y: Any) -> Value:
    """``x**y``.

    A Python integer exponent up to 64 means repeated multiplication (:func:`integer_power`), any
    other one the ``pow`` of C99.

    Raises
    ------
    ValueError
        For integers to a negative integer power: here for a Python exponent, else when it runs.

    Notes
    -----
    Derivatives at the edge: in the base ``y x^(y - 1)``, zero for ``y = 0``, so ``[0, 1, 0, inf]``
    at ``x = 0`` for ``y = [0, 1, 2, 0.5]``; in the exponent ``x^y log x``, zero for ``x <= 0``.
    """
    values = [as_value(x), as_value(y)]
    dtype = common_dtype([v.type for v in values])
    if type(y) is int and (dtype.is_integer or dtype.is_bool or abs(y) <= _LARGEST_EXPONENT):
        base = values[0]
        if base.dtype.is_bool:
            base = convert(base, dtype)
        if y >= 0:
            return integer_power(base, y)
        if dtype.is_integer or dtype.is_bool:
            raise at_user_line(ValueError(_NEGATIVE_EXPONENT))
        if base.dtype.is_complex or y == -1:
            return reciprocal(integer_power(base, -y))
    promoted = int8 if dtype.is_bool else None  # two bools (NumPy)
    return make(POW, operands("power", *values, kinds="iufc", dtype=promoted))


def square(x: Any) -> Value:
    """``x * x``; int8 for bools (NumPy)."""
    x = as_value(x)
    return integer_power(convert(x, int8) if x.dtype.is_bool else x, 2)


def reciprocal(x: Any) -> Value:
    """``1 / x``; float64 for integers."""
    return div(1, x)


# --------------------------------------------------------------------------------------- roots

SQRT = elementwise(
    "sqrt",
    kinds="fc",
    reference=np.sqrt,
    scalar=lambda h, x: h.sqrt(x),
    complex_scalar=complexes.sqrt,
    # Zero to every order at zero (numerics 3): norms and distances then have derivative zero there.
    partials=(lambda t, x, out: where(eq(x, 0), 0, unscale(t * 0.5, out)),),
    doc="Square root, correctly rounded: NaN below zero, -0 for -0; complex: real part >= 0. All "
    "derivatives at zero are zero.",
    samples=between((0.3, 3)),
    why_not=_NOT_LINEAR,
)


def sqrt(x: Any) -> Value:
    return make(SQRT, inexact_operands("sqrt", x))


def _rsqrt_value(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return (1 / np.sqrt(x)).astype(x.dtype)


RSQRT = elementwise(
    "rsqrt",
    kinds="f",
    reference=_rsqrt_value,
    scalar=lambda h, x: h.div(h.const(1.0, h.dtype(x)), h.sqrt(x)),
    partials=(lambda t, x, out: scale(t * -0.5, out / x),),
    doc="1 / sqrt(x), each rounded once; infinite at 0 with all its derivatives.",
    samples=between((0.3, 3)),
    why_not=_REAL,
)


def rsqrt(x: Any) -> Value:
    return make(RSQRT, inexact_operands("rsqrt", x, kinds="f"))


CBRT = elementwise(
    "cbrt",
    kinds="f",
    reference=np.cbrt,
    scalar=roots.cbrt,
    # out^-2 and not 1 / out^2: at 0 the next order is -2 out^-3, where the rule of the quotient
    # says inf * 0.
    partials=(lambda t, x, out: scale(t, power(out, -2.0) / 3),),
    doc="Real cube root, odd; all derivatives are infinite at 0: the limits from the side that the "
    "sign of the zero names.",
    samples=between((0.3, 3), signed=True),
    why_not=_REAL,
)


def cbrt(x: Any) -> Value:
    return make(CBRT, inexact_operands("cbrt", x, kinds="f"))


def _hypot_partial(t: Value, x: Value, y: Value, out: Value) -> Value:
    """``x / hypot``; at an infinite x beside a finite y its limit, which is the sign of x."""
    alone = logical_and(isinf(x), isfinite(y))
    return scale(t, where(alone, copysign(1.0, x), where(eq(out, 0), 0, x / out)))


HYPOT = elementwise(
    "hypot",
    kinds="f",
    reference=np.hypot,
    scalar=roots.hypot,
    partials=(
        lambda t, x, y, out: _hypot_partial(t, x, y, out),
        lambda t, x, y, out: _hypot_partial(t, y, x, out),
    ),
    doc="sqrt(x*x + y*y) without overflow or underflow; infinite if either is. The derivative at "
    "the origin is zero, as of every norm. Beside a finite operand an infinite one has the slope 1 "
    "or -1, the other 0; two infinite ones have no limit: NaN.",
    samples=between((0.3, 3), (0.3, 3), signed=True),
    why_not=_REAL,
)


def hypot(x: Any, y: Any) -> Value:
    return make(HYPOT, inexact_operands("hypot", x, y, kinds="f"))
