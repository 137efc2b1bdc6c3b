"""Contractions as matrix products: find the matrices inside the operands' buffers.

A general contraction is ``batch`` products of (rows, inner) by (inner, columns) matrices. A product
reads a matrix with unit stride along rows or columns, so transposes of an operand are peeled off
and become strides; an operand whose axes cannot be seen that way is copied once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from ..ir.graph import Node, Value, make
from ..ir.ops import OPS
from .loops import MatMul, Strided
from .realize import dot_sizes

if TYPE_CHECKING:
    from .lower import Lowering

__all__ = ["matmul_step"]


def matmul_step(node: Node, lowering: Lowering) -> list[MatMul]:
    """The library call of a contraction (none when the result is empty)."""
    out = node.out
    batch, rows, inner, columns = dot_sizes(node)
    c = lowering.buffer(out)
    if out.size == 0:
        return []
    x, y = node.inputs
    contract, batched = node.param("contract"), node.param("batch")
    free_x = [d for d in range(x.ndim) if d not in contract[0] and d not in batched[0]]
    free_y = [d for d in range(y.ndim) if d not in contract[1] and d not in batched[1]]
    return [
        MatMul(
            out.dtype,
            batch,
            rows,
            inner,
            columns,
            _matrices(x, (batched[0], free_x, contract[0]), lowering),
            _matrices(y, (batched[1], contract[1], free_y), lowering),
            Strided(c, 0, (rows * columns, columns, 1)),
        )
    ]


def _matrices(v: Value, groups: Sequence[Sequence[int]], lowering: Lowering) -> Strided:
    base, strides = _peel(v, lowering)
    if base.size:
        merged = [_one_stride([v.shape[d] for d in g], [strides[d] for d in g]) for g in groups]
        if None not in merged and _readable(v, groups, merged):
            number = lowering.realize_now(base, "operand of a matrix product")
            return Strided(number, 0, (merged[0] or 0, merged[1] or 0, merged[2] or 0))
    order = tuple(d for g in groups for d in g)
    copy = make(OPS["transpose"], (v,), axes=order) if order != tuple(range(v.ndim)) else v
    number = lowering.realize_now(copy, "copied into the layout of a matrix product")
    rows, columns = (prod(v.shape[d] for d in g) for g in groups[1:])
    return Strided(number, 0, (rows * columns, columns, 1))


def _peel(v: Value, lowering: Lowering) -> tuple[Value, list[int]]:
    """The value under transposes and its element stride along each axis of ``v``."""
    axes = list(range(v.ndim))
    while v.node.op.name == "transpose" and v not in lowering.realization:
        order = v.node.param("axes")
        axes = [order[d] for d in axes]
        v = v.node.inputs[0]
    strides = lowering.strides(v)
    return v, [strides[d] for d in axes]


def _one_stride(extents: Sequence[int], strides: Sequence[int]) -> int | None:
    """The stride of several axes seen as one, or None."""
    pairs = [(n, s) for n, s in zip(extents, strides, strict=True) if n != 1]
    for (_, outer), (n, inner) in pairwise(pairs):
        if outer != inner * n:
            return None
    return pairs[-1][1] if pairs else 0


def _readable(v: Value, groups: Sequence[Sequence[int]], strides: Sequence[int | None]) -> bool:
    """Whether a product can read it: rows or columns have unit stride, the others a larger one."""
    rows, columns = (prod(v.shape[d] for d in g) for g in groups[1:])
    row, column = strides[1] or 0, strides[2] or 0
    if column == 1 or columns == 1:
        return rows == 1 or row >= max(columns, 1)
    if row == 1 or rows == 1:
        return columns == 1 or column >= max(rows, 1)
    return False
