"""Nodes that say what is to be computed again rather than kept.

A function under ``checkpoint`` is one node that holds it as a graph::

    y = checkpoint(x) {body}

Its derivative is a ``checkpoint`` node too, whose body computes what it needs of ``f`` again from
``x``. When differentiation is over all of them are replaced by their bodies
(:mod:`..passes.inline`) and the operands that are ``held`` by :data:`AFTER` nodes on them: the
values themselves, yet not to be merged with what was computed from them before, and not to be
touched until the cotangents are there. Without that, eliminating common subexpressions would undo
the recomputation, and a schedule could run all of it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import TilegradError
from ..graph import Graph, Value, make
from ..types import TensorType
from .custom import Rule, ask_batch, ask_jvp, ask_transpose
from .domains import between, with_params
from .registry import register

__all__ = ["AFTER", "CHECKPOINT", "NAMED", "after", "named"]


# ------------------------------------------------------------------------------------ checkpoint


def _checkpoint_type(
    *operands: TensorType, body: Graph, held: tuple[bool, ...], rule: Rule
) -> tuple[TensorType, ...]:
    expected = tuple([node.types[0] for node in body.inputs])
    # Weakness may differ: what depends on it is settled, conversions are nodes.
    if not len(held) == len(operands) == len(expected) or any(
        a.shape != b.shape or a.dtype is not b.dtype
        for a, b in zip(operands, expected, strict=True)
    ):
        raise TilegradError(
            f"checkpoint: expected operands {', '.join(map(str, expected))}, got "
            f"{', '.join(map(str, operands))}"
        )
    return tuple([x.type for x in body.outputs])


def _checkpoint_value(
    *operands: Any, body: Graph, held: tuple[bool, ...], rule: Rule
) -> tuple[Any, ...]:
    from ..interpret import interpret_graph

    return tuple(interpret_graph(body, operands))


CHECKPOINT = register(
    "checkpoint",
    "custom",
    infer=_checkpoint_type,
    reference=_checkpoint_value,
    jvp=ask_jvp,
    transpose=ask_transpose,
    batch=ask_batch,
    doc="The results of `body` on the operands. `held` operands wait until the others are there. "
    "`rule` knows what derivatives save. Replaced by its body before compilation.",
    why_not={"samples": "its body is the user's: tests/autodiff/test_recompute.py"},
)


# ----------------------------------------------------------------------------------------- after


def _after_type(x: TensorType, *others: TensorType) -> TensorType:
    return x


_TOO_LATE = "made when differentiation is over"

AFTER = register(
    "after",
    "order",
    infer=_after_type,
    reference=lambda x, *others: x,
    doc="The first operand, where it is read only when the others are there; never merged with it.",
    why_not={
        "jvp": _TOO_LATE,
        "transpose": _TOO_LATE,
        "batch": _TOO_LATE,
        "samples": "a value as it is",
    },
)


def after(x: Value, others: Sequence[Value]) -> Value:
    return make(AFTER, (x, *others))


# ---------------------------------------------------------------------------------------- a name


NAMED = register(
    "checkpoint_name",
    "elementwise",
    infer=lambda x, *, name: x,
    reference=lambda x, *, name: x,
    scalar=lambda h, x, *, name: x,
    complex_scalar=lambda h, x, *, name: x,
    jvp=lambda node, tangents: tangents[0],
    transpose=lambda node, cotangent, linear: (cotangent,),
    doc="The operand itself under a name that policies of checkpoint know. Dropped by "
    "canonicalization.",
    samples=with_params(between((-3, 3)), {"name": "hidden"}),
)


def named(x: Value, name: str) -> Value:
    return make(NAMED, (x,), name=name)
