"""explain_remat: the example of the reference, and what its lines say."""

from __future__ import annotations

import pytest

import tilegrad as tg

X, W = tg.ShapeDtype((32, 64), "float32"), tg.ShapeDtype((64, 64), "float32")


def example(x, w):
    return tg.sum(tg.nn.gelu(x @ w, approximate=False))


def test_the_example():
    report = tg.explain_remat(example, X, W, argnums=1)
    (saved,) = report.saved
    assert (report.nbytes, report.capacity) == (8192, 9011)
    rows = dict(zip(report.names, report.rows, strict=True))
    assert rows[saved].value.node.op.name == "dot"
    gelu = next(r for r in report.rows if r.value.node.op.name == "sum").value.node.inputs[0]
    (row,) = [r for r in report.rows if r.value == gelu]
    assert row.capacity == pytest.approx(2.26e8, rel=2e-3)
    assert (row.distance, row.saved) == (100, False)
    assert report.arguments == ("%0",)  # x, for the gradient by w
    shown = str(report)
    assert f"saved: {saved} (8192 bytes, capacity of the cut 9011)" in shown
    assert "saved: dot is not cheap" in shown


def test_tags_of_the_joint_listing():
    lines = tg.explain_remat(example, X, W, argnums=1).listing.splitlines()
    forward = [line for line in lines if line.startswith("[FW]")]
    backward = [line for line in lines if line.startswith("[BW]")]
    assert '[BW] %2 = input "cotangent0": f32[]' in backward
    assert [line for line in forward if "= erfc(" in line or "= sum(" in line]
    assert not [line for line in backward if "= erfc(" in line]
    # One product forward; one backward for the gradient by w, none for that by x.
    assert len([line for line in forward if "= dot(" in line]) == 1
    assert len([line for line in backward if "= dot(" in line]) == 1
    both = tg.explain_remat(example, X, W, argnums=(0, 1)).listing
    assert both.count("= dot(") == 3
    assert lines[-1].strip().startswith("return %")


def test_policies_and_budgets():
    policies = tg.checkpoint_policies
    every = tg.explain_remat(example, X, W, argnums=1, policy=policies.everything_saveable)
    none = tg.explain_remat(example, X, W, argnums=1, policy=policies.nothing_saveable)
    assert none.saved == ()
    assert len(every.saved) == 3
    assert every.capacity is None
    for budget in (0, 8192, 3 * 8192, 10**6):
        report = tg.explain_remat(example, X, W, argnums=1, memory_budget=budget)
        assert report.nbytes <= budget
    assert report.nbytes == 3 * 8192


def test_checkpoints_inside_are_looked_into():
    inside = tg.explain_remat(lambda x, w: tg.checkpoint(example)(x, w), X, W, argnums=1)
    assert (inside.nbytes, inside.capacity) == (8192, 9011)


def test_pytrees_and_integers():
    def f(p, n):
        return tg.sum(tg.exp(p["a"]) * n), tg.asarray(3)

    report = tg.explain_remat(f, {"a": tg.ones(3), "b": 2.0}, tg.asarray(2))
    assert report.saved == ()
    with pytest.raises(ValueError, match="argnums: expected positions among 2 arguments, got 5"):
        tg.explain_remat(f, {"a": tg.ones(3)}, 2, argnums=5)
