"""The table of elementwise ops: every record, every dtype, every rule."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from rule_checks import (
    apply,
    check_batch,
    check_rules,
    cotangents,
    direction,
    evaluate,
    moving,
)

from tilegrad.ir.dtypes import ALL, as_dtype, float64
from tilegrad.ir.errors import DTypeError, ShapeError
from tilegrad.ir.graph import make
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.leaves import input_node
from tilegrad.ir.scalar.handlers.numpy import NumpyHandler
from tilegrad.ir.types import TensorType

# Conversions between dtypes have a test file of their own; an alias has nothing to test here.
ELEMENTWISE = [
    op
    for name, op in sorted(OPS.items())
    if op.kind == "elementwise" and name not in ("alias", "convert", "hold")
]
FIELDS = ("reference", "scalar", "complex_scalar", "jvp", "transpose", "doc", "samples")
# Units in the last place between our programs and NumPy's own functions, of which each may be off
# by its own bound; the accuracy of the programs is tested against mpmath in tests/ir/scalar.
ULP = {"sine_ratio": 200, "pow": 8, "integer_power": 8, "polygamma": 8}
# Relative error is no measure next to their zeros, which are at no floats.
ZEROS = {"sine_ratio", "lgamma", "polygamma"}
COMPLEX_ULP = 8
EXACT = {
    *("abs", "add", "and", "ceil", "complex", "conj", "copysign", "div", "eq", "floor", "fmod"),
    *("floor_divide", "ge", "gt", "imag", "le", "lt", "maximum", "minimum", "mul", "ne", "neg"),
    *(
        "frexp_exponent",
        "frexp_mantissa",
        "ldexp",
        "nextafter",
        "not",
        "or",
        "real",
        "remainder",
        "rint",
        "rsqrt",
        "scale",
        "shift_left",
    ),
    *("shift_right", "sign", "signbit", "sqrt", "stop_gradient", "sub", "trunc", "unscale"),
    *("where", "xor"),
}


def cases(op, dtype, rng):
    """Pairs of operands and params that lie in the domain of the op."""
    found = op.samples(rng, as_dtype(dtype).numpy)
    return [(found, {})] if isinstance(found, tuple) else list(found)


def types_of(arrays):
    return [TensorType(np.shape(a), as_dtype(np.asarray(a).dtype)) for a in arrays]


def accepts(op, dtype):
    arrays, params = cases(op, dtype, np.random.default_rng(0))[0]
    try:
        op.infer(*types_of(arrays), **params)
    except DTypeError:
        return False
    return True


def run(program, arrays, params):
    """A scalar program on NumPy arrays; complex ones as pairs of their parts."""
    pairs = [(a.real.copy(), a.imag.copy()) if a.dtype.kind == "c" else a for a in arrays]
    with np.errstate(all="ignore"):
        out = program(NumpyHandler(), *pairs, **params)
    if not isinstance(out, tuple):
        return np.broadcast_to(out, arrays[0].shape)
    whole = np.empty(arrays[0].shape, np.result_type(out[0], np.complex64))
    whole.real, whole.imag = out
    return whole


def assert_ulps(got, expected, bound):
    """Equal bits, or finite, of one sign and within ``bound`` units in the last place."""
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if expected.dtype.kind == "c":
        scale = np.spacing(np.abs(expected)) * bound
        assert np.all(np.abs(got - expected) <= scale), (got, expected)
    elif expected.dtype.kind == "f":
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        number = ~np.isnan(expected)
        g, e = got[number], expected[number]
        with np.errstate(all="ignore"):
            near = np.isfinite(e) & (np.abs(g - e) <= bound * np.spacing(np.abs(e)))
        near = (near | (g == e)) & (np.signbit(g) == np.signbit(e))
        assert near.all(), list(zip(g[~near], e[~near], strict=True))[:5]
    else:
        np.testing.assert_array_equal(got, expected)


def specials(dtype):
    """The values where formulas break."""
    dtype = as_dtype(dtype).numpy
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind == "f":
        f = np.finfo(dtype)
        edges = [0, 1, 0.5, 1.5, 2, 2.5, 3, 88.5, 100, 710, 1e10, 1e-10, np.pi, np.inf]
        edges += [f.tiny, f.smallest_subnormal, f.max]
        return np.array([*edges, *(-v for v in edges), np.nan], dtype)
    info = np.iinfo(dtype)
    edges = [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 100, info.max, info.max - 1]
    if info.min:
        edges += [-1, -2, -3, -7, -64, -100, info.min, info.min + 1]
    return np.unique(np.array(edges, dtype=object).astype(dtype))


def defined(*dtypes, unless=(), ops=ELEMENTWISE):
    """Parametrize over the pairs of op and dtype that exist."""
    return pytest.mark.parametrize(
        ("op", "dtype"),
        [
            pytest.param(op, as_dtype(dtype), id=f"{op.name}-{dtype}")
            for op in ops
            for dtype in dtypes
            if op.name not in unless and accepts(op, dtype)
        ],
    )


DIFFERENTIABLE = [op for op in ELEMENTWISE if op.jvp]


def test_every_name_of_the_issue_is_there():
    assert {op.name for op in ELEMENTWISE} >= {
        *EXACT,
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh"),
        *("erf", "erfc", "exp", "exp2", "expm1", "hypot", "integer_power", "log", "log10"),
        *("log1p", "log2", "logaddexp", "logistic", "pow", "sin", "sine_ratio", "sinh", "tan"),
        "tanh",
    }


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_every_field_is_there_or_has_a_reason(op):
    for field in FIELDS:
        assert getattr(op, field) or op.why_not.get(field), field
    assert (op.check is None) == (op.check_error is None)


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_type_rule_and_program_agree_with_the_reference(op, dtype, rng):
    if not accepts(op, dtype):
        nodes = [input_node(t, "x") for t in types_of(cases(op, dtype, rng)[0][0])]
        with pytest.raises(DTypeError, match=op.name):
            make(op, [n.out for n in nodes], **cases(op, dtype, rng)[0][1])
        return
    for arrays, params in cases(op, dtype, rng):
        expected = evaluate(apply(op, **params), *arrays)  # compares shape and dtype
        program = op.complex_scalar if dtype.is_complex else op.scalar
        bound = 0 if op.name in EXACT else ULP.get(op.name, COMPLEX_ULP if dtype.is_complex else 2)
        # NumPy's complex division and modulus are not ours to the bit.
        bound = COMPLEX_ULP if dtype.is_complex and bound == 0 else bound
        assert_ulps(run(program, arrays, params), expected, bound)


@defined(
    *("bool", "int8", "uint8", "int64", "uint64", "float32", "float64"),
    unless=("where", "complex", "ldexp"),
)
def test_special_values(op, dtype, rng):
    """Every combination of the special values gives NumPy's result, signs of zeros included."""
    for arrays, params in cases(op, dtype, rng):
        grid = [
            np.array(column)
            for column in zip(*itertools.product(specials(dtype), repeat=len(arrays)), strict=True)
        ]
        bad = op.check and op.check(NumpyHandler(), *grid)
        if bad is not None:
            grid = [column[~bad] for column in grid]
        expected = evaluate(apply(op, **params), *grid)
        got = run(op.scalar, grid, params)
        if op.name in ZEROS:
            eps = np.finfo(dtype.numpy).eps
            np.testing.assert_allclose(got, expected, rtol=8 * eps, atol=4 * eps)
        else:
            assert_ulps(got, expected, 0 if op.name in EXACT else 2)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (2, 3)])
@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_shapes(op, shape, rng):
    dtype = "float64" if accepts(op, "float64") else "complex128"
    dtype = dtype if accepts(op, dtype) else "int64"
    for arrays, params in cases(op, dtype, rng):
        resized = [np.resize(a, shape) for a in arrays]
        assert evaluate(apply(op, **params), *resized).shape == shape


# A constant for differentiation has another derivative than its value; see the edges.
@defined("float64", "complex128", unless=("stop_gradient",), ops=DIFFERENTIABLE)
def test_derivatives(op, dtype, rng):
    """jvp by central difference, transpose by inner product, second order in every mode."""
    for arrays, params in cases(op, dtype, rng):
        check_rules(apply(op, **params), arrays, rng, step=1e-5, tol=1e-6)


@defined("float32", "complex64", ops=DIFFERENTIABLE)
def test_tangents_have_the_dtype_of_the_primal(op, dtype, rng):
    """Single precision stays single: the jvp checks the dtype of each tangent itself."""
    for arrays, params in cases(op, dtype, rng):
        wide = [a.astype({"c": "c16", "f": "f8"}.get(a.dtype.kind, a.dtype)) for a in arrays]
        single, double = (
            _gradient(apply(op, **params), at, np.random.default_rng(5)) for at in (arrays, wide)
        )
        for s, d, a in zip(single, double, arrays, strict=True):
            assert s is None or s.dtype == a.dtype
            assert (s is None) == (d is None)
            if s is not None:
                np.testing.assert_allclose(s, d, rtol=1e-4, atol=1e-4)


def _gradient(f, arrays, rng):
    """Cotangents of all operands for one random cotangent, None for bools."""
    ct = direction(rng, evaluate(f, *arrays))
    found = iter(cotangents(f, arrays, ct))
    return [next(found) if i in moving(arrays) else None for i in range(len(arrays))]


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_batching(op, rng):
    dtype = next(d for d in ("float64", "complex128", "int64") if accepts(op, d))
    arrays, params = cases(op, dtype, rng)[0]
    check_batch(apply(op, **params), [a.reshape(3, 4) for a in arrays], rng)


def test_operands_must_have_one_shape_and_one_dtype():
    x, y = input_node(TensorType((3,), float64), "x"), input_node(TensorType((4,), float64), "y")
    with pytest.raises(ShapeError, match=r"add: expected equal shapes, got f64\[3\] and f64\[4\]"):
        make(OPS["add"], [x.out, y.out])
    z = input_node(TensorType((3,), as_dtype("int32")), "z")
    with pytest.raises(DTypeError, match=r"add: expected equal dtypes, got f64\[3\] and i32\[3\]"):
        make(OPS["add"], [x.out, z.out])
