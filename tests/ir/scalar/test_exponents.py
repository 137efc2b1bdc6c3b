"""frexp and ldexp against the C library, subnormal numbers included."""

from __future__ import annotations

import numpy as np
import pytest
from rule_checks import cotangents, evaluate, node_like

from tilegrad.ir import ops
from tilegrad.ir.errors import DTypeError
from tilegrad.ir.interpret import interpret
from tilegrad.ir.scalar import exponents
from tilegrad.ir.scalar.handlers.numpy import run


def any_float(rng, dtype, count):
    """Random bits, and the ends of the range."""
    size = np.dtype(dtype).itemsize
    x = rng.integers(0, 256, (count, size)).astype("uint8").view(dtype)[:, 0]
    f = np.finfo(dtype)
    ends = [0.0, -0.0, 1.0, f.tiny, f.smallest_subnormal, 3 * f.smallest_subnormal, f.max, np.inf]
    return np.concatenate([x[np.isfinite(x)], np.array(ends, dtype)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_frexp(dtype, rng):
    x = any_float(rng, dtype, 20_000)
    mantissa, exponent = np.frexp(x)
    np.testing.assert_array_equal(run(exponents.frexp_mantissa, x), mantissa, strict=True)
    finite = np.isfinite(x)
    np.testing.assert_array_equal(run(exponents.frexp_exponent, x)[finite], exponent[finite])
    assert run(exponents.frexp_exponent, x).dtype == np.int32


def test_frexp_of_a_subnormal_number():
    m, e = interpret(ops.frexp(np.array([5e-324, 3.0])))
    np.testing.assert_array_equal(m, [0.5, 0.75])
    np.testing.assert_array_equal(e, [-1073, 2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ldexp_rounds_once(dtype, rng):
    x = any_float(rng, dtype, 50_000)
    n = rng.integers(-2300, 2300, x.size)
    n[::3] = rng.integers(-160, 160, n[::3].size)
    with np.errstate(all="ignore"):
        expected = np.ldexp(x, n.astype(np.int32))
    got = run(exponents.ldexp, x, n)
    np.testing.assert_array_equal(got, expected, strict=True)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
    huge = np.array([2**62, -(2**62)])
    np.testing.assert_array_equal(run(exponents.ldexp, np.ones(2, dtype), huge), [np.inf, 0])


def test_ldexp_takes_integers_alone_and_broadcasts():
    assert (
        evaluate(ops.ldexp, np.ones((2, 1)), np.arange(3, dtype="int8")).tolist() == [[1, 2, 4]] * 2
    )
    with pytest.raises(DTypeError, match="ldexp: expected integer exponents, got f64"):
        ops.ldexp(node_like(1.0).out, 2.0)


def test_halves_put_together_have_derivative_one(rng):
    x = rng.uniform(-50, 50, 20)

    def again(v):
        return ops.ldexp(*ops.frexp(v))

    np.testing.assert_array_equal(evaluate(again, x), x)
    np.testing.assert_array_equal(cotangents(again, [x], np.ones(20))[0], np.ones(20))
