"""Special functions, activations and norms against SciPy, mpmath, NumPy and closed forms."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special
from rule_checks import evaluate

from tilegrad.engine.namespace import BUILDERS
from tilegrad.ir.errors import DTypeError, ShapeError, UnsupportedError

X = np.array([-40.0, -3.0, -1.0, -1e-3, 0.0, 1e-10, 0.5, 1.0, 2.5, 40.0])
UNIT = np.array([1e-300, 1e-8, 0.1, 0.3, 0.4999, 0.5, 0.5001, 0.65, 0.9, 1 - 1e-12, 0.0, 1.0])
P = np.array([0.0, 0.0, 0.3, 2.0, -1.0, 0.0, 1.0, np.nan])
Q = np.array([0.0, 2.0, 0.7, 0.0, 1.0, -1.0, np.inf, 1.0])

UNARY = [
    *(("expit", X), ("log_expit", X), ("ndtr", X), ("entr", np.abs(X)), ("entr", X)),
    *(("logit", UNIT), ("erf", X), ("erfc", X)),
]


@pytest.mark.parametrize(("name", "x"), UNARY)
def test_unary(name, x):
    want = getattr(scipy.special, name)(x)
    np.testing.assert_allclose(evaluate(BUILDERS[f"special.{name}"], x), want, rtol=4e-15)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "rel_entr", "kl_div"])
def test_binary(name):
    with np.errstate(all="ignore"):
        want = getattr(scipy.special, name)(P, Q)
    np.testing.assert_allclose(evaluate(BUILDERS[f"special.{name}"], P, Q), want, rtol=1e-15)


def test_logit_keeps_its_digits_near_one_half():
    """Against 40 digits: log(x / (1 - x)) crosses 0 at 1/2."""
    logit = BUILDERS["special.logit"]
    for x in (0.5 + 2.0**-50, 0.5 - 2.0**-40, 0.501, 0.3, 0.65, 0.6500001, 1e-5):
        with mpmath.workdps(40):
            exact = float(mpmath.log(mpmath.mpf(x) / (1 - mpmath.mpf(x))))
        np.testing.assert_allclose(evaluate(logit, np.array(x)), exact, rtol=1e-15)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp(axis, keepdims, rng):
    x, b = 50 * rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    f = BUILDERS["logsumexp"]
    got = evaluate(lambda v: f(v, axis=axis, keepdims=keepdims), x)
    np.testing.assert_allclose(
        got, scipy.special.logsumexp(x, axis=axis, keepdims=keepdims), rtol=1e-14
    )
    want, sign = scipy.special.logsumexp(x, axis=axis, b=b, return_sign=True)
    for part, right in ((0, want), (1, sign)):
        got = evaluate(lambda v, p=part: f(v, axis=axis, b=b, return_sign=True)[p], x)
        np.testing.assert_allclose(got, right, rtol=1e-13)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, 1, -1, (0, 1)])
def test_softmax(name, axis, rng):
    x = 100 * rng.standard_normal((3, 4))
    got = evaluate(lambda v: BUILDERS[f"special.{name}"](v, axis=axis), x)
    np.testing.assert_allclose(got, getattr(scipy.special, name)(x, axis), rtol=1e-14, atol=1e-300)


# ------------------------------------------------------------------------------- activations

_PHI = scipy.special.ndtr
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip((x + 3) / 6, 0, 1),
    "hard_silu": lambda x: x * np.clip((x + 3) / 6, 0, 1),
    "hard_swish": lambda x: x * np.clip((x + 3) / 6, 0, 1),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "silu": lambda x: x * scipy.special.expit(x),
    "swish": lambda x: x * scipy.special.expit(x),
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "softplus": lambda x: np.logaddexp(0, x),
    "sigmoid": scipy.special.expit,
    "log_sigmoid": scipy.special.log_expit,
}


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_activation(name):
    with np.errstate(all="ignore"):
        want = ACTIVATIONS[name](X)
    got = evaluate(BUILDERS[f"nn.{name}"], X)
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-15)
    narrow = evaluate(BUILDERS[f"nn.{name}"], X.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, want, rtol=2e-6, atol=1e-7)


def test_selu_fixes_mean_and_variance():
    """The constants: a standard normal goes to mean 0 and variance 1 (Klambauer et al. 2017)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(180)
    y = evaluate(BUILDERS["nn.selu"], nodes)
    weights = weights / weights.sum()
    assert abs(weights @ y) < 2e-3  # the kink at 0 limits the quadrature
    assert abs(weights @ y**2 - 1) < 2e-3


def test_exact_gelu_keeps_the_left_tail():
    f = BUILDERS["nn.gelu"]
    for x in (-30.0, -10.0, -2.0, 0.5, 5.0):
        with mpmath.workdps(40):
            exact = float(x * mpmath.ncdf(mpmath.mpf(x)))
        got = evaluate(lambda v: f(v, approximate=False), np.array(x))
        np.testing.assert_allclose(got, exact, rtol=2e-13)
    tail = evaluate(f, np.array(-10.0))
    assert tail < 0  # the tanh form, too, does not round to zero


def test_glu_and_one_hot(rng):
    x = rng.standard_normal((3, 4))
    got = evaluate(BUILDERS["nn.glu"], x)
    np.testing.assert_allclose(got, x[:, :2] * scipy.special.expit(x[:, 2:]), rtol=1e-15)
    labels = np.array([0, 2, 3, -1])
    got = evaluate(lambda i: BUILDERS["one_hot"](i, 3), labels)
    np.testing.assert_array_equal(got, [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    got = evaluate(lambda i: BUILDERS["one_hot"](i, 3, axis=0, dtype="int8"), labels)
    assert got.shape == (3, 4)
    assert got.dtype == np.int8


# ------------------------------------------------------------------------------------- norms


@pytest.mark.parametrize("order", [None, 2, 1, 0, 3, 2.5, -1, -2, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_vector_norms(order, axis, rng):
    f = BUILDERS["linalg.norm"]
    for x in (rng.standard_normal((3, 4)), rng.standard_normal((2, 3, 4)) * 1j + 1.0):
        for keep in (False, True):
            got = evaluate(lambda v, k=keep: f(v, ord=order, axis=axis, keepdims=k), x)
            want = np.linalg.norm(x, ord=order, axis=axis, keepdims=keep)
            np.testing.assert_allclose(got, want, rtol=1e-14)
            assert got.dtype == want.dtype


@pytest.mark.parametrize("order", [None, "fro", 1, -1, np.inf, -np.inf])
def test_matrix_norms(order, rng):
    x = rng.standard_normal((2, 3, 4))
    f = BUILDERS["linalg.norm"]
    for axis in ((0, 1), (2, 0), (-1, -2)):
        for keep in (False, True):
            got = evaluate(lambda v, a=axis, k=keep: f(v, order, a, k), x)
            np.testing.assert_allclose(got, np.linalg.norm(x, order, axis, keep), rtol=1e-14)
    np.testing.assert_allclose(evaluate(lambda v: f(v, order), x[0]), np.linalg.norm(x[0], order))
    if order is not None:
        got = evaluate(lambda v: BUILDERS["linalg.matrix_norm"](v, ord=order), x)
        np.testing.assert_allclose(got, np.linalg.matrix_norm(x, ord=order))


def test_norms_of_integers_nothing_and_the_whole():
    f, vector = BUILDERS["linalg.norm"], BUILDERS["linalg.vector_norm"]
    assert evaluate(f, np.array([3, 4])) == 5
    assert evaluate(f, np.zeros(0)) == 0
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_allclose(evaluate(f, x), np.linalg.norm(x), rtol=1e-15)
    assert evaluate(lambda v: f(v, keepdims=True), x).shape == (1, 1, 1)
    got = evaluate(lambda v: vector(v, axis=(0, 2), ord=3), x)
    np.testing.assert_allclose(got, np.linalg.vector_norm(x, axis=(0, 2), ord=3), rtol=1e-14)


@pytest.mark.parametrize("order", [2, 3, -2, 0.5])
def test_p_norms_neither_overflow_nor_underflow(order):
    f = BUILDERS["linalg.norm"]
    for scale in (1e-250, 1e250):
        got = evaluate(lambda v: f(v, ord=order), np.array([3.0, 4.0]) * scale)
        want = (3.0**order + 4.0**order) ** (1 / order)
        np.testing.assert_allclose(got / scale, want, rtol=1e-14)


def test_refusals():
    f = BUILDERS["linalg.norm"]
    with pytest.raises(UnsupportedError, match="singular values, which are not built yet"):
        f(np.eye(2), ord="nuc")
    with pytest.raises(ValueError, match="ord 'fro', 1, -1, inf"):
        f(np.eye(2), ord=3)
    with pytest.raises(ShapeError, match="one or two axes"):
        f(np.zeros((2, 2, 2)), ord=2)
    for name in ("special.softmax", "special.logsumexp", "nn.sigmoid", "special.entr"):
        with pytest.raises(DTypeError, match="complex128; take the real part"):
            BUILDERS[name](np.ones(3) * 1j)
    assert math.isnan(float(evaluate(BUILDERS["special.entr"], np.array(np.nan))))
