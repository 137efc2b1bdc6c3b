"""Products of vectors, matrices and tensors.

Sums run in the dtype of the operands, except that vectors of float32 are summed in float64;
``accum_dtype`` names another dtype to carry them in (numerics 7).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..graph import Value
from ..ops import conj
from ..ops import dot as general_dot
from ..ops import matmul as _matmul
from ..ops import outer as _outer
from ..ops import tensordot as _tensordot
from ..ops import vecdot as _vecdot
from ..ops.operands import as_value
from ..ops.shape import expand_dims, reshape
from ..types import describe
from .arguments import accumulated, fail, one_axis, promoted, static_int, static_ints
from .creation import eye
from .manipulation import broadcast_shapes, moveaxis

__all__ = [
    "cross",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matrix_power",
    "matvec",
    "multi_dot",
    "outer",
    "tensordot",
    "vdot",
    "vecdot",
    "vecmat",
]


def matmul(x1: Any, x2: Any, *, accum_dtype: Any = None) -> Value:
    """Matrix product of the last two axes; vectors are rows or columns, leading axes broadcast.

    Parameters
    ----------
    x1, x2 : array-like
    accum_dtype : dtype, optional
        Multiply and add in this dtype, which holds every value of the operands, and round the
        result once to theirs: ``"float64"`` for float32 matrices.

    Raises
    ------
    ShapeError
        For 0-d operands, unequal inner extents, or leading axes that do not broadcast.
    DTypeError
        If ``accum_dtype`` does not hold the operands.

    Examples
    --------
    >>> import tilegrad as tg
    >>> x = tg.asarray([[1.0, 2.0**-30]], dtype="float32")
    >>> tg.matmul(tg.concat([x, x]), x.T, accum_dtype="float64")
    Array([[1.],
           [1.]], dtype=float32)
    """
    values = as_value(x1), as_value(x2)
    return accumulated("matmul", values, accum_dtype, _matmul)


def dot(a: Any, b: Any, *, accum_dtype: Any = None) -> Value:
    """Sum over the last axis of ``a`` and the last but one of ``b`` (of vectors: the last)."""
    x, y = as_value(a), as_value(b)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    d = max(y.ndim - 2, 0)
    if x.shape[-1] != y.shape[d]:
        fail(ShapeError(f"dot: expected equal inner extents, got {describe((x.type, y.type))}"))
    return _contracted("dot", x, y, d, accum_dtype)


def inner(a: Any, b: Any, *, accum_dtype: Any = None) -> Value:
    """Sum over the last axis of both, for each pair of the other indices."""
    x, y = as_value(a), as_value(b)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    if x.shape[-1] != y.shape[-1]:
        fail(ShapeError(f"inner: expected equal last extents, got {describe((x.type, y.type))}"))
    return _contracted("inner", x, y, y.ndim - 1, accum_dtype)


def _contracted(name: str, x: Value, y: Value, d: int, accum_dtype: Any) -> Value:
    """The last axis of ``x`` contracted with axis ``d`` of ``y``."""
    contract = ((x.ndim - 1,), (d,))
    return accumulated(name, (x, y), accum_dtype, lambda x, y: general_dot(x, y, contract=contract))


def outer(a: Any, b: Any) -> Value:
    """All products of the elements of ``a`` (rows) and ``b`` (columns)."""
    return _outer(a, b)


def tensordot(a: Any, b: Any, axes: Any = 2, *, accum_dtype: Any = None) -> Value:
    """Sum over the last ``axes`` axes of ``a`` and the first of ``b``, or over listed pairs."""
    pairs: Any
    if isinstance(axes, (int, np.integer)):
        pairs = int(axes)
    else:
        pairs = tuple(static_ints("tensordot", "axes", part) for part in axes)
    return accumulated(
        "tensordot", (as_value(a), as_value(b)), accum_dtype, lambda x, y: _tensordot(x, y, pairs)
    )


def vecdot(x1: Any, x2: Any, axis: Any = -1, *, accum_dtype: Any = None) -> Value:
    """Sum over ``axis`` of ``conj(x1) * x2``; other axes broadcast."""
    d = static_int("vecdot", "axis", axis)
    return accumulated(
        "vecdot", (as_value(x1), as_value(x2)), accum_dtype, lambda x, y: _vecdot(x, y, d)
    )


def vdot(a: Any, b: Any) -> Value:
    """Sum of ``conj(a) * b`` over all elements."""
    x, y = (reshape(v, (v.size,)) for v in (as_value(a), as_value(b)))
    if x.shape != y.shape:
        fail(ShapeError(f"vdot: expected equal sizes, got {describe((x.type, y.type))}"))
    return _vecdot(x, y)


def matvec(x1: Any, x2: Any) -> Value:
    """Matrices times vectors: (..., m, n) and (..., n) give (..., m)."""
    x, y = as_value(x1), as_value(x2)
    if x.ndim < 2 or y.ndim < 1:
        fail(ShapeError(f"matvec: expected matrices and vectors, got {describe((x.type, y.type))}"))
    product = _matmul(x, expand_dims(y, (y.ndim,)))
    return reshape(product, product.shape[:-1])


def vecmat(x1: Any, x2: Any) -> Value:
    """Conjugated vectors times matrices: (..., n) and (..., n, m) give (..., m)."""
    x, y = as_value(x1), as_value(x2)
    if x.ndim < 1 or y.ndim < 2:
        fail(ShapeError(f"vecmat: expected vectors and matrices, got {describe((x.type, y.type))}"))
    x = conj(x) if x.dtype.is_complex else x
    product = _matmul(expand_dims(x, (x.ndim - 1,)), y)
    return reshape(product, (*product.shape[:-2], product.shape[-1]))


def kron(a: Any, b: Any) -> Value:
    """Kronecker product: blocks ``a[i, j] * b``; the shorter shape gets ones in front."""
    x, y = promoted(a, b)
    ndim = max(x.ndim, y.ndim)
    left = (1,) * (ndim - x.ndim) + x.shape
    right = (1,) * (ndim - y.ndim) + y.shape
    x = reshape(x, tuple(n for extent in left for n in (extent, 1)))
    y = reshape(y, tuple(n for extent in right for n in (1, extent)))
    return reshape(x * y, tuple(m * n for m, n in zip(left, right, strict=True)))


def cross(
    a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Value:
    """Vector product of 3-vectors (of 2-vectors: its third component)."""
    from .joining import unstack

    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promoted(a, b)
    x = moveaxis(x, one_axis("cross", axisa, x.ndim), -1)
    y = moveaxis(y, one_axis("cross", axisb, y.ndim), -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        fail(
            ShapeError(
                f"cross: expected vectors of 3 (or 2) components, got {describe((x.type, y.type))}"
            )
        )
    shape = broadcast_shapes(x.shape[:-1], y.shape[:-1])
    p, q = unstack(x, axis=-1), unstack(y, axis=-1)
    third = p[0] * q[1] - p[1] * q[0]
    if len(p) == len(q) == 2:
        return third
    from .joining import stack

    if len(p) == 2:
        parts = [p[1] * q[2], -(p[0] * q[2]), third]
    elif len(q) == 2:
        parts = [-(p[2] * q[1]), p[2] * q[0], third]
    else:
        parts = [p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], third]
    result = stack(parts, -1)
    return moveaxis(result, -1, one_axis("cross", axisc, len(shape) + 1))


def matrix_power(a: Any, n: Any) -> Value:
    """The square matrices ``a`` to a non-negative integer power, by repeated squaring."""
    x, power = as_value(a), static_int("matrix_power", "n", n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        fail(ShapeError(f"matrix_power: expected square matrices, got {x.type}"))
    if power < 0:
        fail(ValueError("matrix_power: expected n >= 0; negative powers need linalg.inv"))
    if power == 0:
        from ..ops.shape import broadcast_to

        return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    result: Value | None = None
    while power:
        if power & 1:
            result = x if result is None else _matmul(result, x)
        power >>= 1
        if power:
            x = _matmul(x, x)
    assert result is not None
    return result


def multi_dot(arrays: Any) -> Value:
    """The product of two matrices or more, in the order that multiplies least.

    The first and the last may be vectors. Order by dynamic programming (Cormen et al.,
    "Introduction to Algorithms", matrix-chain multiplication).
    """
    values = [as_value(x) for x in arrays]
    if len(values) < 2:
        fail(ValueError(f"multi_dot: expected two arrays at least, got {len(values)}"))
    row, column = values[0].ndim == 1, values[-1].ndim == 1
    if row:
        values[0] = expand_dims(values[0], (0,))
    if column:
        values[-1] = expand_dims(values[-1], (1,))
    if any(v.ndim != 2 for v in values):
        fail(
            ShapeError(
                f"multi_dot: expected matrices, got {describe(tuple(v.type for v in values))}"
            )
        )
    extents = [values[0].shape[0], *(v.shape[1] for v in values)]
    count = len(values)
    cost = [[0.0] * count for _ in range(count)]
    cut = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i][j] = math.inf
            for k in range(i, j):
                total = cost[i][k] + cost[k + 1][j] + extents[i] * extents[k + 1] * extents[j + 1]
                if total < cost[i][j]:
                    cost[i][j], cut[i][j] = total, k

    def product(i: int, j: int) -> Value:
        if i == j:
            return values[i]
        return _matmul(product(i, cut[i][j]), product(cut[i][j] + 1, j))

    result = product(0, count - 1)
    shape = result.shape[1 if row else 0 : 1 if column else 2]
    return reshape(result, shape)
