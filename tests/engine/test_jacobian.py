"""Whole Jacobians and Hessians."""

import itertools
from typing import Any

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.engine import jacobian as module

from .lines import raises_here

A = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])
X = np.array([0.3, -0.7, 1.1])
MODES = [tg.jacfwd, tg.jacrev, tg.jacobian]


@pytest.mark.parametrize("mode", MODES)
def test_against_closed_form(mode: Any) -> None:
    jacobian = mode(lambda x: tg.sin(A @ x))(X)
    np.testing.assert_allclose(jacobian, np.cos(A @ X)[:, None] * A, rtol=1e-14)
    np.testing.assert_array_equal(mode(lambda x: x)(2.0), 1.0)
    assert mode(lambda x: x * x)(np.ones((2, 3))).shape == (2, 3, 2, 3)
    assert mode(lambda x: x)(np.zeros((0,))).shape == (0, 0)
    assert mode(lambda x: x * x)(np.ones(2, "float32")).dtype is tg.float32


@pytest.mark.parametrize("mode", MODES)
def test_trees_argnums_aux_and_no_dependence(mode: Any) -> None:
    def f(p: Any, y: Any) -> Any:
        return {"u": p["a"] * y, "v": [tg.sum(y)]}

    jacobian = mode(f)({"a": 2.0, "b": np.ones(3)}, X)
    np.testing.assert_allclose(jacobian["u"]["a"], X)
    np.testing.assert_array_equal(jacobian["u"]["b"], np.zeros((3, 3)))
    np.testing.assert_array_equal(jacobian["v"][0]["a"], 0.0)
    both = mode(f, argnums=(0, 1))({"a": 2.0, "b": np.ones(3)}, X)
    np.testing.assert_allclose(both["u"][1], 2 * np.eye(3))
    np.testing.assert_allclose(both["v"][0][1], np.ones(3))
    jacobian, aux = mode(lambda x: (x * x, "aux"), has_aux=True)(3.0)
    assert (float(jacobian), aux) == (6.0, "aux")


def test_cheaper_mode_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:  # AD06
    chosen = []
    for name in ("_forward_blocks", "_reverse_blocks"):
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a, real=real, name=name: (chosen.append(name), real(*a))[1]
        )
    tg.jacobian(lambda x: tg.sum(x))(X)
    tg.jacobian(lambda x: tg.asarray([1.0, 2.0]) * x)(1.0)
    tg.jacobian(lambda x: x)(X)
    assert chosen == ["_reverse_blocks", "_forward_blocks", "_forward_blocks"]


@pytest.mark.parametrize("mode", MODES)
def test_complex(mode: Any) -> None:
    z = np.array([1 + 2j, 0.5 - 1j])
    np.testing.assert_allclose(mode(lambda z: z * z, holomorphic=True)(z), np.diag(2 * z))
    with raises_here(TypeError, r"complex arguments: expected real results.*holomorphic=True"):
        mode(lambda z: z * z)(z)  # here
    with raises_here(TypeError, r"floating results, got the result: i64\[\]"):
        mode(lambda x: tg.argmax(x))(X)  # here


@pytest.mark.parametrize("mode", MODES)
def test_real_results_of_complex_arguments(mode: Any) -> None:
    """``du/da + i du/db``: the rows are the gradients of the results."""

    def f(z: Any, x: Any) -> Any:
        return tg.stack([tg.sum(tg.abs(z) ** 2) * x, tg.real(z[0] * z[1]), tg.imag(z[1]), x])

    z = np.array([1 + 2j, 0.5 - 1j])
    by_z, by_x = mode(f, argnums=(0, 1))(z, 3.0)
    expected = [6 * z, np.conj([z[1], z[0]]), [0, 1j], [0, 0]]
    np.testing.assert_allclose(by_z, expected, rtol=1e-14)
    np.testing.assert_allclose(by_x, [np.sum(np.abs(z) ** 2), 0, 0, 1], rtol=1e-14)
    assert by_x.dtype is tg.float64
    rows = [tg.grad(lambda z, i=i: f(z, 3.0)[i])(z) for i in range(4)]
    np.testing.assert_allclose(by_z, np.stack(rows), rtol=1e-14)
    single = mode(lambda z: tg.real(z) * tg.imag(z))(z.astype("complex64"))
    assert single.dtype is tg.complex64
    np.testing.assert_allclose(single, np.diag(z.imag + 1j * z.real))


@pytest.mark.parametrize("mode", MODES)
def test_complex_results_of_real_arguments(mode: Any) -> None:
    """The derivative of ``u + iv`` is ``u' + iv'``, in every mode and order, jitted and mapped."""

    def wave(x: Any) -> Any:
        return tg.exp(1j * x * x[0])

    def expected(x: Any) -> Any:
        first = np.zeros((3, 3))
        first[:, 0] = x
        return (1j * np.exp(1j * x * x[0]))[:, None] * (first + x[0] * np.eye(3))

    np.testing.assert_allclose(mode(wave)(X), expected(X), rtol=1e-14)
    np.testing.assert_allclose(tg.jit(mode(wave))(X), expected(X), rtol=1e-14)
    many = np.stack([X, -X])
    np.testing.assert_allclose(tg.vmap(mode(wave))(many)[1], expected(-X), rtol=1e-14)
    second = mode(mode(lambda t: tg.exp(1j * t)))(0.3)
    np.testing.assert_allclose(second, -np.exp(0.3j), rtol=1e-14)
    assert mode(lambda x: x * 1j)(X.astype("float32")).dtype is tg.complex64


@pytest.mark.parametrize(
    ("outer", "inner"), list(itertools.product([tg.jacfwd, tg.jacrev], repeat=2))
)
def test_second_order_in_all_modes(outer: Any, inner: Any) -> None:  # AD09
    def f(x: Any) -> Any:
        return tg.sum(tg.sin(x) * x[::-1]) + x[0] * x[1] * x[2]

    expected = tg.hessian(f)(X)
    np.testing.assert_allclose(outer(inner(f))(X), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(expected, np.asarray(expected).T, atol=1e-14)


def test_hessian_against_closed_form_and_trees() -> None:
    def f(p: Any) -> Any:
        return p["a"] * p["a"] * tg.sum(p["b"] * p["b"] * p["b"])

    h = tg.hessian(f)({"a": 2.0, "b": X})
    np.testing.assert_allclose(h["a"]["a"], 2 * np.sum(X**3))
    np.testing.assert_allclose(h["a"]["b"], 2 * 2.0 * 3 * X**2)
    np.testing.assert_allclose(h["b"]["a"], 2 * 2.0 * 3 * X**2)
    np.testing.assert_allclose(h["b"]["b"], 4.0 * np.diag(6 * X))


def test_hvp_without_the_hessian() -> None:  # AD08
    def f(x: Any) -> Any:
        return tg.sum(tg.sin(x) * x[::-1])

    v = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(tg.hvp(f, (X,), (v,)), np.asarray(tg.hessian(f)(X)) @ v, rtol=1e-13)
    first, second = tg.hvp(lambda x, y: x * y * y, (2.0, 3.0), (1.0, 0.0))
    assert (float(first), float(second)) == (0.0, 6.0)
    graph = tg.trace(lambda x, v: tg.hvp(f, (x,), (v,)))(np.ones(50), np.ones(50))
    assert max(t.size for node in graph.nodes() for t in node.types) == 50


def test_jitted_and_mapped() -> None:
    f: Any = lambda x: tg.sin(x) * x[0]  # noqa: E731
    many = np.stack([X, 2 * X])
    one = tg.jit(tg.jacobian(f))(X)
    np.testing.assert_allclose(one, tg.jacobian(f)(X), rtol=1e-15)
    np.testing.assert_allclose(tg.vmap(tg.jacobian(f))(many)[1], tg.jacobian(f)(2 * X), rtol=1e-15)
    np.testing.assert_allclose(
        tg.jit(tg.vmap(tg.hessian(lambda x: tg.sum(f(x)))))(many)[0],
        tg.hessian(lambda x: tg.sum(f(x)))(X),
        rtol=1e-14,
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_basis_is_not_multiplied_out(mode: Any) -> None:
    """The Jacobian of ``A x`` is ``A``: to the bit, also where it is not finite, by no product."""
    a = np.array([[1.0, -0.0, np.inf], [np.nan, 2.0, 3.0]])
    np.testing.assert_array_equal(mode(lambda x: A @ x)(X), A)
    got = np.asarray(mode(lambda x: tg.asarray(a) @ x)(X))
    np.testing.assert_array_equal(got, a)
    assert np.signbit(got[0, 1])
    cube = np.arange(24.0).reshape(2, 3, 4)
    got = mode(lambda w: tg.tensordot(cube, w, ((2, 0), (0, 1))))(np.ones((4, 2)))
    np.testing.assert_array_equal(got, cube.transpose(1, 2, 0))
    np.testing.assert_array_equal(mode(lambda w: cube @ w)(np.ones(4)), cube)
    got = mode(lambda w: w @ cube)(np.ones((5, 3)))  # not all axes are contracted
    np.testing.assert_allclose(got, np.einsum("bkj,il->bijlk", cube, np.eye(5)))


def test_a_hessian_holds_one_product_of_matrices() -> None:
    def loss(w: Any, x: Any) -> Any:
        return tg.sum(tg.logaddexp(0.0, x @ w))

    x = np.random.default_rng(0).normal(size=(40, 5))
    lowered = tg.jit(tg.hessian(loss)).lower(tg.ones(5), tg.asarray(x))
    assert lowered.as_text("fused").count("matmul") == 1
    s = 1 / (1 + np.exp(-x.sum(1)))
    np.testing.assert_allclose(
        tg.hessian(loss)(tg.ones(5), x), (x.T * (s * (1 - s))) @ x, rtol=1e-12
    )
