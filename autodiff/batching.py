"""Batching: the web along a new axis, one rule an op."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..ir.collector import no_collection
from ..ir.errors import ShapeError, TilegradError
from ..ir.graph import Node, Value, toposort
from ..ir.location import one_place
from ..ir.ops.dot import DOT, contracted_with_units
from ..ir.ops.elementwise import batch_elementwise
from ..ir.rewrite import rebuild
from ..ir.types import TensorType
from .forward import unsupported

__all__ = ["Batched", "batch"]

Batched = tuple[Value, "int | None"]


@no_collection()
@one_place()
def batch(
    outputs: Sequence[Value],
    mapped: Mapping[Value, tuple[Value, int]],
    size: int,
    units: Collection[Value] = (),
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
    units : collection of Value
        Mapped values, directions of a derivative, that run through all unit directions in C order:
        a contraction with one of them picks elements and multiplies nothing.

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
    # What stands for each result, None: itself. A loop may have results that are the same for all
    # examples although it has others that are not.
    batched: dict[Node, list[Batched | None]] = {}
    for x, (whole, axis) in mapped.items():
        _check_mapped(x, whole, axis, size)
        batched.setdefault(x.node, [None] * len(x.node.types))[x.index] = (whole, axis)
    # A node of several results of which only some are mapped is entered.
    stop = [node for node, many in batched.items() if None not in many]
    for node in toposort(outputs, stop=stop):
        operands: list[Value] = []
        axes: list[int | None] = []
        reached = False
        for x in node.inputs:
            many = batched.get(x.node)
            pair = None if many is None else many[x.index]
            if pair is None:
                operands.append(x)
                axes.append(None)
            else:
                operands.append(pair[0])
                axes.append(pair[1])
                reached = True
        if not reached:
            continue
        if node.op is DOT and units:
            picked = _picked(node, axes, units)
            if picked is not None:
                batched[node] = [picked]
                continue
        known = batched.get(node) or [None] * len(node.types)
        if any(axis is not None for axis in axes):
            results = _batched(node, operands, axes)
        else:
            results = [(x, None) for x in rebuild(node, operands).outputs]
        for old, new in zip(node.types, results, strict=True):
            _check_result(node, old, new, size)
        batched[node] = [old or new for old, new in zip(known, results, strict=True)]
    found: list[Batched] = []
    for x in outputs:
        many = batched.get(x.node)
        found.append((None if many is None else many[x.index]) or (x, None))
    return found


def _batched(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> list[Batched]:
    """The results of one batched node, with their axes."""
    op = node.op
    if op.kind == "region":
        from .region_batching import batched_region  # it builds on this module

        return batched_region(node, operands, axes)
    if op.batch is None:
        if op.kind != "elementwise":
            unsupported("vmap", node, op.why_not.get("batch", "it has no batching rule"))
        return _batched_elementwise(node, operands, axes)
    found: Any = op.batch(node, operands, axes)
    values, where = found
    if type(values) is not tuple:
        return [(values, where)]
    return list(zip(values, where if type(where) is tuple else (where,) * len(values), strict=True))


def _picked(
    node: Node, axes: Sequence[int | None], units: Collection[Value]
) -> tuple[Value, int] | None:
    """What a contraction with unit directions picks, if the other operand is fixed."""
    for place, x in enumerate(node.inputs):
        if x in units and axes[1 - place] is None:
            return contracted_with_units(node, place)
    return None


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


def _check_result(node: Node, old: TensorType, new: Batched, size: int) -> None:
    value, axis = new
    expected, got = old.shape, value.type
    if axis is not None:
        expected = (*expected[:axis], size, *expected[axis:])
    if got.shape != expected or got.dtype is not old.dtype:
        raise TilegradError(
            f"{node.op.name}: the batching rule made {got} with batch axis {axis} of {old}; "
            f"expected shape {list(expected)}"
        )
