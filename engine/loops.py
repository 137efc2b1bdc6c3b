"""Loops: ``scan``, ``fori_loop``, ``while_loop`` and ``map``.

Outside of a trace they are Python's loops. Traced, a loop is one node (:mod:`..ir.ops.regions`)
whose body was run once, on stand-ins.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.dtypes import int64
from ..ir.errors import ConvergenceError, DTypeError, ShapeError, TracerError
from ..ir.graph import Graph, Value
from ..ir.location import at_user_line
from ..ir.ops import and_, ge, lt, sub, where
from ..ir.ops.leaves import input_node
from ..ir.ops.operands import convert
from ..ir.ops.regions import OUT_OF_STEPS, Loop, While
from ..ir.types import TensorType
from .array import Array, wrap
from .config import config
from .effects import one_token, perform
from .loop_bodies import Body, after_step, pair_of
from .marking import name_of
from .namespace import concatenate, stack
from .regions import Leaves, as_leaves, close_regions, is_traced, trace_region
from .signature import lift_leaf, type_of
from .tree import map as map_tree
from .vmap import vmap

__all__ = ["fori_loop", "map_", "scan", "while_loop"]

Step = Callable[[Any, Any], tuple[Any, Any]]


def scan(
    f: Step,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    checkpoint: int | str | None = None,
) -> tuple[Any, Any]:
    """A loop that carries a state along sequences and records what each step returns.

    Parameters
    ----------
    f : callable
        ``f(carry, x) -> (carry, y)``. The new carry is like the old one in structure, shapes and
        dtypes; ``y`` is any tree, or None.
    init : pytree
        The carry to begin with.
    xs : pytree, optional
        Arrays of one leading extent; step ``i`` gets the elements ``x[i]``. None: no sequence.
    length : int, optional
        Number of steps; needed without ``xs``.
    reverse : bool
        From the last element to the first; records keep the places of their elements.
    unroll : int or bool
        Steps written out in each iteration of the loop; True: all of them.
    checkpoint : int or "sqrt", optional
        How much a compiled loop may keep for its derivative in reverse mode: so many bytes (steps
        are computed again as often as that takes), or about the square root of what all steps need.
        None: ``config.loop_memory`` bytes, or if that is not set all that saves computing a step
        twice. Values and derivatives are the same bits.

    Returns
    -------
    carry : pytree
        After the last step.
    ys : pytree
        The records, stacked along a new axis 0.

    Raises
    ------
    TypeError, ShapeError, DTypeError
        If the carry changes its structure, a shape or a dtype (with both), or the extents of
        ``xs`` differ.

    Notes
    -----
    Outside of a trace this is a Python loop. Traced it is one node, however long, and one native
    loop when compiled; its derivatives are loops, to any order. Python numbers in ``init`` adopt
    the dtype that the carry has after a step.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.scan(lambda c, x: (c + x, c * x), 0.0, tg.asarray([1.0, 2.0, 3.0]))
    (Array(6., dtype=float64), Array([0., 2., 9.], dtype=float64))
    """
    title = f"scan({name_of(f)})"
    start, sequences = as_leaves(init, "init"), as_leaves(xs, "xs")
    steps = _length(sequences, length)
    kept = _checkpoint("scan", checkpoint)
    if unroll is not True:
        unroll = _whole("scan: unroll", unroll, 1)
        if 1 < unroll < steps:
            return _scan_in_groups(f, init, sequences, steps, reverse, unroll, checkpoint)
    traced = is_traced([*start.values, *sequences.values])
    if steps and (not traced or unroll is True or unroll >= steps > 1):
        return _scan_in_python(title, f, start, sequences, steps, reverse)
    slices = [TensorType(x.shape[1:], x.dtype) for x in sequences.values]

    def step(index: Array, carry: Any, slices: Sequence[Value]) -> tuple[Any, Any]:
        return pair_of(title, f(carry, sequences.tree(slices)))

    body = Body("scan", f, start, step, slices, sequences.names, runs=steps > 0)
    loop = Loop(
        body.graph,
        tuple(body.captured),
        body.init,
        tuple(sequences.values),
        steps,
        reverse=bool(reverse),
        checkpoint=kept,
    )
    return body.results(loop.node())  # type: ignore[no-any-return]


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    checkpoint: int | str | None = None,
) -> Any:
    """``val = body_fun(i, val)`` for ``i`` from ``lower`` up to and without ``upper``.

    Parameters
    ----------
    lower, upper : int or integer Array of shape ()
        They may be traced: the loop is differentiable all the same.
    body_fun : callable
        ``(i, val) -> val``: like the old one in structure, shapes and dtypes. ``i`` is an int64.
    init_val : pytree
    checkpoint : int or "sqrt", optional
        See :func:`scan`; bytes are for bounds that are Python numbers.

    Returns
    -------
    pytree
        The value after the last step; ``init_val`` if ``upper <= lower``.

    Raises
    ------
    TypeError, ShapeError, DTypeError
        See :func:`scan`; for bounds that are no integer scalars.

    Examples
    --------
    >>> import tilegrad as tg
    >>> int(tg.fori_loop(1, 6, lambda i, product: product * i, 1))
    120
    """
    title = f"fori_loop({name_of(body_fun)})"
    start = as_leaves(init_val, "init_val")
    bounds = [_bound(title, "lower", lower), _bound(title, "upper", upper)]
    known = all(isinstance(x, int | np.integer) for x in (lower, upper))
    kept = _checkpoint("fori_loop", checkpoint, known)
    if not is_traced([*start.values, *bounds]):
        first, last = [wrap(x).item() for x in bounds]
        for i in range(first, last):
            start = after_step(title, start, body_fun(i, start.tree()))
        return start.tree()
    length = max(int(upper) - int(lower), 0) if known else None

    def step(index: Array, carry: Any, slices: Sequence[Value]) -> tuple[Any, Any]:
        return body_fun(index + wrap(bounds[0]), carry), None

    body = Body("fori_loop", body_fun, start, step, runs=bool(length), outside=bounds)
    loop = Loop(
        body.graph,
        tuple(body.captured),
        body.init,
        (),
        length,
        None if known else _trips(*bounds),
        checkpoint=kept,
    )
    return body.results(loop.node())[0]


def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    *,
    max_steps: int | None = None,
    checkpoint: str | None = None,
) -> Any:
    """``val = body_fun(val)`` while ``cond_fun(val)``.

    Parameters
    ----------
    cond_fun : callable
        ``val -> bool`` of shape ().
    body_fun : callable
        ``val -> val``: like the old one in structure, shapes and dtypes.
    init_val : pytree
    max_steps : int, optional
        If the condition still holds after so many steps, that is an error: nothing is cut silently.
    checkpoint : "sqrt", optional
        Let a compiled loop keep for its derivative in reverse mode about the square root of what
        the steps taken need, and compute each step twice.

    Returns
    -------
    pytree
        The first value for which the condition does not hold.

    Raises
    ------
    TypeError, ShapeError, DTypeError
        See :func:`scan`; for a condition that is no bool scalar.
    ConvergenceError
        After ``max_steps``.

    Notes
    -----
    Differentiable in both modes to any order: in reverse mode the steps taken are recorded, in
    memory that grows with their number. The derivative is that of the steps taken; that their
    number depends on the value has none. Under ``vmap`` each example has a number of steps of its
    own, and keeps its value when it is done.

    Examples
    --------
    >>> import tilegrad as tg
    >>> int(tg.while_loop(lambda n: n < 100, lambda n: 2 * n, 3))
    192
    """
    title = f"while_loop({name_of(body_fun)})"
    start = as_leaves(init_val, "init_val")
    kept = _checkpoint("while_loop", checkpoint, False)
    if max_steps is not None:
        max_steps = _whole("while_loop: max_steps", max_steps, 0)
    if not is_traced(start.values):
        steps = 0
        while bool(wrap(_condition(cond_fun, start.tree()))):
            if steps == max_steps:
                raise at_user_line(ConvergenceError(OUT_OF_STEPS.format(limit=max_steps)))
            start = after_step(title, start, body_fun(start.tree()))
            steps += 1
        return start.tree()

    def step(index: Array, carry: Any, slices: Sequence[Value]) -> tuple[Any, Any]:
        return body_fun(carry), None

    body = Body("while_loop", body_fun, start, step)
    tested = trace_region(
        "while_loop",
        cond_fun,
        start.types,
        start.names,
        lambda arrays: wrap(_condition(cond_fun, start.tree([x._value for x in arrays]))),
    )
    holds = tested.out.values
    if tested.effects:
        holds = [and_(holds[0], one_token(tested.effects, tested.inputs[0]))]
    cond, outer = close_regions(tested.inputs, holds, name="condition")
    token = [input_node(x.type, "token") for x in body.init[len(start.values) :]]
    cond = Graph((*cond.inputs, *token), cond.outputs, cond.name)
    loop = While(cond, body.graph, tuple(outer), tuple(body.captured), body.init, max_steps, kept)
    node = loop.node()
    if tested.effects:
        perform(ge(node.outputs[len(loop.init)], 0))  # lives as long as the count of its trips
    return body.results(node)[0]


def map_(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """``f`` of each element of ``xs`` along axis 0, one after the other, stacked.

    Parameters
    ----------
    f : callable
        Of a tree like ``xs`` without the leading axis, to any tree.
    xs : pytree
        Arrays of one leading extent.
    batch_size : int, optional
        So many elements at once, as under :func:`vmap`: memory between that of ``map`` and that of
        ``vmap``.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.map(lambda x: x * x, tg.asarray([1.0, 2.0, 3.0]))
    Array([1., 4., 9.], dtype=float64)
    """
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    sequences = as_leaves(xs, "xs")
    at_once = _whole("map: batch_size", batch_size, 1)
    groups, left = divmod(_length(sequences, None), at_once)
    whole, tail = _split(sequences, groups, at_once)
    results = []
    if groups or not left:
        ys = scan(lambda _, x: (None, vmap(f)(x)), None, whole)[1]
        results.append(_joined_groups(ys))
    if left:
        results.append(vmap(f)(tail))
    return map_tree(lambda *parts: concatenate(parts), *results)


# ------------------------------------------------------------------------------------- operands


def _condition(cond_fun: Callable[[Any], Any], carry: Any) -> Value:
    """What a condition says, as a bool."""
    title = f"while_loop: condition {name_of(cond_fun)}"
    found = cond_fun(carry)
    t = type_of(found, title)
    if t.shape or not t.dtype.is_bool:
        kind = DTypeError if not t.shape else ShapeError
        raise at_user_line(kind(f"{title}: expected it to return bool[], got {t}"))
    return lift_leaf(found)


def _trips(lower: Value, upper: Value) -> Value:
    """``upper - lower``, none if that is negative (and the difference may overflow)."""
    return where(lt(lower, upper), sub(upper, lower), 0)


def _bound(title: str, name: str, x: Any) -> Value:
    t = type_of(x, f"{title}: {name}")
    if t.shape or not t.dtype.is_integer:
        kind = DTypeError if not t.shape else ShapeError
        raise at_user_line(kind(f"{title}: {name}: expected an integer scalar, got {t}"))
    return convert(lift_leaf(x), int64)


# ------------------------------------------------------------------------------------ sequences


def _checkpoint(title: str, given: int | str | None, known: bool = True) -> Any:
    """What a loop may keep; ``known`` tells whether its length is."""
    if given is None:
        return config.loop_memory if known else None
    if given == "sqrt" or (known and isinstance(given, int) and given > 0):
        return given
    wanted = "a positive number of bytes or 'sqrt'" if known else "'sqrt': the length is not known"
    raise at_user_line(ValueError(f"{title}: checkpoint: expected {wanted}, got {given!r}"))


def _length(sequences: Leaves, length: int | None) -> int:
    """The number of steps."""
    found = None if length is None else _whole("scan: length", length, 0)
    first = "length"
    for x, name in zip(sequences.values, sequences.names, strict=True):
        if not x.shape:
            raise at_user_line(
                ShapeError(f"scan: {name}: expected an axis to run along, got {x.type}")
            )
        if found is None:
            found, first = x.shape[0], name
        elif x.shape[0] != found:
            raise at_user_line(
                ShapeError(
                    f"scan: {name}: expected {found} elements along axis 0, as {first} says, got "
                    f"{x.type}"
                )
            )
    if found is None:
        raise at_user_line(ValueError("scan: expected xs with an array in it, or length"))
    return found


def _whole(title: str, number: Any, least: int) -> int:
    """A number of steps that the program is made for."""
    try:
        found = operator.index(number)
    except TracerError:
        raise
    except TypeError:
        kind = type(number).__name__
        raise at_user_line(TypeError(f"{title}: expected an integer, got {kind}")) from None
    if found < least:
        raise at_user_line(ValueError(f"{title}: expected {least} or more, got {found}"))
    return found


def _scan_in_python(
    title: str, f: Step, start: Leaves, sequences: Leaves, steps: int, reverse: bool
) -> tuple[Any, Any]:
    """The loop in Python, of one step at least."""
    arrays = [wrap(x) for x in sequences.values]
    records = []
    for i in reversed(range(steps)) if reverse else range(steps):
        carry, y = pair_of(title, f(start.tree(), sequences.tree([a[i]._value for a in arrays])))
        start = after_step(title, start, carry)
        records.append(y)
    if reverse:
        records.reverse()
    return start.tree(), map_tree(lambda *parts: stack(parts), records[0], *records[1:])


def _scan_in_groups(
    f: Step,
    init: Any,
    sequences: Leaves,
    steps: int,
    reverse: bool,
    size: int,
    checkpoint: int | str | None,
) -> tuple[Any, Any]:
    """A loop over groups of ``size`` steps, and one over those that are left at the end."""
    groups, left = divmod(steps, size)
    whole, tail = _split(sequences, groups, size)

    def group(carry: Any, xs: Any) -> tuple[Any, Any]:
        return scan(f, carry, xs, size, reverse, unroll=True)

    if not left:
        carry, ys = scan(group, init, whole, groups, reverse, checkpoint=checkpoint)
        return carry, _joined_groups(ys)
    if reverse:
        carry, last = scan(f, init, tail, left, reverse, checkpoint=checkpoint)
        carry, ys = scan(group, carry, whole, groups, reverse, checkpoint=checkpoint)
    else:
        carry, ys = scan(group, init, whole, groups, checkpoint=checkpoint)
        carry, last = scan(f, carry, tail, left, checkpoint=checkpoint)
    return carry, map_tree(lambda a, b: concatenate([a, b]), _joined_groups(ys), last)


def _split(sequences: Leaves, groups: int, size: int) -> tuple[Any, Any]:
    """The sequences in groups of ``size`` along a new axis, and what is left of them."""
    arrays = [wrap(x) for x in sequences.values]
    end = groups * size
    whole = [x[:end].reshape((groups, size, *x.shape[1:])) for x in arrays]
    return sequences.tree([x._value for x in whole]), sequences.tree(
        [x[end:]._value for x in arrays]
    )


def _joined_groups(ys: Any) -> Any:
    return map_tree(lambda y: y.reshape((y.shape[0] * y.shape[1], *y.shape[2:])), ys)
