"""Python functions as operations: values from outside, and effects.

``pure_callback`` has the results of a function that only looks at its operands: it may run any
number of times, or not at all if nobody wants the results. ``effect`` runs once each time its
program runs, in the order of the program; its result, a token, is what keeps it there: whoever
traces a program makes the tokens outputs of it, in their order. Passes do not merge effects.

The function is a :class:`HostFunction`: equal functions make equal programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import bool_
from ..errors import UnsupportedError
from ..graph import Node, Value, make, make_node
from ..location import at_user_line
from ..types import Shape, TensorType
from .registry import register
from .shape import broadcast, moveaxis, reshape

__all__ = ["EFFECT", "PURE_CALLBACK", "HostFunction", "effect", "pure_callback"]

Array = np.ndarray[Any, Any]
Axes = Sequence["int | None"]


class HostFunction:
    """A Python function of NumPy arrays; hashable, so that it can be a param."""

    __slots__ = ()

    def __call__(self, *operands: Array) -> tuple[Array, ...]:
        raise NotImplementedError

    def mapping(self) -> str | None:
        """How ``pure_callback`` maps it.

        ``"sequential"``: called for each example. ``"expand_dims"``: once, with the examples along
        a first axis, extent 1 for operands that are the same for all. ``"broadcast_all"``: once,
        with the examples along the first axis of all operands. None: not said.
        """
        return None

    def of_many(self, size: int) -> HostFunction:
        """The function as it is called once for ``size`` examples."""
        return self


@dataclass(frozen=True, slots=True)
class Sequential(HostFunction):
    """A function called for one example after the other; results are stacked."""

    function: HostFunction
    axes: tuple[int | None, ...]
    size: int
    types: tuple[TensorType, ...]

    def mapping(self) -> str | None:
        return self.function.mapping()

    def __call__(self, *operands: Array) -> tuple[Array, ...]:
        results = tuple([np.empty((self.size, *t.shape), t.dtype.numpy) for t in self.types])
        for k in range(self.size):
            one = [
                x if a is None else np.take(x, k, a)
                for x, a in zip(operands, self.axes, strict=True)
            ]
            for result, value in zip(results, self.function(*one), strict=True):
                result[k] = value
        return results


def _sequential(node: Node, operands: Sequence[Value], axes: Axes) -> Sequential:
    size = next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)
    types = () if node.op is EFFECT else node.types
    return Sequential(node.param("function"), tuple(axes), size, types)


# -------------------------------------------------------------------------------- pure_callback


def _callback_batch(node: Node, operands: Sequence[Value], axes: Axes) -> Any:
    function: HostFunction = node.param("function")
    one = _sequential(node, operands, axes)
    types = [TensorType((one.size, *t.shape), t.dtype) for t in node.types]
    method = function.mapping()
    if method is None:
        raise at_user_line(
            UnsupportedError(
                f"vmap: {function}: how to map it is not said; pass vmap_method='sequential' (a "
                f"call for each example), 'expand_dims' or 'broadcast_all' (one call for all)",
                op="pure_callback",
                device="vmap",
            )
        )
    if method == "sequential":
        found = pure_callback(one, operands, types)
        return found, (0,) * len(found)
    whole = []
    for x, a in zip(operands, axes, strict=True):
        if a is not None:
            whole.append(moveaxis(x, a, 0))
        elif method == "expand_dims":
            whole.append(reshape(x, (1, *x.shape)))
        else:
            whole.append(broadcast(x, (one.size, *x.shape), tuple(range(1, x.ndim + 1))))
    found = pure_callback(function.of_many(one.size), whole, types)
    return found, (0,) * len(found)


PURE_CALLBACK = register(
    "pure_callback",
    "host",
    infer=lambda *operands, function, types: types,
    reference=lambda *operands, function, types: function(*operands),
    batch=_callback_batch,
    doc="Results, of the given types, of a Python function that has no effects.",
    why_not={
        "jvp": "nothing is known of a Python function's derivative; wrap the call in a function "
        "with custom_jvp or custom_vjp, or stop_gradient its arguments",
        "transpose": "nothing is known of a Python function",
        "samples": "the function is the user's",
    },
)


def pure_callback(
    function: HostFunction, operands: Sequence[Value], types: Sequence[TensorType]
) -> tuple[Value, ...]:
    """Results of ``function``, of ``types``."""
    return make_node(PURE_CALLBACK, operands, function=function, types=tuple(types)).outputs


# --------------------------------------------------------------------------------------- effect


def _effect_value(*operands: Array, function: HostFunction, shape: Shape) -> Array:
    function(*operands)
    return np.ones(shape, np.bool_)


def _effect_batch(node: Node, operands: Sequence[Value], axes: Axes) -> tuple[Value, int]:
    one = _sequential(node, operands, axes)
    return effect(one, operands, (one.size, *node.param("shape"))), 0


EFFECT = register(
    "effect",
    "host",
    infer=lambda *operands, function, shape: TensorType(shape, bool_),
    reference=_effect_value,
    batch=_effect_batch,
    doc="Runs a Python function on the operands; the result is a token that keeps it in a program.",
    why_not={
        "jvp": "an effect has no derivative: the token is no number",
        "transpose": "an effect has no derivative",
        "samples": "the function is the user's",
    },
)


def effect(function: HostFunction, operands: Sequence[Value], shape: Shape = ()) -> Value:
    """The token of running ``function``: true, of a shape that has an axis for each ``vmap``."""
    return make(EFFECT, operands, function=function, shape=shape)
