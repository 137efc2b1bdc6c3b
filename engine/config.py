"""Settings of this process, each of them a context manager too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from ..ir.location import at_user_line
from ..ir.ops.operands import set_strict_dtypes

__all__ = ["Config", "config"]


def _flag(name: str) -> bool:
    return os.environ.get(name, "0") not in ("", "0")


class Config:
    """What may be set; read and written as attributes, checked when written.

    Attributes
    ----------
    eager : bool
        Compute each operation at once instead of when its result is looked at. Default: the
        environment variable ``TILEGRAD_EAGER``. The bits of the results are the same.
    verify : bool
        Run programs node by node and hold shape and dtype of each result against what was
        inferred. Default: ``TILEGRAD_VERIFY``.
    debug_nans : bool
        Run programs node by node and raise ``FloatingPointError`` at the first operation that makes
        a NaN of operands without one; the message has its line. Default: ``TILEGRAD_DEBUG_NANS``.
    num_threads : int
        Threads a compiled program may use. Default: ``TILEGRAD_NUM_THREADS``, else the CPUs this
        process may run on.
    strict_dtypes : bool
        Refuse operations that mix floating widths (float32 with float64) instead of promoting.
    pending_limit : int
        Nodes a pending array may depend on before it is computed unasked.
    loop_memory : int or None
        Bytes that each compiled loop of known length may keep for its derivative in reverse mode,
        see ``scan(checkpoint=)``. None: no limit.

    Examples
    --------
    >>> from tilegrad import config
    >>> with config(strict_dtypes=True):
    ...     config.strict_dtypes
    True
    >>> config.strict_dtypes
    False
    """

    _defaults: dict[str, Any]

    def __init__(self) -> None:
        try:
            cpus = len(os.sched_getaffinity(0))
        except AttributeError:  # not on every system
            cpus = os.cpu_count() or 1
        object.__setattr__(self, "eager", _flag("TILEGRAD_EAGER"))
        object.__setattr__(self, "verify", _flag("TILEGRAD_VERIFY"))
        object.__setattr__(self, "debug_nans", _flag("TILEGRAD_DEBUG_NANS"))
        threads = os.environ.get("TILEGRAD_NUM_THREADS", "")
        object.__setattr__(self, "num_threads", int(threads) if threads.isdigit() else cpus)
        object.__setattr__(self, "strict_dtypes", False)
        object.__setattr__(self, "pending_limit", 512)
        object.__setattr__(self, "loop_memory", None)
        self._derive()

    eager: bool
    verify: bool
    debug_nans: bool
    num_threads: int
    strict_dtypes: bool
    pending_limit: int
    loop_memory: int | None

    # Whether programs run node by node, so that each result can be looked at; and the operations
    # after which somebody looks whether too much is pending. Not settings of their own, but asked
    # at each call: so they are kept.
    stepwise: ClassVar[bool] = False
    patience: ClassVar[int] = 0

    def _derive(self) -> None:
        Config.stepwise = self.verify or self.debug_nans
        Config.patience = 0 if self.eager else self.pending_limit

    def __setattr__(self, name: str, value: Any) -> None:
        self._check(name, value)
        object.__setattr__(self, name, value)
        self._derive()
        if name == "strict_dtypes":
            set_strict_dtypes(value)

    def _check(self, name: str, value: Any) -> None:
        known = vars(self)
        if name not in known:
            raise at_user_line(
                AttributeError(f"config: expected one of {' '.join(known)}, got {name!r}")
            )
        if name == "loop_memory":
            if value is not None and (type(value) is not int or value < 1):
                raise at_user_line(
                    TypeError(f"config.{name}: expected a positive integer or None, got {value!r}")
                )
            return
        wanted = type(known[name])
        if type(value) is not wanted or (wanted is int and value < 1):
            what = "True or False" if wanted is bool else "a positive integer"
            raise at_user_line(TypeError(f"config.{name}: expected {what}, got {value!r}"))

    def __call__(self, **settings: Any) -> Any:
        """A context in which the settings hold; the old ones come back at its end."""
        for name, value in settings.items():
            self._check(name, value)
        return self._during(settings)

    @contextmanager
    def _during(self, settings: dict[str, Any]) -> Iterator[Config]:
        before = {name: getattr(self, name) for name in settings}
        try:
            for name, value in settings.items():
                setattr(self, name, value)
            yield self
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


config = Config()
