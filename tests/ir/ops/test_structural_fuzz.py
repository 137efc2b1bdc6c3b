"""Random chains of structural ops: derivatives and batching of what they make together.

A chain is a list of (link, seed): every link draws its own axes, indices and windows from its seed
and the shape that it meets, so that nothing is filtered out and failures shrink to short chains.
After each link a tanh keeps the numbers small and every derivative nonlinear.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_checks import check_batch, check_jvp, check_transpose, tangent_function

from tilegrad.ir.ops import (
    concat,
    cummax,
    cummin,
    cumprod,
    cumsum,
    dot,
    dynamic_slice,
    dynamic_update_slice,
    flip,
    gather,
    linear_recurrence,
    logcumsumexp,
    max_,
    min_,
    pad,
    prod,
    scatter,
    slice_,
    sort,
    sum_,
    take_along_axis,
    tanh,
)
from tilegrad.ir.ops.shape import broadcast_to, reshape, transpose

MAX_SIZE = 60


def at(rng, x):
    return int(rng.integers(x.ndim))


def reducing(f):
    def link(rng, x):
        axes = tuple(int(d) for d in np.flatnonzero(rng.integers(0, 2, x.ndim)))
        return f(x, axes, bool(rng.integers(2)))

    return link


def running(f):
    return lambda rng, x: f(x, at(rng, x), bool(rng.integers(2)))


def sliced(rng, x):
    start = [int(rng.integers(n)) for n in x.shape]
    step = [int(rng.choice([-2, -1, 1, 2])) for _ in x.shape]
    return slice_(x, start, None, step)


def padded(rng, x):
    low, high, interior = rng.integers(0, 2, (3, x.ndim)).tolist()
    return pad(x, sum_(x), low, high, interior)


def gathered(rng, x):
    d = at(rng, x)
    n = x.shape[d]
    mode = str(rng.choice(["raise", "clip", "wrap", "fill"]))
    reach = n if mode == "raise" else 2 * n
    i = rng.integers(-reach, reach, rng.integers(1, 4, rng.integers(0, 3)))
    return gather(x, i, axes=(d,), mode=mode, **({"fill_value": 0.5} if mode == "fill" else {}))


def scattered(rng, x):
    """Updates that depend on ``x`` too, at repeated places."""
    d = at(rng, x)
    n = x.shape[d]
    mode = str(rng.choice(["raise", "clip", "wrap", "fill"]))
    reach = n if mode == "raise" else 2 * n
    i = rng.integers(-reach, reach, int(rng.integers(1, 5)))
    rest = tuple(extent for k, extent in enumerate(x.shape) if k != d)
    weights = rng.standard_normal((len(i), *rest))
    updates = tanh(sum_(x, d)) * weights
    how = str(rng.choice(["set", "add", "mul", "min", "max"]))
    return scatter(x, updates, i, axes=(d,), how=how, mode=mode)


def windowed(rng, x):
    sizes = [int(rng.integers(1, n + 1)) for n in x.shape]
    starts = rng.integers(-9, 9, x.ndim).tolist()
    window = dynamic_slice(x, *starts, sizes=sizes)
    return dynamic_update_slice(x * x, window, *rng.integers(-9, 9, x.ndim).tolist())


def multiplied(rng, x):
    """With itself or with constants, over a random axis, with a batch axis where there are two."""
    d = at(rng, x)
    batch = [k for k in range(x.ndim) if k != d][: int(rng.integers(2))]
    pair = (tuple(batch), tuple(batch))
    if rng.integers(2) and x.size // x.shape[d] <= 6:
        return dot(x, x, ((d,), (d,)), pair)
    return dot(x, rng.standard_normal(x.shape[: d + 1]), ((d,), (d,)), ((), ()))


def recurrent(rng, x):
    return linear_recurrence(x * rng.integers(0, 2, x.shape), x, at(rng, x), bool(rng.integers(2)))


def picked(rng, x):
    d = at(rng, x)
    return take_along_axis(x, rng.integers(0, x.shape[d], x.shape), d)


LINKS = {
    "sum": reducing(sum_),
    "prod": reducing(prod),
    "max": reducing(max_),
    "min": reducing(min_),
    "cumsum": running(cumsum),
    "cumprod": running(cumprod),
    "cummax": running(cummax),
    "cummin": running(cummin),
    "logcumsumexp": running(logcumsumexp),
    "sort": running(sort),
    "linear_recurrence": recurrent,
    "slice": sliced,
    "flip": lambda rng, x: flip(x, at(rng, x)),
    "pad": padded,
    "concat": lambda rng, x: concat([x, x * x], at(rng, x)),
    "gather": gathered,
    "take_along_axis": picked,
    "scatter": scattered,
    "dynamic": windowed,
    "dot": multiplied,
    "transpose": lambda rng, x: transpose(x, rng.permutation(x.ndim).tolist()),
    "broadcast": lambda rng, x: broadcast_to(x, (2, *x.shape)),
    "reshape": lambda rng, x: reshape(x, (-1, x.shape[0])),
}


def chain_of(links):
    def function(x):
        for name, seed in links:
            x = reshape(x, (1,)) if x.ndim == 0 else x
            y = LINKS[name](np.random.default_rng(seed), x)
            x = tanh(y) if y.size <= MAX_SIZE else x
        return x

    return function


chains = st.lists(
    st.tuples(st.sampled_from(sorted(LINKS)), st.integers(0, 2**16)), min_size=1, max_size=5
)
shapes = st.sampled_from([(3,), (2, 3), (3, 1, 2), (1,), (2, 2, 2)])


@settings(max_examples=150)
@given(chains, shapes, st.integers(0, 2**16))
def test_derivatives_of_chains(links, shape, seed):
    rng = np.random.default_rng(seed)
    f, x = chain_of(links), rng.standard_normal(shape)
    check_jvp(f, [x], rng, tol=1e-6)
    check_transpose(f, [x], rng, rtol=1e-11)
    second = tangent_function(f, [rng.standard_normal(shape)])
    check_jvp(second, [x], rng, tol=1e-5)
    check_transpose(second, [x], rng, rtol=1e-11)


def close(got, expected, err_msg):
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-12, err_msg=err_msg)


@settings(max_examples=100)
@given(chains, shapes, st.integers(0, 2**16))
def test_batching_of_chains_and_of_their_tangents(links, shape, seed):
    rng = np.random.default_rng(seed)
    f, x = chain_of(links), rng.standard_normal(shape)
    check_batch(f, [x], rng, equal=close)
    check_batch(tangent_function(f, [rng.standard_normal(shape)]), [x], rng, equal=close)
