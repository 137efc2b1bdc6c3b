"""Sides: tilegrad and its peers under the names that workloads use."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib import util
from typing import Any

__all__ = ["OURS", "PEERS", "Side", "is_there", "side"]

OURS = "tilegrad"
PEERS = ("jax", "numpy")


class Side:
    """An array library.

    Attributes
    ----------
    name : str
    m : module
        Array functions by NumPy's names.
    jit, grad, value_and_grad, hessian, vmap : callable
        Transforms by JAX's names; ``jit`` does nothing where there is none.
    scan, fori_loop, while_loop : callable
    erf, gammaln, softmax, logsumexp, cholesky, solve_lower : callable
        Functions whose home differs between libraries.
    """

    name = ""
    m: Any
    jit: Callable[..., Any]
    grad: Callable[..., Any]
    value_and_grad: Callable[..., Any]
    hessian: Callable[..., Any]
    vmap: Callable[..., Any]
    scan: Callable[..., Any]
    fori_loop: Callable[..., Any]
    while_loop: Callable[..., Any]
    erf: Callable[..., Any]
    gammaln: Callable[..., Any]
    softmax: Callable[..., Any]
    logsumexp: Callable[..., Any]
    cholesky: Callable[..., Any]
    solve_lower: Callable[..., Any]

    def asarray(self, x: Any) -> Any:
        """An array of the side with the values of a NumPy array."""
        return self.m.asarray(x)

    def wait(self, tree: Any) -> None:
        """Return when all arrays of a result are computed."""


class _Tilegrad(Side):
    name = OURS

    def __init__(self) -> None:
        self.m = tg = importlib.import_module("..", __package__)
        self.jit, self.grad, self.value_and_grad = tg.jit, tg.grad, tg.value_and_grad
        self.hessian, self.vmap = tg.hessian, tg.vmap
        self.scan, self.fori_loop, self.while_loop = tg.scan, tg.fori_loop, tg.while_loop
        self.erf, self.gammaln = tg.special.erf, tg.special.gammaln
        self.softmax, self.logsumexp = tg.special.softmax, tg.special.logsumexp

    def cholesky(self, x: Any) -> Any:
        return self.m.linalg.cholesky(x)

    def solve_lower(self, x: Any, y: Any) -> Any:
        return self.m.linalg.solve_triangular(x, y, lower=True)

    def wait(self, tree: Any) -> None:
        self.m.eval(tree)


class _Jax(Side):
    name = "jax"

    def __init__(self) -> None:
        jax = importlib.import_module("jax")
        jax.config.update("jax_enable_x64", True)
        self.m = importlib.import_module("jax.numpy")
        self.jit, self.grad, self.value_and_grad = jax.jit, jax.grad, jax.value_and_grad
        self.hessian, self.vmap = jax.hessian, jax.vmap
        self.scan, self.fori_loop = jax.lax.scan, jax.lax.fori_loop
        self.while_loop = jax.lax.while_loop
        scipy = importlib.import_module("jax.scipy")
        self.erf, self.gammaln = scipy.special.erf, scipy.special.gammaln
        self.softmax, self.logsumexp = jax.nn.softmax, jax.nn.logsumexp
        self.cholesky = self.m.linalg.cholesky
        self.solve_lower = lambda x, y: scipy.linalg.solve_triangular(x, y, lower=True)
        self._jax = jax

    def wait(self, tree: Any) -> None:
        self._jax.block_until_ready(tree)


class _NumPy(Side):
    name = "numpy"

    def __init__(self) -> None:
        self.m = importlib.import_module("numpy")
        self.jit = lambda function: function
        special = importlib.import_module("scipy.special")
        self.erf, self.gammaln = special.erf, special.gammaln
        self.softmax, self.logsumexp = special.softmax, special.logsumexp


_CLASSES: dict[str, type[Side]] = {c.name: c for c in (_Tilegrad, _Jax, _NumPy)}
_sides: dict[str, Side] = {}


def is_there(name: str) -> bool:
    """Whether the library of a side is installed."""
    return name == OURS or util.find_spec(name) is not None


def side(name: str) -> Side:
    """The side of a name; its library is imported at the first call."""
    if name not in _sides:
        _sides[name] = _CLASSES[name]()
    return _sides[name]
