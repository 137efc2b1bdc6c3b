"""The op table: every record, found by name."""

from __future__ import annotations

from typing import Any

from ..graph import Op

__all__ = ["OPS", "register"]

OPS: dict[str, Op] = {}


def register(name: str, kind: str, **fields: Any) -> Op:
    """Make the record of one op and enter it in the table."""
    if name in OPS:
        raise ValueError(f"op {name!r} is registered already")
    OPS[name] = op = Op(name, kind, **fields)
    return op
