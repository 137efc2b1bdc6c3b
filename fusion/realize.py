"""Which values get memory, and why.

Everything that is not realized is recomputed where it is read, inside the loop that reads it. A
value gets a buffer when one of these rules asks for it; the reason is kept and shown in the text
of the schedule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from math import prod

from ..ir.graph import Graph, Node, Op, Value
from .record import is_inlined_leaf

__all__ = [
    "Facts",
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
        "gap",
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
    """Whether a contraction runs as our own loops: vectors, integers and bools."""
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
        # Their nodes: of several results all are realized or none.
        self.nodes: set[Node] = set()

    def add(self, v: Value, reason: str) -> None:
        """Realize a value unless it is a leaf without memory."""
        if v not in self.reasons and not is_inlined_leaf(v.node):
            self.ask(v, reason)

    def ask(self, v: Value, reason: str) -> None:
        """Realize a value, whatever it is; the first reason counts."""
        self.reasons.setdefault(v, reason)
        self.nodes.add(v.node)

    def __contains__(self, v: Value) -> bool:
        return v in self.reasons


class Facts:
    """What realization asks of a graph again and again, and what does not depend on the round.

    Attributes
    ----------
    sources : dict of Node to tuple of Node
        The nodes that each node reads.
    rows : list
        For each node itself, whether it moves elements (is not elementwise), its weight, and the
        number that stands for its place.
    """

    def __init__(self, graph: Graph, nodes: Sequence[Node]) -> None:
        self.sources: dict[Node, tuple[Node, ...]] = {}
        self.rows: list[tuple[Node, bool, int, int]] = []
        self._fixed = Realization()
        for node in graph.inputs:
            self._fixed.ask(Value(node), "input")
        for v in graph.outputs:
            self._fixed.ask(v, "output of the graph")
        for node in nodes:
            moves = node.op.kind != "elementwise"
            # Well mixed: places are told apart by the numbers on the way.
            self.rows.append((node, moves, weight_of(node.op), hash((id(node),))))
            self.sources[node] = tuple([v.node for v in node.inputs])
            if moves:
                _by_kind(node, self._fixed)
        self.places = _places(nodes, self.sources)

    def fixed(self) -> Realization:
        """What is realized in every round."""
        found = Realization()
        found.reasons.update(self._fixed.reasons)
        found.nodes.update(self._fixed.nodes)
        return found


def realize(
    graph: Graph, nodes: Sequence[Node], extra: dict[Value, str], facts: Facts | None = None
) -> Realization:
    """Apply the rules; ``extra`` are values that a caller wants realized, with its reasons."""
    if facts is None:
        facts = Facts(graph, nodes)
    result = facts.fixed()
    for v, reason in extra.items():
        result.add(v, reason)
    inlined: dict[Node, frozenset[int]] = {}
    work: dict[Node, int] = {}
    places, sources = facts.places, facts.sources
    for node, moves, own, place in facts.rows:
        effort = own + _by_size(node, sources[node], moves, place, result, inlined, work)
        work[node] = effort
        if not moves and effort >= EXPENSIVE and places.get(node, 0) > 1:
            result.add(node.out, "expensive and read at several places")
    return result


def _places(nodes: Sequence[Node], sources: Mapping[Node, tuple[Node, ...]]) -> dict[Node, int]:
    """At how many places relative to its own index a value is read, as far as views tell."""
    direct: set[Node] = set()
    count: dict[Node, int] = {}
    for node in nodes:
        op = node.op
        if op.kind == "view" and op.name != "broadcast":
            for source in sources[node]:
                count[source] = count.get(source, 0) + 1
        else:
            direct.update(sources[node])
    for read in direct:
        count[read] = count.get(read, 0) + 1
    return count


def _by_kind(node: Node, result: Realization) -> None:
    kind, name = node.op.kind, node.op.name
    if name in ("input", "iota"):
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
            result.ask(base, f"operand of {name}")


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
    node: Node,
    sources: tuple[Node, ...],
    moves: bool,
    place: int,
    result: Realization,
    inlined: dict[Node, frozenset[int]],
    work: dict[Node, int],
) -> int:
    """Bound what is inlined, and do not repeat expensive work along a broadcast axis.

    ``inlined`` holds a number for each node below at each place where it is read: a node under two
    different views counts twice, since it is computed twice. Returns the work that goes into one
    element of the operands.
    """
    stored = result.nodes
    if moves:
        for x, times in _repeated(node):
            if x not in result and x.size > 1 and times > 1 and work.get(x.node, 0) >= EXPENSIVE:
                result.add(x, "expensive and repeated along an axis")
    merged = _merged([inlined[n] for n in sources if n not in stored])
    if len(merged) >= MOST_INLINED:
        _store_largest(node, sources, result, inlined)
        merged = _merged([inlined[n] for n in sources if n not in stored])
    if moves:  # read through a view, which gives new places
        merged = frozenset([number ^ place for number in merged])
    total = 0
    for n in sources:
        if n not in stored:
            total += min(work[n], 10_000)
    if node not in stored:
        inlined[node] = merged | {place}
    return total


_NOTHING: frozenset[int] = frozenset()


def _merged(below: Sequence[frozenset[int]]) -> frozenset[int]:
    """What is inlined in all operands."""
    if not below:
        return _NOTHING
    return below[0].union(*below[1:]) if len(below) > 1 else below[0]


def _store_largest(
    node: Node,
    sources: tuple[Node, ...],
    result: Realization,
    inlined: Mapping[Node, frozenset[int]],
) -> None:
    """Realize operands, the largest first, until the rest is small enough.

    Counted, not merged anew for each one: a concatenation may have thousands of operands.
    """
    below = [n for n in sources if n not in result.nodes]
    times = Counter(below)
    left = Counter(chain.from_iterable([inlined[n] for n in below]))
    operands = [v for v in node.inputs if v.node in times]
    for v in sorted(operands, key=lambda v: -len(inlined[v.node])):
        if len(left) < MOST_INLINED or is_inlined_leaf(v.node):
            return
        count = times.pop(v.node, 0)
        if not count:  # the same node again
            continue
        result.add(v, f"more than {MOST_INLINED} operations in one expression")
        for number in inlined[v.node]:
            left[number] -= count
            if not left[number]:
                del left[number]
