"""Sets of inputs through each linear op: :mod:`.sparsity`.

Ops that move elements are run by their NumPy reference on the numbers of the elements; so a rule
says no more of an op than which of its operands are data.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..ir.graph import Node, Value
from .sparsity import Indices, Pattern, Patterns, Rule, grouped, positions_of, selected, spans

__all__ = ["RULES"]

_LARGEST = 1 << 22


def _stacked(patterns: Patterns, operands: Sequence[Value]) -> tuple[Pattern, list[Indices]]:
    """The patterns of operands one under the other, and where each element's row is."""
    from scipy import sparse

    rows, places, at = [], [], 0
    for x in operands:
        found = patterns.of(x)
        if found is None:
            places.append(np.full(x.shape, -1))
        else:
            places.append(positions_of(x) + at)
            rows.append(found)
            at += x.size
    return (rows[0] if len(rows) == 1 else sparse.vstack(rows, format="csr")), places


def _moved(patterns: Patterns, node: Node) -> Pattern | None:
    """Views: all operands are data."""
    whole, places = _stacked(patterns, node.inputs)
    assert node.op.reference is not None
    return selected(whole, node.op.reference(*places, **dict(node.params)))


def _where(patterns: Patterns, node: Node) -> Pattern | None:
    condition, *branches = node.inputs
    known = patterns.known(condition)
    if known is None:
        return patterns.union([patterns.of(x) for x in branches])
    whole, places = _stacked(patterns, branches)
    return selected(whole, np.where(known, *places))


def _masked(patterns: Patterns, node: Node) -> Pattern | None:
    """A product with what is known to be zero in places; a quotient has its first operand."""
    found = patterns.union([patterns.of(x) for x in node.inputs])
    if found is None:
        return None
    for x in node.inputs if node.op.name in ("mul", "scale") else ():
        factor = patterns.known(x) if patterns.of(x) is None else None
        if factor is not None and not factor.all() and np.isfinite(factor).all():
            places = np.where(factor != 0, np.arange(factor.size).reshape(factor.shape), -1)
            found = selected(found, places)
    return found


def _reduced(patterns: Patterns, node: Node) -> Pattern | None:
    (x,) = node.inputs
    groups, count = spans(x.shape, node.param("axes"))
    return grouped(patterns.of(x), groups, count)


def _running(patterns: Patterns, node: Node) -> Pattern | None:
    """Each element has those before it along the axis: as so many steps of doubling."""
    axis, reverse = node.param("axis"), node.param("reverse")
    found = patterns.union([patterns.of(x) for x in node.inputs])
    numbers = positions_of(node.out)
    step, n = 1, node.out.shape[axis]
    while step < n and found is not None:
        places = np.full(numbers.shape, -1)
        here, before = [slice(None)] * numbers.ndim, [slice(None)] * numbers.ndim
        here[axis], before[axis] = slice(step, None), slice(None, -step)
        if reverse:
            here, before = before, here
        places[tuple(here)] = numbers[tuple(before)]
        found = found + selected(found, places)
        step *= 2
    return found


def _along(axis: int) -> Rule:
    """Everything along an axis is mixed: systems of equations."""

    def rule(patterns: Patterns, node: Node) -> Pattern | None:
        found = []
        for x in node.inputs:
            pattern = patterns.of(x)
            if pattern is None:
                continue
            if x.shape != node.out.shape:
                return patterns.everything(node, node.out)
            groups, count = spans(x.shape, (axis % x.ndim,))
            found.append(selected(grouped(pattern, groups, count), groups))
        return patterns.union(found)

    return rule


# ------------------------------------------------------------------------------------- indexing


def _gather(patterns: Patterns, node: Node) -> Pattern | None:
    x, *indices = node.inputs
    axes, params = node.param("axes"), dict(node.params)
    known = [patterns.known(i) for i in indices]
    assert node.op.reference is not None
    if all(i is not None for i in known):
        if params["mode"] == "fill":
            params["fill_value"] = _Nowhere()
        try:
            return selected(patterns.of(x), node.op.reference(positions_of(x), *known, **params))
        except IndexError:  # the program itself will say so
            return patterns.everything(node, node.out)
    # Any place along the axes: index axes first, then those that are left.
    groups, count = spans(x.shape, axes)
    kept = [n for d, n in enumerate(x.shape) if d not in axes]
    places = np.broadcast_to(np.arange(count).reshape(kept), node.out.shape)
    return selected(grouped(patterns.of(x), groups, count), places)


class _Nowhere:
    """The fill value of a gather of numbers of elements."""

    def item(self) -> int:
        return -1

    def array(self) -> Indices:
        return np.asarray(-1)


def _scatter(patterns: Patterns, node: Node) -> Pattern | None:
    x, updates, *indices = node.inputs
    known = [patterns.known(i) for i in indices]
    how = node.param("how")
    if how not in ("set", "add") or any(i is None for i in known):
        return patterns.everything(node, node.out)
    assert node.op.reference is not None
    params: dict[str, Any] = {**dict(node.params), "how": "set"}
    _, places = _stacked(patterns, (x, updates))
    whole = _stacked(patterns, (x, updates))[0]
    try:
        if how == "set":
            return selected(whole, node.op.reference(*places, *known, **params))
        found = patterns.of(x)
        # Where each update lands, by the places that reading gives.
        target = _landing(node, known)
    except IndexError:
        return patterns.everything(node, node.out)
    below = patterns.of(updates)
    if below is None:
        return found
    inside = target.reshape(-1) >= 0
    rows = selected(below, np.flatnonzero(inside))
    return patterns.union([found, grouped(rows, target.reshape(-1)[inside], x.size)])


def _landing(node: Node, known: Sequence[Any]) -> Indices:
    from ..ir.ops.gather import GATHER

    params = {name: node.param(name) for name in ("axes", "mode", "checked")}
    assert GATHER.reference is not None
    places: Indices = GATHER.reference(
        positions_of(node.inputs[0]), *known, fill_value=_Nowhere(), **params
    )
    return places


def _dynamic(data: int) -> Rule:
    """Windows: the first ``data`` operands are data, the others starts."""

    def rule(patterns: Patterns, node: Node) -> Pattern | None:
        known = [patterns.known(i) for i in node.inputs[data:]]
        if any(i is None for i in known):
            return patterns.everything(node, node.out)
        whole, places = _stacked(patterns, node.inputs[:data])
        assert node.op.reference is not None
        return selected(whole, node.op.reference(*places, *known, **dict(node.params)))

    return rule


# ---------------------------------------------------------------------------------- contractions


def _dot(patterns: Patterns, node: Node) -> Pattern | None:
    return patterns.union([_side(patterns, node, place) for place in (0, 1)])


def _side(patterns: Patterns, node: Node, place: int) -> Pattern | None:
    """What an operand of a contraction contributes."""
    x, other = node.inputs[place], node.inputs[1 - place]
    found = patterns.of(x)
    if found is None:
        return None
    contract, batch = node.param("contract"), node.param("batch")
    mine, theirs = contract[place], contract[1 - place]
    lead, also = batch[place], batch[1 - place]
    free = [d for d in range(x.ndim) if d not in mine and d not in lead]
    rest = [d for d in range(other.ndim) if d not in theirs and d not in also]
    b, m, n = (
        prod(shape[d] for d in axes)
        for shape, axes in ((x.shape, lead), (x.shape, free), (other.shape, rest))
    )
    k = prod(x.shape[d] for d in mine)
    # The numbers of my elements as [batch, free, contracted].
    numbers = np.transpose(positions_of(x), [*lead, *free, *mine]).reshape(b, m, k)
    factor = patterns.known(other) if patterns.of(other) is None else None
    if factor is not None:
        weights = np.transpose(factor, [*also, *rest, *theirs]).reshape(b, n, k)
        at, j, c = np.nonzero(weights)
        if len(at) < 0.5 * weights.size and len(at) * m <= _LARGEST:
            rows = (at[:, None] * m + np.arange(m)) * n + j[:, None]
            if place:
                rows = (at[:, None] * n + j[:, None]) * m + np.arange(m)
            return _picked(found, rows, numbers[at, :, c], b * m * n)
    groups = np.empty(x.size, np.int64)
    groups[numbers.reshape(b * m, k)] = np.arange(b * m)[:, None]
    places = np.arange(b * m).reshape((b, 1, m) if place else (b, m, 1))
    shape = (b, n, m) if place else (b, m, n)
    return selected(grouped(found, groups, b * m), np.broadcast_to(places, shape))


def _picked(x: Pattern, rows: Indices, sources: Indices, count: int) -> Pattern:
    from scipy import sparse

    pairs = rows.reshape(-1), sources.reshape(-1)
    ones = np.ones(pairs[0].size, bool)
    return sparse.csr_array((ones, pairs), shape=(count, x.shape[0])) @ x


RULES: dict[str, Rule] = {
    **dict.fromkeys(("reshape", "transpose", "broadcast", "slice", "pad", "concat"), _moved),
    "where": _where,
    **dict.fromkeys(("mul", "scale"), _masked),
    "sum": _reduced,
    **dict.fromkeys(("cumsum", "linear_recurrence", "tangent_recurrence"), _running),
    "triangular_solve": _along(-2),
    "gather": _gather,
    "scatter": _scatter,
    "dynamic_slice": _dynamic(1),
    "dynamic_update_slice": _dynamic(2),
    "dot": _dot,
}
