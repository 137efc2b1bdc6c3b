"""Every elementwise op: machine code gives the bits of the NumPy handler, in vectors and alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.errors import DTypeError
from tilegrad.ir.ops import OPS
from tilegrad.ir.scalar.handlers.numpy import NumpyHandler
from tilegrad.ir.types import TensorType
from tilegrad.kernels.llvm.evaluate import evaluate

DTYPES = ["bool", "int8", "uint8", "int64", "uint64", "float32", "float64", "complex128"]


def operands_of(op, dtype):
    """Sample operands and the last choice of params."""
    found = op.samples(np.random.default_rng(0), np.dtype(dtype))
    return (found, {}) if isinstance(found, tuple) else list(found)[-1]


def accepts(op, dtype):
    arrays, params = operands_of(op, dtype)
    try:
        op.infer(*[TensorType(a.shape, as_dtype(a.dtype)) for a in arrays], **params)
    except DTypeError:
        return False
    return True


PAIRS = [
    pytest.param(op, dtype, id=f"{name}-{dtype}")
    for name, op in sorted(OPS.items())
    if op.kind == "elementwise" and op.samples
    for dtype in DTYPES
    if accepts(op, dtype)
]


def specials(dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = {info.min, info.max, info.max - 1, 0, 1, 2, 3, 7, 8, 9, 63, 64, 100, -1, -2, -7}
        return np.array([v for v in sorted(edges) if info.min <= v <= info.max], dtype)
    f = np.finfo(dtype)
    edges = [0, 1, 2, 0.5, 2.5, 3, np.pi, 1e10, 1e-10, 100, 88.5, 710, np.inf, f.tiny, f.max]
    return np.array([*edges, *(-v for v in edges), f.smallest_subnormal, np.nan], dtype)


def grid(arrays):
    """Real columns of special values (all combinations, or draws of them), in a mixed order."""
    kinds = [k for a in arrays for k in ([a.real.dtype] * 2 if a.dtype.kind == "c" else [a.dtype])]
    rng = np.random.default_rng(3)
    if len(kinds) > 2:
        return [rng.choice(specials(k), 501) for k in kinds]
    rows = list(itertools.product(*[specials(k) for k in kinds]))
    order = rng.permutation(len(rows))
    columns = zip(*[rows[i] for i in order], strict=True)
    return [np.array(c, k) for c, k in zip(columns, kinds, strict=True)]


def paired(arrays, parts):
    """Operands of a program: two parts for a complex one."""
    left = iter(parts)
    return [(next(left), next(left)) if a.dtype.kind == "c" else next(left) for a in arrays]


@pytest.mark.parametrize(("op", "dtype"), PAIRS)
def test_bits_are_those_of_the_numpy_handler(op, dtype):
    arrays, params = operands_of(op, dtype)
    columns = grid(arrays)
    program = op.complex_scalar if np.dtype(dtype).kind == "c" else op.scalar

    def whole(h, *parts):
        return program(h, *paired(arrays, parts), **params)

    with np.errstate(all="ignore"):
        values = whole(NumpyHandler(), *columns)
    values = values if type(values) is tuple else (values,)
    for index, value in enumerate(values):
        expected = np.broadcast_to(value, columns[0].shape)

        def one(h, *parts, index=index):
            out = whole(h, *parts)
            return out[index] if type(out) is tuple else out

        for width in (1, 8):
            got = evaluate(one, *columns, width=width)
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)
            if expected.dtype.kind == "f":
                number = ~np.isnan(expected)
                np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(expected[number]))
