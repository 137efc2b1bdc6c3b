"""How regions look in schedules: what has memory, what is in place, what the host does."""

from __future__ import annotations

import numpy as np
import pytest
from plans import graph_of
from regions import agree, cond, driven, loop, rng, while_

from tilegrad.fusion.explain import Explainer
from tilegrad.fusion.loops import HostCall, Region
from tilegrad.ir import ops
from tilegrad.ir.errors import UnsupportedError
from tilegrad.ir.ops.dynamic import dynamic_slice, dynamic_update_slice


def schedule(function, *arrays):
    return driven(graph_of(function, *arrays)).schedule


def regions(schedule):
    return [s for s in schedule.steps if isinstance(s, Region)]


SCAN = """\
b0: f64[3] input
b1: f64[3] input
b2: f64[5,3] input
b3: f64[3] output
b4: f64[5,3] output
b5: bool[128] temporary
step 0:
  loop 5 times for b3, b4
    carry b3 from b1: 2 -> 4, in turns
    row of b2: reads 3
    row of b4: writes 5
    body: 1 is b0
      b0: i64[] input
      b1: f64[3] input
      b2: f64[3] input
      b3: f64[3] input
      b4: f64[3] output
      b5: f64[3] output
      step 0:
        nest i0<3
          %0: f64 = b2[i0]
          %1: f64 = b1[i0]
          %2: f64 = mul(%0, %1)
          %3: f64 = b3[i0]
          %4: f64 = add(%2, %3)
          %5: f64 = 2.0
          %6: f64 = mul(%0, %5)
          b4[i0] = %4
          b5[i0] = %6
      return b4, b5
return b3, b4"""


def test_the_text_of_a_scan():
    def program(w, c, xs):
        return loop(
            lambda i, w, c, x: (c * w + x, c * 2.0), consts=[w], init=[c], xs=[xs], length=5
        )

    assert schedule(program, rng(3), rng(3), rng(5, 3)).text() == SCAN


def test_the_first_line_of_each_kind():
    def program(x, n, k):
        down = loop(lambda i, c: (c + 1.0,), init=[x], count=n, reverse=True)
        open_ended = while_(lambda c: ops.lt(c, 9.0), lambda i, c: (c + 1.0,), init=[x], limit=7)
        return (*down, *open_ended, *cond(k, [lambda x: x + 1.0, lambda x: x * 2.0], x))

    steps = regions(schedule(program, np.array(0.0), np.array(3), np.array(1)))
    assert [s.text()[0] for s in steps] == [
        "loop b1 times down for b3",
        "loop while, at most 7 times, for b4, b5",
        "branch b2 for b6",
    ]


def test_temporaries_of_parts_that_do_not_meet_share_memory():
    """Two branches with 80 kB each have one place of 80 kB."""

    def wide(factor):
        def body(x):
            y = ops.exp(x * factor)
            return (ops.sum_(y) + ops.max_(y * y) * ops.sum_(ops.flip(y, 0) * y),)

        return body

    plan = driven(
        graph_of(lambda k, x: cond(k, [wide(1.0), wide(2.0)], x), np.array(0), rng(10_000))
    )
    (step,) = regions(plan.schedule)
    sizes = [sum(p.schedule.buffers[n].nbytes for n in p.offsets) for p in step.parts]
    assert min(sizes) >= 80_000
    assert plan.memory.size < 1.2 * max(sizes)


def updated(i, c):
    return (dynamic_update_slice(c, dynamic_slice(c, i, sizes=(2,)) + 1.0, i),)


def test_which_carries_are_updated_in_place():
    def both(i, a, b):
        return (*updated(i, a), b * 2.0)

    def recorded(i, a):
        new = updated(i, a)
        return (*new, *new)  # the record needs all of it in each iteration

    def read_later(i, a):
        (new,) = updated(i, a)
        return (new, ops.sum_(a * new))

    for body, count, expected in (
        (updated, 1, [True]),
        (both, 2, [True, False]),
        (lambda i, a, b: (*updated(i, b), *updated(i, a)), 2, [False, False]),
        (lambda i, a: (a,), 1, [True]),
        (recorded, 1, [True]),
        (read_later, 1, [False]),
    ):
        arrays = [rng(2000)] * count
        (step,) = regions(schedule(lambda *v, body=body: loop(body, init=v, length=3), *arrays))
        assert [c.slot < 0 for c in step.carries] == expected


def test_a_loop_takes_over_what_nobody_needs():
    """Updates of a temporary: the loop works in its memory, and copies nothing."""

    def program(x, again):
        y = ops.exp(x)
        (z,) = loop(updated, init=[y], length=3)
        return (z, ops.sum_(y)) if again else (z * 2.0,)

    (step,) = regions(schedule(lambda x: program(x, False), rng(2000)))
    assert step.carries[0].initial == step.carries[0].result
    found = schedule(lambda x: program(x, True), rng(2000))
    (step,) = regions(found)
    late = [k for k, s in enumerate(found.steps) if s is not step and k > found.steps.index(step)]
    same = step.carries[0].initial == step.carries[0].result
    assert not (same and late)  # a sum that comes later reads the old values


def test_who_runs_what_a_library_does():
    def program(x):
        return loop(lambda i, c: (ops.sort(c, 0),), init=[x], length=3)

    found = schedule(lambda x: program(x), rng(5))
    (step,) = found.steps
    assert isinstance(step, HostCall)
    assert step.reason == "a loop of the host: sort is a library's work"
    nested = schedule(lambda x: loop(lambda i, c: program(c), init=[x], length=2), rng(5))
    assert nested.steps[0].reason == step.reason


def test_why_not_fused_with_a_loop():
    def program(x):
        (y,) = loop(lambda i, c: (c * 0.5,), init=[ops.exp(x)], length=3)
        return (ops.sin(y),)

    explainer = Explainer(schedule(program, rng(5)))
    text = explainer.why_not_fused(explainer.named("exp"), explainer.named("loop"))
    assert "is a loop: it has steps of its own" in text


def tape_through_a_branch(again):
    def program(n, x, k):
        _, tape = loop(lambda i, c: (c + 1.0, c), init=[x], count=n)
        results = cond(k, [lambda tape: (tape,), lambda tape: (tape,)], tape)
        if not again:
            return results
        return (*results, *loop(lambda i, c, x: (c + x,), init=[x], xs=[tape], count=n))

    return graph_of(program, np.array(3), rng(2), np.array(0))


def test_a_tape_passes_through_a_branch_if_that_is_its_end():
    agree(tape_through_a_branch(False), [np.array(3), rng(2), np.array(0)])
    with pytest.raises(UnsupportedError, match="tape passes through a region unchanged"):
        driven(tape_through_a_branch(True))
