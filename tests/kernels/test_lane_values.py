"""What lane programs compute in registers: the bits of the same steps one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lane_programs import REAL, check, cut, joined, lanes_of, over, values
from plans import graph_of
from random_graphs import assert_same_bits
from regions import loop

from tilegrad.ir import ops
from tilegrad.ir.ops.leaves import constant, iota
from tilegrad.ir.ops.shape import broadcast_to, reshape, transpose
from tilegrad.kernels.plan import compile_graph

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

    for shape in ((3,), (9, 17), *(((16,), (9, 5)) if dtype == "f8" else ())):
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
    max_examples=6,
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


@pytest.mark.parametrize(
    ("how", "mode"),
    [
        *[(how, "raise") for how in ("set", "add", "mul", "min", "max")],
        *[("add", mode) for mode in ("clip", "wrap", "fill")],
    ],
)
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


@pytest.mark.parametrize(
    ("lanes", "mode"),
    [((), "fill"), *[((19,), mode) for mode in ("raise", "clip", "wrap", "fill")]],
)
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
