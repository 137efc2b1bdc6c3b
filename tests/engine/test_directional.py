"""jvp, vjp, linearize, linear_transpose."""

from typing import Any

import numpy as np
import pytest

import tilegrad as tg

from .lines import raises_here


def f(p: Any, y: Any) -> Any:
    return {"s": tg.sin(p["x"]) * y, "t": p["x"] * p["x"]}


P = {"x": np.array([0.3, 1.2])}
Y = np.array([2.0, -1.0])


def test_jvp_against_closed_form() -> None:
    dx, dy = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    value, tangent = tg.jvp(f, (P, Y), ({"x": dx}, dy))
    np.testing.assert_allclose(value["s"], np.sin(P["x"]) * Y, rtol=1e-15)
    np.testing.assert_allclose(
        tangent["s"], np.cos(P["x"]) * dx * Y + np.sin(P["x"]) * dy, rtol=1e-14
    )
    np.testing.assert_allclose(tangent["t"], 2 * P["x"] * dx, rtol=1e-15)


def test_vjp_is_the_transpose_of_jvp_and_reusable() -> None:
    value, pullback = tg.vjp(f, P, Y)
    rng = np.random.default_rng(1)
    for _ in range(3):
        dx, dy, cs, ct = rng.normal(size=(4, 2))
        tangent = tg.jvp(f, (P, Y), ({"x": dx}, dy))[1]
        p_bar, y_bar = pullback({"s": cs, "t": ct})
        left = np.dot(cs, tangent["s"]) + np.dot(ct, tangent["t"])
        right = np.dot(p_bar["x"], dx) + np.dot(y_bar, dy)
        assert float(left) == pytest.approx(float(right), rel=1e-13)
    np.testing.assert_allclose(value["t"], P["x"] ** 2)


def test_vjp_does_not_run_the_function_again() -> None:  # AD03
    runs = []
    _, pullback = tg.vjp(lambda x: runs.append(1) or x * x, 3.0)
    assert [float(pullback(c)[0]) for c in (1.0, 2.0)] == [6.0, 12.0]
    assert runs == [1]


def test_vjp_aux_and_leaves_without_derivative() -> None:
    value, pullback, aux = tg.vjp(lambda x, n: (x * n, "aux"), 2.0, np.arange(2), has_aux=True)
    assert aux == "aux"
    np.testing.assert_array_equal(value, [0.0, 2.0])
    x_bar, n_bar = pullback(np.ones(2))
    assert float(x_bar) == 1.0
    assert n_bar is None


def test_jvp_aux_and_zero_tangents() -> None:
    value, tangent, aux = tg.jvp(lambda x: (x * 0.5, x), (2.0,), (1.0,), has_aux=True)
    assert (float(value), float(tangent), float(aux)) == (1.0, 0.5, 2.0)
    _, tangent = tg.jvp(lambda x: (x, tg.ones(3), x > 1.0), (2.0,), (1.0,))
    np.testing.assert_array_equal(tangent[1], np.zeros(3))
    assert tangent[2].dtype is tg.bool_


def test_complex_pullback_is_bilinear() -> None:
    a, c = 2 - 3j, 1 + 1j
    _, pullback = tg.vjp(lambda z: a * z, 1j)
    assert complex(pullback(c)[0]) == a * c


def test_dtypes_of_tangents() -> None:  # AD02
    x = np.ones(2, "float32")
    assert tg.jvp(lambda x: x * x, (x,), (x,))[1].dtype is tg.float32
    assert tg.vjp(lambda x: x * x, x)[1](x)[0].dtype is tg.float32


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (
            lambda: tg.jvp(tg.sin, 1.0, (1.0,)),
            TypeError,
            r"primals: expected a tuple.* got float; .*\(primal,\)",
        ),
        (lambda: tg.jvp(tg.sin, (1.0,), 1.0), TypeError, "tangents: expected a tuple"),
        (
            lambda: tg.jvp(lambda x: x, (np.ones(2),), (np.ones(3),)),
            tg.ShapeError,
            r"tangent of x: expected the shape of f64\[2\], got f64\[3\]",
        ),
        (
            lambda: tg.jvp(lambda x: x, (np.ones(2, "float32"),), (np.ones(2),)),
            tg.DTypeError,
            r"tangent of x: expected the dtype of f32\[2\], got f64\[2\]; convert with astype",
        ),
        (
            lambda: tg.jvp(lambda x: x, ({"a": 1.0},), ({"b": 1.0},)),
            ValueError,
            r"tangents: expected the structure \({'a': \*},\), got \({'b': \*},\)",
        ),
        (
            lambda: tg.jvp(lambda n: n, (np.arange(2),), (np.ones(2),)),
            tg.DTypeError,
            r"n: i64\[2\]",
        ),
        (
            lambda: tg.vjp(lambda x: (x, x), 1.0)[1](1.0),
            ValueError,
            r"cotangents: expected the structure \(\*, \*\), got \*",
        ),
        (
            lambda: tg.vjp(lambda x: [x], np.ones(2))[1]([np.ones(3)]),
            tg.ShapeError,
            r"cotangent of the result\[0\]: expected the shape of f64\[2\], got f64\[3\]",
        ),
    ],
)
def test_errors(act: Any, error: type[Exception], text: str) -> None:
    with raises_here(error, text, line=""):
        act()


def test_linearize() -> None:
    runs = []

    def g(x: Any, y: Any) -> Any:
        runs.append(1)
        return tg.exp(x) * y

    value, push = tg.linearize(g, 1.0, 3.0)
    assert float(value) == pytest.approx(3 * np.e)
    assert float(push(1.0, 0.0)) == pytest.approx(3 * np.e)
    assert float(push(0.0, 1.0)) == pytest.approx(np.e)
    np.testing.assert_allclose(
        tg.vmap(lambda t: push(t, 0.0))(np.array([1.0, 2.0])), [3 * np.e, 6 * np.e]
    )
    assert runs == [1]
    assert float(tg.grad(lambda t: push(t, t))(5.0)) == pytest.approx(4 * np.e)


def test_linear_transpose() -> None:
    a = np.arange(6.0).reshape(2, 3)
    transpose = tg.linear_transpose(lambda x: a @ x, tg.ShapeDtype((3,)))
    (x_bar,) = transpose(np.array([1.0, 2.0]))
    np.testing.assert_allclose(x_bar, a.T @ [1.0, 2.0])
    both = tg.linear_transpose(lambda p: p["a"] * 2.0 - p["b"], {"a": 1.0, "b": 1.0})(3.0)[0]
    assert (float(both["a"]), float(both["b"])) == (6.0, -3.0)
    with raises_here(tg.UnsupportedError, "product of two linear values"):
        tg.linear_transpose(lambda x: x * x, 1.0)(1.0)  # here
    with raises_here(tg.TracerError, r"traced: it depends on argument x of linear_transpose"):
        tg.linear_transpose(lambda x: x if x > 0 else -x, 1.0)  # here


def test_a_pullback_is_compiled_when_it_is_read():
    x = tg.asarray(np.linspace(0.25, 0.75, 23))
    with tg.counters() as counters:
        value, pullback = tg.vjp(lambda x: tg.sum(tg.arcsinh(x) * tg.arctanh(x)), x)
        float(value)
        programs = counters.programs
        gradient = pullback(tg.asarray(1.0))[0]
        assert counters.programs == programs
        np.asarray(gradient)
        assert counters.programs > programs
