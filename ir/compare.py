"""Structural equality: keys of params and of whole graphs, exact to the bit."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from typing import Any

from .graph import Graph, Node

__all__ = ["graphs_equal", "param_key", "params_key", "structure"]


def param_key(value: Any) -> Hashable:
    """A key under which ``value`` equals only what is the same parameter.

    ``==`` is too coarse for params: it merges ``1``, ``1.0`` and ``True``, and ``0.0`` with
    ``-0.0``, and separates NaN from itself. Regions are compared by structure.
    """
    kind = type(value)
    if kind is int or kind is str or value is None:
        return value  # type: ignore[no-any-return]
    if kind is tuple:
        # Equal tuples of plain ints (shapes, axes) are by far the most common ones.
        if all(type(v) is int for v in value):
            return value  # type: ignore[no-any-return]
        return ("tuple", *map(param_key, value))
    if kind is float:
        return ("float", struct.pack("<d", value))
    if kind is complex:
        return ("complex", struct.pack("<dd", value.real, value.imag))
    if kind is Graph:
        return ("graph", structure(value))
    return (kind.__name__, value)


def params_key(node: Node) -> Hashable:
    """The key of all params of a node; what names an input (not its meaning) is left out."""
    if node.op.name == "input":
        return ("type", node.types)
    return tuple([(name, param_key(value)) for name, value in node.params])


def structure(graph: Graph) -> tuple[Hashable, ...]:
    """A hashable key: equal for graphs that are the same program, node by node.

    Inputs are known by position and type, not by name; ``data`` nodes by position and type; all
    others by op, operands, params and types, in the order of :func:`~.graph.toposort`.
    """
    number: dict[Node, int] = {}
    rows: list[Hashable] = []
    for node in (*graph.inputs, *graph.nodes()):
        number[node] = len(number)
        operands = tuple([(number[x.node], x.index) for x in node.inputs])
        rows.append((node.op.name, operands, params_key(node), node.types))
    outputs = tuple([(number[x.node], x.index) for x in graph.outputs])
    return (len(graph.inputs), tuple(rows), outputs)


def graphs_equal(a: Graph, b: Graph) -> bool:
    """Whether two graphs are the same program after canonical numbering (see :func:`structure`)."""
    return structure(a) == structure(b)
