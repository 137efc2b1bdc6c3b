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

__all__ = ["LOOK_EVERY", "WATCH_WORDS", "Watch"]

# Ticks between two looks, 30 to 60 ms by the usual clocks. A look costs 0.1 us if no other thread
# holds the interpreter lock and a few ms if one does.
_CLOCKS = {
    "x86_64": ("llvm.readcyclecounter", 1 << 27),
    "AMD64": ("llvm.readcyclecounter", 1 << 27),
    "aarch64": ("llvm.readsteadycounter", 1 << 20),
    "arm64": ("llvm.readsteadycounter", 1 << 20),
}


# Words of a watch: whether an interrupt was seen, when it last looked, work since then.
WATCH_WORDS = 3
_STOPPED, _LAST, _WORK = range(WATCH_WORDS)
LOOK_EVERY = 64  # units of work (0.2 us, about) between two looks at the clock


class Watch:
    """The state of one call: when it last looked, and whether it is to stop."""

    def __init__(self, b: Any, words: Any = None) -> None:
        """Emit the state at the entry of a function, or go on with that at ``words``."""
        self._clock = _CLOCKS.get(platform.machine())
        self._words = words
        if words is None:
            self._words = b.alloca(I64, size=I64(WATCH_WORDS))
            self.begin(b)

    def begin(self, b: Any) -> None:
        """Emit the state of a call that begins."""
        b.store(I64(0), self._at(b, _STOPPED))
        b.store(I64(0), self._at(b, _WORK))
        if self._clock is not None:
            b.store(self._ticks(b), self._at(b, _LAST))

    def _at(self, b: Any, word: int) -> Any:
        return b.gep(self._words, [I64(word)], source_etype=I64)

    def _ticks(self, b: Any) -> Any:
        assert self._clock is not None
        return b.call(c_function(b.module, self._clock[0], I64), [])

    def stopped(self, b: Any) -> Any:
        """Whether to stop, as an i1."""
        return b.icmp_unsigned("!=", b.load(self._at(b, _STOPPED), typ=I64), I64(0))

    def stop(self, b: Any) -> None:
        """Stop, for another reason than an interrupt."""
        b.store(I64(1), self._at(b, _STOPPED))

    def worked(self, b: Any, amount: Any) -> None:
        """Note work done; look when it has become much."""
        if self._clock is None:
            return
        place = self._at(b, _WORK)
        total = b.add(b.load(place, typ=I64), amount)
        b.store(total, place)
        with b.if_then(b.icmp_signed(">=", total, I64(LOOK_EVERY)), likely=False):
            b.store(I64(0), place)
            self.look(b)

    def look(self, b: Any) -> None:
        """Ask Python for pending signals if it is time to."""
        if self._clock is None:
            return
        now = self._ticks(b)
        last = self._at(b, _LAST)
        due = b.icmp_signed(">", b.sub(now, b.load(last, typ=I64)), I64(self._clock[1]))
        with b.if_then(due, likely=False):
            state = b.call(c_function(b.module, "PyGILState_Ensure", I32), [])
            raised = b.call(c_function(b.module, "PyErr_CheckSignals", I32), [])
            b.call(c_function(b.module, "PyGILState_Release", ir.VoidType(), I32), [state])
            with b.if_then(b.icmp_signed("!=", raised, I32(0))):
                self.stop(b)
            b.store(self._ticks(b), last)
