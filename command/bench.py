"""Measure speed beside the peers that are installed, and hold one run against another."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..bench.machine import Machine
    from ..bench.measuring import Result
    from ..bench.workloads import Workload

FOLDER = ".benchmarks/tilegrad"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the subcommand takes."""
    add = parser.add_argument
    add("groups", nargs="*", metavar="GROUP", help="call elementwise rows dense ml loop compile")
    add("--only", default="", metavar="TEXT", help="workloads whose name contains it")
    add("--list", action="store_true", help="name the workloads with their sizes, run none")
    add("--size", type=int, metavar="N", help="in place of each workload's own size")
    add("--budget", type=float, default=1.0, metavar="S", help="seconds a workload (default 1)")
    add("--peers", metavar="NAMES", help="comma-separated, in place of all that are installed")
    add("--save", metavar="NAME", help="keep the run under a name")
    add("--compare", metavar="NAME", help="hold the run against a kept one")
    add("--tolerance", type=float, default=0.15, help="what counts as a regression (default 0.15)")
    add("--folder", default=FOLDER, help=f"where runs are kept (default {FOLDER})")
    add("--json", metavar="FILE", help="write the run as JSON; - for standard output, no table")
    add("--plot", metavar="FILE", help="draw time against size, as .png or .svg")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print a line a workload, keep, compare and draw as asked.

    Returns
    -------
    int
        0; 1 if a value is wrong, a workload cannot run or is a regression; 2 for arguments that
        make no sense.
    """
    from ..bench.records import compare, load, place, save, to_json
    from ..bench.table import comparison

    try:
        _check(arguments)
        works = _chosen(arguments)
        before = load(place(arguments.folder, arguments.compare)) if arguments.compare else None
        target = place(arguments.folder, arguments.save) if arguments.save else None
    except (ValueError, OSError) as error:
        print(f"tilegrad bench: {error}", file=sys.stderr)
        return 2
    if arguments.list:
        for work in works:
            print(f"{work.group:<12} {work.name:<40} {' '.join(map(str, work.sizes))}")
        return 0
    machine, results = _measure(works, arguments)
    if target is not None:
        save(target, results, machine)
    if arguments.json == "-":
        json.dump(to_json(results, machine), sys.stdout, indent=1)
        print()
    elif arguments.json:
        save(Path(arguments.json), results, machine)
    if arguments.plot:
        from ..bench.plot import draw

        draw(Path(arguments.plot), results)
    failed = any(r.fault for r in results)
    if before is not None:
        lines = compare(results, before, arguments.tolerance)
        print(f"\n{comparison(lines)}", file=_channel(arguments))
        failed |= any(remark.startswith("REGRESSION") for _, _, remark in lines)
    return int(failed)


def _channel(arguments: argparse.Namespace) -> object:
    """Where tables go: not between the JSON."""
    return sys.stderr if arguments.json == "-" else sys.stdout


def _check(arguments: argparse.Namespace) -> None:
    if arguments.peers is not None:
        from ..bench.sides import PEERS

        for name in filter(None, arguments.peers.split(",")):
            if name not in PEERS:
                raise ValueError(f"--peers: expected {' '.join(PEERS)}, got {name!r}")
    if arguments.plot:
        from ..bench.plot import FORMATS, missing

        if Path(arguments.plot).suffix not in FORMATS:
            raise ValueError(f"--plot: expected a file {' or '.join(FORMATS)}")
        remedy = missing()
        if remedy:
            raise ValueError(remedy)
    if arguments.budget <= 0 or (arguments.size is not None and arguments.size < 1):
        raise ValueError("--budget, --size: expected positive numbers")


def _chosen(arguments: argparse.Namespace) -> list[Workload]:
    from ..bench.workloads import chosen

    works = chosen(arguments.groups, arguments.only)
    if not works:
        raise ValueError(f"no workload has {arguments.only!r} in its name; see --list")
    return works


def _measure(
    works: Sequence[Workload], arguments: argparse.Namespace
) -> tuple[Machine, list[Result]]:
    """Measure them all, showing each line as it comes."""
    from ..bench.machine import measure as measure_machine
    from ..bench.measuring import measure
    from ..bench.table import HEADER, heading, row

    peers = arguments.peers.split(",") if arguments.peers is not None else None
    machine = measure_machine()
    channel = _channel(arguments)
    print(f"{heading(machine)}\n{HEADER}", file=channel)  # type: ignore[call-overload]
    results: list[Result] = []
    for work in works:
        sizes = work.sizes if arguments.plot else (arguments.size or work.size,)
        for size in sizes:
            result = measure(work, size, machine, peers, arguments.budget)
            results.append(result)
            print(row(result), file=channel, flush=True)  # type: ignore[call-overload]
    return machine, results
