"""Rows of ``numpy_cases``: running sums, differences, products, elementwise functions."""

from __future__ import annotations

import numpy as np
from numpy_case_table import NUMBERS, SORTED, A, B, C, F, G, I, K, M, N, S, T, U, V, W, X, row

# ------------------------------------------------------------------------------------ calculus

for _name in ("cumsum", "cumprod", "nancumsum", "nancumprod"):
    for _x in (*NUMBERS, M, K):
        for _axis in (None, 0, -1):
            row(_name, lambda xp, x, a=_axis, f=_name: getattr(xp, f)(x, axis=a), _x)
for _name in ("cumulative_sum", "cumulative_prod"):
    row(_name, lambda xp, x, f=_name: getattr(xp, f)(x, axis=1, include_initial=True), A)
    row(_name, lambda xp, x, f=_name: getattr(xp, f)(x), N)
for _x in (A, I, M, C):
    for _n in (0, 1, 2, 5):
        row("diff", lambda xp, x, n=_n: xp.diff(x, n), _x)
row("diff", lambda xp, x: xp.diff(x, axis=0, prepend=0.0, append=9.0), A)
row("diff", lambda xp, x, p: xp.diff(x, axis=0, prepend=p), A, B)
row("ediff1d", lambda xp, x: xp.ediff1d(x, to_begin=7.0, to_end=[1.0, 2.0]), A)
row("trapezoid", lambda xp, y: xp.trapezoid(y), A)
row("trapezoid", lambda xp, y: xp.trapezoid(y, dx=0.5, axis=0), I)
row("trapezoid", lambda xp, y, x: xp.trapezoid(y, x, axis=0), A, W)
row("trapezoid", lambda xp, y, x: xp.trapezoid(y, x), A, np.cumsum(B, 1))
for _order in (1, 2):
    row("gradient", lambda xp, x, o=_order: xp.gradient(x, edge_order=o), A)
    row("gradient", lambda xp, x, o=_order: xp.gradient(x, 0.5, axis=1, edge_order=o), T)
    row("gradient", lambda xp, x, h, o=_order: xp.gradient(x, h, edge_order=o), V, SORTED)
    row("gradient", lambda xp, x, h, o=_order: xp.gradient(x, 2.0, h, edge_order=o), A, SORTED[:4])
row("gradient", lambda xp, x: xp.gradient(x), I)
row("interp", lambda xp, x, p, f: xp.interp(x, p, f), A, SORTED, V)
row("interp", lambda xp, x, p, f: xp.interp(x, p, f), SORTED, SORTED, V)
row("interp", lambda xp, x, p, f: xp.interp(x, p, f, left=-9.0, right=9.0), X, SORTED, V)
row("interp", lambda xp, x, p, f: xp.interp(x, p, f, period=2.0), A, V, V * V)
row("polyval", lambda xp, p, x: xp.polyval(p, x), W, A)
row("polyval", lambda xp, p, x: xp.polyval(p, x), N, I)
row("polyadd", lambda xp, p, q: xp.polyadd(p, q), W, V)
row("polysub", lambda xp, p, q: xp.polysub(p, q), W, V)
row("polymul", lambda xp, p, q: xp.polymul(p, q), W, V)
row("polyder", lambda xp, p: xp.polyder(p), V)
row("polyint", lambda xp, p: xp.polyint(p, 2, [3.0, 4.0]), W)
for _mode in ("full", "same", "valid"):
    for _x, _y in ((V, W), (W, V), (V, V[:4]), (V[:4], V), (N, N[:2]), (C[0], C[1, :3])):
        row("convolve", lambda xp, x, y, m=_mode: xp.convolve(x, y, m), _x, _y)
        row("correlate", lambda xp, x, y, m=_mode: xp.correlate(x, y, m), _x, _y)
row("unwrap", lambda xp, x: xp.unwrap(x), np.array([0.0, 3.0, 6.5, 0.2, -3.2, 3.1]))
row("unwrap", lambda xp, x: xp.unwrap(x, axis=0), 4 * A)
row("unwrap", lambda xp, x: xp.unwrap(x, period=4), np.array([0, 1, 2, -1, 0, 3]))
row("unwrap", lambda xp, x: xp.unwrap(x, discont=4.0), 3 * V)

# --------------------------------------------------------------------------------------- linear

row("dot", lambda xp, x, y: xp.dot(x, y), A, G)
row("dot", lambda xp, x, y: xp.dot(x, y), T, G)
row("dot", lambda xp, x, y: xp.dot(x, y), W, W)
row("dot", lambda xp, x, y: xp.dot(x, y), S, A)
row("dot", lambda xp, x, y: xp.dot(x, y), G, np.stack([G, G + 1]))
row("inner", lambda xp, x, y: xp.inner(x, y), A, T)
row("inner", lambda xp, x, y: xp.inner(x, y), W, W)
row("matmul", lambda xp, x, y: xp.matmul(x, y), T, G)
row("matmul", lambda xp, x, y: xp.matmul(x, y), W, A)
row("matmul", lambda xp, x, y: xp.matmul(x, y), I, I.T)
row("outer", lambda xp, x, y: xp.outer(x, y), W, A)
row("vdot", lambda xp, x, y: xp.vdot(x, y), C, A)
row("vecdot", lambda xp, x, y: xp.vecdot(x, y), C, C + 1)
row("vecdot", lambda xp, x, y: xp.vecdot(x, y, axis=0), A, B)
row("matvec", lambda xp, x, y: xp.matvec(x, y), T, G[0])
row("vecmat", lambda xp, x, y: xp.vecmat(x, y), C[:, :3], A[:3, :])
row("kron", lambda xp, x, y: xp.kron(x, y), A, U)
row("kron", lambda xp, x, y: xp.kron(x, y), W, T)
for _axes in (0, 1, ([1], [0]), ((0, 1), (0, 1)), (1, 1)):
    row("tensordot", lambda xp, x, y, a=_axes: xp.tensordot(x, y, a), G, G + 1)
row(
    "tensordot",
    lambda xp, x, y: xp.tensordot(x, y, axes=([2, 0], [1, 0])),
    T,
    T[:, :, :].swapaxes(1, 2),
)
row("cross", lambda xp, x, y: xp.cross(x, y), A[:, :3], B[:, 1:])
row("cross", lambda xp, x, y: xp.cross(x, y, axis=0), A, B)
for _text, _arrays in (
    ("ij,jk->ik", (A, G)),
    ("ij,jk", (A, G)),
    ("ij->ji", (A,)),
    ("ij->", (A,)),
    ("ii->i", (G,)),
    ("ii", (G,)),
    ("iij->j", (np.stack([A[:, :2].T] * 1 + [B[:, :2].T]),)),
    ("bij,jk->bik", (T, G)),
    ("i,j->ij", (W, V)),
    ("i,i", (W, W)),
    ("i,i->i", (W, W)),
    ("...j,jk->...k", (T, G)),
    ("...ij,...jk", (T, G)),
    ("b...->...b", (T,)),
    ("ij,jk,kl->il", (A, G, G)),
    ("ij,ij,ij->i", (A, B, A)),
    ("ijk,k,j->i", (T, G[0], W)),
    ("ij,kl->ijkl", (A, A)),
    ("ij,ij->ij", (A, A[:1])),
    ("ij,jk->ik", (I, I.T)),
    ("ij,jk->ik", (C, G)),
    ("aab,bc->ac", (np.stack([A[:2], B[:2]]), G)),
    ("ik,kj,il,lm,ml->", (A, G, A, G, G)),
    (" i j , j -> i ", (A, G[0])),
):
    row("einsum", lambda xp, *x, t=_text: xp.einsum(t, *x), *_arrays)
row("einsum", lambda xp, x, y: xp.einsum(x, [0, 1], y, [1, 2], [0, 2]), A, G)
row("einsum", lambda xp, x, y: xp.einsum(x, [0, 1], y, [1, 2]), A, G)

# ---------------------------------------------------------------------------------- elementwise

for _x in (A * 3, F * 3, X, I):
    for _name in ("fix", "fabs", "deg2rad", "rad2deg", "radians", "degrees", "sinc", "modf"):
        row(_name, lambda xp, x, f=_name: getattr(xp, f)(x), _x)
    for _name in ("isposinf", "isneginf", "isreal", "iscomplex", "frexp", "spacing", "positive"):
        row(_name, lambda xp, x, f=_name: getattr(xp, f)(x), _x)
for _x in (X, K, I, A, F, C):
    row("nan_to_num", lambda xp, x: xp.nan_to_num(x), _x)
row("nan_to_num", lambda xp, x: xp.nan_to_num(x, nan=7.0, posinf=8.0, neginf=9.0), X)
row("nan_to_num", lambda xp, x: xp.nan_to_num(x), C * np.array([np.nan, np.inf, 1, 1]))
for _x in (A * 100, F * 100, I * 7, C * 10):
    for _d in (0, 1, 3, -1):
        row("round", lambda xp, x, d=_d: xp.round(x, d), _x)
row("around", lambda xp, x: xp.around(x, 2), A)
row("frexp", lambda xp, x: xp.frexp(x), np.array([5e-324, 3.0, -1e308, 2.0**-1022, 0.5, 1.0, 8.0]))
row("frexp", lambda xp, x: xp.frexp(x), np.array([1e-45, 3.0, -1e38, 0.1], np.float32))
_MANTISSA = np.array([0.75, -1.5, 1.0 + 2.0**-52, 3.0, 1.25e-300, np.inf, np.nan])
for _e in (0, 5, -5, 1030, -1070, -1074, 2000, -2100, 700, -800):
    row("ldexp", lambda xp, x, e=_e: xp.ldexp(x, np.full(7, e)), _MANTISSA)
row("ldexp", lambda xp, x, e: xp.ldexp(x, e), F, I.astype(np.int32))
for _name in ("fmax", "fmin", "heaviside"):
    row(_name, lambda xp, x, y, f=_name: getattr(xp, f)(x, y), X, X[::-1])
    row(_name, lambda xp, x, y, f=_name: getattr(xp, f)(x, y), A, 0.5)
row("fmax", lambda xp, x, y: xp.fmax(x, y), I, I[::-1])
row("float_power", lambda xp, x, y: xp.float_power(x, y), I, 2)
row("float_power", lambda xp, x, y: xp.float_power(x, y), B.astype(np.float32), F)
row("divmod", lambda xp, x, y: xp.divmod(x, y), A, B)
row("divmod", lambda xp, x, y: xp.divmod(x, y), I, 4)
row("angle", lambda xp, x: xp.angle(x), C)
row("angle", lambda xp, x: xp.angle(x, deg=True), A)
row("iscomplex", lambda xp, x: xp.iscomplex(x), C)
row("copy", lambda xp, x: xp.copy(x), A)
row("logaddexp2", lambda xp, x, y: xp.logaddexp2(x, y), A, B)
