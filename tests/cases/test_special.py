"""Cases of the group special: gamma and beta for all signs, with derivatives of every order."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special as scipy_special
from ways import in_every_way, same_bits

import tilegrad as tg

EULER = 0.57721566490153286


def exact(f, *xs):
    with mp.workdps(40):
        return float(f(*[mp.mpf(float(x)) for x in xs]))


def test_betaneg():
    y = in_every_way(tg.special.beta, np.array([-0.75, -1.5]), np.array([2.0, 2.25]))
    np.testing.assert_allclose(y, [-5.333333333333333, 2.1850479619100998], rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_betaneg_of_all_signs(dtype):
    """Sign and size of gamma(a) gamma(b) / gamma(a + b)."""
    numbers = [-4.25, -2.5, -1.5, -0.75, -0.25, 0.25, 1.0, 2.25, 7.5, 20.0]
    grid = [(a, b) for a, b in itertools.product(numbers, numbers) if a + b > 0 or (a + b) % 1]
    a, b = (np.array(column, dtype) for column in zip(*grid, strict=True))
    right = [exact(mp.beta, x, y) for x, y in zip(a, b, strict=True)]
    rtol = 2e-14 if dtype == "float64" else 1e-5
    value, log = in_every_way(lambda a, b: (tg.special.beta(a, b), tg.special.betaln(a, b)), a, b)
    assert value.dtype == dtype
    np.testing.assert_allclose(value, right, rtol=rtol)
    np.testing.assert_allclose(log, np.log(np.abs(right)), rtol=rtol, atol=rtol)
    sign = in_every_way(tg.special.gammasgn, a)
    same_bits(sign, scipy_special.gammasgn(a))


def test_betaneg_gradient():
    """beta (digamma(a) - digamma(a + b)), in both modes."""
    for a, b in ((-0.75, 2.0), (-1.5, 2.25), (3.0, 0.5)):

        def both(a, b):
            f = tg.special.beta
            return tg.grad(f, argnums=(0, 1))(a, b), tg.jacfwd(f, argnums=(0, 1))(a, b)

        backward, forward = in_every_way(both, a, b, ways=("jit",))
        with mp.workdps(40):
            x, y = mp.mpf(a), mp.mpf(b)
            slopes = [float(mp.beta(x, y) * (mp.digamma(v) - mp.digamma(x + y))) for v in (x, y)]
        np.testing.assert_allclose(backward, slopes, rtol=1e-13)
        np.testing.assert_allclose(forward, slopes, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gammaln(dtype, rng):
    x = np.concatenate([rng.uniform(0.01, 30, 40), rng.uniform(-9, 0, 20), [1, 2, 1e5]])
    x = x.astype(dtype)
    names = ("gammaln", "digamma", "psi")
    log, slope, psi = in_every_way(lambda x: [getattr(tg.special, n)(x) for n in names], x)
    rtol = 1e-14 if dtype == "float64" else 1e-6
    references = (lambda v: mp.re(mp.loggamma(v)), mp.digamma)
    for got, f in zip((log, slope), references, strict=True):
        assert got.dtype == dtype
        np.testing.assert_allclose(got, [exact(f, v) for v in x], rtol=rtol, atol=rtol)
    same_bits(psi, slope)
    same_bits(in_every_way(tg.special.gammaln, np.array([1.0, 2.0], dtype)), np.zeros(2, dtype))


@pytest.mark.parametrize("x", [0.3, 1.4616321449683622, 5.0, 123.0, -1.75])
def test_gammaln_derivatives(x):
    """grad again and again, by reverse, forward and mixed modes, is polygamma."""

    def reverse(f):
        return tg.grad(f)

    def forward(f):
        return lambda x: tg.jvp(f, (x,), (1.0,))[1]

    chains = [(reverse,) * 4, (forward,) * 4, (reverse, forward) * 2]
    for chain in chains:
        f, results = tg.special.gammaln, []
        for transform in chain:
            f = transform(f)
            results.append(f)
        got = in_every_way(lambda x, fs=tuple(results): [f(x) for f in fs], x, ways=("jit",))
        right = [exact(mp.digamma, x)] + [
            exact(lambda v, n=n: mp.polygamma(n, v), x) for n in (1, 2, 3)
        ]
        np.testing.assert_allclose(got, right, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma(n):
    x = np.array([0.05, 0.5, 1.0, 2.5, 10.0, 1e4, -0.4, -3.3])
    got = in_every_way(lambda x: tg.special.polygamma(n, x), x)
    right = [exact(lambda v: mp.polygamma(n, v), v) for v in x]
    np.testing.assert_allclose(got, right, rtol=3e-14)


def test_polygamma_given_values():
    assert float(tg.special.digamma(1.0)) == -EULER
    assert float(tg.special.polygamma(1, 1.0)) == pytest.approx(math.pi**2 / 6, rel=3e-16)
    assert tg.special.polygamma(1, tg.array([1, 2])).dtype is tg.float64


@pytest.mark.parametrize("n", [-1, 1.0, True, "1", np.array([1])])
def test_polygamma_orders_that_are_none(n):
    with pytest.raises(ValueError, match="polygamma: expected an integer order of at least 0"):
        tg.special.polygamma(n, 1.0)


def test_gammaln_of_other_types():
    assert tg.special.gammaln(tg.array([3, 4])).tolist() == [math.log(2.0), math.log(6.0)]
    with pytest.raises(tg.DTypeError, match="lgamma"):
        tg.special.gammaln(tg.array([1j]))
