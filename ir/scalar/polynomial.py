"""Polynomials in the vocabulary of scalar programs.

Coefficients come lowest power first. They are minimax fits for a weighted (mostly relative) error,
made by the Remez exchange algorithm in 200-bit arithmetic; the leading ones are rounded one after
another, each time with a new fit of the rest (progressive rounding), so that the fit knows the
error of those that matter. ``tests/ir/scalar/minimax_tables.py`` makes them anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from .vocabulary import Handler, V

__all__ = ["even_odd", "fast_two_sum", "horner", "table_horner", "two_product", "two_sum"]


def horner(h: Handler[V], x: V, coefficients: Sequence[float]) -> V:
    """``c0 + x (c1 + x (c2 + ...))``: the fewest operations, one long chain."""
    dtype = h.dtype(x)
    result = h.const(coefficients[-1], dtype)
    for coefficient in reversed(coefficients[:-1]):
        result = h.fma(result, x, h.const(coefficient, dtype))
    return result


def even_odd(h: Handler[V], x: V, coefficients: Sequence[float]) -> V:
    """The same in two chains half as long, one for even powers and one for odd powers."""
    square = h.mul(x, x)
    even, odd = horner(h, square, coefficients[::2]), horner(h, square, coefficients[1::2])
    return h.fma(odd, x, even)


def table_horner(h: Handler[V], x: V, columns: Sequence[Sequence[float]], index: V) -> V:
    """Horner's rule with coefficients ``columns[power][index]``."""
    dtype = h.dtype(x)
    result = h.table(columns[-1], index, dtype)
    for column in reversed(columns[:-1]):
        result = h.fma(result, x, h.table(column, index, dtype))
    return result


def fast_two_sum(h: Handler[V], x: V, y: V) -> tuple[V, V]:
    """``x + y`` exactly, as a rounded sum and its error; ``|x| >= |y|`` or ``x = 0`` (Dekker)."""
    total = h.add(x, y)
    return total, h.add(h.sub(x, total), y)


def two_sum(h: Handler[V], x: V, y: V) -> tuple[V, V]:
    """``x + y`` exactly, as a rounded sum and its error (Knuth, TAOCP 2, 4.2.2, theorem B)."""
    total = h.add(x, y)
    part = h.sub(total, x)
    return total, h.add(h.sub(x, h.sub(total, part)), h.sub(y, part))


def two_product(h: Handler[V], x: V, y: V) -> tuple[V, V]:
    """``x y`` exactly, as a rounded product and its error."""
    product = h.mul(x, y)
    return product, h.fma(x, y, h.neg(product))
