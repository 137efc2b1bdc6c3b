"""Plans: a graph made ready to run on arrays."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..fusion.loops import HostCall, MatMul, Schedule, Tile
from ..fusion.lower import lower
from ..fusion.memory import plan_memory
from ..ir.dtypes import DType
from ..ir.graph import Graph
from .cpu.blas import calls_blas, matmul_frame
from .cpu.library import fill
from .cpu.openblas import thread_control
from .events import LISTENERS, tell
from .llvm.driver import HEADER, STEP_WORDS
from .llvm.form import BAKED, Form, form_of
from .machine import Code, compile_code
from .pool import pool_address
from .storage import block, new_array
from .work import extent_and_pieces, step_cost

__all__ = ["Plan", "compile_graph"]

Array = np.ndarray[Any, Any]
SMALL = 64 * 1024  # bytes that a call may take from the allocator without a thought
empty = np.empty
_BYTE = np.dtype(np.uint8)
_NOTHING = empty(0, _BYTE)  # the arena of plans without temporaries


def compile_graph(graph: Graph) -> Plan:
    """A plan for a closed graph: scheduled, emitted, compiled (or found compiled)."""
    if LISTENERS:
        tell(plans=1)
    start = time.perf_counter()
    schedule = lower(graph)
    return Plan(schedule, time.perf_counter() - start)


class ShortCall:
    """The calls of a plan that is nothing but native steps over small results, on one thread.

    Most calls of scripts are such, and their arithmetic takes less time than finding out what there
    is to do: so it is found out once.
    """

    __slots__ = ("_arena", "_call", "_constants", "_first", "_last", "_plan", "_specs", "_table")

    def __init__(self, plan: Plan, table: Array, first: int, last: int) -> None:
        assert plan.code is not None
        self._plan = weakref.proxy(plan)
        self._call = plan.code.call
        self._table, self._first, self._last = table, first, last
        self._specs = [(shape, dtype) for shape, dtype, _ in plan._result_specs]
        self._arena = plan.memory.size
        self._constants = plan.constant_arrays

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """What :meth:`Plan.run` does."""
        if LISTENERS:
            return self._plan.run(arrays)  # type: ignore[no-any-return]
        arena = empty(self._arena, _BYTE) if self._arena else _NOTHING
        specs = self._specs
        if len(specs) == 1:
            results = [empty(*specs[0])]
        else:
            results = [empty(shape, dtype) for shape, dtype in specs]
        word = self._call(
            self._table, self._first, self._last, arena, 0, 1, *arrays, *results, *self._constants
        )
        if word:
            self._plan._raise(word)
        return results


class Plan:
    """A compiled schedule.

    ``run(arrays)`` takes one C-contiguous array an input, of the type the graph says, and returns
    one array an output. It may be called from several threads at once.
    """

    def __init__(self, schedule: Schedule, seconds: float = 0.0) -> None:
        self.schedule = schedule
        self.memory = plan_memory(schedule)
        self.seconds = {"schedule": seconds}
        self._arenas: list[Array] = []
        self._tables: dict[int, Array] = {}
        self._assign_arrays()
        self._assign_functions()
        self.code: Code | None = None
        if self.functions:
            start = time.perf_counter()
            self.code = compile_code(self.functions, len(self.array_of))
            self.seconds["code"] = time.perf_counter() - start
            self.seconds.update(self.code.seconds)
        self._segments = list(self._find_segments())
        self.short: ShortCall | None = None
        if (
            self._only_results
            and not self.uses_blas
            and len(self._segments) == 1
            and type(self._segments[0]) is tuple
            and all(nbytes <= SMALL for *_, nbytes in self._result_specs)
            and self.memory.size <= SMALL
        ):
            self.short = ShortCall(self, self._make_table(1), *self._segments[0])

    # -- layout ---------------------------------------------------------------------------------

    def _assign_arrays(self) -> None:
        """Number the arrays a call hands over: inputs, outputs, constants."""
        buffers = self.schedule.buffers
        self.inputs = sorted((b for b in buffers if b.kind == "input"), key=lambda b: b.slot)
        wanted = {number: k for k, number in enumerate(self.schedule.outputs)}
        results = (b for b in buffers if b.kind == "output")
        self.results = sorted(results, key=lambda b: wanted[b.number])
        self.constants = [b for b in buffers if b.kind == "constant"]
        self.array_of = {
            b.number: k for k, b in enumerate([*self.inputs, *self.results, *self.constants])
        }
        literals = self.schedule.constants
        self.constant_arrays = [
            np.ascontiguousarray(literals[b.slot].array()) for b in self.constants
        ]
        self._result_specs = [(b.shape, b.dtype.numpy, b.nbytes) for b in self.results]
        # Whether the outputs are the results, in their order, and nothing else.
        self._only_results = list(self.schedule.outputs) == [b.number for b in self.results]

    def _assign_functions(self) -> None:
        """Give each native step its calls; nests of one form share a function."""
        self.functions: list[Form | DType] = []
        self.calls: list[list[tuple[int, tuple[int, ...]]]] = []
        self._numbers: dict[Any, int] = {}
        products = [s.dtype for s in self.schedule.steps if isinstance(s, MatMul)]
        self.uses_blas = any(map(calls_blas, products))
        for step in self.schedule.steps:
            if isinstance(step, HostCall):
                continue
            if isinstance(step, MatMul):
                self.calls.append([(self._function(step.dtype, step.dtype), matmul_frame(step))])
                continue
            nests = step.nests if isinstance(step, Tile) else (step,)
            forms = [form_of(n) for n in nests]
            self.calls.append([(self._function(f.key, f), f.frame) for f in forms])

    def _function(self, key: Any, function: Form | DType) -> int:
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.functions)
            self.functions.append(function)
        return found

    def _find_segments(self) -> Any:
        """Runs of native steps as (first, last), host calls as themselves."""
        first = 0
        native = 0
        for step in self.schedule.steps:
            if isinstance(step, HostCall):
                if native > first:
                    yield (first, native)
                first = native
                yield step
            else:
                native += 1
        if native > first:
            yield (first, native)

    def _make_table(self, threads: int) -> Array:
        """The table of a call, see :mod:`.llvm.driver`."""
        buffers = self.schedule.buffers
        sources = [
            -1 - self.array_of[b.number]
            if b.number in self.array_of
            else self.memory.offsets.get(b.number, 0)
            for b in buffers
        ]
        native = [s for s in self.schedule.steps if not isinstance(s, HostCall)]
        steps_at = HEADER + len(buffers)
        rest_at = steps_at + STEP_WORDS * len(native)
        steps: list[int] = []
        rest: list[int] = []  # scratch rows, frames and calls
        for step, calls in zip(native, self.calls, strict=True):
            scratch = step.scratch if isinstance(step, Tile) else ()
            scratch_at = rest_at + len(rest)
            rest += [n for s in scratch for n in (s.buffer, s.offset, s.row_bytes)]
            words = []
            for number, frame in calls:
                words += [number, rest_at + len(rest)]
                rest += frame
            extent, pieces = extent_and_pieces(step, threads)
            chunk, size = (step.chunk, step.scratch_bytes) if isinstance(step, Tile) else (0, 0)
            steps += [extent, pieces, rest_at + len(rest), len(calls)]
            steps += [chunk, scratch_at, len(scratch), size]
            rest += words
        control = thread_control() if self.uses_blas and pool_address(1) else (0, 0)
        header = [len(buffers), steps_at, *control]
        return np.array([*header, *sources, *steps, *rest], dtype=np.int64)

    # -- running --------------------------------------------------------------------------------

    def run(self, arrays: Sequence[Array], threads: int = 1) -> list[Array]:
        """Run on C-contiguous arrays; returns the outputs.

        Raises
        ------
        IndexError, ZeroDivisionError
            As the ops of the graph say, for elements out of their domain.
        """
        if self.short is not None and threads == 1 and not LISTENERS:
            return self.short.run(arrays)
        if LISTENERS:
            self._tell()
        results = [new_array(*spec) for spec in self._result_specs]
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = block(self.memory.size)
        everything = [*arrays, *results, *self.constant_arrays]
        pool = pool_address(threads) if threads > 1 or self.uses_blas else 0
        parts = threads if pool else 1
        table = self._tables.get(parts)
        if table is None:
            table = self._tables[parts] = self._make_table(parts)
        for segment in self._segments:
            if type(segment) is tuple:
                assert self.code is not None
                word = self.code.call(
                    table, segment[0], segment[1], arena, pool, threads, *everything
                )
                if word:
                    self._raise(word)
            else:
                self._run_on_host(segment, arrays, results, arena, threads)
        self._arenas.append(arena)
        return results if self._only_results else self._outputs(arrays, results)

    def _tell(self) -> None:
        """What one run does, for those who count."""
        cost = self.cost()
        steps = self.schedule.steps
        tell(
            programs=1,
            kernels=len(steps),
            library_calls=sum(isinstance(s, HostCall) for s in steps),
            bytes=cost["bytes"],
            flops=cost["flops"],
        )

    def _outputs(self, arrays: Sequence[Array], results: list[Array]) -> list[Array]:
        outputs = []
        for number in self.schedule.outputs:
            buffer = self.schedule.buffers[number]
            if buffer.kind == "output":
                outputs.append(results[self.array_of[number] - len(self.inputs)])
            elif buffer.kind == "input":
                outputs.append(np.array(arrays[buffer.slot]))
            else:
                outputs.append(self.schedule.constants[buffer.slot].array())
        return outputs

    def _view(
        self, number: int, arrays: Sequence[Array], results: list[Array], arena: Array
    ) -> Any:
        """The NumPy array of a buffer."""
        b = self.schedule.buffers[number]
        k = self.array_of.get(number)
        if k is None:
            offset = self.memory.offsets[number]
            flat = arena[offset : offset + b.nbytes].view(b.dtype.numpy)
            return flat.reshape(b.shape)
        everything = [*arrays, *results, *self.constant_arrays]
        return everything[k].reshape(b.shape)

    def _run_on_host(
        self,
        step: HostCall,
        arrays: Sequence[Array],
        results: list[Array],
        arena: Array,
        threads: int,
    ) -> None:
        operands = [self._view(n, arrays, results, arena) for n in step.arguments]
        targets = [self._view(n, arrays, results, arena) for n in step.results]
        fill(step.node, operands, targets, threads)

    def _raise(self, word: int) -> None:
        """Raise the error that a step reported: ``value << 16 | number``."""
        kind, message = self.schedule.errors[(word & 0xFFFF) - BAKED - 1]
        raise kind(message.replace("{value}", str(word >> 16)))

    @property
    def from_disk(self) -> bool:
        """Whether its code was found on disk."""
        return self.code is not None and self.code.from_disk

    # -- reports --------------------------------------------------------------------------------

    def as_text(self, stage: str) -> str:
        """The plan as text: ``fused`` (the schedule), ``llvm`` or ``asm``."""
        if stage == "fused":
            return self.schedule.text()
        if self.code is None:
            return ""
        library = self.code.library
        if stage == "llvm":
            return str(library.get_llvm_str())
        if stage == "asm":
            return str(library.get_asm_str())
        raise ValueError(f'as_text: expected "fused", "llvm" or "asm", got {stage!r}')

    def cost(self) -> dict[str, Any]:
        """Estimates for one call: flops, bytes moved, kernels, peak memory; compile times."""
        flops = nbytes = 0
        for step in self.schedule.steps:
            f, n = step_cost(step, self.schedule.buffers)
            flops, nbytes = flops + f, nbytes + n
        peak = self.memory.size + sum(b.nbytes for b in [*self.inputs, *self.results])
        return {
            "flops": flops,
            "bytes": nbytes,
            "kernels": len(self.schedule.steps),
            "functions": len(self.functions),
            "peak_memory": peak,
            "arena": self.memory.size,
            "seconds": dict(self.seconds),
        }
