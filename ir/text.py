"""Graph text: stable, readable, exact. :func:`.parse.parse` reads it back.

One line a node, operands before their users, values numbered in that order::

    graph main(%0 "x": f64[3], %1 "y": f64[]) {
      %2: f64[3] = broadcast(%1) {axes=(), shape=(3,)}
      %3: f64[3] = mul(%0, %2)
      %4: f64[] = constant 0.1
      return %3, %4
    }

Numbers are spelled by the shortest decimal that reads back to the same float64 (a float32 is
spelled as the float64 it equals); ``-0.0`` keeps its sign, a NaN other than the default one shows
its bits as ``nan(0x...)``. Constants of more than 16 elements are base64 of their bytes in C
order, little-endian. A ``~`` after a type marks a weak one. ``#`` starts a comment.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .dtypes import DType
from .graph import Graph, Literal, Node, Value
from .types import TensorType

__all__ = ["node_text", "spell", "spell_literal", "text"]

_INLINE_ELEMENTS = 16
_INDENT = "  "


def text(graph: Graph, *, locations: bool = False) -> str:
    """The text of ``graph``; with ``locations`` each line ends with a comment: the user's line."""
    return "\n".join(_lines(graph, locations, ""))


def node_text(graph: Graph, node: Node) -> str:
    """The line of one node as it stands in the text of ``graph``, for messages."""
    names = _names((*graph.inputs, *graph.nodes()))
    if node.op.name == "input":
        return f"{names[Value(node, 0)]} {json.dumps(node.param('name'))}: {node.types[0]}"
    return _statement(node, names, "")


def _names(nodes: tuple[Node, ...]) -> dict[Value, str]:
    names: dict[Value, str] = {}
    for node in nodes:
        for i in range(len(node.types)):
            names[Value(node, i)] = f"%{len(names)}"
    return names


def _lines(graph: Graph, locations: bool, indent: str) -> list[str]:
    body = graph.nodes()
    names = _names((*graph.inputs, *body))
    inputs = ", ".join(
        f"{names[Value(n, 0)]} {json.dumps(n.param('name'))}: {n.types[0]}" for n in graph.inputs
    )
    lines = [f"{indent}graph {graph.name}({inputs}) {{"]
    inner = indent + _INDENT
    for node in body:
        line = inner + _statement(node, names, inner)
        if locations and node.location is not None:
            line += f"  # {node.location.filename}:{node.location.line}"
        lines.append(line)
    lines.append(f"{inner}return {', '.join(names[v] for v in graph.outputs)}".rstrip())
    lines.append(f"{indent}}}")
    return lines


def _statement(node: Node, names: Mapping[Value, str], indent: str) -> str:
    results = ", ".join(f"{names[v]}: {v.type}" for v in node.outputs)
    name = node.op.name
    if name == "constant":  # shape, dtype and weakness stand on the left already
        return f"{results} = constant {spell_literal(node.param('literal'))}"
    if name == "data":
        return f"{results} = data"
    if name == "input":  # foreign: not among the inputs of the graph; verify refuses it
        return f"{results} = input {json.dumps(node.param('name'))}"
    operands = ", ".join(names[v] for v in node.inputs)
    line = f"{results} = {name}({operands})"
    if node.params:
        params = ", ".join(f"{key}={spell(value, indent)}" for key, value in node.params)
        line += f" {{{params}}}"
    return line


def spell(value: Any, indent: str = "") -> str:
    """A param as graph text; ``<...>`` for an object without a spelling: the parser refuses it."""
    found = _SPELLINGS.get(type(value))
    if found is not None:
        return found(value)
    if type(value) is tuple:
        inner = ", ".join(spell(v, indent) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if type(value) is Graph:
        return "\n".join(_lines(value, False, indent)).lstrip()
    return f"<{type(value).__name__}>"


def _float(value: float) -> str:
    return _number(np.float64(value))


_SPELLINGS: dict[type, Callable[[Any], str]] = {
    type(None): str,
    bool: str,
    int: str,
    float: _float,
    complex: lambda z: f"complex{_element(np.complex128(z))}",
    str: json.dumps,
    bytes: lambda b: f"bytes {json.dumps(base64.b64encode(b).decode())}",
    DType: lambda d: d.short,
    TensorType: str,
    Literal: lambda x: f"{TensorType(x.shape, x.dtype)} {spell_literal(x)}",
}


def spell_literal(literal: Literal) -> str:
    """The data alone: ``0.5``, ``[1, 2, 3]`` (flat, C order), or base64 in quotes."""
    array = np.frombuffer(literal.data, literal.dtype.numpy)
    if array.size > _INLINE_ELEMENTS:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return json.dumps(base64.b64encode(little.tobytes()).decode())
    flat = [_element(x) for x in array]
    return ", ".join(flat) if not literal.shape else f"[{', '.join(flat)}]"


def _element(x: Any) -> str:
    if x.dtype.kind == "c":
        return f"({_number(x.real)}, {_number(x.imag)})"
    return _number(x) if x.dtype.kind == "f" else str(x)


_DEFAULT_NAN = {4: 0x7FC00000, 8: 0x7FF8000000000000}


def _number(x: Any) -> str:
    if x == x:
        return repr(float(x))
    width = x.dtype.itemsize
    bits = int.from_bytes(x.astype(x.dtype.newbyteorder("<")).tobytes(), "little")
    return "nan" if bits == _DEFAULT_NAN[width] else f"nan({bits:#x})"
