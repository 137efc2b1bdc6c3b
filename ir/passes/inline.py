"""Inlining: ``checkpoint`` nodes become what they hold. Keeps every bit.

For programs that are not differentiated any more. Runs before all other passes, which see one web.
"""

from __future__ import annotations

from ..graph import Graph, Node, Value
from ..ops.checkpoint import CHECKPOINT, after
from ..ops.leaves import CONSTANT, IOTA
from ..rewrite import rewrite_graph, substitute

__all__ = ["inline"]


def inline(graph: Graph) -> Graph:
    """``graph`` without ``checkpoint`` nodes; bodies inside bodies likewise.

    Operands that are held get ``after`` nodes on all operands that are not: what is computed of
    them is not merged with what was computed before, and waits.
    """
    if all(node.op is not CHECKPOINT for node in graph.nodes()):
        return graph
    return rewrite_graph(graph, _inlined)


def _inlined(node: Node) -> tuple[Value, ...] | None:
    if node.op is not CHECKPOINT:
        return None
    body = inline(node.param("body"))
    held = node.param("held")
    awaited = [
        x for x, waits in zip(node.inputs, held, strict=True) if not waits and not _is_plain(x)
    ]
    given = {
        stand_in.out: after(x, awaited) if waits else x
        for stand_in, x, waits in zip(body.inputs, node.inputs, held, strict=True)
    }
    return substitute(body.outputs, given)


def _is_plain(x: Value) -> bool:
    """Whether a value is there from the start: nothing waits for it."""
    while x.node.op.kind == "view" and len(x.node.inputs) == 1:
        x = x.node.inputs[0]
    return x.node.op is CONSTANT or x.node.op is IOTA
