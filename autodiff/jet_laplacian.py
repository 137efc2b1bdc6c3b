"""The forward Laplacian: first derivatives along all directions, second ones as their sum.

For ``z = f(x)`` of a value ``x`` that moves along ``n`` lines at once, with first derivatives
``x_i``
and the sum ``L(x)`` of the second ones ::

    z_i = f'(x) x_i          L(z) = f'(x) L(x) + sum_i f''(x)[x_i, x_i]

so that one second derivative is carried and not ``n`` (Li et al. 2023, arXiv:2307.08214). For each
node both parts come from its series to order 2 (:mod:`.jet`): along one direction with ``x'' = 0``,
batched over the directions and summed; and along ``L(x)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.collector import no_collection
from ..ir.functions.creation import eye
from ..ir.graph import Node, Value, toposort
from ..ir.location import one_place
from ..ir.ops.custom import CUSTOM_CALL, values_of
from ..ir.ops.fill import filled
from ..ir.ops.leaves import input_node
from ..ir.ops.reductions import sum_
from ..ir.ops.regions import strong
from ..ir.ops.shape import moveaxis, reshape
from ..ir.ops.slicing import pad
from .batching import batch
from .custom import at_axis
from .jet import Jets, jet

__all__ = ["laplacian"]


@no_collection()
@one_place()
def laplacian(outputs: Sequence[Value], inputs: Sequence[Value]) -> list[Value | None]:
    """The traces of the Hessians of the elements of ``outputs`` by all elements of ``inputs``.

    Parameters
    ----------
    outputs, inputs : sequence of Value
        Real; the inputs are independent of each other.

    Returns
    -------
    list of Value or None
        Like ``outputs``; None is zero, by structure.
    """
    size = sum(x.size for x in inputs)
    directions = dict(zip(inputs, _unit_directions(inputs, size), strict=True))
    order = toposort(outputs, stop=[x.node for x in inputs])
    if not _goes_by_node(order, inputs):
        return _one_by_one(outputs, inputs, directions, size)
    units = frozenset(inputs) if len(inputs) == 1 else frozenset()
    first = {x: (d, 0) for x, d in directions.items()}
    second: dict[Value, Value] = {}
    for node in order:
        moving = [x for x in dict.fromkeys(node.inputs) if x in first]
        if moving:
            _through(node, moving, first, second, size, units)
    return [second.get(x) for x in outputs]


def _through(
    node: Node,
    moving: Sequence[Value],
    first: dict[Value, tuple[Value, int]],
    second: dict[Value, Value],
    size: int,
    units: frozenset[Value],
) -> None:
    """The derivatives of a node's results, entered in ``first`` and ``second``."""
    along = {x: input_node(strong(x.type), "direction").out for x in moving}
    rows = _series(node, {x: [d, None] for x, d in along.items()}, 2)
    found = [y for row in rows for y in row]
    batched = iter(
        batch(
            [y for y in found if y is not None],
            {along[x]: first[x] for x in moving},
            size,
            {along[x] for x in moving if x in units},
        )
    )
    sums: dict[Value, list[Value | None]] = {x: [second[x]] for x in moving if x in second}
    still: list[list[Value | None]] = [[None] for _ in rows]
    carried = _series(node, sums, 1) if sums else still
    for y, (slope, curvature), (rest,) in zip(node.outputs, rows, carried, strict=True):
        if slope is not None:
            value, axis = next(batched)
            first[y] = (at_axis(value, axis, 0, size), 0) if axis is None else (value, axis)
        total = rest
        if curvature is not None:
            value, axis = next(batched)
            part = value * size if axis is None else sum_(value, axis)
            total = part if total is None else total + part
        if total is not None:
            second[y] = total


def _series(
    node: Node, series: dict[Value, list[Value | None]], order: int
) -> list[list[Value | None]]:
    """Orders 1 to ``order`` of the results of one node."""
    jets = Jets(order)
    given: dict[Node, list[Sequence[Value | None] | None]] = {}
    for x, terms in series.items():
        given.setdefault(x.node, [None] * len(x.node.types))[x.index] = terms
    for source, many in given.items():
        jets.start(source, many)
    jets.add(node)
    return [[jets.series(y, k) for k in range(1, order + 1)] for y in node.outputs]


def _unit_directions(inputs: Sequence[Value], size: int) -> list[Value]:
    """For each input its part of all unit directions, along a first axis."""
    found = []
    at = 0
    for x in inputs:
        square = filled((1, 1), 1, x.dtype) if x.size == 1 else eye(x.size, dtype=x.dtype)
        rows = pad(square, 0, (at, 0), (size - at - x.size, 0)) if x.size < size else square
        found.append(reshape(rows, (size, *x.shape)))
        at += x.size
    return found


def _goes_by_node(order: Sequence[Node], inputs: Sequence[Value]) -> bool:
    """Whether each node can be looked at by itself.

    A function with a rule of the user's that captures what moves cannot: what its values are
    computed from matters (:mod:`..ir.ops.custom`).
    """
    moving = {x.node for x in inputs}
    for node in order:
        if any(x.node in moving for x in node.inputs):
            moving.add(node)
            if node.op is CUSTOM_CALL and any(x.node in moving for x in values_of(node)):
                return False
    return True


def _one_by_one(
    outputs: Sequence[Value],
    inputs: Sequence[Value],
    directions: dict[Value, Value],
    size: int,
) -> list[Value | None]:
    """Second derivatives along each direction, then their sum."""
    along = {x: input_node(strong(x.type), "direction").out for x in inputs}
    rows = jet(outputs, {x: [d, None] for x, d in along.items()}, 2)
    found: list[Value | None] = [row[1] for row in rows]
    values = [y for y in found if y is not None]
    batched = iter(batch(values, {along[x]: (directions[x], 0) for x in inputs}, size))
    result: list[Value | None] = []
    for y in found:
        if y is None:
            result.append(None)
            continue
        value, axis = next(batched)
        result.append(value * size if axis is None else sum_(moveaxis(value, axis, 0), 0))
    return result
