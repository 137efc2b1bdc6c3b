"""Elementwise ops on whole tapes: loops over their rows.

Loops read and write tapes row by row. Where two loops have read one tape, the sum of its cotangents
is an op on tapes; its number of rows is that of its operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.dtypes import int64
from ..ir.errors import UnsupportedError
from ..ir.graph import Graph, Node, Value, make
from ..ir.ops.leaves import input_node
from ..ir.ops.shape import BROADCAST
from ..ir.types import GROWING, TensorType
from .loops import Region, Rows

if TYPE_CHECKING:
    from .lower import Lowering

__all__ = ["is_tape", "place_rows"]


def is_tape(t: TensorType) -> bool:
    """Whether a value has a number of rows that is known at run time only."""
    return t.shape[:1] == (GROWING,)


class _Row:
    """The program of one row, as it is recorded."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.number = input_node(TensorType((), int64), "i")
        self.consts: dict[Value, Node] = {}
        self.tapes: dict[Value, Node] = {}
        self._rows: dict[Value, Value] = {}

    def of(self, v: Value) -> Value:
        """A row of ``v``, computed."""
        node = v.node
        if node.op.kind == "elementwise":
            return make(node.op, [self._row(x) for x in node.inputs], **dict(node.params))
        if node.op is BROADCAST and 0 not in node.param("axes"):
            (x,) = node.inputs
            if x.node.op.name != "constant":
                x = self._input(self.consts, x, x.type)
            axes = tuple(d - 1 for d in node.param("axes"))
            return make(BROADCAST, (x,), shape=v.shape[1:], axes=axes)
        raise UnsupportedError(
            f"{node.op.name}: has no meaning for the rows of a tape", op=node.op.name, device="cpu"
        )

    def _row(self, v: Value) -> Value:
        """A row of ``v``, read if it has memory."""
        found = self._rows.get(v)
        if found is None:
            if v in self.lowering.numbers:
                found = self._input(self.tapes, v, TensorType(v.shape[1:], v.dtype))
            else:
                found = self.of(v)
            self._rows[v] = found
        return found

    def _input(self, inputs: dict[Value, Node], v: Value, t: TensorType) -> Value:
        found = inputs.get(v)
        if found is None:
            found = inputs[v] = input_node(TensorType(t.shape, t.dtype), f"x{len(inputs)}")
        return found.out


def place_rows(node: Node, lowering: Lowering) -> None:
    """Add the loop that makes a tape of other tapes."""
    from .regions import one_program, tape_errors

    row = _Row(lowering)
    result = row.of(node.out)
    if not row.tapes:
        raise UnsupportedError(
            f"{node.op.name}: nothing tells how many rows a tape has", op=node.op.name, device="cpu"
        )
    consts = [lowering.realize_now(v, "read for each row") for v in row.consts]
    inputs = (row.number, *row.consts.values(), *row.tapes.values())
    part, index, scratch = one_program(Graph(inputs, (result,)), consts, lowering)
    body = part.schedule
    first = 1 + len(row.consts)
    sequences = [
        Rows(lowering.buffer(v), first + k, body.buffers[first + k].nbytes)
        for k, v in enumerate(row.tapes)
    ]
    (inside,) = body.outputs
    out = lowering.buffer(node.out)
    region = Region(
        "loop",
        node,
        (part,),
        (*consts, *(s.outside for s in sequences)),
        (out,),
        scratch,
        index=index,
        sequences=tuple(sequences),
        records=(Rows(out, inside, body.buffers[inside].nbytes),),
        errors=(-1, *tape_errors(lowering)),
    )
    lowering.add_step(region, node)
