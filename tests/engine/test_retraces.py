"""The log of traces says why a function was traced again."""

from __future__ import annotations

import logging

import numpy as np

import tilegrad as tg


def messages(caplog, function, *calls):
    """What is logged by each call."""
    found = []
    with caplog.at_level(logging.INFO, logger="tilegrad.jit"):
        for args in calls:
            caplog.clear()
            function(*args)
            found.append([r.getMessage() for r in caplog.records])
    return found


def test_shapes_dtypes_and_structures(caplog):
    def f(x):
        return tg.tree.map(lambda v: v + 1, x)

    first, same, shape, dtype, tree = messages(
        caplog,
        tg.jit(f),
        (np.ones(3),),
        (np.zeros(3),),
        (np.ones(4),),
        (np.ones(4, "f4"),),
        ([np.ones(4)],),
    )
    assert first == ["jit(f): trace 1, (x: f64[3]): the first call"]
    assert same == []
    assert shape == ["jit(f): trace 2, (x: f64[4]): x is f64[4], was f64[3]"]
    assert "trace 3" in dtype[0]
    assert "x is f32[4], was f64[3]" in dtype[0]
    assert tree == ["jit(f): trace 4, (x[0]: f64[4]): the arguments have another structure"]


def test_static_values_and_what_is_read_from_outside(caplog):
    scale = 2.0

    def f(x, n):
        return x * scale + n

    g = tg.jit(f, static_argnums=1)
    (first,), (static,) = messages(caplog, g, (np.ones(3), 1), (np.ones(3), 2))
    assert first.endswith("the first call")
    assert static.endswith("static argument 1 is 2, was 1")
    scale = 3.0
    ((outside,),) = messages(caplog, g, (np.ones(3), 2))
    assert outside.endswith("a number, function or array that it reads from outside is another one")


def test_the_nearest_program_is_named(caplog):
    x, y = np.ones(3), np.ones(5)
    *_, (last,) = messages(caplog, tg.jit(lambda a, b: a[0] + b[0]), (x, x), (y, y), (y, x))
    assert last.count("was") == 1


def test_nothing_is_said_unasked(caplog):
    with caplog.at_level(logging.WARNING, logger="tilegrad.jit"):
        tg.jit(lambda x: x * 5.0)(np.ones(3))
    assert not caplog.records
