"""Merging regions that compute the same: a loop inside of a larger one. Keeps every bit.

The derivative of a loop computes the loop's own results again. Where a program wants both, there
are two loops with the same trips, and the carries of one are among those of the other. The smaller
one goes: its results are read off the larger, which records what it does not yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..graph import Graph, Node, Value, make_node
from ..ops.leaves import CONSTANT, input_node
from ..ops.regions import COND, LOOP, WHILE, Loop, While
from ..rewrite import substitute
from .cse import eliminate_common_subexpressions

__all__ = ["merge_regions"]

Replacement = dict[Value, Value]
Trait = tuple[object, ...]


def merge_regions(graph: Graph) -> Graph:
    """``graph`` with regions absorbed by others that compute the same carries, or that branch on
    the same index."""
    search = _Search({}, set())
    while True:
        regions = [node for node in graph.nodes() if node.op.kind == "region"]
        found = search.first(regions) if len(regions) > 1 else None
        if found is None:
            return graph
        # The larger region is replaced too: it may record more than before.
        graph = Graph(graph.inputs, substitute(graph.outputs, found), graph.name)


@dataclass(slots=True)
class _Search:
    """What is known of regions that a merge leaves as they are: they need no second look."""

    traits: dict[Node, frozenset[Trait]]
    refused: set[tuple[Node, Node]]

    def first(self, regions: Sequence[Node]) -> Replacement | None:
        """The first merge there is: which results are replaced by which."""
        holders: dict[Trait, list[Node]] = {}
        for region in regions:
            if region not in self.traits:
                self.traits[region] = _traits(region)
            for trait in self.traits[region]:
                holders.setdefault(trait, []).append(region)
        ancestors = _ancestors(regions)
        for small in regions:
            traits = self.traits[small]
            for large in min([holders[trait] for trait in traits], key=len):
                if small is large or not traits <= self.traits[large]:
                    continue
                if small in ancestors[large] or large in ancestors[small]:
                    continue
                if (small, large) in self.refused:
                    continue
                found = _ABSORB[small.op.name](small, large)
                if found is not None:
                    return found
                self.refused.add((small, large))
        return None


def _traits(region: Node) -> frozenset[Trait]:
    """What a region that absorbs this one has to have too: the trips, and each carry with the value
    it begins with and the form of its step."""
    if region.op is COND:
        return frozenset({("cond", region.inputs[0], len(region.param("branches")))})
    header: Trait
    if region.op is LOOP:
        loop = Loop.of(region)
        header = ("loop", loop.length, loop.count, loop.reverse)
        body, consts, init, xs = loop.body, loop.consts, loop.init, loop.xs
    else:
        open_loop = While.of(region)
        header = ("while", open_loop.limit, open_loop.lanes)
        body, consts, init, xs = open_loop.body, open_loop.body_consts, open_loop.init, ()
    forms = _forms(body, ("index", *consts, *init, *xs))
    return frozenset({header, *[(header, x, f) for x, f in zip(init, forms, strict=False)]})


def _forms(body: Graph, operands: Sequence[object]) -> list[int]:
    """A number for each output of a body; steps that are the same have the same.

    Of ops, types and constants alone, whatever their order: a filter, not a proof.
    """
    forms = {x: hash(v) for x, v in zip(body.inputs, operands, strict=True)}
    for node in body.nodes():
        inner = sorted([forms[x.node] for x in node.inputs])
        number = node.params if node.op is CONSTANT else ()
        forms[node] = hash((node.op.name, node.types, number, *inner))
    return [hash((forms[x.node], x.index)) for x in body.outputs]


def _ancestors(regions: Sequence[Node]) -> dict[Node, set[Node]]:
    """For each region the regions that it waits for."""
    known = set(regions)
    above: dict[Node, set[Node]] = {}
    for region in regions:  # operands first
        found: set[Node] = set()
        stack = [x.node for x in region.inputs]
        seen = set(stack)
        while stack:
            node = stack.pop()
            if node in known:
                found.add(node)
                found |= above[node]
                continue
            for x in node.inputs:
                if x.node not in seen:
                    seen.add(x.node)
                    stack.append(x.node)
        above[region] = found
    return above


# ---------------------------------------------------------------------------------------- loops


def _absorb_loop(small: Node, large: Node) -> Replacement | None:
    a, b = Loop.of(small), Loop.of(large)
    if (a.length, a.count, a.reverse) != (b.length, b.count, b.reverse):
        return None
    if a.shared or b.shared:
        return None
    carries = _matched(a.init, b.init)
    if carries is None:
        return None
    consts = [*b.consts, *[x for x in dict.fromkeys(a.consts) if x not in b.consts]]
    xs = [*b.xs, *[x for x in dict.fromkeys(a.xs) if x not in b.xs]]
    ia, ib = a.body.inputs, b.body.inputs
    na, nb = 1 + len(a.consts), 1 + len(b.consts)
    new_consts = _inputs(consts, b.consts, ib[1:nb], a.consts, ia[1:na])
    new_xs = _inputs(xs, b.xs, ib[nb + len(b.init) :], a.xs, ia[na + len(a.init) :])
    state = ib[nb : nb + len(b.init)]
    meaning: Replacement = {ia[0].out: ib[0].out}
    meaning.update(_by_operand(a.consts, ia[1:na], dict(zip(consts, new_consts, strict=True))))
    meaning.update({ia[na + k].out: state[j].out for k, j in enumerate(carries)})
    meaning.update(_by_operand(a.xs, ia[na + len(a.init) :], dict(zip(xs, new_xs, strict=True))))
    inputs = (ib[0], *new_consts, *state, *new_xs)
    joined = _joined(
        inputs, substitute(a.body.outputs, meaning), b.body.outputs, carries, len(b.init)
    )
    if joined is None:
        return None
    body, places = joined
    new = replace(b, body=body, consts=tuple(consts), xs=tuple(xs)).node()
    return {
        **{Value(small, k): Value(new, j) for k, j in enumerate(places)},
        **{Value(large, k): Value(new, k) for k in range(len(large.types))},
    }


def _absorb_while(small: Node, large: Node) -> Replacement | None:
    a, b = While.of(small), While.of(large)
    carries = _matched(a.init, b.init)
    if carries is None or a.limit != b.limit or a.lanes != b.lanes:
        return None
    # The same condition, of the same values.
    ca, cb = a.cond.inputs, b.cond.inputs
    ta, tb = len(a.cond_consts), len(b.cond_consts)
    if any(x not in b.cond_consts for x in a.cond_consts):
        return None
    meaning = {ca[k].out: cb[b.cond_consts.index(x)].out for k, x in enumerate(a.cond_consts)}
    meaning.update({ca[ta + k].out: cb[tb + j].out for k, j in enumerate(carries)})
    tests = (*substitute(a.cond.outputs, meaning), *b.cond.outputs)
    one, other = eliminate_common_subexpressions(Graph(cb, tests)).outputs
    if one != other:
        return None
    consts = [*b.body_consts, *[x for x in dict.fromkeys(a.body_consts) if x not in b.body_consts]]
    ia, ib = a.body.inputs, b.body.inputs
    na, nb = 1 + len(a.body_consts), 1 + len(b.body_consts)
    new_consts = _inputs(consts, b.body_consts, ib[1:nb], a.body_consts, ia[1:na])
    state = ib[nb:]
    meaning = {ia[0].out: ib[0].out}
    meaning.update(_by_operand(a.body_consts, ia[1:na], dict(zip(consts, new_consts, strict=True))))
    meaning.update({ia[na + k].out: state[j].out for k, j in enumerate(carries)})
    inputs = (ib[0], *new_consts, *state)
    joined = _joined(
        inputs, substitute(a.body.outputs, meaning), b.body.outputs, carries, len(b.init)
    )
    if joined is None:
        return None
    body, places = joined
    new = replace(b, body=body, body_consts=tuple(consts)).node()
    trips_a, trips_b = len(a.init), len(b.init)

    def result(node: Node, trips: int, k: int) -> Value:
        """Output ``k`` of the body among the results: the count of trips comes in between."""
        return Value(node, k if k < trips else k + 1)

    return {
        **{result(small, trips_a, k): result(new, trips_b, j) for k, j in enumerate(places)},
        Value(small, trips_a): Value(new, trips_b),
        **{result(large, trips_b, k): result(new, trips_b, k) for k in range(len(b.body.outputs))},
        Value(large, trips_b): Value(new, trips_b),
    }


def _matched(a: Sequence[Value], b: Sequence[Value]) -> list[int] | None:
    """For each initial value of the smaller loop the carry of the larger that begins with it."""
    free = list(range(len(b)))
    found: list[int] = []
    for x in a:
        j = next((j for j in free if b[j] == x), None)
        if j is None:
            return None
        free.remove(j)
        found.append(j)
    return found


def _inputs(
    operands: Sequence[Value],
    own: Sequence[Value],
    inputs: Sequence[Node],
    more: Sequence[Value],
    others: Sequence[Node],
) -> list[Node]:
    """The input of each operand: of the larger loop if it has it, else a new one.

    A program called twice is two loops with one body: the smaller loop's own input may be one that
    the larger has for another operand.
    """
    known = dict(zip(more, others, strict=True))
    # The first `len(own)` operands are the larger loop's, in their order.
    extra = [known[x] for x in operands[len(own) :]]
    return [*inputs, *[input_node(x.types[0], x.param("name")) for x in extra]]


def _by_operand(
    operands: Sequence[Value], inputs: Sequence[Node], where: dict[Value, Node]
) -> Replacement:
    return {
        node.out: where[x].out
        for x, node in zip(operands, inputs, strict=True)
        if where[x] is not node
    }


def _joined(
    inputs: Sequence[Node],
    small: Sequence[Value],
    large: Sequence[Value],
    carries: Sequence[int],
    state: int,
) -> tuple[Graph, list[int]] | None:
    """The larger body, of ``state`` carries, with what the smaller one records; None if a carry is
    not the same.

    Also for each result of the smaller body its place among those of the new one.
    """
    merged = eliminate_common_subexpressions(Graph(tuple(inputs), (*small, *large)))
    mine, theirs = merged.outputs[: len(small)], list(merged.outputs[len(small) :])
    if any(mine[k] != theirs[j] for k, j in enumerate(carries)):
        return None
    places = list(carries)
    for y in mine[len(carries) :]:
        place = next((j for j in range(state, len(theirs)) if theirs[j] == y), len(theirs))
        if place == len(theirs):
            theirs.append(y)
        places.append(place)
    return Graph(tuple(inputs), tuple(theirs), "body"), places


# -------------------------------------------------------------------------------------- branches


def _absorb_cond(small: Node, large: Node) -> Replacement | None:
    first, second = small.param("branches"), large.param("branches")
    if small.inputs[0] != large.inputs[0] or len(first) != len(second):
        return None
    a, b = small.inputs[1:], large.inputs[1:]
    operands = [*b, *[x for x in dict.fromkeys(a) if x not in b]]
    branches = []
    for one, other in zip(first, second, strict=True):
        inputs = _inputs(operands, b, other.inputs, a, one.inputs)
        meaning = _by_operand(a, one.inputs, dict(zip(operands, inputs, strict=True)))
        outputs = (*other.outputs, *substitute(one.outputs, meaning))
        branches.append(eliminate_common_subexpressions(Graph(tuple(inputs), outputs, one.name)))
    new = make_node(COND, (large.inputs[0], *operands), branches=tuple(branches))
    count = len(large.types)
    return {
        **{Value(large, k): Value(new, k) for k in range(count)},
        **{Value(small, k): Value(new, count + k) for k in range(len(small.types))},
    }


_ABSORB = {LOOP.name: _absorb_loop, WHILE.name: _absorb_while, COND.name: _absorb_cond}
