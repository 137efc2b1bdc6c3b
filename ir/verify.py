"""The verifier: holds a graph against everything a pass must keep."""

from __future__ import annotations

from .errors import TilegradError
from .graph import Graph, Literal, Node, Value
from .ops import OPS
from .text import node_text
from .types import TensorType

__all__ = ["VerificationError", "verify"]


class VerificationError(TilegradError):
    """A graph breaks a rule of the IR: a fault of the pass or tool that made it, never of the user.

    Attributes
    ----------
    node : Node or None
        The offending node.
    """

    def __init__(self, message: str, node: Node | None = None) -> None:
        super().__init__(message)
        self.node = node


def verify(graph: Graph, *, allow_data: bool = False) -> Graph:
    """``graph`` itself when it is well formed.

    Checked: inputs are distinct nodes of the op ``input`` and no other input is reached (the graph
    is closed); every op is the record of the table; operands are values of nodes; params are
    hashable and sorted by name; each type equals what the op's type rule derives from the operand
    types; literals hold as many bytes as their type; regions in params, likewise.

    Parameters
    ----------
    allow_data : bool
        Whether ``data`` nodes (arrays held by the engine) may occur.

    Raises
    ------
    VerificationError
        Names the node by its line of graph text.
    """
    seen: set[Node] = set()
    for node in graph.inputs:
        if node.op.name != "input":
            raise VerificationError(f"verify: input {node!r} is not a node of op input", node)
        if node in seen:
            raise VerificationError(f"verify: {_name(node)} is listed twice among the inputs", node)
        seen.add(node)
    for value in graph.outputs:
        _check_value(graph, value, None)
    for node in graph.nodes():
        fault = _fault(graph, node, allow_data)
        if fault is not None:
            raise VerificationError(f"verify: {fault}\n  in {node_text(graph, node)}", node)
    return graph


def _name(node: Node) -> str:
    return f"input {node.param('name')!r}"


def _check_value(graph: Graph, value: object, user: Node | None) -> None:
    whose = f"operand of {user!r}" if user is not None else "output"
    if not isinstance(value, Value):
        raise VerificationError(f"verify: {whose}: expected a Value, got {value!r}", user)
    if not 0 <= value.index < len(value.node.types):
        raise VerificationError(
            f"verify: {whose}: {value.node!r} has no result number {value.index}", value.node
        )


def _fault(graph: Graph, node: Node, allow_data: bool) -> str | None:
    """What is wrong with one node, or None."""
    if OPS.get(node.op.name) is not node.op:
        return f"op {node.op.name!r} is not the record of the table"
    if node.op.name == "input":
        return f"{_name(node)} is reached but is not among the graph's inputs: a foreign capture"
    if node.op.name == "data" and not allow_data:
        return "data held by the engine in a closed graph; it must be lifted to an input"
    for x in node.inputs:
        _check_value(graph, x, node)
    names = [name for name, _ in node.params]
    if names != sorted(set(names)):
        return f"params are not in the order of their names: {names}"
    for name, param in node.params:
        try:
            hash(param)
        except TypeError:
            return f"param {name!r} is not hashable: {param!r}"
        for region in param if type(param) is tuple else (param,):
            if type(region) is Graph:
                verify(region, allow_data=allow_data)
        if (
            type(param) is Literal
            and len(param.data) != TensorType(param.shape, param.dtype).nbytes
        ):
            return f"literal {name!r} holds {len(param.data)} bytes"
    return _type_fault(node)


def _type_fault(node: Node) -> str | None:
    try:
        derived = node.op.infer(*[x.type for x in node.inputs], **dict(node.params))
    except (TilegradError, IndexError, TypeError, ValueError) as error:
        return f"the type rule refuses the operands: {error}"
    if type(derived) is not tuple:
        derived = (derived,)
    if derived != node.types:
        expected = ", ".join(map(str, derived))
        return f"the type rule gives {expected}, the node says {', '.join(map(str, node.types))}"
    return None
