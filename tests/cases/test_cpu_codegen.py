"""Cases of the group CPU codegen: initial values, fusion across neighbours, Python threads."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from ways import in_every_way, same_bits

import tilegrad as tg

LENGTHS = [0, 1, 50, 1024, 100_001]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_pinit(n, dtype):
    """Once, however many threads and blocks take part, and along an axis once a result."""

    def f(x, low):
        return (
            tg.sum(x, initial=7),
            tg.prod(x, initial=3),
            tg.max(low, initial=-5),
            tg.min(x, initial=-2),
            tg.min(x, initial=4),
        )

    x = np.ones(n, dtype)
    got = in_every_way(f, x, -9 * x, ways=("jit", "jit, 2 threads", "vmap"))
    expected = [n + 7, 3, -5, -2, 1 if n else 4]
    for value, right in zip(got, expected, strict=True):
        same_bits(value, np.asarray(right, dtype))
    rows, columns = in_every_way(
        lambda x: (tg.sum(x, axis=1, initial=7), tg.sum(x, axis=0, initial=7)), np.stack([x, x])
    )
    same_bits(rows, np.full(2, n + 7, dtype))
    same_bits(columns, np.full(n, 9, dtype))


def test_pinit_gradient():
    g = tg.grad(lambda x: tg.sum(x * x, initial=7.0) + tg.prod(x, initial=2.0))(
        np.array([2.0, 3.0])
    )
    np.testing.assert_array_equal(g, [4 + 6, 6 + 4])
    assert tg.grad(lambda x: tg.max(x, initial=5.0))(np.array([1.0, 7.0])).tolist() == [0, 1]
    assert tg.grad(lambda x: tg.max(x, initial=5.0))(np.array([1.0, 2.0])).tolist() == [0, 0]


NEIGHBOURS = {
    "diff of cumsum": (lambda m, x: m.diff(m.cumsum(x * x)), 1e5),
    "shifted sum": (lambda m, x: (x + 1)[1:] + (x + 1)[:-1] * 2, 1e5),
    "stencil": (lambda m, x: (x * x)[2:] - 2 * (x * x)[1:-1] + (x * x)[:-2], 1e5),
    "flip": (lambda m, x: m.cumsum(x + 1)[::-1] + m.cumsum(x), 1e5),
    "roll": (lambda m, x: m.roll(x * 2, 3) + m.roll(x * 2, -5), 1e5),
    "normalize": (lambda m, x: x * x - m.max(x * x) + m.sum(x), 1e5),
    "running": (lambda m, x: m.cumsum(m.cumsum(x)) - x, 3e3),
    "transpose": (lambda m, x: m.cumsum((x + 1).reshape(-1, 8), axis=0).T.reshape(-1), 1e5),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_pfuse(name):
    """What reads a neighbour's result waits for it: exact in small integers, again and again."""
    f, n = NEIGHBOURS[name]
    x = np.arange(float(int(n) // 8 * 8)) % 7
    expected = f(np, x)
    compiled = tg.jit(lambda x: f(tg, x))
    for threads in (1, 2):
        with tg.config(num_threads=threads):
            for _ in range(10):
                same_bits(compiled(x), expected)


def test_pfuse_running_maximum():
    """The maximum of all earlier elements."""
    x = np.arange(100_000.0) % 7
    f = tg.jit(lambda x: tg.concatenate([tg.full(1, -1.0), tg.cummax(x)[:-1]]))
    expected = np.concatenate([[-1.0], np.maximum.accumulate(x)[:-1]])
    for threads in (1, 2):
        with tg.config(num_threads=threads):
            for _ in range(25):
                same_bits(f(x), expected)
    assert expected[:10].tolist() == [-1, 0, 1, 2, 3, 4, 5, 6, 6, 6]


@pytest.mark.parametrize("size", [10, 200_000])
def test_threads(size):
    """Eight Python threads in four functions, the first compile included: the same bits."""
    x = tg.arange(float(size))
    functions = [tg.jit(lambda x, k=k: tg.sum(tg.sin(x) + k)) for k in range(4)]
    with ThreadPoolExecutor(8) as pool:
        calls = list(pool.map(lambda i: float(functions[i % 4](x)), range(200)))
    assert len({(i % 4, v) for i, v in enumerate(calls)}) == 4
    alone = [float(tg.jit(lambda x, k=k: tg.sum(tg.sin(x) + k))(x)) for k in range(4)]
    assert calls[:4] == alone


def test_threads_in_transforms():
    """Tracing, differentiating and eager work in several threads at once do not mix."""

    def work(i):
        k = 1.0 + i % 3
        x = tg.linspace(0.0, 1.0, 5 + i % 2)
        value = float(tg.grad(lambda a: tg.sum(tg.sin(a * x) * k))(0.5))
        mapped = tg.vmap(lambda v: tg.jit(lambda v: v * k)(v))(x)
        return i % 6, value, float(tg.sum(mapped))

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(work, range(60)))
    assert len(set(results)) == 6
    for i, value, total in results[:6]:
        k, x = 1.0 + i % 3, np.linspace(0.0, 1.0, 5 + i % 2)
        assert value == pytest.approx(np.sum(x * np.cos(0.5 * x)) * k, rel=1e-14)
        assert total == pytest.approx(x.sum() * k, rel=1e-14)


def test_threads_settings_are_bits_neutral(rng):
    """Every count of threads gives the bits of one."""
    x = rng.normal(size=(257, 1031))
    f = tg.jit(lambda x: (tg.sum(x), tg.sum(x, axis=0), tg.sum(x, axis=1), tg.exp(x) @ x.T))
    first = None
    for threads, _ in itertools.product((1, 2, 3), range(2)):
        with tg.config(num_threads=threads):
            got = [np.asarray(y) for y in f(x)]
        first = first or got
        for y, z in zip(got[:3], first[:3], strict=True):
            same_bits(y, z)
        np.testing.assert_allclose(got[3], first[3], rtol=1e-12)  # the library's own order


@pytest.mark.parametrize("n", [1, 20, 100])
def test_unroll(n):
    """A chain unrolled by Python: value and gradient against the same chain in NumPy."""

    def chain(x):
        for i in range(n):
            x = 0.5 * (x + tg.sin(x) * (i + 1) / n)
        return tg.sum(x)

    x = np.linspace(0.5, 1.5, 8)
    value, slope = x, np.ones(8)
    for i in range(n):
        slope = slope * 0.5 * (1 + np.cos(value) * (i + 1) / n)
        value = 0.5 * (value + np.sin(value) * (i + 1) / n)
    got, g = in_every_way(tg.value_and_grad(chain), x, ways=("jit",))
    assert got == pytest.approx(value.sum(), rel=1e-13)
    np.testing.assert_allclose(g, slope, rtol=1e-13)
    assert float(chain(tg.asarray(x))) == float(got)
