"""``x.at[i].set(v)``: updates of immutable arrays."""

from __future__ import annotations

from typing import Any

from ..ir.functions.indexing import index, index_update

__all__ = ["Updates", "lifted_key"]


def lifted_key(key: Any) -> Any:
    """An index with the values of arrays in place of the arrays."""
    from .array import lift  # the array module is built on this one

    return lift(key)


class Updates:
    """``x.at``: index it, then say what to do there.

    ``x.at[i].set(v)`` is the array that ``x[i] = v`` would leave behind; ``add multiply min max``
    combine with what is there. Repeated indices: ``set`` takes the last one, the others apply all,
    in order. Cost: a copy of ``x``, unless a compiled program sees that ``x`` is not used again.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], dtype=float64)
    """

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> UpdatesAt:
        return UpdatesAt(self._array, key)

    def __repr__(self) -> str:
        return "x.at: index it as in x.at[i].set(v)"


class UpdatesAt:
    """``x.at[i]``: what to do at the indexed elements."""

    __slots__ = ("_array", "_key")

    def __init__(self, array: Any, key: Any) -> None:
        self._array = array
        self._key = key

    def _update(self, values: Any, how: str, options: dict[str, Any]) -> Any:
        from .array import lift, wrap

        x = self._array._value
        return wrap(index_update(x, lifted_key(self._key), lift(values), how, **options))

    def set(self, values: Any, **options: Any) -> Any:
        """The elements replaced by ``values``."""
        return self._update(values, "set", options)

    def add(self, values: Any, **options: Any) -> Any:
        """``values`` added to the elements."""
        return self._update(values, "add", options)

    def multiply(self, values: Any, **options: Any) -> Any:
        """The elements multiplied by ``values``."""
        return self._update(values, "mul", options)

    mul = multiply

    def min(self, values: Any, **options: Any) -> Any:
        """The smaller of each element and ``values``."""
        return self._update(values, "min", options)

    def max(self, values: Any, **options: Any) -> Any:
        """The larger of each element and ``values``."""
        return self._update(values, "max", options)

    def get(self, **options: Any) -> Any:
        """The elements: ``x[i]``, with the options of an update (``mode``, ``fill_value``)."""
        from .array import wrap

        return wrap(index(self._array._value, lifted_key(self._key), **options))
