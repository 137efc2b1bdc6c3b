"""Frames: what code reads at run time, for steps that differ in nothing else to share it.

Buffers are numbered by first use. Every integer above ``BAKED`` (extents, trips, strides, offsets)
and every constant that is not a simple one is a word of the *frame*, a row of int64 numbers: the
buffers' numbers, then the integers, then the bits of the constants. So a new batch size is a new
frame, not a new compilation. Equal integers share a word; which ones are equal is part of the form.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from ...ir.graph import Literal

__all__ = ["BAKED", "Framed", "Numbering"]

BAKED = 16

# Constants that programs are made of; others (a length to divide by, a rate) change from call to
# call and are no reason to compile again.
_SIMPLE = frozenset((0.0, 0.5, 1.0, 2.0, 3.0, 4.0))


def _is_baked(literal: Literal) -> bool:
    """Whether code may hold a constant; others are words of the frame."""
    if literal.dtype.is_bool or literal.dtype.is_complex:
        return True
    value = literal.item()
    return abs(value) in _SIMPLE or value != value


def _literal_bits(literal: Literal) -> int:
    """The element as an int64 with its bits in the low places."""
    return int.from_bytes(literal.data.ljust(8, b"\0"), sys.byteorder, signed=True)


@dataclass(frozen=True, slots=True)
class Framed:
    """A form whose code reads a frame; subclasses say what the code does.

    Attributes
    ----------
    buffers : tuple of int
        Schedule numbers of the local buffers.
    parameters : tuple of int
        Integers that are read from the frame.
    literals : tuple of int
        Bits of the constants that are read from the frame, by number of the instruction in
        ``literal_slots``.
    """

    buffers: tuple[int, ...]
    parameters: tuple[int, ...]
    literals: tuple[int, ...]
    literal_slots: dict[int, int]

    @property
    def frame(self) -> tuple[int, ...]:
        return (*self.buffers, *self.parameters, *self.literals)

    def slot(self, value: int) -> int | None:
        """Frame position of an integer, None when it is baked in."""
        if abs(value) <= BAKED:
            return None
        return len(self.buffers) + self.parameters.index(value)

    def literal_slot(self, number: int) -> int | None:
        """Frame position of the constant that is instruction ``number``; None: baked in."""
        found = self.literal_slots.get(number)
        return None if found is None else len(self.buffers) + len(self.parameters) + found


class Numbering:
    """Numbers for what a text names; the text is the same for all that share code."""

    def __init__(self) -> None:
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

    def literal(self, number: int, literal: Literal) -> str:
        """The constant that is instruction ``number``."""
        if _is_baked(literal):
            return literal.data.hex()
        self.literal_slots[number] = len(self.literals)
        self.literals.append(_literal_bits(literal))
        return "frame"

    def counted(
        self,
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], dict[int, int]]:
        """What was numbered: the fields of :class:`Framed`."""
        return (
            tuple(self.buffers),
            tuple(self.parameters),
            tuple(self.literals),
            self.literal_slots,
        )
