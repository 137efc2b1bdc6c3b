"""What is written from the table of functions: the page ``docs/names.md`` and type stubs.

The page says which names of NumPy and of the Array API exist. The stubs (``.pyi``) tell editors and
type checkers the names and arguments that the table makes when the package is imported.
``python -m tilegrad.engine.names`` writes all of them; a test holds them to the table.
"""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from .namespace import FUNCTIONS

__all__ = ["STANDARD", "page", "stub", "write", "written"]

# The Array API standard, version 2024.12: functions of the main namespace, by its chapters.
STANDARD: dict[str, tuple[str, ...]] = {
    "creation": (
        *("arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like"),
        *("linspace", "meshgrid", "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"),
    ),
    "data types": ("astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"),
    "elementwise": (
        *("abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and"),
        *("bitwise_left_shift", "bitwise_invert", "bitwise_or", "bitwise_right_shift"),
        *("bitwise_xor", "ceil", "clip", "conj", "copysign", "cos", "cosh", "divide", "equal"),
        *("exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag"),
        *("isfinite", "isinf", "isnan", "less", "less_equal", "log", "log1p", "log2", "log10"),
        *("logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum"),
        *("minimum", "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "real"),
        *("reciprocal", "remainder", "round", "sign", "signbit", "sin", "sinh", "square", "sqrt"),
        *("subtract", "tan", "tanh", "trunc"),
    ),
    "indexing": ("take", "take_along_axis"),
    "linear algebra": ("matmul", "matrix_transpose", "tensordot", "vecdot"),
    "manipulation": (
        *("broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis"),
        *("permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack"),
    ),
    "searching": ("argmax", "argmin", "count_nonzero", "nonzero", "searchsorted", "where"),
    "sets": ("unique_all", "unique_counts", "unique_inverse", "unique_values"),
    "sorting": ("argsort", "sort"),
    "statistics": (
        *("cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum", "var"),
    ),
    "utility": ("all", "any", "diff"),
    "inspection": ("__array_namespace_info__",),
    "linalg": (
        *("linalg.cholesky", "linalg.cross", "linalg.det", "linalg.diagonal", "linalg.eigh"),
        *("linalg.eigvalsh", "linalg.inv", "linalg.matmul", "linalg.matrix_norm"),
        *("linalg.matrix_power", "linalg.matrix_rank", "linalg.matrix_transpose", "linalg.outer"),
        *("linalg.pinv", "linalg.qr", "linalg.slogdet", "linalg.solve", "linalg.svd"),
        *("linalg.svdvals", "linalg.tensordot", "linalg.trace", "linalg.vecdot"),
        "linalg.vector_norm",
    ),
    "fft": (
        *("fft.fft", "fft.ifft", "fft.fftn", "fft.ifftn", "fft.rfft", "fft.irfft", "fft.rfftn"),
        *("fft.irfftn", "fft.hfft", "fft.ihfft", "fft.fftfreq", "fft.rfftfreq", "fft.fftshift"),
        "fft.ifftshift",
    ),
}

# Of NumPy, but not of arrays: files, printing, settings, dates, strings, errors, memory.
_NOT_FOR_US = (
    *("array2string", "array_repr", "array_str", "asfortranarray", "ascontiguousarray", "asmatrix"),
    *("base_repr", "binary_repr", "bmat", "busday_count", "busday_offset", "is_busday", "copyto"),
    *("datetime_as_string", "datetime_data", "fill_diagonal", "frombuffer", "fromfile", "fromiter"),
    *("fromregex", "fromstring", "genfromtxt", "get_include", "get_printoptions", "getbufsize"),
    *("geterr", "geterrcall", "info", "isdtype", "isnat", "load", "loadtxt", "may_share_memory"),
    *("mask_indices", "min_scalar_type", "mintypecode", "packbits", "place", "printoptions", "put"),
    *("putmask", "require", "save", "savetxt", "savez", "savez_compressed", "set_printoptions"),
    *("setbufsize", "seterr", "seterrcall", "shares_memory", "show_config", "show_runtime"),
    *("typename", "unpackbits", "isfortran", "asanyarray", "asarray_chkfinite", "errstate"),
    *("format_float_positional", "format_float_scientific", "common_type", "isscalar", "iterable"),
    *("promote_types", "busdaycalendar", "from_dlpack", "frompyfunc", "vectorize", "nested_iters"),
    *("real_if_close", "test", "issubdtype", "bitwise_count", "get_array_wrap"),
)


def _functions_of_numpy() -> list[str]:
    """Names of NumPy's main namespace that are functions of arrays."""
    return sorted(
        name
        for name in dir(np)
        if not name.startswith("_")
        and callable(getattr(np, name))
        and not isinstance(getattr(np, name), type)
        and name not in _NOT_FOR_US
    )


def _paragraph(names: Any) -> str:
    return textwrap.fill(" ".join(f"`{n}`" for n in names), 100, break_on_hyphens=False)


def page() -> str:
    """The text of the page."""
    lines = [
        "# Names of NumPy and the Array API",
        "",
        f"Generated by `python -m tilegrad.engine.names` with NumPy {np.__version__}; do not edit.",
        "Arguments and results are NumPy's; exceptions are in the docstrings. Not there: `out=`,",
        "`order=` in memory, dates, strings, objects, and what writes to its arguments.",
        "",
        "## Array API 2024.12",
        "",
        "| chapter | there | missing |",
        "|---|---|---|",
    ]
    for chapter, names in STANDARD.items():
        missing = [n for n in names if n not in FUNCTIONS]
        shown = " ".join(f"`{n}`" for n in missing)
        lines.append(f"| {chapter} | {len(names) - len(missing)} of {len(names)} | {shown} |")
    numpy = _functions_of_numpy()
    standard = {n for names in STANDARD.values() for n in names}
    beyond = sorted(n for n in FUNCTIONS if n not in numpy and n not in standard)
    lines += ["", "## NumPy's functions that are there", ""]
    lines.append(_paragraph(n for n in numpy if n in FUNCTIONS))
    lines += ["", "## NumPy's functions that are not", ""]
    lines.append(_paragraph(n for n in numpy if n not in FUNCTIONS))
    lines += ["", "## Beyond both", ""]
    lines.append(_paragraph(beyond))
    return "\n".join(lines) + "\n"


def stub(space: str) -> str:
    """The stub of a namespace (``""``: the main one)."""
    prefix = space + "." if space else ""
    table = {
        name.removeprefix(prefix): f
        for name, f in FUNCTIONS.items()
        if name.startswith(prefix) and "." not in name.removeprefix(prefix)
    }
    array = "from .array import Array" if not space else "from ..engine.array import Array"
    lines = ["# Generated by `python -m tilegrad.engine.names`; do not edit.", ""]
    lines += ["from collections.abc import Callable", "from typing import Any", "", array, ""]
    lines.append("__all__: list[str]")
    if not space:
        tables = ("BUILDERS", "FUNCTIONS", "UNLIFTED")
        lines += [f"{name}: dict[str, Callable[..., Any]]" for name in tables]
        lines += ["BUILTINS: tuple[str, ...]"]
        lines += ["def space(name: str) -> dict[str, Callable[..., Any]]: ..."]
    lines += [_stub_line(name, f) for name, f in sorted(table.items()) if name != "trace" or space]
    return "\n".join(lines) + "\n"


def _stub_line(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    parameters = [
        p.replace(
            annotation=Any,
            default=p.default if p.default is inspect.Parameter.empty else ...,
        )
        for p in signature.parameters.values()
    ]
    shown = str(signature.replace(parameters=parameters, return_annotation=inspect.Parameter.empty))
    shown = shown.replace("typing.Any", "Any").replace("Ellipsis", "...")
    result = "Array" if signature.return_annotation in ("Value", "Array") else "Any"
    return f"def {name}{shown} -> {result}: ..."


def written() -> dict[Path, str]:
    """The text of each file."""
    root = Path(__file__).parents[1]
    texts = {root / "docs" / "names.md": page(), root / "engine" / "namespace.pyi": stub("")}
    for space in ("linalg", "nn", "special"):
        texts[root / space / "__init__.pyi"] = stub(space)
    return texts


def write() -> None:
    """Write all of them."""
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
