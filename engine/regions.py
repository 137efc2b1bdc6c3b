"""Regions: the functions that control flow takes, as closed graphs.

Such a function runs once on stand-ins for its arguments. What its results need from outside is
found in their web of nodes and becomes operands of the node that holds the region: the user never
lists captures. What does not depend on a stand-in at all is computed outside, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..ir.errors import DTypeError, ShapeError
from ..ir.graph import Graph, Node, Value, toposort
from ..ir.location import at_user_line
from ..ir.ops.leaves import CONSTANT, IOTA, input_node
from ..ir.ops.operands import convert
from ..ir.ops.regions import strong
from ..ir.ops.shape import BROADCAST
from ..ir.rewrite import substitute
from ..ir.types import TensorType
from .array import lift, wrap
from .effects import living
from .marking import name_of
from .signature import lift_leaf, type_of
from .traced import output_value
from .tracing import RUNNING, Trace, find_input, placeholder, tracing
from .tree import paths, put_together, show, take_apart

__all__ = [
    *("Leaves", "Region", "as_leaves", "check_like", "close_regions", "is_traced", "trace_region"),
]


class Leaves:
    """A tree of arguments: its structure, and its leaves as values with their types.

    Attributes
    ----------
    spec : structure
    names : list of str
        The way to each leaf, for messages.
    values : list of Value
    """

    __slots__ = ("names", "spec", "values")

    def __init__(self, spec: Any, names: list[str], values: list[Value]) -> None:
        self.spec = spec
        self.names = names
        self.values = values

    @property
    def types(self) -> list[TensorType]:
        return [x.type for x in self.values]

    def tree(self, values: Sequence[Value] | None = None) -> Any:
        given = self.values if values is None else values
        return put_together(self.spec, iter([wrap(x) for x in given]))


def as_leaves(tree: Any, name: str) -> Leaves:
    """The arrays and numbers of a tree, as values.

    Raises
    ------
    TypeError
        For a leaf that is neither.
    """
    leaves: list[Any] = []
    spec = take_apart(tree, leaves)
    names = paths(spec, name)
    for x, where in zip(leaves, names, strict=True):
        type_of(x, where)
    return Leaves(spec, names, [_lifted(x) for x in leaves])


def _lifted(x: Any) -> Value:
    """The value of a leaf; a NumPy array that a trace uses twice is one value."""
    found = lift(x) if type(x) is np.ndarray else x
    return found if type(found) is Value else lift_leaf(x)


def is_traced(values: Sequence[Value]) -> bool:
    """Whether control flow over these values becomes a node: a trace runs, or they belong to one.

    Elsewhere it runs as Python does, so that prints and debuggers work.
    """
    return bool(RUNNING.get()) or find_input(values) is not None


class Region:
    """A function traced on stand-ins.

    Attributes
    ----------
    inputs : list of Value
        The stand-ins.
    out : Leaves
        What it returned.
    effects : list of Value
        Tokens of what it did besides, see :mod:`.effects`.
    """

    __slots__ = ("effects", "fun", "inputs", "out")

    def __init__(
        self, fun: Callable[..., Any], inputs: list[Value], out: Leaves, effects: list[Value]
    ) -> None:
        self.fun = fun
        self.inputs = inputs
        self.out = out
        self.effects = effects


def trace_region(
    title: str,
    fun: Callable[..., Any],
    types: Sequence[TensorType],
    names: Sequence[str],
    call: Callable[[list[Any]], Any],
) -> Region:
    """Run ``call(arrays)``, which calls ``fun``, on a stand-in for each of ``types``."""
    trace = Trace(f"{title}({name_of(fun)})")
    with tracing(trace):
        inputs = [placeholder(t, n, trace) for t, n in zip(types, names, strict=True)]
        result = call([wrap(x) for x in inputs])
        leaves: list[Any] = []
        spec = take_apart(result, leaves)
        where = paths(spec, "the result")
        values = [
            output_value(x, f"{trace.title}: {name}") for x, name in zip(leaves, where, strict=True)
        ]
    return Region(fun, inputs, Leaves(spec, where, values), living(trace.effects, inputs))


def close_regions(
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    known: Iterable[Value] = (),
    name: str = "body",
    *,
    stays: Callable[[Node], bool] = lambda node: False,
    keep_weak: bool = False,
) -> tuple[Graph, list[Value]]:
    """The graph from ``inputs`` to ``outputs``, and what it captures.

    The graph's inputs are the captured values first, then stand-ins for ``inputs``.

    Parameters
    ----------
    inputs, outputs : sequence of Value
    known : iterable of Value
        What was there before the region: it is captured as it is.
    stays : callable
        Which nodes are computed inside although they do not depend on ``inputs``: in a region that
        may not run at all, those that must not run then.
    keep_weak : bool
        Whether results may be weak.
    """
    stops = {x.node for x in inputs}
    inside = _inside(outputs, stops, {x.node for x in known}, stays)
    captured: dict[Value, None] = {}
    for node in (*inside, None):
        for x in outputs if node is None else node.inputs:
            if x.node not in inside and x.node not in stops and not _is_plain(x.node):
                captured[x] = None
    outer = list(captured)
    fresh = [input_node(x.type, f"c{k}").out for k, x in enumerate(outer)]
    own = [
        input_node(x.type if keep_weak else strong(x.type), x.node.param("name")).out
        for x in inputs
    ]
    renewed = substitute(
        outputs,
        {**dict(zip(outer, fresh, strict=True)), **dict(zip(inputs, own, strict=True))},
    )
    results = tuple([convert(x, x.dtype) if x.type.weak and not keep_weak else x for x in renewed])
    return Graph(tuple([x.node for x in (*fresh, *own)]), results, name), outer


def _inside(
    outputs: Sequence[Value],
    stops: set[Node],
    known: set[Node],
    stays: Callable[[Node], bool],
) -> dict[Node, None]:
    """The nodes that belong to a region."""
    order = toposort(outputs, stop=stops | known)
    needed = {x.node for x in outputs} - known
    for node in reversed(order):
        if node in needed and not _is_there(node):
            needed.update([x.node for x in node.inputs])
    inside: dict[Node, None] = {}
    for node in order:
        if node in needed and not _is_there(node):
            depends = any(x.node in stops or x.node in inside for x in node.inputs)
            if depends or stays(node):
                inside[node] = None
    return inside


def _is_there(node: Node) -> bool:
    return node.op.kind == "leaf" or node.memo is not None


def _is_plain(node: Node) -> bool:
    """Whether a node outside is repeated inside rather than passed in."""
    while node.op is BROADCAST and node.memo is None:
        node = node.inputs[0].node
    return node.op is CONSTANT or node.op is IOTA


def check_like(title: str, what: str, expected: Leaves, got: Leaves) -> None:
    """Whether two trees agree in structure and types.

    Raises
    ------
    TypeError, ShapeError, DTypeError
        With both types, and the way to the leaf.
    """
    if expected.spec != got.spec:
        raise at_user_line(
            TypeError(
                f"{title}: expected {what} of the structure {show(expected.spec)}, got "
                f"{show(got.spec)}"
            )
        )
    for name, a, b in zip(expected.names, expected.types, got.types, strict=True):
        if a.shape != b.shape:
            raise at_user_line(
                ShapeError(f"{title}: {name}: expected {what} of {strong(a)}, got {strong(b)}")
            )
        if a.dtype is not b.dtype:
            raise at_user_line(
                DTypeError(
                    f"{title}: {name}: expected {what} of {strong(a)}, got {strong(b)}; convert "
                    f"with astype"
                )
            )
