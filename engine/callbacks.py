"""Python functions called from programs: ``pure_callback``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ir.dtypes import as_dtype
from ..ir.errors import DTypeError, ShapeError
from ..ir.location import Location, at_user_line, user_location
from ..ir.ops.host import HostFunction
from ..ir.ops.host import pure_callback as callback_values
from ..ir.types import TensorType
from .array import Array, wrap
from .marking import name_of
from .signature import lift_leaf, type_of
from .static import static_key
from .tracing import MARKS, RUNNING, is_independent
from .tree import paths, put_together, show, take_apart

__all__ = ["Arguments", "pure_callback", "split_arguments"]

_METHODS = (None, "sequential", "expand_dims", "broadcast_all")


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments of a Python function: which leaves are arrays, and what the others are.

    Attributes
    ----------
    spec : structure of ``(args, kwargs)``
    fixed : tuple
        Pairs (place of a leaf, Static) for leaves that are no arrays.
    """

    spec: Any
    fixed: tuple[tuple[int, Static], ...]

    def tree(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """``(args, kwargs)`` with these arrays."""
        fixed = dict(self.fixed)
        rest = iter(arrays)
        count = len(arrays) + len(fixed)
        leaves = [fixed[i].value if i in fixed else next(rest) for i in range(count)]
        found: tuple[tuple[Any, ...], dict[str, Any]] = put_together(self.spec, iter(leaves))
        return found


class Static:
    """An argument that is no array: compared by type and bits, by identity if it has no hash."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        try:
            self.key = static_key(value)
        except TypeError:
            self.key = (type(value), id(value))  # it lives as long as this does

    def __eq__(self, other: object) -> bool:
        return type(other) is Static and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def split_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Arguments, list[Any]]:
    """The form of the arguments, and their arrays and numbers."""
    leaves: list[Any] = []
    spec = take_apart((args, kwargs), leaves)
    fixed: list[tuple[int, Static]] = []
    arrays: list[Any] = []
    for i, x in enumerate(leaves):
        if isinstance(x, Array | np.ndarray | np.generic | int | float | complex):
            arrays.append(x)
        else:
            fixed.append((i, Static(x)))
    return Arguments(spec, tuple(fixed)), arrays


def own_copy(x: Any) -> Any:
    """Data for a user's function to keep: the memory it lies in is used again afterwards."""
    data = np.array(x)
    data.flags.writeable = False
    return data


def called_outside(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The function's result; it runs with no trace, whoever computes."""
    token = RUNNING.set(())
    try:
        return function(*args, **kwargs)
    finally:
        RUNNING.reset(token)


@dataclass(frozen=True, slots=True)
class Callback(HostFunction):
    """The function of a ``pure_callback``, from arrays to arrays."""

    function: Callable[..., Any]
    arguments: Arguments
    spec: Any
    types: tuple[TensorType, ...]
    method: str | None
    location: Location | None

    def mapping(self) -> str | None:
        return self.method

    def of_many(self, size: int) -> Callback:
        types = [TensorType((size, *t.shape), t.dtype) for t in self.types]
        return replace(self, types=tuple(types))

    def __str__(self) -> str:
        return f"pure_callback({name_of(self.function)})"

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        args, kwargs = self.arguments.tree([own_copy(x) for x in operands])
        result = called_outside(self.function, args, kwargs)
        leaves: list[Any] = []
        spec = take_apart(result, leaves)
        names = paths(self.spec, "the result")
        if spec != self.spec and show(spec) != show(self.spec):
            self._fail(TypeError, f"expected the structure {show(self.spec)}, got {show(spec)}")
        found = []
        for x, t, name in zip(leaves, self.types, names, strict=True):
            value = np.asarray(x)
            if value.shape != t.shape:
                self._fail(ShapeError, f"{name}: expected {t}, got {_shown(value)}")
            python = isinstance(x, bool | int | float | complex)
            if value.dtype != t.dtype.numpy and not python:
                self._fail(DTypeError, f"{name}: expected {t}, got {_shown(value)}")
            found.append(value.astype(t.dtype.numpy, copy=False))
        return tuple(found)

    def _fail(self, kind: type[Exception], message: str) -> None:
        where = "" if self.location is None else f"\n  at {self.location}"
        raise kind(f"{self}: {message}{where}")


def _shown(value: Any) -> str:
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


def pure_callback(
    callback: Callable[..., Any],
    result_types: Any,
    *args: Any,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Results of a Python function that looks at values: SciPy, tables, anything.

    Parameters
    ----------
    callback : callable
        Called with ``args`` and ``kwargs`` as NumPy arrays (read-only), it returns arrays of
        ``result_types``. It must be pure: it may be called any number of times, or never.
    result_types : pytree
        A type for each array of the result: ``tg.ShapeDtype(shape, dtype)``, or anything with
        ``shape`` and ``dtype``.
    vmap_method : str, optional
        How ``vmap`` maps it: ``"sequential"`` calls it for each example; ``"expand_dims"`` and
        ``"broadcast_all"`` call it once, with the examples along a first axis of its operands.
        Operands that are the same for all examples have extent 1 there, or are repeated.

    Returns
    -------
    pytree of Array

    Raises
    ------
    ShapeError, DTypeError, TypeError
        If the callback's result is not of ``result_types``.
    UnsupportedError
        When it is differentiated (wrap it in :class:`custom_jvp` or :class:`custom_vjp`), and under
        ``vmap`` without ``vmap_method``.

    Notes
    -----
    With known arguments it is called at once; in compiled programs, between their native parts.

    Examples
    --------
    >>> import numpy as np
    >>> import tilegrad as tg
    >>> f = tg.jit(lambda x: 2 * tg.pure_callback(np.sort, x, x))
    >>> f(tg.asarray([3.0, 1.0]))
    Array([2., 6.], dtype=float64)
    """
    if vmap_method not in _METHODS:
        raise at_user_line(
            ValueError(
                f"pure_callback({name_of(callback)}): vmap_method: expected one of "
                f"{', '.join(map(repr, _METHODS))}, got {vmap_method!r}"
            )
        )
    arguments, arrays = split_arguments(args, kwargs)
    leaves: list[Any] = []
    spec = take_apart(result_types, leaves)
    types = tuple([_result_type(x, f"pure_callback({name_of(callback)})") for x in leaves])
    function = Callback(callback, arguments, spec, types, vmap_method, user_location())
    values = [lift_leaf(x) for x in arrays]
    results = callback_values(function, values, types) if types else ()
    wrapped = [wrap(x) for x in results]
    if wrapped and not RUNNING.get() and not MARKS and is_independent(values):
        wrapped[0].block_until_ready()
    return put_together(spec, iter(wrapped))


def _result_type(x: Any, title: str) -> TensorType:
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return TensorType(tuple(x.shape), as_dtype(x.dtype))
    if isinstance(x, bool | int | float | complex):
        t = type_of(x, "")
        return TensorType(t.shape, t.dtype)
    raise at_user_line(
        TypeError(
            f"{title}: result_types: expected types, as of tg.ShapeDtype(shape, dtype), got "
            f"{type(x).__name__} {x!r}"
        )
    )
