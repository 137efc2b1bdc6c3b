"""Large blocks are used again when nobody refers to them, and never while somebody does."""

from __future__ import annotations

import numpy as np
import pytest

from tilegrad.kernels import storage
from tilegrad.kernels.storage import LARGE, block, new_array, release


@pytest.fixture(autouse=True)
def _nothing_kept():
    release()
    yield
    release()


def address(array):
    return array.__array_interface__["data"][0]


def made(count=2 * LARGE // 8):
    return new_array((2, count // 2), np.dtype(float), 8 * count)


def test_a_free_block_is_used_again():
    first = made()
    place = address(first)
    assert first.shape == (2, LARGE // 8)
    del first
    assert address(made()) == place


@pytest.mark.parametrize(
    "user", [lambda a: a, lambda a: a[1:, ::3], lambda a: a.T.view(np.int64), memoryview]
)
def test_a_block_in_use_is_not(user):
    first = made()
    place = address(first)
    held = user(first)
    del first
    assert address(made()) != place
    del held
    assert address(made()) == place


def test_another_size_gets_another_block():
    first = block(LARGE)
    place = address(first)
    del first
    assert block(2 * LARGE).nbytes == 2 * LARGE
    assert address(block(LARGE)) == place


def test_small_blocks_are_not_kept():
    made(10)
    assert storage._blocks == []


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(storage, "KEPT", 3 * LARGE)
    for extra in range(6):
        block(LARGE + extra)
    assert sum(b.nbytes for b in storage._blocks) <= 3 * LARGE
    assert len(storage._blocks) == 2
