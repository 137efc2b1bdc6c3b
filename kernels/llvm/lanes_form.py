"""The form of a lane program: what its code depends on, and what its frame holds.

As for nests (:mod:`.form`), two programs of one form share their code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...fusion.lane_code import LaneProgram, LaneStore, Repeat
from ...ir.graph import Op
from .form import WIDTH
from .frame import BAKED, Framed, Numbering

__all__ = ["LaneForm", "lane_form"]


@dataclass(frozen=True, slots=True)
class LaneForm(Framed):
    """A lane program with its numbering; fields as those of :class:`~.form.Form`."""

    program: LaneProgram
    key: str
    width: int
    errors: dict[int, int]

    def ops(self) -> Iterator[Op]:
        """The ops whose programs are part of the code."""
        for number in sorted(self.program.used):
            op = self.program.scalars[number].op
            if op is not None:
                yield op


class _Numbering(Numbering):
    def __init__(self, errors: dict[int, int]) -> None:
        super().__init__()
        self.errors = errors

    def error(self, number: int) -> str:
        return self.integer(self.errors[number] + BAKED + 1)


def _width(program: LaneProgram) -> int:
    """Lanes of a group: more than fill a register, as long as loops leave registers free.

    Iterations wait for each other, lanes do not. Newton's iteration for 100,000 roots took 0.68,
    0.49 and 0.34 ms in groups of 8, 16 and 32, 20 iterations of exp 1.35, 0.76 and 0.43 ns an
    element; with 16 carries, groups of 32 take twice the time of 8. Groups make as many trips as
    their slowest lane.
    """
    loops = [i for block in program.blocks() for i in block.items if isinstance(i, Repeat)]
    held = max((_held(program, item) for item in loops), default=0)
    width = next((w for w, most in ((4 * WIDTH, 5), (2 * WIDTH, 12)) if held <= most), WIDTH)
    while width > WIDTH and program.extent <= width // 2:
        width //= 2
    return width


def _held(program: LaneProgram, item: Repeat) -> int:
    """Vectors that a loop needs from one iteration to the next."""
    carried = {n for n in item.carried if n in program.used}
    defined, needed = set(carried), set(item.following)
    blocks = list(item.inside())
    while blocks:
        for inner in blocks.pop().items:
            if isinstance(inner, int):
                if inner in program.used:
                    defined.add(inner)
                    needed.update(program.scalars[inner].args)
            elif isinstance(inner, LaneStore):
                needed.add(inner.value)
            else:
                defined.update(inner.results)
                blocks.extend(inner.inside())
                if isinstance(inner, Repeat):
                    defined.update(inner.carried)
                    needed.update((*inner.initial, *inner.following))
    return sum(program.varying[n] for n in carried | (needed - defined))


def lane_form(program: LaneProgram, number_of: Callable[[int], int] = int) -> LaneForm:
    """The form of a lane program; ``number_of(error)`` is the number the plan gives an error."""
    errors = {number: number_of(number) for number in program.errors()}
    numbering = _Numbering(errors)
    width = _width(program)
    lines = [f"lane program, lanes {program.lanes} width {width}", *program.spelled(numbering)]
    return LaneForm(*numbering.counted(), program, "\n".join(lines), width, errors)
