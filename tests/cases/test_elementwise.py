"""Cases of the group elementwise: integers as Python's, signed zeros, promotion, last bits.

Named by the ids of the collection of public failures they stand for; each tests the whole kind.
"""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from ways import in_every_way, same_bits, ulps

import tilegrad as tg

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = SIGNED + UNSIGNED
FLOATS = ["float32", "float64"]


def integer_pairs(dtype, *, zero=False):
    """All pairs in 8 bits; in more, of numbers around the ends and small ones."""
    info = np.iinfo(dtype)
    if info.bits == 8:
        numbers = range(info.min, info.max + 1)
    else:
        numbers = [n + d for n in (info.min, info.max) for d in (-1, 0, 1, 2)]
        numbers = sorted({*numbers, *range(-13, 14), 1000, -999, 12345, 2**15 - 1, -(2**15)})
        numbers = [n for n in numbers if info.min <= n <= info.max]
    pairs = [(a, b) for a, b in itertools.product(numbers, numbers) if zero or b]
    return tuple(np.array(column, dtype) for column in zip(*pairs, strict=True))


def wrapped(numbers, dtype):
    """Python integers modulo 2**bits."""
    bits = np.iinfo(dtype).bits
    return np.array([n % 2**bits for n in numbers], f"uint{bits}").view(dtype)


def truncated(a, b):
    """C's remainder."""
    return a - b * (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)


# ------------------------------------------------------------------------------- division


@pytest.mark.parametrize("dtype", INTEGERS)
def test_intdiv(dtype):
    a, b = integer_pairs(dtype)
    q, r, (q2, r2) = in_every_way(lambda a, b: (a // b, a % b, tg.divmod(a, b)), a, b)
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    same_bits(q, wrapped([x // y for x, y in pairs], dtype))
    same_bits(r, wrapped([x % y for x, y in pairs], dtype))
    same_bits(q2, q)
    same_bits(r2, r)
    with np.errstate(over="ignore"):
        same_bits(q * b + r, a)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("divisor", [3, 4, 7, -4, -1])
def test_intdivrt(dtype, divisor):
    """A divisor known when compiling and one known when running give the same."""
    if divisor < 0 and dtype in UNSIGNED:
        divisor += 100
    a = integer_pairs(dtype)[0][::37].copy()
    run_time = np.full(a.shape, divisor, dtype)

    def literal(a):
        return a % divisor, a // divisor

    m, d = in_every_way(literal, a, ways=("eager", "jit"))
    m2, d2 = in_every_way(lambda a, b: (a % b, a // b), a, run_time, ways=("eager", "jit"))
    same_bits(m, m2)
    same_bits(d, d2)
    same_bits(m, wrapped([x % divisor for x in a.tolist()], dtype))
    same_bits(d, wrapped([x // divisor for x in a.tolist()], dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_remzero(dtype):
    """Remainders take the divisor's sign, zeros too; quotients keep the sign of theirs."""
    numbers = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 7.0, -7.0, 1e-300, 3e38, math.inf, -math.inf]
    grid = [(x, y) for x in (*numbers, math.nan) for y in (*numbers, math.nan)]
    x, y = (np.array(column).astype(dtype) for column in zip(*grid, strict=True))
    rem, floor, (q, r) = in_every_way(
        lambda x, y: (tg.remainder(x, y), x // y, tg.divmod(x, y)), x, y
    )
    with np.errstate(all="ignore"):
        same_bits(rem, np.remainder(x, y))
        same_bits(floor, np.floor_divide(x, y))
        same_bits(q, np.divmod(x, y)[0])
        same_bits(r, np.divmod(x, y)[1])
    given = in_every_way(tg.remainder, np.array([-1.0, 1.0]), np.array([1.0, -1.0]))
    same_bits(given, [0.0, -0.0])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_fmodint(dtype):
    a, b = integer_pairs(dtype)
    exact = [truncated(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    same_bits(in_every_way(tg.fmod, a, b), wrapped(exact, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_fmodint_of_floats(dtype, rng):
    x = np.concatenate([rng.normal(0, 100, 50), [0.0, -0.0, -7.0, 7.0, math.inf]]).astype(dtype)
    y = np.concatenate([rng.normal(0, 3, 50), [-5.0, 5.0, 5.0, -5.0, 2.0]]).astype(dtype)
    with np.errstate(all="ignore"):
        same_bits(in_every_way(tg.fmod, x, y), np.fmod(x, y))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("f", [tg.floor_divide, tg.remainder, tg.fmod, tg.divmod])
def test_intdiv0(f, dtype):
    """The CPU says so, in every way of running; floats follow IEEE."""
    a, b = np.array([1, 7, 3], dtype), np.array([2, 0, 1], dtype)
    for run in (f, tg.jit(f), tg.vmap(f), tg.jit(tg.vmap(f)), lambda a, b: f(a, 0)):
        with pytest.raises(ZeroDivisionError, match=r"expected integer divisors other than 0"):
            tg.eval(run(tg.asarray(a), tg.asarray(b)))
    tg.eval(f(tg.zeros(0, dtype), tg.zeros(0, dtype)))  # of nothing

    def guarded(a, b):
        return f(a, tg.where(b == 0, 1, b))

    tg.eval(tg.jit(guarded)(a, b))


@pytest.mark.parametrize("dtype", SIGNED)
def test_intdiv0_and_the_smallest_by_minus_one(dtype):
    a = np.array([np.iinfo(dtype).min, np.iinfo(dtype).min + 1], dtype)
    q, r = in_every_way(lambda a, b: (a // b, a % b), a, np.full(2, -1, dtype))
    same_bits(q, np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype))
    same_bits(r, np.zeros(2, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_intdiv0_of_floats(dtype):
    x = np.array([1.0, -1.0, 0.0], dtype)
    with np.errstate(all="ignore"):
        same_bits(in_every_way(lambda x, y: x // y, x, 0 * x), x // (0 * x))


# ---------------------------------------------------------------------------------- powers


@pytest.mark.parametrize("dtype", SIGNED)
def test_intpowneg(dtype):
    x, n = np.array([2, 3], dtype), np.array([1, -1], dtype)
    for run in (lambda f: f, tg.jit, tg.vmap):
        with pytest.raises(ValueError, match="expected exponents of integers to be at least 0"):
            tg.eval(run(lambda x, n: x**n)(tg.asarray(x), tg.asarray(n)))
        with pytest.raises(ValueError, match="expected exponents of integers to be at least 0"):
            tg.eval(run(lambda x: x**-1)(tg.asarray(x)))
    floating = in_every_way(lambda x: x**-2.0, np.array([2, 4], dtype))
    np.testing.assert_array_equal(floating, [0.25, 0.0625])
    ones = in_every_way(lambda x, n: x**n, np.array([-1, 0, 1], dtype), np.ones(3, dtype))
    same_bits(ones, np.array([-1, 0, 1], dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_intpowneg_and_all_other_powers(dtype):
    low = -5 if dtype in SIGNED else 0
    pairs = list(itertools.product(range(low, 12), range(70)))
    x, n = (np.array(c, dtype) for c in zip(*pairs, strict=True))
    same_bits(in_every_way(lambda x, n: x**n, x, n), wrapped([a**b for a, b in pairs], dtype))


def test_intdefault():
    assert tg.arange(7).dtype == tg.array([1, 2]).dtype == tg.array(3).dtype == tg.int64
    y = in_every_way(lambda k: 1 / 256**k, np.arange(1, 7))
    np.testing.assert_array_equal(y, [2.0**-k for k in range(8, 49, 8)])
    same_bits(tg.jit(lambda: 1 / 256 ** tg.arange(1, 7))(), y)


# ------------------------------------------------------------------------- last bits of exp, log


@pytest.mark.parametrize(
    ("name", "low", "high", "dtype"),
    [
        ("exp", -745.1, -708.0, "float64"),
        ("exp", -103.9, -87.0, "float32"),
        ("exp2", -1074.9, -1022.0, "float64"),
        ("exp2", -149.0, -126.0, "float32"),
        ("cosh", 709.0, 710.47, "float64"),
        ("cosh", -89.41, -88.0, "float32"),
        ("sinh", -710.47, -709.0, "float64"),
        ("sinh", 88.0, 89.41, "float32"),
    ],
)
def test_expsub(name, low, high, dtype, rng):
    x = rng.uniform(low, high, 60).astype(dtype)
    got = in_every_way(getattr(tg, name), x)
    with mp.workdps(40):
        function = {"exp2": lambda v: mp.mpf(2) ** v}.get(name) or getattr(mp, name)
        assert ulps(got, [function(mp.mpf(float(v))) for v in x]) <= 1


def test_expsub_given_values():
    assert float(tg.exp(-740.0)) == 85 * 5e-324  # 84.78 steps
    assert abs(float(tg.cosh(710.4)) / 1.6663642832806496e308 - 1) < 4.5e-16
    assert float(tg.sinh(-710.4)) == -float(tg.sinh(710.4))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name", ["log1p", "expm1", "sinh", "asinh", "tanh", "atanh", "sin", "atan"]
)
def test_log1ptiny(name, dtype):
    """f(x) = x to the last bit for tiny x, whatever it is fused with; the derivative is 1."""
    f = getattr(tg, name)
    tiny = np.finfo(dtype).eps ** 2
    x = np.array([tiny, -tiny, tiny * 1.25, np.finfo(dtype).smallest_subnormal, 0.0, -0.0], dtype)
    fused = in_every_way(lambda x: f(x) + tg.exp(x) * 0 + (f(-x) - f(-x)), x[:4])
    same_bits(fused, x[:4])
    same_bits(in_every_way(f, x), x)
    np.testing.assert_array_equal(tg.vmap(tg.grad(f))(x), np.ones_like(x))


# --------------------------------------------------------------------- conversions, promotion


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_u8diff(dtype):
    a, b = integer_pairs(dtype, zero=True)
    wide = {"uint8": "int16", "uint16": "int32", "uint32": "int64", "uint64": "int64"}[dtype]

    def difference(a, b):
        return tg.abs(a.astype(wide) - b.astype(wide))

    exact = [
        abs(int(wrapped([x], wide)[0]) - int(wrapped([y], wide)[0]))
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    same_bits(in_every_way(difference, a, b), wrapped(exact, wide))
    same_bits(in_every_way(lambda a: a.astype("float64"), a), a.astype("float64"))


@pytest.mark.parametrize("first", INTEGERS)
def test_u64i64(first):
    """NumPy's lattice for all pairs: uint64 with a signed type is float64."""
    x = np.array([np.iinfo(first).max, 1], first)
    others = [np.array([1, 0], second) for second in [*INTEGERS, "bool", "float32"]]
    got = in_every_way(lambda x, *ys: [x + y for y in ys], x, *others, ways=("eager", "jit"))
    for value, y in zip(got, others, strict=True):
        with np.errstate(over="ignore"):
            same_bits(value, x + y)
    if first == "uint64":
        x = np.array([10**18 + 1], "uint64")
        same_bits(in_every_way(lambda x, y: x + y, x, np.array([0])), np.array([1e18]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_frexp(dtype, rng):
    f = np.finfo(dtype)
    edges = [f.smallest_subnormal, 3 * f.smallest_subnormal, f.tiny, f.max, 0.0, -0.0, 3.0, 0.5]
    x = np.concatenate([edges, -np.array(edges), rng.normal(size=20), [math.inf, math.nan]])
    x = x.astype(dtype)
    m, e = in_every_way(tg.frexp, x)
    expected = np.frexp(x)
    same_bits(m, expected[0])
    finite = np.isfinite(x)
    np.testing.assert_array_equal(e[finite], expected[1][finite])
    same_bits(in_every_way(lambda x: tg.ldexp(*tg.frexp(x)), x[finite]), x[finite])
    for v, exponent in ((3.0, 2), (-0.375, -1), (1e-300, -996)):
        assert float(tg.grad(lambda x: tg.frexp(x)[0])(v)) == math.ldexp(1.0, -exponent)
