"""Which values the forward part keeps for the backward part: a minimum cut.

The *known* part of a differentiated program does not depend on its linear inputs; the *linear* part
reads some of its values. Each of those is either saved or computed again from what is saved. The
cheapest choice, with saved bytes as the cost, is a least vertex cut of the known part between the
values that must not be computed again and the values that are read (row by row as in PyTorch 2's
partitioner, Horace He, "Min-cut optimal recomputation", 2022): each path between them meets a saved
value.

**Must not be computed again** is what is not cheap (matrix products, library work, regions), what
the backward part would have to write to memory anyhow, and reductions that give little for what
they read. **Capacity** of a value is ``bytes * 1.1**d``, doubled where saving it takes a write that
the forward part does not do anyhow; ``d`` (1 to 100) are the steps to its first backward reader, so
that what lives long is rather computed again. No finite cut: everything that is read is saved.

With a byte budget nothing is forbidden but has a price, the work to do it again: the least
``bytes + price * work`` is a minimum cut too, and the price goes down until the bytes fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from ..ir.graph import Node, Value, toposort
from ..ir.ops.leaves import CONSTANT, IOTA
from ..ir.scalar.handlers.count import cost
from ..ir.types import GROWING, TensorType
from .minimum_cut import Cut, vertex_cut
from .nested_segments import BudgetError

__all__ = ["Partition", "Row", "partition", "reads_of", "work_of"]

# Ops whose results loops compute where they are read.
_FUSED = frozenset({"elementwise", "view"})
# Ops that read what loops compute without asking for memory.
_FUSING = frozenset({"elementwise", "view", "reduction"})

# Steps after which a chain of fused operations is saved once: recomputing does not drag in all of
# it. Steps of work that are no loops, between two readers, after which a value is saved.
LONGEST_CHAIN = 64
FAR = 2

_LIFETIME = 1.1
_FARTHEST = 100


@dataclass(frozen=True, slots=True)
class Row:
    """A value of the known part as the partition sees it.

    Attributes
    ----------
    value : Value
    capacity : int
        What saving it costs: bytes weighted by lifetime and by the write.
    distance : int
        Forward steps to the first backward reader, 1 to 100.
    written : bool
        Whether the forward part has it in memory anyhow.
    read : bool
        Whether the backward part reads it.
    reason : str
        Why it must not be computed again; empty if it may.
    saved : bool
    """

    value: Value
    capacity: int
    distance: int
    written: bool
    read: bool
    reason: str
    saved: bool


@dataclass(frozen=True, slots=True)
class Partition:
    """What crosses from the forward to the backward part.

    Attributes
    ----------
    saved : tuple of Value
        In topological order.
    recomputed : tuple of Node
        What the backward part computes again, operands first.
    capacity : int or None
        Of the cut; None if there is no finite one and all that is read is saved.
    rows : tuple of Row
        One a value of the known part, in topological order.
    """

    saved: tuple[Value, ...]
    recomputed: tuple[Node, ...]
    capacity: int | None
    rows: tuple[Row, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the saved values."""
        return sum([x.type.nbytes for x in self.saved])


def reads_of(linear: Iterable[tuple[Node, Sequence[bool]]]) -> list[Value]:
    """The known operands of linear nodes, each once; flags tell which operands are linear."""
    reads: dict[Value, None] = {}
    for node, flags in linear:
        for x, is_linear in zip(node.inputs, flags, strict=True):
            if not is_linear and not is_plain(x.node):
                reads[x] = None
    return list(reads)


def partition(
    outputs: Sequence[Value],
    linear: Sequence[tuple[Node, Sequence[bool]]],
    given: Collection[Value] = (),
    *,
    budget: int | None = None,
    unsaveable: Callable[[Value], bool] = lambda x: False,
) -> Partition:
    """Split a program between its known and its linear part.

    Parameters
    ----------
    outputs : sequence of Value
        Results of the known part.
    linear : sequence of (Node, flags)
        The linear nodes in topological order, with a flag an operand that is linear; the others are
        read from the known part.
    given : collection of Value
        Known values that are there in any case and cost nothing: arguments of a straight program;
        constants and sequences of a loop, but not its carry.
    budget : int, optional
        Most bytes to save. The work to be done again is then as small as the price finds; nothing
        but the roots (known values that are computed from nothing: a carry) is forbidden.
    unsaveable : callable
        ``unsaveable(value)``: it cannot be saved whatever it costs.

    Raises
    ------
    BudgetError
        If the least that can be saved is more than the budget.

    Notes
    -----
    O(V^2 E) at worst for the flow, in practice near linear. A budget takes some thirty cuts.
    """
    given = frozenset(given)
    reads = [x for x in reads_of(linear) if x not in given]
    known = _known(outputs, reads, given)
    network = _Network(outputs, linear, known, reads, given)
    if budget is None:
        capacities = [None if unsaveable(x) else network.capacity(x) for x in network.values]
        cut = vertex_cut(capacities, network.edges, network.forbidden, network.sinks)
    else:
        cut = _within(network, budget, unsaveable)
    saved = reads if cut is None else [network.values[k] for k in cut.vertices]
    order = {x: k for k, x in enumerate(network.values)}
    saved = sorted(saved, key=order.__getitem__)
    return Partition(
        tuple(saved),
        tuple(_between(reads, saved, given)),
        None if cut is None else cut.capacity,
        network.rows(frozenset(saved)),
    )


def is_plain(node: Node) -> bool:
    """Whether a node costs neither memory nor work: constants, iotas and their broadcasts."""
    while node.op.name == "broadcast":
        node = node.inputs[0].node
    return node.op is CONSTANT or node.op is IOTA


def _known(
    outputs: Sequence[Value], reads: Sequence[Value], given: Collection[Value]
) -> list[Node]:
    """Nodes behind the results and the reads, but for what is given whole."""
    stop = [x.node for x in given if all(y in given for y in x.node.outputs)]
    order = toposort([x for x in (*outputs, *reads) if x not in given], stop=stop)
    return [node for node in order if not is_plain(node)]


def _between(
    reads: Sequence[Value], saved: Sequence[Value], given: Collection[Value]
) -> list[Node]:
    """What is computed again to have ``reads`` where ``saved`` and ``given`` are there."""
    there = {*saved, *given}
    found: dict[Node, None] = {}
    todo = [x for x in reads if x not in there]
    while todo:
        node = todo.pop().node
        if node not in found:
            found[node] = None
            todo += [x for x in node.inputs if x not in there]
    return [n for n in toposort([x for x in reads if x not in there]) if n in found]


class _Network:
    """The known values as vertices, with all that decides what is saved."""

    def __init__(
        self,
        outputs: Sequence[Value],
        linear: Sequence[tuple[Node, Sequence[bool]]],
        known: Sequence[Node],
        reads: Sequence[Value],
        given: Collection[Value],
    ) -> None:
        self.nodes = known
        self.values = [x for node in known for x in node.outputs if x not in given]
        self.number = {x: k for k, x in enumerate(self.values)}
        self.edges = [
            (self.number[x], self.number[y])
            for node in known
            for x in node.inputs
            if x in self.number
            for y in node.outputs
            if y in self.number
        ]
        self.reads = frozenset(reads)
        self.sinks = [self.number[x] for x in reads]
        self.readers: dict[Value, list[Node]] = {}
        for node in known:
            for x in dict.fromkeys(node.inputs):
                self.readers.setdefault(x, []).append(node)
        self.backward: dict[Value, list[Node]] = {}
        for node, flags in linear:
            for x, is_linear in zip(node.inputs, flags, strict=True):
                if not is_linear:
                    self.backward.setdefault(x, []).append(node)
        self.outputs = frozenset(outputs)
        self.distance = self._distances()
        self.reason = self._reasons()
        self.forbidden = [self.number[x] for x in self.reason if x in self.number]

    def _distances(self) -> dict[Value, int]:
        """Steps to the first backward reader, at most 100.

        What is fused is one step: a loop that computes a value again reads what the first did.
        """
        found: dict[Value, int] = {}
        for node in reversed(self.nodes):
            for x in node.outputs:
                steps = 1 if x in self.backward else _FARTHEST
                for reader in self.readers.get(x, ()):
                    step = reader.op.kind not in _FUSED
                    steps = min([steps, *[found.get(y, _FARTHEST) + step for y in reader.outputs]])
                found[x] = steps
        return found

    def is_written(self, x: Value) -> bool:
        """Whether the forward part has the value in memory, saved or not."""
        if x.node.op.kind not in _FUSED or x in self.outputs:
            return True
        return any(reader.op.kind not in _FUSING for reader in self.readers.get(x, ()))

    def capacity(self, x: Value) -> int:
        factor = 1 if self.is_written(x) else 2
        return int(factor * _nbytes(x.type) * _LIFETIME ** self.distance[x])

    def _reasons(self) -> dict[Value, str]:
        """Why a value must not be computed again, for each that must not."""
        found: dict[Value, str] = {}
        chain: dict[Node, int] = {}
        epoch: dict[Node, int] = {}
        passed = 0  # nodes so far that are no loops
        for node in self.nodes:
            kind = node.op.kind
            passed += kind not in _FUSING
            epoch[node] = passed
        for node in self.nodes:
            if any(t.shape[:1] == (GROWING,) for t in node.types):
                continue  # a tape is for one reader: whoever needs it later runs the loop again
            why = self._why_not(node)
            below = [chain.get(x.node, 0) for x in node.inputs if x not in found]
            chain[node] = max(below, default=0) + 1
            if not why and chain[node] > LONGEST_CHAIN:
                why, chain[node] = f"end of a chain of {LONGEST_CHAIN} fused operations", 0
            for x in node.outputs:
                reason = why or self._written_backward(x) or self._read_far(x, epoch)
                if reason:
                    found[x] = reason
        return found

    def _why_not(self, node: Node) -> str:
        if not node.inputs:
            return "computed from nothing"
        kind = node.op.kind
        if kind == "reduction":
            small = 4 * sum(map(_nbytes, node.types)) < sum(_nbytes(x.type) for x in node.inputs)
            return "a reduction: reads much, gives little" if small else ""
        return "" if kind in _FUSED else f"{node.op.name} is not cheap"

    def _written_backward(self, x: Value) -> str:
        for reader in self.backward.get(x, ()):
            if reader.op.kind not in _FUSING:
                return f"the backward part would write it to memory for {reader.op.name}"
        return ""

    def _read_far(self, x: Value, epoch: dict[Node, int]) -> str:
        at = [epoch[reader] for reader in self.readers.get(x, ())]
        if len(at) > 1 and min(at) == epoch[x.node] and max(at) - min(at) >= FAR:
            return "read nearby and far away"
        return ""

    def rows(self, saved: Collection[Value]) -> tuple[Row, ...]:
        return tuple(
            [
                Row(
                    x,
                    self.capacity(x),
                    min(self.distance[x], _FARTHEST),
                    self.is_written(x),
                    x in self.reads,
                    self.reason.get(x, ""),
                    x in saved,
                )
                for x in self.values
            ]
        )


# ------------------------------------------------------------------------------- with a budget


def _within(network: _Network, budget: int, unsaveable: Callable[[Value], bool]) -> Cut | None:
    """The cut of least work among those the price can find whose bytes are within the budget.

    The bytes saved do not grow as the price of work falls (the two are the sides of a parametric
    minimum cut), so the price is bisected, in powers of two and then between two of them.
    """
    bytes_of = [_nbytes(x.type) for x in network.values]
    roots = [k for k, x in enumerate(network.values) if not x.node.inputs]
    # Several results of one node share its work.
    work = [work_of(x.node) // len(x.node.types) + 1 for x in network.values]

    def cut(price: int) -> Cut | None:
        """With a byte as ``2**_FINEST`` and a unit of work as ``price``."""
        capacities = [
            None if unsaveable(x) else size << _FINEST
            for x, size in zip(network.values, bytes_of, strict=True)
        ]
        return vertex_cut(
            capacities, network.edges, roots, network.sinks, [price * w for w in work]
        )

    def fits(found: Cut | None) -> bool:
        return found is not None and sum([bytes_of[k] for k in found.vertices]) <= budget

    low, high = 0, 1 << (2 * _FINEST)
    best = cut(low)
    if best is None:
        return None
    if not fits(best):
        least = sum([bytes_of[k] for k in best.vertices])
        raise BudgetError(
            f"checkpoint: expected a budget of {least} bytes at least for the values that the "
            f"backward part needs and cannot compute again, got {budget}",
            least,
        )
    full = cut(high)
    if fits(full):
        return full
    while high - low > 1 and (low == 0 or high / low > 1.02):
        # In the logarithm first: prices of interest spread over many magnitudes.
        middle = (
            max(low + 1, int((max(low, 1) * high) ** 0.5))
            if high > 2 * low + 2
            else ((low + high) // 2)
        )
        found = cut(middle)
        if fits(found):
            low, best = middle, found
        else:
            high = middle
    return best


_FINEST = 20


def _nbytes(t: TensorType) -> int:
    """Bytes; a tape's unknown extent counts as one."""
    return prod([abs(n) for n in t.shape]) * t.dtype.itemsize


_COSTS: dict[tuple[str, object], float] = {}


def work_of(node: Node) -> int:
    """Roughly what computing a node takes, in additions."""
    kind, size = node.op.kind, max([prod([abs(n) for n in t.shape]) for t in node.types])
    if kind == "view":
        return 0
    if kind == "elementwise":
        return int(size * _element_cost(node))
    read = sum([prod([abs(n) for n in x.shape]) for x in node.inputs])
    if node.op.name == "dot":
        x = node.inputs[0]
        return 2 * size * prod([x.shape[d] for d in node.param("contract")[0]])
    if kind == "linalg":
        n = max([x.shape[-1] for x in node.inputs if x.ndim], default=1)
        return 10 * read * n
    return 100 * (read + size) if kind in ("region", "sort") else read + size


def _element_cost(node: Node) -> float:
    """Additions for one element, by the scalar program."""
    op, dtype = node.op, node.inputs[0].dtype
    if op.scalar is None or dtype.is_complex:
        return 4.0
    key = (op.name, tuple([x.dtype for x in node.inputs]))
    found = _COSTS.get(key)
    if found is None:
        program, params = op.scalar, dict(node.params)
        found = cost(
            lambda h, *operands: program(h, *operands, **params), *[x.dtype for x in node.inputs]
        )
    return found
