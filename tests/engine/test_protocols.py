"""Functions of ``np.`` on arrays and tracers."""

from typing import Any

import numpy as np
import pytest

import tilegrad as tg

from .lines import raises_here

X = np.array([[0.3, 1.2, 2.0], [0.7, 0.1, 1.5]])


def model(x: Any) -> Any:
    """Written for NumPy, no word of tilegrad."""
    y = np.exp(-x) * np.sin(x) + np.sqrt(x) / np.log1p(x)
    z = np.where(y > 0.5, y, np.maximum(y, 0.1)) ** 2
    return (
        np.sum(np.concatenate([z, np.tanh(z)], axis=0))
        + np.mean(np.stack([z, z]))
        + np.dot(z[0], z[1])
    )


def test_a_numpy_function_can_be_run_compiled_and_differentiated() -> None:
    expected = model(X)
    assert float(model(tg.asarray(X))) == pytest.approx(expected, rel=1e-14)
    assert float(tg.jit(model)(X)) == pytest.approx(expected, rel=1e-14)
    step = 1e-6
    direction = np.cos(X)
    slope = (model(X + step * direction) - model(X - step * direction)) / (2 * step)
    for g in (tg.grad(model)(X), tg.jit(tg.grad(model))(X), tg.jacfwd(model)(X)):
        assert np.sum(np.asarray(g) * direction) == pytest.approx(slope, rel=1e-8)
    many = np.stack([X, 2 * X])
    np.testing.assert_allclose(tg.vmap(model)(many), [model(X), model(2 * X)], rtol=1e-14)


UFUNCS = [
    *(np.add, np.subtract, np.multiply, np.divide, np.power, np.arctan2, np.hypot, np.maximum),
    *(np.minimum, np.fmod, np.remainder, np.floor_divide, np.copysign, np.logaddexp, np.greater),
    *(np.not_equal, np.logical_and),
]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_binary_ufuncs_in_both_orders(ufunc: Any) -> None:
    y = X[0] + 0.5
    for a, b in (
        (tg.asarray(X), y),
        (X, tg.asarray(y)),
        (tg.asarray(X), 2.0),
        (2.0, tg.asarray(y)),
    ):
        found = ufunc(a, b)
        assert isinstance(found, tg.Array)
        expected = ufunc(np.asarray(a), np.asarray(b))
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        assert np.asarray(found).dtype == expected.dtype
    jitted = tg.jit(lambda a, b: ufunc(a, b))(X, y)
    np.testing.assert_allclose(jitted, ufunc(X, y), rtol=1e-14)


@pytest.mark.parametrize(
    "name",
    [
        "abs",
        "negative",
        "positive",
        "exp",
        "expm1",
        "exp2",
        "log",
        "log1p",
        "log2",
        "log10",
        "sqrt",
        "square",
        "cbrt",
        "reciprocal",
        "sin",
        "cos",
        "tan",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "arcsinh",
        "arctanh",
        "floor",
        "ceil",
        "trunc",
        "rint",
        "sign",
        "isnan",
        "isfinite",
        "isinf",
        "signbit",
        "conjugate",
        "real",
        "imag",
        "absolute",
        "degrees",
        "radians",
    ],
)
def test_unary_functions(name: str) -> None:
    x = X / 4
    np.testing.assert_allclose(getattr(np, name)(tg.asarray(x)), getattr(np, name)(x), rtol=1e-14)


def test_numpy_left_operands_defer() -> None:  # AR38
    x = tg.asarray(X)
    for left in (np.ones(3), np.float64(2.0), np.ones((2, 3), "float32")):
        y = left * x
        assert isinstance(y, tg.Array)
        np.testing.assert_allclose(y, np.multiply(left, X))
    seen = []
    tg.jit(lambda x: seen.append(isinstance(np.ones(3) - x, tg.Array)) or x)(X)
    assert seen == [True]


def test_reductions_of_ufuncs() -> None:
    x = tg.asarray(X)
    for ufunc in (np.add, np.multiply, np.maximum, np.minimum):
        np.testing.assert_allclose(ufunc.reduce(x), ufunc.reduce(X), rtol=1e-15)
        np.testing.assert_allclose(ufunc.reduce(x, axis=1), ufunc.reduce(X, axis=1), rtol=1e-15)
        np.testing.assert_allclose(
            ufunc.reduce(x, axis=None), ufunc.reduce(X, axis=None), rtol=1e-15
        )
    np.testing.assert_array_equal(np.logical_and.reduce(x > 0.2), np.logical_and.reduce(X > 0.2))
    np.testing.assert_array_equal(np.logical_or.reduce(x > 1.9), np.logical_or.reduce(X > 1.9))
    np.testing.assert_allclose(np.add.accumulate(x), np.add.accumulate(X), rtol=1e-15)
    np.testing.assert_allclose(np.multiply.accumulate(x, axis=1), np.multiply.accumulate(X, axis=1))
    np.testing.assert_allclose(np.multiply.outer(x, x[0]), np.multiply.outer(X, X[0]), rtol=1e-15)


def test_array_functions() -> None:
    x = tg.asarray(X)
    same: Any = np.testing.assert_allclose
    same(np.sum(x, axis=0), np.sum(X, axis=0))
    same(np.mean(x), np.mean(X))
    same(np.reshape(x, (3, 2)), np.reshape(X, (3, 2)))
    same(np.transpose(x), X.T)
    same(np.concatenate([x, X]), np.concatenate([X, X]))
    same(np.stack([x[0], X[1]]), X)
    same(np.where(x > 1, x, 0.0), np.where(X > 1, X, 0.0))
    same(np.clip(x, 0.2, 1.0), np.clip(X, 0.2, 1.0))
    same(np.linalg.norm(x), np.linalg.norm(X), rtol=1e-15)
    same(np.einsum("ij,kj->ik", x, x), X @ X.T, rtol=1e-14)
    same(np.dot(x, x.T), X @ X.T, rtol=1e-14)
    same(np.zeros_like(x), np.zeros_like(X))
    assert np.shape(x) == (2, 3)
    assert np.ndim(x) == 2
    assert np.size(x) == 6
    assert np.argmax(x) == 2


def test_what_has_no_counterpart_is_named() -> None:
    x = tg.asarray(X)
    with raises_here(TypeError, r"np.busday_count: has no counterpart in tilegrad; .*np.asarray"):
        np.busday_count(x, x)  # here
    with raises_here(TypeError, r"np.add.reduceat: has no counterpart"):
        np.add.reduceat(x, [0, 1])  # here
    with raises_here(TypeError, r"np.nextafter.at: has no counterpart|np.add.at: has no"):
        np.add.at(x, [0], 1.0)  # here


def test_out_is_refused() -> None:
    x = tg.asarray(X)
    target = np.zeros((2, 3))
    with raises_here(TypeError, r"np.sin: out= is not possible .* use the result: a = a \+ x"):
        np.sin(x, out=target)  # here
    with raises_here(TypeError, "np.add: out= is not possible"):
        target += x  # here
    with raises_here(TypeError, "np.sum: out= is not possible"):
        np.sum(x, axis=0, out=np.zeros(3))  # here
    np.testing.assert_array_equal(target, np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (
            lambda x: float(x[0, 0]),
            r"float\(\): expected an array with values, got f64\[\], which is",
        ),
        (lambda x: int(x[0, 0]), r"int\(\)"),
        (lambda x: complex(x[0, 0]), r"complex\(\)"),
        (lambda x: bool(x[0, 0]), r"bool\(\)"),
        (lambda x: 1 if x[0, 0] > 0 else 2, r"bool\(\): .*use tg.cond, tg.while_loop or tg.where;"),
        (lambda x: x[0, 0].item(), r"item\(\)"),
        (lambda x: x.tolist(), r"tolist\(\)"),
        (lambda x: x.numpy(), r"numpy\(\)"),
        (lambda x: np.asarray(x), "conversion to a NumPy array"),
        (lambda x: np.array([x[0, 0], x[0, 1]]), "conversion to a NumPy array|float"),
        (lambda x: list(range(x[0, 0].astype("int64"))), "use as an index"),
        (lambda x: tg.eval(x * 2.0), "tg.eval"),
    ],
)
@pytest.mark.parametrize("transform", [tg.jit, tg.vmap], ids=["jit", "vmap"])
def test_tracers_have_no_values(transform: Any, act: Any, text: str) -> None:  # ER02
    def inner(x: Any) -> Any:
        act(x)
        return x

    data = X if transform is tg.jit else X[None]
    name = "jit" if transform is tg.jit else "vmap"
    with pytest.raises(tg.TracerError, match=rf"(?s){text}") as info:
        transform(inner)(data)
    assert f"depends on argument x of {name}(inner)" in str(info.value)
    assert isinstance(info.value, TypeError)
    assert __file__ in str(info.value)


def test_tracer_error_cites_the_line_of_the_user() -> None:
    with raises_here(tg.TracerError, "static_argnums"):
        tg.jit(lambda x: x if x > 0 else -x)(1.0)  # here


def test_leaked_tracers() -> None:  # AD15
    kept: list[Any] = []

    def keep(x: Any) -> Any:
        kept.append(x * 2.0)  # made here
        return x

    for transform, data, name in (
        (tg.jit, 1.0, "jit"),
        (tg.vmap, np.ones(2), "vmap"),
        (lambda g: lambda x: tg.linear_transpose(g, x), 1.0, "linear_transpose"),
    ):
        kept.clear()
        transform(keep)(data)
        (leaked,) = kept
        text = rf"(?s)leaked tracer f64\[\]~?: .*argument x of {name}\(keep\).*return it from"
        for use in (float, np.asarray, lambda x: float(x + 1.0), tg.jit(lambda x: x + 1.0)):
            with raises_here(tg.TracerError, text, "# made here"):
                use(leaked)
        with raises_here(tg.TracerError, text, "# made here"):
            tg.jit(lambda y: y * leaked)(1.0)  # noqa: B023


def test_tracer_of_a_finished_jit_inside_another_trace() -> None:
    kept: list[Any] = []
    tg.jit(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(tg.TracerError, match="leaked tracer"):
        float(tg.grad(lambda y: y * kept[0])(1.0))


def test_dtype_of_a_ufunc_call() -> None:
    x = tg.asarray(X)
    for call in (
        lambda a: np.add(a, 1.0, dtype="float32"),
        lambda a: np.multiply(a, a, dtype=np.float32),
        lambda a: np.add.reduce(a, dtype="float32"),
    ):
        expected = call(X)
        assert np.asarray(call(x)).dtype == expected.dtype
        np.testing.assert_allclose(call(x), expected, rtol=1e-6)
