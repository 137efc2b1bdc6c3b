"""Order statistics where NumPy's interpolation gives NaN: beside infinities and huge gaps."""

import numpy as np
import pytest

import tilegrad as tg

INF = np.inf
SHARES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([0.0, INF], [0.0, INF, INF, INF, INF]),
        ([-INF, 0.0], [-INF, -INF, -INF, -INF, 0.0]),
        ([-INF, INF], [-INF, np.nan, np.nan, np.nan, INF]),
        ([INF, INF], [INF] * 5),
        ([-INF, 1.0, 2.0, INF], [-INF, -INF, 1.5, INF, INF]),
        ([-1.7e308, 1.7e308], [-1.7e308, -8.5e307, 0.0, 8.5e307, 1.7e308]),
    ],
)
def test_between_infinities_and_across_an_overflowing_gap(data, expected):
    data = np.array(data)
    with_nan = np.append(data, np.nan)
    for found in (
        tg.quantile(data, SHARES),
        tg.jit(tg.quantile)(data, SHARES),
        tg.percentile(data, 100 * SHARES),
        tg.nanquantile(with_nan, SHARES),
    ):
        np.testing.assert_allclose(found, expected, rtol=3e-16)
    np.testing.assert_array_equal(tg.nanmedian(with_nan), expected[2])
    np.testing.assert_array_equal(tg.median(data), expected[2])


def test_derivatives_beside_an_infinity_are_finite():
    """The weights of the two neighbours, and by the share the gap between them."""
    data = np.array([0.0, INF])
    np.testing.assert_array_equal(tg.grad(lambda a: tg.quantile(a, 0.25))(data), [0.75, 0.25])
    np.testing.assert_array_equal(tg.grad(lambda q: tg.quantile([0.0, 1.0, 4.0], q))(0.5), 6.0)
    np.testing.assert_array_equal(tg.grad(lambda q: tg.quantile([0.0, 1.0, 4.0], q))(0.0), 2.0)
