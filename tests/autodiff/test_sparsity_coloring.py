"""Colourings: valid on random patterns, small on known ones."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tilegrad.autodiff.sparsity_coloring import (
    colored_columns,
    rows_of,
    star_colored,
    star_places,
)


def csr(dense: Any) -> Any:
    return sparse.csr_array(np.asarray(dense, bool))


def banded(n: int, below: int, above: int) -> Any:
    offsets = range(-below, above + 1)
    return sparse.diags_array([np.ones(n - abs(k)) for k in offsets], offsets=offsets).tocsr() != 0


def grid(n: int) -> Any:
    line = banded(n, 1, 1).astype(float)
    one = sparse.eye_array(n)
    return (sparse.kron(line, one) + sparse.kron(one, line)).tocsr() != 0


def count(colors: Any) -> int:
    return int(colors.max()) + 1


@pytest.mark.parametrize("seed", range(5))
def test_columns_of_one_colour_share_no_row(seed: int) -> None:
    pattern = csr(np.random.default_rng(seed).random((40, 30)) < 0.08)
    colors = colored_columns(pattern)
    dense = pattern.toarray()
    for c in range(count(colors)):
        assert dense[:, colors == c].sum(axis=1).max() <= 1


@pytest.mark.parametrize(("below", "above"), [(0, 0), (1, 1), (2, 0), (3, 2)])
def test_bands_need_as_many_colours_as_they_are_wide(below: int, above: int) -> None:
    assert count(colored_columns(banded(50, below, above))) == below + above + 1


def test_known_numbers_of_colours() -> None:
    assert count(colored_columns(csr(np.eye(9)))) == 1
    assert count(colored_columns(csr(np.ones((3, 7))))) == 7
    assert count(colored_columns(csr(np.zeros((3, 7))))) == 1
    # Five are needed at least; greedy is not perfect here.
    assert 5 <= count(colored_columns(grid(12))) <= 8


def symmetric(seed: int, n: int = 25) -> Any:
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < 0.12)
    return csr(upper | upper.T | np.eye(n, dtype=bool))


@pytest.mark.parametrize("seed", range(8))
def test_no_path_of_four_has_two_colours(seed: int) -> None:
    pattern = symmetric(seed)
    colors = star_colored(pattern)
    dense = pattern.toarray() & ~np.eye(pattern.shape[0], dtype=bool)
    near = [np.flatnonzero(row).tolist() for row in dense]
    for a in range(len(near)):
        for b in near[a]:
            assert colors[a] != colors[b]
            for c in near[b]:
                for d in near[c]:
                    if len({a, b, c, d}) == 4:
                        assert len({colors[v] for v in (a, b, c, d)}) > 2


@pytest.mark.parametrize("seed", range(8))
def test_symmetric_matrices_come_back(seed: int) -> None:
    pattern = symmetric(seed)
    rng = np.random.default_rng(seed)
    whole = rng.standard_normal(pattern.shape)
    whole = np.where(pattern.toarray(), whole + whole.T, 0)
    colors = star_colored(pattern)
    compressed = np.stack([whole[:, colors == c].sum(axis=1) for c in range(count(colors))])
    color, row = star_places(pattern, colors)
    got = compressed[color, row]
    np.testing.assert_array_equal(got, whole[rows_of(pattern), pattern.indices])


def test_stars_are_cheap() -> None:
    n = 40
    arrow = np.eye(n, dtype=bool)
    arrow[0] = arrow[:, 0] = True
    assert count(star_colored(csr(arrow))) == 2
    assert count(colored_columns(csr(arrow))) == n
    assert count(star_colored(banded(n, 1, 1))) == 3
    assert count(star_colored(csr(np.eye(n)))) == 1
