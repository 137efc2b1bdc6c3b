"""A pause of Python's garbage collector while many nodes are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_collection"]


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the cyclic collector from running.

    Nodes never form cycles, so it finds nothing in a web, but each of its runs walks all of it:
    half the time of the derivative of 20,000 nodes (1.18 s against 0.54 s). Reference counting,
    which frees the nodes, is not affected. Nested pauses, and pauses on several threads, end with
    the first that began.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
