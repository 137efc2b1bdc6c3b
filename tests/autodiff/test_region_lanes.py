"""Lanes with trips of their own: one that has finished, or that takes another branch, meets nothing
that could fail, run for ever or be seen. Against one example at a time, in Python."""

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.passes.manager import optimize

RNG = np.random.default_rng(5)
WEIGHTS = tg.asarray(RNG.normal(size=(24, 24)) / 5)
TRIPS = np.array([0, 2, 1, 3])


def small(c):
    return 0.5 * c


def large(c):
    """Too much for a lane in registers."""
    return tg.tanh(WEIGHTS @ c)


# What a step does besides, of a captured value that is harmless in lanes that make a step, and
# fatal in the one that makes none.
RISKS = {
    "division": (lambda i, n, k: n // k, np.array([0, 3, 5, 2])),
    "index": (lambda i, n, k: tg.arange(9)[k + i], np.array([99, 0, 8, 4])),
    "negative power": (lambda i, n, k: n**k, np.array([-1, 2, 1, 0])),
    "count": (
        lambda i, n, k: tg.fori_loop(0, k, lambda j, v: v + 2, n),
        np.array([10**15, 3, 0, 1]),
    ),
    "condition": (
        lambda i, n, k: tg.while_loop(lambda v: v < 20, lambda v: v + k, n),
        np.array([0, 3, 5, 2]),
    ),
}


def counted(step, risk, x, trips, k):
    body = lambda i, c: (step(c[0]), risk(i, c[1], k) % 13)  # noqa: E731
    return tg.fori_loop(0, trips, body, (x, 7))


def open_ended(step, risk, x, trips, k):
    body = lambda c: (c[0] + 1, step(c[1]), risk(c[0], c[2], k) % 13)  # noqa: E731
    return tg.while_loop(lambda c: c[0] < trips, body, (0, x, 7))[1:]


@pytest.mark.parametrize("risk", RISKS.values(), ids=RISKS)
@pytest.mark.parametrize("step", [small, large])
@pytest.mark.parametrize("loop", [counted, open_ended])
def test_finished_lanes_do_not_meet_what_they_captured(loop, step, risk):
    function, k = risk
    x = RNG.normal(size=(4, 24))
    program = lambda x, n, k: loop(step, function, x, n, k)  # noqa: E731
    alone = [program(tg.asarray(x[j]), int(TRIPS[j]), int(k[j])) for j in range(4)]
    expected = [np.stack([np.asarray(pair[m]) for pair in alone]) for m in range(2)]
    graph = tg.trace(tg.vmap(program))(x, TRIPS, k)
    given = [x, TRIPS, k, np.asarray(WEIGHTS)][: len(graph.inputs)]
    for found in (
        tg.jit(tg.vmap(program))(x, TRIPS, k),
        interpret_graph(graph, given),
        interpret_graph(optimize(graph), given),
    ):
        np.testing.assert_allclose(np.asarray(found[0]), expected[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(np.asarray(found[1]), expected[1])


@pytest.mark.parametrize("step", [small, large])
@pytest.mark.parametrize("loop", [counted, open_ended])
@pytest.mark.parametrize("outside", [False, True], ids=["of each", "of the sum"])
def test_gradients_with_captured_indices(loop, step, outside):
    function, k = lambda i, n, k: n, np.array([99, 0, 22, 4])

    def loss(x, n, k):
        picked = lambda c: step(c) + x[k]  # noqa: E731
        return tg.sum(loop(picked, function, x, n, k)[0] * np.arange(24.0))

    x = RNG.normal(size=(4, 24))
    expected = [
        np.asarray(tg.grad(loss)(x[j], int(TRIPS[j]), int(k[j]))) if TRIPS[j] else np.arange(24.0)
        for j in range(4)
    ]
    if outside:
        found = tg.jit(tg.grad(lambda x: tg.sum(tg.vmap(loss)(x, TRIPS, k))))(x)
    else:
        found = tg.jit(tg.vmap(tg.grad(loss)))(x, TRIPS, k)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-13)


def by_index(i, c, x):
    return c.at[i % 3].set(c[i % 3] * 0.5 + tg.sin(c[2 - i % 3]) * x)


def by_much(i, c, x):
    return tg.sin(c * tg.sum(tg.sin(WEIGHTS * (i + 1)) @ WEIGHTS)) * x


def square(i, c, x):
    """A matrix as large each way as there are lanes, of the index alone."""
    return tg.sin(tg.tanh(tg.reshape(tg.arange(9.0), (3, 3)) * (i + 1)) @ c) * x


@pytest.mark.parametrize("step", [by_index, by_much, square])
@pytest.mark.parametrize("kind", ["count", "while"])
def test_what_belongs_to_no_lane_is_on_no_tape(kind, step):
    """Values of the index alone, which the backward run reads: it computes them again."""

    def loss(x, n):
        if kind == "count":
            return tg.sum(tg.fori_loop(0, n, lambda i, c: step(i, c, x), x * tg.ones(3)))
        body = lambda c: (c[0] + 1, step(c[0], c[1], x))  # noqa: E731
        return tg.sum(tg.while_loop(lambda c: c[0] < n, body, (0, x * tg.ones(3)))[1])

    x, n = np.array([1.0, 2.0, 0.5]), np.array([0, 3, 2])
    expected = [float(tg.grad(loss)(x[k], int(n[k]))) for k in range(3)]
    second = [float(tg.grad(tg.grad(loss))(x[k], int(n[k]))) for k in range(3)]
    total = lambda x: tg.sum(tg.vmap(loss)(x, n))  # noqa: E731
    for found in (tg.jit(tg.grad(total))(x), tg.jit(tg.vmap(tg.grad(loss)))(x, n)):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
    hessian = tg.jit(tg.grad(lambda x: tg.sum(tg.grad(total)(x))))(x)
    np.testing.assert_allclose(np.asarray(hessian), second, rtol=1e-11, atol=1e-13)


def test_factors_of_matrices_that_only_some_lanes_use():
    a = np.array([-np.eye(2), [[4.0, 2.0], [2.0, 5.0]]])
    program = lambda n, a: tg.fori_loop(  # noqa: E731
        0, n, lambda i, c: c + tg.linalg.cholesky(a), tg.zeros((2, 2))
    )
    found = np.asarray(tg.vmap(program)(np.array([0, 2]), a))
    np.testing.assert_array_equal(found[0], np.zeros((2, 2)))
    np.testing.assert_allclose(found[1], 2 * np.linalg.cholesky(a[1]), rtol=1e-15)


def test_branches_that_run_for_long_in_lanes_that_do_not_take_them():
    program = lambda n: tg.cond(  # noqa: E731
        n < 100, lambda: tg.fori_loop(0, n, lambda i, c: c + 1.0, 0.0), lambda: -1.0
    )
    assert list(tg.vmap(program)(np.array([3, 10**15, 50]))) == [3, -1, 50]


@pytest.mark.parametrize("trips", [[0, 5, 2], [0, 0, 0], [4, 4, 4], [1, 0, 17]])
def test_segments_of_lanes(trips):
    """The inner counts of finished lanes are what a tape happens to hold for them."""

    def program(w, n, checkpoint=None):
        body = lambda c: (c[0] + 1, tg.sin(c[1]) * w)  # noqa: E731
        return tg.while_loop(lambda c: c[0] < n, body, (0, w), checkpoint=checkpoint)[1]

    w, n = np.array([3.0, 2.0, 1.0]), np.array(trips)
    expected = [float(tg.grad(program)(w[j], int(n[j]))) for j in range(3)]
    cut = lambda w, n: program(w, n, "sqrt")  # noqa: E731
    for found in (
        tg.jit(tg.vmap(tg.grad(cut)))(w, n),
        tg.jit(tg.grad(lambda w: tg.sum(tg.vmap(cut)(w, n))))(w),
    ):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)


def shown(k, c):
    tg.debug.print("{k} {c}", k=k, c=c)
    return c * 2


@pytest.mark.parametrize("kind", ["count", "while"])
@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit], ids=["plain", "jit"])
def test_effects_of_lanes_that_have_finished_do_not_happen(kind, wrap, capsys):
    def program(x, n):
        if kind == "count":
            return tg.fori_loop(0, n, shown, x)
        step = lambda c: (c[0] + 1, shown(c[0], c[1]))  # noqa: E731
        return tg.while_loop(lambda c: c[0] < n, step, (0, x))[1]

    x, n = np.array([1.0, 2.0, 5.0]), np.array([0, 1, 2])
    found = wrap(tg.vmap(program))(x, n)
    np.testing.assert_array_equal(np.asarray(found), [1, 4, 20])
    lines = sorted(capsys.readouterr().out.splitlines())
    assert lines == ["0 2.0", "0 5.0", "1 10.0"]


def test_effects_of_lanes_of_lanes(capsys):
    program = lambda x, n: tg.fori_loop(0, n, shown, x)  # noqa: E731
    over = tg.vmap(tg.vmap(program, (0, 0)), (None, 0))
    found = tg.jit(over)(np.array([1.0, 2.0]), np.array([[0, 1], [2, 0]]))
    np.testing.assert_array_equal(np.asarray(found), [[1, 4], [4, 2]])
    lines = sorted(capsys.readouterr().out.splitlines())
    assert lines == ["0 1.0", "0 2.0", "1 2.0"]
