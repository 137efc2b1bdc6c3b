"""What a jitted function reads from outside is part of its signature."""

import types
import warnings
from typing import Any

import numpy as np

import tilegrad as tg

SCALE = 2.0
TABLE = {"rate": 2.0, "data": None}


def helper(x: Any) -> Any:
    return SCALE * x


def outer_helper(x: Any) -> Any:
    return helper(x) + 1.0


def test_changed_global(monkeypatch: Any) -> None:  # case 88
    f = tg.jit(lambda x: SCALE * x)
    assert float(f(1.0)) == 2.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert float(f(1.0)) == 5.0
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert float(f(1.0)) == 2.0
    assert len(f._programs) == 2


def test_changed_closure() -> None:  # case 88
    k = 2.0
    f = tg.jit(lambda x: k * x)
    assert float(f(1.0)) == 2.0
    k = 5.0
    assert float(f(1.0)) == 5.0


def test_sign_and_type_of_a_closure_scalar() -> None:
    k: Any = 0.0
    f = tg.jit(lambda x: x / k)
    assert float(f(1.0)) == np.inf
    k = -0.0
    assert float(f(1.0)) == -np.inf
    k = 1
    g = tg.jit(lambda x: x * k)
    assert g(tg.arange(2)).dtype is tg.int64
    k = 1.0
    assert g(tg.arange(2)).dtype is tg.float64


def test_changed_global_of_a_helper(monkeypatch: Any) -> None:
    f = tg.jit(lambda x: outer_helper(x))
    assert float(f(1.0)) == 3.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert float(f(1.0)) == 6.0


def test_replaced_helper(monkeypatch: Any) -> None:
    f = tg.jit(lambda x: outer_helper(x))
    assert float(f(1.0)) == 3.0
    monkeypatch.setitem(globals(), "helper", lambda x: 10.0 * x)
    assert float(f(1.0)) == 11.0


def test_inside_transforms(monkeypatch: Any) -> None:
    f = tg.jit(tg.grad(lambda x: helper(x) * x))
    g = tg.jit(tg.vmap(tg.value_and_grad(lambda x: helper(x) * x)))
    h = tg.jit(lambda x: tg.jit(helper)(x))
    assert float(f(3.0)) == 12.0
    assert float(g(np.ones(1))[0][0]) == 2.0
    assert float(h(1.0)) == 2.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert float(f(3.0)) == 30.0
    assert float(g(np.ones(1))[0][0]) == 5.0
    assert float(h(1.0)) == 5.0


def test_attributes_of_modules_and_objects() -> None:
    module = types.ModuleType("constants_of_the_user")
    module.k = 2.0  # type: ignore[attr-defined]
    settings = types.SimpleNamespace(k=3.0)
    f = tg.jit(lambda x: module.k * settings.k * x)
    assert float(f(1.0)) == 6.0
    module.k = 4.0  # type: ignore[attr-defined]
    assert float(f(1.0)) == 12.0
    settings.k = 5.0
    assert float(f(1.0)) == 20.0


def test_bound_method_and_callable_object() -> None:
    class Model:
        def __init__(self) -> None:
            self.k = 2.0

        def apply(self, x: Any) -> Any:
            return self.k * x

        def __call__(self, x: Any) -> Any:
            return self.k * x + 1.0

    model = Model()
    f, g = tg.jit(model.apply), tg.jit(model)
    assert (float(f(1.0)), float(g(1.0))) == (2.0, 3.0)
    model.k = 5.0
    assert (float(f(1.0)), float(g(1.0))) == (5.0, 6.0)


def test_small_containers() -> None:
    options = {"rate": 2.0, "shift": [1.0, 2.0]}
    f = tg.jit(lambda x: options["rate"] * x + options["shift"][1])  # type: ignore[index]
    assert float(f(1.0)) == 4.0
    options["shift"][1] = 3.0  # type: ignore[index]
    assert float(f(1.0)) == 5.0
    options["rate"] = 4.0
    assert float(f(1.0)) == 7.0


def test_another_array_under_the_same_name() -> None:
    data = tg.asarray([1.0, 2.0])
    f = tg.jit(lambda x: x * data)
    np.testing.assert_array_equal(f(1.0), [1.0, 2.0])
    data = tg.asarray([3.0, 4.0])
    np.testing.assert_array_equal(f(1.0), [3.0, 4.0])
    data = np.array([5.0, 6.0])
    np.testing.assert_array_equal(f(1.0), [5.0, 6.0])


def test_pending_captured_array_is_computed_once() -> None:
    data = tg.asarray([1.0, 2.0]) * 3.0
    f = tg.jit(lambda x: x * data)
    np.testing.assert_array_equal(f(2.0), [6.0, 12.0])
    assert data.is_realized
    assert f.lower(2.0).as_text().count("mul") == 1


def test_defaults_partials_and_recursion() -> None:
    import functools

    def scaled(x: Any, k: float = 3.0) -> Any:
        return k * x

    def factorial(x: Any, n: int) -> Any:
        return x if n == 0 else n * factorial(x, n - 1)

    assert float(tg.jit(scaled)(2.0)) == 6.0
    assert float(tg.jit(functools.partial(scaled, k=4.0))(2.0)) == 8.0
    assert float(tg.jit(lambda x: factorial(x, 4))(1.0)) == 24.0


def test_unassigned_closure_variable() -> None:
    def make() -> Any:
        f = tg.jit(lambda x: later * x)
        f._captures.version()
        later = 3.0
        return f

    assert float(make()(2.0)) == 6.0


def test_unchanged_surroundings_keep_the_version() -> None:
    f = tg.jit(lambda x: outer_helper(x) * TABLE["rate"])
    f(1.0)
    version = f._captures.version()
    scan = f._captures._scan
    assert f._captures.version() == version
    assert f._captures._scan is scan


def test_rebinding_again_and_again_is_right_and_keeps_little() -> None:
    from tilegrad.engine import captures

    state = tg.asarray([1.0, 2.0])
    f = tg.jit(lambda x: x * state, max_traces=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tg.RetraceWarning)
        for k in range(captures._MOST_VERSIONS + 10):
            state = tg.asarray([1.0 * k, 2.0])
            assert float(f(2.0)[0]) == 2.0 * k
    assert len(f._captures._versions) <= captures._MOST_VERSIONS
    assert len(f._programs) == 2


def test_attributes_of_attributes_and_containers_in_attributes() -> None:
    model = types.SimpleNamespace(
        config=types.SimpleNamespace(k=2.0), params={f"p{i}": tg.asarray(1.0) for i in range(50)}
    )
    model.self = model  # a cycle
    f = tg.jit(lambda x: model.config.k * x + model.params["p7"])
    assert float(f(1.0)) == 3.0
    model.config.k = 5.0
    assert float(f(1.0)) == 6.0
    model.params["p7"] = tg.asarray(10.0)
    assert float(f(1.0)) == 15.0
    assert float(tg.grad(lambda p: _with(model.params, "p7", p, lambda: f(1.0)))(2.0)) == 1.0
    assert float(f(1.0)) == 15.0


def _with(container: Any, name: str, value: Any, call: Any) -> Any:
    before = container[name]
    container[name] = value
    try:
        return call()
    finally:
        container[name] = before


def test_containers_that_contain_themselves_or_very_much() -> None:
    loop: list[Any] = [2.0]
    loop.append(loop)
    table = list(range(100_000))
    f = tg.jit(lambda x: x * loop[0] + table[3])
    assert float(f(1.0)) == 5.0
    assert float(f(2.0)) == 7.0


def test_numpy_array_used_often_is_one_input() -> None:
    data = np.arange(5.0)

    def f(x: Any) -> Any:
        for _ in range(10):
            x = x + data
        return x

    graph = tg.trace(f)(np.zeros(5))
    assert len(graph.inputs) == 2
    np.testing.assert_array_equal(tg.jit(f)(np.zeros(5)), 10 * data)


def test_numpy_array_written_to_inside_the_function() -> None:
    def f(x: Any) -> Any:
        row = np.zeros(3)
        for i in range(3):
            row[i] = 1.0
            x = x + row
        return x

    np.testing.assert_array_equal(tg.jit(f)(np.zeros(3)), [3.0, 2.0, 1.0])
    np.testing.assert_array_equal(f(tg.asarray(np.zeros(3))), [3.0, 2.0, 1.0])
    np.testing.assert_array_equal(tg.vmap(f)(np.zeros((2, 3))), [[3.0, 2.0, 1.0]] * 2)


def test_other_attributes_read_by_a_helper() -> None:
    settings = types.SimpleNamespace(a=1.0, b=2.0)

    def inner(x: Any) -> Any:
        return settings.b * x

    f = tg.jit(lambda x: settings.a + inner(x))
    assert float(f(1.0)) == 3.0
    settings.b = 7.0
    assert float(f(1.0)) == 8.0
