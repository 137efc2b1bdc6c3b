"""Networks with their gradients. The size is the batch."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from .sides import Side
from .workloads import Case, workload


def perceptron(side: Side) -> Any:
    """Loss and gradient of a network of tanh layers under squared error."""

    def loss(layers: Any, x: Any, y: Any) -> Any:
        for weights, bias in layers[:-1]:
            x = side.m.tanh(x @ weights + bias)
        weights, bias = layers[-1]
        return side.m.mean((x @ weights + bias - y) ** 2)

    return side.value_and_grad(loss)


def network(width: int, batch: int, dtype: str = "float64") -> tuple[Any, ...]:
    """Two hidden layers, inputs and targets."""
    rng = np.random.default_rng(0)
    layers = [
        ((rng.normal(size=(i, o)) * 0.1).astype(dtype), np.zeros(o, dtype))
        for i, o in ((width, width), (width, width), (width, 1))
    ]
    return layers, rng.normal(size=(batch, width)).astype(dtype), np.zeros((batch, 1), dtype)


def _train(width: int, dtype: str, size: int) -> Case:
    tolerance = 1e-9 if dtype == "float64" else 2e-4
    return Case(perceptron, network(width, size, dtype), tolerance=tolerance)


for _width, _shown, _dtype, _target in (
    (64, 64, "float32", 0.7),
    (64, 64, "float64", 0.7),
    (256, 1024, "float32", 1.0),
    (256, 1024, "float64", 0.9),
):
    workload("ml", f"MLP n x {_width} {_dtype}", _target, (8, 64, 256, 1024), _shown)(
        partial(_train, _width, _dtype)
    )


def poisson(side: Side) -> Any:
    """Loss and gradient of a network that is to solve u'' = -pi^2 sin(pi x), u(0) = u(1) = 0."""
    m = side.m

    def net(p: Any, x: Any) -> Any:
        hidden = m.tanh(p[0] * x + p[1])
        return p[4] @ m.tanh(p[2] @ hidden + p[3]) + p[5]

    bend = side.vmap(side.grad(side.grad(net, argnums=1), argnums=1), in_axes=(None, 0))

    def loss(p: Any, x: Any) -> Any:
        residual = bend(p, x) + math.pi**2 * m.sin(math.pi * x)
        return m.mean(residual**2) + net(p, 0.0) ** 2 + net(p, 1.0) ** 2

    return side.value_and_grad(loss)


def trial(size: int) -> tuple[Any, ...]:
    """Parameters of two layers of 32, and points."""
    rng = np.random.default_rng(0)
    shapes: tuple[tuple[int, ...], ...] = ((32,), (32,), (32, 32), (32,), (32,), ())
    return [np.asarray(rng.normal(size=s) * 0.5) for s in shapes], np.linspace(0, 1, size)


@workload("ml", "PINN u_xx value_and_grad", 0.6, (8, 64, 256, 1024), 256)
def pinn(size: int) -> Case:
    return Case(poisson, trial(size))
