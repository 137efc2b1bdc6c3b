"""What loops keep for reverse mode: budgets, the square root, tapes; and the same bits."""

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.ir.errors import BudgetError

STEPS = 2000


def loss(x, checkpoint=None, reverse=False):
    def step(c, _):
        return tg.sin(c) * 0.9 + 0.1 * x, None

    carry, _ = tg.scan(step, x, None, length=STEPS, checkpoint=checkpoint, reverse=reverse)
    return tg.sum(carry)


X = np.linspace(0.1, 1, 16)


def gradient_and_peak(**how):
    program = tg.jit(tg.value_and_grad(lambda x: loss(x, **how)))
    cost = program.lower(X).cost()
    return [np.asarray(v) for v in program(X)], cost["peak_memory"]


@pytest.mark.parametrize("reverse", [False, True])
def test_budgets_are_kept_and_change_no_value(reverse):
    (value, gradient), whole = gradient_and_peak(reverse=reverse)
    assert whole > STEPS * X.nbytes  # a carry a step
    for budget in (100_000, 30_000, 6_000):
        (other, again), peak = gradient_and_peak(checkpoint=budget, reverse=reverse)
        np.testing.assert_array_equal(other, value)
        np.testing.assert_allclose(again, gradient, rtol=1e-12)
        # Besides what is kept: arguments, results and the state of the loops of each level.
        assert peak < budget + 40 * X.nbytes


def test_square_root():
    (value, gradient), whole = gradient_and_peak()
    (other, again), peak = gradient_and_peak(checkpoint="sqrt")
    np.testing.assert_array_equal(other, value)
    np.testing.assert_allclose(again, gradient, rtol=1e-12)
    # About two carries of each of the square root's two levels.
    assert peak < 3 * np.sqrt(STEPS) * X.nbytes + 40 * X.nbytes
    assert peak < whole / 8


def test_carry_derivatives_are_the_same_bits():
    def by_carry(x, checkpoint):
        return tg.sum(
            tg.scan(lambda c, _: (tg.sin(c) * 1.1, None), x, None, 300, checkpoint=checkpoint)[0]
        )

    a, b = (np.asarray(tg.jit(tg.grad(lambda x, k=k: by_carry(x, k)))(X)) for k in (None, "sqrt"))
    np.testing.assert_array_equal(a, b)


def test_a_budget_too_small_says_what_is_needed():
    with pytest.raises(BudgetError, match="expected a budget of") as caught:
        gradient_and_peak(checkpoint=200)
    gradient_and_peak(checkpoint=caught.value.needed)


def test_the_setting_is_a_budget_for_all_loops():
    whole = gradient_and_peak()[1]
    with tg.config(loop_memory=30_000):
        assert gradient_and_peak()[1] < whole / 4


def forward(f):
    return lambda x: tg.jvp(f, (x,), (1.0,))[1]


def test_deep_nests():
    """Higher derivatives and vmap of a loop in segments."""

    def short(x, checkpoint):
        return tg.scan(lambda c, t: (tg.sin(c * t), None), x, XS, checkpoint=checkpoint)[0]

    XS = np.linspace(0.5, 1.5, 30)
    for order in ("rr", "fr", "rf"):
        results = []
        for checkpoint in (None, 150):
            f = lambda x, k=checkpoint: short(x, k)  # noqa: E731
            for mode in order:
                f = (
                    tg.grad(f)
                    if mode == "r"
                    else (lambda g: lambda x: tg.jvp(g, (x,), (1.0,))[1])(f)
                )
            results.append(np.asarray(tg.jit(tg.vmap(f))(X)))
        np.testing.assert_allclose(results[0], results[1], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("checkpoint", [None, "sqrt"])
def test_open_loops(checkpoint):
    def until(x, limit):
        return tg.while_loop(
            lambda c: c[0] < limit,
            lambda c: (c[0] + 1, tg.sin(c[1] * x) + 0.5 * c[1]),
            (0, x),
            checkpoint=checkpoint,
        )[1]

    def written_out(x, n):
        y = x
        for _ in range(n):
            y = tg.sin(y * x) + 0.5 * y
        return y

    f = tg.jit(tg.value_and_grad(until))
    for n in (0, 1, 5, 40):
        expected = tg.jit(tg.value_and_grad(lambda x, n=n: written_out(x, n)))(0.8)
        for a, b in zip(f(0.8, n), expected, strict=True):
            np.testing.assert_allclose(float(a), float(b), rtol=1e-13)
    with pytest.raises(ValueError, match="'sqrt': the length is not known"):
        tg.jit(lambda x: tg.while_loop(lambda c: c < 1, lambda c: c + 1, x, checkpoint=100))(0.0)


def test_tapes_grow_with_the_trips_taken():
    def doubled(x, limit):
        return tg.while_loop(
            lambda c: c[0] < limit, lambda c: (c[0] + 1, tg.sin(c[1]) * 1.5), (0, x)
        )[1]

    gradient = tg.jit(tg.grad(lambda x, limit: tg.sum(doubled(x, limit))))
    gradient(X, 1)
    used = []
    for trips in (1000, 2000, 4000):
        with tg.counters() as counters:
            gradient(X, trips)
        used.append(counters.allocated_bytes)
        assert counters.compilations == 0
    # One carry a trip; the memory doubles when it is full.
    for trips, nbytes in zip((1000, 2000, 4000), used, strict=True):
        assert trips * X.nbytes <= nbytes < 2.5 * trips * X.nbytes


def test_the_square_root_of_an_open_loop():
    def last(x, limit, checkpoint):
        return tg.sum(
            tg.while_loop(
                lambda c: c[0] < limit,
                lambda c: (c[0] + 1, tg.sin(c[1]) * 1.5),
                (0, x),
                checkpoint=checkpoint,
            )[1]
        )

    used = {}
    for checkpoint in (None, "sqrt"):
        gradient = tg.jit(tg.grad(lambda x, n, k=checkpoint: last(x, n, k)))
        gradient(X, 1)
        with tg.counters() as counters:
            gradient(X, 10_000)
        used[checkpoint] = counters.allocated_bytes
    assert used[None] > 10_000 * X.nbytes
    assert used["sqrt"] < 10 * np.sqrt(10_000) * X.nbytes
