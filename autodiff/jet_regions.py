"""Taylor mode through regions: the body carries the orders of what it carries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..ir.graph import Graph, Node, Value, make_node
from ..ir.ops.fill import zeros_of
from ..ir.ops.leaves import input_node
from ..ir.ops.regions import COND, LOOP, Loop, While, strong
from .jet import jet

__all__ = ["region_jet"]

Orders = Sequence["Value | None"]
Present = tuple[bool, ...]  # which orders there are


def region_jet(node: Node, operands: Sequence[Orders], order: int) -> list[list[Value | None]]:
    """Orders 1 to ``order`` of each result of a region; an empty list: an operand that rests."""
    if node.op is COND:
        return _cond(node, operands, order)
    if node.op is LOOP:
        return _loop(node, operands, order)
    return _while(node, operands, order)


def _present(terms: Orders, order: int) -> Present:
    return tuple([k < len(terms) and terms[k] is not None for k in range(order)])


def _given(terms: Orders) -> list[Value]:
    return [x for x in terms if x is not None]


class _Body:
    """The orders of a graph's outputs for those of its inputs.

    Attributes
    ----------
    inputs : list of list of (Node or None)
        The inputs that stand for the orders of each input.
    outputs : list of list of (Value or None)
    """

    def __init__(self, graph: Graph, present: Sequence[Present], order: int) -> None:
        self.graph = graph
        self.inputs = [
            [
                input_node(strong(x.types[0]), f"{x.param('name')}{k + 1}") if on else None
                for k, on in enumerate(orders)
            ]
            for x, orders in zip(graph.inputs, present, strict=True)
        ]
        series = {
            x.out: [None if t is None else t.out for t in terms]
            for x, terms in zip(graph.inputs, self.inputs, strict=True)
            if any(t is not None for t in terms)
        }
        still: list[list[Value | None]] = [[None] * order for _ in graph.outputs]
        self.outputs = jet(graph.outputs, series, order) if series else still

    def filled(self, place: int, k: int) -> Value:
        """Order ``k + 1`` of an output, zeros where it has none."""
        found = self.outputs[place][k]
        return zeros_of(self.graph.outputs[place].type) if found is None else found

    def orders(self, start: int, stop: int) -> list[Node]:
        return [t for terms in self.inputs[start:stop] for t in terms if t is not None]


def _settled(present: list[Present], at: Callable[[list[Present]], _Body]) -> _Body:
    """The body once the orders of carries are those of their next values; fills ``present``."""
    while True:
        found = at(present)
        after = [
            tuple([on or t is not None for on, t in zip(orders, terms, strict=True)])
            for orders, terms in zip(present, found.outputs, strict=False)
        ]
        if after == present:
            return found
        present[:] = after


class _Carries:
    """The carries of the new loop: in each group the old ones, then their orders.

    Attributes
    ----------
    places : dict
        Of carry ``k``, order ``j + 1``: its place among the new carries.
    """

    def __init__(
        self,
        body: _Body,
        init: Sequence[Value],
        orders: Sequence[Orders],
        present: Sequence[Present],
        first: int,
        groups: Sequence[range],
    ) -> None:
        self.inputs: list[Node] = []
        self.init: list[Value] = []
        self.outputs: list[Value] = []
        self.places: dict[tuple[int, int], int] = {}
        self.sizes: list[int] = []
        for group in groups:
            before = len(self.inputs)
            for k in group:
                self.inputs.append(body.graph.inputs[first + k])
                self.init.append(init[k])
                self.outputs.append(body.graph.outputs[k])
            for k in group:
                for j, on in enumerate(present[k]):
                    dot = body.inputs[first + k][j]
                    if not on or dot is None:
                        continue
                    start = orders[k][j] if j < len(orders[k]) else None
                    self.places[k, j] = len(self.inputs)
                    self.inputs.append(dot)
                    self.init.append(zeros_of(init[k].type) if start is None else start)
                    self.outputs.append(body.filled(k, j))
            self.sizes.append(len(self.inputs) - before)


def _recorded(body: _Body, count: int) -> list[tuple[int, int]]:
    """The orders of what is recorded: result and order."""
    return [
        (k, j)
        for k in range(count, len(body.outputs))
        for j, t in enumerate(body.outputs[k])
        if t is not None
    ]


def _results(
    new: Node, places: dict[tuple[int, int], int], count: int, order: int
) -> list[list[Value | None]]:
    return [
        [Value(new, places[k, j]) if (k, j) in places else None for j in range(order)]
        for k in range(count)
    ]


def _loop(node: Node, operands: Sequence[Orders], order: int) -> list[list[Value | None]]:
    loop = Loop.of(node)
    count = len(loop.init)
    first = 0 if loop.count is None else 1
    second = first + len(loop.consts)
    consts, init = operands[first:second], operands[second : second + count]
    xs = operands[second + count :]
    present = [_present(x, order) for x in init]
    still = (False,) * order
    body = _settled(
        present,
        lambda on: _Body(
            loop.body,
            [still, *[_present(x, order) for x in consts], *on, *[_present(x, order) for x in xs]],
            order,
        ),
    )
    at, own, end = 1 + len(loop.consts), count - loop.shared, len(loop.body.inputs)
    carries = _Carries(body, loop.init, init, present, at, (range(own), range(own, count)))
    old, recorded = loop.body.outputs, _recorded(body, count)
    graph = Graph(
        (
            *loop.body.inputs[:at],
            *body.orders(1, at),
            *carries.inputs,
            *loop.body.inputs[at + count :],
            *body.orders(at + count, end),
        ),
        (*carries.outputs, *old[count:], *[body.filled(k, j) for k, j in recorded]),
        loop.body.name,
    )
    new = replace(
        loop,
        body=graph,
        consts=(*loop.consts, *[x for terms in consts for x in _given(terms)]),
        init=tuple(carries.init),
        xs=(*loop.xs, *[x for terms in xs for x in _given(terms)]),
        shared=carries.sizes[1],
    ).node()
    behind = len(carries.init) + len(old) - count
    places = carries.places | {pair: behind + n for n, pair in enumerate(recorded)}
    return _results(new, places, len(node.types), order)


def _while(node: Node, operands: Sequence[Orders], order: int) -> list[list[Value | None]]:
    loop = While.of(node)
    count, tested = len(loop.init), len(loop.cond_consts)
    second = tested + len(loop.body_consts)
    consts, init = operands[tested:second], operands[second:]
    present = [_present(x, order) for x in init]
    still = (False,) * order
    body = _settled(
        present,
        lambda on: _Body(loop.body, [still, *[_present(x, order) for x in consts], *on], order),
    )
    at = 1 + len(loop.body_consts)
    carries = _Carries(body, loop.init, init, present, at, (range(count),))
    old, recorded = loop.body.outputs, _recorded(body, count)
    graph = Graph(
        (*loop.body.inputs[:at], *body.orders(1, at), *carries.inputs),
        (*carries.outputs, *old[count:], *[body.filled(k, j) for k, j in recorded]),
        loop.body.name,
    )
    # The condition is a bool: derivatives have no part in it.
    unread = [input_node(x.types[0], x.param("name")) for x in carries.inputs[count:]]
    new = replace(
        loop,
        cond=Graph((*loop.cond.inputs, *unread), loop.cond.outputs, loop.cond.name),
        body=graph,
        body_consts=(*loop.body_consts, *[x for terms in consts for x in _given(terms)]),
        init=tuple(carries.init),
    ).node()
    # The count of trips lies between carries and records.
    behind = len(carries.init) + 1 + len(old) - count
    places = dict(carries.places)
    places.update({(k + 1, j): behind + n for n, (k, j) in enumerate(recorded)})
    return _results(new, places, len(node.types), order)


def _cond(node: Node, operands: Sequence[Orders], order: int) -> list[list[Value | None]]:
    index, *rest = node.inputs
    moving = operands[1:]
    present = [_present(x, order) for x in moving]
    bodies = [_Body(branch, present, order) for branch in node.param("branches")]
    pairs = [
        (k, j)
        for k in range(len(node.types))
        for j in range(order)
        if any(b.outputs[k][j] is not None for b in bodies)
    ]
    branches = tuple(
        [
            Graph(
                (*b.graph.inputs, *b.orders(0, len(rest))),
                (*b.graph.outputs, *[b.filled(k, j) for k, j in pairs]),
                b.graph.name,
            )
            for b in bodies
        ]
    )
    given = [x for terms in moving for x in _given(terms)]
    new = make_node(COND, (index, *rest, *given), branches=branches)
    places = {pair: len(node.types) + n for n, pair in enumerate(pairs)}
    return _results(new, places, len(node.types), order)
