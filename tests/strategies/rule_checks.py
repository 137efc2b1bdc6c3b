"""Checks of derivative and batching rules against what does not know them.

Every check runs a function of Values through the reference interpreter. ``check_jvp`` holds the
tangent against a central difference, ``check_transpose`` the cotangent against the tangent by
``Re <ct, J t> = Re <J^T ct, t>``, ``check_batch`` the batched web against a Python loop.
"""

from __future__ import annotations

import itertools

import numpy as np

from tilegrad.autodiff.batching import batch
from tilegrad.autodiff.forward import jvp
from tilegrad.autodiff.reverse import vjp
from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.graph import make
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops.fill import zeros_of
from tilegrad.ir.ops.leaves import constant, input_node
from tilegrad.ir.types import TensorType


def node_like(a):
    a = np.asarray(a)
    return input_node(TensorType(a.shape, as_dtype(a.dtype)), "x")


def evaluate(f, *arrays):
    """``f`` of Values at arrays, by the interpreter."""
    nodes = [node_like(a) for a in arrays]
    return interpret([f(*[n.out for n in nodes])], dict(zip(nodes, arrays, strict=True)))[0]


def moving(arrays):
    """Places of the operands that can be differentiated."""
    return [i for i, a in enumerate(arrays) if np.asarray(a).dtype.kind in "fc"]


def tangent(f, arrays, tangents):
    """J t: ``tangents`` has one entry an operand, None for zero."""
    return evaluate(lambda *xs: tangent_function(f, tangents)(*xs), *arrays)


def tangent_function(f, tangents):
    def function(*xs):
        moved = {x: constant(t) for x, t in zip(xs, tangents, strict=True) if t is not None}
        out = f(*xs)
        (dot,) = jvp([out], moved)
        return zeros_of(out.type) if dot is None else dot

    return function


def cotangents(f, arrays, ct, which=None):
    """J^T ct, one array an operand that can be differentiated."""
    which = moving(arrays) if which is None else which
    nodes = [node_like(a) for a in arrays]
    pullback = vjp([f(*[n.out for n in nodes])], [nodes[i].out for i in which])
    bars = pullback([constant(ct)])
    bars = [
        zeros_of(nodes[i].out.type) if b is None else b for i, b in zip(which, bars, strict=True)
    ]
    return interpret(bars, dict(zip(nodes, arrays, strict=True)))


def gradient(f, *arrays):
    """Gradient of a real scalar function by its first operand."""
    return cotangents(f, arrays, np.ones((), np.asarray(arrays[0]).dtype), [0])[0]


def direction(rng, a):
    a = np.asarray(a)
    t = rng.standard_normal(a.shape)
    if a.dtype.kind == "c":
        t = t + 1j * rng.standard_normal(a.shape)
    return t.astype(a.dtype)


def check_jvp(f, arrays, rng, *, step=1e-6, tol=1e-7):
    """Central difference along one random direction, and along each operand alone."""
    at = moving(arrays)
    for chosen in [at] + ([[i] for i in at] if len(at) > 1 else []):
        tangents = [
            direction(rng, a) if i in chosen else None
            for i, a in enumerate(map(np.asarray, arrays))
        ]
        ends = []
        for h in (step, -step):
            shifted = [a if t is None else a + h * t for a, t in zip(arrays, tangents, strict=True)]
            ends.append(evaluate(f, *shifted))
        difference = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(
            tangent(f, arrays, tangents),
            difference,
            rtol=tol,
            atol=tol,
            err_msg=f"operands {chosen}",
        )


def check_transpose(f, arrays, rng, *, rtol=1e-12):
    """The inner product test, for all operands and for each alone."""
    at = moving(arrays)
    for chosen in [at] + ([[i] for i in at] if len(at) > 1 else []):
        tangents = [
            direction(rng, a) if i in chosen else None
            for i, a in enumerate(map(np.asarray, arrays))
        ]
        out = tangent(f, arrays, tangents)
        ct = direction(rng, out)
        bars = cotangents(f, arrays, ct, chosen)
        left = np.sum(ct * out)
        right = sum(np.sum(b * tangents[i]) for b, i in zip(bars, chosen, strict=True))
        size = np.sum(np.abs(ct * out)) + 1e-300
        assert abs(np.real(left) - np.real(right)) <= rtol * size, (chosen, left, right)


def check_rules(f, arrays, rng, **tolerances):
    """First and second order, forward and reverse."""
    check_jvp(f, arrays, rng, **tolerances)
    check_transpose(f, arrays, rng)
    fixed = [direction(rng, a) if np.asarray(a).dtype.kind in "fc" else None for a in arrays]
    second = tangent_function(f, fixed)
    check_jvp(second, arrays, rng, **tolerances)
    check_transpose(second, arrays, rng)
    check_reverse_over_reverse(f, arrays, rng, **tolerances)


def check_reverse_over_reverse(f, arrays, rng, **tolerances):
    """The gradient of a weighted sum is itself differentiated, by forward and by reverse mode."""
    weights = direction(rng, evaluate(f, *arrays))
    for i in moving(arrays):

        def pulled(*xs, i=i):
            (bar,) = vjp([f(*xs)], [xs[i]])([constant(weights)])
            return zeros_of(xs[i].type) if bar is None else bar

        check_jvp(pulled, arrays, rng, **tolerances)
        check_transpose(pulled, arrays, rng)


def check_batch(f, arrays, rng, *, size=3, equal=np.testing.assert_array_equal):
    """Batched along every choice of axes (None, first, last) against a loop over the examples."""
    choices = [
        [None, 0] if np.asarray(a).ndim == 0 else [None, 0, np.asarray(a).ndim] for a in arrays
    ]
    for axes in itertools.product(*choices):
        if all(a is None for a in axes):
            continue
        stacked = [
            x if d is None else np.stack([_vary(x, k, rng) for k in range(size)], d)
            for x, d in zip(map(np.asarray, arrays), axes, strict=True)
        ]
        nodes = [node_like(a) for a in arrays]
        out = f(*[n.out for n in nodes])
        whole = [node_like(a) for a in stacked]
        mapped = {
            n.out: (w.out, d) for n, w, d in zip(nodes, whole, axes, strict=True) if d is not None
        }
        env = {
            (n if d is None else w): a
            for n, w, a, d in zip(nodes, whole, stacked, axes, strict=True)
        }
        ((value, at),) = batch([out], mapped, size)
        whole_result = interpret([value], env)[0]
        # No batch axis: the result depends on no batched operand and is the same for all.
        got = [whole_result] * size if at is None else np.moveaxis(whole_result, at, 0)
        for k in range(size):
            example = [
                x if d is None else np.take(x, k, d) for x, d in zip(stacked, axes, strict=True)
            ]
            equal(got[k], evaluate(f, *example), err_msg=f"axes {axes}, example {k}")


def _vary(x, k, rng):
    """Another example of the same kind: the elements in another order."""
    return x if k == 0 or x.ndim == 0 else rng.permutation(x.reshape(-1)).reshape(x.shape)


def apply(op, **params):
    """The function of Values that applies one op."""
    return lambda *xs: make(op, xs, **params)
