"""Runs on disk, and one run held against another."""

from __future__ import annotations

import json
import math
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .machine import Machine
from .measuring import Result
from .sides import OURS
from .timing import Times

__all__ = ["compare", "load", "place", "save", "to_json"]

VERSION = 1


def place(folder: str, name: str) -> Path:
    """The file of a saved run.

    Raises
    ------
    ValueError
        If the name is not of letters, digits, dot, dash and underscore.
    """
    if not re.fullmatch(r"[\w][\w.-]*", name):
        raise ValueError(f"expected a name of letters, digits, '.', '-' and '_', got {name!r}")
    return Path(folder) / f"{name}.json"


def to_json(results: Sequence[Result], machine: Machine) -> dict[str, Any]:
    """A run as JSON: machine, results with their ratio and share of the floor."""
    return {
        "version": VERSION,
        "machine": {**asdict(machine), "system": platform.platform()},
        "results": [
            {**asdict(r), "peer": r.peer, "ratio": r.ratio, "share": r.share} for r in results
        ],
    }


def save(path: Path, results: Sequence[Result], machine: Machine) -> None:
    """Write a run, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(to_json(results, machine), indent=1), encoding="utf-8")
    draft.replace(path)


def load(path: Path) -> list[Result]:
    """The results of a saved run.

    Raises
    ------
    ValueError
        If the file is not one that :func:`save` wrote.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["version"] != VERSION:
            raise ValueError(f"version {content['version']}, not {VERSION}")
        return [_result(entry) for entry in content["results"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: expected a run saved by tilegrad bench: {error}") from None


def _result(entry: dict[str, Any]) -> Result:
    fields = {k: v for k, v in entry.items() if k not in ("peer", "ratio", "share")}
    fields["times"] = {name: Times(**times) for name, times in entry["times"].items()}
    return Result(**fields)


def compare(
    now: Sequence[Result], then: Sequence[Result], tolerance: float
) -> list[tuple[Result, float | None, str]]:
    """Each result with the factor by which it takes longer than before, and a remark.

    Where both runs have the same peer, what is compared is our time in units of the peer's: a
    machine that got slower did so for both. ``REGRESSION`` marks factors above ``1 + tolerance``,
    and workloads that ran before and do not now.
    """
    before = {(r.group, r.name, r.size): r for r in then}
    lines: list[tuple[Result, float | None, str]] = []
    for result in now:
        old = before.get((result.group, result.name, result.size))
        if result.fault:
            ran = old is not None and not old.fault
            lines.append((result, None, f"{'REGRESSION ' if ran else ''}{result.fault}"))
        elif old is None or old.fault:
            lines.append((result, None, "new"))
        else:
            lines.append(_factor(result, old, tolerance))
    return lines


def _factor(result: Result, old: Result, tolerance: float) -> tuple[Result, float, str]:
    factor = result.times[OURS].median / old.times[OURS].median
    remark = "raw times"
    if result.peer is not None and result.peer == old.peer and result.ratio and old.ratio:
        factor, remark = result.ratio / old.ratio, ""
    if factor > 1 + tolerance:
        remark = f"REGRESSION {remark}"
    elif factor < 1 / (1 + tolerance):
        remark = f"faster {remark}"
    assert math.isfinite(factor)
    return result, factor, remark.strip()
