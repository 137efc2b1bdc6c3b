"""The workloads under pytest-benchmark; not collected unless it is named.

    pytest tests/bench/bench_workloads.py --benchmark-group-by=group --benchmark-save=before
    pytest tests/bench/bench_workloads.py --benchmark-compare --benchmark-compare-fail=median:15%

One entry a workload and side; sides of one workload form a group. Where a peer is there, values are
compared before times are taken. ``tilegrad bench`` lets the sides take turns instead and is what to
trust on a machine that others use too.
"""

from __future__ import annotations

import pytest

pytest.importorskip("pytest_benchmark", reason="pip install 'tilegrad[bench]'")

from tilegrad.bench.measuring import prepare
from tilegrad.bench.sides import OURS, PEERS, is_there
from tilegrad.bench.workloads import Case, chosen

CASES = [
    pytest.param(work, name, id=f"{work.group}-{work.name}-{name}".replace(" ", "_"))
    for work in chosen(["call", "elementwise", "rows", "dense", "ml"])
    for name in (OURS, *PEERS)
    if is_there(name)
]


@pytest.mark.parametrize(("work", "name"), CASES)
def test_workload(benchmark, work, name):
    case = work.build(work.size)
    assert isinstance(case, Case)
    if name not in (OURS, *case.peers):
        pytest.skip(f"{name} does not run it")
    prepared = prepare(case, dict.fromkeys([OURS, name]))
    benchmark.group = f"{work.group}: {work.name}, {work.size}"
    benchmark(prepared.calls[name])
