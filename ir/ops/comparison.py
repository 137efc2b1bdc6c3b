"""Comparisons: eq, ne, lt, le, gt, ge, and the tests for NaN and infinities. All give bool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import bool_, int64, uint64
from ..graph import Op, Value, make
from .domains import between
from .elementwise import elementwise
from .leaves import CONSTANT, constant
from .logic import and_, not_, or_
from .operands import as_value, convert, operands
from .shape import broadcast_to

__all__ = [
    *("EQ", "GE", "GT", "LE", "LT", "NE"),
    *("eq", "ge", "gt", "isfinite", "isinf", "isnan", "le", "lt", "ne"),
]

_WHY_NOT = {
    "transpose": "the result is bool",
    "jvp": "the result is bool",
}


def _comparison(name: str, reference: Callable[..., Any], on_bool: Callable[..., Any]) -> Op:
    """An order relation: false when an operand is NaN."""
    return elementwise(
        name,
        kinds="biuf",
        reference=reference,
        scalar=lambda h, x, y: on_bool(h, x, y) if h.dtype(x).is_bool else getattr(h, name)(x, y),
        result=bool_,
        doc=f"x {_SYMBOLS[name]} y; false when an operand is NaN; complex numbers have no order.",
        samples=between((-5, 5), (-5, 5)),
        why_not=_WHY_NOT | {"complex_scalar": "complex numbers have no order"},
    )


_SYMBOLS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}

EQ = elementwise(
    "eq",
    kinds="biufc",
    reference=np.equal,
    scalar=lambda h, x, y: h.not_(h.xor(x, y)) if h.dtype(x).is_bool else h.eq(x, y),
    complex_scalar=lambda h, x, y: h.and_(h.eq(x[0], y[0]), h.eq(x[1], y[1])),
    result=bool_,
    doc="x == y; false when an operand is NaN, -0 equals +0.",
    samples=between((-5, 5), (-5, 5)),
    why_not=_WHY_NOT,
)
NE = elementwise(
    "ne",
    kinds="biufc",
    reference=np.not_equal,
    scalar=lambda h, x, y: h.xor(x, y) if h.dtype(x).is_bool else h.ne(x, y),
    complex_scalar=lambda h, x, y: h.or_(h.ne(x[0], y[0]), h.ne(x[1], y[1])),
    result=bool_,
    doc="x != y; true when an operand is NaN.",
    samples=between((-5, 5), (-5, 5)),
    why_not=_WHY_NOT,
)
LT = _comparison("lt", np.less, lambda h, x, y: h.and_(h.not_(x), y))
LE = _comparison("le", np.less_equal, lambda h, x, y: h.or_(h.not_(x), y))
GT = _comparison("gt", np.greater, lambda h, x, y: h.and_(x, h.not_(y)))
GE = _comparison("ge", np.greater_equal, lambda h, x, y: h.or_(x, h.not_(y)))


def eq(x: Any, y: Any) -> Value:
    return _compare("equal", EQ, x, y)


def ne(x: Any, y: Any) -> Value:
    return _compare("not_equal", NE, x, y)


def lt(x: Any, y: Any) -> Value:
    return _compare("less", LT, x, y)


def le(x: Any, y: Any) -> Value:
    return _compare("less_equal", LE, x, y)


def gt(x: Any, y: Any) -> Value:
    return _compare("greater", GT, x, y)


def ge(x: Any, y: Any) -> Value:
    return _compare("greater_equal", GE, x, y)


def _compare(name: str, op: Op, x: Any, y: Any) -> Value:
    """Compares values, not what is left of them after promotion (as NumPy 2 does).

    A Python integer that the array's type cannot hold stays what it is, and int64 meets uint64
    exactly, where their common type float64 would round.
    """
    x, y = as_value(x), as_value(y)
    x, y = _strong_integer(x, y), _strong_integer(y, x)
    if x.dtype.is_signed and y.dtype is uint64 and not (x.type.weak or y.type.weak):
        return _signed_with_unsigned(op, x, y)
    if y.dtype.is_signed and x.dtype is uint64 and not (x.type.weak or y.type.weak):
        return _signed_with_unsigned(_MIRRORED[op], y, x)
    return make(op, operands(name, x, y, kinds="biufc" if op in (EQ, NE) else "biuf"))


def _strong_integer(x: Value, other: Value) -> Value:
    """A weak integer that does not (or may not) fit the integer type it meets, as a strong one."""
    if not (x.type.weak and x.dtype.is_integer) or other.type.weak or not other.dtype.is_integer:
        return x
    if x.node.op is not CONSTANT:
        return convert(x, x.dtype)
    info = np.iinfo(other.dtype.numpy)
    data = x.node.param("literal").array()
    return x if np.all((data >= info.min) & (data <= info.max)) else constant(data, x.dtype)


_MIRRORED = {EQ: EQ, NE: NE, LT: GT, GT: LT, LE: GE, GE: LE}


def _signed_with_unsigned(op: Op, x: Value, y: Value) -> Value:
    """``x op y`` for a signed ``x`` and a uint64 ``y``: a negative ``x`` is below every ``y``."""
    x = convert(x, int64)
    negative = lt(x, 0)
    compared = make(op, operands(op.name, convert(x, uint64), y))
    if op in (LT, LE, NE):
        return or_(negative, compared)
    return and_(not_(negative), compared)


def isnan(x: Any) -> Value:
    """True where ``x`` (or a part of it) is NaN; false for integers and bools."""
    x = as_value(x)
    if not x.dtype.is_inexact:
        return broadcast_to(constant(False), x.shape)
    return make(NE, (x, x))


def isinf(x: Any) -> Value:
    """True where ``x`` (or a part of it) is infinite."""
    return _test_parts(x, lambda part: eq(abs(part), np.inf), or_, False)


def isfinite(x: Any) -> Value:
    """True where ``x`` (both parts of it) is neither infinite nor NaN."""
    return _test_parts(x, lambda part: lt(abs(part), np.inf), and_, True)


def _test_parts(
    x: Any, test: Callable[[Any], Value], join: Callable[[Any, Any], Value], exact: bool
) -> Value:
    """``test`` of a floating ``x``, of both parts of a complex one; ``exact`` for integers."""
    from .complexes import imag, real  # complexes.py builds on this module

    x = as_value(x)
    if x.dtype.is_complex:
        return join(test(real(x)), test(imag(x)))
    return test(x) if x.dtype.is_floating else broadcast_to(constant(exact), x.shape)
