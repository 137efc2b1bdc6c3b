"""Faults seen in other packages (reductions, indexing, shapes, gradients), each as its whole kind.

Values come from closed forms, exact arithmetic or NumPy. Every function also runs under ``jit``.
"""

import math

import numpy as np
import pytest

import tilegrad as tg

INF, NAN = math.inf, math.nan


def both(f, *args):
    """The value of ``f`` eagerly and jitted, which must be the same bits."""
    eager, jitted = f(*args), tg.jit(f)(*args)
    pairs = zip(
        eager if isinstance(eager, tuple) else (eager,),
        jitted if isinstance(jitted, tuple) else (jitted,),
        strict=True,
    )
    for a, b in pairs:
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes() or np.isnan(a).any()
    return eager


def same(got, want):
    np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def close(got, want, rtol=1e-12):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=rtol, atol=1e-300)


# --------------------------------------------------------------------------------- reductions


def test_empty_axes():
    x = tg.zeros((0, 3))
    assert tg.min(x, axis=1).shape == (0,)
    with pytest.raises(ValueError, match="min: expected at least one element"):
        tg.min(x, axis=0)
    same(both(lambda x: tg.sum(x, axis=0), x), [0, 0, 0])
    same(both(lambda x: tg.prod(x, axis=0), x), [1, 1, 1])
    same(both(tg.mean, x), NAN)
    same(tg.all(tg.zeros((0, 2)), axis=0), [True, True])


def test_arguments_of_extrema_see_nan():
    same(both(tg.argmax, tg.array([2.0, NAN, 7.0])), 1)
    same(both(tg.argmin, tg.full(3, NAN)), 0)
    big = tg.zeros(5000).at[4000].set(NAN)
    same(both(tg.argmax, big), 4000)
    assert np.isnan(float(tg.max(big)))


def test_variance_with_a_large_mean():
    x = 1e9 + tg.array([0.0, 3.0, 6.0, 9.0])
    assert float(both(tg.var, x)) == 11.25
    assert float(both(tg.std, x)) == 3.3541019662496847
    assert float(tg.var(x, ddof=1)) == 15.0


def test_float32_sum_past_its_integers():
    n = 2**25
    assert float(tg.sum(tg.ones(n, dtype="float32"))) == n
    row = tg.sum(tg.ones((1, n), dtype="float32"), axis=1, keepdims=True)
    assert row.shape == (1, 1)
    assert row.dtype is tg.float32
    assert float(row[0, 0]) == n


def test_all_and_any_over_an_axis_of_extent_one():
    x = tg.array([[0.0, 1.0, 0.0]])
    same(both(lambda x: tg.all(x, axis=0), x), [False, True, False])
    same(both(lambda x: tg.any(x, axis=0), x), [False, True, False])


def test_segment_sum_of_nothing():
    got = tg.segment_sum(tg.zeros(0), tg.zeros(0, dtype="int64"), num_segments=2)
    same(got, [0.0, 0.0])
    same(tg.bincount(tg.zeros(0, dtype="int64"), minlength=2), [0, 0])
    ids = tg.array([0, 2, -1, 5, 2])
    same(tg.segment_sum(tg.arange(5.0), ids, 3), [0, 0, 5])


@pytest.mark.parametrize("n", [1, 7, 31, 32, 33, 63, 65, 1000, 1025])
def test_row_reduction_read_by_every_lane(n):
    x = tg.reshape(tg.arange(3.0 * n), (3, n))
    y = np.asarray(both(lambda x: tg.exp(x - tg.max(x, axis=1, keepdims=True)), x))
    same(y[:, -1], [1, 1, 1])
    close(y[:, 0], [math.exp(-(n - 1))] * 3)
    same(y, y[:1].repeat(3, 0))


# ----------------------------------------------------------------------------------- indexing


def test_gather_out_of_range():
    x = tg.arange(5)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 5"):
        x[7]
    with pytest.raises(IndexError, match=r"7.*axis 0.*5|axis 0.*5.*7"):
        np.asarray(tg.jit(lambda i: x[i])(tg.array([0, 7])))
    same(tg.take(x, tg.array([7, -6]), mode="fill", fill_value=-1), [-1, -1])


def test_negative_index_in_a_vmapped_read():
    a = tg.arange(20.0)[10:]
    got = tg.jit(lambda a: tg.vmap(lambda k: a[-k])(tg.arange(10)))(a)
    same(got, [10, 19, 18, 17, 16, 15, 14, 13, 12, 11])


def test_mask_of_the_wrong_length():
    with pytest.raises(IndexError, match=r"mask of shape \[2\]"):
        tg.arange(2)[tg.array([True, True, False])]
    with pytest.raises(IndexError, match=r"mask of shape \[2\]"):
        tg.jit(lambda x: x[np.array([True, True, False])])(tg.arange(2))


def test_repeated_set():
    def f(v):
        return tg.sum(tg.zeros(2).at[tg.array([0, 0, 1])].set(v) * tg.array([10.0, 1.0]))

    v = tg.array([1.0, 2.0, 3.0])
    assert float(both(f, v)) == 23
    same(both(tg.grad(f), v), [0, 10, 1])


def test_repeated_add():
    n = 300_000
    i = tg.arange(n) % 3
    for _ in range(3):
        same(tg.zeros(3).at[i].add(tg.ones(n)), [100_000] * 3)


# -------------------------------------------------------------------------------------- shape


def test_reversed_and_partly_sliced_input():
    data = np.arange(1200.0).reshape(30, 20, 2)[::-1, :, 0]
    f = tg.jit(lambda v: +v - 0.25)
    for _ in range(5):
        y = np.asarray(f(tg.array(data)))
        same(y, data - 0.25)
    assert y[0, 0] == 1159.75
    assert y[-1, -1] == 37.75


def test_gradient_through_a_negative_step():
    g = tg.grad(lambda x: tg.sum(tg.array([1.0, 2, 3]) * x[::-2]))
    same(both(g, tg.arange(6.0)), [0, 3, 0, 2, 0, 1])


# ----------------------------------------------------------------------------------- gradients


def test_std_and_var_of_a_constant():
    same(both(tg.grad(tg.std), tg.ones(4)), [0] * 4)
    same(both(tg.grad(tg.var), tg.ones(4)), [0] * 4)


def test_where_with_a_singular_branch():
    def f(x):
        return tg.where(x < 1, 3 * x, tg.sqrt(x))

    def h(x):
        return tg.where(x > 5, 2 * x, tg.exp(x))

    assert float(tg.grad(f)(0.0)) == 3
    assert float(tg.grad(h)(800.0)) == 2
    assert float(tg.grad(tg.grad(f))(0.0)) == 0
    assert float(tg.jvp(f, (0.0,), (1.0,))[1]) == 3
    assert float(tg.jvp(h, (800.0,), (1.0,))[1]) == 2


def test_power_at_base_zero():
    def f(x, y):
        return x**y

    got = [float(tg.grad(f)(0.0, y)) for y in (0.0, 1.0, 2.0)]
    assert got == [0, 1, 0]
    assert float(tg.grad(lambda x: x**0.0)(0.0)) == 0
    got = [float(tg.grad(f, argnums=1)(0.0, y)) for y in (1.0, 2.0)]
    assert got == [0, 0]
    assert float(tg.grad(tg.grad(f, argnums=1), argnums=1)(0.0, 2.0)) == 0


def test_product_with_zeros():
    same(both(tg.grad(tg.prod), tg.array([5.0, 0, 2, -3])), [0, -30, 0, 0])
    same(both(tg.grad(tg.prod), tg.array([5.0, 0, 0, -3])), [0, 0, 0, 0])


def test_cumulative_product_with_a_zero():
    g = tg.grad(lambda v: tg.sum(tg.cumprod(v)))
    same(both(g, tg.array([3.0, 0.0, 4.0, 2.0])), [1, 39, 0, 0])


def test_ties():
    same(both(tg.grad(tg.max), tg.array([1.0, 4, 4, 2])), [0, 0.5, 0.5, 0])
    same(both(tg.grad(lambda x: tg.sort(x)[1]), tg.array([1.0, 1, 3])), [0, 1, 0])
    for x in ([1.0, 1, 1, 3], [1.0, 1, 1], [2.0, 2, 2, 2]):
        x = np.array(x)
        g = np.asarray(tg.grad(tg.median)(tg.array(x)))
        assert g.sum() == 1
        assert (g[x != np.median(x)] == 0).all()
        t = np.arange(1.0, 1 + len(x))
        assert float(tg.jvp(tg.median, (x,), (t,))[1]) == g @ t


def test_softplus_by_logaddexp():
    def sp(x):
        return tg.logaddexp(x, 0.0)

    assert float(tg.grad(sp)(0.0)) == 0.5
    assert float(tg.grad(lambda x: -sp(-x))(0.0)) == 0.5
    assert float(tg.grad(tg.grad(sp))(0.0)) == 0.25


def test_logsumexp_with_infinities():
    g = tg.grad(tg.logsumexp)
    close(both(g, tg.array([-INF, 1.0, 1.0])), [0, 0.5, 0.5])
    same(both(g, tg.array([-INF, -INF])), [0, 0])
    mask = tg.array([True, False])
    masked = tg.grad(lambda v: tg.logsumexp(tg.where(mask, v, -INF)))
    same(both(masked, tg.array([0.0, 1000.0])), [1, 0])


def test_cumulative_logsumexp_with_a_masked_prefix():
    v = tg.array([-INF, -INF, 0.0])
    same(both(tg.logcumsumexp, v), [-INF, -INF, 0])
    same(both(tg.grad(lambda v: tg.logcumsumexp(v)[-1]), v), [0, 0, 1])


def test_hypot_near_underflow():
    close(tg.hypot(3e-200, 4e-200), 5e-200)
    gradient = tg.grad(tg.hypot, argnums=(0, 1))
    for got, want in zip(gradient(3e-200, 4e-200), (0.6, 0.8), strict=True):
        close(got, want)
    assert [float(z) for z in gradient(0.0, 0.0)] == [0, 0]


def test_sinc_two_orders_at_zero():
    assert float(tg.sinc(0.0)) == 1
    assert float(tg.grad(tg.sinc)(0.0)) == 0
    close(tg.grad(tg.grad(tg.sinc))(0.0), -(math.pi**2) / 3)


def test_hessian_of_softmax_cross_entropy():
    x = np.array([0.3, -1.0, 2.0, 0.1])
    p = np.exp(x) / np.exp(x).sum()
    got = tg.hessian(lambda v: -tg.special.log_softmax(v)[2])(tg.array(x))
    np.testing.assert_allclose(np.asarray(got), np.diag(p) - np.outer(p, p), rtol=0, atol=1e-15)


def test_hessian_at_a_kink_of_abs():
    h = tg.hessian(lambda x: tg.sum(tg.abs(x)) ** 4 + tg.exp(x[1]))
    close(h(tg.array([2.0, 0.0])), [[48, 0], [0, 1]])


def test_xlogy_at_zero():
    by_x, by_y = tg.grad(tg.special.xlogy, argnums=(0, 1))(0.0, 2.0)
    close(by_x, math.log(2))
    assert float(by_y) == 0
    s = tg.grad(lambda p: -tg.sum(tg.special.xlogy(p, p)))
    close(both(s, tg.array([0.25, 0.75])), [0.3862943611198906, -0.7123179275482191])
