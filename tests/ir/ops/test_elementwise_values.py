"""Values and messages of elementwise functions: cases with a known answer, a whole kind each."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from rule_checks import evaluate, node_like

from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64
from tilegrad.ir.errors import DTypeError, ShapeError
from tilegrad.ir.graph import toposort
from tilegrad.ir.interpret import interpret
from tilegrad.ir.scalar.handlers.numpy import NumpyHandler, run


def program(op, *operands, **params):
    """The scalar program itself, which is what compiled code runs."""
    with np.errstate(all="ignore"):
        return ops.OPS[op].scalar(NumpyHandler(), *operands, **params)


# --------------------------------------------------------------------------------------- powers


def test_integer_powers_wrap_and_agree_with_python():
    x, y = (np.array(c) for c in zip(*itertools.product(range(-7, 8), range(65)), strict=True))
    exact = np.array(
        [(a**b + 2**63) % 2**64 - 2**63 for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    )
    np.testing.assert_array_equal(program("pow", x, y), exact)
    np.testing.assert_array_equal(evaluate(ops.power, x, y), exact)
    for n in (0, 1, 2, 3, 5, 31, 64):
        np.testing.assert_array_equal(
            evaluate(lambda v, n=n: v**n, x), [(a**n + 2**63) % 2**64 - 2**63 for a in x.tolist()]
        )
    far = np.array([2**62 + 1, 255, 2**40])
    for base in (3, -1, 2):
        expected = [(pow(base, int(n), 2**64) + 2**63) % 2**64 - 2**63 for n in far]
        np.testing.assert_array_equal(program("pow", np.full(3, base), far), expected)


def test_integers_to_a_negative_power_raise():
    x = np.array([2, 3])
    with pytest.raises(ValueError, match="power: expected exponents of integers to be at least 0"):
        node_like(x).out ** -1
    with pytest.raises(ValueError, match="convert the base or the exponent to a floating type"):
        interpret([ops.power(x, np.array([1, -1]))])
    op = ops.OPS["pow"]
    assert run(op.check, x, np.array([1, -1])).tolist() == [False, True]
    assert run(op.check, x.astype("u8"), x.astype("u8")) is None
    assert run(op.check, np.ones(2), np.array([1.0, -1.0])) is None
    np.testing.assert_array_equal(evaluate(lambda v: v**-2.0, np.array([2, 4])), [0.25, 0.0625])
    np.testing.assert_array_equal(
        evaluate(ops.power, np.array([-1, 0, 1]), np.array([1, 1, 1])), [-1, 0, 1]
    )


def test_python_exponents_mean_repeated_multiplication(rng):
    x = rng.standard_normal(50)
    np.testing.assert_array_equal(evaluate(lambda v: v**2, x), x * x)
    np.testing.assert_array_equal(evaluate(lambda v: v**3, x), x * (x * x))
    np.testing.assert_array_equal(evaluate(lambda v: v**-1, x), 1 / x)
    np.testing.assert_array_equal(evaluate(ops.square, x), x * x)
    np.testing.assert_array_equal(evaluate(ops.reciprocal, x), 1 / x)
    np.testing.assert_allclose(evaluate(lambda v: v**-3, x), x**-3.0, rtol=4e-16)
    np.testing.assert_allclose(evaluate(lambda v: v**100, x), x**100.0, rtol=4e-16)
    assert [n.op.name for n in toposort([node_like(x).out ** 2])] == ["input", "integer_power"]
    z = x[:10] + 1j * x[10:20]
    np.testing.assert_allclose(evaluate(lambda v: v**-3, z), z**-3, rtol=1e-14)


def test_default_integers_inside_float_expressions():
    y = 1 / 256 ** ops.convert(ops.constant(np.arange(1, 7)), "int64")
    np.testing.assert_array_equal(interpret([y])[0], 2.0 ** -np.arange(8, 49, 8))


# ------------------------------------------------------------------------- hard values


def test_exp_and_hyperbolics_at_the_ends_of_the_range():
    """mpmath, 40 digits; exp(-740) = 4.18873988e-322 is 84.78 of the smallest number."""
    assert program("exp", np.float64(-740.0)) == 85 * 5e-324
    assert abs(program("cosh", np.float64(710.4)) / 1.6663642832806496e308 - 1) < 5e-16
    assert abs(program("sinh", np.float64(-710.4)) / -1.6663642832806496e308 - 1) < 5e-16


def test_tiny_arguments_keep_their_digits():
    assert program("log1p", np.float64(1e-20)) == 1e-20
    assert program("expm1", np.float64(-1e-17)) == -1e-17


def test_rounding():
    x = np.array([2.5, 3.5, -2.5, 0.5, -0.5, -0.2])
    np.testing.assert_array_equal(program("rint", x), [2, 4, -2, 0, 0, 0])
    assert np.signbit(program("rint", x[-1]))
    assert np.signbit(program("ceil", x[-1]))
    assert not np.signbit(program("abs", np.float64(-0.0)))
    assert np.signbit(program("sqrt", np.float64(-0.0)))
    assert evaluate(ops.floor, np.array([3, -4])).dtype == np.int64


def test_extrema_order_zeros_and_let_nan_through():
    zeros = np.array([0.0, -0.0])
    for x, y in itertools.product(zeros, repeat=2):
        largest, smallest = (program(n, x, y, tie=0.5) for n in ("maximum", "minimum"))
        assert np.signbit(largest) == (np.signbit(x) and np.signbit(y))
        assert np.signbit(smallest) == (np.signbit(x) or np.signbit(y))
    for x, y in ((np.nan, 1.0), (1.0, np.nan), (np.nan, np.inf), (-np.inf, np.nan)):
        assert np.isnan(program("maximum", np.float64(x), np.float64(y), tie=0.5))
        assert np.isnan(program("minimum", np.float64(x), np.float64(y), tie=0.5))


def test_clip():
    x = np.array([-2.0, 0.5, 3.0, np.nan, -0.0])
    np.testing.assert_array_equal(evaluate(lambda v: ops.clip(v, 0, 1), x), [0, 0.5, 1, np.nan, 0])
    np.testing.assert_array_equal(evaluate(lambda v: ops.clip(v, 2, 1), x[:3]), [1, 1, 1])
    np.testing.assert_array_equal(evaluate(lambda v: ops.clip(v, max=1), x[:3]), [-2, 0.5, 1])
    np.testing.assert_array_equal(evaluate(lambda v: ops.clip(v, np.nan, 1), x[:1]), [np.nan])
    got = evaluate(lambda v: ops.clip(v, 0, 5), np.array([-3, 9], "int8"))
    np.testing.assert_array_equal(got, np.array([0, 5], "int8"), strict=True)


def test_shifts_beyond_the_width():
    for dtype in ("int8", "uint8", "int64", "uint64"):
        bits = np.dtype(dtype).itemsize * 8
        x = np.array([1, 100] if dtype[0] == "u" else [-1, 100], dtype)
        for n in (bits - 1, bits, bits + 1, 100):
            y = np.array(n, dtype)
            wide = [int(v) << n for v in x]
            wrapped = (
                np.array([v % 2**bits for v in wide], object).astype(f"u{bits // 8}").view(dtype)
            )
            np.testing.assert_array_equal(program("shift_left", x, y), wrapped)
            np.testing.assert_array_equal(program("shift_right", x, y), [int(v) >> n for v in x])


def test_differences_of_bytes_are_signed_after_conversion():
    a, b = np.array([10, 250], "uint8"), np.array([250, 10], "uint8")
    got = evaluate(lambda x, y: abs(ops.convert(x, "int64") - ops.convert(y, "int64")), a, b)
    np.testing.assert_array_equal(got, [240, 240])


def test_unsigned_and_signed_64_bits_meet_in_float64():
    got = evaluate(ops.add, np.array([10**18 + 1], "uint64"), np.array([0]))
    assert got.dtype == np.float64
    assert got[0] == 1e18


def test_sinc_and_logistic_and_logaddexp():
    x = np.array([0.0, 0.5, 1.0, -2.5, 1e-30])
    np.testing.assert_allclose(evaluate(ops.sinc, x), np.sinc(x), rtol=1e-15)
    np.testing.assert_array_equal(evaluate(ops.logistic, np.array([1e4, -1e4, 0])), [1, 0, 0.5])
    np.testing.assert_allclose(program("logistic", np.float64(-700.0)), math.exp(-700), rtol=4e-16)
    same = np.array([np.inf, -np.inf])
    np.testing.assert_array_equal(program("logaddexp", same, same), same)


def test_complex_parts():
    z = np.array([1 + 2j, -0.0 - 0.0j, complex(np.inf, np.nan)])
    np.testing.assert_array_equal(evaluate(ops.real, z), z.real)
    np.testing.assert_array_equal(evaluate(ops.imag, z), z.imag)
    again = evaluate(lambda v: ops.complex_(ops.real(v), ops.imag(v)), z)
    np.testing.assert_array_equal(again.view("u8"), z.view("u8"))
    np.testing.assert_array_equal(evaluate(ops.conj, z)[:2], np.conj(z)[:2])
    np.testing.assert_array_equal(evaluate(ops.abs_, z), np.abs(z))
    np.testing.assert_allclose(evaluate(ops.sign, z[:2]), np.sign(z[:2]), rtol=1e-15)
    assert evaluate(ops.isinf, z).tolist() == [False, False, True]
    assert evaluate(ops.isnan, z).tolist() == [False, False, True]
    assert evaluate(ops.isfinite, z).tolist() == [True, True, False]


# ------------------------------------------------------------------------------ what is refused


REFUSED = [
    (lambda x: ops.sin(x), "complex64", None),
    (lambda x: ops.asin(x), "complex64", "asin: expected operands of kind floating, got c64[2]"),
    (lambda x: ops.floor(x), "complex64", "floor: expected operands of kind floating, got c64[2]"),
    (lambda x: x < x, "complex64", "less: expected operands of kind bool or integer"),
    (lambda x: x & x, "float64", "bitwise_and: expected operands of kind bool or integer"),
    (lambda x: ~x, "float64", "bitwise_invert: expected operands of kind bool or integer"),
    (lambda x: x << 1, "float64", "left_shift: expected operands of kind integer or unsigned"),
    (lambda x: -x, "bool", "neg: expected operands of kind integer"),
    (lambda x: x - x, "bool", "subtract: expected operands of kind integer"),
    (lambda x: x // x, "complex64", "floor_divide: expected operands of kind integer"),
    (lambda x: ops.hypot(x, x), "complex128", "hypot: expected operands of kind floating"),
]


@pytest.mark.parametrize(("f", "dtype", "message"), REFUSED)
def test_dtypes_that_are_refused(f, dtype, message):
    x = node_like(np.ones(2, dtype)).out
    if message is None:
        assert f(x).dtype.is_complex
        return
    with pytest.raises(DTypeError) as caught:
        f(x)
    assert message in str(caught.value)
    assert "convert with astype" in str(caught.value)
    assert "test_elementwise_values.py" in str(caught.value)  # the user's line


def test_shapes_that_do_not_broadcast():
    x, y = node_like(np.ones((3, 4))).out, node_like(np.ones(5)).out
    for f in (
        ops.maximum,
        ops.power,
        ops.atan2,
        ops.floor_divide,
        lambda a, b: ops.where(a > 0, a, b),
    ):
        with pytest.raises(ShapeError, match=r"expected shapes that broadcast together"):
            f(x, y)


def test_values_compare_by_identity_and_have_no_truth():
    x = node_like(np.ones(2)).out
    assert x == x
    assert (x == node_like(np.ones(2)).out) is False
    assert len({x, x}) == 1
    with pytest.raises(TypeError, match="no truth"):
        bool(x < 1)


def test_weak_scalars_stay_weak():
    y = ops.sin(2.0) * ops.maximum(1, 3) + abs(ops.constant(-1))
    assert y.type.weak
    assert y.dtype is float64
    assert (node_like(np.float32(1)).out * y).dtype.name == "float32"
    assert not ops.lt(1, 2).type.weak
