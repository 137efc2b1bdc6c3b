"""checkpoint: the same bits in less memory. Peaks are the plan's, operations are counted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from ways import same_trees

import tilegrad as tg
from tilegrad.ir.errors import BudgetError, DTypeError

P = tg.checkpoint_policies
POLICIES = {
    "nothing": None,
    "everything": P.everything_saveable,
    "nothing_saveable": P.nothing_saveable,
    "dots": P.dots_saveable,
    "plain dots": P.dots_with_no_batch_dims_saveable,
    "cut": P.minimum_cut,
    "names": P.save_only_these_names("hidden"),
    "other names": P.save_any_names_but_these("hidden"),
    "all but names": P.save_anything_except_these_names("hidden"),
    "both": P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("hidden")),
}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 4))
W = RNG.standard_normal((4, 4))


def body(x, w):
    hidden = tg.checkpoint_name(tg.sin(x @ w), "hidden")
    return tg.sum(tg.exp(hidden) * hidden, axis=0) / tg.linalg.norm(w)


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: tg.grad(lambda x, w: tg.sum(f(x, w) ** 2), argnums=(0, 1)),
    "jvp": lambda f: lambda x, w: tg.jvp(f, (x, w), (x, w)),
    "jacrev": lambda f: tg.jacrev(f, argnums=1),
    "jacfwd": lambda f: tg.jacfwd(f, argnums=1),
    "hessian": lambda f: tg.hessian(lambda w: tg.sum(f(X, w))),
    "reverse over reverse": lambda f: tg.jacrev(tg.grad(lambda w: tg.sum(f(X, w)))),
    "vmap": lambda f: lambda x, w: tg.vmap(f, in_axes=(0, None))(x[:, None], w),
    "vmap of grad": lambda f: (
        lambda x, w: tg.vmap(tg.grad(lambda a, w: tg.sum(f(a, w)), argnums=1), in_axes=(0, None))(
            x[:, None], w
        )
    ),
    "grad of vmap": lambda f: tg.grad(
        lambda x, w: tg.sum(tg.vmap(f, in_axes=(None, 0))(x, tg.stack([w, w * 2]))), argnums=1
    ),
}


def check_bits(name, policy, found, expected):
    """Equal bit for bit, but for reverse over reverse through saved values.

    There the derivatives by a value as saved and as used go back by two ways and meet later.
    """
    saving = policy not in (None, P.nothing_saveable)
    if name == "reverse over reverse" and saving:
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    else:
        same_trees(found, expected)


ONE_ARGUMENT = ("hessian", "reverse over reverse")


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.usefixtures("interpreted")
def test_the_bits_are_those_without(name, policy):
    hold_against_plain(name, policy)


@pytest.mark.parametrize("policy", [None, P.minimum_cut], ids=["nothing", "cut"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_compiled_as_well(name, policy):
    hold_against_plain(name, policy)


def hold_against_plain(name, policy):
    args = (W,) if name in ONE_ARGUMENT else (X, W)
    transform = TRANSFORMS[name]
    expected = tg.jit(transform(body))(*args)
    checked = tg.checkpoint(body, policy=policy)
    check_bits(name, policy, tg.jit(transform(checked))(*args), expected)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_eagerly_as_well(name):
    args = (W,) if name in ONE_ARGUMENT else (X, W)
    transform = TRANSFORMS[name]
    same_trees(transform(tg.checkpoint(body))(*args), transform(body)(*args))


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
@pytest.mark.parametrize("name", ["grad", "reverse over reverse"])
@pytest.mark.usefixtures("interpreted")
def test_a_residual_connection_adds_up_in_the_same_order(name, policy):
    def inside(x, w):
        return x * tg.sin(x @ w) + tg.exp(x) * x

    def outside(f):
        return lambda x, w: x * f(x, w) + f(x * 2, w) + x

    args = (W,) if name in ONE_ARGUMENT else (X, W)
    transform = TRANSFORMS[name]
    found = tg.jit(transform(outside(tg.checkpoint(inside, policy=policy))))(*args)
    check_bits(name, policy, found, tg.jit(transform(outside(inside)))(*args))


def test_third_order():
    def f(x):
        return tg.exp(tg.sin(x)) * x

    g = tg.checkpoint(f)
    third = lambda h: tg.grad(tg.grad(tg.grad(h)))  # noqa: E731
    same_trees(third(g)(0.3), third(f)(0.3))
    same_trees(tg.jit(third(g))(0.3), tg.jit(third(f))(0.3))
    mixed = lambda h: tg.jacfwd(tg.jacrev(tg.jacfwd(h)))  # noqa: E731
    same_trees(mixed(g)(0.3), mixed(f)(0.3))


# --------------------------------------------------------------------------- memory and work


def chain(pieces):
    """Eight layers, four at a time under checkpoint in ``pieces``."""

    def four(x, weights):
        for w in weights:
            x = tg.tanh(x @ w)
        return x

    piece = pieces(four)

    def loss(weights, x):
        for k in range(0, 8, 4):
            x = piece(x, weights[k : k + 4])
        return tg.sum(x * x)

    return loss


WEIGHTS = [RNG.standard_normal((16, 16)) / 4 for _ in range(8)]
BATCH = RNG.standard_normal((256, 16))


def cost_of(pieces):
    return tg.jit(tg.grad(chain(pieces))).lower(WEIGHTS, BATCH).cost()


def test_the_peak_falls_and_the_work_rises():
    whole = cost_of(lambda f: f)
    kept = cost_of(lambda f: tg.checkpoint(f, policy=P.everything_saveable))
    dots = cost_of(lambda f: tg.checkpoint(f, policy=P.dots_saveable))
    none = cost_of(tg.checkpoint)
    state = BATCH.nbytes
    # 8 states to hold without; with two pieces the states of one, and what is being worked on.
    assert none["arena"] <= 7 * state
    assert whole["arena"] >= 8 * state
    assert none["arena"] < kept["arena"] <= whole["arena"]
    assert kept["flops"] == whole["flops"]
    forward = tg.jit(chain(lambda f: f)).lower(WEIGHTS, BATCH).cost()["flops"]
    products = 2 * BATCH.size * 16 * 8
    assert whole["flops"] < dots["flops"] < whole["flops"] + forward - products
    # Everything is computed once more, and nothing twice more.
    assert whole["flops"] + products < none["flops"] <= whole["flops"] + forward


def test_the_gradient_of_a_checkpointed_chain_is_the_same():
    expected = tg.jit(tg.grad(chain(lambda f: f)))(WEIGHTS, BATCH)
    for policy in POLICIES.values():
        pieces = lambda f, p=policy: tg.checkpoint(f, policy=p)  # noqa: E731
        same_trees(tg.jit(tg.grad(chain(pieces)))(WEIGHTS, BATCH), expected)


def test_nested_checkpoints_hold_less():
    def layer(x, w):
        return tg.tanh(x @ w) * tg.exp(-x * x)

    def deep(pieces):
        def run(x, weights):
            if len(weights) == 1:
                return layer(x, weights[0])
            half = len(weights) // 2
            inner = pieces(run) if half > 1 else run
            return inner(inner(x, weights[:half]), weights[half:])

        return lambda weights, x: tg.sum(run(x, weights))

    weights = WEIGHTS * 2
    plain, nested = (tg.jit(tg.grad(deep(p))) for p in (lambda f: f, tg.checkpoint))
    same_trees(nested(weights, BATCH), plain(weights, BATCH))
    before, after = (f.lower(weights, BATCH).cost()["arena"] for f in (plain, nested))
    assert after < 0.6 * before


def test_nobody_differentiates_nothing_is_done_twice():
    f = tg.checkpoint(chain(lambda f: f))
    plain = tg.jit(chain(lambda f: f)).lower(WEIGHTS, BATCH)
    assert tg.jit(f).lower(WEIGHTS, BATCH).cost()["flops"] == plain.cost()["flops"]
    forward = [
        tg.jit(lambda x, h=h: tg.jvp(h, (x,), (x,))) for h in (tg.sin, tg.checkpoint(tg.sin))
    ]
    first, second = (h.lower(BATCH).cost()["flops"] for h in forward)
    assert first == second  # forward mode keeps nothing, so nothing is computed again


def test_merging_equal_expressions_does_not_undo_it():
    f = tg.checkpoint(lambda x: tg.sum(tg.exp(tg.sin(x) @ W)))
    text = tg.jit(tg.grad(lambda x: f(x) ** 2)).lower(X).as_text("optimized")
    assert text.count("= sin(") == 2
    assert text.count("= after(") >= 1
    plain = tg.jit(tg.grad(lambda x: tg.sum(tg.exp(tg.sin(x) @ W)) ** 2)).lower(X)
    assert plain.as_text("optimized").count("= sin(") == 1


# -------------------------------------------------------------------------------------- budget


def test_a_budget_is_kept_and_work_falls_as_it_grows():
    def f(x, w):
        return tg.sum(tg.exp(tg.sin(tg.tanh(x @ w) @ w) @ w))

    expected = tg.jit(tg.grad(f))(X, W)
    flops = []
    for budget in (0, X.nbytes, 2 * X.nbytes, 3 * X.nbytes, 100 * X.nbytes):
        report = tg.explain_remat(f, X, W, memory_budget=budget)
        assert report.nbytes <= budget
        g = tg.jit(tg.value_and_grad(tg.checkpoint(f, memory_budget=budget)))
        flops.append(g.lower(X, W).cost()["flops"])
        same_trees(tg.jit(tg.grad(tg.checkpoint(f, memory_budget=budget)))(X, W), expected)
    assert flops == sorted(flops, reverse=True)
    assert flops[0] > flops[-1]


def test_a_budget_below_what_must_be_kept_says_how_much():
    # What a sort returns can be computed again, what the random key gives as well: nothing is
    # needed. A budget cannot be negative bytes.
    assert tg.explain_remat(lambda x: tg.sum(tg.sort(x) ** 2), X, memory_budget=0).saved == ()
    with pytest.raises(BudgetError, match="expected a budget of 0 bytes at least") as caught:
        tg.grad(tg.checkpoint(lambda x: tg.sum(tg.sin(x)), memory_budget=-1))(X)
    assert caught.value.needed == 0


def test_bad_options():
    with pytest.raises(TypeError, match="policy= or memory_budget=, got both"):
        tg.checkpoint(tg.sin, policy=P.dots_saveable, memory_budget=10)
    with pytest.raises(TypeError, match=r"expected bytes, got 1\.5"):
        tg.checkpoint(tg.sin, memory_budget=1.5)
    with pytest.raises(TypeError, match="policy: expected a function"):
        tg.checkpoint(tg.sin, policy="dots")


# ------------------------------------------------------------------- arguments and surroundings


class State(NamedTuple):
    position: object
    steps: object


def test_pytrees_keywords_and_integers():
    @tg.checkpoint
    def advance(state, *, scale):
        return State(tg.sin(state.position) * scale["a"], state.steps + 1), {"n": state.steps}

    def loss(x, f=advance):
        state, aux = f(State(x, tg.asarray(3)), scale={"a": 2.0})
        assert int(state.steps) == 4
        assert aux["n"].dtype == tg.int64
        return tg.sum(state.position)

    same_trees(tg.grad(loss)(X), tg.grad(lambda x: loss(x, advance.__wrapped__))(X))


def test_static_arguments_are_handed_on():
    def f(kind, x, power):
        assert type(power) is int
        return tg.sum({"sin": tg.sin, "cos": tg.cos}[kind](x) ** power)

    checked = tg.checkpoint(f, static_argnums=(0, -1))
    same_trees(tg.grad(checked, argnums=1)("sin", X, 3), tg.grad(f, argnums=1)("sin", X, 3))
    with pytest.raises(DTypeError, match=r"checkpoint\(f\): arguments"):
        tg.checkpoint(f)("sin", X, 3)


def test_closures_over_what_is_traced():
    def loss(x, w, wrap):
        h = tg.sin(w)
        return tg.sum(wrap(lambda a: tg.tanh(a @ h) * h[0])(x))

    plain = tg.grad(loss, argnums=(0, 1))
    same_trees(plain(X, W, tg.checkpoint), plain(X, W, lambda f: f))
    jitted = tg.jit(plain, static_argnums=2)
    same_trees(jitted(X, W, tg.checkpoint), jitted(X, W, lambda f: f))
    per_example = tg.vmap(lambda x, w: tg.grad(loss)(x, w, tg.checkpoint), in_axes=(None, 0))
    expected = tg.vmap(lambda x, w: tg.grad(loss)(x, w, lambda f: f), in_axes=(None, 0))
    weights = np.stack([W, 2 * W])
    same_trees(per_example(X, weights), expected(X, weights))


def test_python_control_flow_on_values():
    @tg.checkpoint
    def f(x, n):
        while float(x) < 10.0:
            x = x * x
        for _ in range(int(n)):
            x = tg.sin(x)
        return x

    same_trees(tg.grad(f)(2.0, 2), tg.grad(f.__wrapped__)(2.0, 2))


def test_results_that_are_arguments_constants_or_captured():
    outside = tg.asarray(X)

    @tg.checkpoint
    def f(x):
        return x, 3.0, outside, tg.sin(x), np.ones(2), x

    results = f(X)
    same_trees(results, f.__wrapped__(X))
    found = tg.grad(lambda x: tg.sum(f(x)[0]) + 2 * tg.sum(f(x)[3]) + tg.sum(f(x)[5]))(X)
    np.testing.assert_allclose(found, 2 + 2 * np.cos(X), rtol=1e-15)
    same_trees(tg.grad(lambda x: tg.sum(f(x)[4]))(X), np.zeros_like(X))


def test_weak_numbers_stay_weak():
    half = np.ones(3, np.float32)
    f = tg.checkpoint(lambda x, k: x * k)
    assert f(half, 2.0).dtype == tg.float32
    assert tg.jit(f)(half, 2.0).dtype == tg.float32
    assert tg.grad(lambda x: tg.sum(f(x, 2.0)))(half).dtype == tg.float32
    assert tg.grad(lambda k: tg.sum(f(half, k)))(2.0).dtype == tg.float64
    square = tg.checkpoint(lambda k: k * k)
    assert tg.jit(lambda x, k: x * square(k))(half, 2.0).dtype == tg.float32


def test_complex_and_float32():
    z = (X + 1j * X[::-1]).astype(np.complex64)
    f = lambda z: tg.sum(tg.abs(tg.exp(z) * z))  # noqa: E731
    same_trees(tg.grad(tg.checkpoint(f))(z), tg.grad(f)(z))


def test_empty_and_scalar_arguments():
    f = lambda x, y: tg.sum(tg.sin(x)) * tg.exp(y)  # noqa: E731
    for shape in ((0,), (3, 0), (), (1,)):
        x = np.full(shape, 0.5)
        both = tg.grad(tg.checkpoint(f), argnums=(0, 1))(x, 0.25)
        same_trees(both, tg.grad(f, argnums=(0, 1))(x, 0.25))


def test_as_a_decorator_with_options_and_inside_jit():
    @tg.checkpoint(policy=P.dots_saveable)
    @tg.jit
    def f(x):
        return tg.sum(tg.sin(x @ W))

    assert f.__name__ == "f"
    same_trees(tg.grad(f)(X), tg.grad(lambda x: tg.sum(tg.sin(x @ W)))(X))
    assert tg.remat is tg.checkpoint


def test_vjp_again_and_again_and_linearize():
    f = lambda x: tg.sin(x) * x  # noqa: E731
    _, pull = tg.vjp(tg.checkpoint(f), X)
    _, expected = tg.vjp(f, X)
    for c in (X, X + 1):
        same_trees(pull(c), expected(c))
    value, push = tg.linearize(tg.checkpoint(f), X)
    same_trees(value, f(X))
    same_trees(push(X), tg.linearize(f, X)[1](X))


def test_errors_of_the_function_come_through():
    with pytest.raises(DTypeError, match="sin"):
        tg.grad(tg.checkpoint(lambda x: tg.sum(tg.sin(tg.asarray(["a"])))))(X)
    with pytest.raises(IndexError):
        tg.jit(tg.grad(tg.checkpoint(lambda x: tg.sum(x[tg.asarray([9])]))))(X)


def test_the_same_function_twice_compiles_once():
    def loss(x):
        return tg.sum(tg.checkpoint(lambda a: tg.exp(tg.sin(a)) * a)(x))

    for _ in range(3):
        np.asarray(tg.grad(loss)(X))
    with tg.counters() as counts:
        np.asarray(tg.grad(loss)(X))
    assert counts.plans == 0


def test_checkpoint_name_changes_nothing():
    tree = {"a": X, "b": 2.0}
    same_trees(tg.checkpoint_name(tree, "x"), tg.tree.map(tg.asarray, tree))
    same_trees(tg.grad(lambda x: tg.sum(tg.checkpoint_name(x * x, "x")))(X), 2 * X)
