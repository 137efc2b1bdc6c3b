"""Branches: ``cond`` and ``switch``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..ir.dtypes import DType, int64, promote
from ..ir.errors import DTypeError, ShapeError
from ..ir.graph import Graph, Value, make_node
from ..ir.location import at_user_line
from ..ir.ops.comparison import ne
from ..ir.ops.leaves import constant, input_node
from ..ir.ops.operands import convert
from ..ir.ops.regions import COND
from ..ir.ops.selection import clip
from ..ir.rewrite import substitute
from ..ir.types import TensorType
from .array import wrap
from .captures import arrays_read_by
from .effects import one_token, perform
from .marking import name_of
from .regions import Leaves, as_leaves, check_like, close_regions, is_traced, trace_region
from .signature import lift_leaf, type_of

__all__ = ["cond", "switch"]


def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
) -> Any:
    """``true_fun(*operands)`` if ``pred``, else ``false_fun(*operands)``; the other does not run.

    Parameters
    ----------
    pred : bool, number or Array of shape ()
        A number holds if it is not zero.
    true_fun, false_fun : callable
        Both return trees of the same structure, shapes and dtypes. They may use whatever is around
        them.
    *operands : pytrees

    Raises
    ------
    ShapeError, DTypeError, TypeError
        If ``pred`` is no scalar, or the branches disagree: with both types and the way to the leaf.
    ValueError
        If ``pred`` is NaN or infinite and known.

    Notes
    -----
    Outside of a trace this is Python's ``if``. Traced it is one node: the derivative of the branch
    that runs, in both modes, to any order; what the other one would give (NaN, say) appears neither
    in values nor in derivatives. Under ``vmap`` with a mapped ``pred`` each example has the
    branch that it takes.

    Examples
    --------
    >>> import tilegrad as tg
    >>> f = tg.jit(lambda x: tg.cond(x > 0, tg.log, lambda x: 0.0 * x, x))
    >>> float(f(1.0)), float(tg.grad(f)(-1.0))
    (0.0, 0.0)
    """
    t = type_of(pred, "cond: pred")
    if t.shape:
        raise at_user_line(
            ShapeError(f"cond: pred: expected a scalar, got {t}; tg.where chooses by element")
        )
    if t.dtype.is_complex:
        raise at_user_line(DTypeError(f"cond: pred: expected a bool or a real number, got {t}"))
    condition = lift_leaf(pred)
    given = as_leaves(operands, "operands")
    if not is_traced([condition]):
        number = wrap(condition).item()
        if isinstance(number, float) and not math.isfinite(number):
            raise at_user_line(
                ValueError(f"cond: pred: expected a bool or a finite number, got {number}")
            )
        return as_leaves((true_fun if number else false_fun)(*operands), "the result").tree()
    holds = condition if condition.dtype.is_bool else ne(condition, 0)
    names = [f"false_fun ({name_of(false_fun)})", f"true_fun ({name_of(true_fun)})"]
    return _branches("cond", convert(holds, int64), [false_fun, true_fun], names, given)


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """``branches[index](*operands)``; an index out of range is clamped into it.

    Parameters
    ----------
    index : int or integer Array of shape ()
    branches : sequence of callable
        At least one; see :func:`cond`.
    *operands : pytrees

    Examples
    --------
    >>> import tilegrad as tg
    >>> float(tg.switch(7, [tg.sin, tg.cos], 0.0))
    1.0
    """
    t = type_of(index, "switch: index")
    if t.shape:
        raise at_user_line(ShapeError(f"switch: index: expected a scalar, got {t}"))
    if not t.dtype.is_integer:
        raise at_user_line(DTypeError(f"switch: index: expected an integer, got {t}"))
    functions = list(branches)
    if not functions:
        raise at_user_line(ValueError("switch: branches: expected at least one, got none"))
    position = lift_leaf(index)
    given = as_leaves(operands, "operands")
    if not is_traced([position]):
        chosen = functions[min(max(wrap(position).item(), 0), len(functions) - 1)]
        return as_leaves(chosen(*operands), "the result").tree()
    if len(functions) == 1:
        return as_leaves(functions[0](*given.tree()), "the result").tree()
    clamped = clip(position, 0, len(functions) - 1)
    names = [f"branches[{k}] ({name_of(fun)})" for k, fun in enumerate(functions)]
    return _branches("switch", convert(clamped, int64), functions, names, given)


def _branches(
    title: str,
    index: Value,
    functions: Sequence[Callable[..., Any]],
    names: Sequence[str],
    given: Leaves,
) -> Any:
    """The node of a branch for each function; ``names`` are for messages."""
    # Looked up first: a branch may write arrays of its own to what it reads.
    known = [*given.values, *[x._value for x in arrays_read_by(functions)]]
    regions = [
        trace_region(
            title,
            fun,
            given.types,
            given.names,
            lambda arrays, fun=fun: fun(*given.tree([x._value for x in arrays])),
        )
        for fun in functions
    ]
    first = regions[0]
    _agree(title, [r.out for r in regions])
    for name, region in zip(names[1:], regions[1:], strict=True):
        what = f"what {name} returns to be like the result of {names[0]}:"
        check_like(title, what + " a value", first.out, region.out)
    # If one of them has effects, each gives a token besides.
    noisy = any(r.effects for r in regions)
    tokens = [[one_token(r.effects, constant(True))] if noisy else [] for r in regions]
    closed = [
        close_regions(r.inputs, [*r.out.values, *token], known, "branch", stays=lambda node: True)
        for r, token in zip(regions, tokens, strict=True)
    ]
    outer = list(dict.fromkeys([*given.values, *[x for _, more in closed for x in more]]))
    places = {x: k for k, x in enumerate(outer)}
    graphs = []
    for graph, captured in closed:
        own = [places[x] for x in (*captured, *given.values)]
        graphs.append(_over(graph, own, [x.type for x in outer]))
    node = make_node(COND, (index, *outer), branches=tuple(graphs))
    if noisy:
        perform(node.outputs[-1])
    return first.out.tree(node.outputs)


def _over(graph: Graph, places: Sequence[int], types: Sequence[TensorType]) -> Graph:
    """``graph`` as a function of all operands, its own inputs being at ``places`` among them."""
    inputs = [input_node(t, f"x{k}") for k, t in enumerate(types)]
    own = {node.out: inputs[k].out for node, k in zip(graph.inputs, places, strict=True)}
    return Graph(tuple(inputs), substitute(graph.outputs, own), graph.name)


def _agree(title: str, outs: Sequence[Leaves]) -> None:
    """Python numbers among the results take the dtype of what the other branches return there."""
    if any(out.spec != outs[0].spec for out in outs):
        return
    for k in range(len(outs[0].values)):
        values = [out.values[k] for out in outs]
        dtypes = {x.dtype for x in values}
        weak = [x for x in values if x.type.weak]
        if len(dtypes) == 1 or not weak:
            continue
        fixed = [x.dtype for x in values if not x.type.weak] or [x.dtype for x in weak]
        target: DType = fixed[0]
        for dtype in fixed[1:]:
            target = promote(target, dtype)
        for out in outs:
            x = out.values[k]
            if x.type.weak and _is_kept(x.dtype, target):
                out.values[k] = convert(x, target)


def _is_kept(weak: DType, target: DType) -> bool:
    """Whether a Python number of this dtype adopts ``target`` (NEP 50)."""
    order = [weak.is_complex, weak.is_inexact, weak.is_integer]
    mine = [target.is_complex, target.is_inexact, target.is_integer or target.is_inexact]
    return all(b or not a for a, b in zip(order, mine, strict=True))
