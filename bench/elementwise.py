"""One loop over many numbers: arithmetic, functions, memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .sides import Side
from .workloads import Case, workload

SIZES = (1000, 10_000, 100_000, 1_000_000, 5_000_000)


def black_scholes(side: Side) -> Any:
    """Price of a European call (Black and Scholes 1973, equation 13)."""
    m = side.m
    rate, volatility = 0.05, 0.2

    def cdf(x: Any) -> Any:
        return 0.5 * (1.0 + side.erf(x * 0.7071067811865476))

    def price(spot: Any, strike: Any, time: Any) -> Any:
        spread = volatility * m.sqrt(time)
        d1 = (m.log(spot / strike) + (rate + 0.5 * volatility**2) * time) / spread
        return spot * cdf(d1) - strike * m.exp(-rate * time) * cdf(d1 - spread)

    return price


def _market(size: int, dtype: str) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    ranges = ((50, 150), (50, 150), (0.1, 2))
    return tuple(rng.uniform(low, high, size).astype(dtype) for low, high in ranges)


def _price(dtype: str, size: int) -> Case:
    tolerance = 1e-9 if dtype == "float64" else 2e-4
    return Case(black_scholes, _market(size, dtype), tolerance=tolerance)


for _dtype, _target in (("float64", 0.25), ("float32", 1.0)):
    workload("elementwise", f"Black-Scholes {_dtype}", _target, SIZES, 1_000_000)(
        partial(_price, _dtype)
    )


def _by_name(name: str, size: int) -> Case:
    x = np.random.default_rng(0).uniform(0.1, 5, size)
    if name in ("erf", "gammaln"):
        return Case(lambda side: getattr(side, name), (x,), peers=("jax", "numpy"))
    return Case(lambda side: getattr(side.m, name), (x,), peers=("jax", "numpy"))


_TARGETS = {
    "exp": 1.1,
    "log": 0.6,
    "sin": 0.25,
    "cos": 0.25,
    "tanh": 1.1,
    "arctan": 0.4,
    "expm1": 1.0,
    "log1p": 0.5,
    "sqrt": 1.1,
    "erf": 0.3,
    "gammaln": 0.5,
}
for _name, _target in _TARGETS.items():
    workload("elementwise", f"{_name} float64", _target, SIZES, 1_000_000)(partial(_by_name, _name))


@workload("elementwise", "x**1.7 float64", 0.6, SIZES, 1_000_000)
def power(size: int) -> Case:
    x = np.random.default_rng(0).uniform(0.1, 5, size)
    return Case(lambda side: lambda v: v**1.7, (x,), peers=("jax", "numpy"))
