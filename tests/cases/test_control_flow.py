"""Public failures around control flow, by the names of the collection."""

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.ir.text import text


def test_dynfori():
    def f(x, n):
        y = x * x
        s = tg.fori_loop(0, n, lambda k, a: a + k * x, 0.0)
        return s * y

    g = tg.jit(tg.grad(f))
    assert float(g(2.0, 5)) == 120
    with tg.counters() as counters:
        assert float(g(2.0, 0)) == 0
    assert counters.compilations == counters.traces == 0
    assert float(tg.grad(f)(2.0, 5)) == 120


def test_whilezero():
    def dbl(x):
        return tg.while_loop(lambda y: y < 100, lambda y: 2 * y, x)

    for wrap in (lambda f: f, tg.jit):
        assert [float(wrap(tg.grad(dbl))(v)) for v in (3.0, 150.0, 99.0)] == [64, 1, 2]


@pytest.mark.parametrize("how", ["plain", "jit", "vmap", "grad"])
def test_carrytype(how):
    def program(x):
        step = lambda c, x: ({"n": c["n"] + x, "t": c["t"]}, None)  # noqa: E731
        init = {"n": tg.asarray(0, dtype="int64"), "t": 1.0}
        return tg.scan(step, init, x)[0]["t"] + tg.sum(x)

    runs = {
        "plain": lambda: program(tg.ones(3)),
        "jit": lambda: tg.jit(program)(tg.ones(3)),
        "vmap": lambda: tg.vmap(program)(tg.ones((2, 3))),
        "grad": lambda: tg.grad(program)(tg.ones(3)),
    }
    with pytest.raises(TypeError) as caught:
        runs[how]()
    message = str(caught.value)
    for part in ("'n'", "i64", "f64", "test_control_flow.py"):
        assert part in message


def collatz(n):
    return tg.while_loop(
        lambda s: s[0] != 1,
        lambda s: (tg.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1),
        (n, 0),
    )[1]


@pytest.mark.parametrize("wrap", [lambda f: f, tg.jit], ids=["eager", "jit"])
def test_vmapcond(wrap):
    f = lambda n: tg.cond(n > 0, collatz, lambda n: -1, n)  # noqa: E731
    y = wrap(tg.vmap(f))(tg.asarray([7, 0, 27, 1, -5]))
    np.testing.assert_array_equal(np.asarray(y), [16, -1, 111, 0, -1])


def test_condlanes():
    def f(x):
        return tg.cond(
            x > 0,
            lambda x: tg.fori_loop(0, 200_000, lambda k, a: a * 0.999999 + x, 0.0),
            lambda x: x,
            x,
        )

    v = tg.full(512, -1.0).at[3].set(1.0)
    y = np.asarray(tg.jit(tg.vmap(f))(v))
    np.testing.assert_allclose(y[3], (1 - 0.999999**200_000) / 1e-6, rtol=1e-9)
    np.testing.assert_array_equal(np.delete(y, 3), -1)
    # Only the lanes that take the branch make its trip.
    graph = tg.trace(tg.vmap(f))(v)
    masked = [n for n in graph.nodes() if n.op.name == "loop" and n.param("length") is None]
    assert [n.inputs[0].shape for n in masked] == [(512,)]


def test_pfuse_running_maximum():
    x = tg.arange(100_000.0) % 7
    f = tg.jit(lambda x: tg.scan(lambda c, v: (tg.maximum(c, v), c), -1.0, x)[1])
    expected = np.concatenate([[-1], np.maximum.accumulate(np.asarray(x))[:-1]])
    for _ in range(50):
        np.testing.assert_array_equal(np.asarray(f(x)), expected)


def test_scancompile():
    def f(a, n):
        step = lambda c, _: (tg.sin(a * c) + 0.5 * c, None)  # noqa: E731
        return tg.scan(step, 0.3, None, length=n)[0]

    def program(n):
        return text(tg.trace(tg.grad(lambda a: f(a, n)))(1.1))

    assert program(10).replace("=10,", "=10000,").replace("[10]", "[10000]") == program(10_000)
    short, long = (tg.jit(tg.grad(lambda a, n=n: f(a, n))) for n in (10, 10_000))
    a, h = 1.1, 1e-6
    short(a)
    with tg.counters() as counters:
        long(a)
    assert counters.compilations == 0  # the length is a number that the code reads
    value = tg.jit(lambda a: f(a, 10))
    quotient = (float(value(a + h)) - float(value(a - h))) / (2 * h)
    np.testing.assert_allclose(float(short(a)), quotient, rtol=1e-7)


def test_inplace():
    f = tg.jit(lambda x, m: tg.fori_loop(0, m, lambda k, a: a.at[k].set(a[k - 1] + 1.0), x))
    x = tg.zeros(1_000_000)
    y = np.asarray(f(x, 20_000))
    # a[0] = a[-1] + 1 = 1, then each one more
    np.testing.assert_array_equal(y[:20_000], np.arange(1.0, 20_001))
    assert not y[20_000:].any()
    assert not np.asarray(x).any()
