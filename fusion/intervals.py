"""Intervals of integer instructions: what is known of a value before it is computed.

They prove that an index lies inside its axis, so that no check is needed at run time (inventory
LL29-LL31). Every rule encloses: a result that might wrap around is any value of its dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..ir.dtypes import DType
from .loops import Instruction

__all__ = ["Interval", "interval_of"]

Interval = tuple[int, int]


def interval_of(i: Instruction, known: Sequence[Interval]) -> Interval:
    """Smallest and largest value (inclusive) of an instruction of integer or bool dtype.

    Parameters
    ----------
    i : Instruction
    known : sequence of (int, int)
        Intervals of the tape so far, by number; of other dtypes: anything.
    """
    whole = _whole(i.dtype)
    if i.kind == "const":
        assert i.literal is not None
        value = int(i.literal.item())
        return value, value
    if i.kind == "index":
        assert i.index is not None
        return _within(i.index.range(), whole)
    if i.kind == "bounds":
        return 0, max(i.high - 1, 0)
    if i.kind != "op" or i.op is None:
        return whole
    rule = _RULES.get(i.op.name)
    if rule is None:
        return whole
    return _within(rule(*(known[a] for a in i.args)), whole)


def _whole(dtype: DType) -> Interval:
    if dtype.is_bool:
        return 0, 1
    if not dtype.is_integer:
        return 0, -1
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def _within(found: Interval | None, whole: Interval) -> Interval:
    """``found``, unless the operands are no integers or a value of it would wrap around."""
    if found is None or found[0] > found[1] or found[0] < whole[0] or found[1] > whole[1]:
        return whole
    return found


def _mul(x: Interval, y: Interval) -> Interval:
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def _abs(x: Interval) -> Interval:
    low = 0 if x[0] <= 0 <= x[1] else min(abs(x[0]), abs(x[1]))
    return low, max(abs(x[0]), abs(x[1]))


def _floor_divide(x: Interval, y: Interval) -> Interval | None:
    if y[0] <= 0:
        return None
    corners = [a // b for a in x for b in y]
    return min(corners), max(corners)


def _remainder(x: Interval, y: Interval) -> Interval | None:
    if y[0] <= 0:
        return None
    return x if x[0] >= 0 and x[1] < y[0] else (0, y[1] - 1)


_RULES: dict[str, Callable[..., Interval | None]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "mul": _mul,
    "neg": lambda x: (-x[1], -x[0]),
    "abs": _abs,
    "sign": lambda x: (-1 if x[0] < 0 else 0, 1 if x[1] > 0 else 0),
    "maximum": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "minimum": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "where": lambda c, x, y: (min(x[0], y[0]), max(x[1], y[1])),
    "convert": lambda x: x,
}
