"""The op table and the builders: every primitive of tilegrad, one record each."""

from __future__ import annotations

from . import arithmetic, leaves, operands, shape
from .registry import OPS

__all__ = ["OPS", "arithmetic", "leaves", "operands", "shape"]
