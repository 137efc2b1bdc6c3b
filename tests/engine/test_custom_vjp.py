"""``custom_vjp``: reverse mode by the rule, to any order, through every transform."""

import itertools

import numpy as np
import pytest

import tilegrad as tg

X = np.array([0.3, -1.2, 2.0])


def sine(factor=1.0, forward=False):
    """sin, whose pullback is told from the true one by a factor."""

    @tg.custom_vjp
    def f(x):
        return tg.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, bar: (factor * tg.cos(x) * bar,))
    if forward:
        f.defjvp(lambda p, t: (f(*p), factor * tg.cos(p[0]) * t[0]))
    return f


def log1pexp():
    """Stable at large arguments, where the derivative of the formula is inf / inf."""

    @tg.custom_vjp
    def f(x):
        return tg.log1p(tg.exp(x))

    f.defvjp(lambda x: (f(x), x), lambda x, bar: (bar * tg.nn.sigmoid(x),))
    return f


# --------------------------------------------------------------------------------------- orders


def test_log1pexp():
    f = log1pexp()
    assert float(tg.grad(f)(1000.0)) == 1.0
    s = 1 / (1 + np.exp(-0.5))
    exact = [s, s * (1 - s), s * (1 - s) * (1 - 2 * s)]
    g = f
    for value in exact:
        g = tg.grad(g)
        for h in (g, tg.jit(g)):
            np.testing.assert_allclose(float(h(0.5)), value, rtol=1e-13)


def test_reverse_again_and_forward_over_reverse():
    f = sine(10.0)
    loss = lambda x: tg.sum(f(x) * x)  # noqa: E731
    exact = np.diag(-10 * np.sin(X) * X + 20 * np.cos(X))
    for outer in (tg.jacfwd, tg.jacrev):
        for h in (outer(tg.jacrev(loss)), tg.jit(outer(tg.jacrev(loss)))):
            np.testing.assert_allclose(h(X), exact, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(tg.hvp(loss, (X,), (np.ones(3),)), np.diag(exact), rtol=1e-13)


def test_forward_mode_is_refused_at_the_call():
    f = sine()
    message = r"custom_vjp\(f\): forward mode .* only tells the reverse; .*\.defjvp"
    with pytest.raises(tg.UnsupportedError, match=message) as found:
        tg.jvp(f, (1.0,), (1.0,))
    assert "test_custom_vjp.py" in str(found.value)
    for run in (
        lambda: tg.jacfwd(f)(1.0),
        lambda: tg.jit(lambda x: tg.jvp(f, (x,), (x,))[1])(1.0),
        lambda: tg.linearize(f, 1.0)[1](1.0),
        lambda: tg.grad(lambda x: tg.jvp(f, (x,), (1.0,))[1])(1.0),
        lambda: tg.vmap(lambda x: tg.jvp(f, (x,), (1.0,))[1])(X),
    ):
        with pytest.raises(tg.UnsupportedError, match=message):
            run()


MODES = {
    "fwd": lambda f: lambda x: tg.jvp(f, (x,), (1.0,))[1],
    "rev": tg.grad,
}


@pytest.mark.parametrize("modes", list(itertools.product(MODES, repeat=3)), ids="-".join)
def test_a_companion_for_forward_mode(modes):
    """3 cos, then its derivatives, in every order of modes."""
    f = sine(3.0, forward=True)
    for mode in modes:
        f = MODES[mode](f)
    for g in (f, tg.jit(f)):
        np.testing.assert_allclose(float(g(0.3)), -3 * np.cos(0.3), rtol=1e-14)
    np.testing.assert_allclose(tg.vmap(f)(X), -3 * np.cos(X), rtol=1e-14)


def test_which_of_the_two_rules_is_asked():
    f = tg.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda res, bar: (2 * bar,))
    f.defjvp(lambda p, t: (p[0], 3 * t[0]))
    assert float(tg.grad(f)(1.0)) == 2.0
    assert float(tg.jvp(f, (1.0,), (1.0,))[1]) == 3.0
    assert float(tg.vmap(lambda x: tg.jvp(f, (x,), (1.0,))[1])(X)[0]) == 3.0
    assert float(tg.grad(lambda x: tg.sum(tg.vmap(f)(x)))(X)[0]) == 2.0


def test_mixed_derivatives_by_point_and_direction():
    """d/dv d/dx of jvp(f)(x) v: the direction is not lost in the companion's value."""
    f = tg.custom_vjp(lambda x: x**3)
    f.defvjp(lambda x: (f(x), x), lambda x, bar: (3 * x * x * bar,))
    f.defjvp(lambda p, t: (f(*p), 3 * p[0] ** 2 * t[0]))
    slope = lambda x, v: tg.jvp(f, (x,), (v,))[1]  # noqa: E731
    for outer, inner in itertools.product((tg.jacfwd, tg.jacrev), repeat=2):
        assert float(outer(inner(slope, 0), 1)(2.0, 5.0)) == 12.0
        assert float(outer(inner(slope, 0), 0)(2.0, 5.0)) == 30.0


# ----------------------------------------------------------------------------------------- vmap


def test_vmap_in_both_nestings():
    f = sine(10.0)
    inside = lambda x: tg.sum(tg.vmap(f)(x))  # noqa: E731
    for way in (tg.vmap(tg.grad(f)), tg.grad(inside), tg.jit(tg.grad(inside))):
        np.testing.assert_allclose(way(X), 10 * np.cos(X), rtol=1e-15)
    for way in (tg.vmap(tg.grad(tg.grad(f))), tg.grad(lambda x: tg.sum(tg.grad(inside)(x)))):
        np.testing.assert_allclose(way(X), -10 * np.sin(X), rtol=1e-14)


def product():
    f = tg.custom_vjp(lambda a, x: (a @ x, tg.sum(x)))

    def bwd(res, bars):
        (a, x), (y_bar, s_bar) = res, bars
        return 5 * tg.outer(y_bar, x), 7 * (a.T @ y_bar) + s_bar

    f.defvjp(lambda a, x: (f(a, x), (a, x)), bwd)
    return f


@pytest.mark.parametrize(("in_axes", "out_axes"), [((None, 0), 0), ((2, None), 1), ((1, 1), 0)])
def test_vmap_of_some_arguments_against_a_loop(rng, in_axes, out_axes):
    f = product()
    shapes = [(2, 3), (3,)]
    arrays = [
        rng.standard_normal(s if a is None else (*s[:a], 4, *s[a:]))
        for s, a in zip(shapes, in_axes, strict=True)
    ]

    def mapped(a, x):
        y, s = tg.vmap(f, in_axes, (out_axes, 0))(a, x)
        return tg.sum(tg.sin(y)) + tg.sum(s * s)

    def looped(a, x):
        total = 0.0
        for k in range(4):
            one = [
                v if axis is None else tg.take(v, k, axis=axis)
                for v, axis in zip((a, x), in_axes, strict=True)
            ]
            y, s = f(*one)
            total = total + tg.sum(tg.sin(y)) + s * s
        return total

    for transform in (
        lambda g: tg.grad(g, (0, 1)),
        lambda g: tg.jit(tg.grad(g, (0, 1))),
        lambda g: tg.grad(lambda a, x: tg.sum(tg.grad(g, 1)(a, x) ** 2), (0, 1)),
    ):
        for got, expected in zip(
            transform(mapped)(*arrays), transform(looped)(*arrays), strict=True
        ):
            np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


def test_residuals_that_all_examples_share_are_not_repeated():
    f = product()
    a, x = tg.ShapeDtype((50, 40)), tg.ShapeDtype((9, 40))
    gradient = tg.grad(lambda a, x: tg.sum(tg.vmap(f, (None, 0))(a, x)[0]), 1)
    text = tg.jit(gradient).lower(a, x).as_text("optimized")
    assert "f64[9,50,40]" not in text


# ------------------------------------------------------------------- arguments, results, captures


def test_none_is_zeros_and_integers_are_left_out():
    f = tg.custom_vjp(lambda p, n, y: (p["a"] * y * n, n))
    seen = []

    def bwd(res, bars):
        seen.append(bars[1])
        return {"a": bars[0] * res, "b": None}, None, None

    f.defvjp(lambda p, n, y: (f(p, n, y), y), bwd)
    loss = lambda p, y: f(p, 2, y)[0]  # noqa: E731
    p = {"a": 3.0, "b": (tg.ones(2), 1.0)}
    gp, gy = tg.grad(loss, (0, 1))(p, 5.0)
    assert float(gp["a"]) == 5.0
    np.testing.assert_array_equal(gp["b"][0], [0, 0])
    assert float(gy) == 0.0
    assert seen == [None]


def test_nondiff_arguments():
    f = tg.custom_vjp(lambda how, x, n: how(x) * n, nondiff_argnums=(0, 2))

    def fwd(how, x, n):
        return f(how, x, n), x

    def bwd(how, n, x, bar):
        assert how is tg.sin
        return (10 * n * tg.cos(x) * bar,)

    f.defvjp(fwd, bwd)
    g = tg.grad(f, argnums=1)
    np.testing.assert_allclose(float(g(tg.sin, 0.5, 3)), 30 * np.cos(0.5), rtol=1e-15)
    got = tg.vmap(lambda x: g(tg.sin, x, n=3))(X)
    np.testing.assert_allclose(got, 30 * np.cos(X), rtol=1e-15)


def test_clipping_of_gradients():
    f = tg.custom_vjp(lambda low, high, x: x)
    f.defvjp(
        lambda low, high, x: (x, (low, high)),
        lambda res, bar: (None, None, tg.clip(bar, res[0], res[1])),
    )
    g = tg.grad(lambda x: tg.sum(f(-1.0, 1.0, x) * np.array([5.0, 0.5, -3.0])))
    np.testing.assert_array_equal(g(X), [1.0, 0.5, -1.0])
    # This pullback has no transpose, so forward mode has nothing to go by; reverse mode has.
    square = lambda x: f(-1.0, 1.0, x * x)  # noqa: E731
    np.testing.assert_array_equal(float(tg.grad(tg.grad(square))(3.0)), 2.0)
    with pytest.raises(tg.UnsupportedError, match="only tells the reverse"):
        tg.hvp(lambda x: f(-1.0, 1.0, x) ** 2, (3.0,), (1.0,))


def local(x, c):
    f = tg.custom_vjp(lambda x: x * c)
    f.defvjp(lambda x: (f(x), None), lambda res, bar: (c * c * bar,))
    return f(x)


@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit], ids=["eager", "jit"])
def test_captured_arrays(wrap):
    f = wrap(local)
    assert [float(tg.grad(f, i)(2.0, 3.0)) for i in (0, 1)] == [9.0, 2.0]
    assert float(tg.grad(tg.grad(f), 1)(2.0, 3.0)) == 6.0
    every = lambda x: tg.sum(tg.vmap(f)(x, x + 1))  # noqa: E731
    np.testing.assert_allclose(wrap(tg.grad(every))(X), (X + 1) ** 2 + X, rtol=1e-14)
    np.testing.assert_allclose(wrap(tg.hessian(every))(X), np.diag(2 * X + 3), rtol=1e-14)


def test_two_outputs_one_pullback():
    """Cotangents of all results come together; one that is not there is zeros."""
    f = tg.custom_vjp(lambda x: (x, 2 * x, tg.asarray(7)))
    calls = []

    def bwd(res, bars):
        calls.append(len(bars))
        return (10 * bars[0] + 100 * bars[1],)

    f.defvjp(lambda x: (f(x), ()), bwd)
    assert float(tg.grad(lambda x: f(x)[0] + 3 * f(x)[1])(1.0)) == 310.0
    calls.clear()

    def both(x):
        a, b, _ = f(x)
        return a + 3 * b

    assert float(tg.grad(both)(1.0)) == 310.0
    assert float(tg.grad(lambda x: f(x)[1])(1.0)) == 100.0
    assert calls == [3, 3]


def test_complex_cotangents():
    """<c, J t> is paired without conjugation: the pullback of z -> a z is c -> a c."""
    a = 2.0 - 1j
    f = tg.custom_vjp(lambda z: a * z)
    f.defvjp(lambda z: (f(z), None), lambda res, bar: (a * bar,))
    _, pull = tg.vjp(f, 1 + 1j)
    _, expected = tg.vjp(lambda z: a * z, 1 + 1j)
    assert complex(pull(1j)[0]) == complex(expected(1j)[0]) == 1j * a


def test_a_function_without_derivative_gets_one():
    """What the function itself is made of is not looked at."""
    f = tg.custom_vjp(lambda x: tg.pure_callback(np.sin, tg.ShapeDtype(()), x))
    f.defvjp(lambda x: (f(x), x), lambda x, bar: (tg.cos(x) * bar,))
    np.testing.assert_allclose(float(tg.grad(f)(0.3)), np.cos(0.3), rtol=1e-15)
    np.testing.assert_allclose(float(tg.jit(tg.grad(tg.grad(f)))(0.3)), -np.sin(0.3), rtol=1e-15)


# --------------------------------------------------------------------------------------- errors


def one(fwd, bwd):
    f = tg.custom_vjp(lambda x, y: {"s": x * y})
    f.defvjp(fwd, bwd or (lambda res, b: (None, None)))
    return tg.grad(lambda x, y: tg.sum(f(x, y)["s"]))


def good(x, y):
    return {"s": x * y}, None


@pytest.mark.parametrize(
    ("fwd", "bwd", "kind", "message"),
    [
        (lambda x, y: x, None, TypeError, r"fwd: expected a pair \(value, residuals\), got Array"),
        (
            lambda x, y: ({"s": x[:2]}, 0),
            None,
            tg.ShapeError,
            r"value of fwd: the result\['s'\]: expected f64\[3\], got f64\[2\]",
        ),
        (lambda x, y: (x, 0), None, TypeError, r"fwd: expected the structure \{'s': \*\}"),
        (lambda x, y: ({"s": x}, "r"), None, tg.DTypeError, "residuals of fwd: .* got str 'r'"),
        (good, lambda res, b: b["s"], TypeError, "bwd: expected a tuple of 2, .*x, y.*, got Array"),
        (good, lambda res, b: (b["s"],), TypeError, "bwd: expected a tuple of 2, .*, got 1"),
        (
            good,
            lambda res, b: (tg.sum(b["s"]), None),
            tg.ShapeError,
            r"bwd: cotangent of x: expected f64\[3\], got f64\[\]",
        ),
        (
            good,
            lambda res, b: (None, b["s"] > 0),
            tg.DTypeError,
            r"bwd: cotangent of y: expected f64\[3\], got bool\[3\]",
        ),
        (good, lambda res, b: (b, None), tg.DTypeError, r"cotangent of x: .* got dict"),
    ],
)
def test_rules_are_checked(fwd, bwd, kind, message):
    with pytest.raises(kind, match=message) as found:
        one(fwd, bwd)(X, X + 1)
    assert "custom_vjp(<lambda>)" in str(found.value)


def test_a_missing_rule():
    with pytest.raises(TypeError, match=r"custom_vjp\(sin\): has no rule; .*defvjp\(fwd, bwd\)"):
        tg.custom_vjp(tg.sin)(1.0)
