"""What ``checkpoint`` saves: policies by JAX's names, and two that weigh bytes against work.

A policy is a predicate ``policy(op, *types, **params) -> bool`` of the name of an operation, the
types of its operands and its params: whether the results may be saved. Of those that may, the
nearest to where the backward part needs them are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..autodiff.recompute import Choice, budgeted, of_predicate
from ..autodiff.recompute import minimum_cut as cut
from ..ir.location import at_user_line
from ..ir.ops.checkpoint import NAMED

__all__ = [
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "everything_saveable",
    "minimum_cut",
    "nothing_saveable",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
]

Policy = Callable[..., bool]


@dataclass(frozen=True, slots=True)
class _Whole:
    """A policy that looks at the whole function."""

    name: str
    choose: Choice

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


def choice_of(policy: Any, memory_budget: int | None) -> Choice:
    """What a policy given by the user saves."""
    if memory_budget is not None:
        if policy is not None:
            raise at_user_line(
                TypeError("checkpoint: expected policy= or memory_budget=, got both; drop one")
            )
        if isinstance(memory_budget, bool) or not isinstance(memory_budget, int):
            raise at_user_line(
                TypeError(f"checkpoint: memory_budget: expected bytes, got {memory_budget!r}")
            )
        return budgeted(memory_budget)
    if isinstance(policy, _Whole):
        return policy.choose
    if policy is not None and not callable(policy):
        raise at_user_line(
            TypeError(
                f"checkpoint: policy: expected a function (op, *types, **params) -> bool or one of "
                f"tg.checkpoint_policies, got {policy!r}"
            )
        )
    return of_predicate(policy)


# Save the least bytes of which all else that the backward part needs is cheap to compute: matrix
# products, reductions and library work are not done again.
minimum_cut = _Whole("minimum_cut", cut)


def everything_saveable(op: str, *types: Any, **params: Any) -> bool:
    """Save all that the backward part reads: as without checkpoint."""
    return True


def nothing_saveable(op: str, *types: Any, **params: Any) -> bool:
    """Save the arguments alone: the default."""
    return False


def dots_saveable(op: str, *types: Any, **params: Any) -> bool:
    """Save the results of matrix products and contractions."""
    return op == "dot"


def dots_with_no_batch_dims_saveable(op: str, *types: Any, **params: Any) -> bool:
    """The same, but for those with batch axes."""
    return op == "dot" and params["batch"] == ((), ())


def save_only_these_names(*names: str) -> Policy:
    """Save the values named so by ``checkpoint_name``."""

    def policy(op: str, *types: Any, **params: Any) -> bool:
        return op == NAMED.name and params["name"] in names

    return policy


def save_any_names_but_these(*names: str) -> Policy:
    """Save the values with a name that is none of these."""

    def policy(op: str, *types: Any, **params: Any) -> bool:
        return op == NAMED.name and params["name"] not in names

    return policy


def save_anything_except_these_names(*names: str) -> Policy:
    """Save everything but the values named so.

    An operation does not know under which name its result will go: what is read without the name
    is saved all the same.
    """

    def policy(op: str, *types: Any, **params: Any) -> bool:
        return op != NAMED.name or params["name"] not in names

    return policy


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Save what one of two policies saves."""

    def policy(op: str, *types: Any, **params: Any) -> bool:
        return first(op, *types, **params) or second(op, *types, **params)

    return policy
