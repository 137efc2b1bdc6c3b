"""Writing a lane program: each scalar once, in the outermost block that knows its operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..ir.dtypes import DType, bool_, int64
from ..ir.graph import Literal
from ..ir.ops import OPS
from .lane_code import Block, Branches, LaneStore, Repeat, Scalar

__all__ = ["Refusal", "Writer"]

MOST_SCALARS = 12_000  # written, before unused ones are dropped

Report = Callable[[type[Exception], str], int]


class Refusal(Exception):  # noqa: N818 -- an answer, not a fault
    """A region that is not to be a lane program; the message says why."""


class Writer:
    """Scalars and blocks of one program.

    Attributes
    ----------
    scalars : list of Scalar
    varying : list of bool
        Whether a scalar differs from lane to lane.
    block : Block
        Where instructions go.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.scalars: list[Scalar] = []
        self.varying: list[bool] = []
        self.homes: list[Block] = []
        self.root = self.block = Block("root")

    # -- scalars --------------------------------------------------------------------------------

    def fresh(self, dtype: DType, varying: bool, home: Block) -> int:
        """A value that a region defines in ``home``."""
        self.scalars.append(Scalar("value", dtype))
        self.varying.append(varying)
        self.homes.append(home)
        return len(self.scalars) - 1

    def emit(self, scalar: Scalar) -> int:
        """The number of an instruction; one that is known where it is needed is not repeated.

        It goes out of loops that do not change it. One that may report an error does not: it has
        to wait until it is needed.
        """
        target = self.block
        if scalar.error < 0:
            needs = max((self.homes[a].depth for a in scalar.args), default=0)
            while target.kind != "branch" and target.depth > needs:
                assert target.parent is not None
                if target.kind == "body" and target.parent.depth <= needs:
                    break  # it has to wait for the condition of its loop
                target = target.parent
        for block in target.chain():
            found = block.known.get(scalar)
            if found is not None:
                return found
        if len(self.scalars) >= MOST_SCALARS:
            raise Refusal(f"more than {MOST_SCALARS} scalar operations")
        number = len(self.scalars)
        self.scalars.append(scalar)
        varies = scalar.kind == "lane" or scalar.lane_stride != 0
        self.varying.append(varies or any(self.varying[a] for a in scalar.args))
        self.homes.append(target)
        target.known[scalar] = number
        target.items.append(number)
        return number

    def dtype(self, number: int) -> DType:
        return self.scalars[number].dtype

    def literal(self, literal: Literal) -> int:
        return self.emit(Scalar("const", literal.dtype, literal=literal))

    def const(self, value: Any, dtype: DType) -> int:
        return self.literal(Literal.of(value, dtype))

    def known_integer(self, number: int) -> int | None:
        """The value of an integer constant."""
        scalar = self.scalars[number]
        if scalar.kind != "const" or scalar.literal is None:
            return None
        return int(scalar.literal.item())

    def op(self, name: str, *args: int, **params: Any) -> int:
        """An elementwise op that reports no errors."""
        op = OPS[name]
        if name in ("lt", "le", "gt", "ge", "eq", "ne"):
            dtype = bool_
        elif name == "where":
            dtype = self.dtype(args[1])
        else:
            dtype = params.get("dtype", self.dtype(args[0]))
        return self.emit(Scalar("op", dtype, args, op=op, params=tuple(sorted(params.items()))))

    def convert(self, number: int, dtype: DType) -> int:
        return number if self.dtype(number) is dtype else self.op("convert", number, dtype=dtype)

    def select(self, condition: int, x: int, y: int) -> int:
        return x if x == y else self.op("where", condition, x, y)

    def integer(self, value: int) -> int:
        return self.const(value, int64)

    # -- blocks ---------------------------------------------------------------------------------

    @contextmanager
    def inside(self, block: Block) -> Iterator[Block]:
        """What is written inside the with block goes to ``block``."""
        before, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = before

    # -- what is used ---------------------------------------------------------------------------

    def used(self) -> frozenset[int]:
        """Scalars that stores and the course of loops depend on."""
        owners: dict[int, tuple[Repeat | Branches, int]] = {}
        needed: list[int] = []
        for item in [item for block in self.root.walk() for item in block.items]:
            if isinstance(item, LaneStore):
                needed += [item.value, *item.args]
            elif isinstance(item, Repeat):
                needed.append(item.holds if item.count is None else item.count)
                for k, pair in enumerate(zip(item.carried, item.results, strict=True)):
                    owners.update(dict.fromkeys(pair, (item, k)))
            elif isinstance(item, Branches):
                needed.append(item.index)
                owners.update({n: (item, k) for k, n in enumerate(item.results)})
        seen: set[int] = set()
        while needed:
            number = needed.pop()
            if number in seen:
                continue
            seen.add(number)
            needed.extend(self.scalars[number].args)
            if number in owners:
                item, k = owners[number]
                if isinstance(item, Repeat):
                    needed += [item.carried[k], item.results[k]]
                    needed += [item.initial[k], item.following[k]]
                else:
                    needed.extend(outcome[k] for outcome in item.outcomes)
        return frozenset(seen)
