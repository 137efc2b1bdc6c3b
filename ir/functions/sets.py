"""Distinct elements. The data must be known; values keep their derivatives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..dtypes import bool_, int64
from ..graph import Value
from ..ops import eq, logical_and, logical_not, lt, minimum, sort
from ..ops.leaves import constant
from ..ops.operands import as_value
from ..ops.shape import broadcast, reshape
from .arguments import one_axis, promoted
from .concrete import concrete
from .indexing import take
from .joining import concatenate
from .searching import searchsorted

__all__ = [
    "UniqueAll",
    "UniqueCounts",
    "UniqueInverse",
    "intersect1d",
    "isin",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAll(NamedTuple):
    """Result of :func:`unique_all`."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """Result of :func:`unique_counts`."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """Result of :func:`unique_inverse`."""

    values: Any
    inverse_indices: Any


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """The sorted distinct elements (or slices along ``axis``) of a known array.

    ``return_index``, ``return_inverse`` and ``return_counts`` add first places, the place of each
    element among the distinct ones, and how often each occurs. Values are read at their first
    places, so derivatives flow to those.

    Examples
    --------
    >>> import tilegrad as tg
    >>> values, counts = tg.unique(tg.asarray([3, 1, 3]), return_counts=True)
    >>> values, counts
    (Array([1, 3], dtype=int64), Array([1, 2], dtype=int64))
    """
    x = as_value(ar)
    data = concrete("unique", "ar", x)
    _, first, inverse, counts = np.unique(data, True, True, True, axis=axis, equal_nan=equal_nan)
    d = None if axis is None else one_axis("unique", axis, x.ndim)
    results = [take(x, constant(first, int64), d)]
    for wanted, extra in (
        (return_index, first),
        (return_inverse, inverse),
        (return_counts, counts),
    ):
        if wanted:
            results.append(constant(extra, int64))
    return results[0] if len(results) == 1 else tuple(results)


def unique_values(x: Any) -> Value:
    """The distinct elements (Array API: every NaN is distinct)."""
    return unique(x, equal_nan=False)  # type: ignore[no-any-return]


def unique_counts(x: Any) -> UniqueCounts:
    """The distinct elements and how often they occur."""
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any) -> UniqueInverse:
    """The distinct elements and the place of each element among them."""
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False))


def unique_all(x: Any) -> UniqueAll:
    """The distinct elements, their first places, the inverse, and their counts."""
    return UniqueAll(*unique(x, True, True, True, equal_nan=False))


def isin(element: Any, test_elements: Any, *, invert: bool = False) -> Value:
    """Whether each element is one of ``test_elements``. Both may be traced."""
    x, tests = promoted(element, test_elements)
    count = tests.size
    if count == 0:
        return broadcast(constant(invert, bool_), x.shape, ())
    ordered = sort(reshape(tests, (count,)))
    place = searchsorted(ordered, x)
    hit = logical_and(lt(place, count), eq(take(ordered, minimum(place, count - 1)), x))
    return logical_not(hit) if invert else hit


def _flat(x: Any) -> Value:
    value = as_value(x)
    return reshape(value, (value.size,))


def union1d(ar1: Any, ar2: Any) -> Value:
    """The sorted distinct elements of two known arrays together."""
    return unique(concatenate((_flat(ar1), _flat(ar2))))  # type: ignore[no-any-return]


def _chosen(name: str, x: Value, keep: Any) -> Value:
    places = np.flatnonzero(concrete(name, "the arrays", as_value(keep)))
    return take(x, constant(places, int64), 0)


def intersect1d(ar1: Any, ar2: Any) -> Value:
    """The sorted distinct elements that are in both known arrays."""
    first, second = promoted(unique(ar1), ar2)
    return _chosen("intersect1d", first, isin(first, second))


def setdiff1d(ar1: Any, ar2: Any) -> Value:
    """The sorted distinct elements of ``ar1`` that are not in ``ar2`` (both known)."""
    first = unique(ar1)
    return _chosen("setdiff1d", first, isin(first, ar2, invert=True))


def setxor1d(ar1: Any, ar2: Any) -> Value:
    """The sorted distinct elements that are in exactly one of two known arrays."""
    first, second = promoted(unique(ar1), unique(ar2))
    return unique(  # type: ignore[no-any-return]
        concatenate((setdiff1d(first, second), setdiff1d(second, first)))
    )
