"""Where something is: nonzero, where, select, searchsorted, digitize."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dtypes import bool_, int64
from ..errors import ShapeError
from ..graph import Value
from ..ops import cumsum, floor_divide, ge, logical_not, logical_or, lt, remainder
from ..ops import searchsorted as _searchsorted
from ..ops import where as _where
from ..ops.leaves import constant, iota
from ..ops.operands import as_value, convert, operands
from ..ops.shape import broadcast_to, reshape
from ..ops.slicing import flip
from .arguments import fail, promoted, shape_of, static_int
from .concrete import concrete, known
from .indexing import take

__all__ = [
    "argwhere",
    "choose",
    "compress",
    "digitize",
    "extract",
    "flatnonzero",
    "nonzero",
    "piecewise",
    "ravel_multi_index",
    "searchsorted",
    "select",
    "unravel_index",
    "where",
]

_FIXED = "a (under jit give size=, the number of places to return)"


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """``x`` where ``condition``, else ``y``; the places of true elements without ``x`` and ``y``.

    The side that is not chosen reaches neither the value nor any derivative.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.grad(lambda x: tg.where(x > 0, tg.sqrt(x), 0.0))(0.0)
    Array(0., dtype=float64)
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        fail(ValueError("where: expected both x and y, or neither"))
    return _where(convert(as_value(condition), bool_), x, y)


def nonzero(a: Any, *, size: Any = None, fill_value: Any = 0) -> tuple[Value, ...]:
    """Indices of the elements that are not zero, one int64 array an axis, in C order.

    ``a`` must be known. Under ``jit`` give ``size``: the first ``size`` places are returned, and
    ``fill_value`` where there are fewer.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.jit(lambda x: tg.nonzero(x, size=3, fill_value=-1)[0])(tg.asarray([0.0, 5.0, 7.0]))
    Array([ 1,  2, -1], dtype=int64)
    """
    x = as_value(a)
    if x.ndim == 0:
        fail(ShapeError("nonzero: expected an array with an axis, got a scalar; use atleast_1d"))
    if size is None:
        places = concrete("nonzero", _FIXED, x).nonzero()
        return tuple(constant(p, int64) for p in places)
    count = static_int("nonzero", "size", size)
    # place k of the result is the first one where k + 1 true elements have been seen
    seen = cumsum(convert(reshape(convert(x, bool_), (x.size,)), int64), 0)
    flat = _searchsorted(seen, iota((count,)) + 1)
    if x.size == 0:
        return tuple(broadcast_to(constant(fill_value, int64), (count,)) for _ in x.shape)
    missing = ge(flat, x.size)
    return tuple(
        _where(missing, fill_value, axis_index)
        for axis_index in unravel_index(_where(missing, 0, flat), x.shape)
    )


def flatnonzero(a: Any, *, size: Any = None, fill_value: Any = 0) -> Value:
    """Indices of the elements of the flattened ``a`` that are not zero."""
    x = as_value(a)
    return nonzero(reshape(x, (x.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: Any = None, fill_value: Any = 0) -> Value:
    """Indices of the elements that are not zero, one row each."""
    from .joining import stack

    x = as_value(a)
    if x.ndim == 0:
        return constant(np.argwhere(concrete("argwhere", _FIXED, x)), int64)
    return stack(nonzero(x, size=size, fill_value=fill_value), 1)


def compress(condition: Any, a: Any, axis: Any = None) -> Value:
    """Slices of ``a`` along ``axis`` where ``condition`` (a known vector) is true."""
    mask = as_value(condition)
    if mask.ndim != 1:
        fail(ShapeError(f"compress: expected a vector of conditions, got {mask.type}"))
    places = concrete("compress", "condition", mask).nonzero()[0]
    return take(a, constant(places, int64), axis)


def extract(condition: Any, arr: Any) -> Value:
    """Elements of ``arr`` where ``condition`` (known) is true, as a vector."""
    mask = as_value(condition)
    return compress(reshape(mask, (mask.size,)), arr)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Value:
    """From each position the choice of the first condition that holds, else ``default``.

    With one array of conditions in place of a list this is JAX's ``select(pred, x, y)``: ``x``
    where ``pred`` holds, else ``y``, of one shape.
    """
    if not isinstance(condlist, list | tuple):
        x, y = promoted(choicelist, default)
        if x.shape != y.shape:
            fail(ShapeError(f"select: expected x and y of one shape, got {x.type} and {y.type}"))
        return _where(condlist, x, y)
    if len(condlist) != len(choicelist) or not condlist:
        fail(
            ValueError(
                f"select: expected as many conditions as choices, got {len(condlist)} and "
                f"{len(choicelist)}"
            )
        )
    conditions = [as_value(c) for c in condlist]
    for condition in conditions:
        if not condition.dtype.is_bool:
            fail(TypeError(f"select: expected bool conditions, got {condition.type}"))
    *choices, result = promoted(*choicelist, default)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = _where(condition, choice, result)
    return result


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Value:
    """For each element the value of the last function whose condition holds.

    Parameters
    ----------
    x : array-like
    condlist : sequence of bool array-like
    funclist : sequence of callables or scalars
        One a condition, or one more: the default (0 otherwise). Callables get the whole ``x``.
    args, kw
        Passed on to the functions.

    Notes
    -----
    The result has the element type of ``x`` (NumPy). Other than NumPy the functions see all of
    ``x``; what they give where they are not chosen is left out, derivatives included.

    Examples
    --------
    >>> import tilegrad as tg
    >>> x = tg.asarray([-2.0, 3.0])
    >>> tg.piecewise(x, [x < 0], [lambda v: -v, lambda v: v * v])
    Array([2., 9.], dtype=float64)
    """
    value = as_value(x)
    conditions = as_value(condlist) if type(condlist) is Value else condlist
    if type(conditions) is Value or not isinstance(conditions, (list, tuple)):
        conditions = [as_value(conditions)]
    elif (
        conditions
        and not isinstance(conditions[0], (list, tuple))
        and not np.ndim(conditions[0].type.shape if type(conditions[0]) is Value else conditions[0])
    ):
        conditions = [as_value(conditions)] if value.ndim else [as_value(c) for c in conditions]
    conditions = [convert(as_value(c), bool_) for c in conditions]
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        covered = conditions[0]
        for condition in conditions[1:]:
            covered = logical_or(covered, condition)
        conditions = [logical_not(covered), *conditions]
        functions = [functions[-1], *functions[:-1]]
    elif len(functions) != len(conditions):
        fail(
            ValueError(
                f"piecewise: expected {len(conditions)} or {len(conditions) + 1} functions, got "
                f"{len(functions)}"
            )
        )
    result = broadcast_to(constant(0, value.dtype), value.shape)
    for condition, function in zip(conditions, functions, strict=True):
        piece = function(value, *args, **kw) if callable(function) else function
        result = _where(condition, convert(as_value(piece), value.dtype), result)
    return result


def choose(a: Any, choices: Any, mode: str = "raise") -> Value:
    """Element ``choices[a[i]][i]`` at each place."""
    from .indexing import take_along_axis
    from .joining import stack

    options = promoted(*(choices if isinstance(choices, (list, tuple)) else _rows(choices)))
    place = as_value(a)
    shape = np.broadcast_shapes(place.shape, *(v.shape for v in options))
    table = stack([broadcast_to(v, shape) for v in options])
    at = reshape(broadcast_to(place, shape), (1, *shape))
    if mode == "raise":  # negative indices are out of range here
        at = _where(lt(at, 0), len(options), at)
    return reshape(take_along_axis(table, at, 0, mode=mode), shape)


def _rows(x: Any) -> tuple[Value, ...]:
    from .joining import unstack

    return unstack(x)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Value:
    """Where the elements of ``v`` go into the ascending vector ``a`` (before or after equal ones).

    ``sorter`` are indices that sort ``a``. NaN is the largest.
    """
    if side not in ("left", "right"):
        fail(ValueError(f"searchsorted: expected side 'left' or 'right', got {side!r}"))
    ordered = as_value(a)
    if ordered.ndim != 1:
        fail(ShapeError(f"searchsorted: expected a vector to search, got {ordered.type}"))
    if sorter is not None:
        ordered = take(ordered, sorter, 0)
    ordered, at = promoted(ordered, v)
    return _searchsorted(ordered, at, side)


def digitize(x: Any, bins: Any, right: bool = False) -> Value:
    """The bin of each element: ``i`` such that ``bins[i - 1] <= x < bins[i]``.

    Parameters
    ----------
    x, bins : array-like
        ``bins`` is a monotonic vector; decreasing ones reverse the comparisons.
    right : bool
        Bins hold their right edge instead of their left one.
    """
    edges = as_value(bins)
    if edges.ndim != 1:
        fail(ShapeError(f"digitize: expected a vector of bins, got {edges.type}"))
    data = known(edges)
    if data is None:
        fail(TypeError("digitize: expected known bins; use searchsorted for traced ones"))
    steps = np.diff(data)
    falling = bool((steps <= 0).all() and (steps < 0).any())
    if not falling and not (steps >= 0).all():
        fail(ValueError("digitize: expected bins that increase or decrease"))
    if falling:
        side = "right" if right else "left"
        return len(data) - searchsorted(flip(edges), x, side="left" if side == "right" else "right")
    return searchsorted(edges, x, side="left" if right else "right")


def unravel_index(indices: Any, shape: Any) -> tuple[Value, ...]:
    """Flat C-order positions as one index array an axis; they must be in range."""
    extents = shape_of("unravel_index", shape)
    rest = convert(as_value(indices), int64)
    data, size = known(rest), math.prod(extents)
    if data is not None and data.size and not (data.min() >= 0 and data.max() < size):
        wrong = data.max() if data.max() >= size else data.min()
        fail(
            IndexError(f"unravel_index: index {wrong} is out of bounds for an array of size {size}")
        )
    result = []
    for extent in reversed(extents):
        result.append(remainder(rest, extent) if extent else rest)
        rest = floor_divide(rest, extent) if extent else rest
    return tuple(reversed(result))


def ravel_multi_index(multi_index: Any, dims: Any) -> Value:
    """One index array an axis as flat C-order positions; they must be in range."""
    extents = shape_of("ravel_multi_index", dims)
    parts = multi_index if isinstance(multi_index, (list, tuple)) else _rows(multi_index)
    if len(parts) != len(extents):
        fail(
            ShapeError(f"ravel_multi_index: expected {len(extents)} index arrays, got {len(parts)}")
        )
    total: Value | None = None
    for axis, (part, extent) in enumerate(zip(operands("ravel", *parts), extents, strict=True)):
        place = convert(part, int64)
        data = known(place)
        if data is not None and data.size and not (data.min() >= 0 and data.max() < extent):
            fail(
                IndexError(
                    f"ravel_multi_index: expected indices in [0, {extent}) for axis {axis}, got "
                    f"{data.min()} to {data.max()}"
                )
            )
        total = place if total is None else total * extent + place
    return total if total is not None else constant(0, int64)
