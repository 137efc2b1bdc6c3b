"""Every reading of the vocabulary, method by method: NumPy, text, counts and ranges."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilegrad.ir.dtypes import bool_, float32, float64, int8, int32, int64, uint8
from tilegrad.ir.scalar import PROGRAMS
from tilegrad.ir.scalar.cases import CASES
from tilegrad.ir.scalar.handlers.count import cost, count, flops
from tilegrad.ir.scalar.handlers.numpy import NumpyHandler, fma32, fma64, run
from tilegrad.ir.scalar.handlers.ranges import Range, RangeHandler, bounds, everything
from tilegrad.ir.scalar.handlers.text import listing

numbers = st.floats(allow_nan=False, allow_infinity=False)
numbers32 = st.floats(allow_nan=False, allow_infinity=False, width=32)


def nearest(value: Fraction, smallest: int, precision: int) -> float:
    """Correct rounding by integers, to compare with."""
    if value == 0:
        return 0.0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, smallest) - precision + 1)
    result = round(value / unit) * unit
    top = 1024 if precision == 53 else 128
    if abs(result) >= Fraction(2) ** top:
        return float("inf") if value > 0 else float("-inf")
    return float(result)


@given(numbers, numbers, numbers)
def test_fma64_rounds_once(x, y, z):
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    assert float(fma64(x, y, z)) == nearest(exact, -1022, 53)


@given(st.integers(-40, 40), st.integers(1, 2**53), st.integers(1, 2**53), st.integers(-8, 8))
def test_fma64_near_cancellation(shift, m, n, difference):
    x, y = float(m), float(n) * 2.0**shift
    z = -(x * y) * (1 + difference * 2.0**-52)
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    assert float(fma64(x, y, z)) == nearest(exact, -1022, 53)


@given(numbers32, numbers32, numbers32)
def test_fma32_rounds_once(x, y, z):
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    with np.errstate(all="ignore"):
        assert float(fma32(x, y, z)) == nearest(exact, -126, 24)


def test_fma_of_special_values():
    inf, nan = np.inf, np.nan
    assert np.isnan(run(lambda h, x, y, z: h.fma(x, y, z), 0.0, inf, 1.0))
    assert run(lambda h, x, y, z: h.fma(x, y, z), 1e300, 1e300, -inf) == -inf
    assert np.isnan(run(lambda h, x, y, z: h.fma(x, y, z), 1.0, inf, -inf))
    assert np.signbit(run(lambda h, x, y, z: h.fma(x, y, z), -0.0, 1.0, -0.0))
    assert np.signbit(run(lambda h, x, y, z: h.fma(x, y, z), -1e-300, 1e-300, 0.0))
    assert np.isnan(run(lambda h, x, y, z: h.fma(x, y, z), nan, 1.0, 1.0))


def test_numpy_integer_division_is_total():
    least = np.int8(-128)
    x = np.array([7, -7, 7, -7, -128, -128, 5, -5], np.int8)
    y = np.array([2, 2, -2, -2, -1, 0, 0, 0], np.int8)
    h = NumpyHandler()
    assert h.idiv(x, y).tolist() == [3, -3, -3, 3, least, 0, 0, 0]
    assert h.irem(x, y).tolist() == [1, -1, 1, -1, 0, 0, 0, 0]


def test_text_numbers_values_and_indents_what_is_rare():
    def program(h, x):
        two = h.const(2.0, h.dtype(x))
        return h.rarely(h.gt(x, two), h.fma(x, x, two), lambda: h.sqrt(x))

    assert listing(program, float64) == "\n".join(
        [
            "program(%0: f64):",
            "  %1 = gt %0, 2.0 : bool",
            "  %2 = fma %0, %0, 2.0 : f64",
            "  rarely %1:",
            "    %3 = sqrt %0 : f64",
            "  %4 = merge %1, %3, %2 : f64",
            "  return %4",
        ]
    )


def test_count_keeps_rare_work_apart():
    def program(h, x):
        two = h.const(2.0, h.dtype(x))
        return h.rarely(h.gt(x, two), h.fma(x, x, two), lambda: h.sqrt(x))

    tally = count(program, float64)
    assert tally.usual == {"gt": 1, "fma": 1, "rarely": 1}
    assert tally.rare == {"sqrt": 1}
    assert flops(program, float64) == 2
    assert cost(program, float64) == 3.5


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
@pytest.mark.parametrize("dtype", [float64, float32], ids=str)
def test_every_program_has_every_reading(case, dtype):
    program, operands = PROGRAMS[case.name], (dtype,) * len(case.domain)
    assert listing(program, *operands).startswith("program(%0: ")
    assert 0 < flops(program, *operands) < 1000
    full = bounds(program, *[everything(d) for d in operands])
    assert full.dtype == dtype


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_ranges_of_programs_are_sound(case):
    rng = np.random.default_rng(0)
    program = PROGRAMS[case.name]
    for _ in range(20):
        ranges, samples = [], []
        for low, high in case.domain:
            a, b = np.sort(rng.uniform(low, high, 2)).tolist()
            ranges.append(Range(float64, a, b))
            samples.append(rng.uniform(a, b, 50))
        result = bounds(program, *ranges)
        assert all(value in result for value in run(program, *samples).tolist())


_BINARY = ["add", "sub", "mul", "div", "lt", "le", "gt", "ge", "eq", "ne"]
_EDGES = [-np.inf, -1e308, -3.5, -1.0, -1e-310, 0.0, 1e-310, 0.5, 2.0, 1e308, np.inf]


@pytest.mark.parametrize("op", [*_BINARY, "copysign"])
def test_float_ranges_are_sound(op):
    rng = np.random.default_rng(1)
    method, h = getattr(RangeHandler(), op), NumpyHandler()
    for _ in range(300):
        (a, b), (c, d) = (sorted(rng.choice(_EDGES, 2).tolist()) for _ in range(2))
        result = method(Range(float64, a, b), Range(float64, c, d))
        xs = [v for v in _EDGES if a <= v <= b]
        ys = [v for v in _EDGES if c <= v <= d]
        for x, y in itertools.product(xs, ys):
            value = getattr(h, op)(np.float64(x), np.float64(y))
            assert value in result, (op, a, b, c, d, x, y, value, result)


@pytest.mark.parametrize("op", ["sqrt", "abs", "neg", "floor", "ceil", "trunc", "rint"])
def test_unary_float_ranges_are_sound(op):
    method, h = getattr(RangeHandler(), op), NumpyHandler()
    for a, b in itertools.combinations_with_replacement(_EDGES, 2):
        result = method(Range(float64, a, b))
        assert all(getattr(h, op)(np.float64(x)) in result for x in _EDGES if a <= x <= b)


def test_fma_ranges_are_sound():
    rng, h = np.random.default_rng(2), NumpyHandler()
    for _ in range(60):
        ends = [sorted(rng.choice(_EDGES, 2).tolist()) for _ in range(3)]
        result = RangeHandler().fma(*[Range(float64, a, b) for a, b in ends])
        inside = [[v for v in _EDGES if a <= v <= b] for a, b in ends]
        for x, y, z in itertools.product(*inside):
            assert h.fma(np.float64(x), np.float64(y), np.float64(z)) in result


@pytest.mark.parametrize("dtype", [int8, uint8], ids=str)
@pytest.mark.parametrize(
    "op", ["add", "sub", "mul", "idiv", "irem", "and_", "or_", "xor", "lt", "eq", "ge", "ne"]
)
def test_integer_ranges_are_sound(op, dtype):
    rng, h = np.random.default_rng(3), NumpyHandler()
    info, kind = np.iinfo(dtype.numpy), dtype.numpy.type
    for _ in range(60):
        span = int(rng.choice([5, 40, 300]))
        ends = []
        for _ in range(2):
            a = int(rng.integers(info.min, info.max + 1))
            ends.append((a, min(info.max, a + int(rng.integers(0, span)))))
        result = getattr(RangeHandler(), op)(*[Range(dtype, a, b) for a, b in ends])
        for x, y in itertools.product(*[range(a, b + 1, max(1, (b - a) // 9)) for a, b in ends]):
            assert int(getattr(h, op)(kind(x), kind(y))) in result


@pytest.mark.parametrize("op", ["shl", "shr"])
def test_shift_ranges_are_sound(op):
    rng, h = np.random.default_rng(4), NumpyHandler()
    for _ in range(100):
        a, b = np.sort(rng.integers(-128, 128, 2)).tolist()
        c, d = np.sort(rng.integers(0, 8, 2)).tolist()
        result = getattr(RangeHandler(), op)(Range(int8, a, b), Range(int8, c, d))
        for x, y in itertools.product(range(a, b + 1, 7), range(c, d + 1)):
            assert int(getattr(h, op)(np.int8(x), np.int8(y))) in result


def test_ranges_of_conversions_and_bits():
    h = RangeHandler()
    assert h.convert(Range(float64, -1.5, 300.7), int8) == Range(int8, -1, 127)
    assert h.convert(Range(float64, 2.5, 3.5, True), int32) == Range(int32, 0, 3)
    assert h.convert(Range(int64, 1, 9), bool_) == Range(bool_, 1, 1)
    assert h.convert(Range(int64, -1, 255), uint8) == everything(uint8)
    one = int(np.float64(1.0).view(np.int64))
    assert h.bitcast(Range(int64, one, one), float64) == Range(float64, 1.0, 1.0)
    assert h.bitcast(Range(float64, 1.0, 2.0), int64).low == one
    assert h.bitcast(Range(float64, 0.0, 2.0), int64) == everything(int64)
    assert h.select(Range(bool_, 1, 1), h.const(2.0, float64), everything(float64)).high == 2.0
    assert h.table([3.0, 1.0, 2.0], Range(int64, 1, 2), float64) == Range(float64, 1.0, 2.0)
    assert h.const(float("nan"), float64).empty
    assert h.ne(h.const(float("nan"), float64), h.const(0.0, float64)) == Range(bool_, 1, 1)
