"""The Lotka-Volterra example: it converges, and an independent solver agrees with what it found."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

EXAMPLE = Path(__file__).parents[2] / "examples" / "lynx_hare.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("lynx_hare", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def independent_loss(example, log_parameters):
    """The same loss with SciPy's DOP853 at tight tolerances."""
    alpha, beta, gamma, delta, *start = np.exp(log_parameters)

    def slope(t, y):
        return [(alpha - beta * y[1]) * y[0], (delta * y[0] - gamma) * y[1]]

    years = np.arange(len(example.HARE), dtype=float)
    found = solve_ivp(slope, (0, years[-1]), start, "DOP853", years, rtol=1e-11, atol=1e-11)
    counts = np.stack([example.HARE, example.LYNX])
    return 0.5 * np.sum((np.log(found.y) - np.log(counts)) ** 2)


def test_fit_from_a_rough_start(example):
    result = example.fit(steps=10)
    assert result.success
    assert result.nfev < 100
    before = independent_loss(example, example.ROUGH_START)
    after = independent_loss(example, result.x)
    assert before > 10 * after
    # Ten Runge-Kutta steps a year leave an error of some 1e-6 in the solution.
    assert abs(result.fun - after) < 1e-5 * after
    # No parameter can be moved to a better place, says the independent loss.
    for k in range(6):
        step = 1e-3 * np.eye(6)[k]
        slope = (
            independent_loss(example, result.x + step) - independent_loss(example, result.x - step)
        ) / 2e-3
        assert abs(slope) < 2e-3


def test_a_picture_is_saved(example, tmp_path):
    pytest.importorskip("matplotlib")
    example.plot(example.ROUGH_START, 2, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"
