"""Nodes that carry a rule of the user's: values as computed, derivatives as told.

A function with a rule of its own is not a region. It runs in the open, on :func:`hold`-ed
arguments, and one node ties its results to the arguments::

    y = f(hold(x))                       the primal: ordinary nodes, fused and merged like any other
    z = custom_call(y, x, c) {rule}      z is y; its derivative is what the rule says of x

``hold`` lets no tangent pass, so a transform that meets ``z`` asks the rule and never looks into
``f`` for the derivative by ``x``. What ``f`` captures is not held: its tangent arrives with ``y``
and is added, with ``x`` in place of ``hold(x)``, or its own derivative by ``x`` would be lost
(:func:`unheld`). ``c`` are captured values that the rule reads; as operands they follow the
arguments through every transform. When differentiation is over, ``z`` is replaced by ``y`` and
nothing is left of the rule.

The same op, without values, is the linear part of a rule that only knows its transpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import UnsupportedError
from ..graph import Node, Value, make, make_node
from ..rewrite import rewrite
from ..types import TensorType
from .registry import register

__all__ = [
    *("CUSTOM_CALL", "HOLD", "UNREAD", "Rule", "Tie"),
    *("custom_call", "hold", "unheld", "values_of"),
]


class Tie:
    """What a ``custom_call`` and the ``hold`` nodes of its arguments have in common.

    All ties are equal and hash alike, and so are rules: neither says anything about the value of a
    node, so programs that differ in them alone are the same program once they are compiled. They
    are told apart by identity, and no pass that merges nodes runs before differentiation is over.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tie)

    def __hash__(self) -> int:
        return hash(Tie)


class Rule(Tie):
    """What derivatives a ``custom_call`` has."""

    __slots__ = ()
    title = "custom rule"

    def jvp(self, node: Node, tangents: Sequence[Value | None]) -> tuple[Value | None, ...]:
        """Tangents of the results, see :class:`~..graph.Op`."""
        raise NotImplementedError

    def transpose(
        self, node: Node, cotangents: Sequence[Value | None], linear: Sequence[bool]
    ) -> Sequence[Any]:
        """Cotangents of the operands; :data:`UNREAD` for one that needs none."""
        raise NotImplementedError

    def batch(
        self, node: Node, operands: Sequence[Value], axes: Sequence[int | None]
    ) -> tuple[tuple[Value, ...], tuple[int | None, ...]]:
        """The call for many examples at once."""
        raise NotImplementedError

    def refusal(self) -> str:
        """Why a call without values cannot be evaluated."""
        return f"{self.title}: is known by its transpose alone"


class _Unread:
    """A linear operand through which nothing flows back: its share is another operand's."""

    def __repr__(self) -> str:
        return "UNREAD"


UNREAD = _Unread()


# ----------------------------------------------------------------------------------------- hold


HOLD = register(
    "hold",
    "elementwise",
    infer=lambda x, *, tie: x,
    reference=lambda x, *, tie: x,
    scalar=lambda h, x, *, tie: x,
    complex_scalar=lambda h, x, *, tie: x,
    jvp=lambda node, tangents: None,
    transpose=lambda node, cotangent, linear: (cotangent,),
    doc="The operand itself; no tangent passes, since a custom_call on the same operand has it. "
    "Dropped by canonicalization.",
    why_not={"samples": "a part of custom_call"},
)


def hold(x: Value, tie: Tie) -> Value:
    return make(HOLD, (x,), tie=tie)


def unheld(node: Node, tangents: Sequence[Value | None]) -> list[Value | None]:
    """Tangents of a call's values, as functions of its arguments and not of held ones.

    ``tangents`` are those of all operands, the values' first.
    """
    count = len(values_of(node))
    given = [t for t in tangents[:count] if t is not None]
    if not given:
        return list(tangents[:count])
    tie = node.param("tie")

    def given_back(x: Node) -> Value | None:
        return x.inputs[0] if x.op is HOLD and x.param("tie") is tie else None

    # What the other operands and their tangents are computed from is outside of the function.
    others = (*node.inputs[count:], *[t for t in tangents[count:] if t is not None])
    found = iter(rewrite(given, given_back, stop=[x.node for x in others]))
    return [None if t is None else next(found) for t in tangents[:count]]


# ---------------------------------------------------------------------------------- custom_call


def _call_type(
    *operands: TensorType, count: int, types: tuple[TensorType, ...], rule: Rule, tie: Tie
) -> tuple[TensorType, ...]:
    return types or operands[:count]


def _call_value(
    *operands: Any, count: int, types: tuple[TensorType, ...], rule: Rule, tie: Tie
) -> tuple[Any, ...]:
    if types:
        raise UnsupportedError(rule.refusal(), op="custom_call", device="jvp")
    return operands[:count]


def ask_jvp(node: Node, tangents: Sequence[Value | None]) -> Any:
    return node.param("rule").jvp(node, tangents)


def ask_transpose(node: Node, cotangent: Any, linear: Sequence[bool]) -> Any:
    many = [cotangent] if len(node.types) == 1 else cotangent
    return node.param("rule").transpose(node, many, linear)


def ask_batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    return node.param("rule").batch(node, operands, axes)


CUSTOM_CALL = register(
    "custom_call",
    "custom",
    infer=_call_type,
    reference=_call_value,
    jvp=ask_jvp,
    transpose=ask_transpose,
    batch=ask_batch,
    doc="The first `count` operands, with derivatives by `rule` in terms of the others. With "
    "`types` in place of values, a linear function known by its transpose. Dropped by "
    "canonicalization.",
    why_not={"samples": "its rule is the user's"},
)


def custom_call(
    values: Sequence[Value],
    operands: Sequence[Value],
    rule: Rule,
    tie: Tie,
    types: Sequence[TensorType] = (),
) -> tuple[Value, ...]:
    """The results of a call: ``values``, or if there are none of the given ``types``."""
    count = len(values) or len(types)
    if not count:
        return ()
    given = () if values else tuple(types)
    node = make_node(
        CUSTOM_CALL, (*values, *operands), count=count, types=given, rule=rule, tie=tie
    )
    return node.outputs


def values_of(node: Node) -> tuple[Value, ...]:
    """The operands that a ``custom_call`` passes on; none if it has no values."""
    return () if node.param("types") else node.inputs[: node.param("count")]
