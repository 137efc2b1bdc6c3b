"""The table of all ops that are not elementwise: types, derivatives, batching of every record."""

from __future__ import annotations

import numpy as np
import pytest
from rule_checks import apply, check_batch, check_rules, check_transpose, evaluate

from tilegrad.autodiff.batching import batch
from tilegrad.ir.dtypes import ALL, as_dtype
from tilegrad.ir.errors import DTypeError
from tilegrad.ir.graph import make
from tilegrad.ir.ops import (  # noqa: F401  (registers the records)
    OPS,
    cumulative,
    dot,
    dynamic,
    extrema,
    gather,
    reductions,
    scatter,
    shape,
    slicing,
    sorting,
)
from tilegrad.ir.ops.leaves import input_node
from tilegrad.ir.types import TensorType

STRUCTURAL = [
    op
    for name, op in sorted(OPS.items())
    if op.kind in ("reduction", "cumulative", "view", "index", "dot", "sort") and op.samples
]
FIELDS = ("reference", "jvp", "transpose", "batch", "doc")


def accepts(op, dtype):
    """Whether the op is defined for operands of this dtype."""
    for arrays, params in op.samples(np.random.default_rng(0), dtype.numpy):
        types = [TensorType(np.shape(a), as_dtype(np.asarray(a).dtype)) for a in arrays]
        try:
            op.infer(*types, **params)
        except DTypeError:
            return False
        return True
    return False


def test_the_table_holds_what_this_suite_checks():
    names = {op.name for op in STRUCTURAL}
    assert names >= {
        *("sum", "prod", "max", "min", "any", "all", "argmax", "argmin"),
        *("cumsum", "cumprod", "cummax", "cummin", "linear_recurrence"),
        *("slice", "pad", "concat", "gather", "scatter", "dot", "sort", "argsort"),
        *("dynamic_slice", "dynamic_update_slice"),
    }


@pytest.mark.parametrize("op", STRUCTURAL, ids=lambda op: op.name)
def test_every_field_is_there_or_has_a_reason(op):
    for field in FIELDS:
        assert getattr(op, field) or op.why_not.get(field), field


def cases(dtypes, ops=STRUCTURAL):
    """Every op with every dtype that it is defined for."""
    found = [(op, as_dtype(d)) for op in ops for d in dtypes if accepts(op, as_dtype(d))]
    return pytest.mark.parametrize(("op", "dtype"), found, ids=lambda part: part.name)


SMOOTH = [op for op in STRUCTURAL if op.jvp]


@cases(ALL)
def test_type_rule_and_reference_agree(op, dtype, rng):
    for arrays, params in op.samples(rng, dtype.numpy):
        evaluate(apply(op, **params), *arrays)  # the interpreter compares shape and dtype


@cases(["float64", "complex128"], SMOOTH)
def test_derivatives(op, dtype, rng):
    for arrays, params in op.samples(rng, dtype.numpy):
        check_rules(apply(op, **params), arrays, rng)


@cases(["float32", "complex64"], SMOOTH)
def test_derivatives_keep_single_precision(op, dtype, rng):
    """Forward and reverse mode compare dtypes; here with little else at stake."""
    for arrays, params in op.samples(rng, dtype.numpy):
        check_transpose(apply(op, **params), arrays, rng, rtol=1e-4)


def close(got, expected, err_msg):
    """A library product of another shape may sum in another order."""
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-14, err_msg=err_msg)


@pytest.mark.parametrize("op", STRUCTURAL, ids=lambda op: op.name)
def test_batching(op, rng):
    for arrays, params in op.samples(rng, np.float64):
        arrays = [np.asarray(a) for a in arrays]
        equal = close if op.name == "dot" else np.testing.assert_array_equal
        check_batch(apply(op, **params), arrays, rng, equal=equal)


def test_batching_of_an_empty_batch(rng):
    for op in STRUCTURAL:
        for arrays, params in op.samples(rng, np.float64):
            nodes = [
                input_node(TensorType(np.shape(a), as_dtype(np.asarray(a).dtype)), "x")
                for a in arrays
            ]
            out = make(op, [n.out for n in nodes], **params)
            whole = input_node(TensorType((0, *nodes[0].out.shape), nodes[0].out.dtype), "x")
            ((value, at),) = batch([out], {nodes[0].out: (whole.out, 0)}, 0)
            assert value.shape[at] == 0
