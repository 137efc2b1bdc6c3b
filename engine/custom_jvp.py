"""``custom_jvp``: a function whose derivative along a direction the user tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff.custom import Forward, Push, total
from ..ir.graph import Value
from ..ir.location import at_user_line, own_places
from ..ir.ops.custom import Rule
from .array import wrap
from .custom_rules import CustomFunction, Site, fitted
from .tree import leaves

__all__ = ["custom_jvp", "push_of"]


class custom_jvp(CustomFunction):  # noqa: N801 - JAX's name
    """A function with a derivative rule of its own, for all modes.

    Parameters
    ----------
    fun : callable
        Of pytrees of arrays, to a pytree of arrays.
    nondiff_argnums : int or sequence of int
        Positions of arguments that are not differentiated: any Python objects. Rules get them
        first.

    Notes
    -----
    Reverse mode transposes the rule, so its tangent must be linear in the tangents. The value is
    always that of ``fun``. Rules are differentiated in turn, so higher orders are right if the rule
    is written with differentiable operations (it may call the function itself). Derivatives by
    what ``fun`` captures are those of ``fun``'s own operations; the rule speaks of the arguments.

    Examples
    --------
    >>> import tilegrad as tg
    >>> @tg.custom_jvp
    ... def log1pexp(x):
    ...     return tg.log1p(tg.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     return log1pexp(x), (1 - 1 / (1 + tg.exp(x))) * x_dot
    >>> float(tg.grad(log1pexp)(1000.0))
    1.0
    """

    transform = "custom_jvp"
    _jvp: Callable[..., Any] | None = None
    _jvps: tuple[Callable[..., Any] | None, ...] | None = None

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule ``jvp(*nondiff, primals, tangents) -> (value, tangent)``.

        ``primals`` and ``tangents`` are tuples with one entry an argument, ``tangent`` is like the
        value; None in it stands for zero. Integer arguments have the tangent None. Usable as a
        decorator.
        """
        self._jvp, self._jvps = jvp, None
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set the rule as one function an argument: ``jvp(tangent, value, *primals)``.

        None stands for an argument without influence. The tangents are added.
        """
        if self.nondiff_argnums:
            raise at_user_line(
                TypeError(f"{self.title}: defjvps has no place for nondiff_argnums; use defjvp")
            )
        self._jvp, self._jvps = None, jvps

    @property
    def __rules__(self) -> tuple[Callable[..., Any], ...]:
        return tuple([f for f in (self._jvp, *(self._jvps or ())) if f is not None])

    def _check_rules(self) -> None:
        if self._jvp is None and self._jvps is None:
            raise at_user_line(
                TypeError(f"{self.title}: has no rule; give it one with .defjvp or .defjvps")
            )

    def _rule(self, site: Site) -> Rule:
        jvp = self._jvp
        push = push_of(site, jvp) if jvp is not None else _push_of_each(site, self._jvps or ())
        return Forward(self.title, len(site.leaves), len(site.others), push)

    def check_linear(self, *args: Any, rtol: float = 1e-6, seed: int = 0, **kwargs: Any) -> None:
        """Raise ``AssertionError`` unless the rule's tangent is linear in the tangents.

        Compares ``jvp(a u + b v)`` with ``a jvp(u) + b jvp(v)`` for random directions at the given
        arguments.
        """
        from .check_grads import check_linear

        self._check_rules()
        args = self._resolved(args, kwargs)
        places = [i for i in range(len(args)) if i not in Site(self, args).nondiff]

        def of_arguments(*moving: Any) -> Any:
            whole = list(args)
            for i, x in zip(places, moving, strict=True):
                whole[i] = x
            return self(*whole)

        of_arguments.__name__ = self.title
        check_linear(of_arguments, tuple([args[i] for i in places]), rtol=rtol, seed=seed)


def push_of(site: Site, jvp: Callable[..., Any]) -> Push:
    """The rule as a function of graph values."""
    what = f"{site.title}: the rule"

    def push(
        args: Sequence[Value], extras: Sequence[Value], dots: Sequence[Value | None]
    ) -> list[Value | None]:
        primals = site.trees([wrap(x) for x in args])
        tangents = site.trees(site.zeros_for(dots))
        with own_places():
            found = jvp(*site.nondiff_arguments(extras), primals, tangents)
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise at_user_line(
                TypeError(f"{what}: expected a pair (value, tangent), got {type(found).__name__}")
            )
        value, tangent = found
        site.check_primal("value of the rule", value)
        names = site.out_names
        dot = fitted(f"{what}: tangent", tangent, site.out_spec, site.out_types, names)
        return site.released(dot, extras)

    return push


def _push_of_each(site: Site, jvps: Sequence[Callable[..., Any] | None]) -> Push:
    """Rules for single arguments, added up."""
    if len(jvps) != len(site.spec[2]):
        raise at_user_line(
            TypeError(
                f"{site.title}: defjvps: expected a rule for each of {len(site.spec[2])} "
                f"arguments, got {len(jvps)}"
            )
        )

    def push(
        args: Sequence[Value], extras: Sequence[Value], dots: Sequence[Value | None]
    ) -> list[Value | None]:
        primals = site.trees([wrap(x) for x in args])
        tangents = site.trees(site.zeros_for(dots))
        moving = site.trees([t is not None for t in dots])
        totals: list[Value | None] = [None] * len(site.out_types)
        with own_places():
            value = site.custom(*primals)
            for jvp, tangent, moves, name in zip(jvps, tangents, moving, site.names, strict=True):
                if jvp is None or not any(leaves(moves)):
                    continue
                what = f"{site.title}: the rule of {name}: tangent"
                part = fitted(
                    what,
                    jvp(tangent, value, *primals),
                    site.out_spec,
                    site.out_types,
                    site.out_names,
                )
                totals = [total(a, b) for a, b in zip(totals, part, strict=True)]
        return site.released(totals, extras)

    return push
