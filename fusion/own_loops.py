"""Ops that are loops of their own: recurrences, and updates of a few elements.

A recurrence runs in order along one axis. An update writes its elements into the memory of its
operand when nobody needs that any more, else into a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..ir.graph import Node, Value
from .draft import Draft
from .index import Index, Var, linearize
from .loops import Instruction, Nest, Scan, Store
from .tiles import RawNest

if TYPE_CHECKING:
    from .lower import Lowering

__all__ = ["may_take_over", "place_update", "scan_nest", "scatter_nest", "window_nest"]

MakeNest = Callable[[Node, "Lowering"], RawNest]


def scan_nest(node: Node, lowering: Lowering) -> RawNest:
    """A recurrence along one axis; a reversed one counts that axis down."""
    out, axis = node.out, node.param("axis")
    draft = Draft(out.shape, (axis,))
    at = list(draft.indices())
    if node.param("reverse"):
        at[axis] = at[axis] * -1 + (out.shape[axis] - 1)
    recorder = lowering.recorder()
    elements = tuple(recorder.value(v, tuple(at)) for v in node.inputs)
    result = recorder.emit(Instruction("scanned", out.dtype))
    store = Store(lowering.buffer(out), linearize(at, lowering.strides(out)), result)
    lowering.recorded.append(recorder.computed())
    extents = tuple(draft.domain[d] for d in draft.order)
    nest = Nest(extents, tuple(recorder.tape), (store,), scan=Scan(node.op, elements))
    return RawNest(nest, 1)


def place_update(node: Node, nest: MakeNest, lowering: Lowering) -> None:
    """An update of ``node.inputs[0]``: in its own memory when nobody else needs it."""
    source, out = node.inputs[0], node.out
    own = lowering.numbers[out]
    in_place = may_take_over(source, node, lowering)
    if in_place:
        lowering.numbers[out] = lowering.numbers[source]
        in_place = _reads_before_it_writes(nest(node, lowering).nest)
    if not in_place:
        lowering.numbers[out] = own
        lowering.add_step(_copy_nest(source, out, lowering), node)
    if node.inputs[1].size:
        lowering.add_step(nest(node, lowering), node)
    lowering.home[node] = len(lowering.drafts) - 1


def may_take_over(source: Value, node: Node, lowering: Lowering) -> bool:
    """Whether ``node`` may write its result into the memory of its operand ``source``.

    Nobody else may need that any more: what else reads it is computed inside ``node``, or before.
    """
    number = lowering.numbers.get(source, -1)
    if number < 0 or source in lowering.outputs or node.inputs.count(source) > 1:
        return False
    kind = lowering.buffers[number].kind
    if kind == "input" and node not in lowering.overwriting:
        return False
    if kind not in ("input", "temporary"):
        return False
    if kind == "temporary" and source.node not in lowering.home:
        return False
    if lowering.orders.get(source) != lowering.orders.get(node.out):
        return False
    stack = [user for user in lowering.users.get(source, ()) if user is not node]
    seen = set(stack)
    while stack:
        user = stack.pop()
        if any(v in lowering.realization for v in user.outputs):
            if user not in lowering.home and any(v.size for v in user.outputs):
                return False
            continue
        for reader in lowering.users.get(user.out, ()):
            if reader is not node and reader not in seen:
                seen.add(reader)
                stack.append(reader)
    return True


def window_nest(node: Node, lowering: Lowering) -> RawNest:
    """An update written at a run-time start."""
    x, update, *starts = node.inputs
    draft = Draft(update.shape, ())
    recorder = lowering.recorder()
    at = draft.indices()
    value = recorder.value(update, at)
    sizes = zip(at, starts, x.shape, update.shape, strict=True)
    place = [i + recorder.window_start(s, n, m, -1) for i, s, n, m in sizes]
    index = linearize(place, lowering.strides(node.out))
    store = Store(lowering.buffer(node.out), index, value)
    lowering.recorded.append(recorder.computed())
    return RawNest(Nest(update.shape, tuple(recorder.tape), (store,), ordered=True), 0)


def _copy_nest(source: Value, target: Value, lowering: Lowering) -> RawNest:
    """``target`` (a buffer) becomes the elements of ``source``."""
    draft = Draft(source.shape, ())
    recorder = lowering.recorder()
    number = recorder.value(source, draft.indices())
    index = linearize(draft.indices(), lowering.strides(target))
    lowering.recorded.append(recorder.computed())
    store = Store(lowering.buffer(target), index, number)
    return RawNest(Nest(source.shape, tuple(recorder.tape), (store,)), 0)


def scatter_nest(node: Node, lowering: Lowering) -> RawNest:
    """Updates written or merged at run-time positions, in index order."""
    x, updates, *index_arrays = node.inputs
    draft = Draft(updates.shape, ())
    recorder = lowering.recorder()
    at = draft.indices()
    lead = index_arrays[0].ndim
    value = recorder.value(updates, at)
    places, inside = recorder.positions(node, x.shape, index_arrays, at[:lead], at[lead:])
    store = Store(
        lowering.buffer(node.out),
        linearize(places, lowering.strides(node.out)),
        value,
        node.param("how"),
        inside,
    )
    lowering.recorded.append(recorder.computed())
    nest = Nest(updates.shape, tuple(recorder.tape), (store,), ordered=True)
    return RawNest(nest, 0)


def _reads_before_it_writes(nest: Nest) -> bool:
    """Whether an update in place reads no element that another iteration has written.

    It may read the element it writes, and elements a constant distance away that lie beyond all
    that it writes.
    """
    (store,) = nest.stores
    for i in nest.tape:
        if i.buffer != store.buffer:
            continue
        assert i.index is not None
        apart = i.index + store.index * -1
        if apart.terms:
            return False
        loops = Index(0, tuple(t for t in store.index.terms if isinstance(t[0], Var)))
        low, high = loops.range()
        if apart.const and abs(apart.const) <= high - low:
            return False
    return True
