"""The axis of an array without axes: what NumPy takes and refuses, function by function."""

import warnings

import numpy as np
import pytest
import scipy.special

import tilegrad as tg

REDUCTIONS = (
    *("sum", "prod", "min", "max", "amin", "amax", "ptp", "any", "all", "argmin", "argmax"),
    *("count_nonzero", "mean", "var", "std", "median", "average"),
    *("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax", "nanmedian"),
    *("nanargmin", "nanargmax"),
)
LINES = (
    *("cumsum", "cumprod", "cumulative_sum", "cumulative_prod", "nancumsum", "nancumprod"),
    *("sort", "argsort", "flip", "squeeze", "diff", "unique"),
)
WITH_NUMBER = {
    "take": 0,
    "repeat": 3,
    "partition": 0,
    "argpartition": 0,
    "quantile": 0.5,
    "nanquantile": 0.5,
    "percentile": 50,
}
REFUSALS = (IndexError, ValueError, TypeError)  # AxisError is both of the first two


def outcome(module, name, x, axis, **options):
    arguments = (x, WITH_NUMBER[name]) if name in WITH_NUMBER else (x,)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = np.asarray(getattr(module, name)(*arguments, axis=axis, **options))
    except REFUSALS:
        return "refused"
    return result.shape, result.dtype, result.tolist()


@pytest.mark.parametrize("axis", [0, -1, None, 1, -2], ids=str)
@pytest.mark.parametrize("name", [*REDUCTIONS, *LINES, *WITH_NUMBER])
def test_an_axis_of_a_0d_array_is_what_numpy_makes_of_it(name, axis):
    assert outcome(tg, name, tg.asarray(3.5), axis) == outcome(np, name, np.array(3.5), axis)


@pytest.mark.parametrize("axis", [(0,), (-1,), ()], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_tuple_of_axes_of_a_0d_array(name, axis):
    assert outcome(tg, name, tg.asarray(3.5), axis) == outcome(np, name, np.array(3.5), axis)


@pytest.mark.parametrize("name", ["sum", "max", "argmax", "any", "nanmean"])
def test_kept_axes_of_a_0d_array(name):
    ours = outcome(tg, name, tg.asarray(3.5), -1, keepdims=True)
    assert ours == outcome(np, name, np.array(3.5), -1, keepdims=True)


@pytest.mark.parametrize("name", ["logsumexp", "softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [0, -1, 1])
def test_special_functions_of_a_0d_array(name, axis):
    theirs = outcome(scipy.special, name, np.array(3.5), axis)
    assert outcome(tg.special, name, tg.asarray(3.5), axis) == theirs


@pytest.mark.parametrize("name", ["cummax", "cummin", "logcumsumexp"])
def test_running_values_of_numbers_without_a_numpy_function_follow_cumsum(name):
    assert outcome(tg, name, tg.asarray(3.5), -1) == ((1,), np.dtype(float), [3.5])
    assert outcome(tg, name, tg.asarray(3.5), 1) == "refused"


def test_the_same_under_jit_and_grad():
    assert float(tg.jit(lambda x: tg.sum(x, axis=-1))(2.5)) == 2.5
    assert float(tg.grad(lambda x: tg.cumsum(3.0 * x, axis=0)[0])(2.5)) == 3.0
    np.testing.assert_array_equal(tg.vmap(lambda x: tg.max(x, axis=-1))(np.arange(3.0)), range(3))
