"""Effects: Python functions that run each time a program runs, in its order.

Outside a trace an effect happens at once. A trace notes it; the program that comes of the trace has
the tokens of its effects as further outputs, so nothing drops them, and a transform of it repeats
them in the enclosing trace, or at once if there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.graph import Node, Value, toposort
from ..ir.ops.host import EFFECT, HostFunction, effect
from ..ir.ops.leaves import INPUT, constant
from ..ir.ops.logic import and_
from ..ir.ops.reductions import all_
from .realize import realize_values
from .tracing import RUNNING, find_input

__all__ = ["living", "one_token", "perform", "perform_again"]


def perform(token: Value) -> None:
    """Let an effect happen: now, or whenever the program that is being traced runs."""
    running = RUNNING.get()
    if running:
        running[-1].effects.append(token)
    elif find_input([token]) is None:
        node = token.node
        if node.op is not EFFECT:  # of a region
            realize_values([token], "an effect")
            return
        realize_values(node.inputs, "an effect")
        node.param("function")(*[x.node.memo[x.index] for x in node.inputs])
    # What else waits for the tangents of a linear program that is only going to be transposed.


def perform_again(tokens: Iterable[Value]) -> None:
    """Let effects of a transformed program happen; each is one of its own."""
    for token in tokens:
        node = token.node
        if node.op is EFFECT:
            token = Value(Node(node.op, node.inputs, node.params, node.types, node.place))
        perform(token)


def living(tokens: Sequence[Value], inputs: Iterable[Value]) -> list[Value]:
    """Effects that can happen once there are values for ``inputs``.

    A rule that is asked for a derivative in order to be transposed may show its tangents: they
    never have values.
    """
    if not tokens:
        return []
    given = {x.node for x in inputs}
    return [x for x in tokens if not any(_is_lost(node, given) for node in toposort([x]))]


def _is_lost(node: Node, given: set[Node]) -> bool:
    return node.op is INPUT and node not in given and node.param("trace") is None


@dataclass(frozen=True, slots=True)
class Anchored(HostFunction):
    """A function of the first ``count`` operands; the others say where it belongs."""

    function: HostFunction
    count: int

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        return self.function(*operands[: self.count])


def one_token(tokens: Sequence[Value], anchor: Value) -> Value:
    """One token, of shape (), for the effects of a region.

    What does not depend on anything inside a region is computed outside, once. An effect there
    happens each time all the same: it is made to depend on ``anchor``.
    """
    found = constant(True)
    for token in tokens:
        node = token.node
        if node.op is EFFECT:
            function = Anchored(node.param("function"), len(node.inputs))
            token = effect(function, [*node.inputs, anchor], node.param("shape"))
        found = and_(found, all_(token) if token.ndim else token)
    return found
