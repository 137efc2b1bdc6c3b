"""Structured control flow: nodes that hold programs of their own.

A *region* is a closed :class:`~..graph.Graph` in a param of a node; what it uses from outside are
operands of the node. Three ops are enough. ``cond`` runs one of several branches, ``loop`` a body
a known number of times, ``while`` a body as long as a condition holds. ``scan``, ``fori_loop``,
``switch`` and ``map`` are spelled with them, and so are the derivatives of all of them, to any
order: there are no ops for derivatives only.

**Lanes.** The count of a loop and the condition of a ``while`` may have a shape ``P``, as they get
from ``vmap``. Each element of ``P`` is then a *lane* with a trip count of its own: every carry and
every recorded value begins with the axes ``P``; the body runs until no lane is left, and a finished
lane keeps the carry it had, bit for bit. Where a body may fail, a finished lane is computed from
the carry of the first lane that goes on: its own might divide by zero, or never end.

The last ``shared`` carries of a loop belong to no lane: they are sums over lanes, have no axes
``P`` of their own and go on until the last lane is done.

**Checkpoints.** ``checkpoint`` says how much a loop may keep for its derivative in reverse mode: a
number of bytes (of a loop whose length is known), ``"sqrt"``, or None for all that is needed to
compute nothing twice. It does not change what the loop computes.

**Tapes.** What a loop of unknown length records has the leading extent :data:`~..types.GROWING`:
the number of iterations, known at run time only. Tapes pass from a loop to a loop. What a tape
holds for lanes that had finished is not specified and is never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import bool_, int64
from ..errors import ConvergenceError, DTypeError, ShapeError, TilegradError
from ..graph import Graph, Node, Value, make_node
from ..types import GROWING, TensorType
from .registry import register

__all__ = [
    "COND",
    "LOOP",
    "OUT_OF_STEPS",
    "WHILE",
    "Loop",
    "While",
    "deciding_inputs",
    "may_fail",
    "node_may_fail",
    "strong",
]

Array = np.ndarray[Any, Any]
Types = tuple[TensorType, ...]

_RULES_ELSEWHERE = {
    "jvp": "a region: autodiff/region_forward.py",
    "transpose": "a region: autodiff/region_reverse.py",
    "batch": "a region: autodiff/region_batching.py",
    "samples": "a region has operands of any type: tests/ir/ops/test_regions.py",
}


def strong(t: TensorType) -> TensorType:
    """``t`` as a value of a region has it: never weak."""
    return TensorType(t.shape, t.dtype) if t.weak else t


def _check(op: str, what: str, expected: Sequence[TensorType], got: Sequence[TensorType]) -> None:
    if len(expected) != len(got):
        raise TilegradError(f"{op}: {what}: expected {len(expected)} values, got {len(got)}")
    for k, (a, b) in enumerate(zip(expected, got, strict=True)):
        if a.shape != b.shape:
            raise ShapeError(f"{op}: {what} {k}: expected {strong(a)}, got {strong(b)}")
        if a.dtype is not b.dtype:
            raise DTypeError(f"{op}: {what} {k}: expected {strong(a)}, got {strong(b)}")


def _input_types(graph: Graph) -> Types:
    return tuple([node.types[0] for node in graph.inputs])


def _output_types(graph: Graph) -> Types:
    return tuple([strong(x.type) for x in graph.outputs])


def _run(graph: Graph, arguments: Sequence[Array]) -> list[Array]:
    from ..interpret import interpret_graph

    return interpret_graph(graph, arguments)


# -------------------------------------------------------------------------------- nodes by parts


@dataclass(frozen=True, slots=True)
class Loop:
    """A ``loop`` by its parts; see the op."""

    body: Graph
    consts: tuple[Value, ...]
    init: tuple[Value, ...]
    xs: tuple[Value, ...]
    length: int | None
    count: Value | None = None
    reverse: bool = False
    shared: int = 0
    checkpoint: int | str | None = None

    @staticmethod
    def of(node: Node) -> Loop:
        params = dict(node.params)
        operands = node.inputs
        count = operands[0] if params["length"] is None else None
        first = 0 if count is None else 1
        second = first + params["consts"]
        third = second + params["carries"]
        return Loop(
            params["body"],
            operands[first:second],
            operands[second:third],
            operands[third:],
            params["length"],
            count,
            params["reverse"],
            params.get("shared", 0),
            params.get("checkpoint"),
        )

    def node(self) -> Node:
        count = () if self.count is None else (self.count,)
        return make_node(
            LOOP,
            (*count, *self.consts, *self.init, *self.xs),
            body=self.body,
            consts=len(self.consts),
            carries=len(self.init),
            length=self.length,
            reverse=self.reverse,
            shared=self.shared,
            checkpoint=self.checkpoint,
        )

    @property
    def lanes(self) -> tuple[int, ...]:
        return () if self.count is None else self.count.shape


@dataclass(frozen=True, slots=True)
class While:
    """A ``while`` by its parts; see the op."""

    cond: Graph
    body: Graph
    cond_consts: tuple[Value, ...]
    body_consts: tuple[Value, ...]
    init: tuple[Value, ...]
    limit: int | None = None
    checkpoint: str | None = None

    @staticmethod
    def of(node: Node) -> While:
        params = dict(node.params)
        first = params["cond_consts"]
        second = first + params["body_consts"]
        operands = node.inputs
        return While(
            params["cond"],
            params["body"],
            operands[:first],
            operands[first:second],
            operands[second:],
            params["limit"],
            params.get("checkpoint"),
        )

    def node(self) -> Node:
        return make_node(
            WHILE,
            (*self.cond_consts, *self.body_consts, *self.init),
            cond=self.cond,
            body=self.body,
            cond_consts=len(self.cond_consts),
            body_consts=len(self.body_consts),
            carries=len(self.init),
            limit=self.limit,
            checkpoint=self.checkpoint,
        )

    @property
    def lanes(self) -> tuple[int, ...]:
        return self.cond.outputs[0].shape


def node_may_fail(node: Node) -> bool:
    """Whether a node may report an error, run for ever or call back, on operands that it is not
    meant for: it divides integers, checks indices, factorizes, calls, loops as long as a condition
    holds or as a number says that is known at run time."""
    params = dict(node.params)
    if node.op is WHILE or node.op.kind == "host" or (node.op is LOOP and params["length"] is None):
        return True
    if node.op.kind == "linalg":
        return bool(params.get("check", True))
    if params.get("mode") == "raise" and not params.get("checked", False):
        return True
    if node.op.check is not None and any(x.dtype.is_integer for x in node.inputs):
        return True
    return any(may_fail(graph) for graph in _graphs_of(node))


def may_fail(graph: Graph) -> bool:
    """Whether a node of a program may fail, see :func:`node_may_fail`."""
    return any(node_may_fail(node) for node in graph.nodes())


def deciding_inputs(graph: Graph) -> set[Node]:
    """The inputs of a program on which it depends whether something in it fails."""
    reached: set[Node] = set()
    for node in reversed(graph.nodes()):
        if node in reached:
            reached.update([x.node for x in node.inputs])
        elif node_may_fail(node):
            reached.update([x.node for x in _deciding_operands(node)])
    return reached.intersection(graph.inputs)


def _deciding_operands(node: Node) -> Sequence[Value]:
    if node.op.kind == "index":
        return [x for x in node.inputs[1:] if x.dtype.is_integer]
    if node.op is LOOP and not may_fail(node.param("body")):
        return node.inputs[:1]
    return node.inputs[:1] if node.op.kind == "linalg" else node.inputs


def _graphs_of(node: Node) -> list[Graph]:
    values = [value for _, value in node.params]
    return [x for v in values for x in (v if type(v) is tuple else (v,)) if type(x) is Graph]


# ------------------------------------------------------------------------------------- branches


def _cond_type(index: TensorType, *operands: TensorType, branches: tuple[Graph, ...]) -> Types:
    if index.shape or index.dtype is not int64:
        raise DTypeError(f"cond: index: expected i64[], got {index}")
    if not branches:
        raise TilegradError("cond: expected at least one branch")
    results = _output_types(branches[0])
    for k, branch in enumerate(branches):
        _check("cond", f"input of branch {k}", operands, _input_types(branch))
        _check("cond", f"result of branch {k}", results, _output_types(branch))
    return results


def _cond_value(index: Array, *operands: Array, branches: tuple[Graph, ...]) -> tuple[Array, ...]:
    return tuple(_run(branches[min(max(int(index), 0), len(branches) - 1)], operands))


COND = register(
    "cond",
    "region",
    infer=_cond_type,
    reference=_cond_value,
    doc="The results of branch number `index` (clamped into range) on the operands; no other "
    "branch runs.",
    why_not=_RULES_ELSEWHERE,
)


# --------------------------------------------------------------------------------- counted loops


def _lane_fault(op: str, lanes: tuple[int, ...], types: Sequence[TensorType]) -> None:
    for k, t in enumerate(types):
        if t.shape[: len(lanes)] != lanes:
            raise ShapeError(
                f"{op}: result {k}: expected the lanes {list(lanes)} in front, got {t}"
            )


def _loop_type(
    *operands: TensorType,
    body: Graph,
    consts: int,
    carries: int,
    length: int | None,
    reverse: bool,
    shared: int = 0,
    checkpoint: int | str | None = None,
) -> Types:
    lanes: tuple[int, ...] = ()
    if length is None:
        count, *rest = operands
        if count.dtype is not int64:
            raise DTypeError(f"loop: count: expected i64, got {count}")
        lanes = count.shape
    else:
        rest = list(operands)
    fixed, init, xs = rest[:consts], rest[consts : consts + carries], rest[consts + carries :]
    extent = GROWING if length is None else length
    for k, x in enumerate(xs):
        if not x.shape or x.shape[0] != extent:
            raise ShapeError(f"loop: sequence {k}: expected the leading extent {extent}, got {x}")
    slices = [TensorType(x.shape[1:], x.dtype) for x in xs]
    given = [TensorType((), int64), *fixed, *init, *slices]
    _check("loop", "input of the body", given, _input_types(body))
    results = _output_types(body)
    _check("loop", "carry", init, results[:carries])
    _lane_fault("loop", lanes, [*results[: carries - shared], *results[carries:]])
    recorded = [TensorType((extent, *y.shape), y.dtype) for y in results[carries:]]
    return (*results[:carries], *recorded)


def _freeze(active: Array, new: Array, old: Array) -> Array:
    """``new`` in the active lanes, ``old`` in the others."""
    if not active.ndim:
        return new if active else old
    return np.where(active.reshape(active.shape + (1,) * (new.ndim - active.ndim)), new, old)


def _donated(active: Array, values: Sequence[Array]) -> list[Array]:
    """``values`` of lanes, where a lane has finished those of the first active one."""
    if active.all():
        return list(values)
    first = tuple([k[0] for k in np.nonzero(active)])
    return [_freeze(active, x, x[first]) for x in values]


def _stack(records: Sequence[Array], t: TensorType) -> Array:
    if records:
        return np.stack(records)
    return np.empty((0, *t.shape), t.dtype.numpy)


def _loop_value(
    *operands: Array,
    body: Graph,
    consts: int,
    carries: int,
    length: int | None,
    reverse: bool,
    shared: int = 0,
    checkpoint: int | str | None = None,
) -> tuple[Array, ...]:
    if length is None:
        counts, *rest = operands
    else:
        counts, rest = np.asarray(length), list(operands)
    fixed, xs = rest[:consts], rest[consts + carries :]
    carry = rest[consts : consts + carries]
    trips = max(int(np.max(counts, initial=0)), 0)
    risky = bool(counts.ndim) and may_fail(body)
    types = _output_types(body)[carries:]
    records: list[list[Array]] = [[None] * trips for _ in types]  # type: ignore[list-item]
    for i in reversed(range(trips)) if reverse else range(trips):
        active = np.asarray(i < counts)
        given, slices = carry, [x[i] for x in xs]
        if risky:
            given = [*_donated(active, carry[: carries - shared]), *carry[carries - shared :]]
            slices = _donated(active, slices)  # of tapes, which the lanes recorded
        found = _run(body, [np.asarray(i, np.int64), *fixed, *given, *slices])
        frozen = [_freeze(active, a, b) for a, b in zip(found, carry, strict=False)]
        carry = [*frozen[: carries - shared], *found[carries - shared : carries]]
        for record, y in zip(records, found[carries:], strict=True):
            record[i] = y
    return (*carry, *[_stack(r, t) for r, t in zip(records, types, strict=True)])


LOOP = register(
    "loop",
    "region",
    infer=_loop_type,
    reference=_loop_value,
    doc="`body(i, *consts, *carry, *slices) -> (*carry, *record)` for i in 0..n-1 (`reverse`: from "
    "n-1 down); slice and record i of the sequences and of what is recorded. Operands: (count if "
    "`length` is None, *consts, *initial carry, *sequences).",
    why_not=_RULES_ELSEWHERE,
)


# ------------------------------------------------------------------------------------ open loops


def _while_type(
    *operands: TensorType,
    cond: Graph,
    body: Graph,
    cond_consts: int,
    body_consts: int,
    carries: int,
    limit: int | None,
    checkpoint: str | None = None,
) -> Types:
    if len(operands) != cond_consts + body_consts + carries:
        raise TilegradError(
            f"while: expected {cond_consts + body_consts + carries} operands, got {len(operands)}"
        )
    tested, fixed = operands[:cond_consts], operands[cond_consts : cond_consts + body_consts]
    init = operands[cond_consts + body_consts :]
    _check("while", "input of the condition", [*tested, *init], _input_types(cond))
    (holds,) = _output_types(cond)
    if holds.dtype is not bool_:
        raise DTypeError(f"while: condition: expected bool, got {holds}")
    given = [TensorType((), int64), *fixed, *init]
    _check("while", "input of the body", given, _input_types(body))
    results = _output_types(body)
    _check("while", "carry", init, results[:carries])
    _lane_fault("while", holds.shape, results)
    recorded = [TensorType((GROWING, *y.shape), y.dtype) for y in results[carries:]]
    return (*results[:carries], TensorType(holds.shape, int64), *recorded)


def _while_value(
    *operands: Array,
    cond: Graph,
    body: Graph,
    cond_consts: int,
    body_consts: int,
    carries: int,
    limit: int | None,
    checkpoint: str | None = None,
) -> tuple[Array, ...]:
    tested, fixed = operands[:cond_consts], operands[cond_consts : cond_consts + body_consts]
    carry = list(operands[cond_consts + body_consts :])
    types = _output_types(body)[carries:]
    records: list[list[Array]] = [[] for _ in types]
    (active,) = _run(cond, [*tested, *carry])
    counts = np.zeros(active.shape, np.int64)
    risky = bool(active.ndim) and may_fail(body)
    i = 0
    while active.any():
        if i == limit:
            raise ConvergenceError(OUT_OF_STEPS.format(limit=limit))
        given = _donated(active, carry) if risky else carry
        found = _run(body, [np.asarray(i, np.int64), *fixed, *given])
        carry = [_freeze(active, a, b) for a, b in zip(found, carry, strict=False)]
        for record, y in zip(records, found[carries:], strict=True):
            record.append(y)
        counts = counts + active
        i += 1
        active = active & _run(cond, [*tested, *carry])[0]
    return (*carry, counts, *[_stack(r, t) for r, t in zip(records, types, strict=True)])


OUT_OF_STEPS = "while_loop: the condition still holds after max_steps={limit} steps"

WHILE = register(
    "while",
    "region",
    infer=_while_type,
    reference=_while_value,
    doc="`carry = body(i, *consts, *carry)` while `cond(*consts, *carry)`; results: the last "
    "carry, the number of trips (of each lane), and what the body recorded, as tapes. Operands: "
    "(*consts of the condition, *consts of the body, *initial carry). More than `limit` trips are "
    "an error.",
    why_not=_RULES_ELSEWHERE,
)
