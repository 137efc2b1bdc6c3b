"""Small work: what a call costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from .sides import Side
from .workloads import Case, workload

SIZES = (4, 32, 256, 2048)


@workload("call", "jit 2x + 1", 0.7, SIZES, 4)
def line(size: int) -> Case:
    return Case(lambda side: lambda x: x * 2.0 + 1.0, (np.ones(size),))


@workload("call", "value_and_grad of a dict", 0.7, SIZES, 4)
def dictionary(size: int) -> Case:
    def program(side: Side) -> Any:
        def loss(p: Any, x: Any) -> Any:
            return side.m.sum(side.m.sin(p["a"] * x + p["b"]))

        return side.value_and_grad(loss)

    return Case(program, ({"a": np.ones(size), "b": np.ones(size)}, np.ones(size)))


@workload("call", "Rosenbrock value_and_grad", 0.5, (10, 100, 1000), 100)
def rosenbrock(size: int) -> Case:
    def program(side: Side) -> Any:
        def value(x: Any) -> Any:
            bend, rest = x[1:] - x[:-1] ** 2, 1 - x[:-1]
            return side.m.sum(100 * bend**2 + rest**2)

        return side.value_and_grad(value)

    return Case(program, (np.linspace(0.5, 1.5, size),))


@workload("call", "NumPy in, NumPy out", 0.5, SIZES, 256)
def numpy_in_and_out(size: int) -> Case:
    def program(side: Side) -> Any:
        compiled = side.jit(lambda x: x * 2.0 + 1.0)
        return lambda x: np.asarray(compiled(x))

    return Case(program, (np.ones(size),), jit=False, lift=False)


@workload("call", "ten eager operations", 0.5, SIZES, 4)
def eager(size: int) -> Case:
    def chain(x: Any) -> Any:
        for _ in range(5):
            x = x * 0.5 + 1.0
        return x

    return Case(lambda side: chain, (np.ones(size),), jit=False)
