"""Show or clear what is kept of compiled code between processes."""

from __future__ import annotations

import argparse

from ..kernels.cache import store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the subcommand takes: what to do."""
    parser.add_argument("action", choices=("info", "clear"), help="show it, or remove all of it")


def run(arguments: argparse.Namespace) -> int:
    """Print what there is, or what was removed.

    Returns
    -------
    int
        0; 1 if some of it could not be removed.
    """
    kept = store()
    count, size = kept.usage()
    if arguments.action == "info":
        print(f"folder   {kept.folder}")
        print(f"entries  {count}")
        print(f"size     {size / 1e6:.1f} MB of {kept.limit / 1e6:.0f} MB")
        return 0
    kept.clear()
    left, _ = kept.usage()
    print(f"removed {count - left} of {count} entries from {kept.folder}")
    return 1 if left else 0
