"""Programs to look at: text of every stage, cost, compilation ahead of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.errors import DTypeError, TracerError
from ..ir.graph import Graph
from ..ir.location import at_user_line
from ..ir.text import text
from .signature import Call, collect, type_of
from .traced import Program

if TYPE_CHECKING:
    from .stages import StageReport

__all__ = ["Compiled", "Lowered"]

STAGES = ("ir", "optimized", "fused", "llvm", "asm")


class Lowered:
    """A traced function for one signature; made by ``jit(f).lower(*args)``."""

    def __init__(self, program: Program, names: Sequence[str]) -> None:
        if program.is_open:
            raise at_user_line(
                TracerError(
                    f"lower: {program.title} depends on arrays that are being traced; call lower "
                    f"outside jit, vmap and grad"
                )
            )
        self._program = program
        self._names = list(names)

    @property
    def graph(self) -> Graph:
        """The program as traced; captured arrays are further inputs ``c0, c1, ...``."""
        return self._program.whole_graph()

    def as_text(self, stage: str = "ir") -> str:
        """The program in words.

        Parameters
        ----------
        stage : str
            ``"ir"`` as traced, ``"optimized"`` after the passes, ``"fused"`` as loop nests,
            ``"llvm"`` and ``"asm"`` as compiled.
        """
        if stage not in STAGES:
            raise at_user_line(
                ValueError(f"as_text: expected one of {', '.join(STAGES)}, got {stage!r}")
            )
        if stage == "ir":
            return text(self.graph)
        if stage == "optimized":
            from ..ir.passes.manager import optimize

            return text(optimize(self.graph))
        return self._program.plan().plan.as_text(stage)  # type: ignore[no-any-return]

    def cost(self) -> dict[str, Any]:
        """What one call costs and what compiling took.

        Returns
        -------
        dict
            ``flops`` and ``bytes`` (estimates), ``kernels`` (steps), ``functions`` (different
            ones), ``peak_memory`` and ``arena`` in bytes, and ``seconds``: time spent to trace,
            optimize, schedule, emit and compile, or to load what was compiled before.
        """
        cost: dict[str, Any] = self._program.plan().plan.cost()
        cost["seconds"] = {"trace": self._program.trace_seconds, **cost["seconds"]}
        return cost

    def why_not_fused(self, a: str | int, b: str | int) -> str:
        """Whether two operations run in the same loops; if not, why.

        Parameters
        ----------
        a, b : str or int
            An operation of the optimized program by name, ``"exp"``, or ``"exp:1"`` for the second
            of several; or the number of an output.

        Returns
        -------
        str
            Lines: where each is computed and whether it has memory of its own; then the verdict,
            with one line for each reason. ``as_text("fused")`` shows the steps that are meant.

        Raises
        ------
        ValueError
            If there is no such operation or output.

        Examples
        --------
        >>> import tilegrad as tg
        >>> f = tg.jit(lambda x: x - tg.sum(x))
        >>> print(f.lower(tg.ShapeDtype((100,))).why_not_fused("sum", "sub"))
        sum f64[]: step 0; has a buffer (result of a reduction)
        sub f64[100]: step 1; has a buffer (output of the graph)
        not fused:
        - different loops: 100 with axis 0 reduced and 100
        - sub f64[100] needs the finished result of sum f64[]
        - no tile: their outer loops have no number of rows in common, 4 at least
        """
        from ..fusion.explain import Explainer

        explainer = Explainer(self._program.plan().plan.schedule)
        try:
            values = [self._found(explainer, x) for x in (a, b)]
        except ValueError as error:
            raise at_user_line(ValueError(f"why_not_fused: {error.args[0]}")) from None
        return explainer.why_not_fused(*values)

    def _found(self, explainer: Any, x: str | int) -> Any:
        if isinstance(x, str):
            return explainer.named(x)
        inputs, outputs = self._program.inputs, self._program.outputs
        if not 0 <= x < len(outputs):
            raise ValueError(f"expected an output below {len(outputs)}, got {x}")
        if outputs[x] in inputs:
            raise ValueError(f"output {x} is an argument as it came: nothing computes it")
        return explainer.output(x - sum(y in inputs for y in outputs[:x]))  # those are not compiled

    def compare_stages(self, *args: Any, **kwargs: Any) -> StageReport:
        """Run the program at every stage and compare each with the one before.

        For when a result looks wrong: it tells whether a pass, a kernel, their fusion or the
        threads are to blame, or the program itself.

        Parameters
        ----------
        args, kwargs
            As for the function, without static ones, of the types that were lowered for.

        Returns
        -------
        StageReport
            ``first``, the first stage that differs, or None; ``rows``, one a stage; ``node``, the
            first node that differs in it. ``print`` shows a table.

        Raises
        ------
        DTypeError
            If the arguments are of other types.
        ArithmeticError, LookupError, ValueError
            As calls with these arguments do.

        Notes
        -----
        Passes, fusion and threads must keep every bit (any NaN is like any other). Kernels
        of single nodes are compared with NumPy on the same operands: elementwise results may be
        16 ulp apart, results of ``n`` terms (reductions, scans, products) ``16 sqrt(n)`` ulp of
        the sum of magnitudes, results of factorizations half their digits; loops and branches
        must have the bits of their steps, run one by one. What a node is blamed for is found by
        bisection, which compiles the program about ``log2`` of its nodes times. Effects and
        callbacks happen at every stage. Loops are run by Python too: take few iterations.

        Examples
        --------
        >>> import tilegrad as tg
        >>> f = tg.jit(lambda x: tg.sum(2 * x))
        >>> x = tg.arange(4.0)
        >>> report = f.lower(x).compare_stages(x)
        >>> print(report.first)
        None
        >>> [row.stage for row in report.rows if "/" not in row.stage]
        ['ir', 'nodes', 'fused', 'threads']
        """
        from .stages import compare_stages

        given = _arguments(self._program, self._names, args, kwargs)
        return compare_stages(self._program, given.buffers)

    def compile(self) -> Compiled:
        """The program as a function of arguments of exactly these types."""
        self._program.plan()
        return Compiled(self._program, self._names)

    def __repr__(self) -> str:
        return f"<lowered {self._program.title}{self._program.describe()}>"


class Compiled:
    """A compiled program: called like the function, it refuses other types."""

    def __init__(self, program: Program, names: Sequence[str]) -> None:
        self._program = program
        self._names = list(names)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = _arguments(self._program, self._names, args, kwargs)
        return self._program.run(call.buffers, call.borrowed)

    def __repr__(self) -> str:
        return f"<compiled {self._program.title}{self._program.describe()}>"


def _arguments(
    program: Program, names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call:
    """The arguments of a call, of exactly the program's types."""
    leaves = program.leaves_of((args, kwargs))
    expected = [x.type for x in program.inputs]
    if len(leaves) != len(expected):
        raise at_user_line(
            TypeError(
                f"{program.title}: was compiled for {program.describe()}, got {len(leaves)} arrays"
            )
        )
    for x, t, name in zip(leaves, expected, names, strict=True):
        found = type_of(x, name)
        if found.shape != t.shape or found.dtype is not t.dtype:
            raise at_user_line(
                DTypeError(
                    f"{program.title}: argument {name}: was compiled for {t}, got "
                    f"{found}; lower and compile again for other types"
                )
            )
    call = Call([], [], [])
    collect(leaves, call)
    for place, array in call.pending:
        call.buffers[place] = array._look(f"argument {names[place]}")
    return call
