"""Canonical form: one spelling for each view, no node that does nothing. Keeps every bit.

The rules are rows: an op's name and what its node may become. Nothing here uses that real numbers
commute, associate or cancel. ``x + 0`` is not ``x`` (``-0.0 + 0.0`` is ``0.0``), ``x * 0`` is not
``0`` (infinities, NaN), ``x - x`` is not ``0``; what is exact for every bit pattern is listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..dtypes import DType
from ..graph import Graph, Literal, Node, Value, make
from ..ops.arithmetic import DIV, MUL
from ..ops.custom import CUSTOM_CALL, values_of
from ..ops.leaves import CONSTANT
from ..ops.shape import BROADCAST, RESHAPE, TRANSPOSE
from ..rewrite import rewrite_graph

__all__ = ["canonicalize"]

Rule = Callable[[Node], "Value | None"]


def canonicalize(graph: Graph) -> Graph:
    """``graph`` with views collapsed and operations without effect dropped.

    For programs that are not differentiated any more: ``alias``, ``hold``, ``stop_gradient`` and
    ``custom_call``, which matter to transforms alone, go.
    """
    return rewrite_graph(graph, _without_rules)


def _without_rules(node: Node) -> Value | tuple[Value, ...] | None:
    if node.op is CUSTOM_CALL:
        return values_of(node) or None
    return _simplest(node)


def _simplest(node: Node) -> Value | None:
    """What ``node`` becomes when its rules are applied until none fits.

    Operands are canonical already, and each rule makes a node on the operands of its operands, so
    there are no more steps than the chain of views is long.
    """
    result: Value | None = None
    while True:
        for rule in _RULES.get(node.op.name, ()):
            found = rule(node)
            if found is not None and found.type == node.types[0]:
                result = found
                break
        else:
            return result
        if len(result.node.types) > 1:
            return result
        node = result.node


# ----------------------------------------------------------------- what operands are made of


def _uniform(x: Value) -> Any:
    """The one element of a constant that is everywhere the same, through views; else None.

    As a 0-d NumPy array, so that a zero keeps its sign.
    """
    while x.node.op in (BROADCAST, RESHAPE, TRANSPOSE):
        x = x.node.inputs[0]
    if x.node.op is not CONSTANT or x.size != 1:
        return None
    return x.node.param("literal").array().reshape(())


def _is(x: Value, number: float) -> bool:
    """Whether ``x`` is ``number`` everywhere, the sign of zero included."""
    found = _uniform(x)
    if found is None or found != number:
        return False
    return found.dtype.kind != "f" or bool(np.signbit(found) == np.signbit(number))


def _is_finite_number(x: Value) -> bool:
    """Whether ``x`` is one finite number other than zero, everywhere."""
    found = _uniform(x)
    return found is not None and bool(np.isfinite(found)) and bool(found != 0)


def _operand_of(node: Node, name: str) -> Node | None:
    """The node of the first operand if it is of the op ``name``."""
    inner = node.inputs[0].node
    return inner if inner.op.name == name else None


# --------------------------------------------------------------------------------- identities


def _drop(node: Node) -> Value | None:
    return node.inputs[0]


def _twice(node: Node) -> Value | None:
    """f(f(x)) = x for an exact involution: a flipped sign bit, flipped bits, wrapped negation."""
    inner = _operand_of(node, node.op.name)
    return None if inner is None else inner.inputs[0]


def _add_nothing(node: Node) -> Value | None:
    """x + (-0.0) = x for every x; for integers x + 0; for bools (logical or) False."""
    x, y = node.inputs
    nothing = -0.0 if x.dtype.is_floating else 0
    if x.dtype.is_complex:
        return None
    return x if _is(y, nothing) else y if _is(x, nothing) else None


def _subtract_nothing(node: Node) -> Value | None:
    """x - (+0.0) = x for every x, -0.0 included."""
    x, y = node.inputs
    return x if not x.dtype.is_complex and _is(y, 0.0 if x.dtype.is_floating else 0) else None


def _multiply_by_one(node: Node) -> Value | None:
    """x * 1 = x for real x; a complex product also multiplies by the zero imaginary part.

    (A signalling NaN would become a quiet one; which NaN is unspecified.)
    """
    x, y = node.inputs
    if x.dtype.is_complex:
        return None
    return x if _is(y, 1) else y if _is(x, 1) else None


def _divide_by_one(node: Node) -> Value | None:
    x, y = node.inputs
    return x if not x.dtype.is_complex and _is(y, 1) else None


def _scale_plainly(node: Node) -> Value | None:
    """A strong zero differs from a product only where that is ``0 * inf`` or ``0 * NaN``."""
    if node.types[0].dtype.is_complex or not any(map(_is_finite_number, node.inputs)):
        return None
    return make(MUL, node.inputs)


def _unscale_plainly(node: Node) -> Value | None:
    divisor = node.inputs[1]
    if node.types[0].dtype.is_complex or not _is_finite_number(divisor):
        return None
    return make(DIV, node.inputs)


def _where_known(node: Node) -> Value | None:
    condition, x, y = node.inputs
    if x == y:
        return x
    known = _uniform(condition)
    return None if known is None else x if known else y


# --------------------------------------------------------------------------------- conversion


def lossless(source: DType, target: DType) -> bool:
    """Whether every value of ``source`` is a value of ``target``, so that it can come back."""
    if source is target or source.is_bool:
        return True
    if target.is_bool:
        return False
    if source.is_integer:
        width = source.bits - source.is_signed  # bits of magnitude
        if target.is_integer:
            return width <= target.bits - target.is_signed and (
                target.is_signed or not source.is_signed
            )
        return width <= (24 if target.real.itemsize == 4 else 53)
    if target.is_integer or (source.is_complex and not target.is_complex):
        return False
    return source.real.itemsize <= target.real.itemsize


def _convert_nothing(node: Node) -> Value | None:
    return node.inputs[0]  # only where the whole type, weakness included, is the same


def _convert_constant(node: Node) -> Value | None:
    x = node.inputs[0]
    if x.node.op is not CONSTANT or node.op.reference is None:
        return None
    with np.errstate(all="ignore"):
        array = node.op.reference(x.node.param("literal").array(), **dict(node.params))
    t = node.types[0]
    return make(CONSTANT, (), literal=Literal.of(array, t.dtype), weak=t.weak)


def _convert_twice(node: Node) -> Value | None:
    """Through a type that holds every value of the first, the way does not matter."""
    inner = _operand_of(node, "convert")
    if inner is None:
        return None
    x, through, target = inner.inputs[0], inner.types[0].dtype, node.types[0].dtype
    if not lossless(x.dtype, through):
        return None
    # Out of range, integers wrap but floats saturate: the way matters unless nothing is.
    detour = x.dtype.is_integer and not through.is_integer and target.is_integer
    if detour and not lossless(x.dtype, target):
        return None
    if x.type == node.types[0]:
        return x
    return make(node.op, (x,), **dict(node.params))


# -------------------------------------------------------------------------------------- views


def _reshape_chain(node: Node) -> Value | None:
    inner = _operand_of(node, "reshape")
    if inner is None:
        return None
    x, shape = inner.inputs[0], node.param("shape")
    return x if x.shape == shape else make(RESHAPE, (x,), shape=shape)


def _reshape_broadcast(node: Node) -> Value | None:
    """The reshape of one number repeated is that number repeated."""
    inner = _operand_of(node, "broadcast")
    if inner is None or inner.inputs[0].ndim:
        return None
    return make(BROADCAST, inner.inputs, shape=node.param("shape"), axes=())


def _transpose_identity(node: Node) -> Value | None:
    axes = node.param("axes")
    return node.inputs[0] if axes == tuple(range(len(axes))) else None


def _transpose_chain(node: Node) -> Value | None:
    inner = _operand_of(node, "transpose")
    if inner is None:
        return None
    first = inner.param("axes")
    return make(TRANSPOSE, inner.inputs, axes=tuple(first[d] for d in node.param("axes")))


def _transpose_of_broadcast(node: Node) -> Value | None:
    """Repeating comes last: the operand's axes are put in order first, then repeated."""
    inner = _operand_of(node, "broadcast")
    if inner is None:
        return None
    place = {axis: position for position, axis in enumerate(node.param("axes"))}
    axes = [place[d] for d in inner.param("axes")]
    turned = make(
        TRANSPOSE, inner.inputs, axes=tuple(sorted(range(len(axes)), key=axes.__getitem__))
    )
    simpler = _simplest(turned.node)
    small = turned if simpler is None else simpler
    return make(BROADCAST, (small,), shape=node.types[0].shape, axes=tuple(sorted(axes)))


def _broadcast_chain(node: Node) -> Value | None:
    inner = _operand_of(node, "broadcast")
    if inner is None:
        return None
    outer = node.param("axes")
    axes = tuple(outer[d] for d in inner.param("axes"))
    return make(BROADCAST, inner.inputs, shape=node.param("shape"), axes=axes)


def _same_shape(node: Node) -> Value | None:
    x = node.inputs[0]
    return x if x.shape == node.types[0].shape else None


def _slice_rows(node: Node) -> Iterator[tuple[int, int, int]]:
    """Start, step and extent of each axis."""
    return zip(node.param("start"), node.param("step"), node.param("shape"), strict=True)


def _slice_with(node: Node, x: Value, start: Sequence[int], step: Sequence[int]) -> Value:
    """A slice in its one spelling: step 1 for fewer than two elements, start 0 for none."""
    shape = node.param("shape")
    plain_start = tuple(a if n else 0 for a, n in zip(start, shape, strict=True))
    plain_step = tuple(by if n > 1 else 1 for by, n in zip(step, shape, strict=True))
    return make(node.op, (x,), start=plain_start, step=plain_step, shape=shape)


def _slice_identity(node: Node) -> Value | None:
    x = node.inputs[0]
    if node.param("shape") != x.shape:
        return None
    whole = all(n == 0 or (a == 0 and (by == 1 or n == 1)) for a, by, n in _slice_rows(node))
    return x if whole else None


def _slice_spelling(node: Node) -> Value | None:
    plain = _slice_with(node, node.inputs[0], node.param("start"), node.param("step"))
    return None if plain.node.params == node.params else plain


def _slice_chain(node: Node) -> Value | None:
    inner = _operand_of(node, "slice")
    if inner is None:
        return None
    rows = list(zip(_slice_rows(inner), _slice_rows(node), strict=True))
    start = [first + by * then for (first, by, _), (then, _, _) in rows]
    step = [by * then_by for (_, by, _), (_, then_by, _) in rows]
    return _slice_with(node, inner.inputs[0], start, step)


def _slice_of_broadcast(node: Node) -> Value | None:
    """A part of one number repeated is that number repeated fewer times."""
    inner = _operand_of(node, "broadcast")
    if inner is None or inner.inputs[0].ndim:
        return None
    return make(BROADCAST, inner.inputs, shape=node.types[0].shape, axes=())


def _pad_nothing(node: Node) -> Value | None:
    return _same_shape(node)


def _concat_nothing(node: Node) -> Value | None:
    """Empty pieces add nothing; one piece is itself."""
    axis = node.param("axis")
    pieces = [x for x in node.inputs if x.shape[axis]] or [node.inputs[0]]
    if len(pieces) == len(node.inputs):
        return pieces[0] if len(pieces) == 1 else None
    return pieces[0] if len(pieces) == 1 else make(node.op, pieces, **dict(node.params))


_RULES: dict[str, tuple[Rule, ...]] = {
    "alias": (_drop,),
    "hold": (_drop,),
    "checkpoint_name": (_drop,),
    "stop_gradient": (_drop,),
    "convert": (_convert_nothing, _convert_constant, _convert_twice),
    "neg": (_twice,),
    "not": (_twice,),
    "conj": (_twice,),
    "add": (_add_nothing,),
    "sub": (_subtract_nothing,),
    "mul": (_multiply_by_one,),
    "div": (_divide_by_one,),
    "scale": (_scale_plainly,),
    "unscale": (_unscale_plainly,),
    "where": (_where_known,),
    "reshape": (_same_shape, _reshape_chain, _reshape_broadcast),
    "transpose": (_transpose_identity, _transpose_chain, _transpose_of_broadcast),
    "broadcast": (_same_shape, _broadcast_chain),
    "slice": (_slice_identity, _slice_spelling, _slice_chain, _slice_of_broadcast),
    "pad": (_pad_nothing,),
    "concat": (_concat_nothing,),
}
