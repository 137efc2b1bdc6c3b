"""The op table and the builders: every primitive of tilegrad, one record each."""

from __future__ import annotations

from . import (
    arithmetic,
    checkpoint,
    custom,
    host,
    leaves,
    linear_algebra,
    operands,
    operators,
    regions,
    shape,
)
from .arithmetic import add, div, gap, mul, neg, sub
from .comparison import eq, ge, gt, isfinite, isinf, isnan, le, lt, ne
from .complexes import complex_, conj, imag, real
from .cumulative import cummax, cummin, cumprod, cumsum, linear_recurrence, logcumsumexp
from .dot import dot, matmul, outer, tensordot, vecdot
from .dynamic import dynamic_slice, dynamic_update_slice
from .exponential import exp, exp2, expm1
from .exponents import frexp, ldexp
from .extrema import argmax, argmin, max_, min_
from .gamma import lgamma, polygamma
from .gather import gather, take_along_axis
from .hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from .integers import floor_divide, fmod, remainder
from .leaves import alias, constant, iota
from .logarithm import log, log1p, log2, log10
from .logic import (
    and_,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_,
    or_,
    shift_left,
    shift_right,
    xor,
)
from .operands import as_value, convert
from .powers import cbrt, hypot, integer_power, power, reciprocal, rsqrt, sqrt, square
from .reductions import all_, any_, prod, sum_
from .registry import OPS
from .rounding import abs_, ceil, copysign, floor, nextafter, rint, sign, signbit, trunc
from .scaling import scale, unscale
from .scatter import scatter
from .selection import clip, maximum, minimum, stop_gradient, where
from .slicing import concat, flip, pad, slice_, slice_axis
from .sorting import argsort, searchsorted, sort, top_k
from .special import erf, erfc, logaddexp, logaddexp2, logistic, sinc, sine_ratio
from .trigonometric import acos, asin, atan, atan2, cos, sin, tan

__all__ = [
    "OPS",
    "arithmetic",
    "checkpoint",
    "custom",
    "gap",
    "host",
    "leaves",
    "linear_algebra",
    "operands",
    "operators",
    "regions",
    "shape",
    "abs_",
    "acos",
    "acosh",
    "add",
    "alias",
    "all_",
    "and_",
    "any_",
    "argmax",
    "argmin",
    "argsort",
    "as_value",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "clip",
    "complex_",
    "concat",
    "conj",
    "constant",
    "convert",
    "copysign",
    "cos",
    "cosh",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "div",
    "dot",
    "dynamic_slice",
    "dynamic_update_slice",
    "eq",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "flip",
    "floor",
    "floor_divide",
    "fmod",
    "frexp",
    "gather",
    "ge",
    "gt",
    "hypot",
    "imag",
    "integer_power",
    "iota",
    "isfinite",
    "isinf",
    "isnan",
    "ldexp",
    "le",
    "lgamma",
    "linear_recurrence",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logcumsumexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logistic",
    "lt",
    "matmul",
    "max_",
    "maximum",
    "min_",
    "minimum",
    "mul",
    "ne",
    "neg",
    "nextafter",
    "not_",
    "or_",
    "outer",
    "pad",
    "polygamma",
    "power",
    "prod",
    "real",
    "reciprocal",
    "remainder",
    "rint",
    "rsqrt",
    "scale",
    "scatter",
    "searchsorted",
    "shift_left",
    "shift_right",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sine_ratio",
    "sinh",
    "slice_",
    "slice_axis",
    "sort",
    "sqrt",
    "square",
    "stop_gradient",
    "sub",
    "sum_",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "top_k",
    "trunc",
    "unscale",
    "vecdot",
    "where",
    "xor",
]
