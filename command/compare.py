"""Run a function at every stage of its way to machine code and name the first that differs."""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..ir.types import TensorType


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the subcommand takes."""
    add = parser.add_argument
    add("function", metavar="PATH.py:FUNCTION", help="a function of arrays in a file of yours")
    add("--shapes", metavar="TYPES", help="of the arguments, as 'f64[3,4] i64[]'; default f64[]")
    add("--seed", type=int, default=0, metavar="N", help="of the random arguments (default 0)")


def run(arguments: argparse.Namespace) -> int:
    """Draw arguments, compare, print the table.

    Real numbers are drawn from the normal distribution, integers from 1 to 9.

    Returns
    -------
    int
        0; 1 if a stage differs from the one before; 2 for arguments that make no sense.
    """
    import numpy as np

    from ..engine.jit import jit

    try:
        function = _load(arguments.function)
        types = _types(arguments.shapes, function)
    except (ValueError, OSError) as error:
        print(f"tilegrad compare: {error}", file=sys.stderr)
        return 2
    rng = np.random.default_rng(arguments.seed)
    args = [_draw(rng, t) for t in types]
    lower = getattr(function, "lower", None) or jit(function).lower
    report = lower(*args).compare_stages(*args)
    print(report)
    return 0 if report.first is None else 1


def _load(target: str) -> Callable[..., Any]:
    """The function of a file, which is run as a script's import would."""
    import importlib.util

    path, _, name = target.rpartition(":")
    if not path or not name.isidentifier():
        raise ValueError(f"expected PATH.py:FUNCTION, got {target!r}")
    file = Path(path).resolve()
    if not file.is_file():
        raise ValueError(f"{path}: no such file")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(file.stem, module)
    sys.path.insert(0, str(file.parent))  # it may import its neighbours
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"{path}: expected a function {name!r}, found {function!r}")
    return function  # type: ignore[no-any-return]


def _types(shapes: str | None, function: Callable[..., Any]) -> Sequence[TensorType]:
    """The types of the arguments; scalars unless they are said."""
    from ..ir.dtypes import float64
    from ..ir.errors import TilegradError
    from ..ir.parse import parse
    from ..ir.types import TensorType

    if shapes is None:
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = inspect.signature(function).parameters.values()
        needed = [p for p in parameters if p.kind in positional and p.default is p.empty]
        return [TensorType((), float64)] * len(needed)
    words = re.split(r"(?<=[\]~])\s+", shapes.strip()) if shapes.strip() else []
    inputs = ", ".join([f'%{k} "x{k}": {word}' for k, word in enumerate(words)])
    try:
        graph = parse(f"graph main({inputs}) {{ return }}")
    except TilegradError:
        raise ValueError(
            f"--shapes: expected types like 'f64[3,4] i64[]', got {shapes!r}"
        ) from None
    return [node.types[0] for node in graph.inputs]


def _draw(rng: Any, t: TensorType) -> Any:
    """A random argument; a Python number for a weak type."""
    import numpy as np

    kind, dtype = t.dtype.kind, t.dtype.numpy
    if kind == "b":
        x = rng.integers(0, 2, t.shape).astype(dtype)
    elif kind in "iu":
        x = rng.integers(1, 10, t.shape).astype(dtype)
    else:
        x = rng.standard_normal(t.shape)
        if kind == "c":
            x = x + 1j * rng.standard_normal(t.shape)
        x = np.asarray(x, dtype)
    return x.item() if t.weak else np.asarray(x)
