"""Forward mode: push tangents through the web, one jvp rule a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from ..ir.collector import no_collection
from ..ir.errors import DTypeError, ShapeError, UnsupportedError
from ..ir.graph import Node, Value, toposort
from ..ir.location import one_place
from ..ir.types import TensorType

__all__ = ["jvp", "unsupported"]

Tangents = tuple["Value | None", ...]


@no_collection()
@one_place()
def jvp(outputs: Sequence[Value], tangents: Mapping[Value, Value]) -> list[Value | None]:
    """Tangents of ``outputs`` when the values in ``tangents`` move along theirs.

    Parameters
    ----------
    outputs : sequence of Value
    tangents : mapping of Value to Value
        For each value that moves its tangent, of the same shape and dtype. These values are
        independent of each other: what they are computed from does not matter. Mark the argument
        of a function with a fresh :func:`~tilegrad.ir.ops.leaves.alias` first, so that no one
        else's use of the same value moves with it.

    Returns
    -------
    list of Value or None
        The tangent of each output, linear in the given ones; ``None`` is zero, by structure (the
        output depends on none of the values, or only through piecewise constant operations).

    Raises
    ------
    UnsupportedError
        If a tangent reaches an op whose rule is missing on purpose.

    Notes
    -----
    Only nodes between the moving values and the outputs are visited by a rule; the primal nodes
    are shared, not copied. Time is linear in the size of the web, nothing recurses.
    """
    moving: dict[Node, list[Value | None]] = {}
    for x, dot in tangents.items():
        _check_tangent("", x.type, dot.type)
        moving.setdefault(x.node, [None] * len(x.node.types))[x.index] = dot
    # A node of several results of which only some move is entered: the others may depend on more.
    stop = [node for node, many in moving.items() if None not in many]
    for node in toposort(outputs, stop=stop):
        operand_tangents: list[Value | None] = []
        reached = False
        for x in node.inputs:
            many = moving.get(x.node)
            t = None if many is None else many[x.index]
            operand_tangents.append(t)
            reached = reached or t is not None
        if not reached:
            continue
        found = _tangents_of(node, operand_tangents)
        given = moving.get(node)
        if given is not None:
            moving[node] = [
                new if old is None else old for old, new in zip(given, found, strict=True)
            ]
        elif any(t is not None for t in found):
            moving[node] = list(found)
    result: list[Value | None] = []
    for x in outputs:
        many = moving.get(x.node)
        result.append(None if many is None else many[x.index])
    return result


def _tangents_of(node: Node, operand_tangents: Sequence[Value | None]) -> Tangents:
    """What the op's rule says, one entry a result, checked."""
    op = node.op
    if op.kind == "region":
        from .region_forward import region_jvp  # it builds on this module

        return region_jvp(node, operand_tangents)
    if op.jvp is None:
        if "jvp" in op.why_not and any(t.dtype.is_inexact for t in node.types):
            unsupported("jvp", node, op.why_not["jvp"])
        return (None,) * len(node.types)
    found = op.jvp(node, operand_tangents)
    many: Tangents = found if type(found) is tuple else (found,)
    for expected, t in zip(node.types, many, strict=True):
        if t is not None:
            _check_tangent(op.name, expected, t.node.types[t.index])
    return many


def _check_tangent(op: str, expected: TensorType, got: TensorType) -> None:
    """Whether a tangent fits its primal value; ``op`` is whose rule gave it, if one did."""
    if expected is got and expected.dtype.is_inexact:
        return
    what = f"{op}: the jvp rule's result for" if op else "jvp: the tangent of"
    if expected.shape != got.shape:
        raise ShapeError(f"{what} {expected}: expected this shape, got {got}")
    if expected.dtype is not got.dtype:
        raise DTypeError(f"{what} {expected}: expected this dtype, got {got}; use astype")
    if not expected.dtype.is_inexact:
        raise DTypeError(
            f"{what} {expected}: expected a floating or complex value to differentiate; "
            f"convert it with astype"
        )


def unsupported(transform: str, node: Node, reason: str) -> NoReturn:
    """Raise that ``node`` cannot be transformed, with the user's line that made the node."""
    operands = ", ".join(str(x.type) for x in node.inputs)
    where = "" if node.location is None else f"\n  at {node.location}"
    raise UnsupportedError(
        f"{transform}: {node.op.name}({operands}) cannot be transformed: {reason}{where}",
        op=node.op.name,
        device=transform,
    )
