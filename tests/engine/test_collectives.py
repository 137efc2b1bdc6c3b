"""Functions along a named axis of vmap, against NumPy over all examples and JAX's figures."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilegrad as tg

from .lines import raises_here

X = np.array([1.0, 2.0, 3.0, 4.0])
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


def over(f: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return tg.vmap(f, axis_name="i", **options)(*args)


@pytest.mark.parametrize(
    ("collective", "reduce"),
    [(tg.psum, np.sum), (tg.pmean, np.mean), (tg.pmax, np.max), (tg.pmin, np.min)],
)
def test_values(collective: Any, reduce: Any) -> None:  # BT17
    x = np.random.default_rng(0).standard_normal((4, 3))
    expected = np.broadcast_to(reduce(x, axis=0), (4, 3))

    def f(x: Any) -> Any:
        return collective(x, "i")

    np.testing.assert_allclose(over(f, x), expected, rtol=1e-15)
    np.testing.assert_allclose(tg.jit(lambda x: over(f, x))(x), expected, rtol=1e-15)
    turned = over(f, x.T, in_axes=1, out_axes=-1)
    np.testing.assert_allclose(turned, expected.T, rtol=1e-15)


def test_places() -> None:
    x = np.ones((4, 3))
    np.testing.assert_array_equal(over(lambda x: tg.axis_index("i"), x), np.arange(4))
    assert over(lambda x: tg.axis_index("i"), x).dtype is tg.int64
    np.testing.assert_array_equal(over(lambda x: x[0] * tg.axis_size("i"), x), [4.0] * 4)


def test_trees_and_what_is_not_mapped() -> None:
    found = over(lambda x: tg.psum({"a": x, "b": (2.0, x > 2)}, "i"), X)
    np.testing.assert_array_equal(found["a"], [10.0] * 4)
    np.testing.assert_array_equal(found["b"][0], [8.0] * 4)  # a constant counts for each example
    np.testing.assert_array_equal(found["b"][1], [2] * 4)
    np.testing.assert_array_equal(over(lambda x, y: tg.psum(y, "i"), X, 5.0, in_axes=(0, None)), 20)
    alone = tg.vmap(lambda: tg.psum(1, "i"), axis_name="i", axis_size=3)()
    np.testing.assert_array_equal(alone, [3, 3, 3])
    one = tg.vmap(lambda x: tg.psum(x, "i"), axis_name="i", out_axes=None)(X)
    assert float(one) == 10.0  # the same for all: not mapped


def test_gathering_and_sending() -> None:
    """The figures are those of JAX 0.10.2."""
    x = np.arange(4.0).reshape(2, 2)
    gathered = over(lambda x: tg.all_gather(x, "i"), x)
    np.testing.assert_array_equal(gathered, [x, x])
    found = over(lambda x: tg.all_gather(x, "i", axis=1), x)
    np.testing.assert_array_equal(found, [x.T, x.T])
    found = over(
        lambda x: tg.all_gather(x, "i", axis=1, tiled=True), np.arange(8.0).reshape(2, 2, 2)
    )
    np.testing.assert_array_equal(found, [[[0, 1, 4, 5], [2, 3, 6, 7]]] * 2)
    found = over(lambda x: tg.psum_scatter(x, "i"), np.arange(9.0).reshape(3, 3))
    np.testing.assert_array_equal(found, [9, 12, 15])
    np.testing.assert_array_equal(over(lambda x: tg.ppermute(x, "i", RING), X), [4, 1, 2, 3])
    some = over(lambda x: tg.ppermute(x, "i", [(0, 2), (1, 0)]), X)
    np.testing.assert_array_equal(some, [2, 0, 1, 0])


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: tg.psum(x**3, "i"), [12, 48, 108, 192]),
        (lambda x: tg.pmean(x, "i") * x, [5, 5, 5, 5]),
        (lambda x: tg.sum(tg.all_gather(x, "i") * np.arange(4.0)) * x, [20, 30, 40, 50]),
        (lambda x: tg.ppermute(x, "i", RING) * x, [6, 4, 6, 4]),
    ],
)
def test_gradients_inside_are_those_of_jax(f: Any, expected: Any) -> None:
    np.testing.assert_allclose(over(tg.grad(f), X), expected, rtol=1e-14)
    np.testing.assert_allclose(tg.jit(lambda x: over(tg.grad(f), x))(X), expected, rtol=1e-14)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tg.exp(x - tg.pmax(x, "i")) / tg.psum(tg.exp(x - tg.pmax(x, "i")), "i"),
        lambda x: tg.ppermute(tg.sin(x), "i", RING) * tg.pmean(x * x, "i"),
        lambda x: tg.psum_scatter(x * np.arange(1.0, 5.0), "i") * x,
    ],
)
def test_derivatives_outside(f: Any) -> None:
    """Both modes, and second order, as tg.check_grads sees them."""
    tg.check_grads(lambda x: tg.sum(tg.sin(over(f, x))), (X / 3,), order=2)


def test_softmax() -> None:
    def f(x: Any) -> Any:
        e = tg.exp(x - tg.pmax(x, "i"))
        return e / tg.psum(e, "i")

    e = np.exp(X - 4)
    np.testing.assert_allclose(over(f, X), e / e.sum(), rtol=1e-15)
    s = e / e.sum()
    np.testing.assert_allclose(
        tg.jacobian(lambda x: over(f, x))(X), np.diag(s) - np.outer(s, s), rtol=1e-12, atol=1e-16
    )


def test_names_nest() -> None:
    y = np.arange(6.0).reshape(2, 3)

    def f(a: Any) -> Any:
        inner = tg.vmap(
            lambda b: (
                tg.psum(b, "i"),
                tg.psum(b, "j"),
                tg.psum(b, ("i", "j")),
                tg.axis_index(("i", "j")),
                tg.pmean(b, ("j", "i")),
            ),
            axis_name="j",
        )
        return inner(a)

    rows, columns, total, place, mean = over(f, y)
    np.testing.assert_array_equal(rows, [y.sum(0)] * 2)
    np.testing.assert_array_equal(columns, np.repeat(y.sum(1)[:, None], 3, 1))
    np.testing.assert_array_equal(total, np.full((2, 3), 15.0))
    np.testing.assert_array_equal(place, np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(mean, np.full((2, 3), 2.5))
    # A vmap without a name in between, and the innermost of two equal names.
    plain = over(lambda a: tg.vmap(lambda b: tg.psum(b, "i"))(a), y)
    np.testing.assert_array_equal(plain, [y.sum(0)] * 2)
    same = over(lambda a: over(lambda b: tg.psum(b, "i"), a), y)
    np.testing.assert_array_equal(same, np.repeat(y.sum(1)[:, None], 3, 1))


def test_in_loops_branches_and_jitted_functions() -> None:
    def steps(x: Any) -> Any:
        return tg.fori_loop(0, 3, lambda k, c: c + tg.pmean(c, "i"), x)

    np.testing.assert_allclose(over(steps, X), X + 2.5 * 7, rtol=1e-15)
    np.testing.assert_allclose(tg.jit(lambda x: over(steps, x))(X), X + 2.5 * 7, rtol=1e-15)

    def until(x: Any) -> Any:
        return tg.while_loop(lambda c: tg.pmax(c, "i") < 100.0, lambda c: 2 * c, x)

    np.testing.assert_array_equal(over(until, X), X * 32)

    def branch(x: Any) -> Any:
        return tg.cond(x > 2, lambda x: tg.psum(x, "i"), lambda x: -x, x)

    np.testing.assert_array_equal(over(branch, X), [-1, -2, 10, 10])
    inner = tg.jit(lambda x: x / tg.psum(x, "i"))
    for n in (4, 2):  # nothing of one vmap is left for the next
        np.testing.assert_array_equal(over(inner, X[:n]), X[:n] / X[:n].sum())
    with pytest.raises(NameError):
        inner(1.0)


def test_names_that_are_not_bound() -> None:
    with raises_here(NameError, "psum: .* got 'k'; bound here: none"):
        tg.psum(1.0, "k")  # here
    with raises_here(NameError, "axis_index: .* got 'k'; bound here: 'i'. vmap.f, axis_name='k'"):
        over(lambda x: tg.axis_index("k"), X)  # here
    over(lambda x: x, X)
    with pytest.raises(NameError):  # bound as long as the function runs
        tg.pmean(1.0, "i")


def test_wrong_permutations_and_shapes() -> None:
    with raises_here(ValueError, "at most once on either side"):
        over(lambda x: tg.ppermute(x, "i", [(0, 1), (2, 1)]), X)  # here
    with raises_here(ValueError, "each example of .0, 4."):
        over(lambda x: tg.ppermute(x, "i", [(0, 4)]), X)  # here
    with raises_here(ValueError, "expected 4 elements along axis 0, one an example, got f64"):
        over(lambda x: tg.psum_scatter(x, "i"), X)  # here
    with raises_here(IndexError, "all_gather: axis"):
        over(lambda x: tg.all_gather(x, "i", axis=2), X)  # here


# ------------------------------------------------------------------------------- vmap by chunks


@pytest.mark.parametrize("batch_size", [1, 3, 4, 10, 99])
def test_chunks_are_the_whole(batch_size: int) -> None:  # BT16
    rng = np.random.default_rng(0)
    x, y, w = rng.standard_normal((10, 3)), rng.standard_normal((2, 10)), rng.standard_normal(3)

    def f(p: Any, w: Any, *, z: Any) -> Any:
        return {"a": p["x"] * w + z, "b": (tg.sum(p["y"]), w[0] * p["y"])}

    options = {"in_axes": ({"x": 0, "y": 1}, None), "out_axes": {"a": 1, "b": 0}}
    args, z = ({"x": x, "y": y}, w), np.arange(10.0)
    whole = tg.vmap(f, **options)(*args, z=z)
    chunked = tg.vmap(f, **options, batch_size=batch_size)
    for found in (chunked(*args, z=z), tg.jit(chunked)(*args, z=z)):
        assert found["a"].shape == (3, 10)
        for a, b in zip(tg.tree.leaves(found), tg.tree.leaves(whole), strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    slope = tg.grad(lambda w: tg.sum(chunked({"x": x, "y": y}, w, z=z)["a"]))(w)
    np.testing.assert_allclose(slope, x.sum(0), rtol=1e-13)


def test_chunks_bound_the_memory() -> None:
    """Between 3 numbers and 1 result lie 40,000 each: 320 MB for 1000 examples at once."""

    def f(x: Any) -> Any:
        grid = tg.outer(tg.sin(x[0] * tg.arange(200.0)), tg.exp(x[1] * tg.linspace(0.0, 1.0, 200)))
        return tg.sum(tg.linalg.cholesky(grid @ grid.T + 200 * tg.eye(200))) * x[2]

    x = np.ones((1000, 3))

    def peak(**options: Any) -> float:
        return float(tg.jit(tg.vmap(f, **options)).lower(x).cost()["peak_memory"])

    assert peak(batch_size=10) < 0.02 * peak()


def test_chunk_errors() -> None:
    with raises_here(ValueError, "batch_size: expected a whole number of 1 or more, got 0"):
        tg.vmap(lambda x: x, batch_size=0)(X)  # here
    with raises_here(ValueError, "expected axis_name or batch_size, got both"):
        tg.vmap(lambda x: x, axis_name="i", batch_size=2)(X)  # here
    with raises_here(ValueError, "out_axes=None for the result: with batch_size every result is"):
        tg.vmap(lambda x: x, out_axes=None, batch_size=2)(X)  # here
