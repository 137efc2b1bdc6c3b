"""``associative_scan``: running combinations in a logarithmic number of vector steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.errors import ShapeError
from ..ir.functions.arguments import axis_index
from ..ir.location import at_user_line
from .array import Array, wrap
from .namespace import concatenate, flip, stack
from .regions import Leaves, as_leaves, check_like
from .tree import leaves as leaves_of

__all__ = ["associative_scan"]

Combine = Callable[[Any, Any], Any]


def associative_scan(fn: Combine, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Element ``k`` is the combination of the elements 0 to ``k`` along ``axis``.

    Parameters
    ----------
    fn : callable
        ``fn(a, b)`` of trees like ``elems``, with any extent along ``axis``, to such a tree;
        elementwise along that axis, and associative: that is not checked.
    elems : pytree
        Arrays of one extent along ``axis``.
    reverse : bool
        From the end: element ``k`` combines those from the last down to ``k``, in that order.
    axis : int

    Returns
    -------
    pytree
        Like ``elems``.

    Raises
    ------
    ShapeError
        If the extents along ``axis`` differ.
    TypeError, ShapeError, DTypeError
        If ``fn`` returns something unlike its arguments.

    Notes
    -----
    Combines neighbours, scans half as many, and combines those with what lies between (Blelloch,
    Prefix sums and their applications, 1990): less than ``2 n`` combinations in about ``2 log2(n)``
    calls of ``fn``. The grouping differs from a loop's, so floating-point results do in rounding.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.associative_scan(tg.maximum, tg.asarray([1.0, 3.0, 2.0, 5.0]))
    Array([1., 3., 3., 5.], dtype=float64)
    """
    given = as_leaves(elems, "elems")
    arrays = [wrap(x) for x in given.values]
    if not arrays:
        return elems
    axes = [axis_index("associative_scan: axis", axis, x.ndim) for x in arrays]
    extents = [x.shape[a] for x, a in zip(arrays, axes, strict=True)]
    for name, x, n in zip(given.names, given.values, extents, strict=True):
        if n != extents[0]:
            raise at_user_line(
                ShapeError(
                    f"associative_scan: {name}: expected {extents[0]} elements along axis {axis}, "
                    f"as {given.names[0]} has, got {x.type}"
                )
            )
    scan = _Scan(fn, given, axes)
    if reverse:
        arrays = [flip(x, axis=a) for x, a in zip(arrays, axes, strict=True)]
    arrays = scan.run(arrays, extents[0])
    if reverse:
        arrays = [flip(x, axis=a) for x, a in zip(arrays, axes, strict=True)]
    return given.tree([x._value for x in arrays])


class _Scan:
    def __init__(self, fn: Combine, given: Leaves, axes: list[int]) -> None:
        self.fn = fn
        self.given = given
        self.axes = axes

    def part(self, arrays: list[Array], *slices: int | None) -> list[Array]:
        """``arrays[slice(...)]`` along the axis."""
        return [
            x[(slice(None),) * a + (slice(*slices),)]
            for x, a in zip(arrays, self.axes, strict=True)
        ]

    def combined(self, x: list[Array], y: list[Array]) -> list[Array]:
        a, b = (self.given.tree([v._value for v in arrays]) for arrays in (x, y))
        result = self.fn(a, b)
        expected = as_leaves(a, "elems")
        check_like("associative_scan", "a combination", expected, as_leaves(result, "elems"))
        return [wrap(v) for v in as_leaves(leaves_of(result), "elems").values]

    def run(self, arrays: list[Array], count: int) -> list[Array]:
        """The scan of ``count`` elements; halves go down and come back up, without recursion."""
        levels: list[tuple[list[Array], int]] = []
        while count > 1:
            levels.append((arrays, count))
            even = self.part(arrays, 0, count - count % 2, 2)
            odd = self.part(arrays, 1, None, 2)
            arrays, count = self.combined(even, odd), count // 2
        for given, total in reversed(levels):
            # ``arrays`` are the results at the odd places.
            first = self.part(given, 0, 1)
            if total > 2:
                between = self.part(given, 2, None, 2)
                before = self.part(arrays, 0, (total - 1) // 2)
                later = self.combined(before, between)
                even = [
                    concatenate([a, b], axis=d)
                    for a, b, d in zip(first, later, self.axes, strict=True)
                ]
            else:
                even = first
            arrays = [
                _interleaved(a, b, d) for a, b, d in zip(even, arrays, self.axes, strict=True)
            ]
        return arrays


def _interleaved(even: Array, odd: Array, axis: int) -> Array:
    """``even[0], odd[0], even[1], ...`` along the axis."""
    count = odd.shape[axis]
    front = (slice(None),) * axis
    pairs = stack([even[(*front, slice(0, count))], odd], axis=axis + 1)
    shape = (*even.shape[:axis], 2 * count, *even.shape[axis + 1 :])
    whole = pairs.reshape(shape)
    rest = even[(*front, slice(count, None))]
    return concatenate([whole, rest], axis=axis) if even.shape[axis] > count else whole
