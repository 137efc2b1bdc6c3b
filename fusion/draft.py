"""A nest being assembled: which loops, which values."""

from __future__ import annotations

from ..ir.graph import Node, Value
from .index import Index, variable
from .layout import Axes

__all__ = ["Draft"]


class Draft:
    """A nest being assembled: roots over one iteration domain."""

    def __init__(
        self, domain: tuple[int, ...], reduced: tuple[int, ...], axes: Axes | None = None
    ) -> None:
        self.domain = domain  # extents in the order of the operand's axes
        self.reduced = reduced  # axes that reduce
        self.axes = axes or tuple(range(len(domain)))  # in the order of the loops
        self.roots: list[Value] = []
        self.reducing: set[Node] = set()  # roots that reduce; the others are points
        self.computed: set[Node] = set()  # what its roots compute
        self.length = 0  # values its roots compute, counted one by one
        self.order = self._order()

    def _order(self) -> tuple[int, ...]:
        return (*[d for d in self.axes if d not in self.reduced], *self.reduced)

    def reduce(self, reduced: tuple[int, ...]) -> None:
        """Make loops of the last axes reduction loops."""
        self.reduced = reduced
        self.order = self._order()

    def indices(self) -> tuple[Index, ...]:
        """Loop variables by axis of the domain; loops are numbered outer first."""
        found = [Index(0)] * len(self.domain)
        for loop, axis in enumerate(self.order):
            found[axis] = variable(loop, self.domain[axis])
        return tuple(found)

    def outer_indices(self) -> tuple[Index, ...]:
        at = self.indices()
        return tuple(at[d] for d in range(len(self.domain)) if d not in self.reduced)

    def reduces(self, root: Value) -> bool:
        """Whether a root is a result of the reduction loop."""
        return root.node in self.reducing
