"""Sums of cotangents of which one touches a few elements only.

Reading ``x[i]`` has the cotangent "zeros with ``ct`` written at ``i``". Added to a sum over
iterations it would cost all elements of ``x`` in each; written into the sum it costs those that
were read. A loop inside that sums up from zeros goes on from the sum of the loop around it instead.
The sums are the same up to the order of additions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice, pairwise

from ..ir.graph import Node, Value, make, toposort
from ..ir.ops.arithmetic import add
from ..ir.ops.dynamic import DYNAMIC_SLICE, DYNAMIC_UPDATE_SLICE, dynamic_slice
from ..ir.ops.regions import LOOP, Loop
from ..ir.ops.scatter import SCATTER
from ..ir.rewrite import rebuild

__all__ = ["accumulated", "continued"]


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


# ---------------------------------------------------------------------------------- loops in loops


def continued(outputs: Sequence[Value], totals: Collection[Value]) -> list[Value]:
    """``outputs``, of which some are sums of one of ``totals`` and of loops that sum from zeros:
    these loops begin with the total.

    Each of ``totals`` is used once, in such a sum.
    """
    nodes = toposort(outputs)
    order = {node: k for k, node in enumerate(nodes)}
    uses: dict[Value, int] = {}
    for v in (*(x for node in nodes for x in node.inputs), *outputs):
        uses[v] = uses.get(v, 0) + 1
    chains: dict[int, list[Value]] = {}  # the loops that an output goes through, by its number
    others: dict[int, list[Value]] = {}
    for n, v in enumerate(outputs):
        terms = [*islice(_terms(v), _MOST + 1)][::-1]
        loops = [x for x in terms if uses[x] == 1 and _sums_from_zeros(x)]
        start = [x for x in terms if x in totals]
        if loops and len(start) == 1 and len(terms) <= _MOST:
            chains[n] = [*start, *sorted(loops, key=lambda x: order[x.node])]
            others[n] = [x for x in terms if x not in chains[n]]
    if not chains:
        return list(outputs)
    before = {b: a for chain in chains.values() for a, b in pairwise(chain)}
    renewed: dict[Value, Value] = {}
    for node in nodes:
        operands = [renewed.get(x, x) for x in node.inputs]
        if node.op is LOOP:
            first = len(operands) - len(Loop.of(node).init) - len(Loop.of(node).xs)
            for x in node.outputs:
                if x in before:
                    operands[first + x.index] = renewed.get(before[x], before[x])
        new = rebuild(node, operands)
        renewed.update(zip(node.outputs, new.outputs, strict=True))
    found = [renewed.get(v, v) for v in outputs]
    for n, chain in chains.items():
        found[n] = renewed[chain[-1]]
        for x in others[n]:
            found[n] = accumulated(found[n], renewed.get(x, x))
    return found


def _sums_from_zeros(v: Value) -> bool:
    """Whether ``v`` is a carry of a loop that begins with zeros and is only added to."""
    if v.node.op is not LOOP:
        return False
    loop = Loop.of(v.node)
    return v.index < len(loop.init) and _is_zeros(loop.init[v.index]) and _adds_to(loop, v.index)


def _adds_to(loop: Loop, k: int) -> bool:
    carry = loop.body.inputs[1 + len(loop.consts) + k]
    links = _links(loop.body.outputs[k], carry)
    if links is None:
        return False
    touched = {carry.out}
    for node in toposort(loop.body.outputs, stop=loop.body.inputs):
        if any(x in touched for x in node.inputs):
            if node not in links:
                return False
            touched.update([links[node]] if node.op is LOOP else node.outputs)
    return all(v not in touched for n, v in enumerate(loop.body.outputs) if n != k)


def _links(v: Value, carry: Node) -> dict[Node, Value] | None:
    """The nodes through which ``v`` is ``carry`` plus something, with the result that is; None if
    it is not."""
    found: dict[Node, Value] = {}
    while v.node is not carry:
        node = v.node
        found[node] = v
        if node.op is SCATTER and node.param("how") == "add":
            v = node.inputs[0]
        elif node.op is DYNAMIC_UPDATE_SLICE:
            base, update, *starts = node.inputs
            old = update.node.inputs[0] if update.node.op.name == "add" else update
            if old.node.op is not DYNAMIC_SLICE or old.node.inputs != (base, *starts):
                return None
            found |= {x.node: x for x in (update, old)}
            v = base
        elif node.op.name == "add":
            below = [x for x in node.inputs if carry in toposort([x])]
            if len(below) != 1:
                return None
            (v,) = below
        elif node.op is LOOP and v.index < len(Loop.of(node).init):
            inner = Loop.of(node)
            if not _adds_to(inner, v.index) or _reads(inner, v, carry):
                return None
            v = inner.init[v.index]
        else:
            return None
    return found


def _reads(loop: Loop, v: Value, carry: Node) -> bool:
    """Whether operands of a loop other than the start of ``v`` depend on ``carry``."""
    rest = [x for n, x in enumerate(loop.init) if n != v.index]
    return carry in toposort([*loop.consts, *rest, *loop.xs])
