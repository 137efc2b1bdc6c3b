"""``custom_linear_solve`` and ``custom_root``: solvers whose derivatives come from the equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..autodiff.solves import Root, Solve, System, inline
from ..ir.errors import DTypeError
from ..ir.graph import Graph, Value
from ..ir.location import at_user_line
from ..ir.ops.custom import Rule, Tie, custom_call, hold
from ..ir.ops.leaves import input_node
from ..ir.ops.operands import convert
from ..ir.types import TensorType
from .array import wrap
from .directional import jvp, linear_transpose
from .marking import checked_pair, name_of
from .regions import Leaves, as_leaves, check_like, close_regions, trace_region
from .signature import lift_leaf
from .tracing import MARKS, RUNNING, find_input
from .tree import map as map_tree

__all__ = ["custom_linear_solve", "custom_root"]

Part = tuple[list[Value], list[Value]]


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve ``A x = b`` in your own way; derivatives are those of the exact solution.

    Parameters
    ----------
    matvec : callable
        ``matvec(x) = A x``, linear; it may read arrays that are being differentiated.
    b : pytree of arrays
        Floating or complex.
    solve : callable
        ``solve(matvec, b) -> x``, like ``b``.
    transpose_solve : callable, optional
        ``transpose_solve(vecmat, b) -> x`` with the transposed system (without conjugation); what
        reverse mode needs.
    symmetric : bool
        ``A`` is its own transpose: ``solve`` serves for both.
    has_aux : bool
        ``solve`` returns ``(x, aux)``, and so do you get it; derivatives of ``aux`` are zero.

    Returns
    -------
    pytree like ``b``

    Raises
    ------
    UnsupportedError
        In reverse mode without a way to solve the transposed system.

    Notes
    -----
    Forward: ``A x_dot = b_dot - A_dot x``; reverse: ``A^T b_bar = x_bar``. Derivatives are right
    where ``x`` is a solution. Any order, any mode, under ``vmap`` and ``jit``. ``solve`` is also
    traced for derivatives, so it may not look at values.

    Examples
    --------
    >>> import tilegrad as tg
    >>> def divide(a, b):
    ...     return tg.custom_linear_solve(
    ...         lambda x: a * x, b, lambda f, b: b / f(1.0), symmetric=True
    ...     )
    >>> float(tg.grad(divide)(2.0, 3.0))
    -0.75
    """
    title = f"custom_linear_solve({name_of(matvec)})"
    sides = _floating(title, as_leaves(b, "b"), "b")
    out, solution = _attempt(title, "a solution", sides, lambda b: solve(matvec, b), has_aux)
    if solution is None:
        return out
    turned = _turned(matvec, solve, transpose_solve, symmetric, sides)
    systems = [(matvec, solve), *([turned] if turned and turned[0] is not matvec else [])]
    parts: list[Part] = []
    for product, way in systems:
        parts.append(_part(title, product, sides, _of_one(sides, product)))
        first = _of_one(sides, lambda v, f=product, w=way: _split_aux(title, w(f, v), has_aux)[0])
        parts.append(_part(title, way, sides, first))
    graphs, constants = _closed(parts)
    forward = System(*graphs[:2])
    backward = None if turned is None else System(*graphs[2:]) if graphs[2:] else forward
    return solution.ruled([*constants, *sides.values], Solve(title, forward, backward))


def _turned(
    matvec: Any, solve: Any, transpose_solve: Any, symmetric: bool, sides: Leaves
) -> tuple[Any, Any] | None:
    """The product with the transpose and the way to solve with it."""
    if symmetric:
        return matvec, solve
    if transpose_solve is None:
        return None
    pull = linear_transpose(matvec, sides.tree())

    def vecmat(v: Any) -> Any:
        return pull(map_tree(lambda x, b: wrap(convert(lift_leaf(x), b.dtype)), v, sides.tree()))[0]

    return vecmat, transpose_solve


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """Find a root of ``f`` in your own way; derivatives are those of the exact root.

    Parameters
    ----------
    f : callable
        ``f(x)``, like ``x``; it may read arrays that are being differentiated.
    initial_guess : pytree of arrays
        Floating or complex. The root does not depend on it, so its derivative is zero.
    solve : callable
        ``solve(f, initial_guess) -> x`` with ``f(x) = 0``. It is not differentiated: it may look at
        values wherever there are any, and stop when it likes.
    tangent_solve : callable
        ``tangent_solve(g, y) -> x`` with ``g(x) = y`` for the linear ``g``, the derivative of ``f``
        at the root: ``lambda g, y: y / g(1.0)`` for scalars. Linear in ``y``; reverse mode
        transposes it, so an iterative method belongs into a :func:`custom_linear_solve`.
    has_aux : bool
        ``solve`` returns ``(x, aux)``, and so do you get it; derivatives of ``aux`` are zero.

    Returns
    -------
    pytree like ``initial_guess``

    Notes
    -----
    The implicit function theorem: ``df/dx x_dot = -df/dc c_dot`` for what ``f`` reads.

    Examples
    --------
    >>> import tilegrad as tg
    >>> def bisect(f, x):
    ...     low, high = 0.0, 10.0
    ...     for _ in range(60):
    ...         mid = (low + high) / 2
    ...         low, high = (mid, high) if f(mid) < 0 else (low, mid)
    ...     return tg.asarray(mid)
    >>> def root(c):
    ...     return tg.custom_root(lambda x: x * x - c, 1.0, bisect, lambda g, y: y / g(1.0))
    >>> round(float(tg.grad(root)(4.0)), 12)
    0.25
    """
    title = f"custom_root({name_of(f)})"
    guess = _floating(title, as_leaves(initial_guess, "initial_guess"), "initial_guess")
    out, solution = _attempt(title, "a root", guess, lambda x: solve(f, x), has_aux)
    if solution is None:
        return out

    def tangent(arrays: list[Any]) -> Any:
        n = len(guess.values)
        at, y = (
            guess.tree([a._value for a in arrays[:n]]),
            guess.tree([a._value for a in arrays[n:]]),
        )
        return tangent_solve(lambda v: jvp(f, (at,), (v,))[1], y)

    twice = Leaves(guess.spec, guess.names * 2, guess.values * 2)
    parts = [
        _part(title, f, guess, _of_one(guess, f)),
        _part(title, tangent_solve, guess, tangent, twice),
    ]
    (function, way), constants = _closed(parts)
    return solution.ruled(constants, Root(title, function, way))


@dataclass(frozen=True, slots=True)
class _Solution:
    """What the user's solver found, and what ties it to what it was given."""

    found: Leaves
    aux: Any
    has_aux: bool
    tie: Tie

    def ruled(self, operands: Sequence[Value], rule: Rule) -> Any:
        """The same with derivatives by ``rule``."""
        values = [hold(convert(v, v.dtype), self.tie) for v in self.found.values]
        x = self.found.tree(custom_call(values, operands, rule, self.tie))
        return (x, self.aux) if self.has_aux else x


def _attempt(
    title: str, what: str, given: Leaves, solve: Callable[[Any], Any], has_aux: bool
) -> tuple[Any, _Solution | None]:
    """What ``solve`` returns for ``given``, and the same taken apart: None if nobody differentiates
    it."""
    tie = Tie()
    out = solve(given.tree([hold(x, tie) for x in given.values]))
    x, aux = _split_aux(title, out, has_aux)
    if _is_plain(given.values):
        return out, None
    found = as_leaves(x, "the result of solve")
    check_like(title, what, given, found)
    return out, _Solution(found, aux, has_aux, tie)


def _is_plain(values: Sequence[Value]) -> bool:
    """Whether nobody can differentiate: known values, and nothing is being traced or marked."""
    return not RUNNING.get() and not MARKS and find_input(values) is None


def _floating(title: str, given: Leaves, what: str) -> Leaves:
    for x, name in zip(given.values, given.names, strict=True):
        if not x.dtype.is_inexact:
            raise at_user_line(
                DTypeError(
                    f"{title}: {what}: expected floating or complex arrays, got {name}: {x.type}; "
                    f"convert with astype"
                )
            )
    return Leaves(given.spec, given.names, [convert(x, x.dtype) for x in given.values])


def _split_aux(title: str, out: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return out, None
    return checked_pair(f"{title}: has_aux=True", out, "(x, aux)", "solve")


def _of_one(like: Leaves, fun: Callable[[Any], Any]) -> Callable[[list[Any]], Any]:
    return lambda arrays: fun(like.tree([a._value for a in arrays]))


def _part(
    title: str,
    fun: Callable[..., Any],
    like: Leaves,
    call: Callable[[list[Any]], Any],
    inputs: Leaves | None = None,
) -> Part:
    """A function traced on stand-ins; its result must be like ``like``."""
    given = like if inputs is None else inputs
    region = trace_region(title, fun, given.types, given.names, call)
    check_like(f"{title}: {name_of(fun)}", "a result", like, region.out)
    return region.inputs, region.out.values


def _closed(parts: Sequence[Part]) -> tuple[list[Graph], list[Value]]:
    """Graphs of the parts, all with the same constants in front, and these constants."""
    found = [close_regions(inputs, outputs) for inputs, outputs in parts]
    constants = list(dict.fromkeys([x for _, captured in found for x in captured]))
    graphs = []
    for graph, captured in found:
        fresh = [input_node(_strong(x.type), f"c{k}") for k, x in enumerate(constants)]
        own = [input_node(node.types[0], node.param("name")) for node in graph.inputs]
        own = own[len(captured) :]
        place = dict(zip(constants, fresh, strict=True))
        arguments = [*[place[x].out for x in captured], *[node.out for node in own]]
        graphs.append(Graph((*fresh, *own), inline(graph, arguments), graph.name))
    return graphs, constants


def _strong(t: TensorType) -> TensorType:
    return TensorType(t.shape, t.dtype)
