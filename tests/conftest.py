"""What every test runs under: fixed seeds, a cache folder of its own, deterministic hypothesis."""

import os
import random
import shutil
import tempfile

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

SEED = 20260131

settings.register_profile(
    "tilegrad",
    deadline=None,  # the first call of a function compiles it
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tilegrad")

# Before tilegrad is imported, and never the user's own folder. Workers of pytest-xdist inherit
# the variable: that several processes share one cache is part of what is tested.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["TILEGRAD_CACHE_DIR"] = tempfile.mkdtemp(prefix="tilegrad-tests-")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the cache folder when the last process is done with it."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["TILEGRAD_CACHE_DIR"], ignore_errors=True)


@pytest.fixture(autouse=True)
def _fixed_seeds() -> None:
    random.seed(SEED)
    np.random.seed(SEED)


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator of the same numbers in every run."""
    return np.random.default_rng(SEED)
