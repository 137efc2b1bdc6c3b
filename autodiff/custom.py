"""Rules of the user's under jvp, transpose and vmap.

The engine hands over functions of graph values; here they become the rules of ``custom_call`` nodes
(:mod:`..ir.ops.custom`). Batching makes of a rule for one example the rule for many: the functions
are asked with stand-ins for one example, and what they answer is batched. So a batched rule is a
rule like any other, and ``vmap`` of derivatives, derivatives of ``vmap`` and both again need
nothing of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.errors import UnsupportedError
from ..ir.graph import Node, Value, toposort
from ..ir.location import at_user_line
from ..ir.ops.arithmetic import add, mul
from ..ir.ops.custom import (
    CUSTOM_CALL,
    UNREAD,
    Rule,
    Tie,
    custom_call,
    hold,
    unheld,
    values_of,
)
from ..ir.ops.fill import zeros_of
from ..ir.ops.leaves import input_node
from ..ir.ops.operands import convert
from ..ir.ops.reductions import sum_
from ..ir.ops.shape import broadcast, moveaxis
from ..ir.types import TensorType
from .batching import Batched, batch
from .forward import unsupported
from .reverse import transpose

__all__ = [
    *("Forward", "Pull", "Reverse", "Still", "at_axis", "batch_size", "filled_in", "instantiated"),
    *("per_example", "refuse_untransposed", "total"),
]

Tangents = Sequence["Value | None"]
Axes = Sequence["int | None"]
# push(args, extras, dots) -> one tangent a result; dots has None where an argument does not move.
Push = Callable[[Sequence[Value], Sequence[Value], Tangents], "list[Value | None]"]
# pullback(fixed, cotangents) -> one cotangent an argument; None is zero.
Pullback = Callable[[Sequence[Value], Tangents], "list[Value | None]"]
# fwd(args, extras) -> the residuals, and the pullback whose ``fixed`` they are.
Fwd = Callable[[Sequence[Value], Sequence[Value]], "tuple[list[Value], Pullback]"]


# ------------------------------------------------------------------------------------- batching


def per_example(
    call: Callable[[list[Value | None]], Tangents], operands: Tangents, axes: Axes, size: int
) -> list[Batched | None]:
    """``call`` for ``size`` examples of the operands that have an axis.

    Parameters
    ----------
    call : callable
        Of values of one example (None where the operand is None).
    operands, axes
        The batch axis of each operand; None: it is the same for all examples.

    Returns
    -------
    list of (Value, int or None), or None
        Each result with its batch axis.
    """
    stand_ins: list[Value | None] = []
    mapped: dict[Value, tuple[Value, int]] = {}
    for x, axis in zip(operands, axes, strict=True):
        if x is None or axis is None:
            stand_ins.append(x)
            continue
        shape = x.shape[:axis] + x.shape[axis + 1 :]
        one = input_node(TensorType(shape, x.dtype, x.type.weak), "example").out
        mapped[one] = (x, axis)
        stand_ins.append(one)
    results = call(stand_ins)
    found = iter(batch([y for y in results if y is not None], mapped, size))
    return [None if y is None else next(found) for y in results]


def at_axis(x: Value, axis: int | None, place: int, size: int) -> Value:
    """``x`` with its batch axis at ``place``; repeated along one if it has none."""
    if axis is not None:
        return x if axis == place else moveaxis(x, axis, place)
    shape = (*x.shape[:place], size, *x.shape[place:])
    return broadcast(x, shape, tuple(d for d in range(len(shape)) if d != place))


def batch_size(operands: Sequence[Value], axes: Axes) -> int:
    return next(x.shape[a] for x, a in zip(operands, axes, strict=True) if a is not None)


def _in_front(found: Sequence[Batched | None], size: int) -> list[Value | None]:
    return [None if b is None else at_axis(*b, 0, size) for b in found]


def _sum_over_examples(found: Batched | None, axis: int | None, size: int) -> Value | None:
    """The cotangent of an operand with batch axis ``axis``: without one, the sum of all."""
    if found is None:
        return None
    value, own = found
    if axis is not None:
        return at_axis(value, own, axis, size)
    if own is not None:
        return sum_(value, axis=own)
    return convert(mul(value, size), value.dtype)


# ---------------------------------------------------------------------------------------- rules


def total(a: Value | None, b: Value | None) -> Value | None:
    """The sum of two tangents that may be zero."""
    return b if a is None else a if b is None else add(a, b)


def _totals(a: Tangents, b: Tangents) -> tuple[Value | None, ...]:
    return tuple([total(x, y) for x, y in zip(a, b, strict=True)])


def instantiated(x: Value, dot: Value | None) -> Value:
    """A tangent of ``x``, with zeros for None."""
    return zeros_of(x.type) if dot is None else dot


class Still(Rule):
    """The rule of zeros that belong to a linear program: linear in their operand, and zero.

    A rule that adds a tangent to one that does not move would else be affine, not linear.
    """

    __slots__ = ()

    def jvp(self, node: Node, tangents: Tangents) -> tuple[Value | None, ...]:
        return (None,) * len(node.types)

    def transpose(self, node: Node, cotangents: Tangents, linear: Sequence[bool]) -> Sequence[Any]:
        return [UNREAD] * len(node.inputs)

    def batch(self, node: Node, operands: Sequence[Value], axes: Axes) -> Any:
        size = batch_size(operands, axes)
        zeros, moving = operands
        whole = at_axis(zeros, axes[0], 0, size)
        return custom_call([whole], [moving], self, node.param("tie")), (0,)


def filled_in(dots: Tangents, types: Sequence[TensorType]) -> list[Value | None]:
    """Tangents with zeros for those that are None, but for integers."""
    moving = next((t for t in dots if t is not None), None)
    found: list[Value | None] = []
    for t, of in zip(dots, types, strict=True):
        if t is None and of.dtype.is_inexact:
            zeros = zeros_of(of)
            t = zeros if moving is None else custom_call([zeros], [moving], Still(), Tie())[0]
        found.append(t if of.dtype.is_inexact else None)
    return found


class Forward(Rule):
    """The rule of a ``custom_jvp``: operands are values, arguments, extras.

    Extras are what the rule reads besides its arguments; the first ``fixed`` of them are given by
    the caller and must not move.
    """

    __slots__ = ("args", "fixed", "push", "title")

    def __init__(self, title: str, args: int, fixed: int, push: Push | None) -> None:
        self.title = title
        self.args = args
        self.fixed = fixed
        self.push = push

    def _parts(self, node: Node, many: Sequence[Any]) -> tuple[Any, Any, Any]:
        n, k = len(node.types), self.args
        return many[:n], many[n : n + k], many[n + k :]

    def jvp(self, node: Node, tangents: Tangents) -> tuple[Value | None, ...]:
        _, args, extras = self._parts(node, node.inputs)
        _, dots, others = self._parts(node, tangents)
        captured = unheld(node, tangents)
        if any(t is not None for t in others[: self.fixed]):
            unsupported("jvp", node, f"{self.title}: an argument of nondiff_argnums has a tangent")
        if all(t is None for t in dots):
            return tuple(captured)
        return _totals(captured, self._told(node, args, extras, dots))

    def _told(self, node: Node, args: Any, extras: Any, dots: Any) -> Tangents:
        """What the rule says of moving arguments."""
        assert self.push is not None
        return self.push(args, extras, dots)

    def transpose(self, node: Node, cotangents: Tangents, linear: Sequence[bool]) -> Sequence[Any]:
        # A function that is linear as it stands: back through its own operations.
        n = len(node.types)
        values = [
            zeros_of(x.type) if c is None else c
            for x, c in zip(node.inputs[:n], cotangents, strict=True)
        ]
        return [*values, *[UNREAD] * (len(node.inputs) - n)]

    def batch(self, node: Node, operands: Sequence[Value], axes: Axes) -> Any:
        size = batch_size(operands, axes)
        values, args, extras = self._parts(node, operands)
        value_axes, arg_axes, extra_axes = self._parts(node, axes)
        whole = [at_axis(x, a, 0, size) for x, a in zip(values, value_axes, strict=True)]
        rule = self._batched(arg_axes, extra_axes, size)
        found = custom_call(whole, [*args, *extras], rule, node.param("tie"))
        return found, (0,) * len(found)

    def _batched(self, arg_axes: Axes, extra_axes: Axes, size: int) -> Rule:
        assert self.push is not None
        push = batched_push(self.push, arg_axes, extra_axes, size)
        return Forward(self.title, self.args, self.fixed, push)


def batched_push(push: Push, arg_axes: Axes, extra_axes: Axes, size: int) -> Push:
    def pushed(args: Sequence[Value], extras: Sequence[Value], dots: Tangents) -> Any:
        n, m = len(args), len(extras)

        def one(x: list[Any]) -> Tangents:
            return push(x[:n], x[n : n + m], x[n + m :])

        axes = [*arg_axes, *extra_axes, *arg_axes]
        return _in_front(per_example(one, [*args, *extras, *dots], axes, size), size)

    return pushed


class Reverse(Forward):
    """The rule of a ``custom_vjp``; ``push`` is its companion for forward mode, if it has one.

    Forward mode without a companion is refused, but not over reverse mode (``hvp``, ``hessian``),
    where values of the function are part of a gradient: there it is the transpose of the pullback.
    So a rule remembers whether reverse mode has asked it.
    """

    __slots__ = ("asked", "fwd")

    def __init__(self, title: str, args: int, fixed: int, fwd: Fwd, push: Push | None) -> None:
        super().__init__(title, args, fixed, push)
        self.fwd = fwd
        self.asked = False

    def _told(self, node: Node, args: Any, extras: Any, dots: Any) -> Tangents:
        """A linear function of the tangents that is known by its transpose."""
        residuals, pullback = self.fwd(args, extras)
        moving = [i for i, t in enumerate(dots) if t is not None]
        kept = [i for i, t in enumerate(node.types) if t.dtype.is_inexact]
        types = [node.types[i] for i in kept]
        push: Push | None = self.push
        if push is None and self.asked:
            push = lambda *x: self._transposed(node.types, *x)  # noqa: E731
        n, k = len(residuals), len(args)

        def pulled(fixed: Sequence[Value], cotangents: Tangents) -> list[Value | None]:
            self.asked = True
            given = dict(zip(kept, cotangents, strict=True))
            found = pullback(fixed[:n], [given.get(i) for i in range(len(node.types))])
            return [found[i] for i in moving]

        def pushed(fixed: Sequence[Value], some: Sequence[Value]) -> list[Value]:
            given = dict(zip(moving, some, strict=True))
            assert push is not None
            try:
                found = push(fixed[n : n + k], fixed[n + k :], [given.get(i) for i in range(k)])
            except UnsupportedError:
                if self.push is not None:
                    raise
                return []  # a pullback that is not linear; the other way back may be all we need
            return [instantiated(node.outputs[i], found[i]) for i in kept]

        fixed = residuals if push is None else [*residuals, *args, *extras]
        pull = Pull(self.title, len(fixed), pulled, None if push is None else pushed)
        found = iter(pull.called(fixed, [t for t in dots if t is not None], types))
        return [next(found) if t.dtype.is_inexact else None for t in node.types]

    def _transposed(
        self,
        types: Sequence[TensorType],
        args: Sequence[Value],
        extras: Sequence[Value],
        dots: Tangents,
    ) -> list[Value | None]:
        """The pullback, which is linear in cotangents, transposed."""
        residuals, pullback = self.fwd(args, extras)
        bars = [input_node(t, f"cotangent{i}").out for i, t in enumerate(types)]
        given = [c if c.dtype.is_inexact else None for c in bars]
        back = pullback(residuals, given)
        found = iter(transpose(back, [c for c in given if c is not None], dots))
        return [None if c is None else next(found) for c in given]

    def _batched(self, arg_axes: Axes, extra_axes: Axes, size: int) -> Rule:
        push = self.push
        if push is not None:
            push = batched_push(push, arg_axes, extra_axes, size)
        fwd = self.fwd

        def many(args: Sequence[Value], extras: Sequence[Value]) -> Any:
            pullback: list[Pullback] = []

            def one(x: list[Any]) -> list[Value]:
                residuals, pull = fwd(x[: len(args)], x[len(args) :])
                pullback.append(pull)
                return residuals

            found = per_example(one, [*args, *extras], [*arg_axes, *extra_axes], size)
            values = [b[0] for b in found if b is not None]
            axes = [b[1] for b in found if b is not None]
            return values, batched_pullback(pullback[0], axes, arg_axes, size)

        rule = Reverse(self.title, self.args, self.fixed, many, push)
        rule.asked = self.asked
        return rule


def batched_pullback(pullback: Pullback, axes: Axes, arg_axes: Axes, size: int) -> Pullback:
    """``axes`` are those of what is fixed; cotangents come with the batch axis in front."""

    def pulled(fixed: Sequence[Value], cotangents: Tangents) -> list[Value | None]:
        n = len(axes)

        def one(x: list[Any]) -> Tangents:
            return pullback(x[:n], x[n:])

        operands = [*fixed[:n], *cotangents]
        found = per_example(one, operands, [*axes, *[0] * len(cotangents)], size)
        return [_sum_over_examples(b, a, size) for b, a in zip(found, arg_axes, strict=True)]

    return pulled


class Pull(Rule):
    """A linear function of tangents, known by its transpose.

    Operands are values (if there is a companion for forward mode, which computes them), what is
    fixed, and tangents.
    """

    __slots__ = ("fixed", "pullback", "push", "title")

    def __init__(
        self,
        title: str,
        fixed: int,
        pullback: Pullback,
        push: Callable[[Sequence[Value], Sequence[Value]], list[Value]] | None,
    ) -> None:
        self.title = title
        self.fixed = fixed
        self.pullback = pullback
        self.push = push

    def refusal(self) -> str:
        return (
            f"{self.title}: forward mode (jvp, jacfwd, linearize) of a function whose rule only "
            f"tells the reverse; give it a rule for forward mode with .defjvp, or use grad, vjp "
            f"or jacrev"
        )

    def called(
        self, fixed: Sequence[Value], dots: Sequence[Value], types: Sequence[TensorType]
    ) -> tuple[Value, ...]:
        # The derivative of the values by the tangents is this rule's, so they are held.
        tie = Tie()
        values = self.push(fixed, [hold(t, tie) for t in dots]) if self.push else ()
        return custom_call(values, [*fixed, *dots], self, tie, types)

    def _parts(self, node: Node, many: Sequence[Any]) -> tuple[Any, Any, Any]:
        n = len(values_of(node))
        return many[:n], many[n : n + self.fixed], many[n + self.fixed :]

    def jvp(self, node: Node, tangents: Tangents) -> tuple[Value | None, ...]:
        _, fixed, dots = self._parts(node, node.inputs)
        _, fixed_dots, moved = self._parts(node, tangents)
        if any(t is not None for t in fixed_dots) and not values_of(node):
            unsupported("jvp", node, self.refusal())
        known = tuple(unheld(node, tangents)) or (None,) * len(node.types)
        if all(t is None for t in moved):
            return known
        some = [instantiated(x, t) for x, t in zip(dots, moved, strict=True)]
        return _totals(known, self.called(fixed, some, node.types))

    def transpose(self, node: Node, cotangents: Tangents, linear: Sequence[bool]) -> Sequence[Any]:
        values, fixed, dots = self._parts(node, node.inputs)
        found = self.pullback(fixed, cotangents)
        back = [instantiated(x, c) for x, c in zip(dots, found, strict=True)]
        # None for a linear residual: reverse mode says that the call is not linear in it.
        return [*[UNREAD] * len(values), *[None] * len(fixed), *back]

    def batch(self, node: Node, operands: Sequence[Value], axes: Axes) -> Any:
        size = batch_size(operands, axes)
        values, fixed, dots = self._parts(node, operands)
        value_axes, fixed_axes, dot_axes = self._parts(node, axes)
        pullback = batched_pullback(self.pullback, fixed_axes, dot_axes, size)
        push = self.push and self._batched_push(self.push, fixed_axes, dot_axes, size)
        whole = [at_axis(x, a, 0, size) for x, a in zip(values, value_axes, strict=True)]
        types = [TensorType((size, *t.shape), t.dtype, t.weak) for t in node.types]
        rule = Pull(self.title, self.fixed, pullback, push)
        results = custom_call(whole, [*fixed, *dots], rule, node.param("tie"), types)
        return results, (0,) * len(results)

    def _batched_push(self, push: Any, fixed_axes: Axes, dot_axes: Axes, size: int) -> Any:
        def pushed(fixed: Sequence[Value], dots: Sequence[Value]) -> list[Value | None]:
            n = self.fixed
            operands, axes = [*fixed, *dots], [*fixed_axes, *dot_axes]
            found = per_example(lambda x: push(x[:n], x[n:]), operands, axes, size)
            return _in_front(found, size)

        return pushed


def refuse_untransposed(tangents: Tangents) -> None:
    """Raise if a tangent depends on a linear function that is known by its transpose alone."""
    for node in toposort([t for t in tangents if t is not None]):
        if node.op is CUSTOM_CALL and node.param("types"):
            raise at_user_line(
                UnsupportedError(node.param("rule").refusal(), op="custom_call", device="jvp")
            )
