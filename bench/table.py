"""Results as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from .machine import Machine
from .measuring import Result
from .sides import OURS

__all__ = ["HEADER", "comparison", "heading", "row"]

HEADER = (
    f"{'workload':<38}{'size':>9} {'ours':>11} {'peer':>18} {'ratio':>7} {'target':>7}      "
    f"{'bytes':>8} {'flops':>8} {'floor':>6}"
)


def heading(machine: Machine) -> str:
    """What the machine was found to do."""
    return (
        f"copy {machine.bandwidth / 1e9:.1f} GB/s, matrix product {machine.peak / 1e9:.0f} "
        f"GFLOP/s, {machine.cpus} CPUs; floor: the part of our time that these rates need at least"
    )


def seconds(value: float | None) -> str:
    """``12.3 us``."""
    if value is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value / 1e-9:.4g} ns"


def amount(value: int | None) -> str:
    """``1.25M``."""
    if value is None:
        return "-"
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return str(value)


def row(result: Result) -> str:
    """A result as one line."""
    start = f"{result.name:<38}{result.size:>9} "
    if result.fault:
        return f"{start}{result.fault}"
    ours = seconds(result.times[OURS].median)
    peer, ratio = "-", "-"
    mark = "    "
    if result.peer is not None and result.ratio is not None:
        peer = f"{result.peer} {seconds(result.times[result.peer].median)}"
        ratio = f"{result.ratio:.3f}"
        mark = {None: "    ", False: "ok  ", True: "OVER"}[result.over]
    share = "-" if result.share is None else f"{result.share:.0%}"
    return (
        f"{start}{ours:>11} {peer:>18} {ratio:>7} {result.target:>7.2f} {mark} "
        f"{amount(result.nbytes):>8} {amount(result.flops):>8} {share:>6}"
    )


def comparison(lines: Sequence[tuple[Result, float | None, str]]) -> str:
    """Factors between two runs: ``(result, now / then, remark)``."""
    shown = [f"{'workload':<38}{'size':>9} {'now / then':>10}"]
    for result, factor, remark in lines:
        text = "-" if factor is None else f"{factor:.3f}"
        shown.append(f"{result.name:<38}{result.size:>9} {text:>10} {remark}".rstrip())
    return "\n".join(shown)
