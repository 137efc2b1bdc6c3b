"""Which regions become lane programs, what moves out of their loops, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from plans import graph_of
from regions import cond, loop, while_

from tilegrad.fusion.lane_code import LaneProgram, Repeat
from tilegrad.fusion.loops import Region
from tilegrad.fusion.lower import lower
from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64, int64
from tilegrad.ir.ops.leaves import constant, iota
from tilegrad.ir.ops.shape import broadcast, broadcast_to, reshape, transpose
from tilegrad.kernels.llvm.lanes_form import lane_form


def steps(program, *arrays):
    return lower(graph_of(program, *arrays)).steps


def lane_program(program, *arrays):
    """The one step of a program that is a lane program; what it reads may be made before."""
    *_, step = steps(program, *arrays)
    assert isinstance(step, LaneProgram), step
    return step


def repeats(block):
    return [item for item in block.items if isinstance(item, Repeat)]


def names(program, block):
    """Ops of a block in order."""
    found = [program.scalars[n] for n in block.items if isinstance(n, int) and n in program.used]
    return [x.op.name if x.op is not None else x.kind for x in found]


def f64(*shape):
    return shape, "float64"


def i64(*shape):
    return shape, "int64"


# ------------------------------------------------------------------------------------ explosion


def test_a_small_loop_is_scalars_and_views_are_nothing():
    def body(i, c):
        turned = transpose(reshape(c, (2, 2)))
        return (reshape(turned, (4,)) * c,)

    step = lane_program(lambda x: loop(body, init=[x], length=10)[0], f64(4))
    assert not step.lanes
    (inner,) = repeats(step.root)
    assert names(step, inner.body) == ["mul"] * 4
    assert [step.scalars[n].dtype for n in inner.carried] == [float64] * 4


def test_the_text_tells_every_instruction():
    step = lane_program(lambda x: loop(lambda i, c: (c * 0.5,), init=[x], length=20)[0], f64())
    assert step.text() == [
        "loop over scalars",
        "  %0: i64 = 20",
        "  %1: f64 = b0[0]",
        "  %4: f64 = 0.5",
        "  repeat %2 reverse0 own0 trips %0 carries",
        "    %3 f64 all from %1 by %5 to %6",
        "    %5: f64 = mul(%3, %4)",
        "  b1[0] = %6",
    ]


def test_what_a_loop_does_not_change_is_computed_before_it():
    def body(i, a, c):
        return (c * ops.exp(a) + ops.convert(i, float64),)

    step = lane_program(lambda a, x: loop(body, consts=[a], init=[x], length=9)[0], f64(), f64())
    (inner,) = repeats(step.root)
    assert names(step, step.root) == ["const", "load", "load", "exp"]
    assert names(step, inner.body) == ["mul", "convert", "add"]


def test_what_may_fail_stays_where_it_is_needed():
    def body(i, k, c):
        return (c + ops.floor_divide(constant(7), k),)

    step = lane_program(lambda k, x: loop(body, consts=[k], init=[x], length=9)[0], i64(), i64())
    (inner,) = repeats(step.root)
    assert "floor_divide" in names(step, inner.body)


def test_the_body_of_an_open_loop_waits_for_its_condition():
    def program(a, x):
        return while_(
            lambda a, c: ops.lt(c * c, a),
            lambda i, a, c: (ops.sqrt(c * c + ops.sqrt(a)),),
            cond_consts=[a],
            consts=[a],
            init=[x],
        )[0]

    step = lane_program(program, f64(), f64())
    (inner,) = repeats(step.root)
    assert names(step, inner.test) == ["mul", "lt"]  # of which the body uses the product
    assert names(step, inner.body) == ["add", "sqrt"]
    assert names(step, step.root).count("sqrt") == 1


def test_unused_elements_are_not_computed():
    def body(i, c):
        first = ops.slice_(ops.exp(c), [0], [1])
        return (ops.concat([first, ops.slice_(c, [1])], 0),)

    step = lane_program(lambda x: loop(body, init=[x], length=3)[0], f64(3))
    assert names(step, repeats(step.root)[0].body) == ["exp"]


def test_a_branch_keeps_its_work_to_itself():
    def program(k, x):
        return cond(k, [lambda x: (ops.exp(x),), lambda x: (ops.sin(x),)], x)[0]

    step = lane_program(program, i64(), f64(2))
    assert "exp" not in names(step, step.root)


def test_a_short_inner_loop_over_registers_is_written_out():
    def inner(i, c, x):
        return c + x, c

    def body(i, c):
        total, record = loop(inner, init=[ops.sum_(c)], xs=[c], length=3)
        return (record * total,)

    step = lane_program(lambda x: loop(body, init=[x], length=50)[0], f64(3))
    (outer,) = repeats(step.root)
    assert not repeats(outer.body)
    assert any(isinstance(s, Region) for s in steps(_longer_inner, f64(9)))


def _longer_inner(x):
    def body(i, c):
        return (loop(lambda i, d, x: (d + x, d), init=[ops.sum_(c)], xs=[c], length=9)[1],)

    return loop(body, init=[x], length=50)[0]


# ---------------------------------------------------------------------------------------- lanes


def newton(a, x, lanes):
    return while_(
        lambda a, x: ops.gt(ops.abs_(x * x - a), broadcast_to(constant(1e-9), lanes) * a),
        lambda i, a, x: (broadcast_to(constant(0.5), lanes) * (x + a / x),),
        cond_consts=[a],
        consts=[a],
        init=[x],
    )[:2]


def test_a_condition_with_a_shape_has_lanes_of_their_own_trips():
    step = lane_program(lambda a, x: newton(a, x, (100,)), f64(100), f64(100))
    assert step.lanes
    assert step.extent == 100
    (inner,) = repeats(step.root)
    assert inner.own_trips
    assert len(inner.carried) == 1


def test_a_loop_over_large_arrays_without_mixing_has_lanes():
    def body(i, c, d):
        return d, c * 0.5 - d

    step = lane_program(lambda x: loop(body, init=[x, x], length=5)[0], f64(100_000))
    assert step.lanes
    assert step.extent == 100_000
    assert not repeats(step.root)[0].own_trips


def test_lanes_carry_small_tensors_and_share_what_has_no_lane_axis():
    def body(i, w, c):
        rolled = ops.concat([ops.slice_(c, [0, 1], [500, 3]), ops.slice_(c, [0, 0], [500, 1])], 1)
        return (rolled * broadcast(w, (500, 3), (1,)),)

    step = lane_program(
        lambda w, c: loop(body, consts=[w], init=[c], length=5)[0], f64(3), f64(500, 3)
    )
    loads = [s for k, s in enumerate(step.scalars) if s.kind == "load" and k in step.used]
    assert sorted(s.lane_stride for s in loads) == [0, 0, 0, 3, 3, 3]
    assert len(repeats(step.root)[0].carried) == 3


def test_a_carry_that_begins_alike_in_all_lanes_may_differ_later():
    def body(i, x, c):
        return (c + x,)

    def program(x):
        return loop(body, consts=[x], init=[broadcast(constant(0.0), (300,), ())], length=4)[0]

    step = lane_program(program, f64(300))
    (inner,) = repeats(step.root)
    assert [step.varying[n] for n in inner.carried] == [True]


def test_the_number_of_a_lane_is_an_iota():
    def body(i, c):
        return (c + ops.convert(iota((300,), 0), float64),)

    step = lane_program(lambda x: loop(body, init=[x], length=4)[0], f64(300))
    assert [s.kind for s in step.scalars].count("lane") == 1


MIXING = {
    "a sum over the lanes": lambda c: c + broadcast_to(ops.sum_(c), c.shape),
    "a shift": lambda c: ops.concat([ops.slice_(c, [1]), ops.slice_(c, [0], [1])], 0),
    "a running sum": lambda c: ops.cumsum(c, 0),
    "a reversal": lambda c: ops.flip(c, [0]),
    "reading at other lanes": lambda c: ops.gather(c, ops.convert(c, int64), mode="clip"),
    "sorting": lambda c: ops.sort(c, 0),
    "a padded end": lambda c: ops.pad(ops.slice_(c, [1]), 0.0, [0], [1]),
}


@pytest.mark.parametrize("name", MIXING)
def test_what_mixes_lanes_is_no_lane_program(name):
    def body(i, c):
        return (MIXING[name](c),)

    found = steps(lambda x: loop(body, init=[x], length=4)[0], f64(1000))
    assert not any(isinstance(s, LaneProgram) for s in found)


def test_large_states_and_bodies_are_no_lane_programs():
    def wide(i, c):
        return (ops.flip(c, [0]),)

    def long(i, c):
        for k in range(1300):
            c = ops.sin(c) + ops.convert(i, float64) * float(k)
        return (c,)

    for body, shape in ((wide, (400,)), (long, ())):
        found = steps(lambda x, b=body: loop(b, init=[x], length=4)[0], f64(*shape))
        assert not any(isinstance(s, LaneProgram) for s in found)


def test_products_are_chains_or_sums_as_they_are_elsewhere():
    """A product of matrices is a chain of multiply-adds, one with a vector a sum of products;
    complex matrices are left to the library that multiplies them."""

    def body(i, a, c):
        return (ops.matmul(a, c),)

    def program(a, c):
        return loop(body, consts=[a], init=[c], length=4)[0]

    def kinds(step):
        (inner,) = repeats(step.root)
        return names(step, inner.body)

    assert kinds(lane_program(program, f64(2, 2), f64(2, 3))) == ["chain"] * 6
    assert kinds(lane_program(program, f64(2, 2), f64(2))).count("sum") == 2
    found = steps(program, ((2, 2), "complex128"), ((2, 2), "complex128"))
    assert not any(isinstance(s, LaneProgram) for s in found)


# ---------------------------------------------------------------------------------------- forms


def test_new_lanes_lengths_and_rates_have_the_same_code():
    def program(n, trips, rate):
        def body(i, c, x):
            return c * rate + x, c

        return lane_form(
            lane_program(
                lambda c, xs: loop(body, init=[c], xs=[xs], length=trips), f64(n), f64(trips, n)
            )
        )

    one, two = program(1000, 30, 0.7), program(5000, 70, 0.9)
    assert one.key == two.key
    assert one.frame != two.frame
    assert {70, np.float64(0.9).view(np.int64)} <= set(two.literals)
    assert 5000 in two.parameters


def test_the_form_tells_programs_apart():
    def key(body, **ways):
        return lane_form(lane_program(lambda c: loop(body, init=[c], **ways)[0], f64(2))).key

    keys = [
        key(lambda i, c: (c * 0.7,), length=40),
        key(lambda i, c: (c * 0.7,), length=40, reverse=True),
        key(lambda i, c: (c + 0.7,), length=40),
        key(lambda i, c: (c * 2.0,), length=40),
        key(lambda i, c: (ops.flip(c, [0]) * 0.7,), length=40),
        key(lambda i, c: (c * 0.7,), length=4),
    ]
    assert len(set(keys)) == len(keys)
