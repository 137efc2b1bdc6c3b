"""Writing at integer index arrays: scatter, in five ways.

The indices read as in :mod:`.gather`; in mode "fill" an update outside of the axis is dropped.
Several updates of one place apply in index order (C order of the index shape): "set" keeps the
last, "add" and "mul" round after each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import int64
from ..errors import DTypeError, ShapeError
from ..graph import Literal, Node, Value, make
from ..location import at_user_line
from ..types import TensorType, describe
from .comparison import eq, ge, gt, lt, ne
from .elementwise import batch_elementwise
from .fill import filled, zeros_of
from .gather import (
    GATHER,
    check_indices,
    front_axes,
    gather,
    index_arrays,
    positions,
    rest_of,
)
from .leaves import iota
from .logic import logical_and
from .operands import as_value, convert
from .registry import register
from .scaling import scale, unscale
from .selection import maximum, minimum, where
from .shape import Axes, broadcast, broadcast_to, moveaxis, reshape

__all__ = ["HOW", "SCATTER", "scatter"]

HOW = ("set", "add", "mul", "min", "max")


def _scatter_type(
    x: TensorType,
    updates: TensorType,
    *indices: TensorType,
    axes: Axes,
    how: str,
    mode: str,
    checked: bool,
) -> TensorType:
    check_indices("scatter", x, indices, axes, mode)
    if how not in HOW:
        raise ShapeError(f"scatter: expected one of {' '.join(HOW)}, got {how!r}")
    if updates.dtype is not x.dtype:
        raise DTypeError(f"scatter: expected equal dtypes, got {describe((x, updates))}")
    if x.dtype.is_complex and how in ("min", "max"):
        raise DTypeError(f"scatter: complex numbers have no {how}, got {x}")
    shape = indices[0].shape + tuple(x.shape[d] for d in rest_of(x.ndim, axes))
    if updates.shape != shape:
        raise ShapeError(
            f"scatter: expected updates of shape {list(shape)} (index shape, then the axes of {x} "
            f"that are not indexed), got {updates}"
        )
    return TensorType(x.shape, x.dtype)


def _scatter_value(
    x: Any, updates: Any, *indices: Any, axes: Axes, how: str, mode: str, checked: bool
) -> Any:
    found, inside = positions("scatter", x.shape, indices, axes, mode)
    order = (*axes, *rest_of(x.ndim, axes))
    y = np.array(x, order="C")
    view = np.transpose(y, order)
    if inside is not None:
        found, updates = tuple(f[inside] for f in found), updates[inside]
    if how == "set":
        view[found] = updates  # NumPy keeps the last of repeated ones
    elif how == "add":
        np.add.at(view, found, updates)
    elif how == "mul":
        np.multiply.at(view, found, updates)
    else:
        extremum, sign = (np.maximum, 1) if how == "max" else (np.minimum, -1)
        extremum.at(view, found, updates)
        if x.dtype.kind == "f":  # NumPy leaves the sign of a zero open: settle it as max does
            preferred = np.transpose((x == 0) & (np.signbit(x) == (sign < 0)), order).copy()
            np.logical_or.at(preferred, found, (updates == 0) & (np.signbit(updates) == (sign < 0)))
            zero = np.copysign(0.0, np.where(preferred, sign, -sign)).astype(x.dtype)
            view[...] = np.where(view == 0, zero, view)
    return y


# ----------------------------------------------------------------------------------- derivative


def _again(node: Node, x: Value, updates: Value, how: str) -> Value:
    """Another scatter at the same places."""
    params = {**dict(node.params), "how": how}
    return make(SCATTER, (x, updates, *node.inputs[2:]), **params)


def _read(node: Node, x: Value) -> Value:
    """What lies at the places of the updates; zero for dropped ones."""
    params = {name: node.param(name) for name in ("axes", "mode", "checked")}
    fill = Literal.of(0, x.dtype) if params["mode"] == "fill" else None
    return make(GATHER, (x, *node.inputs[2:]), fill_value=fill, **params)


def _scatter_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    x, updates = node.inputs[:2]
    x_dot, updates_dot = tangents[:2]
    if x_dot is None and updates_dot is None:
        return None
    how = node.param("how")
    if how == "mul":
        return _mul_jvp(node, x_dot, updates_dot)
    x_dot = zeros_of(x.type) if x_dot is None else x_dot
    updates_dot = zeros_of(updates.type) if updates_dot is None else updates_dot
    if how in ("set", "add"):
        return _again(node, x_dot, updates_dot, how)
    return _extremum_jvp(node, x_dot, updates_dot)


def _extremum_jvp(node: Node, x_dot: Value, updates_dot: Value) -> Value:
    """Mean of the tangents of all that tie for the extremum, as in the reduction.

    A NaN that an update took part in makes the tangent there NaN; a NaN that was in ``x`` and is
    not touched is not of our making.
    """
    x, updates = node.inputs[:2]
    out, beyond = node.out, lt if node.param("how") == "max" else gt
    there = _read(node, out)
    x_beaten, updates_beaten = beyond(x, out), beyond(updates, there)
    one = where(eq(there, there), filled(updates.shape, 1, x.dtype), np.nan)
    count = _again(
        node,
        where(x_beaten, zeros_of(x.type), filled(x.shape, 1, x.dtype)),
        where(updates_beaten, zeros_of(updates.type), one),
        "add",
    )
    total = _again(
        node,
        where(x_beaten, zeros_of(x.type), x_dot),
        where(updates_beaten, zeros_of(updates.type), updates_dot),
        "add",
    )
    return unscale(total, count)


def _mul_jvp(node: Node, x_dot: Value | None, updates_dot: Value | None) -> Value | None:
    """Each factor's tangent times the product of the other factors of its place."""
    x, updates = node.inputs[:2]
    tangent = None
    if x_dot is not None:
        factors = _again(node, filled(x.shape, 1, x.dtype), updates, "mul")
        tangent = scale(x_dot, factors)
    if updates_dot is None:
        return tangent
    term = scale(updates_dot, _other_factors(node) * _read(node, x))
    return _again(node, zeros_of(x.type) if tangent is None else tangent, term, "add")


def _places(node: Node) -> Value:
    """The place of each update as one number, the same for all that meet; dropped ones apart."""
    x, axes, mode = node.inputs[0], node.param("axes"), node.param("mode")
    place: Value | None = None
    inside: Value | None = None
    for d, index in zip(axes, node.inputs[2:], strict=True):
        n = x.shape[d]
        if mode == "wrap":
            from .integers import remainder

            index = remainder(index, n)
        elif mode == "clip":
            index = minimum(maximum(index, 0), n - 1)
        else:
            here = logical_and(ge(index, -n), lt(index, n))
            inside = here if inside is None else logical_and(inside, here)
            index = where(lt(index, 0), index + n, index)
        place = index if place is None else place * n + index
    assert place is not None  # check_indices wants at least one axis
    return place if inside is None else where(inside, place, -1)


def _other_factors(node: Node) -> Value:
    """For each update the product of the other updates of its place, without division.

    Sorted by place (stably), equal places are neighbours; the products of those before and of
    those behind are linear recurrences that every new place cuts.
    """
    from .cumulative import linear_recurrence
    from .slicing import shift
    from .sorting import argsort

    updates, index = node.inputs[1], node.inputs[2]
    count, rest = index.size, updates.shape[index.ndim :]
    place = reshape(_places(node), (count,))
    order = argsort(place, 0)
    place = gather(place, order, checked=True)
    factors = gather(reshape(updates, (count, *rest)), order, checked=True)

    def products(by: int) -> Value:
        same = logical_and(eq(place, shift(place, 0, by, -2)), ne(place, -1))
        same = broadcast(same, factors.shape, (0,))
        one = filled(factors.shape, 1, factors.dtype)
        zero = zeros_of(factors.type)
        go_on = where(same, shift(factors, 0, by, 1), zero)
        return linear_recurrence(go_on, where(same, zero, one), 0, reverse=by < 0)

    others = gather(products(1) * products(-1), argsort(order, 0), checked=True)
    return reshape(others, updates.shape)


def _last_writers(node: Node) -> Value:
    """Which update stays in "set": scatter the update numbers, read them back, compare."""
    x, index = node.inputs[0], node.inputs[2]
    axes, mode = node.param("axes"), node.param("mode")
    number = reshape(iota((index.size,)), index.shape)
    board = filled(tuple(x.shape[d] for d in axes), 0, int64)
    params = {"axes": tuple(range(len(axes))), "mode": mode, "checked": node.param("checked")}
    board = make(SCATTER, (board, number, *node.inputs[2:]), how="set", **params)
    fill = Literal.of(-1, int64) if mode == "fill" else None
    return eq(make(GATHER, (board, *node.inputs[2:]), fill_value=fill, **params), number)


def _scatter_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> Any:
    """Linear are "set" and "add" in both operands, "mul" in the array; nothing else."""
    updates, index, how = node.inputs[1], node.inputs[2], node.param("how")
    if how in ("min", "max") or (how == "mul" and linear[1]):
        return (None,) * len(node.inputs)  # not linear in these
    x_bar = updates_bar = None
    if linear[0] and how == "add":
        x_bar = cotangent
    elif linear[0] and how in ("set", "mul"):  # written over, or multiplied by the same factors
        by = zeros_of(updates.type) if how == "set" else updates
        x_bar = _again(node, cotangent, by, how)
    if linear[1] and how in ("set", "add"):
        updates_bar = _read(node, cotangent)
        if how == "set" and index.size != 1:
            wins = broadcast(_last_writers(node), updates.shape, tuple(range(index.ndim)))
            updates_bar = where(wins, updates_bar, zeros_of(updates.type))
    return x_bar, updates_bar, *(None for _ in node.inputs[2:])


def _scatter_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    (x, updates, *aligned), _ = batch_elementwise(node, operands, axes)
    params = dict(node.params)
    behind = tuple(d + 1 for d in params["axes"])
    if all(a is None for a in axes[2:]):
        params["axes"] = behind
        updates = moveaxis(updates, 0, operands[2].ndim)
        return make(SCATTER, (x, updates, *operands[2:]), **params), 0
    params["axes"] = (0, *behind)
    return make(SCATTER, (x, updates, iota(aligned[0].shape, 0), *aligned), **params), 0


def _scatter_samples(rng: Any, dtype: Any) -> Any:
    x = rng.standard_normal((4, 3, 2)).astype(dtype)
    i, j = rng.integers(-4, 4, (2, 5)), rng.integers(-3, 3, (2, 5))
    u = rng.standard_normal((2, 5, 3, 2)).astype(dtype)
    for how in ("set", "add", "mul"):
        yield (x, u, i), {"axes": (0,), "how": how, "mode": "raise", "checked": False}
        more = {"axes": (1, 0), "how": how, "mode": "fill", "checked": False}
        yield (x, u[:, :, 0, :], j, 2 * i), more
    if np.dtype(dtype).kind != "c":
        for how in ("min", "max"):
            yield (x, u, 2 * i), {"axes": (0,), "how": how, "mode": "clip", "checked": False}


SCATTER = register(
    "scatter",
    "index",
    infer=_scatter_type,
    reference=_scatter_value,
    jvp=_scatter_jvp,
    transpose=_scatter_transpose,
    batch=_scatter_batch,
    doc="The operand with updates written (set) or merged (add, mul, min, max) at index arrays, in "
    "index order: the last set wins, and alone gets a cotangent. Indices outside as in gather; "
    "mode 'fill' drops them. min and max ties share the derivative equally.",
    samples=_scatter_samples,
)


def scatter(
    x: Any,
    updates: Any,
    *indices: Any,
    axes: Sequence[int] | None = None,
    how: str = "set",
    mode: str = "raise",
    checked: bool = False,
) -> Value:
    """A copy of ``x`` with updates at index arrays.

    Parameters
    ----------
    x : array-like
    updates : array-like
        Broadcast to the index shape followed by the axes of ``x`` that are not indexed; converted
        to the dtype of ``x`` within the same kind (float64 to float32, int64 to float64, ...).
    indices, axes, mode, checked
        As in :func:`~tilegrad.ir.ops.gather.gather`; mode "fill" drops updates out of range.
    how : {"set", "add", "mul", "min", "max"}

    Raises
    ------
    DTypeError
        For updates of a higher kind than ``x`` (float into integer, complex into float).
    IndexError
        In mode "raise", when evaluated, with axis, index and extent.
    """
    value, change = as_value(x), as_value(updates)
    listed = index_arrays("scatter", indices)
    front = front_axes("scatter", axes, len(listed), value.ndim)
    if not np.can_cast(change.dtype.numpy, value.dtype.numpy, "same_kind") and not (
        change.type.weak and change.dtype.is_integer and value.dtype.is_integer
    ):
        raise at_user_line(
            DTypeError(
                f"scatter: expected updates that {value.dtype} can take, got "
                f"{describe((value.type, change.type))}; convert one with astype"
            )
        )
    rest = tuple(value.shape[d] for d in rest_of(value.ndim, front))
    shape = (listed[0].shape if listed else ()) + rest
    offset = len(shape) - change.ndim
    if offset < 0 or any(n not in (1, shape[offset + d]) for d, n in enumerate(change.shape)):
        raise at_user_line(
            ShapeError(
                f"scatter: expected updates that broadcast to {list(shape)} (index shape, then the "
                f"axes of {value.type} that are not indexed), got {change.type}"
            )
        )
    operands = (convert(value, value.dtype), broadcast_to(convert(change, value.dtype), shape))
    params = {"axes": front, "how": how, "mode": mode, "checked": bool(checked)}
    return make(SCATTER, (*operands, *listed), **params)
