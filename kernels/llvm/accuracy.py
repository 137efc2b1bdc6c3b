"""Measured errors of the scalar functions, and the table ``docs/accuracy.md``.

``python -m tilegrad.kernels.llvm.accuracy [name ...]`` measures a million points or more a function
and format, as compiled code with vectors, and writes the table (a quarter of an hour; needs mpmath,
and is much faster with gmpy2). With names, only prints their rows.

How a million points are afforded: NumPy's ``longdouble`` functions have 64-bit results on x86-64
Linux, good to about ``2**-10`` last places of float64. They pick the thousands of points with the
largest errors, and mpmath settles these, so the maximum shown is exact for the points tried. A
thousand random points are checked by mpmath as well, against an error of the reference. Functions
that ``longdouble`` lacks go through mpmath point by point. float32 functions of one operand are
checked on all ``2**32`` of them, against their float64 form.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...ir.dtypes import DType, float32, float64, int64
from ...ir.scalar import PROGRAMS
from ...ir.scalar.cases import CASES, Case
from ...ir.scalar.vocabulary import Handler, Program, V
from .evaluate import compile_program

__all__ = ["Measured", "measure", "measure_every_float32", "sample", "table", "ulp_errors"]

Array = np.ndarray[Any, Any]
_BITS = {float64: (53, -1022), float32: (24, -126)}  # precision, smallest exponent


@dataclass(frozen=True, slots=True)
class Measured:
    """Largest error of one function in one format, in units of the last place, and where."""

    case: Case
    dtype: DType
    points: int
    worst: float
    where: tuple[float, ...]


def _sample_one(
    rng: np.random.Generator,
    count: int,
    dtype: DType,
    domain: tuple[float, float],
    near: tuple[float, ...],
) -> Array:
    """A third uniform, a third over all magnitudes, a third around points of interest."""
    low, high = domain
    lowest = -1074 if dtype == float64 else -149
    third = count // 3
    uniform = rng.uniform(low, high, third)
    ceiling = 1024.0 if dtype == float64 else 128.0
    signs = rng.choice([-1.0, 1.0], third)
    wide = signs * np.exp2(rng.uniform(lowest, ceiling - 1e-9, third))
    rest = count - 2 * third
    signs = rng.choice([-1.0, 1.0], rest)
    close = rng.choice(near, rest) + signs * np.exp2(rng.uniform(-60, 0, rest))
    with np.errstate(all="ignore"):
        return np.concatenate([uniform, wide, close]).astype(dtype.numpy)


def sample(case: Case, dtype: DType, count: int, seed: int = 0) -> tuple[Array, ...]:
    """Points for a function, those included where its result is infinite or zero."""
    rng = np.random.default_rng(seed)
    domains = case.domain32 if dtype == float32 and case.domain32 else case.domain
    first = _sample_one(rng, count, dtype, domains[0], case.near)
    if len(domains) == 1:
        return (first,)
    others = [_sample_one(rng, count, dtype, d, (0.0, 1.0, 2.0)) for d in domains[1:]]
    if case.exponent:  # for most points a result in range, down to the bounds
        half, bound = count // 2, case.exponent[dtype == float32]
        with np.errstate(all="ignore"):
            exponent = rng.uniform(-bound, bound, half) / np.log(np.abs(first[:half].astype(float)))
            others[0][:half] = exponent.astype(dtype.numpy)
    order = [rng.permutation(count) if k else np.arange(count) for k in range(len(others))]
    return (first, *[x[i] for x, i in zip(others, order, strict=True)])


def _unit(exact: Array, dtype: DType) -> Array:
    """One last place of the exact result."""
    precision, smallest = _BITS[dtype]
    _, exponent = np.frexp(exact)
    unit: Array = np.ldexp(exact.dtype.type(1), np.maximum(exponent - 1, smallest) - precision + 1)
    return unit


def _rough_errors(case: Case, got: Array, operands: tuple[Array, ...], dtype: DType) -> Array:
    wide: Any = np.longdouble if dtype == float64 else np.float64
    with np.errstate(all="ignore"):
        exact = getattr(np, case.long)(*[x.astype(wide) for x in operands])
        rounded = exact.astype(dtype.numpy)
        error = np.abs(got.astype(wide) - exact) / _unit(exact, dtype)
        edge = ~np.isfinite(rounded) | ~np.isfinite(got)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        # near overflow, where only one of both is infinite, leave the decision to mpmath
        return np.where(edge, np.where(same, 0.0, np.inf), error).astype(np.float64)


def ulp_errors(case: Case, got: Array, operands: tuple[Array, ...], dtype: DType) -> Array:
    """Exact errors by mpmath, in units of the last place of the exact result.

    An infinite result is right where rounding the exact one to nearest overflows, NaN where the
    function has no real value.
    """
    import mpmath  # type: ignore[import-untyped]

    mp = mpmath.mp.clone()
    mp.prec = 140
    precision, smallest = _BITS[dtype]
    top = 128 if dtype == float32 else 1024
    limit = mp.mpf(2) ** top - mp.mpf(2) ** (top - precision - 1)
    errors = np.zeros(got.shape)
    for i, value in enumerate(got.tolist()):
        arguments = [mp.mpf(x) for x in (operand[i].item() for operand in operands)]
        try:
            exact = case.reference(mp, *arguments)
        except (ZeroDivisionError, ValueError):
            continue  # a pole, or NaN: `special` tests these
        if isinstance(exact, mp.mpc) or mp.isnan(exact):
            errors[i] = 0.0 if value != value else np.inf
        elif abs(exact) >= limit:
            errors[i] = 0.0 if value == (np.inf if exact > 0 else -np.inf) else np.inf
        elif not np.isfinite(value):
            errors[i] = np.inf
        elif exact == 0:
            errors[i] = 0.0 if value == 0 else np.inf
        else:
            exponent = max(mp.frexp(exact)[1] - 1, smallest) - precision + 1
            errors[i] = float(abs(mp.mpf(value) - exact) * mp.mpf(2) ** -exponent)
    return errors


def measure(
    case: Case,
    dtype: DType,
    count: int,
    *,
    settle: int = 2000,
    evaluate: Callable[..., Array] | None = None,
) -> Measured:
    """Largest error over ``count`` points; ``settle`` of them are computed with mpmath."""
    operands = sample(case, dtype, count)
    usable = np.all([np.isfinite(x) for x in operands], axis=0)
    operands = tuple(np.ascontiguousarray(x[usable]) for x in operands)
    if evaluate is None:
        evaluate = compile_program(PROGRAMS[case.name], (dtype,) * len(operands))
    got = evaluate(*operands)
    chosen = np.arange(got.size)
    if case.long and got.size > settle:
        rough = _rough_errors(case, got, operands, dtype)
        worst = np.argpartition(rough, got.size - settle)[-settle:]
        chosen = np.concatenate([worst, chosen[:: max(1, got.size // (settle // 2))]])
    errors = ulp_errors(case, got[chosen], tuple(x[chosen] for x in operands), dtype)
    i = int(np.argmax(errors))
    where = tuple(float(x[chosen[i]]) for x in operands)
    return Measured(case, dtype, got.size, float(errors[i]), where)


def _error32(program: Program[Any]) -> Program[Any]:
    """The error of a program's float32 form, with its float64 form as reference."""

    def error(h: Handler[V], x: V) -> V:
        exact = program(h, h.convert(x, float64))
        got, rounded = h.convert(program(h, x), float64), h.convert(exact, float32)
        bits = h.and_(h.bitcast(exact, int64), h.const(0x7FF << 52, int64))
        power, least = h.bitcast(bits, float64), h.const(2.0**-126, float64)
        unit = h.mul(h.select(h.lt(power, least), least, power), h.const(2.0**-23, float64))
        difference = h.div(h.abs(h.sub(got, exact)), unit)
        zero, infinity = h.const(0.0, float64), h.const(np.inf, float64)
        # an infinity or NaN is right or wrong; NaN on one side makes the difference NaN
        wide = h.convert(rounded, float64)
        same = h.or_(h.eq(got, wide), h.and_(h.ne(got, got), h.ne(wide, wide)))
        finite = h.and_(h.lt(h.abs(wide), infinity), h.lt(h.abs(got), infinity))
        return h.select(finite, difference, h.select(same, zero, infinity))

    return error


def measure_every_float32(case: Case) -> Measured:
    """Largest error of a function of one float32 over all ``2**32`` operands (half a minute).

    The reference is the function's own float64 form, whose error of one last place is ``2**-29``
    of one here.
    """
    evaluate = compile_program(_error32(PROGRAMS[case.name]), (float32,))
    block = np.arange(1 << 20, dtype=np.uint32)
    errors = np.empty(block.size)
    worst, where = -1.0, 0.0
    for start in range(0, 1 << 32, block.size):
        operands = (block + np.uint32(start)).view(np.float32)
        evaluate(operands, out=errors)
        i = int(np.argmax(errors))
        if errors[i] > worst:
            worst, where = float(errors[i]), float(operands[i])
    return Measured(case, float32, 1 << 32, worst, (where,))


def _convention(case: Case) -> str:
    """The special values as text, those of both infinities and of poles first."""
    items = []
    for operands, result in case.special:
        if any(x != x for x in operands) and result != result:
            continue  # NaN in, NaN out: said once for all
        arguments = ", ".join(f"{x:.15g}" for x in operands)
        items.append(f"({arguments}) = {result:.15g}")
    return "; ".join(items)


_HEAD = """# Accuracy of the elementwise functions

Generated by `python -m tilegrad.kernels.llvm.accuracy`; do not edit. Largest error found, in units
of the last place (ulp) of the exact result, rounding included (0.5 is the least possible). The
points are uniform over the interesting range, spread over all magnitudes, and dense around zeros,
poles, bounds of overflow and seams; 4,294,967,296 points are every float32 there is. Scalar code,
vector code and constant folding give the same bits, so there is one row for all. Subnormal operands
and results count like any other.

| function | dtype | points | max error (ulp) | at | allowed |
|---|---|---|---|---|---|
"""

_MIDDLE = """
## Special values

C99's, in both formats. NaN gives NaN, except where the table says otherwise.

| function | values |
|---|---|
"""


def _row(m: Measured) -> str:
    allowed = m.case.ulp[m.dtype == float32]
    at = ", ".join(repr(x) for x in m.where)
    return f"| `{m.case.name}` | {m.dtype} | {m.points:,} | {m.worst:.3f} | {at} | {allowed:g} |\n"


def table(rows: list[Measured]) -> str:
    """The page ``docs/accuracy.md``."""
    cases = {m.case.name: m.case for m in rows}
    special = [f"| `{name}` | {_convention(case)} |\n" for name, case in cases.items()]
    return _HEAD + "".join(_row(m) for m in rows) + _MIDDLE + "".join(special)


def main(names: list[str]) -> None:
    rows = []
    for case in CASES:
        for dtype in (float64, float32):
            if names and case.name not in names:
                continue
            if dtype == float32 and len(case.domain) == 1 and not names:
                rows.append(measure_every_float32(case))
            else:
                rows.append(measure(case, dtype, 1_500_000))
            print(_row(rows[-1]), end="", flush=True)
    if not names:
        target = Path(__file__).parents[2] / "docs" / "accuracy.md"
        target.parent.mkdir(exist_ok=True)
        target.write_text(table(rows))


if __name__ == "__main__":
    main(sys.argv[1:])
