"""Derivatives of what solves equations, from the equations.

``A x = b``: differentiating both sides, ``A x_dot = b_dot - A_dot x``: the tangent solves the same
system. It is linear in ``b``, and its transpose solves with the transpose of ``A``. So one rule,
:class:`Solve`, is closed under jvp, transpose and vmap, and no order of derivatives ever looks into
the solver. ``f(x, c) = 0``: ``J x_dot = -df/dc c_dot`` with ``J = df/dx``, which is the implicit
function theorem (:class:`Root`).

The system is given by graphs of its constants (what ``A`` and the solver read) and a vector.
Source: M. Blondel et al., Efficient and modular implicit differentiation, NeurIPS 2022, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.graph import Graph, Node, Value
from ..ir.ops.arithmetic import neg, sub
from ..ir.ops.custom import UNREAD, Rule, Tie, custom_call, hold
from ..ir.ops.leaves import alias, input_node
from ..ir.rewrite import substitute
from ..ir.types import TensorType
from .batching import batch
from .custom import at_axis, batch_size, instantiated
from .forward import jvp, unsupported

__all__ = ["Root", "Solve", "System", "inline", "solved"]

Tangents = Sequence["Value | None"]
Axes = Sequence["int | None"]


def inline(graph: Graph, arguments: Sequence[Value]) -> tuple[Value, ...]:
    """The outputs of a graph as part of the web of ``arguments``."""
    inputs = [node.out for node in graph.inputs]
    return substitute(graph.outputs, dict(zip(inputs, arguments, strict=True)))


def along_constants(
    graph: Graph, constants: Sequence[Value], dots: Tangents, rest: Sequence[Value]
) -> list[Value | None]:
    """The tangent of ``graph(constants, rest)`` when the constants alone move."""
    marks = [alias(c) for c in constants]  # the rest may depend on the constants themselves
    moving = {m: t for m, t in zip(marks, dots, strict=True) if t is not None}
    return jvp(inline(graph, [*marks, *rest]), moving)


def batched_graph(graph: Graph, axes: Axes, size: int) -> Graph:
    """The graph with the given batch axes of its inputs; its outputs have theirs in front."""
    inputs: list[Node] = []
    mapped: dict[Value, tuple[Value, int]] = {}
    for node, axis in zip(graph.inputs, axes, strict=True):
        t = node.types[0]
        if axis is None:
            inputs.append(node)
            continue
        shape = (*t.shape[:axis], size, *t.shape[axis:])
        inputs.append(input_node(TensorType(shape, t.dtype), node.param("name")))
        mapped[node.out] = (inputs[-1].out, axis)
    found = batch(graph.outputs, mapped, size)
    outputs = [at_axis(x, axis, 0, size) for x, axis in found]
    return Graph(tuple(inputs), tuple(outputs), graph.name)


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """A linear system: ``matvec(constants, x)``, and ``solve(constants, b)``."""

    matvec: Graph
    solve: Graph

    def batched(self, axes: Axes, size: int) -> System:
        return System(batched_graph(self.matvec, axes, size), batched_graph(self.solve, axes, size))


class Solve(Rule):
    """The rule of ``x`` with ``A x = b``: operands are values, constants, ``b``.

    Parameters
    ----------
    title : str
    forward : System
    backward : System or None
        The transposed system; None: it cannot be solved.
    """

    __slots__ = ("backward", "forward", "title")

    def __init__(self, title: str, forward: System, backward: System | None) -> None:
        self.title = title
        self.forward = forward
        self.backward = backward

    @staticmethod
    def _parts(node: Node, many: Sequence[Any]) -> tuple[Any, Any, Any]:
        n = len(node.types)
        return many[:n], many[n : len(many) - n], many[len(many) - n :]

    def jvp(self, node: Node, tangents: Tangents) -> tuple[Value | None, ...]:
        _, constants, b = self._parts(node, node.inputs)
        _, constant_dots, b_dots = self._parts(node, tangents)
        rhs: list[Value | None] = list(b_dots)
        if any(t is not None for t in constant_dots):
            moved = along_constants(self.forward.matvec, constants, constant_dots, node.outputs)
            for i, (b_dot, t) in enumerate(zip(b_dots, moved, strict=True)):
                if t is not None:
                    rhs[i] = neg(t) if b_dot is None else sub(b_dot, t)
        if all(r is None for r in rhs):
            return (None,) * len(rhs)
        whole = [instantiated(x, r) for x, r in zip(b, rhs, strict=True)]
        return solved(self, constants, whole)

    def transpose(self, node: Node, cotangents: Tangents, linear: Sequence[bool]) -> Sequence[Any]:
        values, constants, b = self._parts(node, node.inputs)
        if self.backward is None:
            unsupported(
                "transpose",
                node,
                f"{self.title}: reverse mode solves with the transposed system: pass "
                f"transpose_solve, or symmetric=True",
            )
        turned = Solve(self.title, self.backward, self.forward)
        whole = [instantiated(x, c) for x, c in zip(b, cotangents, strict=True)]
        back = solved(turned, constants, whole)
        return [*[UNREAD] * len(values), *[None] * len(constants), *back]

    def batch(self, node: Node, operands: Sequence[Value], axes: Axes) -> Any:
        size = batch_size(operands, axes)
        values, constants, b = self._parts(node, operands)
        value_axes, constant_axes, b_axes = self._parts(node, axes)
        whole = [at_axis(x, a, 0, size) for x, a in zip(values, value_axes, strict=True)]
        sides = [at_axis(x, a, 0, size) for x, a in zip(b, b_axes, strict=True)]
        inputs = [*constant_axes, *[0] * len(b)]
        back = self.backward and self.backward.batched(inputs, size)
        rule = Solve(self.title, self.forward.batched(inputs, size), back)
        found = custom_call(whole, [*constants, *sides], rule, node.param("tie"))
        return found, (0,) * len(found)


def solved(rule: Solve, constants: Sequence[Value], b: Sequence[Value]) -> tuple[Value, ...]:
    """The solution of the rule's system."""
    tie = Tie()
    held = [hold(x, tie) for x in (*constants, *b)]
    return custom_call(inline(rule.forward.solve, held), [*constants, *b], rule, tie)


class Root(Rule):
    """The rule of ``x`` with ``f(constants, x) = 0``: operands are values, constants.

    Parameters
    ----------
    title : str
    f : Graph
        Of constants and x.
    solve : Graph
        Of constants, x and y: the solution of ``df/dx v = y``.
    """

    __slots__ = ("f", "solve", "title")

    def __init__(self, title: str, f: Graph, solve: Graph) -> None:
        self.title = title
        self.f = f
        self.solve = solve

    def jvp(self, node: Node, tangents: Tangents) -> tuple[Value | None, ...]:
        n = len(node.types)
        constants, x = node.inputs[n:], node.outputs
        moved = along_constants(self.f, constants, tangents[n:], x)
        if all(t is None for t in moved):
            return (None,) * n
        rhs = [instantiated(y, t) for y, t in zip(x, moved, strict=True)]
        return tuple([neg(v) for v in inline(self.solve, [*constants, *x, *rhs])])

    def transpose(self, node: Node, cotangents: Tangents, linear: Sequence[bool]) -> Sequence[Any]:
        # None for a linear constant: reverse mode says that a root is not linear in it.
        return [UNREAD if i < len(node.types) else None for i in range(len(node.inputs))]

    def batch(self, node: Node, operands: Sequence[Value], axes: Axes) -> Any:
        n, size = len(node.types), batch_size(operands, axes)
        whole = [at_axis(x, a, 0, size) for x, a in zip(operands[:n], axes[:n], strict=True)]
        f = batched_graph(self.f, [*axes[n:], *[0] * n], size)
        solve = batched_graph(self.solve, [*axes[n:], *[0] * (2 * n)], size)
        rule = Root(self.title, f, solve)
        return custom_call(whole, operands[n:], rule, node.param("tie")), (0,) * n
