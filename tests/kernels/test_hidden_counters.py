"""Addresses that LLVM may not rearrange: other code, the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from plans import graph_of

from tilegrad.ir import ops
from tilegrad.ir.dtypes import int64
from tilegrad.ir.ops.shape import transpose
from tilegrad.kernels import machine
from tilegrad.kernels.llvm import outline
from tilegrad.kernels.plan import compile_graph

RNG = np.random.default_rng(0)
X = RNG.standard_normal((37, 29))
LONG = RNG.standard_normal(3000)


def everything(x, v):
    """Points, a transpose in strips, rows, columns, a split reduction, recurrences, indices."""
    numbers = ops.convert(ops.abs_(x) * 5.0, int64)
    return (
        ops.exp(x) * x - 1.0,
        transpose(x) * 2.0 + 1.0,
        ops.sum_(x * x, 1),
        ops.sum_(x * x, 0),
        ops.argmax(x, 1),
        ops.sum_(v * v, 0),
        ops.cumsum(x, 0),
        ops.cumsum(v, 0),
        ops.gather(v, numbers),
        ops.slice_axis(v, 0, 1, None) - ops.slice_axis(v, 0, 0, -1),
    )


def test_bits_do_not_change(monkeypatch):
    graph = graph_of(everything, X, LONG)
    plain = compile_graph(graph)
    assert not outline.should_hide_counters(plain.functions)
    monkeypatch.setattr(outline, "MOST_ACCESSES", 0)
    monkeypatch.setattr(machine, "_CACHE", {})
    hidden = compile_graph(graph)
    assert "asm" not in plain.as_text("llvm")
    assert 'asm ""' in hidden.as_text("llvm")
    for threads in (1, 2):
        for expected, got in zip(
            plain.run([X, LONG], threads), hidden.run([X, LONG], threads), strict=True
        ):
            assert expected.tobytes() == got.tobytes()


@pytest.mark.parametrize(("count", "hides"), [(100, False), (150, True)])
def test_long_plans_do_so(count, hides):
    """Each nest of a chain of shifts has two accesses to the shifted operand and a store."""

    def chain(v):
        for k in range(count):
            v = ops.sum_(ops.exp(v) * float(k % 11 + 5), 0, keepdims=True) + v
        return v

    plan = compile_graph(graph_of(chain, LONG))
    accesses = sum(
        len([i for i in form.nest.tape if i.kind == "load"]) + len(form.nest.stores)
        for form in plan.functions
    )
    assert outline.should_hide_counters(plan.functions) == (accesses > outline.MOST_ACCESSES)
