"""Sums of cotangents of which one touches a few elements only.

Reading ``x[i]`` has the cotangent "zeros with ``ct`` written at ``i``". Added to a sum over
iterations it would cost all elements of ``x`` in each; written into the sum it costs those that
were read. The sum is the same up to the order of additions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.graph import Value, make
from ..ir.ops.arithmetic import add
from ..ir.ops.dynamic import DYNAMIC_UPDATE_SLICE, dynamic_slice
from ..ir.ops.scatter import SCATTER

__all__ = ["accumulated"]


# Parts of a sum that are looked at.
_MOST = 64


def accumulated(total: Value, part: Value) -> Value:
    """``total + part``; what one of them writes into zeros is written into the other."""
    if _is_sparse(total):
        total, part = part, total
    if not _is_sparse(part) or _is_sparse(total):
        return add(total, part)
    for v in reversed(list(_terms(part))):
        node = v.node
        if node.op is SCATTER:
            total = make(SCATTER, (total, *node.inputs[1:]), **dict(node.params))
        else:
            _, update, *starts = node.inputs
            old = dynamic_slice(total, *starts, sizes=update.shape)
            total = make(DYNAMIC_UPDATE_SLICE, (total, add(old, update), *starts))
    return total


def _terms(v: Value) -> Iterator[Value]:
    """What ``v`` is a sum of, from the last term to the first.

    Sums grow at their first operand, so this way the first term is near.
    """
    stack = [v]
    while stack:
        x = stack.pop()
        if x.node.op.name == "add":
            stack.extend(x.node.inputs)
        else:
            yield x


def _is_sparse(v: Value) -> bool:
    """Whether a value is zeros with something written at some places, or a short sum of such."""
    return all(k <= _MOST and _is_written_zeros(x) for k, x in enumerate(_terms(v)))


def _is_written_zeros(v: Value) -> bool:
    node = v.node
    if node.op is SCATTER:
        return node.param("how") == "add" and _is_zeros(node.inputs[0])
    return node.op is DYNAMIC_UPDATE_SLICE and _is_zeros(node.inputs[0])


def _is_zeros(v: Value) -> bool:
    node = v.node
    if node.op.name == "broadcast":
        return _is_zeros(node.inputs[0])
    return node.op.name == "constant" and not any(node.param("literal").data)
