"""Python numbers become constants that are shared, but only by numbers of the same bits."""

import math

import numpy as np
import pytest

from tilegrad.ir.dtypes import complex128, float32, float64, int8, int64, uint64
from tilegrad.ir.ops.arithmetic import add, mul
from tilegrad.ir.ops.leaves import constant, input_node
from tilegrad.ir.ops.operands import number_like
from tilegrad.ir.types import TensorType


def value(x):
    return x.node.param("literal").array()[()]


def test_equal_numbers_are_one_value():
    assert constant(2.5) is constant(2.5)
    assert constant(7) is constant(7)
    assert number_like(2.5, TensorType((3,), float64)) is number_like(
        2.5, TensorType((3,), float64)
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0.0, -0.0),
        (1, 1.0),
        (1, True),
        (1.0, True),
        (0, False),
        (0.0, 0),
        (1 + 0j, 1.0),
        (complex(1.0, 0.0), complex(1.0, -0.0)),
        (complex(0.0, 1.0), complex(-0.0, 1.0)),
    ],
)
def test_numbers_that_compare_equal_stay_apart(a, b):
    for first, second in ((a, b), (b, a)):  # whichever comes first
        x, y = constant(first), constant(second)
        assert x is not y
        for given, made in ((first, x), (second, y)):
            assert value(made).tobytes() == np.asarray(given).tobytes()
            assert value(made).dtype == np.asarray(given).dtype


def test_signed_zeros_and_nan_in_the_type_of_an_array():
    for t in (TensorType((2,), float32), TensorType((2,), float64)):
        signs = [math.copysign(1.0, value(number_like(z, t).node.inputs[0])) for z in (0.0, -0.0)]
        assert signs == [1.0, -1.0]
        assert math.isnan(value(number_like(math.nan, t).node.inputs[0]))
        assert math.isnan(value(number_like(float("nan"), t).node.inputs[0]))
    assert math.isnan(value(constant(math.nan)))


def test_large_integers_are_unsigned():
    assert constant(2**63).dtype is uint64
    assert constant(2**63 - 1).dtype is int64


def test_numbers_adopt_the_type_they_meet_or_leave_it_to_the_rules():
    small = TensorType((2,), int8)
    assert number_like(3, small).type == small
    assert number_like(3.0, small) is None  # the result is float64
    assert number_like(3, TensorType((2,), float64, True)) is None  # both are weak
    assert number_like(True, small) is None
    assert number_like(np.float64(3), TensorType((2,), float64)) is None  # strong
    assert number_like(1j, TensorType((2,), complex128)) is None
    x = input_node(small, "x").out
    assert mul(x, 3.0).dtype is float64
    with pytest.raises(OverflowError, match="out of bounds for int8"):
        add(x, 1000)


def test_more_numbers_than_are_kept():
    x = input_node(TensorType((2,), float64), "x").out
    for k in range(10_000):
        assert value(mul(x, k + 0.5).node.inputs[1].node.inputs[0]) == k + 0.5
