"""Calls that NumPy and tilegrad must answer alike: one row a case, run with either namespace.

``call(xp, *arrays)`` is evaluated with ``xp`` NumPy and with ``xp`` tilegrad. ``KNOWN`` marks rows
whose arrays must be known (their result has a shape that depends on data).
"""

from __future__ import annotations

import numpy as np
import numpy_cases_numeric  # noqa: F401 - it fills the table too
from numpy_case_table import (
    KNOWN,
    NUMBERS,
    REALS,
    ROWS,
    SORTED,
    TIES,
    A,
    B,
    C,
    E,
    F,
    I,
    K,
    M,
    N,
    S,
    T,
    U,
    V,
    W,
    X,
    known,
    over,
    row,
)

__all__ = ["KNOWN", "ROWS"]

# ---------------------------------------------------------------------------------- reductions

for _name in ("sum", "prod", "mean", "std", "var"):
    over(_name, (*NUMBERS, M))
    row(_name, lambda xp, x, f=_name: getattr(xp, f)(x, dtype=np.float32), I)
    row(_name, lambda xp, x, f=_name: getattr(xp, f)(x), S)
    row(_name, lambda xp, x, m, f=_name: getattr(xp, f)(x, axis=1, where=m), A, M)
for _name in ("max", "min", "amax", "amin", "ptp"):
    over(_name, REALS)
for _name in ("any", "all", "count_nonzero"):
    over(_name, (*NUMBERS, M))
for _name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"):
    over(_name, (K, A, I), axes=(None, 0, 1))
for _name in ("argmax", "argmin"):
    over(_name, (*REALS, M, K), axes=(None, 0, 1, -1))
for _name in ("nanargmax", "nanargmin"):
    over(_name, (A, I, K[[0, 2]]), axes=(None, 0, 1))
for _name in ("std", "var"):
    row(_name, lambda xp, x, f=_name: getattr(xp, f)(x, axis=0, ddof=1), A)
    row(_name, lambda xp, x, f=_name: getattr(xp, f)(x, axis=1, correction=1.5), A)
    row(_name, lambda xp, x, f=_name: getattr(xp, f)(x, ddof=3, axis=0), A)
    row(_name, lambda xp, x, f=_name: getattr(xp, f)(x, axis=0, ddof=5), A)
row("sum", lambda xp, x: xp.sum(x, axis=0), E)
row("sum", lambda xp, x: xp.sum(x, axis=1), E)
row("sum", lambda xp, x: xp.sum(x, initial=3.0), A)
row("prod", lambda xp, x: xp.prod(x, axis=0, initial=2), I)
row("max", lambda xp, x: xp.max(x, axis=0, initial=-7.0), E)
row("max", lambda xp, x: xp.max(x, axis=1), E)
row("min", lambda xp, x: xp.min(x, initial=0.25), A)
row("max", lambda xp, x, m: xp.max(x, axis=0, where=m, initial=-1.0), A, M)
row("any", lambda xp, x, m: xp.any(x, axis=1, where=m), M, I > 2)
row("all", lambda xp, x: xp.all(x, axis=0), E)
row("sum", lambda xp, x: xp.sum(x, dtype=np.int8), U)
row("mean", lambda xp, x: xp.mean(x, axis=0), E)

for _name in ("median", "nanmedian"):
    for _x in (A, F, I, K, T):
        for _axis in (None, 0, 1, (0, 1)):
            row(_name, lambda xp, x, a=_axis, f=_name: getattr(xp, f)(x, axis=a), _x)
    row(_name, lambda xp, x, f=_name: getattr(xp, f)(x, axis=0, keepdims=True), A)
_METHODS = (
    *("linear", "lower", "higher", "nearest", "midpoint", "hazen", "weibull"),
    *("median_unbiased", "normal_unbiased", "interpolated_inverted_cdf"),
)
for _method in _METHODS:
    for _q in (0.0, 0.3, 1.0, [0.1, 0.5, 0.75]):
        for _x in (A, V, TIES):
            row(
                "quantile",
                lambda xp, x, q=_q, m=_method: xp.quantile(x, q, axis=0, method=m),
                _x,
            )
for _x in (A, F, I, K, T):
    for _axis in (None, 1, (0, 1)):
        row(
            "quantile", lambda xp, x, a=_axis: xp.quantile(x, [0.2, 0.6], axis=a, keepdims=True), _x
        )
        row("percentile", lambda xp, x, a=_axis: xp.percentile(x, 37.5, axis=a), _x)
        # NumPy gives NaN beside an infinity; see functions/test_quantiles.py
        _y = np.where(np.isinf(_x), 7, _x)
        row("nanquantile", lambda xp, x, a=_axis: xp.nanquantile(x, [0.0, 0.6], axis=a), _y)
        row("nanpercentile", lambda xp, x, a=_axis: xp.nanpercentile(x, 90, axis=a), _y)

row("average", lambda xp, x, w: xp.average(x, weights=w), A, B)
row("average", lambda xp, x, w: xp.average(x, axis=0, weights=w), A, W + 5)
row("average", lambda xp, x, w: xp.average(x, 0, w, True), A, B)
row("average", lambda xp, x: xp.average(x, axis=1, keepdims=True), I)
row("average", lambda xp, x: xp.average(x, returned=True), I)
row("cov", lambda xp, x: xp.cov(x), A)
row("cov", lambda xp, x: xp.cov(x, rowvar=False, bias=True), A)
row("cov", lambda xp, x, y: xp.cov(x, y), V, V[::-1] + 1)
row("cov", lambda xp, x: xp.cov(x), V)
row("cov", lambda xp, x: xp.cov(x), C)
row("cov", lambda xp, x: xp.cov(x, ddof=0), I)
row("cov", lambda xp, x, f, a: xp.cov(x, fweights=f, aweights=a), A, I[0] + 6, B[0])
row("corrcoef", lambda xp, x: xp.corrcoef(x), A)
row("corrcoef", lambda xp, x, y: xp.corrcoef(x, y), V, V * V)
row("histogram", lambda xp, x: xp.histogram(x), V)
row("histogram", lambda xp, x: xp.histogram(x, bins=4, range=(-1.0, 1.0)), A)
row("histogram", lambda xp, x: xp.histogram(x, bins=[-1.0, 0.0, 0.5, 2.0], density=True), A)
row("histogram", lambda xp, x, w: xp.histogram(x, bins=3, weights=w), V, V * V)
row("histogram", lambda xp, x: xp.histogram(x, bins=5), np.full(4, 2.0))
row("histogram", lambda xp, x: xp.histogram(x, bins=[0, 2, 4]), N)
row("histogram_bin_edges", lambda xp, x: xp.histogram_bin_edges(x, 3), V)
known("bincount", lambda xp, x: xp.bincount(x), N)
known("bincount", lambda xp, x, w: xp.bincount(x, w, minlength=9), N, V[N % 5])
known("bincount", lambda xp, x: xp.bincount(x, minlength=2), np.zeros(0, np.int64))
row("isclose", lambda xp, x, y: xp.isclose(x, y), A, A + 1e-9)
row("isclose", lambda xp, x, y: xp.isclose(x, y), X, X[::-1])
row("isclose", lambda xp, x, y: xp.isclose(x, y, equal_nan=True), X, X)
row("isclose", lambda xp, x, y: xp.isclose(x, y), I, I + 1)
row("allclose", lambda xp, x, y: xp.allclose(x, y), A, A + 1e-9)
row("array_equal", lambda xp, x, y: xp.array_equal(x, y), A, B)
row("array_equal", lambda xp, x, y: xp.array_equal(x, y, equal_nan=True), X, X)
row("array_equal", lambda xp, x, y: xp.array_equal(x, y), A, V)
row("array_equiv", lambda xp, x, y: xp.array_equiv(x, y), A, A[:1] * 1)
row("array_equiv", lambda xp, x, y: xp.array_equiv(x, y), A, V)

# ------------------------------------------------------------------------------------ creation

for _args in ((5,), (2, 7), (1, 10, 3), (10, 1, -2), (0.5, 3.0), (0, 1, 0.1), (3, 3), (5, 0)):
    row("arange", lambda xp, a=_args: xp.arange(*a))
row("arange", lambda xp: xp.arange(1.0, 2.0, 0.1, dtype=np.float32))
row("arange", lambda xp: xp.arange(3, dtype=np.uint8))
for _name in ("zeros", "ones"):
    for _shape in (3, (2, 3), (), (0, 2)):
        row(_name, lambda xp, s=_shape, f=_name: getattr(xp, f)(s))
    row(_name, lambda xp, f=_name: getattr(xp, f)((2,), dtype=np.int32))
    for _x in (A, F, I, M, C, S):
        row(_name + "_like", lambda xp, x, f=_name + "_like": getattr(xp, f)(x), _x)
row("full", lambda xp: xp.full((2, 3), 7))
row("full", lambda xp: xp.full((2, 3), 7.5, dtype=np.float32))
row("full", lambda xp, x: xp.full((2, 3), x), W)
row("full_like", lambda xp, x: xp.full_like(x, 2.5), I)
row("full_like", lambda xp, x: xp.full_like(x, 2.5, dtype=np.float64, shape=(2,)), I)
for _args in ((0, 1), (0.0, 1.0, 5), (2, -3, 7), (1.5, 1.5, 3), (0, 1, 1), (0, 1, 0)):
    for _end in (True, False):
        row("linspace", lambda xp, a=_args, e=_end: xp.linspace(*a, endpoint=e))
row("linspace", lambda xp, x, y: xp.linspace(x, y, 4, axis=1), W, W + 3)
row("linspace", lambda xp: xp.linspace(0, 10, 4, dtype=np.int64))
row("linspace", lambda xp: xp.linspace(-3, 10, 7, retstep=True))
row("linspace", lambda xp: xp.linspace(0j, 1 + 2j, 3))
row("logspace", lambda xp: xp.logspace(0, 3, 4))
row("logspace", lambda xp: xp.logspace(0, 3, 4, endpoint=False, base=2.0))
row("geomspace", lambda xp: xp.geomspace(1, 256, 9))
row("geomspace", lambda xp: xp.geomspace(-1000, -1, 4))
for _args in ((3,), (2, 4), (4, 2, 1), (3, 3, -1), (3, 3, 9), (0,)):
    row("eye", lambda xp, a=_args: xp.eye(*a))
    row("tri", lambda xp, a=_args: xp.tri(*a))
row("eye", lambda xp: xp.eye(2, dtype=bool))
row("identity", lambda xp: xp.identity(3))
for _k in (-2, -1, 0, 1, 5):
    for _x in (A, I, C, T, V, M):
        row("tril", lambda xp, x, k=_k: xp.tril(x, k), _x)
        row("triu", lambda xp, x, k=_k: xp.triu(x, k), _x)
row("tril_indices_from", lambda xp, x: xp.tril_indices_from(x, 1), A)
row("triu_indices_from", lambda xp, x: xp.triu_indices_from(x), A)
row("clip", lambda xp, x: xp.clip(x, -0.5, 0.5), A)
row("clip", lambda xp, x: xp.clip(x, a_min=None, a_max=0.5), F)
row("clip", lambda xp, x, y: xp.clip(x, min=y), A, B - 2)
row("clip", lambda xp, x: xp.clip(x, 2, 5), I)
row("tril_indices", lambda xp: xp.tril_indices(3, 1, 4))
row("triu_indices", lambda xp: xp.triu_indices(3))
for _kw in ({}, {"indexing": "ij"}, {"sparse": True}, {"indexing": "ij", "sparse": True}):
    row("meshgrid", lambda xp, x, y, kw=_kw: xp.meshgrid(x, y, **kw), W, V)
    row("meshgrid", lambda xp, x, y, z, kw=_kw: xp.meshgrid(x, y, z, **kw), W, V, N)
row("meshgrid", lambda xp, x: xp.meshgrid(x), W)
row("indices", lambda xp: xp.indices((2, 3)))
row("indices", lambda xp: xp.indices((2, 3), sparse=True))
row("vander", lambda xp, x: xp.vander(x), W)
row("vander", lambda xp, x: xp.vander(x, 5, increasing=True), N)
for _name in ("hanning", "hamming", "blackman", "bartlett"):
    for _n in (0, 1, 2, 7, 8):
        row(_name, lambda xp, n=_n, f=_name: getattr(xp, f)(n))

# -------------------------------------------------------------------------------- manipulation

row("reshape", lambda xp, x: xp.reshape(x, (2, -1)), A)
row("reshape", lambda xp, x: xp.reshape(x, (4, 3), order="F"), A)
row("reshape", lambda xp, x: xp.reshape(x, -1), T)
row("reshape", lambda xp, x: xp.reshape(x, (0, 5)), E)
row("ravel", lambda xp, x: xp.ravel(x), T)
row("ravel", lambda xp, x: xp.ravel(x, order="F"), T)
row("ravel", lambda xp, x: xp.ravel(x), E)
row("ravel", lambda xp, x: xp.ravel(x), S)
row("transpose", lambda xp, x: xp.transpose(x), T)
row("transpose", lambda xp, x: xp.transpose(x, (1, -1, 0)), T)
row("permute_dims", lambda xp, x: xp.permute_dims(x, (1, 2, 0)), T)
row("matrix_transpose", lambda xp, x: xp.matrix_transpose(x), T)
row("swapaxes", lambda xp, x: xp.swapaxes(x, 0, -1), T)
row("moveaxis", lambda xp, x: xp.moveaxis(x, 0, -1), T)
row("moveaxis", lambda xp, x: xp.moveaxis(x, [0, 1], [-1, 0]), T)
row("rollaxis", lambda xp, x: xp.rollaxis(x, 2), T)
row("rollaxis", lambda xp, x: xp.rollaxis(x, 0, 3), T)
row("expand_dims", lambda xp, x: xp.expand_dims(x, 1), A)
row("expand_dims", lambda xp, x: xp.expand_dims(x, (0, -1)), A)
row("squeeze", lambda xp, x: xp.squeeze(x), T[:, :1])
row("squeeze", lambda xp, x: xp.squeeze(x, axis=1), T[:, :1])
row("broadcast_to", lambda xp, x: xp.broadcast_to(x, (2, 3, 4)), A)
row("broadcast_to", lambda xp, x: xp.broadcast_to(x, (3, 0)), W[:, None])
row("broadcast_arrays", lambda xp, x, y: xp.broadcast_arrays(x, y), A, T)
for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    for _x in (S, W, A, T):
        row(_name, lambda xp, x, f=_name: getattr(xp, f)(x), _x)
    row(_name, lambda xp, x, y, f=_name: getattr(xp, f)(x, y), S, W)
for _axis in (None, 0, 1, -1, (0, 2)):
    row("flip", lambda xp, x, a=_axis: xp.flip(x, a), T)
row("fliplr", lambda xp, x: xp.fliplr(x), A)
row("flipud", lambda xp, x: xp.flipud(x), A)
for _shift in (0, 1, -1, 5, -9):
    for _axis in (None, 0, 1):
        row("roll", lambda xp, x, s=_shift, a=_axis: xp.roll(x, s, axis=a), A)
row("roll", lambda xp, x: xp.roll(x, (1, -2), axis=(0, 1)), A)
row("roll", lambda xp, x: xp.roll(x, 1, axis=(0, 1)), A)
row("roll", lambda xp, x: xp.roll(x, 3, axis=0), E)
for _k in range(-1, 5):
    row("rot90", lambda xp, x, k=_k: xp.rot90(x, k), A)
row("rot90", lambda xp, x: xp.rot90(x, 1, axes=(2, 0)), T)
row("astype", lambda xp, x: xp.astype(x, np.int64), A)
row("concatenate", lambda xp, x, y: xp.concatenate([x, y]), A, B)
row("concatenate", lambda xp, x, y: xp.concatenate((x, y), axis=-1), A, I)
row("concatenate", lambda xp, x, y: xp.concatenate((x, y), axis=None), A, V)
row("concatenate", lambda xp, x, y: xp.concatenate((x, y), axis=0, dtype=np.float32), E, W[None])
row("concatenate", lambda xp, x: xp.concatenate(x, axis=1), T)
row("concat", lambda xp, x, y: xp.concat([x, y], axis=1), A, B)
for _axis in (0, 1, 2, -1, -3):
    row("stack", lambda xp, x, y, a=_axis: xp.stack([x, y], axis=a), A, B)
row("stack", lambda xp, x, y: xp.stack((x, y)), S, S)
for _name in ("vstack", "hstack", "dstack", "column_stack"):
    row(_name, lambda xp, x, y, f=_name: getattr(xp, f)((x, y)), A, B)
    row(_name, lambda xp, x, y, f=_name: getattr(xp, f)([x, y]), W, W + 1)
row("append", lambda xp, x, y: xp.append(x, y), A, W)
row("append", lambda xp, x, y: xp.append(x, y, axis=0), A, B)
row("block", lambda xp, x, y: xp.block([[x, y], [y, x]]), A, B)
row("block", lambda xp, x, y: xp.block([x, y]), W, S)
row("unstack", lambda xp, x: xp.unstack(x), T)
row("unstack", lambda xp, x: xp.unstack(x, axis=-1), A)
row("split", lambda xp, x: xp.split(x, 2, axis=1), A)
row("split", lambda xp, x: xp.split(x, [1, 3], axis=1), A)
row("split", lambda xp, x: xp.split(x, [2, 9, 1], axis=0), A)
row("array_split", lambda xp, x: xp.array_split(x, 4), V)
row("array_split", lambda xp, x: xp.array_split(x, 9), V)
row("hsplit", lambda xp, x: xp.hsplit(x, 2), A)
row("vsplit", lambda xp, x: xp.vsplit(x, 3), A)
row("dsplit", lambda xp, x: xp.dsplit(x, [1]), T)
for _reps in (2, (2,), (2, 3), (1, 2, 2), (0, 1)):
    row("tile", lambda xp, x, r=_reps: xp.tile(x, r), A)
row("tile", lambda xp, x: xp.tile(x, 3), S)
for _reps in (2, 0, 3):
    for _axis in (None, 0, 1):
        row("repeat", lambda xp, x, r=_reps, a=_axis: xp.repeat(x, r, axis=a), A)
row("repeat", lambda xp, x: xp.repeat(x, [1, 0, 3], axis=0), A)
row("repeat", lambda xp, x: xp.repeat(x, [2], axis=0), A)
row("resize", lambda xp, x: xp.resize(x, (5, 2)), W)
row("resize", lambda xp, x: xp.resize(x, (2, 2)), A)
for _obj in (1, -1, [0, 2], slice(0, 2), [], np.array([True, False, True])):
    row("delete", lambda xp, x, o=_obj: xp.delete(x, o, axis=0), A)
row("delete", lambda xp, x: xp.delete(x, 3), A)
row("insert", lambda xp, x: xp.insert(x, 1, 9.0), A)
row("insert", lambda xp, x: xp.insert(x, 1, 9.0, axis=1), A)
row("insert", lambda xp, x, v: xp.insert(x, [0, 2], v, axis=0), A, B[:2])
row("insert", lambda xp, x, v: xp.insert(x, 1, v, axis=1), A, W)
row("insert", lambda xp, x: xp.insert(x, [1, 1, -1], [7.0, 8.0, 9.0]), W)
for _mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
    for _width in (0, 1, (2, 1), ((1, 2), (3, 0)), ((7, 5), (9, 6))):
        row("pad", lambda xp, x, w=_width, m=_mode: xp.pad(x, w, mode=m), A)
    row("pad", lambda xp, x, m=_mode: xp.pad(x, (1, 2), mode=m), I)
row("pad", lambda xp, x: xp.pad(x, 1, constant_values=5), I)
row("pad", lambda xp, x: xp.pad(x, 1, constant_values=(2, 5)), A)
row("pad", lambda xp, x: xp.pad(x, ((1, 2), (0, 1)), constant_values=((2, 5), (7, 8))), A)
row("pad", lambda xp, x: xp.pad(x, {-1: (1, 2)}), A)
for _mode in ("maximum", "minimum", "mean"):
    row("pad", lambda xp, x, m=_mode: xp.pad(x, (2, 1), mode=m), A)
for _k in (-4, -1, 0, 1, 3, 6):
    row("diagonal", lambda xp, x, k=_k: xp.diagonal(x, k), A)
    row("diag", lambda xp, x, k=_k: xp.diag(x, k), A)
    row("diag", lambda xp, x, k=_k: xp.diag(x, k), W)
    row("diagflat", lambda xp, x, k=_k: xp.diagflat(x, k), U)
    row("trace", lambda xp, x, k=_k: xp.trace(x, k), A)
row("diagonal", lambda xp, x: xp.diagonal(x, 1, 2, 0), T)
row("trace", lambda xp, x: xp.trace(x, 0, 1, 2), T)
row("trace", lambda xp, x: xp.trace(x), I)
row("diag_indices", lambda xp: xp.diag_indices(3))

# -------------------------------------------------------------------------- indexing, searching

row("take", lambda xp, x: xp.take(x, [0, -1, 2]), A)
row("take", lambda xp, x: xp.take(x, [[0, 1], [-1, 2]], axis=1), A)
row("take", lambda xp, x: xp.take(x, 1, axis=0), A)
row("take", lambda xp, x, i: xp.take(x, i, axis=0, mode="wrap"), A, N * 3)
row("take", lambda xp, x, i: xp.take(x, i, axis=1, mode="clip"), A, N - 2)
row("take", lambda xp, x: xp.take(x, [], axis=0), A)
row("take_along_axis", lambda xp, x, i: xp.take_along_axis(x, i, axis=1), A, I % 4)
row("take_along_axis", lambda xp, x, i: xp.take_along_axis(x, i, axis=None), A, N)
row("take_along_axis", lambda xp, x, i: xp.take_along_axis(x, i, axis=0), A, (I % 3)[:1])
row("where", lambda xp, m, x, y: xp.where(m, x, y), M, A, B)
row("where", lambda xp, m, x: xp.where(m, x, 0), M, F)
row("where", lambda xp, m, x: xp.where(m, x, 1.5), I, I)
known("where", lambda xp, m: xp.where(m), M)
for _x in (A, I, M, K, N):
    known("nonzero", lambda xp, x: xp.nonzero(x), _x)
    known("argwhere", lambda xp, x: xp.argwhere(x), _x)
    known("flatnonzero", lambda xp, x: xp.flatnonzero(x), _x)
known("compress", lambda xp, c, x: xp.compress(c, x, axis=1), np.array([1, 0, 1]) > 0, A)
known("extract", lambda xp, m, x: xp.extract(m, x), M, A)
row("select", lambda xp, x: xp.select([x < -1, x > 1], [x, x * x], 42.0), A)
row("select", lambda xp, x: xp.select([x < 0, x < 3], [x, x * 2.5]), I)
row("piecewise", lambda xp, x: xp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v]), A)
row("piecewise", lambda xp, x: xp.piecewise(x, [x < -1, x > 1], [-1.0, 1.0, lambda v: v]), A)
row("choose", lambda xp, i, x, y, z: xp.choose(i, [x, y, z]), I % 3, A, B, A * B)
row("choose", lambda xp, i, x, y: xp.choose(i, [x, y], mode="clip"), I, A, B)
for _side in ("left", "right"):
    row("searchsorted", lambda xp, x, v, s=_side: xp.searchsorted(x, v, side=s), SORTED, A)
    row("searchsorted", lambda xp, x, v, s=_side: xp.searchsorted(x, v, s), np.sort(N), N)
    row("searchsorted", lambda xp, x, v, s=_side: xp.searchsorted(x, v, s), np.sort(X), X)
row("searchsorted", lambda xp, x, v: xp.searchsorted(x, v), SORTED, S)
row("searchsorted", lambda xp, x, v, o: xp.searchsorted(x, v, sorter=o), V, A, np.argsort(V))
for _right in (False, True):
    for _bins in ([-1.0, 0.0, 1.0], [1.0, 0.0, -1.0]):
        row("digitize", lambda xp, x, b=_bins, r=_right: xp.digitize(x, b, right=r), np.round(A))
row("unravel_index", lambda xp, x: xp.unravel_index(x, (2, 3, 4)), N * 4)
row("ravel_multi_index", lambda xp, x, y: xp.ravel_multi_index((x, y), (6, 7)), N, N)
for _kw in ({}, {"return_index": True, "return_inverse": True, "return_counts": True}):
    for _x in (N, I, TIES, M, np.array([np.nan, 1.0, np.nan])):
        known("unique", lambda xp, x, kw=_kw: xp.unique(x, **kw), _x)
known("unique", lambda xp, x: xp.unique(x, axis=0), np.array([[1, 2], [0, 1], [1, 2]]))
known("unique_values", lambda xp, x: xp.sort(xp.unique_values(x)), I)  # NumPy's order is free
for _name in ("unique_counts", "unique_inverse", "unique_all"):
    known(_name, lambda xp, x, f=_name: getattr(xp, f)(x), I)
for _invert in (False, True):
    row("isin", lambda xp, x, y, v=_invert: xp.isin(x, y, invert=v), I, N)
row("isin", lambda xp, x, y: xp.isin(x, y), V, np.zeros(0))
for _name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
    known(_name, lambda xp, x, y, f=_name: getattr(xp, f)(x, y), I, N)
for _x in (A, F, I, K, T):
    for _axis in (-1, 0, None):
        row("sort", lambda xp, x, a=_axis: xp.sort(x, axis=a), _x)
        row("argsort", lambda xp, x, a=_axis: xp.argsort(x, axis=a, kind="stable"), _x)
row("sort", lambda xp, x: xp.sort(x, axis=0), M)
row("lexsort", lambda xp, x, y: xp.lexsort((x, y)), TIES, np.array([1, 1, 0, 0, 1, 0]))
row("lexsort", lambda xp, x: xp.lexsort(x, axis=0), np.round(T))
