"""Rebuilding a web of nodes: the one walk under every pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .collector import no_collection
from .errors import TilegradError
from .graph import Graph, Node, Value, toposort

__all__ = ["Rule", "rebuild", "rewrite", "rewrite_graph", "substitute"]

Rule = Callable[[Node], "Value | tuple[Value, ...] | None"]


def rebuild(node: Node, inputs: Sequence[Value]) -> Node:
    """``node`` on other operands; ``node`` itself when they are the same ones.

    The user's line is kept. Types are derived anew only if an operand type differs.
    """
    same = same_types = True
    for new, old in zip(inputs, node.inputs, strict=True):
        if new is not old:
            same = same and new == old
            same_types = same_types and (new.type is old.type or new.type == old.type)
    if same:
        return node
    inputs, types = tuple(inputs), node.types
    if not same_types:
        derived = node.op.infer(*[x.type for x in inputs], **dict(node.params))
        types = derived if type(derived) is tuple else (derived,)
    return Node(node.op, inputs, node.params, types, node.place)


@no_collection()
def rewrite(
    outputs: Sequence[Value], rule: Rule, *, stop: Sequence[Node] = ()
) -> tuple[Value, ...]:
    """The outputs after ``rule`` has seen every node, operands first.

    Parameters
    ----------
    outputs : sequence of Value
    rule : callable
        ``rule(node) -> Value | tuple of Value | None``: what stands for the results of ``node``,
        whose operands are rewritten already; None keeps it. What the rule returns is not visited
        again.
    stop : sequence of Node
        Nodes that are kept as they are, with everything above them.

    Raises
    ------
    TilegradError
        If a replacement has another type than the result it stands for: a fault of the rule.
    """
    replaced: dict[Node, tuple[Value, ...]] = {}
    for node in toposort(outputs, stop=stop):
        new = node
        for x in node.inputs:
            if x.node in replaced:
                new = rebuild(node, [_lookup(replaced, x) for x in node.inputs])
                break
        found = rule(new)
        if found is None:
            if new is not node:
                replaced[node] = new.outputs
            continue
        values = found if type(found) is tuple else (found,)
        if tuple([v.type for v in values]) != new.types:  # type: ignore[union-attr]
            raise TilegradError(f"rewrite: {new!r} was replaced by {values!r}: the types differ")
        replaced[node] = values  # type: ignore[assignment]
    return tuple([_lookup(replaced, x) for x in outputs])


def _lookup(replaced: Mapping[Node, tuple[Value, ...]], x: Value) -> Value:
    found = replaced.get(x.node)
    return x if found is None else found[x.index]


def rewrite_graph(graph: Graph, rule: Rule) -> Graph:
    """:func:`rewrite` of a closed graph; the inputs stay. ``graph`` itself if nothing changes."""
    outputs = rewrite(graph.outputs, rule, stop=graph.inputs)
    return graph if outputs == graph.outputs else Graph(graph.inputs, outputs, graph.name)


@no_collection()
def substitute(outputs: Sequence[Value], replacements: Mapping[Value, Value]) -> tuple[Value, ...]:
    """``outputs`` with values replaced by others, everywhere they are used.

    Types downstream are derived anew, so a replacement may have another type as long as the ops
    that use it accept it. Nothing inside a replacement is replaced.

    Parameters
    ----------
    outputs : sequence of Value
    replacements : mapping of Value to Value
    """
    if not replacements:
        return tuple(outputs)
    # A node all of whose results are replaced is not entered: what is above it is not needed.
    whole = [
        node
        for node in {v.node for v in replacements}
        if all(v in replacements for v in node.outputs)
    ]
    renewed: dict[Value, Value] = dict(replacements)
    for node in toposort(outputs, stop=whole):
        new = rebuild(node, [renewed.get(x, x) for x in node.inputs])
        if new is not node:
            for old, value in zip(node.outputs, new.outputs, strict=True):
                renewed.setdefault(old, value)
    return tuple([renewed.get(x, x) for x in outputs])
