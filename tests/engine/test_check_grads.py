"""``check_grads`` and ``verify_ad``: right derivatives pass, each kind of wrong one is named."""

import numpy as np
import pytest

import tilegrad as tg

X = np.array([0.3, -1.2, 2.0])


def ruled(jvp, primal=tg.sin):
    f = tg.custom_jvp(primal)
    f.defjvp(jvp)
    return f


# ---------------------------------------------------------------------------------- check_grads


@pytest.mark.parametrize(
    ("f", "args", "order"),
    [
        (tg.sin, (0.3,), 3),
        (lambda x, y: tg.exp(x) @ y, (X, X + 1), 3),
        (
            lambda p, n: {"a": p["x"] ** n, "b": (p["y"][0] * p["x"], n)},
            ({"x": 2.0, "y": [X]}, np.int64(3)),
            2,
        ),
        (lambda z: z * z + tg.exp(z), (0.3 + 0.5j,), 3),
        (lambda z: tg.real(z) * tg.abs(z), (np.array([0.3 + 0.5j, 1 - 1j]),), 2),
        (lambda a: tg.linalg.solve_triangular(a, np.ones(2), lower=True), (np.eye(2) + 0.3,), 2),
    ],
    ids=["scalar", "vectors", "tree", "holomorphic", "complex", "linalg"],
)
def test_right_derivatives_pass(f, args, order):
    tg.check_grads(f, args, order=order)


def test_float32_has_wider_tolerances():
    x = X.astype(np.float32)
    tg.check_grads(lambda x: tg.sin(x) * x, (x,), order=2)
    wrong = ruled(lambda p, t: (tg.sin(p[0]), 1.2 * tg.cos(p[0]) * t[0]))
    with pytest.raises(AssertionError, match="off by"):
        tg.check_grads(wrong, (x,), order=1)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_a_wrong_first_derivative(mode):
    wrong = ruled(lambda p, t: (tg.sin(p[0]), 1.001 * tg.cos(p[0]) * t[0]))
    with pytest.raises(AssertionError, match=rf"order 1, {mode}: argument x: expected .*, got "):
        tg.check_grads(wrong, (X,), order=1, modes=mode)


def test_a_wrong_second_derivative_names_the_way_there():
    """cos(x) is right as a number, but its derivative is stopped."""
    wrong = ruled(lambda p, t: (tg.sin(p[0]), tg.stop_gradient(tg.cos(p[0])) * t[0]))
    tg.check_grads(wrong, (X,), order=1)
    with pytest.raises(AssertionError, match="order 2, fwd of fwd: argument x"):
        tg.check_grads(wrong, (X,), order=2)
    with pytest.raises(AssertionError, match="order 2, rev of rev: argument x"):
        tg.check_grads(wrong, (X,), order=2, modes=("rev",))


def test_a_wrong_third_derivative():
    f = tg.custom_jvp(lambda x: x**3)
    f.defjvps(lambda t, y, x: (3 * x * tg.stop_gradient(x) * 0.5 + 1.5 * x * x) * t)
    g = tg.custom_jvp(lambda x: x**3)
    g.defjvps(lambda t, y, x: (3 * x * x + 0 * f(x)) * t)
    tg.check_grads(g, (2.0,), order=3)
    with pytest.raises(AssertionError, match="order 2"):
        tg.check_grads(f, (2.0,), order=3)


def test_the_argument_is_named():
    f = tg.custom_jvp(lambda a, b: a["left"] * b + tg.sin(a["right"]))
    f.defjvp(lambda p, t: (f(*p), p[0]["left"] * t[1] + t[0]["left"] * p[1]))
    with pytest.raises(AssertionError, match=r"fwd: argument a\['right'\]: expected"):
        tg.check_grads(f, ({"left": 2.0, "right": 3.0}, X), order=1)


def test_a_wrong_pullback():
    f = tg.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, (x, y)), lambda res, bar: (bar * res[1], bar * res[0] + 0.1))
    with pytest.raises(AssertionError, match="order 1, rev: argument y: expected"):
        tg.check_grads(f, (X, X + 1), order=1, modes=("rev",))
    with pytest.raises(tg.UnsupportedError, match="only tells the reverse"):
        tg.check_grads(f, (X, X + 1), order=1)


def test_a_value_that_derivatives_change_or_nan():
    nan = ruled(lambda p, t: (tg.sin(p[0]), t[0] * np.nan))
    with pytest.raises(AssertionError, match="got nan"):
        tg.check_grads(nan, (0.3,), order=1)


def test_bad_arguments():
    with pytest.raises(ValueError, match="modes: expected 'fwd' or 'rev', got 'back'"):
        tg.check_grads(tg.sin, (1.0,), modes=("back",))
    with pytest.raises(TypeError, match=r"args: expected a tuple, got float; write \(x,\)"):
        tg.check_grads(tg.sin, 1.0)
    with pytest.raises(TypeError, match="expected a floating or complex argument"):
        tg.check_grads(tg.sin, (np.int64(1),))


def test_steps_and_tolerances():
    rough = lambda x: x + 1e-4 * tg.sin(2e4 * x)  # noqa: E731
    tg.check_grads(rough, (0.3,), order=1, eps=1e-6)
    with pytest.raises(AssertionError):
        tg.check_grads(rough, (0.3,), order=1)
    tg.check_grads(rough, (0.3,), order=1, atol=5.0)


# ------------------------------------------------------------------------------------ verify_ad


def test_verify_passes():
    tg.verify_ad(lambda x, y: {"a": tg.exp(x) @ y, "b": x}, X, X + 1)
    tg.verify_ad(lambda z: tg.abs(z) ** 2, 0.3 + 1j)
    f = tg.custom_vjp(lambda x: tg.sin(x))
    f.defvjp(lambda x: (f(x), x), lambda x, bar: (tg.cos(x) * bar,))
    tg.verify_ad(f, X, forward=False)


@pytest.mark.parametrize(
    ("jvp", "message"),
    [
        (lambda p, t: (p[0], tg.cos(p[0]) * t[0] + 1e-3 * t[0] ** 2), "is not linear"),
        (lambda p, t: (p[0], tg.cos(p[0]) * t[0] + 1e-3), "is not linear"),
        (lambda p, t: (p[0], 2 * tg.cos(p[0]) * t[0]), "fwd against a difference quotient"),
        (
            lambda p, t: (p[0], tg.cos(p[0]) * t[0] + (p[0] - p[0][::-1]) * t[0][0] * 0),
            None,
        ),
    ],
)
def test_verify_finds_wrong_rules(jvp, message):
    f = ruled(lambda p, t: (tg.sin(p[0]), jvp(p, t)[1]))
    if message is None:
        tg.verify_ad(f, X)
        return
    with pytest.raises(AssertionError, match=message):
        tg.verify_ad(f, X)


def test_verify_finds_modes_that_are_not_adjoint():
    f = tg.custom_vjp(lambda x: tg.sin(x))
    f.defvjp(lambda x: (f(x), x), lambda x, bar: (tg.cos(x) * bar[::-1],))
    f.defjvp(lambda p, t: (f(*p), tg.cos(p[0]) * t[0]))
    with pytest.raises(AssertionError, match="the modes are not adjoint"):
        tg.verify_ad(f, X)


def test_verify_finds_a_hessian_that_is_not_symmetric():
    """Right at the point, but part of the dependence is stopped: y x^2 with d/dy stopped in x."""
    f = tg.custom_jvp(lambda x, y: x * x * y)
    f.defjvp(lambda p, t: (f(*p), 2 * p[0] * tg.stop_gradient(p[1]) * t[0] + p[0] ** 2 * t[1]))
    with pytest.raises(AssertionError, match="the Hessian is not symmetric"):
        tg.verify_ad(f, 2.0, 3.0)
