"""Fitting a program into a byte budget by computing again what would be held for long.

Where the most is held, the program is cut in two: what is computed before and read after is saved
or computed again, just before its first late reader, of what is saved. The choice is a minimum cut
with a price on work (:mod:`..autodiff.rematerialize`), for several bounds on the saved bytes; of
the programs that result, the one with the least work is taken whose memory, as scheduled, is within
the budget. If none is, the best one is cut again at its new peak. Any straight program will do:
nothing here knows of derivatives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..autodiff.rematerialize import Partition, partition
from ..autodiff.saving_network import bytes_of, is_plain, work_of
from ..ir.errors import BudgetError
from ..ir.graph import Graph, Node, Value
from ..ir.ops.checkpoint import after
from ..ir.rewrite import rebuild
from .lower import lower
from .memory import plan_memory
from .order import draft_order
from .realize import realize

__all__ = ["fit", "memory_of"]

# Bounds on what is saved that are tried, and programs that are scheduled to measure them.
_BOUNDS = 12
_MEASURED = 4
_ROUNDS = 4


def memory_of(graph: Graph) -> int:
    """Bytes of arguments, results and temporaries of the program as scheduled."""
    schedule = lower(graph)
    held = sum([b.nbytes for b in schedule.buffers if b.kind in ("input", "output")])
    return plan_memory(schedule).size + held


def fit(graph: Graph, budget: int, title: str = "") -> Graph:
    """``graph``, or one that computes the same bits within ``budget`` bytes.

    Parameters
    ----------
    graph : Graph
        Closed and optimized.
    budget : int
        For arguments, results and temporaries together.
    title : str
        For the message.

    Raises
    ------
    BudgetError
        If no program that was tried fits. ``needed`` is the least memory of those.
    """
    least = memory_of(graph)
    if least <= budget or not graph.outputs:
        return graph
    graph = _thriftily(graph)
    for _ in range(_ROUNDS):
        held = memory_of(graph)
        least = min(least, held)
        if held <= budget:
            return graph
        found = _fitted(graph, budget, held)
        if found is None:
            break
        graph = found.graph
    raise BudgetError(
        f"{title}: expected a memory_budget of {least} bytes at least, got {budget}; arguments and "
        f"results alone take {_fixed(graph)}",
        least,
    )


def _thriftily(graph: Graph) -> Graph:
    """The same program in the thriftier order: one with a value that waits, for nothing."""
    first, *rest = graph.outputs
    return Graph(graph.inputs, (after(first, []), *rest), graph.name)


def _fixed(graph: Graph) -> int:
    results = {x for x in graph.outputs if x.node not in graph.inputs}
    return sum([bytes_of(x.type) for x in (*results, *[n.out for n in graph.inputs])])


@dataclass(frozen=True, slots=True)
class _Candidate:
    graph: Graph
    work: int
    memory: int


def _fitted(graph: Graph, budget: int, above: int) -> _Candidate | None:
    """The best program by one cut; None if none holds less than ``above``."""
    cut = _Cut(graph)
    drafts: dict[tuple[Value, ...], _Candidate] = {}
    for k in range(_BOUNDS):
        try:
            parts = cut.partition(cut.reach * k // (_BOUNDS - 1))
        except BudgetError:
            continue
        if parts.saved not in drafts:
            new = cut.rewritten(parts)
            work = sum([work_of(node) for node in parts.recomputed])
            drafts[parts.saved] = _Candidate(new, work, _estimate(new))
    # The estimate ranks them; those that seem to fit are measured, least work first.
    slack = above - _estimate(graph)
    likely = sorted(
        drafts.values(), key=lambda c: (max(c.memory + slack - budget, 0), c.work, c.memory)
    )
    best: _Candidate | None = None
    for draft in likely[:_MEASURED]:
        found = _Candidate(draft.graph, draft.work, memory_of(draft.graph))
        if found.memory <= budget:
            return found
        if found.memory < (above if best is None else best.memory):
            best = found
    return best


def _reasons(graph: Graph, nodes: Sequence[Node]) -> Mapping[Value, str]:
    return realize(graph, nodes, {}).reasons


def _estimate(graph: Graph) -> int:
    """Memory by the values that are realized, without tiles or places."""
    ordered, steps = draft_order(graph, _reasons)
    return steps.peak(steps.order_of(ordered.nodes)) + _fixed(graph)


class _Cut:
    """A program cut at its peak."""

    def __init__(self, graph: Graph) -> None:
        self.ordered, steps = draft_order(graph, _reasons)
        self.graph = self.ordered.graph
        nodes = self.ordered.nodes
        place = {node: k for k, node in enumerate(nodes)}
        order = steps.order_of(nodes)
        at = steps.fullest(order)
        middle = place[order[at]] if order else 0
        self.middle = nodes[middle].out if nodes else None
        self.early = {node for node in nodes[: middle + 1] if not is_plain(node)}
        self.late = nodes[middle + 1 :]
        # What the next steps read is at work, not waiting.
        at_work = [x for step in order[at : at + 2] for x in steps.values_read(step)]
        given = {*[n.out for n in graph.inputs], *self.graph.outputs, *at_work}
        self.given = {x for x in given if x.node in self.early or not x.node.inputs}
        self.linear = [(n, [x.node not in self.early for x in n.inputs]) for n in self.late]
        crossing = {
            x
            for node, flags in self.linear
            for x, is_late in zip(node.inputs, flags, strict=True)
            if not is_late and x not in self.given
        }
        self.reach = sum([bytes_of(x.type) for x in crossing])

    def partition(self, bound: int) -> Partition:
        """What to save of the values that cross, in so many bytes."""
        results = [x for x in self.graph.outputs if x.node in self.early]
        return partition(results, self.linear, self.given, budget=bound)

    def rewritten(self, parts: Partition) -> Graph:
        """The program that computes again what is not saved."""
        there = {*parts.saved, *self.given}
        renewed: dict[Value, Value] = {}
        again: dict[Value, Value] = {}
        waits = self.ordered.waits

        def operand(x: Value) -> Value:
            return renewed.get(x, x)

        def waiting(node: Node, inputs: list[Value]) -> list[Value]:
            awaited = waits.get(node)
            if awaited is None:
                return inputs
            return [after(x, [operand(y) for y in awaited]) for x in inputs]

        for node in self.ordered.nodes:
            if node in self.early or is_plain(node):
                new = rebuild(node, waiting(node, [operand(x) for x in node.inputs]))
            else:
                tokens = [operand(x) for x in node.inputs if x.node not in self.early]
                tokens = [x for x in tokens if not is_plain(x.node) and x.node.inputs]
                if not tokens and self.middle is not None:
                    tokens = [operand(self.middle)]
                inputs = []
                for x in node.inputs:
                    if x.node in self.early and x not in there:
                        _compute_again(x, there, again, renewed, tokens)
                        inputs.append(again[x])
                    else:
                        inputs.append(operand(x))
                new = rebuild(node, waiting(node, inputs))
            if new is not node:
                renewed.update(zip(node.outputs, new.outputs, strict=True))
        outputs = tuple([operand(x) for x in self.graph.outputs])
        return _thriftily(Graph(self.graph.inputs, outputs, self.graph.name))


def _compute_again(
    x: Value,
    there: Collection[Value],
    again: dict[Value, Value],
    renewed: Mapping[Value, Value],
    tokens: Sequence[Value],
) -> None:
    """Enter ``x``, and what it takes that is not there, into ``again``; all of it waits."""
    stack = [x]
    while stack:
        v = stack[-1]
        if v in again:
            stack.pop()
            continue
        missing = [
            y
            for y in v.node.inputs
            if y not in there and y not in again and y.node.inputs and not is_plain(y.node)
        ]
        if missing:
            stack += missing
            continue
        inputs = [
            again[y]
            if y in again
            else renewed.get(y, y)
            if is_plain(y.node)
            else after(renewed.get(y, y), tokens)
            for y in v.node.inputs
        ]
        again.update(zip(v.node.outputs, rebuild(v.node, inputs).outputs, strict=True))
        stack.pop()
