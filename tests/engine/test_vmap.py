"""vmap: axes, prefixes, sizes, what is not mapped, errors."""

from typing import Any

import numpy as np
import pytest

import tilegrad as tg

from .lines import raises_here

X = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("out", [0, 1, -1])
def test_axes_against_a_loop(axis: int, out: int) -> None:  # BT01
    y = tg.vmap(lambda x: tg.sin(x) * x, in_axes=axis, out_axes=out)(X)
    rows = [np.sin(x) * x for x in np.moveaxis(X, axis, 0)]
    np.testing.assert_allclose(y, np.stack(rows, out), rtol=1e-15)


def test_prefixes_of_trees() -> None:
    def f(p: Any, y: Any, z: Any) -> Any:
        return {"s": p["a"] * y + p["b"][0], "t": (z, p["b"][1])}

    p = {"a": np.arange(3.0), "b": [np.ones((4, 3)), 5.0]}
    y = tg.vmap(
        f,
        in_axes=({"a": 0, "b": [1, None]}, None, 0),
        out_axes={"s": 1, "t": (0, None)},
    )(p, 2.0, np.arange(3))
    np.testing.assert_array_equal(y["s"], np.arange(3.0) * 2 + np.ones((4, 3)))
    np.testing.assert_array_equal(y["t"][0], np.arange(3))
    assert float(y["t"][1]) == 5.0
    q = {"a": 1.0, "b": [2.0, 3.0]}
    whole = tg.vmap(f, in_axes=(None, None, 0))(q, 2.0, np.arange(3))
    np.testing.assert_array_equal(whole["s"], [4.0] * 3)


def test_keyword_arguments_are_mapped_over_their_first_axis() -> None:
    y = tg.vmap(lambda x, *, k: x * k, in_axes=None)(2.0, k=np.arange(3.0))
    np.testing.assert_array_equal(y, [0.0, 2.0, 4.0])


def test_results_that_do_not_depend() -> None:  # case 83, BT03
    np.testing.assert_array_equal(tg.vmap(lambda x: 1.0)(tg.ones(3)), np.ones(3))
    assert tg.vmap(lambda x: 1.0)(tg.ones(3)).dtype is tg.float64
    assert tg.vmap(lambda x: 2 * x)(tg.ones((0, 3))).shape == (0, 3)
    c = tg.vmap(lambda x, y: y, in_axes=(0, None), out_axes=None)(tg.ones(3), tg.arange(2.0))
    np.testing.assert_array_equal(c, [0.0, 1.0])
    d = tg.vmap(lambda x, y: y, in_axes=(0, None), out_axes=1)(tg.ones(3), tg.arange(2.0))
    np.testing.assert_array_equal(d, [[0.0] * 3, [1.0] * 3])


def test_unmapped_work_is_done_once() -> None:  # BT02
    w = np.ones((5, 5))
    graph = tg.trace(tg.vmap(lambda x: (w @ w.T) @ x))(np.ones((7, 5)))
    shapes = [t.shape for node in graph.nodes() for t in node.types]
    assert all(shape.count(5) < 3 for shape in shapes)
    assert (7, 5, 5) not in shapes


def test_axis_size() -> None:
    np.testing.assert_array_equal(tg.vmap(lambda: 2.0, axis_size=3)(), [2.0] * 3)
    np.testing.assert_array_equal(tg.vmap(lambda x: x, in_axes=None, axis_size=2)(1.0), [1.0] * 2)
    with raises_here(ValueError, "expected a mapped argument, got none; .* axis_size="):
        tg.vmap(lambda x: x, in_axes=None)(1.0)  # here
    with raises_here(tg.ShapeError, "axis_size is 4, but got size 3 at axis 0 of argument x"):
        tg.vmap(lambda x: x, axis_size=4)(np.ones(3))  # here


def test_sizes_that_differ() -> None:  # case 85
    with raises_here(
        ValueError,
        r"one size for all mapped axes, got size 3 at axis 0 of argument a: f64\[3\] and "
        r"size 4 at axis 0 of argument b\['k'\]: f64\[4\]",
    ):
        tg.vmap(lambda a, b: a + b["k"])(tg.ones(3), {"k": tg.ones(4)})  # here


def test_out_axes_none_for_a_mapped_result() -> None:  # case 85
    with raises_here(ValueError, r"out_axes=None for the result\[1\], which is mapped"):
        tg.vmap(lambda x: (x, x), out_axes=(0, None))(tg.arange(3.0))  # here


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: tg.vmap(lambda x: x)(1.0), ValueError, "x: expected an axis.* in_axes=None"),
        (lambda: tg.vmap(lambda x: x, in_axes=3)(X), IndexError, r"in_axes of argument x: .*got 3"),
        (lambda: tg.vmap(lambda x: x, out_axes=4)(X), IndexError, r"out_axes of output: .*got 4"),
        (lambda: tg.vmap(lambda x: x, in_axes=(0, 0))(X), ValueError, "entry for each of 1 pos"),
        (
            lambda: tg.vmap(lambda x: x, in_axes=({"a": 0},))({"b": X}),
            ValueError,
            r"in_axes\[0\]: expected an int, None or the container \{'b': \*\}",
        ),
        (
            lambda: tg.vmap(lambda x: x, out_axes=(0, 0))(X),
            ValueError,
            r"out_axes: expected an int, None or the container \*, got \(0, 0\)",
        ),
        (lambda: tg.vmap(lambda x: "a")(X), tg.DTypeError, "got str 'a'"),
    ],
)
def test_errors(act: Any, error: type[Exception], text: str) -> None:
    with raises_here(error, text, line="lambda"):
        act()


def test_nested() -> None:
    y = tg.vmap(tg.vmap(lambda a, b: a * b, in_axes=(0, None)), in_axes=(None, 0))(
        np.arange(3.0), np.arange(2.0)
    )
    np.testing.assert_array_equal(y, np.outer(np.arange(2.0), np.arange(3.0)))
    y = tg.vmap(lambda x: tg.vmap(lambda z: x * z)(np.arange(3.0)))(np.arange(2.0))
    np.testing.assert_array_equal(y, np.outer(np.arange(2.0), np.arange(3.0)))


def test_negative_run_time_index() -> None:  # case 34
    a = tg.arange(20.0)[10:]
    y = tg.jit(lambda a: tg.vmap(lambda k: a[-k])(tg.arange(10)))(a)
    np.testing.assert_array_equal(y, [10, 19, 18, 17, 16, 15, 14, 13, 12, 11])
