"""Derivatives of composites: the kinds of faults of the case list, and finite differences."""

import math

import numpy as np
import pytest
from rule_checks import check_batch, cotangents, evaluate, gradient, node_like

from tilegrad.autodiff.reverse import vjp
from tilegrad.engine.namespace import BUILDERS
from tilegrad.ir.graph import Value
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops.leaves import constant

INF = math.inf


class Functions:
    def __getattr__(self, name):
        return BUILDERS[name]


tg = Functions()


def nested(f, order):
    """The derivative of a scalar function of a scalar, taken ``order`` times in reverse mode."""
    for _ in range(order):
        f = _derivative(f)
    return lambda x: float(evaluate(f, np.asarray(x)))


def _derivative(f):
    from tilegrad.ir.ops.leaves import alias
    from tilegrad.ir.ops.operands import convert

    def derivative(x):
        mark = alias(convert(x, "float64"))
        (bar,) = vjp([f(mark)], [mark])([constant(1.0, "float64")])
        return constant(0.0, "float64") if bar is None else bar

    return derivative


# ------------------------------------------------------------------------------- known faults


@pytest.mark.parametrize("value", [1.0, 0.0, -7.5])
@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_std_and_var_of_a_constant(value, shape):
    x = np.full(shape, value)
    np.testing.assert_array_equal(gradient(tg.std, x), np.zeros(shape))
    np.testing.assert_array_equal(gradient(tg.var, x), np.zeros(shape))
    np.testing.assert_array_equal(gradient(lambda v: tg.sum(tg.std(v, axis=0)), x), np.zeros(shape))


def test_variance_with_a_large_mean():
    x = 1e9 + np.array([0.0, 3.0, 6.0, 9.0])
    assert evaluate(tg.var, x) == 11.25
    assert evaluate(tg.std, x) == 3.3541019662496847
    assert evaluate(lambda v: tg.var(v, ddof=1), x) == 15.0
    assert evaluate(tg.var, np.array([1.0, 2.0, 3.0]) + 1e8) == np.float64(2) / 3


def test_float32_statistics_round_once():
    rng = np.random.default_rng(1)
    x = (1000 + rng.standard_normal(10_001)).astype(np.float32)
    wide = x.astype(np.float64)
    for name in ("mean", "var", "std", "sum"):
        got = evaluate(getattr(tg, name), x)
        assert got.dtype == np.float32
        assert got == np.float32(getattr(np, name)(wide))


def test_logsumexp_with_infinities():
    np.testing.assert_allclose(gradient(tg.logsumexp, np.array([-INF, 1, 1])), [0, 0.5, 0.5])
    np.testing.assert_array_equal(gradient(tg.logsumexp, np.array([-INF, -INF])), [0, 0])
    mask = np.array([True, False])
    got = gradient(lambda v: tg.logsumexp(tg.where(mask, v, -INF)), np.array([0.0, 1000.0]))
    np.testing.assert_array_equal(got, [1, 0])
    for x, want in (
        ([-INF, -INF], -INF),
        ([INF, 1.0], INF),
        ([np.nan, 1.0], np.nan),
        ([1000.0, 1000.0], 1000 + math.log(2)),
        ([], -INF),
    ):
        np.testing.assert_array_equal(evaluate(tg.logsumexp, np.array(x, float)), want)


def test_logcumsumexp_with_a_masked_prefix():
    v = np.array([-INF, -INF, 0.0])
    np.testing.assert_array_equal(evaluate(tg.logcumsumexp, v), v)
    np.testing.assert_array_equal(
        gradient(lambda v: tg.sum(tg.logcumsumexp(v) * np.array([0, 0, 1.0])), np.zeros(3) + v),
        [0, 0, 1],
    )


def test_ties_share_or_follow_the_stable_order():
    np.testing.assert_array_equal(gradient(tg.max, np.array([1.0, 4, 4, 2])), [0, 0.5, 0.5, 0])
    got = gradient(lambda x: tg.sum(tg.sort(x) * np.array([0.0, 1, 0])), np.array([1.0, 1, 3]))
    np.testing.assert_array_equal(got, [0, 1, 0])
    got = gradient(tg.median, np.array([1.0, 1, 1, 3]))
    assert got.sum() == 1
    assert got[3] == 0


def test_softplus_and_its_relatives_at_zero():
    softplus = BUILDERS["nn.softplus"]
    assert nested(softplus, 1)(0.0) == 0.5
    assert nested(lambda x: -softplus(-x), 1)(0.0) == 0.5
    assert nested(softplus, 2)(0.0) == 0.25
    assert nested(BUILDERS["nn.sigmoid"], 1)(0.0) == 0.25
    assert evaluate(softplus, np.array(1000.0)) == 1000


def test_xlogy_at_zero():
    xlogy = BUILDERS["special.xlogy"]
    bars = cotangents(xlogy, (np.array(0.0), np.array(2.0)), np.array(1.0))
    np.testing.assert_allclose([float(b) for b in bars], [math.log(2), 0.0])
    got = gradient(lambda p: -tg.sum(xlogy(p, p)), np.array([0.25, 0.75]))
    np.testing.assert_allclose(got, [0.3862943611198906, -0.7123179275482191], rtol=1e-14)
    bars = cotangents(xlogy, (np.array(0.0), np.array(0.0)), np.array(1.0))
    assert all(np.isfinite(b) for b in bars)
    assert np.isnan(evaluate(xlogy, np.array(0.0), np.array(np.nan)))


@pytest.mark.parametrize(
    ("v", "want"), [([5.0, 0, 2, -3], [0, -30, 0, 0]), ([5.0, 0, 0, -3], [0, 0, 0, 0])]
)
def test_product_with_zeros(v, want):
    np.testing.assert_array_equal(gradient(tg.prod, np.array(v)), want)


def test_cumulative_product_with_a_zero():
    got = gradient(lambda v: tg.sum(tg.cumprod(v)), np.array([3.0, 0.0, 4.0, 2.0]))
    np.testing.assert_array_equal(got, [1, 39, 0, 0])


def test_norm_is_scaled_and_flat_at_zero():
    norm = BUILDERS["linalg.norm"]
    np.testing.assert_array_equal(gradient(norm, np.zeros(3)), np.zeros(3))
    big = np.full(2, 1e20, np.float32)
    assert evaluate(norm, big) == np.float32(1.4142135623730951e20)
    np.testing.assert_allclose(gradient(norm, big), [math.sqrt(0.5)] * 2, rtol=1e-6)
    for scale in (1e-200, 1e200, 1.0):
        x = np.array([3.0, -4.0]) * scale
        np.testing.assert_allclose(evaluate(norm, x), 5 * scale, rtol=1e-15)
        np.testing.assert_allclose(gradient(norm, x), [0.6, -0.8], rtol=1e-15)
    for x in ([INF, 1.0], [np.nan, 1.0]):
        np.testing.assert_array_equal(evaluate(norm, np.array(x)), np.linalg.norm(x))


def test_softmax_forms():
    softmax, log_softmax = BUILDERS["nn.softmax"], BUILDERS["nn.log_softmax"]
    x = np.array([1000.0, 0.0], np.float32)
    np.testing.assert_array_equal(evaluate(softmax, x), [1, 0])
    np.testing.assert_array_equal(evaluate(log_softmax, x), [0, -1000])
    ct = np.array([1.0, 2.0], np.float32)
    assert np.isfinite(cotangents(softmax, (x,), ct)[0]).all()
    assert np.isfinite(cotangents(log_softmax, (x,), ct)[0]).all()
    for bad in ([INF, 1.0], [-INF, -INF]):
        assert np.isnan(evaluate(softmax, np.array(bad))).any()


def test_hessian_of_softmax_cross_entropy():
    """diag(p) - p p^T, whatever the label."""
    x = np.array([0.3, -1.0, 2.0])
    node = node_like(x)
    loss = -tg.take(BUILDERS["nn.log_softmax"](node.out), 1)
    (slope,) = vjp([loss], [node.out])([constant(1.0, "float64")])
    rows = [vjp([slope], [node.out])([constant(np.eye(3)[i])])[0] for i in range(3)]
    got = np.array(interpret(rows, {node: x}))
    p = np.exp(x) / np.exp(x).sum()
    np.testing.assert_allclose(got, np.diag(p) - np.outer(p, p), rtol=1e-12, atol=1e-15)


def test_sinc_two_orders_at_zero():
    assert nested(tg.sinc, 1)(0.0) == 0
    np.testing.assert_allclose(nested(tg.sinc, 2)(0.0), -(math.pi**2) / 3, rtol=1e-14)


def test_nan_to_num_is_flat_where_it_replaces():
    x = np.array([1.0, np.nan, INF, -INF, 2.0])
    got = gradient(lambda v: tg.sum(tg.nan_to_num(v) * 3.0), x)
    np.testing.assert_array_equal(got, [3, 0, 0, 0, 3])


def test_relu_and_gelu_conventions():
    relu, gelu = BUILDERS["nn.relu"], BUILDERS["nn.gelu"]
    np.testing.assert_array_equal(
        gradient(lambda v: tg.sum(relu(v)), np.array([-1.0, 0.0, 2.0])), [0, 0, 1]
    )
    assert np.isnan(evaluate(relu, np.array(np.nan)))
    # the left tail: x Phi(x) at -10 by the asymptotic series of erfc, from mpmath
    np.testing.assert_allclose(
        evaluate(lambda v: gelu(v, approximate=False), np.array(-10.0)),
        -7.619853024160526e-23,
        rtol=1e-13,
    )


def test_interp_takes_the_slope_to_the_right_and_the_last_one_at_the_end():
    xp, fp = np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 8.0])
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0])
    got = gradient(lambda v: tg.sum(tg.interp(v, xp, fp)), x)
    np.testing.assert_array_equal(got, [0, 2, 2, 3, 3, 3, 0])


def test_polyval_at_infinity():
    assert evaluate(tg.polyval, np.array([2.0, -1.0, 0.0]), np.array(INF)) == INF


# ------------------------------------------------------------------------- finite differences

A = np.random.default_rng(5).standard_normal((3, 4))
B = np.random.default_rng(6).standard_normal((3, 4)) + 3.0
V = np.array([0.3, -1.2, 0.8, 2.0, -0.4, 1.1])
SMOOTH = [
    ("mean", lambda x: tg.mean(x, axis=0), A),
    ("var", lambda x: tg.var(x, axis=1, ddof=1), A),
    ("std", lambda x: tg.std(x, axis=1), A),
    ("nanmean", lambda x: tg.nanmean(x, axis=1), A),
    ("average", lambda x: tg.average(A, weights=x), B),
    ("median", lambda x: tg.median(x, axis=1), A),
    ("quantile", lambda x: tg.quantile(x, 0.3, axis=1), A),
    ("cov", lambda x: tg.cov(x), A),
    ("corrcoef", lambda x: tg.corrcoef(x), A),
    ("logsumexp", lambda x: tg.logsumexp(x, axis=1), A),
    ("softmax", lambda x: BUILDERS["nn.softmax"](x), A),
    ("norm", lambda x: BUILDERS["linalg.norm"](x, axis=1), A),
    ("norm-3", lambda x: BUILDERS["linalg.norm"](x, ord=3, axis=1), A),
    ("norm-1", lambda x: BUILDERS["linalg.norm"](x, ord=1), A),
    ("einsum", lambda x: tg.einsum("ij,kj,kl->il", x, x, B), A),
    ("einsum-diagonal", lambda x: tg.einsum("iij->ij", x), np.stack([A[:, :2], B[:, :2]], 1)[:2]),
    ("kron", lambda x: tg.kron(x, V), A),
    ("cross", lambda x: tg.cross(x, B, axis=0), A),
    ("gradient", lambda x: tg.gradient(x, axis=1), A),
    ("gradient-points", lambda x: tg.gradient(V, x), np.cumsum(V**2)),
    ("trapezoid", lambda x: tg.trapezoid(V, x), np.cumsum(V**2)),
    ("interp-xp", lambda x: tg.interp(np.array([0.5, 1.7]), x, V), np.cumsum(V**2)),
    ("interp-fp", lambda x: tg.interp(np.array([0.5, 1.7]), np.cumsum(V**2), x), V),
    ("polyval", lambda x: tg.polyval(x, V), V),
    ("convolve", lambda x: tg.convolve(x, V, "same"), V[:4]),
    ("cumprod", lambda x: tg.cumprod(x, axis=1), B),
    ("logcumsumexp", lambda x: tg.logcumsumexp(x, axis=1), A),
    ("pad", lambda x: tg.pad(x, 2, mode="reflect"), A),
    ("roll", lambda x: tg.roll(x, 3), A),
    ("tile", lambda x: tg.tile(x, (2, 1)), A),
    ("repeat", lambda x: tg.repeat(x, np.array([1, 0, 2]), axis=0), A),
    ("tril", lambda x: tg.tril(x, -1), A),
    ("diagonal", lambda x: tg.diagonal(x, 1), A),
    ("diag", lambda x: tg.diag(x, -1), V),
    ("linspace", lambda x: tg.linspace(x, 2 * x, 5), V),
    ("unwrap", lambda x: tg.unwrap(x), 3 * V),
    ("insert", lambda x: tg.insert(x, 2, 5.0), V),
    ("modf", lambda x: tg.modf(x)[0], A * 3),
    ("frexp", lambda x: tg.frexp(x)[0], A * 3),
    ("ldexp", lambda x: tg.ldexp(x, 3), A),
    ("sinc", lambda x: tg.sinc(x), A),
    ("gelu", lambda x: BUILDERS["nn.gelu"](x), A),
    ("gelu-exact", lambda x: BUILDERS["nn.gelu"](x, approximate=False), A),
    *(
        (name, BUILDERS[f"nn.{name}"], A)
        for name in (
            *("silu", "elu", "celu", "selu", "mish", "soft_sign", "squareplus", "hard_silu"),
            *("leaky_relu", "glu", "softplus", "log_sigmoid"),
        )
    ),
    *(
        (name, BUILDERS[f"special.{name}"], np.abs(A) / (1 + np.abs(A)))
        for name in ("logit", "entr", "ndtr")
    ),
    ("rel_entr", lambda x: BUILDERS["special.rel_entr"](x, B), np.abs(A)),
]


@pytest.mark.parametrize(("name", "f", "x"), SMOOTH, ids=[row[0] for row in SMOOTH])
def test_against_central_differences(name, f, x, rng):
    def first(v):
        result = f(v)
        return result if type(result) is Value else result[0]

    ct = rng.standard_normal(evaluate(first, x).shape)
    (bar,) = cotangents(first, (x,), ct)
    t, h = rng.standard_normal(x.shape), 1e-6
    ends = [np.sum(evaluate(first, x + s * h * t) * ct) for s in (1, -1)]
    np.testing.assert_allclose(np.sum(bar * t), (ends[0] - ends[1]) / (2 * h), rtol=2e-7, atol=1e-8)


@pytest.mark.parametrize(("name", "f", "x"), SMOOTH, ids=[row[0] for row in SMOOTH])
def test_batched_equals_loop(name, f, x, rng):
    def first(v):
        result = f(v)
        return result if type(result) is Value else result[0]

    check_batch(first, (x,), rng, equal=nearly)


def nearly(got, want, err_msg=""):
    """NumPy's sums in the interpreter depend on the layout."""
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15, err_msg=err_msg)
