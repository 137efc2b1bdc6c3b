"""``why_not_fused``: every reason the scheduler has, and that it is the one that holds."""

from __future__ import annotations

import pytest
from plans import nests, schedule_of

import tilegrad as tg
from tilegrad.fusion.explain import Explainer
from tilegrad.ir.ops import (
    cos,
    cumsum,
    exp,
    matmul,
    max_,
    scatter,
    sin,
    sort,
    sqrt,
    sum_,
)
from tilegrad.ir.ops.shape import transpose

M = ((64, 100), "float64")


def explain(function, a, b, *types):
    explainer = Explainer(schedule_of(function, *types))
    values = [explainer.named(x) if isinstance(x, str) else explainer.output(x) for x in (a, b)]
    text = explainer.why_not_fused(*values)
    # The order of the question changes the order of the answer's first two lines only.
    turned = explainer.why_not_fused(*values[::-1]).splitlines()
    assert [*turned[1::-1], *turned[2:]] == text.splitlines()
    return text.splitlines()


def softmax(x):
    e = exp(x - max_(x, 1, keepdims=True))
    return e / sum_(e, 1, keepdims=True)


def test_same_loops():
    lines = explain(lambda x: (exp(x) + 1.0, sin(x) * 2.0), 0, 1, M)
    assert lines == [
        "add f64[64,100]: step 0; has a buffer (output of the graph)",
        "mul f64[64,100]: step 0; has a buffer (output of the graph)",
        "fused: the loops of step 0 compute both.",
    ]


def test_values_without_a_buffer_are_where_they_are_read():
    lines = explain(lambda x: sum_(exp(x) * 2.0, 1), "exp", "sum", M)
    assert lines[0] == "exp f64[64,100]: step 0; has no buffer"
    assert lines[-1] == "fused: the loops of step 0 compute both."


def test_nests_of_one_tile():
    lines = explain(softmax, "max", "exp", M)
    assert lines[2] == (
        "in one tile, step 0: 16 of 64 rows at a time pass through both nests, in the cache. "
        "Not one nest:"
    )
    assert lines[3:] == [
        "- different loops: 64 x 100 with axis 1 reduced and 64 x 100",
        "- exp f64[64,100] needs the finished result of max f64[64]",
    ]


def test_different_loops_and_no_shared_data():
    lines = explain(lambda x, y: (exp(x), sin(y)), 0, 1, M, ((5000,), "float64"))
    assert lines[2:] == [
        "not fused:",
        "- different loops: 64 x 100 and 5000",
        "- they share no data: running them together would save no memory traffic",
    ]


def test_columns_are_no_rows():
    def f(x):
        c = x - sum_(x, 0, keepdims=True)
        return sum_(c * c, 0)

    lines = explain(f, "sum:0", "sum:1", M)
    assert lines[2:] == [
        "not fused:",
        "- sum:1 f64[100] needs the finished result of sum:0 f64[100]",
        "- no tile: elements follow each other in memory along the only outer loop of step 0; "
        "it is the loop of the vectors, not one to cut into rows",
    ]


def test_a_row_too_long_for_the_scratch():
    def f(x):
        y = exp(x)
        return y / sum_(y, 1, keepdims=True)

    lines = explain(f, "exp", "sum", ((8, 60_000), "float64"))
    assert lines[-1] == (
        "- no tile: one row of what passes between them is 480000 bytes, the scratch of a tile "
        "holds 196608"
    )


def test_elements_that_move():
    def f(x):
        y = exp(x)
        return y, sin(transpose(y, (1, 0)))

    lines = explain(f, 0, 1, ((64, 64), "float64"))
    assert lines[2:] == [
        "not fused:",
        "- sin f64[64,64] reads exp f64[64,64] at other elements than the one that is being "
        "computed (by transpose)",
    ]


def test_library_calls():
    lines = explain(lambda x: sort(x, 1) + 1.0, "sort", "add", M)
    assert lines[2:4] == [
        "not fused:",
        "- step 0 is a library call: sort is a library's work",
    ]


def test_matrix_products_and_what_waits_for_them():
    def f(x):
        y = exp(x)
        return y, sqrt(matmul(y, transpose(y, (1, 0))) + sum_(y, 1))

    lines = explain(f, "exp", "sqrt", ((64, 64), "float64"))
    assert lines[3] == (
        "- in between: step 1 (a matrix product) must wait for the one and be done for the other"
    )
    lines = explain(f, "exp", "dot", ((64, 64), "float64"))
    assert "- step 1 is a matrix product: it runs whole" in lines


def test_recurrences():
    lines = explain(lambda x: sum_(cumsum(x, 1), 1), "cumsum", "sum", M)
    assert any("is a recurrence (cumsum): its last loop runs in order" in line for line in lines)


def test_scatter_runs_in_order():
    def f(x, i):
        return sin(scatter(x, exp(x), i, how="add", mode="clip"))

    lines = explain(f, "scatter", "sin", ((50,), "float64"), ((50,), "int64"))
    assert "- step 1 writes at run-time positions: its iterations run in order" in lines


def test_too_long_a_tape():
    def f(x):
        a, b = x, x
        for k in range(140):
            a, b = a * (1.0 + k) + 0.5, b * (2.0 + k) - 0.25
        return a, b

    schedule = schedule_of(f, M)
    assert len(nests(schedule)) > 1
    lines = explain(f, 0, 1, M)
    assert any(line.startswith("- too long together: ") for line in lines)


def test_long_reductions_are_at_home_in_both_halves():
    lines = explain(lambda x: sum_(sin(x), 0), "sin", "sum", ((200_000,), "float64"))
    assert lines[1].startswith("sum f64[]: steps 0, 1;")
    assert lines[-1] == "fused: the loops of steps 0, 1 compute both."


def test_inputs_are_computed_nowhere():
    lines = explain(lambda x: exp(x), "input", "exp", M)
    assert lines[0] == "input f64[64,100]: no step, the program is given it"
    assert len(lines) == 2


def test_names():
    explainer = Explainer(schedule_of(lambda x: (exp(x) + exp(sin(x)), cos(x)), M))
    assert explainer.label(explainer.named("exp:1")) == "exp:1 f64[64,100]"
    assert explainer.named("exp:0") != explainer.named("exp:1")
    assert explainer.named("cos") == explainer.named("cos:0") == explainer.output(1)
    for name, message in [
        ("tan", "expected one of the program's ops .*exp.*got 'tan'"),
        ("exp", "expected one of exp:0 to exp:1, got 'exp'"),
        ("exp:2", "expected one of exp:0 to exp:1, got 'exp:2'"),
        ("exp:x", "expected one of exp:0 to exp:1, got 'exp:x'"),
    ]:
        with pytest.raises(ValueError, match=message):
            explainer.named(name)
    with pytest.raises(ValueError, match="expected an output below 2, got 2"):
        explainer.output(2)


def test_outputs_of_a_jitted_function_that_are_arguments():
    low = tg.jit(lambda x: (x, tg.exp(x), tg.exp(x) * 2.0)).lower(tg.ones(5))
    assert low.why_not_fused(1, 2).endswith("fused: the loops of step 0 compute both.")
    assert low.why_not_fused(1, 1).startswith("exp f64[5]")
    with pytest.raises(ValueError, match="why_not_fused: output 0 is an argument as it came"):
        low.why_not_fused(0, 1)
    with pytest.raises(ValueError, match="why_not_fused: expected an output below 3, got 3"):
        low.why_not_fused(1, 3)
    with pytest.raises(ValueError, match="why_not_fused: expected one of the program's ops"):
        low.why_not_fused("tanh", 1)
