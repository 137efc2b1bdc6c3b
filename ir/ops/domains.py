"""Where the tests of elementwise ops draw their operands: inside the domain, away from kinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["SIZE", "between", "draw", "with_params"]

SIZE = 12


def draw(rng: Any, dtype: Any, low: float, high: float, *, signed: bool = False) -> Any:
    """``SIZE`` values of ``dtype`` in ``[low, high]``; ``signed`` gives each a random sign.

    Both parts of a complex value are drawn so. Bounds are cut to what an integer type holds.
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, SIZE) > 0
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        first, last = max(int(np.ceil(low)), info.min), min(int(np.floor(high)), info.max)
        x = rng.integers(min(first, last), last, SIZE, dtype=np.int64, endpoint=True)
        return (np.where(rng.integers(0, 2, SIZE) > 0, x, -x) if signed and info.min else x).astype(
            dtype
        )
    if dtype.kind == "c":
        parts = np.dtype(f"f{dtype.itemsize // 2}")
        return (
            draw(rng, parts, low, high, signed=signed)
            + draw(rng, parts, low, high, signed=signed) * dtype.type(1j)
        ).astype(dtype)
    x = rng.uniform(low, high, SIZE)
    return (np.where(rng.integers(0, 2, SIZE) > 0, x, -x) if signed else x).astype(dtype)


def between(*ranges: tuple[float, float], signed: bool = False) -> Callable[..., Any]:
    """A ``samples`` field: one ``(low, high)`` an operand."""

    def samples(rng: Any, dtype: Any) -> tuple[Any, ...]:
        return tuple(draw(rng, dtype, *r, signed=signed) for r in ranges)

    return samples


def with_params(samples: Callable[..., Any], *params: dict[str, Any]) -> Callable[..., Any]:
    """A ``samples`` field of an op with params: pairs of operands and params."""

    def pairs(rng: Any, dtype: Any) -> Any:
        for chosen in params:
            yield samples(rng, dtype), chosen

    return pairs
