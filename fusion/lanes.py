"""Which regions become lane programs.

A region whose values are few a lane runs in registers (:mod:`.lane_code`). A batch axis that no op
of its bodies mixes, as ``vmap`` makes it, becomes lanes: they run side by side in vectors and
threads, each with its own number of trips. All other regions have their loops driven from outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.graph import Node, Value
from ..ir.types import TensorType
from .lane_code import Block, LaneProgram, Repeat, Scalar
from .lane_ops import constant_operand
from .lane_regions import Explosion
from .lane_values import Memory, Operand
from .lane_writer import Refusal
from .realize import weight_of

if TYPE_CHECKING:
    from .lower import Lowering

__all__ = ["lane_program", "work"]

MOST_CODE = 4000  # scalars of a program, expensive ones counted five times
STATE = 32  # carries of more elements are better spread over lanes


def lane_program(node: Node, lowering: Lowering) -> LaneProgram | None:
    """The lane program of a region, None if it is not one."""
    errors = len(lowering.errors)
    for lanes, eager in _attempts(node):
        try:
            return _explode(node, lowering, lanes, eager)
        except Refusal:
            del lowering.errors[errors:]
    return None


def _attempts(node: Node) -> list[tuple[int | None, bool]]:
    """Extents to try as lanes, and whether to take every axis of that extent for the lanes'."""
    own = _own_trips(node)
    if own:
        return [] if len(own) > 1 or not own[0] else [(own[0], True), (own[0], False)]
    types = _state(node)
    leading = [t.shape[0] for t in types if t.shape and t.shape[0] > 1]
    wide = [(n, eager) for n in dict.fromkeys(sorted(leading)[::-1]) for eager in (True, False)]
    state = sum(t.size for t in types)
    return [*wide[:2], (None, False)] if state > STATE else [(None, False), *wide[:2]]


def _own_trips(node: Node) -> tuple[int, ...]:
    if node.op.name == "while":
        shape: tuple[int, ...] = node.param("cond").outputs[0].shape
        return shape
    return node.inputs[0].shape if node.op.name == "loop" and node.param("length") is None else ()


def _state(node: Node) -> list[TensorType]:
    """Types of what passes from iteration to iteration."""
    count = len(node.types) if node.op.name == "cond" else node.param("carries")
    return list(node.types[:count])


def _explode(node: Node, lowering: Lowering, lanes: int | None, eager: bool) -> LaneProgram:
    e = Explosion(lowering, lanes, eager)
    operands = [_operand(e, x, lowering) for x in node.inputs]
    targets = [_memory(v, lowering) for v in node.outputs]
    first = len(node.types)
    if node.op.name != "cond":
        first = node.param("carries") + (node.op.name == "while")
    results = e.region(node, operands, targets[first:])
    for x, target in zip(results, targets, strict=True):
        if x is not target:  # records are written as they are made, but by loops written out
            e.store(x, target, None)
    used = e.w.used()
    code = sum(_instructions(e.w.scalars[n]) for n in used)
    if code > MOST_CODE:
        raise Refusal(f"{code} scalar operations")
    program = LaneProgram(
        node.op.name,
        1 if lanes is None else lanes,
        lanes is not None,
        tuple(e.w.scalars),
        tuple(e.w.varying),
        frozenset(b.number for b in lowering.buffers if b.is_tape),
        used,
        e.w.root,
    )
    if lanes is None and _is_faster_in_nests(node, program):
        raise Refusal("work for vectors")
    return program


# Of scalar code an operation takes so many ns, side by side with others; of vector code so many.
# A nest of a body costs so many ns to call.
_SCALAR, _VECTOR, _CALL = 0.1, 0.02, 25.0


def _is_faster_in_nests(node: Node, program: LaneProgram) -> bool:
    """Whether an iteration has so much work of so few kinds that vectors gain more than the calls
    of its nests cost."""
    if node.op.name == "cond":
        return False
    steps = [item.body for item in program.root.items if isinstance(item, Repeat)]
    scalars = sum(_work_of(program, body) for body in steps)
    return (_SCALAR - _VECTOR) * scalars > _CALL * (2 + _nests(node))


def _nests(node: Node) -> int:
    """About how many nests the bodies of a region are: what reduces ends one."""
    count = 0
    for name in ("cond", "body"):
        body = dict(node.params).get(name)
        for inner in body.nodes() if body is not None else ():
            if inner.op.kind == "region":
                count += 2 + _nests(inner)
            elif inner.op.kind not in ("elementwise", "view", "leaf"):
                count += 1
    return count


def _instructions(x: Scalar) -> int:
    """How much code a scalar is, about."""
    if x.kind in ("chain", "reduce"):
        return len(x.args)
    return 5 if x.op is not None and weight_of(x.op) >= 20 else 1


def _operand(e: Explosion, v: Value, lowering: Lowering) -> Operand:
    if v.node.op.name == "constant":
        return constant_operand(e, v.node)
    return _memory(v, lowering)


def _memory(v: Value, lowering: Lowering) -> Memory:
    return Memory(lowering.buffer(v), v.dtype, v.shape, lowering.strides(v))


def work(program: LaneProgram) -> float:
    """Operations of one lane, as a guess where trips are not known."""
    return _work_of(program, program.root)


def _work_of(program: LaneProgram, block: Block) -> float:
    total = 0.0
    stack = [(block, 1.0)]
    while stack:
        block, times = stack.pop()
        for item in block.items:
            if isinstance(item, int):
                if item in program.used:
                    total += times * _weight(program.scalars[item])
            elif isinstance(item, Repeat):
                inner = times * max(item.guess, 1)
                stack.append((item.body, inner))
                if item.test is not None:
                    stack.append((item.test, inner))
            else:
                stack.extend((b, times) for b in getattr(item, "blocks", ()))
    return total


def _weight(x: Scalar) -> int:
    if x.kind in ("chain", "reduce"):
        return len(x.args)
    return 1 if x.op is None else max(weight_of(x.op), 1)
