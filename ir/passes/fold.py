"""Constant folding: what depends on constants alone is computed now. Keeps every bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph import Graph, Literal, Node, Value, make
from ..ops.leaves import CONSTANT
from ..rewrite import rewrite_graph

__all__ = ["Evaluate", "evaluate_exactly", "fold"]

Array = np.ndarray[Any, Any]
Evaluate = Callable[[Node, Sequence[Array]], "Sequence[Array] | None"]

# A folded constant may not be larger than this, or it costs more memory than it saves time.
_LARGEST = 1024

# Floating ops whose NumPy value is the value of every backend to the bit: exact, or rounded once as
# IEEE 754 says.
_EXACT = frozenset(
    {
        *("add", "sub", "mul", "div", "neg", "abs", "sqrt", "sign", "copysign", "signbit"),
        *("floor", "ceil", "trunc", "rint", "nextafter", "maximum", "minimum", "scale", "unscale"),
        *("eq", "ne", "lt", "le", "gt", "ge", "where", "convert", "alias", "stop_gradient"),
        "complex",
    }
)
# Of these, the ones that act on the components of a complex operand one by one.
_EXACT_COMPLEX = frozenset(
    {
        *("add", "sub", "neg", "conj", "real", "imag", "eq", "ne"),
        *("where", "convert", "alias", "stop_gradient"),
    }
)
# Ops that only move elements.
_MOVES = frozenset({"reshape", "transpose", "broadcast", "slice", "pad", "concat"})
# Faults that belong to the run: an index, a divisor, an exponent that may never be reached.
_RUN_TIME_FAULTS = (ArithmeticError, IndexError, ValueError)


def evaluate_exactly(node: Node, operands: Sequence[Array]) -> Sequence[Array] | None:
    """The value of a node by its NumPy reference, for ops that have only one value; else None.

    Integer and bool arithmetic, moves of elements and the correctly rounded operations of IEEE 754
    are the same everywhere. Transcendental functions, complex products and sums of many terms are
    not NumPy's to say.
    """
    op, kinds = node.op, [x.dtype.kind for x in operands]
    if op.reference is None:
        return None
    if op.name not in _MOVES:
        exact = op.name in (_EXACT_COMPLEX if "c" in kinds else _EXACT)
        whole = op.kind == "elementwise" and not any(k in "fc" for k in kinds)
        if not exact and not (whole and not any(t.dtype.is_inexact for t in node.types)):
            return None
    with np.errstate(all="ignore"):
        result = op.reference(*operands, **dict(node.params))
    return result if type(result) is tuple else (result,)


def fold(graph: Graph, evaluate: Evaluate = evaluate_exactly) -> Graph:
    """Nodes whose operands are all constants become constants.

    Parameters
    ----------
    graph : Graph
    evaluate : callable, optional
        ``evaluate(node, operand_arrays) -> arrays | None``, one array a result; None leaves the
        node. An engine passes one that runs the kernels that would have run anyway, so that
        nothing changes by folding. Default: :func:`evaluate_exactly`.

    Notes
    -----
    Results of more than 1024 elements are left, and so is a broadcast: repeating a number in
    memory saves nothing. A division by zero or a bad index is left for the run to report.
    """

    def folded(node: Node) -> tuple[Value, ...] | None:
        if not node.inputs:
            return None
        for x in node.inputs:
            if x.node.op is not CONSTANT:
                return None
        if any(t.size > _LARGEST for t in node.types):
            return None
        if node.op.name == "broadcast" and node.types[0].size > node.inputs[0].size:
            return None
        operands = [x.node.param("literal").array() for x in node.inputs]
        try:
            arrays = evaluate(node, operands)
        except _RUN_TIME_FAULTS:
            return None
        if arrays is None:
            return None
        return tuple(
            make(CONSTANT, (), literal=Literal.of(a, t.dtype), weak=t.weak)
            for a, t in zip(arrays, node.types, strict=True)
        )

    return rewrite_graph(graph, folded)
