"""Which elements of a linear program's results depend on which elements of its inputs.

The tangents of a function (:mod:`.forward`) are a linear program of the tangents of its arguments,
so the pattern of a Jacobian is what this program lets through: each value is interpreted as a set
of inputs for each of its elements, a boolean matrix of as many rows as the value has elements. Ops
that are not linear never come up, piecewise constant ones and rules of the user's are settled by
forward mode before. (Gebremedhin, Manne, Pothen, What color is your Jacobian?, 2005, section 1;
Walther, Computing sparse Hessians with automatic differentiation, 2008, for the sets.)

The pattern is exact for elementwise ops, views, reductions, contractions, and for indices, masks
and fixed factors of contractions that are known; it does not see that numbers cancel or are zero
elsewhere. What is not known is taken to be anything, so no entry is ever missed, and what depends
on the point of differentiation is not known: the pattern holds at every point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..ir.errors import TilegradError
from ..ir.graph import Graph, Node, Value, toposort
from ..ir.interpret import interpret
from ..ir.ops.checkpoint import CHECKPOINT
from ..ir.ops.custom import CUSTOM_CALL, values_of
from ..ir.ops.leaves import CONSTANT, DATA, INPUT, IOTA

__all__ = ["Pattern", "Patterns", "grouped", "selected", "sparsity"]

Pattern = Any  # a boolean scipy.sparse.csr_array: elements x inputs
Indices = np.ndarray[Any, Any]
Rule = Callable[["Patterns", Node], "Pattern | None"]

_LARGEST = 1 << 22  # elements of a known value, entries of a selection


def sparsity(
    outputs: Sequence[Value | None],
    inputs: Sequence[Value],
    sizes: Sequence[int],
    unknown: Sequence[Value] = (),
) -> Pattern:
    """The pattern of a linear program.

    Parameters
    ----------
    outputs : sequence of (Value or None)
        Linear in the inputs; None is zero.
    inputs : sequence of Value
    sizes : sequence of int
        The number of elements of each output.
    unknown : sequence of Value
        What the pattern must not depend on: the point of differentiation.

    Returns
    -------
    csr_array of bool
        One row for each element of the outputs, one column for each of the inputs, both in their
        order, C order within an array.
    """
    from scipy import sparse

    columns = sum(x.size for x in inputs)
    patterns = Patterns(columns, {x.node for x in (*unknown, *inputs)})
    at = 0
    for x in inputs:
        patterns.enter(x, _identity(x.size, columns, at))
        at += x.size
    patterns.run([x for x in outputs if x is not None])
    blocks = []
    for y, size in zip(outputs, sizes, strict=True):
        found = None if y is None else patterns.of(y)
        blocks.append(sparse.csr_array((size, columns), dtype=bool) if found is None else found)
    whole = sparse.vstack(blocks, format="csr") if blocks else sparse.csr_array((0, columns))
    whole.sum_duplicates()
    return whole.astype(bool)


def _identity(size: int, columns: int, at: int) -> Pattern:
    from scipy import sparse

    parts = np.ones(size, bool), np.arange(at, at + size), np.arange(size + 1)
    return sparse.csr_array(parts, shape=(size, columns))


def selected(x: Pattern, places: Indices) -> Pattern:
    """Row ``places[k]`` of ``x`` as row ``k``; a negative place is an empty row."""
    from scipy import sparse

    flat = places.reshape(-1)
    there = flat >= 0
    parts = np.ones(int(there.sum()), bool), flat[there], np.concatenate([[0], np.cumsum(there)])
    return sparse.csr_array(parts, shape=(flat.size, x.shape[0])) @ x


def grouped(x: Pattern, groups: Indices, count: int) -> Pattern:
    """The union of the rows of each group: row ``k`` belongs to the group ``groups[k]``."""
    from scipy import sparse

    flat = groups.reshape(-1)
    ones = np.ones(flat.size, bool)
    pairs = flat, np.arange(flat.size)
    return sparse.csr_array((ones, pairs), shape=(count, flat.size)) @ x


class Patterns:
    """Patterns of the values of a web.

    Attributes
    ----------
    columns : int
    given : mapping of Value to array
        Values that are known although the web does not tell: inputs of a body.
    """

    def __init__(
        self,
        columns: int,
        unknown: set[Node],
        given: Mapping[Value, Indices] | None = None,
    ) -> None:
        self.columns = columns
        self.given = dict(given or {})
        self.unknown = unknown
        self._found: dict[Value, Pattern] = {}
        self._known: dict[Value, Indices | None] = {}

    def enter(self, x: Value, pattern: Pattern | None) -> None:
        if pattern is not None and pattern.nnz:
            self._found[x] = pattern

    def of(self, x: Value) -> Pattern | None:
        """The pattern of a value; None: it depends on nothing."""
        return self._found.get(x)

    def run(self, outputs: Sequence[Value]) -> None:
        """Patterns of ``outputs`` and of what they are made of."""
        from .sparsity_rules import RULES  # it builds on this module

        for node in toposort(outputs, stop=[x.node for x in self._found]):
            if not any(x in self._found for x in node.inputs):
                continue
            if node.op.kind == "region":
                from .sparsity_regions import region

                for y, found in zip(node.outputs, region(self, node), strict=True):
                    self.enter(y, found)
            elif node.op is CHECKPOINT:
                self.body(node)
            elif node.op is CUSTOM_CALL and values_of(node):
                for y, x in zip(node.outputs, values_of(node), strict=True):
                    self.enter(y, self.of(x))
            elif len(node.types) == 1:
                self.enter(node.out, RULES.get(node.op.name, self.by_kind)(self, node))
            else:
                for y in node.outputs:
                    self.enter(y, self.everything(node, y))

    def by_kind(self, _: Patterns, node: Node) -> Pattern | None:
        """Elementwise ops go by element; what is not known mixes everything."""
        if node.op.kind == "elementwise":
            return self.union([self.of(x) for x in node.inputs])
        return self.everything(node, node.out)

    def union(self, patterns: Sequence[Pattern | None]) -> Pattern | None:
        total: Pattern | None = None
        for x in patterns:
            if x is not None:
                total = x if total is None or total is x else total + x
        return total

    def everything(self, node: Node, y: Value) -> Pattern | None:
        """Each element of ``y`` depends on whatever an operand depends on."""
        rows = [
            grouped(p, np.zeros(p.shape[0], np.int64), 1)
            for p in (self.of(x) for x in node.inputs)
            if p is not None
        ]
        row = self.union(rows)
        return None if row is None else selected(row, np.zeros(y.size, np.int64))

    def body(self, node: Node) -> None:
        graph: Graph = node.param("body")
        results = self.through(graph, [self.of(x) for x in node.inputs], node.inputs)
        for y, found in zip(node.outputs, results, strict=True):
            self.enter(y, found)

    def through(
        self,
        graph: Graph,
        patterns: Sequence[Pattern | None],
        operands: Sequence[Value | Indices | None],
    ) -> list[Pattern | None]:
        """Patterns of a graph's outputs for those of its inputs.

        ``operands`` are what the inputs are, as far as they may be known.
        """
        given = {}
        for x, operand in zip(graph.inputs, operands, strict=True):
            value = self.known(operand) if isinstance(operand, Value) else operand
            if value is not None:
                given[x.out] = value
        inner = Patterns(self.columns, self.unknown, given)
        for x, pattern in zip(graph.inputs, patterns, strict=True):
            inner.enter(x.out, pattern)
        inner.run(graph.outputs)
        return [inner.of(y) for y in graph.outputs]

    # --------------------------------------------------------------------------- known values

    def known(self, x: Value) -> Indices | None:
        """The array of a value that is the same at every point, if it is not dear to know."""
        if x in self.given:
            return self.given[x]
        if x not in self._known:
            self._known[x] = self._evaluated(x)
        return self._known[x]

    def _evaluated(self, x: Value) -> Indices | None:
        order = toposort([x], stop=[y.node for y in self.given])
        leaves = {y.node for y in self.given}
        if len(order) > 1000:
            return None
        for node in order:
            if node in self.unknown or node.op is INPUT or (node.op is DATA and node.memo is None):
                return None
            if node.op.kind in ("host", "region", "custom") or node.types[0].size > _LARGEST:
                return None
            if not node.inputs and node.op not in (CONSTANT, DATA, IOTA) and node not in leaves:
                return None
        try:
            env: dict[Node, Any] = {y.node: array for y, array in self.given.items()}
            return interpret([x], env)[0]
        except (TilegradError, ArithmeticError, LookupError, ValueError):
            return None  # what fails here fails again when the program runs


def positions_of(x: Value) -> Indices:
    """The number of each element."""
    return np.arange(x.size).reshape(x.shape)


def spans(shape: Sequence[int], axes: Sequence[int]) -> tuple[Indices, int]:
    """For each element of ``shape`` the number of its place along all but ``axes``."""
    kept = [n if d not in axes else 1 for d, n in enumerate(shape)]
    count = prod(kept)
    return np.broadcast_to(np.arange(count).reshape(kept), tuple(shape)), count
