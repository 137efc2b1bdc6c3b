"""Sorting along an axis with NumPy's vectorized sorts, stable all the same.

*Values.* NumPy's default sort is not stable, which shows in two cases only: zeros of both signs are
equal, and so are NaNs of all payloads. Both are put back in the order they came in.

*Places.* A stable order is a sort of pairs (value, place). Values map to integers in the same
order, their low bits give way to the place, and one sort of words does it. Bits that were cut off
matter where values agree in all others; there the order is corrected by a stable sort of what is
then nearly sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .lines import Lines, Scratch, pieces_of, share

__all__ = ["argsort", "sort", "top_places"]

Array = np.ndarray[Any, Any]
_INTEGERS: dict[int, type[np.int32] | type[np.int64]] = {4: np.int32, 8: np.int64}


def sort(x: Array, out: Array, threads: int, *, axis: int, descending: bool) -> None:
    """``out`` becomes ``x`` in order along ``axis``; NaN last in either direction."""
    turned = descending and x.dtype.kind == "f"

    def one(source: Array, target: Array, scratch: Scratch) -> None:
        direct = target.flags.c_contiguous
        block = target if direct else scratch.array("block", source.shape, source.dtype)
        if turned:
            np.negative(source, out=block)
        else:
            block[...] = source
        block.sort(axis=-1)
        if turned:
            np.negative(block, out=block)
        elif descending:
            block[...] = block[:, ::-1].copy()
        if block.dtype.kind == "f":
            _restore_equals(source, block)
        if not direct:
            target[...] = block

    _by_lines(one, x, out, axis, threads)


def _restore_equals(source: Array, block: Array) -> None:
    """Zeros and NaNs of a sorted block as they came: each line has as many as before.

    A mask walks both matrices line by line, so the k-th one of a line meets the k-th.
    """
    integer = _INTEGERS[source.itemsize]
    if (source.view(integer) == np.iinfo(integer).min).any():  # -0.0
        block[block == 0] = source[source == 0]
    if np.isnan(block[:, -1]).any():
        block[np.isnan(block)] = source[np.isnan(source)]


def argsort(x: Array, out: Array, threads: int, *, axis: int, descending: bool) -> None:
    """``out`` (int64) becomes the places that sort ``x`` along ``axis``, stably; NaN last."""

    def one(source: Array, target: Array, scratch: Scratch) -> None:
        target[...] = _places(_keys(source, descending, scratch), source.itemsize, scratch)

    _by_lines(one, x, out, axis, threads)


def top_places(x: Array, out: Array, threads: int, *, axis: int, k: int) -> None:
    """``out`` becomes the first ``k`` places of the descending order along ``axis``."""

    def one(source: Array, target: Array, scratch: Scratch) -> None:
        target[...] = _first_places(_keys(source, True, scratch), source.itemsize, k, scratch)

    _by_lines(one, x, out, axis, threads)


def _by_lines(
    one: Callable[[Array, Array, Scratch], None], x: Array, out: Array, axis: int, threads: int
) -> None:
    """``one(source, target, scratch)`` for each piece; ``out`` may be shorter along the axis."""
    if not out.size:
        return
    sources, targets = Lines(x, axis), Lines(out, axis)

    def work(pieces: Iterator[tuple[int, int, int]]) -> None:
        scratch = Scratch()
        for piece in pieces:
            one(sources.view(piece), targets.view(piece), scratch)

    share(work, pieces_of(x.shape, axis), x.nbytes, threads)


# ------------------------------------------------------------------------------------- keys


def _keys(x: Array, descending: bool, scratch: Scratch) -> Array:
    """int64 in the order of ``x``: equal where it is equal, NaN the largest."""
    keys = scratch.array("keys", x.shape, np.int64)
    if x.dtype.kind == "f":
        _float_keys(x, keys, descending, scratch)
        return keys
    if x.dtype == np.uint64:
        np.bitwise_xor(x.view(np.int64), np.iinfo(np.int64).min, out=keys)
    else:
        keys[...] = x
    return np.invert(keys, out=keys) if descending else keys


def _float_keys(x: Array, keys: Array, descending: bool, scratch: Scratch) -> None:
    """Of IEEE bits, negative numbers fall where the bits rise: they are turned round.

    -0.0 comes out as -1 then, and joins +0.0 at 0; what lies beyond the infinities is NaN.
    """
    integer = _INTEGERS[x.itemsize]
    largest = np.iinfo(integer).max
    bits = x.view(integer)
    turn = scratch.array("turn", x.shape, integer)
    np.right_shift(bits, 8 * x.itemsize - 1, out=turn)
    np.bitwise_and(turn, largest, out=turn)
    np.bitwise_xor(bits, turn, out=turn)
    keys[...] = turn
    flags = scratch.array("flags", x.shape, np.bool_)
    np.add(keys, np.equal(keys, -1, out=flags), out=keys)
    infinity = int(np.array(np.inf, x.dtype).view(integer))
    nan = np.greater(keys, infinity, out=flags)
    np.logical_or(nan, keys < ~infinity, out=nan)
    if descending:
        np.invert(keys, out=keys)
    if nan.any():
        keys[nan] = largest


# ----------------------------------------------------------------------------------- places


def _words(keys: Array, itemsize: int, scratch: Scratch) -> tuple[Array, int]:
    """Keys with the place in the low bits, and the mask of these bits."""
    extent = keys.shape[-1]
    bits = max(extent - 1, 1).bit_length()
    mask = (1 << bits) - 1
    words = scratch.array("words", keys.shape, np.int64)
    if _fits(itemsize, bits):
        np.left_shift(keys, bits, out=words)
    else:
        np.bitwise_and(keys, ~mask, out=words)
    return np.bitwise_or(words, np.arange(extent), out=words), mask


def _fits(itemsize: int, bits: int) -> bool:
    """Whether keys of this many bytes leave room for a place."""
    return 8 * itemsize + bits < 64


def _places(keys: Array, itemsize: int, scratch: Scratch) -> Array:
    words, mask = _words(keys, itemsize, scratch)
    words.sort(axis=-1)
    words &= mask
    return words if _fits(itemsize, mask.bit_length()) else _corrected(keys, words, scratch)


def _first_places(keys: Array, itemsize: int, k: int, scratch: Scratch) -> Array:
    """The first ``k`` places, by selection where that is less work than sorting."""
    if 4 * k > keys.shape[-1]:
        return _places(keys, itemsize, scratch)[:, :k]
    words, mask = _words(keys, itemsize, scratch)
    words.partition(k - 1, axis=-1)
    places = np.sort(words[:, :k], axis=-1) & mask
    if _fits(itemsize, mask.bit_length()):
        return places
    places = _corrected(keys, places, scratch)
    # The selection may be wrong where a word outside has the high bits of the last one inside.
    unclear = np.flatnonzero(words[:, k:].min(axis=-1) <= words[:, k - 1] | mask)
    if unclear.size:
        places[unclear] = _places(keys[unclear], itemsize, scratch)[:, :k]
    return places


def _corrected(keys: Array, places: Array, scratch: Scratch) -> Array:
    """Places in the order of all bits of their keys, given those in the order of the high bits."""
    lines, extent = keys.shape
    flat = scratch.array("flat", places.shape, np.int64)
    np.add(places, extent * np.arange(lines)[:, None], out=flat)
    ordered = scratch.array("ordered", places.shape, np.int64)
    keys.reshape(-1).take(flat, out=ordered, mode="clip")  # "raise" would go through a copy
    falls = scratch.array("flags", (lines, places.shape[1] - 1), np.bool_)
    np.less(ordered[:, 1:], ordered[:, :-1], out=falls)
    for line in np.flatnonzero(falls.any(axis=-1)):
        places[line] = places[line][np.argsort(ordered[line], kind="stable")]
    return places
