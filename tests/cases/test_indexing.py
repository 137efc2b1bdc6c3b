"""Cases of the group indexing: out of range, negative, masks, repeated indices."""

import numpy as np
import pytest
from ways import in_every_way, same_bits

import tilegrad as tg

INDEX_TYPES = ["int8", "int32", "int64", "uint8"]


def runs(f):
    """Eagerly, compiled, mapped, mapped and compiled; each realizes its result."""
    mapped = tg.vmap(f)
    return [
        lambda *xs: tg.eval(f(*xs)),
        lambda *xs: tg.eval(tg.jit(f)(*xs)),
        lambda *xs: tg.eval(mapped(*[tg.stack([x, x]) for x in xs])),
        lambda *xs: tg.eval(tg.jit(mapped)(*[tg.stack([x, x]) for x in xs])),
    ]


@pytest.mark.parametrize(("dtype", "bad"), [("int8", 127), ("int32", -6), ("int64", 5)])
def test_oobgather(dtype, bad):
    """The error names index, axis and size; a static index raises where it is written."""
    x = tg.arange(10.0).reshape(2, 5)
    index = tg.array([0, bad], dtype=dtype)
    message = rf"index {bad} is out of bounds for axis \d with size 5"
    gathers = [
        lambda x, i: x[:, i],
        lambda x, i: x[0][i],
        lambda x, i: x[1, i[1]],
        lambda x, i: tg.take(x, i, axis=1),
        lambda x, i: tg.take_along_axis(x, tg.stack([i, i]), axis=1),
        lambda x, i: x.at[:, i].set(0.0),
        lambda x, i: x.at[:, i].add(1.0),
    ]
    for f in gathers:
        for run in runs(f):
            with pytest.raises(IndexError, match=message):
                run(x, index)
    for f in (lambda x: x[:, bad], lambda x: x.at[:, bad].get(), lambda x: x[:, [0, bad]]):
        for transform in (lambda f: f, tg.jit, lambda f: tg.grad(lambda x: tg.sum(f(x)))):
            with pytest.raises(IndexError, match=message):
                tg.eval(transform(f)(x))


@pytest.mark.parametrize("mode", ["clip", "wrap", "fill"])
@pytest.mark.parametrize("dtype", INDEX_TYPES)
def test_oobgather_with_a_mode(mode, dtype):
    x = np.arange(5)
    index = np.array([0, 4, 5, 7, 11] + ([] if dtype[0] == "u" else [-1, -5, -6, -11]), dtype)
    options = {"fill_value": -1} if mode == "fill" else {}
    got = in_every_way(lambda x, i: tg.take(x, i, mode=mode, **options), x, index)
    wide = index.astype(int)
    if mode == "fill":
        expected = [x[i] if -5 <= i < 5 else -1 for i in wide]
    else:  # as NumPy: clipping takes negative ones for too small
        expected = np.take(x, wide, mode=mode)
    same_bits(got, np.array(expected))


def test_oobgather_gradient_of_a_mode():
    """What was not read gets nothing."""
    i = np.array([1, 7, -9])
    g = tg.grad(lambda x: tg.sum(tg.take(x, i, mode="fill", fill_value=0.0) * 3.0))(np.ones(3))
    np.testing.assert_array_equal(g, [0.0, 3.0, 0.0])


@pytest.mark.parametrize("dtype", INDEX_TYPES[:3])
def test_negidx(dtype):
    """Negative run-time indices count from the end of the slice, not of what it is a slice of."""
    base = np.arange(20.0)
    k = np.arange(10, dtype=dtype)
    expected = np.array([10.0, 19, 18, 17, 16, 15, 14, 13, 12, 11])

    def gather(base, k):
        a = base[10:]
        return tg.vmap(lambda k: a[-k])(k), a[-k], tg.take(a, -k)

    for got in in_every_way(gather, base, k):
        same_bits(got, expected)
    flipped = in_every_way(lambda base, k: base[10:][::-1][-k], base, k)
    same_bits(flipped, base[10:][::-1][-k.astype(int)])
    columns = in_every_way(lambda x, k: x[1:, 5:][:, -k], base.reshape(2, 10), k[:5])
    same_bits(columns, base.reshape(2, 10)[1:, 5:][:, -k[:5].astype(int)])


@pytest.mark.parametrize("length", [0, 1, 3, 4])
def test_masklen(length):
    mask = tg.array([True] * length, dtype="bool")
    x = tg.arange(2.0)
    uses = [
        lambda x, m: x[m],
        lambda x, m: x.at[m].set(0.0),
        lambda x, m: x.at[m].add(1.0),
        lambda x, m: tg.stack([x, x])[:, m],
    ]
    for f in uses:
        with pytest.raises(
            IndexError, match=rf"expected a mask of shape \[2\].*got bool\[{length}\]"
        ):
            tg.eval(f(x, mask))
        with pytest.raises(IndexError, match="expected a mask"):
            tg.jit(f)(x, mask)
        with pytest.raises(IndexError, match="expected a mask"):
            tg.grad(lambda x, f=f: tg.sum(f(x, mask)))(x)


def test_masklen_that_fits(rng):
    """Reading needs a known mask; writing what has no axis along the mask does not."""
    x, m = rng.normal(size=(4, 3)), np.array([True, False, True, True])
    same_bits(tg.asarray(x)[tg.asarray(m)], x[m])
    same_bits(tg.asarray(x)[:, tg.array([False, True, True])], x[:, 1:])
    full = x > 0

    def updates(x, m, full):
        row, weights = x[3] * 2, x[:, 0] - 1
        return (
            x.at[m].set(-1.0),
            x.at[m].add(row),
            x.at[full].multiply(3.0),
            x.at[full].max(0.5),
            weights.at[m].min(0.0),
            x.T.at[:, m].set(7),
            x.T.at[..., m].add(1),
            tg.grad(lambda x: tg.sum(x.at[m].set(0.0) ** 2))(x),
        )

    expected = [x.copy() for _ in range(3)]
    expected[0][m] = -1.0
    expected[1][m] += x[3] * 2
    expected[2][full] *= 3.0
    expected.append(np.where(full, np.maximum(x, 0.5), x))
    expected.append(np.where(m, np.minimum(x[:, 0] - 1, 0.0), x[:, 0] - 1))
    expected.append(np.where(m, 7.0, x.T))
    expected.append(np.where(m, x.T + 1, x.T))
    expected.append(np.where(m[:, None], 0.0, 2 * x))
    for got, right in zip(in_every_way(updates, x, m, full), expected, strict=True):
        same_bits(got, right)
    same_bits(tg.grad(lambda x: tg.sum(x[tg.asarray(m)] ** 2))(x), np.where(m[:, None], 2 * x, 0.0))


def test_masklen_of_traced_masks():
    """What has an axis along a mask of unknown count says what to do."""
    x, mask = tg.arange(3.0), tg.array([True, False, True])
    for f in (lambda x, m: x[m], lambda x, m: x.at[m].set(tg.ones(2))):
        assert tg.eval(f(x, mask)).shape
        with pytest.raises(tg.TracerError, match="use where"):
            tg.jit(f)(x, mask)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dupset(dtype):
    """The last write wins, and only the last writer gets gradient."""
    i, weights = np.array([0, 0, 1]), np.array([10.0, 1.0], dtype)

    def f(v):
        return tg.sum(tg.zeros(2, dtype=dtype).at[i].set(v) * weights)

    v = np.array([1.0, 2.0, 3.0], dtype)
    value, gradient, hessian = in_every_way(
        lambda v: (f(v), tg.grad(f)(v), tg.hessian(lambda v: f(v) ** 2)(v)), v
    )
    same_bits(value, np.asarray(23, dtype))
    same_bits(gradient, np.array([0, 10, 1], dtype))
    np.testing.assert_array_equal(hessian, 2 * np.outer(gradient, gradient))
    tangent = tg.jvp(f, (v,), (np.array([100.0, 1.0, 1.0], dtype),))[1]
    assert float(tangent) == 11.0


@pytest.mark.parametrize("n", [3, 100, 5000])
def test_dupset_of_many(n, rng):
    """Any repeats, in one and in two axes, against a loop; what is overwritten gets none."""
    i, j = rng.integers(0, 7, n), rng.integers(-5, 5, n)
    v, x, weights = rng.normal(size=n), rng.normal(size=(7, 5)), rng.normal(size=(7, 5))
    expected, writer = x.copy(), np.full((7, 5), -1)
    for k in range(n):
        expected[i[k], j[k]], writer[i[k], j[k]] = v[k], k
    bar = np.zeros(n)
    np.add.at(bar, writer[writer >= 0], weights[writer >= 0])

    def f(x, v, i, j):
        return x.at[i, j].set(v)

    same_bits(in_every_way(f, x, v, i, j), expected)
    gx, gv = tg.grad(lambda x, v: tg.sum(f(x, v, i, j) * weights), argnums=(0, 1))(x, v)
    same_bits(gv, bar)
    same_bits(gx, np.where(writer < 0, weights, 0.0))


@pytest.mark.parametrize("how", ["add", "multiply", "min", "max"])
def test_dupadd_and_others(how, rng):
    """In index order on any number of threads."""
    n = 2000
    i, v, x = rng.integers(0, 5, n), rng.normal(1, 0.01, n), rng.normal(size=5)
    ufunc = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}[how]
    expected = x.copy()
    ufunc.at(expected, i, v)
    same_bits(in_every_way(lambda x, i, v: getattr(x.at[i], how)(v), x, i, v), expected)


def test_dupadd():
    n = 300_000
    i = tg.arange(n) % 3
    results = {tuple(tg.zeros(3).at[i].add(tg.ones(n)).tolist()) for _ in range(5)}
    assert results == {(100_000.0,) * 3}
    ones = np.ones(n, np.float32)
    compiled = in_every_way(lambda i, v: tg.zeros(3, dtype="float32").at[i].add(v), i, ones)
    same_bits(compiled, np.full(3, 100_000, np.float32))
    g = tg.grad(lambda v: tg.sum(tg.zeros(3).at[i].add(v) * np.array([1.0, 2, 3])))(np.ones(n))
    same_bits(g, 1.0 + np.arange(n) % 3)
