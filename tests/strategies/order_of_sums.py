"""A slow reading of the text of numerics 7, to compare sums with bit for bit.

    The order of every reduction is fixed by shape alone: 16 lanes, blocks of 1024, pairwise above.

Element ``k`` of a block goes to lane ``k % 16``; the lanes of a block combine ``l`` with ``l + 8``,
then 4, 2, 1; ``n`` blocks are the first ``p`` and the rest, ``p`` the largest power of two below
``n``. float32 accumulates in float64 and rounds once.
"""

from __future__ import annotations

import numpy as np

WIDE = {"f4": "f8", "c8": "c16"}


def in_order(values, merge, identity):
    """The reduction of axis 0 of ``values``, one element at a time, in the order of the text."""
    if len(values) <= 1024:
        lanes = [np.full(values.shape[1:], identity, values.dtype) for _ in range(16)]
        for k, element in enumerate(values):
            lanes[k % 16] = merge(lanes[k % 16], element)
        for half in (8, 4, 2, 1):
            lanes = [merge(lanes[k], lanes[k + half]) for k in range(half)]
        return lanes[0]
    blocks = -(-len(values) // 1024)
    first = 1 << (blocks - 1).bit_length() - 1
    parts = values[: first * 1024], values[first * 1024 :]
    return merge(*(in_order(part, merge, identity) for part in parts))


def reduced(x, axes, merge, identity):
    """``in_order`` over ``axes``, row-major, in the accumulator of the dtype of ``x``."""
    kept = [d for d in range(x.ndim) if d not in axes]
    count = int(np.prod([x.shape[d] for d in axes]))
    values = np.transpose(x, (*axes, *kept)).reshape(count, *(x.shape[d] for d in kept))
    wide = values.astype(WIDE.get(x.dtype.str[1:], x.dtype))
    with np.errstate(all="ignore"):
        return np.asarray(in_order(wide, merge, identity)).astype(x.dtype)


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)
    if dtype.startswith("c"):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)
