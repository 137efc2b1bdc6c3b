"""A target of numba's for plans: its compiler with no more around it than plans need.

Numba's own CPU target first learns all of Python and NumPy that it can compile (0.3 s in a process,
half of it for ``scipy.linalg``), and links its memory manager into every library (10 ms each). A
plan is one call of one intrinsic, :data:`kernel`, on integers. So this target, made with numba's
target extension interface and a CPU target in all else, knows that one function. Numba itself, as
its users see it, is not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cpu import CPUContext
from numba.core.registry import CPUDispatcher, CPUTarget
from numba.core.target_extension import CPU, dispatcher_registry, target_registry
from numba.core.typing import BaseContext
from numba.core.typing.templates import builtin_registry
from numba.extending import intrinsic

__all__ = ["NAME", "TARGET", "emitting", "kernel"]

NAME = "tilegrad"

# What `kernel` emits, innermost last: set while numba's compiler lock is held.
emitting: list[Callable[[Any, Any, list[Any]], Any]] = []


@intrinsic
def kernel(typing_context: Any, arguments: Any) -> Any:
    """``emitting[-1](library, builder, values) -> i64`` for a tuple of int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> ir.Value:
        values = [builder.extract_value(args[0], k) for k in range(len(arguments))]
        return emitting[-1](context.active_code_library, builder, values)

    return types.int64(arguments), generate


class _TypingContext(BaseContext):
    """Types of one global: the intrinsic."""

    def _load_builtins(self) -> None:
        for value, kind in builtin_registry.globals:
            if value is kernel and self._lookup_global(value) is None:
                self.insert_global(value, kind)


class _Context(CPUContext):
    def load_additional_registries(self) -> None:
        """There are none."""

    def post_lowering(self, module: Any, library: Any) -> None:
        """Nothing is added: plans do not use numba's memory manager."""


class _Plans(CPU):
    """The target's place among numba's: a CPU."""


class _Target(CPUTarget):
    @cached_property
    def _toplevel_target_context(self) -> _Context:
        return _Context(self.typing_context, self._target_name)

    @cached_property
    def _toplevel_typing_context(self) -> _TypingContext:
        return _TypingContext()


TARGET = _Target(NAME)


class _Dispatcher(CPUDispatcher):
    targetdescr = TARGET


target_registry[NAME] = _Plans
dispatcher_registry[_Plans] = _Dispatcher
