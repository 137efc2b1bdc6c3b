"""The form of a lane program: what its code depends on, and what its frame holds.

As for nests (:mod:`.form`): buffers are numbered by first use, integers above ``BAKED`` (trips,
strides, offsets) and constants that are not simple are words of the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...fusion.lane_code import Branches, LaneProgram, LaneStore, Repeat
from ...ir.graph import Literal, Op
from .form import BAKED, WIDTH, is_baked, literal_bits

__all__ = ["LaneForm", "lane_form"]


@dataclass(frozen=True, slots=True)
class LaneForm:
    """A lane program with its numbering; fields as those of :class:`~.form.Form`."""

    program: LaneProgram
    key: str
    width: int
    buffers: tuple[int, ...]
    parameters: tuple[int, ...]
    literals: tuple[int, ...]
    literal_slots: dict[int, int]
    errors: dict[int, int]

    @property
    def frame(self) -> tuple[int, ...]:
        return (*self.buffers, *self.parameters, *self.literals)

    def slot(self, value: int) -> int | None:
        """Frame position of an integer, None when it is baked in."""
        if abs(value) <= BAKED:
            return None
        return len(self.buffers) + self.parameters.index(value)

    def literal_slot(self, number: int) -> int | None:
        """Frame position of the constant that is scalar ``number``; None: baked in."""
        found = self.literal_slots.get(number)
        return None if found is None else len(self.buffers) + len(self.parameters) + found

    def ops(self) -> Iterator[Op]:
        """The ops whose programs are part of the code."""
        for number in sorted(self.program.used):
            op = self.program.scalars[number].op
            if op is not None:
                yield op


class _Numbering:
    def __init__(self, errors: dict[int, int]) -> None:
        self.errors = errors
        self.buffers: dict[int, int] = {}
        self.parameters: dict[int, int] = {}
        self.literals: list[int] = []
        self.literal_slots: dict[int, int] = {}

    def buffer(self, number: int) -> str:
        return f"b{self.buffers.setdefault(number, len(self.buffers))}"

    def integer(self, value: int) -> str:
        if abs(value) <= BAKED:
            return str(value)
        return f"p{self.parameters.setdefault(value, len(self.parameters))}"

    def error(self, number: int) -> str:
        return self.integer(self.errors[number] + BAKED + 1)

    def literal(self, number: int, literal: Literal) -> str:
        if is_baked(literal):
            return literal.data.hex()
        self.literal_slots[number] = len(self.literals)
        self.literals.append(literal_bits(literal))
        return "frame"


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
    blocks = [item.body, *([] if item.test is None else [item.test])]
    while blocks:
        for inner in blocks.pop().items:
            if isinstance(inner, int):
                if inner in program.used:
                    defined.add(inner)
                    needed.update(program.scalars[inner].args)
            elif isinstance(inner, LaneStore):
                needed.add(inner.value)
            elif isinstance(inner, Branches):
                defined.update(inner.results)
                blocks.extend(inner.blocks)
            else:
                defined.update((*inner.carried, *inner.results))
                needed.update((*inner.initial, *inner.following))
                blocks.extend(b for b in (inner.body, inner.test) if b is not None)
    return sum(program.varying[n] for n in carried | (needed - defined))


def lane_form(program: LaneProgram, number_of: Callable[[int], int] = int) -> LaneForm:
    """The form of a lane program; ``number_of(error)`` is the number the plan gives an error."""
    errors = {number: number_of(number) for number in program.errors()}
    numbering = _Numbering(errors)
    width = _width(program)
    lines = [f"lane program, lanes {program.lanes} width {width}", *program.spelled(numbering)]
    return LaneForm(
        program,
        "\n".join(lines),
        width,
        tuple(numbering.buffers),
        tuple(numbering.parameters),
        tuple(numbering.literals),
        numbering.literal_slots,
        errors,
    )
