"""jet and laplacian: against mpmath, JAX's figures, nested derivatives; through loops and rules."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import tilegrad as tg

from .lines import raises_here

Fun = Callable[[Any], Any]


def nested(f: Fun, k: int) -> Fun:
    for _ in range(k):
        f = (lambda g: lambda x: tg.jvp(g, (x,), (1.0,))[1])(f)
    return f


# ----------------------------------------------------------------------------------------- values


COMPOSITIONS: dict[str, tuple[Fun, Fun]] = {
    "exp of sin": (lambda x: tg.exp(tg.sin(x)), lambda x: mpmath.exp(mpmath.sin(x))),
    "quotient": (lambda x: tg.log(x) / (1 + x**3), lambda x: mpmath.log(x) / (1 + x**3)),
    "power": (lambda x: x**x, lambda x: x**x),
    "root of tanh": (lambda x: tg.sqrt(tg.tanh(x)), lambda x: mpmath.sqrt(mpmath.tanh(x))),
    "logistic": (lambda x: tg.special.expit(x * x), lambda x: 1 / (1 + mpmath.exp(-x * x))),
    "erf": (lambda x: tg.special.erf(1 / x), lambda x: mpmath.erf(1 / x)),
    "tan": (lambda x: tg.tan(x) * tg.atan(x), lambda x: mpmath.tan(x) * mpmath.atan(x)),
    "gamma": (tg.special.gammaln, mpmath.loggamma),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_taylor_series_of_mpmath(name: str) -> None:
    f, reference = COMPOSITIONS[name]
    with mpmath.workdps(40):
        expected = [float(c) for c in mpmath.taylor(reference, mpmath.mpf(0.75), 8)]
    value, terms = tg.jet(f, (0.75,), ([1.0] + [0.0] * 7,), factorial_scaled=False)
    got = [float(x) for x in (value, *terms)]
    # Coefficients of one series, of which some are small by chance.
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13 * max(map(abs, expected)))


def test_figures_of_jax() -> None:
    """jax.experimental.jet of JAX 0.10.2 in 64 bits."""

    def f(x: Any, y: Any) -> Any:
        return tg.sin(x * y) * tg.exp(-x) / (1 + y * y), {"t": tg.tanh(x) + tg.sqrt(y)}

    series = ([1.0, 0.5, -0.25, 2.0], [0.3, -1.0, 0.0, 1.5])
    (a, b), (first, second) = tg.jet(f, (0.7, 1.9), series)
    np.testing.assert_allclose([a, b["t"]], [0.10461128248946998, 1.9827726523261855], rtol=1e-14)
    expected = [-0.07627784382932293, -0.3801330681935864, 0.7527548279939853, 2.9677626929994187]
    np.testing.assert_allclose(first, expected, rtol=1e-13)
    assert type(first) is list
    expected = [0.7435610274989605, -0.8211918062754159, -1.0999946741825564, 4.817284307862549]
    np.testing.assert_allclose(second["t"], expected, rtol=1e-13)
    _, (first, _) = tg.jet(f, (0.7, 1.9), series, factorial_scaled=False)
    expected = [-0.07627784382932293, -0.1698930207364791, 0.07834839137402781, 0.10652561366632832]
    np.testing.assert_allclose(first, expected, rtol=1e-13)


def test_trees_and_dtypes() -> None:
    p = {"a": np.float32([1.0, 2.0]), "b": 3.0}
    one = {"a": np.float32([1.0, 0.0]), "b": 1.0}
    still = {"a": np.zeros(2, np.float32), "b": 0.0}
    value, terms = tg.jet(lambda p: p["a"] ** 3, (p,), ([one, still, still],))
    assert [t.dtype for t in (value, *terms)] == [tg.float32] * 4
    np.testing.assert_array_equal(terms, [[3, 0], [6, 0], [6, 0]])
    value, terms = tg.jet(lambda x, y: tg.floor(x) + 1.0, (1.5, 2.0), ([1.0], [1.0]))
    assert float(terms[0]) == 0.0
    assert tg.jet(tg.sin, (0.0,), ([],))[1] == []
    _, terms = tg.jet(tg.exp, (0.0,), (np.array([1.0, 0.0]),))
    np.testing.assert_array_equal(terms, [1.0, 1.0])


def test_errors() -> None:
    with raises_here(ValueError, "as many terms for each argument, got .1, 2."):
        tg.jet(lambda x, y: x * y, (1.0, 2.0), ([1.0], [1.0, 0.0]))  # here
    with raises_here(ValueError, "expected one sequence of terms an argument, got 1 for 2"):
        tg.jet(lambda x, y: x * y, (1.0, 2.0), ([1.0],))  # here
    with raises_here(tg.ShapeError, "term 2 of x: expected the shape"):
        tg.jet(lambda x: x, (1.0,), ([1.0, np.ones(2)],))  # here
    with raises_here(TypeError, "the series of argument 0: expected a sequence of terms, got flo"):
        tg.jet(tg.sin, (1.0,), (1.0,))  # here
    with raises_here(tg.DTypeError, "expected a floating or complex argument"):
        tg.jet(lambda x: x, (np.arange(2),), ([1.0],))  # here


def test_a_rule_for_reverse_mode_alone_is_refused() -> None:
    f = tg.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, c: (2 * x * c,))
    with pytest.raises(tg.UnsupportedError, match="forward mode"):
        tg.jet(f, (1.0,), ([1.0, 0.0],))


# ------------------------------------------------------------------- regions, rules, transforms


def loop(x: Any) -> Any:
    return tg.fori_loop(0, 5, lambda i, y: tg.sin(y) * x + y, x)


def open_loop(x: Any) -> Any:
    return tg.while_loop(lambda y: y < 10.0, lambda y: y * x + tg.exp(-y), x)


def recorded(x: Any) -> Any:
    def step(c: Any, a: Any) -> Any:
        return c * a + tg.sin(c), c * c

    c, ys = tg.scan(step, x, tg.arange(1.0, 4.0) * x, reverse=True)
    return c + tg.sum(ys)


def branches(x: Any) -> Any:
    return tg.cond(x > 0, lambda y: tg.exp(y) * y, lambda y: y * y, x)


def saved(x: Any) -> Any:
    return tg.checkpoint(lambda y: tg.sin(y) * tg.exp(y))(x) * x


def ruled(x: Any) -> Any:
    """The rule says 3 times what the function has: orders follow the rule."""
    f = tg.custom_jvp(lambda y: tg.sin(y) * y)
    f.defjvp(lambda p, t: (f(p[0]), 3.0 * t[0] * tg.cos(p[0])))
    return tg.exp(f(x))


def captured(x: Any) -> Any:
    """A function with a rule that captures what moves."""
    c = x * x
    f = tg.custom_jvp(lambda y: tg.sin(y) * c)
    f.defjvp(lambda p, t: (f(p[0]), t[0] * tg.cos(p[0]) * c))
    return f(tg.exp(x))


def root(x: Any) -> Any:
    return tg.custom_root(
        lambda y: y * y * y + y - x,
        1.0,
        lambda f, y: tg.fori_loop(0, 40, lambda i, y: y - f(y) / (3 * y * y + 1), y),
        lambda g, b: b / g(1.0),
    )


PROGRAMS = [loop, open_loop, recorded, branches, saved, ruled, captured, root]


@pytest.mark.parametrize("f", PROGRAMS)
def test_programs_to_fourth_order(f: Fun) -> None:
    x = 1.3
    expected = [nested(f, k)(x) for k in range(1, 5)]

    def terms(x: Any) -> Any:
        return tg.jet(f, (x,), ([1.0, 0, 0, 0],))[1]

    for run in (terms, tg.jit(terms)):
        np.testing.assert_allclose(run(x), expected, rtol=1e-12)
    np.testing.assert_allclose(tg.jet(tg.jit(f), (x,), ([1.0, 0, 0, 0],))[1], expected, rtol=1e-12)
    np.testing.assert_allclose(tg.laplacian(f)(x), expected[1], rtol=1e-12)


@pytest.mark.parametrize("f", [loop, recorded, branches, saved])
def test_derivatives_of_a_jet(f: Fun) -> None:
    def second(x: Any) -> Any:
        return tg.jet(f, (x,), ([1.0, 0.0],))[1][1]

    third = nested(f, 3)(1.3)
    np.testing.assert_allclose(tg.grad(second)(1.3), third, rtol=1e-12)
    np.testing.assert_allclose(tg.jvp(second, (1.3,), (1.0,))[1], third, rtol=1e-12)
    xs = np.array([0.4, 1.3])
    np.testing.assert_allclose(tg.vmap(second)(xs), [second(x) for x in xs], rtol=1e-13)


def test_a_loop_carries_each_order_once() -> None:
    """Order 8 of a loop of two products: nested forward mode would carry 256 values."""

    def powers(x: Any) -> Any:
        return tg.fori_loop(0, 10, lambda i, y: y * x * 0.5, x)

    cost = tg.jit(lambda x: tg.jet(powers, (x,), ([1.0] + [0.0] * 7,))[1]).lower(1.1).cost()
    assert cost["flops"] < 10 * 2 * 9 * 9 * 2
    _, terms = tg.jet(powers, (1.1,), ([1.0] + [0.0] * 7,))
    exact = [0.5**10 * np.prod(np.arange(11.0, 11 - k, -1)) * 1.1 ** (11 - k) for k in range(1, 9)]
    np.testing.assert_allclose(terms, exact, rtol=1e-12)


def test_complex_arguments() -> None:
    z = 0.3 + 0.4j
    _, terms = tg.jet(lambda z: tg.exp(z * z), (z,), ([1.0 + 0j, 0j, 0j],))
    with mpmath.workdps(30):
        expected = [complex(mpmath.diff(lambda z: mpmath.exp(z * z), z, k)) for k in (1, 2, 3)]
    np.testing.assert_allclose(terms, expected, rtol=1e-13)


# -------------------------------------------------------------------------------------- laplacian


def network(width: int, hidden: int) -> Fun:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((width, hidden)) / 4
    b = rng.standard_normal((hidden, hidden)) / 8
    c = rng.standard_normal(hidden) / 8
    return lambda x: tg.dot(tg.tanh(tg.dot(tg.tanh(tg.dot(x, a)), b)), c)


def test_laplacian_is_the_trace_of_the_hessian() -> None:
    rng = np.random.default_rng(1)
    u, x = network(16, 32), rng.standard_normal(16)
    expected = np.trace(np.asarray(tg.hessian(u)(x)))
    np.testing.assert_allclose(tg.laplacian(u)(x), expected, rtol=1e-12)
    np.testing.assert_allclose(tg.jit(tg.laplacian(u))(x), expected, rtol=1e-12)


def test_laplacian_of_many_results_and_arguments() -> None:
    def f(p: Any, y: Any) -> Any:
        return {"a": p["u"] ** 3 * tg.sum(y * y), "b": p["v"] * y, "c": tg.exp(-p["v"])}, "aux"

    p, y = {"u": np.array([1.0, 2.0]), "v": 0.5}, np.array([1.0, 2.0, 3.0])
    found, aux = tg.laplacian(f, argnums=(0, 1), has_aux=True)(p, y)
    assert aux == "aux"
    u = p["u"]
    np.testing.assert_allclose(found["a"], 6 * u * 14 + u**3 * 6, rtol=1e-14)
    np.testing.assert_array_equal(found["b"], np.zeros(3))
    np.testing.assert_allclose(found["c"], np.exp(-0.5), rtol=1e-14)
    only, _ = tg.laplacian(f, has_aux=True)(p, y)
    np.testing.assert_allclose(only["a"], 6 * u * 14, rtol=1e-14)


def test_harmonic_functions() -> None:
    """Exactly known: log of the radius in the plane, 1/r in space, and |x|^2."""
    x = np.array([0.6, -1.1, 0.4])
    plane = tg.laplacian(lambda x: tg.log(tg.sum(x * x)))(x[:2])
    space = tg.laplacian(lambda x: 1 / tg.linalg.norm(x))(x)
    assert abs(float(plane)) < 1e-14
    assert abs(float(space)) < 1e-14
    assert float(tg.laplacian(lambda x: tg.sum(x * x))(x)) == 6.0


def test_laplacian_is_cheaper_than_the_hessian() -> None:
    u, x = network(16, 64), np.zeros(16)

    def flops(f: Fun) -> float:
        return float(tg.jit(f).lower(x).cost()["flops"])

    own, value = flops(tg.laplacian(u)), flops(u)
    assert own < 0.55 * flops(lambda x: tg.trace(tg.hessian(u)(x)))
    assert own < 18 * value  # 16 directions, the value, and one Laplacian


def test_laplacian_under_vmap_and_grad() -> None:
    """The loss of a Poisson problem, differentiated by a parameter."""
    points = np.random.default_rng(2).uniform(0, 1, (5, 2))

    def loss(w: Any) -> Any:
        residual = tg.vmap(tg.laplacian(lambda x: tg.sin(w * x[0]) * tg.exp(x[1])))(points)
        return tg.sum(residual**2)

    def exact(w: float) -> Any:
        return np.sum(((1 - w * w) * np.sin(w * points[:, 0]) * np.exp(points[:, 1])) ** 2)

    np.testing.assert_allclose(loss(1.5), exact(1.5), rtol=1e-12)
    slope = (exact(1.5 + 1e-6) - exact(1.5 - 1e-6)) / 2e-6
    np.testing.assert_allclose(tg.grad(loss)(1.5), slope, rtol=1e-7)


def test_laplacian_errors() -> None:
    with raises_here(tg.DTypeError, "expected real arguments and results, got x: c128"):
        tg.laplacian(lambda x: x)(1.0 + 0j)  # here
    with raises_here(tg.DTypeError, "expected floating results"):
        tg.laplacian(lambda x: x > 0)(1.0)  # here
