"""Cases of the group vmap: constant outputs, empty batches, sizes that do not match."""

import itertools

import numpy as np
import pytest
from ways import same_bits

import tilegrad as tg


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("compiled", [False, True])
def test_vmapconst(size, compiled):
    run = tg.jit if compiled else lambda f: f
    x = np.arange(3.0 * size).reshape(size, 3)
    k = tg.array([[1, 2], [3, 4]])

    def f(x):
        return 1.0, 2 * x, k, tg.zeros(2, dtype="float32"), None, tg.sum(x)

    a, b, c, d, e, total = run(tg.vmap(f))(x)
    same_bits(a, np.ones(size))
    same_bits(b, 2 * x)
    same_bits(c, np.broadcast_to(np.asarray(k), (size, 2, 2)))
    same_bits(d, np.zeros((size, 2), np.float32))
    assert e is None
    same_bits(total, x.sum(1))


@pytest.mark.parametrize("compiled", [False, True])
def test_vmapconst_without_an_output_axis(compiled):
    run = tg.jit if compiled else lambda f: f
    f = tg.vmap(lambda x, y: (y, x + y), in_axes=(0, None), out_axes=(None, 1))
    c, d = run(f)(np.ones(3), np.arange(2.0))
    same_bits(c, np.arange(2.0))
    same_bits(d, np.array([[1.0] * 3, [2.0] * 3]))
    nested = tg.vmap(tg.vmap(lambda x, y: y + 1, in_axes=(0, None)), in_axes=(None, 0))
    same_bits(
        run(nested)(np.ones(2), np.arange(3.0)), np.repeat(np.arange(1.0, 4.0), 2).reshape(3, 2)
    )
    g = tg.grad(lambda y: tg.sum(tg.vmap(lambda x: y)(np.ones(4))))(2.0)
    assert float(g) == 4.0
    assert float(tg.grad(lambda x: tg.sum(tg.vmap(lambda x: 1.0)(x * np.ones(3))))(2.0)) == 0.0


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_vmapconst_of_empty_batches(shape):
    """Nothing to compute, or nothing in each example: the shape is right, no sum is missed."""
    size, n = shape
    results = {tg.sum: (), tg.cumsum: (n,), tg.sort: (n,), tg.grad(tg.sum): (n,)}
    for f, expected in results.items():
        for run in (tg.vmap(f), tg.jit(tg.vmap(f))):
            same_bits(run(np.zeros(shape)), np.zeros((size, *expected)))
    same_bits(tg.vmap(lambda x: x @ x)(np.zeros(shape)), np.zeros(size))


@pytest.mark.parametrize("compiled", [False, True])
def test_vmaperr(compiled):
    run = tg.jit if compiled else lambda f: f
    with pytest.raises(ValueError, match="vmap") as caught:
        run(tg.vmap(lambda left, right: left + right))(tg.ones(3), tg.ones(4))
    for part in ("size 3", "argument left", "size 4", "argument right", "in_axes"):
        assert part in str(caught.value)
    with pytest.raises(ValueError, match=r"the result\[1\], which is mapped"):
        run(tg.vmap(lambda x: (x, x), out_axes=(0, None)))(tg.arange(3.0))
    with pytest.raises(ValueError, match=r"the result\['b'\], which is mapped"):
        run(tg.vmap(lambda x: {"a": x, "b": x}, out_axes={"a": 0, "b": None}))(tg.arange(3.0))


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (
            lambda: tg.vmap(lambda p: p["w"])({"w": tg.ones(3), "b": tg.ones(2)}),
            ["['w']", "['b']", "3", "2"],
        ),
        (lambda: tg.vmap(lambda x: x)(1.0), ["x", "float"]),
        (lambda: tg.vmap(lambda x: x, in_axes=2)(tg.ones((2, 3))), ["x", "2"]),
        (lambda: tg.vmap(lambda x, y: x, in_axes=(0,))(tg.ones(2), tg.ones(2)), ["in_axes"]),
        (lambda: tg.vmap(lambda x, y: x, in_axes=None)(tg.ones(2), tg.ones(2)), ["axis_size"]),
        (lambda: tg.vmap(lambda x: x, axis_size=4)(tg.ones(2)), ["4", "2"]),
        (lambda: tg.vmap(lambda x: x, out_axes=3)(tg.ones(2)), ["out_axes", "3"]),
    ],
)
def test_vmaperr_of_other_mistakes(call, parts):
    with pytest.raises((ValueError, TypeError, IndexError), match="vmap") as caught:
        tg.eval(call())
    message = str(caught.value)
    missing = [part for part in parts if part not in message]
    assert not missing, message
    assert "test_vmap.py" in message  # the user's line


@pytest.mark.parametrize(("first", "second"), list(itertools.product([0, 1, -1, None], repeat=2)))
def test_vmaperr_not_when_sizes_match(first, second):
    x, y = np.arange(9.0).reshape(3, 3), np.arange(9.0, 18.0).reshape(3, 3)
    if first is None and second is None:
        got = tg.vmap(lambda x, y: x - y, in_axes=(None, None), axis_size=3)(x, y)
        same_bits(got, np.stack([x - y] * 3))
        return
    got = tg.vmap(lambda x, y: tg.sum(x) - y, in_axes=(first, second))(x, y)
    pick = lambda a, axis, k: a if axis is None else np.take(a, k, axis)  # noqa: E731
    same_bits(got, np.stack([pick(x, first, k).sum() - pick(y, second, k) for k in range(3)]))
