"""Programs of one node: most eager operations, and programs that are seen for the first time.

A web that runs node by node runs on plans of single nodes, which most programs share. The results
are those of the whole program to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.errors import TilegradError
from ..ir.graph import Node, Value
from ..ir.ops.custom import CUSTOM_CALL, HOLD, values_of
from ..ir.ops.leaves import CONSTANT
from ..ir.ops.shape import BROADCAST
from ..ir.types import TensorType
from .closing import STRIDE, Web, graph_of, params_key, single_key
from .config import config
from .programs import PlanTable

__all__ = ["PLANS", "missing_plans", "note_number", "run_alone", "run_nodes"]

Buffer = np.ndarray[Any, Any]

# Programs of eager code, of whole webs too.
PLANS = PlanTable(limit=4096)

set_memo = Node.memo.__set__  # type: ignore[attr-defined]


# ------------------------------------------------------------------------------ eager operations


def run_alone(node: Node) -> bool:
    """Fill the memo of a node whose operands are all there; False if they are not.

    What :func:`.realize.realize_values` does, without a web: most eager operations end here.
    """
    inputs = node.inputs
    if node.op.kind == "view" and len(inputs) == 1:
        return _run_views(node)
    if len(inputs) == 2:
        left, right = inputs
        if left.node.memo is None and not _lifted(left.node):
            return right.node.memo is not None and _run_with_number(node, right, left)
        if right.node.memo is None and not _lifted(right.node):
            return _run_with_number(node, left, right)
    places: dict[Node, int] = {}
    numbers: list[int] = []
    buffers: list[Buffer] = []
    types: list[TensorType] = []
    for x in inputs:
        source = x.node
        memo = source.memo
        if memo is None or x.index:
            return False
        if source not in places:
            places[source] = -1 - len(buffers)
            buffers.append(memo[0])
            types.append(source.types[0])
        numbers.append(places[source])
    return bool(buffers) and _run_plan(node, PLANS.get(single_key(node, types, numbers)), buffers)


def _run_plan(node: Node, plan: Any, buffers: list[Buffer]) -> bool:
    if plan is None:
        return False
    PLANS.stats.calls += 1
    try:
        results = plan.run(buffers)
    except (ArithmeticError, LookupError, ValueError) as error:
        raise _at_node(error, node) from None
    set_memo(node, tuple(results))
    return True


def _lifted(node: Node) -> bool:
    """Let a constant hold its data like any other leaf; False for any other node."""
    if node.op is not CONSTANT:
        return False
    set_memo(node, (node.param("literal").array(),))
    return True


def _run_with_number(node: Node, given: Value, number: Value) -> bool:
    """The same where one of two operands is a Python number in the shape of the other."""
    key = _number_key(node, given, number)
    if key is None:
        return False
    operands = [given.node.memo[0], number.node.inputs[0].node.memo[0]]
    if node.inputs[0] is number:
        operands.reverse()
    return _run_plan(node, PLANS.get(key), operands)


def _number_key(node: Node, given: Value, number: Value) -> Any:
    """What to find the plan by: that of the two nodes ``op(x, broadcast(c))``, see note_number."""
    source = number.node
    if source.op is not BROADCAST or given.index:
        return None
    constant = source.inputs[0].node
    if constant.op is not CONSTANT or constant.types[0].shape:
        return None
    if constant.memo is None:  # a number that was not used before
        _lifted(constant)
    t, s = given.node.types[0], source.types[0]
    return (
        *("number", node.op, params_key(node.params), node.inputs[0] is number),
        *(t.shape, t.dtype, t.weak, s.shape, s.dtype, s.weak),
    )


def note_number(node: Node, web: Web) -> None:
    """Let ``run_alone`` find the plan of a web that is one operation with a number."""
    if len(web.nodes) != 2 or len(web.leaves) != 2 or len(node.inputs) != 2:
        return
    plan = PLANS.get(web.key)
    left, right = node.inputs
    given, number = (right, left) if left.node.memo is None else (left, right)
    if plan is None or number.node.memo is not None or given.node.memo is None:
        return
    key = _number_key(node, given, number)
    if key is not None:
        PLANS.put(key, plan)


def _run_views(node: Node) -> bool:
    """Fill the memo of a node that is a view, or a chain of views, of results that are there."""
    chain = [node]
    x = node.inputs[0]
    while x.node.memo is None:
        if x.node.op.kind != "view" or len(x.node.inputs) != 1:
            return False
        chain.append(x.node)
        x = x.node.inputs[0]
    buffer = x.node.memo[x.index]
    for view in reversed(chain):
        reference: Any = view.op.reference
        buffer = reference(buffer, **dict(view.params))
    set_memo(node, (np.array(buffer, order="C", copy=None),))
    return True


# ------------------------------------------------------------------------------ node by node


def _passes(node: Node) -> bool:
    """Whether the results are the first operands: what matters to derivatives alone."""
    return node.op is HOLD or (node.op is CUSTOM_CALL and bool(values_of(node)))


def missing_plans(web: Web) -> int:
    """How many of the single-node plans of a web are not compiled yet."""
    missing = set()
    for node, numbers in zip(web.nodes, web.operands, strict=True):
        places, types = _places(node, numbers)
        if (node.op.kind == "view" and len(types) == 1) or _passes(node):
            continue
        key = single_key(node, types, [places[n] for n in numbers])
        if PLANS.get(key) is None:
            missing.add(key)
    return len(missing)


def _places(node: Node, numbers: Sequence[int]) -> tuple[dict[int, int], list[TensorType]]:
    """A place for each different operand of a node run alone, and their types."""
    places: dict[int, int] = {}
    types: list[TensorType] = []
    for n, x in zip(numbers, node.inputs, strict=True):
        if n not in places:
            places[n] = -1 - len(types)
            types.append(x.type)
    return places, types


def run_nodes(web: Web, buffers: list[Buffer]) -> list[Buffer]:
    """The outputs, one node after the other; results are dropped after their last use."""
    last_use: dict[int, int] = {}
    for position, numbers in enumerate(web.operands):
        for n in numbers:
            if n >= 0:
                last_use[n // STRIDE] = position
    kept = {n // STRIDE for n in web.outputs if n >= 0}
    results: list[Any] = []

    def result(n: int) -> Buffer:
        return buffers[-1 - n] if n < 0 else results[n // STRIDE][n % STRIDE]

    for position, (node, numbers) in enumerate(zip(web.nodes, web.operands, strict=True)):
        results.append(_run_node(node, numbers, [result(n) for n in numbers]))
        for n in numbers:
            source = n // STRIDE
            if n >= 0 and last_use[source] == position and source not in kept:
                results[source] = None
    return [result(n) for n in web.outputs]


def _view(node: Node, operand: Buffer) -> Buffer:
    """A view op on a buffer: NumPy moves the data, or nothing where the result lies in one piece.

    There is nothing to compile, and no bit to compute: indices that change in a Python loop cost
    no new programs.
    """
    reference: Any = node.op.reference
    return np.array(reference(operand, **dict(node.params)), order="C", copy=None)


def _run_node(node: Node, numbers: Sequence[int], operands: Sequence[Buffer]) -> list[Buffer]:
    """One node on its own plan; operands given twice are passed once."""
    places, types = _places(node, numbers)
    unique = list(dict(zip(numbers, operands, strict=True)).values())
    if node.op.kind == "view" and len(operands) == 1:
        return [_view(node, operands[0])]
    if _passes(node):
        return list(operands[: len(node.types)])
    key = single_key(node, types, [places[n] for n in numbers])
    plan = PLANS.get(key)
    if plan is None:
        plan = PLANS.compiled(key, lambda: graph_of(_single_web(node, key, places, numbers)))
    try:
        found: list[Buffer] = plan.run(unique)
    except (ArithmeticError, LookupError, ValueError) as error:
        raise _at_node(error, node) from None
    if config.stepwise:
        check_results(node, operands, found)
    return found


def _single_web(node: Node, key: Any, places: dict[int, int], numbers: Sequence[int]) -> Web:
    """The web of one node over its distinct operands."""
    leaves: list[Value] = []
    for n, x in zip(numbers, node.inputs, strict=True):
        if -1 - places[n] == len(leaves):
            leaves.append(x)
    operands = [tuple([places[n] for n in numbers])]
    return Web([node], operands, leaves, tuple(range(len(node.types))), key)


def _at_node(error: Exception, node: Node) -> Exception:
    """``error`` with the line that made the node, once."""
    if not hasattr(error, "location") and node.location is not None and error.args:
        error.location = node.location  # type: ignore[attr-defined]
        error.args = (f"{error.args[0]}\n  at {node.location}", *error.args[1:])
    return error


def check_results(node: Node, operands: Sequence[Buffer], results: Sequence[Buffer]) -> None:
    """What ``config.verify`` and ``config.debug_nans`` look for."""
    if config.verify:
        _verify(node, results)
    if config.debug_nans:
        if any(x.dtype.kind in "fc" and np.isnan(x).any() for x in operands):
            return  # it came in
        for result in results:
            if result.dtype.kind in "fc" and np.isnan(result).any():
                where = tuple(int(i) for i in np.argwhere(np.isnan(result))[0])
                shown = ", ".join([str(x.type) for x in node.inputs])
                raise _at_node(
                    FloatingPointError(
                        f"{node.op.name}({shown}): made a NaN, the first at {list(where)}, of "
                        f"operands without (config.debug_nans)"
                    ),
                    node,
                )


def _verify(node: Node, results: Sequence[Buffer]) -> None:
    for result, type in zip(results, node.types, strict=True):
        if result.shape != type.shape or result.dtype != type.dtype.numpy:
            raise _at_node(
                TilegradError(
                    f"{node.op.name}: inferred {type}, but the kernel gave "
                    f"{result.dtype}{list(result.shape)}: a fault of tilegrad, please report it"
                ),
                node,
            )
