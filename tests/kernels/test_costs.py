"""Constants of the machine: found, measured, kept; they decide about pieces and about no bit."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from plans import plan_of

from tilegrad.ir import ops
from tilegrad.kernels import costs
from tilegrad.kernels.cache import store
from tilegrad.kernels.costs import BUILT_IN, Costs
from tilegrad.kernels.work import extent_and_pieces, work_of

MEASURED = Costs(0.5, 900.0, 4.0, 7.5, 2)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder of its own on disk, and a process that knows nothing yet."""
    monkeypatch.setenv("TILEGRAD_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("TILEGRAD_CACHE_SIZE", "10")
    forget(monkeypatch)
    return tmp_path / "kept"


def forget(monkeypatch):
    monkeypatch.setattr(costs, "_current", None)
    monkeypatch.setattr(costs, "_tries", 0)


def count_measurements(monkeypatch, result):
    calls = []

    def measure(threads):
        calls.append(threads)
        costs.current(threads)  # a plan of its own asks too: no second measurement begins
        return result

    monkeypatch.setattr(costs, "measure", measure)
    return calls


def test_nothing_known(folder, monkeypatch):
    calls = count_measurements(monkeypatch, MEASURED)
    assert costs.current() == BUILT_IN
    monkeypatch.setattr(costs.time, "process_time", lambda: costs.BUSY - 1)
    assert costs.current(2) == BUILT_IN
    assert calls == []
    assert not folder.exists()


def test_a_busy_process_measures_once_for_all(folder, monkeypatch):
    calls = count_measurements(monkeypatch, MEASURED)
    monkeypatch.setattr(costs.time, "process_time", lambda: costs.BUSY + 1)
    assert costs.current(1) == BUILT_IN  # nothing is shared: nothing to know
    assert costs.current(2) == MEASURED
    assert costs.current(2) == MEASURED
    assert calls == [2]
    forget(monkeypatch)  # the next process
    assert costs.current(2) == MEASURED
    assert calls == [2]
    (entry,) = folder.iterdir()
    assert entry.name.startswith("costs-")
    assert entry.stat().st_size < 300


def test_a_machine_that_others_use_is_asked_again_later(folder, monkeypatch):
    calls = count_measurements(monkeypatch, None)
    for seconds in (1, 21, 22, 39, 41, 61, 81, 1000):
        monkeypatch.setattr(costs.time, "process_time", lambda seconds=seconds: float(seconds))
        assert costs.current(2) == BUILT_IN
    assert len(calls) == costs.TRIES


def test_without_a_disk_nothing_is_measured(folder, monkeypatch):
    monkeypatch.setenv("TILEGRAD_CACHE_SIZE", "0")
    calls = count_measurements(monkeypatch, MEASURED)
    monkeypatch.setattr(costs.time, "process_time", lambda: 1000.0)
    assert costs.current(2) == BUILT_IN
    assert calls == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1, 2]",
        b'{"operation": 0.1}',
        b'{"launch": 5.0}',
        b'{"operation": "x"}',
        b'{"speed": 3.0}',
        b'{"launch": NaN}',
    ],
)
def test_what_cannot_be_true_is_not_used(folder, monkeypatch, content):
    store().put(costs._key(), content)
    found = costs.current()
    assert found in (BUILT_IN, replace(BUILT_IN, operation=0.1))
    assert (found == BUILT_IN) == (b"0.1" not in content)


def test_unsound_measurements_are_not_kept(folder):
    assert not costs.remember(replace(MEASURED, launch=float("inf")))
    assert costs.current() == BUILT_IN
    assert costs.remember(MEASURED)
    assert costs.current() == MEASURED
    assert json.loads(store().get(costs._key()))["launch"] == 900.0


def test_a_real_measurement(folder):
    found = costs.measure(2)
    assert found is None or found.is_sound()


def test_pieces_follow_the_machine_and_bits_do_not(folder, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 300))

    def program(a):
        return ops.exp(a) * a, ops.sum_(ops.sin(a), 1), ops.sum_(ops.tanh(a), 0), ops.cumsum(a, 1)

    expected = [r.tobytes() for r in plan_of(program, x).run([x], 1)]
    counts = set()
    for found in (
        replace(BUILT_IN, launch=100.0),
        replace(BUILT_IN, launch=900_000.0),
        replace(BUILT_IN, operation=9.0),
        replace(BUILT_IN, bandwidth=0.02, shared_bandwidth=0.02),
    ):
        monkeypatch.setattr(costs, "_current", found)
        plan = plan_of(program, x)
        counts.add(tuple(extent_and_pieces(step, 3)[1] for step in plan.schedule.steps))
        assert [r.tobytes() for r in plan.run([x], 3)] == expected
    assert len(counts) > 1


def test_memory_that_one_thread_fills_is_not_shared(folder, monkeypatch):
    n = 9_000_000
    (step,) = plan_of(lambda a: a * 1.5, ((n,), "f8")).schedule.steps
    monkeypatch.setattr(costs, "_current", replace(BUILT_IN, bandwidth=4.0, shared_bandwidth=8.0))
    assert extent_and_pieces(step, 2)[1] > 4
    assert work_of(step) == 2 * 8 * n / 4.0
    monkeypatch.setattr(costs, "_current", replace(BUILT_IN, bandwidth=4.0, shared_bandwidth=4.1))
    assert extent_and_pieces(step, 2) == extent_and_pieces(step, 1)
