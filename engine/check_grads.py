"""Checking derivatives: against differences, against each other, against what derivatives are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.location import at_user_line
from . import directional
from .array import Array
from .marking import argument_names, name_of
from .tree import paths, put_together, take_apart

__all__ = ["check_grads", "check_linear", "verify_ad"]

Leaves = list[np.ndarray[Any, Any]]

# Step and tolerance by the width of the narrowest array. The formula's error is of fourth order, so
# the best step is near the fifth root of the rounding error.
_STEP = {4: 2e-2, 8: 1e-3}
_TOLERANCE = {4: 2e-2, 8: 1e-6}


class _Problem:
    """A function of the floating and complex leaves of its arguments, as lists of arrays."""

    def __init__(self, fun: Callable[..., Any], args: Sequence[Any], title: str) -> None:
        self.title = title
        self.fun = fun
        given: list[Any] = []
        self.spec = take_apart(tuple(args), given)
        names = argument_names(fun, len(args))
        where = [p for n, c in zip(names, self.spec[2], strict=True) for p in paths(c, n)]
        self.given = [float(x) if type(x) is int else x for x in given]
        self.places = [i for i, x in enumerate(self.given) if np.asarray(x).dtype.kind in "fc"]
        self.names = [where[i] for i in self.places]
        self.point: Leaves = [np.asarray(self.given[i]) for i in self.places]
        if not self.point:
            raise at_user_line(
                TypeError(f"{title}: expected a floating or complex argument, got none")
            )

    def __call__(self, *leaves: Any) -> list[Any]:
        """Floating and complex leaves of the result."""
        whole = list(self.given)
        for i, x in zip(self.places, leaves, strict=True):
            whole[i] = x
        out: list[Any] = []
        take_apart(self.fun(*put_together(self.spec, iter(whole))), out)
        return [y for y in out if _kind(y) in "fc"]

    def values(self, leaves: Leaves) -> Leaves:
        return [np.asarray(y) for y in self(*leaves)]

    def width(self) -> int:
        sizes = [x.real.dtype.itemsize for x in self.point]
        return min([8, *sizes, *[y.real.dtype.itemsize for y in self.values(self.point)]])

    def difference(self, dots: Leaves, step: float) -> Leaves:
        """The derivative along ``dots`` by the central difference of fourth order.

        ``(8 (f(h) - f(-h)) - (f(2h) - f(-2h))) / 12h``: Abramowitz and Stegun 25.3.4, twice.
        """

        def at(size: float) -> Leaves:
            moved = [x + size * t for x, t in zip(self.point, dots, strict=True)]
            return self.values([m.astype(x.dtype) for m, x in zip(moved, self.point, strict=True)])

        near, far = (
            [a - b for a, b in zip(at(k * step), at(-k * step), strict=True)] for k in (1, 2)
        )
        return [(8 * n - f) / (12 * step) for n, f in zip(near, far, strict=True)]

    def push(self, dots: Leaves) -> tuple[Leaves, Leaves]:
        value, tangent = directional.jvp(self, tuple(self.point), tuple(dots))
        return [np.asarray(y) for y in value], [np.asarray(t) for t in tangent]

    def pull(self, bars: Leaves) -> Leaves:
        _, pullback = directional.vjp(self, *self.point)
        return [np.asarray(c) for c in pullback(list(bars))]


def _kind(x: Any) -> str:
    return str(x.dtype.numpy.kind if isinstance(x, Array) else np.asarray(x).dtype.kind)


def _random(rng: np.random.Generator, like: Leaves) -> Leaves:
    found = []
    for x in like:
        t = rng.standard_normal(x.shape)
        whole = t + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else t
        found.append(np.asarray(whole).astype(x.dtype))
    return found


def _paired(bars: Leaves, dots: Leaves) -> float:
    """The pairing of cotangents and tangents: Re(sum(c t)), without conjugation."""
    return float(sum(np.sum(c * t).real for c, t in zip(bars, dots, strict=True)))


def _alone(dots: Leaves, place: int) -> Leaves:
    """A direction along one leaf only."""
    return [t if i == place else np.zeros_like(t) for i, t in enumerate(dots)]


@dataclass(frozen=True, slots=True)
class _Close:
    """How close is close, and the words for what is not."""

    atol: float
    rtol: float

    def differs(self, got: Any, expected: Any) -> str | None:
        got, expected = np.asarray(got), np.asarray(expected)
        scale = max(float(np.max(np.abs(expected), initial=0.0)), 1.0)
        with np.errstate(invalid="ignore"):
            off = np.abs(got - expected)
        allowed = self.atol + self.rtol * scale
        bad = ~(off <= allowed)
        if not bad.any():
            return None
        worst = tuple(int(i) for i in np.argwhere(bad)[0])
        at = f" at {list(worst)}" if worst else ""
        return (
            f"expected {expected[worst]:.10g}, got {got[worst]:.10g}{at} (off by "
            f"{off[worst]:.3g}, allowed {allowed:.3g})"
        )


# ---------------------------------------------------------------------------------- check_grads


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compare derivatives of a function with differences of its values.

    Parameters
    ----------
    f : callable
        Of pytrees of arrays, to a pytree of arrays. Integer leaves stay as they are.
    args : tuple
        Where to look, away from kinks.
    order : int
        The derivatives of the derivatives are checked too, up to this order: every sequence of
        modes.
    modes : sequence of {"fwd", "rev"}
    atol, rtol : float, optional
        An error up to ``atol + rtol * max(1, largest value)`` passes. Default: 1e-6, in float32
        2e-2.
    eps : float, optional
        The step. Default: 1e-3, in float32 2e-2.

    Raises
    ------
    AssertionError
        Names the order, the mode, the argument and both figures.

    Notes
    -----
    Forward mode along one random direction (of a fixed seed) against the central difference of
    fourth order; reverse mode by ``<c, J t> = <J^T c, t>`` with the same difference. Complex
    arguments move along complex directions.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.check_grads(lambda x: tg.sin(x) * x, (1.5,), order=3)
    >>> wrong = tg.custom_jvp(tg.sin)
    >>> wrong.defjvps(lambda x_dot, y, x: 2 * tg.cos(x) * x_dot)
    >>> tg.check_grads(wrong, (0.0,), order=1)
    Traceback (most recent call last):
    ...
    AssertionError: check_grads(sin): order 1, fwd: argument x: expected 0.1257302211, got ...
    """
    title = f"check_grads({name_of(f)})"
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    for mode in modes:
        if mode not in ("fwd", "rev"):
            raise at_user_line(ValueError(f"{title}: modes: expected 'fwd' or 'rev', got {mode!r}"))
    if not isinstance(args, tuple | list):
        raise at_user_line(
            TypeError(f"{title}: args: expected a tuple, got {type(args).__name__}; write (x,)")
        )
    problem = _Problem(f, args, title)
    width = problem.width()
    found = _TOLERANCE[width]
    close = _Close(found if atol is None else atol, found if rtol is None else rtol)
    step = _STEP[width] if eps is None else eps
    _check(problem, order, modes, close, step, np.random.default_rng(0), ())


def _check(
    problem: _Problem,
    order: int,
    modes: Sequence[str],
    close: _Close,
    step: float,
    rng: np.random.Generator,
    done: tuple[str, ...],
) -> None:
    dots = _random(rng, problem.point)
    bars = _random(rng, problem.values(problem.point))
    for mode in modes:
        fault = _fault(problem, mode, dots, bars, close, step)
        if fault is not None:
            steps = " of ".join([mode, *reversed(done)])
            raise AssertionError(f"{problem.title}: order {len(done) + 1}, {steps}: {fault}")
        if order > 1:
            inner = _Problem(_derivative(problem, mode, dots, bars), problem.point, problem.title)
            inner.names = problem.names
            _check(inner, order - 1, modes, close, step, rng, (*done, mode))


def _derivative(problem: _Problem, mode: str, dots: Leaves, bars: Leaves) -> Callable[..., Any]:
    """The derivative along the direction, as a function of where."""
    if mode == "fwd":
        return lambda *x: directional.jvp(problem, x, tuple(dots))[1]
    return lambda *x: list(directional.vjp(problem, *x)[1](list(bars)))


def _fault(
    problem: _Problem, mode: str, dots: Leaves, bars: Leaves, close: _Close, step: float
) -> str | None:
    """What is wrong with one mode, with the argument that shows it."""
    moves: list[Leaves] = [dots]
    if len(dots) > 1:
        moves += [_alone(dots, i) for i in range(len(dots))]
    pulled = problem.pull(bars) if mode == "rev" else []
    found: str | None = None
    for k, along in enumerate(moves):
        if k and found is None:  # all together are right
            return None
        slope = problem.difference(along, step)
        where = f"argument {problem.names[k - 1] if k else ', '.join(problem.names)}: "
        if mode == "fwd":
            value, tangent = problem.push(along)
            pairs = [*zip(tangent, slope, strict=True)]
            pairs += zip(value, problem.values(problem.point), strict=True)
        else:
            pairs = [(np.float64(_paired(pulled, along)), np.float64(_paired(bars, slope)))]
        faults = [close.differs(got, expected) for got, expected in pairs]
        fault = next((x for x in faults if x is not None), None)
        if fault is not None:
            found = where + fault
            if k or len(moves) == 1:
                return found
    return found


# ------------------------------------------------------------------------------------- verify_ad


def check_linear(
    fun: Callable[..., Any], args: Sequence[Any], rtol: float = 1e-6, seed: int = 0
) -> None:
    """Raise ``AssertionError`` unless the jvp of ``fun`` is linear in the tangents."""
    problem = _Problem(fun, args, f"check_linear({name_of(fun)})")
    for fault in _linear_faults(problem, np.random.default_rng(seed), _Close(0.0, rtol)):
        raise AssertionError(f"{problem.title}: {fault}")


def _linear_faults(problem: _Problem, rng: np.random.Generator, close: _Close) -> Iterator[str]:
    u, v = _random(rng, problem.point), _random(rng, problem.point)
    a, b = 2.0, -3.0
    both = [(a * x + b * y).astype(x.dtype) for x, y in zip(u, v, strict=True)]
    parts = zip(problem.push(u)[1], problem.push(v)[1], problem.push(both)[1], strict=True)
    for of_u, of_v, of_both in parts:
        fault = close.differs(of_both, a * of_u + b * of_v)
        if fault is not None:
            yield f"the jvp is not linear in the tangents: jvp(2 u - 3 v): {fault}"


def _hessian_fault(problem: _Problem, rng: np.random.Generator, close: _Close) -> str | None:
    """Whether ``u (D^2 s) v = v (D^2 s) u`` for the scalar ``s = <w, f>``, by reverse over reverse.

    Real arguments and results only.
    """
    values = problem.values(problem.point)
    if any(x.dtype.kind == "c" for x in (*problem.point, *values)):
        return None
    bars = _random(rng, values)
    u, v = _random(rng, problem.point), _random(rng, problem.point)

    def gradient(*x: Any) -> list[Any]:
        return list(directional.vjp(problem, *x)[1](list(bars)))

    second = _Problem(gradient, problem.point, problem.title)
    fault = close.differs(_paired(second.pull(u), v), _paired(second.pull(v), u))
    return None if fault is None else f"the Hessian is not symmetric: {fault}"


def verify_ad(
    f: Callable[..., Any],
    *args: Any,
    rtol: float | None = None,
    seed: int = 0,
    samples: int = 3,
    forward: bool = True,
) -> None:
    """Verify that the derivatives of a function are what derivatives must be.

    Parameters
    ----------
    f : callable
        Of pytrees of arrays, to a pytree of arrays; one that carries a rule of yours, say.
    args
        Where to look, away from kinks.
    rtol : float, optional
        Relative error that passes. Default: 1e-6, in float32 2e-2.
    seed : int
        Of the random directions.
    samples : int
        How often each property is checked.
    forward : bool
        False for a function without forward mode.

    Raises
    ------
    AssertionError
        Names the property that does not hold, and both figures.

    Notes
    -----
    Checked are: the jvp is linear, ``D(a u + b v) = a D u + b D v``; forward and reverse mode are
    adjoint, ``<c, D u> = <D^T c, u>``; the Hessian of ``<w, f>`` is symmetric; and both modes agree
    with difference quotients of the values.

    Examples
    --------
    >>> import tilegrad as tg
    >>> tg.verify_ad(lambda x, y: tg.exp(x) * y, 0.5, tg.ones(3))
    """
    problem = _Problem(f, args, f"verify_ad({name_of(f)})")
    width = problem.width()
    tolerance = _TOLERANCE[width] if rtol is None else rtol
    close = _Close(tolerance, tolerance)
    rng = np.random.default_rng(seed)
    for _ in range(samples):
        for fault in _structure_faults(problem, rng, close, forward, _STEP[width]):
            raise AssertionError(f"{problem.title}: {fault}")


def _structure_faults(
    problem: _Problem, rng: np.random.Generator, close: _Close, forward: bool, step: float
) -> Iterator[str]:
    dots = _random(rng, problem.point)
    bars = _random(rng, problem.values(problem.point))
    if forward:
        yield from _linear_faults(problem, rng, close)
        pushed = _paired(bars, problem.push(dots)[1])
        fault = close.differs(_paired(problem.pull(bars), dots), pushed)
        if fault is not None:
            yield f"the modes are not adjoint: <J^T c, u> for <c, J u>: {fault}"
    fault = _hessian_fault(problem, rng, close)
    if fault is not None:
        yield fault
    for mode in ("fwd", "rev") if forward else ("rev",):
        fault = _fault(problem, mode, dots, bars, close, step)
        if fault is not None:
            yield f"{mode} against a difference quotient: {fault}"
