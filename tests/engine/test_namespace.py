"""The public names: what is there, how functions of arrays behave, NumPy's dispatch to them."""

import builtins
import inspect
import itertools
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy_cases import KNOWN, ROWS

import tilegrad as tg
from tilegrad.engine import names
from tilegrad.engine.names import STANDARD
from tilegrad.engine.namespace import BUILDERS, BUILTINS, FUNCTIONS

CHAPTERS = [names for chapter, names in STANDARD.items() if chapter not in ("linalg", "fft")]

# What scientists use beyond it (api.md).
WANTED = """
concatenate stack split pad roll flip tile repeat kron outer cross tensordot einsum interp
trapezoid gradient diff cumsum cumprod histogram digitize bincount polyval median quantile
percentile nansum nanmean nanmax allclose isclose convolve correlate unwrap select piecewise
lexsort put_along_axis unique argwhere hypot arctan2 identity logspace geomspace indices
""".split()  # noqa: SIM905 - a table of names


@pytest.mark.parametrize("name", sorted({*itertools.chain(*CHAPTERS), *WANTED}))
def test_name_exists(name):
    assert callable(getattr(tg, name))


def test_written_files_are_up_to_date():
    for path, text in names.written().items():
        have = path.read_text(encoding="utf-8")
        if path.suffix == ".md" and f"NumPy {np.__version__};" not in have:
            continue  # the page was written with another version of NumPy
        assert have == text, f"{path.name}: run python -m tilegrad.engine.names"


def test_constants_and_dtypes():
    assert (tg.pi, tg.e, tg.inf, tg.newaxis) == (np.pi, np.e, np.inf, None)
    assert tg.nan != tg.nan
    for name in ("bool", "int8", "uint64", "float32", "complex128"):
        assert getattr(tg, name).numpy == np.dtype(name)


def test_star_import_leaves_the_builtins_alone():
    names = set(tg.__all__)
    assert not names & set(dir(builtins))
    assert all(hasattr(tg, name) for name in names)
    for name in BUILTINS:
        assert getattr(tg, name) is FUNCTIONS[name]
    code = "from tilegrad import *; assert sum([1, 2]) == 3 and mean and grad and pi > 3"
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_function_looks_like_its_builder(name):
    function, builder = FUNCTIONS[name], BUILDERS[name]
    assert function.__name__ == name.rpartition(".")[2]
    assert function.__doc__
    assert inspect.signature(function) == inspect.signature(builder)
    if name != "trace":  # tg.trace traces a function
        assert pickle.loads(pickle.dumps(function)) is function


def test_spaces():
    for name, function in FUNCTIONS.items():
        space, _, plain = name.rpartition(".")
        if space:
            assert getattr(getattr(tg, space), plain) is function


# ----------------------------------------------------------------------------------- calling


def flat(result):
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in flat(item)]
    return [result]


def first_of_each(rows):
    seen = {}
    for name, call, arrays in rows:
        if arrays:
            seen.setdefault(name, (name, call, tuple(map(np.asarray, arrays))))
    return [seen[name] for name in sorted(seen)]


CALLS = first_of_each(ROWS + KNOWN)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "call", "arrays"), CALLS, ids=[row[0] for row in CALLS])
def test_called_through_numpy_and_directly(name, call, arrays):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = [np.asarray(x) for x in flat(call(np, *arrays))]
    ours = [tg.asarray(a) for a in arrays]
    for namespace in (tg, np):
        if name in {"trace" if namespace is tg else "full"} or not hasattr(np, name):
            continue  # tg.trace traces a function; np.full does not ask its fill value
        got = flat(call(namespace, *ours))
        assert len(got) == len(want)
        for result, expected in zip(got, want, strict=True):
            assert type(result) is tg.Array
            assert result.dtype.numpy == expected.dtype
            np.testing.assert_allclose(
                np.asarray(result), expected, rtol=1e-12, atol=1e-13, strict=True
            )


def test_every_dispatched_name_of_numpy_has_a_row():
    """What NumPy dispatches and we have is called above, through NumPy."""
    called = {name for name, _, _ in CALLS}
    ufuncs = {name for name in FUNCTIONS if isinstance(getattr(np, name, None), np.ufunc)}
    dispatched = {
        name
        for name in FUNCTIONS
        if hasattr(getattr(np, name, None), "__wrapped__")
        or hasattr(getattr(np, name, None), "_implementation")
    }
    assert dispatched - ufuncs - called <= ELSEWHERE


# Functions that take none of our arrays, and those called further down.
ELSEWHERE = {
    *("eye", "identity", "tri", "linspace", "logspace", "geomspace", "tril_indices"),
    *("triu_indices", "diag_indices", "hanning", "hamming", "blackman", "bartlett"),
    *("broadcast_shapes", "can_cast", "result_type", "iscomplexobj", "isrealobj", "einsum_path"),
    *("empty_like", "argpartition", "partition", "imag", "real", "sinc", "trace"),
    *("asarray", "array", "shape", "ndim", "size", "put_along_axis"),
}


@pytest.mark.parametrize(
    "name",
    sorted(n for n in FUNCTIONS if isinstance(getattr(np, n, None), np.ufunc)),
)
def test_ufuncs_dispatch(name):
    ufunc = getattr(np, name)
    x = np.array([0.25, 0.5, 0.75])
    if ufunc.types[0][0] == "?" and "d" not in "".join(ufunc.types):
        x = x > 0.4
    elif not any("d" in t.partition("->")[0] for t in ufunc.types):
        x = np.array([1, 2, 3])
    if name in ("arccosh", "acosh"):
        x = x + 1
    if name == "ldexp":
        arrays = (x, np.array([1, 2, 3]))
    elif name in ("matvec", "vecmat", "matmul"):
        arrays = {"matvec": (np.eye(3), x), "vecmat": (x, np.eye(3))}.get(name, (np.eye(3),) * 2)
    else:
        arrays = (x,) * ufunc.nin
    got, want = ufunc(*map(tg.asarray, arrays)), ufunc(*arrays)
    for ours, theirs in zip(flat(got), flat(want), strict=True):
        assert type(ours) is tg.Array
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-14)
        assert ours.dtype.numpy == theirs.dtype


def test_rest_of_numpys_names_dispatch():
    x = tg.asarray([3.0, 1.0, 2.0])
    assert np.shape(x) == (3,)
    assert np.ndim(x) == 1
    assert np.size(x) == 3
    assert np.iscomplexobj(x) is False
    np.testing.assert_array_equal(np.partition(x, 1), [1, 2, 3])
    np.testing.assert_array_equal(np.argpartition(x, 1), [1, 2, 0])
    np.testing.assert_array_equal(np.clip(x, 1.5, 2.5), [2.5, 1.5, 2])
    np.testing.assert_array_equal(np.real(x), x)
    np.testing.assert_array_equal(np.trace(tg.eye(3)), 3)
    assert np.empty_like(x).shape == (3,)
    assert np.linspace(x, x + 1, 3).shape == (3, 3)
    assert np.result_type(x, np.float32) is tg.float64
    assert type(np.linalg.norm(x)) is tg.Array
    np.testing.assert_array_equal(np.imag(x), np.zeros(3))
    assert type(np.sinc(x)) is tg.Array
    with pytest.raises(TypeError, match="put_along_axis: would write to its argument"):
        np.put_along_axis(x, tg.asarray([0]), 5.0, axis=0)
    np.testing.assert_array_equal(tg.put_along_axis(x, [0], 5.0, axis=0), [5, 1, 2])


# --------------------------------------------------------------------------------- arguments


def test_mixed_operands_are_lifted():
    x = tg.asarray([1.0, 2.0])
    for got in (
        tg.concatenate([x, np.ones(1), [3.0]]),
        tg.concatenate((np.array([1.0, 2.0]), x[:1], tg.asarray([3.0]))),
        tg.stack([tg.asarray(1.0), x[1], x[0]]),
        tg.where(np.array([True, False, True]), 1.0, tg.zeros(3)),
    ):
        assert type(got) is tg.Array
        assert got.shape[0] >= 3
    assert tg.add(x, np.float32(1)).dtype is tg.float64
    assert tg.add(tg.asarray([1.0], dtype="float32"), 1.5).dtype is tg.float32


def test_static_arguments_may_be_known_arrays():
    x = tg.arange(6.0)
    np.testing.assert_array_equal(tg.roll(x, tg.asarray(2)), np.roll(np.arange(6.0), 2))
    np.testing.assert_array_equal(tg.split(x, tg.asarray([2, 4]))[1], [2, 3])
    np.testing.assert_array_equal(tg.reshape(x, (tg.asarray(2), -1))[1], [3, 4, 5])
    np.testing.assert_array_equal(tg.repeat(x, np.array([1, 0, 0, 0, 0, 2])), [0, 5, 5])


def test_traced_static_arguments_are_refused():
    with pytest.raises(tg.TracerError, match="bincount: expected known data"):
        tg.jit(tg.bincount)(tg.asarray([1, 2]))
    got = tg.jit(lambda x: tg.bincount(x, length=4))(tg.asarray([1, 2, 2, 9]))
    np.testing.assert_array_equal(got, [0, 1, 2, 0])
    with pytest.raises(tg.TracerError, match="nonzero"):
        tg.jit(lambda x: x[x > 0])(tg.ones(3))
    got = tg.jit(lambda x: tg.nonzero(x, size=3, fill_value=-1)[0])(tg.asarray([0.0, 1, 0, 5]))
    np.testing.assert_array_equal(got, [1, 3, -1])


def test_masks_of_known_arrays_under_grad():
    x = tg.asarray([-1.0, 2.0, 3.0])
    np.testing.assert_array_equal(tg.grad(lambda v: tg.sum(v[v > 0] ** 2))(x), [0, 4, 6])


def test_roll_by_a_traced_shift():
    x = tg.arange(5)
    np.testing.assert_array_equal(tg.jit(tg.roll)(x, tg.asarray(2)), np.roll(np.arange(5), 2))


def test_piecewise_gives_its_functions_arrays():
    kinds = []

    def half(v):
        kinds.append(type(v))
        return v / 2

    x = tg.asarray([-2.0, 4.0])
    np.testing.assert_array_equal(tg.piecewise(x, [x < 0], [0.0, half]), [0, 2])
    assert kinds == [tg.Array]


def test_device_of_creation():
    assert tg.zeros(2, device="cpu").device == "cpu"
    with pytest.raises(tg.UnsupportedError, match="expected device 'cpu', got 'cuda'"):
        tg.ones(2, device="cuda")


# ------------------------------------------------------------------------------- inspection


def test_result_type_follows_nep_50():
    f32, f64 = tg.asarray([1.0], dtype="float32"), tg.asarray([1.0])
    assert tg.result_type(f32, f64) is tg.float64
    assert tg.result_type(f32, 1.0) is tg.float32
    assert tg.result_type(tg.int8, 2.5) is tg.float64
    assert tg.result_type("int8", "uint8") is tg.int16


def test_isdtype_can_cast_finfo():
    assert tg.isdtype(tg.float32, "real floating")
    assert tg.isdtype("int8", ("bool", "integral"))
    assert not tg.isdtype(tg.bool, "numeric")
    assert tg.can_cast(tg.int32, "float64")
    assert not tg.can_cast(tg.asarray([1.0]), "int64")
    assert tg.finfo("float32").eps == np.finfo(np.float32).eps
    assert tg.iinfo(tg.uint8).max == 255
    with pytest.raises(ValueError, match="isdtype: expected one of"):
        tg.isdtype(tg.int8, "number")
    with pytest.raises(tg.DTypeError, match="finfo"):
        tg.finfo("int8")


def test_namespace_info():
    info = tg.__array_namespace_info__()
    assert info.default_device() == "cpu"
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert tg.ones(2).__array_namespace__() is tg


# -------------------------------------------------------------------------------------- data


def test_asarray_copies_and_converts():
    data = np.arange(3.0)
    x = tg.asarray(data)
    data[0] = 9
    np.testing.assert_array_equal(x, [0, 1, 2])
    assert tg.asarray(x) is x
    assert tg.asarray(x, dtype="float32").dtype is tg.float32
    assert tg.asarray([1, 2]).dtype is tg.int64
    assert tg.asarray(True).dtype is tg.bool
    assert tg.asarray(data.astype(">f8")[::-2]).tolist() == [2, 9]
    np.testing.assert_array_equal(tg.asarray([x[0], [x[1], x[2]][0]]), [0, 1])
    np.testing.assert_array_equal(tg.asarray([[x[0], 1.0], [2.0, x[1]]]), [[0, 1], [2, 1]])
    assert tg.array(memoryview(b"ab")).tolist() == [97, 98]
    np.testing.assert_array_equal(tg.from_dlpack(np.arange(3)), [0, 1, 2])


def test_asarray_refuses_what_it_cannot_hold():
    with pytest.raises(tg.DTypeError, match="expected one of"):
        tg.asarray(np.zeros(2, np.float16))
    with pytest.raises(tg.DTypeError, match="expected one of"):
        tg.asarray(["a"])
    with pytest.raises(OverflowError):
        tg.asarray([300], dtype="uint8")
    with pytest.raises(tg.UnsupportedError, match="device"):
        tg.asarray([1.0], device="cuda")


JITTED = [row for row in first_of_each(ROWS) if row[0] not in ("digitize", "trace")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "call", "arrays"), JITTED, ids=[row[0] for row in JITTED])
def test_jitted_gives_the_same_bits(name, call, arrays):
    eager = flat(call(tg, *map(tg.asarray, arrays)))
    jitted = flat(tg.jit(lambda *xs: call(tg, *xs))(*arrays))
    for a, b in zip(map(np.asarray, eager), map(np.asarray, jitted), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
        if a.dtype.kind in "fc":
            numbers = ~np.isnan(a)
            np.testing.assert_array_equal(np.signbit(a.real[numbers]), np.signbit(b.real[numbers]))
