"""Convolution and correlation of vectors."""

from __future__ import annotations

from typing import Any

from ..graph import Value
from ..ops import conj, sum_
from ..ops.leaves import iota
from ..ops.operands import convert
from ..ops.shape import broadcast
from ..ops.slicing import flip, pad, slice_axis
from .arguments import fail, promoted
from .indexing import take
from .manipulation import ravel

__all__ = ["convolve", "correlate"]

# Elements of the windows that are held at once.
_ELEMENTS = 2**20


def convolve(a: Any, v: Any, mode: str = "full") -> Value:
    """Convolution of two vectors: ``sum_k a[k] v[n - k]``.

    ``mode``: "full" (every overlap), "same" (as long as the longer one) or "valid" (full overlap).
    """
    x, y = (ravel(w) for w in promoted(a, v))
    if not x.size or not y.size:
        fail(ValueError("convolve: expected vectors that are not empty"))
    if y.size > x.size:
        x, y = y, x
    return _slide(x, flip(y), mode, "convolve")


def correlate(a: Any, v: Any, mode: str = "valid") -> Value:
    """Correlation of two vectors: ``sum_k a[n + k] conj(v[k])``; modes as in :func:`convolve`."""
    x, y = (ravel(w) for w in promoted(a, v))
    if not x.size or not y.size:
        fail(ValueError("correlate: expected vectors that are not empty"))
    y = conj(y) if y.dtype.is_complex else y
    if y.size > x.size:  # the roles change, and with them the direction
        return flip(_slide(y, x, mode, "correlate"))
    return _slide(x, y, mode, "correlate")


def _slide(x: Value, kernel: Value, mode: str, name: str) -> Value:
    """Sums of ``kernel`` against every window of ``x`` (the longer one)."""
    width = kernel.size
    edges = {"full": (width - 1, width - 1), "valid": (0, 0), "same": (width // 2, 0)}
    if mode not in edges:
        fail(ValueError(f"{name}: expected mode 'full', 'same' or 'valid', got {mode!r}"))
    low, high = edges[mode]
    if mode == "same":
        high = width - 1 - low
    x = pad(x, 0, [low], [high])
    count = x.size - width + 1
    # Windows of the kernel, piece by piece: where they are not fused away they take memory.
    step = max(4, _ELEMENTS // max(count, 1))
    total: Value | None = None
    for start in range(0, width, step):
        piece = slice_axis(kernel, 0, start, start + step)
        shape = (count, piece.size)
        windows = take(x, iota(shape, 0) + (iota(shape, 1) + start), 0)
        term = sum_(windows * broadcast(piece, shape, (1,)), (1,))
        total = term if total is None else total + term
    assert total is not None  # neither vector is empty
    return convert(total, x.dtype)
