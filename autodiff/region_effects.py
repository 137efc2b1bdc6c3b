"""Effects in regions under vmap: what an example does not do must not happen for it.

An example that does not take a branch, or that has left a loop, is computed along with the others,
and its results are dropped. An effect cannot be dropped afterwards, so it is told which examples
are there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.dtypes import int64
from ..ir.graph import Graph, Node, Value
from ..ir.ops.comparison import eq
from ..ir.ops.host import EFFECT, HostFunction, Sequential, effect
from ..ir.ops.leaves import input_node, iota
from ..ir.ops.reductions import any_
from ..ir.rewrite import rewrite
from ..ir.types import TensorType

__all__ = ["Presence", "guarded", "has_effects"]


@dataclass(frozen=True, slots=True)
class Guarded(HostFunction):
    """A function that is called if the first operand is true."""

    function: HostFunction

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        return self.function(*operands[1:]) if operands[0] else ()


def has_effects(graph: Graph) -> bool:
    """Whether running ``graph`` does something besides computing its outputs."""
    return any(node.op is EFFECT for node in graph.nodes())


def guarded(
    outputs: Sequence[Value], active: Value, shared: Collection[Node], stop: Sequence[Node]
) -> list[Value]:
    """``outputs`` of a batched program, its effects for the ``active`` examples only.

    Parameters
    ----------
    outputs : sequence of Value
    active : Value
        A bool for each example.
    shared : collection of Node
        Nodes of the program before it was batched: an effect among them is the same for all
        examples and happens if there is one.
    stop : sequence of Node
        Where the program begins.
    """

    def told(node: Node) -> Value | None:
        if node.op is not EFFECT:
            return None
        function, shape = node.param("function"), node.param("shape")
        if node in shared:
            return effect(Guarded(function), [any_(active), *node.inputs], shape)
        one = Sequential(
            Guarded(function.function), (0, *function.axes), function.size, function.types
        )
        return effect(one, [active, *node.inputs], shape)

    return list(rewrite(outputs, told, stop=stop))


@dataclass(frozen=True, slots=True)
class Presence:
    """Which lanes of a ``while`` are there, as its body can tell.

    Each carries its number. A lane that has finished is computed from the carry of another, since a
    body with effects may fail (:mod:`..ir.ops.regions`): the number is then not its own.

    Attributes
    ----------
    numbers : Node
        Of all lanes: a captured value.
    carried : Node
    init : Value
        What both begin with.
    """

    numbers: Node
    carried: Node
    init: Value

    @staticmethod
    def of(body: Graph, size: int) -> Presence | None:
        """None for a body without effects."""
        if not has_effects(body):
            return None
        t = TensorType((size,), int64)
        return Presence(input_node(t, "lanes"), input_node(t, "lane"), iota((size,)))

    def guarded(self, outputs: Sequence[Value], body: Graph, inputs: Sequence[Node]) -> list[Value]:
        """``outputs`` of ``body`` made a batch, of these ``inputs``, with its effects guarded."""
        active = eq(self.carried.out, self.numbers.out)
        return guarded(outputs, active, set(body.nodes()), inputs)
