"""Cases of the group gradient: kinks, zeros, ties, infinities; both modes and second order."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from ways import in_every_way

import tilegrad as tg

inf, nan = math.inf, math.nan


def derivatives(f, *xs):
    """Gradients by reverse and by forward mode, which have to agree; and the second derivatives."""
    every = tuple(range(len(xs)))

    def both(*xs):
        first = tg.grad(f, argnums=every)(*xs), tg.jacfwd(f, argnums=every)(*xs)
        second = [
            [mode(tg.grad(f, argnums=i), argnums=i)(*xs) for i in every]
            for mode in (tg.jacrev, tg.jacfwd)
        ]
        return first, second

    # one compiled program: eager code would compile each kind of node by itself
    (backward, forward), (reverse, mixed) = in_every_way(both, *xs, ways=("jit",))
    for x, y in zip(backward, forward, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-14, atol=1e-300)
    for x, y in zip(reverse, mixed, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13, atol=1e-300)
    return backward, reverse


def close(got, expected, rtol=1e-12, atol=0.0):
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


# --------------------------------------------------------------------------------------- std


@pytest.mark.parametrize("value", [1.0, 0.0, -1e9, 0.1])
@pytest.mark.parametrize("ddof", [0, 1])
def test_stdconst(value, ddof):
    """std is a norm of the centred vector: the subgradient 0 where that vanishes."""
    x = np.full(4, value)
    (g,), (h,) = derivatives(lambda x: tg.std(x, ddof=ddof), x)
    close(g, np.zeros(4))
    assert np.isfinite(h).all()
    (g,), (h,) = derivatives(lambda x: tg.var(x, ddof=ddof), x)
    close(g, np.zeros(4))
    close(h, 2 * (np.eye(4) - 0.25) / (4 - ddof), atol=1e-15)
    rows = np.stack([x, np.arange(4.0)])
    g = tg.grad(lambda x: tg.sum(tg.std(x, axis=1)))(rows)
    close(g[0], np.zeros(4))
    close(g[1], (np.arange(4.0) - 1.5) / 4 / np.std(np.arange(4.0)))


@pytest.mark.parametrize("name", ["norm", "vector_norm"])
def test_stdconst_of_norms(name):
    (g,), (h,) = derivatives(getattr(tg.linalg, name), np.zeros(3))
    close(g, np.zeros(3))
    assert np.isfinite(h).all()
    (g,), (h,) = derivatives(lambda x: tg.sqrt(tg.sum(x * x)), np.zeros(3))
    close(g, np.zeros(3))
    assert np.isfinite(h).all()


# ------------------------------------------------------------------------------------- where

# functions with a singularity, where it is, and their value and two derivatives at 3
SINGULAR = {
    "sqrt": (tg.sqrt, -1.0, None),
    "sqrt at 0": (tg.sqrt, 0.0, None),
    "log": (tg.log, 0.0, None),
    "1 / x": (lambda x: 1.0 / x, 0.0, None),
    "exp": (tg.exp, 800.0, None),
    "pow": (lambda x: x**0.3, 0.0, None),
    "arcsin": (lambda x: tg.arcsin(x / 4), 4.0, None),
    "x / |x|": (lambda x: x / tg.sqrt(x * x), 0.0, None),
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.parametrize("chosen", [0, 1])
def test_where1(name, chosen):
    """Only the chosen branch counts, whichever side it stands on."""
    g, bad, _ = SINGULAR[name]

    def f(x):
        branches = (3.0 * x * x, g(x))
        pick = branches if chosen == 0 else branches[::-1]
        return tg.where((x == bad) == (chosen == 0), *pick)

    (d,), (dd,) = derivatives(f, np.float64(bad))
    close(d, 6 * bad)
    close(dd, 6.0)
    both = in_every_way(tg.vmap(tg.grad(f)), np.array([bad, 3.0]))
    close(both, [6 * bad, tg.grad(g)(3.0)])


def test_where1_given_values():
    f = lambda x: tg.where(x < 1, 3 * x, tg.sqrt(x))  # noqa: E731
    h = lambda x: tg.where(x > 5, 2 * x, tg.exp(x))  # noqa: E731
    assert [float(tg.grad(f)(0.0)), float(tg.grad(h)(800.0))] == [3.0, 2.0]
    assert float(tg.grad(tg.grad(f))(0.0)) == 0.0
    assert float(tg.grad(tg.grad(tg.grad(h)))(800.0)) == 0.0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tg.maximum(3.0 * x, x - tg.exp(x)),
        lambda x: -tg.minimum(-3.0 * x, tg.exp(x)),
        lambda x: tg.max(tg.stack([3.0 * x, x - tg.exp(x)])),
        lambda x: tg.select([x > 5, x > 1], [3.0 * x, tg.log(x - 5)], tg.exp(x)),
        lambda x: tg.clip(tg.exp(x), 0.0, 1.0) + 3.0 * x,
    ],
)
def test_where1_of_what_selects(f):
    (d,), (dd,) = derivatives(f, np.float64(800.0))
    assert (float(d), float(dd)) == (3.0, 0.0)


# ------------------------------------------------------------------------------------- power


def test_pow0():
    """Derivative in the base at 0: y x^(y-1), the limit from the right."""
    f = lambda x, y: x**y  # noqa: E731
    at = np.array([0.0, 1.0, 2.0, 3.0, 0.5, 1.5])
    g = in_every_way(lambda y: tg.vmap(tg.grad(f), in_axes=(None, 0))(0.0, y), at)
    close(g, [0.0, 1.0, 0.0, 0.0, inf, 0.0])
    forward = tg.vmap(lambda y: tg.jvp(lambda x: f(x, y), (0.0,), (1.0,))[1])(at)
    close(forward, g)
    second = tg.vmap(tg.grad(tg.grad(f)), in_axes=(None, 0))(0.0, at[:4])
    close(second, [0.0, 0.0, 2.0, 0.0])
    for n, expected in ((0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (0, 0.0), (1, 1.0), (2, 0.0), (3, 0.0)):
        assert float(tg.grad(lambda x, n=n: x**n)(0.0)) == expected
        assert float(tg.jvp(lambda x, n=n: x**n, (0.0,), (1.0,))[1]) == expected
    assert float(tg.grad(lambda x: x**0.5)(0.0)) in (0.0, inf)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_pow0_of_python_exponents(n):
    """Every derivative of x^n at 0 and at -2, by repeated grad."""
    f, coefficient = lambda x: x**n, 1.0
    for k in range(6):
        for x in (0.0, -2.0):
            expected = coefficient * x ** (n - k) if n >= k else 0.0
            close(f(x), expected)
        coefficient *= n - k
        f = tg.grad(f)


def test_powexp():
    """x^y log(x)^k -> 0 for x -> 0, y > 0; at y = 0 it is 0 too."""
    f = lambda x, y: x**y  # noqa: E731
    d = tg.grad(f, argnums=1)
    for y in (0.0, 0.5, 1.0, 2.0):
        assert float(d(0.0, y)) == 0.0
        assert float(tg.jvp(lambda y: f(0.0, y), (y,), (1.0,))[1]) == 0.0
    for y in (0.5, 1.0, 2.0):
        assert float(tg.grad(d, argnums=1)(0.0, y)) == 0.0
        assert float(tg.grad(tg.grad(d, argnums=1), argnums=1)(0.0, y)) == 0.0
    x, y = np.float64(1.7), np.float64(-2.3)
    (gx, gy), (hx, hy) = derivatives(f, x, y)
    log = math.log(x)
    close(
        [gx, gy, hx, hy],
        [y * x ** (y - 1), x**y * log, y * (y - 1) * x ** (y - 2), x**y * log**2],
    )
    mixed = tg.grad(tg.grad(f, argnums=0), argnums=1)(x, y)
    close(mixed, x ** (y - 1) * (1 + y * log))


# ------------------------------------------------------------------------------------ products


def products(v):
    """Derivative of the product and its second derivatives, without a division."""
    n = len(v)
    first = [math.prod(v[j] for j in range(n) if j != i) for i in range(n)]
    second = [
        [0.0 if i == k else math.prod(v[j] for j in range(n) if j not in (i, k)) for k in range(n)]
        for i in range(n)
    ]
    return first, second


@pytest.mark.parametrize("v", [[5.0, 0, 2, -3], [5.0, 0, 0, -3], [0.0], [0.0] * 4, [2.0, 3.0]])
def test_prod0(v):
    (g,), (h,) = derivatives(tg.prod, np.array(v))
    first, second = products(v)
    close(g, first)
    close(h, second)
    rows = np.stack([v, np.arange(1.0, 1 + len(v))])
    g = tg.grad(lambda x: tg.sum(tg.prod(x, axis=1)))(rows)
    close(g[0], first)
    close(g[1], products(list(rows[1]))[0])


@pytest.mark.parametrize(
    "v", [[3.0, 0, 4, 2], [0.0, 0, 1], [1.0, 2, 3], [0.0, 5.0, 2.0], [2.0, 0, 3, 0, 4], [0.0]]
)
def test_cumprod0(v):
    """Against the sum of products of the others in every prefix."""
    n, weights = len(v), np.arange(1.0, 1 + len(v))
    g, h = np.zeros(n), np.zeros((n, n))
    for k in range(1, n + 1):
        first, second = products(v[:k])
        g[:k] += weights[k - 1] * np.array(first)
        h[:k, :k] += weights[k - 1] * np.array(second)
    (got,), (second,) = derivatives(lambda v: tg.sum(tg.cumprod(v) * weights), np.array(v))
    close(got, g)
    close(second, h)


def test_cumprod0_given_values():
    g = tg.grad(lambda v: tg.sum(tg.cumprod(v)))(tg.array([3.0, 0.0, 4.0, 2.0]))
    assert g.tolist() == [1, 39, 0, 0]


# ---------------------------------------------------------------------------------------- ties


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (tg.max, [1.0, 4, 4, 2], [0, 0.5, 0.5, 0]),
        (tg.min, [1.0, 4, 1, 1], [1 / 3, 0, 1 / 3, 1 / 3]),
        (lambda x: tg.sort(x)[1], [1.0, 1, 3], [0, 1, 0]),
        (lambda x: tg.sort(x)[0], [1.0, 1, 3], [1, 0, 0]),
        (tg.median, [1.0, 1, 1, 3], [0, 0.5, 0.5, 0]),
        (tg.median, [2.0, 1, 2], [1, 0, 0]),
        (lambda x: tg.maximum(x[0], x[1]), [2.0, 2], [0.5, 0.5]),
        (lambda x: tg.minimum(x[0], x[1]), [2.0, 2], [0.5, 0.5]),
        (lambda x: tg.abs(x[0]), [0.0], [0]),
        (lambda x: tg.nn.relu(x[0]), [0.0], [0]),
        (lambda x: tg.clip(x[0], 0.0, 1.0), [1.0], [0]),
        (lambda x: tg.cummax(x)[-1], [1.0, 3, 3], None),
        (lambda x: tg.quantile(x, 0.5), [1.0, 1, 2], None),
        (lambda x: tg.ptp(x), [1.0, 1, 1], None),
        (lambda x: x[tg.argmax(x)], [1.0, 4, 4], [0, 1, 0]),
        (lambda x: tg.linalg.norm(x, ord=np.inf), [-2.0, 2, 1], [-0.5, 0.5, 0]),
    ],
)
def test_ties(f, x, expected):
    """A convex combination of the tied entries, the same in both modes (see ``derivatives``)."""
    x = np.array(x)
    (g,), (h,) = derivatives(f, x)
    if expected is None:
        assert abs(g.sum() - f(tg.asarray(x + 1)) + f(tg.asarray(x))) < 1e-14
        assert (np.abs(g) <= 1).all()
    else:
        close(g, expected)
    assert np.isfinite(h).all()


@pytest.mark.parametrize("n", [5, 40, 3000])
def test_ties_of_many(n, rng):
    x = rng.integers(0, 3, n).astype(float)
    g = in_every_way(tg.grad(tg.max), x)
    close(g, (x == x.max()) / (x == x.max()).sum())
    rows = rng.integers(0, 3, (4, n)).astype(float)
    g = tg.grad(lambda x: tg.sum(tg.min(x, axis=1)))(rows)
    tied = rows == rows.min(1, keepdims=True)
    close(g, tied / tied.sum(1, keepdims=True))


# --------------------------------------------------------------------------- logistic functions

SOFT = {
    "logaddexp": lambda x: tg.logaddexp(x, 0.0),
    "logaddexp, other side": lambda x: tg.logaddexp(0.0, x),
    "softplus": tg.nn.softplus,
    "logsumexp": lambda x: tg.logsumexp(tg.stack([x, tg.zeros_like(x)])),
    "-log_sigmoid": lambda x: -tg.nn.log_sigmoid(-x),
}


@pytest.mark.parametrize("name", SOFT)
def test_softplus0(name):
    f = SOFT[name]
    # a sum of exponentials is good to an ulp of its largest term
    atol = 2e-16 if name == "logsumexp" else 1e-320
    for x in (0.0, -0.0, 1.5, -30.0, 40.0, 745.0, -745.0):
        (d,), (dd,) = derivatives(f, np.float64(x))
        with mp.workdps(40):
            s = 1 / (1 + mp.exp(-mp.mpf(x)))
            close(d, float(s), atol=1e-320)
            if abs(x) < 50:
                close(dd, float(s * (1 - s)), rtol=1e-11, atol=atol)
            value = float(mp.log(1 + mp.exp(mp.mpf(x))))
        close(f(x), value, rtol=4e-16, atol=atol)
    third = tg.grad(tg.grad(tg.grad(f)))(0.0)
    close(third, 0.0, atol=1e-15)
    for x in (1000.0, -1000.0, -inf) + ((inf,) if name != "logsumexp" else ()):
        assert float(tg.grad(f)(x)) == float(x > 0)


def test_lseinf():
    g = tg.grad(tg.logsumexp)
    close(g(np.array([-inf, 1.0, 1.0])), [0, 0.5, 0.5])
    close(g(np.array([-inf, -inf])), [0, 0])  # the zero of the log-semiring
    masked = lambda v: tg.logsumexp(tg.where(np.array([True, False]), v, -inf))  # noqa: E731
    for x in ([-inf, 1.0, 1.0], [-inf, 2.0, -inf], [800.0, -800.0, 800.0]):
        (g,), (h,) = derivatives(tg.logsumexp, np.array(x))
        p = np.exp(np.array(x) - np.max(x))
        p /= p.sum()
        close(g, p)
        close(h, np.diag(p) - np.outer(p, p))
    (g,), (h,) = derivatives(masked, np.array([0.0, 1000.0]))
    close(g, [1, 0])
    close(h, np.zeros((2, 2)))
    rows = np.array([[-inf, 1.0, 1.0], [-inf] * 3, [0.0, 0.0, -inf]])
    g = in_every_way(tg.grad(lambda x: tg.sum(tg.logsumexp(x, axis=1)[::2])), rows)
    close(g, [[0, 0.5, 0.5], [0, 0, 0], [0.5, 0.5, 0]])
    assert float(tg.grad(lambda x: tg.logaddexp(x, -inf))(-inf)) == 0.5


@pytest.mark.parametrize("masked", [0, 1, 2, 3])
def test_lcse(masked):
    v = np.array([0.5, -1.0, 2.0])
    v[:masked] = -inf
    with np.errstate(divide="ignore"):
        expected = np.log(np.cumsum(np.exp(v)))
    close(in_every_way(tg.logcumsumexp, v), expected, atol=1e-15)
    for k in range(3):
        (g,), (h,) = derivatives(lambda v, k=k: tg.logcumsumexp(v)[k], v)
        p = np.where(np.arange(3) <= k, np.exp(v), 0.0)
        p = p / p.sum() if p.sum() else p
        close(g, p, atol=1e-16)
        close(h, np.diag(p) - np.outer(p, p), atol=1e-15)


# -------------------------------------------------------------------------------- hypot, xlogy


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200, 5e-324 * 2**40, 1e-160])
def test_hypot(scale):
    x, y = np.float64(3 * scale), np.float64(-4 * scale)
    assert in_every_way(tg.hypot, x, y) == pytest.approx(5 * scale, rel=3e-16, abs=0)
    g = tg.grad(tg.hypot, argnums=(0, 1))
    close(g(x, y), [x / np.hypot(x, y), y / np.hypot(x, y)], rtol=1e-15)
    forward = [tg.jvp(tg.hypot, (x, y), t)[1] for t in ((1.0, 0.0), (0.0, 1.0))]
    close(forward, g(x, y), rtol=1e-15)
    if 1e-100 < scale < 1e100:
        (_, _), (hx, hy) = derivatives(tg.hypot, x, y)
        close([hx, hy], [16 / 125, 9 / 125])
    for zero in ((0.0, 0.0), (-0.0, 0.0)):
        close(g(*zero), [0.0, 0.0])
        assert np.isfinite(
            np.asarray(tg.hessian(lambda v: tg.hypot(v[0], v[1]))(np.array(zero)))
        ).all()


def test_xlogy():
    f = tg.special.xlogy
    g = tg.grad(f, argnums=(0, 1))
    for y in (2.0, 0.3, 1e-300, 1e300):
        close(g(0.0, y), [math.log(y), 0.0])
    for x, y in itertools.product((0.25, 3.0, -1.5), (2.0, 0.3)):
        (gx, gy), (hx, hy) = derivatives(f, np.float64(x), np.float64(y))
        close([gx, gy, hx, hy], [math.log(y), x / y, 0.0, -x / y**2])
    close(in_every_way(f, np.array([0.0, 0.0, 2.0]), np.array([0.0, 3.0, 0.0])), [0.0, 0.0, -inf])
    assert np.isnan(np.asarray(f(0.0, nan)))
    s = tg.grad(lambda p: -tg.sum(f(p, p)))(np.array([0.25, 0.75]))
    close(s, [0.3862943611198906, -0.7123179275482191])
    assert in_every_way(lambda p: tg.sum(f(p, p)), np.array([0.0, 1.0, 0.0])) == 0.0


@pytest.mark.parametrize("name", ["entr", "xlog1py", "rel_entr", "kl_div"])
def test_xlogy_and_relatives(name):
    """Finite value and derivatives where the formula has 0 log 0."""
    f = getattr(tg.special, name)
    if name == "entr":
        assert float(f(0.0)) == 0.0
        (d,), (dd,) = derivatives(f, np.float64(0.3))
        close([d, dd], [-math.log(0.3) - 1, -1 / 0.3])
        return
    value = float(f(0.0, 2.0))
    assert value == {"xlog1py": 0.0, "rel_entr": 0.0, "kl_div": 2.0}[name]
    g = tg.grad(f, argnums=1)(0.0, 2.0)
    assert float(g) == {"xlog1py": 0.0, "rel_entr": 0.0, "kl_div": 1.0}[name]
    (gx, gy), _ = derivatives(f, np.float64(0.3), np.float64(0.7))
    expected = {
        "xlog1py": (math.log1p(0.7), 0.3 / 1.7),
        "rel_entr": (math.log(0.3 / 0.7) + 1, -0.3 / 0.7),
        "kl_div": (math.log(0.3 / 0.7), 1 - 0.3 / 0.7),
    }[name]
    close([gx, gy], expected)
