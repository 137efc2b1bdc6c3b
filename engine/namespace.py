"""The public functions: every name of the NumPy-like namespace, as functions of arrays.

``BUILDERS`` has the functions over graph values by their public names; ``FUNCTIONS`` has the same
names with arguments lifted and results wrapped. Names with a dot belong to a sub-namespace
(``"linalg.norm"``). All else, the operators of ``Array`` and NumPy's protocols, looks up here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from ..ir import ops
from ..ir.errors import UnsupportedError
from ..ir.functions import (
    activations,
    calculus,
    convolution,
    creation,
    diagonals,
    einsum,
    elementwise,
    factorizations,
    gamma,
    indexing,
    joining,
    linear,
    manipulation,
    nan_reductions,
    norms,
    padding,
    polynomials,
    quantiles,
    reductions,
    searching,
    sets,
    sorting,
    special,
    statistics,
)
from ..ir.graph import Value
from ..ir.location import at_user_line
from . import arrays, inspection
from .array import Array, lift, lower_to_arrays, wrap

Builder = Callable[..., Any]

# ---------------------------------------------------------------------------------- builders

# Elementwise primitives: our names are NumPy's and the Array API's.
_ELEMENTWISE: dict[str, Builder] = {
    **dict.fromkeys(("abs", "absolute"), ops.abs_),
    **dict.fromkeys(("acos", "arccos"), ops.acos),
    **dict.fromkeys(("acosh", "arccosh"), ops.acosh),
    "add": ops.add,
    **dict.fromkeys(("asin", "arcsin"), ops.asin),
    **dict.fromkeys(("asinh", "arcsinh"), ops.asinh),
    **dict.fromkeys(("atan", "arctan"), ops.atan),
    **dict.fromkeys(("atan2", "arctan2"), ops.atan2),
    **dict.fromkeys(("atanh", "arctanh"), ops.atanh),
    "bitwise_and": ops.and_,
    **dict.fromkeys(("bitwise_invert", "bitwise_not", "invert"), ops.not_),
    **dict.fromkeys(("bitwise_left_shift", "left_shift"), ops.shift_left),
    "bitwise_or": ops.or_,
    **dict.fromkeys(("bitwise_right_shift", "right_shift"), ops.shift_right),
    "bitwise_xor": ops.xor,
    "cbrt": ops.cbrt,
    "ceil": ops.ceil,
    **dict.fromkeys(("conj", "conjugate"), ops.conj),
    "copysign": ops.copysign,
    "cos": ops.cos,
    "cosh": ops.cosh,
    **dict.fromkeys(("divide", "true_divide"), ops.div),
    "equal": ops.eq,
    "exp": ops.exp,
    "exp2": ops.exp2,
    "expm1": ops.expm1,
    "floor": ops.floor,
    "floor_divide": ops.floor_divide,
    "fmod": ops.fmod,
    "greater": ops.gt,
    "greater_equal": ops.ge,
    "hypot": ops.hypot,
    "imag": ops.imag,
    "isfinite": ops.isfinite,
    "isinf": ops.isinf,
    "isnan": ops.isnan,
    "less": ops.lt,
    "less_equal": ops.le,
    "log": ops.log,
    "log10": ops.log10,
    "log1p": ops.log1p,
    "log2": ops.log2,
    "logaddexp": ops.logaddexp,
    "logaddexp2": ops.logaddexp2,
    "logical_and": ops.logical_and,
    "logical_not": ops.logical_not,
    "logical_or": ops.logical_or,
    "logical_xor": ops.logical_xor,
    "maximum": ops.maximum,
    "minimum": ops.minimum,
    "multiply": ops.mul,
    "negative": ops.neg,
    "nextafter": ops.nextafter,
    "not_equal": ops.ne,
    **dict.fromkeys(("power", "pow"), ops.power),
    "real": ops.real,
    "reciprocal": ops.reciprocal,
    **dict.fromkeys(("remainder", "mod"), ops.remainder),
    "rint": ops.rint,
    "rsqrt": ops.rsqrt,
    "sign": ops.sign,
    "signbit": ops.signbit,
    "sin": ops.sin,
    "sinc": ops.sinc,
    "sinh": ops.sinh,
    "sqrt": ops.sqrt,
    "square": ops.square,
    "subtract": ops.sub,
    "tan": ops.tan,
    "tanh": ops.tanh,
    "trunc": ops.trunc,
    "dynamic_slice": ops.dynamic_slice,
    "dynamic_update_slice": ops.dynamic_update_slice,
    "linear_recurrence": ops.linear_recurrence,
}

# Modules whose __all__ goes into the main namespace as it is.
_MODULES = (
    *(calculus, convolution, creation, diagonals, einsum, elementwise, joining, linear),
    *(manipulation, nan_reductions, padding, polynomials, quantiles, reductions, searching),
    *(sets, sorting, statistics),
)
# ... but for what is of use inside only, or is a class.
_INTERNAL = {"UniqueAll", "UniqueCounts", "UniqueInverse", "matrix_power", "multi_dot"}


def _members(module: Any, names: Any = None) -> dict[str, Builder]:
    return {name: getattr(module, name) for name in names or module.__all__}


def _builders() -> dict[str, Builder]:
    table: dict[str, Builder] = {}
    for module in _MODULES:
        table.update(_members(module))
    for name in _INTERNAL:
        del table[name]
    table.update(_ELEMENTWISE)
    table.update(_members(indexing, ("take", "take_along_axis", "put_along_axis")))
    table.update({"degrees": table["rad2deg"], "radians": table["deg2rad"]})
    table.update({"logsumexp": special.logsumexp, "one_hot": activations.one_hot})
    for module in (special, gamma):
        table.update({f"special.{name}": getattr(module, name) for name in module.__all__})
    for name in ("erf", "erfc"):
        table[f"special.{name}"] = getattr(ops, name)
    for name in (*activations.__all__, "sigmoid", "softplus", "log_sigmoid", "logsumexp"):
        source = activations if name in activations.__all__ else special
        table[f"nn.{name}"] = getattr(source, name)
    table.update({f"nn.{n}": getattr(special, n) for n in ("softmax", "log_softmax")})
    table["nn.tanh"] = ops.tanh
    for name in ("norm", "vector_norm", "matrix_norm"):
        table[f"linalg.{name}"] = getattr(norms, name)
    for name in ("cross", "matmul", "matrix_power", "multi_dot", "outer", "tensordot", "vecdot"):
        table[f"linalg.{name}"] = getattr(linear, name)
    table.update({f"linalg.{n}": getattr(factorizations, n) for n in factorizations.__all__})
    for name in ("diagonal", "trace"):
        table[f"linalg.{name}"] = _of_last_axes(getattr(diagonals, name))
    table["linalg.matrix_transpose"] = manipulation.matrix_transpose
    return table


def _of_last_axes(function: Builder) -> Builder:
    """The Array API's linalg form: matrices are in the last two axes."""

    def of_matrices(x: Any, /, *, offset: Any = 0, **options: Any) -> Any:
        return function(x, offset, -2, -1, **options)

    of_matrices.__doc__ = function.__doc__
    return of_matrices


BUILDERS: dict[str, Builder] = _builders()

# ------------------------------------------------------------------------- functions of arrays


def _public(name: str, builder: Builder) -> Callable[..., Any]:
    """``builder`` as the public function ``name``: arguments lifted, results wrapped."""

    def on_arrays(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            result = builder(*map(lift, args), **{k: lift(v) for k, v in kwargs.items()})
        elif len(args) == 1:
            (x,) = args
            result = builder(x._value if type(x) is Array else lift(x))
        elif len(args) == 2:
            x, y = args
            result = builder(
                x._value if type(x) is Array else lift(x), y._value if type(y) is Array else lift(y)
            )
        else:
            result = builder(*map(lift, args))
        return wrap(result) if type(result) is Value else lower_to_arrays(result)

    return _named(name, builder, on_arrays)


def _named(name: str, builder: Any, function: Any) -> Callable[..., Any]:
    """Name, text and signature of the public function; it pickles by its public place."""
    update_wrapper(function, builder)
    space, _, plain = name.rpartition(".")
    function.__name__ = function.__qualname__ = plain
    function.__module__ = f"{_PACKAGE}.{space}" if space else _PACKAGE
    if not function.__doc__:
        record = ops.OPS.get(getattr(builder, "__name__", "").rstrip("_"))
        function.__doc__ = _DOCS[plain] if record is None else record.doc
    return function  # type: ignore[no-any-return]


_PACKAGE = __package__.rpartition(".")[0]

# What has no record of its own: bit operations on what is true.
_DOCS = {
    "logical_and": "Whether both are true (not zero).",
    "logical_or": "Whether one of both is true (not zero).",
    "logical_xor": "Whether exactly one of both is true (not zero).",
    "logical_not": "Whether it is false (zero).",
}


def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """The functions of ``piecewise`` are the user's: they get arrays."""

    def on_values(function: Any) -> Any:
        if not callable(function):
            return lift(function)
        return lambda value, *more, **named: lift(function(wrap(value), *more, **named))

    functions = [on_values(f) for f in funclist]
    return wrap(searching.piecewise(lift(x), lift(condlist), functions, *args, **kw))


def _on_device(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A creation function with the Array API's ``device`` (there is the one, ``"cpu"``)."""

    def on_cpu(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device not in (None, "cpu"):
            raise at_user_line(
                UnsupportedError(
                    f"{name}: expected device 'cpu', got {device!r}", op=name, device=str(device)
                )
            )
        return function(*args, **kwargs)

    return _named(name, function, on_cpu)


_CREATION = (
    *("arange", "empty", "empty_like", "eye", "full", "full_like", "linspace"),
    *("ones", "ones_like", "zeros", "zeros_like"),
)

# Functions that are not builders on values.
UNLIFTED: dict[str, Callable[..., Any]] = {
    **_members(inspection),
    **_members(arrays),
}


def _functions() -> dict[str, Callable[..., Any]]:
    table = {name: _public(name, builder) for name, builder in BUILDERS.items()}
    table["piecewise"] = _named("piecewise", searching.piecewise, _piecewise)
    for name in _CREATION:
        table[name] = _on_device(name, table[name])
    table.update(UNLIFTED)
    return table


FUNCTIONS: dict[str, Callable[..., Any]] = _functions()

# Names that a star import must not lay over Python's own.
BUILTINS = ("abs", "all", "any", "divmod", "max", "min", "pow", "round", "sum")
# `tg.trace` traces a function; the trace of a matrix is `tg.linalg.trace` (and `np.trace`).
_TAKEN = ("trace",)

_PLAIN = {name: f for name, f in FUNCTIONS.items() if "." not in name and name not in _TAKEN}
globals().update(_PLAIN)
__all__ = sorted(set(_PLAIN).difference(BUILTINS))  # what a star import of the package brings


def space(name: str) -> dict[str, Callable[..., Any]]:
    """The functions of a sub-namespace by their plain names."""
    return {
        full.removeprefix(name + "."): f
        for full, f in FUNCTIONS.items()
        if full.startswith(name + ".")
    }
