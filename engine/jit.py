"""``jit``: trace a function once for each signature, compile it, and skip Python from then on."""

from __future__ import annotations

import functools
import importlib
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.errors import RetraceWarning, UnsupportedError
from ..ir.location import Location, at_user_line, user_location, user_place
from ..ir.types import TensorType
from .array import Array
from .captures import Captures
from .donation import Donation, give_away
from .parameters import Parameters, dynamic_places
from .programs import Stats
from .realize import intern, realize_arrays
from .retraces import log_trace
from .signature import Call, collect, lift_leaf, type_of
from .traced import PLANS, Program, trace_program
from .tracing import MARKS, RUNNING, find_input, is_independent

__all__ = ["Jitted", "jit"]

ndarray = np.ndarray


def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    device: str | None = None,
    max_traces: int = 64,
    memory_budget: int | None = None,
) -> Any:
    """Compile a function of arrays.

    The function is traced once for each *signature*: structure of the arguments, shape and dtype
    of each array, values of static arguments, and the scalars and arrays it reads from closures
    and globals. Later calls of the same signature run the compiled program.

    Parameters
    ----------
    fun : callable
        Pure: of pytrees of arrays, NumPy arrays (borrowed, not copied) and Python numbers, to a
        pytree of them.
    static_argnums, static_argnames : int or str, or sequence of them
        Arguments whose values are part of the program; hashable. Each implies the other.
    donate_argnums : int or sequence of int
        Arguments the caller does not use again. Their arrays are deleted by the call, and where
        nobody else can see their memory, large results are put there: a result of an argument's
        type that is computed element by element (``x - rate * g``), or an update that touches a
        part of it (``x.at[i].set(v)``, which then costs the part). NumPy arrays and Python numbers
        are not affected.
    device : str, optional
        ``"cpu"``, the only one there is.
    max_traces : int
        Programs kept for this function; the one not used for longest is dropped, with a
        :class:`~tilegrad.ir.errors.RetraceWarning`.
    memory_budget : int, optional
        Bytes that arguments, results and temporaries of a call may take together
        (``lower(...).cost()["peak_memory"]``). A program that takes more is computed in another
        order, and what it would hold for long is computed again; the bits stay.

    Returns
    -------
    Jitted
        Called like ``fun``; ``.lower(*args)`` shows the program.

    Raises
    ------
    TracerError
        When called, if the function asks a traced array for its value (``if``, ``float()``, NumPy
        conversion).
    BudgetError
        When called, if the program cannot be brought into ``memory_budget``: ``needed`` is the
        least that was reached.

    Notes
    -----
    Python numbers are run-time inputs of weak type: a new learning rate does not trace again.
    ``1``, ``1.0`` and ``True``, and ``0.0`` and ``-0.0``, are different static values. Captured
    arrays are inputs of the program, not constants in it. A NumPy array that the function reads
    from a closure or global is copied when the function is traced: another array under that name
    is seen, writing to the old one in place is not. Pass as arguments what changes.

    Examples
    --------
    >>> import tilegrad as tg
    >>> f = tg.jit(lambda x, k: k * x)
    >>> f(tg.ones(2), 3.0)
    Array([3., 3.], dtype=float64)
    """
    options: dict[str, Any] = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "device": device,
        "max_traces": max_traces,
        "memory_budget": memory_budget,
    }
    if fun is None:
        return functools.partial(jit, **options)
    return Jitted(fun, options)


def stats() -> Stats:
    """Counters of all jitted functions of this process: calls, traces, compiles, hits."""
    return PLANS.stats


jit.stats = stats  # type: ignore[attr-defined]


class Jitted:
    """A function with its compiled programs; made by :func:`jit`."""

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]) -> None:
        if not callable(fun):
            raise at_user_line(TypeError(f"jit: expected a function, got {fun!r}"))
        functools.update_wrapper(self, fun, updated=())
        self.__wrapped__ = fun
        self._options = options
        self._name = getattr(fun, "__name__", type(fun).__name__)
        if options["device"] not in (None, "cpu"):
            raise at_user_line(
                UnsupportedError(
                    f"jit({self._name}): device {options['device']!r} is not there, only 'cpu'",
                    op="jit",
                    device=str(options["device"]),
                )
            )
        budget = options["memory_budget"]
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int)):
            raise at_user_line(
                TypeError(f"jit({self._name}): memory_budget: expected bytes, got {budget!r}")
            )
        self._parameters = Parameters(fun, self._name, options)
        self._static = self._parameters.static
        self._donated = self._parameters.donated
        self._captures = Captures(fun)
        # Two tables for one set of programs: what calls look like, and what they mean.
        self._calls: dict[tuple[Any, ...], Program] = {}
        self._programs: dict[tuple[Any, ...], Program] = {}
        self._clock = 0

    # --------------------------------------------------------------------------------- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or self._static:
            return self._call_bound(*self._parameters.bind(args, kwargs))
        if self._donated:
            return self._call_bound(args, kwargs, ())
        key: list[Any] = [self._captures.version()]
        buffers: list[Any] = []
        borrowed: list[int] = []
        call = None
        # What `collect` does, written out for the commonest arguments.
        for x in args:
            kind = type(x)
            if kind is Array and x._buffer is not None:
                key.append(id(x._type))
                buffers.append(x._buffer)
            elif kind is ndarray and x.flags.carray and x.dtype.isnative:
                key += (kind, x.shape, x.dtype)
                borrowed.append(len(buffers))
                buffers.append(x)
            else:
                if call is None:
                    call = Call(key, buffers, borrowed)
                collect(x, call)
        if call is None or not (call.pending or call.unknown):
            program = self._calls.get(tuple(key))
            if program is not None:
                self._clock = program.used = self._clock + 1
                return program.run(buffers, borrowed)
            call = call or Call(key, buffers, borrowed)
        return self._call_general(call, (args, {}), ())

    def _call_bound(self, args: Any, kwargs: Any, static: tuple[Any, ...]) -> Any:
        call = Call([self._captures.version(), static, len(args)], [], [])
        donated: list[int] = []
        for place, x in zip(dynamic_places(len(args), static), args, strict=True):
            before = len(call.buffers)
            collect(x, call)
            if place in self._donated:
                donated += range(before, len(call.buffers))
        if kwargs:
            collect(kwargs, call)
        return self._call_general(call, (args, kwargs), static, donated)

    def _call_general(self, call: Call, tree: Any, static: Any, donated: Sequence[int] = ()) -> Any:
        """A call that is new, or whose arguments are not all realized arrays."""
        pending = [array for _, array in call.pending]
        if pending and not _are_traced(pending):
            realize_arrays(pending, f"argument of jit({self._name})")
            for place, array in call.pending:
                call.buffers[place] = array._look("argument")
            pending = []
        program = self._program(tuple(call.key), tree, static, call.unknown)
        if pending or program.is_open:
            return program.splice([lift_leaf(x) for x in program.leaves_of(tree)])
        if not donated or RUNNING.get():
            return program.run(call.buffers, call.borrowed)
        leaves = program.leaves_of(tree)
        places = [k for k in donated if type(leaves[k]) is Array]
        arrays = [leaves[k] for k in places]
        donation = Donation.to(f"jit({self._name})", user_place())
        free = give_away(arrays, call.buffers, places, donation)
        return program.run(call.buffers, call.borrowed, free)

    def _program(self, call: tuple[Any, ...], tree: Any, static: Any, unknown: bool) -> Program:
        """The program for a call, traced if its signature is new."""
        found = None if unknown else self._calls.get(call)
        if found is None:
            spec, leaves = Program.take_apart(tree)
            names = self._parameters.leaf_names(spec, static)
            types = tuple([type_of(x, name) for x, name in zip(leaves, names, strict=True)])
            signature = (self._captures.version(), static, spec, types)
            found = self._programs.get(signature)
            if found is None:
                found = self._trace(spec, types, static)
                if found.is_open:
                    return found  # it depends on an enclosing trace: of use once only
                # The function may have written to what it reads, say to count its traces.
                version = self._captures.version()
                signature, call = (version, *signature[1:]), (version, *call[1:])
                log_trace(self._name, found, signature, self._programs)
                self._drop_oldest(found)
                self._programs[signature] = found
            self._calls[call] = found
        self._clock = found.used = self._clock + 1
        return found

    def _trace(self, spec: Any, types: Sequence[TensorType], static: Any) -> Program:
        if not RUNNING.get() and not MARKS:
            # A tracer that an earlier trace left in an object need not be read: no error here.
            found = [x for x in self._captures.arrays() if x._buffer is None]
            pending = [x for x in found if find_input([x._value]) is None]
            if pending:
                realize_arrays(pending, f"capture of jit({self._name})")

        def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            positional, keywords = list(args), dict(kwargs)
            for place, value in static:
                if isinstance(place, int):
                    positional.insert(place, value.value)
                else:
                    keywords[place] = value.value
            return self.__wrapped__(*positional, **keywords)

        names = self._parameters.leaf_names(spec, static)
        program = trace_program(call, spec, [intern(t) for t in types], names, self._name)
        program.memory_budget = self._options["memory_budget"]
        return program

    def _drop_oldest(self, new: Program) -> None:
        limit = self._options["max_traces"]
        if len(self._programs) < limit:
            return
        signature, old = min(self._programs.items(), key=lambda item: item[1].used)
        del self._programs[signature]
        for call in [call for call, program in self._calls.items() if program is old]:
            del self._calls[call]
        where = user_location() or Location(__file__, 0)
        warnings.warn_explicit(
            f"jit({self._name}): {limit} signatures are kept (max_traces={limit}); dropped "
            f"{old.describe()} to trace {new.describe()}\n  at {where}\n"
            f"  Shapes or static values that change at each call trace each time: raise "
            f"max_traces, pad to few shapes, or pass numbers as arguments that are not static.",
            RetraceWarning,
            where.filename,
            where.line,
        )

    # ------------------------------------------------------------------------------ the rest

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The program for these arguments, to look at.

        Parameters
        ----------
        args, kwargs
            As in a call; in place of an array its type will do: ``tg.ShapeDtype((3,), "float64")``.

        Returns
        -------
        Lowered
        """
        from .lowered import Lowered

        dynamic, keywords, static = self._parameters.bind(args, kwargs)
        spec, leaves = Program.take_apart((dynamic, keywords))
        names = self._parameters.leaf_names(spec, static)
        types = [type_of(x, name) for x, name in zip(leaves, names, strict=True)]
        self._captures.version()
        return Lowered(self._trace(spec, types, static), names)

    def clear_cache(self) -> None:
        """Forget the traces of this function."""
        self._calls.clear()
        self._programs.clear()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        # A decorated function is found under its name, where its name leads to the jitted one.
        found: Any = importlib.import_module(self.__wrapped__.__module__)
        for part in self.__wrapped__.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is self:
            return self.__wrapped__.__qualname__
        return Jitted, (self.__wrapped__, self._options)

    def __repr__(self) -> str:
        return f"<jit({self._name})>"


def _are_traced(arrays: Sequence[Array]) -> bool:
    """Whether pending arrays belong to a running trace or differentiation."""
    if not RUNNING.get() and not MARKS:
        return False
    return not is_independent([x._value for x in arrays])
