"""Every kind of region under every transform, against the program written out in Python.

Both are compiled; values, and derivatives by what is carried, must be the same bits.
"""

import numpy as np
import pytest

import tilegrad as tg

# --------------------------------------------------------------------------------------- programs
# Of one scalar; `loops` is tilegrad's control flow, or Python's.


class Python:
    """Control flow written out: trip counts and branches are those of the case at hand."""

    def __init__(self, trips, branch):
        self.trips, self.branch = trips, branch

    def cond(self, pred, true_fun, false_fun, *operands):
        return (true_fun if self.branch else false_fun)(*operands)

    def scan(self, f, init, xs):
        ys = []
        for x in xs:
            init, y = f(init, x)
            ys.append(y)
        return init, tg.stack(ys)

    def fori_loop(self, low, high, body, init):
        for i in range(self.trips):
            init = body(i, init)
        return init

    def while_loop(self, cond, body, init):
        for _ in range(self.trips):
            init = body(init)
        return init


def branch(loops, x):
    return loops.cond(x > 1, lambda x: tg.log(x) * x, lambda x: tg.sin(x) + x * x, x)


def scanned(loops, x):
    def step(c, t):
        return tg.sin(c * t) + 0.5 * c, c * c * t

    carry, ys = loops.scan(step, x, np.array([0.5, 1.5, -0.25, 2.0]))
    return carry + tg.sum(ys)


def counted(loops, x):
    n = tg.astype(tg.floor(tg.stop_gradient(x) * 2), "int64")
    return loops.fori_loop(0, n, lambda i, c: c * 0.75 + tg.exp(-c) * (i + 1), x)


def newton(loops, x):
    return loops.while_loop(lambda y: tg.abs(y * y - x) > 1e-8 * x, lambda y: 0.5 * (y + x / y), x)


def nested(loops, x):
    def step(c, t):
        y = loops.while_loop(lambda y: y < 5 * x, lambda y: 1.5 * y + 0.25 * t, c)
        return loops.cond(x > 1, lambda y: tg.sin(y) + t, lambda y: y * 0.125, y), y

    carry, ys = loops.scan(step, x, np.array([0.5, 1.0]))
    return carry * ys[0] + ys[1]


@tg.custom_jvp
def softened(x):
    return tg.log1p(tg.exp(x))


@softened.defjvp
def _(primals, tangents):
    (x,), (dx,) = primals, tangents
    return softened(x), 3 * dx / (1 + tg.exp(-x))  # three times too large: the rule must be used


def with_rule(loops, x):
    def step(c, t):
        return softened(c) * t, c

    carry, ys = loops.scan(step, x, np.array([0.5, 0.25, 1.25]))
    return carry + ys[1]


def trips_of_newton(x):
    y, n = x, 0
    while abs(y * y - x) > 1e-8 * x:
        y, n = 0.5 * (y + x / y), n + 1
    return n


CASES = {
    "branch": (branch, [(1.7, Python(0, True)), (0.6, Python(0, False))]),
    "scan": (scanned, [(0.7, Python(0, None))]),
    "counted": (counted, [(1.6, Python(3, None)), (0.3, Python(0, None))]),
    "newton": (newton, [(x, Python(trips_of_newton(x), None)) for x in (2.0, 1.0)]),
    "rule": (with_rule, [(0.4, Python(0, None))]),
}


def forward(f):
    return lambda x: tg.jvp(f, (x,), (1.0,))[1]


TRANSFORMS = {"f": forward, "r": tg.grad}
ORDERS = ["", "f", "r", "ff", "fr", "rf", "rr", "rrr", "frf"]


def transformed(f, order):
    for mode in order:
        f = TRANSFORMS[mode](f)
    return f


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", CASES)
def test_against_the_program_written_out(name, order):
    program, points = CASES[name]
    compiled = tg.jit(transformed(lambda x: program(tg, x), order))
    for x, python in points:
        expected = tg.jit(transformed(lambda x, python=python: program(python, x), order))(x)
        got = np.asarray(compiled(x))
        # By a captured value (x of newton) and in second derivatives, the same terms are added in
        # another order.
        if len(order) < 2 and (name, order) != ("newton", "r"):
            np.testing.assert_array_equal(got, np.asarray(expected))
        np.testing.assert_allclose(got, np.asarray(expected), rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("order", ["", "f", "r", "rf", "rr"])
def test_nested(order):
    compiled = tg.jit(transformed(lambda x: nested(tg, x), order))
    eager = transformed(lambda x: nested(tg, x), order)
    for x in (0.7, 1.2):
        np.testing.assert_allclose(float(compiled(x)), float(eager(x)), rtol=1e-12)


@pytest.mark.parametrize("order", ["", "f", "r", "rf", "rr"])
@pytest.mark.parametrize("name", [*CASES, "nested"])
def test_vmap_outside(name, order):
    program = CASES[name][0] if name in CASES else nested
    f = transformed(lambda x: program(tg, x), order)
    xs = np.array([0.6, 1.7, 1.0, 2.5, 0.3])
    each = tg.jit(f)
    expected = np.array([float(each(x)) for x in xs])
    got = np.asarray(tg.jit(tg.vmap(f))(xs))
    if len(order) < 2 and name != "nested":
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("order", ["r", "f"])
@pytest.mark.parametrize("name", [*CASES, "nested"])
def test_vmap_inside(name, order):
    program = CASES[name][0] if name in CASES else nested
    xs = np.array([0.6, 1.7, 1.0, 2.5])
    if order == "r":
        got = tg.jit(tg.grad(lambda xs: tg.sum(tg.vmap(lambda x: program(tg, x))(xs))))(xs)
    else:
        got = tg.jit(lambda xs: tg.jvp(tg.vmap(lambda x: program(tg, x)), (xs,), (np.ones(4),))[1])(
            xs
        )
    each = tg.jit(TRANSFORMS[order](lambda x: program(tg, x)))
    np.testing.assert_allclose(np.asarray(got), [float(each(x)) for x in xs], rtol=1e-12)


@pytest.mark.parametrize("modes", ["ff", "fr", "rf", "rr"])
def test_hessians_in_all_orders_of_modes(modes):
    """Of a scan over a vector state with captured weights, against the unrolled program."""
    jacobians = {"f": tg.jacfwd, "r": tg.jacrev}

    def loss(x, unroll):
        weights = tg.stack([tg.sin(x), tg.cos(x)])

        def step(c, t):
            return tg.tanh(weights @ x * c + t * x[:2]), tg.sum(c * c)

        carry, ys = tg.scan(step, x[1:], np.array([0.5, -1.0, 0.25]), unroll=unroll)
        return tg.sum(carry) + tg.sum(ys)

    x = np.array([0.3, -0.7, 0.9])
    outer, inner = (jacobians[m] for m in modes)
    got, expected = (
        np.asarray(tg.jit(outer(inner(lambda x, u=u: loss(x, u))))(x)) for u in (1, True)
    )
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(got, got.T, rtol=1e-12, atol=1e-13)


# ------------------------------------------------------------------------------------ closed forms


@pytest.mark.parametrize("x", [0.5, 2.0, 1e4])
def test_derivatives_of_a_newton_iteration(x):
    """The square root by a while loop: values and derivatives of any order, in closed form."""

    def root(x):
        return tg.while_loop(
            lambda c: tg.abs(c[0] - c[1]) > 1e-15 * c[0],
            lambda c: (0.5 * (c[0] + x / c[0]), c[0]),
            (x + 1, x * 0),
        )[0]

    f = root
    expected = [x**0.5, 0.5 * x**-0.5, -0.25 * x**-1.5, 0.375 * x**-2.5]
    for order in range(4):
        np.testing.assert_allclose(float(tg.jit(f)(x)), expected[order], rtol=1e-10)
        f = tg.grad(f)


def test_derivative_of_a_bisection():
    """Bisection halves an interval that depends on x: the derivative is that of the steps taken."""

    def middle(x):
        def step(c):
            low, high = c
            m = 0.5 * (low + high)
            return tg.cond(m < 0.3 * tg.stop_gradient(x), lambda: (m, high), lambda: (low, m))

        low, high = tg.while_loop(lambda c: c[1] - c[0] > 1e-3 * x, step, (0 * x, x))
        return 0.5 * (low + high)

    for x in (1.0, 7.0):
        got = tg.jit(middle)(x)
        assert abs(float(got) - 0.3 * x) < 1e-3 * x
        # The interval scales with x, so its middle is x times a constant.
        np.testing.assert_allclose(float(tg.jit(tg.grad(middle))(x)), float(got) / x, rtol=1e-14)
        assert float(tg.jit(tg.grad(tg.grad(middle)))(x)) == 0


def test_gradient_of_a_loop_guarded_by_integers():
    """x**(number of Collatz steps of n): the integers decide, the float is differentiated."""

    def power(x, n):
        return tg.while_loop(
            lambda c: c[0] != 1,
            lambda c: (tg.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] * x),
            (n, 1.0 * x / x),
        )[1]

    x, n, steps = 1.01, 27, 111
    np.testing.assert_allclose(float(tg.jit(power)(x, n)), x**steps, rtol=1e-13)
    np.testing.assert_allclose(
        float(tg.jit(tg.grad(power))(x, n)), steps * x ** (steps - 1), rtol=1e-13
    )
    np.testing.assert_allclose(
        float(tg.jit(tg.grad(tg.grad(power)))(x, n)),
        steps * (steps - 1) * x ** (steps - 2),
        rtol=1e-12,
    )


def test_gradients_by_weights_of_a_recurrent_cell():
    """By captured matrices, which meet a vector in each step, against the unrolled program."""
    rng = np.random.default_rng(0)
    w, u, xs = rng.normal(size=(5, 5)) / 3, rng.normal(size=(5, 3)), rng.normal(size=(7, 3))

    def loss(w, u, xs, unroll):
        def cell(h, x):
            new = tg.tanh(w @ h + u @ x)
            return new, tg.sum(new**2)

        h, ys = tg.scan(cell, tg.zeros(5), xs, unroll=unroll)
        return tg.sum(ys) + tg.sum(h)

    got, expected = (
        tg.jit(tg.grad(lambda *a, k=k: loss(*a, k), argnums=(0, 1, 2)))(w, u, xs) for k in (1, True)
    )
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-14)


def test_nothing_leaks_from_branches_under_vmap():
    """What the branch not taken would give is NaN: in values, and by mapped and shared operands."""

    def f(x, shared):
        return tg.cond(x > 0, lambda x: tg.log(x) * tg.sqrt(shared), lambda x: x * shared * 2, x)

    xs = np.array([-1.0, 2.0, -3.0])
    for shared in (-4.0, 4.0):
        only = xs[xs < 0] if shared < 0 else xs  # sqrt(-4) is NaN where it is taken
        got = tg.jit(tg.vmap(f, in_axes=(0, None)))(only, shared)
        taken = [np.log(x) * np.sqrt(shared) if x > 0 else 2 * x * shared for x in only]
        np.testing.assert_allclose(np.asarray(got), taken, rtol=1e-15)
        by_x, by_shared = tg.jit(
            tg.grad(lambda x, s: tg.sum(tg.vmap(f, in_axes=(0, None))(x, s)), argnums=(0, 1))
        )(only, shared)
        slopes = [np.sqrt(shared) / x if x > 0 else 2 * shared for x in only]
        np.testing.assert_allclose(np.asarray(by_x), slopes, rtol=1e-15)
        total = sum(np.log(x) / 2 / np.sqrt(shared) if x > 0 else 2 * x for x in only)
        np.testing.assert_allclose(float(by_shared), total, rtol=1e-15)


def test_captures_stay_unbatched():
    """A shared matrix is not repeated for the examples, and records have the batch behind time."""
    weights = np.arange(9.0).reshape(3, 3)

    def f(x):
        return tg.scan(lambda c, _: (tg.tanh(weights @ c), c), x, None, length=5)[1]

    graph = tg.trace(tg.vmap(f))(np.ones((7, 3)))
    (loop,) = [node for node in graph.nodes() if node.op.name == "loop"]
    assert loop.inputs[0].shape == (3, 3)
    assert loop.types[1].shape == (5, 7, 3)
    assert tg.jit(tg.vmap(f))(np.ones((7, 3))).shape == (7, 5, 3)
