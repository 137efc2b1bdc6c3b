"""``checkpoint`` nodes under jvp, transpose and vmap, and the policies that say what they save.

The jvp of a body is split like any other (:mod:`.reverse`): what its linear part reads is saved or
computed again. What is saved are results of one more ``checkpoint`` node, the *known* one, on the
same operands: after inlining it is the forward part itself. The linear part is a node that takes
the operands, what was saved, and the tangents, and computes the rest again. Transposed, its known
operands are *held* until the cotangents are there. So derivatives of every order are checkpointed
as their functions are, and nothing else knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.graph import Graph, Node, Value, make_node, toposort
from ..ir.ops.checkpoint import CHECKPOINT
from ..ir.ops.custom import UNREAD, Rule
from ..ir.ops.leaves import input_node
from ..ir.rewrite import rebuild, substitute
from . import reverse
from .batching import batch
from .rematerialize import partition, reads_of
from .saving_network import is_plain

__all__ = [
    *("Choice", "Recompute", "Split", "budgeted", "checkpoint_call", "minimum_cut"),
    *("of_predicate", "split_linear"),
]


@dataclass(frozen=True, slots=True)
class Split:
    """The jvp of a body between its known and its linear part.

    Attributes
    ----------
    outputs : tuple of Value
        Results of the body.
    linear : list of (Node, flags)
        The linear nodes in order, with a flag an operand that is linear.
    given : frozenset of Value
        Inputs of the body: they are there in any case.
    """

    outputs: tuple[Value, ...]
    linear: list[tuple[Node, list[bool]]]
    given: frozenset[Value]


# What to save of the known values.
Choice = Callable[[Split], "Sequence[Value]"]


def split_linear(
    outputs: Sequence[Value], tangents: Sequence[Value], inputs: Sequence[Node], body: Graph
) -> Split:
    """The parts of a jvp whose linear inputs are ``inputs``."""
    return Split(
        tuple(outputs),
        reverse.linear_nodes(tangents, [node.out for node in inputs]),
        frozenset([node.out for node in body.inputs]),
    )


# --------------------------------------------------------------------------------------- policies


def of_predicate(saveable: Callable[..., bool] | None) -> Choice:
    """Save the values that a predicate allows, as near to their readers as there are any.

    Parameters
    ----------
    saveable : callable or None
        ``saveable(op, *types, **params) -> bool``, of the op's name and the types of its operands.
        None: nothing is saved.
    """
    if saveable is None:
        return lambda split: ()

    def choose(split: Split) -> Sequence[Value]:
        found: dict[Value, None] = {}
        seen: set[Value] = set()
        todo = reads_of(split.linear)
        while todo:
            x = todo.pop()
            if x in seen or x in split.given or is_plain(x.node):
                continue
            seen.add(x)
            node = x.node
            if saveable(node.op.name, *[y.type for y in node.inputs], **dict(node.params)):
                found[x] = None
            else:
                todo.extend(node.inputs)
        return list(found)

    return choose


def minimum_cut(split: Split) -> Sequence[Value]:
    """Save the least that leaves nothing dear to be computed again (:mod:`.rematerialize`)."""
    return partition(split.outputs, split.linear, split.given).saved


def budgeted(nbytes: int) -> Choice:
    """Save at most so many bytes, such that as little as possible is computed again."""

    def choose(split: Split) -> Sequence[Value]:
        return partition(split.outputs, split.linear, split.given, budget=nbytes).saved

    return choose


# ------------------------------------------------------------------------------------------ rules


class Recompute(Rule):
    """The rule of a ``checkpoint`` node.

    Attributes
    ----------
    choose : callable
        What derivatives save.
    """

    __slots__ = ("choose", "title")

    def __init__(self, title: str, choose: Choice) -> None:
        self.title = title
        self.choose = choose

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        body, held = node.param("body"), node.param("held")
        moving = [k for k, t in enumerate(tangents) if t is not None]
        inputs, found = reverse.linearize(body.outputs, [body.inputs[k].out for k in moving])
        dots = [t for t in found if t is not None]
        split = split_linear(body.outputs, dots, inputs, body)
        saved = list(self.choose(split))
        kept = checkpoint_call(body.inputs, saved, node.inputs, held, self)
        stand_ins = [input_node(x.type, f"saved{k}") for k, x in enumerate(saved)]
        results = substitute(dots, dict(zip(saved, [n.out for n in stand_ins], strict=True)))
        results, uses, which = _one_a_use(results, inputs)
        given = [t for t in tangents if t is not None]
        moved = [given[k] for k in which]
        pushed = iter(
            checkpoint_call(
                (*body.inputs, *stand_ins, *uses),
                results,
                (*node.inputs, *kept, *moved),
                (*held, *[False] * (len(kept) + len(moved))),
                self,
            )
        )
        return tuple([None if t is None else next(pushed) for t in found])

    def transpose(
        self, node: Node, cotangents: Sequence[Value | None], linear: Sequence[bool]
    ) -> Sequence[Any]:
        body = node.param("body")
        given = [(y, c) for y, c in zip(body.outputs, cotangents, strict=True) if c is not None]
        seeds = [input_node(c.type, f"cotangent{k}") for k, (_, c) in enumerate(given)]
        starts = [x.out for x, on in zip(body.inputs, linear, strict=True) if on]
        found = reverse.transpose([y for y, _ in given], starts, [seed.out for seed in seeds])
        known = [k for k, on in enumerate(linear) if not on]
        pulled = iter(
            checkpoint_call(
                (*[body.inputs[k] for k in known], *seeds),
                [c for c in found if c is not None],
                (*[node.inputs[k] for k in known], *[c for _, c in given]),
                (*[True] * len(known), *[False] * len(seeds)),
                self,
            )
        )
        back = iter([UNREAD if c is None else next(pulled) for c in found])
        return [next(back) if on else None for on in linear]

    def batch(self, node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
        body = node.param("body")
        inputs: list[Node] = []
        mapped: dict[Value, tuple[Value, int]] = {}
        size = 0
        for own, x, axis in zip(body.inputs, operands, axes, strict=True):
            if axis is None:
                inputs.append(own)
                continue
            size = x.shape[axis]
            inputs.append(input_node(x.type, own.param("name")))
            mapped[own.out] = (inputs[-1].out, axis)
        found = batch(body.outputs, mapped, size)
        results = checkpoint_call(inputs, [x for x, _ in found], operands, node.param("held"), self)
        return results, tuple([axis for _, axis in found])


def _one_a_use(
    outputs: Sequence[Value], inputs: Sequence[Node]
) -> tuple[tuple[Value, ...], list[Node], list[int]]:
    """The same program with an input of its own for each use of an input, and which it was.

    Cotangents are added up one use after the other, last use first (:func:`.reverse.transpose`).
    With the uses told apart, those inside a checkpoint and those outside are added in the order of
    the program without it: else a residual connection would round differently.
    """
    place = {node: k for k, node in enumerate(inputs)}
    copies: list[Node] = []
    which: list[int] = []

    def use(x: Value) -> Value:
        k = place.get(x.node)
        if k is None:
            return renewed.get(x, x)
        copies.append(input_node(x.type, x.node.param("name")))
        which.append(k)
        return copies[-1].out

    renewed: dict[Value, Value] = {}
    order = toposort(outputs, stop=inputs)
    ends = [0]
    for node in order:
        new = rebuild(node, [use(x) for x in node.inputs])
        ends.append(len(copies))
        if new is not node:
            renewed.update(zip(node.outputs, new.outputs, strict=True))
    inner = len(copies)
    results = tuple([use(x) for x in outputs])
    # Results first, then the nodes from the last to the first, operands of one in their order.
    ranked = list(range(inner, len(copies)))
    for k in reversed(range(len(order))):
        ranked += range(ends[k], ends[k + 1])
    return results, [copies[k] for k in ranked], [which[k] for k in ranked]


def checkpoint_call(
    inputs: Sequence[Node],
    outputs: Sequence[Value],
    operands: Sequence[Value],
    held: Sequence[bool],
    rule: Rule,
) -> tuple[Value, ...]:
    """The results of a ``checkpoint`` node; it takes those operands alone that its body reads."""
    if not outputs:
        return ()
    reached = {*toposort(outputs), *[x.node for x in outputs]}
    used = [k for k, node in enumerate(inputs) if node in reached]
    body = Graph(tuple([inputs[k] for k in used]), tuple(outputs), "body")
    node = make_node(
        CHECKPOINT,
        [operands[k] for k in used],
        body=body,
        held=tuple([held[k] for k in used]),
        rule=rule,
    )
    return node.outputs
