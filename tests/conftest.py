"""What every test runs under: fixed seeds, no code from disk, deterministic hypothesis."""

import os
import random

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

# No compiled code is kept on disk unless a test asks for it (a folder and a size of its own): how
# much a test compiles must not depend on what others, also in other processes, did before.
os.environ["TILEGRAD_CACHE_SIZE"] = "0"


@pytest.fixture(autouse=True)
def _fixed_seeds() -> None:
    random.seed(SEED)
    np.random.seed(SEED)


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator of the same numbers in every run."""
    return np.random.default_rng(SEED)
