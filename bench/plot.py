"""Time against size as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .measuring import Result
from .sides import OURS

__all__ = ["FORMATS", "draw", "missing"]

FORMATS = (".png", ".svg")


def missing() -> str | None:
    """What to do if there is nothing to draw with; None if there is."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return "matplotlib is not installed, and --plot needs it: pip install 'tilegrad[bench]'"
    return None


def draw(path: Path, results: Sequence[Result]) -> None:
    """Draw a picture for each workload with several sizes: a line a side, and the floor.

    Both scales are logarithmic. The kind of file is told by its ending, ``.png`` or ``.svg``.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    series: dict[str, list[Result]] = {}
    for result in results:
        if result.times:
            series.setdefault(result.name, []).append(result)
    series = {name: found for name, found in series.items() if len(found) > 1} or series
    columns = min(3, max(len(series), 1))
    rows = -(-max(len(series), 1) // columns)
    figure = Figure(figsize=(5 * columns, 3.6 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    for k, (name, found) in enumerate(series.items()):
        axes = figure.add_subplot(rows, columns, k + 1)
        for label in dict.fromkeys(label for r in found for label in r.times):
            points = [(r.size, r.times[label].median) for r in found if label in r.times]
            axes.plot(*zip(*points, strict=True), marker="o", label=label)
        floor = [(r.size, r.floor) for r in found if r.floor]
        if floor:
            axes.plot(*zip(*floor, strict=True), "k.:", alpha=0.5, label="floor")
        axes.set(title=name, xlabel="size", ylabel="seconds", xscale="log", yscale="log")
        axes.grid(alpha=0.3)
        axes.legend(title="median" if OURS in found[0].times else None)
    figure.savefig(path)
