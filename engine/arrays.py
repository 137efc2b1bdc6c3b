"""Arrays from data: asarray, array, from_dlpack."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.dtypes import as_dtype
from ..ir.errors import UnsupportedError
from ..ir.functions.joining import stack
from ..ir.location import at_user_line
from ..ir.ops.operands import as_value, convert
from .array import Array, from_numpy, lift, wrap

__all__ = ["array", "asarray", "from_dlpack"]


def _has_array(x: Any) -> bool:
    """Whether nested lists hold an array of ours, which may be traced."""
    return type(x) is Array or (isinstance(x, (list, tuple)) and any(map(_has_array, x)))


def _stacked(x: Any) -> Any:
    """Nested lists with arrays in them as one value."""
    return stack([_stacked(item) for item in x]) if isinstance(x, (list, tuple)) else lift(x)


def asarray(
    obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None
) -> Array:
    """An array of Python numbers, nested lists, NumPy data, or whatever has a buffer or DLPack.

    Parameters
    ----------
    obj : array-like
        Lists may hold arrays, traced ones too: they are stacked. Python numbers become bool, int64,
        float64 or complex128.
    dtype : dtype, optional
        Convert to it.
    device : {None, "cpu"}
    copy : bool, optional
        NumPy data is copied in any case, so that later writes to it do not show; ``copy=False``
        takes a C-contiguous array as it is (and leaves it to the caller not to write to it).
        ``copy=True`` of an Array is one that outlives its donation; elements are not copied.

    Returns
    -------
    Array

    Raises
    ------
    DTypeError
        For data of a type that tilegrad does not have (``float16``, objects, strings).

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.asarray([[1, 2], [3, 4]], dtype="float32")
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if device not in (None, "cpu"):
        raise at_user_line(
            UnsupportedError(f"asarray: expected device 'cpu', got {device!r}", op="asarray")
        )
    if type(obj) is Array:
        if dtype is None or (as_dtype(dtype) is obj.dtype and not obj._type.weak):
            if obj._type.weak:
                return wrap(convert(obj._value, obj.dtype))
            return wrap(obj._value) if copy else obj
        return wrap(convert(obj._value, dtype))
    if isinstance(obj, (list, tuple)) and _has_array(obj):
        value = as_value(_stacked(obj))
        return wrap(convert(value, value.dtype if dtype is None else dtype))
    if not isinstance(obj, np.ndarray):
        data = np.asarray(obj)
        if dtype is not None and data.dtype.kind in "iu" and as_dtype(dtype).is_integer:
            data = np.asarray(obj, as_dtype(dtype).numpy)  # Python integers must fit
        return _typed(data, dtype, copy=_borrows(obj))
    return _typed(obj, dtype, copy=copy is not False)


def _borrows(obj: Any) -> bool:
    """Whether NumPy may have borrowed the memory of ``obj``."""
    return not isinstance(obj, (bool, int, float, complex, list, tuple, np.generic))


def _typed(data: np.ndarray[Any, Any], dtype: Any, *, copy: bool) -> Array:
    if dtype is None:
        return from_numpy(data, copy=copy)
    target = as_dtype(dtype)
    if data.dtype == target.numpy:
        return from_numpy(data, copy=copy)
    return wrap(convert(from_numpy(data, copy=copy)._value, target))


def array(object: Any, dtype: Any = None, *, copy: bool | None = True) -> Array:
    """NumPy's ``array``: as :func:`asarray`."""
    return asarray(object, dtype, copy=copy)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of the data of any library that has DLPack; a copy, as it may change over there."""
    return asarray(np.from_dlpack(x), device=device)
