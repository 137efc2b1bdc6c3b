"""``donate_argnums``: deleted arrays, results in their memory, and nobody else's data harmed."""

import copy
import ctypes
import pickle

import numpy as np
import pytest
from numba import carray, njit, types
from numba.extending import intrinsic

import tilegrad as tg
from tilegrad.kernels.storage import LARGE

N = LARGE // 8 + 1000


def large(start=0.0):
    """A computed array of ours, large enough for its memory to be worth having."""
    return tg.eval(tg.arange(N, dtype="float64") + start)


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


def sgd(donate=(0,)):
    return tg.jit(lambda x, g: x - 0.5 * g, donate_argnums=donate)


def test_a_result_lies_in_the_memory_of_the_argument():
    x, g = large(), large(1.0)
    expected, old = np.asarray(x) - 0.5 * np.asarray(g), address(x)
    y = sgd()(x, g)
    assert address(y) == old
    np.testing.assert_array_equal(y, expected)
    assert x.is_deleted
    assert not g.is_deleted
    np.testing.assert_array_equal(g, np.arange(N) + 1.0)


def test_counted_allocations_of_a_donated_update():
    step = tg.jit(lambda x, i, v: x.at[i].set(v), donate_argnums=0)
    x = step(large(), 0, 1.0)
    with tg.counters() as count:
        for k in range(1, 5):
            x = step(x, k, -float(k))
        tg.eval(x)
    assert count.allocated_bytes < N  # the array itself has 8 N
    np.testing.assert_array_equal(np.asarray(x)[:6], [1, -1, -2, -3, -4, 5])
    np.testing.assert_array_equal(np.asarray(x)[6:], np.arange(6.0, N))


def uses():
    yield "operator", lambda x: x + 1.0
    yield "function", tg.sin
    yield "index", lambda x: x[0]
    yield "NumPy", np.asarray
    yield "float", lambda x: float(x[0])
    yield "eval", tg.eval
    yield "jit", tg.jit(lambda x: x + 1.0)
    yield "donating jit", lambda x: sgd()(x, x)
    yield "grad", tg.grad(lambda x: tg.sum(x * x))
    yield "vmap", tg.vmap(lambda x: x * x)
    yield "update", lambda x: x.at[0].set(1.0)
    yield "pickle", pickle.dumps
    yield "iteration", lambda x: next(iter(x))
    yield "dlpack", np.from_dlpack


@pytest.mark.parametrize("use", [pytest.param(use, id=name) for name, use in uses()])
def test_a_deleted_array_says_so(use):
    x = tg.ones(3) * 2.0
    sgd()(tg.eval(x), tg.ones(3))
    with pytest.raises(tg.DeletedError, match=r"f64\[3\].*donated to jit\(<lambda>\).*at .*\.py"):
        use(x)
    assert "deleted" in repr(x)
    assert "deleted" in str(x)
    assert (x.shape, x.dtype.name, copy.copy(x) is x) == ((3,), "float64", True)


def test_memory_that_somebody_sees_is_left_alone():
    g = large()

    def check(x, *held):
        before = [np.array(v) for v in held]
        y = sgd()(x, g)
        np.testing.assert_array_equal(y, np.arange(N) + 3.0 - 0.5 * np.arange(N))
        for now, then in zip(held, before, strict=True):
            np.testing.assert_array_equal(now, then)
        assert x.is_deleted

    x = large(3.0)
    check(x, np.asarray(x))
    x = large(3.0)
    check(x, np.asarray(x)[5:9])
    x = large(3.0)
    check(x, x * 2.0)  # still to be computed from it
    x = large(3.0)
    check(x, memoryview(np.asarray(x)))
    x = large(3.0)
    check(x, tg.jit(lambda v: v)(x))  # the same buffer in two arrays
    own = np.arange(N) + 3.0
    check(tg.asarray(own, copy=False), own)


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, tg.copy, tg.array, lambda x: tg.asarray(x, copy=True)]
)
def test_a_copy_outlives_the_donation(copied):
    """As with ``best = copy.deepcopy(parameters)`` before a step that takes them."""
    x, g = large(3.0), large()
    kept = copied(x)
    y = sgd()(x, g)
    assert x.is_deleted
    np.testing.assert_array_equal(kept, np.arange(N) + 3.0)
    np.testing.assert_array_equal(y, np.arange(N) + 3.0 - 0.5 * np.arange(N))


def test_numpy_arrays_are_never_written_to():
    x = np.arange(float(N))
    y = sgd((0, 1))(x, np.ones(N))
    np.testing.assert_array_equal(x, np.arange(float(N)))
    np.testing.assert_array_equal(y, x - 0.5)


def test_memory_that_numpy_does_not_own_is_not_written_to():
    """An array around a pointer, as C libraries make them: nobody knows who else has it."""

    @intrinsic
    def pointer(context, address):
        def cast(context, builder, signature, args):
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(types.float64)(types.intp), cast

    around = njit(lambda address: carray(pointer(address), (N,)))
    memory = (ctypes.c_double * N)(*range(N))
    foreign = around(ctypes.addressof(memory))
    assert foreign.base is None
    x = tg.asarray(foreign, copy=False)
    del foreign
    y = sgd()(x, large())
    np.testing.assert_array_equal(y, np.arange(N) * 0.5)
    np.testing.assert_array_equal(np.ctypeslib.as_array(memory), np.arange(float(N)))


def test_what_is_read_after_the_result_begins_is_not_overwritten():
    """Neighbours, other orders, reductions: values as without donation, to the bit."""
    rng = np.random.default_rng(0)
    square = rng.standard_normal((200, 200))
    programs = [
        lambda x: x[::-1] + x,
        lambda x: x.T - x,
        lambda x: x @ x,
        lambda x: x - tg.mean(x, axis=0),
        lambda x: x / tg.sum(x, axis=1, keepdims=True),
        lambda x: tg.cumsum(x, axis=0),
        lambda x: tg.sort(x, axis=1),
        lambda x: tg.roll(x, 1, axis=1),
        lambda x: (x + 1.0, x * 2.0),
        lambda x: (x, x + 1.0),
        lambda x: x.at[3].add(x[4]),
        lambda x: x.at[tg.asarray([0, 5, 0])].multiply(2.0),
        lambda x: tg.where(x > 0, x, x[0]),
    ]
    for program in programs:
        expected = tg.jit(program)(tg.asarray(square))
        got = tg.jit(program, donate_argnums=0)(tg.eval(tg.asarray(square) * 1.0))
        for a, b in zip(tg.tree.leaves(got), tg.tree.leaves(expected), strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_containers_static_arguments_and_keywords():
    f = tg.jit(
        lambda n, p, x: {k: v + n * x for k, v in p.items()}, static_argnums=0, donate_argnums=1
    )
    p = {"a": tg.ones(2) * 1.0, "b": tg.zeros(2) * 1.0}
    x = tg.eval(tg.ones(2) * 2.0)
    out = f(3, p, x)
    np.testing.assert_array_equal(out["a"], [7, 7])
    assert p["a"].is_deleted
    assert p["b"].is_deleted
    assert not x.is_deleted
    y = tg.eval(tg.ones(2) * 5.0)
    np.testing.assert_array_equal(f(3, {"a": y}, x=x)["a"], [11, 11])
    assert y.is_deleted


def test_inside_of_other_transforms_nothing_is_deleted():
    x = tg.eval(tg.arange(3.0) * 1.0)
    np.testing.assert_array_equal(tg.grad(lambda v: tg.sum(sgd()(v, v * v)))(x), 1 - np.arange(3.0))
    np.testing.assert_array_equal(tg.vmap(lambda v: sgd()(v, x))(x[None]), [np.arange(3.0) / 2])
    np.testing.assert_array_equal(tg.jit(lambda v: sgd()(v, x) + x)(x), 1.5 * np.arange(3.0))
    assert not x.is_deleted


def test_after_an_error_the_array_is_gone_and_the_next_call_works():
    step = tg.jit(lambda x, i: x.at[i].add(1.0), donate_argnums=0)
    x = large()
    with pytest.raises(IndexError, match=str(2 * N)):
        step(x, 2 * N)
    assert x.is_deleted
    assert float(step(large(), 2)[2]) == 3.0


def test_deleted_arrays_do_not_get_in_the_way_of_pending_ones():
    step = tg.jit(lambda x: x + 1.0, donate_argnums=0)
    with tg.config(pending_limit=4):
        kept, y = [], tg.zeros(3)
        for _ in range(40):
            y = y * 0.5 + 1.0
            kept.append(y)
            if len(kept) % 3 == 0:
                y = step(y)
    assert sum(x.is_deleted for x in kept) == 13
    a, b = tg.grad(lambda p: tg.sum(p[0] * p[1]))((tg.ones(3), tg.ones(3) * 2.0))
    step(a)
    np.testing.assert_array_equal(b, np.ones(3))


def test_a_number_that_is_no_parameter_is_refused():
    with pytest.raises(ValueError, match=r"donate_argnums: expected a number below 2, got 2"):
        tg.jit(lambda x, y: x, donate_argnums=2)
    with pytest.raises(ValueError, match=r"donate_argnums: expected .* got -3"):
        tg.jit(lambda x, y: x, donate_argnums=-3)
    x = tg.eval(tg.ones(2) * 1.0)
    tg.jit(lambda y, x: x + y, donate_argnums=-1)(1.0, x)
    assert x.is_deleted
