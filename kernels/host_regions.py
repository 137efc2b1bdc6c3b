"""Regions that need a library between native steps: Python runs their programs, each a plan.

The same steps as in native loops, in the same order, so the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.errors import ConvergenceError
from ..ir.graph import Graph, Node
from ..ir.ops.regions import OUT_OF_STEPS, Loop, While

__all__ = ["run_on_host"]

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]
Program = Callable[[Arrays], list[Array]]


def run_on_host(node: Node, operands: Arrays, program: Callable[[Graph], Program]) -> list[Array]:
    """The results of a region; ``program`` gives the compiled form of a graph."""
    if node.op.name == "cond":
        index, *rest = operands
        branches = node.param("branches")
        return program(branches[min(max(int(index), 0), len(branches) - 1)])(rest)
    if node.op.name == "loop":
        return _loop(Loop.of(node), list(operands), program)
    return _while(While.of(node), list(operands), program)


def _freeze(active: Array, new: Array, old: Array) -> Array:
    """``new`` in the active lanes, ``old`` in the others."""
    if not active.ndim:
        return new
    mask = active.reshape(active.shape + (1,) * (new.ndim - active.ndim))
    return np.ascontiguousarray(np.where(mask, new, old))


def _donate(active: Array, old: Array) -> Array:
    """The carry of the first active lane for lanes that have finished: nothing can go wrong."""
    if not active.ndim or active.all():
        return old
    first = np.unravel_index(int(np.argmax(active)), active.shape)
    mask = active.reshape(active.shape + (1,) * (old.ndim - active.ndim))
    return np.ascontiguousarray(np.where(mask, old, old[first]))


class _Record:
    """Rows of one recorded value: an array of known length, or a list."""

    def __init__(self, length: int | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._shape, self._dtype = shape, dtype
        self._array = None if length is None else np.empty((length, *shape), dtype)
        self._rows: list[Array] = []

    def put(self, i: int, row: Array) -> None:
        if self._array is None:
            self._rows.append(row)
        else:
            self._array[i] = row

    def array(self) -> Array:
        if self._array is not None:
            return self._array
        if not self._rows:
            return np.empty((0, *self._shape), self._dtype)
        return np.stack(self._rows)


def _records(length: int | None, graph: Graph, first: int) -> list[_Record]:
    return [_Record(length, v.shape, v.dtype.numpy) for v in graph.outputs[first:]]


def _loop(loop: Loop, operands: list[Array], program: Callable[[Graph], Program]) -> list[Array]:
    counts = np.asarray(loop.length) if loop.count is None else operands.pop(0)
    fixed, carries = len(loop.consts), len(loop.init)
    own = carries - loop.shared
    consts, carry = operands[:fixed], operands[fixed : fixed + carries]
    xs = operands[fixed + carries :]
    trips = max(int(np.max(counts, initial=0)), 0)
    body = program(loop.body)
    records = _records(trips, loop.body, carries)
    for i in reversed(range(trips)) if loop.reverse else range(trips):
        active = np.asarray(i < counts)
        given = [_donate(active, c) for c in carry[:own]] + carry[own:]
        slices = [np.ascontiguousarray(x[i]).reshape(x.shape[1:]) for x in xs]
        lanes = active.shape
        if active.ndim:
            slices = [_donate(active, x) if x.shape[: len(lanes)] == lanes else x for x in slices]
        found = body([np.array(i, np.int64), *consts, *given, *slices])
        carry = [_freeze(active, a, b) for a, b in zip(found[:own], carry, strict=False)]
        carry += found[own:carries]
        for record, row in zip(records, found[carries:], strict=True):
            record.put(i, row)
    return [*carry, *[r.array() for r in records]]


def _while(loop: While, operands: list[Array], program: Callable[[Graph], Program]) -> list[Array]:
    tested, fixed = len(loop.cond_consts), len(loop.body_consts)
    cond_consts, consts = operands[:tested], operands[tested : tested + fixed]
    carry = operands[tested + fixed :]
    cond, body = program(loop.cond), program(loop.body)
    records = _records(None, loop.body, len(carry))
    (active,) = cond([*cond_consts, *carry])
    counts = np.zeros(active.shape, np.int64)
    i = 0
    while active.any():
        if i == loop.limit:
            raise ConvergenceError(OUT_OF_STEPS.format(limit=loop.limit))
        given = [_donate(active, c) for c in carry]
        found = body([np.array(i, np.int64), *consts, *given])
        for record, row in zip(records, found[len(carry) :], strict=True):
            record.put(i, row)
        carry = [_freeze(active, a, b) for a, b in zip(found, carry, strict=False)]
        counts = counts + active
        i += 1
        active = active & cond([*cond_consts, *carry])[0]
    return [*carry, counts, *[r.array() for r in records]]
