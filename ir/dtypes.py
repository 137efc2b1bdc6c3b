"""Element types and their promotion.

Promotion is NumPy 2's (NEP 50): arrays promote by a fixed lattice, Python scalars are *weak* and
adopt the type of the array they meet, as long as they are of the same or a lower kind
(bool < integer < floating < complex). NumPy itself is the lattice: :func:`promote` asks
``numpy.promote_types``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .errors import DTypeError
from .location import at_user_line
from .records import record

__all__ = [
    "ALL",
    "DType",
    "as_dtype",
    "bool_",
    "complex64",
    "complex128",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "promote",
    "promote_weak",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


@record(eq=False)
class DType:
    """One element type; there is one object of each, so they compare by identity.

    Attributes
    ----------
    name : str
        NumPy's name, ``"float64"``.
    kind : str
        ``"b"`` bool, ``"i"`` signed, ``"u"`` unsigned, ``"f"`` floating, ``"c"`` complex.
    itemsize : int
        Bytes of one element.
    """

    name: str
    kind: str
    itemsize: int

    def __eq__(self, other: object) -> bool:
        """Equal to itself and, as in NumPy, to what names it: ``x.dtype == "float64"``."""
        if self is other or other is None or type(other) is DType:
            return self is other
        try:
            return as_dtype(other) is self
        except DTypeError:
            return False

    # By identity, and as a slot of C: types are part of the key of each call.
    __hash__ = object.__hash__

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype of the same name."""
        return _NUMPY[self.name]

    @property
    def short(self) -> str:
        """Name in graph text: ``f64``, ``i32``, ``c128``, ``bool``."""
        return "bool" if self.kind == "b" else f"{self.kind}{self.itemsize * 8}"

    @property
    def bits(self) -> int:
        """Width of one element in bits."""
        return self.itemsize * 8

    @property
    def is_bool(self) -> bool:
        return self.kind == "b"

    @property
    def is_integer(self) -> bool:
        return self.kind in "iu"

    @property
    def is_signed(self) -> bool:
        return self.kind == "i"

    @property
    def is_floating(self) -> bool:
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        return self.kind == "c"

    @property
    def is_inexact(self) -> bool:
        """Floating or complex: what can be differentiated."""
        return self.kind in "fc"

    @property
    def real(self) -> DType:
        """The type of ``abs(x)``: the component type of a complex type, else the type itself."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    @property
    def complex(self) -> DType:
        """The complex type whose components hold this one."""
        return complex64 if self.name in ("float32", "complex64") else complex128

    def __repr__(self) -> str:
        return f"tilegrad.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return as_dtype, (self.name,)

    # NumPy accepts any object with a ``dtype`` attribute where it wants a dtype.
    @property
    def dtype(self) -> np.dtype[Any]:
        return _NUMPY[self.name]


def _make(name: str) -> DType:
    numpy = np.dtype(name)
    return DType(name, numpy.kind, numpy.itemsize)


bool_ = _make("bool")
int8, int16, int32, int64 = (_make(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_make(f"uint{n}") for n in (8, 16, 32, 64))
float32, float64 = _make("float32"), _make("float64")
complex64, complex128 = _make("complex64"), _make("complex128")

ALL = (
    *(bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(float32, float64, complex64, complex128),
)
_BY_NAME = {d.name: d for d in ALL}
_BY_SHORT = {d.short: d for d in ALL}
_NUMPY: dict[str, np.dtype[Any]] = {d.name: np.dtype(d.name) for d in ALL}
_BY_NUMPY: dict[np.dtype[Any], DType] = {np.dtype(d.name): d for d in ALL}
_PYTHON = {bool: bool_, int: int64, float: float64, complex: complex128}
_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def as_dtype(like: Any) -> DType:
    """The :class:`DType` that ``like`` names.

    Parameters
    ----------
    like : DType, numpy dtype or scalar type, Python type, or name

    Raises
    ------
    DTypeError
        If tilegrad has no such element type (``float16``, ``object``, ...).
    """
    if isinstance(like, DType):
        return like
    found = _BY_NUMPY.get(like) if isinstance(like, np.dtype) else None
    if found is not None:
        return found
    if isinstance(like, type) and like in _PYTHON:
        return _PYTHON[like]
    if isinstance(like, str) and like in _BY_SHORT:
        return _BY_SHORT[like]
    try:
        found = _BY_NUMPY.get(np.dtype(like).newbyteorder("="))
    except TypeError:
        found = None
    if found is None:
        names = " ".join(_BY_NAME)
        raise at_user_line(
            DTypeError(f"dtype: expected one of {names}, got {like!r}; convert the data first")
        )
    return found


@cache
def promote(a: DType, b: DType) -> DType:
    """Common type of two strong types, by NumPy's lattice."""
    return a if a is b else _BY_NUMPY[np.promote_types(a.numpy, b.numpy)]


@cache
def promote_weak(strong: DType, weak: DType) -> DType:
    """Type that results when a weak scalar of type ``weak`` meets an array of type ``strong``.

    The array's type stands unless the scalar is of a higher kind: a Python float turns an integer
    array into ``float64``, a Python complex turns ``float32`` into ``complex64``.
    """
    if _RANK[weak.kind] <= _RANK[strong.kind]:
        return strong
    if weak.kind == "c" and strong.kind == "f":
        return strong.complex
    return weak
