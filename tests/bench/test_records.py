"""Saved runs, comparison, table, picture."""

from __future__ import annotations

import json

import pytest

from tilegrad.bench.machine import Machine
from tilegrad.bench.measuring import Result
from tilegrad.bench.records import compare, load, place, save
from tilegrad.bench.table import HEADER, amount, comparison, row, seconds
from tilegrad.bench.timing import Times

MACHINE = Machine(2e10, 1e11, 2)


def result(name="exp", ours=1e-3, peer=2e-3, size=10, **rest):
    times = {"tilegrad": Times(ours, ours, 9)}
    if peer:
        times["jax"] = Times(peer, peer, 9)
    return Result("elementwise", name, 0.75, size, "jax", times, 16_000, 400, 5e-4, **rest)


FAULT = Result("elementwise", "exp", 0.75, 10, fault="ArithmeticError: wrong")


def test_a_saved_run_comes_back(tmp_path):
    path = place(str(tmp_path / "new"), "a.b-1")
    results = [result(), result("log", peer=None), FAULT]
    save(path, results, MACHINE)
    save(path, results, MACHINE)  # writes over the old one
    assert load(path) == results
    assert [p.name for p in path.parent.iterdir()] == ["a.b-1.json"]
    entry = json.loads(path.read_text())["results"][0]
    assert (entry["ratio"], entry["share"], entry["peer"]) == (0.5, 0.5, "jax")


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"version": 0, "results": []}'])
def test_other_files_are_refused(text, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"x\.json: expected a run saved by tilegrad bench"):
        load(path)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "a b"])
def test_names_stay_in_the_folder(name, tmp_path):
    with pytest.raises(ValueError, match="expected a name of letters"):
        place(str(tmp_path), name)


@pytest.mark.parametrize(
    ("now", "then", "factor", "remark"),
    [
        (result(), result(), 1.0, ""),
        (result(ours=4e-3, peer=8e-3), result(), 1.0, ""),  # the machine got slower, not we
        (result(ours=2e-3), result(), 2.0, "REGRESSION"),
        (result(ours=5e-4), result(), 0.5, "faster"),
        (result(ours=1.1e-3), result(), 1.1, ""),
        (result(ours=2e-3, peer=None), result(), 2.0, "REGRESSION raw times"),
        (result(peer=None), result(), 1.0, "raw times"),
        (result(size=20), result(), None, "new"),
        (result(), FAULT, None, "new"),
        (FAULT, result(), None, "REGRESSION ArithmeticError: wrong"),
        (FAULT, FAULT, None, "ArithmeticError: wrong"),
    ],
)
def test_comparison(now, then, factor, remark):
    ((shown, found, text),) = compare([now], [then], 0.15)
    assert shown is now
    assert found == (None if factor is None else pytest.approx(factor))
    assert text == remark


def test_rows_line_up_with_the_header():
    line = row(result())
    assert " ".join(line.split()) == "exp 10 1 ms jax 2 ms 0.500 0.75 ok 16k 400 50%"
    assert len(line) == len(HEADER)
    assert len(row(result(ours=2e-3, peer=1e-3))) == len(HEADER)
    assert "OVER" in row(result(ours=2e-3, peer=1e-3))
    assert row(result(peer=None)).count(" - ") == 2
    assert row(FAULT).endswith("ArithmeticError: wrong")
    assert comparison([(result(), 2.0, "REGRESSION")]).splitlines()[1].split() == [
        "exp",
        "10",
        "2.000",
        "REGRESSION",
    ]


def test_units():
    assert [seconds(t) for t in (None, 2.5, 1.5e-3, 2e-6, 3.4e-8)] == [
        "-",
        "2.5 s",
        "1.5 ms",
        "2 us",
        "34 ns",
    ]
    assert [amount(n) for n in (None, 12, 1250, 3e6, 2.5e9)] == ["-", "12", "1.25k", "3M", "2.5G"]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_picture(ending, tmp_path):
    pytest.importorskip("matplotlib")
    from tilegrad.bench.plot import draw

    path = tmp_path / f"x.{ending}"
    draw(path, [result(size=n, ours=1e-6 * n) for n in (10, 100)] + [result("log"), FAULT])
    start = path.read_bytes()[:200]
    assert start.startswith(b"\x89PNG") if ending == "png" else b"<?xml" in start
    if ending == "svg":
        assert "<!-- tilegrad -->" in path.read_text()  # its name in the legend
