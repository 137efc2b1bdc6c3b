"""Traces: which inputs stand for arguments, which marks are being differentiated, which are stale.

A traced function runs once on arrays whose values depend on ``input`` nodes. Each such node names
its :class:`Trace`, which knows whether the function still runs. Whether an array is traced is a
property of its web of nodes, found by walking it; nothing ambient decides it. (The stack of running
traces kept here only saves walks.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..ir.errors import TracerError
from ..ir.graph import Node, Value, toposort
from ..ir.location import Location, at_user_line, user_location
from ..ir.ops.leaves import ALIAS, INPUT, input_node
from ..ir.types import TensorType

__all__ = [
    "MARKS",
    "Marked",
    "Trace",
    "differentiating",
    "find_input",
    "is_independent",
    "is_marked",
    "placeholder",
    "tracer_error",
    "tracing",
]


class Trace:
    """One run of a user's function on stand-ins for its arguments.

    Attributes
    ----------
    title : str
        For messages: ``jit(loss)``.
    active : bool
        Whether the function still runs.
    captured : dict
        While it runs: NumPy arrays it used, by identity, each with the leaf that holds its data.
    effects : list of Value
        Tokens of the effects (:mod:`.effects`) it asked for, in their order.
    location : Location or None
        Where the transformed function was called.
    """

    __slots__ = ("active", "captured", "effects", "location", "title")

    def __init__(self, title: str) -> None:
        self.title = title
        self.captured: dict[int, tuple[Any, Value]] = {}
        self.effects: list[Value] = []
        self.active = True
        self.location: Location | None = user_location()

    def __repr__(self) -> str:
        return f"<trace {self.title}>"


# Traces running in this thread or task, outermost first.
RUNNING: ContextVar[tuple[Trace, ...]] = ContextVar("tilegrad_traces", default=())

# Alias nodes that some running function is being differentiated by, in any thread. Arrays that
# depend on one keep their history when they are computed.
MARKS: set[Node] = set()


class Marked(tuple[Any, ...]):
    """Results of a node that depended on active marks when it was computed.

    ``marks`` tell later realizations, which stop at this node, that there is history behind it.
    """

    marks: frozenset[Node]


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """The trace runs until the end of the context."""
    token = RUNNING.set((*RUNNING.get(), trace))
    try:
        yield trace
    finally:
        trace.active = False
        trace.captured.clear()
        RUNNING.reset(token)


def placeholder(type: TensorType, name: str, trace: Trace) -> Value:
    """A fresh input that belongs to ``trace``."""
    return input_node(type, name, trace).out


@contextmanager
def differentiating(marks: Sequence[Value]) -> Iterator[None]:
    """While the function runs, what depends on ``marks`` keeps its history."""
    nodes = [value.node for value in marks]
    MARKS.update(nodes)
    try:
        yield
    finally:
        MARKS.difference_update(nodes)


def is_marked(node: Node) -> bool:
    """Whether the node is an active mark, or was computed from one."""
    if node.op is ALIAS and node in MARKS:
        return True
    memo = node.memo
    return type(memo) is Marked and not MARKS.isdisjoint(memo.marks)


def find_input(values: Iterable[Value]) -> Node | None:
    """An input that one of the values depends on, or None. Nodes with results are not entered."""
    return _find(values, lambda node: node.op is INPUT)


def is_independent(values: Iterable[Value]) -> bool:
    """Whether the values depend neither on an input nor on an active mark."""
    return _find(values, lambda node: node.op is INPUT or is_marked(node)) is None


def _find(values: Iterable[Value], wanted: Callable[[Node], bool]) -> Node | None:
    """A wanted node among those that the values wait for, and the results that they start from."""
    stack = [value.node for value in values]
    seen = set(stack)
    while stack:
        node = stack.pop()
        if wanted(node):
            return node
        if node.memo is not None:
            continue
        for operand in node.inputs:
            if operand.node not in seen:
                seen.add(operand.node)
                stack.append(operand.node)
    return None


def describe_input(node: Node) -> str:
    """``argument x of jit(f)``."""
    trace = node.param("trace")
    name = node.param("name")
    return f"argument {name}" + (f" of {trace.title}" if trace is not None else "")


def tracer_error(what: str, value: Value, found: Node) -> TracerError:
    """The error for asking ``value``, which depends on the input ``found``, for its values."""
    trace: Trace | None = found.param("trace")
    made = value.node.location
    where = f", made at {made}" if made is not None else ""
    if trace is None or trace.active:
        title = trace.title if trace is not None else "a trace"
        message = (
            f"{what}: expected an array with values, got {value.type}, which is traced: it depends "
            f"on {describe_input(found)}{where}\n"
            f"  Under {title} arrays have types but no values. In place of Python's if and while "
            f"use tg.cond, tg.while_loop or tg.where; make an argument that decides the program "
            f"static (static_argnums, in_axes=None); or do this outside the function."
        )
    else:
        first = _first_use(value, found)
        used = "" if first is None else f", first used at {first}"
        message = (
            f"{what}: leaked tracer {value.type}: it depends on {describe_input(found)}{used}\n"
            f"  That function was called at {trace.location} and has returned.\n"
            f"  A traced array lives only while its function runs: return it from the function "
            f"instead of storing it in a global, an attribute or a closure."
        )
    return at_user_line(TracerError(message))


def _first_use(value: Value, found: Node) -> Location | None:
    """Where the input ``found`` was used first on the way to ``value``: inside its function."""
    for node in toposort([value]):
        if any(x.node is found for x in node.inputs):
            return node.location
    return None
