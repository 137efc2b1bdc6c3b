"""Cases of the group shape: reversed and partly sliced operands, their gradients."""

import itertools

import numpy as np
import pytest
from ways import in_every_way, same_bits

import tilegrad as tg

STEPS = [1, 2, -1, -2, 3, -3, 7, -7]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex128", "bool"])
@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::-1, :, 0],
        lambda a: a[::2, ::-3],
        lambda a: a[5:, 3:1:-1, ::-1],
        lambda a: a.transpose(2, 0, 1)[:, ::-1],
        lambda a: np.broadcast_to(a[:, :1], a.shape),
        lambda a: np.asfortranarray(a),
        lambda a: a[3, ::-1].T,
        lambda a: a[:0, ::-1],
    ],
)
def test_negstride(view, dtype):
    """NumPy arrays of any strides are borrowed as they are, and views of ours fuse."""
    a = (np.arange(1200) % 251).reshape(30, 20, 2).astype(dtype)
    ours, theirs = (lambda v: v * 2 - 1 if dtype != "bool" else v ^ True), view(a)
    same_bits(in_every_way(ours, theirs), ours(theirs))
    strided = tg.jit(ours)(theirs)  # without a copy by asarray
    same_bits(strided, ours(theirs))


def test_negstride_again_and_again():
    base = np.arange(1200.0).reshape(30, 20, 2)
    img = base[::-1, :, 0]
    f = tg.jit(lambda v: +v - 0.25)
    for _ in range(20):
        y = np.asarray(f(img))
        same_bits(y, img - 0.25)
    assert (y[0, 0], y[-1, -1]) == (1159.75, 37.75)
    same_bits(base, np.arange(1200.0).reshape(30, 20, 2))


@pytest.mark.parametrize("shape", [(6,), (5, 4)])
def test_negstride_inside(shape):
    """Slices of any step, and slices of slices, of a computed array."""
    x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    keys = [slice(None, None, s) for s in STEPS]
    keys += [slice(-2, 1, -1), slice(4, None, -2), slice(10, -10, -3), slice(2, 2), slice(-1, None)]

    def f(x):
        whole = x * x
        return [whole[k] + 1 for k in keys] + [whole[::-1][k][::-1] for k in keys]

    whole = x * x
    expected = [whole[k] + 1 for k in keys] + [whole[::-1][k][::-1] for k in keys]
    for got, right in zip(in_every_way(f, x), expected, strict=True):
        same_bits(got, right)


@pytest.mark.parametrize("step", STEPS)
def test_revgrad(step):
    """The gradient goes back to the places that were picked; second order and both modes too."""
    n = 9
    for start, stop in itertools.product([None, 1, -2], [None, 2, -3]):
        key = slice(start, stop, step)
        picked = np.arange(n)[key]
        weights = np.arange(1.0, 1 + len(picked))
        expected = np.zeros(n)
        expected[picked] = weights
        x = np.arange(1.0, 1 + n)

        def f(x, key=key, weights=weights):
            return tg.sum(tg.asarray(weights) * x[key])

        same_bits(tg.grad(f)(x), expected)
        if (start, stop) == (None, None):
            bar, forward, hessian = in_every_way(
                lambda x, f=f: (tg.grad(f)(x), tg.jacfwd(f)(x), tg.hessian(lambda x: f(x**3))(x)), x
            )
            same_bits(bar, expected)
            same_bits(forward, expected)
            np.testing.assert_array_equal(hessian, np.diag(6 * x * expected))


def test_revgrad_given_values():
    g = tg.grad(lambda x: tg.sum(tg.array([1.0, 2, 3]) * x[::-2]))(tg.arange(6.0))
    assert g.tolist() == [0, 3, 0, 2, 0, 1]
