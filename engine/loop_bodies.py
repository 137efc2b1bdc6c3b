"""The functions that loops take: traced as bodies of nodes, or run step by step in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.dtypes import int64
from ..ir.graph import Graph, Node, Value
from ..ir.ops import and_
from ..ir.ops.leaves import constant, input_node
from ..ir.ops.operands import convert
from ..ir.ops.regions import node_may_fail
from ..ir.types import TensorType
from .array import Array
from .captures import arrays_read_by
from .effects import one_token, perform
from .marking import checked_pair, name_of
from .regions import Leaves, as_leaves, check_like, close_regions, trace_region

__all__ = ["Body", "after_step", "pair_of"]

INDEX = TensorType((), int64)


class Body:
    """The body of a loop, traced: ``step(index, carry, slices) -> (carry, y)``.

    ``runs`` tells that the loop makes a step for sure. Else what may fail stays in the body, though
    it be the same in each step. ``outside`` are values that ``step`` reads besides ``fun``.

    Attributes
    ----------
    graph : Graph
        Of (index, captured values, carry, slices), as the nodes of loops want it.
    captured : list of Value
    out : Leaves
        The pair that the step returned.
    init : tuple of Value
        The carry to begin with, with a token if the body has effects.
    """

    def __init__(
        self,
        title: str,
        fun: Callable[..., Any],
        start: Leaves,
        step: Callable[[Array, Any, Sequence[Value]], tuple[Any, Any]],
        slices: Sequence[TensorType] = (),
        names: Sequence[str] = (),
        *,
        runs: bool = False,
        outside: Sequence[Value] = (),
    ) -> None:
        count = len(start.values)
        known = [*start.values, *outside, *[x._value for x in arrays_read_by([fun])]]

        def call(arrays: list[Array]) -> Any:
            values = [x._value for x in arrays[1:]]
            return step(arrays[0], start.tree(values[:count]), values[count:])

        while True:  # until the carry comes out as it goes in
            types = [INDEX, *start.types, *slices]
            region = trace_region(title, fun, types, ["i", *start.names, *names], call)
            carry = Leaves(region.out.spec[2][0], start.names, region.out.values[:count])
            if not (carry.spec == start.spec and _adopt(start, carry)):
                break
        check_like(f"{title}({name_of(fun)})", "a carry", start, carry)
        self.out, self.count = region.out, count
        # Effects give a token, which is carried: it is alive as long as the loop is.
        tokens = [one_token(region.effects, region.inputs[0])] if region.effects else []
        graph, self.captured = close_regions(
            region.inputs,
            [*region.out.values, *tokens],
            known,
            stays=(lambda node: False) if runs else node_may_fail,
        )
        at = len(self.captured)  # these come first; the index belongs in front of them
        end = at + 1 + count
        token = [input_node(x.type, "token") for x in tokens]
        inputs = (graph.inputs[at], *graph.inputs[:at], *graph.inputs[at + 1 : end], *token)
        outputs = list(graph.outputs)
        if tokens:
            outputs.insert(count, and_(token[0].out, outputs.pop()))
        self.graph = Graph((*inputs, *graph.inputs[end:]), tuple(outputs), graph.name)
        self.init = (*start.values, *[constant(True) for _ in tokens])

    def results(self, node: Node) -> Any:
        """The pair of the last carry and the records; its effects are noted."""
        values = list(node.outputs)
        if len(self.init) > self.count:
            perform(values.pop(self.count))
        return self.out.tree(values)


def _adopt(start: Leaves, out: Leaves) -> bool:
    """Give Python numbers among the first values the dtype of the carry; whether there were any."""
    changed = False
    for k, (a, b) in enumerate(zip(start.values, out.values, strict=False)):
        if a.type.weak:
            fits = b.dtype.is_inexact or (a.dtype.is_integer and b.dtype.is_integer)
            start.values[k] = convert(a, b.dtype if fits else a.dtype)
            changed = True
    return changed


def after_step(title: str, before: Leaves, carry: Any) -> Leaves:
    """The carry after a step in Python, checked against the one before."""
    after = as_leaves(carry, "init")
    after.names = before.names
    if before.spec == after.spec:
        _adopt(before, after)
    check_like(title, "a carry", before, after)
    return after


def pair_of(title: str, result: Any) -> tuple[Any, Any]:
    return checked_pair(title, result, "(carry, y)")
