"""``vmap`` by chunks: some examples at once, one chunk after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.location import at_user_line
from ..ir.ops.shape import axis_index, moveaxis
from .array import evaluate, wrap
from .namespace import concatenate
from .regions import is_traced
from .signature import lift_leaf
from .tree import map as map_tree
from .tree import paths, put_together, spread, take_apart

__all__ = ["check_batch_size", "in_chunks"]


def check_batch_size(title: str, given: Any, named: bool) -> int:
    """The number of examples of a chunk."""
    if not isinstance(given, int) or given < 1:
        raise at_user_line(
            ValueError(f"{title}: batch_size: expected a whole number of 1 or more, got {given!r}")
        )
    if named:
        raise at_user_line(
            ValueError(
                f"{title}: expected axis_name or batch_size, got both: what is said of all "
                f"examples along an axis needs all of them at once"
            )
        )
    return given


def in_chunks(
    title: str,
    fun: Callable[..., Any],
    spec: Any,
    leaves: Sequence[Any],
    axes: Sequence[int | None],
    out_axes: Any,
    chunk: int,
) -> Any:
    """:func:`~.vmap.vmap` of ``fun``, ``chunk`` examples at once.

    ``spec`` and ``leaves`` are those of ``(args, kwargs)``, ``axes`` one a leaf, at least one
    mapped.
    """
    from .loops import map_  # loops map their chunks
    from .vmap import vmap

    mapped = [k for k, axis in enumerate(axes) if axis is not None]
    xs = [moveaxis(lift_leaf(leaves[k]), axes[k] or 0, 0) for k in mapped]

    def one(slices: Sequence[Any]) -> Any:
        whole = list(leaves)
        for k, x in zip(mapped, slices, strict=True):
            whole[k] = x
        args, kwargs = put_together(spec, iter(whole))
        return fun(*args, **kwargs)

    arrays = [wrap(x) for x in xs]
    if is_traced(xs):
        ys = map_(one, arrays, batch_size=chunk)
    else:  # the results of a chunk are computed before the next one begins
        parts = [
            evaluate(vmap(one)([x[at : at + chunk] for x in arrays]))
            for at in range(0, xs[0].shape[0], chunk)
        ]
        ys = map_tree(lambda *some: concatenate(some), *parts)
    results: list[Any] = []
    out_spec = take_apart(ys, results)
    places = spread(out_axes, out_spec, f"{title}: out_axes")
    placed = []
    for y, place, name in zip(results, places, paths(out_spec, "the result"), strict=True):
        if place is None:
            raise at_user_line(
                ValueError(
                    f"{title}: out_axes=None for {name}: with batch_size every result is mapped; "
                    f"give it an axis"
                )
            )
        target = axis_index(f"{title}: out_axes of {name}", place, y.ndim)
        placed.append(wrap(moveaxis(y._value, 0, target)))
    return put_together(out_spec, iter(placed))
