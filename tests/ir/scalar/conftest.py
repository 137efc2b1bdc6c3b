"""How a scalar program is judged: errors in ulps against mpmath, and equal bits everywhere."""

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from tilegrad.ir.scalar.handlers.numpy import run
from tilegrad.kernels.llvm.evaluate import evaluate

Errors = Callable[..., np.ndarray]


def _mpf(x: Any) -> Any:
    return mp.mpf(float(x))


@pytest.fixture
def ulp_errors() -> Errors:
    """``errors(program, reference, *arrays)``: distances from the exact values.

    In units of the last place of the correctly rounded value. Arguments and exact results are
    finite; a result that is not has an infinite error.
    """

    def errors(program: Any, reference: Any, *arrays: np.ndarray) -> np.ndarray:
        got = evaluate(program, *arrays)
        sizes = []
        with mp.workprec(160), np.errstate(over="ignore"):
            for value, *operands in zip(got, *arrays, strict=True):
                exact = reference(*map(_mpf, operands))
                rounded = got.dtype.type(float(exact))
                if not np.isfinite(rounded):
                    rounded = np.finfo(got.dtype).max
                place = float(np.spacing(np.abs(rounded)))
                finite = np.isfinite(value)
                sizes.append(float(abs(_mpf(value) - exact) / place) if finite else np.inf)
        return np.array(sizes)

    return errors


@pytest.fixture
def assert_same_bits() -> Callable[..., None]:
    """``check(program, *arrays)``: scalar code, vector code and NumPy agree bit for bit."""

    def check(program: Any, *arrays: np.ndarray) -> None:
        scalar = evaluate(program, *arrays, width=1)
        for other in (evaluate(program, *arrays, width=8), run(program, *arrays)):
            assert other.dtype == scalar.dtype
            np.testing.assert_array_equal(np.isnan(other), np.isnan(scalar))
            known = ~np.isnan(scalar)  # sign and payload of NaN are unspecified
            integer = f"i{scalar.itemsize}"
            np.testing.assert_array_equal(other[known].view(integer), scalar[known].view(integer))

    return check
