"""Division with remainder against Python's integers and floats, which are exact."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tilegrad.ir import ops
from tilegrad.ir.interpret import interpret
from tilegrad.ir.scalar import remainder
from tilegrad.ir.scalar.handlers.numpy import run


def test_all_pairs_of_int8():
    pairs = np.array(list(itertools.product(range(-128, 128), repeat=2)), "int8")
    x, y = pairs[:, 0], pairs[:, 1]
    x, y = x[y != 0], y[y != 0]
    wide_x, wide_y = x.astype(object), y.astype(object)  # Python's floor rule
    np.testing.assert_array_equal(
        run(remainder.floor_divide, x, y), (wide_x // wide_y).astype(np.int64).astype("int8")
    )
    r = run(remainder.remainder, x, y)
    np.testing.assert_array_equal(r, (wide_x % wide_y).astype("int8"))
    np.testing.assert_array_equal(run(remainder.floor_divide, x, y) * y + r, x)
    c = [int(math.fmod(int(a), int(b))) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(run(remainder.fmod, x, y), np.array(c, "int8"))


@pytest.mark.parametrize(
    "dtype", ["int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_wide_integers(dtype, rng):
    info = np.iinfo(dtype)
    edges = {info.min, info.min + 1, -1, 1, 2, 3, 7, info.max // 2, info.max - 1, info.max}
    values = [v for v in sorted(edges) if v and info.min <= v <= info.max]
    values += [int(v) for v in rng.integers(info.min, info.max, 30, dtype=dtype) if v]
    pairs = list(itertools.product([*values, 0], values))
    x, y = (np.array(c, dtype=object).astype(dtype) for c in zip(*pairs, strict=True))
    wrap = 1 << info.bits
    for program, exact in (
        (remainder.floor_divide, lambda a, b: a // b),
        (remainder.remainder, lambda a, b: a % b),
    ):
        expected = [(exact(a, b) - info.min) % wrap + info.min for a, b in pairs]  # MIN // -1 wraps
        np.testing.assert_array_equal(run(program, x, y), np.array(expected, object).astype(dtype))


def floats(rng, dtype, count):
    """Random bits: every exponent, subnormal numbers, infinities and NaN."""
    bits = rng.integers(0, 256, (count, np.dtype(dtype).itemsize))
    return bits.astype("uint8").view(dtype)[:, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fmod_is_exact_for_every_quotient(dtype, rng):
    """C's fmod, which loops over bits, for quotients up to 2**2098."""
    x, y = floats(rng, dtype, 200_000), floats(rng, dtype, 200_000)
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    got = run(remainder.fmod, x, y)
    np.testing.assert_array_equal(got, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))


@pytest.mark.parametrize(
    ("x", "y"), [(1e17, 3.0), (1e300, 7.0), (1.7e308, 5e-324), (5e-324, 1e308)]
)
def test_fmod_of_python(x, y):
    for a, b in ((x, y), (-x, y), (x, -y), (y, x)):
        assert run(remainder.fmod, a, b) == math.fmod(a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floor_division_of_floats(dtype, rng):
    """NumPy's bits, zeros with their signs; quotients near integers are the hard ones."""
    y = rng.uniform(-3, 3, 50_000).astype(dtype)
    x = (np.rint(rng.uniform(-1e4, 1e4, 50_000)) * y).astype(dtype)
    x = np.concatenate([x, floats(rng, dtype, 50_000)])
    y = np.concatenate([y, floats(rng, dtype, 50_000)])
    for program, reference in (
        (remainder.floor_divide, np.floor_divide),
        (remainder.remainder, np.remainder),
    ):
        with np.errstate(all="ignore"):
            expected = reference(x, y)
        got = run(program, x, y)
        np.testing.assert_array_equal(got, expected)
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))


def test_signs_of_zeros():
    r = run(remainder.remainder, np.array([-1.0, 1.0]), np.array([1.0, -1.0]))
    np.testing.assert_array_equal(np.signbit(r), [False, True])
    q = run(remainder.floor_divide, np.array([0.0, -0.0]), np.array([1.0, 1.0]))
    np.testing.assert_array_equal(np.signbit(q), [False, True])


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integer_division_by_zero_raises_and_the_program_is_total(name):
    function = getattr(ops, name)
    x = np.array([1, -(2**63)])
    with pytest.raises(ZeroDivisionError, match=f"{name}: expected integer divisors other than 0"):
        interpret([function(x, np.array([0, -1]))])
    guarded = function(x, ops.where(np.array([False, True]), np.array([0, -1]), 1))
    expected = {"floor_divide": [1, -(2**63)], "remainder": [0, 0], "fmod": [0, 0]}[name]
    np.testing.assert_array_equal(interpret([guarded])[0], expected)
    assert run(getattr(remainder, name), x, np.array([0, -1])).shape == (2,)  # no trap
    op = ops.OPS[name]
    assert list(run(op.check, x, np.array([0, -1]))) == [True, False]
    assert op.check_error[0] is ZeroDivisionError
    assert run(op.check, np.array([1.0]), np.array([0.0])) is None
