"""The array class: attributes, looking at values, operators, immutability, printing."""

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import tilegrad as tg

from .lines import raises_here

X = np.array([[1.5, -2.0, 3.25], [0.5, 4.0, -1.0]])
DTYPES = ["bool", "int8", "int32", "int64", "uint8", "uint64", "float32", "float64"]


def same(found: Any, expected: Any) -> None:
    """Equal in dtype, shape and bits (NaN equal to NaN)."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def test_attributes_are_known_before_values() -> None:
    y = tg.asarray(X) * 2.0
    assert (y.shape, y.dtype, y.ndim, y.size, y.itemsize, y.nbytes) == (
        *((2, 3), tg.float64, 2, 6, 8, 48),
    )
    assert y.device == "cpu"
    assert not y.is_realized
    same(y, X * 2)
    assert y.is_realized


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3)])
def test_conversion_to_numpy_and_back(dtype: str, shape: tuple[int, ...]) -> None:
    data = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    x = tg.asarray(data)
    same(x, data)
    same(x.numpy(), data)
    assert x.tolist() == data.tolist()
    assert not np.asarray(x).flags.writeable
    assert np.array(x).flags.writeable
    assert np.shares_memory(np.asarray(x), np.asarray(x)) or not data.size


def test_conversion_with_dtype_and_copy() -> None:
    x = tg.asarray(X)
    same(np.asarray(x, dtype="float32"), X.astype("float32"))
    with pytest.raises(ValueError, match="a copy is needed to convert float64"):
        np.asarray(x, dtype="float32", copy=False)


def test_imported_data_is_not_aliased() -> None:
    data = X.copy()
    x = tg.asarray(data)
    y = x + data  # pending: what it reads must be what was there
    data[:] = 0
    same(x, X)
    same(y, X + X)


def test_scalars() -> None:
    x = tg.asarray(2.5)
    assert (float(x), int(x), complex(x), bool(x), x.item()) == (2.5, 2, 2.5 + 0j, True, 2.5)
    assert operator.index(tg.asarray(3)) == 3
    assert [10, 20, 30][tg.asarray(1)] == 20
    assert round(tg.asarray(2.567), 1) == pytest.approx(2.6)
    assert tg.asarray([[7]]).item() == 7
    assert tg.asarray(X).item(1, 2) == -1.0
    assert f"{x:.2f}" == "2.50"
    assert not tg.asarray([0.0])
    assert bool(tg.asarray([[1]]))


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (bool, ValueError, r"truth of an array of 3 elements .* f64\[3\]; use tg.any\(x\) or"),
        (float, TypeError, r"float\(\): expected an array of shape \(\), got f64\[3\]"),
        (int, TypeError, r"int\(\): expected an array of shape \(\)"),
        (operator.index, TypeError, r"expected an integer array of shape \(\), got f64\[3\]"),
        (lambda x: x.item(), ValueError, r"item: expected an array of one element, got f64\[3\]"),
        (hash, TypeError, "unhashable"),
        (lambda x: len(x[0]), TypeError, r"len: expected an axis, got f64\[\]"),
        (lambda x: list(x[0]), TypeError, r"iteration: expected an axis"),
        (lambda x: operator.setitem(x, 0, 1.0), TypeError, r"immutable.*x = x.at\[i\].set\(v\)"),
        (lambda x: operator.delitem(x, 0), TypeError, "immutable"),
        (lambda x: x.sort(), TypeError, r"\.sort\(\) would change this one in place.*tg.sort"),
        (lambda x: setattr(x, "shape", (1, 3)), AttributeError, "shape"),
        (lambda x: x.to_device("cuda"), ValueError, "expected 'cpu', got 'cuda'"),
    ],
)
def test_refusals(act: Any, error: type[Exception], text: str) -> None:
    x = tg.asarray([1.0, 2.0, 3.0])
    with pytest.raises(error, match=text):
        act(x)
    same(x, [1.0, 2.0, 3.0])


def test_truth_of_an_empty_array_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 elements"):
        bool(tg.asarray(np.zeros(0)))


BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]
OTHERS: list[Any] = [
    np.array([[2.0, -3.0, 0.5], [1.0, 4.0, 2.0]]),
    np.array([2.0, 4.0, 8.0]),
    np.float64(2.0),
    np.float32(2.0),
    2.5,
    -0.5,
    3,
    True,
]


@pytest.mark.parametrize(
    ("other", "dtype"),
    [
        *[(other, dtype) for other in OTHERS for dtype in ("int64", "float32")],
        *[(other, "float64") for other in (OTHERS[0], np.float32(2.0), 3)],
    ],
    ids=repr,
)
@pytest.mark.parametrize("op", BINARY)
def test_binary_operators_on_both_sides(op: Any, other: Any, dtype: str) -> None:
    data = np.array([[1, -2, 3], [5, 4, -1]]).astype(dtype)
    x = tg.asarray(data)
    same(op(x, other), op(data, other))
    same(op(other, x), op(other, data))
    if isinstance(other, np.ndarray):
        same(op(x, tg.asarray(other)), op(data, other))


@pytest.mark.parametrize(
    "op", [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
)
def test_bit_operators(op: Any) -> None:
    a, b = np.array([12, 10, 7]), np.array([3, 1, 2])
    same(op(tg.asarray(a), tg.asarray(b)), op(a, b))
    same(op(tg.asarray(a), 2), op(a, 2))
    same(op(9, tg.asarray(b)), op(9, b))


def test_unary_operators_power_matmul_divmod() -> None:
    x = tg.asarray(X)
    same(-x, -X)
    same(+x, X)
    same(abs(x), abs(X))
    same(~tg.asarray([True, False]), [False, True])
    np.testing.assert_allclose(x**2, X**2, rtol=1e-15)
    np.testing.assert_allclose(2.0**x, 2.0**X, rtol=1e-15)
    np.testing.assert_allclose(x @ x.T, X @ X.T, rtol=1e-14)
    quotient, rest = divmod(tg.asarray([7, -7]), 3)
    same(quotient, [2, -3])
    same(rest, [1, 2])


def test_unknown_operands_have_their_say() -> None:
    class Loud:
        def __radd__(self, other: Any) -> str:
            return "loud"

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    assert tg.asarray(1.0) + Loud() == "loud"
    assert (tg.asarray(1.0) == Loud()) is True
    with pytest.raises(TypeError, match="unsupported operand"):
        tg.asarray(1.0) + "1"


def test_signed_zeros_survive_the_cache_of_scalars() -> None:
    x = tg.asarray([1.0, -1.0])
    same(np.signbit(np.asarray(x * 0.0)), [False, True])
    same(np.signbit(np.asarray(x * -0.0)), [True, False])
    same(x / 0.0, [np.inf, -np.inf])
    same(x / -0.0, [-np.inf, np.inf])
    assert np.isnan(np.asarray(x * float("nan"))).all()


def test_equality_is_elementwise() -> None:
    x = tg.asarray([1.0, float("nan")])
    same(x == x, [True, False])
    same(x != x, [False, True])
    assert 1.0 in x
    assert 2.0 not in x


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (lambda: tg.ones(2, dtype="float32") * 2.0, tg.float32),  # case 94
        (lambda: tg.arange(3) * 0.5, tg.float64),
        (lambda: tg.ones(2, dtype="float32") ** 2, tg.float32),
        (lambda: tg.ones(2, dtype="float32") * np.float64(2), tg.float64),
        (lambda: 2.0 / tg.ones(2, dtype="float32"), tg.float32),
        (lambda: tg.ones(2, dtype="float32") + 1j, tg.complex64),
        (lambda: tg.arange(2) / 2, tg.float64),
        (lambda: tg.asarray([1], dtype="int8") + 1, tg.int8),
    ],
)
def test_weak_scalars(expression: Any, dtype: Any) -> None:
    assert expression().dtype is dtype


def test_methods_are_the_functions_of_the_same_name() -> None:
    x = tg.asarray(X)
    same(x.sum(), X.sum())
    same(x.sum(axis=0, keepdims=True), X.sum(axis=0, keepdims=True))
    same(x.mean(1), X.mean(1))
    same(x.min(), X.min())
    same(x.max(axis=1), X.max(axis=1))
    same(x.argmax(), X.argmax())
    same(x.reshape(3, 2), X.reshape(3, 2))
    same(x.reshape((-1,)), X.reshape(-1))
    same(x.transpose(), X.T)
    same(x.transpose(1, 0), X.T)
    same(x.T, X.T)
    same(x.mT, X.T)
    same(x.ravel(), X.ravel())
    same(x.astype("float32"), X.astype("float32"))
    same((x > 0).all(), (X > 0).all())
    same((x > 0).any(axis=0), (X > 0).any(axis=0))
    same(x.cumsum(axis=1), X.cumsum(axis=1))
    same(x.swapaxes(0, 1), X.swapaxes(0, 1))
    same(tg.asarray([1 + 2j]).real, [1.0])
    same(tg.asarray([1 + 2j]).imag, [2.0])
    same(tg.asarray([1 + 2j]).conj(), [1 - 2j])


def test_indexing_and_iteration() -> None:
    x = tg.asarray(X)
    same(x[0], X[0])
    same(x[:, ::-1], X[:, ::-1])
    same(x[..., None, 1], X[..., None, 1])
    same(x[tg.asarray([1, 0])], X[[1, 0]])
    same(x[x > 0], X[X > 0])
    assert [row.tolist() for row in x] == X.tolist()
    a, b = tg.asarray([1.0, 2.0])
    assert (float(a), float(b)) == (1.0, 2.0)


def test_updates() -> None:
    x = tg.asarray([1.0, 2.0, 3.0])
    same(x.at[1].set(5.0), [1, 5.0, 3])
    same(x.at[1:].add(1.0), [1.0, 3, 4])
    same(x.at[tg.asarray([0, 0])].add(1.0), [3.0, 2, 3])
    same(x.at[0].multiply(4.0), [4.0, 2, 3])
    same(x.at[:].min(2.0), [1.0, 2, 2])
    same(x.at[:].max(2.0), [2.0, 2, 3])
    same(x.at[-1].get(), 3.0)
    same(x.at[x > 1.5].set(0.0), [1.0, 0, 0])
    same(x, [1.0, 2, 3])


def test_repr_is_numpys_with_the_dtype() -> None:
    assert repr(tg.asarray([1.0, 2.5])) == "Array([1. , 2.5], dtype=float64)"
    assert repr(tg.asarray([[1, 2], [3, 4]])) == "Array([[1, 2],\n       [3, 4]], dtype=int64)"
    assert repr(tg.asarray(True)) == "Array(True, dtype=bool)"
    assert repr(tg.asarray(np.zeros((0, 3)))) == "Array([], shape=(0, 3), dtype=float64)"
    assert str(tg.asarray([1.0, 2.0])) == "[1. 2.]"


def test_repr_of_a_traced_array_shows_type_and_origin() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = x * 2.0  # the line it was made on
        seen.append((repr(y), str(y)))
        return y

    tg.jit(f)(np.ones(3))
    text, other = seen[0]
    assert text.startswith("Traced<f64[3], argument x of jit(f), made at ")
    assert "the line it was made on" in text
    assert other == text


def test_pickle_copy_and_protocols() -> None:
    y = tg.asarray(X) + 1.0
    same(pickle.loads(pickle.dumps(y)), X + 1.0)
    assert copy.copy(y) is y
    assert np.array_equal(copy.deepcopy([y])[0], y)
    same(np.from_dlpack(y), X + 1.0)
    assert y.__array_namespace__() is tg
    assert y.block_until_ready() is y
    assert y.to_device("cpu") is y


def test_dlpack_never_lets_others_write_to_an_array() -> None:
    x = tg.arange(3.0)
    shown = np.from_dlpack(x)
    assert not shown.flags.writeable
    assert np.shares_memory(shown, x.numpy())

    class Older:
        """Asks as those do who do not know of read-only memory."""

        def __dlpack__(self, **options: Any) -> Any:
            return x.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return x.__dlpack_device__()

    own = np.from_dlpack(Older())
    same(own, np.arange(3.0))
    assert not np.shares_memory(own, x.numpy())
    with pytest.raises(BufferError, match="readonly"):
        x.__dlpack__(copy=False)


def test_array_is_the_class_of_tracers_too() -> None:
    seen = []
    tg.jit(lambda x: seen.append(isinstance(x, tg.Array)) or x)(1.0)
    tg.vmap(lambda x: seen.append(isinstance(x, tg.Array)) or x)(np.ones(2))
    assert seen == [True, True]


def test_eval_computes_and_passes_by() -> None:
    x = tg.ones(3) * 2.0
    tree = {"x": x, "y": [1.0, None, "text"]}
    assert tg.eval(tree) is tree
    assert x.is_realized
    a, b = tg.ones(2) + 1.0, tg.ones(2) + 2.0
    first, second = tg.eval(a, b)
    assert first is a
    assert second is b
    assert a.is_realized
    assert b.is_realized


@pytest.mark.parametrize(
    "key",
    [
        *(0, -1, slice(None), slice(1, None), slice(None, None, -2), Ellipsis, None, ()),
        *((0, 1), (slice(0, 1), -1), (Ellipsis, 0), (None, 1, Ellipsis, None), slice(5, 2)),
    ],
    ids=repr,
)
def test_basic_keys_first_and_again(key: Any) -> None:
    for data in (X, X + 1.0, X.astype("float32"), X.T.copy()):
        for _ in range(2):
            same(tg.asarray(data)[key], data[key])


def test_keys_that_are_equal_but_not_the_same() -> None:
    x = tg.asarray(X)
    same(x[1], X[1])
    same(x[True], X[True])
    same(x[0], X[0])
    same(x[False], X[False])
    same(x[np.int64(1)], X[1])
    for _ in range(2):
        with pytest.raises(IndexError, match="5"):
            x[5]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "uint8"])
@pytest.mark.parametrize("scalar", [1, 1.0, True, 2, 2.0, -3, 2**24 + 1, 0.1, -0.0, 0], ids=repr)
@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_short_ways_are_the_builders_way(op: Any, scalar: Any, dtype: str) -> None:
    from tilegrad.engine.namespace import FUNCTIONS

    name = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide"}[op.__name__]
    data = np.array([1, 2, 4]).astype(dtype)
    fits = type(scalar) is not int or 0 <= scalar < 256
    if dtype == "uint8" and not fits and op is not operator.truediv:
        with pytest.raises(OverflowError):
            op(tg.asarray(data), scalar)
        return
    for _ in range(2):
        for pair in ((tg.asarray(data), scalar), (scalar, tg.asarray(data))):
            found, expected = op(*pair), FUNCTIONS[name](*pair)
            assert str(found._type) == str(expected._type)
            assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
            with np.errstate(all="ignore"):
                plain = op(*[np.asarray(x) if isinstance(x, tg.Array) else x for x in pair])
            same(found, plain)


@pytest.mark.parametrize("index", ["a", 1.5, [0.0, 1.0], object(), np.array(["a"]), (0, "b")])
def test_what_is_no_index(index: Any) -> None:
    for x in (tg.asarray(X), tg.asarray(X)[:, :2]):
        with raises_here(IndexError, "index: expected integers, slices"):
            x[index]  # here
        with raises_here(IndexError, "index: expected integers, slices"):
            x.at[index].set(1.0)  # here


@pytest.mark.parametrize("data", [np.ones(2, "float16"), [1, "a"], [None], np.ones(1, "M8[D]")])
def test_data_of_other_types(data: Any) -> None:
    with raises_here(TypeError, "dtype: expected one of bool int8"):
        tg.asarray(data)  # here


def test_python_integers_that_no_type_holds() -> None:
    same(tg.asarray(np.ones(1)) + 2**63, np.ones(1) + 2.0**63)
    for x in (tg.asarray(X), tg.arange(3)):
        for n in (2**64, -(2**63) - 1):
            with raises_here(OverflowError, f"Python integer {n} is out of bounds"):
                x + n  # here
