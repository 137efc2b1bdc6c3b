"""Passes inside regions, and over their edges: optimize bodies, drop what nobody reads, move out
what does not change. Keep every bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..graph import Graph, Node, Value, make_node, toposort
from ..ops.fill import zeros_of
from ..ops.leaves import CONSTANT, IOTA, input_node
from ..ops.operands import convert
from ..ops.regions import (
    COND,
    LOOP,
    WHILE,
    Loop,
    While,
    deciding_inputs,
    node_may_fail,
    strong,
)
from ..rewrite import rebuild, rewrite_graph, substitute
from ..types import GROWING

__all__ = ["hoist_invariants", "optimize_bodies", "prune_regions", "substitute_results"]


# ------------------------------------------------------------------------------------- bodies


def optimize_bodies(graph: Graph, optimize: Callable[[Graph], Graph]) -> Graph:
    """``graph`` with ``optimize`` applied to the graphs that its nodes hold."""

    def rule(node: Node) -> tuple[Value, ...] | None:
        if node.op.kind != "region":
            return None
        changed = False
        params = []
        for name, value in node.params:
            new = value
            if type(value) is Graph:
                new = optimize(value)
            elif name == "branches":
                new = tuple([optimize(branch) for branch in value])
                if all(a is b for a, b in zip(new, value, strict=True)):
                    new = value
            changed = changed or new is not value
            params.append((name, new))
        if not changed:
            return None
        return Node(node.op, node.inputs, tuple(params), node.types, node.place).outputs

    return rewrite_graph(graph, rule)


def substitute_results(graph: Graph, rule: Callable[[Node], dict[int, Value] | None]) -> Graph:
    """``graph`` with some results of nodes replaced, operands first.

    ``rule(node)``, on renewed operands, gives {result: what stands for it}, or None for a node that
    stays. A result that is left out is used by nobody.
    """
    renewed: dict[Value, Value] = {}
    for node in toposort(graph.outputs, stop=graph.inputs):
        new = rebuild(node, [renewed.get(x, x) for x in node.inputs])
        found = rule(new)
        if found is None:
            found = dict(enumerate(new.outputs)) if new is not node else {}
        for k, value in found.items():
            renewed[Value(node, k)] = value
    if not renewed:
        return graph
    return Graph(graph.inputs, tuple([renewed.get(x, x) for x in graph.outputs]), graph.name)


# --------------------------------------------------------------------------------- unused parts

# What a region becomes, as {result: what stands for it}; and the operands that it then reads.
_Rebuild = Callable[[Node], dict[int, Value]]
_Plan = tuple["_Rebuild | None", Sequence[Value]]


def prune_regions(graph: Graph) -> Graph:
    """Regions without results that nobody reads, carries that lead nowhere, unread operands.

    A carry that every step leaves as it is becomes a captured value.
    """
    nodes = graph.nodes()
    if all(node.op.kind != "region" for node in nodes):
        return graph
    read: dict[Node, set[int]] = {}
    for x in graph.outputs:
        read.setdefault(x.node, set()).add(x.index)
    # From the end: what a region does not need any more is not read for its sake.
    plans: dict[Node, _Rebuild] = {}
    for node in reversed(nodes):
        if node not in read:
            continue
        if node.op.kind == "region":
            plan, operands = _PLANS[node.op.name](node, read[node])
            if plan is not None:
                plans[node] = plan
        else:
            operands = node.inputs
        for x in operands:
            read.setdefault(x.node, set()).add(x.index)
    if not plans:
        return graph
    order = iter(nodes)  # the rule sees renewed nodes, in the order of the old ones

    def rule(new: Node) -> dict[int, Value] | None:
        plan = plans.get(next(order))
        return None if plan is None else plan(new)

    return substitute_results(graph, rule)


def _uses(graph: Graph, outputs: Sequence[int]) -> set[Node]:
    """The inputs of a graph that some of its outputs need."""
    wanted = [graph.outputs[k] for k in outputs]
    reached = set(toposort(wanted))
    return {node for node in graph.inputs if node in reached}


def _part_of(graph: Graph, inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
    """A graph with some of its inputs and outputs, by number."""
    return Graph(
        tuple([graph.inputs[k] for k in inputs]),
        tuple([graph.outputs[k] for k in outputs]),
        graph.name,
    )


def _needed_carries(body: Graph, first: int, carries: int, wanted: set[int]) -> set[int]:
    """The outputs that are needed for ``wanted`` ones: with the carries they are computed from."""
    needed = set(wanted)
    while True:
        used = _uses(body, sorted(needed))
        more = {k for k in range(carries) if body.inputs[first + k] in used} - needed
        if not more:
            return needed
        needed |= more


def _fixed_carries(body: Graph, first: int, carries: int, lanes: Sequence[int]) -> set[int]:
    """The carries that every step leaves as they are.

    One of lanes stays a carry if a lane that has finished could fail on it, see
    :mod:`...autodiff.region_lanes`.
    """
    found = {k for k in range(carries) if body.outputs[k] == body.inputs[first + k].out}
    if not found or not lanes:
        return found
    risky = deciding_inputs(body)
    return {k for k in found if body.inputs[first + k] not in risky}


def _not_weak(x: Value) -> Value:
    return convert(x, x.dtype) if x.type.weak else x


def _idle_plan(node: Node, first: int, carries: int, read: set[int]) -> _Plan:
    """A loop that makes no trip: its initial carry, which begins at operand ``first``, and records
    and counts of no elements."""

    def plan(new: Node) -> dict[int, Value]:
        return {
            k: _not_weak(new.inputs[first + k]) if k < carries else zeros_of(new.types[k])
            for k in read
        }

    return plan, [node.inputs[first + k] for k in sorted(read) if k < carries]


def _is_idle(node: Node, length: int | None, lanes: Sequence[int], read: set[int]) -> bool:
    """Whether a loop makes no trip, and nothing of it is read that grows with its trips."""
    return (length == 0 or 0 in lanes) and all(node.types[k].shape[:1] != (GROWING,) for k in read)


def _loop_plan(node: Node, read: set[int]) -> _Plan:
    loop = Loop.of(node)
    carries, outputs = len(loop.init), len(loop.body.outputs)
    if _is_idle(node, loop.length, loop.lanes, read):
        return _idle_plan(node, len(node.inputs) - carries - len(loop.xs), carries, read)
    at = 1 + len(loop.consts)
    inner = loop.body.inputs
    fixed = _fixed_carries(loop.body, at, carries, loop.lanes)
    needed = _needed_carries(loop.body, at, carries, read)
    kept = [k for k in range(outputs) if k in needed and k not in fixed]
    used = _uses(loop.body, kept)
    consts = [k for k in range(len(loop.consts)) if inner[1 + k] in used]
    xs = [k for k in range(len(loop.xs)) if inner[at + carries + k] in used]
    moved = [k for k in sorted(fixed) if inner[at + k] in used]
    state = [k for k in kept if k < carries]
    if len(kept) == outputs and len(consts) == len(loop.consts) and len(xs) == len(loop.xs):
        return None, node.inputs

    def plan(new: Node) -> dict[int, Value]:
        given = Loop.of(new)
        results = {k: _not_weak(given.init[k]) for k in fixed}
        if not kept:
            return results
        own = carries - given.shared
        body_inputs = [
            *(0, *[1 + k for k in consts], *[at + k for k in (*moved, *state)]),
            *[at + carries + k for k in xs],
        ]
        made = replace(
            given,
            body=_part_of(given.body, body_inputs, kept),
            consts=(*[given.consts[k] for k in consts], *[given.init[k] for k in moved]),
            init=tuple([given.init[k] for k in state]),
            xs=tuple([given.xs[k] for k in xs]),
            shared=sum(k >= own for k in state),
        ).node()
        results.update({k: Value(made, n) for n, k in enumerate(kept)})
        return results

    operands = [
        *([] if loop.count is None or not kept else [loop.count]),
        *[loop.consts[k] for k in consts],
        *[loop.init[k] for k in sorted({*state, *moved, *(fixed & read)})],
        *[loop.xs[k] for k in xs],
    ]
    return plan, operands


def _while_plan(node: Node, read: set[int]) -> _Plan:
    loop = While.of(node)
    carries = len(loop.init)
    if _is_idle(node, None, loop.lanes, read):
        return _idle_plan(node, len(node.inputs) - carries, carries, read)
    at = 1 + len(loop.body_consts)
    tested = len(loop.cond_consts)
    inner, conditions = loop.body.inputs, loop.cond.inputs
    asked = _uses(loop.cond, [0])
    fixed = _fixed_carries(loop.body, at, carries, loop.lanes)
    # Results: the carries, the count of trips, what was recorded.
    wanted = {k if k < carries else k - 1 for k in read if k != carries}
    wanted |= {k for k in range(carries) if conditions[tested + k] in asked}
    needed = _needed_carries(loop.body, at, carries, wanted)
    outputs = len(loop.body.outputs)
    kept = [k for k in range(outputs) if k in needed and k not in fixed]
    state = [k for k in kept if k < carries]
    used = _uses(loop.body, kept)
    moved = [k for k in sorted(fixed) if inner[at + k] in used]
    asked_fixed = [k for k in sorted(fixed) if conditions[tested + k] in asked]
    body_consts = [k for k in range(len(loop.body_consts)) if inner[1 + k] in used]
    cond_consts = [k for k in range(tested) if conditions[k] in asked]
    if (
        len(kept) == outputs
        and len(body_consts) == len(loop.body_consts)
        and len(cond_consts) == tested
    ):
        return None, node.inputs

    def plan(new: Node) -> dict[int, Value]:
        given = While.of(new)
        results = {k: _not_weak(given.init[k]) for k in fixed}
        cond_inputs = [*cond_consts, *[tested + k for k in (*asked_fixed, *state)]]
        body_inputs = [0, *[1 + k for k in body_consts], *[at + k for k in (*moved, *state)]]
        made = replace(
            given,
            cond=_part_of(given.cond, cond_inputs, [0]),
            body=_part_of(given.body, body_inputs, kept),
            cond_consts=(
                *[given.cond_consts[k] for k in cond_consts],
                *[given.init[k] for k in asked_fixed],
            ),
            body_consts=(
                *[given.body_consts[k] for k in body_consts],
                *[given.init[k] for k in moved],
            ),
            init=tuple([given.init[k] for k in state]),
        ).node()
        count = len(state)
        results[carries] = Value(made, count)
        for n, k in enumerate(kept):
            results[k if k < carries else k + 1] = Value(made, n if n < count else n + 1)
        return results

    init = [loop.init[k] for k in sorted({*state, *moved, *asked_fixed, *(fixed & read)})]
    operands = [
        *[loop.cond_consts[k] for k in cond_consts],
        *[loop.body_consts[k] for k in body_consts],
        *init,
    ]
    return plan, operands


def _cond_plan(node: Node, read: set[int]) -> _Plan:
    branches: tuple[Graph, ...] = node.param("branches")
    kept = sorted(read)
    used = {k for b in branches for k, x in enumerate(b.inputs) if x in _uses(b, kept)}
    operands = sorted(used)
    if len(kept) == len(node.types) and len(operands) == len(node.inputs) - 1:
        return None, node.inputs

    def plan(new: Node) -> dict[int, Value]:
        if not kept:
            return {}
        graphs = tuple([_part_of(b, operands, kept) for b in new.param("branches")])
        made = make_node(
            COND, (new.inputs[0], *[new.inputs[1 + k] for k in operands]), branches=graphs
        )
        return {k: Value(made, n) for n, k in enumerate(kept)}

    return plan, [node.inputs[0], *[node.inputs[1 + k] for k in operands]]


_PLANS: dict[str, Callable[[Node, set[int]], _Plan]] = {
    "loop": _loop_plan,
    "while": _while_plan,
    "cond": _cond_plan,
}


# ------------------------------------------------------------------------------------ invariants


def hoist_invariants(graph: Graph) -> Graph:
    """What a loop computes of captured values alone is computed once, outside.

    Views stay: outside they would be copies. So does what may fail, since a loop of no trips must
    not.
    """

    def rule(node: Node) -> dict[int, Value] | None:
        if node.op is LOOP:
            loop = Loop.of(node)
            found = _hoisted(loop.body, loop.consts, 1, (loop.length or 0) > 1)
            if found is None:
                return None
            new = replace(loop, body=found[0], consts=(*loop.consts, *found[1]))
            return dict(enumerate(new.node().outputs))
        if node.op is WHILE:
            open_loop = While.of(node)
            found = _hoisted(open_loop.body, open_loop.body_consts, 1, False)
            if found is None:
                return None
            consts = (*open_loop.body_consts, *found[1])
            return dict(
                enumerate(replace(open_loop, body=found[0], body_consts=consts).node().outputs)
            )
        return None

    return substitute_results(graph, rule)


def _hoisted(
    body: Graph, consts: Sequence[Value], first: int, often: bool
) -> tuple[Graph, list[Value]] | None:
    """The body with the hoisted values as further captured ones, and these values outside."""
    end = first + len(consts)
    fixed = set(body.inputs[first:end])
    nodes = body.nodes()
    for node in nodes:
        plain = node.op is CONSTANT or node.op is IOTA
        if plain or (
            node.inputs and all(x.node in fixed for x in node.inputs) and _may_move(node, often)
        ):
            fixed.add(node)
    moved: dict[Value, None] = {}
    for node in nodes:
        if node not in fixed:
            for x in node.inputs:
                if x.node in fixed:
                    moved.update(dict.fromkeys(_computed(x)))
    for x in body.outputs:
        if x.node in fixed:
            moved.update(dict.fromkeys(_computed(x)))
    values = [x for x in moved if x.node not in body.inputs]
    if not values:
        return None
    outer = dict(zip([x.out for x in body.inputs[first:end]], consts, strict=True))
    outside = substitute(values, outer)
    fresh = [input_node(strong(x.type), "invariant") for x in values]
    renewed = substitute(body.outputs, {x: n.out for x, n in zip(values, fresh, strict=True)})
    inputs = (*body.inputs[:end], *fresh, *body.inputs[end:])
    return Graph(inputs, renewed, body.name), list(outside)


def _may_move(node: Node, often: bool) -> bool:
    """Whether a node is no worse outside: loops are, of a loop that may make one trip or none."""
    if node.op.kind == "region":
        return often and not node_may_fail(node)
    return node.op.kind != "custom" and not node_may_fail(node)


def _computed(x: Value) -> list[Value]:
    """The values that ``x`` is a view of, if they are work at all."""
    found: list[Value] = []
    stack = [x]
    while stack:
        y = stack.pop()
        if y.node.op.kind == "view":
            stack.extend(y.node.inputs)
        elif y.node.op.kind != "leaf":
            found.append(y)
    return found
