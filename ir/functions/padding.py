"""Padding: what lies beyond the border of an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from ..graph import Value
from ..ops.leaves import constant
from ..ops.operands import as_value, convert
from ..ops.slicing import pad as pad_constant
from ..ops.slicing import slice_axis
from .arguments import fail, static_array, static_int
from .indexing import take
from .joining import concatenate

__all__ = ["pad"]

_BY_INDEX = ("edge", "reflect", "symmetric", "wrap")


def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Value:
    """``array`` with ``pad_width`` elements added before and after each axis.

    Parameters
    ----------
    array : array-like
    pad_width : int, (before, after), one pair an axis, or a dict {axis: width}
    mode : {"constant", "edge", "reflect", "symmetric", "wrap", "empty", "maximum", "minimum", \
"mean"}
        As in NumPy. Derivatives follow the copies: each source element sums over them.
    constant_values : scalar, pair or one pair an axis
        For ``mode="constant"``; zero by default. May be traced.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.pad(tg.asarray([1, 2, 3]), (2, 1), mode="reflect")
    Array([3, 2, 1, 2, 3, 2], dtype=int64)
    """
    value = as_value(array)
    widths = _pairs("pad_width", _by_axis(pad_width, value.ndim), value.ndim)
    if widths.dtype.kind not in "iu":
        fail(TypeError(f"pad: expected integers for pad_width, got {widths.dtype}"))
    if (widths < 0).any():
        fail(ShapeError("pad: expected a non-negative pad_width"))
    allowed = {"constant": {"constant_values"}, "reflect": {"reflect_type"}}
    allowed["symmetric"] = allowed["reflect"]
    allowed["maximum"] = allowed["minimum"] = allowed["mean"] = {"stat_length"}
    if mode not in (*_BY_INDEX, "constant", "empty", "maximum", "minimum", "mean"):
        fail(ValueError(f"pad: mode {mode!r} is not one of constant edge reflect symmetric wrap"))
    extra = set(kwargs) - allowed.get(mode, set())
    if extra:
        fail(ValueError(f"pad: unsupported keyword arguments for mode {mode!r}: {sorted(extra)}"))
    if kwargs.get("reflect_type", "even") != "even":
        fail(ValueError("pad: expected reflect_type='even'; 'odd' is not supported"))
    if mode in ("constant", "empty"):
        return _constant(value, widths, kwargs.get("constant_values", 0))
    for axis in range(value.ndim):
        before, after = (int(n) for n in widths[axis])
        if not (before or after):
            continue
        if mode in _BY_INDEX:
            value = _by_index(value, axis, before, after, mode)
        else:
            value = _statistic(value, axis, before, after, mode, kwargs.get("stat_length"))
    return value


def _by_axis(widths: Any, ndim: int) -> Any:
    """A dict of widths as a list of pairs."""
    if not isinstance(widths, dict):
        return widths
    pairs = [(0, 0)] * ndim
    for axis, width in widths.items():
        if not -ndim <= axis < ndim:
            fail(IndexError(f"pad: expected an axis in [{-ndim}, {ndim}), got {axis}"))
        pairs[axis] = (width, width) if np.ndim(width) == 0 else tuple(width)
    return pairs


def _pairs(what: str, x: Any, ndim: int) -> np.ndarray[Any, Any]:
    data = static_array("pad", what, x)
    try:
        return np.broadcast_to(data, (ndim, 2))
    except ValueError:
        fail(
            ShapeError(
                f"pad: expected {what} as an integer, a pair or {ndim} pairs, got shape "
                f"{list(data.shape)}"
            )
        )


def _constant(x: Value, widths: np.ndarray[Any, Any], fill: Any) -> Value:
    if (type(fill) is Value and fill.ndim == 0) or np.ndim(_data(fill)) == 0:
        filler = convert(as_value(fill), x.dtype)
        return pad_constant(x, filler, widths[:, 0].tolist(), widths[:, 1].tolist())
    fills = _pairs("constant_values", fill, x.ndim)
    for axis in range(x.ndim):
        for side in (0, 1):
            low, high = [0] * x.ndim, [0] * x.ndim
            (high if side else low)[axis] = int(widths[axis, side])
            filler = constant(fills[axis, side], x.dtype)
            x = pad_constant(x, filler, low, high)
    return x


def _data(x: Any) -> Any:
    return static_array("pad", "constant_values", x) if type(x) is Value else x


def _by_index(x: Value, axis: int, before: int, after: int, mode: str) -> Value:
    """Borders are copies of elements: their places come from NumPy's own padding of 0, 1, ..."""
    extent = x.shape[axis]
    if extent == 0:
        fail(ShapeError(f"pad: expected elements to copy along axis {axis}, got {x.type}"))
    places: Any = np.pad(np.arange(extent), (before, after), mode=mode)  # type: ignore[call-overload]
    parts = [
        take(x, constant(places[:before]), axis),
        x,
        take(x, constant(places[before + extent :]), axis),
    ]
    return concatenate([p for p in parts if p.shape[axis] or p is x], axis)


def _statistic(x: Value, axis: int, before: int, after: int, mode: str, length: Any) -> Value:
    from ..ops import rint
    from ..ops.shape import broadcast_to
    from . import reductions

    reduce: Any = getattr(reductions, {"maximum": "amax", "minimum": "amin"}.get(mode, mode))
    extent = x.shape[axis]
    count = extent if length is None else min(extent, static_int("pad", "stat_length", length))
    parts = [x]
    for side, width in ((0, before), (1, after)):
        start = 0 if side == 0 else extent - count
        border = reduce(slice_axis(x, axis, start, start + count), axis=axis, keepdims=True)
        if x.dtype.is_integer and mode == "mean":
            border = rint(border)
        shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
        parts.insert(0 if side == 0 else 2, broadcast_to(convert(border, x.dtype), shape))
    return concatenate(parts, axis)
