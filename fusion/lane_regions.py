"""Graphs and regions as lane programs: every value becomes scalars, loops stay loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ..ir.dtypes import int64
from ..ir.errors import ConvergenceError
from ..ir.graph import Graph, Node, Value
from ..ir.ops.regions import OUT_OF_STEPS
from ..ir.types import GROWING
from .lane_code import Block, Branches, Repeat
from .lane_index import INDEXED
from .lane_ops import OPS_ON_SCALARS, elementwise
from .lane_values import MOST_ELEMENTS, Memory, Numbers, Operand, Tensor, Values
from .lane_writer import Refusal, Writer
from .loops import NO_MEMORY, SHORT_TAPE

if TYPE_CHECKING:
    from .lower import Lowering

__all__ = ["Explosion"]

MOST_CARRIED = 64  # elements of a lane that pass from iteration to iteration
UNROLLED = 8  # most trips of an inner loop that is written out because it has sequences or records
UNKNOWN_TRIPS = 8  # guessed for an open loop
COUNTED_TRIPS = 100  # guessed for a count that is computed

Operands = Sequence[Operand]


class Explosion(Values):
    """Writes graphs as scalars."""

    def __init__(self, lowering: Lowering, lanes: int | None, eager: bool) -> None:
        super().__init__(Writer(lowering.report), lanes, eager)
        self._lowering = lowering

    def constant(self, v: Value) -> int:
        return self._lowering.buffer(v)

    def graph(self, graph: Graph, operands: Operands) -> list[Operand]:
        """The outputs of a graph on operands."""
        found: dict[Value, Operand] = {
            node.out: x for node, x in zip(graph.inputs, operands, strict=True)
        }
        for node in graph.nodes():
            xs = [found[x] for x in node.inputs]
            found.update(zip(node.outputs, self.node(node, xs), strict=True))
        return [found[v] for v in graph.outputs]

    def node(self, node: Node, xs: Operands) -> list[Operand]:
        name, kind = node.op.name, node.op.kind
        if kind == "region":
            return self.region(node, xs, ())
        if kind == "index" and any(0 in t.shape for t in node.types):
            raise Refusal("indices without elements")
        rule = elementwise if kind == "elementwise" else OPS_ON_SCALARS.get(name)
        rule = rule or INDEXED.get(name)
        if rule is None:
            raise Refusal(f"{name} is not computed in registers")
        return [rule(self, node, xs)]

    # -- regions --------------------------------------------------------------------------------

    def region(self, node: Node, xs: Operands, records: Sequence[Memory]) -> list[Operand]:
        """The results of a region; what it records is written to ``records``."""
        if node.op.name == "cond":
            return self._cond(node, xs)
        if node.op.name == "while":
            return self._while(node, xs, records)
        return self._loop(node, xs, records)

    def _own(self, shape: tuple[int, ...]) -> bool:
        """Whether each lane has its own number of trips."""
        if shape and shape != (self.lanes,):
            raise Refusal("trips of several axes of lanes")
        return bool(shape)

    def _begin(self, inits: Operands, own: bool) -> tuple[list[Numbers], list[int | None]]:
        """The carries before a loop, and their lane axes."""
        axes = [0 if own else self.carry_axis(x) for x in inits]
        arrays = [self.tensor(x, a).ids for x, a in zip(inits, axes, strict=True)]
        if sum(a.size for a in arrays) > MOST_CARRIED:
            raise Refusal(f"carries of {sum(a.size for a in arrays)} elements a lane")
        return arrays, axes

    def _fresh(self, like: Sequence[Numbers], axes: Sequence[int | None], home: Block) -> Operands:
        """Tensors of new values."""
        return [
            Tensor(
                np.array(
                    [
                        self.w.fresh(self.w.dtype(int(n)), axis is not None, home)
                        for n in ids.reshape(-1)
                    ],
                    np.int64,
                ).reshape(ids.shape),
                axis,
            )
            for ids, axis in zip(like, axes, strict=True)
        ]

    def _step(
        self,
        block: Block,
        index: int,
        body: Graph,
        operands: Operands,
        axes: Sequence[int | None],
        records: Sequence[Memory],
        own: bool,
    ) -> list[int]:
        """Write an iteration into ``block``; the carries, which have these lane axes, after it."""
        with self.w.inside(block):
            outs = self.graph(body, operands)
            pairs = zip(outs[: len(axes)], axes, strict=True)
            following = _flat([self.tensor(x, axis).ids for x, axis in pairs])
            for x, target in zip(outs[len(axes) :], records, strict=True):
                self.store(x, target.at(0, index), 0 if own else None)
        return following

    def _loop(self, node: Node, xs: Operands, records: Sequence[Memory]) -> list[Operand]:
        w, length, body = self.w, node.param("length"), node.param("body")
        rest, own = list(xs), False
        if length is None:
            own = self._own(node.inputs[0].shape)
            if own and dict(node.params).get("shared"):
                raise Refusal("carries that lanes share")
            first = self.tensor(rest.pop(0), 0 if own else None)
            count, guess = int(first.ids.reshape(())), COUNTED_TRIPS
        else:
            count, guess = w.integer(length), length
        consts, carries = node.param("consts"), node.param("carries")
        fixed, sequences = rest[:consts], rest[consts + carries :]
        recorded = len(body.outputs) - carries
        in_memory = all(isinstance(x, Memory) for x in sequences)
        if not in_memory or recorded != len(records):
            if length is None or length > UNROLLED:
                raise Refusal("an inner loop over what is not in memory")
            return self._unrolled(node, rest)
        inits, axes = self._begin(rest[consts : consts + carries], own)
        block = Block("loop", w.block)
        index = w.fresh(int64, False, block)
        carried = self._fresh(inits, axes, block)
        at = Tensor(np.array(index, np.int64))
        slices = [x.at(0, index) for x in sequences if isinstance(x, Memory)]
        operands = [at, *fixed, *carried, *slices]
        following = self._step(block, index, body, operands, axes, records, own)
        results = self._fresh(inits, axes, w.block)
        tapes = [_tape(x) for x in records if x.extents[0] == GROWING]
        given = [x.buffer for x in sequences if isinstance(x, Memory) and x.extents[0] == GROWING]
        w.block.items.append(
            Repeat(
                index,
                _flat(_ids(carried)),
                _flat(inits),
                block,
                following,
                _flat(_ids(results)),
                recorded=tapes,
                replayed=given,
                no_memory=w.report(MemoryError, NO_MEMORY) if tapes else -1,
                too_short=w.report(IndexError, SHORT_TAPE) if given else -1,
                count=count,
                reverse=node.param("reverse"),
                own_trips=own,
                guess=guess,
            )
        )
        return [*results, *records]

    def _unrolled(self, node: Node, rest: Operands) -> list[Operand]:
        """A short loop written out."""
        consts, carries = node.param("consts"), node.param("carries")
        length, body = node.param("length"), node.param("body")
        fixed, sequences = rest[:consts], rest[consts + carries :]
        carry = list(rest[consts : consts + carries])
        found: list[list[Operand]] = [[] for _ in range(length)]
        for k in reversed(range(length)) if node.param("reverse") else range(length):
            at = Tensor(np.array(self.w.integer(k), np.int64))
            slices = [self._element(x, k) for x in sequences]
            outs = self.graph(body, [at, *fixed, *carry, *slices])
            carry, found[k] = outs[:carries], outs[carries:]
        if not length:
            raise Refusal("a value without elements")
        return [*carry, *map(self._stack, zip(*found, strict=True))]

    def _element(self, x: Operand, k: int) -> Operand:
        """Element ``k`` along the first axis."""
        if isinstance(x, Memory):
            return replace(
                x,
                extents=x.extents[1:],
                strides=x.strides[1:],
                offset=x.offset + k * x.strides[0],
            )
        t = self.tensor(x, self.lane_axis(x))
        if t.axis == 0:
            raise Refusal("a loop over the lanes")
        return Tensor(t.ids[k], None if t.axis is None else t.axis - 1)

    def _stack(self, xs: Operands) -> Operand:
        axis = self.common_axis(xs)
        return Tensor(
            np.stack([self.tensor(x, axis).ids for x in xs]), None if axis is None else axis + 1
        )

    def _while(self, node: Node, xs: Operands, records: Sequence[Memory]) -> list[Operand]:
        w, body, cond = self.w, node.param("body"), node.param("cond")
        tested, consts = node.param("cond_consts"), node.param("body_consts")
        carries, limit = node.param("carries"), node.param("limit")
        if len(body.outputs) != carries + len(records):
            raise Refusal("an inner loop that records to a tape")
        own = self._own(cond.outputs[0].shape)
        inits, axes = self._begin(xs[tested + consts :], own)
        test = Block("loop", w.block)
        index = w.fresh(int64, False, test)
        carried = self._fresh(inits, axes, test)
        with w.inside(test):
            (holds,) = self.graph(cond, [*xs[:tested], *carried])
            condition = int(self.tensor(holds, 0 if own else None).ids.reshape(()))
        block = Block("body", test)
        at = Tensor(np.array(index, np.int64))
        operands = [at, *xs[tested : tested + consts], *carried]
        following = self._step(block, index, body, operands, axes, records, own)
        results = self._fresh(inits, axes, w.block)
        trips = w.fresh(int64, own, w.block)
        error = -1
        if limit is not None:
            error = w.report(ConvergenceError, OUT_OF_STEPS.format(limit=limit))
        w.block.items.append(
            Repeat(
                index,
                _flat(_ids(carried)),
                _flat(inits),
                block,
                following,
                _flat(_ids(results)),
                recorded=[_tape(x) for x in records],
                no_memory=w.report(MemoryError, NO_MEMORY) if records else -1,
                test=test,
                holds=condition,
                limit=-1 if limit is None else limit,
                error=error,
                trips=trips,
                own_trips=own,
                guess=UNKNOWN_TRIPS,
            )
        )
        return [*results, Tensor(np.array(trips, np.int64), 0 if own else None), *records]

    def _cond(self, node: Node, xs: Operands) -> list[Operand]:
        w, branches = self.w, node.param("branches")
        index = self.scalar(xs[0])
        known = w.known_integer(index)
        if known is not None:
            return self.graph(branches[min(max(known, 0), len(branches) - 1)], xs[1:])
        blocks = [Block("branch", w.block) for _ in branches]
        outs = []
        for block, branch in zip(blocks, branches, strict=True):
            with w.inside(block):
                outs.append(self.graph(branch, xs[1:]))
        axes = [self.common_axis(one) for one in zip(*outs, strict=True)]
        arrays: list[list[Numbers]] = []
        for block, results in zip(blocks, outs, strict=True):
            with w.inside(block):
                pairs = zip(results, axes, strict=True)
                arrays.append([self.tensor(x, axis).ids for x, axis in pairs])
        if sum(a.size for a in arrays[0]) > MOST_ELEMENTS:
            raise Refusal("branches with large results")
        found = self._fresh(arrays[0], axes, w.block)
        outcomes = [_flat(results) for results in arrays]
        w.block.items.append(Branches(index, blocks, outcomes, _flat(_ids(found))))
        return list(found)


def _tape(x: Memory) -> tuple[int, int]:
    """The buffer of a tape and the bytes of a row."""
    return x.buffer, prod(x.extents[1:]) * x.dtype.itemsize


def _ids(tensors: Operands) -> list[Numbers]:
    return [t.ids for t in tensors if isinstance(t, Tensor)]


def _flat(arrays: Sequence[Numbers]) -> list[int]:
    return [int(n) for ids in arrays for n in ids.reshape(-1)]
