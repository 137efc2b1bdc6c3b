"""Rows of a matrix: reductions, scans, order, movement. The size is the number of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .sides import Side
from .workloads import Case, workload

COLUMNS = 1000
SIZES = (4, 64, 512, 4096)


def layer_norm(side: Side, x: Any) -> Any:
    mean = side.m.mean(x, axis=-1, keepdims=True)
    return (x - mean) / side.m.sqrt(side.m.var(x, axis=-1, keepdims=True) + 1e-5)


def _take(side: Side, x: Any) -> Any:
    return x[side.m.arange(x.shape[0])[::-1]]


_PROGRAMS: dict[str, tuple[float, Callable[[Side, Any], Any]]] = {
    "softmax": (0.75, lambda side, x: side.softmax(x, axis=-1)),
    "layer norm": (0.4, layer_norm),
    "logsumexp": (0.6, lambda side, x: side.logsumexp(x, axis=-1)),
    "sum over rows": (1.0, lambda side, x: side.m.sum(x, axis=0)),
    "cumsum": (0.2, lambda side, x: side.m.cumsum(x, axis=-1)),
    "x.T + 1": (0.5, lambda side, x: x.T + 1.0),
    "argmax": (0.25, lambda side, x: side.m.argmax(x, axis=-1)),
    "sort": (0.1, lambda side, x: side.m.sort(x, axis=-1)),
    "argsort": (0.1, lambda side, x: side.m.argsort(x, axis=-1)),
    "take rows": (1.1, _take),
}


def _build(program: Callable[[Side, Any], Any], size: int) -> Case:
    x = np.random.default_rng(0).normal(size=(size, COLUMNS))
    return Case(lambda side: partial(program, side), (x,), peers=("jax", "numpy"))


for _name, (_target, _program) in _PROGRAMS.items():
    workload("rows", f"{_name} of n x {COLUMNS}", _target, SIZES)(partial(_build, _program))
