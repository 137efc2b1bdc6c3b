"""``custom_jvp``: values by the function, derivatives by the rule, through every transform."""

import itertools
import pickle
from typing import NamedTuple

import numpy as np
import pytest

import tilegrad as tg


def sine(factor=1.0):
    """sin with a rule whose derivative is told from the true one by a factor."""

    @tg.custom_jvp
    def f(x):
        return tg.sin(x)

    @f.defjvp
    def f_jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return f(x), factor * tg.cos(x) * x_dot

    return f


X = np.array([0.3, -1.2, 2.0])


# --------------------------------------------------------------------------------------- orders


def test_value_is_the_functions_and_derivative_the_rules():
    f = sine(10.0)
    value, slope = tg.value_and_grad(f)(0.3)
    np.testing.assert_allclose(float(value), np.sin(0.3), rtol=1e-15)
    np.testing.assert_allclose(float(slope), 10 * np.cos(0.3), rtol=1e-15)


MODES = {
    "fwd": lambda f: lambda x: tg.jvp(f, (x,), (1.0,))[1],
    "rev": tg.grad,
}


@pytest.mark.parametrize("modes", list(itertools.product(MODES, repeat=3)), ids="-".join)
def test_every_order_in_every_mode(modes):
    """With the factor 3, d/dx f = 3 cos, and from there on the derivatives of 3 cos."""
    f = sine(3.0)
    for mode in modes:
        f = MODES[mode](f)
    for g in (f, tg.jit(f)):
        np.testing.assert_allclose(float(g(0.3)), -3 * np.cos(0.3), rtol=1e-14)


def test_a_rule_that_calls_the_function_keeps_its_rule():
    """exp' = 2 exp by the rule, so the n-th derivative is 2^n exp."""

    @tg.custom_jvp
    def f(x):
        return tg.exp(x)

    @f.defjvp
    def f_jvp(primals, tangents):
        y = f(*primals)
        return y, 2 * y * tangents[0]

    g = f
    for order in range(4):
        for h in (g, tg.jit(g)):
            np.testing.assert_allclose(float(h(0.3)), 2.0**order * np.exp(0.3), rtol=1e-14)
        g = tg.grad(g)


def test_hessians_in_all_mode_orders():
    f = sine(2.0)
    loss = lambda x: tg.sum(f(x) * x)  # noqa: E731
    # d/dx (f x) = 2 cos(x) x + sin(x); once more: -2 sin(x) x + 2 cos(x) + 2 cos(x)
    exact = np.diag(-2 * np.sin(X) * X + 4 * np.cos(X))
    for outer, inner in itertools.product((tg.jacfwd, tg.jacrev), repeat=2):
        for h in (outer(inner(loss)), tg.jit(outer(inner(loss)))):
            np.testing.assert_allclose(h(X), exact, rtol=1e-13, atol=1e-15)


def test_safe_norm():
    """The rule takes out the singularity at 0, in both modes."""

    @tg.custom_jvp
    def norm(x):
        return tg.sqrt(tg.sum(x * x))

    @norm.defjvp
    def norm_jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        y = norm(x)
        safe = tg.where(y == 0, 1.0, y)
        return y, tg.where(y == 0, 0.0, tg.sum(x * x_dot) / safe)

    zero, some = np.zeros(3), np.array([3.0, 4.0])
    np.testing.assert_array_equal(tg.grad(norm)(zero), zero)
    assert float(tg.jvp(norm, (zero,), (np.ones(3),))[1]) == 0.0
    np.testing.assert_allclose(tg.grad(norm)(some), some / 5, rtol=1e-15)
    np.testing.assert_allclose(float(tg.jvp(norm, (some,), (np.ones(2),))[1]), 1.4, rtol=1e-15)


# ----------------------------------------------------------------------------------------- vmap


def test_vmap_in_both_nestings():
    f = sine(10.0)
    inside = lambda x: tg.sum(tg.vmap(f)(x))  # noqa: E731
    ways = [
        tg.vmap(tg.grad(f)),
        tg.grad(inside),
        tg.jit(tg.vmap(tg.grad(f))),
        tg.grad(tg.jit(inside)),
    ]
    for way in ways:
        np.testing.assert_allclose(way(X), 10 * np.cos(X), rtol=1e-15)
    second = [tg.vmap(tg.grad(tg.grad(f))), tg.grad(lambda x: tg.sum(tg.grad(inside)(x)))]
    for way in second:
        np.testing.assert_allclose(way(X), -10 * np.sin(X), rtol=1e-14)


def test_vmap_of_some_arguments():
    """The gradient of an argument that all examples share is the sum over them."""

    @tg.custom_jvp
    def f(x, y):
        return x * y, x

    @f.defjvp
    def f_jvp(primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        return f(x, y), (5 * (x_dot * y + x * y_dot), 7 * x_dot)

    def loss(x, y):
        a, b = tg.vmap(f, (0, None))(x, y)
        return tg.sum(a) + tg.sum(b)

    gx, gy = tg.grad(loss, (0, 1))(X, 2.0)
    np.testing.assert_allclose(gx, np.full(3, 5 * 2.0 + 7), rtol=1e-15)
    np.testing.assert_allclose(gy, 5 * X.sum(), rtol=1e-14)
    twice = tg.vmap(tg.vmap(lambda x, y: f(x, y)[0], (0, None)), (None, 0), 1)
    total = lambda x, y: tg.sum(twice(x, y) ** 2)  # noqa: E731
    gx, gy = tg.grad(total, (0, 1))(X, X + 1)
    np.testing.assert_allclose(gx, 10 * X * np.sum((X + 1) ** 2), rtol=1e-13)
    np.testing.assert_allclose(gy, 10 * (X + 1) * np.sum(X**2), rtol=1e-13)


# --------------------------------------------------------------------------------------- regions


def repeated(h):
    """Three turns of c -> h(c) x, in a loop, in a scan inside a cond, and written out."""

    def loop(x):
        return tg.fori_loop(0, 3, lambda i, c: h(c) * x, x)

    def nested(x):
        turn = lambda c, _: (tg.cond(c > -9, h, lambda c: c, c) * x, None)  # noqa: E731
        return tg.cond(x > -9, lambda x: tg.scan(turn, x, length=3)[0], lambda x: x, x)

    def open_ended(x):
        turn = lambda c: (c[0] + 1, h(c[1]) * x)  # noqa: E731
        return tg.while_loop(lambda c: c[0] < 3, turn, (0, x))[1]

    def written_out(x):
        return h(h(h(x) * x) * x) * x

    return [loop, nested, open_ended], written_out


def reverse_sine(factor):
    f = tg.custom_vjp(lambda x: tg.sin(x))
    f.defvjp(lambda x: (f(x), x), lambda x, bar: (factor * tg.cos(x) * bar,))
    return f


@pytest.mark.parametrize("make", [sine, reverse_sine], ids=["jvp", "vjp"])
def test_rules_are_kept_in_loops_and_branches(make):
    forms, written_out = repeated(make(3.0))
    for transform in (
        tg.grad,
        lambda f: tg.grad(tg.grad(f)),
        lambda f: lambda x: tg.hvp(f, (x,), (1.0,)),
        lambda f: lambda x: tg.vmap(tg.grad(f))(tg.stack([x, 2 * x])),
        lambda f: tg.grad(lambda x: tg.sum(tg.vmap(f)(tg.stack([x, 2 * x])))),
    ):
        expected = np.asarray(transform(written_out)(0.7))
        for f in forms:
            got = np.asarray(tg.jit(transform(f))(0.7))
            np.testing.assert_allclose(got, expected, rtol=1e-13, err_msg=f.__name__)


# ------------------------------------------------------------------- arguments, results, captures


class Pair(NamedTuple):
    left: object
    right: object


def test_trees_and_integers():
    @tg.custom_jvp
    def f(p, n):
        return Pair(p["a"] * n, {"n": n + 1, "b": p["b"][0]})

    seen = []

    @f.defjvp
    def f_jvp(primals, tangents):
        (p, n), (p_dot, n_dot) = primals, tangents
        seen.append(n_dot)
        return f(p, n), Pair(3 * p_dot["a"] * n, {"n": None, "b": p_dot["b"][0]})

    p = {"a": 2.0, "b": [tg.ones(2), 1.0]}

    def loss(p):
        out = f(p, tg.asarray(4))
        return out.left + tg.sum(out.right["b"]) * out.right["n"]

    g = tg.grad(loss)(p)
    assert float(g["a"]) == 12.0
    np.testing.assert_array_equal(g["b"][0], [5.0, 5.0])
    assert float(g["b"][1]) == 0.0
    assert seen == [None]


def test_tangents_that_do_not_move_are_zeros():
    @tg.custom_jvp
    def f(x, y):
        return x + y

    dots = []

    @f.defjvp
    def f_jvp(primals, tangents):
        dots.append(tangents[1])
        return f(*primals), tangents[0] + tangents[1]

    assert float(tg.grad(f)(1.0, np.float64(2.0))) == 1.0  # linear, not affine
    assert float(tg.jvp(lambda x: f(x, 2.0), (1.0,), (1.0,))[1]) == 1.0
    assert float(dots[-1]) == 0.0


def test_keywords_and_defaults_are_resolved():
    @tg.custom_jvp
    def f(x, scale=2.0):
        return x * scale

    @f.defjvp
    def f_jvp(primals, tangents):
        x, scale = primals
        return f(x, scale), 100 * tangents[0] * scale

    assert float(tg.grad(lambda x: f(x))(1.0)) == 200.0
    assert float(tg.grad(lambda x: f(scale=3.0, x=x))(1.0)) == 300.0
    with pytest.raises(TypeError, match=r"custom_jvp\(f\): got an unexpected keyword"):
        f(1.0, wrong=2.0)


def test_nondiff_arguments_are_static():
    f = tg.custom_jvp(lambda how, x, n: how(x) * n, nondiff_argnums=(0, -1))

    @f.defjvp
    def f_jvp(how, n, primals, tangents):
        assert how is tg.sin
        assert n == 3
        return f(how, primals[0], n), 10 * n * tangents[0]

    assert float(tg.grad(f, argnums=1)(tg.sin, 0.5, 3)) == 30.0
    assert float(tg.jit(lambda x: tg.grad(f, argnums=1)(tg.sin, x, 3))(0.5)) == 30.0
    wrong = tg.custom_jvp(lambda x: x, nondiff_argnums=3)
    wrong.defjvp(f_jvp)
    with pytest.raises(ValueError, match="nondiff_argnums: expected positions among 1"):
        wrong(1.0)


def test_an_array_among_nondiff_arguments_has_no_derivative():
    f = tg.custom_jvp(lambda x, c: x * c, nondiff_argnums=1)
    f.defjvp(lambda c, p, t: (f(p[0], c), c * c * t[0]))
    assert float(tg.jit(tg.grad(f))(2.0, 3.0)) == 9.0
    np.testing.assert_array_equal(tg.vmap(tg.grad(f), (None, 0))(2.0, X), X * X)
    with pytest.raises(tg.UnsupportedError, match="nondiff_argnums has a tangent"):
        tg.grad(f, argnums=1)(2.0, tg.asarray(3.0))


def local(x, c):
    """A function with a rule inside another: both capture an argument."""

    @tg.custom_jvp
    def f(x):
        return x * c

    @f.defjvp
    def f_jvp(primals, tangents):
        return f(*primals), c * c * tangents[0]

    return f(x)


@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit], ids=["eager", "jit"])
def test_captured_arrays(wrap):
    """By the argument the rule's derivative, by what is captured that of the function itself."""
    f = wrap(local)
    assert float(tg.grad(f)(2.0, 3.0)) == 9.0
    assert float(tg.grad(f, 1)(2.0, 3.0)) == 2.0
    assert float(tg.grad(tg.grad(f), 1)(2.0, 3.0)) == 6.0
    every = lambda x: tg.sum(tg.vmap(f)(x, x + 1))  # noqa: E731
    np.testing.assert_allclose(wrap(tg.grad(every))(X), (X + 1) ** 2 + X, rtol=1e-14)
    np.testing.assert_allclose(wrap(tg.hessian(every))(X), np.diag(2 * X + 3), rtol=1e-14)


def test_python_control_flow_on_values_under_grad():
    @tg.custom_jvp
    def f(x):
        return x * x if float(x) > 0 else -x

    @f.defjvp
    def f_jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return f(x), (5.0 if x > 0 else 6.0) * x_dot

    assert float(tg.grad(f)(2.0)) == 5.0
    assert float(tg.grad(f)(-2.0)) == 6.0
    with pytest.raises(tg.TracerError):
        tg.jit(f)(2.0)


def test_methods():
    class Model:
        scale = 4.0

        @tg.custom_jvp
        def f(self, x):
            return self.scale * x

    Model.f.defjvp(lambda p, t: (Model.f(*p), 2 * t[1]))
    with pytest.raises(tg.DTypeError, match="nondiff_argnums"):
        tg.grad(Model().f)(1.0)
    Model.f = tg.custom_jvp(lambda self, x: self.scale * x, nondiff_argnums=0)
    Model.f.defjvp(lambda self, p, t: (self.f(*p), 2 * self.scale * t[0]))
    assert float(tg.grad(Model().f)(1.0)) == 8.0


def test_jit_notices_what_rules_read(monkeypatch):
    global _factor
    _factor = 2.0
    f = tg.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (f(*p), _factor * t[0]))
    g = tg.jit(tg.grad(f))
    assert float(g(1.0)) == 2.0
    _factor = 3.0
    assert float(g(1.0)) == 3.0


_factor = 1.0


# --------------------------------------------------------------------------------- other forms


def test_defjvps():
    f = tg.custom_jvp(lambda x, y, z: x * y + z)
    f.defjvps(lambda t, out, x, y, z: 10 * t * y, None, lambda t, out, x, y, z: t * out)
    gx, gy, gz = tg.grad(f, (0, 1, 2))(2.0, 3.0, 4.0)
    assert (float(gx), float(gy), float(gz)) == (30.0, 0.0, 10.0)
    np.testing.assert_allclose(float(tg.grad(tg.grad(f, 2), 0)(2.0, 3.0, 4.0)), 30.0)
    with pytest.raises(TypeError, match="nondiff_argnums; use defjvp"):
        tg.custom_jvp(tg.add, nondiff_argnums=0).defjvps(None)
    f.defjvps(None)
    with pytest.raises(TypeError, match="expected a rule for each of 3 arguments, got 1"):
        tg.grad(f)(2.0, 3.0, 4.0)


def test_stop_gradient_blocks():
    """The cross block of the Hessian of stop_gradient(x) * y is zero one way round."""
    f = lambda x, y: tg.sum(tg.stop_gradient(x) * y * x)  # noqa: E731
    (xx, xy), (yx, yy) = tg.hessian(f, (0, 1))(2.0, 3.0)
    # d/dx = sg(x) y, d/dy = sg(x) x: no second derivative passes through sg(x).
    assert [float(h) for h in (xx, xy, yx, yy)] == [0.0, 2.0, 2.0, 0.0]
    g = lambda x: tg.stop_gradient(x) * x  # noqa: E731
    assert float(tg.grad(g)(3.0)) == 3.0
    assert float(tg.grad(tg.grad(g))(3.0)) == 0.0


def test_float32_and_complex():
    f = sine(2.0)
    slope = tg.grad(f)(np.float32(0.3))
    assert slope.dtype == tg.float32
    value, dot = tg.jvp(f, (0.3 + 0.1j,), (1j,))
    np.testing.assert_allclose(complex(value), np.sin(0.3 + 0.1j), rtol=1e-15)
    np.testing.assert_allclose(complex(dot), 2j * np.cos(0.3 + 0.1j), rtol=1e-15)


def test_no_cost_without_differentiation():
    """What is known and not marked is computed as if there were no rule."""
    f = tg.custom_jvp(lambda x: x + 1)
    f.defjvp(lambda p, t: pytest.fail("the rule is not asked"))
    assert float(f(1.0)) == 2.0
    assert "custom" not in tg.jit(f).lower(1.0).as_text("optimized")
    np.testing.assert_array_equal(tg.vmap(f)(X), X + 1)


@tg.custom_jvp
def public(x):
    return tg.sin(x)


public.defjvps(lambda x_dot, y, x: 2 * tg.cos(x) * x_dot)


def test_pickling_finds_the_decorated_function():
    assert pickle.loads(pickle.dumps(public)) is public
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(sine())


# --------------------------------------------------------------------------------------- errors


def one(rule):
    f = tg.custom_jvp(lambda x: {"y": x * 2})
    f.defjvp(rule)
    return tg.grad(lambda x: tg.sum(f(x)["y"]))


@pytest.mark.parametrize(
    ("rule", "kind", "message"),
    [
        (lambda p, t: t[0], TypeError, r"expected a pair \(value, tangent\), got Array"),
        (
            lambda p, t: ({"y": p[0]}, {"y": tg.sum(t[0])}),
            tg.ShapeError,
            r"tangent of the result\['y'\]: expected f64\[3\], got f64\[\]",
        ),
        (
            lambda p, t: ({"y": p[0]}, {"y": t[0].astype("float32")}),
            tg.DTypeError,
            r"tangent of the result\['y'\]: expected f64\[3\], got f32\[3\]; convert",
        ),
        (lambda p, t: ({"y": p[0]}, t[0]), TypeError, r"expected the structure \{'y': \*\}"),
        (lambda p, t: (p[0], {"y": t[0]}), TypeError, "value of the rule: expected the structure"),
        (
            lambda p, t: ({"y": p[0][:2]}, {"y": t[0]}),
            tg.ShapeError,
            r"value of the rule: the result\['y'\]: expected f64\[3\], got f64\[2\]",
        ),
    ],
)
def test_rules_are_checked(rule, kind, message):
    with pytest.raises(kind, match=message) as found:
        one(rule)(X)
    assert "custom_jvp(<lambda>)" in str(found.value)


def test_a_missing_rule_and_arguments_that_are_no_arrays():
    with pytest.raises(TypeError, match=r"custom_jvp\(sin\): has no rule"):
        tg.custom_jvp(tg.sin)(1.0)
    with pytest.raises(TypeError, match="expected a function, got int"):
        tg.custom_jvp(3)
    f = tg.custom_jvp(lambda mode, x: x)
    f.defjvp(lambda p, t: (p[1], t[1]))
    with pytest.raises(tg.DTypeError, match=r"argument mode: .* name its position in nondiff_arg"):
        tg.grad(f, 1)("fast", 1.0)


def test_a_rule_that_is_not_linear():
    f = tg.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (f(*p), 2 * p[0] * t[0] + 1e-3 * t[0] ** 2))
    with pytest.raises(AssertionError, match=r"not linear in the tangents: jvp\(2 u - 3 v\)"):
        f.check_linear(3.0)
    with pytest.raises(tg.UnsupportedError, match="transpose"):
        tg.grad(f)(3.0)
    sine(10.0).check_linear(X)
    f = tg.custom_jvp(lambda n, x: x * n, nondiff_argnums=0)
    f.defjvp(lambda n, p, t: (p[0] * n, t[0] + n))
    with pytest.raises(AssertionError, match="not linear"):
        f.check_linear(2, x=1.0)
