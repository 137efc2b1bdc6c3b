"""Small programs run in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

HEAD = """
import os, sys
import numpy as np
import tilegrad as tg
"""


def start(text: str, cache: Path | None = None, **environment: str) -> subprocess.Popen:
    """Start Python on ``HEAD`` and a script; code is kept in ``cache``, if given."""
    names = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "error"}
    names["PYTHONFAULTHANDLER"] = "1"
    if cache is not None:
        names |= {"TILEGRAD_CACHE_DIR": str(cache), "TILEGRAD_CACHE_SIZE": "512"}
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + textwrap.dedent(text)],
        env=names | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
    )


def finish(process: subprocess.Popen, timeout: float = 120.0) -> list[str]:
    """The words that a process prints; it must end well, and in time."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"it hangs: {out}\n{err}") from None
    assert process.returncode == 0, f"status {process.returncode}: {err}"
    return out.split()


def interrupted(text: str, **environment: str) -> None:
    """Interrupt a script once it says that it begins.

    It has to print ``interrupted`` when that is raised, and ``True`` at last.
    """
    process = start(text, **environment)
    try:
        assert process.stdout.readline() == "begin\n"
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert finish(process) == ["interrupted", "True"]
    finally:
        process.kill()


def run(text: str, cache: Path | None = None, **environment: str) -> list[str]:
    """Start and finish."""
    return finish(start(text, cache, **environment))
