"""Programs node by node, each node held against its NumPy reference on the same operands.

A node is compared where its operands are the same bits on both sides, so errors that a program
makes larger (a difference of two nearly equal numbers, a loop that is chaotic) accuse nobody. Loops
and branches are run twice: as native code, and by their steps, each of them checked likewise; both
have the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.graph import Graph, Node, Value
from ..ir.interpret import interpret
from ..ir.ops.leaves import CONSTANT, input_node
from ..ir.types import GROWING
from .closing import close
from .single import run_nodes

__all__ = ["Fault", "NodeRun", "bits", "describe"]

Array = np.ndarray[Any, Any]

_ULPS = 16.0
# Good to so many places of the larger of result and 1: they have zeros between their poles, or are
# summed there (see ir/scalar/log_gamma.py, polygamma.py and sine_ratio.py).
_AROUND_ZEROS = frozenset({"lgamma", "polygamma", "sine_ratio"})
# Moves and calls of Python: the reference itself runs.
_UNCHECKED = frozenset({"view", "host", "custom", "order"})


def bits(x: Array) -> Array:
    """The elements as integers, in C order, two for a complex one; every NaN is the same."""
    flat = np.ascontiguousarray(x).reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    if flat.dtype.kind == "f":
        flat = np.where(np.isnan(flat), flat.dtype.type(np.nan), flat)
    return flat.view(f"u{flat.itemsize}")


def describe(node: Node) -> str:
    """``exp(f64[3]) -> f64[3] at model.py:12``."""
    operands = ", ".join([str(x.type) for x in node.inputs])
    results = ", ".join(map(str, node.types))
    where = f" at {node.location}" if node.location is not None else ""
    return f"{node.op.name}({operands}) -> {results}{where}"


@dataclass(frozen=True, slots=True)
class Fault:
    """The first node whose results are wrong, and the regions around it, innermost first."""

    node: Node
    around: tuple[str, ...]

    def __str__(self) -> str:
        return describe(self.node) + "".join([f", in a {name}" for name in self.around])


class NodeRun:
    """Runs graphs node by node on single-node plans.

    Attributes
    ----------
    fault : Fault or None
        The first node whose results differ from the reference's by more than rounding. What comes
        after it is run, but not checked.
    """

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self._around: list[str] = []
        self._alone: dict[Node, tuple[Graph, Any]] = {}

    def run(self, graph: Graph, arrays: Sequence[Array]) -> list[Array]:
        """The outputs, results dropped after their last use."""
        results: dict[Node, Any] = {
            node: (array,) for node, array in zip(graph.inputs, arrays, strict=True)
        }
        nodes = graph.nodes()
        uses: dict[Node, int] = {}
        for x in (*graph.outputs, *[x for node in nodes for x in node.inputs]):
            uses[x.node] = uses.get(x.node, 0) + 1
        for node in nodes:
            results[node] = self._step(node, {x: results[x.node][x.index] for x in node.inputs})
            for x in node.inputs:
                uses[x.node] -= 1
                if not uses[x.node]:
                    results[x.node] = None
        return [results[x.node][x.index] for x in graph.outputs]

    def _step(self, node: Node, operands: dict[Value, Array]) -> Sequence[Array]:
        if node.op is CONSTANT:
            return (node.param("literal").array(),)
        if node not in self._alone:
            self._alone[node] = _alone(node)
        graph, web = self._alone[node]
        arrays = list(operands.values())
        found = run_nodes(web, arrays)
        if self.fault is None and node.op.kind not in _UNCHECKED:
            if node.op.kind == "region":
                right = self._is_its_steps(node, [operands[x] for x in node.inputs], found)
            else:
                right = _is_right(node, graph, arrays, found)
            if not right:
                self.fault = Fault(node, tuple(reversed(self._around)))
        return found

    def _is_its_steps(self, node: Node, operands: list[Array], found: Sequence[Array]) -> bool:
        """Whether a region has the bits of its steps, run one by one; true if one is at fault."""
        from ..kernels.host_regions import run_on_host

        self._around.append(node.op.name)
        steps = run_on_host(node, operands, lambda graph: lambda given: self.run(graph, given))
        self._around.pop()
        if self.fault is not None:
            return True
        return all(
            np.array_equal(bits(x), bits(y))
            for x, y, t in zip(steps, found, node.types, strict=True)
            if t.shape[:1] != (GROWING,)  # of lanes that had finished, tapes hold anything
        )


def _alone(node: Node) -> tuple[Graph, Any]:
    """One node over its distinct operands, as a graph and as a web."""
    inputs = {x: input_node(x.type, "x") for x in node.inputs}
    operands = tuple([inputs[x].out for x in node.inputs])
    inner = Node(node.op, operands, node.params, node.types, node.place)
    graph = Graph(tuple(inputs.values()), inner.outputs)
    return graph, close(graph.outputs, graph.inputs)


def _is_right(node: Node, graph: Graph, arrays: list[Array], found: Sequence[Array]) -> bool:
    """Whether results differ from the reference's by rounding only."""
    expected = interpret(graph.outputs, dict(zip(graph.inputs, arrays, strict=True)))
    with np.errstate(all="ignore"):
        return all(
            _is_near(x, y, allowed)
            for x, y, allowed in zip(
                found, expected, _allowed(node, graph, arrays, expected), strict=True
            )
        )


def _is_near(x: Array, y: Array, allowed: Any) -> bool:
    if x.dtype.kind not in "fc":
        return bool(np.array_equal(x, y))
    same = (x == y) | ~(np.isfinite(x) | np.isfinite(y)) if x.dtype.kind == "c" else x == y
    near = np.abs(x - y) <= allowed
    return bool(np.all(same | near | (np.isnan(x) & np.isnan(y)) | np.isposinf(allowed)))


def _allowed(
    node: Node, graph: Graph, arrays: list[Array], expected: Sequence[Array]
) -> list[Array]:
    """The largest differences that are rounding, an array for each result.

    Elementwise: 16 ulp of the result. Where ``n`` terms meet in an order of the kernel's own
    (reductions, scans, products of matrices, scatters): ``16 sqrt(n)`` ulp of what the reference
    makes of the magnitudes, as roundings of n terms add up like a random walk and are in
    proportion to their sum (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
    sections 3.1 and 2.8); n is taken to be the elements of the largest operand. Factors of
    matrices: half the places of the largest element, for the error grows with the condition.
    """
    kind = node.op.kind
    if kind in ("sort", "leaf"):
        return [np.zeros(()) for _ in expected]
    sizes = [np.abs(y) for y in expected]
    if kind == "linalg":
        largest = [np.max(y, initial=0.0) for y in sizes]
        return [
            np.asarray(math.sqrt(np.finfo(y.dtype).eps) * m)
            for y, m in zip(sizes, largest, strict=True)
        ]
    factor = _ULPS
    if kind != "elementwise":
        factor *= math.sqrt(max([x.size for x in arrays], default=1))
        whole = [np.abs(x).astype(x.dtype) if x.dtype.kind in "fc" else x for x in arrays]
        found = interpret(graph.outputs, dict(zip(graph.inputs, whole, strict=True)))
        sizes = [np.maximum(a, np.abs(b)) for a, b in zip(sizes, found, strict=True)]
    elif node.op.name in _AROUND_ZEROS:
        sizes = [np.maximum(y, y.dtype.type(1)) for y in sizes]
    return [
        np.where(np.isfinite(y), factor * np.spacing(y), np.inf if kind != "elementwise" else 0.0)
        if y.dtype.kind == "f"
        else np.zeros(())
        for y in sizes
    ]
