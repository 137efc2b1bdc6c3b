"""Every composite function against NumPy: values, shapes, dtypes; constants and traced inputs."""

import warnings

import numpy as np
import pytest
from numpy_cases import KNOWN, ROWS

from tilegrad.ir.dtypes import as_dtype
from tilegrad.ir.graph import Value
from tilegrad.ir.interpret import interpret
from tilegrad.ir.ops.leaves import constant, input_node
from tilegrad.ir.types import TensorType


class Functions:
    """The functions over values, by NumPy's names."""

    def __getattr__(self, name):
        from tilegrad.engine.namespace import BUILDERS

        return BUILDERS[name]


OURS = Functions()


def flat(result):
    """The arrays of a result, in order."""
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in flat(item)]
    return [result]


def expected(call, arrays):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [np.asarray(x) for x in flat(call(np, *arrays))]


def tolerance(arrays, want):
    narrow = any(a.dtype in (np.float32, np.complex64) for a in (*arrays, want))
    return (2e-6, 1e-6) if narrow else (1e-13, 1e-13)


def compare(got, want, arrays):
    assert len(got) == len(want)
    for ours, theirs in zip(got, want, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        rtol, atol = tolerance(arrays, theirs)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def values(results):
    return [x if type(x) is Value else constant(x) for x in flat(results)]


def names(rows):
    return [f"{name}-{i}" for i, (name, _, _) in enumerate(rows)]


@pytest.mark.parametrize(("name", "call", "arrays"), ROWS, ids=names(ROWS))
def test_traced(name, call, arrays):
    if name == "digitize":
        pytest.skip("bins must be known; x is traced in test_searching")
    nodes = [
        input_node(TensorType(np.shape(a), as_dtype(np.asarray(a).dtype)), "x") for a in arrays
    ]
    arrays = [np.asarray(a) for a in arrays]
    outputs = values(call(OURS, *[n.out for n in nodes]))
    got = interpret(outputs, dict(zip(nodes, arrays, strict=True)))
    compare(got, expected(call, arrays), arrays)


@pytest.mark.parametrize(("name", "call", "arrays"), ROWS + KNOWN, ids=names(ROWS + KNOWN))
def test_constant(name, call, arrays):
    arrays = [np.asarray(a) for a in arrays]
    outputs = values(call(OURS, *[constant(a) for a in arrays]))
    compare(interpret(outputs), expected(call, arrays), arrays)
