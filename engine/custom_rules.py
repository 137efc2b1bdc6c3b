"""What ``custom_jvp`` and ``custom_vjp`` share: arguments, captures, and answers of rules."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..autodiff.custom import filled_in
from ..ir.errors import DTypeError, ShapeError
from ..ir.graph import Value
from ..ir.location import at_user_line
from ..ir.ops.custom import Rule, Tie, custom_call, hold
from ..ir.ops.operands import convert
from ..ir.rewrite import substitute
from ..ir.types import TensorType
from .array import Array, wrap
from .captures import arrays_read_by
from .marking import argument_names, name_of
from .signature import lift_leaf, type_of
from .traced import output_value
from .tracing import MARKS, RUNNING, is_independent
from .tree import count, paths, put_together, show, take_apart

__all__ = ["CustomFunction", "Site", "fitted"]


class CustomFunction:
    """A function with derivative rules of its own."""

    transform = "custom"

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        if not callable(fun):
            raise at_user_line(
                TypeError(f"{self.transform}: expected a function, got {type(fun).__name__}")
            )
        functools.update_wrapper(self, fun, updated=())
        self.__wrapped__ = fun
        self.title = f"{self.transform}({name_of(fun)})"
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else nondiff_argnums
        self.nondiff_argnums = tuple(numbers)
        try:
            self._signature: inspect.Signature | None = inspect.signature(fun)
        except (TypeError, ValueError):  # some builtins have none
            self._signature = None

    @property
    def __rules__(self) -> tuple[Callable[..., Any], ...]:
        """The functions that make up the rule: what they read, the function reads."""
        raise NotImplementedError

    def _rule(self, site: Site) -> Rule:
        raise NotImplementedError

    def _check_rules(self) -> None:
        """Raise if no rule is given yet."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._check_rules()
        if not kwargs and not RUNNING.get() and not MARKS and all(map(_is_realized, args)):
            return self.__wrapped__(*args)  # the short way of the commonest case
        return Site(self, self._resolved(args, kwargs)).result(self._rule)

    def _resolved(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Positional arguments alone, defaults filled in: what rules are called with."""
        if self._signature is None:
            if kwargs:
                raise at_user_line(
                    TypeError(f"{self.title}: its argument names are unknown: pass by position")
                )
            return args
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise at_user_line(TypeError(f"{self.title}: {error}")) from None
        bound.apply_defaults()
        if bound.kwargs:
            raise at_user_line(
                TypeError(
                    f"{self.title}: rules take positional arguments, so keyword-only ones "
                    f"({', '.join(bound.kwargs)}) cannot be passed on; make them positional"
                )
            )
        return bound.args

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> Any:
        # A decorated function is found under its name, where its name leads to this object.
        found: Any = importlib.import_module(self.__wrapped__.__module__)
        for part in self.__wrapped__.__qualname__.split("."):
            found = getattr(found, part, None)
        if found is not self:
            raise at_user_line(
                TypeError(f"{self.title}: cannot be pickled: its name leads to another object")
            )
        return self.__wrapped__.__qualname__

    def __repr__(self) -> str:
        return f"<{self.title}>"


def _is_realized(x: Any) -> bool:
    return type(x) is Array and x._buffer is not None


class Site:
    """One call of a function with a rule: how its arguments become operands, and back.

    Operands of the rule are the leaves of the differentiable arguments, then *extras*: arrays
    among the others, and arrays that the function and its rules capture, where these are traced.
    """

    def __init__(self, custom: CustomFunction, args: tuple[Any, ...]) -> None:
        self.custom = custom
        self.title = custom.title
        self.count = len(args)
        self.nondiff = self._places(custom.nondiff_argnums)
        self.names = argument_names(custom.__wrapped__, self.count)
        diff = tuple([x for i, x in enumerate(args) if i not in self.nondiff])
        leaves: list[Any] = []
        self.spec = take_apart(diff, leaves)
        names = [n for i, n in enumerate(self.names) if i not in self.nondiff]
        self.paths = [p for n, c in zip(names, self.spec[2], strict=True) for p in paths(c, n)]
        self.given = args
        for x, path in zip(leaves, self.paths, strict=True):
            self._check_leaf(x, path)
        self.leaves = [lift_leaf(x) for x in leaves]
        self.types = [x.type for x in self.leaves]
        self._others: list[Any] = []
        self._other_spec = take_apart(tuple([args[i] for i in self.nondiff]), self._others)
        self._array_places = [i for i, x in enumerate(self._others) if type(x) is Array]
        self.others = [self._others[i]._value for i in self._array_places]
        self.captured: list[Value] = []

    def _places(self, numbers: Sequence[int]) -> tuple[int, ...]:
        for number in numbers:
            if not -self.count <= number < self.count:
                raise at_user_line(
                    ValueError(
                        f"{self.title}: nondiff_argnums: expected positions among {self.count} "
                        f"arguments, got {number}"
                    )
                )
        return tuple(sorted({number % self.count for number in numbers}))

    def _check_leaf(self, x: Any, path: str) -> None:
        if isinstance(x, Array | bool | int | float | complex):
            return
        try:
            type_of(x, path)
        except DTypeError:
            raise at_user_line(
                DTypeError(
                    f"{self.title}: argument {path}: expected an array, a number or a container of "
                    f"them, got {type(x).__name__} {x!r}; name its position in nondiff_argnums"
                )
            ) from None

    # ------------------------------------------------------------------------ the call itself

    def result(self, rule: Callable[[Site], Rule]) -> Any:
        """What the function returns, tied to its arguments by a rule."""
        function = self.custom.__wrapped__
        if not RUNNING.get() and not MARKS and is_independent([*self.leaves, *self.others]):
            return function(*self.given)  # nobody can differentiate what is known and unmarked
        tie = Tie()
        held = [hold(x, tie) for x in self.leaves]
        out = function(*self.arguments(held, [hold(x, tie) for x in self.others]))
        leaves: list[Any] = []
        self.out_spec = take_apart(out, leaves)
        self.out_names = paths(self.out_spec, "the result")
        values = [
            output_value(x, f"{self.title}: {n}")
            for x, n in zip(leaves, self.out_names, strict=True)
        ]
        self.out_types = [x.type for x in values]
        read = [x._value for x in arrays_read_by([function, *self.custom.__rules__])]
        self.captured = [x for x in dict.fromkeys(read) if not is_independent([x])]
        operands = [*self.leaves, *self.others, *self.captured]
        if is_independent([*operands, *values]):
            return out
        found = custom_call(values, operands, rule(self), tie)
        return put_together(self.out_spec, iter([wrap(x) for x in found]))

    # ------------------------------------------------------------------ arguments of the rules

    def trees(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The differentiable arguments with these leaves."""
        found: tuple[Any, ...] = put_together(self.spec, iter(leaves))
        return found

    def nondiff_arguments(self, extras: Sequence[Value]) -> tuple[Any, ...]:
        """The other arguments, their arrays replaced by the first of the extras."""
        items = list(self._others)
        for place, x in zip(self._array_places, extras, strict=False):
            items[place] = wrap(x)
        found: tuple[Any, ...] = put_together(self._other_spec, iter(items))
        return found

    def arguments(self, leaves: Sequence[Value], extras: Sequence[Value]) -> list[Any]:
        """All arguments in their places."""
        diff = iter(self.trees([wrap(x) for x in leaves]))
        others = dict(zip(self.nondiff, self.nondiff_arguments(extras), strict=True))
        return [others[i] if i in others else next(diff) for i in range(self.count)]

    def zeros_for(self, dots: Sequence[Value | None]) -> list[Any]:
        """Tangents of the leaves as arrays: zeros where there is none, None for integers."""
        return _instantiated(dots, self.types)

    def cotangents(self, bars: Sequence[Value | None]) -> Any:
        """Cotangents of the result as a tree like it."""
        return put_together(self.out_spec, iter(_instantiated(bars, self.out_types)))

    # -------------------------------------------------------------------------- their answers

    def released(
        self, values: Sequence[Value | None], extras: Sequence[Value]
    ) -> list[Value | None]:
        """``values`` with captured arrays as they are now, after the transforms since the call."""
        now = extras[len(self.others) :]
        moved = {a: b for a, b in zip(self.captured, now, strict=True) if a != b}
        if not moved:
            return list(values)
        found = iter(substitute([x for x in values if x is not None], moved))
        return [None if x is None else next(found) for x in values]

    def check_primal(self, what: str, out: Any) -> None:
        """Whether a rule returns results like those of the function."""
        leaves: list[Any] = []
        spec = take_apart(out, leaves)
        if spec != self.out_spec and show(spec) != show(self.out_spec):
            raise at_user_line(
                TypeError(
                    f"{self.title}: {what}: expected the structure {show(self.out_spec)} of the "
                    f"function's result, got {show(spec)}"
                )
            )
        for x, t, name in zip(leaves, self.out_types, self.out_names, strict=True):
            _check_type(f"{self.title}: {what}: {name}", t, output_value(x, what).type)


def _instantiated(dots: Sequence[Value | None], types: Sequence[TensorType]) -> list[Any]:
    return [None if t is None else wrap(t) for t in filled_in(dots, types)]


def fitted(
    what: str, tree: Any, spec: Any, types: Sequence[TensorType], names: Sequence[str]
) -> list[Value | None]:
    """The leaves of a tree of derivatives like ``spec``, checked; None stands for zeros."""
    leaves = list(_aligned(what, tree, spec))
    found: list[Value | None] = []
    for x, t, name in zip(leaves, types, names, strict=True):
        if x is None or not t.dtype.is_inexact:
            found.append(None)
            continue
        value = output_value(x, f"{what} of {name}")
        _check_type(f"{what} of {name}", t, value.type)
        found.append(convert(value, t.dtype))
    return found


def _aligned(what: str, tree: Any, spec: Any) -> Iterator[Any]:
    """Leaves of ``tree`` in the places of ``spec``: None stands for all leaves below it."""
    if tree is None:
        yield from [None] * count(spec)
        return
    if spec is None:
        yield tree
        return
    cls, aux, children = spec
    if type(tree) is not cls:
        raise at_user_line(
            TypeError(f"{what}: expected the structure {show(spec)}, got {_shown(tree)}")
        )
    parts: list[Any] = []
    own = take_apart(tree, parts, lambda x: x is not tree)
    if len(parts) != len(children) or (cls is dict and set(own[1]) != set(aux)):
        raise at_user_line(
            TypeError(f"{what}: expected the structure {show(spec)}, got {_shown(tree)}")
        )
    for part, child in zip(parts, children, strict=True):
        yield from _aligned(what, part, child)


def _shown(tree: Any) -> str:
    found = show(take_apart(tree, []))
    return found if found != "*" else f"{type(tree).__name__}"


def _check_type(what: str, expected: TensorType, got: TensorType) -> None:
    if got.shape != expected.shape:
        raise at_user_line(ShapeError(f"{what}: expected {_strong(expected)}, got {_strong(got)}"))
    if got.dtype is not expected.dtype and not got.weak and not expected.weak:
        raise at_user_line(
            DTypeError(
                f"{what}: expected {_strong(expected)}, got {_strong(got)}; convert with astype"
            )
        )


def _strong(t: TensorType) -> TensorType:
    return TensorType(t.shape, t.dtype)
