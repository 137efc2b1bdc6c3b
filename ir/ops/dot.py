"""The general dot product, and NumPy's products made of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError
from ..graph import Node, Value, make
from ..location import at_user_line
from ..types import TensorType, describe
from .arithmetic import mul
from .complexes import conj
from .operands import as_value, broadcast_shapes, common_dtype, convert
from .reductions import wide, wide_numpy
from .registry import register
from .shape import Axes, axis_index, broadcast_to, moveaxis, reshape, squeeze, transpose

__all__ = ["DOT", "contracted_with_units", "dot", "matmul", "outer", "tensordot", "vecdot"]

Pair = tuple[Axes, Axes]


def _free(ndim: int, *used: Axes) -> Axes:
    return tuple(d for d in range(ndim) if not any(d in axes for axes in used))


def _dot_type(x: TensorType, y: TensorType, *, contract: Pair, batch: Pair) -> TensorType:
    if x.dtype is not y.dtype:
        raise DTypeError(f"dot: expected equal dtypes, got {describe((x, y))}")
    for what, (left, right) in (("contract", contract), ("batch", batch)):
        if len(left) != len(right):
            raise ShapeError(
                f"dot: expected as many {what} axes on both sides, got {list(left)}, {list(right)}"
            )
    for t, axes in ((x, contract[0] + batch[0]), (y, contract[1] + batch[1])):
        for d in axes:
            if not 0 <= d < t.ndim:
                raise IndexError(f"dot: expected axes in [0, {t.ndim}) for {t}, got {d}")
        if len(set(axes)) != len(axes):
            raise ShapeError(f"dot: expected each axis once, got {list(axes)} for {t}")
    for (left, right), what in ((contract, "contracted"), (batch, "batch")):
        for i, j in zip(left, right, strict=True):
            if x.shape[i] != y.shape[j]:
                raise ShapeError(
                    f"dot: expected equal extents of {what} axes, got {describe((x, y))}: "
                    f"axis {i} has {x.shape[i]}, axis {j} has {y.shape[j]}"
                )
    shape = (
        *(x.shape[d] for d in batch[0]),
        *(x.shape[d] for d in _free(x.ndim, contract[0], batch[0])),
        *(y.shape[d] for d in _free(y.ndim, contract[1], batch[1])),
    )
    return TensorType(shape, x.dtype, x.weak and y.weak)


def _dot_value(x: Any, y: Any, *, contract: Pair, batch: Pair) -> Any:
    """As a batch of matrix products; bool is or of and, integers wrap."""
    free_x, free_y = _free(x.ndim, contract[0], batch[0]), _free(y.ndim, contract[1], batch[1])
    shape = [x.shape[d] for d in batch[0] + free_x] + [y.shape[d] for d in free_y]
    b, k = prod(x.shape[d] for d in batch[0]), prod(x.shape[d] for d in contract[0])
    left = np.transpose(x, batch[0] + free_x + contract[0])
    right = np.transpose(y, batch[1] + contract[1] + free_y)
    left = left.reshape(b, prod(x.shape[d] for d in free_x), k).astype(wide_numpy(x))
    right = right.reshape(b, k, prod(y.shape[d] for d in free_y)).astype(wide_numpy(y))
    return np.matmul(left, right).reshape(shape).astype(x.dtype)


def _dot_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    (x, y), (x_dot, y_dot) = node.inputs, tangents
    params = dict(node.params)
    left = None if x_dot is None else make(DOT, (x_dot, y), **params)
    right = None if y_dot is None else make(DOT, (x, y_dot), **params)
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _dot_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> Any:
    """The cotangent contracted with the other operand over that operand's free axes."""
    x, y = node.inputs
    (cx, cy), (bx, by) = node.param("contract"), node.param("batch")
    fx, fy = _free(x.ndim, cx, bx), _free(y.ndim, cy, by)
    nb, nx = len(bx), len(fx)
    at_batch = tuple(range(nb))
    at_x, at_y = tuple(range(nb, nb + nx)), tuple(range(nb + nx, cotangent.ndim))
    x_bar = y_bar = None
    if linear[0]:
        # Its axes besides batch and the free ones of x: the contracted ones, in y's order.
        rest = tuple(cx[cy.index(d)] for d in sorted(cy))
        x_bar = _contracted((cotangent, y), (at_y, fy), (at_batch, by), (bx, fx, rest))
    if linear[1]:
        rest = tuple(cy[cx.index(d)] for d in sorted(cx))
        y_bar = _contracted((cotangent, x), (at_x, fx), (at_batch, bx), (by, fy, rest))
    return x_bar, y_bar


def _contracted(
    factors: tuple[Value, Value], contract: Pair, batch: Pair, to: tuple[Axes, Axes, Axes]
) -> Value:
    """A contraction whose axes (batch, free of the first, free of the second) go to ``to``.

    The factors change places when that saves the transpose: a weight's gradient ``x' c`` is made
    as it lies in memory.
    """
    lead, first, second = to
    if (*lead, *second, *first) == tuple(range(len(lead) + len(first) + len(second))):
        swapped = make(DOT, factors[::-1], contract=contract[::-1], batch=batch[::-1])
        return _place(swapped, (*lead, *second, *first))
    return _place(make(DOT, factors, contract=contract, batch=batch), (*lead, *first, *second))


def _place(x: Value, to: Axes) -> Value:
    """Axis k of ``x`` becomes axis ``to[k]``."""
    return transpose(x, [to.index(d) for d in range(len(to))])


def _dot_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    contract, batch = node.param("contract"), node.param("batch")
    moved = [x if a is None else moveaxis(x, a, 0) for x, a in zip(operands, axes, strict=True)]

    def behind(pair: Pair) -> Pair:
        left, right = (
            axes_ if a is None else tuple(d + 1 for d in axes_)
            for axes_, a in zip(pair, axes, strict=True)
        )
        return left, right

    contract, batch = behind(contract), behind(batch)
    if axes[0] is not None and axes[1] is not None:
        batch = (0, *batch[0]), (0, *batch[1])
        return make(DOT, moved, contract=contract, batch=batch), 0
    # A batch axis on one side alone is a free axis, the first of its side. A stack of vectors goes
    # to the front, so that the batch axis comes out first and nothing is transposed.
    stacked = axes[0] is None and len(_free(moved[1].ndim, contract[1], batch[1])) == 1
    if stacked and not batch[0]:
        return make(DOT, moved[::-1], contract=contract[::-1], batch=batch), 0
    at = len(batch[0])
    if axes[0] is None:
        at += len(_free(moved[0].ndim, contract[0], batch[0]))
    return make(DOT, moved, contract=contract, batch=batch), at


def contracted_with_units(node: Node, place: int) -> tuple[Value, int] | None:
    """A contraction of one operand with each unit tensor in turn: the other operand itself.

    Parameters
    ----------
    node : Node
        A ``dot`` whose operand ``place`` stands for every unit tensor of its shape, in C order.

    Returns
    -------
    (Value, int) or None
        The results along a new axis, and that axis; None if not all axes of the operand are
        contracted, so that there is more to do than to pick elements.

    Notes
    -----
    The zeros of a unit tensor are strong: an infinity or NaN reaches the unit that picks it, and no
    other, as the derivative by that one element has it.
    """
    contract = node.param("contract")
    other, mine, theirs = node.inputs[1 - place], contract[place], contract[1 - place]
    if not mine or len(mine) != node.inputs[place].ndim:
        return None
    if len(mine) == 1:
        return other, theirs[0]
    picked = [theirs[mine.index(d)] for d in range(len(mine))]
    free = _free(other.ndim, theirs)
    ordered = transpose(other, [*picked, *free])
    count = prod(other.shape[d] for d in picked)
    return reshape(ordered, (count, *(other.shape[d] for d in free))), 0


def _dot_samples(rng: Any, dtype: Any) -> Any:
    x, y = (rng.standard_normal(s).astype(dtype) for s in ((2, 3, 4), (4, 2, 5)))
    yield (x, y), {"contract": ((2,), (0,)), "batch": ((0,), (1,))}
    yield (x, y), {"contract": ((2, 0), (0, 1)), "batch": ((), ())}
    yield (x, y), {"contract": ((), ()), "batch": ((), ())}


DOT = register(
    "dot",
    "dot",
    infer=_dot_type,
    reference=_dot_value,
    accumulator=wide,
    jvp=_dot_jvp,
    transpose=_dot_transpose,
    batch=_dot_batch,
    doc="Sum over paired contracted axes of products; result axes: batch, free of x, free of y. "
    "float32 is summed in float64 for vectors, in float32 for matrices (docs/numerics.md, 7); "
    "integers wrap, bool is or of and.",
    samples=_dot_samples,
)


def dot(x: Any, y: Any, contract: Pair = ((), ()), batch: Pair = ((), ())) -> Value:
    """General dot product.

    Parameters
    ----------
    x, y : array-like
        Promoted to a common dtype.
    contract, batch : pair of tuples of int
        Axes of ``x`` and, in the same order, of ``y``: summed over, and gone along together.

    Returns
    -------
    Value
        Axes: batch, then the free axes of ``x``, then those of ``y``.
    """
    left, right = as_value(x), as_value(y)
    target = common_dtype([left.type, right.type])
    left, right = convert(left, target), convert(right, target)

    def front(pair: Pair) -> Pair:
        return (
            tuple(axis_index("dot", d, left.ndim) for d in pair[0]),
            tuple(axis_index("dot", d, right.ndim) for d in pair[1]),
        )

    return make(DOT, (left, right), contract=front(contract), batch=front(batch))


def matmul(x: Any, y: Any) -> Value:
    """NumPy's ``matmul``: 1-d operands are vectors, leading axes broadcast.

    A leading axis that only one side has stays a free axis of that side, so that a stack of
    matrices times one matrix is one large product.

    Raises
    ------
    ShapeError
        For 0-d operands, unequal inner extents, or stacks that do not broadcast.
    """
    left, right = as_value(x), as_value(y)
    both = describe((left.type, right.type))
    if left.ndim == 0 or right.ndim == 0:
        raise at_user_line(
            ShapeError(f"matmul: expected one axis or more on both sides, got {both}; try multiply")
        )
    inner = max(right.ndim - 2, 0)
    if left.shape[-1] != right.shape[inner]:
        raise at_user_line(
            ShapeError(
                f"matmul: expected equal inner extents, got {both}: axis -1 of the first has "
                f"{left.shape[-1]}, axis {inner - right.ndim} of the second {right.shape[inner]}"
            )
        )
    # Every axis gets a number, in the order of the result: stack axes, row, column; inner is -1.
    nx, ny = max(left.ndim - 2, 0), max(right.ndim - 2, 0)
    count = max(nx, ny)
    row, column = [count] * (left.ndim > 1), [count + 1] * (right.ndim > 1)
    left_axes = [*range(count - nx, count), *row, -1]
    right_axes = [*range(count - ny, count), -1, *column]
    paired = [d for d in range(count) if d in left_axes and d in right_axes]
    for d in list(paired):
        extents = left.shape[left_axes.index(d)], right.shape[right_axes.index(d)]
        if extents[0] == extents[1]:
            continue
        if 1 not in extents:
            raise at_user_line(
                ShapeError(f"matmul: expected leading axes that broadcast together, got {both}")
            )
        paired.remove(d)  # a side of extent 1 goes without; the other keeps it as a free axis
        if extents[0] == 1:
            left = squeeze(left, (left_axes.index(d),))
            left_axes.remove(d)
        else:
            right = squeeze(right, (right_axes.index(d),))
            right_axes.remove(d)
    product = dot(
        left,
        right,
        contract=((left_axes.index(-1),), (right_axes.index(-1),)),
        batch=(tuple(map(left_axes.index, paired)), tuple(map(right_axes.index, paired))),
    )
    apart = {-1, *paired}
    order = [*paired, *(d for d in left_axes + right_axes if d not in apart)]
    return transpose(product, [order.index(d) for d in sorted(order)])


def tensordot(x: Any, y: Any, axes: int | tuple[Any, Any] = 2) -> Value:
    """NumPy's ``tensordot``.

    Parameters
    ----------
    x, y : array-like
    axes : int or pair
        The last ``axes`` axes of ``x`` against the first of ``y``, or the axes (int or sequence)
        of each.
    """
    left, right = as_value(x), as_value(y)
    if isinstance(axes, int):
        if not 0 <= axes <= min(left.ndim, right.ndim):
            raise at_user_line(
                ShapeError(
                    f"tensordot: expected 0 to {min(left.ndim, right.ndim)} axes for "
                    f"{describe((left.type, right.type))}, got {axes}"
                )
            )
        pair: Pair = tuple(range(left.ndim - axes, left.ndim)), tuple(range(axes))
    else:
        first, second = ((a,) if isinstance(a, int) else tuple(a) for a in axes)
        pair = first, second
    return dot(left, right, contract=pair)


def vecdot(x: Any, y: Any, axis: int = -1) -> Value:
    """NumPy's ``vecdot``: sum over ``axis`` of ``conj(x) * y``, the other axes broadcast.

    ``axis`` counts from the end: it is looked up in the broadcast shape.
    """
    left, right = as_value(x), as_value(y)
    shape = broadcast_shapes("vecdot", (left.type, right.type))
    d = axis_index("vecdot", axis, len(shape))
    back = d - len(shape)
    if min(left.ndim, right.ndim) < -back or left.shape[back] != right.shape[back]:
        raise at_user_line(
            ShapeError(
                f"vecdot: expected equal extents at axis {axis}, got "
                f"{describe((left.type, right.type))}"
            )
        )
    left, right = broadcast_to(left, shape), broadcast_to(right, shape)
    others = tuple(k for k in range(len(shape)) if k != d)
    left = conj(left) if left.dtype.is_complex else left
    return dot(left, right, contract=((d,), (d,)), batch=(others, others))


def outer(x: Any, y: Any) -> Value:
    """NumPy's ``outer``: all products of the elements of ``x`` (rows) and ``y`` (columns)."""
    left, right = as_value(x), as_value(y)
    return mul(reshape(left, (left.size, 1)), reshape(right, (1, right.size)))
