"""``custom_linear_solve`` and ``custom_root``: derivatives of the exact solution, of any order."""

import itertools

import numpy as np
import pytest

import tilegrad as tg

A = np.array([[2.0, 1.0], [0.5, 3.0]])
B = np.array([1.0, 2.0])


def cramer(matvec, b):
    """The solution of two equations, by the columns of the matrix."""
    p, q = matvec(tg.asarray([1.0, 0.0])), matvec(tg.asarray([0.0, 1.0]))
    det = p[0] * q[1] - q[0] * p[1]
    return tg.stack([q[1] * b[0] - q[0] * b[1], p[0] * b[1] - p[1] * b[0]]) / det


def jacobi(matvec, b):
    """An iteration whose own derivative is zero."""
    x = b
    for _ in range(60):
        x = x + 0.3 * (b - matvec(x))
    return tg.stop_gradient(x)


def solve(a, b, way=cramer):
    return tg.custom_linear_solve(lambda x: a @ x, b, way, way)


def exact(a, b):
    return cramer(lambda x: a @ x, b)


def cubes(f):
    return lambda a, b: tg.sum(f(a, b) ** 3)


TRANSFORMS = {
    "grad": lambda f: tg.grad(cubes(f), (0, 1)),
    "jit": lambda f: tg.jit(tg.grad(cubes(f), (0, 1))),
    "jacfwd": lambda f: tg.jacfwd(f, (0, 1)),
    "jacrev": lambda f: tg.jacrev(f, (0, 1)),
    "fwd-fwd": lambda f: tg.jacfwd(tg.jacfwd(cubes(f), (0, 1)), (0, 1)),
    "fwd-rev": lambda f: tg.jacfwd(tg.jacrev(cubes(f), (0, 1)), (0, 1)),
    "rev-fwd": lambda f: tg.jacrev(tg.jacfwd(cubes(f), (0, 1)), (0, 1)),
    "rev-rev": lambda f: tg.jacrev(tg.jacrev(cubes(f), (0, 1)), (0, 1)),
    "third": lambda f: tg.jit(tg.jacfwd(tg.jacrev(tg.jacfwd(cubes(f))))),
    "vmap-inside": lambda f: tg.grad(
        lambda a, b: tg.sum(tg.vmap(f, (0, None))(tg.stack([a, a.T]), b) ** 2), (0, 1)
    ),
    "shared-matrix": lambda f: tg.grad(
        lambda a, b: tg.sum(tg.vmap(f, (None, 1))(a, tg.stack([b, 2 * b], axis=1)) ** 2), (0, 1)
    ),
    "vmap-outside": lambda f: (
        lambda a, b: tg.vmap(tg.grad(cubes(f), (0, 1)))(np.stack([a, a.T]), np.stack([b, 2 * b]))
    ),
}


@pytest.mark.parametrize(
    ("way", "name"),
    [
        *[(cramer, name) for name in TRANSFORMS],
        *[(jacobi, name) for name in ("grad", "jacfwd", "rev-fwd", "third", "vmap-inside")],
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_derivatives_are_those_of_the_solution(name, way):
    got = TRANSFORMS[name](lambda a, b: solve(a, b, way))(A, B)
    expected = TRANSFORMS[name](exact)(A, B)
    for x, y in zip(tg.tree.leaves(got), tg.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6 if way is jacobi else 1e-12, atol=1e-6)


def test_against_numpy():
    x = np.linalg.solve(A, B)
    np.testing.assert_allclose(solve(A, B), x, rtol=1e-15)
    ga, gb = tg.grad(lambda a, b: tg.sum(solve(a, b)), (0, 1))(A, B)
    lam = np.linalg.solve(A.T, np.ones(2))
    np.testing.assert_allclose(gb, lam, rtol=1e-14)
    np.testing.assert_allclose(ga, -np.outer(lam, x), rtol=1e-14)


def test_symmetric_and_missing_transposes():
    s = np.array([[2.0, 0.5], [0.5, 3.0]])
    plain = lambda a, b, **k: tg.custom_linear_solve(lambda x: a @ x, b, cramer, **k)  # noqa: E731
    loss = lambda a, **k: tg.sum(plain(a, B, **k))  # noqa: E731
    lam = np.linalg.solve(s, np.ones(2))
    got = tg.grad(lambda a: loss(a, symmetric=True))(s)
    np.testing.assert_allclose(got, -np.outer(lam, np.linalg.solve(s, B)), rtol=1e-14)
    tangent = tg.jvp(lambda b: plain(s, b), (B,), (np.ones(2),))[1]
    np.testing.assert_allclose(tangent, lam, rtol=1e-14)
    with pytest.raises(tg.UnsupportedError, match="pass transpose_solve, or symmetric=True"):
        tg.grad(loss)(s)


def test_trees_and_auxiliary_results():
    """Two blocks; the solver also returns how far it was off."""

    def matvec(x):
        return {"u": 2.0 * x["u"] + x["v"], "v": 4.0 * x["v"]}

    def way(matvec, b):
        v = b["v"] / 4.0
        return {"u": (b["u"] - v) / 2.0, "v": v}, {"steps": 7, "scale": b["u"] * 3}

    def turned(vecmat, b):
        u = b["u"] / 2.0
        return {"u": u, "v": (b["v"] - u) / 4.0}, None

    def f(u, v):
        x, aux = tg.custom_linear_solve(matvec, {"u": u, "v": v}, way, turned, has_aux=True)
        assert aux["steps"] == 7
        return x["u"] + 10 * x["v"] + aux["scale"]

    # u = (b_u - b_v / 4) / 2; aux counts for nothing
    for g in (tg.grad(f, (0, 1)), tg.jit(tg.grad(f, (0, 1)))):
        assert [float(d) for d in g(1.0, 2.0)] == [0.5, -0.125 + 2.5]


def test_complex_systems_transpose_without_conjugation():
    a = A + 1j * np.array([[0.5, -1.0], [0.25, 0.0]])
    b = B + 0.5j
    _, pull = tg.vjp(solve, a, b)
    c = np.array([1 - 1j, 2j])
    lam = np.linalg.solve(a.T, c)
    bars = pull(c)
    np.testing.assert_allclose(bars[1], lam, rtol=1e-14)
    np.testing.assert_allclose(bars[0], -np.outer(lam, np.linalg.solve(a, b)), rtol=1e-14)


def test_wrong_solutions_and_right_sides():
    with pytest.raises(tg.ShapeError, match=r"expected a solution of f64\[2\], got f64\[\]"):
        tg.grad(lambda b: tg.custom_linear_solve(lambda x: x, b, lambda f, b: b[0]))(B)
    with pytest.raises(tg.DTypeError, match="b: expected floating or complex arrays"):
        tg.custom_linear_solve(lambda x: x, np.arange(2), lambda f, b: b)
    with pytest.raises(TypeError, match=r"has_aux=True: expected solve to return a pair"):
        tg.custom_linear_solve(lambda x: x, B, lambda f, b: b, has_aux=True)


# ------------------------------------------------------------------------------------ custom_root


def newton(f, x):
    """Looks at values, as solvers do."""
    for _ in range(50):
        y, slope = tg.jvp(f, (x,), (1.0,))
        if abs(float(y)) < 1e-14:
            break
        x = x - y / slope
    return x


def fixed_newton(f, x):
    for _ in range(30):
        y, slope = tg.jvp(f, (x,), (1.0,))
        x = x - y / slope
    return x


def divide(g, y):
    return y / g(1.0)


def cube_root(c, way=fixed_newton):
    return tg.custom_root(lambda x: x**3 - c, 1.0, way, divide)


# c^(1/3) and its derivatives at 8
CUBE_ROOT = [2.0, 1 / 12, -2 / 9 * 8 ** (-5 / 3), 10 / 27 * 8 ** (-8 / 3)]
MODES = {
    "fwd": lambda f: lambda x: tg.jvp(f, (x,), (1.0,))[1],
    "rev": tg.grad,
}


@pytest.mark.parametrize("modes", list(itertools.product(MODES, repeat=3)), ids="-".join)
def test_roots_to_third_order(modes):
    f = cube_root
    for order, mode in enumerate(modes, 1):
        f = MODES[mode](f)
        np.testing.assert_allclose(float(f(8.0)), CUBE_ROOT[order], rtol=1e-13)
    np.testing.assert_allclose(float(tg.jit(f)(8.0)), CUBE_ROOT[3], rtol=1e-13)


def test_solvers_may_look_at_values():
    np.testing.assert_allclose(float(tg.grad(lambda c: cube_root(c, newton))(8.0)), 1 / 12)
    second = tg.grad(tg.grad(lambda c: cube_root(c, newton)))
    np.testing.assert_allclose(float(second(8.0)), CUBE_ROOT[2], rtol=1e-13)
    with pytest.raises(tg.TracerError):
        tg.jit(lambda c: cube_root(c, newton))(8.0)


def test_roots_under_vmap():
    c = np.array([8.0, 27.0])
    slopes = 1 / (3 * np.array([4.0, 9.0]))
    for f in (tg.vmap(tg.grad(cube_root)), tg.grad(lambda c: tg.sum(tg.vmap(cube_root)(c)))):
        np.testing.assert_allclose(f(c), slopes, rtol=1e-14)
    second = tg.vmap(tg.grad(tg.grad(cube_root)))(c)
    np.testing.assert_allclose(second, -2 / 9 * c ** (-5 / 3), rtol=1e-13)


def test_a_system_of_equations():
    """x^2 + y^2 = r^2, y = s x: the intersection of a circle and a line."""

    def f(r, s):
        def equations(p):
            return {"x": p["x"] ** 2 + p["y"] ** 2 - r * r, "y": p["y"] - s * p["x"]}

        def solver(equations, guess):
            x = r / tg.sqrt(1 + s * s)
            return {"x": x, "y": s * x}, "found"

        def tangent(g, y):
            one, zero = tg.asarray(1.0), tg.asarray(0.0)
            a, b = g({"x": one, "y": zero}), g({"x": zero, "y": one})
            det = a["x"] * b["y"] - b["x"] * a["y"]
            return {
                "x": (b["y"] * y["x"] - b["x"] * y["y"]) / det,
                "y": (a["x"] * y["y"] - a["y"] * y["x"]) / det,
            }

        p, how = tg.custom_root(equations, {"x": 1.0, "y": 1.0}, solver, tangent, has_aux=True)
        assert how == "found"
        return p["x"] * p["y"]  # r^2 s / (1 + s^2)

    r, s = 2.0, 0.5
    exact = lambda r, s: r * r * s / (1 + s * s)  # noqa: E731
    np.testing.assert_allclose(float(f(r, s)), exact(r, s), rtol=1e-15)
    for transform in (lambda g: tg.grad(g, (0, 1)), lambda g: tg.hessian(g, (0, 1))):
        got, expected = transform(f)(r, s), transform(exact)(r, s)
        for x, y in zip(tg.tree.leaves(got), tg.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12)


def test_the_guess_has_no_derivative():
    f = lambda guess: tg.custom_root(lambda x: x**3 - 8.0, guess, fixed_newton, divide)  # noqa: E731
    assert float(tg.grad(f)(1.5)) == 0.0


def test_an_iterative_tangent_solve():
    """A custom_linear_solve inside: reverse mode transposes the solve, not its iterations."""

    def tangent(g, y):
        return tg.custom_linear_solve(g, y, jacobi, jacobi)

    def root(c):
        f = lambda x: A @ x + 0.1 * x**3 - c  # noqa: E731

        def solver(f, x):
            for _ in range(60):
                x = x - 0.3 * f(x)
            return x

        return tg.custom_root(f, np.zeros(2), solver, tangent)

    x = np.asarray(root(tg.asarray(B)))
    inverse = np.linalg.inv(A + np.diag(0.3 * x * x))
    for jacobian in (tg.jacfwd, tg.jacrev):
        np.testing.assert_allclose(jacobian(root)(B), inverse, rtol=1e-6)


def test_a_root_without_anything_to_differentiate():
    out = tg.custom_root(lambda x: x - 2.0, 0.0, lambda f, x: "as it came", divide)
    assert out == "as it came"
