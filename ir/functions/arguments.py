"""What composite functions do to their arguments: axes, static integers, shapes, element types."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..dtypes import DType, as_dtype
from ..errors import DTypeError, ShapeError
from ..graph import Value
from ..location import at_user_line
from ..ops.operands import as_value, common_dtype, convert, inexact_operands
from ..ops.shape import axis_index, reshape
from ..types import Shape
from .concrete import concrete

__all__ = [
    "accumulated",
    "as_inexact",
    "as_line",
    "axes_of",
    "axis_or_none",
    "fail",
    "keep_axes",
    "one_axis",
    "promoted",
    "result_dtype",
    "shape_of",
    "static_array",
    "static_float",
    "static_int",
    "static_ints",
]


def fail(error: Exception) -> NoReturn:
    """Raise ``error`` with the user's line added to its message."""
    raise at_user_line(error)


def accumulated(
    name: str, values: Sequence[Value], dtype: Any, compute: Callable[..., Value]
) -> Value:
    """``compute(*values)`` carried in ``dtype`` and rounded once, to the dtype that it has without.

    Parameters
    ----------
    name : str
        Of the function, for messages.
    values : sequence of Value
    dtype : dtype or None
        Must hold every value of the common type, so that only sums and products gain by it; None
        leaves the accumulator to the function.
    compute : callable
        Sums of (products of) its operands.

    Raises
    ------
    DTypeError
        For an accumulator that does not hold the operands.
    """
    if dtype is None:
        return compute(*values)
    target, common = as_dtype(dtype), common_dtype([x.type for x in values])
    if not np.can_cast(common.numpy, target.numpy, "safe"):
        fail(
            DTypeError(
                f"{name}: expected an accumulator that holds every {common.name}, got "
                f"{target.name}; convert the operands with astype"
            )
        )
    result = compute(*(convert(x, target) for x in values))
    return convert(result, compute(*values).dtype)


def static_array(name: str, what: str, x: Any) -> np.ndarray[Any, Any]:
    """``x`` as NumPy data; an array that is known (not traced) will do."""
    if type(x) is Value:
        return concrete(name, what, x)
    if isinstance(x, (list, tuple)):
        x = [concrete(name, what, item) if type(item) is Value else item for item in x]
    return np.asarray(x)


def static_int(name: str, what: str, x: Any) -> int:
    """``x`` as a Python integer."""
    if type(x) is Value:
        x = concrete(name, what, x)
    try:
        return operator.index(x)
    except TypeError:
        fail(TypeError(f"{name}: expected an integer for {what}, got {x!r}"))


def static_ints(name: str, what: str, x: Any) -> tuple[int, ...]:
    """``x``, an integer or a sequence of them, as a tuple."""
    if type(x) is int:
        return (x,)
    if type(x) is Value or isinstance(x, np.ndarray):
        data = static_array(name, what, x)
        if data.size and data.dtype.kind not in "iu":
            fail(TypeError(f"{name}: expected integers for {what}, got {data.dtype}"))
        return tuple(int(n) for n in data.reshape(-1))
    if isinstance(x, Iterable):
        return tuple(static_int(name, what, n) for n in x)
    return (static_int(name, what, x),)


def static_float(name: str, what: str, x: Any) -> float:
    """``x`` as a Python float."""
    return float(static_array(name, what, x))


def shape_of(name: str, shape: Any) -> Shape:
    """``shape``, an extent or a sequence of extents, as a tuple of non-negative integers."""
    result = static_ints(name, "the shape", shape)
    if any(n < 0 for n in result):
        fail(ShapeError(f"{name}: expected non-negative extents, got {list(result)}"))
    return result


def one_axis(name: str, axis: Any, ndim: int) -> int:
    """``axis`` counted from the front."""
    return axis_index(name, static_int(name, "axis", axis), ndim)


def axis_or_none(name: str, axis: Any, ndim: int) -> int | None:
    """``axis`` counted from the front; None for all elements: also for 0 and -1 of a 0-d operand.

    NumPy's ``argmax`` and the reductions of its ufuncs take those (``np.sum(3.0, axis=-1)``), its
    ``mean``, ``median`` and their like refuse them.
    """
    if axis is None:
        return None
    place = axis_index(name, static_int(name, "axis", axis), ndim or 1)
    return place if ndim else None


def axes_of(name: str, axis: Any, ndim: int, *, scalar: bool = False) -> tuple[int, ...]:
    """``axis`` (None: all, an integer or a tuple) counted from the front, in increasing order.

    With ``scalar`` 0 and -1 name no axis of a 0-d operand, see :func:`axis_or_none`.
    """
    if axis is None:
        return tuple(range(ndim))
    if scalar and not ndim and not isinstance(axis, Iterable):
        axis_or_none(name, axis, ndim)
        return ()
    axes = tuple(axis_index(name, d, ndim) for d in static_ints(name, "axis", axis))
    if len(set(axes)) != len(axes):
        fail(ShapeError(f"{name}: expected distinct axes, got {axis} for {ndim} axes"))
    return tuple(sorted(axes))


def as_line(x: Value, axis: Any) -> Value:
    """``x``, or the one element of a 0-d ``x`` along an axis, if one is asked for.

    What NumPy's ``cumsum``, ``argsort`` and ``repeat`` do (its ``sort`` and ``partition`` do not).
    """
    return x if x.ndim or axis is None else reshape(x, (1,))


def keep_axes(shape: Shape, axes: Iterable[int]) -> Shape:
    """``shape`` with extent 1 at ``axes``: what ``keepdims=True`` returns."""
    axes = set(axes)
    return tuple(1 if d in axes else n for d, n in enumerate(shape))


def result_dtype(*xs: Any) -> DType:
    """Element type of ``xs`` together (NEP 50), strong or not."""
    return common_dtype([as_value(x).type for x in xs])


def promoted(*xs: Any, dtype: Any = None) -> list[Value]:
    """``xs`` in their common element type, each with its own shape."""
    values = [as_value(x) for x in xs]
    target = as_dtype(dtype) if dtype is not None else common_dtype([v.type for v in values])
    return [convert(v, target) for v in values]


def as_inexact(name: str, x: Any, dtype: Any = None) -> Value:
    """``x`` as a floating or complex value: integers and bools become float64."""
    if dtype is not None:
        target = as_dtype(dtype)
        if not target.is_inexact:
            fail(DTypeError(f"{name}: expected a floating or complex dtype, got {target}"))
        return convert(as_value(x), target)
    return inexact_operands(name, x)[0]  # Python numbers stay weak
