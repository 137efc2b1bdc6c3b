"""Loops: steps that follow each other, their gradients, and loops of many examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from .sides import Side
from .workloads import Case, workload

UNITS = 64
_STEPS = (100, 10_000, 1_000_000)


def _runge_kutta(side: Side, h: float = 1e-3) -> Any:
    """One step of the classical method for a predator-prey system."""
    m = side.m

    def slope(y: Any) -> Any:
        return m.stack([1.5 * y[0] - y[0] * y[1], y[0] * y[1] - 3 * y[1]])

    def step(y: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return step


@workload("loop", "Runge-Kutta steps", 1.0, _STEPS, 10_000)
def _steps(size: int) -> Case:
    def program(side: Side) -> Any:
        step = _runge_kutta(side)
        return lambda y: side.fori_loop(0, size, lambda i, y: step(y), y)

    return Case(program, (np.ones(2),))


@workload("loop", "gradient of Runge-Kutta steps", 0.05, _STEPS[:2])
def _gradient(size: int) -> Case:
    def program(side: Side) -> Any:
        step = _runge_kutta(side)

        def last(y: Any) -> Any:
            return side.m.sum(side.scan(lambda y, _: (step(y), None), y, None, length=size)[0])

        return side.grad(last)

    return Case(program, (np.ones(2),))


@workload("loop", f"gradient of a recurrent cell of {UNITS}", 0.6, (5, 200))
def _recurrent(size: int) -> Case:
    rng = np.random.default_rng(0)
    weights, inputs = 0.1 * rng.normal(size=(UNITS, UNITS)), rng.normal(size=(size, UNITS))

    def program(side: Side) -> Any:
        m = side.m

        def loss(w: Any, xs: Any) -> Any:
            def cell(h: Any, x: Any) -> Any:
                h = m.tanh(w @ h + x)
                return h, h

            return m.sum(side.scan(cell, m.zeros(UNITS), xs)[1] ** 2)

        return side.grad(loss)

    return Case(program, (weights, inputs))


@workload("loop", "Newton square roots by while, vmapped", 0.5, (10, 1000, 100_000))
def _newton(size: int) -> Case:
    def program(side: Side) -> Any:
        def root(a: Any) -> Any:
            return side.while_loop(
                lambda x: side.m.abs(x * x - a) > 1e-9 * a, lambda x: 0.5 * (x + a / x), a
            )

        return side.vmap(root)

    return Case(program, (np.random.default_rng(0).uniform(1, 1e6, size),))
