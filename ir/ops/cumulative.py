"""Running values along an axis: cumsum, cumprod, cummax, cummin, linear recurrence, logcumsumexp.

The ``scalar`` program of a cumulative record is one step, ``scalar(h, carry, *elements)``. The
first result is the first element of the last operand, as it is; every further one is the step
applied to the result before it and the elements at its place. Each result is rounded to the dtype
(inventory RD13). ``reverse`` runs from the far end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError
from ..graph import Node, Op, Value, make
from ..types import TensorType, describe
from .arithmetic import MUL, gap
from .comparison import eq, gt, lt
from .elementwise import batch_elementwise
from .exponential import exp
from .extrema import MAX, MIN
from .fill import filled, zeros_of
from .logarithm import log
from .operands import as_value, inexact_operands
from .reductions import SUM, countable
from .registry import register
from .scaling import complex_scale_program, scale, scale_program, scale_value, unscale
from .selection import stop_gradient, where
from .shape import axis_index, reshape
from .slicing import shift

__all__ = [
    "CUMMAX",
    "CUMMIN",
    "CUMPROD",
    "CUMSUM",
    "LINEAR_RECURRENCE",
    "TANGENT_RECURRENCE",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "linear_recurrence",
    "logcumsumexp",
]


def _infer(name: str, kinds: str) -> Callable[..., TensorType]:
    def infer(*types: TensorType, axis: int, reverse: bool) -> TensorType:
        x = types[-1]
        if any(t.shape != x.shape for t in types):
            raise ShapeError(f"{name}: expected equal shapes, got {describe(types)}")
        if any(t.dtype is not x.dtype for t in types):
            raise DTypeError(f"{name}: expected equal dtypes, got {describe(types)}")
        if x.dtype.kind not in kinds:
            raise DTypeError(f"{name}: is not defined for {x}; convert with astype")
        if not 0 <= axis < x.ndim:
            raise IndexError(f"{name}: expected an axis in [0, {x.ndim}) for {x}, got {axis}")
        return TensorType(x.shape, x.dtype, all(t.weak for t in types))

    return infer


def _batch(node: Node, operands: Sequence[Value], axes: Sequence[int | None]) -> Any:
    if len(operands) == 1:  # the batch axis may stay where it is
        at: int = axes[0]  # type: ignore[assignment]
        axis = node.param("axis")
        params = {"axis": axis + (axis >= at), "reverse": node.param("reverse")}
        return make(node.op, operands, **params), at
    aligned, _ = batch_elementwise(node, operands, axes)
    return make(node.op, aligned, axis=node.param("axis") + 1, reverse=node.param("reverse")), 0


def _directed(run: Callable[..., Any]) -> Callable[..., Any]:
    """A reference that knows one direction only, made to run from either end."""

    def reference(*xs: Any, axis: int, reverse: bool) -> Any:
        if not reverse:
            return run(*xs, axis=axis)
        return np.flip(run(*[np.flip(x, axis) for x in xs], axis=axis), axis)

    return reference


def _before(node: Node, y: Value, fill: Any = 0) -> Value:
    """At each place the value that the run had one step earlier."""
    return shift(y, node.param("axis"), -1 if node.param("reverse") else 1, fill)


def _samples(rng: Any, dtype: Any) -> Any:
    x = rng.permutation(24).reshape(2, 4, 3).astype(dtype) / 8 - 1  # distinct, one of them zero
    yield (x,), {"axis": 1, "reverse": False}
    yield (x,), {"axis": 2, "reverse": True}


def _build(op: Op, x: Value, axis: int | None, reverse: bool) -> Value:
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    d = axis_index(op.name, axis, x.ndim)
    return make(op, (x,), axis=d, reverse=bool(reverse))


# ------------------------------------------------------------------------------- sum, product


def _cumsum_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> tuple[Value]:
    return (make(CUMSUM, (cotangent,), axis=node.param("axis"), reverse=not node.param("reverse")),)


CUMSUM: Op = register(
    "cumsum",
    "cumulative",
    infer=_infer("cumsum", "iufc"),
    reference=_directed(lambda x, *, axis: np.cumsum(x, axis, dtype=x.dtype)),
    scalar=SUM.scalar,
    complex_scalar=SUM.complex_scalar,
    jvp=lambda node, tangents: make(CUMSUM, (tangents[0],), **dict(node.params)),
    transpose=_cumsum_transpose,
    batch=_batch,
    doc="Running sum, each rounded to the dtype.",
    samples=_samples,
)


def cumsum(x: Any, axis: int | None = None, reverse: bool = False) -> Value:
    """Running sum (NumPy's ``cumsum``): bool and narrow integers run as int64 or uint64.

    Parameters
    ----------
    x : array-like
    axis : int, optional
        None runs over all elements in C order.
    reverse : bool
        Start at the far end.
    """
    return _build(CUMSUM, countable(x), axis, reverse)


def _cumprod_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    """y_k = y_(k-1) x_k, so dy_k = x_k dy_(k-1) + y_(k-1) dx_k: no division, exact with zeros."""
    t = tangents[0]
    if t is None:
        return None
    drive = scale(t, _before(node, node.out, 1))
    return make(TANGENT_RECURRENCE, (node.inputs[0], drive), **dict(node.params))


CUMPROD = register(
    "cumprod",
    "cumulative",
    infer=_infer("cumprod", "iufc"),
    reference=_directed(lambda x, *, axis: np.cumprod(x, axis, dtype=x.dtype)),
    scalar=MUL.scalar,
    complex_scalar=MUL.complex_scalar,
    jvp=_cumprod_jvp,
    batch=_batch,
    doc="Running product, each rounded to the dtype.",
    samples=_samples,
    why_not={"transpose": "not linear; its tangent is a linear recurrence"},
)


def cumprod(x: Any, axis: int | None = None, reverse: bool = False) -> Value:
    """Running product (NumPy's ``cumprod``); parameters as in :func:`cumsum`."""
    return _build(CUMPROD, countable(x), axis, reverse)


# --------------------------------------------------------------------------- linear recurrence


def _mul(h: Any, carry: Any, a: Any) -> Any:
    return h.mul(a, carry)


def _complex_mul(h: Any, carry: Any, a: Any) -> Any:
    return MUL.complex_scalar(h, a, carry)  # type: ignore[misc]


def _recurrence_value(product: Callable[..., Any]) -> Callable[..., Any]:
    def solve(a: Any, b: Any, *, axis: int) -> Any:
        a, y = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0).copy()
        with np.errstate(all="ignore"):
            for k in range(1, len(y)):
                y[k] = np.where(a[k] == 0, y[k], product(y[k - 1], a[k]) + y[k])
        return np.moveaxis(y, 0, axis)

    return solve


def _recurrence_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    """y_k = a_k y_(k-1) + b_k: dy runs by the same a, driven by db_k + da_k y_(k-1)."""
    a_dot, drive = tangents
    if a_dot is not None:
        # In a derivative y is a tangent itself: then a zero on either side is strong.
        symmetric = node.op is TANGENT_RECURRENCE
        term = scale(a_dot, _before(node, node.out), symmetric=symmetric)
        drive = term if drive is None else drive + term
    if drive is None:
        return None
    return make(TANGENT_RECURRENCE, (node.inputs[0], drive), **dict(node.params))


def _recurrence_transpose(node: Node, cotangent: Value, linear: Sequence[bool]) -> Any:
    """b_bar_k = y_bar_k + a_(k+1) b_bar_(k+1): the recurrence run from the other end."""
    axis, reverse = node.param("axis"), node.param("reverse")
    ahead = shift(node.inputs[0], axis, 1 if reverse else -1, 1)
    return None, make(TANGENT_RECURRENCE, (ahead, cotangent), axis=axis, reverse=not reverse)


def _recurrence_samples(rng: Any, dtype: Any) -> Any:
    a, b = (rng.standard_normal((2, 4, 3)).astype(dtype) for _ in range(2))
    yield (a, b), {"axis": 1, "reverse": False}
    yield (np.where(a < 0, 0, a).astype(dtype), b), {"axis": 2, "reverse": True}


def _recurrence(
    name: str, value: Callable[..., Any], real: Callable[..., Any], parts: Any, doc: str
) -> Op:
    """A recurrence by its product of carry and coefficient: on arrays, real and complex."""

    def step(h: Any, carry: Any, a: Any, b: Any) -> Any:
        cut = h.eq(a, h.const(0.0, h.dtype(a)))
        return h.select(cut, b, h.add(real(h, carry, a), b))

    def complex_step(h: Any, carry: Any, a: Any, b: Any) -> Any:
        zero = h.const(0.0, h.dtype(a[0]))
        cut = h.and_(h.eq(a[0], zero), h.eq(a[1], zero))
        product = parts(h, carry, a)
        return tuple(
            h.select(cut, part, h.add(m, part)) for m, part in zip(product, b, strict=True)
        )

    return register(
        name,
        "cumulative",
        infer=_infer(name, "fc"),
        reference=_directed(_recurrence_value(value)),
        scalar=step,
        complex_scalar=complex_step,
        jvp=_recurrence_jvp,
        transpose=_recurrence_transpose,
        batch=_batch,
        doc=doc,
        samples=_recurrence_samples,
    )


LINEAR_RECURRENCE = _recurrence(
    "linear_recurrence",
    lambda carry, a: a * carry,
    _mul,
    _complex_mul,
    "y_0 = b_0, y_k = a_k * y_(k-1) + b_k (product and sum rounded apart). A coefficient of zero "
    "cuts the run: y_k = b_k, whatever came before, infinities and NaN included.",
)

TANGENT_RECURRENCE = _recurrence(
    "tangent_recurrence",
    partial(scale_value, symmetric=False),
    lambda h, carry, a: scale_program(h, carry, a, symmetric=False),
    lambda h, carry, a: complex_scale_program(h, carry, a, symmetric=False),
    "linear_recurrence of tangents: a y_(k-1) of zero stays zero under an infinite or NaN "
    "coefficient (see scale). Closed under differentiation; the derivative of every other "
    "cumulative op is made of these.",
)


def linear_recurrence(a: Any, b: Any, axis: int = -1, reverse: bool = False) -> Value:
    """Solution of ``y[k] = a[k] * y[k-1] + b[k]``, ``y[0] = b[0]``, along ``axis``.

    Parameters
    ----------
    a, b : array-like
        Coefficients and drive, broadcast together. ``a[0]`` has no effect. Where ``a[k] == 0``
        the result is ``b[k]`` even after an infinity or NaN: a zero starts a new run.
    axis : int
    reverse : bool
        ``y[k] = a[k] * y[k+1] + b[k]`` from the far end.
    """
    a, b = inexact_operands("linear_recurrence", a, b)
    d = axis_index("linear_recurrence", axis, b.ndim)
    return make(LINEAR_RECURRENCE, (a, b), axis=d, reverse=bool(reverse))


# ------------------------------------------------------------------------------------- extrema


def _running_extremum(sign: int) -> Callable[..., Any]:
    """NumPy's running extremum, which leaves the sign of a zero open, with that sign settled."""
    extremum = np.maximum if sign > 0 else np.minimum

    def run(x: Any, *, axis: int) -> Any:
        y = extremum.accumulate(x, axis)
        if x.dtype.kind != "f":
            return y
        preferred = (x == 0) & (np.signbit(x) == (sign < 0))
        preferred = np.logical_or.accumulate(preferred, axis)
        zero = np.copysign(0.0, np.where(preferred, sign, -sign)).astype(x.dtype)
        return np.where(y == 0, zero, y)

    return run


def _extremum_jvp(node: Node, tangents: Sequence[Value | None]) -> Value | None:
    """Mean of the tangents of the elements tied so far, as for the reduction.

    Sum and count of the tied run as recurrences that a new record cuts.
    """
    t = tangents[0]
    if t is None:
        return None
    x, out, largest = node.inputs[0], node.out, node.op is CUMMAX
    record = (gt if largest else lt)(x, _before(node, out))
    beaten = (lt if largest else gt)(x, out)
    one = filled(x.shape, 1, t.dtype)
    go_on = where(record, 0.0, one)

    def running(value: Value) -> Value:
        drive = where(beaten, zeros_of(value.type), value)
        return make(LINEAR_RECURRENCE, (go_on, drive), **dict(node.params))

    return unscale(running(t), where(eq(out, out), running(one), np.nan))


def _cumulative_extremum(name: str, largest: bool, which: str) -> Op:
    return register(
        name,
        "cumulative",
        infer=_infer(name, "biuf"),
        reference=_directed(_running_extremum(1 if largest else -1)),
        scalar=(MAX if largest else MIN).scalar,
        jvp=_extremum_jvp,
        batch=_batch,
        doc=f"Running {which}; from the first NaN on NaN, signs of zeros and shares of ties as in "
        f"the reduction.",
        samples=_samples,
        why_not={
            "transpose": "not linear; its tangent is a quotient of linear recurrences",
            "complex_scalar": "complex numbers have no order",
        },
    )


CUMMAX = _cumulative_extremum("cummax", True, "maximum")
CUMMIN = _cumulative_extremum("cummin", False, "minimum")


def cummax(x: Any, axis: int | None = None, reverse: bool = False) -> Value:
    """Running maximum; parameters as in :func:`cumsum`."""
    return _build(CUMMAX, as_value(x), axis, reverse)


def cummin(x: Any, axis: int | None = None, reverse: bool = False) -> Value:
    """Running minimum; parameters as in :func:`cumsum`."""
    return _build(CUMMIN, as_value(x), axis, reverse)


def logcumsumexp(x: Any, axis: int | None = None, reverse: bool = False) -> Value:
    """log of the running sum of exp(x), without overflow; parameters as in :func:`cumsum`.

    Notes
    -----
    With m_k the running maximum, s_k = s_(k-1) exp(m_(k-1) - m_k) + exp(x_k - m_k) is a linear
    recurrence and the result is m_k + log(s_k); differences of equal infinities are zero. Where no
    term is above -inf yet the result is -inf and its derivative 0; from the first +inf on it is
    +inf, with a derivative that the +inf share.
    """
    (value,) = inexact_operands("logcumsumexp", x, kinds="f")
    if axis is None:
        value, axis = reshape(value, (value.size,)), 0
    d = axis_index("logcumsumexp", axis, value.ndim)
    inf = float("inf")
    largest = stop_gradient(cummax(value, d, reverse))
    nothing = eq(largest, -inf)
    terms = where(nothing, 0.0, exp(gap(value, largest)))
    scale = exp(gap(shift(largest, d, -1 if reverse else 1), largest))
    total = linear_recurrence(scale, terms, d, reverse)
    return where(nothing, -inf, log(where(nothing, 1.0, total)) + largest)
