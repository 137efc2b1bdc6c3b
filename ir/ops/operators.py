"""Operators of :class:`~tilegrad.ir.graph.Value` beyond ``+ - * /`` (those are in arithmetic.py).

``==`` and ``!=`` stay what they are: values are compared by identity, as keys of dictionaries.
"""

from __future__ import annotations

from typing import Any

from ..graph import Value
from .comparison import ge, gt, le, lt
from .integers import floor_divide, remainder
from .logic import and_, not_, or_, shift_left, shift_right, xor
from .powers import power
from .rounding import abs_

__all__: list[str] = []


def _bind_operators() -> None:
    value: Any = Value
    value.__array_ufunc__ = None  # `ndarray * value` is ours, not an array of objects
    value.__abs__, value.__invert__ = abs_, not_
    value.__lt__, value.__le__, value.__gt__, value.__ge__ = lt, le, gt, ge
    for name, function in {
        "pow": power,
        "floordiv": floor_divide,
        "mod": remainder,
        "and": and_,
        "or": or_,
        "xor": xor,
        "lshift": shift_left,
        "rshift": shift_right,
    }.items():
        setattr(value, f"__{name}__", function)
        setattr(value, f"__r{name}__", lambda x, y, function=function: function(y, x))


_bind_operators()
