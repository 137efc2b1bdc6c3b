"""Keys of values that are known while a function is traced.

Python says ``1 == 1.0 == True`` and ``0.0 == -0.0``, yet a program specialised for one of them is
wrong for the others. A static value is therefore keyed by its type and its bits.
"""

from __future__ import annotations

import struct
from typing import Any

__all__ = ["static_key"]


def static_key(value: Any) -> Any:
    """A hashable key equal for values that are the same to the bit and of the same type.

    NaNs of equal bits are equal. Tuples and frozen sets are keyed item by item, anything else by
    its own type, hash and equality.

    Raises
    ------
    TypeError
        If the value is not hashable.
    """
    kind = type(value)
    if kind is float:
        return kind, struct.pack("<d", value)
    if kind is complex:
        return kind, struct.pack("<dd", value.real, value.imag)
    if kind is tuple:
        return kind, tuple([static_key(item) for item in value])
    if kind is frozenset:
        return kind, frozenset([static_key(item) for item in value])
    if hasattr(value, "dtype") and hasattr(value, "tobytes"):  # a NumPy scalar; arrays do not hash
        hash(value)
        return kind, value.dtype.str, value.tobytes()
    hash(value)
    return kind, value
