"""grad and value_and_grad: trees, numbers, control flow, errors."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import tilegrad as tg

from .lines import raises_here


class Params(NamedTuple):
    w: Any
    b: Any


def test_gradients_mirror_the_argument() -> None:  # AD05
    p = {
        "z": 2.0,
        "a": [tg.asarray([1.0, 2.0]), (np.ones(2, "float32"), None)],
        "m": Params(3.0, 4.0),
    }

    def f(p: Any) -> Any:
        x, (y, _) = p["a"]
        return p["z"] * tg.sum(x * x) + tg.sum(y * 2.0) + p["m"].w * p["m"].b

    g = tg.grad(f)(p)
    assert tg.tree.structure(g) == tg.tree.structure(p)
    assert list(g) == ["z", "a", "m"]
    assert float(g["z"]) == 5.0
    np.testing.assert_array_equal(g["a"][0], [4.0, 8.0])
    assert g["a"][1][0].dtype is tg.float32
    assert g["a"][1][1] is None
    assert isinstance(g["m"], Params)
    assert (float(g["m"].w), float(g["m"].b)) == (4.0, 3.0)


def test_order_of_dictionaries() -> None:  # case 131
    g = tg.grad(lambda p: p["z"] * p["a"])({"z": 2.0, "a": 5.0})
    assert [(k, float(v)) for k, v in g.items()] == [("z", 5.0), ("a", 2.0)]


def test_none_leaves_stay() -> None:  # case 130
    g = tg.grad(lambda p: p["b"] ** 2)({"w": None, "b": 3.0})
    assert g["w"] is None
    assert float(g["b"]) == 6.0


def test_python_numbers_give_float64_arrays() -> None:
    for x in (3.0, 3, np.float64(3.0)):
        g = tg.grad(lambda x: x * x)(x)
        assert g.dtype is tg.float64
        assert not g._type.weak
        assert float(g) == 6.0
    x32 = tg.ones(2, dtype="float32")
    seen = []

    def loss(rate: Any) -> Any:
        y = x32 * rate
        seen.append(y.dtype)
        return tg.sum(y)

    assert float(tg.grad(loss)(0.5)) == 2.0
    assert seen == [tg.float32], "a Python number is weak inside grad too"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes_are_kept(dtype: str) -> None:
    value, g = tg.value_and_grad(lambda x: tg.sum(x * x * 0.5))(np.ones(3, dtype))
    assert value.dtype.name == g.dtype.name == dtype


def test_argnums_and_keywords() -> None:
    def f(x: Any, y: Any, *, scale: Any = 1.0) -> Any:
        return x * y * y * scale

    assert float(tg.grad(f)(2.0, 3.0)) == 9.0
    assert float(tg.grad(f, argnums=1)(2.0, 3.0, scale=2.0)) == 24.0
    assert [float(g) for g in tg.grad(f, argnums=(1, 0))(2.0, 3.0)] == [12.0, 9.0]
    assert isinstance(tg.grad(f, argnums=(0,))(2.0, 3.0), tuple)
    assert float(tg.grad(f, argnums=-1)(2.0, 3.0)) == 12.0
    value, g = tg.value_and_grad(f, argnums=(0, 1))(2.0, 3.0)
    assert (float(value), float(g[0]), float(g[1])) == (18.0, 9.0, 12.0)


def test_aux() -> None:
    def f(x: Any) -> Any:
        y = x * x
        return y, {"y": y, "text": "kept", "n": 3}

    g, aux = tg.grad(f, has_aux=True)(3.0)
    assert (float(g), float(aux["y"]), aux["text"], aux["n"]) == (6.0, 9.0, "kept", 3)
    (value, aux), g = tg.value_and_grad(f, has_aux=True)(3.0)
    assert (float(value), float(g), float(aux["y"])) == (9.0, 6.0, 9.0)
    with raises_here(TypeError, r"has_aux=True: expected .* a pair \(result, aux\), got Array"):
        tg.grad(lambda x: x, has_aux=True)(3.0)  # here


def test_unused_and_constant() -> None:  # AD13
    g = tg.grad(lambda x, y: x, argnums=1)(1.0, np.ones((2, 3), "float32"))
    assert g.dtype is tg.float32
    np.testing.assert_array_equal(g, np.zeros((2, 3)))
    assert float(tg.grad(lambda x: 2.0)(1.0)) == 0.0
    np.testing.assert_array_equal(tg.grad(lambda x: tg.sum(tg.ones(3)))(np.ones(2)), [0.0, 0.0])


def test_python_control_flow_on_values() -> None:
    def f(x: Any) -> Any:
        if x < 0:
            return -x
        y = x
        while y < 100.0:
            y = y * 2.0
        return y

    assert [float(tg.grad(f)(v)) for v in (-3.0, 3.0, 150.0)] == [-1.0, 64.0, 1.0]
    assert float(tg.grad(lambda x: x * float(x))(3.0)) == 3.0
    assert float(tg.grad(lambda x: x * int(x > 1.0))(3.0)) == 1.0


def test_data_dependent_shapes_on_values() -> None:
    g = tg.grad(lambda x: tg.sum(x[x > 1.5] ** 2))(np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(g, [0.0, 4.0, 6.0])


def test_numpy_conversion_inside_grad_is_a_constant() -> None:
    def f(x: Any) -> Any:
        return x * np.asarray(x)

    assert float(tg.grad(f)(3.0)) == 3.0


def test_closures_and_shared_nodes() -> None:  # AD11, AD14
    assert float(tg.grad(lambda x: tg.grad(lambda y: x * y * y)(x))(3.0)) == 12.0
    assert float(tg.grad(lambda x: x * tg.grad(lambda y: x + y)(1.0))(5.0)) == 1.0

    def shared(x: Any) -> Any:
        y = tg.sin(x)
        return y * y + y * x

    x = 0.7
    expected = 2 * np.sin(x) * np.cos(x) + np.cos(x) * x + np.sin(x)
    assert float(tg.grad(shared)(x)) == pytest.approx(expected, rel=1e-15)


def test_perturbations_are_not_confused() -> None:
    # d/dx (x * d/dy (x + y)) = 1; a confused tag gives 2 (Siskind and Pearlmutter 2005)
    assert float(tg.grad(lambda x: x * tg.grad(lambda y: x + y)(1.0))(1.0)) == 1.0
    x = tg.asarray(2.0)
    assert float(tg.grad(lambda t: t * x)(x)) == 2.0, "the same array as argument and capture"
    assert float(tg.grad(lambda a, b: a * b, argnums=0)(x, x)) == 2.0


def test_higher_orders() -> None:
    f: Any = lambda x: x * x * x * x  # noqa: E731
    for expected in (32.0, 48.0, 48.0, 24.0, 0.0):
        f = tg.grad(f)
        assert float(f(2.0)) == expected


def test_complex_gradient_descends() -> None:  # numerics 12
    z = np.array([1 + 2j, -0.5j])
    g = tg.grad(lambda z: tg.sum(tg.real(z * tg.conj(z))))(z)
    np.testing.assert_allclose(g, 2 * z)
    assert float(tg.real(tg.grad(lambda z: tg.imag(z))(1 + 1j))) == 0.0
    assert complex(tg.grad(lambda z: tg.imag(z))(1 + 1j)) == 1j


def test_holomorphic() -> None:
    d = tg.grad(lambda z: z * z * 1j, holomorphic=True)(1 + 2j)
    assert complex(d) == 2j * (1 + 2j)
    with raises_here(TypeError, "holomorphic=True: expected complex arguments, got z: f64"):
        tg.grad(lambda z: z * 1j, holomorphic=True)(1.0)  # here
    with raises_here(TypeError, "holomorphic=True: expected a complex result, got f64"):
        tg.grad(lambda z: tg.real(z), holomorphic=True)(1j)  # here


def test_bool_and_integer_leaves() -> None:
    p = {"x": 2.0, "on": True, "mask": tg.asarray([True, False])}
    g = tg.grad(lambda p: tg.sum(tg.where(p["mask"], p["x"], 0.0)))(p)
    assert (float(g["x"]), g["on"], g["mask"]) == (1.0, None, None)
    q = {"x": 2.0, "n": np.arange(3)}
    with raises_here(
        TypeError, r"grad\(<lambda>\): expected a floating.* got q\['n'\]: i64\[3\]; .*astype"
    ):
        tg.grad(lambda q: q["x"] * q["n"][1])(q)  # here
    g = tg.grad(lambda q: q["x"] * q["n"][2], allow_int=True)(q)
    assert (float(g["x"]), g["n"]) == (2.0, None)


@pytest.mark.parametrize(
    ("fun", "x", "error", "text"),
    [
        (
            lambda x: x,
            np.ones(3),
            tg.ShapeError,
            r"a scalar, got f64\[3\]; reduce it with tg.sum .*jac",
        ),
        (lambda x: x, np.ones(1), tg.ShapeError, r"a scalar, got f64\[1\]"),
        (lambda x: (x, x), 1.0, TypeError, r"one scalar, got \(\*, \*\); has_aux=True"),
        (lambda x: x, np.arange(3), tg.DTypeError, r"got x: i64\[3\]; convert it with astype"),
        (lambda x: x, True, tg.DTypeError, r"got x: bool\[\]; convert it with astype"),
        (
            lambda x: x > 1,
            1.0,
            tg.DTypeError,
            r"floating results, got the result: bool\[\].* no derivative",
        ),
        (
            lambda x: tg.argmax(x),
            np.ones(3),
            tg.DTypeError,
            r"floating results, got the result: i64\[\]",
        ),
        (
            lambda x: x * 1j,
            1.0,
            tg.DTypeError,
            r"a real result, got c128\[\]~?; take its real part",
        ),
        (lambda x: "a", 1.0, tg.DTypeError, r"the result: expected arrays.* got str 'a'"),
        (lambda x: x, "a", tg.DTypeError, r"argument x: expected an array.* got str 'a'"),
    ],
)
def test_errors(fun: Any, x: Any, error: type[Exception], text: str) -> None:
    with raises_here(error, text):
        tg.grad(fun)(x)  # here
    with raises_here(error, text):
        tg.jit(tg.value_and_grad(fun))(x) if not isinstance(x, str) else tg.grad(fun)(x)  # here


def test_an_argument_named_twice() -> None:
    for mode in (tg.grad, tg.jacfwd, tg.jacrev, tg.hessian):
        for numbers in ((0, 0), (1, -1)):
            with raises_here(ValueError, "argnums: expected each argument once"):
                mode(lambda x, y: x * y, argnums=numbers)(1.0, 2.0)  # here


def test_argnums_out_of_range() -> None:
    with raises_here(ValueError, "argnums: expected positions among 1 positional.* got 2"):
        tg.grad(lambda x: x, argnums=2)(1.0)  # here
    with raises_here(ValueError, "arguments given by keyword are not differentiated"):
        tg.grad(lambda x: x)(x=1.0)  # here


def test_stop_gradient() -> None:
    assert float(tg.grad(lambda x: x * tg.stop_gradient(x))(3.0)) == 3.0
    tree = tg.stop_gradient({"a": 1.0, "b": [tg.ones(2), None]})
    assert tg.tree.structure(tree) == tg.tree.structure({"a": 1.0, "b": [1.0, None]})


def test_names_and_docs_are_kept() -> None:
    def loss(x: Any) -> Any:
        """How bad."""
        return x

    for transformed in (tg.grad(loss), tg.value_and_grad(loss), tg.jacobian(loss), tg.vmap(loss)):
        assert (transformed.__name__, transformed.__doc__) == ("loss", "How bad.")
        assert transformed.__wrapped__ is loss


def test_exception_in_the_function_leaves_no_marks() -> None:
    from tilegrad.engine.tracing import MARKS, RUNNING

    def bad(x: Any) -> Any:
        raise RuntimeError("mine")

    for transform in (tg.grad, tg.jit, tg.vmap, tg.jacobian):
        with pytest.raises(RuntimeError, match="mine"):
            transform(bad)(np.ones(2))
    assert not MARKS
    assert RUNNING.get() == ()
