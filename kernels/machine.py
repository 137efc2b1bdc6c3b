"""Machine code of plans: step functions and a driver, compiled as one numba function.

``compile_code`` makes ``@njit`` of ::

    def plan(table, first, last, arena, pool, threads, a0, a1, ...):
        return kernel((table, first, ..., a1))

where ``kernel`` is an intrinsic whose code generator emits the step functions and the driver
through llvmlite. Numba's own pass pipeline would spend most of the compile time on code that is
already as it should be, so it is switched off for these libraries; the target machine still
optimizes when it selects instructions.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.dtypes import DType
from .llvm.form import Form

__all__ = ["Code", "compile_code", "compile_entry"]


@dataclass(frozen=True, slots=True)
class Code:
    """A compiled plan function; ``call`` takes Python integers only.

    Attributes
    ----------
    call : callable
    library : object
        Numba's library, for texts.
    seconds : dict
        Time spent emitting and compiling.
    """

    call: Callable[..., int]
    library: Any
    seconds: dict[str, float]


_CACHE: dict[Any, Code] = {}
_LOCK = threading.RLock()


def compile_code(functions: Sequence[Form | DType], arrays: int) -> Code:
    """Code for step functions (a form: a nest; a dtype: matrix products) over ``arrays`` arrays."""
    key = (arrays, *(f.key if isinstance(f, Form) else f for f in functions))
    found = _CACHE.get(key)
    if found is None:
        with _LOCK:
            found = _CACHE.get(key)
            if found is None:
                found = _CACHE[key] = _compile(functions, arrays)
    return found


def _compile(functions: Sequence[Form | DType], arrays: int) -> Code:
    names = ["table", "first", "last", "arena", "pool", "threads"]
    names += [f"a{k}" for k in range(arrays)]
    return compile_entry(names, lambda builder, values: _emit(builder, functions, values))


def compile_entry(names: Sequence[str], emit: Callable[[Any, Sequence[Any]], Any]) -> Code:
    """A numba function of int64 arguments whose body is ``emit(builder, values) -> i64 value``."""
    from numba import njit, types
    from numba.core import config
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target
    from numba.extending import intrinsic

    seconds = {"emit": 0.0}

    @intrinsic  # type: ignore[misc]  # numba is not typed
    def kernel(typing_context: Any, arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            start = time.perf_counter()
            result = emit(builder, [builder.extract_value(args[0], k) for k in range(len(names))])
            seconds["emit"] += time.perf_counter() - start
            return result

        return types.int64(arguments), generate

    listed = ", ".join(names)
    scope: dict[str, Any] = {"kernel": kernel}
    exec(f"def plan({listed}):\n    return kernel(({listed},))", scope)  # names made by us
    signature = types.int64(*[types.int64] * len(names))
    with global_compiler_lock:
        cpu_target.target_context.codegen()  # its target machine keeps numba's optimization level
        saved = config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE
        config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE = type(config.OPT)("0"), 0, 0
        start = time.perf_counter()
        try:
            dispatcher = njit([signature], nogil=True, no_cfunc_wrapper=True)(scope["plan"])
        finally:
            config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE = saved
        seconds["compile"] = time.perf_counter() - start - seconds["emit"]
    result = dispatcher.overloads[tuple(signature.args)]
    return Code(result.entry_point, result.library, seconds)


def _emit(builder: Any, functions: Sequence[Form | DType], values: Sequence[Any]) -> Any:
    from .cpu.blas import emit_matmul
    from .llvm.driver import emit_driver
    from .llvm.nest import NestEmitter
    from .llvm.outline import should_outline
    from .llvm.reduce import ReduceEmitter
    from .llvm.scan import ScanEmitter

    module = builder.module
    outline = should_outline(f for f in functions if isinstance(f, Form))
    emitted = []
    for k, function in enumerate(functions):
        name = f"{builder.function.name}.step{k}"
        if isinstance(function, DType):
            emitted.append(emit_matmul(module, name, function))
        else:
            emitter = NestEmitter
            if function.nest.reduces:
                emitter = ReduceEmitter
            elif function.nest.scan is not None:
                emitter = ScanEmitter
            emitted.append(emitter(module, name, function, outline).build())
    return emit_driver(module, builder, emitted, values)
