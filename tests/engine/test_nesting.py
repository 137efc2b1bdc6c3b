"""Transforms in any order give the same numbers."""

import itertools
from typing import Any

import numpy as np
import pytest

import tilegrad as tg

XS = np.array([0.4, 1.3, -0.8])


def f(x: Any) -> Any:
    return tg.sin(x) * x * x


def df(x: Any) -> Any:
    return np.cos(x) * x * x + 2 * np.sin(x) * x


def d2f(x: Any) -> Any:
    return -np.sin(x) * x * x + 4 * np.cos(x) * x + 2 * np.sin(x)


WRAPS = {
    "plain": lambda g: g,
    "jit": tg.jit,
    "vjp": lambda g: lambda x: tg.vjp(g, x)[0],
    "jvp": lambda g: lambda x: tg.jvp(g, (x,), (tg.ones_like(x),))[0],
    "linearize": lambda g: lambda x: tg.linearize(g, x)[0],
    "vmap of one": lambda g: lambda x: tg.vmap(g)(tg.reshape(x, (1,)))[0],
}
GRADS = {
    "grad": tg.grad,
    "value_and_grad": lambda g: lambda x: tg.value_and_grad(g)(x)[1],
    "jacfwd": tg.jacfwd,
    "jacrev": tg.jacrev,
    "jvp": lambda g: lambda x: tg.jvp(g, (x,), (1.0,))[1],
    "vjp": lambda g: lambda x: tg.vjp(g, x)[1](1.0)[0],
    "linearize": lambda g: lambda x: tg.linearize(g, x)[1](1.0),
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("a", "b", "c"), list(itertools.product(WRAPS, GRADS, WRAPS)))
def test_first_derivative(a: str, b: str, c: str) -> None:
    g = WRAPS[a](GRADS[b](WRAPS[c](f)))
    assert float(g(0.4)) == pytest.approx(df(0.4), rel=1e-14)
    np.testing.assert_allclose(tg.vmap(g)(XS), df(XS), rtol=1e-13)
    np.testing.assert_allclose(tg.jit(tg.vmap(g))(XS), df(XS), rtol=1e-13)


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(("a", "b"), list(itertools.product(GRADS, repeat=2)))
@pytest.mark.parametrize("between", ["plain", "jit", "vmap of one"])
def test_second_derivative(a: str, b: str, between: str) -> None:
    g = GRADS[a](WRAPS[between](GRADS[b](f)))
    assert float(g(0.4)) == pytest.approx(d2f(0.4), rel=1e-13)
    np.testing.assert_allclose(tg.jit(tg.vmap(tg.jit(g)))(XS), d2f(XS), rtol=1e-12)


def test_gradient_of_a_sum_over_examples() -> None:  # BT05
    w = np.array([0.5, -1.0])
    data = np.arange(6.0).reshape(3, 2)

    def loss(w: Any, x: Any) -> Any:
        return tg.sin(tg.sum(w * x))

    each = tg.vmap(tg.grad(loss), in_axes=(None, 0))(w, data)
    np.testing.assert_allclose(each, np.cos(data @ w)[:, None] * data, rtol=1e-14)
    total = tg.grad(lambda w: tg.sum(tg.vmap(lambda x: loss(w, x))(data)))(w)
    np.testing.assert_allclose(total, np.asarray(each).sum(0), rtol=1e-13)
    np.testing.assert_allclose(tg.jit(tg.vmap(tg.grad(loss), (None, 0)))(w, data), each, rtol=1e-14)


def test_second_space_derivative_with_captured_parameters() -> None:  # AD14
    def u(p: Any, x: Any) -> Any:
        return tg.sin(p * x)

    def loss(p: Any) -> Any:
        u_xx = tg.vmap(tg.grad(tg.grad(lambda x: u(p, x))))(XS)
        return tg.sum(u_xx)

    p = 0.7
    expected = np.sum(-2 * p * np.sin(p * XS) - p**2 * XS * np.cos(p * XS))
    assert float(tg.grad(loss)(p)) == pytest.approx(expected, rel=1e-13)
    assert float(tg.jit(tg.grad(loss))(p)) == pytest.approx(expected, rel=1e-13)


def test_closures_over_tracers_of_several_levels() -> None:
    def outer(x: Any) -> Any:
        def middle(y: Any) -> Any:
            return tg.sum(tg.vmap(lambda z: tg.jit(lambda t: t * x * y * z)(2.0))(XS))

        return tg.grad(middle)(x) * x

    s = XS.sum()
    assert float(outer(tg.asarray(3.0))) == pytest.approx(2 * 9 * s)
    assert float(tg.grad(outer)(3.0)) == pytest.approx(2 * 2 * 3 * s)
    assert float(tg.jit(tg.grad(outer))(3.0)) == pytest.approx(2 * 2 * 3 * s)


def test_jit_inside_grad_may_not_look_at_values() -> None:
    def g(x: Any) -> Any:
        return x if x > 0 else -x

    assert float(tg.grad(g)(-2.0)) == -1.0
    with pytest.raises(tg.TracerError, match=r"depends on argument x of jit\(g\)"):
        tg.grad(tg.jit(g))(-2.0)


def test_concrete_calls_of_a_jitted_function_inside_grad_are_compiled() -> None:
    table = tg.jit(lambda n: tg.sin(n) * 3.0)
    table(1.0)
    before = tg.jit.stats().calls
    assert float(tg.grad(lambda x: x * table(1.0))(2.0)) == pytest.approx(3 * np.sin(1.0))
    assert tg.jit.stats().calls == before + 1


def test_same_bits_eager_and_jitted() -> None:  # ED18
    x = np.random.default_rng(3).normal(size=37)

    def g(x: Any) -> Any:
        return tg.sum(tg.exp(tg.sin(x)) * x) / 7.0

    for transform in (lambda h: h, tg.grad, tg.jacfwd):
        once = np.asarray(transform(g)(x))
        again = np.asarray(transform(g)(x))
        jitted = np.asarray(tg.jit(transform(g))(x))
        assert once.tobytes() == again.tobytes() == jitted.tobytes()
