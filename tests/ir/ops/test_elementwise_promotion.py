"""Result dtypes and values against NumPy, for every pair of dtypes and for Python scalars."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from rule_checks import evaluate, node_like

from tilegrad.ir import ops
from tilegrad.ir.dtypes import ALL
from tilegrad.ir.errors import DTypeError

NAMES = [d.name for d in ALL]

BINARY = {
    "add": (ops.add, np.add),
    "subtract": (ops.sub, np.subtract),
    "multiply": (ops.mul, np.multiply),
    "divide": (ops.div, np.divide),
    "floor_divide": (ops.floor_divide, np.floor_divide),
    "remainder": (ops.remainder, np.remainder),
    "fmod": (ops.fmod, np.fmod),
    "power": (ops.power, np.power),
    "maximum": (ops.maximum, np.maximum),
    "minimum": (ops.minimum, np.minimum),
    "bitwise_and": (ops.and_, np.bitwise_and),
    "bitwise_or": (ops.or_, np.bitwise_or),
    "bitwise_xor": (ops.xor, np.bitwise_xor),
    "left_shift": (ops.shift_left, np.left_shift),
    "right_shift": (ops.shift_right, np.right_shift),
    "logical_and": (ops.logical_and, np.logical_and),
    "logical_or": (ops.logical_or, np.logical_or),
    "logical_xor": (ops.logical_xor, np.logical_xor),
    "equal": (ops.eq, np.equal),
    "not_equal": (ops.ne, np.not_equal),
    "less": (ops.lt, np.less),
    "less_equal": (ops.le, np.less_equal),
    "greater": (ops.gt, np.greater),
    "greater_equal": (ops.ge, np.greater_equal),
    "arctan2": (ops.atan2, np.arctan2),
    "hypot": (ops.hypot, np.hypot),
    "copysign": (ops.copysign, np.copysign),
    "nextafter": (ops.nextafter, np.nextafter),
    "logaddexp": (ops.logaddexp, np.logaddexp),
    "logaddexp2": (ops.logaddexp2, np.logaddexp2),
}
UNARY = {
    "negative": (ops.neg, np.negative),
    "absolute": (ops.abs_, np.absolute),
    "sign": (ops.sign, np.sign),
    "invert": (ops.not_, np.invert),
    "logical_not": (ops.logical_not, np.logical_not),
    "floor": (ops.floor, np.floor),
    "ceil": (ops.ceil, np.ceil),
    "trunc": (ops.trunc, np.trunc),
    "rint": (ops.rint, np.rint),
    "isnan": (ops.isnan, np.isnan),
    "isinf": (ops.isinf, np.isinf),
    "isfinite": (ops.isfinite, np.isfinite),
    "signbit": (ops.signbit, np.signbit),
    "real": (ops.real, np.real),
    "imag": (ops.imag, np.imag),
    "square": (ops.square, np.square),
    "sqrt": (ops.sqrt, np.sqrt),
    "cbrt": (ops.cbrt, np.cbrt),
    "exp": (ops.exp, np.exp),
    "exp2": (ops.exp2, np.exp2),
    "expm1": (ops.expm1, np.expm1),
    "log": (ops.log, np.log),
    "log1p": (ops.log1p, np.log1p),
    "log2": (ops.log2, np.log2),
    "log10": (ops.log10, np.log10),
    "sin": (ops.sin, np.sin),
    "cos": (ops.cos, np.cos),
    "tan": (ops.tan, np.tan),
    "arcsin": (ops.asin, np.arcsin),
    "arccos": (ops.acos, np.arccos),
    "arctan": (ops.atan, np.arctan),
    "sinh": (ops.sinh, np.sinh),
    "cosh": (ops.cosh, np.cosh),
    "tanh": (ops.tanh, np.tanh),
    "arcsinh": (ops.asinh, np.arcsinh),
    "arccosh": (ops.acosh, np.arccosh),
    "arctanh": (ops.atanh, np.arctanh),
    "sinc": (ops.sinc, np.sinc),
}

# On purpose other than NumPy.
NO_FLOAT16 = {"int8", "uint8", "bool", "int16", "uint16"}  # there: float16 or float32; here float64
NO_COMPLEX = {  # NumPy orders complex numbers, or has the function; here it is an error
    *("less", "less_equal", "greater", "greater_equal", "maximum", "minimum"),
    *("exp2", "expm1", "log1p", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"),
    *("sinc", "nextafter"),
}


def operand(dtype, values):
    return np.array([abs(v) for v in values] if dtype.startswith(("u", "b")) else values).astype(
        dtype
    )


def expected_of(function, *arrays):
    """NumPy's result, with half and single precision made of integers widened to double."""
    with np.errstate(all="ignore"):
        return np.asarray(function(*arrays))


def compare(name, ours, theirs, arrays):
    kinds = {a.dtype.kind for a in arrays}
    if "c" in kinds and name in NO_COMPLEX:
        with pytest.raises(DTypeError, match="convert with astype"):
            ours(*[node_like(a).out for a in arrays])
        return
    try:
        expected = expected_of(theirs, *arrays)
    except TypeError:  # NumPy has no such loop, and we have none
        with pytest.raises(DTypeError, match="convert with astype"):
            ours(*[node_like(a).out for a in arrays])
        return
    narrow = expected.dtype.kind == "f" and not kinds & {"f", "c"}
    if narrow and expected.dtype != np.float64:
        # int8 / uint8 gives float16 there where a function has such a loop: here all are float64
        expected = expected_of(theirs, *[a.astype(np.float64) for a in arrays])
    got = evaluate(ours, *arrays)
    assert got.dtype == expected.dtype, (name, [a.dtype for a in arrays])
    rtol = 4e-6 if expected.dtype in (np.float32, np.complex64) else 1e-14
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=0, err_msg=name)


@pytest.mark.parametrize("name", BINARY)
def test_pairs_of_dtypes(name):
    for a in NAMES:
        for b in NAMES:
            compare(name, *BINARY[name], [operand(a, [3, -2, 1, 5]), operand(b, [2, 1, 3, 2])])


@pytest.mark.parametrize("name", UNARY)
def test_single_dtypes(name):
    for a in NAMES:
        compare(name, *UNARY[name], [operand(a, [1, 0, 1, -1, 2])])


SCALARS = [True, 3, 2.5, 1.5 + 0.5j]
OPERATORS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.pow, operator.lt, operator.ge, operator.and_, operator.or_),
    *(operator.xor, operator.lshift, operator.rshift),
]


@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
@pytest.mark.parametrize("f", OPERATORS, ids=lambda f: f.__name__)
def test_python_scalars_are_weak(f, scalar):
    """``array op scalar`` and ``scalar op array`` have the dtype that NumPy gives them."""
    for dtype in NAMES:
        x = operand(dtype, [3, 2, 1, 5])
        for ours, theirs in (
            (lambda v: f(v, scalar), lambda v: f(v, scalar)),
            (lambda v: f(scalar, v), lambda v: f(scalar, v)),
        ):
            if isinstance(scalar, complex) and f in (operator.lt, operator.ge):
                with pytest.raises(DTypeError, match="convert with astype"):
                    ours(node_like(x).out)
                continue
            compare("less" if f in (operator.lt, operator.ge) else f.__name__, ours, theirs, [x])


def test_python_integers_must_fit():
    for dtype, scalar in (("int8", 200), ("uint8", -1), ("uint64", -1)):
        x = operand(dtype, [3, 2])
        for f in (operator.add, operator.mul, operator.floordiv):
            with pytest.raises(OverflowError):
                f(x, scalar)
            with pytest.raises(OverflowError, match="out of bounds for"):
                f(node_like(x).out, scalar)
    x = np.array([1, 2], "uint64")
    np.testing.assert_array_equal(evaluate(lambda v: v + (2**64 - 3), x), x + (2**64 - 3))


def test_comparisons_compare_values_not_conversions():
    """As in NumPy 2: Python integers out of range, and int64 with uint64 beyond 2**53."""
    signed = np.array([-1, 0, 2**62 + 1, -(2**63)], "int64")
    unsigned = np.array([2**64 - 1, 0, 2**62, 2**63], "uint64")
    small = np.array([0, 200, 255], "uint8")
    for ours, theirs in (BINARY[n] for n in list(BINARY)[-12:-6]):
        for a, b in ((signed, unsigned), (unsigned, signed)):
            np.testing.assert_array_equal(evaluate(ours, a, b), theirs(a, b))
        for scalar in (-1, 300, 200, 2**40, -(2**40)):
            got = evaluate(lambda v, s=scalar, f=ours: f(v, s), small)
            np.testing.assert_array_equal(got, theirs(small, scalar))
            got = evaluate(lambda v, s=scalar, f=ours: f(s, v), small)
            np.testing.assert_array_equal(got, theirs(scalar, small))
            got = evaluate(lambda v, s=scalar, f=ours: f(v, s), unsigned)
            np.testing.assert_array_equal(got, theirs(unsigned, scalar))


def test_where_promotes_and_broadcasts():
    mask = np.array([[True], [False]])
    for a in NAMES:
        for b in NAMES:
            x, y = operand(a, [3, 2, 1]), operand(b, [1, 0, 2])
            expected = np.where(mask, x, y)
            got = evaluate(ops.where, mask, x, y)
            np.testing.assert_array_equal(got, expected, strict=True)
    np.testing.assert_array_equal(
        evaluate(ops.where, np.array([0.0, 2.0, np.nan]), np.ones(3), np.zeros(3)), [0, 1, 1]
    )
    got = evaluate(lambda x: ops.where(x > 1, x, 0), np.array([1, 2], "float32"))
    assert got.dtype == np.float32
