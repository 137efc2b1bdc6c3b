"""One program in a fresh process, by phases: ``python -P fresh.py PACKAGE PROGRAM SIDE``.

Run as a file and not as a module, so that nothing of the package is imported before the clock runs.
Prints seconds as JSON: ``import`` of the library (NumPy is there already), ``first`` and ``second``
call, and for the MLP a call with a ``new batch``. What is imported for the measurement itself is
not on the clock.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

import numpy as np

MODULES = {"tilegrad": "tilegrad", "jax": "jax.numpy"}


def main(package: str, program: str, name: str) -> dict[str, float]:
    """Seconds of each phase; ``package`` is the one that this file belongs to."""
    seconds: dict[str, float] = {}
    start = time.perf_counter()
    importlib.import_module(MODULES[name])
    seconds["import"] = time.perf_counter() - start
    if program == "nothing":
        return seconds
    sides = importlib.import_module(f"{package}.sides")
    learning = importlib.import_module(f"{package}.learning")
    elementwise = importlib.import_module(f"{package}.elementwise")
    side = sides.side(name)

    def lift(tree: Any) -> Any:
        if isinstance(tree, (list, tuple)):
            return type(tree)(map(lift, tree))
        return side.asarray(tree)

    def call(function: Any, arguments: Any) -> float:
        side.wait(arguments)
        start = time.perf_counter()
        side.wait(function(*arguments))
        return time.perf_counter() - start

    side.wait(side.m.ones(3) + 1.0)
    if program == "Black-Scholes":
        made = elementwise.black_scholes(side), tuple(np.full(1000, v) for v in (100.0, 90.0, 1.0))
    elif program == "PINN":
        made = learning.poisson(side), learning.trial(256)
    elif program.startswith("net of "):
        deep = importlib.import_module(f"{package}.deep")
        made = deep.deep_net(side, int(program.removeprefix("net of "))), deep.deep_point()
    else:
        made = learning.perceptron(side), learning.network(64, 64)
    function, arguments = side.jit(made[0]), lift(made[1])
    seconds["first"] = call(function, arguments)
    seconds["second"] = call(function, arguments)
    if program == "MLP":
        seconds["new batch"] = sorted(
            call(function, lift(learning.network(64, batch))) for batch in (65, 97, 130)
        )[1]
    return seconds


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
