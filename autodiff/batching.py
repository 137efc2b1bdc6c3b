"""Batching: the web along a new axis, one rule an op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.collector import no_collection
from ..ir.errors import ShapeError, TilegradError
from ..ir.graph import Node, Value, toposort
from ..ir.location import one_place
from ..ir.ops.elementwise import batch_elementwise
from ..ir.rewrite import rebuild
from .forward import unsupported

__all__ = ["Batched", "batch"]

Batched = tuple[Value, "int | None"]


@no_collection()
@one_place()
def batch(
    outputs: Sequence[Value], mapped: Mapping[Value, tuple[Value, int]], size: int
) -> list[Batched]:
    """``outputs`` for ``size`` values of each mapped value at once.

    Parameters
    ----------
    outputs : sequence of Value
    mapped : mapping of Value to (Value, int)
        For each placeholder the batched value that takes its place, and its batch axis (counted
        from the front). Without that axis the types must agree.
    size : int
        Extent of every batch axis.

    Returns
    -------
    list of (Value, int or None)
        Each output with the axis of the batch; ``None``: it does not depend on a mapped value and
        is the value it was.

    Raises
    ------
    ShapeError
        If a batched value does not have ``size`` elements along its axis.
    UnsupportedError
        If an op that must be batched has no rule.

    Notes
    -----
    Nodes that do not depend on a mapped value are shared, computed once, not replicated.
    """
    batched: dict[Value, tuple[Value, int]] = {}
    for x, (whole, axis) in mapped.items():
        _check_mapped(x, whole, axis, size)
        batched[x] = (whole, axis)
    stop = [node for node in {x.node for x in mapped} if all(v in batched for v in node.outputs)]
    for node in toposort(outputs, stop=stop):
        pairs = [batched.get(x) for x in node.inputs]
        if all(pair is None for pair in pairs):
            continue
        operands = [x if p is None else p[0] for x, p in zip(node.inputs, pairs, strict=True)]
        axes = [None if p is None else p[1] for p in pairs]
        for old, new in zip(node.outputs, _batched(node, operands, axes), strict=True):
            _check_result(node, old, new, size)
            if new[1] is not None:
                batched.setdefault(old, (new[0], new[1]))
    return [batched.get(x, (x, None)) for x in outputs]


def _batched(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> list[Batched]:
    """The results of one batched node, with their axes."""
    op = node.op
    if op.batch is None:
        if op.kind != "elementwise":
            unsupported("vmap", node, op.why_not.get("batch", "it has no batching rule"))
        return _batched_elementwise(node, operands, axes)
    found: Any = op.batch(node, operands, axes)
    values, where = found
    if type(values) is not tuple:
        return [(values, where)]
    return list(zip(values, where if type(where) is tuple else (where,) * len(values), strict=True))


def _batched_elementwise(
    node: Node, operands: Sequence[Value], axes: Sequence[int | None]
) -> list[Batched]:
    """The same op with the same params on operands that all have the batch axis."""
    common = axes[0]
    if common is None or any(axis != common for axis in axes):
        operands, common = batch_elementwise(node, operands, axes)
    return [(x, common) for x in rebuild(node, operands).outputs]


def _check_mapped(x: Value, whole: Value, axis: int, size: int) -> None:
    expected = list(x.shape)
    expected.insert(axis, size)
    if not 0 <= axis <= x.ndim or list(whole.shape) != expected:
        raise ShapeError(
            f"vmap: expected extent {size} at axis {axis} in front of {x.type}, got {whole.type}"
        )
    if x.dtype is not whole.dtype:
        raise TilegradError(f"vmap: {x.type} stands for a value of another dtype: {whole.type}")


def _check_result(node: Node, old: Value, new: Batched, size: int) -> None:
    value, axis = new
    expected = list(old.shape)
    if axis is not None:
        expected.insert(axis, size)
    if list(value.shape) != expected or value.dtype is not old.dtype:
        raise TilegradError(
            f"{node.op.name}: the batching rule made {value.type} with batch axis {axis} of "
            f"{old.type}; expected shape {expected}"
        )
