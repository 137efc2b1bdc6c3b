"""Reverse mode: forward mode, then the linear part run backwards.

The jvp of a program is a web in which everything that depends on the tangent inputs is linear in
them. Transposing that part, node by node in reverse, turns cotangents of the outputs into
cotangents of the inputs. The rest of the web, the primal values that the linear part reads, is
left where it is. So only linear ops need a transpose rule, and higher orders need nothing new.

Complex values: a cotangent ``c`` is paired with a tangent ``t`` by ``Re(sum(c * t))``, bilinear,
without conjugation. The transpose of ``t -> a * t`` is therefore ``c -> a * c``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.collector import no_collection
from ..ir.errors import DTypeError, ShapeError, TilegradError
from ..ir.graph import Node, Value, toposort
from ..ir.location import one_place
from ..ir.ops.custom import UNREAD
from ..ir.ops.leaves import input_node
from ..ir.types import TensorType
from .accumulation import accumulated
from .forward import jvp, unsupported

__all__ = ["Pullback", "linear_nodes", "linear_transpose", "linearize", "transpose", "vjp"]

Pullback = Callable[[Sequence["Value | None"]], "list[Value | None]"]


def linearize(
    outputs: Sequence[Value], wrt: Sequence[Value]
) -> tuple[list[Node], list[Value | None]]:
    """Fresh tangent inputs for the values ``wrt``, and the tangents of ``outputs`` on them.

    Parameters
    ----------
    outputs, wrt : sequence of Value
        ``wrt`` are distinct floating or complex values (see :func:`.forward.jvp`).

    Returns
    -------
    inputs : list of Node
        One ``input`` node for each of ``wrt``, of its type.
    tangents : list of Value or None
        One an output: linear in the inputs, ``None`` for zero. Primal values are captured.
    """
    if len(set(wrt)) != len(wrt):
        raise TilegradError("linearize: the values to differentiate by must be distinct; use alias")
    types = [TensorType(x.shape, x.dtype) if x.type.weak else x.type for x in wrt]
    inputs = [input_node(t, f"tangent{i}") for i, t in enumerate(types)]
    return inputs, jvp(outputs, {x: t.out for x, t in zip(wrt, inputs, strict=True)})


def vjp(outputs: Sequence[Value], wrt: Sequence[Value]) -> Pullback:
    """The pullback of ``outputs`` at ``wrt``: cotangents of outputs to cotangents of ``wrt``.

    The linear part is built once; the pullback may be called any number of times, with cotangents
    that are themselves being traced.

    Returns
    -------
    callable
        ``pullback(cotangents) -> list of Value | None``: takes one cotangent an output (``None``
        for zero) and gives one for each of ``wrt`` (``None``: no output depends on it).
    """
    inputs, tangents = linearize(outputs, wrt)
    # What the arguments were computed from cannot depend on inputs made now.
    program = _LinearProgram(tangents, [node.out for node in inputs], [x.node for x in wrt])
    expected = [x.type for x in outputs]

    def pullback(cotangents: Sequence[Value | None]) -> list[Value | None]:
        _check_cotangents(expected, cotangents)
        return program.transposed(cotangents)

    return pullback


def transpose(
    linear_outputs: Sequence[Value | None],
    linear_inputs: Sequence[Value | Node],
    cotangents: Sequence[Value | None],
) -> list[Value | None]:
    """Cotangents of ``linear_inputs`` for cotangents of ``linear_outputs``.

    Parameters
    ----------
    linear_outputs : sequence of Value or None
        Linear in the inputs; ``None`` is the zero function.
    linear_inputs : sequence of Value or Node
        Where the linear part begins; what it is computed from does not matter.
    cotangents : sequence of Value or None
        One an output, of its shape and dtype.

    Raises
    ------
    UnsupportedError
        If a node between inputs and outputs is not linear in them.

    Notes
    -----
    Contributions to one value are added in reverse topological order, so the order of the sums
    depends on the program alone. No node is made for what the inputs do not reach.
    """
    for x, c in zip(linear_outputs, cotangents, strict=True):
        if x is not None and c is not None:
            _check_cotangents([x.type], [c])
    starts = [x.out if isinstance(x, Node) else x for x in linear_inputs]
    return _LinearProgram(linear_outputs, starts).transposed(cotangents)


def linear_transpose(outputs: Sequence[Value], wrt: Sequence[Value]) -> Pullback:
    """The transpose of a program that is itself linear in ``wrt``, as a reusable pullback.

    Raises
    ------
    UnsupportedError
        On the call of the pullback, if the program is not linear.
    """
    program = _LinearProgram(outputs, wrt)
    expected = [x.type for x in outputs]

    def pullback(cotangents: Sequence[Value | None]) -> list[Value | None]:
        _check_cotangents(expected, cotangents)
        return program.transposed(cotangents)

    return pullback


def linear_nodes(
    outputs: Sequence[Value], inputs: Sequence[Value]
) -> list[tuple[Node, list[bool]]]:
    """The nodes between linear inputs and outputs, in order, with a flag a linear operand."""
    return _LinearProgram(outputs, inputs).order


class _LinearProgram:
    """The nodes between linear inputs and outputs, found once."""

    @no_collection()
    def __init__(
        self,
        outputs: Sequence[Value | None],
        inputs: Sequence[Value],
        fixed: Sequence[Node] = (),
    ) -> None:
        """``fixed`` nodes do not depend on the inputs: the walk stops there."""
        self.outputs = list(outputs)
        self.inputs = list(inputs)
        # For each node that the inputs reach: which of its results are linear in them.
        linear: dict[Node, list[bool]] = {}
        for x in inputs:
            linear.setdefault(x.node, [False] * len(x.node.types))[x.index] = True
        # A node of several results is entered although one of them is an input.
        whole = [node for node in linear if len(node.types) == 1]
        self.given = {node: list(many) for node, many in linear.items() if len(many) > 1}
        self.order: list[tuple[Node, list[bool]]] = []
        for node in toposort([x for x in outputs if x is not None], stop=[*whole, *fixed]):
            flags = []
            for x in node.inputs:
                many = linear.get(x.node)
                flags.append(many is not None and many[x.index])
            if True in flags:
                self.order.append((node, flags))
                reached = _reached(node, flags)
                known = linear.get(node)
                if known is not None:
                    reached = [a or b for a, b in zip(reached, known, strict=True)]
                linear[node] = reached
        self.linear = linear

    @no_collection()
    @one_place()
    def transposed(self, cotangents: Sequence[Value | None]) -> list[Value | None]:
        sums: _Sums = {}
        for x, c in zip(self.outputs, cotangents, strict=True):
            if x is not None and c is not None:
                many = self.linear.get(x.node)
                if many is not None and many[x.index]:
                    _accumulate(sums, x, c)
        for node, flags in reversed(self.order):
            found = sums.pop(node, None)
            if found is None:
                continue
            given = self.given.get(node)
            if given is not None:  # what arrives at an input stays there
                sums[node] = [c if on else None for c, on in zip(found, given, strict=True)]
                found = [None if on else c for c, on in zip(found, given, strict=True)]
                if all(c is None for c in found):
                    continue
            for x, part in zip(node.inputs, _transposed(node, found, flags), strict=True):
                if part is not None:
                    _accumulate(sums, x, part)
        return [sums[x.node][x.index] if x.node in sums else None for x in self.inputs]


def _reached(node: Node, flags: Sequence[bool]) -> list[bool]:
    """Which results of a node depend on its linear operands."""
    if node.op.kind == "region":
        from .region_split import linear_results  # it builds on this module

        return linear_results(node, flags)
    return [t.dtype.is_inexact for t in node.types]


# The cotangents that have arrived so far, one entry a result of each node.
_Sums = dict[Node, "list[Value | None]"]


def _accumulate(sums: _Sums, x: Value, part: Value) -> None:
    many = sums.get(x.node)
    if many is None:
        many = sums[x.node] = [None] * len(x.node.types)
    present = many[x.index]
    many[x.index] = part if present is None else accumulated(present, part)


# Linear in each operand, but not in several together.
_BILINEAR = frozenset({"mul", "scale", "dot"})
# Linear in all operands together: with one of them held fixed they are affine.
_ADDITIVE = frozenset({"add", "sub"})


def _transposed(
    node: Node, cotangents: Sequence[Value | None], linear: Sequence[bool]
) -> Sequence[Value | None]:
    """Cotangents of the operands by the op's rule; only those of linear operands."""
    op = node.op
    if op.kind == "region":
        from .region_reverse import transposed_region

        return transposed_region(node, cotangents, linear)
    if op.transpose is None:
        unsupported("transpose", node, op.why_not.get("transpose", "it is not linear"))
    if op.name in _BILINEAR and sum(linear) > 1:
        unsupported("transpose", node, "it is a product of two linear values")
    if op.name in _ADDITIVE and not all(linear):
        unsupported("transpose", node, "it adds a fixed value to a linear one (affine, not linear)")
    found = op.transpose(node, cotangents[0] if len(cotangents) == 1 else cotangents, linear)
    result: list[Value | None] = []
    for i, (x, part, on) in enumerate(zip(node.inputs, found, linear, strict=True)):
        if not on or part is UNREAD:
            result.append(None)
            continue
        if part is None:
            unsupported("transpose", node, f"it is not linear in operand {i}")
        expected, got = x.type, part.type
        if got is not expected and (got.shape != expected.shape or got.dtype is not expected.dtype):
            raise TilegradError(
                f"{op.name}: the transpose rule's cotangent of operand {i}: expected {expected}, "
                f"got {got}"
            )
        result.append(part)
    return result


def _check_cotangents(expected: Sequence[TensorType], cotangents: Sequence[Value | None]) -> None:
    if len(expected) != len(cotangents):
        raise TilegradError(
            f"vjp: expected {len(expected)} cotangents, one an output, got {len(cotangents)}"
        )
    for i, (t, c) in enumerate(zip(expected, cotangents, strict=True)):
        if c is None:
            continue
        if c.shape != t.shape:
            raise ShapeError(f"vjp: cotangent {i}: expected the shape of {t}, got {c.type}")
        if c.dtype is not t.dtype:
            raise DTypeError(f"vjp: cotangent {i}: expected the dtype of {t}, got {c.type}")
