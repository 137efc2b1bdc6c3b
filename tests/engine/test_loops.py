"""scan, fori_loop, while_loop, map: meaning, edges, errors; eager, traced and compiled."""

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.ir.text import text


def both(fun, *args):
    """The results eager and compiled, which must be the same bits."""
    eager = tg.tree.leaves(fun(*args))
    jitted = tg.tree.leaves(tg.jit(fun)(*args))
    assert len(eager) == len(jitted)
    for a, b in zip(eager, jitted, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    return eager


def count_nodes(graph, name):
    return sum(node.op.name == name for node in graph.nodes())


# ------------------------------------------------------------------------------------------ scan


def test_scan_is_numpys_loop():
    xs = np.linspace(-1, 2, 7)
    carry, ys = both(lambda xs: tg.scan(lambda c, x: (0.5 * c + x, c * x), 1.0, xs), xs)
    c, expected = 1.0, []
    for x in xs:
        expected.append(c * x)
        c = 0.5 * c + x
    assert float(carry) == c
    np.testing.assert_array_equal(np.asarray(ys), expected)


def test_scan_in_reverse_keeps_places():
    xs = np.arange(5.0)
    carry, ys = both(lambda xs: tg.scan(lambda c, x: (c + x, c), 0.0, xs, reverse=True), xs)
    assert float(carry) == 10
    np.testing.assert_array_equal(np.asarray(ys), [10 - 0 - x for x in np.cumsum(xs)])


def test_scan_over_trees_of_any_dtype():
    xs = {"a": np.arange(6).reshape(3, 2), "b": (np.array([True, False, True]),)}

    def step(carry, x):
        n, (z, flags) = carry["n"], carry["rest"]
        new = {"n": n + x["a"].sum(), "rest": (z * 1j, flags ^ x["b"][0])}
        return new, {"y": x["a"] * 2, "f": flags}

    def program(xs):
        init = {"n": np.int64(0), "rest": (np.complex64(1), np.array([False, True]))}
        return tg.scan(step, init, xs)

    carry, ys = program(xs)
    both(program, xs)
    assert int(carry["n"]) == 15
    assert carry["rest"][0].dtype == tg.complex64
    assert complex(carry["rest"][0]) == -1j
    np.testing.assert_array_equal(np.asarray(ys["y"]), xs["a"] * 2)
    np.testing.assert_array_equal(
        np.asarray(ys["f"]), [[False, True], [True, False], [True, False]]
    )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 5, 7, 100, True])
def test_unrolling_changes_nothing(unroll, reverse):
    xs = np.linspace(0, 1, 11)

    def program(xs):
        step = lambda c, x: (tg.sin(c) + x, c * x)  # noqa: E731
        return tg.scan(step, 0.3, xs, unroll=unroll, reverse=reverse)

    plain = tg.jit(lambda xs: tg.scan(lambda c, x: (tg.sin(c) + x, c * x), 0.3, xs, None, reverse))
    for a, b in zip(tg.jit(program)(xs), plain(xs), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_unroll_writes_steps_out():
    xs = np.arange(12.0)
    step = lambda c, x: (c * x + 1, None)  # noqa: E731
    graph = tg.trace(lambda xs: tg.scan(step, 0.0, xs, unroll=4)[0])(xs)
    (loop,) = [node for node in graph.nodes() if node.op.name == "loop"]
    assert loop.param("length") == 3
    assert count_nodes(loop.param("body"), "mul") == 4
    graph = tg.trace(lambda xs: tg.scan(step, 0.0, xs, unroll=True)[0])(xs)
    assert count_nodes(graph, "mul") == 12
    assert not count_nodes(graph, "loop")


def test_size_of_the_program_does_not_depend_on_the_length():
    def length(n):
        graph = tg.trace(lambda x: tg.fori_loop(0, n, lambda i, c: c * x + i, 1.0))(2.0)
        return len(text(graph)) - len(str(n))

    assert length(3) == length(3_000_000)


@pytest.mark.parametrize("reverse", [False, True])
def test_no_steps(reverse):
    def program(xs):
        return tg.scan(lambda c, x: (c * 2, (x, tg.sum(x))), 3.0, xs, reverse=reverse)

    carry, whole, sums = both(program, np.zeros((0, 2), np.float32))
    assert float(carry) == 3
    assert whole.shape == (0, 2)
    assert sums.shape == (0,)
    assert whole.dtype == sums.dtype == tg.float32


def test_body_without_carry_or_sequence():
    assert both(lambda: tg.scan(lambda c, x: (c, None), 2.0, length=4))[0] == 2.0
    (ys,) = both(lambda: tg.scan(lambda c, x: (None, 1.5), None, length=3)[1])
    np.testing.assert_array_equal(np.asarray(ys), [1.5] * 3)


def test_python_numbers_adopt_the_dtype_of_the_carry():
    xs = np.ones(3, np.float32)
    (carry,) = both(lambda xs: tg.scan(lambda c, x: (c + x, None), 0, xs)[0], xs)
    assert carry.dtype == tg.float32
    x = tg.jit(lambda: tg.scan(lambda c, _: (c / 2, None), 1, length=2)[0])()
    assert x.dtype == tg.float64
    assert float(x) == 0.25


def test_captured_python_numbers_stay_weak():
    def program(a, xs):
        return tg.scan(lambda c, x: (c * a + x, c), np.float32(0), xs)

    carry, ys = both(program, 0.5, np.ones(3, np.float32))
    assert carry.dtype == ys.dtype == tg.float32


def test_captured_arrays_are_found():
    weights = tg.asarray([1.0, 2.0])

    @tg.jit
    def program(x):
        scaled = x * 10
        return tg.scan(lambda c, w: (c + w * scaled * weights[1], None), 0.0, weights)[0]

    assert float(program(1.0)) == 60


def test_big_steps_and_small_ones_agree():
    rng = np.random.default_rng(0)
    w, xs = rng.normal(size=(40, 40)) / 8, rng.normal(size=(9, 40))

    def program(w, xs):
        return tg.scan(lambda c, x: (tg.tanh(w @ c + x), tg.sum(c)), tg.zeros(40), xs)

    both(program, w, xs)


# ------------------------------------------------------------------------------------- fori_loop


def test_fori_loop_bounds():
    def program(low, high):
        return tg.fori_loop(low, high, lambda i, c: c * 10 + i, 0)

    for low, high, expected in [(0, 4, 123), (2, 5, 234), (3, 3, 0), (5, 2, 0), (-2, 1, -210)]:
        assert int(program(low, high)) == expected
        assert int(tg.jit(program)(low, high)) == expected
        assert int(tg.jit(lambda low=low, high=high: program(low, high))()) == expected


def test_the_index_is_int64_and_indexes():
    x = np.arange(5.0)

    def program(x):
        def body(i, c):
            assert i.dtype == tg.int64
            assert i.shape == ()
            return c + x[i] * x[4 - i]

        return tg.fori_loop(0, 5, body, 0.0)

    assert float(tg.jit(program)(x)) == float(np.sum(x * x[::-1]))


def test_dynamic_bounds_compile_once():
    f = tg.jit(lambda n: tg.fori_loop(0, n, lambda i, c: c + i, 0))
    assert int(f(10)) == 45
    with tg.counters() as counters:
        assert [int(f(n)) for n in (0, 1, 100)] == [0, 0, 4950]
    assert counters.compilations == counters.traces == 0


# ------------------------------------------------------------------------------------ while_loop


def collatz(n):
    return tg.while_loop(
        lambda c: c[0] != 1,
        lambda c: (tg.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1),
        (n, 0),
    )[1]


@pytest.mark.parametrize(("n", "steps"), [(1, 0), (6, 8)])
def test_while_loop_counts(n, steps):
    assert int(collatz(n)) == steps
    assert int(tg.jit(collatz)(n)) == steps


def test_while_loop_counts_many_steps():
    assert int(tg.jit(collatz)(27)) == 111


def test_while_loop_limit_is_checked():
    def program(n, limit):
        return tg.while_loop(lambda c: c < n, lambda c: c + 1, 0, max_steps=limit)

    assert int(program(5, 5)) == int(tg.jit(lambda n: program(n, 5))(5)) == 5
    with pytest.raises(tg.ConvergenceError, match="max_steps=4"):
        program(5, 4)
    with pytest.raises(tg.ConvergenceError, match="max_steps=4"):
        tg.jit(lambda n: program(n, 4))(5)


def test_a_million_steps():
    f = tg.jit(lambda x: tg.while_loop(lambda c: c < 1e6, lambda c: c + x, 0.0))
    assert float(f(1.0)) == 1e6


# ------------------------------------------------------------------------------------------- map


@pytest.mark.parametrize("batch_size", [None, 1, 2, 5, 7])
def test_map(batch_size):
    xs = {"a": np.arange(10.0).reshape(5, 2), "b": np.arange(5)}

    def program(xs):
        return tg.map(
            lambda x: {"s": tg.sum(x["a"]) * x["b"], "t": x["a"]}, xs, batch_size=batch_size
        )

    s, t = both(program, xs)
    np.testing.assert_array_equal(np.asarray(s), xs["a"].sum(1) * xs["b"])
    np.testing.assert_array_equal(np.asarray(t), xs["a"])


def test_map_of_nothing():
    (ys,) = both(lambda xs: tg.map(lambda x: x * 2, xs), np.zeros((0, 3)))
    assert ys.shape == (0, 3)


# ------------------------------------------------------------------------- eager is Python's loop


def test_eager_bodies_run_as_python():
    seen = []

    def step(c, x):
        seen.append(float(c))
        return c + x, None

    tg.scan(step, 0.0, tg.ones(3))
    assert seen == [0.0, 1.0, 2.0]
    calls = []
    tg.jit(lambda xs: tg.scan(lambda c, x: (calls.append(1), (c + x, None))[1], 0.0, xs)[0])(
        np.ones(50)
    )
    assert len(calls) <= 2


# ---------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit], ids=["eager", "jit"])
class TestErrors:
    def test_shape_of_the_carry(self, wrap):
        with pytest.raises(
            tg.ShapeError, match=r"init\['a'\]: expected a carry of f64\[3\], got f64\[4\]"
        ):
            wrap(lambda x: tg.scan(lambda c, _: ({"a": tg.ones(4)}, None), {"a": x}, length=2)[0])(
                tg.ones(3)
            )

    def test_dtype_of_the_carry(self, wrap):
        with pytest.raises(tg.DTypeError, match=r"expected a carry of i64\[3\], got f64\[3\]"):
            wrap(lambda x: tg.scan(lambda c, _: (c * 0.5, None), x, length=2)[0])(tg.arange(3))

    def test_structure_of_the_carry(self, wrap):
        with pytest.raises(TypeError, match=r"structure \(\*, \*\), got \*"):
            wrap(lambda x: tg.fori_loop(0, 2, lambda i, c: c[0], (x, x)))(1.0)

    def test_no_pair(self, wrap):
        with pytest.raises(TypeError, match="pair"):
            wrap(lambda x: tg.scan(lambda c, _: c, x, length=2))(1.0)

    def test_extents_of_sequences(self, wrap):
        with pytest.raises(tg.ShapeError, match=r"xs\[1\]: expected 3 elements .* xs\[0\]"):
            wrap(lambda x, y: tg.scan(lambda c, _: (c, None), 0.0, (x, y)))(tg.ones(3), tg.ones(2))

    def test_no_extent(self, wrap):
        with pytest.raises(ValueError, match="length"):
            wrap(lambda x: tg.scan(lambda c, _: (c, None), x))(1.0)

    def test_condition(self, wrap):
        with pytest.raises(tg.ShapeError, match=r"bool\[\], got bool\[2\]"):
            wrap(lambda x: tg.while_loop(lambda c: c > 0, lambda c: c - 1, x))(tg.ones(2))
        with pytest.raises(tg.DTypeError, match=r"bool\[\], got f64\[\]"):
            wrap(lambda x: tg.while_loop(lambda c: c, lambda c: c - 1, x))(tg.asarray(2.0))

    def test_bounds(self, wrap):
        with pytest.raises(tg.DTypeError, match="upper: expected an integer scalar"):
            wrap(lambda x: tg.fori_loop(0, x, lambda i, c: c, 0.0))(2.5)

    def test_errors_inside(self, wrap):
        with pytest.raises(ZeroDivisionError):
            int(wrap(lambda n: tg.fori_loop(0, 3, lambda i, c: c // (i - 1), n))(7))
        with pytest.raises(IndexError):
            float(wrap(lambda x: tg.fori_loop(0, 4, lambda i, c: c + x[i], 0.0))(tg.ones(3)))
