"""Every workload runs and is right at its smallest size; what is measured is what is said."""

from __future__ import annotations

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.bench import compiling, measuring
from tilegrad.bench.machine import Machine
from tilegrad.bench.machine import measure as measure_machine
from tilegrad.bench.measuring import Result, measure, prepare
from tilegrad.bench.sides import OURS, is_there, side
from tilegrad.bench.timing import Times, alternate
from tilegrad.bench.workloads import GROUPS, Case, Fresh, Workload, chosen, workload

ALL = chosen()
MACHINE = Machine(bandwidth=1e10, peak=1e11, cpus=2)


def test_the_table_is_in_order():
    assert [g for g in GROUPS if any(w.group == g for w in ALL)] == list(GROUPS)
    assert [w.group for w in ALL] == sorted((w.group for w in ALL), key=GROUPS.index)
    names = [w.name for w in ALL]
    assert len(set(names)) == len(names)
    for w in ALL:
        assert w.size in w.sizes
        assert list(w.sizes) == sorted(w.sizes)


@pytest.mark.parametrize(
    "work", [w for w in ALL if w.group != "compile"], ids=lambda w: w.name.replace(" ", "_")
)
def test_smallest_size_agrees_with_the_peers(work):
    if work.name.startswith("GP") and not hasattr(tg.linalg, "cholesky"):
        pytest.skip("tg.linalg.cholesky is not there")
    case = work.build(work.sizes[0])
    there = [p for p in case.peers if is_there(p)]
    prepared = prepare(case, [OURS, *there])
    assert list(prepared.calls) == [OURS, *there]
    if case.jit:
        assert prepared.cost["bytes"] > 0
    for call in prepared.calls.values():
        call()


def unequal(result_of_peer):
    def program(this):
        return lambda x: x + 1.0 if this.name == OURS else result_of_peer(x)

    return Workload(
        "call", "unequal", 1.0, (3,), 3, lambda n: Case(program, (np.ones(n),), peers=("numpy",))
    )


@pytest.mark.parametrize(
    ("theirs", "fault"),
    [
        (lambda x: x + 1.0 + 1e-8, "ArithmeticError: result 0: is off numpy's by 5.0e-09"),
        (lambda x: x[:2], "ArithmeticError: result 0: shape (3,), but numpy gives (2,)"),
        (lambda x: x / np.zeros(2), "ValueError: operands could not be broadcast"),
    ],
)
def test_a_wrong_value_is_not_timed(theirs, fault):
    result = measure(unequal(theirs), 3, MACHINE, budget=0.001)
    assert result.fault.startswith(fault)
    assert result.times == {}
    assert result.ratio is None


def test_a_result_has_cost_and_floor(monkeypatch):
    monkeypatch.setattr(measuring, "CACHED", 0)
    work = next(w for w in ALL if w.name == "exp float64")
    result = measure(work, 1000, MACHINE, peers=["numpy"], budget=0.001)
    assert (result.fault, result.nbytes) == ("", 16_000)
    assert result.floor == pytest.approx(max(16_000 / 1e10, result.flops / 1e11))
    assert set(result.times) == {OURS, "numpy"}
    assert result.ratio == result.times[OURS].median / result.times["numpy"].median
    assert result.share == result.floor / result.times[OURS].median


def test_the_target_holds_against_its_own_peer_only():
    times = {OURS: Times(3.0, 3.0, 7), "numpy": Times(1.0, 1.0, 7)}
    assert Result("call", "a", 1.0, 4, "numpy", times).over is True
    assert Result("call", "a", 3.0, 4, "numpy", times).over is False
    assert Result("call", "a", 1.0, 4, "jax", times).over is None


def test_small_programs_have_no_floor():
    work = next(w for w in ALL if w.name == "exp float64")
    assert measure(work, 1000, MACHINE, peers=[], budget=0.001).floor is None


def test_sides_take_turns():
    seen = []
    times = alternate({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, 0.0)
    assert seen == ["a"] * 3 + ["b"] * 3 + ["a", "b"] * 7
    assert times["a"].calls == 7
    assert 0 <= times["a"].median <= times["a"].p95


def test_summary_of_times():
    times = Times.of([0.1 * k for k in range(1, 102)])
    assert times.median == pytest.approx(5.1)
    assert times.p95 == pytest.approx(9.69)
    assert Times.of([2.0]) == Times(2.0, 2.0, 1)


def test_fresh_workloads_take_turns_too():
    seen = []

    def seconds(name):
        seen.append(name)
        return {"tilegrad": 3.0, "numpy": 2.0}[name]

    work = Workload("compile", "x", 1.0, (1,), 1, lambda n: Fresh(seconds, ("numpy",), repeats=2))
    result = measure(work, 1)
    assert seen == [OURS, "numpy", OURS, "numpy"]
    assert result.ratio == 1.5


def test_a_new_process_reports_its_phases(tmp_path):
    seconds = compiling.phases("Black-Scholes", OURS, str(tmp_path))
    assert set(seconds) == {"import", "first", "second"}
    assert seconds["first"] > seconds["second"] > 0
    assert set(compiling.phases("nothing", OURS, str(tmp_path))) == {"import"}


def test_a_new_process_that_fails_says_why(tmp_path):
    with pytest.raises(RuntimeError, match="on fortran in a new process: KeyError: 'fortran'"):
        compiling.phases("MLP", "fortran", str(tmp_path))


def test_machine_is_measured():
    machine = measure_machine(megabytes=1, order=32, repeats=1)
    assert machine.bandwidth > 0
    assert machine.peak > 0
    assert MACHINE.floor(1e10, 1.0) == 1.0
    assert MACHINE.floor(1.0, 2e11) == 2.0


def test_ours_is_the_package_itself():
    assert side(OURS).m is tg


def test_groups_are_known():
    with pytest.raises(ValueError, match="expected a group of call, elementwise"):
        chosen(["cal"])
    with pytest.raises(ValueError, match="expected a group of call, elementwise"):
        workload("cal", "x", 1.0)
    assert {w.group for w in chosen(["ml", "call"])} == {"ml", "call"}
    assert [w.name for w in chosen(only="2x")] == ["jit 2x + 1"]
