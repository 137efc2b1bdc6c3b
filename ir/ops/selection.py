"""Choosing: where, maximum, minimum, clip, stop_gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, bool_, int32, int64
from ..errors import DTypeError, ShapeError
from ..graph import Node, Op, Value, make
from ..types import TensorType, describe
from .comparison import gt, lt
from .domains import SIZE, between, draw, with_params
from .elementwise import elementwise
from .fill import zeros_of
from .operands import as_value, broadcast_shapes, convert, operands
from .registry import register
from .scaling import scale
from .shape import broadcast_to

__all__ = [
    *("MAXIMUM", "MINIMUM", "STOP_GRADIENT", "WHERE"),
    *("clip", "maximum", "minimum", "stop_gradient", "where"),
]

# --------------------------------------------------------------------------------------- where


def _where_type(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    types = condition, x, y
    if not condition.dtype.is_bool or x.dtype is not y.dtype:
        raise DTypeError(f"where: expected bool and two equal dtypes, got {describe(types)}")
    if not condition.shape == x.shape == y.shape:
        raise ShapeError(f"where: expected equal shapes, got {describe(types)}")
    return TensorType(x.shape, x.dtype, x.weak and y.weak)


def _where_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    """Masks: the tangent of the branch not taken is dropped, whatever it is."""
    x, y = tangents[1:]
    if x is None and y is None:
        return None
    zero = zeros_of(node.out.type)
    return make(WHERE, (node.inputs[0], zero if x is None else x, zero if y is None else y))


def _where_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> Sequence[Any]:
    condition, zero = node.inputs[0], zeros_of(cotangent.type)
    return (
        None,
        make(WHERE, (condition, cotangent, zero)) if linear[1] else None,
        make(WHERE, (condition, zero, cotangent)) if linear[2] else None,
    )


def _where_samples(rng: Any, dtype: Any) -> tuple[Any, ...]:
    return rng.integers(0, 2, SIZE) > 0, draw(rng, dtype, -3, 3), draw(rng, dtype, -3, 3)


WHERE = register(
    "where",
    "elementwise",
    infer=_where_type,
    reference=np.where,
    scalar=lambda h, condition, x, y: h.select(condition, x, y),
    complex_scalar=lambda h, condition, x, y: (
        h.select(condition, x[0], y[0]),
        h.select(condition, x[1], y[1]),
    ),
    jvp=_where_jvp,
    transpose=_where_transpose,
    doc="x where the condition holds, else y. What is not taken reaches neither value nor "
    "derivative (numerics 3); the condition has no derivative.",
    samples=_where_samples,
)


def where(condition: Any, x: Any, y: Any) -> Value:
    """NumPy's three-argument ``where``; a condition that is not bool counts as ``!= 0``."""
    condition = convert(as_value(condition), bool_)
    chosen = operands("where", x, y)
    shape = broadcast_shapes("where", [condition.type, *(v.type for v in chosen)])
    return make(WHERE, [broadcast_to(v, shape) for v in (condition, *chosen)])


# --------------------------------------------------------------------------- maximum, minimum


def _bits(dtype: DType) -> DType:
    return int64 if dtype.bits == 64 else int32


def _maximum(h: Any, x: Any, y: Any, *, tie: float) -> Any:
    dtype = h.dtype(x)
    if dtype.is_bool:
        return h.or_(x, y)
    if not dtype.is_floating:
        return h.select(h.gt(x, y), x, y)
    taken = h.select(h.or_(h.gt(x, y), h.ne(x, x)), x, y)
    # Equal values have equal bits, but for zeros: the sign bit goes unless both have it.
    both = h.and_(h.bitcast(x, _bits(dtype)), h.bitcast(y, _bits(dtype)))
    return h.select(h.eq(x, y), h.bitcast(both, dtype), taken)


def _minimum(h: Any, x: Any, y: Any, *, tie: float) -> Any:
    dtype = h.dtype(x)
    if dtype.is_bool:
        return h.and_(x, y)
    if not dtype.is_floating:
        return h.select(h.lt(x, y), x, y)
    taken = h.select(h.or_(h.lt(x, y), h.ne(x, x)), x, y)
    either = h.or_(h.bitcast(x, _bits(dtype)), h.bitcast(y, _bits(dtype)))
    return h.select(h.eq(x, y), h.bitcast(either, dtype), taken)


def _extremum_value(choose: Callable[..., Any], sign: float) -> Callable[..., Any]:
    """NumPy's function, which leaves the sign of a zero open, with that sign settled."""

    def value(x: Any, y: Any, *, tie: float) -> Any:
        out = choose(x, y)
        if out.dtype.kind != "f":
            return out
        preferred = np.where(np.signbit(x) == (sign < 0), x, y)
        return np.where((x == 0) & (y == 0), preferred, out)

    return value


def _extremum(name: str, choose: Callable[..., Any], sign: float, beyond: Any, scalar: Any) -> Op:
    """``beyond(x, y)``: x wins. A NaN counts as a tie."""

    def share(t: Value, own: Value, other: Value, weight: float) -> Value:
        nothing = zeros_of(t.type)
        if weight == 0:
            return where(beyond(own, other), t, nothing)
        lost = where(beyond(other, own), nothing, scale(t, weight) if weight < 1 else t)
        return lost if weight == 1 else where(beyond(own, other), t, lost)

    return elementwise(
        name,
        kinds="biuf",
        reference=_extremum_value(choose, sign),
        scalar=scalar,
        partials=(
            lambda t, x, y, out, tie: share(t, x, y, tie),
            lambda t, x, y, out, tie: share(t, y, x, 1.0 - tie),
        ),
        doc=f"The {'larger' if sign > 0 else 'smaller'} of x and y (IEEE 754-2019): NaN wins, +0 "
        "is above -0. At a tie x gets the part ``tie`` of the derivative, y the rest.",
        samples=with_params(between((-5, 5), (-5, 5)), {"tie": 0.5}, {"tie": 0.0}),
        why_not={
            "transpose": "not linear; its tangent is a selection",
            "complex_scalar": "complex numbers have no order",
        },
    )


MAXIMUM = _extremum("maximum", np.maximum, 1.0, gt, _maximum)
MINIMUM = _extremum("minimum", np.minimum, -1.0, lt, _minimum)


def maximum(x: Any, y: Any, *, tie: float = 0.5) -> Value:
    """The larger of two values; NaN wins, ``+0`` is above ``-0``.

    Parameters
    ----------
    x, y : array-like
        Real.
    tie : float
        Part of the derivative that ``x`` gets where ``x == y``; 0 makes ``y`` a bound, as in
        ``clip`` and ``relu``.
    """
    return make(MAXIMUM, operands("maximum", x, y, kinds="biuf"), tie=float(tie))


def minimum(x: Any, y: Any, *, tie: float = 0.5) -> Value:
    """The smaller of two values; NaN wins, ``-0`` is below ``+0``; see :func:`maximum`."""
    return make(MINIMUM, operands("minimum", x, y, kinds="biuf"), tie=float(tie))


def clip(x: Any, min: Any = None, max: Any = None) -> Value:
    """``minimum(maximum(x, min), max)``; at a bound the bound gets the derivative, x zero.

    ``None`` is no bound. Where ``min > max`` the result is ``max``; NaN propagates.
    """
    y = as_value(x)
    if min is not None:
        y = maximum(y, min, tie=0.0)
    if max is not None:
        y = minimum(y, max, tie=0.0)
    return y


# ------------------------------------------------------------------------------- stop_gradient

STOP_GRADIENT = elementwise(
    "stop_gradient",
    kinds="biufc",
    reference=lambda x: x,
    scalar=lambda h, x: x,
    complex_scalar=lambda h, x: x,
    partials=(None,),
    doc="The operand itself, with the derivative zero in every mode. Not an alias: no pass may "
    "drop it before differentiation is over.",
    samples=between((-3, 3)),
    why_not={"transpose": "its tangent is zero, so it is never part of a linear program"},
)


def stop_gradient(x: Any) -> Value:
    """``x`` as a constant for differentiation."""
    x = as_value(x)
    return make(STOP_GRADIENT, (x,)) if x.dtype.is_inexact else x
