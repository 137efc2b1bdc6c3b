"""Lane programs run: the bits of the same steps one by one, whatever the lanes beside them do."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from guarded import run_guarded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plans import graph_of
from random_graphs import assert_same_bits
from regions import cond, loop, run_by_steps, while_
from scripts import finish, start

from tilegrad.fusion.lane_code import LaneProgram
from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64
from tilegrad.ir.errors import ConvergenceError
from tilegrad.ir.ops.leaves import constant, iota
from tilegrad.ir.ops.shape import broadcast, broadcast_to, reshape, transpose
from tilegrad.kernels import work
from tilegrad.kernels.llvm.lanes_form import lane_form
from tilegrad.kernels.plan import compile_graph

STRATEGIES = Path(__file__).parent.parent / "strategies"
REAL = ["?", "i1", "i8", "u1", "u8", "f4", "f8"]
TAILS = [1, 7, 8, 9, 33, 100]


def lanes_of(plan):
    return [s for s in plan.schedule.steps if isinstance(s, LaneProgram)]


def check(program, *arguments, programs=1, guard=True):
    """The outputs by lane programs, after comparing them with those of single steps."""
    arguments = [np.asarray(a) for a in arguments]
    graph = graph_of(program, *arguments)
    plan = compile_graph(graph)
    assert len(lanes_of(plan)) == programs
    found = plan.run([np.array(a) for a in arguments])
    assert_same_bits(run_by_steps(graph, arguments), found)
    if guard:
        for at_end in (True, False):
            assert_same_bits(found, run_guarded(plan, arguments, at_end=at_end))
    return found


def values(dtype, *shape, seed=0):
    """Small numbers of a dtype, with the special ones among them."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind in "bui":
        return rng.integers(0, 2 if dtype.kind == "b" else 9, shape).astype(dtype)
    x = rng.standard_normal(shape)
    special = rng.random(shape)
    x = np.where(special < 0.05, -0.0, x)
    if dtype.kind == "c":
        return (x + 1j * rng.standard_normal(shape)).astype(dtype)
    x = np.where((special > 0.93) & (special < 0.96), np.inf, x)
    return np.where(special > 0.98, np.nan, x).astype(dtype)


def over(like, x):
    """A value without the last axis of ``like``, repeated along it."""
    return broadcast(x, like.shape, tuple(range(like.ndim - 1)))


def joined(*parts):
    return ops.concat(list(parts), parts[0].ndim - 1)


def cut(x, first, last):
    """Elements of the last axis."""
    rest = x.ndim - 1
    return ops.slice_(x, [0] * rest + [first], [*x.shape[:-1], last])


# ------------------------------------------------------------------------------------ reductions

REDUCTIONS = {
    "sum": ops.sum_,
    "prod": ops.prod,
    "max": ops.max_,
    "min": ops.min_,
    "any": ops.any_,
    "all": ops.all_,
    "argmax": ops.argmax,
    "argmin": ops.argmin,
}


@pytest.mark.parametrize("dtype", ["?", "i1", "f4", "f8", "c8"])
def test_reductions_have_one_order(dtype):
    used = [
        reduction
        for name, reduction in REDUCTIONS.items()
        if (name in ("any", "all")) == (dtype == "?") and (dtype[0] != "c" or name[0] not in "ma")
    ]

    def moved(c, reduction):
        """One on, with a reduction of all at the end."""
        last = ops.convert(over(c, reduction(c, c.ndim - 1)), c.dtype)
        return (joined(cut(c, 1, None), cut(last, 0, 1)),)

    def loops(x):
        found = [loop(lambda i, c, r=r: moved(c, r), init=[x], length=2)[0] for r in used]
        return tuple(found)

    def straight(x):
        return tuple([moved(*moved(x, r), r)[0] for r in used])

    for shape in ((3,), (16,), (9, 5), (9, 17)):
        x = values(dtype, *shape, seed=shape[-1])
        plans = [compile_graph(graph_of(program, x)) for program in (loops, straight)]
        assert [len(lanes_of(plan)) for plan in plans] == [len(used), 0]
        assert_same_bits(plans[1].run([x]), plans[0].run([x]))


def test_a_sum_of_one_negative_zero_is_a_positive_one():
    def body(i, c):
        return (over(c, ops.sum_(c, 0)),)

    (found,) = check(lambda c: loop(body, init=[c], length=1), np.array([-0.0]))
    assert not np.signbit(found[0])


def test_sums_and_products_of_nothing():
    def body(i, c):
        nothing = cut(c, 0, 0)
        matrix = ops.matmul(reshape(nothing, (2, 0)), reshape(nothing, (0, 2)))
        running = joined(ops.cumsum(nothing, 1), c)
        return (running + over(c, ops.sum_(nothing, 1)) + matrix - over(c, ops.prod(nothing, 1)),)

    (found,) = check(lambda c: loop(body, init=[c], length=3), np.ones((2, 2)))
    assert found.tolist() == [[-2.0, -2.0], [-2.0, -2.0]]


# --------------------------------------------------------------------------------- random bodies

ANY = [
    lambda x, y: joined(cut(x, 1, None), cut(y, 0, 1)),
    lambda x, y: ops.flip(x, [x.ndim - 1]),
    lambda x, y: ops.where(over(x, ops.any_(ops.ne(x, y), x.ndim - 1)), x, y),
]
NUMBERS = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: ops.neg(x),
    lambda x, y: x + over(x, ops.sum_(y, y.ndim - 1)),
    lambda x, y: over(x, ops.prod(y, y.ndim - 1)) - y,
    lambda x, y: ops.cumsum(x, x.ndim - 1),
    lambda x, y: ops.cumprod(y, y.ndim - 1, reverse=True),
    lambda x, y: x + over(x, ops.vecdot(x, y) if x.dtype.kind != "c" else ops.sum_(x * y, -1)),
    lambda x, y: cut(ops.pad(x, 0, [0] * (x.ndim - 1) + [1], [0] * x.ndim), 0, x.shape[-1]) + y,
]
ORDERED = [
    lambda x, y: ops.maximum(x, y),
    lambda x, y: ops.where(ops.lt(x, y), y, x),
    lambda x, y: x + over(x, ops.max_(y, y.ndim - 1)),
    lambda x, y: over(x, ops.min_(x, x.ndim - 1)) - y,
    lambda x, y: ops.cummax(x, x.ndim - 1),
    lambda x, y: x + over(x, ops.convert(ops.argmax(y, y.ndim - 1), x.dtype)),
    lambda x, y: ops.minimum(x, y),
]
INEXACT = [lambda x, y: x / (y * y + x), lambda x, y: ops.sqrt(x * x + y)]
FLOATS = [lambda x, y: ops.exp(x - y * y), lambda x, y: ops.sin(x) + y]
INTEGERS = [
    lambda x, y: ops.floor_divide(x, ops.or_(y, ops.convert(constant(1), y.dtype))),
    lambda x, y: ops.xor(x, y),
]


def drawn_body(data, dtype):
    kind = np.dtype(dtype).kind
    pool = list(ANY)
    if kind != "b":
        pool += NUMBERS
    if kind in "iuf":
        pool += ORDERED
    if kind in "iu":
        pool += INTEGERS
    if kind in "fc":
        pool += INEXACT
    if kind == "f":
        pool += FLOATS
    chosen = data.draw(
        st.lists(
            st.tuples(st.sampled_from(pool), st.integers(0, 5), st.integers(0, 5)),
            min_size=2,
            max_size=6,
        )
    )

    def body(i, x, y):
        known = [x, y]
        for op, a, b in chosen:
            found = op(known[a % len(known)], known[b % len(known)])
            known.append(ops.convert(found, x.dtype))
        return known[-1], known[-2]

    return body


some = settings(
    max_examples=8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)


@some
@given(data=st.data())
def test_random_bodies_have_the_bits_of_their_steps(data):
    dtype = data.draw(st.sampled_from([*REAL, "c16"]))
    body = drawn_body(data, dtype)
    n, seed = data.draw(st.sampled_from([3, 5])), data.draw(st.integers(0, 99))
    trips = data.draw(st.integers(0, 4))
    check(
        lambda x, y: loop(body, init=[x, y], length=trips),
        values(dtype, n, seed=seed),
        values(dtype, n, seed=seed + 1),
        guard=False,
    )
    lanes = data.draw(st.sampled_from([1, 9, 20]))
    counts = np.random.default_rng(seed).integers(-1, 5, lanes)
    found = check(
        lambda k, x, y: loop(body, init=[x, y], count=k),
        counts,
        values(dtype, lanes, n, seed=seed),
        values(dtype, lanes, n, seed=seed + 1),
        guard=False,
    )
    assert found[0].shape == (lanes, n)


# ---------------------------------------------------------------------------------------- lanes


@pytest.mark.parametrize("lanes", TAILS)
def test_every_lane_has_its_own_trips(lanes):
    def body(i, c, n):
        return c * 0.5 + over(c, ops.convert(n, float64)), n + i

    counts = np.random.default_rng(lanes).integers(-2, 7, lanes)
    c, n = values("f8", lanes, 2), np.arange(lanes)
    found = check(lambda k, c, n: loop(body, init=[c, n], count=k), counts, c, n)
    untouched = counts <= 0
    assert found[0][untouched].tobytes() == c[untouched].tobytes()


@pytest.mark.parametrize("lanes", TAILS)
def test_open_loops_count_the_trips_of_each_lane(lanes):
    def program(bound, c):
        return while_(
            lambda bound, c: ops.lt(c, bound),
            lambda i, c: (c * broadcast_to(constant(2.0), c.shape),),
            cond_consts=[bound],
            init=[c],
        )

    bound = np.random.default_rng(lanes).uniform(0.1, 100.0, lanes)
    c, trips = check(program, bound, np.ones(lanes))
    assert trips.tolist() == np.maximum(np.ceil(np.log2(bound)), 0).tolist()
    assert c.tolist() == (2.0**trips).tolist()


@pytest.mark.parametrize("dtype", [*REAL, "c8", "c16"])
def test_lanes_of_every_dtype_and_layout(dtype):
    """Lanes side by side, apart, and along the second axis of a record."""

    def body(i, w, c, d, x):
        return d, c, joined(c, x), ops.where(ops.ne(d, w), d, w)

    check(
        lambda w, c, d, xs: loop(body, consts=[w], init=[c, d], xs=[xs], length=4),
        values(dtype, 70, 1, seed=1),
        values(dtype, 70, 1, seed=2),
        values(dtype, 70, 1, seed=3),
        values(dtype, 4, 70, 2, seed=4),
    )


def test_a_lane_that_is_done_reports_no_error_and_shows_no_nan():
    """Its index is out of range, its divisor 0, its logarithm NaN: in the next trip, never made."""

    def body(i, table, k, c, x):
        at = ops.gather(table, k)
        quotient = ops.floor_divide(c, at)
        return at, quotient, ops.log(x) * broadcast_to(constant(-1.0), x.shape)

    table = np.array([1, 7, 2, 0, 4, 5, 6])
    k, c = np.array([0, 1, 2, 3, 4]), np.full(5, 64)
    counts = np.array([2, 1, 2, 0, 3])
    arguments = [counts, table, k, c, np.full(5, np.e)]

    def program(n, t, k, c, x):
        return loop(body, consts=[t], init=[k, c, x], count=n)

    plan = compile_graph(graph_of(program, *arguments))
    assert lanes_of(plan)
    found = plan.run(arguments)
    assert found[0].tolist() == [7, 7, 2, 3, 4]
    assert found[1].tolist() == [9, 9, 16, 64, 1]
    assert found[2][[1, 3]].tolist() == [-1.0, np.e]
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 7"):
        plan.run([counts + np.array([0, 1, 0, 0, 0]), *arguments[1:]])
    with pytest.raises(ZeroDivisionError):
        plan.run([counts + np.array([0, 0, 0, 1, 0]), *arguments[1:]])


def test_lanes_beyond_the_last_report_nothing():
    """A group of lanes that is not full computes with zeros there."""

    def body(i, k, c):
        return (ops.floor_divide(c, k),)

    found = check(
        lambda k, c: loop(body, consts=[k], init=[c], length=2),
        np.full(65, 3),
        np.arange(65) * 9,
    )
    assert found[0].tolist() == list(range(65))


def test_one_slow_lane_does_not_change_its_neighbours():
    def program(n, c):
        return loop(lambda i, c: (ops.sin(c) + c,), init=[c], count=n)

    counts = np.array([1, 100_000, 2, 0, 3, 1, 1, 1, 4])
    c = np.linspace(0.1, 0.9, 9)
    found = compile_graph(graph_of(program, counts, c)).run([counts, c])[0]
    alone = [
        compile_graph(graph_of(program, counts[k : k + 1], c[k : k + 1])).run(
            [counts[k : k + 1], c[k : k + 1]]
        )[0][0]
        for k in range(9)
    ]
    assert found.tobytes() == np.array(alone).tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("carries", "width"), [(1, 32), (8, 16), (20, 8)])
def test_groups_of_every_width(carries, width, dtype):
    """Functions with tables, in groups that fill one register or several."""

    def body(i, *cs):
        first = ops.log(ops.abs_(cs[0]) + ops.exp(ops.neg(cs[-1] * cs[-1])))
        return (*cs[1:], ops.sinh(first) + ops.power(ops.abs_(cs[0]), first))

    def program(x):
        return loop(body, init=[x] * carries, length=3)

    x = values(dtype, 70)
    (step,) = lanes_of(compile_graph(graph_of(program, x)))
    assert lane_form(step).width == width
    check(program, x)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_share_lanes(threads, monkeypatch):
    monkeypatch.setattr(work, "WORTHWHILE", 0.0)
    monkeypatch.setattr(work, "SMALLEST", 1e-9)

    def program(n, c):
        return loop(lambda i, c: (c * broadcast_to(constant(0.7), c.shape),), init=[c], count=n)

    counts = np.random.default_rng(0).integers(0, 50, 5003)
    c = values("f8", 5003)
    plan = compile_graph(graph_of(program, counts, c))
    (step,) = lanes_of(plan)
    assert work.extent_and_pieces(step, threads)[1] > 1
    assert_same_bits(plan.run([counts, c]), plan.run([counts, c], threads))


def test_code_is_the_same_for_more_lanes_and_trips():
    def program(n, c):
        return loop(lambda i, c: (c * broadcast_to(constant(0.7), c.shape),), init=[c], count=n)

    plans = [
        compile_graph(graph_of(program, np.zeros(n, np.int64), np.zeros(n))) for n in (100, 1000)
    ]
    assert plans[0].code is plans[1].code


# -------------------------------------------------------------------------------------- products


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_have_the_bits_they_have_elsewhere(dtype):
    """A covariance and a state, one and many; lanes that share their matrices."""

    def body(i, f, p, x):
        turned = ops.matmul(
            ops.matmul(f, p), transpose(f, (*range(f.ndim - 2), f.ndim - 1, f.ndim - 2))
        )
        moved = reshape(ops.matmul(f, reshape(x, (*x.shape, 1))), x.shape)
        return turned, moved + over(x, ops.vecdot(x, x))

    def program(f, p, x):
        return loop(body, consts=[f], init=[p, x], length=3)

    def shared(w, x):
        return loop(lambda i, w, x: (ops.matmul(x, w),), consts=[w], init=[x], length=3)

    for lanes in ((), (50,)):
        f, p = (values(dtype, *lanes, 3, 3, seed=k) for k in range(2))
        check(program, f, p, values(dtype, *lanes, 3, seed=2), guard=False)
    check(shared, values(dtype, 3, 3), values(dtype, 70, 3, seed=1), guard=False)
    check(shared, values(dtype, 3, 3), values(dtype, 3, seed=1), guard=False)


# --------------------------------------------------------------------------------------- indices


def test_windows_and_places_in_registers():
    def body(i, c, k):
        window = ops.dynamic_slice(c, k, sizes=(2,))
        c = ops.dynamic_update_slice(c, window * 2.0, i - 3)
        c = ops.scatter(c, reshape(ops.sum_(c), (1,)), reshape(k, (1,)), how="add", mode="wrap")
        return c, k + i

    check(lambda c, k: loop(body, init=[c, k], length=9), values("f8", 5), np.array(-4))


@pytest.mark.parametrize("how", ["set", "add", "mul", "min", "max"])
@pytest.mark.parametrize("mode", ["raise", "clip", "wrap", "fill"])
def test_scatters_in_registers(how, mode):
    def body(i, x, u, k):
        if mode == "raise":
            k = ops.remainder(k, broadcast_to(constant(4), k.shape))
        return ops.scatter(x, u, k, how=how, mode=mode), u, k + broadcast_to(i, k.shape)

    check(
        lambda x, u, k: loop(body, init=[x, u, k], length=5),
        values("f8", 4, 2),
        values("f8", 3, 2, seed=1),
        np.array([0, -2, 2]),
        guard=False,
    )


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap", "fill"])
@pytest.mark.parametrize("lanes", [(), (19,)])
def test_reading_a_large_table(lanes, mode):
    """Each lane reads at places of its own."""

    def body(i, table, k, c):
        at = ops.remainder(k, broadcast_to(constant(500), k.shape)) if mode == "raise" else k
        read = ops.gather(table, at, mode=mode, fill_value=-1.5 if mode == "fill" else None)
        return k * 31 + i, c + ops.sum_(read, read.ndim - 1)

    def program(table, k, c):
        return loop(body, consts=[table], init=[k, c], length=9)

    k = np.random.default_rng(0).integers(-300, 900, lanes)
    check(program, values("f8", 500, 2), k, np.zeros(lanes))


def test_each_lane_reads_a_table_of_its_own():
    """What vmap makes of a gather from a mapped array."""

    def body(i, table, k, c):
        example = iota((19,), 0)
        return ops.remainder(k * 31 + i, 500), c + ops.gather(table, example, k)

    check(
        lambda table, k, c: loop(body, consts=[table], init=[k, c], length=9),
        values("f8", 19, 500),
        np.arange(19),
        np.zeros(19),
    )


def test_rows_of_a_table_by_run_time_number():
    def body(i, table, c):
        k = ops.remainder(i * 7, 40)
        row = ops.gather(table, k)
        window = reshape(ops.dynamic_slice(table, k, constant(1), sizes=(1, 2)), (2,))
        return (c + ops.vecdot(row, row) + ops.sum_(window),)

    check(
        lambda table, c: loop(body, consts=[table], init=[c], length=9),
        values("f8", 40, 3),
        np.array(0.0),
    )


# ------------------------------------------------------------------------------- loops in loops


def inside(i, c, n):
    """A loop of i trips, branches and an open loop."""
    (c,) = loop(lambda j, c: (c * 0.5 + ops.convert(j, float64),), init=[c], count=i)
    c, n = cond(
        ops.remainder(n, 3),
        [lambda c, n: (c + 1.0, n), lambda c, n: (ops.flip(c, [0]), n + 1), lambda c, n: (c, n)],
        c,
        n,
    )
    c, trips = while_(lambda c: ops.gt(ops.sum_(c), 4.0), lambda j, c: (c * 0.25,), init=[c])
    return c, n + trips + 1


def test_loops_and_branches_nest():
    check(lambda c, n: loop(inside, init=[c, n], length=9), values("f8", 3, seed=4) * 5, 1)


def test_a_loop_in_lanes_has_trips_of_each_lane_too():
    def body(i, n, c):
        (c,) = loop(
            lambda j, c: (c * 0.5 + over(c, broadcast_to(ops.convert(j, float64), (20,))),),
            init=[c],
            count=n + broadcast_to(i, n.shape),
        )
        return (ops.flip(c, [1]),)

    check(
        lambda m, n, c: loop(body, consts=[n], init=[c], count=m),
        np.arange(20) % 4,
        np.arange(20) % 5 - 1,
        values("f8", 20, 2, seed=4),
    )


def test_a_limit_of_trips_is_kept():
    def program(c):
        return while_(lambda c: ops.lt(c, 100.0), lambda i, c: (c + 1.0,), init=[c], limit=40)

    graph = graph_of(program, np.array(0.0))
    plan = compile_graph(graph)
    assert lanes_of(plan)
    assert [float(x) for x in plan.run([np.array(60.0)])] == [100.0, 40.0]
    with pytest.raises(ConvergenceError, match="max_steps=40"):
        plan.run([np.array(59.0)])


def test_nothing_runs_on_what_an_error_left():
    """The first step fails and leaves the element at 0, a NaN: the loop would never end."""

    def program(table, k):
        x = ops.gather(table, k)
        return while_(lambda x: ops.not_(ops.eq(x, x)), lambda i, x: (x + 1.0,), init=[x])[0]

    table = np.array([np.nan, 1.0])
    plan = compile_graph(graph_of(program, table, np.array(1)))
    assert lanes_of(plan)
    assert plan.run([table, np.array(1)])[0] == 1.0
    with pytest.raises(IndexError):
        plan.run([table, np.array(2)])


def test_an_error_inside_ends_the_loop():
    """The index is out of range in the third trip; the element at 0 would keep the loop going."""

    def program(table, k):
        return while_(
            lambda table, k: ops.lt(k, 50),
            lambda i, table, k: (ops.gather(table, k),),
            cond_consts=[table],
            consts=[table],
            init=[k],
        )[0]

    table = np.array([0, 2, 40, 99])
    plan = compile_graph(graph_of(program, table, np.array(3)))
    assert plan.run([table, np.array(3)])[0] == 99
    with pytest.raises(IndexError, match="index 40"):
        plan.run([table, np.array(1)])


# ---------------------------------------------------------------------------------------- tapes


@pytest.mark.parametrize("trips", [0, 1, 16, 17, 1000])
def test_tapes_grow_and_are_read_backwards(trips):
    def program(bound, c):
        last, count, rows, marks = while_(
            lambda bound, c: ops.lt(ops.sum_(c), bound),
            lambda i, c: (c + 1.0, c, ops.gt(i, 3)),
            cond_consts=[bound],
            init=[c],
        )
        total, _ = loop(
            lambda i, c, x, m: (c * 0.5 + ops.where(broadcast_to(m, x.shape), x, ops.neg(x)), x),
            init=[last],
            xs=[rows, marks],
            count=count,
            reverse=True,
        )
        return total, count

    start = np.array([0.25, 0.5])
    bound = start.sum() + 2 * trips
    graph = graph_of(program, np.array(bound), start)
    plan = compile_graph(graph)
    assert len(lanes_of(plan)) == 2
    for _ in range(2):  # the second run finds the arena of the first
        total, count = plan.run([np.array(bound), start])
        assert count == trips
        expected = start + trips
        for i in reversed(range(trips)):
            row = start + i
            expected = expected * 0.5 + (row if i > 3 else -row)
        assert total.tobytes() == expected.tobytes()


def test_a_counted_loop_records_to_a_tape_of_its_length():
    def program(n, c):
        last, rows = loop(lambda i, c: (c * 0.5, c), init=[c], count=n)
        return loop(lambda i, c, x: (c + x,), init=[last], xs=[rows], count=n)[0]

    plan = compile_graph(graph_of(program, np.array(3), np.array(1.0)))
    assert len(lanes_of(plan)) == 2
    for n in (0, 1, 5, 40):
        found = plan.run([np.array(n), np.array(1.0)])[0]
        assert found == 0.5**n + sum(0.5**k for k in range(n))


@pytest.mark.parametrize("lanes", [1, 9, 70])
def test_lanes_share_the_rows_of_a_tape(lanes):
    """Each lane reads back what it recorded, as many rows as it made trips."""

    def program(bound, c):
        last, count, rows = while_(
            lambda bound, c: ops.lt(ops.sum_(c, 1), bound),
            lambda i, c: (c + broadcast_to(constant(1.0), c.shape), c),
            cond_consts=[bound],
            init=[c],
        )
        total = loop(
            lambda i, c, x: (c * broadcast_to(constant(0.5), c.shape) + x,),
            init=[last],
            xs=[rows],
            count=count,
            reverse=True,
        )[0]
        return total, count

    start = np.random.default_rng(0).uniform(0, 1, (lanes, 2))
    wanted = np.random.default_rng(1).integers(0, 40, lanes)
    bound = start.sum(1) + 2 * wanted - 0.5
    plan = compile_graph(graph_of(program, bound, start))
    assert [p.lanes for p in lanes_of(plan)] == [True, True]
    for threads in (1, 2):
        total, count = plan.run([bound, start], threads)
        assert count.tolist() == wanted.tolist()
        for k, n in enumerate(wanted):
            row = start[k]
            rows = [row := row + 1.0 if i else row for i in range(n + 1)]
            expected = rows[-1]
            for i in reversed(range(n)):
                expected = expected * 0.5 + rows[i]
            assert total[k].tobytes() == expected.tobytes()


def test_a_tape_of_one_length_for_all_lanes():
    def program(n, c):
        half = broadcast_to(constant(0.5), c.shape)
        last, rows = loop(lambda i, c: (c * half_of(c), c), init=[c], count=n)
        return loop(lambda i, c, x: (c + x,), init=[last * half], xs=[rows], count=n)[0]

    def half_of(c):
        return broadcast_to(constant(0.5), c.shape)

    c = values("f8", 100)
    plan = compile_graph(graph_of(program, np.array(3), c))
    assert [p.lanes for p in lanes_of(plan)] == [True, True]
    for n in (0, 5, 40):
        expected = c * 0.5**n * 0.5
        for k in range(n):
            expected = expected + c * 0.5**k
        assert_same_bits([expected], plan.run([np.array(n), c]))


# ----------------------------------------------------------------------------------- interrupts

ENDLESS = f"""
sys.path.insert(0, {str(STRATEGIES)!r})
import numpy as np
from plans import graph_of
from regions import loop, while_
from tilegrad.fusion.lane_code import LaneProgram
from tilegrad.ir import ops
from tilegrad.kernels import work
from tilegrad.kernels.llvm.lanes_form import lane_form
from tilegrad.kernels.plan import compile_graph

work.WORTHWHILE = 0.0
shape = SHAPE

def forever(c):
    return while_(lambda c: ops.eq(c, c), lambda i, c: (c * c,), init=[c])[0]

def nested(c):
    inner = lambda i, c: (loop(lambda j, c: (c * c,), init=[c], length=1000)[0],)
    return while_(lambda c: ops.eq(c, c), inner, init=[c])[0]

x = np.ones(shape)
plan = compile_graph(graph_of(PROGRAM, x))
assert isinstance(plan.schedule.steps[0], LaneProgram)
print("begin", flush=True)
try:
    plan.run([x], THREADS)
except KeyboardInterrupt:
    print("interrupted")
print(plan.run([np.full(shape, np.nan)])[0].shape == shape)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way")
@pytest.mark.parametrize(
    ("program", "shape", "threads"),
    [("forever", (), 1), ("nested", (), 1), ("forever", (9,), 1), ("forever", (4000,), 2)],
)
def test_an_interrupt_ends_an_endless_loop(program, shape, threads):
    text = ENDLESS.replace("PROGRAM", program).replace("SHAPE", str(shape))
    process = start(text.replace("THREADS", str(threads)))
    try:
        assert process.stdout.readline() == "begin\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert finish(process) == ["interrupted", "True"]
    finally:
        process.kill()
