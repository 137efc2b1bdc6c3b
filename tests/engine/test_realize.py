"""Deferred execution: keys, sharing, limits, history, modes."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from random_graphs import sample_cases

import tilegrad as tg
from tilegrad.autodiff import reverse
from tilegrad.engine import realize, single
from tilegrad.engine.array import wrap
from tilegrad.engine.closing import close
from tilegrad.engine.config import config
from tilegrad.engine.single import PLANS
from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.errors import TilegradError
from tilegrad.ir.graph import make_node, toposort
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.leaves import alias
from tilegrad.ir.types import TensorType

from .lines import raises_here


def key(*arrays: Any) -> Any:
    return close([a._value for a in arrays], lift_constants=True).key


def fresh(*shape: int) -> Any:
    return tg.asarray(np.ones(shape))


def test_key_is_the_form_of_the_program_alone() -> None:
    x, y = fresh(3), fresh(3)
    assert key(x + y) == key(fresh(3) + fresh(3))
    assert key(x * 2.0) == key(y * 7.5), "a scalar is an operand, not a part of the program"
    assert key(x + y) != key(x * y)
    assert key(x + y) != key(fresh(4) + fresh(4))
    assert key(x + y) != key(x + tg.asarray(np.ones(3, "float32")))


def test_key_tells_sharing_apart() -> None:  # ED05
    x, y = fresh(3), fresh(3)
    assert key(x * x) != key(x * y)
    assert key(x * x) == key(y * y)
    t = x + y
    assert key(t * t) != key((x + y) * (x + y))
    assert key(t, t) != key(t, x + y)
    np.testing.assert_array_equal(x * x, np.ones(3))
    np.testing.assert_array_equal(x * tg.asarray([2.0, 3.0, 4.0]), [2.0, 3.0, 4.0])


def test_key_tells_params_apart_by_bits() -> None:
    from tilegrad.engine.closing import params_key

    assert params_key((("value", 0.0),)) != params_key((("value", -0.0),))
    assert params_key((("value", 1.0),)) != params_key((("value", 1),))


def _program(x: Any) -> Any:
    return tg.sqrt(x * x + x) * 0.25


def _results_and_compiles(data: Any, times: int) -> tuple[list[Any], list[int]]:
    results, compiles = [], []
    for _ in range(times):
        before = PLANS.stats.compiles
        results.append(np.asarray(_program(tg.asarray(data))))
        compiles.append(PLANS.stats.compiles - before)
    return results, compiles


@pytest.mark.usefixtures("fresh_plans")
def test_keys_that_collide_are_told_apart() -> None:  # ED06
    """-1 and -2 have one hash in Python: a table that trusted hashes would mix these up."""
    assert hash(-1) == hash(-2)
    assert hash(-1.0) == hash(-2.0)
    x = np.arange(1.0, 6.0)
    roll = tg.jit(tg.roll, static_argnums=1)
    for _ in range(3):  # node by node, then as a program
        a = tg.asarray(x)
        for n in (-1, -2):
            np.testing.assert_allclose(roll(x, n), np.roll(x, n))
            np.testing.assert_allclose(tg.roll(a, n) + a, np.roll(x, n) + x)
            np.testing.assert_allclose(a * float(n) + a, x * n + x)
            np.testing.assert_allclose(a**n * a, x ** float(n) * x, rtol=1e-15)


def test_first_time_node_by_node_then_as_a_whole() -> None:
    data = np.array([0.3, 1.7, 2.9])
    x = tg.asarray(data)
    for alone in (tg.sqrt(x), x * x, x + x):  # plans that the program then finds
        np.asarray(alone)
    results, compiles = _results_and_compiles(data, 3)
    assert compiles[0] <= 2, "what no other program has compiled yet"
    assert compiles[1:] == [1, 0], "then one for the whole, then none"
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


@pytest.mark.usefixtures("fresh_plans")
def test_a_program_of_new_operations_is_compiled_as_a_whole() -> None:
    results, compiles = _results_and_compiles(np.array([0.3, 1.7, 2.9]), 2)
    assert compiles == [1, 0]
    assert results[0].tobytes() == results[1].tobytes()


def test_look_at_values_computes_once() -> None:  # ED04
    for look in (float, np.asarray, repr, bool, lambda a: a.item(), lambda a: a.tolist(), tg.eval):
        x = tg.asarray(3.0) * 2.0
        before = PLANS.stats.calls
        look(x)
        assert PLANS.stats.calls == before + 1
        look(x)
        assert PLANS.stats.calls == before + 1


def test_shapes_and_dtypes_compute_nothing() -> None:  # AR33
    before = PLANS.stats.calls
    y = tg.sum(fresh(3, 4) * 2.0, axis=0)
    assert (y.shape, y.dtype, y.ndim) == ((4,), tg.float64, 1)
    assert PLANS.stats.calls == before


def test_several_arrays_are_one_program() -> None:  # ED10
    x = fresh(3)
    y = x + 1.0
    before = PLANS.stats.calls
    tg.eval(y, y, [y, y * 2.0])
    assert PLANS.stats.calls == before + 1


def test_results_of_one_call_are_computed_together() -> None:
    value, gradient = tg.value_and_grad(lambda x: tg.sum(x * x))(fresh(3))
    float(value)
    assert gradient.is_realized


def test_history_is_freed() -> None:  # ED30
    x = fresh(3)
    y = x * 2.0
    node = weakref.ref(y._value.node)
    operand = weakref.ref(x)
    float(tg.sum(y))
    np.asarray(y)
    del x
    gc.collect()
    assert node() is None
    assert operand() is None


def test_history_stays_while_somebody_differentiates() -> None:
    def f(x: Any) -> Any:
        y = x * x
        assert float(y) == 9.0  # computed, and yet part of the derivative
        z = y * x
        assert z > 0
        return z

    assert float(tg.grad(f)(3.0)) == 27.0
    assert float(tg.grad(tg.grad(f))(3.0)) == 18.0


def test_history_is_let_go_after_differentiation() -> None:
    kept = []

    def f(x: Any) -> Any:
        y = x * x
        float(y)
        kept.append(y)
        return y

    tg.grad(f)(3.0)
    (y,) = kept
    node = weakref.ref(y._value.node)
    assert float(y) == 9.0
    gc.collect()
    assert y._buffer is not None
    assert node() is None


def test_long_loops_do_not_pile_up() -> None:  # ED24
    x = fresh(4)
    for _ in range(3000):
        x = x * 0.5 + 1.0
    assert len(close([x._value], lift_constants=True).nodes) <= 2 * config.pending_limit
    np.testing.assert_array_equal(x, np.full(4, 2.0))


@pytest.mark.parametrize("others", [0, 1, 3, 7])
def test_what_a_loop_carries_is_computed_whatever_else_it_makes(others: int) -> None:
    """A step that is never looked at: the web behind the state stays small."""
    target = fresh(4)
    w = target * 0.0
    longest = 0
    with config(pending_limit=128):
        for step in range(600):
            for _ in range(others):
                target * 2.0
            w = w - 0.25 * tg.grad(lambda w: tg.sum((w - target) ** 2))(w)
            if step % 50 == 49:
                longest = max(longest, len(toposort([w._value])))
    assert longest < 16 * 128
    np.testing.assert_allclose(w, target, rtol=1e-12)


def test_a_gradient_does_not_walk_behind_its_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cost is that of the function, whatever the argument waits for."""
    walked = []
    monkeypatch.setattr(
        reverse, "toposort", lambda *a, **k: walked.append(found := toposort(*a, **k)) or found
    )
    x = tg.asarray(1.0)
    for _ in range(300):
        x = x + 1.0
    tg.grad(lambda t: t * t)(x)
    assert walked
    assert max(map(len, walked)) < 20


def test_a_chain_of_many_thousand_nodes_needs_no_recursion() -> None:
    with config(pending_limit=10**9):
        x = tg.asarray(1.0)
        for _ in range(20_000):
            x = x + 1.0
        y = tg.grad(lambda t: t * 2.0)(x)
        web = close([x._value], lift_constants=True)
        assert len(web.nodes) == 20_000
        assert float(y) == 2.0
    del x, y, web
    gc.collect()


def test_eager_mode_computes_at_once_with_the_same_bits() -> None:  # ED11
    data = np.linspace(0.1, 3, 7)
    later = np.asarray(tg.sin(tg.asarray(data)) * 0.3 + 1.0)
    with config(eager=True):
        y = tg.sin(tg.asarray(data))
        assert y.is_realized
        y = y * 0.3 + 1.0
        assert y.is_realized
        assert float(tg.grad(lambda x: x * x)(3.0)) == 6.0
        assert float(tg.jit(lambda x: x * x)(3.0)) == 9.0
        np.testing.assert_array_equal(tg.vmap(lambda x: x * x)(np.ones(2)), np.ones(2))
    assert np.asarray(y).tobytes() == later.tobytes()


def test_verify_mode_finds_a_wrong_type_rule(monkeypatch: pytest.MonkeyPatch) -> None:  # ED12
    from tilegrad.ir.ops.arithmetic import ADD
    from tilegrad.ir.types import TensorType

    with config(verify=True):
        np.testing.assert_array_equal(fresh(3) + fresh(3), np.full(3, 2.0))
        real = single._run_node
        monkeypatch.setattr(
            single,
            "_run_node",
            lambda node, numbers, operands: (
                single._verify(node, [np.zeros(4)])
                if node.op is ADD
                else real(node, numbers, operands)
            ),
        )
        y = fresh(3) + fresh(3)
        with pytest.raises(tg.TilegradError, match=r"add: inferred f64\[3\], .* gave float64\[4\]"):
            np.asarray(y)
    assert TensorType((3,), tg.float64) == y._type


def test_errors_of_the_kernel_cite_the_line_of_the_operation() -> None:
    index = tg.asarray([0, 7])
    x = tg.asarray([1.0, 2.0])
    for _ in range(3):  # alone, then in a compiled whole
        with raises_here(IndexError, "7"):
            y = x[index] * 2.0  # here
            np.asarray(y)


def test_unused_results_are_not_computed() -> None:
    x = fresh(3)
    dead = x * 2.0
    live = x + 1.0
    np.asarray(live)
    assert not dead.is_realized


def test_multiple_results_of_one_node_run_once() -> None:  # ED17
    from tilegrad.ir.graph import Node, Value
    from tilegrad.ir.ops.arithmetic import ADD
    from tilegrad.ir.types import TensorType

    t = TensorType((3,), tg.float64)
    operand = fresh(3)._value
    pair = Node(ADD, (operand, operand), (), (t, t))  # stands for any op of two results
    runs = []

    class Plan:
        def run(self, buffers: Any, threads: int = 1) -> Any:
            runs.append(1)
            return [buffers[0] + 1, buffers[0] + 2]

    web = close(pair.outputs, lift_constants=True)
    PLANS._plans[web.key] = Plan()
    try:
        assert realize.evaluate(Value(pair, 1)).tolist() == [3.0] * 3
        assert realize.evaluate(Value(pair, 0)).tolist() == [2.0] * 3
    finally:
        del PLANS._plans[web.key]
    assert len(runs) == 1


def test_nan_detector_cites_the_operation_that_made_it() -> None:  # ER15
    def f(x: Any) -> Any:
        y = x - 2.0
        z = tg.log(y)  # here
        return tg.sum(z * 2.0)

    x = np.array([3.0, 1.0, 5.0])
    assert np.isnan(float(f(tg.asarray(x))))
    with config(debug_nans=True):
        for run in (f, tg.jit(f), tg.value_and_grad(f)):
            with raises_here(FloatingPointError, r"log\(f64\[3\]\): made a NaN, .* at \[1\]"):
                tg.eval(run(tg.asarray(x)))
        assert float(f(tg.asarray(x + 2.0))) == pytest.approx(2 * np.sum(np.log(x)))
        np.testing.assert_array_equal(tg.asarray([np.nan]) * 2.0, [np.nan])


def test_views_compile_nothing_and_share_memory_where_they_can() -> None:  # AR15
    x = tg.eval(tg.asarray(np.arange(12.0).reshape(3, 4)))
    before = PLANS.stats.compiles
    for i in range(3):
        np.testing.assert_array_equal(x[i], np.arange(12.0).reshape(3, 4)[i])
        assert float(x[i, -1]) == 4 * i + 3
    np.testing.assert_array_equal(x.T[::-1], np.arange(12.0).reshape(3, 4).T[::-1])
    assert np.asarray(x.T).flags.c_contiguous
    assert PLANS.stats.compiles == before
    assert np.shares_memory(np.asarray(x[1]), np.asarray(x))
    assert not np.asarray(x[1]).flags.writeable


def ops_of_equal_operands() -> list[tuple[str, list[Any], dict[str, Any]]]:
    """Every op that can take one array for two or more of its operands, with such operands."""
    found = []
    for name, op in sorted(OPS.items()):
        if op.samples is None:
            continue
        for dtype in ("float64", "int64", "bool"):
            try:
                operands, params = sample_cases(op, np.random.default_rng(0), np.dtype(dtype))[0]
                first = np.asarray(operands[0])
                same = [
                    first if np.asarray(x).dtype == first.dtype else np.asarray(x) for x in operands
                ]
                types = [TensorType(x.shape, as_dtype(x.dtype)) for x in same]
                op.infer(*types, **params)
                op.reference(*same, **params)
            except (TilegradError, ArithmeticError, TypeError, ValueError):
                continue
            if sum(x is first for x in same) > 1:
                found.append((name, same, params))
                break
    return found


@pytest.mark.parametrize(
    ("name", "operands", "params"), [pytest.param(*x, id=x[0]) for x in ops_of_equal_operands()]
)
@pytest.mark.usefixtures("fresh_plans")
def test_one_array_as_several_operands(
    name: str, operands: list[Any], params: dict[str, Any]
) -> None:
    """Alone, inside a larger web and compiled: ``concatenate([x, x])`` is not a view of ``x``."""
    op = OPS[name]
    expected = op.reference(*operands, **params)
    lifted = {id(x): tg.asarray(x) for x in operands}
    values = [lifted[id(x)]._value for x in operands]
    for way in (1, 2):  # the second time from the table
        alone = wrap(make_node(op, values, **params).out)
        np.testing.assert_allclose(alone, expected, rtol=1e-14, err_msg=f"{name}, {way}")
        copies = {x: alias(x) for x in values}
        web = wrap(alias(make_node(op, [copies[x] for x in values], **params).out))
        np.testing.assert_allclose(web, expected, rtol=1e-14, err_msg=f"{name} in a web, {way}")


def test_one_array_twice_in_functions() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for axis in (0, 1):
        np.testing.assert_array_equal(
            tg.concatenate([tg.asarray(x)] * 2, axis), np.concatenate([x] * 2, axis)
        )
    t = tg.asarray(x)
    np.testing.assert_array_equal(tg.block([[t, t], [t, x]]), np.block([[x, x], [x, x]]))
    square = t[:, :2]
    np.testing.assert_array_equal(square @ square, x[:, :2] @ x[:, :2])


def test_an_operation_with_a_number_is_looked_up_without_a_web(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen twice, its plan is found by the operation itself: side, number, types and sharing."""
    data = np.array([1.5, 2.0, -4.0, 3.25])

    def results(scale: float) -> list[Any]:
        made = []
        for dtype in ("float64", "float32"):
            for shape in ((4,), (2, 2), ()):
                x = data.astype(dtype)[0] if shape == () else data.astype(dtype).reshape(shape)
                x = np.asarray(x)
                a = tg.asarray(x)
                pairs = [
                    (a + scale, x + np.asarray(scale, dtype)),
                    (scale + a, x + np.asarray(scale, dtype)),
                    (a - scale, x - np.asarray(scale, dtype)),
                    (scale - a, np.asarray(scale, dtype) - x),
                    (scale / a, np.asarray(scale, dtype) / x),
                    (tg.maximum(a, 2), np.maximum(x, 2)),
                    (a > scale, x > np.asarray(scale, dtype)),
                    (a * a, x * x),
                ]
                made += [(np.asarray(ours), theirs) for ours, theirs in pairs]
        return made

    for scale in (3.0, 0.5):
        results(scale)
    monkeypatch.setattr(realize, "close", None)  # from now on no web is made
    for ours, theirs in results(-2.5):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
