"""A long random program with its gradient: what compiling costs a node."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from .sides import Side

__all__ = ["deep_net", "deep_point"]

ROWS, COLUMNS = 16, 24


def deep_net(side: Side, layers: int) -> Any:
    """Loss and gradient of a net of random elementwise and reduction layers.

    A layer takes the last activation ``h`` and an earlier one; about every fourth reduces over rows
    or columns. 300 layers with their gradient are 4900 nodes of our optimized graph and 5900
    equations of JAX's.
    """
    m = side.m

    def centred(h: Any, axis: int) -> Any:
        return h - m.mean(h, axis=axis, keepdims=True)

    def scaled(h: Any, axis: int) -> Any:
        return h / m.sqrt(1.0 + m.sum(h * h, axis=axis, keepdims=True))

    def loss(p: Any, x: Any) -> Any:
        draw = random.Random(0)
        kinds = (
            lambda h, g, w: m.tanh(h * w + g),
            lambda h, g, w: m.sin(h + g * w),
            lambda h, g, w: h / (1.0 + g * g) + w,
            lambda h, g, w: m.exp(-(h * h)) * w - g,
            lambda h, g, w: m.where(h > 0.0, h, 0.1 * g) * w,
            lambda h, g, w: m.sqrt(1.0 + h * h) - m.abs(g * w),
            lambda h, g, w: centred(h, 0) * w + g,
            lambda h, g, w: scaled(h + g * w, 1),
        )
        seen = [x]
        for k in range(layers):
            earlier = seen[draw.randrange(max(0, len(seen) - 8), len(seen))]
            seen.append(draw.choice(kinds)(seen[-1], earlier, p[k % len(p)]))
        return m.mean(seen[-1] ** 2)

    return side.value_and_grad(loss)


def deep_point() -> tuple[Any, ...]:
    """Parameters (rows of factors) and an input."""
    rng = np.random.default_rng(0)
    return list(rng.normal(size=(8, COLUMNS))), rng.normal(size=(ROWS, COLUMNS))
