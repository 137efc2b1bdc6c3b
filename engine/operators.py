"""Operators and methods of arrays: each is the function of the same meaning, found by name.

Four operators have a short way for the commonest operands (two arrays of one type, or an array
and a Python number): they make the very nodes that the builder would make, without asking it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.graph import Node, Op, Value
from ..ir.location import at_user_line, user_place
from ..ir.ops.arithmetic import ADD, DIV, MUL, SUB
from ..ir.ops.operands import number_like
from ..ir.ops.shape import transpose as transpose_value
from .realize import note_pending

__all__ = ["Operators", "function"]

# What may stand on the other side of an operator; anything else gets its own say.
_OPERANDS = (bool, int, float, complex, np.generic, np.ndarray, list, tuple)

_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def function(name: str) -> Callable[..., Any]:
    """The public function ``name`` (``"add"``, ``"linalg.norm"``)."""
    if not _FUNCTIONS:
        from .namespace import FUNCTIONS  # built on Array, which is built on this module

        _FUNCTIONS.update(FUNCTIONS)
    return _FUNCTIONS[name]


def _short(op: Op, name: str, kinds: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The operator and its reflection for an op whose result has the type of its operands."""

    def forward(self: Any, other: Any) -> Any:
        t = self._type
        if not t.weak and t.dtype.kind in kinds:
            if type(other) is type(self):
                s = other._type
                same = s is t or (s.shape == t.shape and s.dtype is t.dtype and not s.weak)
                right = other._value if same else None
            else:
                right = number_like(other, t)
            if right is not None:
                node = Node(op, (self._value, right), (), (t,), user_place(2))
                array = type(self)(None, Value(node), t)
                note_pending(array)
                return array
        return function(name)(self, other) if _accepts(self, other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        t = self._type
        if not t.weak and t.dtype.kind in kinds:
            left = number_like(other, t)
            if left is not None:
                node = Node(op, (left, self._value), (), (t,), user_place(2))
                array = type(self)(None, Value(node), t)
                note_pending(array)
                return array
        return function(name)(other, self) if _accepts(self, other) else NotImplemented

    return forward, reflected


def _accepts(self: Any, other: Any) -> bool:
    return type(other) is type(self) or isinstance(other, _OPERANDS)


def _binary(name: str) -> Callable[..., Any]:
    def forward(self: Any, other: Any) -> Any:
        return function(name)(self, other) if _accepts(self, other) else NotImplemented

    return forward


def _reflected(name: str) -> Callable[..., Any]:
    def reflected(self: Any, other: Any) -> Any:
        return function(name)(other, self) if _accepts(self, other) else NotImplemented

    return reflected


def _unary(name: str) -> Callable[..., Any]:
    def operator(self: Any) -> Any:
        return function(name)(self)

    return operator


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"``{name}(self, ...)``: see the function of this name."
    return method


def _refuse_in_place(symbol: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise at_user_line(
            TypeError(
                f"arrays are immutable: .{symbol}() would change this one in place; use "
                f"x = tg.{symbol}(x)"
            )
        )

    return method


class Operators:
    """Operators and methods: a mixin of :class:`.array.Array`, which has the data."""

    __slots__ = ()

    __add__, __radd__ = _short(ADD, "add", "biufc")
    __sub__, __rsub__ = _short(SUB, "subtract", "iufc")
    __mul__, __rmul__ = _short(MUL, "multiply", "biufc")
    __truediv__, __rtruediv__ = _short(DIV, "divide", "fc")
    __floordiv__, __rfloordiv__ = _binary("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _binary("remainder"), _reflected("remainder")
    __divmod__, __rdivmod__ = _binary("divmod"), _reflected("divmod")
    __pow__, __rpow__ = _binary("power"), _reflected("power")
    __matmul__, __rmatmul__ = _binary("matmul"), _reflected("matmul")
    __and__, __rand__ = _binary("bitwise_and"), _reflected("bitwise_and")
    __or__, __ror__ = _binary("bitwise_or"), _reflected("bitwise_or")
    __xor__, __rxor__ = _binary("bitwise_xor"), _reflected("bitwise_xor")
    __lshift__, __rlshift__ = _binary("bitwise_left_shift"), _reflected("bitwise_left_shift")
    __rshift__, __rrshift__ = _binary("bitwise_right_shift"), _reflected("bitwise_right_shift")
    __eq__, __ne__ = _binary("equal"), _binary("not_equal")
    __lt__, __le__ = _binary("less"), _binary("less_equal")
    __gt__, __ge__ = _binary("greater"), _binary("greater_equal")
    __neg__, __pos__ = _unary("negative"), _unary("positive")
    __invert__, __abs__ = _unary("bitwise_invert"), _unary("absolute")

    all, any = _method("all"), _method("any")
    sum, prod, mean, var, std = (_method(n) for n in ("sum", "prod", "mean", "var", "std"))
    min, max, argmin, argmax = (_method(n) for n in ("min", "max", "argmin", "argmax"))
    cumsum, cumprod, clip = (_method(n) for n in ("cumsum", "cumprod", "clip"))
    argsort, nonzero, searchsorted = (_method(n) for n in ("argsort", "nonzero", "searchsorted"))
    astype, conj, conjugate = _method("astype"), _method("conj"), _method("conj")
    diagonal, trace, dot = _method("diagonal"), _method("trace"), _method("dot")
    repeat, take, swapaxes = _method("repeat"), _method("take"), _method("swapaxes")
    round, squeeze, ravel = _method("round"), _method("squeeze"), _method("ravel")
    flatten, copy, ptp = _method("ravel"), _method("copy"), _method("ptp")
    sort, partition, resize = (_refuse_in_place(n) for n in ("sort", "partition", "resize"))

    def __round__(self, ndigits: int | None = None) -> Any:
        return function("round")(self, ndigits or 0)

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """``reshape(shape)`` or ``reshape(n0, n1, ...)``; one extent may be -1."""
        if shape:
            options["shape"] = shape[0] if len(shape) == 1 else shape
        return function("reshape")(self, **options)

    def transpose(self, *axes: Any) -> Any:
        """Permuted axes: ``transpose()``, ``transpose(axes)`` or ``transpose(a0, a1, ...)``."""
        order = axes[0] if len(axes) == 1 else axes or None
        return function("transpose")(self, order)

    @property
    def T(self) -> Any:
        """The axes in reverse order."""
        value = transpose_value(self._value)  # type: ignore[attr-defined]
        return self._pending(value, value.type)  # type: ignore[attr-defined]

    @property
    def mT(self) -> Any:
        """The last two axes swapped."""
        return function("matrix_transpose")(self)

    @property
    def real(self) -> Any:
        return function("real")(self)

    @property
    def imag(self) -> Any:
        return function("imag")(self)
