"""Memory that a program may overwrite: carries of loops that are only updated here and there.

A carry goes through a body by a *chain* of updates: each writes a few elements of what the last one
made, the first one of the body's own input. When every other reader of a link of the chain comes
before the update that overwrites it, the whole chain works in the memory of the input, and an
iteration costs the elements that it changes. Loops and branches inside are links as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ir.graph import Graph, Node, Value
from ..ir.ops.regions import Loop, While
from .realize import is_small_update, native_scatter

__all__ = ["Donation", "origin"]


_MOST_MOVED = 64  # updates that are moved behind their readers: each looks at the whole graph


class Donation:
    """What may be overwritten in a graph.

    Parameters
    ----------
    graph : Graph
    nodes : sequence of Node
        Its nodes in order.
    outputs : iterable of int
        Outputs whose chains of updates begin at an input that they may overwrite.

    Attributes
    ----------
    nodes : list of Node
        The nodes of the graph in an order in which readers come before updates.
    updates : set of Node
        The links of the chains: they may take over the memory of an input.
    early : dict of Value to str
        Small values to be read before their operand is overwritten, with the reason.
    """

    def __init__(self, graph: Graph, nodes: Sequence[Node], outputs: Iterable[int]) -> None:
        self.nodes: Sequence[Node] = nodes
        self.updates: set[Node] = set()
        self.early: dict[Value, str] = {}
        sources: list[tuple[Node, Value]] = []
        for k in outputs:
            v = graph.outputs[k]
            while (below := _below(v)) is not None:
                sources.append((v.node, below))
                v = below
        if not sources:
            return
        self.updates = {node for node, _ in sources}
        readers: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for v in node.inputs:
                readers.setdefault(v, []).append(node)
        for update, source in sources:
            for node in readers.get(source, ()):
                small = 4 * sum(v.size for v in node.outputs) <= source.size
                if node is not update and small and node.op.kind not in ("elementwise", "region"):
                    self.early[node.out] = "read before its operand is overwritten"
        if len(self.updates) <= _MOST_MOVED:
            for update in [n for n in reversed(self.nodes) if n in self.updates]:
                self.nodes = _late(self.nodes, update)


def _late(nodes: Sequence[Node], update: Node) -> list[Node]:
    """The nodes with ``update``, and what depends on it, after all others; a stable order."""
    after: set[Node] = {update}
    first: list[Node] = []
    for node in nodes:
        if node is update:
            continue
        if any(x.node in after for x in node.inputs):
            after.add(node)
        else:
            first.append(node)
    return [*first, *(node for node in nodes if node in after)]


def origin(v: Value) -> Value:
    """The value in whose memory the updates that make ``v`` begin: ``v`` if it is no update."""
    while (below := _below(v)) is not None:
        v = below
    return v


def _below(v: Value) -> Value | None:
    """What ``v`` is an update of; None if it is none."""
    node, name = v.node, v.node.op.name
    if name == "dynamic_update_slice" and is_small_update(node):
        return node.inputs[0]
    if name == "scatter" and native_scatter(node):
        return node.inputs[0]
    if name == "cond":
        return _below_branches(v)
    if name not in ("loop", "while"):
        return None
    parts = Loop.of(node) if name == "loop" else While.of(node)
    if parts.lanes or v.index >= len(parts.init):
        return None
    fixed = parts.consts if isinstance(parts, Loop) else parts.body_consts
    inside = parts.body.inputs[1 + len(fixed) + v.index]
    same = origin(parts.body.outputs[v.index]).node is inside
    return parts.init[v.index] if same else None


def _below_branches(v: Value) -> Value | None:
    found = set()
    for branch in v.node.param("branches"):
        source = origin(branch.outputs[v.index]).node
        if source not in branch.inputs:
            return None
        found.add(branch.inputs.index(source))
    return v.node.inputs[1 + found.pop()] if len(found) == 1 else None
