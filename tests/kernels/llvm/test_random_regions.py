"""Random nests of loops, open loops and branches: the bits of the same steps one by one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from plans import graph_of
from regions import agree, cond, loop, while_

from tilegrad.ir import ops
from tilegrad.ir.dtypes import float64, int64
from tilegrad.ir.ops.dynamic import dynamic_slice, dynamic_update_slice
from tilegrad.ir.ops.leaves import constant
from tilegrad.ir.ops.shape import broadcast_to, reshape

SHAPES = [(), (3,), (2, 3), (1100,)]


class Programs:
    """Functions over lists of values, each a few random operations on them."""

    def __init__(self, seed):
        self.r = Random(seed)

    def like(self, v, pool):
        """A value of the type of ``v``, made of the pool: small numbers stay small."""
        r = self.r
        fitting = [x for x in pool if (x.shape, x.dtype) == (v.shape, v.dtype)] or [v]
        x = r.choice(fitting)
        for _ in range(r.randrange(4)):
            y = r.choice(fitting)
            if v.dtype.is_bool:
                x = r.choice([ops.and_, ops.or_, ops.xor])(x, y)
            elif v.dtype is int64:
                x = ops.remainder(r.choice([ops.add, ops.sub, ops.mul])(x, y), 97)
            else:
                x = r.choice([ops.add, ops.sub, ops.maximum, ops.minimum])(x, y) * 0.5
                x = self.with_scalar(x, pool)
        return x

    def with_scalar(self, x, pool):
        """Mixed with a sum, or written to at a place known at run time."""
        r = self.r
        other = r.choice([y for y in pool if y.dtype is float64] or [x])
        choice = r.randrange(5)
        if choice == 0:
            total = ops.sum_(other) * 1e-3
            return x + (total if not x.shape else broadcast_to(total, x.shape))
        counts = [y for y in pool if y.dtype is int64 and not y.shape]
        if choice == 1 and x.shape == (1100,) and counts:
            old = dynamic_slice(x, r.choice(counts), sizes=(2,)) + 1.0
            return dynamic_update_slice(x, old, r.choice(counts))
        return x

    def program(self, *values):
        """Three regions, one after the other, and all their results."""
        pool = list(values)
        for _ in range(3):
            pool += self.region(pool, 3)
        return tuple(pool[len(values) :])

    def results(self, like, pool, depth):
        """Values of the types of ``like``; now and then the results of a region."""
        r = self.r
        made = list(pool)
        for _ in range(r.randrange(1, 3) if depth else 0):
            made += self.region(made, depth)
        return tuple(r.choice([self.like, self.like, self.keep])(v, made) for v in like)

    def keep(self, v, pool):
        return v

    def region(self, pool, depth):
        r = self.r
        some = [r.choice(pool) for _ in range(r.randrange(1, 4))]
        consts = [r.choice(pool) for _ in range(r.randrange(3))]
        made = {"loop": self.loop, "while": self.open_loop, "cond": self.branches}
        found = made[r.choice(list(made))](pool, some, consts, depth)
        return [v for v in found if v.shape[:1] != (-1,)]

    def loop(self, pool, some, consts, depth):
        r = self.r
        length = r.randrange(5)
        rows = [v for v in pool if v.shape[:1] == (length,)][:1]

        def body(i, *values):
            carry = values[len(consts) : len(consts) + len(some)]
            return (*self.results(carry, [i, *values], depth - 1), self.like(carry[0], values))

        counts = [v for v in pool if v.dtype is int64 and not v.shape]
        if counts and r.random() < 0.4:
            count = ops.remainder(r.choice(counts), 5)
            found = loop(body, consts=consts, init=some, count=count, reverse=r.random() < 0.5)
            back = loop(
                lambda i, c, x: (self.like(c, [c, x]),),
                init=[found[0]],
                xs=[found[-1]],
                count=count,
                reverse=r.random() < 0.5,
            )
            return (*found, *back)
        return loop(
            body, consts=consts, init=some, xs=rows, length=length, reverse=r.random() < 0.5
        )

    def open_loop(self, pool, some, consts, depth):
        r = self.r
        most = r.randrange(6)

        def body(i, *values):
            n, *carry = values[len(consts) :]
            return (n + 1, *self.results(carry, [i, *values], depth - 1), carry[0])

        def test(n, *carry):
            sizes = [ops.sum_(v) for v in carry if v.dtype is float64]
            return (
                ops.and_(ops.lt(n, most), *[ops.lt(s, 50.0) for s in sizes[:1]])
                if sizes
                else (ops.lt(n, most))
            )

        return while_(test, body, consts=consts, init=[constant(0), *some])

    def branches(self, pool, some, consts, depth):
        r = self.r
        counts = [v for v in pool if v.dtype is int64 and not v.shape]
        index = r.choice(counts) if counts else constant(r.randrange(-1, 3))
        operands = [*some, *consts]
        return cond(
            ops.remainder(index, 4),
            [
                lambda *values: self.results(values[: len(some)], values, depth - 1)
                for _ in range(r.randrange(1, 4))
            ],
            *operands,
        )


def arguments_of(seed):
    generator = np.random.default_rng(seed)
    found = [generator.standard_normal(shape) for shape in SHAPES]
    return [*found, np.array(seed % 7), generator.integers(0, 9, (4,)), np.array(seed % 2 == 0)]


@pytest.mark.parametrize("seed", range(8))
def test_random_regions(seed):
    programs = Programs(seed)
    arguments = arguments_of(seed)
    graph = graph_of(programs.program, *arguments)
    agree(graph, arguments, exact=False)


def test_a_scalar_of_a_row_is_a_view():
    """Slices of one element have no axes left."""
    graph = graph_of(
        lambda x: loop(
            lambda i, c, x: (c + reshape(x, ()), x), init=[constant(0.0)], xs=[x], length=4
        ),
        np.arange(4.0),
    )
    agree(graph, [np.arange(4.0)])
