"""In which order the axes of a temporary lie in memory.

Values that users or libraries see lie in C order. A temporary between loops and matrix products
may lie in any order of its axes: the one in which most of what it is computed from lies, so that
the nest which makes it reads and writes along memory. Matrix products read it through strides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.graph import Graph, Node, Value
from .realize import Realization

__all__ = ["Axes", "choose_orders", "strides_of"]

Axes = tuple[int, ...]


def choose_orders(
    graph: Graph, nodes: Sequence[Node], realization: Realization
) -> dict[Value, Axes]:
    """Axes outermost first, for each temporary that does not lie in C order."""
    fixed = set(graph.outputs)
    for node in nodes:
        by_loops = node.op.kind in ("elementwise", "view", "reduction", "index", "cumulative")
        if not by_loops and node.op.name != "dot":
            fixed.update(node.inputs)  # a library sees these
    orders: dict[Value, Axes] = {}
    turned: set[Node] = set()  # nodes that may be computed from what lies in another order
    for node in nodes:
        if node.op.name != "transpose" and not any(x.node in turned for x in node.inputs):
            continue
        v = node.out
        if node not in realization.nodes:
            turned.add(node)
        elif node.op.kind == "elementwise" and v not in fixed and v.ndim > 1:
            order = _preferred(v, realization, orders)
            if strides_of(v, order) != strides_of(v, None):
                orders[v] = order
                turned.add(node)
    return orders


def _preferred(v: Value, realization: Realization, orders: Mapping[Value, Axes]) -> Axes:
    """The order in which most full-sized operands of an expression lie; C order on a tie.

    Axes of extent 1 have no place in memory and go in front.
    """
    natural = tuple(d for d in range(v.ndim) if v.shape[d] != 1)
    votes = {natural: 0}
    seen: set[tuple[Value, Axes]] = set()
    start = tuple(range(v.ndim))
    stack: list[tuple[Value, Axes]] = [(x, start) for x in v.node.inputs]
    while stack:
        x, at = stack.pop()  # axis d of x is axis at[d] of v
        if (x, at) in seen or x.size != v.size:
            continue
        seen.add((x, at))
        if x in realization:
            order = tuple(at[d] for d in orders.get(x, tuple(range(x.ndim))) if x.shape[d] != 1)
            votes[order] = votes.get(order, 0) + 1
        elif x.node.op.kind == "elementwise":
            stack.extend((y, at) for y in x.node.inputs)
        elif x.node.op.name in ("transpose", "broadcast", "reshape"):
            source = _under_view(x, at)
            if source is not None:
                stack.append((x.node.inputs[0], source))
    best = max(votes.values())
    order = natural if votes[natural] == best else max(votes, key=lambda o: votes[o])
    return (*(d for d in range(v.ndim) if v.shape[d] == 1), *order)


def _under_view(x: Value, at: Axes) -> Axes | None:
    """The axes of a view's operand as axes of the value: None where axes are cut or merged."""
    operand, name = x.node.inputs[0], x.node.op.name
    if name == "transpose":
        source = [0] * x.ndim
        for position, axis in enumerate(x.node.param("axes")):
            source[axis] = at[position]
        return tuple(source)
    if name == "broadcast":  # of the same size: it adds axes of extent 1
        return tuple(at[d] for d in x.node.param("axes"))
    here = [d for d, n in enumerate(x.shape) if n != 1]
    there = [d for d, n in enumerate(operand.shape) if n != 1]
    if [x.shape[d] for d in here] != [operand.shape[d] for d in there]:
        return None
    moved = {b: at[a] for a, b in zip(here, there, strict=True)}
    return tuple(moved.get(d, 0) for d in range(operand.ndim))


def strides_of(v: Value, order: Axes | None) -> tuple[int, ...]:
    """Element strides of a value whose axes lie in ``order`` (None: C order)."""
    strides = [1] * v.ndim
    step = 1
    for d in reversed(order or range(v.ndim)):
        strides[d] = step
        step *= max(v.shape[d], 1)
    return tuple(strides)
