"""Values that are known while a program is built.

Some results have a shape that depends on data: ``x[mask]``, ``nonzero``, ``unique``. They exist
for arrays that are known, which is every array outside ``jit`` and ``vmap`` (inputs of ``grad``
included: they carry their values). What depends on an ``input`` node is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import TracerError
from ..graph import Value
from ..location import at_user_line
from ..ops.leaves import CONSTANT, INPUT

__all__ = ["concrete", "is_known", "known", "set_evaluator"]

Evaluator = Callable[[Value], "np.ndarray[Any, Any]"]


def _interpret(x: Value) -> np.ndarray[Any, Any]:
    from ..interpret import interpret

    return np.asarray(interpret((x,), {})[0])


# The engine replaces the reference interpreter by its own realization, which remembers results.
_evaluator: list[Evaluator] = [_interpret]


def set_evaluator(evaluate: Evaluator) -> None:
    """Let ``evaluate(value) -> array`` compute known values from now on."""
    _evaluator[0] = evaluate


def is_known(x: Value) -> bool:
    """Whether ``x`` depends on no ``input`` node."""
    stack, seen = [x.node], {x.node}
    while stack:
        node = stack.pop()
        if node.op is INPUT:
            return False
        if node.memo is None:
            for operand in node.inputs:
                if operand.node not in seen:
                    seen.add(operand.node)
                    stack.append(operand.node)
    return True


def known(x: Value) -> np.ndarray[Any, Any] | None:
    """The data of ``x``, or None if it is traced."""
    if x.node.op is CONSTANT:
        return x.node.param("literal").array()  # type: ignore[no-any-return]
    return _evaluator[0](x) if is_known(x) else None


def concrete(name: str, what: str, x: Value) -> np.ndarray[Any, Any]:
    """The data of ``x``, which must not be traced."""
    data = known(x)
    if data is None:
        raise at_user_line(
            TracerError(
                f"{name}: expected known data for {what}, got the traced {x.type}; under jit and "
                f"vmap shapes and static arguments cannot depend on traced values: use where, "
                f"give a fixed size, or make the argument static"
            )
        )
    return data
