"""Functions along a named axis: ``vmap(f, axis_name="i")`` and what ``f`` may then ask of the
others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.graph import Value
from ..ir.location import at_user_line
from ..ir.ops import max_, min_, sum_, where
from ..ir.ops.collectives import gather_axis, scatter_axis
from ..ir.ops.comparison import ge
from ..ir.ops.fill import zeros_of
from ..ir.ops.gather import gather
from ..ir.ops.leaves import constant
from ..ir.ops.operands import convert
from ..ir.ops.selection import maximum
from ..ir.ops.shape import axis_index as place_of
from ..ir.ops.shape import broadcast, moveaxis, reshape
from .array import wrap
from .signature import lift_leaf
from .tree import map as map_tree

__all__ = [
    *("all_gather", "axis_index", "axis_size", "named_axis", "pmax", "pmean", "pmin", "ppermute"),
    *("psum", "psum_scatter"),
]

Names = Any  # a name, or a tuple of names


@dataclass(frozen=True, slots=True)
class Axis:
    """A named axis of a running ``vmap``; ``index`` is the stand-in for the example's number."""

    name: Any
    index: Value
    size: int


# Axes of the vmaps that run in this thread or task, outermost first.
_AXES: ContextVar[tuple[Axis, ...]] = ContextVar("tilegrad_axes", default=())


@contextmanager
def named_axis(name: Any, index: Value, size: int) -> Iterator[None]:
    """Bind ``name`` until the end of the context."""
    token = _AXES.set((*_AXES.get(), Axis(name, index, size)))
    try:
        yield
    finally:
        _AXES.reset(token)


def _axes(title: str, names: Names) -> list[Axis]:
    """The innermost axes of these names."""
    bound = _AXES.get()
    found = []
    for name in names if isinstance(names, tuple) else (names,):
        axis = next((a for a in reversed(bound) if a.name == name), None)
        if axis is None:
            known = ", ".join(repr(a.name) for a in bound) or "none"
            raise at_user_line(
                NameError(
                    f"{title}: expected the name of an axis that a vmap around it binds, got "
                    f"{name!r}; bound here: {known}. vmap(f, axis_name={name!r}) binds it"
                )
            )
        found.append(axis)
    return found


def _one(title: str, name: Any) -> Axis:
    (axis,) = _axes(title, name)
    return axis


def _over(title: str, tree: Any, names: Names, reduce: Callable[[Value], Value]) -> Any:
    axes = _axes(title, names)

    def leaf(x: Any) -> Any:
        value = lift_leaf(x)
        for axis in axes:
            value = reduce(gather_axis(value, axis.index, axis.size))
        return wrap(value)

    return map_tree(leaf, tree)


def psum(x: Any, axis_name: Names) -> Any:
    """The sum over all examples of a vmapped axis, for each array of a tree.

    Parameters
    ----------
    x : pytree
    axis_name : hashable or tuple of hashable
        Names that enclosing ``vmap(..., axis_name=)`` have given.

    Returns
    -------
    pytree
        Like ``x``; the same for all examples.

    Raises
    ------
    NameError
        If no enclosing ``vmap`` has given the name.

    Notes
    -----
    The derivative sends each example's cotangent to all: under ``vmap`` the gradient of ``psum(x)``
    by ``x`` is the number of examples, as in JAX.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.vmap(lambda x: x / tg.psum(x, "i"), axis_name="i")(tg.asarray([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float64)
    """
    return _over("psum", x, axis_name, lambda y: sum_(y, 0))


def pmean(x: Any, axis_name: Names) -> Any:
    """The mean over all examples of a vmapped axis; see :func:`psum`."""
    axes = _axes("pmean", axis_name)
    count = int(np.prod([axis.size for axis in axes]))
    return map_tree(lambda y: psum(y, axis_name) / count, x)


def pmax(x: Any, axis_name: Names) -> Any:
    """The maximum over all examples of a vmapped axis; see :func:`psum`. Ties share derivatives."""
    return _over("pmax", x, axis_name, lambda y: max_(y, 0))


def pmin(x: Any, axis_name: Names) -> Any:
    """The minimum over all examples of a vmapped axis; see :func:`pmax`."""
    return _over("pmin", x, axis_name, lambda y: min_(y, 0))


def axis_index(axis_name: Names) -> Any:
    """The number of the example along a vmapped axis, int64; of several names in C order.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.vmap(lambda x: x * tg.axis_index("i"), axis_name="i")(tg.ones(3))
    Array([0., 1., 2.], dtype=float64)
    """
    total: Value | None = None
    for axis in _axes("axis_index", axis_name):
        total = axis.index if total is None else total * axis.size + axis.index
    return wrap(constant(0) if total is None else total)


def axis_size(axis_name: Names) -> int:
    """The number of examples along a vmapped axis; of several names their product."""
    return int(np.prod([axis.size for axis in _axes("axis_size", axis_name)]))


def all_gather(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """The arrays of all examples of a vmapped axis, for each array of a tree.

    Parameters
    ----------
    x : pytree
    axis_name : hashable
    axis : int
        Where the examples go in the results.
    tiled : bool
        Along the existing axis ``axis``, one example after the other, instead of along a new one.
    """
    source = _one("all_gather", axis_name)

    def leaf(x: Any) -> Any:
        value = gather_axis(lift_leaf(x), source.index, source.size)
        place = place_of("all_gather: axis", axis, value.ndim - tiled)
        value = moveaxis(value, 0, place)
        if tiled:
            shape = [*value.shape[:place], -1, *value.shape[place + 2 :]]
            shape[place] = value.shape[place] * value.shape[place + 1]
            value = reshape(value, shape)
        return wrap(value)

    return map_tree(leaf, x)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Arrays sent from example to example along a vmapped axis, for each array of a tree.

    Parameters
    ----------
    x : pytree
    axis_name : hashable
    perm : sequence of (int, int)
        Pairs ``(source, destination)``, each example at most once on either side. Where nothing
        arrives the result is zero.

    Raises
    ------
    ValueError
        For a number out of range or one given twice.

    Examples
    --------
    >>> import tilegrad as tg
    >>> shift = lambda x: tg.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> tg.vmap(shift, axis_name="i")(tg.asarray([1.0, 2.0, 3.0]))
    Array([0., 1., 2.], dtype=float64)
    """
    axis = _one("ppermute", axis_name)
    pairs = [(int(a), int(b)) for a, b in perm]
    for side in zip(*pairs, strict=True):
        if len(set(side)) != len(side) or not all(0 <= k < axis.size for k in side):
            raise at_user_line(
                ValueError(
                    f"ppermute: expected each example of [0, {axis.size}) at most once on either "
                    f"side, got {pairs}"
                )
            )
    sources = np.full(axis.size, -1)
    for a, b in pairs:
        sources[b] = a
    source = gather(constant(sources), axis.index)

    def leaf(x: Any) -> Any:
        value = lift_leaf(x)
        whole = gather_axis(value, axis.index, axis.size)
        read = gather(whole, maximum(source, 0))
        arrives = broadcast(ge(source, 0), value.shape, ())
        return wrap(where(arrives, read, zeros_of(value.type)))

    return map_tree(leaf, x)


def psum_scatter(x: Any, axis_name: Any) -> Any:
    """Of the sum over all examples the element of each along axis 0, for each array of a tree.

    ``x`` has one element for each example along axis 0.

    Raises
    ------
    ValueError
        If it has not.
    """
    axis = _one("psum_scatter", axis_name)

    def leaf(x: Any) -> Any:
        value = lift_leaf(x)
        if not value.shape or value.shape[0] != axis.size:
            raise at_user_line(
                ValueError(
                    f"psum_scatter: expected {axis.size} elements along axis 0, one an example, "
                    f"got {value.type}"
                )
            )
        return wrap(scatter_axis(convert(value, value.dtype), axis.index))

    return map_tree(leaf, x)
