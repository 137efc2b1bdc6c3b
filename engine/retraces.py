"""A log of what ``jit`` traces, and why it was not enough to have traced before.

Each trace is a record of level INFO of the logger ``tilegrad.jit``::

    jit(step): trace 2, (x: f64[4]): x is f64[4], was f64[3]

    logging.basicConfig(level=logging.INFO)   # shows them

What is named is the difference to the kept program that is nearest.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

__all__ = ["log_trace", "reasons"]


def log_trace(
    name: str, new: Any, signature: Sequence[Any], kept: Mapping[tuple[Any, ...], Any]
) -> None:
    """Record that ``new`` was traced, with the programs by signature that were there."""
    logging = sys.modules.get("logging")  # nobody listens where nobody imported it
    log = logging.getLogger("tilegrad.jit") if logging is not None else None
    if log is None or not log.isEnabledFor(logging.INFO):
        return
    found = [reasons(new, signature, old, known) for known, old in kept.items()]
    why = min(found, key=len, default=["the first call"])
    log.info("jit(%s): trace %d, %s: %s", name, len(kept) + 1, new.describe(), "; ".join(why))


def reasons(new: Any, signature: Sequence[Any], old: Any, known: Sequence[Any]) -> list[str]:
    """What tells two programs apart. A signature is (version of captures, static, tree, types)."""
    found = []
    if signature[0] != known[0]:
        found.append("a number, function or array that it reads from outside is another one")
    before = dict(_static(known[1]))
    for place, value in _static(signature[1]):
        if place not in before:
            found.append(f"{place} is given")
        elif before[place] != value:
            found.append(f"{place} is {value.value!r}, was {before[place].value!r}")
    if signature[2] != known[2]:
        found.append("the arguments have another structure")
        return found
    for name, now, then in zip(new.names, signature[3], known[3], strict=False):
        if now != then:
            found.append(f"{name} is {now}, was {then}")
    return found


def _static(places: Sequence[tuple[Hashable, Any]]) -> list[tuple[str, Any]]:
    return [(f"static argument {p}" if isinstance(p, int) else str(p), v) for p, v in places]
