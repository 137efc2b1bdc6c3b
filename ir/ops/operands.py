"""What builders do to their operands before a node is made: lift, promote, broadcast.

The primitive ops want operands of one shape and one dtype. Builders take anything array-like and
insert ``convert`` and ``broadcast`` nodes, by the rules of NumPy 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..dtypes import DType, as_dtype, complex128, float64, int32, promote, promote_weak
from ..errors import DTypeError, ShapeError
from ..graph import Value, make
from ..location import at_user_line
from ..types import Shape, TensorType, describe
from .domains import between, with_params
from .leaves import CONSTANT, constant
from .registry import register
from .shape import broadcast_to

__all__ = [
    "CONVERT",
    "as_value",
    "broadcast_shapes",
    "common_dtype",
    "convert",
    "inexact_operands",
    "number_like",
    "operands",
    "set_strict_dtypes",
]

# Whether mixing floating widths is an error instead of a promotion (``config.strict_dtypes``).
_strict = [False]


def set_strict_dtypes(on: bool) -> None:
    """Refuse to mix floating widths from now on, or promote again."""
    _strict[0] = on


def as_value(x: Any) -> Value:
    """``x`` as a graph value; Python and NumPy data become constants."""
    return x if type(x) is Value else constant(x)


def common_dtype(types: Sequence[TensorType]) -> DType:
    """Result type of operands of these types (NEP 50)."""
    strong: DType | None = None
    weak: DType | None = None
    for t in types:
        if t.weak:
            weak = t.dtype if weak is None else promote(weak, t.dtype)
        else:
            if strong is not None and strong is not t.dtype and _strict[0]:
                _refuse_mixture(strong, t.dtype)
            strong = t.dtype if strong is None else promote(strong, t.dtype)
    if strong is None:
        assert weak is not None
        return weak
    return strong if weak is None else promote_weak(strong, weak)


def _refuse_mixture(a: DType, b: DType) -> None:
    if a.is_inexact and b.is_inexact and a.real is not b.real:
        raise at_user_line(
            DTypeError(
                f"strict_dtypes: expected operands of one floating width, got {a} and {b}; "
                f"convert one with astype"
            )
        )


def broadcast_shapes(name: str, types: Sequence[TensorType]) -> Shape:
    """NumPy's broadcast of the operand shapes, or a ``ShapeError`` that shows them."""
    shape = _common_shape(tuple([t.shape for t in types]))
    if shape is None:
        raise ShapeError(
            f"{name}: expected shapes that broadcast together, got {describe(tuple(types))}; axes "
            f"are aligned from the right and must be equal or 1: try reshape or an index with None"
        )
    return shape


@lru_cache(maxsize=4096)
def _common_shape(shapes: tuple[Shape, ...]) -> Shape | None:
    ndim = max(map(len, shapes))
    result = [1] * ndim
    for shape in shapes:
        for d, extent in enumerate(shape, ndim - len(shape)):
            if extent != 1:
                if result[d] not in (1, extent):
                    return None
                result[d] = extent
    return tuple(result)


def _convert_type(x: TensorType, *, dtype: DType, weak: bool = False) -> TensorType:
    return TensorType(x.shape, dtype, weak)


def _convert_value(x: Any, *, dtype: DType, weak: bool = False) -> Any:
    if dtype.is_integer and x.dtype.kind in "fc":  # saturating, NaN gives 0: see vocabulary
        info = np.iinfo(dtype.numpy)
        x = np.nan_to_num(np.real(x), nan=0.0, posinf=np.inf, neginf=-np.inf)
        inside = (x > float(info.min) - 1.0) & (x < float(info.max) + 1.0)
        cut = np.where(inside, x, 0.0).astype(dtype.numpy)
        return np.where(inside, cut, np.where(x > 0, info.max, info.min)).astype(dtype.numpy)
    if x.dtype.kind == "c" and not (dtype.is_complex or dtype.is_bool):
        x = x.real
    return x.astype(dtype.numpy)


def _convert_jvp(node: Any, tangents: Sequence[Value | None]) -> Value | None:
    t, dtype = tangents[0], node.types[0].dtype
    return None if t is None or not dtype.is_inexact else convert(t, dtype)


def _convert_transpose(node: Any, cotangent: Value, linear: Sequence[bool]) -> tuple[Value]:
    return (convert(cotangent, node.inputs[0].dtype),)


def _convert_complex(h: Any, x: tuple[Any, Any], *, dtype: DType, weak: bool = False) -> Any:
    if dtype.is_bool:
        return h.or_(h.convert(x[0], dtype), h.convert(x[1], dtype))
    if dtype.is_complex:
        return h.convert(x[0], dtype.real), h.convert(x[1], dtype.real)
    return h.convert(x[0], dtype)


def _convert_scalar(h: Any, x: Any, *, dtype: DType, weak: bool = False) -> Any:
    if dtype.is_complex:
        return h.convert(x, dtype.real), h.const(0.0, dtype.real)
    return h.convert(x, dtype)


CONVERT = register(
    "convert",
    "elementwise",
    infer=_convert_type,
    reference=_convert_value,
    scalar=_convert_scalar,
    complex_scalar=_convert_complex,
    jvp=_convert_jvp,
    transpose=_convert_transpose,
    doc="Value conversion between element types: float to integer truncates and saturates with NaN "
    "to 0, complex to real drops the imaginary part, number to bool is ``x != 0``.",
    samples=with_params(
        between((-3, 3)), {"dtype": float64}, {"dtype": complex128}, {"dtype": int32}
    ),
)


def convert(x: Value, dtype: Any) -> Value:
    """``x`` with element type ``dtype`` (strong); ``x`` itself when it has that type already."""
    target = as_dtype(dtype)
    t = x.type
    if t.dtype is target and not t.weak:
        return x
    if x.node.op is CONSTANT:
        return constant(_literal(x, target), target)
    return make(CONVERT, (x,), dtype=target)


def _literal(x: Value, target: DType) -> Any:
    """The data of a constant in another type; Python integers must fit (as in NumPy 2)."""
    literal = x.node.param("literal")
    data = literal.array()
    if x.type.weak and target.is_integer and data.dtype.kind in "iu":
        info = np.iinfo(target.numpy)
        if data.size and not (info.min <= int(data.min()) and int(data.max()) <= info.max):
            raise at_user_line(
                OverflowError(
                    f"Python integer {data.reshape(-1)[0]} is out of bounds for {target}; "
                    f"convert the array to a wider type with astype"
                )
            )
    return _convert_value(data, dtype=target)


def _ready(xs: tuple[Any, ...], kinds: str) -> tuple[Value, ...] | None:
    """The operands as they are, if they are of one type, or of one type and Python numbers.

    The commonest case by far, told in a microsecond; None leaves it to the rules.
    """
    first: TensorType | None = None
    numbers = False
    for x in xs:
        if type(x) is Value:
            t = x.node.types[x.index]
            if first is None:
                first = t
            elif t is not first and t != first:
                return None
        else:
            numbers = True
    if first is None or first.dtype.kind not in kinds:
        return None
    if not numbers:
        return xs
    filled = []
    for x in xs:
        if type(x) is not Value:
            x = number_like(x, first)
            if x is None:
                return None
        filled.append(x)
    return tuple(filled)


# Broadcast constants in use, by number, shape and dtype.
_NUMBERS: dict[Any, Value] = {}
_FEW = 4096


def number_like(x: Any, type: TensorType) -> Value | None:
    """A Python number in the type of an array that it meets.

    Equal numbers of one type are one value. None where the result has another type, or ``x`` is no
    int or float.
    """
    kind = x.__class__
    if (kind is not float and kind is not int) or type.weak:
        return None
    dtype = type.dtype
    # What number_key tells apart, as the part of one flat key: eager code asks for each operation.
    key = (kind, x or str(x), type.shape, dtype)
    found = _NUMBERS.get(key)
    if found is None:
        scalar = constant(x)
        if promote_weak(dtype, scalar.dtype) is not dtype:
            return None
        if len(_NUMBERS) >= _FEW:
            _NUMBERS.clear()
        found = _NUMBERS[key] = broadcast_to(convert(scalar, dtype), type.shape)
    return found


def operands(
    name: str, *xs: Any, kinds: str = "biufc", dtype: DType | None = None
) -> Sequence[Value]:
    """Operands of one shape and one dtype.

    Parameters
    ----------
    name : str
        Op, for messages.
    xs : array-like
    kinds : str
        Dtype kinds the op accepts (letters of ``DType.kind``).
    dtype : DType, optional
        Convert to this type instead of the common one.
    """
    if dtype is None:
        ready = _ready(xs, kinds)
        if ready is not None:
            return ready
    values = [x if type(x) is Value else constant(x) for x in xs]
    types = [v.node.types[v.index] for v in values]
    target = dtype or common_dtype(types)
    if target.kind not in kinds:
        raise at_user_line(
            DTypeError(
                f"{name}: expected operands of kind {_kind_names(kinds)}, got "
                f"{describe(tuple(types))}; convert with astype"
            )
        )
    try:
        shape = broadcast_shapes(name, types)
    except ShapeError as error:
        raise at_user_line(error) from None
    weak = all(t.weak for t in types)
    result = []
    for v, t in zip(values, types, strict=True):
        if t.dtype is not target or (t.weak and not weak):
            v = _convert_keeping_weak(v, target) if weak else convert(v, target)
        result.append(v if t.shape == shape else broadcast_to(v, shape))
    return result


def inexact_operands(name: str, *xs: Any, kinds: str = "fc") -> Sequence[Value]:
    """Like :func:`operands`, with integers and bools turned into float64 first."""
    ready = _ready(xs, kinds)
    if ready is not None:
        return ready
    values = [x if type(x) is Value else constant(x) for x in xs]
    types = [v.node.types[v.index] for v in values]
    target = common_dtype(types)
    if target.is_integer or target.is_bool:
        floating = [
            v if t.weak else convert(v, float64) for v, t in zip(values, types, strict=True)
        ]
        if all(t.weak for t in types):
            floating = [_convert_keeping_weak(v, float64) for v in values]
        return operands(name, *floating, kinds=kinds)
    return operands(name, *values, kinds=kinds)


def _convert_keeping_weak(x: Value, dtype: DType) -> Value:
    if x.dtype is dtype:
        return x
    if x.node.op is CONSTANT:
        return constant(
            _convert_value(x.node.param("literal").array(), dtype=dtype), dtype, weak=True
        )
    return make(CONVERT, (x,), dtype=dtype, weak=True)


def _kind_names(kinds: str) -> str:
    names = {"b": "bool", "i": "integer", "u": "unsigned", "f": "floating", "c": "complex"}
    return " or ".join(names[k] for k in kinds)
