"""Regions that become lane programs: their values, and a comparison with their steps."""

from __future__ import annotations

import numpy as np
from guarded import run_guarded
from plans import graph_of
from random_graphs import assert_same_bits
from regions import run_by_steps

from tilegrad.fusion.lane_code import LaneProgram
from tilegrad.ir import ops
from tilegrad.ir.ops.shape import broadcast
from tilegrad.kernels.plan import compile_graph

REAL = ["?", "i1", "i8", "u1", "u8", "f4", "f8"]


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
