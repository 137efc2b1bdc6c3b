"""jit: signatures, static arguments, captures, results, limits, inspection."""

import functools
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.ir.compare import graphs_equal
from tilegrad.ir.parse import parse
from tilegrad.ir.text import text

from .lines import raises_here


def traces(function: Any) -> Any:
    """A jitted function that counts how often it is traced."""

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        jitted.traces += 1
        return function(*args, **kwargs)

    jitted = tg.jit(counted)
    jitted.traces = 0
    return jitted


# ---------------------------------------------------------------------------- signatures


def test_one_trace_for_each_signature() -> None:  # JT01
    f = traces(lambda x: x * 2)
    for x in (np.ones(3), tg.ones(3), tg.ones(3) + 1.0, np.zeros(3), np.ones(6)[::2]):
        np.testing.assert_array_equal(f(x), np.asarray(x) * 2)
    assert f.traces == 1
    for x in (np.ones(4), np.ones(3, "float32"), np.ones((3, 1)), 1.0, 1, True, [1.0], (1.0,)):
        f(x) if not isinstance(x, list | tuple) else f.__wrapped__
    assert f.traces == 7


def test_python_scalars_are_run_time_inputs() -> None:  # numerics 13
    f = traces(lambda x, rate: x * rate)
    x = np.ones(2, "float32")
    for rate in (0.1, 0.2, 0.30000000001, -0.0, float("inf")):
        y = f(x, rate)
        assert y.dtype is tg.float32, "the scalar is weak"
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(y, x * np.float32(rate))
    assert f.traces == 1
    assert f(x, 2).dtype is tg.float32
    assert f(x, np.float64(2)).dtype is tg.float64
    assert f.traces == 3


def test_structures_have_traces_of_their_own() -> None:
    f = traces(lambda p: tg.tree.reduce(lambda a, b: a + b, p))
    for p in ([1.0, 2.0], (1.0, 2.0), {"a": 1.0, "b": 2.0}, {"a": 1.0, "c": 2.0}, [[1.0], 2.0]):
        assert float(f(p)) == 3.0
    assert f.traces == 5
    f({"a": 4.0, "b": 5.0})
    assert f.traces == 5


def test_order_of_dictionaries_shares_the_program() -> None:  # case 131
    f = tg.jit(lambda p: p["z"] * p["a"] + 0.12345)
    before = tg.jit.stats().compiles
    assert float(f({"z": 2.0, "a": 5.0})) == float(f({"a": 5.0, "z": 2.0}))
    assert tg.jit.stats().compiles == before + 1
    same = tg.jit(lambda p: p)
    assert list(same({"z": 1.0, "a": 2.0})) == ["z", "a"]
    assert list(same({"a": 1.0, "z": 2.0})) == ["a", "z"]


def test_keywords_bind_to_parameters() -> None:  # JT05
    f = traces(lambda x, n=2, *, scale=1.0: x * n * scale)
    assert float(f(3.0, n=2)) == float(f(3.0, 2)) == float(f(n=2, x=3.0)) == 6.0
    assert f.traces == 1
    assert float(f(3.0)) == 6.0
    assert float(f(3.0, scale=4.0)) == 24.0
    with raises_here(TypeError, r"missing a required argument: 'x'"):
        tg.jit(lambda x: x)(y=1.0)  # here


def test_none_is_kept() -> None:  # case 130
    t = {"w": None, "b": 3.0}
    y = tg.jit(lambda p: p)(t)
    assert y["w"] is None
    assert float(y["b"]) == 3.0


# ----------------------------------------------------------------------- static arguments


def test_static_arguments_are_told_apart_by_type_and_bits() -> None:  # case 91
    g = tg.jit(lambda s, x: x / s, static_argnums=0)
    h = tg.jit(lambda s, x: x * s, static_argnums=0)
    assert float(g(0.0, 1.0)) == np.inf
    assert float(g(-0.0, 1.0)) == -np.inf
    assert float(g(0.0, 1.0)) == np.inf
    assert [h(s, tg.arange(2)).dtype for s in (1, True, 1.0)] == [tg.int64, tg.int64, tg.float64]


def test_signed_constants_stay_apart() -> None:  # case 91
    f = tg.jit(lambda x: (x / 0.0, x / -0.0, tg.copysign(x, 0.0), tg.copysign(x, -0.0)))
    assert [float(y) for y in f(1.0)] == [np.inf, -np.inf, 1.0, -1.0]


def test_static_numbers_and_names_imply_each_other() -> None:  # JT04
    def power(x: Any, n: int) -> Any:
        assert isinstance(n, int)
        return x if n == 1 else x * power(x, n - 1)

    for options in ({"static_argnums": 1}, {"static_argnums": (-1,)}, {"static_argnames": "n"}):
        f = tg.jit(power, **options)
        assert float(f(2.0, 3)) == float(f(2.0, n=3)) == float(f(n=3, x=2.0)) == 8.0
        assert len(f._programs) == 1
        assert float(f(2.0, 4)) == 16.0


def test_static_argument_among_variadic_ones() -> None:
    f = tg.jit(lambda *args, mode: args[0] if mode == "first" else args[1], static_argnames="mode")
    assert float(f(1.0, 2.0, mode="first")) == 1.0
    assert float(f(1.0, 2.0, mode="second")) == 2.0
    g = tg.jit(lambda *args: args[1] * 2.0 if args[0] == "twice" else args[1], static_argnums=0)
    assert float(g("twice", 3.0)) == 6.0
    assert float(g("once", 3.0)) == 3.0


@pytest.mark.parametrize(
    "value", [[1, 2], {"a": 1}, {1}, np.ones(2)], ids=lambda v: type(v).__name__
)
def test_unhashable_static_argument(value: Any) -> None:  # case 92
    f = tg.jit(lambda x, c: x, static_argnums=1)
    kind = type(value).__name__
    with raises_here(
        TypeError, f"static argument c: expected a hashable value, got {kind} .*tuple"
    ):
        f(1.0, value)  # here


def test_wrong_static_numbers_and_names() -> None:
    with raises_here(ValueError, "static_argnums: expected a number below 1, got 3"):
        tg.jit(lambda x: x, static_argnums=3)  # here
    with raises_here(ValueError, "static_argnames: expected one of x, got 'y'"):
        tg.jit(lambda x: x, static_argnames="y")  # here


def test_arguments_that_are_no_arrays() -> None:
    with raises_here(
        TypeError, r"argument p\['mode'\]: expected an array.* got str 'fast'; make it"
    ):
        tg.jit(lambda p: p["x"])({"x": 1.0, "mode": "fast"})  # here
    with raises_here(TypeError, "argument x: .*NumPy data of dtype float16"):
        tg.jit(lambda x: x)(np.ones(2, "float16"))  # here
    with raises_here(TypeError, r"jit\(<lambda>\): the result\[1\]: expected arrays.* got str 'a'"):
        tg.jit(lambda x: (x, "a"))(1.0)  # here


# ------------------------------------------------------------------------------- results


def test_results_of_every_kind() -> None:
    @tg.jit
    def f(x: Any) -> Any:
        y = x * 2.0
        return {"y": (y, y, x), "n": 3, "c": np.arange(2), "none": None, "s": np.float32(1.5)}

    for _ in range(2):
        out = f(np.ones(2))
        np.testing.assert_array_equal(out["y"][0], [2.0, 2.0])
        np.testing.assert_array_equal(out["y"][1], [2.0, 2.0])
        np.testing.assert_array_equal(out["y"][2], [1.0, 1.0])
        assert (out["n"].dtype, out["c"].dtype, out["s"].dtype) == (tg.int64, tg.int64, tg.float32)
        assert out["none"] is None
        assert all(isinstance(y, tg.Array) and y.is_realized for y in tg.tree.leaves(out))


def test_results_never_alias_the_callers_memory() -> None:
    f = tg.jit(lambda x: (x, x.reshape(2, 2), x[1:], x * 1.0))
    data = np.arange(4.0)
    out = f(data)
    expected = [np.array(y) for y in out]
    data[:] = -1
    for y, z in zip(out, expected, strict=True):
        np.testing.assert_array_equal(y, z)


def test_numpy_arguments_are_not_written_to_and_may_be_strided() -> None:  # case 40
    img = np.arange(1200.0).reshape(30, 20, 2)[::-1, :, 0]
    y = tg.jit(lambda v: +v - 0.25)(img)
    np.testing.assert_array_equal(y, img - 0.25)
    assert (float(y[0, 0]), float(y[-1, -1])) == (1159.75, 37.75)
    big = np.arange(4.0).astype(">f8")
    np.testing.assert_array_equal(tg.jit(lambda v: v * 2)(big), np.arange(4.0) * 2)
    fixed = np.ones(3)
    fixed.flags.writeable = False
    np.testing.assert_array_equal(tg.jit(lambda v: v * 2)(fixed), [2.0] * 3)


def test_contiguous_numpy_arguments_are_borrowed_without_a_copy() -> None:
    f = tg.jit(lambda x: x + 1.0)
    data = np.ones(5)
    f(data)
    program = next(iter(f._programs.values()))
    plan, seen = program._plan, []

    class Spy:
        def run(self, buffers: Any, threads: int = 1) -> Any:
            seen.append(buffers[0])
            return plan.run(buffers)

    program._plan = Spy()
    f(data)
    assert seen[0] is data


def test_functions_without_arguments_or_results() -> None:
    assert float(tg.jit(lambda: 2.0)()) == 2.0
    assert tg.jit(lambda x: None)(1.0) is None
    assert tg.jit(lambda x: ())(1.0) == ()


# ------------------------------------------------------------------------------ captures


def test_captured_arrays_are_inputs_not_constants() -> None:  # numerics 14
    big = tg.asarray(np.arange(10_000.0))
    text = tg.jit(lambda x: x + big).lower(1.0).as_text()
    assert "c0" in text
    assert len(text) < 500
    data = np.arange(5000.0)
    assert len(tg.jit(lambda x: x + data).lower(1.0).as_text()) < 500
    np.testing.assert_array_equal(tg.jit(lambda x: x + data)(1.0), data + 1)


def test_equal_functions_share_a_program() -> None:  # case 89
    x = tg.eval(tg.ones(3))
    before = tg.jit.stats().compiles
    for _ in range(4):
        tg.jit(lambda x: tg.sin(x) * 2.0625)(x)
    assert tg.jit.stats().compiles - before == 1
    for scale in (1.0, 2.0, 3.0):
        c = tg.asarray([scale] * 3)
        np.testing.assert_array_equal(
            tg.jit(lambda x, c=c: x * c * 0.5625)(x), np.asarray(c) * 0.5625
        )
    assert tg.jit.stats().compiles - before == 2, "captured data is no part of the program"


def test_transformed_functions_share_a_program() -> None:  # JT06
    before = tg.jit.stats().compiles
    for _ in range(2):
        tg.jit(tg.grad(lambda x: x * x * 0.4375))(2.0)
    assert tg.jit.stats().compiles - before == 1


def test_side_effects_happen_at_the_trace_alone() -> None:  # JT25
    seen: list[int] = []
    f = tg.jit(lambda x: seen.append(1) or x * 2.0)
    for _ in range(3):
        f(1.0)
    assert seen == [1]


# -------------------------------------------------------------------------- limits, options


def test_oldest_trace_is_dropped_with_a_warning() -> None:  # JT03
    f = tg.jit(lambda x: x * 2.0, max_traces=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(np.ones(1))
        f(np.ones(2))
        f(np.ones(1))  # used later than the other
    with pytest.warns(
        tg.RetraceWarning,
        match=r"(?s)max_traces=2.*dropped \(x: f64\[2\]\) to trace \(x: f64\[3\]\).*test_jit.py",
    ) as record:
        f(np.ones(3))
    assert len(record) == 1
    assert record[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(np.ones(1))
        f(np.ones(3))


def test_options() -> None:
    assert float(tg.jit(lambda x: x, device="cpu")(1.0)) == 1.0
    with raises_here(tg.UnsupportedError, "device 'cuda' is not there") as info:
        tg.jit(lambda x: x, device="cuda")  # here
    assert info.value.device == "cuda"
    assert float(tg.jit(lambda x: x * 2, donate_argnums=0)(tg.ones(()))) == 2.0
    with raises_here(TypeError, "jit: expected a function, got 3"):
        tg.jit(3)  # here

    @tg.jit(static_argnums=0)
    def f(n: int, x: Any) -> Any:
        """Doc."""
        return x * n

    assert float(f(3, 2.0)) == 6.0
    assert (f.__name__, f.__doc__) == ("f", "Doc.")


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @functools.partial(tg.jit, static_argnums=0)
    def scaled(self, x: Any) -> Any:
        return x * self.scale


def test_methods() -> None:
    assert float(Model(2.0).scaled(3.0)) == 6.0
    model = Model(2.0)
    f = tg.jit(model_call := lambda x: model.scale * x)
    assert float(f(3.0)) == 6.0
    assert model_call is f.__wrapped__


@tg.jit
def decorated(x: Any) -> Any:
    return x * 3.0


def plain(x: Any) -> Any:
    return x * 5.0


def test_pickling() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated
    again = pickle.loads(pickle.dumps(tg.jit(plain, max_traces=7)))
    assert float(again(2.0)) == 10.0
    assert again._options["max_traces"] == 7


# -------------------------------------------------------------------------------- nesting


def test_jit_in_jit_is_one_program() -> None:  # JT07
    inner = tg.jit(lambda x: x * 2.0)
    outer = tg.jit(lambda x: inner(x) + inner(x * 3.0))
    before = tg.jit.stats().compiles
    assert float(outer(1.0)) == 8.0
    assert tg.jit.stats().compiles - before <= 1
    assert outer.lower(1.0).as_text().count("mul") == 3


def test_inner_jit_on_concrete_arguments_with_a_captured_tracer() -> None:  # JT08
    for value in (3.0, 4.0):
        assert float(tg.grad(lambda x: tg.jit(lambda a: a * x)(2.0))(value)) == 2.0
        assert float(tg.jit(lambda x: tg.jit(lambda a: a * x)(2.0))(value)) == 2.0 * value
    captured: dict[str, Any] = {}
    shared = tg.jit(lambda a: a * captured["x"])

    def f(x: Any) -> Any:
        captured["x"] = x
        return shared(2.0) * x

    assert [float(tg.grad(f)(v)) for v in (3.0, 5.0)] == [12.0, 20.0]
    np.testing.assert_array_equal(tg.vmap(f)(np.array([1.0, 2.0])), [2.0, 8.0])


def test_jitted_function_is_traced_once_under_transforms() -> None:
    f = traces(lambda x: x * x * x)
    for x in (1.0, 2.0, 3.0):
        assert float(tg.grad(f)(x)) == 3 * x * x
    assert f.traces == 1
    np.testing.assert_array_equal(tg.vmap(f)(np.array([1.0, 2.0])), [1.0, 8.0])


# ------------------------------------------------------------------------------ inspection


def test_lower_shows_the_program() -> None:  # JT10, JT11
    f = tg.jit(lambda p, x: {"y": p["w"] * x})
    lowered = f.lower({"w": tg.ShapeDtype((3,), "float32")}, tg.ShapeDtype((3,), tg.float32))
    text = lowered.as_text("ir")
    assert "p['w']" in text
    assert '"x": f32[3]' in text
    assert text == f.lower({"w": np.ones(3, "float32")}, np.ones(3, "float32")).as_text()
    assert "mul" in lowered.as_text("optimized")
    with raises_here(
        ValueError, "as_text: expected one of ir, optimized, fused, llvm, asm, got 'x'"
    ):
        lowered.as_text("x")  # here
    assert "p['w']: f32[3]" in repr(lowered)


def test_compiled_refuses_other_types() -> None:
    compiled = tg.jit(lambda x, y: x + y).lower(np.ones(3), 1.0).compile()
    np.testing.assert_array_equal(compiled(np.ones(3), 2.0), [3.0] * 3)
    with raises_here(TypeError, r"argument x: was compiled for f64\[3\], got f64\[4\]; lower and"):
        compiled(np.ones(4), 2.0)  # here
    with raises_here(TypeError, r"was compiled for \(x: f64\[3\], y: f64\[\]~\), got 1 arrays"):
        compiled(np.ones(3))  # here


@pytest.mark.parametrize("jitted", [True, False])
def test_errors_of_a_run_show_the_line_of_the_operation(jitted: bool) -> None:
    """Known only when the program runs: indices and divisors."""

    def f(x: Any, i: Any, k: Any) -> Any:
        y = x * 2.0
        picked = y[i]  # picked here
        return picked, k // i  # divided here

    run = tg.jit(f) if jitted else f
    x = tg.arange(4.0)
    for _ in range(3):  # traced, then from the table
        with raises_here(IndexError, "index 7 is out of bounds", "# picked here"):
            tg.eval(run(x, tg.asarray([1, 7]), 3))
        with raises_here(ZeroDivisionError, "divisors other than 0", "# divided here"):
            tg.eval(run(x, tg.asarray([1, 0]), 3))


def test_trace_returns_the_graph() -> None:
    captured = tg.asarray([1.0, 2.0])
    graph = tg.trace(lambda p: [p["a"] * captured, p["b"]])({"a": 1.0, "b": 2})
    assert [node.param("name") for node in graph.inputs] == ["p['a']", "p['b']", "c0"]
    assert [str(x.type) for x in graph.outputs] == ["f64[2]", "i64[]~"]
    assert graphs_equal(parse(text(graph)), graph)


# ------------------------------------------------------------------------ Python integers, captures


@pytest.mark.parametrize("n", [2**63 - 1, -(2**63), 2**63, 2**64 - 1])
def test_python_integers_are_what_numpy_makes_of_them(n: int) -> None:
    result = tg.jit(lambda k: k)(n)
    assert (int(result), result.dtype.name) == (n, np.asarray(n).dtype.name)
    assert int(tg.jit(lambda k: k)([n])[0]) == n
    with tg.counters() as count:  # a signature of its own, found again
        np.testing.assert_array_equal(tg.jit(lambda x, k: x * k)(np.ones(2), n), [float(n)] * 2)
    assert count.traces == 1
    f = tg.jit(lambda k: k + 1.0)
    assert [float(f(k)) for k in (n, 1, n)] == [n + 1.0, 2.0, n + 1.0]


@pytest.mark.parametrize("n", [2**64, -(2**63) - 1, 10**30])
def test_python_integers_beyond_every_type_are_refused_with_a_way_out(n: int) -> None:
    f = tg.jit(lambda x, k: x * k)
    with raises_here(OverflowError, f"Python integer {n} is out of bounds.*float"):
        f(np.ones(2), n)  # here
    with raises_here(OverflowError, f"Python integer {n} is out of bounds.*float"):
        f(np.ones(2), k={"k": n}["k"])  # here
    np.testing.assert_array_equal(f(np.ones(2), float(n)), [float(n)] * 2)


def test_captured_numpy_arrays_are_what_they_were_when_the_function_was_traced() -> None:
    data = np.array([1.0, 2.0])
    f = tg.jit(lambda x: x * data)
    g = tg.grad(lambda x: tg.sum(x * data))
    np.testing.assert_array_equal(f(np.ones(2)), [1, 2])
    data[0] = 5.0
    for _ in range(3):  # also once it is compiled as a whole
        np.testing.assert_array_equal(f(np.ones(2)), [1, 2])
    np.testing.assert_array_equal(f(np.ones((3, 2))), [[5, 2]] * 3)  # a new trace looks again
    np.testing.assert_array_equal(g(np.ones(2)), [5, 2])  # grad alone looks at each call
    data = np.array([7.0, 2.0])  # another array under the name
    np.testing.assert_array_equal(f(np.ones(2)), [7, 2])


def test_types_of_computed_arrays_are_interned() -> None:
    """Calls are looked up by the identity of the types of their arrays."""
    from tilegrad.engine.realize import intern

    x = tg.eval(tg.ones(3) * 2.0)
    made = [
        x,
        tg.asarray([1.0, 2.0, 4.0]),
        tg.asarray(np.ones(3), copy=False),
        tg.eval(tg.sin(x)),
        tg.eval(x[:]),
        tg.jit(lambda v: v + 1.0)(np.ones(3)),
        tg.jit(lambda v: {"a": v, "b": -v})(x)["a"],
        tg.eval(tg.grad(lambda v: tg.sum(v * v))(x)),
        tg.eval(tg.vmap(lambda v: 2.0 * v)(x)),
        pickle.loads(pickle.dumps(x)),
        tg.sort(x),
        tg.from_dlpack(np.ones(3)),
    ]
    for array in made:
        np.asarray(array)
        assert array._type is intern(array._type)
        assert array._type is made[0]._type
