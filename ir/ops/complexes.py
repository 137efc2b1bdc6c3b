"""Parts of complex numbers: conj, real, imag, complex.

Cotangents are paired by ``Re(cotangent * tangent)``, without conjugation, so the transpose of
``real`` is ``c -> c + 0i`` and that of ``imag`` is ``c -> -ic``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtypes import DType
from ..graph import Value, make
from .arithmetic import neg
from .domains import between
from .elementwise import elementwise
from .fill import zeros_of
from .operands import as_value, inexact_operands

__all__ = ["COMPLEX", "CONJ", "IMAG", "REAL", "complex_", "conj", "imag", "real"]

_WHY_NOT = {"scalar": "defined on complex numbers alone; the builder handles real ones"}

CONJ = elementwise(
    "conj",
    kinds="c",
    reference=np.conjugate,
    scalar=None,
    complex_scalar=lambda h, x: (x[0], h.neg(x[1])),
    partials=(lambda t, x, out: conj(t),),
    transpose=lambda node, cotangent, linear: (conj(cotangent),),
    doc="Complex conjugate: real linear, not complex linear.",
    samples=between((-3, 3)),
    why_not=_WHY_NOT,
)


def conj(x: Any) -> Value:
    """The complex conjugate; a real ``x`` is its own."""
    x = as_value(x)
    return make(CONJ, (x,)) if x.dtype.is_complex else x


def _part(d: DType) -> DType:
    return d.real


REAL = elementwise(
    "real",
    kinds="c",
    reference=lambda x: x.real.copy(),
    scalar=None,
    complex_scalar=lambda h, x: x[0],
    partials=(lambda t, x, out: real(t),),
    transpose=lambda node, cotangent, linear: (complex_(cotangent, zeros_of(cotangent.type)),),
    result=_part,
    doc="The real part.",
    samples=between((-3, 3)),
    why_not=_WHY_NOT,
)


def real(x: Any) -> Value:
    """The real part; ``x`` itself when it is real."""
    x = as_value(x)
    return make(REAL, (x,)) if x.dtype.is_complex else x


IMAG = elementwise(
    "imag",
    kinds="c",
    reference=lambda x: x.imag.copy(),
    scalar=None,
    complex_scalar=lambda h, x: x[1],
    partials=(lambda t, x, out: imag(t),),
    transpose=lambda node, cotangent, linear: (complex_(zeros_of(cotangent.type), neg(cotangent)),),
    result=_part,
    doc="The imaginary part.",
    samples=between((-3, 3)),
    why_not=_WHY_NOT,
)


def imag(x: Any) -> Value:
    """The imaginary part; zeros when ``x`` is real."""
    x = as_value(x)
    return make(IMAG, (x,)) if x.dtype.is_complex else zeros_of(x.type)


def _complex_value(x: Any, y: Any) -> Any:
    out = np.empty(np.shape(x), np.result_type(x, np.complex64))
    out.real, out.imag = x, y
    return out


COMPLEX = elementwise(
    "complex",
    kinds="f",
    reference=_complex_value,
    scalar=lambda h, x, y: (x, y),
    partials=(
        lambda t, x, y, out: complex_(t, zeros_of(t.type)),
        lambda t, x, y, out: complex_(zeros_of(t.type), t),
    ),
    # The operands move together or apart: a cotangent for each that does.
    transpose=lambda node, cotangent, linear: (
        real(cotangent) if linear[0] else None,
        neg(imag(cotangent)) if linear[1] else None,
    ),
    result=lambda d: d.complex,
    doc="x + iy from two real parts, exactly (no product, so infinities and zeros survive).",
    samples=between((-3, 3), (-3, 3)),
    why_not={"complex_scalar": "the operands are real"},
)


def complex_(x: Any, y: Any) -> Value:
    """``x + iy`` from real parts."""
    return make(COMPLEX, inexact_operands("complex", x, y, kinds="f"))
