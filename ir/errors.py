"""The error classes of tilegrad: one class per way out, not one per place.

Every message says what was expected, what came, where (the user's own line), and what to do.
"""

from __future__ import annotations

__all__ = [
    "BudgetError",
    "CheckError",
    "ConvergenceError",
    "DTypeError",
    "DeletedError",
    "RetraceWarning",
    "ShapeError",
    "TilegradError",
    "TracerError",
    "UnsupportedError",
]


class TilegradError(Exception):
    """Root of every error that tilegrad raises on purpose."""


class ShapeError(TilegradError, ValueError):
    """Shapes, axes or sizes do not fit together: change the shape of an operand or the axis."""


class DTypeError(TilegradError, TypeError):
    """An operation is not defined for these element types: convert with ``astype``."""


class TracerError(TilegradError, TypeError):
    """A value was asked of an array that has none while a function is being traced.

    Under ``jit`` and ``vmap`` arrays stand for every value of their type. Python ``if``, ``while``,
    ``float()`` and NumPy conversion need one value, so they are refused: use ``tg.where``, make
    the argument static, or move the code out of the function. The same class reports arrays that
    outlive the trace they belong to.
    """


class CheckError(TilegradError, AssertionError):
    """A condition that the program checks at run time (``debug.check``) does not hold.

    Attributes
    ----------
    values : tuple
        What was given to be shown, as NumPy arrays: positional values, then those by keyword.
    """

    def __init__(self, message: str, values: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.values = values


class ConvergenceError(TilegradError, RuntimeError):
    """An iterative method stopped before it reached its tolerance."""


class DeletedError(TilegradError, RuntimeError):
    """An array was used after its memory had been donated: use what the function returned."""


class UnsupportedError(TilegradError, NotImplementedError):
    """An operation exists but this device, dtype or transform cannot carry it out.

    Attributes
    ----------
    op : str
        Name of the operation.
    device : str
        Device or transform that lacks it.
    """

    def __init__(self, message: str, *, op: str = "", device: str = "") -> None:
        super().__init__(message)
        self.op = op
        self.device = device


class BudgetError(TilegradError, MemoryError):
    """A byte budget is below what a program needs however much it computes again.

    Attributes
    ----------
    needed : int
        The least budget that would do, in bytes.
    """

    def __init__(self, message: str, needed: int) -> None:
        super().__init__(message)
        self.needed = needed


class RetraceWarning(UserWarning):
    """A jitted function was traced for more signatures than ``max_traces`` keeps."""
