"""Ctrl-C during a long native call.

Python notes a signal at once but runs its handler only when the main thread asks for it. A driver
that has been away for a while therefore takes the interpreter lock between two pieces of work and
asks. If the handler raises (``KeyboardInterrupt``), the driver stops where it is and its entry
passes the error on; results that are half done are never seen. What is one piece of work (one
product of matrices, a loop whose steps must come one after the other) is not interrupted.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir

from .entry import c_function
from .memory import I32, I64

__all__ = ["Watch"]

# Ticks between two looks, 30 to 60 ms by the usual clocks. A look costs 0.1 us if no other thread
# holds the interpreter lock and a few ms if one does.
_CLOCKS = {
    "x86_64": ("llvm.readcyclecounter", 1 << 27),
    "AMD64": ("llvm.readcyclecounter", 1 << 27),
    "aarch64": ("llvm.readsteadycounter", 1 << 20),
    "arm64": ("llvm.readsteadycounter", 1 << 20),
}


class Watch:
    """The state of one call: when it last looked, and whether it is to stop."""

    def __init__(self, b: Any) -> None:
        """Emit the state at the entry of a function."""
        self._clock = _CLOCKS.get(platform.machine())
        self._stopped = b.alloca(ir.IntType(1))
        b.store(ir.IntType(1)(0), self._stopped)
        if self._clock is not None:
            self._last = b.alloca(I64)
            b.store(self._ticks(b), self._last)

    def _ticks(self, b: Any) -> Any:
        assert self._clock is not None
        return b.call(c_function(b.module, self._clock[0], I64), [])

    def stopped(self, b: Any) -> Any:
        """Whether an interrupt was seen, as an i1."""
        return b.load(self._stopped, typ=ir.IntType(1))

    def look(self, b: Any) -> None:
        """Ask Python for pending signals if it is time to."""
        if self._clock is None:
            return
        now = self._ticks(b)
        due = b.icmp_signed(">", b.sub(now, b.load(self._last, typ=I64)), I64(self._clock[1]))
        with b.if_then(due, likely=False):
            state = b.call(c_function(b.module, "PyGILState_Ensure", I32), [])
            raised = b.call(c_function(b.module, "PyErr_CheckSignals", I32), [])
            b.call(c_function(b.module, "PyGILState_Release", ir.VoidType(), I32), [state])
            b.store(b.icmp_signed("!=", raised, I32(0)), self._stopped)
            b.store(self._ticks(b), self._last)
