"""The products that derivative rules are made of: a zero tangent stays zero.

``where(x > 5, 2 * x, exp(x))`` has the derivative 2 at 800, although the branch not taken has the
derivative ``inf`` there: its cotangent is zero, but ``0 * inf`` is NaN. So tangents and cotangents
are not multiplied by :func:`~.arithmetic.mul` but by :func:`scale`, and divided by :func:`unscale`:
where the tangent is exactly zero, no factor turns it into NaN (a *strong zero*). Everywhere else
the bits are those of ``mul`` and ``div``. Context, rejected ways and consequences:
``docs/design/002-strong-zeros.md``.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from ..graph import Value, make
from .domains import between, with_params
from .elementwise import elementwise
from .operands import operands

__all__ = [
    *("SCALE", "UNSCALE", "scale", "unscale"),
    *("complex_scale_program", "scale_program", "scale_value"),
]


def scale_program(h: Any, x: Any, y: Any, *, symmetric: bool) -> Any:
    """``x * y`` with strong zeros, as a scalar program."""
    zero = h.const(0.0, h.dtype(x))
    product = h.mul(x, y)
    strong = h.eq(x, zero)
    if symmetric:
        strong = h.or_(strong, h.eq(y, zero))
    return h.select(h.and_(strong, h.ne(product, product)), zero, product)


def complex_scale_program(h: Any, x: Any, y: Any, *, symmetric: bool) -> Any:
    """Each of the four real products has strong zeros."""
    (a, b), (c, d) = x, y

    def product(p: Any, q: Any) -> Any:
        return scale_program(h, p, q, symmetric=symmetric)

    return h.sub(product(a, c), product(b, d)), h.add(product(a, d), product(b, c))


def scale_value(x: Any, y: Any, *, symmetric: bool) -> Any:
    """The same by NumPy."""
    if x.dtype.kind == "c":
        a, b, c, d = x.real, x.imag, y.real, y.imag
        out = np.empty(np.broadcast(x, y).shape, x.dtype)
        out.real = scale_value(a, c, symmetric=symmetric) - scale_value(b, d, symmetric=symmetric)
        out.imag = scale_value(a, d, symmetric=symmetric) + scale_value(b, c, symmetric=symmetric)
        return out
    with np.errstate(all="ignore"):
        product = x * y
    strong = (x == 0) | (y == 0) if symmetric else x == 0
    return np.where(strong & np.isnan(product), x.dtype.type(0), product)


SCALE = elementwise(
    "scale",
    kinds="fc",
    reference=scale_value,
    scalar=scale_program,
    complex_scalar=complex_scale_program,
    # The tangent of the factor is a tangent too: now a zero on either side is strong.
    partials=(
        lambda t, x, y, out, symmetric: scale(t, y, symmetric=symmetric),
        lambda t, x, y, out, symmetric: scale(x, t, symmetric=True),
    ),
    transpose=lambda node, cotangent, linear: (
        scale(cotangent, node.inputs[1], symmetric=node.param("symmetric")) if linear[0] else None,
        scale(node.inputs[0], cotangent, symmetric=True) if linear[1] else None,
    ),
    doc="x * y, but a zero x (symmetric: a zero on either side) times inf or NaN is zero: the "
    "product of a tangent and a local derivative.",
    samples=with_params(between((-3, 3), (-3, 3)), {"symmetric": False}, {"symmetric": True}),
)


def scale(t: Any, factor: Any, *, symmetric: bool = False) -> Value:
    """``t * factor`` where a zero ``t`` gives zero whatever the factor.

    Parameters
    ----------
    t : array-like
        Tangent or cotangent.
    factor : array-like
        Local derivative, may be infinite or NaN. A finite Python number makes a plain product,
        which has the same bits.
    symmetric : bool
        A zero factor wins over an infinite ``t`` too. For products of two tangents, as they come
        up in second derivatives; elsewhere a zero factor must not hide a NaN. Also for a primal
        product such as ``1 - x^2 = (1 - x)(1 + x)``, whose own partials meet infinities.
    """
    if isinstance(factor, (int, float)) and isfinite(factor):
        return t * factor  # type: ignore[no-any-return]
    return make(SCALE, operands("scale", t, factor, kinds="fc"), symmetric=symmetric)


def _unscale(h: Any, x: Any, y: Any) -> Any:
    zero = h.const(0.0, h.dtype(x))
    quotient = h.div(x, y)
    return h.select(h.and_(h.eq(x, zero), h.ne(quotient, quotient)), zero, quotient)


def _complex_unscale(h: Any, x: Any, y: Any) -> Any:
    from .arithmetic import complex_div  # arithmetic.py builds on this module

    zero = h.const(0.0, h.dtype(x[0]))
    real, imag = complex_div(h, x, y)
    strong = h.and_(h.eq(x[0], zero), h.eq(x[1], zero))
    return (
        h.select(h.and_(strong, h.ne(real, real)), zero, real),
        h.select(h.and_(strong, h.ne(imag, imag)), zero, imag),
    )


def _unscale_value(x: Any, y: Any) -> Any:
    with np.errstate(all="ignore"):
        quotient = x / y
    return np.where((x == 0) & np.isnan(quotient), x.dtype.type(0), quotient)


UNSCALE = elementwise(
    "unscale",
    kinds="fc",
    reference=_unscale_value,
    scalar=_unscale,
    complex_scalar=_complex_unscale,
    partials=(
        lambda t, x, y, out: unscale(t, y),
        lambda t, x, y, out: -unscale(scale(out, t, symmetric=True), y),
    ),
    transpose=lambda node, cotangent, linear: (unscale(cotangent, node.inputs[1]), None),
    doc="x / y, but a zero x divided by zero or NaN is zero: the quotient of a tangent and the "
    "inverse of a local derivative.",
    samples=between((-3, 3), (0.5, 3)),
)


def unscale(t: Any, divisor: Any) -> Value:
    """``t / divisor`` where a zero ``t`` gives zero whatever the divisor; see :func:`scale`."""
    return make(UNSCALE, operands("unscale", t, divisor, kinds="fc"))
