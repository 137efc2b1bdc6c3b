"""Carries that are updated in place: no copies, and nobody reads what is not there any more."""

from __future__ import annotations

import numpy as np
import pytest
from plans import graph_of
from regions import agree, cond, driven, loop, rng, while_

from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64
from tilegrad.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from tilegrad.ir.ops.leaves import constant
from tilegrad.ir.ops.shape import reshape


def rows_updated(i, c, x):
    row = dynamic_slice(c, i, constant(0), sizes=(1, c.shape[1]))
    return (dynamic_update_slice(c, reshape(x, (1, -1)) + row * 0.5, i + 1, constant(0)),)


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_rows_of_a_carry(trips):
    def program(c, xs):
        return loop(rows_updated, init=[c], xs=[xs], length=trips)

    arguments = [rng(40, 50), rng(trips, 50)]
    graph = graph_of(program, *arguments)
    agree(graph, arguments)
    before = arguments[0].copy()
    driven(graph).run(arguments)
    assert arguments[0].tobytes() == before.tobytes()  # the caller's array is as it was


def test_updates_cost_their_rows():
    """A thousand rows of a carry of 8 MB: no copy of it but the first."""

    def program(c, xs):
        return loop(rows_updated, init=[c], xs=[xs], length=1000)

    plan = driven(graph_of(program, ((1001, 1000), float64), ((1000, 1000), float64)))
    assert plan.cost()["arena"] < 100_000
    assert plan.cost()["bytes"] < 50e6


def test_updates_through_branches_and_loops_inside():
    def add(c, i):
        old = dynamic_slice(c, i, constant(0), sizes=(1, 1))
        return dynamic_update_slice(c, old + 1.0, i, constant(1))

    def body(i, c):
        (d,) = cond(ops.remainder(i, 2), [add, lambda c, i: c], c, i)
        return loop(
            lambda j, i, d: (
                dynamic_update_slice(d, dynamic_slice(d, i, j, sizes=(1, 1)) * 2.0, j, i),
            ),
            consts=[i],
            init=[d],
            length=3,
        )

    def program(c):
        return loop(body, init=[c], length=5)

    arguments = [rng(40, 50)]
    graph = graph_of(program, *arguments)
    agree(graph, arguments)
    assert driven(graph).cost()["arena"] < 8 * 40 * 50


def test_old_values_are_read_before_they_are_overwritten():
    def body(i, c, total):
        old = dynamic_slice(c, i, sizes=(1,))
        new = dynamic_update_slice(c, old * 2.0 + total, i)
        return (
            new,
            total + ops.sum_(old) + ops.sum_(c),
            dynamic_slice(c, i, sizes=(2,)),
            ops.max_(c),
        )

    def program(c, total):
        return loop(body, init=[c, reshape(total, (1,))], length=6)

    arguments = [rng(2000), np.array(0.25)]
    agree(graph_of(program, *arguments), arguments)


def test_two_carries_that_read_each_other():
    def body(i, a, b):
        new_a = dynamic_update_slice(a, dynamic_slice(b, i, sizes=(3,)) + 1.0, i)
        new_b = dynamic_update_slice(b, dynamic_slice(a, i + 1, sizes=(3,)) * 2.0, i)
        return new_a, new_b

    def crossed(i, a, b):
        return body(i, b, a)

    arguments = [rng(2000), rng(2000, seed=1)]
    for step in (body, crossed):
        graph = graph_of(lambda a, b, step=step: loop(step, init=[a, b], length=7), *arguments)
        agree(graph, arguments)


def test_the_same_start_for_two_carries():
    def body(i, a, b):
        return dynamic_update_slice(a, ops.sum_(b, keepdims=True), i), b * 0.5

    def program(x):
        y = ops.exp(x)
        return (*loop(body, init=[y, y], length=5), ops.sum_(y))

    agree(graph_of(program, rng(1500)), [rng(1500)], exact=False)


def test_an_open_loop_in_place():
    def body(i, c, n):
        return dynamic_update_slice(c, reshape(ops.convert(n, float64), (1,)), n), n + 1

    def program(c):
        return while_(lambda c, n: ops.lt(n, 5), body, init=[c, constant(0)])

    agree(graph_of(program, rng(3000)), [rng(3000)])


def test_an_argument_given_away_is_updated_where_it_lies():
    def program(c, xs):
        return loop(rows_updated, init=[c], xs=[xs], length=4)

    arguments = [rng(300, 200), rng(4, 200)]
    plan = driven(graph_of(program, *arguments))
    (right,) = plan.run(arguments)
    given = arguments[0].copy()
    (found,) = plan.run([given, arguments[1]], donated=(0,))
    assert np.shares_memory(found, given)
    assert found.tobytes() == right.tobytes()
