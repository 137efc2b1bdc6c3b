"""Traced functions: a closed program with the containers of its arguments and results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.errors import DTypeError
from ..ir.graph import Graph, Value, toposort
from ..ir.location import at_user_line
from ..ir.ops.leaves import constant
from ..ir.rewrite import substitute
from ..ir.types import TensorType
from ..kernels.events import LISTENERS, tell
from .array import Array, from_numpy, wrap
from .closing import Web, close, graph_of
from .config import config
from .effects import living, perform_again
from .programs import PlanTable, fitted
from .realize import data_node, intern
from .rebuild import builder
from .single import run_nodes
from .tracing import RUNNING, Trace, placeholder, tracer_error, tracing
from .tree import paths, put_together, take_apart

__all__ = ["PLANS", "Program", "output_value", "trace_program"]

# Programs of jitted functions, by canonical key: equal functions share one.
PLANS = PlanTable(limit=2048)
_STATS = PLANS.stats


def output_value(x: Any, where: str) -> Value:
    """The graph value of a leaf that a traced function returned."""
    if type(x) is Array:
        return x._value
    if isinstance(x, bool | int | float | complex | np.generic):
        return constant(x)
    if isinstance(x, np.ndarray):
        return from_numpy(x)._value
    raise at_user_line(
        DTypeError(
            f"{where}: expected arrays, numbers or containers of them, got {type(x).__name__} {x!r}"
        )
    )


class Program:
    """A function traced for one signature.

    Attributes
    ----------
    inputs, outputs : list of Value
        The arguments' stand-ins, and the results, which may depend on other things that were
        there when the function ran.
    effects : list of Value
        Tokens of what the function does besides, in its order.
    is_open : bool
        Whether the results depend on something that is itself being traced or differentiated: the
        program cannot run on its own and serves this one call.
    used : int
        When it was called last, on the function's own clock.
    """

    __slots__ = (
        "trace_seconds",
        "_build",
        "_forwarded",
        "_hidden",
        "_out_spec",
        "_plan",
        "_single",
        "_types",
        "effects",
        "inputs",
        "is_open",
        "memory_budget",
        "names",
        "outputs",
        "title",
        "used",
        "web",
    )

    def __init__(
        self,
        title: str,
        inputs: list[Value],
        names: Sequence[str],
        outputs: list[Value],
        out_spec: Any,
        web: Web,
        effects: Sequence[Value] = (),
    ) -> None:
        self.title = title
        self.inputs = inputs
        self.names = list(names)
        self.outputs = outputs
        self.effects = list(effects)
        self.web = web
        self.is_open = bool(web.foreign or web.marks)
        self.used = 0
        self.memory_budget: int | None = None
        self.trace_seconds = 0.0
        self._out_spec = out_spec
        self._plan: Any = None
        self._build: Any = None
        self._single = out_spec is None
        self._types = [intern(x.type) for x in outputs]
        self._forwarded = _forwarded(inputs, outputs)
        self._hidden = [x.node.memo[x.index] for x in web.leaves[len(inputs) :] if x.node.memo]

    # ------------------------------------------------------------------- arguments

    @staticmethod
    def take_apart(tree: Any) -> tuple[Any, list[Any]]:
        """Structure and leaves of ``(args, kwargs)``."""
        leaves: list[Any] = []
        return take_apart(tree, leaves), leaves

    def leaves_of(self, tree: Any) -> list[Any]:
        """The leaves of ``(args, kwargs)``."""
        return Program.take_apart(tree)[1]

    def describe(self) -> str:
        """``(x: f64[3], n: i64[]~)``."""
        return (
            "("
            + ", ".join(
                [f"{name}: {x.type}" for name, x in zip(self.names, self.inputs, strict=True)]
            )
            + ")"
        )

    # ------------------------------------------------------------------------ running

    def graph(self) -> Graph:
        """The program as it is compiled: without results that are arguments."""
        return graph_of(self.web, self.names, self.title)

    def whole_graph(self) -> Graph:
        """The program with all results, then its effects; captured arrays are further inputs."""
        web = close([*self.outputs, *self.effects], [x.node for x in self.inputs])
        return graph_of(web, self.names, self.title)

    @property
    def captured(self) -> list[Any]:
        """Buffers of captured arrays: inputs of :meth:`graph` behind the arguments."""
        return list(self._hidden)

    def computed(self) -> list[str]:
        """Where in the result each output of :meth:`graph` stands, tokens of effects left out."""
        given = set(self.inputs)
        where = paths(self._out_spec, "result")
        return [path for path, x in zip(where, self.outputs, strict=True) if x not in given]

    def plan(self) -> Any:
        """The compiled program."""
        if self._plan is None:
            self._build = builder(self._out_spec)
            key, budget = self.web.key, self.memory_budget
            if budget is None:
                self._plan = PLANS.compiled(key, self.graph)
            else:
                self._plan = PLANS.compiled((key, budget), lambda: fitted(self.graph(), budget))
        return self._plan

    def run(
        self, buffers: list[Any], borrowed: Sequence[int] = (), donated: tuple[int, ...] = ()
    ) -> Any:
        """The results for these arguments.

        Those at the places ``borrowed`` are the caller's own memory; that of the ``donated`` ones,
        which nobody else refers to, may become that of results.
        """
        plan = self._plan
        if plan is None:
            plan = self.plan()
        _STATS.calls += 1
        if self.effects and RUNNING.get():  # they belong to the program that is being traced
            leaves = zip(buffers, self.inputs, strict=True)
            return self.splice([data_node(y, x.type).out for y, x in leaves])
        given = [*buffers, *self._hidden] if self._hidden else buffers
        if config.stepwise:  # a view of an argument may come back, while plans fill new arrays
            results = [_own(y, buffers, borrowed) for y in run_nodes(self.web, given)]
        else:
            if donated and self._forwarded:
                donated = tuple([k for k in donated if all(k != i for _, i in self._forwarded)])
            try:
                results = plan.run_over(given, donated) if donated else plan.run(given)
            except (ArithmeticError, LookupError, ValueError):
                # Effects must not happen twice, and donated arguments may be gone.
                if not self.effects and not donated:
                    run_nodes(self.web, given)  # raises the same with the line of the node
                raise
        if self.effects:
            del results[-len(self.effects) :]
        for i, place in self._forwarded:
            results.insert(i, buffers[place].copy() if place in borrowed else buffers[place])
        types = self._types
        if self._single:
            return Array(results[0], None, types[0])
        return self._build([Array(y, None, t) for y, t in zip(results, types, strict=True)])

    def splice(self, values: Sequence[Value]) -> Any:
        """The results as part of the web that ``values`` belong to."""
        given = dict(zip(self.inputs, values, strict=True))
        replaced = substitute([*self.outputs, *self.effects], given)
        if self.effects:
            replaced, tokens = replaced[: len(self.outputs)], replaced[len(self.outputs) :]
            perform_again(tokens)
        return put_together(self._out_spec, iter([wrap(x) for x in replaced]))


def _forwarded(inputs: Sequence[Value], outputs: Sequence[Value]) -> list[tuple[int, int]]:
    """Results that are arguments as they came: they are not computed."""
    places = {x: i for i, x in enumerate(inputs)}
    return [(i, places[x]) for i, x in enumerate(outputs) if x in places]


def _own(result: Any, buffers: Sequence[Any], borrowed: Sequence[int]) -> Any:
    """A result that shares no memory with the caller's arrays."""
    own = result.base is None  # unless it is the argument itself
    for i in borrowed:
        if result is buffers[i] or not (own or not np.may_share_memory(result, buffers[i])):
            return result.copy()
    return result


def trace_program(
    call: Callable[..., Any],
    spec: Any,
    types: Sequence[TensorType],
    names: Sequence[str],
    name: str,
) -> Program:
    """Run ``call(args, kwargs)`` on stand-ins for its arguments and close what comes back.

    Raises
    ------
    TracerError
        If the result depends on an argument of a function that has returned.
    DTypeError
        If something other than arrays, numbers and containers comes back.
    """
    start = time.perf_counter()
    title = f"jit({name})"
    trace = Trace(title)
    PLANS.stats.traces += 1
    if LISTENERS:
        tell(traces=1)
    with tracing(trace):
        inputs = [placeholder(t, n, trace) for t, n in zip(types, names, strict=True)]
        args, kwargs = put_together(spec, iter([wrap(x) for x in inputs]))
        result = call(args, kwargs)
        leaves: list[Any] = []
        out_spec = take_apart(result, leaves)
        where = paths(out_spec, "the result")
        outputs = [
            output_value(x, f"{title}: {path}") for x, path in zip(leaves, where, strict=True)
        ]
    given = set(inputs)
    effects = living(trace.effects, inputs)
    web = close([*[x for x in outputs if x not in given], *effects], [x.node for x in inputs])
    for node in web.foreign:
        owner = node.param("trace")
        if owner is not None and not owner.active:
            value = next(x for x in outputs if _reaches(x, node))
            raise tracer_error(title, value, node)
    if web.foreign and not RUNNING.get() and not web.marks:
        # An enclosing trace runs elsewhere: another thread's tracer came in through a closure.
        value = next(x for x in outputs if _reaches(x, web.foreign[0]))
        raise tracer_error(title, value, web.foreign[0])
    program = Program(name, inputs, names, outputs, out_spec, web, effects)
    program.trace_seconds = time.perf_counter() - start
    return program


def _reaches(value: Value, node: Any) -> bool:
    return node in toposort([value])
