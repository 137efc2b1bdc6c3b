"""The network whose minimum cut is what to save: vertices, capacities, and what is forbidden.

See :mod:`.rematerialize` for the meaning of each; here they are computed from the ops of a program.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from ..ir.graph import Node, Value
from ..ir.ops.leaves import CONSTANT, IOTA
from ..ir.scalar.handlers.count import cost
from ..ir.types import GROWING, TensorType

__all__ = ["Linear", "Network", "Row", "bytes_of", "is_plain", "work_of"]

# Linear nodes in topological order, with a flag an operand that is linear.
Linear = Sequence[tuple[Node, Sequence[bool]]]

# Steps after which a chain of fused operations is saved once: recomputing does not drag in all of
# it. Steps of work that are no loops, between two readers, after which a value is saved.
LONGEST_CHAIN = 64
FAR = 2

LIFETIME = 1.1
FARTHEST = 100


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


def is_plain(node: Node) -> bool:
    """Whether a node costs neither memory nor work: constants, iotas and their broadcasts."""
    while node.op.name == "broadcast":
        node = node.inputs[0].node
    return node.op is CONSTANT or node.op is IOTA


def bytes_of(t: TensorType) -> int:
    """Bytes; a tape's unknown extent counts as one."""
    return elements_of(t) * t.dtype.itemsize


def elements_of(t: TensorType) -> int:
    return prod([abs(n) for n in t.shape])


def is_fused(node: Node) -> bool:
    """Whether loops compute the results where they are read."""
    return node.op.kind in ("elementwise", "view") or node.op.name == "custom_call"


def is_fusing(node: Node) -> bool:
    """Whether a node reads what loops compute without asking for memory."""
    return is_fused(node) or node.op.kind == "reduction"


class Network:
    """The known values as vertices, with all that decides what is saved.

    Attributes
    ----------
    values : list of Value
        The vertices, in topological order.
    edges : list of (int, int)
        Operand and result.
    sinks : list of int
        What the backward part reads.
    forbidden : list of int
        What must not be computed again.
    """

    def __init__(
        self,
        outputs: Sequence[Value],
        linear: Linear,
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
                steps = 1 if x in self.backward else FARTHEST
                for reader in self.readers.get(x, ()):
                    step = not is_fused(reader)
                    steps = min([steps, *[found.get(y, FARTHEST) + step for y in reader.outputs]])
                found[x] = steps
        return found

    def is_written(self, x: Value) -> bool:
        """Whether the forward part has the value in memory, saved or not."""
        if not is_fused(x.node) or x in self.outputs:
            return True
        return not all(is_fusing(reader) for reader in self.readers.get(x, ()))

    def capacity(self, x: Value) -> int:
        """What saving a value costs."""
        factor = 1 if self.is_written(x) else 2
        return int(factor * bytes_of(x.type) * LIFETIME ** self.distance[x])

    def rows(self, saved: Collection[Value]) -> tuple[Row, ...]:
        """All that is known of each value."""
        return tuple(
            [
                Row(
                    x,
                    self.capacity(x),
                    self.distance[x],
                    self.is_written(x),
                    x in self.reads,
                    self.reason.get(x, ""),
                    x in saved,
                )
                for x in self.values
            ]
        )

    # ------------------------------------------------------------------------- what is forbidden

    def _reasons(self) -> dict[Value, str]:
        """Why a value must not be computed again, for each that must not."""
        found: dict[Value, str] = {}
        chain: dict[Node, int] = {}
        epoch: dict[Node, int] = {}
        passed = 0  # nodes so far that are no loops
        for node in self.nodes:
            passed += not is_fusing(node)
            epoch[node] = passed
        for node in self.nodes:
            if any(t.shape[:1] == (GROWING,) for t in node.types):
                continue  # a tape is for one reader: whoever needs it later runs the loop again
            why = _why_not(node)
            below = [chain.get(x.node, 0) for x in node.inputs if x not in found]
            chain[node] = max(below, default=0) + 1
            if not why and chain[node] > LONGEST_CHAIN:
                why = f"end of a chain of {LONGEST_CHAIN} fused operations"
            for x in node.outputs:
                reason = why or self._written_backward(x) or self._read_far(x, epoch)
                if reason:
                    found[x] = reason
        return found

    def _written_backward(self, x: Value) -> str:
        for reader in self.backward.get(x, ()):
            if not is_fusing(reader):
                return f"the backward part would write it to memory for {reader.op.name}"
        return ""

    def _read_far(self, x: Value, epoch: dict[Node, int]) -> str:
        at = [epoch[reader] for reader in self.readers.get(x, ())]
        if len(at) > 1 and min(at) == epoch[x.node] and max(at) - min(at) >= FAR:
            return "read nearby and far away"
        return ""


def _why_not(node: Node) -> str:
    """Why a node must not be computed again, by its op."""
    if not node.inputs:
        return "computed from nothing"
    if node.op.kind == "reduction":
        small = 4 * sum(map(bytes_of, node.types)) < sum([bytes_of(x.type) for x in node.inputs])
        return "a reduction: reads much, gives little" if small else ""
    return "" if is_fused(node) else f"{node.op.name} is not cheap"


# ---------------------------------------------------------------------------------------- work


def work_of(node: Node) -> int:
    """Roughly what computing a node takes, in additions."""
    kind, size = node.op.kind, max([elements_of(t) for t in node.types])
    if kind == "elementwise":
        return int(size * _element_cost(node))
    if is_fused(node):
        return 0
    read = sum([elements_of(x.type) for x in node.inputs])
    if node.op.name == "dot":
        x = node.inputs[0]
        contract: tuple[int, ...] = node.param("contract")[0]
        return 2 * size * prod([x.shape[d] for d in contract])
    if kind == "linalg":
        return 10 * read * max([x.shape[-1] for x in node.inputs if x.ndim], default=1)
    return 100 * (read + size) if kind in ("region", "custom", "host", "sort") else read + size


def _element_cost(node: Node) -> float:
    """Additions for one element, by the scalar program."""
    program, params = node.op.scalar, dict(node.params)
    if program is None or node.inputs[0].dtype.is_complex:
        return 4.0
    return cost(
        lambda h, *operands: program(h, *operands, **params), *[x.dtype for x in node.inputs]
    )
