"""Dense linear algebra and what is built on it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .sides import Side
from .workloads import Case, workload


def _logistic(transform: str, size: int) -> Case:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(size, 50)), rng.normal(size=50)
    sign = np.where(rng.random(size) < 0.5, 1.0, -1.0)

    def program(side: Side) -> Any:
        def loss(w: Any, x: Any, sign: Any) -> Any:
            return side.m.mean(side.m.logaddexp(0.0, -sign * (x @ w)))

        return getattr(side, transform)(loss)

    return Case(program, (w, x, sign))


for _transform in ("value_and_grad", "hessian"):
    workload("dense", f"logistic n x 50 {_transform}", 0.8, (100, 2000, 20_000))(
        partial(_logistic, _transform)
    )


@workload("dense", "GP marginal likelihood value_and_grad", 0.8, (20, 100, 400))
def gaussian_process(size: int) -> Case:
    """Up to a constant, Rasmussen and Williams 2006, algorithm 2.1, line 7."""
    x = np.sort(np.random.default_rng(0).uniform(0, 10, size))

    def program(side: Side) -> Any:
        m = side.m

        def loss(theta: Any, x: Any) -> Any:
            length, scale, noise = m.exp(theta[0]), m.exp(theta[1]), m.exp(theta[2])
            distance = (x[:, None] - x[None, :]) / length
            kernel = scale * m.exp(-0.5 * distance**2) + noise * m.eye(size)
            factor = side.cholesky(kernel)
            z = side.solve_lower(factor, m.sin(x))
            return 0.5 * m.sum(z * z) + m.sum(m.log(m.diagonal(factor)))

        return side.value_and_grad(loss)

    return Case(program, (np.log([1.0, 1.0, 0.1]), x), tolerance=1e-7)


def _matmul(dtype: str, size: int) -> Case:
    x = np.random.default_rng(0).normal(size=(size, size)).astype(dtype)
    tolerance = 1e-9 if dtype == "float64" else 2e-4
    return Case(lambda side: lambda v: v @ v, (x,), peers=("numpy", "jax"), tolerance=tolerance)


for _dtype in ("float64", "float32"):
    workload("dense", f"matmul n x n {_dtype}", 1.05, (16, 64, 256, 1024))(partial(_matmul, _dtype))
