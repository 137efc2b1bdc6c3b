"""Reading at integer index arrays: gather.

Index arrays are int64, of one common shape, one for each indexed axis. The result has the index
shape first, then the axes that are not indexed, in their order. The modes say what an index
outside of the axis means:

========  ==================================================================================
"raise"   ``-n <= i < n`` counts from the end where negative; everything else is an IndexError
"clip"    cut to ``[0, n - 1]`` (NumPy's ``take(mode="clip")``: negative ones become 0)
"wrap"    ``i mod n``
"fill"    as "raise", but an index outside reads ``fill_value``
========  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ..dtypes import DType, as_dtype, int64, uint64
from ..errors import DTypeError, ShapeError, TracerError
from ..graph import Literal, Node, Value, make
from ..location import at_user_line
from ..types import TensorType, describe
from .comparison import gt
from .elementwise import batch_elementwise
from .fill import scalar_of, zeros_of
from .leaves import CONSTANT, iota
from .operands import as_value, broadcast_shapes, convert
from .registry import register
from .selection import where
from .shape import Axes, axis_index, broadcast_to, moveaxis

__all__ = [
    "GATHER",
    "MODES",
    "as_index",
    "check_indices",
    "gather",
    "index_arrays",
    "positions",
    "take_along_axis",
]

MODES = ("raise", "clip", "wrap", "fill")


# ------------------------------------------------------------------- shared with scatter.py


def check_indices(
    name: str, x: TensorType, indices: Sequence[TensorType], axes: Axes, mode: str
) -> None:
    """The part of the type rule that gather and scatter share."""
    if mode not in MODES:
        raise ShapeError(f"{name}: expected a mode of {' '.join(MODES)}, got {mode!r}")
    if not indices or len(indices) != len(axes):
        raise ShapeError(
            f"{name}: expected one index array an axis, got {len(indices)} for axes {list(axes)}"
        )
    for d in axes:
        if not 0 <= d < x.ndim:
            raise IndexError(f"{name}: expected axes in [0, {x.ndim}) for {x}, got {d}")
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{name}: expected each axis once, got {list(axes)}")
    for t in indices:
        if t.dtype is not int64:
            raise DTypeError(f"{name}: expected int64 indices, got {t}; convert with astype")
        if t.shape != indices[0].shape:
            raise ShapeError(
                f"{name}: expected index arrays of one shape, got {describe(tuple(indices))}"
            )
    if indices[0].size and mode in ("clip", "wrap"):
        for d in axes:
            if x.shape[d] == 0:
                raise IndexError(f"{name}: axis {d} of {x} is empty: there is nothing to index")


def positions(
    name: str, shape: tuple[int, ...], indices: Sequence[Any], axes: Axes, mode: str
) -> tuple[tuple[Any, ...], Any]:
    """Index arrays in ``[0, n)`` and, for "fill", the mask of what lies inside (else None)."""
    found, inside = [], None
    for d, index in zip(axes, indices, strict=True):
        n = shape[d]
        if mode == "clip":
            found.append(np.clip(index, 0, max(n - 1, 0)))
        elif mode == "wrap":
            found.append(index % max(n, 1))
        else:
            here = (-n <= index) & (index < n)
            if mode == "raise" and not np.all(here):
                wrong = index[~here].reshape(-1)[0]
                raise IndexError(
                    f"{name}: index {wrong} is out of bounds for axis {d} with size {n}; "
                    f"mode='clip', 'wrap' or 'fill' gives it a meaning"
                )
            found.append(np.where(here, np.where(index < 0, index + n, index), 0))
            if mode == "fill":
                inside = here if inside is None else inside & here
    return tuple(found), inside


def as_index(name: str, x: Any) -> Value:
    """An integer array as int64.

    uint64 beyond int64 stays out of range of every axis instead of turning negative.
    """
    value = as_value(x)
    if not value.dtype.is_integer:
        hint = "select with a mask by where or nonzero" if value.dtype.is_bool else "use astype"
        raise at_user_line(
            DTypeError(f"{name}: expected integer indices, got {value.type}; {hint}")
        )
    if value.dtype is uint64:
        largest = np.uint64(np.iinfo(np.int64).max)
        value = where(gt(value, largest), largest, value)
    return convert(value, int64)


def index_arrays(name: str, indices: Sequence[Any]) -> list[Value]:
    """Indices as int64 arrays of one shape."""
    values = [as_index(name, i) for i in indices]
    try:
        shape = broadcast_shapes(name, [v.type for v in values]) if values else ()
    except ShapeError as error:
        raise at_user_line(error) from None
    return [broadcast_to(v, shape) for v in values]


def front_axes(name: str, axes: Sequence[int] | None, count: int, ndim: int) -> Axes:
    """Axes counted from the front; by default the first ``count`` ones."""
    return tuple(axis_index(name, d, ndim) for d in (range(count) if axes is None else axes))


def rest_of(ndim: int, axes: Axes) -> list[int]:
    return [d for d in range(ndim) if d not in axes]


# -------------------------------------------------------------------------------------- gather


def _gather_type(
    x: TensorType,
    *indices: TensorType,
    axes: Axes,
    mode: str,
    fill_value: Literal | None,
    checked: bool,
) -> TensorType:
    check_indices("gather", x, indices, axes, mode)
    fits = fill_value is not None and fill_value.shape == () and fill_value.dtype is x.dtype
    if fits != (mode == "fill"):
        raise DTypeError(f"gather: expected a scalar fill_value of {x.dtype} in mode 'fill' only")
    rest = tuple(x.shape[d] for d in rest_of(x.ndim, axes))
    return TensorType(indices[0].shape + rest, x.dtype, x.weak)


def _gather_value(
    x: Any, *indices: Any, axes: Axes, mode: str, fill_value: Literal | None, checked: bool
) -> Any:
    found, inside = positions("gather", x.shape, indices, axes, mode)
    rest = rest_of(x.ndim, axes)
    if inside is None:
        return np.transpose(x, (*axes, *rest))[found]
    shape = (*indices[0].shape, *(x.shape[d] for d in rest))
    inside = inside.reshape(inside.shape + (1,) * len(rest))
    fill = fill_value.item() if fill_value is not None else 0
    if any(x.shape[d] == 0 for d in axes):
        return np.full(shape, fill, x.dtype)
    read = np.transpose(x, (*axes, *rest))[found]
    return np.where(inside, read, np.asarray(fill, x.dtype))


def _gather_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    return None if tangents[0] is None else _like(node, tangents[0])


def _like(node: Node, x: Value) -> Value:
    """The same reading of another array, zero where the index is outside."""
    params = dict(node.params)
    if params["mode"] == "fill":
        params["fill_value"] = Literal.of(0, x.dtype)
    return make(GATHER, (x, *node.inputs[1:]), **params)


def _gather_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> Any:
    from .scatter import SCATTER  # gather and scatter transpose to each other

    params = {name: node.param(name) for name in ("axes", "mode", "checked")}
    zeros = zeros_of(node.inputs[0].type)
    x_bar = make(SCATTER, (zeros, cotangent, *node.inputs[1:]), how="add", **params)
    return x_bar, *(None for _ in node.inputs[1:])


def _gather_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    x, *indices = operands
    params = dict(node.params)
    if all(a is None for a in axes[1:]):
        moved = moveaxis(x, axes[0], 0)  # type: ignore[arg-type]
        params["axes"] = tuple(d + 1 for d in params["axes"])
        return make(GATHER, (moved, *indices), **params), indices[0].ndim
    aligned, _ = batch_elementwise(node, indices, axes[1:])
    if axes[0] is None:
        return make(GATHER, (x, *aligned), **params), 0
    params["axes"] = (0, *(d + 1 for d in params["axes"]))
    example = iota(aligned[0].shape, 0)
    return make(GATHER, (moveaxis(x, axes[0], 0), example, *aligned), **params), 0


def _gather_samples(rng: Any, dtype: Any) -> Any:
    x = rng.standard_normal((4, 3, 2)).astype(dtype)
    i, j = rng.integers(-4, 4, (2, 5)), rng.integers(-3, 3, (2, 5))
    common = {"fill_value": None, "checked": False}
    yield (x, i), {"axes": (0,), "mode": "raise", **common}
    yield (x, j, i), {"axes": (1, 0), "mode": "raise", **common}
    yield (x, 3 * i), {"axes": (0,), "mode": "clip", **common}
    yield (x, 3 * j), {"axes": (1,), "mode": "wrap", **common}
    filled = {"fill_value": Literal.of(2, as_dtype(dtype)), "checked": False}
    yield (x, 2 * i, j), {"axes": (0, 2), "mode": "fill", **filled}


GATHER = register(
    "gather",
    "index",
    infer=_gather_type,
    reference=_gather_value,
    jvp=_gather_jvp,
    transpose=_gather_transpose,
    batch=_gather_batch,
    doc="Elements at index arrays on the given axes; result shape = index shape + other axes. An "
    "index outside is an IndexError, or what mode says (numerics 9). ``checked``: every index is "
    "known to lie in [-n, n), no test is needed.",
    samples=_gather_samples,
)


def gather(
    x: Any,
    *indices: Any,
    axes: Sequence[int] | None = None,
    mode: str = "raise",
    fill_value: Any = None,
    checked: bool = False,
) -> Value:
    """``x`` read at index arrays.

    Parameters
    ----------
    x : array-like
    indices : integer array-like
        One an indexed axis; they broadcast together.
    axes : sequence of int, optional
        The axis of each index array; the leading axes by default.
    mode : {"raise", "clip", "wrap", "fill"}
        What an index out of range means; negative ones count from the end in "raise" and "fill".
    fill_value : scalar, optional
        For "fill". Default: NaN for floating and complex, the smallest for signed, the largest for
        unsigned integers, True for bool (as JAX).
    checked : bool
        Promise that every index lies in ``[-n, n)``.

    Returns
    -------
    Value
        Shape: index shape, then the axes of ``x`` that are not indexed.

    Raises
    ------
    IndexError
        In mode "raise", when evaluated, with axis, index and extent.
    """
    value = as_value(x)
    listed = index_arrays("gather", indices)
    fill = None
    if mode == "fill":
        chosen = _default_fill(value.dtype) if fill_value is None else fill_value
        fill = _literal(scalar_of("gather", chosen, value.type))
    where_ = front_axes("gather", axes, len(listed), value.ndim)
    return make(
        GATHER, (value, *listed), axes=where_, mode=mode, fill_value=fill, checked=bool(checked)
    )


def _literal(x: Value) -> Literal:
    if x.node.op is not CONSTANT:
        raise at_user_line(TracerError("gather: expected a known fill_value; use where to select"))
    return cast(Literal, x.node.param("literal"))


def _default_fill(dtype: DType) -> Any:
    if dtype.is_inexact:
        return np.nan
    if dtype.is_bool:
        return True
    info = np.iinfo(dtype.numpy)
    return info.min if dtype.is_signed else info.max


def take_along_axis(
    x: Any, indices: Any, axis: int, mode: str = "raise", checked: bool = False
) -> Value:
    """NumPy's ``take_along_axis`` for operands of equal rank; other axes broadcast."""
    value, index = as_value(x), as_index("take_along_axis", indices)
    d = axis_index("take_along_axis", axis, value.ndim)
    if index.ndim != value.ndim:
        raise at_user_line(
            ShapeError(
                f"take_along_axis: expected indices of {value.ndim} axes, got "
                f"{describe((value.type, index.type))}"
            )
        )
    # Extents but the one along the axis follow NumPy's broadcasting.
    apart = [
        TensorType((*t.shape[:d], 1, *t.shape[d + 1 :]), t.dtype) for t in (value.type, index.type)
    ]
    shape = list(broadcast_shapes("take_along_axis", apart))
    data = broadcast_to(value, (*shape[:d], value.shape[d], *shape[d + 1 :]))
    shape[d] = index.shape[d]
    index = broadcast_to(index, shape)
    every = [index if k == d else iota(tuple(shape), k) for k in range(value.ndim)]
    return gather(data, *every, mode=mode, checked=checked)
