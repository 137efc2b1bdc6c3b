"""Sums of cotangents of which one touches a few elements only.

Reading ``x[i]`` has the cotangent "zeros with ``ct`` written at ``i``". Added to a sum over
iterations it would cost all elements of ``x`` in each; written into the sum it costs those that
were read. The sum is the same up to the order of additions.
"""

from __future__ import annotations

from ..ir.graph import Value, make
from ..ir.ops.arithmetic import add
from ..ir.ops.dynamic import DYNAMIC_UPDATE_SLICE, dynamic_slice
from ..ir.ops.scatter import SCATTER

__all__ = ["accumulated"]


def accumulated(total: Value, part: Value) -> Value:
    """``total + part``; what one of them writes into zeros is written into the other."""
    if _is_sparse(total) and not _is_sparse(part):
        total, part = part, total
    stack, rest = [part], None
    while stack:
        v = stack.pop()
        node = v.node
        if node.op.name == "add" and any(map(_is_sparse, node.inputs)):
            stack.extend(reversed(node.inputs))
        elif not _is_sparse(v):
            rest = v if rest is None else add(rest, v)
        elif node.op is SCATTER:
            total = make(SCATTER, (total, *node.inputs[1:]), **dict(node.params))
        else:
            _, update, *starts = node.inputs
            old = dynamic_slice(total, *starts, sizes=update.shape)
            total = make(DYNAMIC_UPDATE_SLICE, (total, add(old, update), *starts))
    return total if rest is None else add(total, rest)


def _is_sparse(v: Value) -> bool:
    """Whether a value is zeros with something written, or added, at some places."""
    node = v.node
    if node.op is SCATTER:
        return node.param("how") == "add" and _is_zeros(node.inputs[0])
    return node.op is DYNAMIC_UPDATE_SLICE and _is_zeros(node.inputs[0])


def _is_zeros(v: Value) -> bool:
    node = v.node
    if node.op.name == "broadcast":
        return _is_zeros(node.inputs[0])
    return node.op.name == "constant" and not any(node.param("literal").data)
