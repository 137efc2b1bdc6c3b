"""The transpose of a loop: the loop over its records in the opposite direction.

Its carries are the cotangents of the carries, and sums of the cotangents of captured values; its
sequences are the records, the known sequences, and the cotangents of what the loop recorded; it
records the cotangents of the sequences.

A captured matrix that meets a vector in each step gets an outer product in each step. Their sum is
not carried: the loop records the vectors, and one product of all of them follows it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..ir.graph import Graph, Node, Value, make, toposort
from ..ir.ops import add, lt, where
from ..ir.ops.dot import DOT
from ..ir.ops.fill import zeros_of
from ..ir.ops.regions import Loop
from ..ir.ops.shape import TRANSPOSE, broadcast
from .accumulation import accumulated, continued
from .region_split import Split, fresh_input, or_zeros

__all__ = ["Backward"]


@dataclass(frozen=True, slots=True)
class _Carry:
    """A carry of the backward loop, for the operand at ``place`` among the body's inputs."""

    place: int
    input: Node
    init: Value
    output: Value


class Backward:
    """The transpose of ``loop``, whose body is split, for some cotangents of its results."""

    def __init__(self, loop: Loop, split: Split, cotangents: Sequence[Value | None]) -> None:
        self.loop = loop
        self.split = split
        self.body = loop.body
        self.carries = len(loop.init)
        self.at = 1 + len(loop.consts)  # of the first carry among the inputs
        self.cotangents = list(cotangents)
        self.stand_ins = [fresh_input(x.type, "record") for x in split.saved]
        self.trips: Node | None = None
        self.active: Value | None = None
        if loop.count is not None and loop.lanes:  # where a lane is done, nothing flows back
            self.trips = fresh_input(loop.count.type, "trips")
            self.active = lt(broadcast(self.body.inputs[0].out, loop.lanes, ()), self.trips.out)

    def run(self, records: Sequence[Value]) -> list[Value | None]:
        """Cotangents of (consts, init, sequences); ``records`` are what the split saved."""
        live = [c is not None for c in self.cotangents[: self.carries]]
        while True:
            given = self._inputs(live)
            found = self.split.transposed(
                [x.out for x in self.stand_ins],
                [self._masked(k, x) for k, x in enumerate(given)],
            )
            parts = found[self.at : self.at + self.carries]
            after = [a or c is not None for a, c in zip(live, parts, strict=True)]
            if after == live:
                return self._built(records, given, found)
            live = after

    def _inputs(self, live: Sequence[bool]) -> list[Node | None]:
        """An input for the cotangent of each output that has one."""
        on = [*live, *[c is not None for c in self.cotangents[self.carries :]]]
        return [
            fresh_input(y.type, "ct") if wanted else None
            for y, wanted in zip(self.body.outputs, on, strict=True)
        ]

    def _masked(self, k: int, x: Node | None) -> Value | None:
        own = k < self.carries - self.loop.shared or k >= self.carries
        if x is None or self.active is None or not own:
            return None if x is None else x.out
        kept = broadcast(self.active, x.types[0].shape, tuple(range(self.active.ndim)))
        return where(kept, x.out, zeros_of(x.types[0]))

    def _built(
        self,
        records: Sequence[Value],
        given: Sequence[Node | None],
        found: Sequence[Value | None],
    ) -> list[Value | None]:
        loop, at, inner = self.loop, self.at, self.body.inputs
        end = at + self.carries
        state = self._cotangent_carries(given, found)
        shared = sum(c.place >= end - loop.shared for c in state)
        products: dict[int, list[_Product]] = {}
        for k in range(1, at):
            part = found[k]
            if part is None:
                continue
            terms = _products(part, set(inner[1:at])) if loop.length else None
            if terms is not None:
                products[k] = terms
                continue
            total = fresh_input(part.type, "sum")
            state.append(_Carry(k, total, zeros_of(part.type), accumulated(total.out, part)))
            shared += 1
        recorded = [(k, x) for k, x in enumerate(found[end:], end) if x is not None]
        factors = dict.fromkeys(
            [x for terms in products.values() for t in terms for x in t.factors]
        )
        sequences = [
            *zip(inner[end:], loop.xs, strict=True),
            *zip(self.stand_ins, records, strict=True),
            *_present(given[self.carries :], self.cotangents[self.carries :]),
        ]
        there = {x.out: v for x, v in sequences}
        fresh = [x for x in factors if x not in there]
        outputs = [*[c.output for c in state], *[x for _, x in recorded], *fresh]
        outputs = continued(outputs, {c.input.out for c in state if c.place < at})
        if not outputs and not products:
            return [None] * (len(inner) - 1)
        used = {*toposort(outputs), *[y.node for y in outputs]}
        fixed = [(x, v) for x, v in zip(inner[1:at], loop.consts, strict=True) if x in used]
        if self.trips is not None and loop.count is not None:
            fixed.append((self.trips, loop.count))
        xs = [(x, v) for x, v in sequences if x in used]
        result: list[Value | None] = [None] * len(inner)
        if outputs:
            inputs = (
                inner[0],
                *[x for x, _ in fixed],
                *[c.input for c in state],
                *[x for x, _ in xs],
            )
            node = Loop(
                Graph(inputs, tuple(outputs), "backward"),
                tuple([v for _, v in fixed]),
                tuple([c.init for c in state]),
                tuple([v for _, v in xs]),
                loop.length,
                loop.count,
                not loop.reverse,
                shared if loop.lanes else 0,
            ).node()
            places = [*[c.place for c in state], *[k for k, _ in recorded]]
            for n, k in enumerate(places):
                result[k] = Value(node, n)
            there.update({x: Value(node, len(places) + n) for n, x in enumerate(fresh)})
        for k, terms in products.items():
            for term in terms:
                whole = term.over_all(there)
                known = result[k]
                result[k] = whole if known is None else add(known, whole)
        return result[1:]

    def _cotangent_carries(
        self, given: Sequence[Node | None], found: Sequence[Value | None]
    ) -> list[_Carry]:
        state = []
        for k, ct in enumerate(given[: self.carries]):
            if ct is not None:
                t, place = ct.types[0], self.at + k
                init, output = or_zeros(self.cotangents[k], t), or_zeros(found[place], t)
                state.append(_Carry(place, ct, init, output))
        return state


def _present(
    inputs: Sequence[Node | None], values: Sequence[Value | None]
) -> list[tuple[Node, Value]]:
    return [(x, v) for x, v in zip(inputs, values, strict=True) if x is not None and v is not None]


# ------------------------------------------------------------------------------- deferred sums


@dataclass(frozen=True, slots=True)
class _Product:
    """A contraction of two factors of one step, larger than they are, with its axes moved."""

    node: Node
    axes: tuple[int, ...] | None

    @property
    def factors(self) -> tuple[Value, ...]:
        return self.node.inputs

    def over_all(self, stacks: dict[Value, Value]) -> Value:
        """The sum over all steps: the contraction of the stacked factors along the steps too."""
        (cx, cy), (bx, by) = self.node.param("contract"), self.node.param("batch")

        def after(axes: Sequence[int]) -> tuple[int, ...]:
            return tuple(d + 1 for d in axes)

        whole = make(
            DOT,
            [stacks[x] for x in self.factors],
            contract=((0, *after(cx)), (0, *after(cy))),
            batch=(after(bx), after(by)),
        )
        return whole if self.axes is None else make(TRANSPOSE, (whole,), axes=self.axes)


def _products(part: Value, fixed: Collection[Node]) -> list[_Product] | None:
    """The products that ``part`` is the sum of; None if it is anything else, or if a factor is the
    same in all steps."""
    found: list[_Product] = []
    stack = [part]
    while stack:
        x = stack.pop()
        axes = None
        if x.node.op.name == "add":
            stack.extend(reversed(x.node.inputs))
            continue
        if x.node.op is TRANSPOSE:
            axes, x = x.node.param("axes"), x.node.inputs[0]
        if x.node.op is not DOT or not x.dtype.is_inexact:
            return None
        if any(y.node in fixed for y in x.node.inputs):
            return None
        if x.size <= sum([y.size for y in x.node.inputs]):
            return None
        found.append(_Product(x.node, axes))
    return found
