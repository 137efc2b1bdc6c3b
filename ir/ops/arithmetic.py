"""Arithmetic: neg, add, sub, gap, mul, div."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph import Node, Value, make
from .domains import between
from .elementwise import elementwise
from .operands import inexact_operands, operands
from .scaling import scale, unscale

__all__ = [
    *("ADD", "DIV", "GAP", "MUL", "NEG", "SUB"),
    *("add", "complex_div", "complex_mul", "div", "gap", "mul", "neg", "sub"),
]


def _add(h: Any, x: Any, y: Any) -> Any:
    return h.add(x, y)


def complex_mul(h: Any, x: Any, y: Any) -> Any:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i, each product and sum rounded once."""
    (a, b), (c, d) = x, y
    return h.sub(h.mul(a, c), h.mul(b, d)), h.add(h.mul(a, d), h.mul(b, c))


def complex_div(h: Any, x: Any, y: Any) -> Any:
    """Smith's algorithm (R. L. Smith, CACM 5, 1962): scale by the larger part of the divisor."""
    (a, b), (c, d) = x, y
    wide = h.ge(h.abs(c), h.abs(d))
    big, small = h.select(wide, c, d), h.select(wide, d, c)
    ratio = h.div(small, big)
    scale = h.add(big, h.mul(small, ratio))
    p, q = h.select(wide, a, b), h.select(wide, b, a)
    real = h.div(h.add(p, h.mul(q, ratio)), scale)
    # wide: (b - a r) / s, else (b r - a) / s
    left = h.select(wide, b, h.mul(b, ratio))
    right = h.select(wide, h.mul(a, ratio), a)
    return real, h.div(h.sub(left, right), scale)


NEG = elementwise(
    "neg",
    kinds="iufc",
    reference=np.negative,
    scalar=lambda h, x: h.neg(x),
    complex_scalar=lambda h, x: (h.neg(x[0]), h.neg(x[1])),
    partials=(lambda t, x, out: neg(t),),
    transpose=lambda node, cotangent, linear: (neg(cotangent),),
    doc="-x; wraps for integers.",
    samples=between((-3, 3)),
)


def neg(x: Any) -> Value:
    return make(NEG, operands("neg", x, kinds="iufc"))


ADD = elementwise(
    "add",
    kinds="biufc",
    reference=np.add,
    scalar=lambda h, x, y: h.or_(x, y) if h.dtype(x).is_bool else h.add(x, y),
    complex_scalar=lambda h, x, y: (h.add(x[0], y[0]), h.add(x[1], y[1])),
    partials=(lambda t, x, y, out: t, lambda t, x, y, out: t),
    transpose=lambda node, cotangent, linear: [cotangent if on else None for on in linear],
    doc="x + y; wraps for integers, logical or for bools (NumPy).",
    samples=between((-3, 3), (-3, 3)),
)


def add(x: Any, y: Any) -> Value:
    return make(ADD, operands("add", x, y))


SUB = elementwise(
    "sub",
    kinds="iufc",
    reference=np.subtract,
    scalar=lambda h, x, y: h.sub(x, y),
    complex_scalar=lambda h, x, y: (h.sub(x[0], y[0]), h.sub(x[1], y[1])),
    partials=(lambda t, x, y, out: t, lambda t, x, y, out: neg(t)),
    transpose=lambda node, cotangent, linear: (
        cotangent if linear[0] else None,
        neg(cotangent) if linear[1] else None,
    ),
    doc="x - y; wraps for integers.",
    samples=between((-3, 3), (-3, 3)),
)


def sub(x: Any, y: Any) -> Value:
    return make(SUB, operands("subtract", x, y, kinds="iufc"))


def _gap_value(x: Any, y: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.where(x == y, x.dtype.type(0), x - y)


GAP = elementwise(
    "gap",
    kinds="f",
    reference=_gap_value,
    scalar=lambda h, x, y: h.select(h.eq(x, y), h.const(0.0, h.dtype(x)), h.sub(x, y)),
    partials=(lambda t, x, y, out: t, lambda t, x, y, out: neg(t)),
    doc="x - y, and zero for equal infinities: how far an exponent lies below the largest. The "
    "derivative is that of x - y.",
    samples=between((-3, 3), (-3, 3)),
    why_not={
        "transpose": "not linear at infinities; its tangent is a difference",
        "complex_scalar": "for exponents, which are real",
    },
)


def gap(x: Any, y: Any) -> Value:
    """``x - y`` with ``inf - inf = 0``."""
    return make(GAP, inexact_operands("gap", x, y, kinds="f"))


def _mul_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> Sequence[Any]:
    x, y = node.inputs
    return scale(cotangent, y) if linear[0] else None, scale(cotangent, x) if linear[1] else None


MUL = elementwise(
    "mul",
    kinds="biufc",
    reference=np.multiply,
    scalar=lambda h, x, y: h.and_(x, y) if h.dtype(x).is_bool else h.mul(x, y),
    complex_scalar=complex_mul,
    partials=(lambda t, x, y, out: scale(t, y), lambda t, x, y, out: scale(t, x)),
    transpose=_mul_transpose,
    doc="x * y; wraps for integers, logical and for bools (NumPy).",
    samples=between((-3, 3), (-3, 3)),
)


def mul(x: Any, y: Any) -> Value:
    return make(MUL, operands("multiply", x, y))


DIV = elementwise(
    "div",
    kinds="fc",
    reference=np.divide,
    scalar=lambda h, x, y: h.div(x, y),
    complex_scalar=complex_div,
    # d(x/y) = (dx - (x/y) dy) / y: no squared denominator
    partials=(
        lambda t, x, y, out: unscale(t, y),
        lambda t, x, y, out: neg(unscale(scale(t, out), y)),
    ),
    transpose=lambda node, cotangent, linear: (unscale(cotangent, node.inputs[1]), None),
    doc="x / y, never raises: 1/0 is inf, 0/0 is NaN.",
    samples=between((-3, 3), (0.5, 3)),
)


def div(x: Any, y: Any) -> Value:
    return make(DIV, inexact_operands("divide", x, y))


def _bind_operators() -> None:
    """Give :class:`Value` the operators, so that rules read as formulas."""
    value: Any = Value
    value.__add__, value.__radd__ = add, lambda x, y: add(y, x)
    value.__sub__, value.__rsub__ = sub, lambda x, y: sub(y, x)
    value.__mul__, value.__rmul__ = mul, lambda x, y: mul(y, x)
    value.__truediv__, value.__rtruediv__ = div, lambda x, y: div(y, x)
    value.__neg__ = neg


_bind_operators()
