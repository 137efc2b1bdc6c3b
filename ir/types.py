"""The type of a value: shape, element type, weakness."""

from __future__ import annotations

from math import prod

from .dtypes import DType
from .records import record

__all__ = ["GROWING", "Shape", "TensorType", "describe"]

Shape = tuple[int, ...]

# The leading extent of a tape: what a loop of unknown length records. See ops/regions.py.
GROWING = -1


@record()
class TensorType:
    """Shape and element type of a value.

    ``weak`` marks values that come from Python scalars alone: they adopt the element type of what
    they meet (NEP 50).
    """

    shape: Shape
    dtype: DType
    weak: bool = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        extents = ",".join(["?" if n == GROWING else str(n) for n in self.shape])
        return f"{self.dtype.short}[{extents}]{'~' if self.weak else ''}"


def describe(types: tuple[TensorType, ...]) -> str:
    """``f64[3,4] and f64[5]``: operand types for an error message."""
    names = [str(t) for t in types]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
