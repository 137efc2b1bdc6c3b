"""``tilegrad bench`` as a user meets it; no test looks at a time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tilegrad.__main__ import main
from tilegrad.bench import machine
from tilegrad.bench.workloads import WORKLOADS, Workload, chosen


@pytest.fixture(autouse=True)
def _quick_machine(monkeypatch):
    found = machine.Machine(2e10, 1e11, 2)
    monkeypatch.setattr(machine, "measure", lambda: found)


@pytest.fixture
def bench(tmp_path, capsys):
    """Run with few and small calls; returns status, standard output and standard error."""

    def run(*arguments, what=("call", "--only", "2x")):
        argv = ["bench", *what, "--budget", "0.001", "--folder", str(tmp_path), *arguments]
        status = main(argv)
        return status, *capsys.readouterr()

    return run


def test_table(bench):
    status, shown, _ = bench()
    lines = shown.splitlines()
    assert status == 0
    assert lines[0].startswith("copy 20.0 GB/s, matrix product 100 GFLOP/s, 2 CPUs")
    assert lines[1].split()[:3] == ["workload", "size", "ours"]
    assert lines[2].startswith("jit 2x + 1")
    assert len(lines) == 3


def test_list_runs_nothing(bench, monkeypatch):
    monkeypatch.setattr(Workload, "build", None, raising=False)
    status, shown, _ = bench("--list", what=())
    assert status == 0
    assert len(shown.splitlines()) == len(chosen())
    assert "sort of n x 1000" in shown


def test_save_and_compare(bench, tmp_path):
    assert bench("--save", "before", "--peers", "")[0] == 0
    status, shown, _ = bench("--compare", "before", "--tolerance", "1e9", "--peers", "")
    assert status == 0
    assert shown.splitlines()[-1].endswith("raw times")
    path = tmp_path / "before.json"
    run = json.loads(path.read_text())
    run["results"][0]["times"]["tilegrad"]["median"] = 1e-12
    path.write_text(json.dumps(run))
    status, shown, _ = bench("--compare", "before", "--peers", "")
    assert status == 1
    assert "REGRESSION" in shown.splitlines()[-1]


def test_json(bench, tmp_path):
    status, shown, noise = bench("--json", "-", "--size", "7")
    assert status == 0
    (entry,) = json.loads(shown)["results"]
    assert (entry["name"], entry["size"], entry["nbytes"]) == ("jit 2x + 1", 7, 7 * 16)
    assert "jit 2x + 1" in noise
    bench("--json", str(tmp_path / "x.json"))
    assert json.loads((tmp_path / "x.json").read_text())["machine"]["cpus"] == 2


def test_a_workload_that_fails_is_named_and_the_others_run(bench, monkeypatch):
    def broken(size):
        raise MemoryError("too large")

    chosen()
    work = Workload("call", "broken 2x", 1.0, (4,), 4, broken)
    monkeypatch.setattr("tilegrad.bench.workloads.WORKLOADS", [work, *WORKLOADS])
    status, shown, _ = bench()
    assert status == 1
    assert "MemoryError: too large" in shown
    assert "jit 2x + 1" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cal",), "expected a group of call"),
        (("call", "--only", "nothing"), "no workload has 'nothing' in its name"),
        (("call", "--compare", "absent"), "absent.json"),
        (("call", "--save", "a/b"), "expected a name of letters"),
        (("call", "--peers", "torch"), "--peers: expected jax numpy, got 'torch'"),
        (("call", "--plot", "x.gif"), "--plot: expected a file .png or .svg"),
        (("call", "--budget", "0"), "expected positive numbers"),
        (("call", "--size", "0"), "expected positive numbers"),
    ],
)
def test_misuse_ends_with_status_2_before_anything_runs(arguments, message, tmp_path, capsys):
    assert main(["bench", *arguments, "--folder", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_no_matplotlib(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    status, _, message = bench("--plot", "x.svg")
    assert status == 2
    assert "matplotlib is not installed, and --plot needs it: pip install" in message


def test_plot_runs_all_sizes(bench, tmp_path):
    pytest.importorskip("matplotlib")
    status, shown, _ = bench("--plot", str(tmp_path / "x.png"))
    assert status == 0
    sizes = [line[38:47].strip() for line in shown.splitlines()[2:]]
    assert sizes == ["4", "32", "256", "2048"]
    assert (tmp_path / "x.png").stat().st_size > 0


def test_runs_as_a_module():
    result = subprocess.run(
        [sys.executable, "-m", "tilegrad.bench", "--list", "rows"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "softmax of n x 1000" in result.stdout
