"""Stages of a program beside each other: what is broken on purpose is named, nothing else is."""

import dataclasses
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from random_graphs import programs

import tilegrad as tg
from tilegrad.__main__ import main
from tilegrad.engine import realize, traced
from tilegrad.engine.array import wrap
from tilegrad.engine.node_checks import NodeRun
from tilegrad.engine.stages import _bisect
from tilegrad.ir.dtypes import complex128, float32, float64, int64
from tilegrad.ir.graph import Graph, make
from tilegrad.ir.ops.arithmetic import mul
from tilegrad.ir.ops.exponential import EXP, exp2
from tilegrad.ir.ops.hyperbolic import TANH
from tilegrad.ir.ops.reductions import SUM, sum_
from tilegrad.ir.ops.regions import LOOP
from tilegrad.ir.ops.trigonometric import sin
from tilegrad.ir.passes import manager
from tilegrad.ir.passes.manager import Pass
from tilegrad.ir.passes.regions import optimize_bodies
from tilegrad.ir.rewrite import rewrite_graph
from tilegrad.kernels import plan as plans

X = np.linspace(0.3, 2.0, 12).reshape(3, 4)


def report_of(f, *args):
    return tg.jit(f).lower(*args).compare_stages(*args)


@pytest.fixture
def own_plans(fresh_plans):
    """Nothing that is compiled wrongly here is found by other tests."""
    yield
    realize.PLANS.clear()
    traced.PLANS.clear()


# ---------------------------------------------------------------------------- nothing is wrong


def model(x):
    y = tg.tanh(x) - tg.mean(x, axis=1, keepdims=True)
    return {"p": tg.exp(y) / tg.sum(tg.exp(y)), "x": x, "n": tg.argsort(y, axis=1)}


def scanned(x):
    def step(c, k):
        c = tg.cond(tg.sum(c) > 4, lambda c: tg.sin(c) + k, lambda c: tg.exp(c) - k, c)
        return c, tg.sum(c)

    return tg.scan(step, x[0], tg.arange(5.0, dtype=x.dtype))


def roots(x):
    return tg.vmap(
        lambda a: tg.while_loop(
            lambda r: abs(r * r - a) > 1e-5 * a, lambda r: (r + a / r) / 2, 1.5 * a + 0.1
        )
    )(x[1])


def gradient(x):
    return tg.grad(lambda x: tg.sum(scanned(x)[1]) + tg.sum(roots(x)) + tg.sum(model(x)["p"]))(x)


@pytest.mark.parametrize("f", [model, scanned, roots, gradient, lambda x: x])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_right_program(f, dtype):
    report = report_of(f, X.astype(dtype))
    assert (report.first, report.node) == (None, None)
    stages = [row.stage for row in report.rows]
    assert stages[0] == "ir"
    assert stages[-3:] == ["nodes", "fused", "threads"]
    assert all(row.ulp == 0 for row in report.rows if row.stage != "nodes")
    assert str(report).endswith("no stage differs")


@pytest.mark.parametrize(
    ("f", "least"),
    [
        (lambda x: (tg.exp(x) - tg.expm1(x)) - 1, 1e3),
        # x -> 3.9 x (1 - x) doubles an error about every other step
        (lambda x: tg.fori_loop(0, 60, lambda i, c: 3.9 * c * (1 - c), tg.exp(-x)), 1e3),
    ],
)
def test_enlarged_roundings_accuse_nobody(f, least):
    """NumPy's exp differs by an ulp here and there, which becomes a million."""
    report = report_of(f, np.random.default_rng(0).random(200))
    assert report.first is None
    assert next(row for row in report.rows if row.stage == "nodes").ulp > least


@settings(max_examples=20)
@given(programs(steps=10, dtypes=(float64, float32, int64, complex128)))
def test_random_programs(program):
    run = NodeRun()
    run.run(program.graph, [np.array(a) for a in program.arguments])
    assert run.fault is None


def test_closures_and_effects(capsys):
    weights = tg.asarray(X) * 2

    def f(x):
        tg.debug.print("{}", tg.sum(x) > 0)
        return tg.sum(x * weights)

    report = report_of(f, X)
    assert report.first is None
    assert capsys.readouterr().out == "True\n" * len(report.rows)


def test_errors_are_those_of_a_call():
    f = tg.jit(lambda n: 7 // n).lower(3)
    assert f.compare_stages(3).first is None
    with pytest.raises(ZeroDivisionError):
        f.compare_stages(0)
    with pytest.raises(tg.DTypeError, match="argument n: was compiled for"):
        f.compare_stages(X)
    with pytest.raises(TypeError, match="got 2 arrays"):
        f.compare_stages(1, 2)


# --------------------------------------------------------------------------------------- passes


def replacing(op, builder):
    """A pass that puts another function in the place of ``op``."""

    def rule(node):
        return (builder(node.inputs[0]),) if node.op is op else None

    return lambda graph: rewrite_graph(graph, rule)


def add_pass(monkeypatch, run):
    breaker = Pass("breaker", run, "bitwise", "")
    monkeypatch.setattr(manager, "PASSES", (*manager.PASSES[:3], breaker, *manager.PASSES[3:]))


def test_a_wrong_pass(monkeypatch):
    add_pass(monkeypatch, replacing(TANH, sin))
    report = report_of(lambda x: tg.cos(tg.tanh(x * 2) + 1).T, X)
    assert report.first == "optimized/breaker"
    assert report.node.startswith("sin(f64[3,4]) -> f64[3,4]")
    row = next(row for row in report.rows if row.stage == report.first)
    assert (row.output, row.index) == ("result", (0, 0))
    right, wrong = np.cos(np.tanh(X * 2) + 1), np.cos(np.sin(X * 2) + 1)
    gap = np.abs(wrong - right)
    assert row.relative == pytest.approx(np.max(gap / np.abs(right)), rel=1e-9)
    assert row.ulp == pytest.approx(np.max(gap / np.spacing(np.abs(right))), rel=1e-9)
    assert [r.stage for r in report.rows if not r.same] == ["optimized/breaker"]
    assert f"the first to differ is optimized/breaker: {report.node}" in str(report)


def test_a_wrong_pass_inside_regions(monkeypatch):
    inner = replacing(EXP, exp2)
    add_pass(monkeypatch, lambda graph: optimize_bodies(graph, lambda g: optimize_bodies(g, inner)))
    report = report_of(scanned, X)
    assert report.first == "optimized/breaker"
    assert report.node.startswith("loop(")


def test_a_pass_that_fails(monkeypatch):
    add_pass(monkeypatch, lambda graph: Graph(graph.inputs, ()))
    report = report_of(model, X)
    assert report.first == report.rows[-1].stage == "optimized/breaker"
    assert "changed the inputs or the types" in report.rows[-1].error
    assert report.rows[-1].error in str(report)


# -------------------------------------------------------------------------------------- kernels

# An op of its own, off by 1e-13: 450 units of the last place.
ALMOST = dataclasses.replace(
    EXP,
    name="almost_exp",
    scalar=lambda h, x: h.mul(EXP.scalar(h, x), h.const(1 + 1e-13, h.dtype(x))),
)


def almost_exp(x):
    return wrap(make(ALMOST, [x._value]))


def test_a_wrong_kernel(own_plans):
    report = report_of(lambda x: tg.sum(tg.sin(almost_exp(x) - 1), axis=0), X)
    assert report.first == "nodes"
    assert report.node.startswith("almost_exp(f64[3,4]) -> f64[3,4] at ")
    assert "test_stages.py" in report.node
    assert [row.stage for row in report.rows if not row.same] == ["nodes"]


def test_a_wrong_kernel_inside_regions(own_plans):
    def f(x):
        def step(c, k):
            return tg.cond(k > 2, lambda c: almost_exp(-c), lambda c: c + k, c), k

        return tg.scan(step, x[0], tg.arange(5.0))[0]

    report = report_of(f, X)
    assert report.first == "nodes"
    assert report.node.startswith("almost_exp(f64[4])")
    assert report.node.endswith(", in a cond, in a loop")


def breaking(monkeypatch, is_broken, run):
    """Compile other graphs in place of some."""
    compiled = plans.compile_graph
    monkeypatch.setattr(
        plans, "compile_graph", lambda graph: compiled(run(graph) if is_broken(graph) else graph)
    )


def test_a_wrong_sum(monkeypatch, own_plans):
    """Off by 1e-12 of its terms: beyond what another order of 12 terms may change."""
    breaking(
        monkeypatch,
        lambda graph: [node.op for node in graph.nodes()] == [SUM],
        lambda graph: Graph(
            graph.inputs,
            (sum_(mul(graph.inputs[0].out, 1 + 1e-12), graph.outputs[0].node.param("axes")),),
        ),
    )
    report = report_of(lambda x: tg.sin(tg.sum(x)), X)
    assert report.first == "nodes"
    assert report.node.startswith("sum(f64[3,4]) -> f64[]")


def test_wrong_fusion(monkeypatch, own_plans):
    """Right by itself, wrong together with others."""

    def f(x):
        y = tg.tanh(x) * 2 + 1
        return tg.sin(x), tg.cos(tg.exp(y) + x) - tg.sum(y)

    breaking(monkeypatch, lambda graph: len(graph.nodes()) > 1, replacing(EXP, exp2))
    report = report_of(f, X)
    assert report.first == "fused"
    assert report.node.startswith("exp(f64[3,4])")
    assert next(row.output for row in report.rows if not row.same) == "result[1]"


def test_a_wrong_loop_of_right_steps(monkeypatch, own_plans):
    wrong = replacing(EXP, exp2)
    breaking(
        monkeypatch,
        lambda graph: any(node.op is LOOP for node in graph.nodes()),
        lambda graph: optimize_bodies(graph, wrong),
    )
    f = tg.jit(lambda x: tg.fori_loop(0, 3, lambda i, c: tg.exp(-c) + i, x) * 2)
    report = f.lower(X).compare_stages(X)
    assert report.first == "nodes"
    assert report.node.startswith("loop(")


def test_wrong_threads(monkeypatch, own_plans):
    graphs = weakref.WeakKeyDictionary()
    compiled, run = plans.compile_graph, plans.Plan.run

    def compile_graph(graph):
        plan = compiled(graph)
        graphs[plan] = graph
        return plan

    def run_wrong(self, arrays, threads=1, donated=()):
        results = run(self, arrays, threads, donated)
        ops = [node.op for node in graphs[self].nodes()]
        if threads == 3 and EXP in ops:
            results[-1] = np.nextafter(results[-1], np.inf)
        return results

    monkeypatch.setattr(plans, "compile_graph", compile_graph)
    monkeypatch.setattr(plans.Plan, "run", run_wrong)
    with tg.config(num_threads=3):
        report = report_of(lambda x: tg.sin(tg.exp(tg.cos(x)) * 2), X)
    assert report.first == "threads"
    assert report.node.startswith("exp(f64[3,4])")
    assert report.rows[-1].ulp == 1


def test_a_plan_that_raises(monkeypatch, own_plans):
    def run(self, arrays, threads=1, donated=()):
        raise RuntimeError("out of luck")

    f = tg.jit(lambda x: tg.exp(x) + 1).lower(X)
    assert f.compare_stages(X).first is None  # the plans of the nodes are there
    monkeypatch.setattr(plans.Plan, "run", run)
    report = f.compare_stages(X)
    assert report.first == "fused"
    assert report.rows[-1].error == "RuntimeError: out of luck"


@pytest.mark.parametrize("fault", range(7))
def test_bisection(fault):
    asked = []

    def is_wrong(count):
        asked.append(count)
        return count > fault

    assert _bisect("abcdefg", is_wrong) == "abcdefg"[fault]
    assert len(asked) <= 4
    assert _bisect("abcdefg", lambda count: False) is None


# ------------------------------------------------------------------------------------ the command

SOURCE = """
import tilegrad as tg

def f(x, n):
    return tg.tanh(x @ x) * n

compiled = tg.jit(f)

def of_numbers(a, b, scale=2.0):
    return a * b * scale

number = 3
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    file = tmp_path / "compared_functions.py"
    file.write_text(SOURCE)
    return str(file)


@pytest.mark.parametrize(
    "argv",
    [
        ("f", "--shapes", "f64[3,3] i64[]"),
        ("compiled", "--shapes", "c64[2,2] f32[]~"),
        ("of_numbers",),
    ],
)
def test_command(argv, source, capsys):
    name, *options = argv
    assert main(["compare", f"{source}:{name}", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["stage", "ulp", "relative", "first", "difference"]
    assert lines[1].split()[0] == "ir"
    assert lines[-1] == "no stage differs"


def test_command_finds_a_fault(source, capsys, monkeypatch):
    add_pass(monkeypatch, replacing(TANH, sin))
    assert main(["compare", f"{source}:f", "--shapes", "f64[3,3] i64[]"]) == 1
    out = capsys.readouterr().out
    assert "DIFFERS" in out
    assert "the first to differ is optimized/breaker: sin(f64[3,3])" in out


@pytest.mark.parametrize(
    ("target", "shapes", "message"),
    [
        ("f", "f64[3", "expected types like"),
        ("number", "f64[]", "expected a function 'number', found 3"),
        ("nothing", "f64[]", "expected a function 'nothing', found None"),
    ],
)
def test_command_misused(target, shapes, message, source, capsys):
    assert main(["compare", f"{source}:{target}", "--shapes", shapes]) == 2
    assert message in capsys.readouterr().err
    assert main(["compare", f"{source}x:f"]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main(["compare", source]) == 2
    assert "expected PATH.py:FUNCTION" in capsys.readouterr().err
