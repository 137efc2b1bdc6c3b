"""Machine code of plans: step functions and a driver, compiled as one numba function.

``compile_code`` makes ``@njit`` of ::

    def plan(p0, p1, ..., p6):
        return kernel((p0, p1, ..., p6))

where ``kernel`` is an intrinsic (:mod:`.target`) that emits the step functions and the driver
through llvmlite, and beside them an entry that Python calls (:mod:`.llvm.entry`). Numba's own pass
pipeline would spend most of the compile time on code that is already as it should be, so it is
switched off for these libraries; the target machine still optimizes when it selects instructions.

The object file is kept on disk (:mod:`.cache`); a process that finds it there imports no numba.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..ir.collector import no_collection
from .cache import store
from .cpu.routine_steps import RoutineForm
from .events import LISTENERS, tell
from .fingerprint import entry_key, plan_key
from .functions import Function, Product
from .llvm.form import Form
from .llvm.lanes_form import LaneForm
from .objects import is_loadable, load, python_function

__all__ = ["Code", "compile_code", "compile_entry"]

# Of numba, while it compiles a plan: no passes of its own, and no interpreter in its place.
_SETTINGS = {"OPT": "0", "LOOP_VECTORIZE": 0, "SLP_VECTORIZE": 0, "DISABLE_JIT": 0}

Emit = Callable[[Any, Any, Sequence[Any]], Any]

_CACHE: dict[Any, Code] = {}
_LOCK = threading.RLock()
# A fork waits until nothing is being compiled: LLVM's state must not be cut in half, nor the lock
# be held in the child by a thread that is not there.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


class Code:
    """A compiled plan function.

    Attributes
    ----------
    call : callable
        Takes objects and integers, by the kinds of its parameters; returns an integer.
    seconds : dict
        Time spent: ``emit`` and ``compile``, or ``load``.
    """

    __slots__ = ("_emit", "_kinds", "_library", "call", "seconds")

    def __init__(
        self, call: Callable[..., int], seconds: dict[str, float], kinds: str, emit: Emit
    ) -> None:
        self.call = call
        self.seconds = seconds
        self._kinds = kinds
        self._emit = emit
        self._library: Any = None

    @property
    def from_disk(self) -> bool:
        """Whether it was found there, not compiled by this process."""
        return "load" in self.seconds

    @property
    def library(self) -> Any:
        """Numba's library, for texts; code that came from disk is translated again for it."""
        if self._library is None:
            with _LOCK:
                self._library = _translate("tilegrad", self._kinds, self._emit, {})
        return self._library


def compile_code(functions: Sequence[Function]) -> Code:
    """Code for step functions, over any number of arrays.

    Its ``call`` takes what :mod:`.llvm.driver` says, NumPy arrays themselves for their addresses.
    """
    key = tuple([f if isinstance(f, Product) else f.key for f in functions])
    found = _CACHE.get(key)
    if found is None:
        with _LOCK:
            found = _CACHE.get(key)
            if found is None:
                found = _CACHE[key] = _obtain(
                    plan_key(functions),
                    "oiioii*",
                    lambda *emission: _emit(*emission, functions),
                )
                if LISTENERS:
                    tell(compilations=int(not found.from_disk), loads=int(found.from_disk))
    return found


def compile_entry(name: str, kinds: str, emit: Emit) -> Code:
    """Code made by ``emit(module, builder, values) -> i64 value``; ``name`` says what that is.

    Parameters
    ----------
    name : str
        Unique within this package.
    kinds : str
        A letter for each parameter, see :mod:`.llvm.entry`.
    emit : callable
        ``values`` are the parameters, an i64 each.
    """
    with _LOCK:
        return _obtain(entry_key(name), kinds, emit)


def _obtain(key: str | None, kinds: str, emit: Emit) -> Code:
    """From disk, or compiled and kept there."""
    start = time.perf_counter()
    block = store().get(key) if key is not None else None
    if block is not None and is_loadable(block):
        address = load(block, _symbol(key))
        if address:
            call = python_function("plan", address)
            return Code(call, {"load": time.perf_counter() - start}, kinds, emit)
    seconds: dict[str, float] = {}
    symbol = _symbol(key)
    library = _translate(symbol, kinds, emit, seconds)
    # Numba gets it through a callback of LLVM, where Python drops an interrupt and all else.
    block = library._compiled_object
    if key is not None and block is not None and is_loadable(block):
        store().put(key, block)
    call = python_function("plan", library.get_pointer_to_function(symbol))
    code = Code(call, seconds, kinds, emit)
    code._library = library
    return code


def _symbol(key: str | None) -> str:
    """Name of an entry; numba keeps all code under one roof, so it must be unique there."""
    return f"tilegrad_{key}" if key is not None else f"tilegrad_unnamed_{time.perf_counter_ns()}"


@no_collection()
def _translate(symbol: str, kinds: str, emit: Emit, seconds: dict[str, float]) -> Any:
    """Numba's library with the function that ``emit`` makes, and its entry of this name."""
    from numba import njit, types
    from numba.core import config
    from numba.core.compiler_lock import global_compiler_lock

    from .target import NAME, TARGET, emitting, kernel

    seconds["emit"] = 0.0

    def generate(library: Any, builder: Any, values: list[Any]) -> Any:
        start = time.perf_counter()
        library.enable_object_caching()
        result = builder.call(_emit_run(builder.module, symbol, kinds, emit), values)
        seconds["emit"] += time.perf_counter() - start
        return result

    listed = ", ".join([f"p{k}" for k in range(len(kinds))])
    scope: dict[str, Any] = {"kernel": kernel}
    exec(f"def plan({listed}):\n    return kernel(({listed},))", scope)  # names made by us
    signature = types.int64(*[types.int64] * len(kinds))
    options = {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    with global_compiler_lock:
        TARGET.target_context.codegen()  # its target machine keeps numba's optimization level
        start = time.perf_counter()
        saved = {name: getattr(config, name) for name in _SETTINGS}
        emitting.append(generate)
        try:
            for name, value in _SETTINGS.items():
                setattr(config, name, type(saved[name])(value))
            dispatcher = njit([signature], _target=NAME, **options)(scope["plan"])
        finally:
            emitting.pop()
            for name, value in saved.items():
                setattr(config, name, value)
        seconds["compile"] = time.perf_counter() - start - seconds["emit"]
    return dispatcher.overloads[tuple(signature.args)].library


def _emit_run(module: Any, symbol: str, kinds: str, emit: Emit) -> Any:
    """``i64 run(i64, ...)`` with the body that ``emit`` makes, and its entry."""
    from llvmlite import ir

    from .llvm.entry import emit_entry
    from .llvm.memory import I64

    run = ir.Function(module, ir.FunctionType(I64, [I64] * len(kinds)), f"{symbol}.run")
    run.linkage = "internal"
    builder = ir.IRBuilder(run.append_basic_block("entry"))
    builder.ret(emit(module, builder, list(run.args)))
    emit_entry(module, symbol, kinds, run)
    return run


def _emit(
    module: Any,
    builder: Any,
    values: Sequence[Any],
    functions: Sequence[Function],
) -> Any:
    from .cpu.blas import emit_matmul
    from .cpu.routine_steps import emit_routine
    from .llvm.driver import emit_driver
    from .llvm.lanes import LaneEmitter
    from .llvm.nest import NestEmitter
    from .llvm.outline import should_hide_counters, should_outline
    from .llvm.reduce import ReduceEmitter
    from .llvm.scan import ScanEmitter
    from .llvm.unrolled import UnrolledEmitter

    forms = [f for f in functions if isinstance(f, Form)]
    outline = should_outline(f for f in functions if not isinstance(f, Product))
    hide = should_hide_counters(forms)
    emitted = []
    for k, function in enumerate(functions):
        name = f"{builder.function.name}.step{k}"
        if isinstance(function, Product):
            emitted.append(emit_matmul(module, name, function))
        elif isinstance(function, RoutineForm):
            emitted.append(emit_routine(module, name, function))
        elif isinstance(function, LaneForm):
            emitted.append(LaneEmitter(module, name, function, outline).build())
        else:
            emitter = NestEmitter
            if function.strategy == "unrolled":
                emitter = UnrolledEmitter
            elif function.nest.reduces:
                emitter = ReduceEmitter
            elif function.nest.scan is not None:
                emitter = ScanEmitter
            made = emitter(module, name, function, outline)
            made.hides_counters = hide
            emitted.append(made.build())
    return emit_driver(module, builder, emitted, values)
