"""Colourings: which columns of a sparse matrix one directional derivative may compute at once.

Two columns without a row in common can be told apart in the sum of both: a colouring of the columns
whose members have pairwise no row in common needs a pass for each colour (Curtis, Powell, Reid, On
the estimation of sparse Jacobian matrices, 1974). In a symmetric matrix an element may be read at
either of its two places: a *star colouring* of its graph, in which every path of four vertices has
three colours at least, is enough (Gebremedhin, Tarafdar, Manne, Pothen, New acyclic and star
coloring algorithms with application to computing Hessians, 2007).

Both are greedy: vertices in turn get the first colour that is free. What is not free is kept as a
bit set for each row or vertex, so that the time is linear in the number of entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["colored_columns", "rows_of", "star_colored", "star_places"]

Pattern = Any
Colors = np.ndarray[Any, Any]


def rows_of(pattern: Pattern) -> np.ndarray[Any, Any]:
    """The row of each entry of a CSR matrix."""
    return np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))


def colored_columns(pattern: Pattern) -> Colors:
    """A colour for each column, such that no row has two entries in columns of one colour.

    Columns are taken as they come, which is best for bands, and, if that is not perfect, those with
    most entries first; the better result counts.
    """
    columns = pattern.tocsc()
    indptr, indices = columns.indptr.tolist(), columns.indices.tolist()
    most = int(np.diff(pattern.indptr).max(initial=0))  # entries of one row need so many
    natural = _greedy(pattern.shape, indptr, indices, range(pattern.shape[1]))
    if natural.max(initial=-1) + 1 <= max(most, 1):
        return natural
    degree = np.diff(columns.indptr)
    other = _greedy(pattern.shape, indptr, indices, np.argsort(-degree, kind="stable").tolist())
    return other if other.max() < natural.max() else natural


def _greedy(shape: tuple[int, int], indptr: list[int], indices: list[int], order: Any) -> Colors:
    used = [0] * shape[0]  # the colours of each row
    colors = np.zeros(shape[1], np.int64)
    for j in order:
        rows = indices[indptr[j] : indptr[j + 1]]
        taken = 0
        for i in rows:
            taken |= used[i]
        bit = ~taken & (taken + 1)  # the lowest that is not set
        colors[j] = bit.bit_length() - 1
        for i in rows:
            used[i] |= bit
    return colors


def star_colored(pattern: Pattern) -> Colors:
    """A star colouring of a symmetric pattern, by rows and columns; its diagonal does not matter.

    Vertices with most neighbours come first, so that the hub of an arrow has a colour of its own
    and all others share one.
    """
    n = pattern.shape[0]
    indptr, indices = pattern.indptr.tolist(), pattern.indices.tolist()
    color = [-1] * n
    beside = [0] * n  # colours among the neighbours
    # Colours of neighbours x of w that have a second neighbour of the colour of w: a vertex beside
    # w with such a colour would end a path v w x y of two colours.
    danger = [0] * n
    first: list[dict[int, int]] = [{} for _ in range(n)]  # of each colour the first neighbour
    degree = np.diff(pattern.indptr)
    for v in np.argsort(-degree, kind="stable").tolist():
        neighbours = [w for w in indices[indptr[v] : indptr[v + 1]] if w != v]
        taken = 0
        for w in neighbours:
            # Beside a vertex without a colour no colour comes twice: whatever it gets, it is the
            # middle of no path of two colours.
            taken |= beside[w] if color[w] < 0 else (1 << color[w]) | danger[w]
        bit = ~taken & (taken + 1)
        c = color[v] = bit.bit_length() - 1
        for x in neighbours:
            beside[x] |= bit
            other = first[x].setdefault(c, v)
            if other != v and color[x] >= 0:
                danger[other] |= 1 << color[x]
                danger[v] |= 1 << color[x]
    return np.array(color, np.int64)


def star_places(pattern: Pattern, colors: Colors) -> tuple[np.ndarray[Any, Any], ...]:
    """Where each entry of a symmetric matrix is read: colour and row of the compressed one.

    Entry ``(i, j)`` stands alone in row ``i`` among the columns of the colour of ``j``, or else in
    row ``j`` among those of the colour of ``i``.
    """
    rows, columns = rows_of(pattern), pattern.indices
    keys = rows.astype(np.int64) * (int(colors.max(initial=0)) + 1) + colors[columns]
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    alone = counts[inverse] == 1
    return np.where(alone, colors[columns], colors[rows]), np.where(alone, rows, columns)
