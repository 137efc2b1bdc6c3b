"""Cases of the group higher order: sinc, softmax cross entropy, kinks in Hessians."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from ways import in_every_way

import tilegrad as tg


def compositions(f, x):
    """The Hessian by every pair of modes and column by column, in one program."""
    modes = (tg.jacfwd, tg.jacrev)

    def every(x):
        found = [outer(inner(f))(x) for outer, inner in itertools.product(modes, modes)]
        columns = [tg.hvp(f, (x,), (e,)) for e in np.eye(len(x))]
        columns = [c[-1] if isinstance(c, tuple) else c for c in columns]
        return [*found, tg.hessian(f)(x), tg.stack(columns, axis=1)]

    return in_every_way(every, x, ways=("jit",))


@pytest.mark.parametrize("order", range(5))
def test_sinc(order):
    """Derivatives at and near 0, where the quotient rule cancels, against Taylor's series."""
    f = tg.sinc
    for _ in range(order):
        f = tg.grad(f)
    for x in (0.0, -0.0, 1e-8, -1e-4, 0.01, 0.5, 1.0, 2.75):
        with mp.workdps(50):
            exact = mp.diff(lambda v: mp.sincpi(v), mp.mpf(x), order) if x else None
            if not x:  # (-1)^k pi^2k / (2k + 1), k = order / 2
                k = order // 2
                exact = (-1) ** k * mp.pi ** (2 * k) / (2 * k + 1) if order % 2 == 0 else 0
        np.testing.assert_allclose(float(f(x)), float(exact), rtol=1e-12, atol=1e-13)
    forward = tg.sinc
    for _ in range(order):
        forward = lambda x, g=forward: tg.jvp(g, (x,), (1.0,))[1]  # noqa: E731
    np.testing.assert_allclose(float(forward(0.3)), float(f(0.3)), rtol=1e-13)


def test_sinc_given_values():
    assert float(tg.grad(tg.sinc)(0.0)) == 0.0
    assert float(tg.grad(tg.grad(tg.sinc))(0.0)) == pytest.approx(-(math.pi**2) / 3, rel=1e-15)


@pytest.mark.parametrize("z", [[0.0, 0.0], [1.0, -2.0, 0.5], [800.0, 0.0, 799.0], [0.0] * 5])
def test_xenthess(z):
    z = np.array(z)
    p = np.exp(z - z.max())
    p /= p.sum()
    exact = np.diag(p) - np.outer(p, p)
    losses = [
        lambda z: tg.logsumexp(z) - z[0],
        lambda z: -tg.nn.log_softmax(z)[0],
        lambda z: -tg.sum(tg.one_hot(0, len(z)) * tg.nn.log_softmax(z)),
    ]
    if np.abs(z).max() < 100:  # elsewhere a probability underflows
        losses.append(lambda z: -tg.log(tg.nn.softmax(z)[0]))
    for f in losses:
        for h in compositions(f, z):
            np.testing.assert_allclose(h, exact, rtol=1e-12, atol=1e-15)
    batch = np.stack([z, z[::-1], z + 1])
    hs = in_every_way(tg.vmap(tg.hessian(losses[0])), batch, ways=("eager", "jit"))
    np.testing.assert_allclose(hs[2], exact, rtol=1e-12, atol=1e-15)


def test_abs4():
    """abs'(0) = 0, so the cross terms vanish; all compositions agree."""
    f = lambda x: tg.sum(tg.abs(x)) ** 4 + tg.exp(x[1])  # noqa: E731
    for h in compositions(f, np.array([2.0, 0.0])):
        np.testing.assert_array_equal(h, [[48, 0], [0, 1]])
    for h in compositions(f, np.array([2.0, -1.0])):
        np.testing.assert_allclose(h, [[108, -108], [-108, 108 + math.exp(-1)]], rtol=1e-15)


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (tg.abs, 0.0),
        (tg.nn.relu, 0.0),
        (lambda x: tg.maximum(x, 0.0), 0.5),
        (lambda x: tg.sqrt(x * x), 0.0),
        (lambda x: tg.hypot(x, 0.0), 0.0),
        (tg.sign, 0.0),
    ],
)
def test_abs4_of_other_kinks(f, slope):
    """The documented derivative k at the kink enters second order as 12 s^2 k^2."""
    loss = lambda x: tg.sum(f(x)) ** 4  # noqa: E731
    x = np.array([2.0, 0.0])
    s, k = float(tg.sum(f(tg.asarray(x)))), float(tg.grad(f)(0.0))
    assert k == slope
    at_two = float(tg.grad(f)(2.0))
    exact = 12 * s**2 * np.outer([at_two, k], [at_two, k])
    for h in compositions(loss, x):
        np.testing.assert_allclose(h, exact, rtol=1e-14, atol=0)
