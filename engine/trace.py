"""``trace``: the graph of a function, for inspection and for tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.graph import Graph
from .jit import jit

__all__ = ["trace"]


def trace(fun: Callable[..., Any]) -> Callable[..., Graph]:
    """A function that returns the graph of ``fun`` for its arguments, as written.

    Parameters
    ----------
    fun : callable
        Of pytrees of arrays, to a pytree of arrays.

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
    graph <lambda>(%0 "x": f64[3]) {
      %1: f64[3] = mul(%0, %0)
      return %1
    }
    """

    def graph(*args: Any, **kwargs: Any) -> Graph:
        return jit(fun).lower(*args, **kwargs).graph  # type: ignore[no-any-return]

    return graph
