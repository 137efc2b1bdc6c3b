"""Realization: computing pending arrays, one program for all that is asked for.

The web behind the arrays is closed (:mod:`.closing`) and its key looked up. A key seen for the
first time runs node by node on plans of single nodes, which most programs share, unless too many
of those are missing; a key seen again is compiled as a whole. Both give the same bits. Results are
kept in the nodes; and unless somebody is differentiating through them, the arrays let go of their
history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import ref

import numpy as np

from ..ir.functions.concrete import set_evaluator
from ..ir.graph import Node, Value
from ..ir.ops.leaves import DATA
from ..ir.types import TensorType
from .closing import Web, close, graph_of
from .config import config
from .programs import Stats
from .single import PLANS, missing_plans, note_number, run_alone, run_nodes
from .tracing import MARKS, RUNNING, Marked, describe_input, find_input, is_marked, tracer_error

__all__ = [
    "buffer_of",
    "data_node",
    "intern",
    "realize_arrays",
    "stats",
    "traced",
]

Buffer = np.ndarray[Any, Any]

# A web of more nodes is never compiled as a whole: compiling would take longer than running.
_MOST_NODES = 1024

# TensorTypes are interned: the keys of compiled programs then compare by identity first.
_TYPES: dict[TensorType, TensorType] = {}
# By identity, since asking is quicker than hashing a type; those here live for ever.
_INTERNED: set[int] = set()


def intern(type: TensorType) -> TensorType:
    """The one object that stands for all equal types."""
    if id(type) in _INTERNED:
        return type
    found = _TYPES.setdefault(type, type)
    _INTERNED.add(id(found))
    return found


def data_node(buffer: Buffer, type: TensorType) -> Node:
    """A leaf that holds ``buffer``."""
    return Node(DATA, (), (("type", type),), (type,), None, (buffer,))


def stats() -> Stats:
    """Counters of deferred execution."""
    return PLANS.stats


# ------------------------------------------------------------------------------ arrays


def buffer_of(array: Any, what: str) -> Buffer:
    """The buffer of a pending array; ``what`` asks for it, for the message if there is none."""
    value: Value = array._value
    memo = value.node.memo
    if memo is None:
        realize_arrays([array], what)
        memo = value.node.memo
    elif not is_marked(value.node):
        _settle(array, value)
    return memo[value.index]  # type: ignore[no-any-return]


def realize_arrays(arrays: Sequence[Any], what: str) -> None:
    """Compute pending arrays, together with pending ones that the same call returned.

    Other threads may do so at the same time, so each array is asked for its value once.
    """
    if len(arrays) == 1 and arrays[0]._peers is None:  # the short way of the commonest case
        (array,) = arrays
        value = array._value
        fresh = value.node.memo is None and not MARKS and not config.stepwise
        if fresh and (run_alone(value.node) or _run_one(value.node)):
            _settle(array, value)
            return
        if not realize_values([value], what) and not (MARKS and is_marked(value.node)):
            _settle(array, value)
        return
    wanted = {id(array): array for array in arrays}
    for array in arrays:
        for other in array._peers or ():
            peer = other()
            if peer is not None and _is_pending(peer):
                wanted.setdefault(id(peer), peer)
    pending = list(wanted.values())
    values = [array._value for array in pending]
    marked = realize_values(values, what, needed=len(arrays))
    for array, value in zip(pending, values, strict=True):
        if value.node.memo is not None:
            array._peers = None
            if not marked or not is_marked(value.node):
                _settle(array, value)


def _is_pending(array: Any) -> bool:
    """Whether an array is still to be computed: a deleted one has neither buffer nor node."""
    return array._buffer is None and array._node is not None


def _settle(array: Any, value: Value) -> None:
    """Let an array go on with the buffer of its value alone, so that its history is freed."""
    array._type = intern(array._type)
    array._buffer = value.node.memo[value.index]
    array._node = None


def make_peers(arrays: Sequence[Any]) -> None:
    """Let the results of one call be computed together: they share most of their work."""
    pending = [array for array in arrays if array._buffer is None]
    if len(pending) > 1:
        group = tuple([ref(array) for array in pending])
        for array in pending:
            array._peers = group


def traced(array: Any) -> str | None:
    """How an array depends on an argument of a running function; None if it does not."""
    if array._buffer is not None:
        return None
    value = array._value
    found = find_input([value])
    if found is None:
        return None
    location = value.node.location
    return describe_input(found) + (f", made at {location}" if location is not None else "")


# Arrays made since the last look at the size of webs, and the last of them.
_made = 0
_recent: list[ref[Any]] = []


def note_pending(array: Any) -> None:
    """Called for each new pending array: keeps webs from growing without end."""
    global _made
    _made += 1
    if _made > config.patience:
        _note_late(array)


def _note_late(array: Any) -> None:
    """Compute what waits for too much among the last arrays that are still there, in one program.

    A loop carries some of the arrays that it makes and drops the others, so looking at single ones
    could meet the same passing one each time.
    """
    global _made
    if RUNNING.get():  # it may be traced; look at the next one outside
        return
    if config.eager:
        if find_input([array._value]) is None:
            realize_arrays([array], "operation")
        return
    _recent.append(ref(array))
    if len(_recent) > config.pending_limit // 4:
        there = [x for x in [r() for r in _recent] if x is not None and _is_pending(x)]
        _recent.clear()
        _made = 0
        # Another thread's tracer is none of this thread's traces: the web tells.
        large = [x for x in there if _is_large(x._value) and find_input([x._value]) is None]
        if large:
            realize_arrays(large, "operation")


def _is_large(value: Value) -> bool:
    """Whether a value waits for more nodes than the limit."""
    limit = config.pending_limit
    stack, seen = [value.node], {value.node}
    while stack and len(seen) < limit:
        for operand in stack.pop().inputs:
            node = operand.node
            if node not in seen and node.memo is None:
                seen.add(node)
                stack.append(node)
    return len(seen) >= limit


# ------------------------------------------------------------------------------ values


def evaluate(value: Value) -> Buffer:
    """The data of one value; raises ``TracerError`` if it is traced."""
    if value.node.memo is None:
        realize_values([value], "use of its values")
    return value.node.memo[value.index]  # type: ignore[no-any-return]


set_evaluator(evaluate)


def realize_values(values: Sequence[Value], what: str, needed: int | None = None) -> bool:
    """Fill the memo of the nodes behind ``values``.

    Only the first ``needed`` must be computable; others that turn out to be traced are left out.

    Returns
    -------
    bool
        Whether one of them depends on active marks, so that its history must stay.

    Raises
    ------
    TracerError
        If a value depends on an input.
    """
    nodes = list(dict.fromkeys([x.node for x in values if x.node.memo is None]))
    web = _close_all(nodes)
    if web.foreign:
        for value in values[: len(values) if needed is None else needed]:
            found = find_input([value])
            if found is not None:
                raise tracer_error(what, value, found)
        nodes = [node for node in nodes if find_input([Value(node, 0)]) is None]
        web = _close_all(nodes)
    results = _run(web) if nodes else []
    place = 0
    for node in nodes:
        count = len(node.types)
        memo = tuple(results[place : place + count])
        place += count
        if web.marks:
            memo = Marked(memo)
            memo.marks = frozenset(web.marks)
        object.__setattr__(node, "memo", memo)
    return bool(web.marks) or (bool(MARKS) and any(is_marked(x.node) for x in values))


def _run_one(node: Node) -> bool:
    """Fill the memo of one node that nobody differentiates; False if it is traced."""
    web = _close_all((node,))
    if web.foreign:
        return False
    object.__setattr__(node, "memo", tuple(_run(web)))
    note_number(node, web)
    return True


def _close_all(nodes: Sequence[Node]) -> Web:
    outputs = [Value(node, i) for node in nodes for i in range(len(node.types))]
    return close(outputs, lift_constants=True)


# A program seen for the first time runs node by node unless so many of its nodes have no plan yet
# that compiling it as a whole is quicker: both are about one compilation a plan.
_FEW_PLANS = 2


def _patience(web: Web) -> int:
    """How often a program runs node by node before it is compiled.

    Large ones are often pieces of a Python loop that was cut where too much was pending.
    """
    return 1 + len(web.nodes) // 64


def _run(web: Web) -> list[Buffer]:
    """The outputs of a web without inputs."""
    buffers = [x.node.memo[x.index] for x in web.leaves]
    PLANS.stats.calls += 1
    plan = PLANS.get(web.key)
    if plan is None or config.stepwise:
        if (
            config.stepwise
            or not 1 < len(web.nodes) <= _MOST_NODES
            or all(node.op.kind == "view" for node in web.nodes)
            or (not PLANS.seen(web.key, _patience(web)) and missing_plans(web) <= _FEW_PLANS)
        ):
            return run_nodes(web, buffers)
        plan = PLANS.compiled(web.key, lambda: graph_of(web))
    try:
        return plan.run(buffers)  # type: ignore[no-any-return]
    except (ArithmeticError, LookupError, ValueError):
        if len(web.nodes) == 1:
            raise
        run_nodes(web, buffers)  # raises the same with the line of the node
        raise
