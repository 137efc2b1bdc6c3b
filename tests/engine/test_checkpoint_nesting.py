"""checkpoint around and inside loops, branches, custom rules and random bits: the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from ways import same_trees

import tilegrad as tg

X = np.random.default_rng(0).standard_normal((5, 4))


START = np.linspace(0.2, 0.9, 3)
STEPS = np.linspace(0.1, 1, 12).reshape(4, 3)


@tg.custom_vjp
def doubled(x):
    """Sine with twice its derivative: who looks into it would notice."""
    return tg.sin(x)


doubled.defvjp(lambda x: (tg.sin(x), x), lambda x, c: (2 * c * tg.cos(x),))


@tg.custom_jvp
def tripled(x):
    return tg.sin(x)


tripled.defjvp(lambda x, dot: (tripled(x[0]), 3 * dot[0] * tg.cos(x[0])))


def scanned(wrap):
    def step(c, x):
        return tg.sin(c * x) + c * 0.5, c * x

    def run(c):
        c, ys = tg.scan(wrap(step), c, STEPS)
        return tg.sum(c) + tg.sum(ys)

    return run


def branching(wrap):
    yes = wrap(lambda c: tg.sum(tg.sin(c) * c))
    return lambda c: tg.cond(tg.sum(c) > 0, yes, lambda c: tg.sum(tg.cos(c)), c)


def looping(wrap):
    step = wrap(lambda s: s * 1.3 + 0.1 * tg.sin(s))
    return lambda c: tg.sum(tg.while_loop(lambda s: tg.sum(s) < 50.0, step, c))


def ruled(rule):
    return lambda wrap: wrap(lambda c: tg.sum(tg.exp(rule(c)) * c))


INNER = [scanned, branching, looping, ruled(doubled), ruled(tripled)]


@pytest.mark.parametrize("make", INNER, ids=["scan", "cond", "while", "custom_vjp", "custom_jvp"])
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_with_loops_branches_and_rules(make, outside, second):
    plain = make(lambda f: f)
    wrapped = tg.checkpoint(plain) if outside else make(tg.checkpoint)
    transform = tg.hessian if second else tg.grad
    if second and make is INNER[3]:
        transform = lambda f: tg.jacrev(tg.grad(f))  # noqa: E731 - the rule tells only the reverse
    expected = tg.jit(transform(plain))(START)
    assert np.all(np.isfinite(expected))
    same_trees(tg.jit(transform(wrapped))(START), expected)


def test_under_vmap_in_a_loop():
    per_example = [
        tg.vmap(tg.grad(scanned(wrap)))(np.stack([START, 2 * START]))
        for wrap in (lambda f: f, tg.checkpoint)
    ]
    same_trees(per_example[1], per_example[0])


def test_random_bits_are_drawn_again_as_they_were():
    # Counter-based: a mask is a function of its key, so what is computed again agrees (row AD25).
    def dropout(x, key):
        state = key
        for _ in range(2):
            state = (state * np.uint64(6364136223846793005)) + np.uint64(1442695040888963407)
        counter = tg.arange(x.size, dtype="uint64").reshape(x.shape)
        keep = ((counter * state) >> np.uint64(33)) % np.uint64(2) == np.uint64(0)
        return tg.sum(tg.where(keep, tg.exp(x), 0.0) ** 2)

    key = tg.asarray(np.uint64(12345))
    plain, checked = (tg.jit(tg.grad(f)) for f in (dropout, tg.checkpoint(dropout)))
    found = checked(X, key)
    same_trees(found, plain(X, key))
    assert 0 < int(tg.sum(tg.asarray(found) == 0)) < X.size
