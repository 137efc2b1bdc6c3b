"""``vmap``: a function of one example as a function of many."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any

from ..autodiff.batching import batch
from ..ir.dtypes import int64
from ..ir.errors import ShapeError
from ..ir.graph import Value
from ..ir.location import at_user_line
from ..ir.ops.leaves import iota
from ..ir.ops.operands import convert
from ..ir.ops.shape import axis_index, broadcast, moveaxis
from ..ir.types import TensorType
from .array import wrap
from .chunks import check_batch_size, in_chunks
from .collectives import named_axis
from .effects import living, perform_again
from .marking import argument_names, name_of
from .signature import lift_leaf, type_of
from .traced import output_value
from .tracing import Trace, placeholder, tracing
from .tree import paths, put_together, spread, take_apart

__all__ = ["vmap"]


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    *,
    batch_size: int | None = None,
) -> Callable[..., Any]:
    """Map a function over an axis of its arguments, as one program.

    Parameters
    ----------
    fun : callable
        Of pytrees of arrays, to a pytree of arrays.
    in_axes : int, None, or pytree prefix of the positional arguments
        The axis to map over in each array (negative ones count from the end); None: every example
        gets the whole. Keyword arguments are mapped over axis 0.
    out_axes : int, None, or pytree prefix of the result
        Where the mapped axis goes in the results; None: the result does not depend on the example.
    axis_name : hashable, optional
        A name for the axis, by which ``fun`` may ask for what other examples hold: ``tg.psum``,
        ``pmean``, ``pmax``, ``pmin``, ``all_gather``, ``ppermute``, ``axis_index``.
    axis_size : int, optional
        Needed only where no argument is mapped.
    batch_size : int, optional
        So many examples at once, one chunk after the other: bounds the memory for what lies between
        arguments and results.

    Returns
    -------
    callable

    Raises
    ------
    ShapeError
        When called: sizes that differ; IndexError: an axis that is not there.
    ValueError
        A prefix that does not fit; ``out_axes=None`` for a result that depends on the example, or
        with ``batch_size``; ``axis_name`` and ``batch_size`` together.

    Notes
    -----
    What does not depend on a mapped argument is computed once and not copied.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.vmap(lambda x, y: x * y, in_axes=(0, None))(tg.arange(3.0), 2.0)
    Array([0., 2., 4.], dtype=float64)
    """

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        title = f"vmap({name_of(fun)})"
        leaves: list[Any] = []
        spec = take_apart((args, kwargs), leaves)
        names = _names(fun, spec)
        axes = [
            *_argument_axes(title, in_axes, spec[2][0]),
            *spread(0, spec[2][1], f"{title}: in_axes"),
        ]
        axes = [
            None if axis is None else _axis_of(title, x, axis, name)
            for x, axis, name in zip(leaves, axes, names, strict=True)
        ]
        size = _common_size(title, leaves, axes, names, axis_size)
        if batch_size is not None:
            chunk = check_batch_size(title, batch_size, axis_name is not None)
            if chunk < size and any(axis is not None for axis in axes):
                return in_chunks(title, fun, spec, leaves, axes, out_axes, chunk)
        trace = Trace(title)
        with tracing(trace):
            stand_ins, places = _stand_ins(leaves, axes, names, trace)
            inner_args, inner_kwargs = put_together(spec, iter(stand_ins))
            with _named(axis_name, size, places, trace):
                result = fun(*inner_args, **inner_kwargs)
            out_leaves: list[Any] = []
            out_spec = take_apart(result, out_leaves)
            out_names = paths(out_spec, "the result")
            values = [
                output_value(x, f"{title}: {n}") for x, n in zip(out_leaves, out_names, strict=True)
            ]
        out = spread(out_axes, out_spec, f"{title}: out_axes")
        effects = living(trace.effects, places)
        found = batch([*values, *effects], places, size)
        if effects:
            found, tokens = found[: len(values)], found[len(values) :]
            perform_again([token for token, _ in tokens])
        arrays = [
            wrap(_placed(title, value, axis, place, size, name))
            for (value, axis), place, name in zip(found, out, out_names, strict=True)
        ]
        return put_together(out_spec, iter(arrays))

    return mapped


def _named(
    name: Any, size: int, places: dict[Value, tuple[Value, int]], trace: Trace
) -> AbstractContextManager[None]:
    """Bind the name of the axis, if it has one."""
    if name is None:
        return nullcontext()
    index = placeholder(TensorType((), int64), f"index along {name}", trace)
    places[index] = (iota((size,)), 0)
    return named_axis(name, index, size)


def _names(fun: Callable[..., Any], spec: Any) -> list[str]:
    positional, keywords = spec[2]
    names = argument_names(fun, len(positional[2]))
    found = [p for n, child in zip(names, positional[2], strict=True) for p in paths(child, n)]
    for name, child in zip(sorted(keywords[1]), keywords[2], strict=True):
        found.extend(paths(child, name))
    return found


def _argument_axes(title: str, in_axes: Any, spec: Any) -> list[int | None]:
    """One axis for each leaf of the positional arguments."""
    if isinstance(in_axes, tuple | list) and len(in_axes) != len(spec[2]):
        raise at_user_line(
            ValueError(
                f"{title}: in_axes: expected an entry for each of {len(spec[2])} positional "
                f"arguments, got {in_axes!r}"
            )
        )
    return spread(in_axes, spec, f"{title}: in_axes")


def _axis_of(title: str, x: Any, axis: int, name: str) -> int:
    """A mapped axis, counted from the front."""
    t = type_of(x, name)
    if not t.shape:
        raise at_user_line(
            ShapeError(
                f"{title}: argument {name}: expected an axis to map over, got {t}, which has none; "
                f"in_axes=None passes it whole to every example"
            )
        )
    return axis_index(f"{title}: in_axes of argument {name}", axis, t.ndim)


def _common_size(
    title: str, leaves: list[Any], axes: list[int | None], names: list[str], given: int | None
) -> int:
    """The one size of all mapped axes."""
    first: tuple[int, str] | None = None
    for x, axis, name in zip(leaves, axes, names, strict=True):
        if axis is None:
            continue
        t = type_of(x, name)
        size = t.shape[axis]
        shown = f"size {size} at axis {axis} of argument {name}: {t}"
        if first is None:
            first = (size, shown)
        elif size != first[0]:
            raise at_user_line(
                ShapeError(
                    f"{title}: expected one size for all mapped axes, got {first[1]} and {shown}; "
                    f"in_axes says which axes are mapped"
                )
            )
    if first is None:
        if given is None:
            raise at_user_line(
                ValueError(
                    f"{title}: expected a mapped argument, got none; in_axes maps one, axis_size= "
                    f"says how many examples there are without"
                )
            )
        return given
    if given is not None and given != first[0]:
        raise at_user_line(ShapeError(f"{title}: axis_size is {given}, but got {first[1]}"))
    return first[0]


def _stand_ins(
    leaves: list[Any], axes: list[int | None], names: list[str], trace: Trace
) -> tuple[list[Any], dict[Value, tuple[Value, int]]]:
    """Leaves with stand-ins for the mapped ones, and what each stands for."""
    stand_ins: list[Any] = []
    places: dict[Value, tuple[Value, int]] = {}
    for x, axis, name in zip(leaves, axes, names, strict=True):
        if axis is None:
            stand_ins.append(x)
            continue
        whole = lift_leaf(x)
        shape = whole.shape[:axis] + whole.shape[axis + 1 :]
        value = placeholder(TensorType(shape, whole.dtype), name, trace)
        places[value] = (whole, axis)
        stand_ins.append(wrap(value))
    return stand_ins, places


def _placed(
    title: str, value: Value, axis: int | None, place: int | None, size: int, name: str
) -> Value:
    """A batched result with the mapped axis where ``out_axes`` wants it."""
    if place is None:
        if axis is not None:
            raise at_user_line(
                ValueError(
                    f"{title}: out_axes=None for {name}, which is mapped: it depends on a "
                    f"mapped argument; give it an axis"
                )
            )
        return value
    ndim = value.ndim if axis is not None else value.ndim + 1
    target = axis_index(f"{title}: out_axes of {name}", place, ndim)
    if axis is not None:
        return moveaxis(value, axis, target)
    shape = (*value.shape[:target], size, *value.shape[target:])
    kept = tuple(d for d in range(ndim) if d != target)
    return broadcast(convert(value, value.dtype), shape, kept)
