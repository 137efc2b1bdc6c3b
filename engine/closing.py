"""Closing a web of nodes: from some values to a program with inputs, and its canonical key.

The nodes that the values need are listed operands first; where the walk stops are the *leaves*:
nodes that hold results, and inputs. The key spells the program with positions in place of nodes,
so two webs of the same form have the same key whatever they were made from, while ``x * x`` and
``x * y`` differ. Keys are compared in full, never by a digest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..ir.compare import param_key
from ..ir.graph import Graph, Node, Params, Value
from ..ir.ops.leaves import ALIAS, CONSTANT, INPUT, input_node
from ..ir.types import TensorType
from .static import static_key
from .tracing import MARKS, Marked

__all__ = ["Web", "close", "graph_of"]

# Result i of the node at position p is number p * STRIDE + i; leaf k is number -1 - k.
STRIDE = 1 << 20


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

    __slots__ = ("foreign", "key", "leaves", "marks", "nodes", "operands", "outputs")

    def __init__(
        self,
        nodes: list[Node],
        operands: list[tuple[int, ...]],
        leaves: list[Value],
        outputs: tuple[int, ...] = (),
        key: Any = (),
    ) -> None:
        self.nodes = nodes
        self.operands = operands
        self.leaves = leaves
        self.outputs = outputs
        self.key: tuple[Any, ...] = key
        self.foreign: list[Node] = []
        self.marks: set[Node] = set()


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

    Notes
    -----
    Each operation of eager code passes through here, so the walk is written out in one loop.
    """
    nodes: list[Node] = []
    operands: list[tuple[int, ...]] = []
    leaves: list[Value] = [Value(node, 0) for node in inputs]
    web = Web(nodes, operands, leaves)
    number: dict[Node, int] = {node: -1 - i for i, node in enumerate(inputs)}
    known = number.get
    key: list[Any] = []
    # Nodes whose operands are not all numbered: the rest of them, the numbers of those before, and
    # the result that was asked for of the one that is now looked at.
    stack: list[tuple[Node | None, Iterator[Value], list[int], int]] = []
    # The outputs are the operands of a node that is not there.
    current: Node | None = None
    rest = iter(outputs)
    numbers: list[int] = []
    while True:
        for operand in rest:
            node = operand.node
            n = known(node)
            if n is None:
                if (node.memo is None and node.op not in _SPECIAL) or not _is_leaf(
                    node, web, lift_constants
                ):
                    stack.append((current, rest, numbers, operand.index))
                    current, rest, numbers = node, iter(node.inputs), []
                    break
                n = number[node] = -1 - len(leaves)
                if len(node.types) == 1:
                    leaves.append(operand)
                else:
                    leaves += [Value(node, i) for i in range(len(node.types))]
            numbers.append(_result(n, operand.index) if operand.index else n)
        else:
            if current is None:
                break
            n = number[current] = len(nodes) * STRIDE
            nodes.append(current)
            operands.append(tuple(numbers))
            key.append(current.op)
            if current.params:
                key.append(params_key(current.params))
            key += numbers
            current, rest, numbers, index = stack.pop()
            numbers.append(n + index)
    web.outputs = tuple(numbers)
    key.append(web.outputs)
    key += [x.node.types[x.index] for x in leaves]
    web.key = tuple(key)
    return web


# Ops of nodes without results that need a closer look.
_SPECIAL = frozenset({ALIAS, CONSTANT, INPUT})


def _is_leaf(node: Node, web: Web, lift_constants: bool) -> bool:
    """Whether the walk stops at a node that is special or holds results; notes what matters."""
    memo, op = node.memo, node.op
    if op is CONSTANT:
        if lift_constants and memo is None:
            object.__setattr__(node, "memo", (node.param("literal").array(),))
        return lift_constants
    if memo is None:
        if op is INPUT:
            web.foreign.append(node)
            return True
        if MARKS and node in MARKS:
            web.marks.add(node)
        return False
    if type(memo) is Marked:
        web.marks |= memo.marks & MARKS
    return True


def _result(base: int, index: int) -> int:
    """The number of a result of the node whose first result is number ``base``."""
    return base + index if base >= 0 else base - index


def params_key(params: Params) -> Any:
    """Params by type and bits where Python's equality would merge them (0.0 and -0.0)."""
    for _, value in params:
        kind = type(value)
        if kind is float or kind is complex:
            return static_key(params)
        if kind is Graph or (kind is tuple and value and type(value[0]) is Graph):
            return tuple([(name, param_key(value)) for name, value in params])
    return params


def single_key(node: Node, operands: Sequence[TensorType], sharing: Sequence[int]) -> Any:
    """The key :func:`close` gives a program of this one node, all of whose results are wanted."""
    outputs = _FIRST if len(node.types) == 1 else tuple(range(len(node.types)))
    if node.params:
        return (node.op, params_key(node.params), *sharing, outputs, *operands)
    return (node.op, *sharing, outputs, *operands)


_FIRST = (0,)


def graph_of(web: Web, names: Sequence[str] = (), title: str = "main") -> Graph:
    """The web as a graph: its leaves become inputs, called ``names`` and then ``c0, c1, ...``."""
    if not title.isidentifier():  # a lambda; graph text wants a word
        title = "main"
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
        rebuilt.append(Node(node.op, inner, node.params, node.types, node.place))
    return Graph(tuple(inputs), tuple([value(n) for n in web.outputs]), title)
