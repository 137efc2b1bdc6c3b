"""``custom_vjp``: a function whose reverse derivative the user tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff.custom import Pullback, Reverse
from ..ir.graph import Value
from ..ir.location import at_user_line, own_places
from ..ir.ops.custom import Rule
from .array import wrap
from .custom_jvp import push_of
from .custom_rules import CustomFunction, Site, fitted
from .traced import output_value
from .tree import paths, put_together, take_apart

__all__ = ["custom_vjp"]


class custom_vjp(CustomFunction):  # noqa: N801 - JAX's name
    """A function with a rule of its own for reverse mode.

    Parameters
    ----------
    fun : callable
        Of pytrees of arrays, to a pytree of arrays.
    nondiff_argnums : int or sequence of int
        Positions of arguments that are not differentiated: any Python objects. ``fwd`` gets them
        in their places, ``bwd`` first.

    Raises
    ------
    UnsupportedError
        For forward mode (``jvp``, ``jacfwd``), which the rule says nothing of, unless ``defjvp``
        gives a rule for that too.

    Notes
    -----
    ``fwd`` and ``bwd`` are traced and differentiated in turn, so higher orders work: also forward
    over reverse, as in ``hvp``. The value is always that of ``fun``. Derivatives by what ``fun``
    captures are those of its own operations; the rule speaks of the arguments.

    Examples
    --------
    >>> import tilegrad as tg
    >>> @tg.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda res, x_bar: (tg.clip(x_bar, -1.0, 1.0),))
    >>> float(tg.grad(lambda x: clipped(x) ** 2)(3.0))
    1.0
    """

    transform = "custom_vjp"
    _fwd: Callable[..., Any] | None = None
    _bwd: Callable[..., Any] | None = None
    _jvp: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the rule.

        Parameters
        ----------
        fwd : callable
            ``fwd(*args) -> (value, residuals)``: called like the function; residuals are any tree
            of arrays.
        bwd : callable
            ``bwd(*nondiff, residuals, cotangent) -> tuple``: one cotangent a differentiable
            argument, like it in structure, shapes and dtypes. None stands for zeros, for a whole
            argument or a part of it. What is said of integer arguments is ignored.
        """
        self._fwd, self._bwd = fwd, bwd

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Set a companion for forward mode, as :meth:`custom_jvp.defjvp`.

        Reverse mode goes on with ``bwd``.
        """
        self._jvp = jvp
        return jvp

    @property
    def __rules__(self) -> tuple[Callable[..., Any], ...]:
        return tuple([f for f in (self._fwd, self._bwd, self._jvp) if f is not None])

    def _check_rules(self) -> None:
        if self._fwd is None or self._bwd is None:
            raise at_user_line(
                TypeError(f"{self.title}: has no rule; give it one with .defvjp(fwd, bwd)")
            )

    def _rule(self, site: Site) -> Rule:
        fwd, bwd, jvp = self._fwd, self._bwd, self._jvp
        assert fwd is not None
        assert bwd is not None
        push = None if jvp is None else push_of(site, jvp)

        def residuals(args: Sequence[Value], extras: Sequence[Value]) -> Any:
            with own_places():
                found = fwd(*site.arguments(args, extras))
            if not isinstance(found, tuple | list) or len(found) != 2:
                raise at_user_line(
                    TypeError(
                        f"{site.title}: fwd: expected a pair (value, residuals), got "
                        f"{type(found).__name__}"
                    )
                )
            value, tree = found
            site.check_primal("value of fwd", value)
            leaves: list[Any] = []
            spec = take_apart(tree, leaves)
            where = paths(spec, f"{site.title}: residuals of fwd")
            values = [output_value(x, path) for x, path in zip(leaves, where, strict=True)]
            kept = site.released(values, extras)
            return [*kept, *extras], _pullback(site, bwd, spec, len(kept))

        return Reverse(self.title, len(site.leaves), len(site.others), residuals, push)


def _pullback(site: Site, bwd: Callable[..., Any], spec: Any, count: int) -> Pullback:
    """``bwd`` as a function of graph values; fixed are the residuals, then the extras."""
    names = [n for i, n in enumerate(site.names) if i not in site.nondiff]
    what = f"{site.title}: bwd: cotangent"

    def pullback(fixed: Sequence[Value], cotangents: Sequence[Value | None]) -> list[Value | None]:
        residuals = put_together(spec, iter([wrap(x) for x in fixed[:count]]))
        extras = fixed[count:]
        with own_places():
            found = bwd(*site.nondiff_arguments(extras), residuals, site.cotangents(cotangents))
        if not isinstance(found, tuple | list) or len(found) != len(names):
            got = len(found) if isinstance(found, tuple | list) else type(found).__name__
            raise at_user_line(
                TypeError(
                    f"{site.title}: bwd: expected a tuple of {len(names)}, one cotangent an "
                    f"argument ({', '.join(names)}), got {got}"
                )
            )
        leaves = fitted(what, tuple(found), site.spec, site.types, site.paths)
        return site.released(leaves, extras)

    return pullback
