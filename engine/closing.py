"""Closing a web of nodes: from some values to a program with inputs, and its canonical key.

The nodes that the values need are listed operands first; where the walk stops are the *leaves*:
nodes that hold results, and inputs. The key spells the program with positions in place of nodes,
so two webs of the same form have the same key whatever they were made from, while ``x * x`` and
``x * y`` differ. Keys are compared in full, never by a digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir.graph import Graph, Node, Params, Value
from ..ir.ops.leaves import ALIAS, CONSTANT, INPUT, input_node
from ..ir.types import TensorType
from .static import static_key
from .tracing import MARKS, Marked, is_marked

__all__ = ["Web", "close", "graph_of"]

# Result i of the node at position p is number p * STRIDE + i; leaf k is number -1 - k.
STRIDE = 64


@dataclass(slots=True)
class Web:
    """A closed program before it is rebuilt as a :class:`Graph`.

    Attributes
    ----------
    nodes : list of Node
        Operands first, leaves left out.
    operands : list of tuple of int
        The operands of each node, as numbers.
    leaves : list of Value
        What number -1, -2, ... stands for: the given inputs, then the leaves in the order met.
    outputs : tuple of int
        Numbers of the values that were asked for.
    key : tuple
        Canonical: ops, params, sharing, leaf types, outputs.
    foreign : list of Node
        Inputs that are not among the given ones.
    marks : set of Node
        Active marks that the values depend on.
    """

    nodes: list[Node] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    leaves: list[Value] = field(default_factory=list)
    outputs: tuple[int, ...] = ()
    key: tuple[Any, ...] = ()
    foreign: list[Node] = field(default_factory=list)
    marks: set[Node] = field(default_factory=set)


def close(
    outputs: Sequence[Value], inputs: Sequence[Node] = (), *, lift_constants: bool = False
) -> Web:
    """The program that computes ``outputs`` from ``inputs`` and from what is known.

    Parameters
    ----------
    outputs : sequence of Value
    inputs : sequence of Node
        One-result nodes that become the first leaves, used or not.
    lift_constants : bool
        Constants are leaves too: the key then tells programs apart by form alone, and a new
        scalar in eager code does not make a new program.
    """
    web = Web()
    number: dict[Node, int] = {}
    leaves = web.leaves
    for node in inputs:
        number[node] = -1 - len(leaves)
        leaves.append(Value(node, 0))

    def is_leaf(node: Node) -> bool:
        memo = node.memo
        op = node.op
        if memo is None:
            if op is CONSTANT:
                if not lift_constants:
                    return False
                object.__setattr__(node, "memo", (node.params[0][1].array(),))
            elif op is INPUT:
                web.foreign.append(node)
            else:
                if op is ALIAS and MARKS and node in MARKS:
                    web.marks.add(node)
                return False
        elif op is CONSTANT and not lift_constants:
            return False
        elif type(memo) is Marked and is_marked(node):
            web.marks |= memo.marks & MARKS
        number[node] = -1 - len(leaves)
        for i in range(len(node.types)):
            leaves.append(Value(node, i))
        return True

    nodes = web.nodes
    stack: list[tuple[Node, Any]] = []
    entered: set[Node] = set()
    for output in outputs:
        node = output.node
        if node in number or is_leaf(node):
            continue
        entered.add(node)
        stack.append((node, iter(node.inputs)))
        while stack:
            node, rest = stack[-1]
            for operand in rest:
                child = operand.node
                if child not in number and child not in entered and not is_leaf(child):
                    entered.add(child)
                    stack.append((child, iter(child.inputs)))
                    break
            else:
                stack.pop()
                number[node] = len(nodes) * STRIDE
                nodes.append(node)

    key: list[Any] = []
    for node in nodes:
        numbers = tuple([_number(number, x) for x in node.inputs])
        web.operands.append(numbers)
        key.append(node.op)
        if node.params:
            key.append(params_key(node.params))
        key.extend(numbers)
    web.outputs = tuple([_number(number, x) for x in outputs])
    key.append(web.outputs)
    key.extend([x.node.types[x.index] for x in leaves])
    web.key = tuple(key)
    return web


def params_key(params: Params) -> Any:
    """Params by type and bits where Python's equality would merge them (0.0 and -0.0)."""
    for _, value in params:
        if type(value) is float or type(value) is complex:
            return static_key(params)
    return params


def _number(number: dict[Node, int], x: Value) -> int:
    base = number[x.node]
    return base + x.index if base >= 0 else base - x.index


def single_key(node: Node, operands: Sequence[TensorType], sharing: tuple[int, ...]) -> Any:
    """The key :func:`close` gives a program of this one node, all of whose results are wanted."""
    params = (params_key(node.params),) if node.params else ()
    return (node.op, *params, *sharing, tuple(range(len(node.types))), *operands)


def graph_of(web: Web, names: Sequence[str] = (), title: str = "main") -> Graph:
    """The web as a graph: its leaves become inputs, called ``names`` and then ``c0, c1, ...``."""
    given = [*names, *[f"c{i}" for i in range(len(web.leaves) - len(names))]]
    inputs = [
        input_node(x.node.types[x.index], name) for x, name in zip(web.leaves, given, strict=True)
    ]
    rebuilt: list[Node] = []

    def value(number: int) -> Value:
        if number < 0:
            return inputs[-1 - number].out
        return Value(rebuilt[number // STRIDE], number % STRIDE)

    for node, operands in zip(web.nodes, web.operands, strict=True):
        inner = tuple([value(n) for n in operands])
        rebuilt.append(Node(node.op, inner, node.params, node.types, node.location))
    return Graph(tuple(inputs), tuple([value(n) for n in web.outputs]), title)
