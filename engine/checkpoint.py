"""``checkpoint``: a function whose derivatives compute again what they would otherwise keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

from ..autodiff.recompute import Recompute, checkpoint_call
from ..ir.ops.checkpoint import named
from ..ir.ops.leaves import alias, input_node
from ..ir.rewrite import substitute
from .array import wrap
from .checkpoint_policies import choice_of
from .marking import name_of
from .regions import as_leaves, close_regions
from .signature import lift_leaf
from .traced import output_value
from .tracing import differentiating, is_independent
from .tree import map as map_tree
from .tree import paths, put_together, take_apart

__all__ = ["checkpoint", "checkpoint_name", "remat"]


def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    policy: Any = None,
    memory_budget: int | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Any:
    """A function that is computed again where its derivatives need what it computed.

    Values are those of ``fun``, bit for bit. Reverse mode keeps the arguments, and of the values
    between them and the result what ``policy`` says.

    Parameters
    ----------
    fun : callable
        Of pytrees of arrays, to a pytree of arrays. It may close over arrays, traced ones too.
    policy : callable or one of ``tg.checkpoint_policies``, optional
        What is saved. ``policy(op, *types, **params) -> bool``: whether the results of an operation
        may be. Default: nothing.
    memory_budget : int, optional
        Save at most so many bytes, chosen such that little work is done again.
    static_argnums : int or sequence of int
        Positional arguments that are handed to ``fun`` as they are: no arrays.

    Returns
    -------
    callable
        Called like ``fun``.

    Raises
    ------
    BudgetError
        When differentiated, if ``fun`` needs more bytes than the budget whatever is computed again;
        ``needed`` says how many.

    Notes
    -----
    What is computed again has the same bits. So have derivatives, unless a value is used at several
    places that a checkpoint puts into another order: the cotangents of ``fun`` come together, where
    without it those of other functions may come between. Such sums may differ in the last bits,
    and so may second derivatives in reverse over reverse by values that a policy saves.

    Memory falls where a long program is cut into pieces: ``g = f3(f2(f1(x)))``, each under
    checkpoint, holds the arguments of the three and the inside of one. One checkpoint around all
    of it recomputes all of it at once.

    Examples
    --------
    >>> import tilegrad as tg
    >>> f = tg.checkpoint(lambda x: tg.sin(tg.sin(x)))
    >>> float(tg.grad(f)(0.0))
    1.0
    """
    if fun is None:
        return partial(
            checkpoint, policy=policy, memory_budget=memory_budget, static_argnums=static_argnums
        )
    choose = choice_of(policy, memory_budget)
    rule = Recompute(f"checkpoint({name_of(fun)})", choose)
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        whole = {k % len(args): args[k] for k in static}
        rest = [x for k, x in enumerate(args) if k not in whole]
        given = as_leaves((rest, kwargs), f"{rule.title}: arguments")
        # As under grad: the arguments keep their values, so that Python's if and while work.
        marks = [alias(x) for x in given.values]
        with differentiating(marks):
            inner, inner_kwargs = given.tree(marks)
            for k in sorted(whole):
                inner.insert(k, whole[k])
            result = fun(*inner, **inner_kwargs)
        leaves: list[Any] = []
        spec = take_apart(result, leaves)
        where = paths(spec, f"{rule.title}: the result")
        outputs = [output_value(x, path) for x, path in zip(leaves, where, strict=True)]
        inputs = [input_node(x.type, f"x{k}").out for k, x in enumerate(marks)]
        body, captured = close_regions(
            inputs, substitute(outputs, dict(zip(marks, inputs, strict=True))), keep_weak=True
        )
        operands = [*captured, *given.values]
        if not is_independent(operands):  # else nobody is there to differentiate it
            held = [False] * len(operands)
            outputs = list(checkpoint_call(body.inputs, body.outputs, operands, held, rule))
        return put_together(spec, iter([wrap(y) for y in outputs]))

    return checkpointed


remat = checkpoint


def checkpoint_name(tree: Any, name: str) -> Any:
    """The same values under a name that policies of :func:`checkpoint` can ask for.

    Examples
    --------
    >>> import tilegrad as tg
    >>> policy = tg.checkpoint_policies.save_only_these_names("hidden")
    >>> f = tg.checkpoint(lambda x: tg.sin(tg.checkpoint_name(tg.sin(x), "hidden")), policy=policy)
    >>> float(tg.grad(f)(0.0))
    1.0
    """
    return map_tree(lambda x: wrap(named(lift_leaf(x), name)), tree)
