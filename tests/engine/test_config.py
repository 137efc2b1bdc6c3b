"""Settings."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tilegrad as tg

from .lines import raises_here


def test_context_brings_old_values_back() -> None:
    before = repr(tg.config)
    with tg.config(eager=True, pending_limit=7) as inside:
        assert inside is tg.config
        assert (tg.config.eager, tg.config.pending_limit) == (True, 7)
        with tg.config(eager=False):
            assert not tg.config.eager
        assert tg.config.eager
    assert repr(tg.config) == before
    with pytest.raises(RuntimeError), tg.config(eager=True):
        raise RuntimeError
    assert repr(tg.config) == before


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"eagr": True}, AttributeError, "config: expected one of eager verify .* got 'eagr'"),
        ({"eager": 1}, TypeError, "config.eager: expected True or False, got 1"),
        ({"num_threads": 0}, TypeError, "config.num_threads: expected a positive integer, got 0"),
        ({"pending_limit": True}, TypeError, "config.pending_limit: expected a positive integer"),
    ],
)
def test_wrong_settings(settings: Any, error: type[Exception], text: str) -> None:
    before = repr(tg.config)
    with raises_here(error, text), tg.config(**settings):  # here
        pass
    assert repr(tg.config) == before


def test_strict_dtypes() -> None:  # numerics 1, ER03
    a, b = tg.ones(2, dtype="float32"), tg.ones(2)
    assert (a + b).dtype is tg.float64
    with tg.config(strict_dtypes=True):
        for act in (lambda: a + b, lambda: a * np.ones(2), lambda: tg.where(a > 0, a, b)):
            with pytest.raises(
                tg.DTypeError, match=r"float32 and float64.*astype|float64 and float32"
            ):
                act()
        assert (a + 2.0).dtype is tg.float32
        assert (a.astype("float64") + b).dtype is tg.float64
        with raises_here(tg.DTypeError, "astype"):
            tg.jit(lambda x, y: x + y)(a, b)  # here
    assert (a + b).dtype is tg.float64


def test_environment() -> None:
    script = (
        "import tilegrad as tg; print(tg.config.eager, tg.config.verify, tg.config.num_threads)"
    )
    for value, expected in (("1", "True True 1"), ("0", "False False 1")):
        result = subprocess.run(
            [sys.executable, "-c", script],
            env={
                "TILEGRAD_EAGER": value,
                "TILEGRAD_VERIFY": value,
                "TILEGRAD_NUM_THREADS": "1",
                "PATH": "",
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stdout.strip() == expected
