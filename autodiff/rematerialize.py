"""Which values the forward part keeps for the backward part: a minimum cut.

The *known* part of a differentiated program does not depend on its linear inputs; the *linear* part
reads some of its values. Each of those is either saved or computed again from what is saved. The
cheapest choice, with saved bytes as the cost, is a least vertex cut of the known part between the
values that must not be computed again and the values that are read (row by row as in PyTorch 2's
partitioner, Horace He, "Min-cut optimal recomputation", 2022): each path between them meets a saved
value.

**Must not be computed again** is what is not cheap (matrix products, library work, regions), what
the backward part would have to write to memory anyhow, and reductions that give little for what
they read. **Capacity** of a value is ``bytes * 1.1**d``, doubled where saving it takes a write that
the forward part does not do anyhow; ``d`` (1 to 100) are the steps to its first backward reader, so
that what lives long is rather computed again. No finite cut: everything that is read is saved.

With a byte budget nothing is forbidden but has a price, the work to do it again: the least
``bytes + price * work`` is a minimum cut too, and the price goes down until the bytes fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ..ir.errors import BudgetError
from ..ir.graph import Node, Value, toposort
from .minimum_cut import Cut, vertex_cut
from .saving_network import Linear, Network, Row, bytes_of, is_plain, work_of

__all__ = ["Partition", "partition", "reads_of"]

# A byte weighs so much (as a power of two) against a unit of work times its integer price.
_FINEST = 20


@dataclass(frozen=True, slots=True)
class Partition:
    """What crosses from the forward to the backward part.

    Attributes
    ----------
    saved : tuple of Value
        In topological order.
    recomputed : tuple of Node
        What the backward part computes again, operands first.
    capacity : int or None
        Of the cut (with a budget, the bytes saved); None if there is no finite one and all that is
        read is saved.
    rows : tuple of Row
        One a value of the known part, in topological order.
    """

    saved: tuple[Value, ...]
    recomputed: tuple[Node, ...]
    capacity: int | None
    rows: tuple[Row, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the saved values."""
        return sum([x.type.nbytes for x in self.saved])


def reads_of(linear: Iterable[tuple[Node, Sequence[bool]]]) -> list[Value]:
    """The known operands of linear nodes, each once; flags tell which operands are linear."""
    reads: dict[Value, None] = {}
    for node, flags in linear:
        for x, is_linear in zip(node.inputs, flags, strict=True):
            if not is_linear and not is_plain(x.node):
                reads[x] = None
    return list(reads)


def partition(
    outputs: Sequence[Value],
    linear: Linear,
    given: Collection[Value] = (),
    *,
    budget: int | None = None,
    unsaveable: Callable[[Value], bool] = lambda x: False,
    late: bool = False,
) -> Partition:
    """Split a program between its known and its linear part.

    Parameters
    ----------
    outputs : sequence of Value
        Results of the known part.
    linear : sequence of (Node, flags)
        The linear nodes in topological order, with a flag an operand that is linear; the others are
        read from the known part.
    given : collection of Value
        Known values that are there in any case and cost nothing: arguments of a straight program;
        constants and sequences of a loop, but not its carry.
    budget : int, optional
        Most bytes to save. The work to be done again is then as small as the price finds; nothing
        but the roots (known values that are computed from nothing: a carry) is forbidden.
    unsaveable : callable
        ``unsaveable(value)``: it cannot be saved whatever it costs.
    late : bool
        Where several choices cost the same, the one that computes least again.

    Raises
    ------
    BudgetError
        If the least that can be saved is more than the budget.

    Notes
    -----
    O(V^2 E) at worst for the flow, in practice near linear. A budget takes some thirty cuts.
    """
    given = frozenset(given)
    reads = [x for x in reads_of(linear) if x not in given]
    known = _known(outputs, reads, given)
    network = Network(outputs, linear, known, reads, given)
    if budget is None:
        capacities = [None if unsaveable(x) else network.capacity(x) for x in network.values]
        # What cannot be saved is computed again, at whatever cost, or nothing would be left.
        forbidden = [
            k
            for k in network.forbidden
            if capacities[k] is not None or not network.values[k].node.inputs
        ]
        cut = vertex_cut(capacities, network.edges, forbidden, network.sinks, late=late)
        found = None if cut is None else cut.vertices
    else:
        found = _within(network, budget, unsaveable)
        capacities = [bytes_of(x.type) for x in network.values]
    saved = [network.values[k] for k in sorted(network.sinks if found is None else found)]
    return Partition(
        tuple(saved),
        tuple(_between(reads, saved, given)),
        None if found is None else sum([capacities[k] or 0 for k in found]),
        network.rows(frozenset(saved)),
    )


def _known(
    outputs: Sequence[Value], reads: Sequence[Value], given: Collection[Value]
) -> list[Node]:
    """Nodes behind the results and the reads, but for what is given whole."""
    stop = [x.node for x in given if all(y in given for y in x.node.outputs)]
    order = toposort([x for x in (*outputs, *reads) if x not in given], stop=stop)
    return [node for node in order if not is_plain(node)]


def _between(
    reads: Sequence[Value], saved: Sequence[Value], given: Collection[Value]
) -> list[Node]:
    """What is computed again to have ``reads`` where ``saved`` and ``given`` are there."""
    there = {*saved, *given}
    found: dict[Node, None] = {}
    todo = [x for x in reads if x not in there]
    while todo:
        node = todo.pop().node
        if node not in found:
            found[node] = None
            todo += [x for x in node.inputs if x not in there]
    order = toposort([x for x in reads if x not in there])
    return [node for node in order if node in found and not is_plain(node)]


# ------------------------------------------------------------------------------- with a budget


def _within(
    network: Network, budget: int, unsaveable: Callable[[Value], bool]
) -> tuple[int, ...] | None:
    """The vertices to save, of little work, whose bytes are within the budget.

    The bytes saved do not grow as the price of work falls (the two are the sides of a parametric
    minimum cut), so the price is bisected: in the logarithm first, then between two integers.
    Between two neighbouring prices lie sets that no price finds, in a chain of equal steps nearly
    all: the cut that fits takes what it has room for of the next one's vertices, evenly spaced.
    """
    sizes = [bytes_of(x.type) for x in network.values]
    capacities = [
        None if unsaveable(x) else size << _FINEST
        for x, size in zip(network.values, sizes, strict=True)
    ]
    roots = [k for k, x in enumerate(network.values) if not x.node.inputs]
    # Several results of one node share its work.
    work = [work_of(x.node) // len(x.node.types) + 1 for x in network.values]

    def cut(price: int) -> Cut | None:
        """With a byte as ``2**_FINEST`` and a unit of work as ``price``."""
        prices = [price * w for w in work]
        return vertex_cut(capacities, network.edges, roots, network.sinks, prices)

    def total(vertices: Sequence[int]) -> int:
        return sum([sizes[k] for k in vertices])

    low, high = 0, 1 << (2 * _FINEST)
    best, above = cut(low), cut(high)
    if best is None or above is None:
        return None
    if total(best.vertices) > budget:
        least = total(best.vertices)
        raise BudgetError(
            f"checkpoint: expected a budget of {least} bytes at least for the values that the "
            f"backward part needs and cannot compute again, got {budget}",
            least,
        )
    if total(above.vertices) <= budget:
        return above.vertices
    while high - low > 1 and high > 1.02 * low:
        middle = int((max(low, 1) * high) ** 0.5) if high > 4 * low else (low + high) // 2
        middle = max(middle, low + 1)
        found = cut(middle)
        if found is not None and total(found.vertices) <= budget:
            low, best = middle, found
        elif found is not None:
            high, above = middle, found
    extra = [k for k in above.vertices if k not in best.vertices]
    for count in range(len(extra), 0, -1):
        some = [extra[(i + 1) * len(extra) // (count + 1)] for i in range(count)]
        if count == len(extra):
            some = extra
        if total(best.vertices) + total(some) <= budget:
            return (*best.vertices, *some)
    return best.vertices
