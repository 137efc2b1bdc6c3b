"""The ways to run one function of arrays: eagerly, compiled with one or two threads, mapped.

A case holds for each of them with the same bits, so tests of ``tests/cases`` run every function
through :func:`in_every_way` and get one result.
"""

import numpy as np

import tilegrad as tg

__all__ = ["WAYS", "in_every_way", "same_bits", "same_trees", "ulps"]


def _eager(f, arrays):
    return f(*arrays)


def _compiled(threads):
    def run(f, arrays):
        with tg.config(num_threads=threads):
            return tg.eval(tg.jit(f)(*arrays))

    return run


def _mapped(f, arrays):
    """One example of three equal ones; the others have to be the same."""
    stacked = [np.stack([np.asarray(x)] * 3) for x in arrays]
    results = tg.tree.map(np.asarray, tg.vmap(f)(*stacked))
    for leaf in tg.tree.leaves(results):
        for k in (1, 2):
            same_bits(leaf[k], leaf[0])
    return tg.tree.map(lambda x: x[2], results)


WAYS = {"eager": _eager, "jit": _compiled(1), "jit, 2 threads": _compiled(2), "vmap": _mapped}


def in_every_way(f, *arrays, ways=tuple(WAYS)):
    """``f(*arrays)`` as NumPy arrays, after all ways gave the same bits and dtypes."""
    arrays = [tg.asarray(x) for x in arrays]
    first = None
    for way in ways:
        result = tg.tree.map(np.asarray, WAYS[way](f, arrays))
        if first is None:
            first = result
            continue
        assert tg.tree.structure(result) == tg.tree.structure(first), way
        for x, y in zip(tg.tree.leaves(result), tg.tree.leaves(first), strict=True):
            same_bits(x, y, way)
    return first


def same_trees(a, b):
    """Leaves of equal dtype, shape and bits, also those of NaNs."""
    a, b = tg.tree.leaves(a), tg.tree.leaves(b)
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert x.dtype == y.dtype
        assert x.shape == y.shape
        assert x.tobytes() == y.tobytes()


def same_bits(got, expected, note=""):
    """Equal dtype, shape and bits; every NaN is the same."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype, (note, got.dtype, expected.dtype)
    np.testing.assert_array_equal(got, expected, err_msg=note, strict=True)
    if got.dtype.kind == "f":
        number = ~np.isnan(expected)
        signs = np.signbit(got) == np.signbit(expected)
        assert (signs | ~number).all(), (note, got, expected)


def ulps(got, exact):
    """Largest distance from exact values (mpmath numbers) in units of the last place."""
    got = np.asarray(got)
    worst = 0.0
    for value, right in zip(got.reshape(-1), exact, strict=True):
        place = float(np.spacing(np.abs(got.dtype.type(float(right)))))
        worst = max(worst, float(abs(right - float(value))) / place)
    return worst
