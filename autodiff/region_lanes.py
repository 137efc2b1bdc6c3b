"""Values of lanes: those a finished one must not meet, and those that a tape can hold.

A finished lane is computed along with the others, from the carry of a lane that goes on, since its
own may divide by zero or index out of bounds (:mod:`..ir.ops.regions`). What it captured may do so
too, and together with another lane's carry even where its own would not. Such a value travels with
the carry of its lane, unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir.graph import Graph, Node, Value
from ..ir.ops.leaves import input_node
from ..ir.ops.regions import Loop, While, deciding_inputs

__all__ = ["Lanes", "loop_with_carried", "risky_constants", "while_with_carried"]


def risky_constants(body: Graph, mapped: Sequence[bool]) -> list[int]:
    """Which captured values of a loop, of those that are ``mapped``, may make its body fail."""
    risky = deciding_inputs(body) if any(mapped) else set()
    return [k for k, on in enumerate(mapped) if on and body.inputs[1 + k] in risky]


def loop_with_carried(loop: Loop, moved: Sequence[int]) -> tuple[Loop, list[int]]:
    """``loop`` with some captured values as its last carries; the old places of its operands."""
    consts = len(loop.consts)
    order = _order(consts, len(loop.init), len(loop.xs), moved)
    wider = replace(
        loop,
        body=_carried(loop.body, order, consts, len(loop.init), moved),
        consts=tuple([x for k, x in enumerate(loop.consts) if k not in moved]),
        init=(*loop.init, *[loop.consts[k] for k in moved]),
    )
    return wider, order


def while_with_carried(loop: While, moved: Sequence[int]) -> tuple[While, list[int]]:
    """The same for a ``while``; the places are those of all but what the condition captures."""
    consts = len(loop.body_consts)
    order = _order(consts, len(loop.init), 0, moved)
    unread = [input_node(loop.body.inputs[1 + k].types[0], "unread") for k in moved]
    wider = replace(
        loop,
        cond=Graph((*loop.cond.inputs, *unread), loop.cond.outputs, loop.cond.name),
        body=_carried(loop.body, order, consts, len(loop.init), moved),
        body_consts=tuple([x for k, x in enumerate(loop.body_consts) if k not in moved]),
        init=(*loop.init, *[loop.body_consts[k] for k in moved]),
    )
    return wider, order


def _order(consts: int, carries: int, xs: int, moved: Sequence[int]) -> list[int]:
    stay = [k for k in range(consts) if k not in moved]
    end = consts + carries
    return [*stay, *range(consts, end), *moved, *range(end, end + xs)]


def _carried(
    body: Graph, order: Sequence[int], consts: int, carries: int, moved: Sequence[int]
) -> Graph:
    inputs = (body.inputs[0], *[body.inputs[1 + k] for k in order])
    same = [body.inputs[1 + k].out for k in moved]
    outputs = (*body.outputs[:carries], *same, *body.outputs[carries:])
    return Graph(inputs, outputs, body.name)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of a loop whose body is split.

    Attributes
    ----------
    shape : tuple of int
    carries, slices : sequence of Node
        Inputs of the body that begin with the axes of lanes.
    """

    shape: tuple[int, ...]
    carries: Sequence[Node]
    slices: Sequence[Node]

    def owned(self, body: Graph) -> set[Value]:
        """The values that certainly have one part a lane, with the axes of lanes in front.

        A tape holds nothing else: what it holds for lanes that had finished is not specified. A
        value that follows from a carry has the axes somewhere; in front if no other is as long.
        """
        count = len(self.shape)
        found = {x.out for x in self.carries}
        if len(set(self.shape)) < count:
            return found
        reached = {*self.carries, *self.slices}
        for node in body.nodes():
            if node in reached or any(x.node in reached for x in node.inputs):
                reached.add(node)
                found.update(
                    [
                        x
                        for x in node.outputs
                        if x.shape[:count] == self.shape
                        and not set(x.shape[count:]).intersection(self.shape)
                    ]
                )
        return found
