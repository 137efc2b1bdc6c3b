"""The reference interpreter: NumPy, one op at a time. The oracle every backend is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .errors import TilegradError
from .graph import Graph, Node, Value, toposort
from .types import GROWING

__all__ = ["interpret", "interpret_graph"]

Array = np.ndarray[Any, Any]


def interpret(
    outputs: Sequence[Value], env: Mapping[Node, Any] | None = None, *, check: bool = True
) -> list[Array]:
    """The values of ``outputs``, by the ``reference`` of each op.

    Parameters
    ----------
    outputs : sequence of Value
    env : mapping of Node to array-like, optional
        Values of input nodes, or of any other node (which is then not computed); a tuple of arrays
        for a node of several results.
    check : bool
        Hold shape and dtype of each result against the node's types.

    Returns
    -------
    list of ndarray
        One an output; may share memory with operands and with each other, do not write to them.

    Raises
    ------
    TilegradError
        For an input without a value, an op without reference, or (``check``) a result whose shape
        or dtype is not what the type rule promised.

    Notes
    -----
    ``data`` nodes hold their value in ``memo``: a tuple of NumPy arrays, one a result. Other memos
    are not read: the interpreter computes. NumPy's warnings are off (IEEE results are results).
    Operands are dropped after their last use.
    """
    results: dict[Node, tuple[Array, ...] | None] = {}
    for node, value in (env or {}).items():
        many = value if isinstance(value, tuple) else (value,)
        arrays = tuple(
            np.asarray(a, dtype=t.dtype.numpy) for a, t in zip(many, node.types, strict=True)
        )
        _check_types(node, arrays)
        results[node] = arrays
    order = toposort(outputs, stop=results)
    uses: dict[Node, int] = {}
    for node in order:
        for x in node.inputs:
            uses[x.node] = uses.get(x.node, 0) + 1
    for x in outputs:
        uses[x.node] = uses.get(x.node, 0) + 1
    with np.errstate(all="ignore"):
        for node in order:
            operands = [results[x.node][x.index] for x in node.inputs]  # type: ignore[index]
            results[node] = arrays = _evaluate(node, operands)
            if check:
                _check_types(node, arrays)
            for x in node.inputs:
                uses[x.node] -= 1
                if not uses[x.node]:
                    results[x.node] = None
    return [results[x.node][x.index] for x in outputs]  # type: ignore[index]


def interpret_graph(graph: Graph, arguments: Sequence[Any], *, check: bool = True) -> list[Array]:
    """The outputs of a closed graph for one array-like an input."""
    return interpret(graph.outputs, dict(zip(graph.inputs, arguments, strict=True)), check=check)


def _evaluate(node: Node, operands: Sequence[Array]) -> tuple[Array, ...]:
    name = node.op.name
    if name == "data":
        if node.memo is None:
            raise TilegradError(f"interpret: data node {node} holds no array in its memo")
        return tuple(np.asarray(a) for a in node.memo)
    if name == "input":
        raise TilegradError(
            f"interpret: expected a value for the input {node.param('name')!r}: {node.types[0]}, "
            f"got none in env"
        )
    if node.op.reference is None:
        reason = node.op.why_not.get("reference", "no reason is given")
        raise TilegradError(f"interpret: op {name} has no NumPy reference: {reason}")
    if node.op.kind == "elementwise":
        # Some of NumPy's functions round differently on strided operands. The value of an element
        # must not depend on which views came before it.
        operands = [np.asarray(x, order="C") for x in operands]
    result = node.op.reference(*operands, **dict(node.params))
    return tuple(map(np.asarray, result)) if type(result) is tuple else (np.asarray(result),)


def _check_types(node: Node, arrays: Sequence[Array]) -> None:
    if len(arrays) != len(node.types):
        raise TilegradError(
            f"{node.op.name}: expected {len(node.types)} results, the reference gave {len(arrays)}"
        )
    for array, t in zip(arrays, node.types, strict=True):
        shape = array.shape
        if t.shape[:1] == (GROWING,) and shape:
            shape = (GROWING, *shape[1:])
        if shape != t.shape or array.dtype != t.dtype.numpy:
            got = f"{array.dtype}{list(array.shape)}"
            operands = ", ".join(str(x.type) for x in node.inputs)
            params = ", ".join(f"{k}={v!r}" for k, v in node.params)
            raise TilegradError(
                f"{node.op.name}({operands}) {{{params}}}: expected {t}, the NumPy value is {got}"
            )
