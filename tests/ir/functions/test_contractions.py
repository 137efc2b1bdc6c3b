"""einsum, multi_dot, matrix_power, topk: drawn at random or against NumPy's own."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_checks import evaluate

from tilegrad.engine.namespace import BUILDERS
from tilegrad.ir.errors import DTypeError, ShapeError

EXTENTS = dict(zip("abcde", (2, 3, 1, 4, 2), strict=True))


@st.composite
def contractions(draw):
    """Subscripts over five letters, repeated ones and results in any order among them."""
    terms = draw(st.lists(st.text("abcde", min_size=0, max_size=4), min_size=1, max_size=4))
    letters = sorted(set("".join(terms)))
    output = "".join(draw(st.permutations([c for c in letters if draw(st.booleans())])))
    return ",".join(terms) + ("->" + output if draw(st.booleans()) else "")


@settings(max_examples=300)
@given(contractions(), st.sampled_from([True, False, "optimal"]))
def test_einsum(text, optimize):
    terms = text.partition("->")[0].split(",")
    rng = np.random.default_rng(len(text))
    arrays = [rng.standard_normal([EXTENTS[c] for c in term]) for term in terms]
    want = np.einsum(text, *arrays)
    got = evaluate(lambda *xs: BUILDERS["einsum"](text, *xs, optimize=optimize), *arrays)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


def test_einsum_costs_what_its_products_cost():
    """A chain goes through dot products, never through an outer product of all letters."""
    from tilegrad.ir.graph import toposort

    x = np.ones((20, 20))
    value = BUILDERS["einsum"]("ij,jk,kl,lm->im", x, x, x, x)
    assert max(t.size for n in toposort([value]) for t in n.types) == 400


def test_einsum_path_is_numpys():
    x, y, z = np.ones((3, 4)), np.ones((4, 5)), np.ones((5, 6))
    got = BUILDERS["einsum_path"]("ij,jk,kl->il", x, y, z, optimize="optimal")
    assert got[0] == np.einsum_path("ij,jk,kl->il", x, y, z, optimize="optimal")[0]


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float32, np.complex64])
@pytest.mark.parametrize("text", ["ij,jk->ik", "ij,ij->", "ij->j", "ij,kj->ijk"])
def test_einsum_keeps_the_dtype(text, dtype, rng):
    count = text.partition("->")[0].count(",") + 1
    arrays = [rng.integers(0, 3, (3, 3)).astype(dtype) for _ in range(count)]
    want = np.einsum(text, *arrays)
    got = evaluate(lambda *xs: BUILDERS["einsum"](text, *xs), *arrays)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shapes", [(2, 3), (2, 3, 4), (30, 2, 40, 3), (5, 5, 5, 5, 5)])
def test_multi_dot(shapes, rng):
    arrays = [rng.standard_normal(pair) for pair in itertools.pairwise(shapes)]
    if len(arrays) == 1:
        arrays.append(rng.standard_normal((shapes[-1], 2)))
    for first, last in itertools.product((False, True), repeat=2):
        parts = list(arrays)
        parts[0] = parts[0][0] if first else parts[0]
        parts[-1] = parts[-1][:, 0] if last else parts[-1]
        got = evaluate(lambda *xs: BUILDERS["linalg.multi_dot"](xs), *parts)
        np.testing.assert_allclose(got, np.linalg.multi_dot(parts), rtol=1e-12)


def test_matrix_power(rng):
    x = rng.standard_normal((2, 3, 3))
    power = BUILDERS["linalg.matrix_power"]
    for n in (0, 1, 2, 3, 6, 7):
        got = evaluate(lambda v, n=n: power(v, n), x)
        np.testing.assert_allclose(got, np.linalg.matrix_power(x, n), rtol=1e-12)
    with pytest.raises(ValueError, match=r"negative powers need linalg\.inv"):
        power(x, -1)
    with pytest.raises(ShapeError, match="square matrices"):
        power(x[0, :2], 2)


def test_topk(rng):
    x = rng.permutation(24).reshape(4, 6).astype(float)
    values = evaluate(lambda v: BUILDERS["topk"](v, 3, axis=1)[0], x)
    places = evaluate(lambda v: BUILDERS["topk"](v, 3, axis=1)[1], x)
    np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :3])
    np.testing.assert_array_equal(np.take_along_axis(x, places, 1), values)


def test_long_convolutions_go_piece_by_piece(rng, monkeypatch):
    """Windows are not held all at once; NaN stays where the kernel meets it."""
    from tilegrad.ir.functions import convolution
    from tilegrad.ir.graph import toposort
    from tilegrad.ir.ops.leaves import constant

    monkeypatch.setattr(convolution, "_ELEMENTS", 2000)
    x, y = rng.standard_normal(300), rng.standard_normal(41)
    x[100] = np.nan
    value = convolution.convolve(constant(x), constant(y), "same")
    np.testing.assert_allclose(
        evaluate(lambda a, b: convolution.convolve(a, b, "same"), x, y),
        np.convolve(x, y, "same"),
        rtol=1e-12,
    )
    assert max(t.size for n in toposort([value]) for t in n.types) <= 2000


ACCUMULATED = {
    # name: (shapes, the exact result)
    "matmul": (((3, 40), (40, 5)), np.matmul),
    "dot": (((3, 40), (40, 5)), np.dot),
    "inner": (((3, 40), (5, 40)), np.inner),
    "tensordot": (((3, 8, 5), (8, 5, 2)), np.tensordot),
    "vecdot": (((3, 40), (3, 40)), np.vecdot),
    "sum": (((3, 40),), np.sum),
}


@pytest.mark.parametrize("name", ACCUMULATED)
def test_sums_carried_in_a_wider_dtype_round_once(name, rng):  # NC002
    shapes, exact = ACCUMULATED[name]
    arrays = [rng.standard_normal(s).astype("f4") for s in shapes]
    arrays[0][..., 0] = 2.0**24  # what follows would be lost in float32
    arrays[-1] = np.abs(arrays[-1])
    function = BUILDERS[name]
    got = evaluate(lambda *xs: function(*xs, accum_dtype="float64"), *arrays)
    want = exact(*(x.astype("f8") for x in arrays)).astype("f4")
    assert got.dtype == np.float32
    np.testing.assert_array_max_ulp(got, want, 1)
    with pytest.raises(
        DTypeError, match=rf"{name}: expected an accumulator that holds every float32, got int32"
    ):
        function(*arrays, accum_dtype="int32")


def test_the_accumulator_does_not_change_the_type_of_a_sum():
    x = np.arange(5, dtype="i4")
    got = evaluate(lambda x: BUILDERS["sum"](x, accum_dtype="float64"), x)
    assert (got.dtype, got) == (np.int64, 10)
