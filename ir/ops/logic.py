"""Logical and bit operations: and, or, xor, not, shifts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import bool_, int8
from ..graph import Value, make
from .domains import between
from .elementwise import elementwise
from .operands import as_value, common_dtype, convert, operands

__all__ = [
    *("AND", "NOT", "OR", "SHIFT_LEFT", "SHIFT_RIGHT", "XOR"),
    *("and_", "logical_and", "logical_not", "logical_or", "logical_xor", "not_", "or_"),
    *("shift_left", "shift_right", "xor"),
]

_WHY_NOT = {
    "jvp": "integers and bools have no tangents",
    "transpose": "integers and bools have no tangents",
    "complex_scalar": "defined on integers and bools alone",
}

AND = elementwise(
    "and",
    kinds="biu",
    reference=np.bitwise_and,
    scalar=lambda h, x, y: h.and_(x, y),
    doc="Bitwise and; logical and for bools.",
    samples=between((-100, 100), (-100, 100)),
    why_not=_WHY_NOT,
)


def and_(x: Any, y: Any) -> Value:
    return make(AND, operands("bitwise_and", x, y, kinds="biu"))


OR = elementwise(
    "or",
    kinds="biu",
    reference=np.bitwise_or,
    scalar=lambda h, x, y: h.or_(x, y),
    doc="Bitwise or; logical or for bools.",
    samples=between((-100, 100), (-100, 100)),
    why_not=_WHY_NOT,
)


def or_(x: Any, y: Any) -> Value:
    return make(OR, operands("bitwise_or", x, y, kinds="biu"))


XOR = elementwise(
    "xor",
    kinds="biu",
    reference=np.bitwise_xor,
    scalar=lambda h, x, y: h.xor(x, y),
    doc="Bitwise exclusive or; logical for bools.",
    samples=between((-100, 100), (-100, 100)),
    why_not=_WHY_NOT,
)


def xor(x: Any, y: Any) -> Value:
    return make(XOR, operands("bitwise_xor", x, y, kinds="biu"))


NOT = elementwise(
    "not",
    kinds="biu",
    reference=np.invert,
    scalar=lambda h, x: h.not_(x),
    doc="All bits flipped; logical not for bools.",
    samples=between((-100, 100)),
    why_not=_WHY_NOT,
)


def not_(x: Any) -> Value:
    return make(NOT, operands("bitwise_invert", x, kinds="biu"))


def _too_far(h: Any, y: Any) -> tuple[Any, Any]:
    """Whether the shift by ``y`` leaves the word, and a shift that does not."""
    dtype = h.dtype(y)
    zero, width = h.const(0, dtype), h.const(dtype.bits, dtype)
    far = h.ge(y, width)
    if dtype.is_signed:
        far = h.or_(far, h.lt(y, zero))
    return far, h.select(far, zero, y)


def _shift_left(h: Any, x: Any, y: Any) -> Any:
    far, y = _too_far(h, y)
    return h.select(far, h.const(0, h.dtype(x)), h.shl(x, y))


def _shift_right(h: Any, x: Any, y: Any) -> Any:
    dtype = h.dtype(x)
    far, y = _too_far(h, y)
    gone = h.const(0, dtype)
    if dtype.is_signed:
        gone = h.select(h.lt(x, gone), h.const(-1, dtype), gone)
    return h.select(far, gone, h.shr(x, y))


SHIFT_LEFT = elementwise(
    "shift_left",
    kinds="iu",
    reference=np.left_shift,
    scalar=_shift_left,
    doc="x * 2**y modulo the width; 0 for a y that is negative or not below the width (NumPy).",
    samples=between((-100, 100), (-1, 9)),
    why_not=_WHY_NOT,
)


def shift_left(x: Any, y: Any) -> Value:
    return make(SHIFT_LEFT, _shift_operands("left_shift", x, y))


SHIFT_RIGHT = elementwise(
    "shift_right",
    kinds="iu",
    reference=np.right_shift,
    scalar=_shift_right,
    doc="floor(x / 2**y); the sign (0 or -1) for a y that is negative or not below the width "
    "(NumPy).",
    samples=between((-100, 100), (-1, 9)),
    why_not=_WHY_NOT,
)


def shift_right(x: Any, y: Any) -> Value:
    return make(SHIFT_RIGHT, _shift_operands("right_shift", x, y))


def _shift_operands(name: str, x: Any, y: Any) -> Sequence[Value]:
    """Integers of one type; two bools become int8 (NumPy)."""
    values = [as_value(x), as_value(y)]
    both = common_dtype([v.type for v in values]).is_bool
    return operands(name, *values, kinds="iu", dtype=int8 if both else None)


# Logical functions take any dtype: what is not zero is true (NaN too).


def _truths(x: Any, y: Any) -> tuple[Value, Value]:
    return convert(as_value(x), bool_), convert(as_value(y), bool_)


def logical_and(x: Any, y: Any) -> Value:
    return and_(*_truths(x, y))


def logical_or(x: Any, y: Any) -> Value:
    return or_(*_truths(x, y))


def logical_xor(x: Any, y: Any) -> Value:
    return xor(*_truths(x, y))


def logical_not(x: Any) -> Value:
    return not_(convert(as_value(x), bool_))
