"""``trace``: the graph of a function; and, by NumPy's name, the sum of a diagonal."""

from __future__ import annotations

from typing import Any

from ..ir.graph import Graph
from .jit import jit
from .operators import function

__all__ = ["trace"]


def trace(fun: Any, *args: Any, **kwargs: Any) -> Any:
    """A function that returns the graph of ``fun`` for its arguments, as written.

    Of an array, which nobody can call, it is NumPy's ``trace``: the sum along a diagonal.

    Parameters
    ----------
    fun : callable or array
        A function of pytrees of arrays, to a pytree of arrays.
    args, kwargs
        For an array: ``offset``, ``axis1``, ``axis2``, ``dtype`` as in NumPy.

    Returns
    -------
    callable
        ``(*args, **kwargs) -> Graph``; types do in place of arrays. One input for each array of the
        arguments, named by its way there, then one for each captured array; one output for each
        array of the result.

    Examples
    --------
    >>> import tilegrad as tg
    >>> from tilegrad.ir.text import text
    >>> print(text(tg.trace(lambda x: x * x)(tg.ShapeDtype((3,)))))
    graph main(%0 "x": f64[3]) {
      %1: f64[3] = mul(%0, %0)
      return %1
    }
    >>> tg.trace(tg.eye(3))
    Array(3., dtype=float64)
    """

    if not callable(fun):
        return function("trace")(fun, *args, **kwargs)

    def graph(*args: Any, **kwargs: Any) -> Graph:
        return jit(fun).lower(*args, **kwargs).graph  # type: ignore[no-any-return]

    return graph
