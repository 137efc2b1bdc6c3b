"""cond, switch and select: meaning, laziness, trees, errors; eager, traced and compiled."""

import numpy as np
import pytest

import tilegrad as tg


@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit], ids=["eager", "jit"])
class TestCond:
    def test_takes_a_branch(self, wrap):
        f = wrap(lambda p, x: tg.cond(p, lambda x: x + 1, lambda x: x * 10, x))
        assert float(f(True, 2.0)) == 3
        assert float(f(False, 2.0)) == 20
        assert float(f(0.5, 2.0)) == 3
        assert float(f(0, 2.0)) == 20

    def test_trees_of_mixed_dtypes(self, wrap):
        f = wrap(
            lambda p, x, n: tg.cond(
                p,
                lambda x, n: {"x": x, "n": (n, x > 0)},
                lambda x, n: {"x": -x, "n": (n * 2, x < 0)},
                x,
                n,
            )
        )
        for p in (True, False):
            found = f(p, np.float32(3), np.arange(2))
            assert found["x"].dtype == tg.float32
            assert found["n"][0].dtype == tg.int64
            assert float(found["x"]) == (3 if p else -3)
            np.testing.assert_array_equal(np.asarray(found["n"][0]), np.arange(2) * (1 if p else 2))
            assert bool(found["n"][1]) is p

    def test_python_numbers_take_the_other_dtype(self, wrap):
        f = wrap(lambda p, x: tg.cond(p, lambda: x, lambda: 0))
        assert f(False, np.float32(3)).dtype == (tg.float32 if wrap is tg.jit else tg.int64)
        assert float(f(False, np.float32(3))) == 0

    def test_closures_without_operands(self, wrap):
        f = wrap(lambda p, x: tg.cond(p, lambda: tg.log(x), lambda: x * 2))
        assert float(f(False, 3.0)) == 6
        assert float(f(True, 1.0)) == 0

    def test_the_other_branch_does_not_run(self, wrap):
        f = wrap(lambda p, n: tg.cond(p, lambda n: 7 // n, lambda n: n, n))
        assert int(f(False, 0)) == 0
        with pytest.raises(ZeroDivisionError):
            int(f(True, 0))
        g = wrap(lambda p, n: tg.cond(p, lambda: 7 // n, lambda: n))
        assert int(g(False, 0)) == 0
        endless = wrap(
            lambda p, x: tg.cond(
                p, lambda x: tg.while_loop(lambda c: c >= x, lambda c: c + 1, x), lambda x: x, x
            )
        )
        assert float(endless(False, 1.0)) == 1

    def test_nothing_leaks_from_the_other_branch(self, wrap):
        f = wrap(tg.value_and_grad(lambda x, p: tg.cond(p, tg.log, lambda x: x * x, x)))
        value, gradient = f(-1.0, False)
        assert float(value) == 1
        assert float(gradient) == -2

    def test_errors(self, wrap):
        with pytest.raises(tg.ShapeError, match=r"pred: expected a scalar, got bool\[2\]"):
            wrap(lambda p: tg.cond(p, lambda: 1.0, lambda: 2.0))(np.array([True, False]))
        with pytest.raises(tg.DTypeError, match="pred"):
            wrap(lambda p: tg.cond(p, lambda: 1.0, lambda: 2.0))(1j)


class TestCondTraced:
    def test_branches_must_agree(self):
        def program(a, b):
            return tg.jit(lambda p: tg.cond(p, lambda: a, lambda: b))(True)

        with pytest.raises(tg.ShapeError, match=r"f64\[2\].* got f64\[3\]|f64\[3\].* got f64\[2\]"):
            program(tg.ones(2), tg.ones(3))
        with pytest.raises(tg.DTypeError, match="astype"):
            program(tg.ones(2), tg.arange(2))
        with pytest.raises(TypeError, match="structure"):
            program((1.0,), 1.0)

    def test_non_finite_predicates(self):
        for bad in (np.nan, np.inf):
            with pytest.raises(ValueError, match="finite"):
                tg.cond(bad, lambda: 1.0, lambda: 2.0)

    def test_only_what_a_branch_needs_is_in_it(self):
        graph = tg.trace(
            lambda p, x: tg.cond(
                p,
                lambda: tg.exp(x) * 2,
                lambda: tg.sin(x),
            )
        )(True, 1.0)
        assert [n.op.name for n in graph.nodes() if n.op.name in ("exp", "sin")] == []


@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit], ids=["eager", "jit"])
def test_switch_clamps(wrap):
    branches = [lambda x: x, lambda x: x * x, lambda x: -x]
    f = wrap(lambda i, x: tg.switch(i, branches, x))
    assert [float(f(i, 3.0)) for i in (-5, 0, 1, 2, 9)] == [3, 3, 9, -3, -3]
    assert float(wrap(lambda x: tg.switch(np.uint8(1), branches, x))(2.0)) == 4
    with pytest.raises(tg.DTypeError, match="integer"):
        f(1.5, 3.0)
    with pytest.raises(ValueError, match="at least one"):
        wrap(lambda i: tg.switch(i, []))(0)


def test_select_in_both_meanings():
    x = tg.asarray([-1.0, 0.0, 2.0])
    np.testing.assert_array_equal(
        np.asarray(tg.select([x < 0, x > 0], [x - 1, x + 1], 9.0)), [-2, 9, 3]
    )
    np.testing.assert_array_equal(np.asarray(tg.select(x > 0, x, -x)), [1, 0, 2])
    with pytest.raises(tg.ShapeError, match="one shape"):
        tg.select(x > 0, x, x[:2])


@pytest.mark.parametrize("shape", [(7,), (3, 8, 2)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_associative_scan(shape, reverse, axis):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-5, 5, (2, *shape))

    def compose(f, g):  # of affine maps: g after f
        return {"a": f["a"] * g["a"], "b": f["b"] * g["a"] + g["b"]}

    def program(a, b):
        return tg.associative_scan(compose, {"a": a, "b": b}, reverse=reverse, axis=axis)

    x, y = (np.moveaxis(v, axis, 0)[:: -1 if reverse else 1] for v in (a, b))
    left, right = [x[0]], [y[0]]
    for p, q in zip(x[1:], y[1:], strict=True):
        left.append(left[-1] * p)
        right.append(right[-1] * p + q)
    for found in (program(a, b), tg.jit(program)(a, b)):
        for got, expected in ((found["a"], left), (found["b"], right)):
            whole = np.stack(expected)[:: -1 if reverse else 1]
            np.testing.assert_array_equal(np.asarray(got), np.moveaxis(whole, 0, axis))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 16, 33])
def test_associative_scan_of_any_length(count):
    x = np.arange(float(count))
    np.testing.assert_array_equal(np.asarray(tg.associative_scan(tg.add, x)), np.cumsum(x))
    with pytest.raises(tg.ShapeError, match=r"elems\[1\]"):
        tg.associative_scan(lambda a, b: a, (tg.ones(3), tg.ones(2)))


@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit], ids=["eager", "jit"])
def test_no_examples(wrap):
    f = tg.vmap(lambda x: tg.cond(x > 0, lambda x: 7 // x, lambda x: x, x))
    assert wrap(f)(np.arange(0)).shape == (0,)
    one = wrap(lambda i: tg.switch(i, [lambda: 1.5]).astype(tg.float32))
    assert float(one(np.asarray(0))) == 1.5
