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


# Parts of a sum that are looked at.
_MOST = 64


def accumulated(total: Value, part: Value) -> Value:
    """``total + part``; what one of them writes into zeros is written into the other."""
    if _is_sparse(total):
        total, part = part, total
    if not _is_sparse(part) or _is_sparse(total):
        return add(total, part)
    for v in _terms(part):
        node = v.node
        if node.op is SCATTER:
            total = make(SCATTER, (total, *node.inputs[1:]), **dict(node.params))
        else:
            _, update, *starts = node.inputs
            old = dynamic_slice(total, *starts, sizes=update.shape)
            total = make(DYNAMIC_UPDATE_SLICE, (total, add(old, update), *starts))
    return total


def _terms(v: Value) -> list[Value]:
    """What ``v`` is a sum of, in order; no more than can be looked at."""
    found: list[Value] = []
    stack = [v]
    while stack and len(found) <= _MOST:
        x = stack.pop()
        if x.node.op.name == "add":
            stack.extend(reversed(x.node.inputs))
        else:
            found.append(x)
    return found


def _is_sparse(v: Value) -> bool:
    """Whether a value is zeros with something written at some places, or a sum of such."""
    terms = _terms(v)
    return len(terms) <= _MOST and all(map(_is_written_zeros, terms))


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
