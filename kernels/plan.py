"""Plans: a graph made ready to run on arrays."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..fusion.loops import HostCall, Schedule
from ..fusion.lower import lower
from ..fusion.memory import plan_memory
from ..ir.graph import Graph
from .cpu.library import fill
from .cpu.openblas import thread_control
from .donation import takeover
from .events import LISTENERS, tell
from .flatten import Flat
from .host_regions import run_on_host
from .llvm.frame import BAKED
from .machine import Code, compile_code
from .pool import pool_address
from .storage import block, new_array
from .tapes import Tapes
from .work import step_cost

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
        self._arena = plan.flat.size
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
        self.flat = Flat(schedule, self.memory)
        self.functions = self.flat.functions
        self.uses_blas = self.flat.uses_blas
        self.tapes = Tapes(self.flat.tapes) if self.flat.tapes else None
        self.seconds = {"schedule": seconds}
        self._arenas: list[Array] = []
        self._tables: dict[int, Array] = {}
        self._takeovers: dict[tuple[int, ...], tuple[Any, dict[int, int]]] = {}
        self._programs: dict[Graph, Plan] = {}  # of regions that run on the host
        self._assign_arrays()
        self.code: Code | None = None
        if self.functions or self.flat.has_regions:
            start = time.perf_counter()
            self.code = compile_code(self.functions)
            self.seconds["code"] = time.perf_counter() - start
            self.seconds.update(self.code.seconds)
        self._segments = self.flat.segments
        self.short: ShortCall | None = None
        if (
            self._only_results
            and not self.uses_blas
            and self.tapes is None
            and len(self._segments) == 1
            and type(self._segments[0]) is tuple
            and all(nbytes <= SMALL for *_, nbytes in self._result_specs)
            and self.flat.size <= SMALL
        ):
            self.short = ShortCall(self, self._make_table(1), *self._segments[0])

    # -- layout ---------------------------------------------------------------------------------

    def _assign_arrays(self) -> None:
        """Number the arrays a call hands over: inputs, outputs, constants."""
        buffers = self.schedule.buffers
        self.inputs = sorted((b for b in buffers if b.kind == "input"), key=lambda b: b.slot)
        wanted = {number: k for k, number in enumerate(self.schedule.outputs)}
        results = (b for b in buffers if b.kind == "output" and not b.is_tape)
        self.results = sorted(results, key=lambda b: wanted[b.number])
        numbers = [b.number for b in [*self.inputs, *self.results]]
        numbers += [number for number, _ in self.flat.constants]
        self.array_of = {number: k for k, number in enumerate(numbers)}
        literals = [literal for _, literal in self.flat.constants]
        self.constant_arrays = [np.ascontiguousarray(x.array()) for x in literals]
        self._result_specs = [(b.shape, b.dtype.numpy, b.nbytes) for b in self.results]
        # Whether the outputs are the results, in their order, and nothing else.
        self._only_results = list(self.schedule.outputs) == [b.number for b in self.results]

    def _make_table(self, threads: int) -> Array:
        """The table of a call, see :mod:`.llvm.driver`."""
        control = thread_control() if self.uses_blas and pool_address(1) else (0, 0)
        return np.array(self.flat.table(threads, self.array_of, control), dtype=np.int64)

    # -- running --------------------------------------------------------------------------------

    def run(
        self, arrays: Sequence[Array], threads: int = 1, donated: tuple[int, ...] = ()
    ) -> list[Array]:
        """Run on C-contiguous arrays; returns the outputs, some of them in ``donated`` arrays.

        Raises
        ------
        IndexError, ZeroDivisionError
            As the ops of the graph say, for elements out of their domain.
        """
        if self.short is not None and threads == 1 and not LISTENERS:
            return self.short.run(arrays)
        if LISTENERS:
            self._tell()
        segments, taken = self._segments, {}
        if donated:
            segments, taken = self._taken_over(donated)
        results = [
            arrays[taken[k]] if k in taken else new_array(*spec)
            for k, spec in enumerate(self._result_specs)
        ]
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = block(self.flat.size)
        everything = [*arrays, *results, *self.constant_arrays]
        pool = pool_address(threads) if threads > 1 or self.uses_blas else 0
        parts = threads if pool else 1
        table = self._tables.get(parts)
        if table is None:
            table = self._tables[parts] = self._make_table(parts)
        kept: list[Array] = []  # tapes that the host made
        try:
            if self.tapes is not None:
                self.tapes.begin(arena)
                for b in self.inputs:
                    if b.is_tape:
                        self.tapes.point(arena, b.number, arrays[b.slot])
            for segment in segments:
                if type(segment) is tuple:
                    assert self.code is not None
                    word = self.code.call(
                        table, segment[0], segment[1], arena, pool, threads, *everything
                    )
                    if word:
                        self._raise(word)
                else:
                    self._run_on_host(segment, arrays, results, arena, threads, kept)
            outputs = results if self._only_results else self._outputs(arrays, results, arena)
        finally:
            if self.tapes is not None:
                self.tapes.release(arena)
        self._arenas.append(arena)
        return outputs

    def _taken_over(self, donated: tuple[int, ...]) -> tuple[Any, dict[int, int]]:
        """Segments to run, and the arguments that results lie in."""
        found = self._takeovers.get(donated)
        if found is None:
            plan = takeover(self.schedule, donated)
            places = {
                k: plan.inputs[b.number]
                for k, b in enumerate(self.results)
                if b.number in plan.inputs
            }
            found = self._takeovers[donated] = (plan.segments, places)
        return found

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

    def _outputs(self, arrays: Sequence[Array], results: list[Array], arena: Array) -> list[Array]:
        outputs = []
        for number in self.schedule.outputs:
            buffer = self.schedule.buffers[number]
            if buffer.kind == "output" and self.tapes is not None and number in self.tapes:
                outputs.append(self.tapes.view(arena, number, buffer).copy())
            elif buffer.kind == "output":
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
        if self.tapes is not None and number in self.tapes:
            return arrays[k] if k is not None else self.tapes.view(arena, number, b)
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
        kept: list[Array],
    ) -> None:
        operands = [self._view(n, arrays, results, arena) for n in step.arguments]
        if step.node.op.kind != "region":
            targets = [self._view(n, arrays, results, arena) for n in step.results]
            fill(step.node, operands, targets, threads)
            return
        # A region with library calls inside.
        found = run_on_host(step.node, operands, lambda graph: self._program(graph, threads))
        for number, value in zip(step.results, found, strict=True):
            if self.tapes is not None and number in self.tapes:
                kept.append(value)
                self.tapes.point(arena, number, value)
            else:
                self._view(number, arrays, results, arena)[...] = value

    def _program(self, graph: Graph, threads: int) -> Any:
        """A graph of a region as a function of a list of arrays."""
        plan = self._programs.get(graph)
        if plan is None:
            plan = self._programs[graph] = compile_graph(graph)
        return lambda given: plan.run(given, threads)

    def _raise(self, word: int) -> None:
        """Raise the error that a step reported: ``value << 16 | number``."""
        kind, message = self.flat.errors[(word & 0xFFFF) - BAKED - 1]
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
        host = [s for s in self.schedule.steps if isinstance(s, HostCall)]
        for step in self.schedule.steps:
            f, n = step_cost(step, self.schedule.buffers)
            flops, nbytes = flops + f, nbytes + n
        peak = self.flat.size + sum(b.nbytes for b in [*self.inputs, *self.results])
        return {
            "flops": flops,
            "bytes": nbytes,
            "kernels": len(self.schedule.steps),
            "functions": len(self.functions),
            "peak_memory": peak,
            "arena": self.flat.size,
            "host_loops": sum(s.node.op.kind == "region" for s in host),
            "seconds": dict(self.seconds),
        }
