"""The form of a nest: what its machine code depends on, and what is left to run time.

Two nests of one form share their code, whatever their frames hold (:mod:`.frame`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...fusion.index import Index, Mod, Quotient, Var
from ...fusion.loops import Instruction, Nest
from ...fusion.split import BLOCK
from ...ir.graph import Op
from .frame import BAKED, Framed, Numbering

__all__ = [
    *("BLOCK", "LANES", "WIDTH", "Form", "crossing_loop", "form_of", "has_aliased_rows"),
    "strategy_of",
]

WIDTH = 8  # lanes of a vector, whatever the hardware
LANES = 16  # accumulators of a reduction
MOST_UNROLLED = 8  # elements of a reduction in registers
PAGE = 4096  # bytes
MOST_INSIDE = 16  # iterations of small loops inside the vector loop


@dataclass(frozen=True, slots=True)
class Form(Framed):
    """A nest with its strategy and numbering.

    Attributes
    ----------
    key : str
        Text that determines the code.
    strategy : str
        ``points``, ``strips`` (points that read across memory, in strips), ``rows``
        (vectors along the reduction loop), ``columns`` (across it) or ``unrolled`` (across one of
        a few elements), or a recurrence's.
    vector_loop : int or None
        Loop that runs in vectors; None: scalar code.
    short : bool
        Whether a reduction is of one block.
    grouped : bool
        Whether rows or columns of a reduction may go in groups.
    """

    nest: Nest
    key: str
    strategy: str
    vector_loop: int | None
    short: bool
    grouped: bool = False

    def ops(self) -> Iterator[Op]:
        """The ops whose programs are part of the code."""
        for i in self.nest.tape:
            if i.op is not None:
                yield i.op
        if self.nest.scan is not None:
            yield self.nest.scan.op


class _Numbering(Numbering):
    def index(self, index: Index) -> str:
        parts = [self.integer(index.const)]
        for atom, coefficient in index.terms:
            if isinstance(atom, Var):
                text = f"i{atom.axis}"
            elif isinstance(atom, Quotient):
                text = f"({self.index(atom.numerator)})/{self.integer(atom.divisor)}"
            elif isinstance(atom, Mod):
                text = f"({self.index(atom.numerator)})%{self.integer(atom.divisor)}"
            else:
                text = f"%{atom.number}"
            parts.append(f"{self.integer(coefficient)}*{text}")
        return "+".join(parts)

    def instruction(self, number: int, i: Instruction) -> str:
        text = [i.kind, i.dtype.short, str(i.args), str(i.guard)]
        if i.op is not None:
            text.append(f"{i.op.name}{[(k, str(v)) for k, v in i.params]}")
        if i.buffer >= 0:
            text.append(self.buffer(i.buffer))
        if i.index is not None:
            text.append(self.index(i.index))
        if i.literal is not None:
            text.append(self.literal(number, i.literal))
        if i.kind in ("inside", "bounds", "reduced"):
            text.append(f"{self.integer(i.low)},{self.integer(i.high)}")
        if i.error >= 0:
            text.append(self.integer(i.error + BAKED + 1))
        return " ".join(text)


def form_of(nest: Nest, often: bool = False) -> Form:
    """The form of a nest; decides how its loops use vectors.

    ``often``: whether it is part of a loop. Then rows or columns of a reduction may go in groups
    (:mod:`.row_groups`): their code is quicker and takes 10 ms more to compile.
    """
    numbering = _Numbering()
    strategy, vector_loop = strategy_of(nest)
    short = nest.reduces and nest.extents[-1] <= BLOCK
    lines = [f"{strategy} v{vector_loop} short{short} loops{len(nest.extents)}"]
    grouped = short and often and not nest.part and strategy in ("rows", "columns")
    if grouped:
        lines.append("grouped")
    if grouped and strategy == "columns":
        lines.append(f"aliased{has_aliased_rows(nest)}")
    lines += [numbering.integer(n) for n in nest.extents]
    lines += [numbering.instruction(n, i) for n, i in enumerate(nest.tape)]
    lines += [f"{r.monoid} %{r.value} {r.accumulator} {r.dtype}" for r in nest.reductions]
    if nest.part:
        lines.append(f"{nest.part} {[numbering.buffer(b) for b in nest.states]}")
    if nest.scan is not None:
        lines.append(f"scan {nest.scan.op.name} {nest.scan.elements}")
    lines += [
        f"{numbering.buffer(s.buffer)}[{numbering.index(s.index)}] {s.how} %{s.value} {s.guard}"
        for s in nest.stores
    ]
    key = "\n".join(lines)
    return Form(*numbering.counted(), nest, key, strategy, vector_loop, short, grouped)


def strategy_of(nest: Nest) -> tuple[str, int | None]:
    """How a nest is vectorized, and along which loop; results do not depend on it."""
    count = len(nest.extents)
    if nest.scan is not None:
        return _scan_strategy(nest)
    if not nest.reduces:
        if count == 0 or nest.extents[-1] < 2 or (nest.ordered and not _disjoint(nest)):
            return "points", None
        if not nest.ordered and crossing_loop(nest) is not None:
            return "strips", count - 1
        return "points", count - 1
    reduced, outer = count - 1, count - 2
    if outer < 0:
        return "rows", reduced
    across = _unrolled_loop(nest)
    if across is not None:
        return "unrolled", across
    score = {reduced: 0, outer: 0}
    for i in nest.tape:
        index = i.index
        # What is read once a row or once a column does not matter.
        if i.kind != "load" or index is None:
            continue
        if index.dynamics() or all(map(index.depends_on, score)):
            for loop in score:
                if index.coefficient(loop) == 1:
                    score[loop] += 1
    columns = nest.extents[outer] >= WIDTH and (
        score[outer] > score[reduced]
        or (nest.extents[reduced] < 2 * LANES and nest.extents[outer] >= 4 * WIDTH)
    )
    return ("columns", outer) if columns else ("rows", reduced)


def has_aliased_rows(nest: Nest) -> bool:
    """Whether an operand of a reduction has its elements a multiple of pages apart in memory.

    They all want the same few places of the first-level cache.
    """
    last = len(nest.extents) - 1
    for i in nest.tape:
        if i.kind == "load" and i.index is not None:
            pitch = (i.index.coefficient(last) or 0) * i.dtype.itemsize
            if pitch and pitch % PAGE == 0:
                return True
    return False


def _unrolled_loop(nest: Nest) -> int | None:
    """The outer loop for vectors of a reduction over a few elements, which stand in registers.

    The last one, or a longer one around small ones.
    """
    if nest.part or nest.extents[-1] > MOST_UNROLLED or not nest.extents[-1]:
        return None
    found, inner = len(nest.extents) - 2, 1
    while found > 0 and nest.extents[found] < WIDTH and inner <= MOST_INSIDE:
        inner *= nest.extents[found]
        found -= 1
    return found if nest.extents[found] >= 2 * WIDTH and inner <= MOST_INSIDE else None


def crossing_loop(nest: Nest) -> int | None:
    """The loop along which operands lie that the last loop reads across memory: a transpose.

    None where there is no such operand, or too little of it to care.
    """
    last = len(nest.extents) - 1
    votes: dict[int, int] = {}
    for i in nest.tape:
        if i.kind != "load" or i.index is None or i.index.dynamics():
            continue
        if i.index.coefficient(last) in (None, 0, 1):
            continue
        for loop in range(last):
            if i.index.coefficient(loop) == 1:
                votes[loop] = votes.get(loop, 0) + 1
    best = max(votes, key=lambda loop: votes[loop], default=None)
    if best is None or min(nest.extents[best], nest.extents[last]) < 2 * WIDTH:
        return None
    return best


def _scan_strategy(nest: Nest) -> tuple[str, int | None]:
    """Recurrences side by side in vectors when they lie side by side in memory."""
    across = len(nest.extents) - 2
    wide = across >= 0 and nest.extents[across] >= WIDTH
    if wide and nest.stores[0].index.coefficient(across) == 1:
        return "scan columns", across
    return "scan rows", None


def _disjoint(nest: Nest) -> bool:
    """Whether iterations of the last loop write different elements: it may run in vectors."""
    last = len(nest.extents) - 1
    varies: list[bool] = []  # along the last loop, by instruction
    for i in nest.tape:
        own = i.index is not None and i.index.coefficient(last) != 0
        varies.append(own or any(varies[n] for n in i.operands()))
    for s in nest.stores:
        if any(varies[n] for n in s.index.dynamics()) or not s.index.coefficient(last):
            return False
    return True
