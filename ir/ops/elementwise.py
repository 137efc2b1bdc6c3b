"""What all elementwise ops share: type rule, tangent rule from partial derivatives, batching.

An elementwise record is a row: name, accepted kinds, NumPy reference, scalar program, partial
derivatives, transpose. The partials read as formulas: ``sin`` has ``lambda t, x, out: scale(t,
cos(x))``, where ``t`` is the tangent of the operand and :func:`~.scaling.scale` a product in which
a zero tangent stays zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import DType, bool_
from ..errors import DTypeError, ShapeError
from ..graph import Node, Op, Value
from ..types import TensorType, describe
from .registry import register
from .shape import broadcast, moveaxis

__all__ = ["batch_elementwise", "elementwise"]

Partial = Callable[..., "Value | None"]


def elementwise(
    name: str,
    *,
    kinds: str,
    reference: Callable[..., Any],
    scalar: Callable[..., Any] | None,
    complex_scalar: Callable[..., Any] | None = None,
    partials: Sequence[Partial | None] | None = None,
    transpose: Callable[..., Any] | None = None,
    result: Callable[[DType], DType] | DType | None = None,
    doc: str,
    samples: Callable[..., Any] | None = None,
    why_not: dict[str, str] | None = None,
    check: Callable[..., Any] | None = None,
    check_error: tuple[type[Exception], str] | None = None,
) -> Op:
    """Register an elementwise op whose operands share one shape and one dtype.

    Parameters
    ----------
    name : str
    kinds : str
        Accepted dtype kinds, letters of ``biufc``.
    reference, scalar, complex_scalar, transpose, doc, samples, why_not, check, check_error
        Fields of :class:`~tilegrad.ir.graph.Op`.
    partials : sequence of (callable or None), optional
        One an operand: ``partial(t, *operands, out=) -> Value | None``, the contribution of that
        operand's tangent; params of the node come by keyword too. ``None`` is the zero derivative.
        No ``partials`` at all: the results are bools or integers.
    result : DType or callable, optional
        Result dtype, or a function from the operand dtype to it. Default: the operand dtype.
    """

    def infer(*types: TensorType, **params: Any) -> TensorType:
        first = types[0]
        dtype, weak = first.dtype, first.weak
        for t in types:
            if t is first:
                continue
            if t.shape != first.shape:
                raise ShapeError(f"{name}: expected equal shapes, got {describe(types)}")
            if t.dtype is not dtype:
                raise DTypeError(f"{name}: expected equal dtypes, got {describe(types)}")
            weak = weak and t.weak
        if dtype.kind not in kinds:
            raise DTypeError(f"{name}: is not defined for {dtype}; convert with astype")
        out = dtype if result is None else result(dtype) if callable(result) else result
        weak = weak and out is not bool_
        # Types pass through a program as the same object: equal ones are told by a glance.
        if out is dtype and weak is first.weak:
            return first
        return TensorType(first.shape, out, weak)

    def jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
        total: Value | None = None
        inputs, out, params = node.inputs, node.out, dict(node.params)
        for t, partial in zip(tangents, partials or (), strict=True):
            if t is None or partial is None:
                continue
            term = partial(t, *inputs, out=out, **params)
            if term is not None:
                total = term if total is None else total + term
        return total

    return register(
        name,
        "elementwise",
        infer=infer,
        reference=reference,
        scalar=scalar,
        complex_scalar=complex_scalar,
        jvp=jvp if partials is not None else None,
        transpose=transpose,
        doc=doc,
        samples=samples,
        why_not=why_not or {},
        check=check,
        check_error=check_error,
    )


def batch_elementwise(
    node: Node, operands: Sequence[Value], axes: Sequence[int | None]
) -> tuple[list[Value], int]:
    """Operands of an elementwise op with the batch axis in front of each, and that axis (0)."""
    size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
    aligned = []
    for x, a in zip(operands, axes, strict=True):
        if a is None:
            aligned.append(broadcast(x, (size, *x.shape), tuple(range(1, x.ndim + 1))))
        else:
            aligned.append(moveaxis(x, a, 0))
    return aligned, 0
