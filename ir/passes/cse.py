"""Common subexpression elimination: nodes that say the same become one. Keeps every bit."""

from __future__ import annotations

from collections.abc import Hashable

from ..compare import params_key
from ..graph import Graph, Node, Value
from ..rewrite import rewrite_graph

__all__ = ["eliminate_common_subexpressions"]

# Equal by name and type only: who they are is their identity. Effects happen each by itself.
_BY_IDENTITY = frozenset({"input", "data", "effect"})


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """Each distinct (op, operands, params, types) is computed once.

    Operands are compared by identity (after their own merging), params and literals by bits: the
    constants ``0.0`` and ``-0.0``, or two NaNs of different payload, stay two. Ops are pure:
    random bits are functions of their key, so what merges is equal. ``x + y`` and ``y + x`` stay
    two: their NaNs may differ.
    """
    known: dict[Hashable, Node] = {}

    def merge(node: Node) -> tuple[Value, ...] | None:
        if node.op.name in _BY_IDENTITY:
            return None
        operands = tuple([(x.node, x.index) for x in node.inputs])
        first = known.setdefault((node.op, operands, params_key(node), node.types), node)
        return None if first is node else first.outputs

    return rewrite_graph(graph, merge)
