"""Wrong arguments: the class of the error, its text, and the user's line in it."""

import re

import numpy as np
import pytest

from tilegrad.engine.namespace import BUILDERS
from tilegrad.ir.errors import DTypeError, ShapeError, TracerError
from tilegrad.ir.ops.leaves import input_node
from tilegrad.ir.types import TensorType


class Functions:
    def __init__(self, space=""):
        self.space = space

    def __getattr__(self, name):
        return BUILDERS[self.space + name]


tg, LA = Functions(), Functions("linalg.")
A = np.ones((3, 4))
V = np.arange(5.0)
C = A + 1j
STACK = np.ones((3, 2, 2))

ROWS = [
    (IndexError, r"sum: expected an axis in \[-2, 2\), got 2", lambda: tg.sum(A, axis=2)),
    (ShapeError, "sum: expected distinct axes", lambda: tg.sum(A, axis=(0, -2))),
    (TypeError, "sum: expected an integer for axis", lambda: tg.sum(A, axis=1.0)),
    (IndexError, "mean: expected an axis", lambda: tg.mean(V, axis=-2)),
    (ShapeError, "max: expected at least one element", lambda: tg.max(np.zeros((0, 2)), axis=0)),
    (ValueError, "max: expected an initial value", lambda: tg.max(A, where=A > 2)),
    (DTypeError, "max: is not defined for c128", lambda: tg.max(C)),
    (DTypeError, "median: is not defined for complex128", lambda: tg.median(C)),
    (ValueError, r"quantile: expected q in \[0, 1\]", lambda: tg.quantile(V, 1.5)),
    (ValueError, r"percentile: expected q in \[0, 100\]", lambda: tg.percentile(V, 101)),
    (ValueError, "quantile: expected a method", lambda: tg.quantile(V, 0.5, method="best")),
    (ValueError, "nanargmax: expected a number", lambda: tg.nanargmax(V * np.nan)),
    (ShapeError, "average: expected weights along", lambda: tg.average(A, 0, weights=V)),
    (ShapeError, "average: expected weights of the shape", lambda: tg.average(A, weights=V)),
    (ZeroDivisionError, "average", lambda: tg.average(V, weights=V * 0)),
    (ShapeError, "cov: expected two axes at most", lambda: tg.cov(np.ones((2, 2, 2)))),
    (ValueError, "histogram: expected bins that increase", lambda: tg.histogram(V, [1, 0])),
    (ValueError, "histogram: expected one bin", lambda: tg.histogram(V, 0)),
    (ValueError, "finite, rising range", lambda: tg.histogram([1.0, np.inf])),
    (ValueError, "finite, rising range", lambda: tg.histogram(V, range=(2.0, 1.0))),
    (TypeError, "bincount: expected integers", lambda: tg.bincount(V)),
    (ValueError, "bincount: expected non-negative", lambda: tg.bincount(np.array([-1, 2]))),
    (ShapeError, "concatenate: expected shapes that agree", lambda: tg.concatenate((A, A.T))),
    (ShapeError, "concatenate: expected one array", lambda: tg.concatenate(())),
    (ShapeError, "concatenate: expected arrays with an axis", lambda: tg.concatenate((1.0, 2.0))),
    (IndexError, "concatenate: expected an axis", lambda: tg.concatenate((A, A), axis=2)),
    (ShapeError, "stack: expected equal shapes", lambda: tg.stack((A, V))),
    (ShapeError, "split: .*divides the extent 5", lambda: tg.split(V, 2)),
    (ShapeError, "split: expected one section", lambda: tg.array_split(V, 0)),
    (ShapeError, "vsplit: expected two axes", lambda: tg.vsplit(V, 1)),
    (ShapeError, "repeat: expected 5 repeats", lambda: tg.repeat(V, [1, 2])),
    (ShapeError, "repeat: expected non-negative", lambda: tg.repeat(V, -1)),
    (TypeError, "repeat: expected integer repeats", lambda: tg.repeat(V, 1.5)),
    (ShapeError, "reshape: expected a shape", lambda: tg.reshape(A, (5, -1))),
    (ShapeError, "transpose: expected a permutation", lambda: tg.transpose(A, (0, 0))),
    (ShapeError, "moveaxis: expected as many", lambda: tg.moveaxis(A, (0, 1), 0)),
    (ShapeError, "squeeze: expected extent 1", lambda: tg.squeeze(A, axis=0)),
    (ShapeError, "broadcast_to: expected a shape", lambda: tg.broadcast_to(A, (4, 3))),
    (ShapeError, "broadcast_shapes", lambda: tg.broadcast_arrays(A, V)),
    (ShapeError, "rot90: expected two distinct axes", lambda: tg.rot90(A, axes=(1, 1))),
    (ShapeError, "roll: expected one shift an axis", lambda: tg.roll(A, (1, 2), axis=(0, 1, 1))),
    (ShapeError, "pad: expected pad_width", lambda: tg.pad(A, ((1, 2, 3),))),
    (ShapeError, "pad: expected a non-negative", lambda: tg.pad(A, -1)),
    (ValueError, "pad: mode 'odd'", lambda: tg.pad(A, 1, mode="odd")),
    (ValueError, "unsupported keyword", lambda: tg.pad(A, 1, mode="wrap", constant_values=0)),
    (ShapeError, "pad: expected elements to copy", lambda: tg.pad(V[:0], 1, mode="edge")),
    (ShapeError, "diagonal: expected two distinct", lambda: tg.diagonal(A, 0, 1, 1)),
    (ShapeError, "diagonal: expected two axes", lambda: tg.diagonal(V)),
    (ShapeError, "diag: expected a vector or a matrix", lambda: tg.diag(np.ones((2, 2, 2)))),
    (ZeroDivisionError, "arange: expected a step", lambda: tg.arange(1, 2, 0)),
    (ShapeError, "arange: expected finite", lambda: tg.arange(0.0, np.inf)),
    (ShapeError, "zeros: expected non-negative", lambda: tg.zeros((2, -1))),
    (TypeError, "zeros: expected an integer for the shape", lambda: tg.zeros(2.5)),
    (ShapeError, "linspace: expected a non-negative", lambda: tg.linspace(0, 1, -1)),
    (ValueError, "meshgrid: expected indexing", lambda: tg.meshgrid(V, indexing="yx")),
    (ShapeError, "tril: expected an array of two axes", lambda: tg.tril(1.0)),
    (ValueError, "where: expected both", lambda: tg.where(A > 0, A)),
    (ShapeError, "nonzero: expected an array with an axis", lambda: tg.nonzero(1.0)),
    (ValueError, "select: expected as many", lambda: tg.select([A > 0], [A, A])),
    (TypeError, "select: expected bool", lambda: tg.select([A], [A])),
    (ValueError, "piecewise: expected 1 or 2", lambda: tg.piecewise(V, [V > 1], [1, 2, 3])),
    (ValueError, "searchsorted: expected side", lambda: tg.searchsorted(V, 1.0, side="up")),
    (ShapeError, "searchsorted: expected a vector", lambda: tg.searchsorted(A, 1.0)),
    (ValueError, "digitize: expected bins that", lambda: tg.digitize(V, [0.0, 2.0, 1.0])),
    (IndexError, "unravel_index: index 6", lambda: tg.unravel_index(np.array([6]), (2, 3))),
    (IndexError, r"\[0, 3\) for axis 1", lambda: tg.ravel_multi_index(([0], [3]), (2, 3))),
    (DTypeError, "expected integer indices", lambda: tg.take(V, np.array([0.5]))),
    (ShapeError, "take_along_axis: expected indices of 2 axes", lambda: tg.take_along_axis(A, [0])),
    (ValueError, "partition: expected kth", lambda: tg.partition(V, 9)),
    (ShapeError, r"top_k: expected k in \[0, 5\]", lambda: tg.topk(V, 6)),
    (ValueError, "sort: expected a kind", lambda: tg.sort(V, kind="bogo")),
    (ShapeError, "lexsort: expected keys of one shape", lambda: tg.lexsort((V, V[:2]))),
    (ValueError, "diff: expected a non-negative", lambda: tg.diff(V, -1)),
    (ShapeError, "diff: expected an array with an axis", lambda: tg.diff(1.0)),
    (ShapeError, "cumulative_sum: expected an axis", lambda: tg.cumulative_sum(A)),
    (ShapeError, "gradient: expected 3 elements", lambda: tg.gradient(V[:2], edge_order=2)),
    (ValueError, "gradient: expected edge_order", lambda: tg.gradient(V, edge_order=3)),
    (TypeError, "gradient: expected 2 spacings", lambda: tg.gradient(A, 1.0, 2.0, 3.0)),
    (ShapeError, "interp: expected xp and fp", lambda: tg.interp(0.5, V, V[:2])),
    (ValueError, "interp: expected a period", lambda: tg.interp(0.5, V, V, period=0)),
    (ShapeError, "polyval: expected a vector", lambda: tg.polyval(A, 1.0)),
    (ValueError, "convolve: expected vectors", lambda: tg.convolve(V, [])),
    (ValueError, "convolve: expected mode", lambda: tg.convolve(V, V, "most")),
    (ShapeError, "dot: expected equal inner", lambda: tg.dot(A, A)),
    (ShapeError, "inner: expected equal last", lambda: tg.inner(A, V)),
    (ShapeError, "vdot: expected equal sizes", lambda: tg.vdot(A, V)),
    (ShapeError, "cross: expected vectors of 3", lambda: tg.cross(V, V)),
    (ShapeError, "matvec: expected matrices", lambda: tg.matvec(V, V)),
    (ValueError, "einsum: expected 2 arrays", lambda: tg.einsum("ij,jk", A)),
    (ShapeError, "einsum: expected an array of 2 axes for 'ij'", lambda: tg.einsum("ij", V)),
    (ShapeError, "einsum: expected one extent for 'j'", lambda: tg.einsum("ij,jk", A, A)),
    (ShapeError, "einsum: expected equal extents for 'i'", lambda: tg.einsum("ii", A)),
    (ValueError, "einsum: expected each letter", lambda: tg.einsum("ij->ik", A)),
    (ValueError, "einsum: expected letters", lambda: tg.einsum("i1", A)),
    (ValueError, r"'\.\.\.' in the result", lambda: tg.einsum("...i->i", A)),
    (ShapeError, r"cholesky: expected square matrices .* got f64\[3,4\]", lambda: LA.cholesky(A)),
    (ShapeError, r"solve_triangular: expected square", lambda: LA.solve_triangular(A, V)),
    (ShapeError, "expected a right side of 3 rows", lambda: LA.solve_triangular(np.eye(3), V)),
    (ShapeError, "expected a right side of 3 rows", lambda: LA.solve_triangular(np.eye(3), 1.0)),
    (ShapeError, "triangular: expected leading", lambda: LA.solve_triangular(STACK, STACK[:2])),
    (ValueError, "expected trans 0, 1, 2, N", lambda: LA.solve_triangular(np.eye(5), V, "H")),
    (DTypeError, "ldexp: expected integer exponents", lambda: tg.ldexp(V, V)),
    (DTypeError, "round: is not defined for bool", lambda: tg.round(A > 0)),
    (DTypeError, "frexp: is not defined for complex128", lambda: tg.frexp(C)),
    (DTypeError, "tilegrad|dtype: expected one of", lambda: tg.zeros(2, dtype="float16")),
]


@pytest.mark.parametrize(("error", "text", "call"), ROWS, ids=[r[1][:24] for r in ROWS])
def test_wrong_arguments(error, text, call):
    with pytest.raises(error) as caught:
        call()
    # The message ends with the line of the call, which is the row with the text looked for.
    message, _, line = str(caught.value).partition("\n  at ")
    assert re.search(text, message), message
    assert "test_errors.py" in line or "dtype" in text


TRACED = [
    ("unique", lambda x: tg.unique(x)),
    ("nonzero", lambda x: tg.nonzero(x)),
    ("argwhere|nonzero", lambda x: tg.argwhere(x)),
    ("bincount", lambda x: tg.bincount(x)),
    ("repeat", lambda x: tg.repeat(x, x)),
    ("arange", lambda x: tg.arange(tg.sum(x))),
    ("zeros", lambda x: tg.zeros(tg.sum(x))),
    ("compress", lambda x: tg.compress(x > 0, x)),
    ("delete", lambda x: tg.delete(x, x)),
    ("split", lambda x: tg.split(x, x)),
    ("reshape", lambda x: tg.reshape(x, x)),
]


@pytest.mark.parametrize(("name", "call"), TRACED, ids=[r[0] for r in TRACED])
def test_data_dependent_shapes_are_refused_when_traced(name, call):
    x = input_node(TensorType((3,), BUILDERS["arange"](3).dtype), "x").out
    with pytest.raises(TracerError, match=f"({name}): expected known data .*got the traced"):
        call(x)
