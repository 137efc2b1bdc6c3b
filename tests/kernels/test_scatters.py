"""Scatters: writes at run-time places, in index order, never beyond the array."""

from __future__ import annotations

import numpy as np
import pytest
from guarded import run_guarded
from plans import plan_of, run, same

from tilegrad.ir import ops
from tilegrad.ir.dtypes import ALL
from tilegrad.ir.ops.leaves import iota
from tilegrad.ir.ops.scatter import scatter
from tilegrad.ir.ops.shape import transpose

MERGES = {
    "set": lambda a, b: b,
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "min": np.minimum,
    "max": np.maximum,
}


def one_by_one(x, updates, indices, axes, how, mode="raise"):
    """Each update in index order; what numerics 9 says."""
    out = x.copy()
    shape = indices[0].shape
    rest = [d for d in range(x.ndim) if d not in axes]
    for at in np.ndindex(shape):
        place = [slice(None)] * x.ndim
        inside = True
        for d, index in zip(axes, indices, strict=True):
            n, i = x.shape[d], int(index[at])
            if mode == "clip":
                i = min(max(i, 0), n - 1)
            elif mode == "wrap":
                i %= n
            else:
                inside &= -n <= i < n
            place[d] = i
        if inside:
            assert updates[at].shape == tuple(x.shape[d] for d in rest)
            with np.errstate(all="ignore"):
                out[tuple(place)] = MERGES[how](out[tuple(place)], updates[at])
    return out


def draw(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    x = rng.integers(0, 9, shape) / (4 if np.dtype(dtype).kind in "fc" else 1)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.integers(0, 9, shape)
    return x.astype(dtype)


CASES = {
    "vector": ((30,), [(50,)], (0,)),
    "rows": ((9, 21), [(40,)], (0,)),
    "columns": ((21, 9), [(40,)], (1,)),
    "elements": ((9, 21), [(40,), (40,)], (0, 1)),
    "elements crossed": ((9, 21), [(40,), (40,)], (1, 0)),
    "middle": ((4, 9, 5), [(3, 8)], (1,)),
    "one": ((9, 21), [()], (0,)),
    "nothing": ((9, 21), [(0,)], (0,)),
    "few": ((3,), [(7,)], (0,)),
}


def make(name, seed=0, beyond=0):
    shape, index_shapes, axes = CASES[name]
    rng = np.random.default_rng(seed)
    indices = [
        rng.integers(-shape[d] - beyond, shape[d] + beyond, s)
        for d, s in zip(axes, index_shapes, strict=True)
    ]
    indices = [np.asarray(i) for i in indices]
    rest = tuple(n for d, n in enumerate(shape) if d not in axes)
    return shape, indices, axes, (*index_shapes[0], *rest)


@pytest.mark.parametrize("how", MERGES)
@pytest.mark.parametrize("name", CASES)
def test_in_index_order(name, how):
    shape, indices, axes, update_shape = make(name)
    x, u = (
        np.random.default_rng(k).standard_normal(s) for k, s in enumerate((shape, update_shape))
    )
    got = run(lambda x, u, *i: scatter(x, u, *i, axes=axes, how=how), x, u, *indices)
    same(got, one_by_one(x, u, indices, axes, how))


@pytest.mark.parametrize("mode", ["clip", "wrap", "fill"])
@pytest.mark.parametrize("name", [n for n in CASES if n != "nothing"])
def test_modes(name, mode):
    shape, indices, axes, update_shape = make(name, beyond=12)
    x, u = (
        np.random.default_rng(k).standard_normal(s) for k, s in enumerate((shape, update_shape))
    )
    for how in ("set", "add"):
        got = run(
            lambda x, u, *i, h=how: scatter(x, u, *i, axes=axes, how=h, mode=mode), x, u, *indices
        )
        same(got, one_by_one(x, u, indices, axes, how, mode))


@pytest.mark.parametrize("how", MERGES)
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_dtypes(dtype, how):
    if dtype.is_complex and how in ("min", "max"):
        return  # complex numbers have no order: the type rule refuses it
    shape, indices, axes, update_shape = make("rows")
    x, u = draw(shape, dtype.numpy, 0), draw(update_shape, dtype.numpy, 1)
    if dtype.is_bool and how not in ("set", "min", "max"):
        return
    got = run(lambda x, u, i: scatter(x, u, i, axes=axes, how=how), x, u, *indices)
    expected = one_by_one(x, u, indices, axes, how).astype(dtype.numpy)
    if dtype.is_complex and how == "mul":  # NumPy's own scalar and vector products differ
        np.testing.assert_allclose(got, expected, rtol=1e-6 if dtype.itemsize == 8 else 1e-14)
    else:
        same(got, expected)


@pytest.mark.parametrize("name", CASES)
def test_a_scatter_writes_only_into_its_array(name):
    shape, indices, axes, update_shape = make(name, beyond=40)
    x, u = (
        np.random.default_rng(k).standard_normal(s) for k, s in enumerate((shape, update_shape))
    )
    plan = plan_of(lambda x, u, *i: scatter(x, u, *i, axes=axes, mode="fill"), x, u, *indices)
    for at_end in (True, False):
        (got,) = run_guarded(plan, (x, u, *indices), at_end=at_end)
        same(got, one_by_one(x, u, indices, axes, "set", "fill"))


@pytest.mark.parametrize("shape", [(0,), (0, 5), (7, 0)])
def test_nothing_to_write_into(shape):
    """An index into an empty axis is out of range: reported or dropped, never written."""
    x, i = np.zeros(shape), np.zeros(3, int)
    u = np.ones((3, *shape[1:]))
    fill = plan_of(lambda x, u, i: scatter(x, u, i, mode="fill"), x, u, i)
    strict = plan_of(lambda x, u, i: scatter(x, u, i), x, u, i)
    for at_end in (True, False):
        assert run_guarded(fill, (x, u, i), at_end=at_end)[0].shape == shape
        if shape[0] == 0 and u.size:
            with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
                run_guarded(strict, (x, u, i), at_end=at_end)
        else:
            assert run_guarded(strict, (x, u, i), at_end=at_end)[0].shape == shape


@pytest.mark.parametrize("bad", [30, -31, 10**9])
def test_an_index_out_of_range_is_reported(bad):
    x, u = np.zeros(30), np.ones(50)
    for place in (0, 25, 49):
        i = np.arange(50) % 30
        i[place] = bad
        with pytest.raises(
            IndexError, match=f"scatter: index {bad} is out of bounds for axis 0 with size 30"
        ):
            run(lambda x, u, i: scatter(x, u, i), x, u, i)
    assert not x.any()  # the operand is not touched


def test_the_operand_is_not_changed():
    x = np.zeros(30)
    plan = plan_of(lambda x, u, i: scatter(x, u, i, how="add"), x, np.ones(5), np.arange(5))
    plan.run([x, np.ones(5), np.arange(5)])
    assert not x.any()


def test_a_scatter_of_expressions_into_an_expression():
    rng = np.random.default_rng(0)
    x, u, i = rng.standard_normal((6, 20)), rng.standard_normal((20, 50)), rng.integers(0, 20, 50)

    def function(x, u, i):
        updates = ops.slice_axis(transpose(u), 1, 0, 6) * 2.0
        y = scatter(transpose(x) + 1.0, updates, i, how="add")
        return y, ops.sum_(y, 0)

    y, total = run(function, x, u, i)
    expected = one_by_one(x.T + 1.0, u.T[:, :6] * 2.0, [i], (0,), "add")
    same(y, expected)
    np.testing.assert_allclose(total, expected.sum(0), rtol=1e-13)


def test_scatters_one_after_the_other():
    rng = np.random.default_rng(0)
    x, u, i = rng.standard_normal(9), rng.standard_normal(40), rng.integers(-9, 9, 40)

    def function(x, u, i):
        y = scatter(x, u, i, how="add")
        z = scatter(y * 2.0, u, i)
        return z, y, scatter(y, -u, i, how="max")

    z, y, top = run(function, x, u, i)
    same(y, one_by_one(x, u, [i], (0,), "add"))
    same(z, one_by_one(y * 2.0, u, [i], (0,), "set"))
    same(top, one_by_one(y, -u, [i], (0,), "max"))


def test_the_same_bits_on_every_number_of_threads():
    rng = np.random.default_rng(0)
    x, u, i = (
        rng.standard_normal((50, 64)),
        rng.standard_normal((4000, 64)),
        rng.integers(-50, 50, 4000),
    )
    plan = plan_of(lambda x, u, i: scatter(ops.exp(x), u, i, how="add"), x, u, i)
    expected = one_by_one(run(ops.exp, x), u, [i], (0,), "add")
    for threads in (1, 2, 3):
        same(plan.run([x, u, i], threads)[0], expected)


def test_unique_indices_made_of_iota_need_no_check():
    x, u = np.zeros((40, 3)), np.ones((10, 3))
    got = run(lambda x, u: scatter(x, u, iota((10,)) * 3 + 1), x, u)
    expected = np.zeros((40, 3))
    expected[1:31:3] = 1.0
    same(got, expected)
