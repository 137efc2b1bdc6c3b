"""Which values get memory, and why.

Everything that is not realized is recomputed where it is read, inside the loop that reads it. A
value gets a buffer when one of these rules asks for it; the reason is kept and shown in the text
of the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..ir.graph import Graph, Node, Op, Value
from .record import is_inlined_leaf

__all__ = [
    "Realization",
    "is_loop_dot",
    "is_product",
    "is_small_update",
    "native_scatter",
    "realize",
    "under_transposes",
    "weight",
    "weight_of",
]

# At most this many nodes are inlined into one value: bounds compile time and recursion.
MOST_INLINED = 160
# Work (in multiplications) above which a value is not recomputed for each element of a broadcast.
EXPENSIVE = 6

_CHEAP = frozenset(
    {
        "neg",
        "add",
        "sub",
        "mul",
        "abs",
        "sign",
        "signbit",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "convert",
        "where",
        "maximum",
        "minimum",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "and",
        "or",
        "xor",
        "not",
        "real",
        "imag",
        "complex",
        "conj",
        "alias",
        "stop_gradient",
        "copysign",
        "scale",
    }
)
_DIVISIONS = frozenset(
    {"div", "sqrt", "unscale", "rsqrt", "integer_power", "shift_left", "shift_right"}
)


def weight(node: Node) -> int:
    """Cost of one element, in multiplications: views 0, arithmetic 1, division 5, others 20."""
    return weight_of(node.op)


def weight_of(op: Op) -> int:
    """The same by op."""
    if op.kind != "elementwise":
        return 0
    if op.name in _CHEAP:
        return 1
    return 5 if op.name in _DIVISIONS else 20


def is_product(node: Node) -> bool:
    """Whether a contraction sums over one element at most: a product of two values."""
    return all(node.inputs[0].shape[d] == 1 for d in node.param("contract")[0])


def is_loop_dot(node: Node) -> bool:
    """Whether a contraction runs as our own loops: vectors, and element types without BLAS."""
    _, rows, _, columns = dot_sizes(node)
    return not node.types[0].dtype.is_inexact or rows == 1 or columns == 1


def is_small_update(node: Node) -> bool:
    """Whether writing a window beats choosing, for each element, between old and new."""
    x, update = node.inputs[:2]
    return x.size >= 1024 and 4 * update.size <= x.size


def native_scatter(node: Node) -> bool:
    """Whether a scatter has loops of its own.

    Bools merge by their NumPy reference, which also says what is wrong with updates of nothing.
    """
    if not node.types[0].size:
        return False
    return not node.types[0].dtype.is_bool or node.param("how") == "set"


def dot_sizes(node: Node) -> tuple[int, int, int, int]:
    """(batch, rows, inner, columns) of a contraction seen as matrix products."""
    x, y = node.inputs
    contract, batch = node.param("contract"), node.param("batch")
    free_x = [n for d, n in enumerate(x.shape) if d not in contract[0] and d not in batch[0]]
    free_y = [n for d, n in enumerate(y.shape) if d not in contract[1] and d not in batch[1]]
    return (
        prod(x.shape[d] for d in batch[0]),
        prod(free_x),
        prod(x.shape[d] for d in contract[0]),
        prod(free_y),
    )


def under_transposes(v: Value) -> Value:
    """``v`` without the transposes around it: strides for a matrix product, not a copy."""
    while v.node.op.name == "transpose":
        v = v.node.inputs[0]
    return v


class Realization:
    """The realized values of a graph in topological order, each with its reason."""

    def __init__(self) -> None:
        self.reasons: dict[Value, str] = {}

    def add(self, v: Value, reason: str) -> None:
        if v not in self.reasons and not is_inlined_leaf(v.node):
            self.reasons[v] = reason

    def __contains__(self, v: Value) -> bool:
        return v in self.reasons


def realize(graph: Graph, nodes: Sequence[Node], extra: dict[Value, str]) -> Realization:
    """Apply the rules; ``extra`` are values that a caller wants realized, with its reasons."""
    result = Realization()
    for node in graph.inputs:
        result.reasons[Value(node, 0)] = "input"
    for v in graph.outputs:
        result.reasons.setdefault(v, "output of the graph")
    for v, reason in extra.items():
        result.add(v, reason)
    for node in nodes:
        _by_kind(node, result)
    places = _places(nodes)
    inlined: dict[Node, frozenset[int]] = {}
    work: dict[Node, int] = {}
    for node in nodes:
        _by_size(node, result, inlined, work)
        if places.get(node, 0) > 1 and work[node] >= EXPENSIVE and node.op.kind == "elementwise":
            result.add(node.out, "expensive and read at several places")
    return result


def _places(nodes: Sequence[Node]) -> dict[Node, int]:
    """At how many places relative to its own index a value is read, as far as views tell."""
    direct: set[Node] = set()
    count: dict[Node, int] = {}
    for node in nodes:
        for v in node.inputs:
            if node.op.kind == "view" and node.op.name != "broadcast":
                count[v.node] = count.get(v.node, 0) + 1
            elif v.node not in direct:
                direct.add(v.node)
                count[v.node] = count.get(v.node, 0) + 1
    return count


def _by_kind(node: Node, result: Realization) -> None:
    kind, name = node.op.kind, node.op.name
    if kind == "elementwise" or name in ("input", "iota"):
        return
    if name == "constant":
        result.add(node.out, "constant array")
    elif name == "gather":
        result.add(node.inputs[0], "read at run-time indices")
    elif name == "dynamic_slice":
        result.add(node.inputs[0], "read from a run-time start")
    elif name == "dynamic_update_slice" and is_small_update(node):
        result.add(node.out, "a small window is written into it")
        result.add(node.inputs[0], "a small window is written into its copy or in place")
    elif name == "dynamic_update_slice":
        result.add(node.inputs[1], "read from a run-time start")
    elif kind == "reduction":
        result.add(node.out, "result of a reduction")
    elif kind == "cumulative" or (name == "scatter" and native_scatter(node)):
        result.add(node.out, f"result of {name}")
    elif name == "dot" and is_product(node):
        return  # an outer product is computed where it is read
    elif name == "dot" and is_loop_dot(node):
        result.add(node.out, "result of a contraction")
    elif kind != "view":
        for output in node.outputs:
            result.add(output, f"result of {name}")
        for v in node.inputs:
            base = under_transposes(v) if name == "dot" else v
            result.reasons.setdefault(base, f"operand of {name}")


def _repeated(node: Node) -> list[tuple[Value, int]]:
    """Operands of which each element is read several times, with the number of times."""
    if node.op.name == "broadcast":
        x = node.inputs[0]
        return [(x, node.types[0].size // max(x.size, 1))]
    if node.op.name == "dot":
        _, rows, _, columns = dot_sizes(node)
        return [(node.inputs[0], columns), (node.inputs[1], rows)]
    return []


def _by_size(
    node: Node, result: Realization, inlined: dict[Node, frozenset[int]], work: dict[Node, int]
) -> None:
    """Bound what is inlined, and do not repeat expensive work along a broadcast axis.

    ``inlined`` holds a number for each node below at each place where it is read: a node under two
    different views counts twice, since it is computed twice.
    """

    def below(v: Value) -> frozenset[int]:
        if v in result:
            return frozenset()
        found = inlined.get(v.node, frozenset())
        if node.op.kind == "elementwise":
            return found
        return frozenset([hash((number, id(node))) for number in found])

    for x, times in _repeated(node):
        if x not in result and x.size > 1 and times > 1 and work.get(x.node, 0) >= EXPENSIVE:
            result.add(x, "expensive and repeated along an axis")
    merged = frozenset().union(*(below(v) for v in node.inputs)) if node.inputs else frozenset()
    while len(merged) >= MOST_INLINED:
        largest = max(
            (v for v in node.inputs if v not in result), key=lambda v: len(below(v)), default=None
        )
        if largest is None:
            break
        result.add(largest, f"more than {MOST_INLINED} operations in one expression")
        merged = frozenset().union(*(below(v) for v in node.inputs))
    inlined[node] = merged | {id(node)}
    work[node] = weight(node) + sum(
        0 if v in result else min(work.get(v.node, 0), 10_000) for v in node.inputs
    )
