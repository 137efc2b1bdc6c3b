"""Sets of inputs through regions: :mod:`.sparsity`.

A short loop of known length is followed step by step, so that a stencil widens by one place a step;
any other loop is followed until its carries grow no more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.graph import Graph, Node, Value
from ..ir.ops.regions import COND, LOOP, Loop, While
from ..ir.types import GROWING
from .sparsity import Indices, Pattern, Patterns, grouped, positions_of, selected, spans

__all__ = ["region"]

_STEPS = 64

Found = list["Pattern | None"]


def region(patterns: Patterns, node: Node) -> Found:
    """Patterns of the results of a region."""
    if node.op is COND:
        return _cond(patterns, node)
    if any(t.shape[:1] == (GROWING,) for t in node.types) or any(
        x.shape[:1] == (GROWING,) for x in node.inputs
    ):
        return [patterns.everything(node, y) for y in node.outputs]
    return _loop(patterns, node) if node.op is LOOP else _while(patterns, node)


def _cond(patterns: Patterns, node: Node) -> Found:
    _, *operands = node.inputs
    given = [patterns.of(x) for x in operands]
    branches = node.param("branches")
    found = [patterns.through(branch, given, operands) for branch in branches]
    return [patterns.union(many) for many in zip(*found, strict=True)]


def _same(a: Sequence[Pattern | None], b: Sequence[Pattern | None]) -> bool:
    return all(
        (x.nnz if x is not None else 0) == (y.nnz if y is not None else 0)
        for x, y in zip(a, b, strict=True)
    )


def _loop(patterns: Patterns, node: Node) -> Found:
    loop = Loop.of(node)
    if loop.count is None and (loop.length or 0) <= _STEPS:
        return _by_steps(patterns, loop)
    if loop.count is not None and loop.lanes:
        return [patterns.everything(node, y) for y in node.outputs]
    carries = len(loop.init)
    consts = [patterns.of(x) for x in loop.consts]
    xs = []
    for x in loop.xs:
        found = patterns.of(x)
        if found is not None:
            groups, count = spans(x.shape, (0,))
            found = grouped(found, groups, count)
        xs.append(found)
    known: list[Value | Indices | None] = [None, *loop.consts]
    known += [None] * (carries + len(xs))
    carry, results = _settled(patterns, loop.body, consts, loop.init, xs, known)
    records: Found = []
    for y, record in zip(results[carries:], node.outputs[carries:], strict=True):
        if y is not None:
            one = np.arange(y.shape[0]).reshape(record.shape[1:])
            y = selected(y, np.broadcast_to(one, record.shape))
        records.append(y)
    return [*carry, *records]


def _settled(
    patterns: Patterns,
    body: Graph,
    consts: Found,
    init: Sequence[Value],
    xs: Found,
    known: Sequence[Value | Indices | None],
) -> tuple[Found, Found]:
    """Carries that another step does not widen, and the results of that step."""
    carry: Found = [patterns.of(x) for x in init]
    while True:
        results = patterns.through(body, [None, *consts, *carry, *xs], known)
        after = [patterns.union([a, b]) for a, b in zip(carry, results, strict=False)]
        if _same(after, carry):
            return carry, results
        carry = after


def _by_steps(patterns: Patterns, loop: Loop) -> Found:
    from scipy import sparse

    carries, length = len(loop.init), loop.length or 0
    consts = [patterns.of(x) for x in loop.consts]
    carry: Found = [patterns.of(x) for x in loop.init]
    values: list[Indices | None] = [patterns.known(x) for x in loop.init]
    sequences = [patterns.known(x) for x in loop.xs]
    records: list[list[Pattern]] = [[None] * length for _ in loop.body.outputs[carries:]]
    for i in reversed(range(length)) if loop.reverse else range(length):
        xs: Found = []
        for x in loop.xs:
            found = patterns.of(x)
            xs.append(None if found is None else selected(found, positions_of(x)[i]))
        slices = [None if s is None else s[i] for s in sequences]
        known = [np.asarray(i), *loop.consts, *values, *slices]
        results = patterns.through(loop.body, [None, *consts, *carry, *xs], known)
        carry, values = results[:carries], [None] * carries
        for record, y in zip(records, results[carries:], strict=True):
            record[i] = y
    stacked: Found = []
    for record, y in zip(records, loop.body.outputs[carries:], strict=True):
        empty = sparse.csr_array((y.size, patterns.columns), dtype=bool)
        rows = [empty if p is None else p for p in record]
        stacked.append(sparse.vstack(rows, format="csr") if rows else None)
    return [*carry, *stacked]


def _while(patterns: Patterns, node: Node) -> Found:
    loop = While.of(node)
    if loop.lanes or len(node.types) > len(loop.init) + 1:
        return [patterns.everything(node, y) for y in node.outputs]
    consts = [patterns.of(x) for x in loop.body_consts]
    known: list[Value | Indices | None] = [None, *loop.body_consts]
    known += [None] * len(loop.init)
    carry, _ = _settled(patterns, loop.body, consts, loop.init, [], known)
    return [*carry, None]
