"""Taylor mode: derivatives of a curve through the web, all orders in one sweep.

A value ``x`` that moves along a curve ``x(t)`` has the *series* ``x, x', x'', ...`` at ``t = 0``.
No op has a rule of its own for that. Where ``z = f(x)`` has the tangent ``z' = T(x, z, x')``, as
the jvp rule of ``f`` says, order ``k + 1`` of ``z`` is order ``k`` of ``T``, and the order ``k`` of
``T`` asks for the orders up to ``k`` of ``x'`` (which is the series of ``x``, one further) and of
``z``: what is
there already. For ``z = exp(x)``, where ``T = x' z``, that is the classical recursion ::

    z^(k+1) = sum_j C(k, j) x^(j+1) z^(k-j)

and so it is for ``log``, ``sqrt``, ``tanh``, ``sin`` beside ``cos``, and powers (Griewank and
Walther, Evaluating Derivatives, 2008, section 13.2 and table 13.2; ours are derivatives, not Taylor
coefficients, so the sums have binomials and nothing is divided by factorials). The recursion ends
at ops that are linear, at products and at quotients, whose series are written out in
:mod:`.jet_rules`. Nodes that tangents have in common, as ``sin(x)`` is in the tangent of
``cos(x)``, are one node: that closes the recursions.

Cost for order ``K``: an op that is linear costs ``K`` times its own, a product ``K^2 / 2``, a
function whose tangent is made of itself and products likewise. Where each tangent brings a new
function (``pow``, ``lgamma``), or the op has no closed recursion (``prod``, ``cumprod``), it is of
the order ``K^3``. Nested forward mode costs ``2^K``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..ir.collector import no_collection
from ..ir.errors import UnsupportedError
from ..ir.graph import Node, Value, toposort
from ..ir.location import at_user_line, one_place
from ..ir.ops.custom import CUSTOM_CALL, values_of
from ..ir.ops.fill import zeros_of
from ..ir.ops.leaves import CONSTANT, IOTA, input_node
from ..ir.ops.regions import strong
from ..ir.rewrite import rebuild
from .forward import jvp, unsupported
from .jet_rules import EQUAL, PRODUCTS, SERIES, TANGENTS

__all__ = ["Jets", "jet"]

Coefficients = tuple["Value | None", ...]  # one for each result of a node
Series = Sequence["Value | None"]


@no_collection()
@one_place()
def jet(
    outputs: Sequence[Value], series: Mapping[Value, Series], order: int
) -> list[list[Value | None]]:
    """Derivatives of ``outputs`` along curves of the values in ``series``.

    Parameters
    ----------
    outputs : sequence of Value
    series : mapping of Value to sequence of (Value or None)
        For each value that moves the derivatives of order 1 to ``order`` of its curve, of its shape
        and dtype; None is zero. The values are independent of each other, as in
        :func:`~.forward.jvp`.
    order : int

    Returns
    -------
    list of list of (Value or None)
        For each output its derivatives of order 1 to ``order``; None is zero, by structure.

    Raises
    ------
    UnsupportedError
        If something that moves reaches an op whose jvp rule is missing on purpose.
    """
    jets = Jets(order)
    given: dict[Node, list[Series | None]] = {}
    for x, terms in series.items():
        given.setdefault(x.node, [None] * len(x.node.types))[x.index] = terms
    # A node of several results of which only some are given is entered: the others may depend on
    # more.
    stop = [node for node, many in given.items() if None not in many]
    for node in stop:
        jets.start(node, given[node])
    for node in toposort(outputs, stop=stop):
        jets.add(node, given.get(node))
    return [[jets.series(x, k) for k in range(1, order + 1)] for x in outputs]


class Jets:
    """Series of the values of a web, computed as far as somebody asks.

    Attributes
    ----------
    order : int
        The highest order of the values that are added.
    """

    def __init__(self, order: int) -> None:
        self.order = order
        self._found: dict[Node, list[Coefficients]] = {}
        self._moves: dict[Node, bool] = {}
        self._tangential: dict[Node, bool] = {}
        self._same: dict[object, Node] = {}
        self._rates: dict[Value, Value] = {}  # of a value the stand-in for its derivative
        self._rated: dict[Node, Value] = {}  # the other way round
        self._other: dict[Node, tuple[Value | None, ...]] = {}
        self._primals: dict[Node, Node] = {}
        self._roots: dict[Value, None] = {}

    # ------------------------------------------------------------------------- what there is

    def start(self, node: Node, series: Sequence[Series | None]) -> None:
        """A node whose results move as they are told."""
        self._enter(node, True, False)
        many = [s or [] for s in series]
        rows: list[Coefficients] = [node.outputs]
        for k in range(self.order):
            rows.append(tuple([s[k] if k < len(s) else None for s in many]))
        self._found[node] = rows
        self._roots.update(dict.fromkeys(node.outputs))

    def add(self, node: Node, given: Sequence[Series | None] | None = None) -> None:
        """A node whose operands were added before; those that were not do not move."""
        for x in node.inputs:
            if x.node not in self._moves:
                self._enter(x.node, False, False)
        self._enter(node, any(self._moves[x.node] for x in node.inputs), False)
        if self._moves[node]:
            self._demand(node, self.order)
        if given is not None:
            self._moves[node] = True
            rows = self._found.setdefault(node, [node.outputs])
            rows += [(None,) * len(node.types)] * (self.order + 1 - len(rows))
            for k in range(self.order):
                rows[k + 1] = tuple(
                    [r if s is None else s[k] for r, s in zip(rows[k + 1], given, strict=True)]
                )
            self._roots.update({x: None for x in node.outputs if given[x.index] is not None})

    def series(self, x: Value, k: int) -> Value | None:
        """Order ``k`` of a value that has been added, or of one made of such."""
        if not self._moves.get(x.node, False):
            return x if k == 0 else None
        self._demand(x.node, k)
        return self._found[x.node][k][x.index]

    def rate(self, x: Value) -> Value:
        """A stand-in for the derivative of ``x`` along its curve."""
        found = self._rates.get(x)
        if found is None:
            node = input_node(strong(x.type), "rate")
            found = self._rates[x] = node.out
            self._rated[node] = x
            self._enter(node, True, True)
            self._roots[found] = None
        return found

    def _enter(self, node: Node, moves: bool, tangential: bool) -> None:
        self._moves[node] = moves
        self._tangential[node] = tangential
        key = _key(node)
        if key is not None:
            self._same.setdefault(key, node)

    # ----------------------------------------------------------------------- one order more

    def _demand(self, node: Node, order: int) -> None:
        """Compute a node up to ``order``, and what that needs; nothing recurses."""
        stack = [(node, order)]
        while stack:
            node, wanted = stack[-1]
            rows = self._found.setdefault(node, [])
            k = len(rows)
            if k > wanted:
                stack.pop()
                continue
            region = k > 0 and node.op.kind == "region"
            needs = self._needs(node, wanted if region else k)
            missing = [(n, j) for n, j in needs if len(self._found.get(n, ())) <= j]
            if missing:
                stack.extend(missing)
            elif region:
                self._region(node, wanted)
            else:
                rows.append(self._row(node, k))

    def _needs(self, node: Node, k: int) -> list[tuple[Node, int]]:
        """What order ``k`` of a node is made of: nodes that move, each with an order."""
        rated = self._rated.get(node)
        if rated is not None:
            return [(rated.node, k + 1)] if self._moves[rated.node] else []
        if k == 0:
            if not self._tangential[node]:
                return []
            return [(x.node, 0) for x in node.inputs if self._moves[x.node]]
        if node.op in SERIES or node.op.kind == "region":
            return [(x.node, k) for x in node.inputs if self._moves[x.node]]
        others = [x.node for x in self._other_of(node) if x is not None]
        shift = 0 if node.op in EQUAL else 1
        return [(n, k - shift) for n in others if self._moves[n]]

    def _row(self, node: Node, k: int) -> Coefficients:
        """Order ``k``, of which everything that it needs is there."""
        rated = self._rated.get(node)
        if rated is not None:
            return (self._order_of(rated, k + 1),)
        if k == 0:
            return self._zeroth(node)
        rule = SERIES.get(node.op)
        if rule is not None:
            operands = [self._rows_of(x) for x in node.inputs]
            if all(x is None for row in operands for x in row[1:]):
                return (None,)
            return (rule(self._primal_node(node), operands, self._rows_of(node.out), k),)
        shift = 0 if node.op in EQUAL else 1
        others = self._other_of(node)
        return tuple([None if x is None else self._order_of(x, k - shift) for x in others])

    def _order_of(self, x: Value, k: int) -> Value | None:
        if not self._moves[x.node]:
            return x if k == 0 else None
        return self._found[x.node][k][x.index]

    def _rows_of(self, x: Value) -> list[Value | None]:
        if not self._moves[x.node]:
            return [x]
        return [row[x.index] for row in self._found[x.node]]

    def _primal_node(self, node: Node) -> Node:
        """The node on its operands at order 0."""
        if not self._tangential[node]:
            return node
        found = self._primals.get(node)
        if found is None:
            given = [(x, self._order_of(x, 0)) for x in node.inputs]
            inputs = [zeros_of(x.type) if y is None else y for x, y in given]
            found = self._primals[node] = rebuild(node, inputs)
        return found

    def _zeroth(self, node: Node) -> Coefficients:
        """The value itself, in a tangent with the stand-ins at order 0: None is zero."""
        if not self._tangential[node]:
            return node.outputs
        # A tangent is linear in all stand-ins together; in a product, in those of either side.
        own = [self._tangential[x.node] for x in node.inputs]
        gone = [self._order_of(x, 0) is None for x in node.inputs]
        if (any if node.op in PRODUCTS else all)(
            [z for z, on in zip(gone, own, strict=True) if on]
        ):
            return (None,) * len(node.types)
        return self._primal_node(node).outputs

    # ----------------------------------------------------------- programs that stand for orders

    def _other_of(self, node: Node) -> tuple[Value | None, ...]:
        """The results' tangents as programs, or (:data:`EQUAL`) programs of the results."""
        found = self._other.get(node)
        if found is None:
            if node.op in EQUAL:
                values: Sequence[Value | None] = EQUAL[node.op](node)
            else:
                values = self._tangents(node)
            found = self._other[node] = tuple([None if x is None else self._own(x) for x in values])
        return found

    def _tangents(self, node: Node) -> Sequence[Value | None]:
        op = node.op
        if op is CUSTOM_CALL and node.param("types"):
            refusal = node.param("rule").refusal()
            raise at_user_line(UnsupportedError(refusal, op=op.name, device="jet"))
        if op.jvp is None:
            if "jvp" in op.why_not and any(t.dtype.is_inexact for t in node.types):
                unsupported("jet", node, op.why_not["jvp"])
            return (None,) * len(node.types)
        if op is CUSTOM_CALL and any(self._moves[x.node] for x in values_of(node)):
            # The values' tangents hold the arguments still, which the rule alone can undo, and only
            # where it sees what the tangents are made of.
            return jvp(node.outputs, {x: self.rate(x) for x in list(self._roots)})
        dots = [self.rate(x) if self._has_rate(x) else None for x in node.inputs]
        if all(t is None for t in dots):
            return (None,) * len(node.types)
        rule: Callable[..., Any] = TANGENTS.get(op, op.jvp)
        result = rule(node, dots)
        return result if type(result) is tuple else (result,)

    def _has_rate(self, x: Value) -> bool:
        return self._moves[x.node] and x.dtype.is_inexact

    def _own(self, x: Value) -> Value:
        """``x`` with nodes that are known in place of equal ones; the others are entered."""
        renamed: dict[Node, Node] = {}
        stack = [(x.node, 0)]
        while stack:
            node, k = stack.pop()
            if node in self._moves or node in renamed:
                continue
            if k < len(node.inputs):
                stack += [(node, k + 1), (node.inputs[k].node, 0)]
                continue
            inputs = [Value(renamed.get(y.node, y.node), y.index) for y in node.inputs]
            new = rebuild(node, inputs)
            key = _key(new)
            known = None if key is None else self._same.get(key)
            if known is None:
                known = new
                sources = [y.node for y in inputs]
                self._enter(
                    new,
                    any(self._moves[n] for n in sources),
                    any(self._tangential[n] for n in sources),
                )
            renamed[node] = known
        return Value(renamed.get(x.node, x.node), x.index)

    def _region(self, node: Node, order: int) -> None:
        """All orders of a region at once: its body has them all."""
        from .jet_regions import region_jet  # it builds on this module

        operands = [
            [self._order_of(x, k) for k in range(1, order + 1)] if self._moves[x.node] else []
            for x in node.inputs
        ]
        found = region_jet(self._primal_node(node), operands, order)
        self._found[node][1:] = [tuple([many[k] for many in found]) for k in range(order)]


# What is not told apart by op, operands and params.
_BY_IDENTITY = ("leaf", "custom", "host", "order")


def _key(node: Node) -> object | None:
    op = node.op
    if op.kind in _BY_IDENTITY and op is not CONSTANT and op is not IOTA:
        return None
    if op.name == "hold":
        return None
    return op, node.inputs, node.params
