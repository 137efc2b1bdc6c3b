"""The vocabulary in LLVM against its NumPy reading, method by method, scalar and vector."""

from __future__ import annotations

import numpy as np
import pytest

from tilegrad.ir.dtypes import ALL, as_dtype, bool_, float32, float64, int32, int64
from tilegrad.ir.scalar.handlers.numpy import NumpyHandler, run
from tilegrad.kernels.llvm.evaluate import compile_program, evaluate, module_text

REAL = [d for d in ALL if not d.is_complex]
INTEGERS = [d for d in REAL if d.is_integer]
FLOATS = [float64, float32]
widths = pytest.mark.parametrize("width", [1, 8])


def draw(dtype, count=403, seed=0):
    """Random values of all sizes, with the edges of the type in front."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        values = rng.integers(info.min, info.max, count, dtype=dtype.numpy, endpoint=True)
        values[:6] = [0, 1, info.min, info.max, info.max, 3]
        values[100:200] = rng.integers(0, 7, 100)
        return rng.permutation(values)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, 2.5, -0.5, 1e-310, 3e9, -(2.0**63), 2.0**64]
    exponents = rng.uniform(-140, 120, count - len(edges))
    values = rng.choice([-1.0, 1.0], exponents.size) * np.exp2(exponents)
    values[:60] = rng.uniform(-300, 300, 60)
    with np.errstate(all="ignore"):
        return rng.permutation(np.concatenate([values, edges])).astype(dtype.numpy)


def agree(got, expected):
    expected = np.asarray(expected)
    assert got.dtype == expected.dtype
    same = (got == expected) | ((got != got) & (expected != expected))
    if got.dtype.kind == "f":
        same &= (np.signbit(got) == np.signbit(expected)) | (got != got)
    assert same.all(), (got[~same][:5], expected[~same][:5])


def check(program, *arrays, width):
    agree(evaluate(program, *arrays, width=width), run(program, *arrays))


@widths
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", ["neg", "sqrt", "abs", "floor", "ceil", "trunc", "rint"])
def test_unary_float(op, dtype, width):
    check(lambda h, x: getattr(h, op)(x), draw(dtype), width=width)


@widths
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "op", ["add", "sub", "mul", "div", "copysign", "lt", "le", "gt", "ge", "eq", "ne"]
)
def test_binary_float(op, dtype, width):
    x, y = draw(dtype), draw(dtype, seed=1)
    y[::7] = x[::7]
    check(lambda h, x, y: getattr(h, op)(x, y), x, y, width=width)


@widths
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fma(dtype, width):
    x, y, z = (draw(dtype, seed=s) for s in range(3))
    with np.errstate(all="ignore"):
        z[::2] = -(x * y)[::2]
    check(lambda h, x, y, z: h.fma(x, y, z), x, y, z, width=width)


@widths
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers(dtype, width):
    x, y = draw(dtype), draw(dtype, seed=1)
    y[::5], y[1::5] = 0, -1 if dtype.is_signed else 1
    binary = ["add", "sub", "mul", "div", "idiv", "irem", "and_", "or_", "xor"]
    for op in [*binary, "lt", "le", "gt", "ge", "eq", "ne"]:
        check(lambda h, x, y, op=op: getattr(h, op)(x, y), x, y, width=width)
    for op in ["neg", "abs", "not_"]:
        check(lambda h, x, op=op: getattr(h, op)(x), x, width=width)
    shift = (y.astype(np.int64) % dtype.bits).astype(dtype.numpy)
    for op in ["shl", "shr"]:
        check(lambda h, x, y, op=op: getattr(h, op)(x, y), x, shift, width=width)


@widths
def test_bools(width):
    x, y = draw(bool_), draw(bool_, seed=1)
    for op in ["and_", "or_", "xor"]:
        check(lambda h, x, y, op=op: getattr(h, op)(x, y), x, y, width=width)
    check(lambda h, x: h.not_(x), x, width=width)
    check(
        lambda h, c, x, y: h.select(c, x, y), x, draw(float64), draw(float64, seed=1), width=width
    )
    check(lambda h, c, x, y: h.select(c, x, y), x, y, draw(bool_, seed=2), width=width)


@widths
@pytest.mark.parametrize("source", REAL, ids=str)
def test_conversions(source, width):
    x = draw(source)
    for target in REAL:
        check(lambda h, x, target=target: h.convert(x, target), x, width=width)


@widths
def test_bitcasts(width):
    for source, target in [(float64, int64), (float32, int32), (int64, float64), (int32, float32)]:
        x = draw(source)
        got = evaluate(lambda h, x, t=target: h.bitcast(x, t), x, width=width)
        number = x == x
        assert np.array_equal(got.view(source.numpy)[number], x[number])


@pytest.mark.parametrize("width", [1, 8, 16, 32])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("count", [1, 7, 8, 13, 16, 40, 100])
def test_tables(count, dtype, width):
    entries = tuple(1.0 / (k + 1) for k in range(count))
    index = np.random.default_rng(0).integers(0, count, 203)
    for kind in (np.int32, np.int64):
        check(lambda h, i: h.table(entries, i, dtype), index.astype(kind), width=width)


@widths
def test_rarely_equals_select(width):
    x = draw(float64)
    for bound in (-np.inf, 1e30, np.inf):

        def program(h, x, bound=bound):
            rare = h.gt(x, h.const(bound, float64))

            def inner():
                deeper = h.gt(x, h.const(1e35, float64))
                return h.rarely(deeper, h.neg(x), lambda: h.sqrt(x))

            return h.add(h.rarely(rare, h.abs(x), inner), x)

        check(program, x, width=width)


def test_constants_tell_zeros_and_types_apart():
    def program(h, x):
        zero, minus = h.const(0.0, float64), h.const(-0.0, float64)
        return h.select(h.gt(x, zero), minus, h.select(h.lt(x, minus), zero, h.const(1.0, float64)))

    got = evaluate(program, np.array([1.0, -1.0, 0.0]))
    assert np.signbit(got).tolist() == [True, False, False]
    check(lambda h, x: h.and_(x, h.const(True, bool_)), draw(bool_), width=8)
    check(lambda h, x: h.add(x, h.const(1, int64)), draw(int64), width=8)
    check(lambda h, x: h.add(x, h.const(float("inf"), float32)), draw(float32), width=8)
    check(lambda h, x: h.add(x, h.const(0.1, float32)), draw(float32), width=8)


def test_vector_code_is_vector_code():
    text = module_text(lambda h, x: h.fma(x, x, x), float64)
    assert 'call <8 x double> @"llvm.fma.v8f64"' in text
    assert "fast" not in text
    assert "contract" not in text


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 31])
def test_any_length(count):
    x = np.arange(count, dtype=np.float64)
    assert np.array_equal(evaluate(lambda h, x: h.add(x, x), x), x + x)


def test_broadcast_and_scalar_operands():
    program = lambda h, x, y: h.mul(x, y)  # noqa: E731
    x = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(evaluate(program, x, 2.0), x * 2)
    assert evaluate(program, 3.0, 2.0).shape == ()


def test_compiled_programs_are_kept():
    def program(h, x):
        return h.neg(x)

    first = compile_program(program, (as_dtype("float64"),))
    assert compile_program(program, (as_dtype("float64"),)) is first


def test_no_permutes_without_avx512():
    from llvmlite import ir

    from tilegrad.kernels.llvm.handler import LLVMHandler, Typed, llvm_type

    texts = []
    for avx512 in (False, True):
        index_type = llvm_type(int64, 8)
        module = ir.Module()
        function = ir.Function(
            module, ir.FunctionType(llvm_type(float64, 8), [index_type]), "look_up"
        )
        builder = ir.IRBuilder(function.append_basic_block())
        handler = LLVMHandler(builder, 8, avx512=avx512)
        index = Typed(function.args[0], int64)
        builder.ret(handler.table([1.0, 2.0, 3.0], index, float64).value)
        texts.append(str(module))
    assert "vpermi2var" not in texts[0]
    assert "vpermi2var" in texts[1]


def test_numpy_reading_keeps_scalars():
    h = NumpyHandler()
    assert isinstance(
        h.fma(h.const(1.0, float32), h.const(2.0, float32), h.const(3.0, float32)), np.float32
    )
