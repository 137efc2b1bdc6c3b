"""How each scalar function is tested: what it should be, where, how closely, and at special values.

One :class:`Case` a function; the tests and the table ``docs/accuracy.md``
(``python -m tilegrad.kernels.llvm.accuracy``) go through :data:`CASES` and never ask for a name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["CASES", "Case"]

inf, nan = math.inf, math.nan


@dataclass(frozen=True, slots=True)
class Case:
    """One function of :data:`tilegrad.ir.scalar.PROGRAMS`.

    Attributes
    ----------
    name : str
        Its name there.
    reference : callable
        ``reference(mp, *operands)`` with mpmath numbers, to any precision.
    domain : tuple of (float, float)
        Per operand, where it is finite and worth testing uniformly, in float64.
    domain32 : tuple of (float, float)
        The same in float32; empty if it is the same.
    near : tuple of float
        Points around which the first operand is sampled down to the last place: poles, zeros,
        bounds of overflow, seams between branches.
    special : tuple of (operands, result)
        Exact results, the sign of zero included; true in both formats.
    ulp : (float, float)
        Largest error allowed in float64 and float32, in units of the last place.
    long : str
        The NumPy function that is good to 64 bits for ``longdouble`` on x86-64 Linux, if any.
    exponent : tuple of float
        For powers: half of the points ``(x, y)`` have ``|y log x|`` up to this, in float64 and
        float32.
    """

    name: str
    reference: Callable[..., Any]
    domain: tuple[tuple[float, float], ...]
    special: tuple[tuple[tuple[float, ...], float], ...]
    domain32: tuple[tuple[float, float], ...] = ()
    near: tuple[float, ...] = (0.0,)
    ulp: tuple[float, float] = (1.0, 1.0)
    long: str = ""
    exponent: tuple[float, ...] = ()


def _unary(*pairs: tuple[float, float]) -> tuple[tuple[tuple[float, ...], float], ...]:
    return tuple(((x,), y) for x, y in pairs)


CASES: list[Case] = [
    Case(
        "exp",
        lambda mp, x: mp.exp(x),
        ((-746.0, 710.0),),
        _unary((0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, 0.0), (nan, nan)),
        domain32=((-105.0, 89.0),),
        near=(0.0, 708.0, -708.0, 709.78, -745.13, 87.0, -87.0, 88.72, -103.97),
        long="exp",
    ),
    Case(
        "exp2",
        lambda mp, x: mp.mpf(2) ** x,
        ((-1076.0, 1024.5),),
        _unary(
            *((0.0, 1.0), (1.0, 2.0), (-3.0, 0.125), (100.0, 2.0**100), (-126.0, 2.0**-126)),
            *((inf, inf), (-inf, 0.0), (nan, nan)),
        ),
        domain32=((-151.0, 128.5),),
        near=(0.0, 1024.0, -1022.0, -1075.0, 128.0, -126.0, -150.0),
        long="exp2",
    ),
    Case(
        "expm1",
        lambda mp, x: mp.expm1(x),
        ((-60.0, 710.0),),
        _unary((0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -1.0), (nan, nan)),
        domain32=((-30.0, 89.0),),
        near=(0.0, 0.3466, -0.3466, 37.0, 16.9, 709.78, 88.72, -40.0, -20.0),
        long="expm1",
    ),
    Case(
        "log",
        lambda mp, x: mp.log(x),
        ((0.0, 3.0),),
        _unary(
            *((1.0, 0.0), (0.0, -inf), (-0.0, -inf), (inf, inf), (-1.0, nan), (-inf, nan)),
            (nan, nan),
        ),
        near=(0.0, 1.0, 0.70710678, 1.41421356),
        long="log",
    ),
    Case(
        "log1p",
        lambda mp, x: mp.log1p(x),
        ((-1.0, 3.0),),
        _unary(
            *((0.0, 0.0), (-0.0, -0.0), (-1.0, -inf), (inf, inf), (-1.5, nan), (-inf, nan)),
            (nan, nan),
        ),
        near=(0.0, -1.0, -0.29289322, 0.41421356),
        long="log1p",
    ),
    Case(
        "log2",
        lambda mp, x: mp.log(x) / mp.log(2),
        ((0.0, 3.0),),
        _unary(
            *((1.0, 0.0), (8.0, 3.0), (2.0**-126, -126.0), (0.0, -inf), (-0.0, -inf)),
            *((inf, inf), (-1.0, nan), (nan, nan)),
        ),
        near=(0.0, 1.0, 0.70710678, 1.41421356),
        long="log2",
    ),
    Case(
        "log10",
        lambda mp, x: mp.log10(x),
        ((0.0, 3.0),),
        _unary(
            *((1.0, 0.0), (10.0, 1.0), (1000.0, 3.0), (1e10, 10.0), (0.0, -inf), (-0.0, -inf)),
            *((inf, inf), (-1.0, nan), (nan, nan)),
        ),
        near=(0.0, 1.0, 0.70710678, 1.41421356),
        long="log10",
    ),
    Case(
        "pow",
        lambda mp, x, y: mp.power(x, y),
        ((0.95, 1.05), (-700.0, 700.0)),  # where the logarithm is hardest
        (
            *(((nan, 0.0), 1.0), ((nan, -0.0), 1.0), ((1.0, nan), 1.0), ((1.0, inf), 1.0)),
            *(((0.0, 0.0), 1.0), ((inf, 0.0), 1.0), ((-1.0, inf), 1.0), ((-1.0, -inf), 1.0)),
            *(((0.0, -3.0), inf), ((-0.0, -3.0), -inf), ((-0.0, -2.0), inf), ((0.0, -0.5), inf)),
            *(((0.0, 3.0), 0.0), ((-0.0, 3.0), -0.0), ((-0.0, 2.5), 0.0), ((-2.0, 3.0), -8.0)),
            *(((-2.0, 0.5), nan), ((-2.0, 4.0), 16.0), ((4.0, 0.5), 2.0)),
            *(((0.5, inf), 0.0), ((0.5, -inf), inf), ((2.0, inf), inf), ((-2.0, -inf), 0.0)),
            *(((inf, -1.0), 0.0), ((inf, 0.5), inf), ((-inf, -3.0), -0.0), ((-inf, -2.0), 0.0)),
            *(((-inf, 3.0), -inf), ((-inf, 2.5), inf), ((nan, 1.0), nan), ((2.0, nan), nan)),
        ),
        domain32=((0.95, 1.05), (-80.0, 80.0)),
        near=(0.0, 1.0, 0.984375, 1.03125),
        ulp=(2.0, 1.0),
        long="power",
        exponent=(745.0, 104.0),
    ),
    Case(
        "sinh",
        lambda mp, x: mp.sinh(x),
        ((-711.0, 711.0),),
        _unary((0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf), (nan, nan)),
        domain32=((-90.0, 90.0),),
        near=(0.0, 0.3466, 18.4, 8.0, 710.4758, -89.4159),
        long="sinh",
    ),
    Case(
        "cosh",
        lambda mp, x: mp.cosh(x),
        ((-711.0, 711.0),),
        _unary((0.0, 1.0), (-0.0, 1.0), (inf, inf), (-inf, inf), (nan, nan)),
        domain32=((-90.0, 90.0),),
        near=(0.0, 0.3466, 18.4, 8.0, 710.4758, -89.4159),
        long="cosh",
    ),
    Case(
        "tanh",
        lambda mp, x: mp.tanh(x),
        ((-23.0, 23.0),),
        _unary((0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (nan, nan)),
        domain32=((-11.0, 11.0),),
        near=(0.0, 0.1733, 22.0, 10.0),
        long="tanh",
    ),
    Case(
        "asinh",
        lambda mp, x: mp.asinh(x),
        ((-5.0, 5.0),),
        _unary((0.0, 0.0), (-0.0, -0.0), (inf, inf), (-inf, -inf), (nan, nan)),
        near=(0.0, 0.3535),
        ulp=(2.0, 1.0),
        long="arcsinh",
    ),
    Case(
        "acosh",
        lambda mp, x: mp.acosh(x),
        ((1.0, 5.0),),
        _unary((1.0, 0.0), (0.5, nan), (-2.0, nan), (-inf, nan), (inf, inf), (nan, nan)),
        near=(1.0,),
        ulp=(2.0, 1.0),
        long="arccosh",
    ),
    Case(
        "atanh",
        lambda mp, x: mp.atanh(x),
        ((-1.0, 1.0),),
        _unary(
            *((0.0, 0.0), (-0.0, -0.0), (1.0, inf), (-1.0, -inf), (1.5, nan), (-inf, nan)),
            (nan, nan),
        ),
        near=(0.0, 1.0, -1.0, 0.1715),
        ulp=(2.0, 1.0),
        long="arctanh",
    ),
    Case(
        "sin",
        lambda mp, x: mp.sin(x),
        ((-20.0, 20.0),),
        _unary((0.0, 0.0), (-0.0, -0.0), (inf, nan), (-inf, nan), (nan, nan)),
        near=(0.0, 0.7853981633974483, 1.5707963267948966, 3.141592653589793, 6400.0, 1.6e6, 1e22),
        long="sin",
    ),
    Case(
        "cos",
        lambda mp, x: mp.cos(x),
        ((-20.0, 20.0),),
        _unary((0.0, 1.0), (-0.0, 1.0), (inf, nan), (-inf, nan), (nan, nan)),
        near=(0.0, 0.7853981633974483, 1.5707963267948966, 3.141592653589793, 6400.0, 1.6e6, 1e22),
        long="cos",
    ),
    Case(
        "tan",
        lambda mp, x: mp.tan(x),
        ((-20.0, 20.0),),
        _unary((0.0, 0.0), (-0.0, -0.0), (inf, nan), (-inf, nan), (nan, nan)),
        near=(0.0, 0.7853981633974483, 1.5707963267948966, 3.141592653589793, 6400.0, 1.6e6, 1e22),
        long="tan",
    ),
    Case(
        "asin",
        lambda mp, x: mp.asin(x),
        ((-1.0, 1.0),),
        _unary((0.0, 0.0), (-0.0, -0.0), (1.5, nan), (-inf, nan), (inf, nan), (nan, nan)),
        near=(0.0, 0.5, -0.5, 1.0, -1.0),
        long="arcsin",
    ),
    Case(
        "acos",
        lambda mp, x: mp.acos(x),
        ((-1.0, 1.0),),
        _unary((1.0, 0.0), (1.5, nan), (-inf, nan), (inf, nan), (nan, nan)),
        near=(0.0, 0.5, -0.5, 1.0, -1.0),
        long="arccos",
    ),
    Case(
        "atan",
        lambda mp, x: mp.atan(x),
        ((-5.0, 5.0),),
        _unary((0.0, 0.0), (-0.0, -0.0), (nan, nan)),
        near=(0.0, 0.25, 0.75, 1.0, 1.3333333333333333, 4.0),
        long="arctan",
    ),
    Case(
        "atan2",
        lambda mp, y, x: mp.atan2(y, x),
        ((-3.0, 3.0), (-3.0, 3.0)),
        (
            *(((0.0, 1.0), 0.0), ((-0.0, 1.0), -0.0), ((0.0, 0.0), 0.0), ((-0.0, 0.0), -0.0)),
            *(((1.0, inf), 0.0), ((-1.0, inf), -0.0), ((0.0, inf), 0.0), ((-0.0, inf), -0.0)),
            *(((nan, 1.0), nan), ((1.0, nan), nan), ((inf, nan), nan), ((nan, -inf), nan)),
        ),
        near=(0.0, 0.25, 0.75, 1.0, 4.0),
        long="arctan2",
    ),
    Case(
        "erf",
        lambda mp, x: mp.erf(x),
        ((-6.5, 6.5),),
        _unary((0.0, 0.0), (-0.0, -0.0), (inf, 1.0), (-inf, -1.0), (nan, nan)),
        domain32=((-4.5, 4.5),),
        near=(0.0, 0.1953125, 0.5859375, 0.1328125, 5.9, 3.9),
        # 0.57 in float32, but for results around the smallest normal number
        ulp=(1.0, 1.05),
    ),
    Case(
        "erfc",
        lambda mp, x: mp.erfc(x) if x < 1000 else mp.zero,  # mpmath takes long to come to nothing
        ((-6.5, 27.3),),
        _unary((0.0, 1.0), (-0.0, 1.0), (inf, 0.0), (-inf, 2.0), (nan, nan)),
        domain32=((-4.5, 10.1),),
        near=(0.0, 0.5, 26.54, 27.22, 9.19, 10.05),
    ),
    Case(
        "cbrt",
        lambda mp, x: mp.sign(x) * mp.cbrt(abs(x)),
        ((-9.0, 9.0),),
        _unary(
            *((0.0, 0.0), (-0.0, -0.0), (8.0, 2.0), (-27.0, -3.0), (2.0**-126, 2.0**-42)),
            *((inf, inf), (-inf, -inf), (nan, nan)),
        ),
        near=(0.0, 1.0, 2.0, 8.0),
        long="cbrt",
    ),
    Case(
        "hypot",
        lambda mp, x, y: mp.hypot(x, y),
        ((-3.0, 3.0), (-3.0, 3.0)),
        (
            *(((3.0, -4.0), 5.0), ((0.0, -0.0), 0.0), ((-0.0, -0.0), 0.0), ((-2.0, 0.0), 2.0)),
            *(((inf, nan), inf), ((nan, -inf), inf), ((-inf, 1.0), inf), ((nan, 1.0), nan)),
        ),
        near=(0.0, 1.0),
        long="hypot",
    ),
]
