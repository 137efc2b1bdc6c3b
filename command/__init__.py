"""The subcommands of the command line, one a file.

Each module has ``add_arguments(parser)`` and ``run(arguments) -> int``, the exit status, and
imports what it needs inside ``run``: asking for help loads no compiler.
"""
