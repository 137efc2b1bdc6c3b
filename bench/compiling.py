"""Time to a first result, each taken in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from .workloads import Fresh, workload

__all__ = ["phases"]

_FILE = Path(__file__).with_name("fresh.py")
PROGRAMS = {"Black-Scholes": 1.0, "MLP": 1.0, "PINN": 1.0}


def phases(program: str, side: str, cache: str) -> dict[str, float]:
    """Seconds of the phases of :mod:`.fresh` in a new process whose disk cache is ``cache``."""
    done = subprocess.run(
        [sys.executable, "-P", str(_FILE), __package__, program, side],
        env={**os.environ, "TILEGRAD_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise RuntimeError(f"{program} on {side} in a new process: {last}")
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def _cold(of: Callable[[dict[str, float]], float], program: str, side: str) -> float:
    with tempfile.TemporaryDirectory() as cache:
        return of(phases(program, side, cache))


def _warm(of: Callable[[dict[str, float]], float], program: str, side: str) -> float:
    with tempfile.TemporaryDirectory() as cache:
        if side != "jax":  # which keeps nothing
            phases(program, side, cache)
        return of(phases(program, side, cache))


def _first(seconds: dict[str, float]) -> float:
    return seconds["first"] - seconds["second"]


def _script(seconds: dict[str, float]) -> float:
    return seconds["import"] + seconds["first"]


for _program, _target in PROGRAMS.items():
    for _kind, _take, _share in (("cold", _cold, 1.0), ("from disk", _warm, 0.5)):
        _case = Fresh(partial(_take, _first, _program))
        workload("compile", f"first call, {_program}, {_kind}", _target * _share)(
            lambda size, case=_case: case  # type: ignore[misc]
        )

for _program in ("Black-Scholes", "PINN"):
    _case = Fresh(partial(_warm, _script, _program))
    workload("compile", f"script, {_program}, from disk", 0.5)(
        lambda size, case=_case: case  # type: ignore[misc]
    )


@workload("compile", "first call, net of n random layers, cold", 0.7, (3, 25, 50, 100, 300), 50)
def random_net(size: int) -> Fresh:
    return Fresh(partial(_cold, _first, f"net of {size}"), repeats=1)


@workload("compile", "new batch size, MLP", 0.1)
def new_batch(size: int) -> Fresh:
    return Fresh(partial(_cold, lambda seconds: seconds["new batch"], "MLP"))


@workload("compile", "import beside NumPy", 0.45)
def importing(size: int) -> Fresh:
    return Fresh(partial(_cold, lambda seconds: seconds["import"], "nothing"))
