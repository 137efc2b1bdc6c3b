"""NumPy's protocols (NEP 13, NEP 18): functions of ``np.`` on arrays are ours of the same name.

So a function written with ``np.`` can be traced, differentiated and compiled as it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.location import at_user_line
from .operators import function

__all__ = ["NumPyProtocols"]

# ufunc.method -> the function that does it.
_REDUCE = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_ACCUMULATE = {
    "add": "cumsum",
    "multiply": "cumprod",
    "maximum": "cummax",
    "minimum": "cummin",
}
# Names that NumPy gives its ufuncs where ours follow another spelling of NumPy's.
_RENAMED = {"conjugate": "conj", "invert": "bitwise_invert"}
# NumPy's write to their argument and return nothing; ours return the changed array.
_IN_PLACE = ("put_along_axis",)
# Keywords that change nothing for us when they have these values.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "casting": ("same_kind",),
    "order": ("K", "C", None),
    "subok": (True,),
    "where": (True,),
}


def _find(name: str, shown: str) -> Callable[..., Any]:
    try:
        return function(name)
    except KeyError:
        raise at_user_line(
            TypeError(
                f"{shown}: has no counterpart in tilegrad; write it with functions that have, or "
                f"convert the arrays with np.asarray(x) outside jit and grad"
            )
        ) from None


def _refuse_out(shown: str, kwargs: dict[str, Any]) -> None:
    """``out=`` would write to an array: ours are immutable, and NumPy's cannot hold a promise."""
    out = kwargs.pop("out", None)
    if out is None or (isinstance(out, tuple) and all(x is None for x in out)):
        return
    raise at_user_line(
        TypeError(
            f"{shown}: out= is not possible with tilegrad arrays (in-place operators such as "
            f"a += x on a NumPy array a use it too); use the result: a = a + x"
        )
    )


def _without_neutral(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in kwargs.items() if not (k in _NEUTRAL and _is_one_of(v, _NEUTRAL[k]))}


def _is_one_of(value: Any, choices: tuple[Any, ...]) -> bool:
    return any(value is choice for choice in choices) or (
        isinstance(value, str) and value in choices
    )


class NumPyProtocols:
    """The methods NumPy calls. A mixin of :class:`~tilegrad.engine.array.Array`."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        shown = f"np.{name}" + ("" if method == "__call__" else f".{method}")
        _refuse_out(shown, kwargs)
        kwargs = _without_neutral(kwargs)
        dtype = kwargs.pop("dtype", None)
        if dtype is not None and method in ("__call__", "outer"):  # computed in that type
            inputs = tuple([function("asarray")(x, dtype=dtype) for x in inputs])
        elif dtype is not None:
            kwargs["dtype"] = dtype
        if method == "__call__":
            return _find(_RENAMED.get(name, name), shown)(*inputs, **kwargs)
        if method == "reduce" and name in _REDUCE:
            # A ufunc reduces along the first axis unless told otherwise, a function along all.
            axis = kwargs.pop("axis", inputs[1] if len(inputs) > 1 else 0)
            return _find(_REDUCE[name], shown)(inputs[0], axis=axis, **kwargs)
        if method == "accumulate" and name in _ACCUMULATE:
            axis = kwargs.pop("axis", inputs[1] if len(inputs) > 1 else 0)
            return _find(_ACCUMULATE[name], shown)(inputs[0], axis=axis, **kwargs)
        if method == "outer":
            left, right = inputs
            rank = np.ndim(right)
            left = function("reshape")(left, (*np.shape(left), *(1,) * rank))
            return _find(_RENAMED.get(name, name), shown)(left, right, **kwargs)
        return _find("", shown)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        module = func.__module__.removeprefix("numpy").lstrip(".")
        name = f"{module}.{func.__name__}" if module in ("linalg", "fft") else func.__name__
        shown = "np." + name
        if name in _IN_PLACE:
            raise at_user_line(
                TypeError(
                    f"{shown}: would write to its argument, and arrays are immutable; use "
                    f"x = tg.{name}(x, ...), which returns the changed array, or x.at[i].set(v)"
                )
            )
        _refuse_out(shown, kwargs)
        return _find(_RENAMED.get(name, name), shown)(*args, **_without_neutral(kwargs))
