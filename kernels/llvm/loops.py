"""A counted loop in LLVM IR."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

__all__ = ["counted_loop"]

_I64 = ir.IntType(64)


@contextmanager
def counted_loop(b: Any, start: Any, stop: Any, step: int = 1) -> Iterator[Any]:
    """``for (i = start; i < stop; i += step)``; the body is the with block."""
    before = b.block
    head, body = b.append_basic_block("head"), b.append_basic_block("body")
    done = b.append_basic_block("done")
    b.branch(head)
    b.position_at_end(head)
    i = b.phi(_I64)
    i.add_incoming(start, before)
    b.cbranch(b.icmp_signed("<", i, stop), body, done)
    b.position_at_end(body)
    yield i
    i.add_incoming(b.add(i, _I64(step)), b.block)
    b.branch(head)
    b.position_at_end(done)
