"""The graph: ops, nodes, values.

A program is a web of immutable nodes that point at their operands; there is no builder state and
no ambient trace. A :class:`Value` is one result of a node. A :class:`Graph` names the inputs and
outputs of a closed piece of that web. Nodes compare by identity, so differentiation with respect
to a node cannot be confused with another one, and a tracer of an enclosing transform is just
another node.

Nothing here recurses: every walk uses an explicit stack, so that a chain of 100,000 nodes is as
good as a chain of three.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import TilegradError
from .location import Location, Place, at_user_line, location_of, user_place
from .records import record
from .types import Shape, TensorType

if TYPE_CHECKING:
    from .dtypes import DType

__all__ = ["Graph", "Literal", "Node", "Op", "Value", "make", "toposort"]

Params = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """All that is known of one operation: one record, found by its name.

    Attributes
    ----------
    name : str
        Name in graph text.
    kind : str
        Mathematical family; decides how the op is batched, fused and tested. One of ``leaf
        elementwise reduction cumulative view index dot sort linalg region custom host order``.
    infer : callable
        ``infer(*operand_types, **params) -> TensorType`` (or a tuple of them). Raises
        ``ShapeError`` or ``DTypeError`` on bad operands.
    reference : callable or None
        ``reference(*arrays, **params) -> array``: the value by NumPy, one op at a time. The oracle.
    scalar : callable or None
        Elementwise ops: the scalar program ``scalar(h, *operands)`` for real operands, see
        :mod:`.scalar.vocabulary`. Params of the node are passed by keyword.
    complex_scalar : callable or None
        The same for complex operands, which are ``(real, imaginary)`` pairs of handler values.
    jvp : callable or None
        ``jvp(node, tangents) -> Value | None`` (tuple for several outputs): the tangent of the
        output, linear in ``tangents`` (``None`` stands for zero). ``None`` as a field means the
        derivative is zero everywhere (integer or piecewise constant results).
    transpose : callable or None
        ``transpose(node, cotangent, linear) -> sequence of Value | None``, one entry an operand;
        ``linear[i]`` tells whether operand ``i`` is part of the linear program. ``None`` as a
        field: the op is not linear in any operand.
    batch : callable or None
        ``batch(node, operands, axes) -> (Value, axis)``: the op applied along a new axis.
        ``axes[i]`` is the batch axis of operand ``i`` or ``None``. Elementwise ops share one rule
        and leave this ``None``.
    check : callable or None
        Elementwise ops that refuse some operands at run time (integer division by zero): the
        scalar program ``check(h, *operands)`` whose bool result is true for a bad element, or
        ``None`` where this dtype has no bad operands. A backend that can raise tests it; the
        ``scalar`` program stays total, so one that cannot gives that value.
    check_error : (class, message) or None
        What is raised when ``check`` finds a bad element.
    identity : callable or None
        Reductions: ``identity(dtype)``, the value an accumulator starts from. Their ``scalar`` is
        the merge program ``scalar(h, accumulator, element)``.
    accumulator : callable or None
        Reductions: ``accumulator(dtype)``, the dtype of the accumulator where it is not the
        element's own; the result is rounded to the element type once.
    doc : str
        One line of meaning, with the source of the convention.
    samples : callable or None
        ``samples(rng, dtype) -> arrays``: operands inside the domain, away from kinks, for tests.
        Ops with params yield pairs ``(arrays, params)``.
    why_not : dict
        For each rule that is missing on purpose: field name -> reason.
    """

    name: str
    kind: str
    infer: Callable[..., Any]
    reference: Callable[..., Any] | None = None
    scalar: Callable[..., Any] | None = None
    complex_scalar: Callable[..., Any] | None = None
    jvp: Callable[..., Any] | None = None
    transpose: Callable[..., Any] | None = None
    batch: Callable[..., Any] | None = None
    check: Callable[..., Any] | None = None
    check_error: tuple[type[Exception], str] | None = None
    identity: Callable[[DType], Any] | None = None
    accumulator: Callable[[DType], DType] | None = None
    doc: str = ""
    samples: Callable[..., Any] | None = None
    why_not: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<op {self.name}>"


@record(eq=False, weakref_slot=True)
class Node:
    """One application of an op; ``place`` tells where the user's program made it.

    ``memo`` is the one slot that may be written after construction, once and by the engine alone:
    the computed results of a node whose operands are all concrete. It never takes part in the
    meaning of a graph.
    """

    op: Op
    inputs: tuple[Value, ...]
    params: Params
    types: tuple[TensorType, ...]
    place: Place | None = None
    memo: Any = None

    @property
    def location(self) -> Location | None:
        """The user's line that made the node."""
        return location_of(self.place)

    def param(self, name: str) -> Any:
        """The parameter called ``name``."""
        for key, value in self.params:
            if key == name:
                return value
        raise KeyError(name)

    @property
    def out(self) -> Value:
        """The first (usually only) result."""
        return Value(self, 0)

    @property
    def outputs(self) -> tuple[Value, ...]:
        if len(self.types) == 1:
            return (Value(self),)
        return tuple([Value(self, i) for i in range(len(self.types))])

    def __repr__(self) -> str:
        return f"<{self.op.name}: {', '.join(map(str, self.types))}>"


@record(eq=False)
class Value:
    """Result number ``index`` of ``node``. Equal when node (by identity) and index are.

    The arithmetic operators build nodes (:mod:`.ops`), so that derivative rules read as formulas.
    """

    node: Node
    index: int = 0

    # Values are keys of every walk over a graph: the generated methods build two tuples a call.
    def __eq__(self, other: object) -> bool:
        return type(other) is Value and self.node is other.node and self.index == other.index

    def __hash__(self) -> int:
        return hash(self.node) ^ self.index

    @property
    def type(self) -> TensorType:
        return self.node.types[self.index]

    @property
    def shape(self) -> Shape:
        return self.node.types[self.index].shape

    @property
    def dtype(self) -> DType:
        return self.node.types[self.index].dtype

    @property
    def ndim(self) -> int:
        return len(self.node.types[self.index].shape)

    @property
    def size(self) -> int:
        return self.node.types[self.index].size

    def __repr__(self) -> str:
        return f"<value {self.node.op.name}: {self.type}>"

    def __bool__(self) -> bool:
        raise TypeError("a graph value has no truth; use select")

    # The operators are bound by ops/arithmetic.py: Value must not know the op table.
    if TYPE_CHECKING:

        def __add__(self, other: Any) -> Value: ...
        def __radd__(self, other: Any) -> Value: ...
        def __sub__(self, other: Any) -> Value: ...
        def __rsub__(self, other: Any) -> Value: ...
        def __mul__(self, other: Any) -> Value: ...
        def __rmul__(self, other: Any) -> Value: ...
        def __truediv__(self, other: Any) -> Value: ...
        def __rtruediv__(self, other: Any) -> Value: ...
        def __neg__(self) -> Value: ...


@dataclass(frozen=True, slots=True)
class Literal:
    """Constant data: hashable, compared by bits, so ``0.0`` differs from ``-0.0``.

    ``data`` are the bytes in C order; :meth:`array` shows them as a read-only NumPy array.
    """

    dtype: DType
    shape: Shape
    data: bytes

    @staticmethod
    def of(value: Any, dtype: DType) -> Literal:
        array = np.asarray(value, dtype=dtype.numpy)
        return Literal(dtype, array.shape, array.tobytes())

    def array(self) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.data, self.dtype.numpy).reshape(self.shape)

    def item(self) -> Any:
        """The Python scalar of a one-element literal."""
        return self.array().reshape(()).item()


def make(op: Op, inputs: Sequence[Value], **params: Any) -> Value:
    """A new node of a one-result op, checked by its type rule; returns its value."""
    return Value(make_node(op, inputs, **params))


def make_node(op: Op, inputs: Sequence[Value], **params: Any) -> Node:
    """A new node, checked by the op's type rule; params are stored in the order of their names."""
    inputs = tuple(inputs)
    try:
        types = op.infer(*[x.node.types[x.index] for x in inputs], **params)
    except (TilegradError, IndexError) as error:
        raise at_user_line(error) from None
    if type(types) is not tuple:
        types = (types,)
    ordered: Params = ()
    if params:
        ordered = tuple(sorted(params.items()) if len(params) > 1 else params.items())
    return Node(op, inputs, ordered, types, user_place())


def toposort(outputs: Iterable[Value], stop: Collection[Node] = ()) -> list[Node]:
    """Nodes that ``outputs`` need, operands first; nodes in ``stop`` are not entered, not listed.

    The order is a function of the graph alone (depth first, first operand first), so texts, keys
    and kernels built from it are reproducible.
    """
    order: list[Node] = []
    seen: set[Node] = set(stop)
    for output in outputs:
        stack: list[tuple[Node, int]] = [(output.node, 0)]
        if output.node in seen:
            continue
        seen.add(output.node)
        while stack:
            node, next_input = stack.pop()
            inputs = node.inputs
            while next_input < len(inputs):
                child = inputs[next_input].node
                next_input += 1
                if child not in seen:
                    seen.add(child)
                    stack.append((node, next_input))
                    node, inputs, next_input = child, child.inputs, 0
            order.append(node)
    return order


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A closed program: ``inputs`` are input nodes, everything else hangs off ``outputs``.

    Attributes
    ----------
    inputs : tuple of Node
        Nodes of the op ``input``; unused ones are allowed.
    outputs : tuple of Value
    name : str
        For texts and messages.
    """

    inputs: tuple[Node, ...]
    outputs: tuple[Value, ...]
    name: str = "main"

    def nodes(self) -> list[Node]:
        """All nodes but the inputs, operands first."""
        return toposort(self.outputs, stop=self.inputs)
