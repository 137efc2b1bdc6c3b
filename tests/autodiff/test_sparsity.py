"""Patterns of linear programs: never too narrow, and exact where they say so."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilegrad as tg
from tilegrad.autodiff import forward
from tilegrad.autodiff.sparsity import sparsity
from tilegrad.ir.graph import make, make_node
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops import OPS
from tilegrad.ir.ops.leaves import alias, constant, input_node
from tilegrad.ir.ops.shape import broadcast

Fun = Callable[[Any], Any]
N = 6
STEPS = np.tril(np.ones((N, N)))
BAND = np.eye(N) + np.eye(N, k=1)


def along(shape: tuple[int, ...], axis: int) -> np.ndarray:
    """The identity where an axis is mixed."""
    numbers = np.arange(np.prod(shape)).reshape(shape)
    lines = np.moveaxis(numbers, axis, -1).reshape(-1, shape[axis])
    found = np.zeros((numbers.size, numbers.size))
    for line in lines:
        found[np.ix_(line, line)] = 1
    return found


def heat(u: Any, steps: int) -> Any:
    def step(i: Any, u: Any) -> Any:
        return u + 0.1 * (tg.roll(u, 1) - 2 * u + tg.roll(u, -1))

    return tg.fori_loop(0, steps, step, u)


def ring(width: int) -> np.ndarray:
    far = np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    return np.minimum(far, N - far) <= width


PICKED = np.array([4, 0, 0])
EXACT: dict[str, tuple[Fun, Any]] = {
    "elementwise": (lambda x: tg.sin(x) * x / (1 + x * x), np.eye(N)),
    "difference": (lambda x: x[1:] - x[:-1], (np.eye(N) + np.eye(N, k=1))[:-1]),
    "strides": (lambda x: x[::-2] ** 2, np.eye(N)[::-2]),
    "pad": (lambda x: tg.pad(x[:2], (1, 3)), np.eye(N, k=-1) * (np.arange(N) < 2)),
    "concatenate": (
        lambda x: tg.concatenate([x[3:], tg.ones(2), x[:1]]),
        np.concatenate([np.eye(N)[3:], np.zeros((2, N)), np.eye(N)[:1]]),
    ),
    "reshape": (lambda x: tg.reshape(x, (2, 3)).T.ravel(), np.eye(N)[[0, 3, 1, 4, 2, 5]]),
    "sum": (lambda x: tg.sum(x.reshape(2, 3), axis=1), np.kron(np.eye(2), np.ones(3))),
    "mean": (lambda x: tg.mean(x.reshape(2, 3), axis=0), np.tile(np.eye(3), 2)),
    "outer": (lambda x: x[:2, None] * x[None, 4:], None),
    "norm": (tg.linalg.norm, np.ones((1, N))),
    "literal indices": (lambda x: tg.exp(x[PICKED]), np.eye(N)[PICKED]),
    "scatter": (
        lambda x: tg.zeros(N).at[np.array([5, 5, 0])].add(x[:3]),
        [[0, 0, 1, 0, 0, 0], *np.zeros((4, N)), [1, 1, 0, 0, 0, 0]],
    ),
    "update": (
        lambda x: x.at[np.array([1, 2])].set(x[4:] * 2),
        np.eye(N)[[0, 4, 5, 3, 4, 5]],
    ),
    "literal mask": (lambda x: tg.where(np.arange(N) < 2, x, 0.0), np.diag(np.arange(N) < 2)),
    "mask of zeros": (lambda x: x * (np.arange(N) % 2.0), np.diag(np.arange(N) % 2)),
    "literal band matrix": (lambda x: BAND @ tg.sin(x), BAND),
    "matrix from the left": (lambda x: tg.sin(x) @ BAND, BAND.T),
    "full matrix": (lambda x: np.ones((2, N)) @ x, np.ones((2, N))),
    "products of matrices": (
        lambda x: x.reshape(2, 3) @ np.diag(np.ones(3)),
        np.eye(N),
    ),
    "batched product": (
        lambda x: tg.vecdot(x.reshape(2, 3), x.reshape(2, 3)),
        np.kron(np.eye(2), np.ones(3)),
    ),
    "cumsum": (tg.cumsum, STEPS),
    "cumprod": (tg.cumprod, STEPS),
    "piecewise constant": (lambda x: tg.floor(x) + tg.stop_gradient(x), np.zeros((N, N))),
    "maximum": (lambda x: tg.maximum(x[:3], x[3:]), np.hstack([np.eye(3), np.eye(3)])),
    "max": (lambda x: tg.max(x.reshape(2, 3), axis=1), np.kron(np.eye(2), np.ones(3))),
    "steps of a stencil": (lambda x: heat(x, 2), ring(2)),
    "many steps": (lambda x: heat(x, 100), np.ones((N, N))),
    "map": (lambda x: tg.map(lambda a: a * a, x), np.eye(N)),
    "scan with records": (lambda x: tg.scan(lambda c, a: (c + a, c), 0.0, x)[1], STEPS - np.eye(N)),
    "scan in reverse": (
        lambda x: tg.scan(lambda c, a: (c * a, c), 1.0, x, reverse=True)[1],
        STEPS.T - np.eye(N),
    ),
    "while": (
        lambda x: tg.while_loop(lambda y: tg.sum(y) < 9.0, lambda y: y * 2 + 1, x),
        np.eye(N),
    ),
    "cond": (lambda x: tg.cond(x[0] > 9, lambda x: x, lambda x: tg.flip(x), x), None),
    "checkpoint": (tg.checkpoint(lambda x: tg.sin(x) * x), np.eye(N)),
    "vmap": (lambda x: tg.vmap(lambda a: a * tg.exp(a))(x), np.eye(N)),
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_patterns(name: str) -> None:
    f, expected = EXACT[name]
    x = np.linspace(0.3, 0.9, N)
    found = tg.jacobian(tg.jit(f), sparsity=True)(x)
    dense = np.asarray(tg.jacobian(f)(x)).reshape(-1, N)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-14, atol=1e-15)
    if expected is not None:
        stored = found.copy()
        stored.data[:] = 1
        np.testing.assert_array_equal(stored.toarray() != 0, np.asarray(expected) != 0)


def test_what_depends_on_the_point_is_anything() -> None:
    """The pattern must hold elsewhere too."""
    x = np.linspace(0.3, 0.9, N)
    for f in (
        lambda x: x[tg.argsort(-x)],
        lambda x: tg.where(x > 0.5, x, tg.flip(x)),
        lambda x: tg.sort(x),
        lambda x: x[tg.astype(x[:2], int)],
    ):
        found = tg.jacobian(f, sparsity=True)(x)
        elsewhere = np.asarray(tg.jacobian(f)(x[::-1].copy())).reshape(-1, N)
        stored = found.copy()
        stored.data[:] = 1
        assert not np.any((elsewhere != 0) & (stored.toarray() == 0))


def test_a_rule_decides_the_pattern() -> None:
    """Straight-through rounding: the function is flat, its rule is not; and the other way round."""
    through = tg.custom_jvp(lambda x: tg.rint(x))
    through.defjvp(lambda p, t: (through(p[0]), t[0]))
    assert tg.jacobian(through, sparsity=True)(np.ones(3)).nnz == 3
    mixed = tg.custom_jvp(lambda x: tg.flip(x))
    mixed.defjvp(lambda p, t: (mixed(p[0]), t[0] * 2))
    np.testing.assert_array_equal(
        tg.jacobian(mixed, sparsity=True)(np.ones(3)).toarray(), 2 * np.eye(3)
    )


LINEAR = sorted(
    name
    for name, op in OPS.items()
    if op.transpose is not None and op.samples is not None and op.kind != "leaf"
)


@pytest.mark.parametrize("name", LINEAR)
def test_no_entry_is_missed(name: str) -> None:
    """The Jacobian of each linear op, column by column, lies inside of the pattern found."""
    record, rng = OPS[name], np.random.default_rng(5)
    dtype = np.complex128 if record.name in ("conj", "real", "imag") else np.float64
    given = record.samples(rng, dtype)
    for arrays, params in [(given, {})] if isinstance(given, tuple) else list(given):
        xs = [alias(constant(np.asarray(a))) for a in arrays]
        node = make_node(record, xs, **params)
        for x in [x for x in xs if x.dtype.is_inexact]:
            d = input_node(x.type, "d").out
            (t,) = forward.jvp([node.out], {x: d})
            if t is None:
                continue
            pattern = sparsity([t], [d], [node.out.size], xs).toarray()
            for k in range(x.size):
                unit = np.zeros(x.size, x.dtype.numpy)
                unit[k] = 1
                (column,) = interpret([t], {d.node: unit.reshape(x.shape)})
                assert not np.any((column.reshape(-1) != 0) & ~pattern[:, k])


def test_an_op_without_a_rule_mixes_everything() -> None:
    d = input_node(constant(np.ones(3)).type, "d").out
    lower = make(OPS["cholesky"], (broadcast(d, (3, 3), (1,)),), check=False)
    pattern = sparsity([lower], [d], [9], [])
    assert pattern.toarray().all()
