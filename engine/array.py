"""The one array class: an immutable handle of a buffer, or of a value still to be computed.

An :class:`Array` wraps one graph value. *Realized*, it holds a NumPy buffer; *pending*, it holds
the value's place in the web of nodes, and the buffer is computed when somebody looks. Arrays that
stand for arguments of a function under ``jit`` or ``vmap`` are of the same class: their value
depends on an ``input`` node and has no buffer. Shape and dtype are always known.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, NoReturn, cast

import numpy as np

from ..ir.dtypes import DType, as_dtype
from ..ir.graph import Value
from ..ir.location import at_user_line
from ..ir.ops.leaves import DATA
from ..ir.types import Shape, TensorType
from . import realize
from .basic_index import read
from .containers import leaf_class
from .donation import Donation, deleted_error
from .operators import Operators
from .protocols import NumPyProtocols
from .realize import data_node, intern
from .tracing import RUNNING, Trace
from .tree import leaves
from .updates import Updates, lifted_key

__all__ = ["Array", "from_numpy", "lift", "lower_to_arrays", "wrap"]


@leaf_class
class Array(Operators, NumPyProtocols):
    """An immutable n-dimensional array.

    Made by :func:`tilegrad.asarray` and the other functions of the namespace, never directly.
    Operators and methods follow NumPy and the Array API; results are computed when needed:
    by ``np.asarray``, ``float``, ``bool``, ``print``, ``.item()``, ``tg.eval``. Arrays are
    pytree leaves, compare elementwise with ``==`` and do not hash.

    Attributes
    ----------
    shape : tuple of int
    dtype : DType
    """

    __slots__ = ("__weakref__", "_buffer", "_node", "_peers", "_type")
    __hash__ = None  # type: ignore[assignment]
    # Above ndarray and matrix: a NumPy left operand defers to us even where it would not ask.
    __array_priority__ = 1000.0

    def __init__(
        self, buffer: np.ndarray[Any, Any] | None, node: Value | None, type: TensorType
    ) -> None:
        self._buffer = buffer
        self._node = node
        self._type = type
        self._peers: Any = None

    # ----------------------------------------------------------------- what is known at once

    @property
    def _value(self) -> Value:
        """The graph value; a realized array gets its ``data`` node at the first call."""
        node = self._node
        if node is None:
            if self._buffer is None:
                raise deleted_error(self._type, self._peers)
            node = self._node = Value(data_node(cast("Any", self._buffer), self._type), 0)
        return node

    @property
    def shape(self) -> Shape:
        return self._type.shape

    @property
    def dtype(self) -> DType:
        return self._type.dtype

    @property
    def ndim(self) -> int:
        return len(self._type.shape)

    @property
    def size(self) -> int:
        return self._type.size

    @property
    def itemsize(self) -> int:
        return self._type.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._type.nbytes

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def is_realized(self) -> bool:
        """Whether the values are computed already."""
        return self._buffer is not None or self._value.node.memo is not None

    def to_device(self, device: str, /, *, stream: Any = None) -> Array:
        """The array on a device; there is the one, ``"cpu"``."""
        if device != "cpu":
            raise at_user_line(ValueError(f"to_device: expected 'cpu', got {device!r}"))
        return self

    def _pending(self, value: Value, type: TensorType) -> Array:
        """An array still to be computed."""
        array = Array(None, value, type)
        realize.note_pending(array)
        return array

    # ----------------------------------------------------------------- looking at values

    @property
    def is_deleted(self) -> bool:
        """Whether its memory was given away (``jit(..., donate_argnums=)``)."""
        return self._buffer is None and self._node is None

    def _delete(self, donation: Donation) -> None:
        self._buffer = self._node = None
        self._peers = donation

    def _look(self, what: str) -> np.ndarray[Any, Any]:
        """The buffer, computed if need be; not for writing."""
        buffer = self._buffer
        return realize.buffer_of(self, what) if buffer is None else buffer

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values as a read-only NumPy array that shares memory where it can."""
        view = self._look("numpy()").view()
        view.flags.writeable = False
        return view

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        buffer = self._buffer
        if buffer is None:
            buffer = self._look("conversion to a NumPy array")
        if dtype is not None and np.dtype(dtype) != buffer.dtype:
            if copy is False:
                raise ValueError(f"np.asarray: a copy is needed to convert {self.dtype} to {dtype}")
            return buffer.astype(dtype)
        if copy:
            return buffer.copy()
        view = buffer.view()
        view.setflags(False)  # write; by its name it takes twice as long
        return view

    def __dlpack__(self, **options: Any) -> Any:
        buffer = self._look("__dlpack__")
        # The older protocol cannot say "read only": who speaks it gets memory of its own, or, where
        # it must be this one, NumPy's refusal.
        own = (options.get("max_version") or (0,))[0] < 1 and options.get("copy") is not False
        return (buffer.copy() if own else self.numpy()).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # kDLCPU

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(cast("Any", self.numpy()))

    def item(self, *index: int) -> Any:
        """The Python scalar of a one-element array, or of the element at ``index``."""
        buffer = self._look("item()")
        if not index and buffer.size != 1:
            raise at_user_line(
                ValueError(f"item: expected an array of one element, got {self._type}")
            )
        return buffer.item(*index)

    def tolist(self) -> Any:
        """The values as nested lists of Python scalars."""
        return self._look("tolist()").tolist()

    def block_until_ready(self) -> Array:
        """Compute the values now; returns the array."""
        self._look("block_until_ready()")
        return self

    def __bool__(self) -> bool:
        if self._type.size != 1:
            raise at_user_line(
                ValueError(
                    f"bool: the truth of an array of {self._type.size} elements is not defined, "
                    f"got {self._type}; use tg.any(x) or tg.all(x)"
                )
            )
        return bool(self._look("bool()"))

    def __int__(self) -> int:
        return int(self._scalar("int()"))

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex()"))

    def __index__(self) -> int:
        if not self._type.dtype.is_integer or self._type.shape:
            raise at_user_line(
                TypeError(f"index: expected an integer array of shape (), got {self._type}")
            )
        return int(self._look("use as an index"))

    def _scalar(self, what: str) -> Any:
        if self._type.shape:
            raise at_user_line(
                TypeError(
                    f"{what}: expected an array of shape (), got {self._type}; index it, or call "
                    f".item() on one element"
                )
            )
        return self._look(what)[()]

    def __len__(self) -> int:
        if not self._type.shape:
            raise at_user_line(TypeError(f"len: expected an axis, got {self._type} of shape ()"))
        return self._type.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self._type.shape:
            raise at_user_line(
                TypeError(f"iteration: expected an axis, got {self._type} of shape ()")
            )
        return iter([self[i] for i in range(self._type.shape[0])])

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    def __repr__(self) -> str:
        if self.is_deleted:
            return f"Array(shape={self.shape}, dtype={self.dtype.name}, deleted)"
        traced = realize.traced(self)
        if traced is not None:
            return f"Traced<{self._type}, {traced}>"
        buffer = self._look("repr()")
        body = np.array2string(buffer, separator=", ", prefix="Array(")
        gap = ",\n      " if len(body.rsplit("\n", 1)[-1]) + len(self.dtype.name) > 58 else ", "
        shape = f"shape={self.shape}, " if self.size == 0 and self.shape != (0,) else ""
        return f"Array({body}{gap}{shape}dtype={self.dtype.name})"

    def __str__(self) -> str:
        if self.is_deleted or realize.traced(self) is not None:
            return repr(self)
        return str(self._look("str()"))

    def __format__(self, spec: str) -> str:
        return format(self._scalar("format()") if spec else str(self), spec)

    def __getitem__(self, key: Any) -> Array:
        value = read(self._value, lifted_key(key))
        return self._pending(value, value.node.types[value.index])

    @property
    def at(self) -> Updates:
        """Functional updates: ``x.at[i].set(v)``."""
        return Updates(self)

    # ----------------------------------------------------------------- immutability, copies

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise at_user_line(
            TypeError(
                "arrays are immutable: x[i] = v is not possible; use x = x.at[i].set(v) "
                "(add, multiply, min and max in place of set for x[i] += v and its like)"
            )
        )

    def __delitem__(self, key: Any) -> NoReturn:
        raise at_user_line(TypeError("arrays are immutable: use tg.delete or a mask"))

    def __copy__(self) -> Array:
        return self

    def __deepcopy__(self, memo: Any) -> Array:
        return wrap(self._value)  # outlives a donation of this one

    def __reduce__(self) -> Any:
        return _restore, (self._look("pickling"), self._type.weak)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The package itself: it has the functions of the Array API."""
        return importlib.import_module(__package__.rpartition(".")[0])


def _restore(buffer: np.ndarray[Any, Any], weak: bool) -> Array:
    buffer = np.ascontiguousarray(buffer).reshape(buffer.shape)
    return Array(buffer, None, intern(TensorType(buffer.shape, as_dtype(buffer.dtype), weak)))


# ------------------------------------------------------------------------ between the two worlds


def wrap(value: Value) -> Array:
    """The array of a graph value: pending, unless the node holds its results."""
    node = value.node
    type = node.types[value.index]
    if node.op is DATA:
        return Array(node.memo[0], value, intern(type))
    array = Array(None, value, type)
    realize.note_pending(array)
    return array


def from_numpy(data: np.ndarray[Any, Any], *, copy: bool = True) -> Array:
    """A realized array of NumPy data.

    Parameters
    ----------
    data : ndarray
        Of a dtype that tilegrad has; byte order and layout may be any.
    copy : bool
        Without a copy the caller promises not to write to ``data`` any more.
    """
    dtype = as_dtype(data.dtype)
    plain = type(data) is np.ndarray and data.dtype == dtype.numpy and data.flags.c_contiguous
    if copy or not plain:
        data = np.array(data, dtype=dtype.numpy, order="C", copy=True, subok=False)
    return Array(data, None, intern(TensorType(data.shape, dtype)))


def lift(x: Any) -> Any:
    """What a builder wants for ``x``: the value of an array, ``x`` itself for anything else.

    NumPy arrays become ``data`` leaves (a copy, since the result may be computed later), so that
    large constants are data and not part of a program. Lists and tuples are lifted item by item.
    """
    kind = type(x)
    if kind is Array:
        return x._value
    if kind is np.ndarray:
        if x.ndim == 0 or x.dtype.kind not in "biufc":
            return x
        running = RUNNING.get()
        return _captured(running[-1], x) if running else from_numpy(x)._value
    if kind is list or kind is tuple:
        items = [lift(item) for item in x]
        return x if all(a is b for a, b in zip(items, x, strict=True)) else kind(items)
    if kind is slice:
        return slice(lift(x.start), lift(x.stop), lift(x.step))
    return x


def _captured(trace: Trace, x: np.ndarray[Any, Any]) -> Value:
    """One leaf for all uses of a NumPy array in a trace, as long as nobody writes to it."""
    known = trace.captured.get(id(x))
    if known is not None:
        value = known[1]
        if value.shape == x.shape and value.node.memo[0].tobytes() == x.tobytes():
            return value
    value = from_numpy(x)._value
    trace.captured[id(x)] = (x, value)
    return value


def lower_to_arrays(x: Any) -> Any:
    """Arrays in place of the values in a builder's result."""
    kind = type(x)
    if kind is Value:
        return wrap(x)
    if kind is list or kind is tuple:
        return kind([lower_to_arrays(item) for item in x])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return kind(*[lower_to_arrays(item) for item in x])
    return x


def evaluate(*trees: Any) -> Any:
    """Compute every array in the trees, all in one program.

    Other leaves are passed by. Returns the tree, or a tuple of the trees if there are several.

    Raises
    ------
    TracerError
        If a value depends on an argument that is being traced.

    Examples
    --------
    >>> import tilegrad as tg
    >>> x = tg.ones(3) * 2.0
    >>> x.is_realized
    False
    >>> _ = tg.eval({"x": x})
    >>> x.is_realized
    True
    """
    if len(trees) == 1 and type(trees[0]) is np.ndarray:
        return trees[0]
    found: list[Any] = []
    for tree in trees:
        found += (tree,) if type(tree) is Array else leaves(tree)
    arrays = [x for x in found if type(x) is Array and x._buffer is None]
    if arrays:
        realize.realize_arrays(arrays, "tg.eval")
    return trees[0] if len(trees) == 1 else trees
