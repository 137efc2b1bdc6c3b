"""Forward mode through regions: the tangent of a region is a region.

A loop whose carry moves carries the tangent beside it; which carries move is a fixed point. The
new node computes the old results too: where both are there, the optimizer keeps one
(:mod:`..ir.passes.merge_regions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ..ir.graph import Graph, Node, Value, make_node
from ..ir.ops.fill import zeros_of
from ..ir.ops.leaves import input_node
from ..ir.ops.regions import COND, LOOP, Loop, While, strong
from .forward import jvp

__all__ = ["region_jvp"]

_T = TypeVar("_T")
Tangents = tuple["Value | None", ...]


def region_jvp(node: Node, tangents: Sequence[Value | None]) -> Tangents:
    """The tangent of each result of a region node."""
    if node.op is COND:
        return _cond(node, tangents)
    if node.op is LOOP:
        return _loop(node, tangents)
    return _while(node, tangents)


class _Tangents:
    """The tangents of a graph whose inputs move where ``moving`` says so.

    Attributes
    ----------
    inputs : list of Node or None
        The tangent input of each input that moves.
    outputs : list of Value or None
        The tangent of each output; None is zero.
    """

    def __init__(self, graph: Graph, moving: Sequence[bool]) -> None:
        self.graph = graph
        self.inputs = [
            input_node(strong(x.types[0]), f"d{x.param('name')}") if on else None
            for x, on in zip(graph.inputs, moving, strict=True)
        ]
        dots = {
            x.out: t.out for x, t in zip(graph.inputs, self.inputs, strict=True) if t is not None
        }
        self.outputs: list[Value | None] = (
            jvp(graph.outputs, dots) if dots else [None] * len(graph.outputs)
        )

    def filled(self, k: int) -> Value:
        """The tangent of output ``k``, zeros where it has none."""
        found = self.outputs[k]
        return zeros_of(self.graph.outputs[k].type) if found is None else found

    def with_tangents(self, start: int, stop: int) -> list[Node]:
        """Some inputs, then the tangent inputs of those that move."""
        return [*self.graph.inputs[start:stop], *_present(self.inputs[start:stop])]


def _present(items: Sequence[_T | None]) -> list[_T]:
    return [x for x in items if x is not None]


def _moving(tangents: Sequence[Value | None]) -> list[bool]:
    return [t is not None for t in tangents]


def _settled(moving: list[bool], at: Callable[[list[bool]], _Tangents]) -> _Tangents:
    """The body once the carries that move are those whose next value does; fills ``moving``."""
    while True:
        found = at(moving)
        after = [on or t is not None for on, t in zip(moving, found.outputs, strict=False)]
        if after == moving:
            return found
        moving[:] = after


def _start(init: Value, tangent: Value | None) -> Value:
    return zeros_of(init.type) if tangent is None else tangent


@dataclass(slots=True)
class _Carries:
    """The carries of the new loop: the old ones, and the tangents of those that move."""

    inputs: list[Node]
    init: list[Value]
    outputs: list[Value]
    places: dict[int, int]  # of the tangent of old carry k

    @staticmethod
    def of(
        body: _Tangents,
        init: Sequence[Value],
        tangents: Sequence[Value | None],
        moving: Sequence[bool],
        first: int,
        groups: Sequence[range],
    ) -> _Carries:
        """``first``: the place of the carries among the inputs; each group stays together."""
        found = _Carries([], [], [], {})
        for group in groups:
            for k in group:
                found.inputs.append(body.graph.inputs[first + k])
                found.init.append(init[k])
                found.outputs.append(body.graph.outputs[k])
            for k in group:
                dot = body.inputs[first + k]
                if moving[k] and dot is not None:
                    found.places[k] = len(found.inputs)
                    found.inputs.append(dot)
                    found.init.append(_start(init[k], tangents[k]))
                    found.outputs.append(body.filled(k))
        return found


def _loop(node: Node, tangents: Sequence[Value | None]) -> Tangents:
    loop = Loop.of(node)
    count = len(loop.init)
    first = 0 if loop.count is None else 1
    second = first + len(loop.consts)
    dconsts, dinit = tangents[first:second], tangents[second : second + count]
    dxs = tangents[second + count :]
    moving = _moving(dinit)
    body = _settled(
        moving,
        lambda on: _Tangents(loop.body, [False, *_moving(dconsts), *on, *_moving(dxs)]),
    )
    at = 1 + len(loop.consts)
    own = count - loop.shared
    carries = _Carries.of(body, loop.init, dinit, moving, at, (range(own), range(own, count)))
    old = loop.body.outputs
    recorded = [k for k in range(count, len(old)) if body.outputs[k] is not None]
    graph = Graph(
        (
            loop.body.inputs[0],
            *body.with_tangents(1, at),
            *carries.inputs,
            *body.with_tangents(at + count, len(loop.body.inputs)),
        ),
        (*carries.outputs, *old[count:], *[body.filled(k) for k in recorded]),
        loop.body.name,
    )
    new = replace(
        loop,
        body=graph,
        consts=(*loop.consts, *_present(dconsts)),
        init=tuple(carries.init),
        xs=(*loop.xs, *_present(dxs)),
        shared=loop.shared + sum(moving[own:]),
    ).node()
    places = dict(carries.places)
    places.update({k: len(carries.init) + len(old) - count + n for n, k in enumerate(recorded)})
    return tuple([Value(new, places[k]) if k in places else None for k in range(len(node.types))])


def _while(node: Node, tangents: Sequence[Value | None]) -> Tangents:
    loop = While.of(node)
    count = len(loop.init)
    tested = len(loop.cond_consts)
    second = tested + len(loop.body_consts)
    dconsts, dinit = tangents[tested:second], tangents[second:]
    moving = _moving(dinit)
    body = _settled(moving, lambda on: _Tangents(loop.body, [False, *_moving(dconsts), *on]))
    at = 1 + len(loop.body_consts)
    carries = _Carries.of(body, loop.init, dinit, moving, at, (range(count),))
    old = loop.body.outputs
    recorded = [k for k in range(count, len(old)) if body.outputs[k] is not None]
    graph = Graph(
        (loop.body.inputs[0], *body.with_tangents(1, at), *carries.inputs),
        (*carries.outputs, *old[count:], *[body.filled(k) for k in recorded]),
        loop.body.name,
    )
    # The condition is a bool: tangents have no part in it.
    unread = [input_node(x.types[0], x.param("name")) for x in carries.inputs[count:]]
    new = replace(
        loop,
        cond=Graph((*loop.cond.inputs, *unread), loop.cond.outputs, loop.cond.name),
        body=graph,
        body_consts=(*loop.body_consts, *_present(dconsts)),
        init=tuple(carries.init),
    ).node()
    places = dict(carries.places)
    behind = len(carries.init) + 1 + len(old) - count  # the count of trips comes in between
    places.update({k + 1: behind + n for n, k in enumerate(recorded)})
    return tuple([Value(new, places[k]) if k in places else None for k in range(len(node.types))])


def _cond(node: Node, tangents: Sequence[Value | None]) -> Tangents:
    index, *operands = node.inputs
    moving = _moving(tangents[1:])
    bodies = [_Tangents(branch, moving) for branch in node.param("branches")]
    results = [k for k in range(len(node.types)) if any(b.outputs[k] is not None for b in bodies)]
    branches = tuple(
        [
            Graph(
                tuple(b.with_tangents(0, len(operands))),
                (*b.graph.outputs, *[b.filled(k) for k in results]),
                b.graph.name,
            )
            for b in bodies
        ]
    )
    new = make_node(COND, (index, *operands, *_present(tangents[1:])), branches=branches)
    places = {k: len(node.types) + n for n, k in enumerate(results)}
    return tuple([Value(new, places[k]) if k in places else None for k in range(len(node.types))])
