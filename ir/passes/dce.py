"""Dead code elimination.

A graph is what its outputs reach, so a node that nothing uses is not in it to begin with. What can
be dead is an input, and a result of a node of several.
"""

from __future__ import annotations

from ..graph import Graph, Node

__all__ = ["drop_unused_inputs", "unused_inputs"]


def unused_inputs(graph: Graph) -> tuple[Node, ...]:
    """The inputs that no output depends on, in their order."""
    used = {x.node for node in graph.nodes() for x in node.inputs}
    used.update(x.node for x in graph.outputs)
    return tuple(node for node in graph.inputs if node not in used)


def drop_unused_inputs(graph: Graph) -> tuple[Graph, tuple[int, ...]]:
    """The graph without its unused inputs, and the positions of those that are left.

    It changes the signature, so it is not a pass: the caller must drop the arguments too.
    """
    dead = set(unused_inputs(graph))
    kept = tuple(i for i, node in enumerate(graph.inputs) if node not in dead)
    if not dead:
        return graph, kept
    return Graph(tuple(graph.inputs[i] for i in kept), graph.outputs, graph.name), kept
