"""The partition between known and linear parts: the rules one by one, and brute force."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from tilegrad.autodiff import reverse
from tilegrad.autodiff.rematerialize import partition, reads_of
from tilegrad.autodiff.saving_network import LONGEST_CHAIN, Network, bytes_of, work_of
from tilegrad.ir.dtypes import float32, float64
from tilegrad.ir.errors import BudgetError
from tilegrad.ir.graph import toposort
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops import cumsum, erf, exp, matmul, mul, sin, sort, sum_
from tilegrad.ir.ops.leaves import input_node
from tilegrad.ir.rewrite import substitute
from tilegrad.ir.types import GROWING, TensorType


def variable(*shape, dtype=float64):
    return input_node(TensorType(shape, dtype), "x").out


def linear_part(outputs, wrt):
    inputs, tangents = reverse.linearize(outputs, wrt)
    return reverse.linear_nodes([t for t in tangents if t is not None], [n.out for n in inputs])


def split(outputs, wrt, given=None, **options):
    linear = linear_part(outputs, wrt)
    return partition(outputs, linear, wrt if given is None else given, **options)


def row(found, value):
    return next(r for r in found.rows if r.value == value)


# ------------------------------------------------------------------- the example of the reference


@pytest.fixture
def example():
    """sum(gelu(x @ W)): h of 8192 bytes is all that crosses."""
    x, w = variable(32, 64, dtype=float32), variable(64, 64, dtype=float32)
    h = matmul(x, w)
    g = h * 0.5 * (1.0 + erf(h * 0.7071067811865476))
    return x, w, h, g, sum_(g)


def test_the_example_saves_h_alone(example):
    x, w, h, _, loss = example
    found = split([loss], [w], given=[x, w])
    assert found.saved == (h,)
    assert found.nbytes == 32 * 64 * 4
    assert found.capacity == 9011  # 8192 * 1.1, cut off
    assert "erf" in {node.op.name for node in found.recomputed}


def test_the_table_of_the_example(example):
    x, w, h, g, loss = example
    found = split([loss], [w], given=[x, w])
    rows = {name: row(found, v) for name, v in (("h", h), ("gelu", g), ("sum", loss))}
    assert [rows[k].capacity for k in rows][:2] == [9011, int(2 * 8192 * 1.1**100)]
    assert rows["gelu"].capacity == pytest.approx(2.26e8, rel=2e-3)
    assert [rows[k].distance for k in rows] == [1, 100, 100]
    assert [rows[k].written for k in rows] == [True, False, True]
    assert [bool(rows[k].reason) for k in rows] == [True, False, True]
    assert [rows[k].saved for k in rows] == [True, False, False]


# ------------------------------------------------------------------------ what is forbidden, why


def test_what_is_not_cheap_is_saved():
    x = variable(50)
    for op, name in ((sort, "sort"), (cumsum, "cumsum")):
        y = op(x)
        found = split([sum_(exp(y) * x)], [x])
        assert any("not cheap" in r.reason for r in found.rows), name
        assert all(node.op.name != name for node in found.recomputed)


def test_what_the_backward_part_writes_anyhow_is_saved():
    x, w = variable(8, 8), variable(8, 8)
    a = exp(x)  # an operand of the product that gives the cotangent of w
    found = split([sum_(matmul(a, w))], [x, w])
    assert a in found.saved
    assert "would write it to memory for dot" in row(found, a).reason
    elementwise = split([sum_(a * w)], [x, w])
    assert elementwise.saved == ()


@pytest.mark.parametrize(("rows", "forbidden"), [(5, True), (4, False), (3, False)])
def test_a_reduction_that_gives_little_for_what_it_reads(rows, forbidden):
    x = variable(rows, 16)
    s = sum_(exp(x), axis=0)  # gives a part of 1 in `rows` of what it reads: less than a quarter?
    found = split([sum_(exp(s))], [x])
    assert bool(row(found, s).reason) == forbidden


def test_a_long_chain_is_saved_now_and_then():
    x = variable(10)
    y = x
    for _ in range(3 * LONGEST_CHAIN):
        y = sin(y)
    found = split([sum_(y)], [x])
    assert len(found.saved) >= 2
    short = x
    for _ in range(LONGEST_CHAIN // 2):
        short = sin(short)
    assert split([sum_(short)], [x]).saved == ()


def test_a_value_read_nearby_and_far_away_is_saved():
    x, w = variable(8, 8), variable(8, 8)
    a = exp(x)
    far = matmul(matmul(sin(a), w), w)
    found = split([sum_(far * a)], [x], given=[x, w])
    assert row(found, a).reason == "read nearby and far away"
    near = split([sum_(sin(a) * a)], [x], given=[x, w])
    assert not row(near, a).reason


def test_no_finite_cut_saves_everything():
    x = variable(8, 8)
    h = matmul(x, x)
    outputs = [sum_(exp(h))]
    linear = linear_part(outputs, [x])
    found = partition(outputs, linear, [x], unsaveable=lambda v: v.node.op.name == "dot")
    assert found.capacity is not None  # past the product there is a cut
    again = partition(outputs, linear, [x], unsaveable=lambda v: True)
    assert again.saved == ()  # all is computed again, products too
    assert h.node in again.recomputed
    none = partition(outputs, linear, unsaveable=lambda v: True)
    assert none.capacity is None
    assert none.recomputed == ()
    assert set(none.saved) == set(reads_of(linear))


def test_a_carry_is_saved_though_nothing_computes_it():
    carry, fixed = variable(3), variable(3)
    y = sin(carry) * exp(fixed)
    found = split([y], [carry], given=[fixed])
    assert found.saved == (carry,)
    assert row(found, carry).reason == "computed from nothing"
    assert split([y], [carry], given=[fixed, carry]).saved == ()


def test_a_mask_is_less_than_what_it_was_made_of():
    from tilegrad.ir.ops import where

    carry = variable(100)
    y = where(carry > 0.0, carry * 3.0, 0.0)
    found = split([y], [carry], given=[])
    assert [v.dtype.name for v in found.saved] == ["bool"]


# -------------------------------------------------------------- brute force, and what it is for


def random_program(rng):
    x, w = variable(6, 6), variable(6, 6)
    values = [x, w]
    for _ in range(rng.randint(2, 6)):
        a, b = rng.choice(values), rng.choice(values)
        values.append(rng.choice([lambda a, b: sin(a), lambda a, b: exp(b), mul, matmul])(a, b))
    return x, w, sum_(values[-1] * values[-2])


def test_least_cost_among_all_feasible_sets():
    rng = random.Random(5)
    seen = 0
    for _ in range(60):
        x, w, loss = random_program(rng)
        linear = linear_part([loss], [x, w])
        found = partition([loss], linear, [x, w])
        reads = [v for v in reads_of(linear) if v not in (x, w)]
        known = [v for n in toposort([loss, *reads], stop=[x.node, w.node]) for v in n.outputs]
        candidates = [v for v in known if v.node.inputs and v.node.op.name != "broadcast"]
        network = Network([loss], linear, [v.node for v in candidates], reads, {x, w})
        forbidden = set(network.reason)
        if len(candidates) > 12:
            continue
        seen += 1

        def feasible(saved, reads=reads, forbidden=forbidden):
            todo = [v for v in reads if v not in saved]
            done = set()
            while todo:
                v = todo.pop()
                if v in forbidden:
                    return False
                if v in done:
                    continue
                done.add(v)
                todo += [y for y in v.node.inputs if y not in saved and y.node.inputs]
            return True

        best = min(
            sum(network.capacity(v) for v in saved)
            for size in range(len(candidates) + 1)
            for saved in combinations(candidates, size)
            if feasible(set(saved))
        )
        assert found.capacity == best
        assert feasible(set(found.saved))
    assert seen > 20


def test_what_is_saved_is_enough_to_compute_what_is_read():
    rng = random.Random(6)
    for _ in range(20):
        x, w, loss = random_program(rng)
        linear = linear_part([loss], [x, w])
        for options in ({}, {"budget": 0}, {"budget": 600}):
            found = partition([loss], linear, [x, w], **options)
            reads = [v for v in reads_of(linear) if v not in (x, w)]
            arrays = [np.random.default_rng(1).standard_normal((6, 6)) / 3 for _ in range(2)]
            env = dict(zip([x.node, w.node], arrays, strict=True))
            kept = interpret(found.saved, env)
            stand_ins = [input_node(v.type, "saved") for v in found.saved]
            pairs = zip(found.saved, [n.out for n in stand_ins], strict=True)
            again = substitute(reads, dict(pairs))
            env |= dict(zip(stand_ins, kept, strict=True))
            for a, b in zip(interpret(again, env), interpret(reads, env), strict=True):
                assert a.tobytes() == b.tobytes()


# ----------------------------------------------------------------------------------- the budget


def test_a_budget_is_kept_with_the_least_work_the_price_finds():
    x, w = variable(16, 16), variable(16, 16)
    y = x
    for _ in range(6):
        y = sin(matmul(y, w))
    size = 16 * 16 * 8
    before = None
    for states in range(12):
        found = split([sum_(y)], [x, w], budget=states * size)
        assert found.nbytes <= states * size
        work = sum(work_of(node) for node in found.recomputed)
        assert before is None or work <= before
        before = work
    assert work == 0
    assert split([sum_(y)], [x, w], budget=0).saved == ()


def test_a_budget_below_the_carry_says_what_is_needed():
    carry = variable(10)
    linear = linear_part([sin(carry)], [carry])
    with pytest.raises(BudgetError, match=r"budget of 80 bytes at least .* got 79") as caught:
        partition([sin(carry)], linear, [], budget=79)
    assert caught.value.needed == 80
    assert partition([sin(carry)], linear, [], budget=80).nbytes == 80


def test_work_and_bytes():
    x = variable(4, 5)
    assert work_of(matmul(x, variable(5, 6)).node) == 2 * 4 * 6 * 5
    assert work_of(exp(x).node) > work_of((x * x).node) == 20
    assert bytes_of(TensorType((GROWING, 3), float64)) == 24
