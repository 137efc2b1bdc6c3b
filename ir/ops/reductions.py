"""Reductions: what they share, and sum, prod, any, all. Extrema are in ``extrema.py``.

A reduction record describes a monoid: ``identity(dtype)``, the ``accumulator(dtype)`` it is
carried in, and as its ``scalar`` program the merge ``scalar(h, accumulator, element)``. Merging is
associative up to rounding and commutative, so that a kernel may split the range; two accumulators
merge by the same program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType, as_dtype, bool_, complex128, float64, int64, uint64
from ..errors import DTypeError, ShapeError
from ..graph import Node, Op, Value, make
from ..location import at_user_line
from ..types import TensorType
from .arithmetic import MUL
from .operands import as_value, convert
from .registry import register
from .scaling import scale
from .shape import Axes, axis_index, broadcast, expand_dims, reshape, transpose

__all__ = [
    "ALL",
    "ANY",
    "PROD",
    "SUM",
    "Axis",
    "all_",
    "any_",
    "build_reduction",
    "check_axes",
    "check_not_empty",
    "countable",
    "distinct_samples",
    "normalize_axes",
    "prod",
    "reduction",
    "spread",
    "sum_",
    "wide",
    "wide_numpy",
]

Axis = int | Sequence[int] | None


def normalize_axes(name: str, axis: Axis, ndim: int) -> Axes:
    """``axis`` (None: all) as increasing numbers counted from the front, each once."""
    if axis is None:
        return tuple(range(ndim))
    listed = tuple(axis) if isinstance(axis, Iterable) else (axis,)
    axes = tuple(sorted(axis_index(name, d, ndim) for d in listed))
    if len(set(axes)) != len(axes):
        raise at_user_line(
            ShapeError(f"{name}: expected each axis once, got {list(listed)} for {ndim} axes")
        )
    return axes


def wide(dtype: DType) -> DType:
    """The accumulator of sums and products: double precision for single, else the type itself."""
    return {"float32": float64, "complex64": complex128}.get(dtype.name, dtype)


def wide_numpy(x: Any) -> Any:
    """:func:`wide` for the dtype of a NumPy array."""
    return wide(as_dtype(x.dtype)).numpy


def check_axes(name: str, x: TensorType, axes: Axes, kinds: str) -> None:
    if x.dtype.kind not in kinds:
        raise DTypeError(f"{name}: is not defined for {x}; convert with astype")
    for d in axes:
        if not 0 <= d < x.ndim:
            raise IndexError(f"{name}: expected axes in [0, {x.ndim}) for {x}, got {d}")
    if list(axes) != sorted(set(axes)):
        raise ShapeError(f"{name}: expected increasing axes, got {list(axes)}")


def check_not_empty(name: str, x: TensorType, axes: Axes) -> None:
    if any(x.shape[d] == 0 for d in axes):
        raise ShapeError(
            f"{name}: expected at least one element along axes {list(axes)}, got {x}: "
            f"the {name} of nothing is not defined"
        )


def _batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    """The batch axis stays where it is; the reduced axes behind it count one further."""
    at: int = axes[0]  # type: ignore[assignment]
    reduced = tuple(d + (d >= at) for d in node.param("axes"))
    return make(node.op, operands, axes=reduced), at - sum(d < at for d in reduced)


def spread(node: Node, y: Value) -> Value:
    """A reduced value back over the operand's shape."""
    x = node.inputs[0]
    kept = tuple(d for d in range(x.ndim) if d not in node.param("axes"))
    return broadcast(y, x.shape, kept)


def reduction(
    name: str,
    *,
    kinds: str,
    identity: Callable[[DType], Any],
    merge: Callable[..., Any],
    reference: Callable[..., Any],
    needs_elements: bool = False,
    samples: Callable[..., Any],
    doc: str,
    **fields: Any,
) -> Op:
    def infer(x: TensorType, *, axes: Axes) -> TensorType:
        check_axes(name, x, axes, kinds)
        if needs_elements:
            check_not_empty(name, x, axes)
        kept = tuple(n for d, n in enumerate(x.shape) if d not in axes)
        return TensorType(kept, x.dtype, x.weak)

    return register(
        name,
        "reduction",
        infer=infer,
        reference=reference,
        scalar=merge,
        identity=identity,
        batch=_batch,
        samples=samples,
        doc=doc,
        **fields,
    )


def build_reduction(op: Op, x: Value, axis: Axis, keepdims: bool) -> Value:
    axes = normalize_axes(op.name, axis, x.ndim)
    y = make(op, (x,), axes=axes)
    if not axes:  # nothing to reduce, but the type rule has had its say
        return x
    return expand_dims(y, axes) if keepdims else y


def distinct_samples(rng: Any, dtype: Any) -> Any:
    x = rng.permutation(24).reshape(2, 3, 4).astype(dtype) / 8 - 1  # distinct, one of them zero
    for axes in ((1,), (0, 2), (0, 1, 2)):
        yield (x,), {"axes": axes}


# --------------------------------------------------------------------------------- sum, product


def _sum_merge(h: Any, accumulator: Any, x: Any) -> Any:
    return h.add(accumulator, x)


def _sum_complex(h: Any, accumulator: Any, x: Any) -> Any:
    return h.add(accumulator[0], x[0]), h.add(accumulator[1], x[1])


SUM: Op = reduction(
    "sum",
    kinds="iufc",
    identity=lambda dtype: 0,
    accumulator=wide,
    merge=_sum_merge,
    complex_scalar=_sum_complex,
    reference=lambda x, *, axes: np.sum(x, axis=axes, dtype=wide_numpy(x)).astype(x.dtype),
    jvp=lambda node, tangents: make(SUM, (tangents[0],), **dict(node.params)),
    transpose=lambda node, cotangent, linear: (spread(node, cotangent),),
    doc="Sum over axes; 0 of nothing. float32 accumulates in float64 and rounds once (numerics 7); "
    "integers wrap in their own type.",
    samples=distinct_samples,
)


def sum_(x: Any, axis: Axis = None, keepdims: bool = False) -> Value:
    """NumPy's ``sum``: bool counts as int64, small integers sum as int64 or uint64.

    Raises
    ------
    IndexError, ShapeError
        For an axis out of range, or one given twice.
    """
    return build_reduction(SUM, countable(x), axis, keepdims)


def countable(x: Any) -> Value:
    """Bool and narrow integers in the type that NumPy sums and multiplies them in."""
    value = as_value(x)
    if value.dtype.is_bool or value.dtype.is_signed:
        return convert(value, int64) if value.dtype is not int64 else value
    return convert(value, uint64) if value.dtype.kind == "u" else value


def _prod_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    t = tangents[0]
    return None if t is None else sum_(scale(t, _others(node)), node.param("axes"))


def _others(node: Node) -> Value:
    """For each element the product of the others, without division: zeros are no exception.

    With the reduced axes merged into one, it is (product of those before) * (of those behind):
    two running products whatever the extent, each differentiable again.
    """
    from .cumulative import cumprod  # builds on slicing, which builds on sum
    from .slicing import shift

    x, axes = node.inputs[0], node.param("axes")
    order = (*(d for d in range(x.ndim) if d not in axes), *axes)
    front = x.ndim - len(axes)
    lined = transpose(x, order)
    flat = reshape(lined, (*lined.shape[:front], math.prod(lined.shape[front:])))
    before = shift(cumprod(flat, front), front, 1, 1)
    behind = shift(cumprod(flat, front, reverse=True), front, -1, 1)
    back = sorted(range(x.ndim), key=order.__getitem__)
    return transpose(reshape(before * behind, lined.shape), back)


PROD = reduction(
    "prod",
    kinds="iufc",
    identity=lambda dtype: 1,
    accumulator=wide,
    merge=lambda h, accumulator, x: h.mul(accumulator, x),
    complex_scalar=MUL.complex_scalar,
    reference=lambda x, *, axes: np.prod(x, axis=axes, dtype=wide_numpy(x)).astype(x.dtype),
    jvp=_prod_jvp,
    doc="Product over axes; 1 of nothing. Its derivative is the product of the others, exact with "
    "zeros (numerics 3). float32 accumulates in float64.",
    samples=distinct_samples,
    why_not={"transpose": "a product is not linear in its elements"},
)


def prod(x: Any, axis: Axis = None, keepdims: bool = False) -> Value:
    """NumPy's ``prod``: bool and small integers multiply as int64 or uint64."""
    return build_reduction(PROD, countable(x), axis, keepdims)


# -------------------------------------------------------------------------------------- logical


def _mask_samples(rng: Any, dtype: Any) -> Any:
    x = rng.integers(0, 3, (2, 3, 4)) > 0
    for axes in ((1,), (0, 2), (0, 1, 2)):
        yield (x,), {"axes": axes}


_LOGICAL = {
    "jvp": "the result is bool",
    "transpose": "the result is bool",
    "complex_scalar": "defined on bool alone; the builder compares with zero",
}
ANY = reduction(
    "any",
    kinds="b",
    identity=lambda dtype: False,
    merge=lambda h, accumulator, x: h.or_(accumulator, x),
    reference=lambda x, *, axes: np.any(x, axis=axes),
    doc="Whether an element is true; false of nothing.",
    samples=_mask_samples,
    why_not=_LOGICAL,
)
ALL = reduction(
    "all",
    kinds="b",
    identity=lambda dtype: True,
    merge=lambda h, accumulator, x: h.and_(accumulator, x),
    reference=lambda x, *, axes: np.all(x, axis=axes),
    doc="Whether all elements are true; true of nothing.",
    samples=_mask_samples,
    why_not=_LOGICAL,
)


def any_(x: Any, axis: Axis = None, keepdims: bool = False) -> Value:
    """NumPy's ``any``: numbers count as true unless they are zero (NaN is true)."""
    return build_reduction(ANY, convert(as_value(x), bool_), axis, keepdims)


def all_(x: Any, axis: Axis = None, keepdims: bool = False) -> Value:
    """NumPy's ``all``: numbers count as true unless they are zero (NaN is true)."""
    return build_reduction(ALL, convert(as_value(x), bool_), axis, keepdims)
