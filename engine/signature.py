"""Arguments of a call: what they look like, and what they hold."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..ir.dtypes import DType, as_dtype, bool_, complex128, float64, int64, uint64
from ..ir.errors import DTypeError
from ..ir.graph import Value
from ..ir.location import at_user_line
from ..ir.ops.leaves import constant
from ..ir.types import TensorType
from .array import Array, from_numpy
from .containers import leaf_class
from .realize import intern
from .tree import NONE, sorted_keys, take_apart

__all__ = ["Call", "collect", "lift_leaf", "shape_dtype", "type_of"]

# Types stand in for arrays in `lower`: leaves, although they are dataclasses.
leaf_class(TensorType)
leaf_class(DType)

# Python scalars are weak, but for bool, which adopts nothing.
_SCALARS = {
    bool: intern(TensorType((), bool_)),
    int: intern(TensorType((), int64, True)),
    float: intern(TensorType((), float64, True)),
    complex: intern(TensorType((), complex128, True)),
}
_NUMPY = {kind: type.dtype.numpy for kind, type in _SCALARS.items()}
# Python integers beyond int64 are uint64, as in NumPy.
_LARGE = intern(TensorType((), uint64, True))


def shape_dtype(shape: Any, dtype: Any = float64) -> TensorType:
    """The type of an array, to stand in for one in ``jit(f).lower``."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    return TensorType(extents, as_dtype(dtype))


class Call:
    """What a call looks like, and what it holds.

    Attributes
    ----------
    key : list
        Two calls with the same entries have the same structure and leaf types. Types of arrays
        stand there as the identity of the one interned object of each (:func:`.realize.intern`):
        it hashes at C speed.
    buffers : list
        One a leaf, in the order of :mod:`.tree`; None for a pending array.
    borrowed : list of int
        Places of NumPy arrays that belong to the caller.
    pending : list of (int, Array)
        Pending arrays and their places among the leaves.
    unknown : bool
        Whether a leaf is no array at all.
    """

    __slots__ = ("borrowed", "buffers", "key", "pending", "unknown")

    def __init__(self, key: list[Any], buffers: list[Any], borrowed: list[int]) -> None:
        self.key = key
        self.buffers = buffers
        self.borrowed = borrowed
        self.pending: list[tuple[int, Array]] = []
        self.unknown = False


def collect(x: Any, call: Call) -> None:
    """Add an argument to a call."""
    kind = type(x)
    key, buffers = call.key, call.buffers
    if kind is Array:
        buffer = x._buffer
        if buffer is None:
            key.append(id(intern(x._type)))
            call.pending.append((len(buffers), x))
        else:
            key.append(id(x._type))
        buffers.append(buffer)
    elif kind in _SCALARS:
        try:
            buffers.append(np.array(x, _NUMPY[kind]))
            key.append(kind)
        except OverflowError:
            buffers.append(np.array(x, _large(x).dtype.numpy))
            key.append(_LARGE)
    elif kind is np.ndarray:
        key += (kind, x.shape, x.dtype)
        if not (x.flags.carray and x.dtype.isnative):
            x = _readable(x)
        call.borrowed.append(len(buffers))
        buffers.append(x)
    elif kind is dict:
        names = tuple(x)
        key.append(kind)
        key.append(names)
        for name in _in_order(names):
            collect(x[name], call)
    elif kind is list or kind is tuple:
        key.append(kind)
        key.append(len(x))
        for item in x:
            collect(item, call)
    else:
        leaves: list[Any] = []
        spec = take_apart(x, leaves)
        if spec is None:
            _collect_leaf(x, call)
        else:
            key.append(spec if spec != NONE else None)
            for leaf in leaves:
                collect(leaf, call)


def _large(x: int) -> TensorType:
    """The type of a Python integer that int64 does not hold; raises if uint64 does not either."""
    constant(x)  # the rule for numbers inside of programs, with its message
    return _LARGE


@lru_cache(maxsize=4096)
def _in_order(names: tuple[Any, ...]) -> list[Any]:
    """The keys of a dictionary in the order of its leaves; the same dictionaries come again."""
    return sorted_keys(names)


def _readable(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """``x`` as programs can read it: in one piece, aligned, in this machine's byte order."""
    if x.flags.c_contiguous and x.flags.aligned and x.dtype.isnative:
        return x  # it is not writeable, that is all
    return np.array(x, x.dtype.newbyteorder("="), order="C")


def _collect_leaf(x: Any, call: Call) -> None:
    """A leaf of a rarer kind: NumPy scalars, subclasses of ndarray, and what is no array at all."""
    if not isinstance(x, np.ndarray | np.generic):
        call.unknown = True  # found in no table; whoever looks further refuses it by its name
        call.buffers.append(None)
        return
    data = np.array(x)
    call.key += (np.generic, data.shape, data.dtype)
    call.buffers.append(data if data.dtype.isnative else data.astype(data.dtype.newbyteorder("=")))


def type_of(x: Any, name: str) -> TensorType:
    """The type of a leaf; ``name`` is how the user reaches it."""
    kind = type(x)
    if kind is Array:
        return x._type  # type: ignore[no-any-return]
    if kind in _SCALARS:
        return _SCALARS[kind] if kind is not int or -(2**63) <= x < 2**63 else _large(x)
    if kind is TensorType:
        return x  # type: ignore[no-any-return]
    if isinstance(x, np.ndarray | np.generic):
        try:
            return intern(TensorType(x.shape, as_dtype(x.dtype)))
        except DTypeError as error:
            raise _refused(x, name, f"NumPy data of dtype {x.dtype}") from error
    raise _refused(x, name, f"{kind.__name__} {x!r}")


def _refused(x: Any, name: str, shown: str) -> TypeError:
    which = f"argument {name}" if name else "an argument"
    return at_user_line(
        DTypeError(
            f"{which}: expected an array, a number or a container of them, got {shown}; make it "
            f"static (static_argnums), or convert it"
        )
    )


def lift_leaf(x: Any) -> Value:
    """The graph value of a leaf; NumPy arrays are copied, since the value may be computed later."""
    if type(x) is Array:
        return x._value
    if isinstance(x, np.ndarray) and x.ndim:
        return from_numpy(x)._value
    return constant(x)
