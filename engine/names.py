"""The page ``docs/names.md``: which names of NumPy and of the Array API exist here.

``python -m tilegrad.engine.names`` writes it; a test holds it to the table of functions.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from .namespace import FUNCTIONS

__all__ = ["STANDARD", "page", "write"]

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
        "Generated by `python -m tilegrad.engine.names`; do not edit. Arguments and results are",
        "NumPy's; the exceptions are in the docstrings. Not there: `out=`, `order=` in memory, dates,",
        "strings, objects, and functions that write to their arguments.",
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


def write() -> Path:
    """Write the page; returns its path."""
    target = Path(__file__).parents[1] / "docs" / "names.md"
    target.write_text(page(), encoding="utf-8")
    return target


if __name__ == "__main__":
    print(write())
