"""The vocabulary of scalar programs.

The meaning of every elementwise operation is a *scalar program*: a Python function
``program(h, *operands)`` that calls the methods of a handler ``h`` and returns what they return.
One program has many readings, one for each handler:

========================  ==========================================================
NumPy values              evaluates on arrays (constant folding, tests)
LLVM values               emits scalar or vector code (``kernels/llvm``)
CUDA C text               prints an expression
operation counts          adds up cost
value ranges              bounds the result
text                      prints the program
========================  ==========================================================

Rules that keep all readings equal bit for bit:

* each method is one IEEE-754 operation, rounded once, or an exact bit operation; nothing is
  contracted or re-associated; the only fused multiply-add is :meth:`Handler.fma`;
* programs are branch-free: :meth:`Handler.select` evaluates both sides. The one exception,
  :meth:`Handler.rarely`, may skip work but never changes a result;
* operands of a binary method have the same dtype; a program converts explicitly;
* a program is written for one real dtype at a time and may ask for it with ``h.dtype(x)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ..dtypes import DType

__all__ = ["Handler", "Program"]

V = TypeVar("V")


class Handler(Protocol[V]):
    """What a scalar program may say. ``V`` is the handler's kind of value."""

    def dtype(self, x: V) -> DType:
        """Element type of a value: bool, integer or real floating (never complex)."""
        ...

    def const(self, value: bool | int | float, dtype: DType) -> V:
        """A constant. Floats are given exactly (``float.hex`` spelling or a float literal)."""
        ...

    # arithmetic: floating operands round to nearest even; integer operands wrap around
    def add(self, x: V, y: V) -> V: ...
    def sub(self, x: V, y: V) -> V: ...
    def mul(self, x: V, y: V) -> V: ...
    def div(self, x: V, y: V) -> V:
        """Floating quotient; for integers see :meth:`idiv`."""
        ...

    def neg(self, x: V) -> V:
        """Floating: flips the sign bit (NaN too). Integer: wraps."""
        ...

    def fma(self, x: V, y: V, z: V) -> V:
        """``x * y + z`` rounded once."""
        ...

    def sqrt(self, x: V) -> V: ...
    def abs(self, x: V) -> V:
        """Floating: clears the sign bit. Integer: wraps at the minimum."""
        ...

    def copysign(self, x: V, y: V) -> V: ...
    def floor(self, x: V) -> V: ...
    def ceil(self, x: V) -> V: ...
    def trunc(self, x: V) -> V: ...
    def rint(self, x: V) -> V:
        """Nearest integer, ties to even."""
        ...

    def idiv(self, x: V, y: V) -> V:
        """Integer quotient rounded toward zero. Total: ``x/0 = 0`` and ``MIN/-1 = MIN``."""
        ...

    def irem(self, x: V, y: V) -> V:
        """Integer remainder with the sign of ``x``. Total: ``x rem 0 = 0``, ``MIN rem -1 = 0``."""
        ...

    # comparisons give bool; floating ones are false when an operand is NaN, except ``ne``
    def lt(self, x: V, y: V) -> V: ...
    def le(self, x: V, y: V) -> V: ...
    def gt(self, x: V, y: V) -> V: ...
    def ge(self, x: V, y: V) -> V: ...
    def eq(self, x: V, y: V) -> V: ...
    def ne(self, x: V, y: V) -> V: ...

    # bool and integer bit operations
    def and_(self, x: V, y: V) -> V: ...
    def or_(self, x: V, y: V) -> V: ...
    def xor(self, x: V, y: V) -> V: ...
    def not_(self, x: V) -> V: ...
    def shl(self, x: V, y: V) -> V:
        """``x << y`` for ``0 <= y < bits``; the caller guards the rest."""
        ...

    def shr(self, x: V, y: V) -> V:
        """Arithmetic shift for signed, logical for unsigned types; ``0 <= y < bits``."""
        ...

    def select(self, condition: V, x: V, y: V) -> V:
        """``x`` where ``condition`` else ``y``."""
        ...

    def bitcast(self, x: V, dtype: DType) -> V:
        """The same bits as another type of the same width (float <-> integer)."""
        ...

    def convert(self, x: V, dtype: DType) -> V:
        """Value conversion.

        float -> float and integer -> float round to nearest even; integer -> integer keeps the low
        bits; float -> integer truncates toward zero, saturates out of range, NaN gives 0;
        bool -> number is 0 or 1; number -> bool is ``x != 0`` (NaN is true).
        """
        ...

    def table(self, entries: Sequence[float], index: V, dtype: DType) -> V:
        """``entries[index]`` for ``0 <= index < len(entries)`` (an int32 or int64 value)."""
        ...

    def rarely(self, condition: V, usual: V, rare: Callable[[], V]) -> V:
        """``select(condition, rare(), usual)`` where ``condition`` is seldom true.

        A handler may skip ``rare`` when no lane needs it. ``rare`` may call any method of the
        handler and values made before it.
        """
        ...


Program = Callable[..., V]
