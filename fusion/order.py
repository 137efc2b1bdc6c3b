"""In which order values are computed, where some must wait.

An ``after`` node is its first operand, to be read when the others are there. Here such nodes go:
what read one reads the operand itself, and is remembered to wait.

Small programs are computed in the order of :func:`~..ir.graph.toposort`. In that order the gradient
of a weight comes when all others are done, and what it reads lies there until then. So for large
programs, and where something waits, a second order is drawn up that takes, of all that could be
computed next, what adds least to the memory in use; it is used if its peak is clearly lower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from ..autodiff.saving_network import bytes_of
from ..ir.graph import Graph, Node, Value, toposort
from ..ir.ops.checkpoint import AFTER
from ..ir.rewrite import rebuild

__all__ = ["Ordered", "Steps", "Waits", "draft_order", "latest", "order_of"]

# For each node that waits, the values it waits for.
Waits = Mapping[Node, "tuple[Value, ...]"]
# Bytes of all values of a program below which nobody asks for memory, and the part of the peak that
# must go for another order.
_LARGE = 1 << 22
_WORTH = 0.95

Realize = Callable[[Graph, Sequence[Node]], "Mapping[Value, str]"]


@dataclass(frozen=True, slots=True)
class Ordered:
    """A graph without ``after`` nodes, with the order of its nodes.

    Attributes
    ----------
    graph : Graph
    nodes : list of Node
        Operands first.
    waits : mapping
    """

    graph: Graph
    nodes: list[Node]
    waits: Waits = field(default_factory=dict)


def order_of(graph: Graph, realize: Realize) -> Ordered:
    """The graph to lower; ``realize(graph, nodes)`` tells which values get memory."""
    nodes = graph.nodes()
    if all(node.op is not AFTER for node in nodes):
        total = sum([bytes_of(t) for node in nodes for t in node.types])
        if total < _LARGE:
            return Ordered(graph, nodes)
    return draft_order(graph, realize)[0]


def draft_order(graph: Graph, realize: Realize) -> tuple[Ordered, Steps]:
    """The thriftier of both orders, whatever the size, and the steps it orders."""
    plain = _without(graph, graph.nodes())
    steps = Steps(plain, realize(plain.graph, plain.nodes))
    thrifty = steps.thrifty()
    if steps.peak(thrifty) > _WORTH * steps.peak(steps.order):
        return plain, steps
    placed: set[Node] = set(graph.inputs)
    order: list[Node] = []
    for step in thrifty:
        found = toposort(step.outputs, stop=placed)
        placed.update(found)
        order += found
    order += toposort(plain.graph.outputs, stop=placed)  # constants that are results
    return Ordered(plain.graph, order, plain.waits), steps


def latest(waits: Waits, nodes: Iterable[Node], home: Mapping[Node, int]) -> int:
    """The last home of what nodes wait for, or of what that is computed from; -1: of nothing."""
    stack = [x.node for node in nodes for x in waits.get(node, ())]
    seen = set(stack)
    last = -1
    while stack:
        node = stack.pop()
        place = home.get(node)
        if place is not None:
            last = max(last, place)
            continue
        for x in (*node.inputs, *waits.get(node, ())):
            if x.node not in seen:
                seen.add(x.node)
                stack.append(x.node)
    return last


def _without(graph: Graph, nodes: Sequence[Node]) -> Ordered:
    """The graph with the operands of ``after`` nodes in their place, its nodes in the same order.

    Nodes that read them are made anew: they are not the ones that were there before.
    """
    renewed: dict[Value, Value] = {}
    waiting: dict[Value, tuple[Value, ...]] = {}  # by the value of the after node
    order: list[Node] = []
    waits: dict[Node, tuple[Value, ...]] = {}
    for node in nodes:
        inputs = [renewed.get(x, x) for x in node.inputs]
        if node.op is AFTER:
            renewed[node.out] = inputs[0]
            waiting[node.out] = (*inputs[1:], *waiting.get(node.inputs[0], ()))
            continue
        new = rebuild(node, inputs)
        for old, value in zip(node.outputs, new.outputs, strict=True):
            if new is not node:
                renewed[old] = value
        awaited = [y for x in node.inputs for y in waiting.get(x, ())]
        if awaited:
            waits[new] = tuple(dict.fromkeys(awaited))
        order.append(new)
    outputs = tuple([renewed.get(x, x) for x in graph.outputs])
    return Ordered(Graph(graph.inputs, outputs, graph.name), order, waits)


class Steps:
    """The nodes whose results get memory, with what each reads and awaits."""

    def __init__(self, plain: Ordered, realized: Mapping[Value, str]) -> None:
        self.size: dict[Node, int] = {}
        for node in plain.nodes:
            if node.inputs and any(x in realized for x in node.outputs):
                self.size[node] = sum([bytes_of(t) for t in node.types])
        self.order = list(self.size)
        self.results = {x.node for x in plain.graph.outputs}
        self.reads: dict[Node, list[Node]] = {}
        self.needs: dict[Node, list[Node]] = {}
        # What a value that has no memory is computed from, and what that waits for.
        sources: dict[Node, tuple[frozenset[Node], frozenset[Node]]] = {}
        nothing: tuple[frozenset[Node], frozenset[Node]] = (frozenset(), frozenset())
        for node in plain.nodes:
            reads: set[Node] = set()
            awaits: set[Node] = set()
            for x in node.inputs:
                if x.node in self.size:
                    reads.add(x.node)
                else:
                    below = sources.get(x.node, nothing)
                    reads |= below[0]
                    awaits |= below[1]
            for x in plain.waits.get(node, ()):
                if x.node in self.size:
                    awaits.add(x.node)
                else:
                    awaits |= sources.get(x.node, nothing)[0]
            if node in self.size:
                self.reads[node] = list(reads)
                self.needs[node] = list(reads | awaits)
            else:
                sources[node] = (frozenset(reads), frozenset(awaits))
        self.readers = dict.fromkeys(self.order, 0)
        for step in self.order:
            for read in self.reads[step]:
                self.readers[read] += 1

    def _freed(self, step: Node, left: Mapping[Node, int]) -> int:
        """Bytes whose last reader a step is."""
        return sum(
            [self.size[x] for x in self.reads[step] if left[x] == 1 and x not in self.results]
        )

    def _in_use(self, order: Sequence[Node]) -> Iterator[int]:
        """Bytes in use while each step runs."""
        left = dict(self.readers)
        used = 0
        for step in order:
            used += self.size[step]
            yield used
            used -= self._freed(step, left)
            for x in self.reads[step]:
                left[x] -= 1

    def peak(self, order: Sequence[Node]) -> int:
        """Most bytes in use at one time."""
        return max(self._in_use(order), default=0)

    def fullest(self, order: Sequence[Node]) -> int:
        """The position of the first step during which so much is in use."""
        used = list(self._in_use(order))
        return used.index(max(used)) if used else 0

    def order_of(self, nodes: Sequence[Node]) -> list[Node]:
        """The steps among nodes."""
        return [node for node in nodes if node in self.size]

    def values_read(self, step: Node) -> list[Value]:
        """The values with memory that a step reads."""
        return [x for node in self.reads[step] for x in node.outputs]

    def thrifty(self) -> list[Node]:
        """The order that adds least at each step; of equals, the first in the program."""
        place = {step: k for k, step in enumerate(self.order)}
        users: dict[Node, list[Node]] = {step: [] for step in self.order}
        readers: dict[Node, list[Node]] = {step: [] for step in self.order}
        missing = {step: len(self.needs[step]) for step in self.order}
        for step in self.order:
            for x in self.needs[step]:
                users[x].append(step)
            for x in self.reads[step]:
                readers[x].append(step)
        left = dict(self.readers)
        # What a step adds only falls while it is ready: it is entered again when it does, and what
        # is left of its older entries comes up when it is done.
        ready: list[tuple[int, int]] = []
        done: set[Node] = set()
        order: list[Node] = []

        def enter(step: Node) -> None:
            heappush(ready, (self.size[step] - self._freed(step, left), place[step]))

        for step in self.order:
            if not missing[step]:
                enter(step)
        while ready:
            step = self.order[heappop(ready)[1]]
            if step in done:
                continue
            done.add(step)
            order.append(step)
            for x in self.reads[step]:
                left[x] -= 1
                if left[x] == 1:
                    last = next(reader for reader in readers[x] if reader not in done)
                    if not missing[last]:
                        enter(last)
            for user in users[step]:
                missing[user] -= 1
                if not missing[user]:
                    enter(user)
        return order
