"""The table that ``numpy_cases`` fills, and arrays of many kinds for its rows."""

from __future__ import annotations

import numpy as np

_RNG = np.random.default_rng(7)

A = _RNG.standard_normal((3, 4))
B = _RNG.standard_normal((3, 4)) + 2.0
T = _RNG.standard_normal((2, 3, 4))
V = _RNG.standard_normal(6)
W = _RNG.standard_normal(3)
S = np.array(1.5)
F = A.astype(np.float32)
I = _RNG.integers(-5, 9, (3, 4))  # noqa: E741
N = _RNG.integers(0, 5, 7)
U = np.array([[250, 3, 17], [4, 5, 255]], dtype=np.uint8)
M = A > 0
C = A + 1j * B
G = _RNG.standard_normal((4, 4))
E = np.zeros((0, 3))
K = np.array([[1.0, np.nan, -2.0, 4.0], [np.nan, np.nan, 5.0, -np.inf], [0.5, 2.0, 1.0, 3.0]])
X = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-300, 7e200])
SORTED = np.sort(V)
TIES = np.array([3.0, 1.0, 2.0, 1.0, 3.0, 2.0])

NUMBERS = (A, F, I, U, C)
REALS = (A, F, I, U)
AXES = (None, 0, 1, -1, (0, 1), (1, 0), ())
ONE_AXIS = (0, 1, -1)

ROWS: list[tuple[str, object, tuple[np.ndarray, ...]]] = []
KNOWN: list[tuple[str, object, tuple[np.ndarray, ...]]] = []


def row(name, call, *arrays):
    ROWS.append((name, call, arrays))


def known(name, call, *arrays):
    KNOWN.append((name, call, arrays))


def over(name, arrays, axes=AXES, **more):
    for x in arrays:
        for axis in axes:
            row(name, lambda xp, x, a=axis, f=name: getattr(xp, f)(x, axis=a, **more), x)
        row(name, lambda xp, x, f=name: getattr(xp, f)(x, axis=0, keepdims=True, **more), x)
