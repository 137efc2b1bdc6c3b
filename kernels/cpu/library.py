"""Ops that a library does best on whole arrays: what a plan calls between its native steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Node
from .lapack import cholesky, triangular_solve
from .sorting import argsort, sort, top_places

__all__ = ["LIBRARY", "fill"]

Array = np.ndarray[Any, Any]

# Op name -> function(*operands, *results, threads, **params) that fills the results. Its bits do
# not depend on the number of threads. Sorting gives those of the op's reference, up to the payload
# of a NaN; linear algebra rounds as the library does.
LIBRARY: dict[str, Callable[..., None]] = {
    "sort": sort,
    "argsort": argsort,
    "top_places": top_places,
    "cholesky": cholesky,
    "triangular_solve": triangular_solve,
}


def fill(node: Node, operands: Sequence[Array], results: Sequence[Array], threads: int) -> None:
    """Fill ``results`` with what a node makes of ``operands``, by its reference if need be.

    Parameters
    ----------
    node : Node
    operands : sequence of ndarray
        C-contiguous.
    results : sequence of ndarray
        Of the node's types, C-contiguous; no memory is shared with the operands.
    threads : int
        How many may be used.
    """
    params: dict[str, Any] = dict(node.params)
    function = LIBRARY.get(node.op.name)
    with np.errstate(all="ignore"):
        if function is not None:
            function(*operands, *results, threads, **params)
            return
        reference: Any = node.op.reference
        values = reference(*operands, **params)
    for result, value in zip(
        results, values if isinstance(values, tuple) else (values,), strict=True
    ):
        result[...] = value
