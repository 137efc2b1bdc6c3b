"""Einstein summation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..graph import Value
from ..ops import dot, sum_
from ..ops.operands import as_value
from ..ops.shape import squeeze, transpose
from .arguments import fail, promoted
from .diagonals import diagonal

__all__ = ["einsum", "einsum_path"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
Term = tuple[Value, str]


def einsum(*operands: Any, optimize: Any = True, dtype: Any = None) -> Value:
    """Sum of products over named axes: ``einsum("ij,jk->ik", a, b)``.

    Parameters
    ----------
    operands
        The subscripts and the arrays, or arrays each followed by its list of axis numbers (and
        the list of the result at the end). ``...`` stands for axes that broadcast; a letter twice
        in one term takes the diagonal; without ``->`` the letters that occur once, in
        alphabetical order, are kept.
    optimize : bool, "greedy", "optimal" or a path
        The order of contraction; greedy by default.
    dtype : dtype, optional
        Convert the operands first.

    Notes
    -----
    Two operands at a time: axes that no other term needs are summed, the rest is one general dot
    product, so ``einsum`` costs what the products it stands for cost.

    Examples
    --------
    >>> import tilegrad as tg
    >>> x = tg.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> tg.einsum("ij,j->i", x, tg.asarray([1.0, -1.0]))
    Array([-1., -1.], dtype=float64)
    """
    inputs, output, arrays = _parse(operands)
    values = promoted(*arrays, dtype=dtype)
    terms = [_simplify(v, labels) for v, labels in zip(values, inputs, strict=True)]
    terms = _stretch(terms)
    for pick in _path(terms, output, optimize):
        chosen = [terms[i] for i in sorted(pick)]
        for i in sorted(pick, reverse=True):
            del terms[i]
        needed = set(output).union(*(labels for _, labels in terms))
        term = chosen[0]
        for other in chosen[1:-1]:
            term = _contract(term, other, needed | set(other[1]).union(*(c[1] for c in chosen)))
        if len(chosen) > 1:
            term = _contract(term, chosen[-1], needed)
        terms.append(term)
    value, labels = terms[0]
    value, labels = _sum_out(value, labels, set(output))
    return transpose(value, [labels.index(c) for c in output])


def einsum_path(*operands: Any, optimize: Any = "greedy") -> tuple[list[Any], str]:
    """The order of contraction and a description of its cost, as NumPy gives them."""
    inputs, output, arrays = _parse(operands)
    shapes = [as_value(a).shape for a in arrays]
    subscripts = ",".join(inputs) + "->" + output
    return np.einsum_path(subscripts, *(np.broadcast_to(0.0, s) for s in shapes), optimize=optimize)


# ------------------------------------------------------------------------------- subscripts


def _parse(operands: Sequence[Any]) -> tuple[list[str], str, list[Any]]:
    """Letters of each term and of the result, ``...`` spelled out; and the arrays."""
    if not operands:
        fail(ValueError("einsum: expected subscripts and arrays, got nothing"))
    if isinstance(operands[0], str):
        text, arrays = operands[0].replace(" ", ""), list(operands[1:])
    else:
        text, arrays = _from_lists(operands)
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(arrays):
        fail(ValueError(f"einsum: expected {len(inputs)} arrays for {text!r}, got {len(arrays)}"))
    unknown = set(left + right) - set(_LETTERS) - set(".,")
    if unknown or any(t.replace("...", "", 1).count(".") for t in (*inputs, right)):
        fail(ValueError(f"einsum: expected letters, ',', '...' and '->', got {text!r}"))
    ranks = [as_value(a).ndim for a in arrays]
    hidden = [n - len(t.replace("...", "")) for t, n in zip(inputs, ranks, strict=True)]
    for term, extra, array in zip(inputs, hidden, arrays, strict=True):
        if extra < 0 or (extra and "..." not in term):
            fail(
                ShapeError(
                    f"einsum: expected an array of {len(term.replace('...', ''))} axes for "
                    f"{term!r}, got {as_value(array).type}"
                )
            )
    width = max([n for n, t in zip(hidden, inputs, strict=True) if "..." in t], default=0)
    spare = [c for c in _LETTERS if c not in text]
    if len(spare) < width:
        fail(ValueError("einsum: expected fewer axes: there are no letters left"))
    ellipsis = "".join(spare[:width])
    inputs = [t.replace("...", ellipsis[width - n :]) for t, n in zip(inputs, hidden, strict=True)]
    if arrow:
        if width and "..." not in right:
            fail(ValueError(f"einsum: expected '...' in the result too, got {text!r}; sum first"))
        output = right.replace("...", ellipsis)
    else:
        joined = "".join(inputs)
        output = ellipsis + "".join(
            sorted(c for c in set(joined) if joined.count(c) == 1 and c not in ellipsis)
        )
    if len(set(output)) != len(output) or not set(output) <= set("".join(inputs)):
        fail(
            ValueError(
                f"einsum: expected each letter of the result {right!r} once, and in a term of "
                f"{left!r}"
            )
        )
    return inputs, output, arrays


def _from_lists(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """``einsum(a, [0, 1], b, [1, 2], [0, 2])`` as subscripts."""
    arrays, lists = list(operands[: len(operands) // 2 * 2 : 2]), list(operands[1::2])
    result = operands[-1] if len(operands) % 2 else None

    def letters(numbers: Any) -> str:
        return "".join("..." if n is Ellipsis else _LETTERS[int(n)] for n in numbers)

    text = ",".join(letters(part) for part in lists)
    return (text if result is None else f"{text}->{letters(result)}"), arrays


# ------------------------------------------------------------------------------ contraction


def _simplify(x: Value, labels: str) -> Term:
    """Repeated letters of one term: the diagonal, which goes to the last place."""
    while len(set(labels)) < len(labels):
        label = next(c for c in labels if labels.count(c) > 1)
        i = labels.index(label)
        j = labels.index(label, i + 1)
        if x.shape[i] != x.shape[j]:
            fail(
                ShapeError(
                    f"einsum: expected equal extents for {label!r}, got {x.shape[i]} and "
                    f"{x.shape[j]} in {x.type}"
                )
            )
        x = diagonal(x, 0, i, j)
        labels = "".join(c for k, c in enumerate(labels) if k not in (i, j)) + label
    return x, labels


def _stretch(terms: list[Term]) -> list[Term]:
    """Axes of extent 1 whose letter has another extent elsewhere are dropped: they broadcast."""
    extents: dict[str, int] = {}
    for x, labels in terms:
        for c, n in zip(labels, x.shape, strict=True):
            if extents.setdefault(c, n) == 1:
                extents[c] = n
            elif n not in (1, extents[c]):
                fail(ShapeError(f"einsum: expected one extent for {c!r}, got {extents[c]} and {n}"))
    result = []
    for x, labels in terms:
        thin = [d for d, c in enumerate(labels) if x.shape[d] == 1 != extents[c]]
        kept = "".join(c for d, c in enumerate(labels) if d not in thin)
        result.append((squeeze(x, thin) if thin else x, kept))
    return result


def _path(terms: list[Term], output: str, optimize: Any) -> list[tuple[int, ...]]:
    count = len(terms)
    if count <= 2:
        return [tuple(range(count))]
    if optimize is False:
        return [(0, 1)] * (count - 1) if count > 1 else [(0,)]
    subscripts = ",".join(labels for _, labels in terms) + "->" + output
    dummies = [np.broadcast_to(0.0, x.shape) for x, _ in terms]
    path, _ = np.einsum_path(subscripts, *dummies, optimize=optimize)
    return path[1:]


def _sum_out(x: Value, labels: str, needed: set[str]) -> Term:
    """Axes that nobody needs any more, summed."""
    axes = tuple(d for d, c in enumerate(labels) if c not in needed)
    if not axes:
        return x, labels
    total = sum_(x, axes) if x.dtype.kind in "iufc" and x.dtype.itemsize > 4 else _narrow(x, axes)
    return total, "".join(c for c in labels if c in needed)


def _narrow(x: Value, axes: tuple[int, ...]) -> Value:
    """Sum in the element type itself, as NumPy's einsum (bool: or)."""
    from ..ops import any_
    from ..ops.operands import convert

    return any_(x, axes) if x.dtype.is_bool else convert(sum_(x, axes), x.dtype)


def _contract(first: Term, second: Term, needed: set[str]) -> Term:
    """One general dot product; ``needed`` letters stay."""
    (x, left), (y, right) = first, second
    x, left = _sum_out(x, left, needed | set(right))
    y, right = _sum_out(y, right, needed | set(left))
    both = [c for c in left if c in right]
    batch = [c for c in both if c in needed]
    summed = [c for c in both if c not in needed]
    product = dot(
        x,
        y,
        contract=(tuple(map(left.index, summed)), tuple(map(right.index, summed))),
        batch=(tuple(map(left.index, batch)), tuple(map(right.index, batch))),
    )
    free = [c for c in left + right if c not in both]
    return product, "".join(batch + free)
