"""Library routines inside regions: called by address, so that a loop does not leave native code.

Factors and triangular systems of matrices that one call each can do. Outside of regions, and for
larger matrices, the host calls the library (:mod:`..kernels.cpu.lapack`), with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ..ir.graph import Node
from ..ir.ops.linear_algebra import not_positive_definite, singular_triangle

if TYPE_CHECKING:
    from .lower import Lowering

__all__ = ["LARGE", "PANEL", "Routine", "is_routine", "routine_step"]

LARGE = 128  # rows from which on a factorization is cut into blocks
PANEL = 128  # right sides that are solved for at a time


@dataclass(frozen=True, slots=True)
class MatrixFault:
    """What is raised for a matrix: ``make(index in the batch, pivot)``, told by one number."""

    make: Callable[[Sequence[int], int], Exception]
    batch: tuple[int, ...]
    rows: int

    def __call__(self, message: str) -> Exception:
        """``message``: number of the matrix times rows, plus the pivot."""
        number, pivot = divmod(int(message), self.rows)
        index = [int(k) for k in np.unravel_index(number, self.batch)] if self.batch else ()
        return self.make(index, pivot)


@dataclass(frozen=True, slots=True)
class Routine:
    """One op of linear algebra for each of ``batch`` matrices of ``rows`` rows.

    ``sides`` are right sides (0: a factorization); ``error`` is reported for a bad matrix (-1: such
    a matrix gets NaN).
    """

    node: Node
    arguments: tuple[int, ...]
    result: int
    batch: int
    rows: int
    sides: int
    error: int

    def text(self) -> list[str]:
        args = ", ".join(f"b{a}" for a in self.arguments)
        return [f"routine b{self.result} = {self.node.op.name}({args})"]


def is_routine(node: Node) -> bool:
    """Whether an op can be a step of this kind."""
    if node.op.name == "cholesky":
        return node.types[0].shape[-1] < LARGE
    if node.op.name == "triangular_solve":
        return _sides(node) <= PANEL
    return False


def _sides(node: Node) -> int:
    a, b = (x.type for x in node.inputs)
    return prod(b.shape[a.ndim - 1 :])


def routine_step(node: Node, lowering: Lowering) -> Routine:
    """The step of such a node."""
    *batch, rows, _ = node.inputs[0].shape
    solves = node.op.name == "triangular_solve"
    error = -1
    if node.param("check"):
        make = singular_triangle if solves else not_positive_definite
        error = lowering.report(MatrixFault(make, tuple(batch), rows), "{value}")
    return Routine(
        node,
        tuple(lowering.buffer(v) for v in node.inputs),
        lowering.buffer(node.out),
        prod(batch),
        rows,
        _sides(node) if solves else 0,
        error,
    )
