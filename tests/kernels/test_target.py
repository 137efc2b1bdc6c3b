"""Numba beside tilegrad: its own users must not notice."""

from __future__ import annotations

import pytest
from plans import plan_of
from scripts import run

from tilegrad.ir import ops
from tilegrad.kernels import machine
from tilegrad.kernels.llvm.memory import I64, POINTER

USER = """
import numba
@numba.njit
def total(x):
    s = 0.0
    for v in np.sort(x):
        s += np.exp(v)
    return s, {k: k for k in range(3)}[2]
def user(): print("{:.0f} {}".format(*total(np.zeros(4))))
def ours(): print(float(tg.jit(lambda x: tg.sum(tg.exp(x)))(np.zeros(8))))
"""


@pytest.mark.parametrize("order", ["user(); ours(); user()", "ours(); user(); ours()"])
def test_both_compile_in_one_process(order):
    printed = {"user()": ["4", "2"], "ours()": ["8.0"]}
    expected = [word for call in order.split("; ") for word in printed[call]]
    assert run(USER + order) == expected


def test_numba_switched_off_is_no_matter_of_ours():
    assert run(USER + "user(); ours()", NUMBA_DISABLE_JIT="1") == ["4", "2", "8.0"]


def test_settings_of_numba_come_back(monkeypatch):
    from numba.core import config

    from tilegrad.kernels.target import emitting

    before = {name: getattr(config, name) for name in machine._SETTINGS}

    def fails(*_):
        raise ArithmeticError("in the middle")

    with pytest.raises(ArithmeticError, match="in the middle"):
        machine.compile_entry("fails", "i", fails)
    assert {name: getattr(config, name) for name in machine._SETTINGS} == before
    assert emitting == []
    plan = plan_of(lambda x: ops.exp(x) + 0.3, ((7,), "float64"))
    assert not plan.from_disk
    assert {name: getattr(config, name) for name in machine._SETTINGS} == before


def test_arguments_are_checked():
    code = machine.compile_entry("sum", "ii", lambda module, b, values: b.add(*values))
    assert code.call(2, -5) == -3
    assert code.call(2**40, 1) == 2**40 + 1
    with pytest.raises(TypeError):
        code.call(1)
    with pytest.raises(TypeError):
        code.call(1, 2, 3)
    with pytest.raises(TypeError):
        code.call(1, "2")
    with pytest.raises(OverflowError):
        code.call(1, 2**70)
    assert code.call(2, 2) == 4


def test_the_rest_of_the_arguments_is_read_where_it_lies():
    """The address of the first; so one code serves any number of them."""

    def third(module, b, values):
        return b.load(b.gep(b.inttoptr(values[1], POINTER), [I64(2)], source_etype=I64), typ=I64)

    code = machine.compile_entry("third of the rest", "i*", third)
    objects = [object() for _ in range(1000)]
    assert code.call(0, *objects[:3]) == code.call(0, *objects) == id(objects[2])
    with pytest.raises(TypeError):
        code.call()
