"""Complex functions against mpmath, and their special values against C99 (by way of cmath)."""

from __future__ import annotations

import cmath
import itertools
from math import inf, nan, pi

import mpmath
import numpy as np
import pytest

from tilegrad.ir.scalar import complexes
from tilegrad.ir.scalar.handlers.numpy import NumpyHandler

UNARY = ["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"]


def run(name, *operands):
    """Complex result of a program on complex operands."""
    pairs = [(np.real(z), np.imag(z)) for z in map(np.asarray, operands)]
    with np.errstate(all="ignore"):
        real, imag = getattr(complexes, name)(NumpyHandler(), *pairs)
    out = np.empty(np.shape(real), np.result_type(real, np.complex64))
    out.real, out.imag = real, imag
    return out


def points(rng, dtype):
    """Near the origin, near the unit circle, on the axes, and far out."""
    r = np.concatenate(
        [10.0 ** rng.uniform(-6, 1, 60), 1 + rng.uniform(-1e-8, 1e-8, 20), rng.uniform(0, 20, 40)]
    )
    z = r * np.exp(1j * rng.uniform(-pi, pi, r.size))
    axis = np.concatenate([r[:20], 1j * r[20:40], -r[40:60]])
    return np.concatenate([z, axis]).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", UNARY)
def test_accuracy(name, dtype, rng):
    """Relative to the modulus, a few ulp."""
    mpmath.mp.dps = 40
    z = points(rng, dtype)
    got = run(name, z)
    assert got.dtype == dtype
    eps = np.finfo(dtype).eps
    for w, y in zip(z, got, strict=True):
        exact = getattr(mpmath, name)(mpmath.mpc(complex(w)))
        bound = 4 * eps * abs(exact)
        if name in ("tan", "tanh"):  # the real tan of a part that is near a pole
            bound *= 2
        assert abs(mpmath.mpc(complex(y)) - exact) <= bound, (w, y, exact)


def test_log_keeps_its_digits_on_the_unit_circle(rng):
    mpmath.mp.dps = 60
    for angle in rng.uniform(-pi, pi, 200):
        z = complex(np.cos(angle), np.sin(angle))
        exact = mpmath.log(mpmath.mpc(z)).real
        got = run("log", np.complex128(z)).real
        assert abs(got - exact) <= 4e-16 * abs(exact) + 1e-32, z


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_power(dtype, rng):
    mpmath.mp.dps = 40
    x = (rng.uniform(-3, 3, 60) + 1j * rng.uniform(-3, 3, 60)).astype(dtype)
    y = (rng.uniform(-3, 3, 60) + 1j * rng.uniform(-3, 3, 60)).astype(dtype)
    got = run("pow", x, y)
    for a, b, c in zip(x, y, got, strict=True):
        exact = mpmath.power(mpmath.mpc(complex(a)), mpmath.mpc(complex(b)))
        assert abs(mpmath.mpc(complex(c)) - exact) <= 32 * np.finfo(dtype).eps * abs(exact)


def test_power_at_zero():
    zero = np.complex128(0)
    assert run("pow", zero, zero) == 1
    assert run("pow", np.complex128(complex(nan, 1)), zero) == 1
    assert run("pow", zero, np.complex128(2 + 1j)) == 0
    assert np.isnan(run("pow", zero, np.complex128(-1)))


def test_no_overflow_on_the_way():
    """Parts of the result are finite although a real factor is not."""
    mpmath.mp.dps = 40
    big = 1e308 + 1e308j
    for name, z in (
        ("exp", 710 + 1.5707j),
        ("exp", 720 + 1.5707963267948966j),
        ("sin", 1e-9 + 715j),
        ("cos", 1.5707963267948966 + 715j),
        ("sinh", -715 + 1.5707963267948966j),
        ("cosh", 715 + 1e-9j),
        ("sqrt", big),
        ("sqrt", 5e-324 + 5e-324j),
        ("sqrt", -1e308 + 1e-308j),
        ("log", big),
        ("log", 5e-324 + 5e-324j),
        ("log", 1e-200 + 1e-210j),
        ("tanh", 400 + 1j),
        ("tan", 1 - 800j),
    ):
        exact = getattr(mpmath, name)(mpmath.mpc(z))
        got = run(name, np.complex128(z))
        for part, true in ((got.real, exact.real), (got.imag, exact.imag)):
            if abs(true) < 1.7e308:
                assert abs(part - true) <= 1e-15 * abs(true) + 5e-324, (name, z, got)


def c99(name, z):
    """What the C library gives, with its errors turned back into values."""
    try:
        return getattr(cmath, name)(z)
    except (ValueError, OverflowError):
        return None


@pytest.mark.parametrize("name", UNARY)
def test_special_values(name):
    """Infinities, NaN and signed zeros as in C99 Annex G."""
    for a, b in itertools.product([0.0, -0.0, 1.0, -1.0, inf, -inf, nan], repeat=2):
        expected = c99(name, complex(a, b))
        if expected is None:
            continue
        got = run(name, np.complex128(complex(a, b)))
        for part, true in ((got.real, expected.real), (got.imag, expected.imag)):
            if np.isnan(true):
                # C99 leaves open which part is NaN where a sign is unspecified
                assert np.isnan(got.real) or np.isnan(got.imag), (a, b, got, expected)
            elif np.isfinite(true) and true != 0:
                assert abs(part - true) <= 4e-16 * abs(true), (a, b, got, expected)
            else:
                assert abs(part) == abs(true), (a, b, got, expected)
                # C99 leaves signs open where an operand is infinite or NaN, but of real infinities
                settled = (np.isfinite(a) and np.isfinite(b)) or (
                    b == 0 and not np.isnan(a) and true != 0
                )
                assert not settled or np.signbit(part) == np.signbit(true), (a, b, got, expected)


def test_branch_cuts_follow_the_sign_of_zero():
    for name in ("log", "sqrt"):
        above = run(name, np.complex128(complex(-2.0, 0.0)))
        below = run(name, np.complex128(complex(-2.0, -0.0)))
        assert above.imag > 0 > below.imag
        assert above == np.conj(below)
