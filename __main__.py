"""The command line, ``tilegrad COMMAND``: bench, cache, compare, demo, doctor."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import metadata

from .command import bench, cache, compare, demo, doctor

_COMMANDS = {"bench": bench, "cache": cache, "compare": compare, "demo": demo, "doctor": doctor}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process unless given.

    Returns
    -------
    int
        The exit status: 0 where all went well.
    """
    arguments = _parser().parse_args(argv)
    return _COMMANDS[arguments.command].run(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tilegrad",
        description="From a numerical Python function to its derivatives and its machine code.",
    )
    version = f"tilegrad {metadata.version('tilegrad')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        summary = (module.__doc__ or "").splitlines()[0]
        module.add_arguments(commands.add_parser(name, help=summary, description=summary))
    return parser


if __name__ == "__main__":
    sys.exit(main())
