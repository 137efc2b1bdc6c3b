"""Sums of cotangents of which one touches a few elements: the same sum, and its cost."""

from __future__ import annotations

import numpy as np
import pytest
from plans import graph_of

import tilegrad as tg
from tilegrad.autodiff.accumulation import accumulated
from tilegrad.ir import ops
from tilegrad.ir.graph import make
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.ops.dynamic import dynamic_update_slice
from tilegrad.ir.ops.fill import zeros_of
from tilegrad.ir.ops.scatter import SCATTER


def scattered(like, updates, places):
    how = {"axes": (0,), "how": "add", "mode": "raise", "checked": False}
    return make(SCATTER, (zeros_of(like.type), updates, places), **how)


def written(like, update, start):
    return dynamic_update_slice(zeros_of(like.type), update, start)


PARTS = {
    "scattered": lambda t, u, i, d: scattered(t, u, i),
    "written": lambda t, u, i, d: written(t, u, 7),
    "written from the end": lambda t, u, i, d: written(t, u, -9),
    "dense": lambda t, u, i, d: d * 2.0,
    "two": lambda t, u, i, d: written(t, u, 7) + scattered(t, u, i),
    "all of them": lambda t, u, i, d: written(t, u, 7) + (d + scattered(t, u, i)) + d,
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("swapped", [False, True])
def test_the_same_sum(name, swapped):
    def program(t, u, i, d):
        part = PARTS[name](t, u, i, d)
        return accumulated(part, t) if swapped else accumulated(t, part), t + part

    r = np.random.default_rng(0)
    arguments = [r.integers(-9, 9, n).astype(float) for n in (50, 4, 50)]  # sums are exact
    arguments.insert(2, np.array([3, 40, 3, -1]))
    graph = graph_of(program, *arguments)
    found, right = interpret_graph(graph, arguments)
    np.testing.assert_array_equal(found, right)
    if name in ("scattered", "written"):
        (first, _) = graph.outputs
        assert first.node.op.name in ("scatter", "dynamic_update_slice")
        assert first.node.inputs[0] == graph.inputs[0].out


def test_what_is_not_zero_is_added():
    def program(t, u, i, d):
        part = make(SCATTER, (d, u, i), axes=(0,), how="add", mode="raise", checked=False)
        return accumulated(t, part), ops.add(t, part)

    arguments = [np.ones(9), np.ones(2), np.array([1, 1]), np.arange(9.0)]
    found, right = interpret_graph(graph_of(program, *arguments), arguments)
    np.testing.assert_array_equal(found, right)


def test_a_gradient_writes_into_its_sum():
    """d/dx of the loop s <- s + x[i]^2 x[i+1]: an iteration costs two elements, not all."""
    n = 1500

    def f(x):
        return tg.fori_loop(0, n - 1, lambda i, s: s + x[i] ** 2 * x[i + 1], 0.0)

    x = np.random.default_rng(0).standard_normal(n)
    gradient = tg.jit(tg.grad(f))
    expected = np.zeros(n)
    expected[:-1] += 2 * x[:-1] * x[1:]
    expected[1:] += x[:-1] ** 2
    np.testing.assert_allclose(np.asarray(gradient(x)), expected, rtol=1e-12)
    text = gradient.lower(x).as_text("fused")
    assert "in place" in text
    assert "in turns" not in text.split("in place")[-1]


def test_a_gradient_of_updates_works_in_place():
    n = 1200

    def f(x):
        c = tg.fori_loop(0, n - 1, lambda i, c: c.at[i + 1].set(c[i] * 0.5 + c[i + 1]), x)
        return tg.sum(c * c)

    x = np.random.default_rng(0).standard_normal(n)
    gradient = tg.jit(tg.grad(f))
    c, bar = x.copy(), np.zeros(n)
    for i in range(n - 1):
        c[i + 1] += 0.5 * c[i]
    bar = 2 * c
    for i in reversed(range(n - 1)):
        bar[i] += 0.5 * bar[i + 1]
    np.testing.assert_allclose(np.asarray(gradient(x)), bar, rtol=1e-12)
    assert gradient.lower(x).as_text("fused").count("in place") == 2


class Python:
    """Loops written out."""

    @staticmethod
    def fori_loop(start, stop, body, carry):
        for i in range(start, stop):
            carry = body(i, carry)
        return carry


def twice(loops, x):
    return loops.fori_loop(
        0,
        4,
        lambda i, s: loops.fori_loop(0, 4, lambda j, s: s * 0.9 + x[i, j] * x[j, i] * s, s),
        1.0,
    )


def thrice(loops, x):
    def inner(i, j, s):
        return loops.fori_loop(0, 2, lambda k, s: tg.sin(s + x[i, j] * x[k, i + 1]), s)

    return loops.fori_loop(
        0, 3, lambda i, s: loops.fori_loop(0, 4, lambda j, s: inner(i, j, s), s), 0.5
    )


def one_after_the_other(loops, x):
    """Two loops inside, of which the second needs what the first makes, and reads between them."""

    def body(i, s):
        s = loops.fori_loop(0, 3, lambda j, s: s + x[i, j] ** 2 * s, s) * x[i, i]
        return loops.fori_loop(1, 4, lambda j, s: s * 0.5 + x[j, i] * s * s, s) + tg.sum(x)

    return loops.fori_loop(0, 4, body, 0.25)


def two_arrays(loops, x):
    """Sums for two arrays in the same loops, and the array itself as well."""
    y = x * x

    def body(i, s):
        return loops.fori_loop(0, 4, lambda j, s: tg.cos(s + x[i, j]) * y[j, i] + y[i, i], s)

    return loops.fori_loop(0, 4, body, 0.25) * tg.sum(y)


@pytest.mark.parametrize("program", [twice, thrice, one_after_the_other, two_arrays])
def test_loops_in_loops_go_on_from_the_sum(program):
    x = np.random.default_rng(3).standard_normal((4, 4)) / 3
    expected = np.asarray(tg.grad(lambda x: program(Python, x))(x))
    for wrap in (lambda f: f, tg.jit):
        found = np.asarray(wrap(tg.grad(lambda x: program(tg, x)))(x))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    rows = np.asarray(tg.jit(tg.jacobian(tg.grad(lambda x: program(tg, x))))(x)).reshape(16, 16)
    np.testing.assert_allclose(rows, rows.T, rtol=1e-10, atol=1e-12)
    mapped = np.asarray(tg.vmap(tg.grad(lambda x: program(tg, x)))(np.stack([x, -x])))
    np.testing.assert_allclose(mapped[0], expected, rtol=1e-12, atol=1e-14)


def test_nested_sums_are_written_in_place():
    n = 40
    gradient = tg.jit(
        tg.grad(
            lambda x: tg.fori_loop(
                0, n, lambda i, s: tg.fori_loop(0, n, lambda j, s: s + x[i, j] * s * 0.01, s), 1.0
            )
        )
    )
    text = gradient.lower(np.ones((n, n))).as_text("fused")
    assert text.count("in place") == 2
