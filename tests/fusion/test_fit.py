"""Programs brought into a byte budget: the same bits, the measured peak below it."""

from __future__ import annotations

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.fusion.fit import fit, memory_of
from tilegrad.ir.errors import BudgetError
from tilegrad.ir.interpret import interpret_graph
from tilegrad.ir.passes.manager import optimize

RNG = np.random.default_rng(0)
WEIGHTS = [RNG.standard_normal((16, 16)) / 4 for _ in range(12)]
X = RNG.standard_normal((128, 16))


def loss(weights, x):
    for w in weights:
        x = tg.tanh(x @ w)
    return tg.sum(x * x)


def skips(weights, x):
    first = x
    for w in weights:
        x = tg.tanh(x @ w) + first * tg.sin(x)
    return tg.sum(x * x)


def program(f=loss):
    return optimize(tg.trace(tg.value_and_grad(f))(WEIGHTS, X))


def dots(graph):
    return sum(node.op.name == "dot" for node in graph.nodes())


@pytest.mark.parametrize(
    ("f", "part"), [(loss, 1.0), (loss, 0.75), (loss, 0.6), (loss, 0.45), (skips, 0.85)]
)
def test_the_budget_is_kept_and_the_bits_are_the_same(f, part):
    graph = program(f)
    budget = int(memory_of(graph) * part)
    found = fit(graph, budget, "f")
    assert memory_of(found) <= budget
    arguments = [*WEIGHTS, X]
    for a, b in zip(
        interpret_graph(found, arguments), interpret_graph(graph, arguments), strict=True
    ):
        assert a.tobytes() == b.tobytes()


def test_what_fits_is_left_alone_and_order_comes_before_work():
    graph = program()
    whole = memory_of(graph)
    assert fit(graph, whole) is graph
    ordered = fit(graph, int(whole * 0.75))
    assert dots(ordered) == dots(graph)  # another order does
    less = fit(graph, int(whole * 0.45))
    assert dots(graph) < dots(less) <= dots(graph) + 12 * 2  # each product twice more at most


def test_what_does_not_fit_says_how_much_is_needed():
    graph = program()
    with pytest.raises(
        BudgetError, match=r"f: expected a memory_budget of \d+ bytes at least, got 9"
    ) as caught:
        fit(graph, 9, "f")
    needed = caught.value.needed
    fixed = sum(w.nbytes for w in WEIGHTS) * 2 + X.nbytes
    assert fixed < needed < memory_of(graph)
    assert f"alone take {fixed + 8}" in str(caught.value)
    assert memory_of(fit(graph, needed, "f")) <= needed


def test_at_jit():
    plain = tg.jit(tg.value_and_grad(loss))
    whole = plain.lower(WEIGHTS, X).cost()["peak_memory"]
    budget = whole // 2
    f = tg.jit(tg.value_and_grad(loss), memory_budget=budget)
    assert f.lower(WEIGHTS, X).cost()["peak_memory"] <= budget
    for a, b in zip(tg.tree.leaves(f(WEIGHTS, X)), tg.tree.leaves(plain(WEIGHTS, X)), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    small = tg.jit(tg.grad(loss), memory_budget=1000)
    with pytest.raises(BudgetError, match=r"jit\(loss\): expected a memory_budget of"):
        small(WEIGHTS, X)
    with pytest.raises(TypeError, match=r"memory_budget: expected bytes, got 1\.5"):
        tg.jit(loss, memory_budget=1.5)


def test_a_program_that_is_no_derivative():
    def f(weights, x):
        states = []
        for w in weights:
            x = tg.sort(x @ w, axis=0)
            states.append(x)
        for y in reversed(states):
            x = tg.cumsum(x * y, axis=0)
        return x

    graph = optimize(tg.trace(f)(WEIGHTS, X))
    budget = int(memory_of(graph) * 0.65)
    found = fit(graph, budget)
    assert memory_of(found) <= budget
    (a,) = interpret_graph(found, [*WEIGHTS, X])
    (b,) = interpret_graph(graph, [*WEIGHTS, X])
    assert a.tobytes() == b.tobytes()
