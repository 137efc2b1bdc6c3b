"""``pure_callback``: Python functions inside programs."""

import numpy as np
import pytest

import tilegrad as tg

X = np.array([0.3, -1.2, 2.0])
SCALAR = tg.ShapeDtype(())


def doubled(x, **options):
    return tg.pure_callback(lambda v: 2 * v, tg.ShapeDtype(x.shape, x.dtype), x, **options)


def test_values_eagerly_and_compiled():
    f = lambda x: 1 + doubled(x)  # noqa: E731
    np.testing.assert_array_equal(f(tg.asarray(X)), 1 + 2 * X)
    np.testing.assert_array_equal(tg.jit(f)(X), 1 + 2 * X)
    assert "pure_callback" in tg.jit(f).lower(X).as_text("optimized")


def test_it_is_called_at_once_and_then_at_each_call():
    calls = []

    def look(x):
        calls.append(float(x))
        return x

    tg.pure_callback(look, SCALAR, 1.0)
    assert calls == [1.0]
    f = tg.jit(lambda x: tg.pure_callback(look, SCALAR, x) + 1)
    assert [float(f(v)) for v in (2.0, 3.0)] == [3.0, 4.0]
    assert calls == [1.0, 2.0, 3.0]


def test_what_nobody_wants_is_not_called():
    g = tg.jit(lambda x: (tg.pure_callback(lambda v: pytest.fail("called"), SCALAR, x), x)[1])
    assert float(g(1.0)) == 1.0


def test_trees_options_and_several_results():
    def split(pair, *, scale, how):
        a, b = pair["a"], pair["b"]
        assert how == "fast"
        assert type(a) is np.ndarray
        return {"sum": (a + b) * scale, "count": np.int64(a.size)}

    types = {"sum": tg.ShapeDtype((3,)), "count": tg.ShapeDtype((), "int64")}
    call = lambda a, b: tg.pure_callback(split, types, {"a": a, "b": b}, scale=b[0], how="fast")  # noqa: E731
    for f in (call, tg.jit(call)):
        out = f(X, tg.asarray(X + 1))
        np.testing.assert_allclose(out["sum"], (2 * X + 1) * (X[0] + 1), rtol=1e-15)
        assert int(out["count"]) == 3


def test_results_are_checked():
    types = tg.ShapeDtype((3,))
    for result, kind, message in [
        (np.ones(2), tg.ShapeError, r"the result: expected f64\[3\], got float64\[2\]"),
        (np.ones(3, int), tg.DTypeError, r"the result: expected f64\[3\], got int64\[3\]"),
        ((np.ones(3),), TypeError, r"expected the structure \*, got \(\*,\)"),
    ]:
        for f in (lambda x: x, tg.jit):
            call = f(lambda x, r=result: tg.pure_callback(lambda v: r, types, x))
            with pytest.raises(kind, match=message) as found:
                call(X).block_until_ready()
            assert "pure_callback(<lambda>)" in str(found.value)
            assert "test_callbacks.py" in str(found.value)


def test_results_and_operands_are_safe_to_keep():
    """Arrays that a callback keeps are its own; it cannot write into ours."""
    kept = []

    def keep(x):
        kept.append(x)
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 1.0
        return x

    f = tg.jit(lambda x: tg.pure_callback(keep, tg.ShapeDtype((3,)), x * 2) + x)
    f(X)
    f(X + 1)
    np.testing.assert_array_equal(kept, [2 * X, 2 * X + 2])


def test_exceptions_pass():
    def refuse(x):
        raise KeyError("no such entry")

    f = tg.jit(lambda x: tg.pure_callback(refuse, SCALAR, x))
    with pytest.raises(KeyError, match="no such entry"):
        f(1.0)


def test_tilegrad_inside_a_callback():
    inner = tg.jit(lambda x: tg.sin(x) * 2)
    f = tg.jit(lambda x: tg.pure_callback(lambda v: np.asarray(inner(v)), SCALAR, x) + 1)
    np.testing.assert_allclose(float(f(0.3)), 2 * np.sin(0.3) + 1, rtol=1e-15)


# ----------------------------------------------------------------------------------------- vmap


@pytest.mark.parametrize(
    ("method", "shapes"),
    [
        ("sequential", [((), ())] * 3),
        ("expand_dims", [((3,), (1,))]),
        ("broadcast_all", [((3,), (3,))]),
    ],
)
def test_methods_of_vmap(method, shapes):
    seen = []

    def add(a, b):
        seen.append((a.shape, b.shape))
        return a + b

    f = lambda a, b: tg.pure_callback(add, SCALAR, a, b, vmap_method=method)  # noqa: E731
    mapped = tg.vmap(f, (0, None))
    for g in (mapped, tg.jit(mapped)):
        seen.clear()
        np.testing.assert_array_equal(g(X, 2.0), X + 2)
        assert seen == shapes
    twice = tg.vmap(tg.vmap(f, (0, None)), (None, 0))
    np.testing.assert_array_equal(twice(X, X[:2]), X + X[:2, None])


def test_without_a_method_vmap_is_refused():
    with pytest.raises(tg.UnsupportedError, match="pass vmap_method='sequential'"):
        tg.vmap(doubled)(X)
    with pytest.raises(ValueError, match="vmap_method: expected one of None, 'sequential'"):
        doubled(tg.asarray(X), vmap_method="fast")
    shared = tg.vmap(lambda x, y: x + doubled(y), (0, None))  # nothing to map there
    np.testing.assert_array_equal(shared(X, tg.asarray(1.0)), X + 2)


def test_wrong_shape_for_all_examples():
    f = lambda x: tg.pure_callback(lambda v: np.ones(2), SCALAR, x, vmap_method="expand_dims")  # noqa: E731
    with pytest.raises(tg.ShapeError, match=r"the result: expected f64\[3\], got float64\[2\]"):
        np.asarray(tg.vmap(f)(X))


# -------------------------------------------------------------------------------- derivatives


def test_no_derivative_without_a_rule():
    with pytest.raises(tg.UnsupportedError, match="wrap the call in a function with custom_jvp"):
        tg.grad(lambda x: tg.sum(doubled(x)))(X)
    quiet = tg.grad(lambda x: tg.sum(x * doubled(tg.stop_gradient(x))))
    np.testing.assert_array_equal(quiet(X), 2 * X)


def test_with_a_rule():
    @tg.custom_jvp
    def f(x):
        return tg.pure_callback(np.sin, tg.ShapeDtype(x.shape), x, vmap_method="sequential")

    f.defjvps(lambda t, y, x: tg.cos(x) * t)
    np.testing.assert_allclose(tg.vmap(tg.grad(f))(X), np.cos(X), rtol=1e-15)
    np.testing.assert_allclose(tg.jit(tg.vmap(tg.grad(f)))(X), np.cos(X), rtol=1e-15)
    tg.check_grads(f, (X,), order=2)


def test_result_types_are_types():
    with pytest.raises(TypeError, match=r"result_types: expected types, .* got str 'f8'"):
        tg.pure_callback(np.sin, "f8", 1.0)
    np.testing.assert_array_equal(tg.pure_callback(np.sin, np.zeros(3), X), np.sin(X))
