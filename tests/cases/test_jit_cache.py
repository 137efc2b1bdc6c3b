"""Cases of the group jit cache: what makes a program stale, what makes it the same."""

import collections
import functools
import itertools
import math

import numpy as np
import pytest

import tilegrad as tg

SCALE = 2.0


class Base:
    k = 2.0

    def scaled(self, x):
        return self.k * x

    @property
    def twice(self):
        return 2 * self.k

    @classmethod
    def of_class(cls, x):
        return cls.k * x


class Model(Base):
    pass


class Slotted:
    __slots__ = ("k",)


def compiles():
    return tg.jit.stats().compiles


# ------------------------------------------------------------------------------- staleglobal


def test_staleglobal_closure():
    k = 2.0
    f = tg.jit(lambda x: k * x)
    assert float(f(1.0)) == 2.0
    k = 5.0
    assert float(f(1.0)) == 5.0
    k = 2.0
    assert float(f(1.0)) == 2.0


def test_staleglobal_global(monkeypatch):
    f = tg.jit(lambda x: SCALE * x)
    for value in (2.0, 5.0, 5, True, 2.0):
        monkeypatch.setitem(globals(), "SCALE", value)
        assert float(f(1.0)) == float(value)


def test_staleglobal_transformed(monkeypatch):
    """Also inside of what other transforms and helper functions read."""
    helper = lambda x: SCALE * x  # noqa: E731
    functions = [
        tg.jit(tg.grad(lambda x: SCALE * x * x)),
        tg.jit(lambda x: 2.0 * helper(x)),
        tg.jit(functools.partial(lambda c, x: c * x * SCALE, 2.0)),
        tg.jit(lambda x: tg.vmap(lambda y: 2 * SCALE * y)(tg.stack([x, x]))[0]),
    ]
    for value in (2.0, 5.0):
        monkeypatch.setitem(globals(), "SCALE", value)
        assert [float(f(1.0)) for f in functions] == [2 * value] * 4


def test_staleglobal_array():
    """A captured array is an input of the program: a new one of the same type runs as it is."""
    k = tg.array([1.0, 2.0])
    f = tg.jit(lambda x: k * x)
    assert f(tg.ones(2)).tolist() == [1.0, 2.0]
    k = tg.array([3.0, 4.0])
    assert f(tg.ones(2)).tolist() == [3.0, 4.0]
    k = tg.array([3.0])
    assert f(tg.ones(2)).tolist() == [3.0, 3.0]


def test_staleglobal_containers():
    """Scalars in containers are part of what is read, objects in them too."""
    table, ordered = {"k": 2.0}, collections.OrderedDict(k=2.0)
    layers = [Model(), Model()]
    layers[0].k = 2.0
    functions = [
        tg.jit(lambda x: table["k"] * x),
        tg.jit(lambda x: ordered["k"] * x),
        tg.jit(lambda x: layers[0].k * x),
        tg.jit(lambda x: layers[0].scaled(x)),
        tg.jit(lambda x: sum(layer.k for layer in layers[:1]) * x),
    ]
    assert [float(f(1.0)) for f in functions] == [2.0] * 5
    table["k"] = ordered["k"] = layers[0].k = 5.0
    assert [float(f(1.0)) for f in functions] == [5.0] * 5


def test_staleglobal_attributes(monkeypatch):
    """Of instances, of their classes, of base classes, in slots, behind methods and properties."""
    model, slotted = Model(), Slotted()
    slotted.k = 2.0
    through = {
        "attribute": tg.jit(lambda x: model.k * x),
        "bound method": tg.jit(model.scaled),
        "method": tg.jit(lambda x: model.scaled(x)),
        "property": tg.jit(lambda x: model.twice * x / 2),
        "class method": tg.jit(lambda x: Model.of_class(x)),
        "class": tg.jit(lambda x: Model.k * x),
        "slot": tg.jit(lambda x: slotted.k * x),
    }

    def values():
        return {name: float(f(1.0)) for name, f in through.items()}

    of_class = {"class method", "class"}
    assert set(values().values()) == {2.0}
    monkeypatch.setattr(Base, "k", 3.0)
    slotted.k = 3.0
    assert set(values().values()) == {3.0}
    monkeypatch.setattr(Model, "k", 4.0, raising=False)  # hides the one of the base class
    slotted.k = 4.0
    assert set(values().values()) == {4.0}
    model.k = slotted.k = 5.0  # hides that of the class
    assert values() == {name: 4.0 if name in of_class else 5.0 for name in through}
    del model.k
    slotted.k = 4.0
    assert set(values().values()) == {4.0}
    monkeypatch.setattr(Base, "scaled", lambda self, x: 10.0 * x)
    assert values()["method"] == 10.0


# ------------------------------------------------------------------------------- freshlambda


def test_freshlambda():
    before = compiles()
    for _ in range(4):
        tg.eval(tg.jit(lambda x: tg.sin(x) * 2.0 + 0.3125)(tg.ones(3)))
    assert compiles() - before == 1


def test_freshlambda_and_other_ways_to_make_one():
    x = tg.ones(5)

    def make(k):
        return lambda x: tg.cos(x) * k

    before = compiles()
    for _ in range(3):
        tg.eval(tg.jit(make(0.8125))(x))
        tg.eval(tg.jit(functools.partial(lambda k, x: tg.cos(x) * k, 0.8125))(x))
    assert compiles() - before == 1
    tg.eval(tg.jit(make(0.9375))(x))  # another constant
    assert compiles() - before <= 2
    before = compiles()
    for _ in range(3):
        tg.eval(tg.jit(tg.grad(lambda x: tg.sum(tg.sin(x) * tg.exp(x))))(x))
    assert compiles() - before == 1


def test_freshlambda_learning_rates():
    """Python numbers are inputs: a schedule does not trace again."""
    traces = []

    @tg.jit
    def step(w, rate):
        traces.append(rate)
        return w - rate * w

    w = tg.ones(3)
    for k in range(20):
        w = step(w, 0.5 / (1 + k))
    assert len(traces) == 1


# ------------------------------------------------------------------------------- signedconst


def test_signedconst():
    f = tg.jit(lambda x: (x / 0.0, x / -0.0, tg.copysign(x, 0.0), tg.copysign(x, -0.0)))
    assert [float(y) for y in f(1.0)] == [math.inf, -math.inf, 1.0, -1.0]
    assert [float(y) for y in f(tg.array(2.0))] == [math.inf, -math.inf, 2.0, -2.0]


@pytest.mark.parametrize("way", ["static", "closure", "dynamic", "nested"])
def test_signedconst_in_keys(way):
    """0.0 and -0.0, 1 and 1.0 and True, in every order, are different values."""
    for order in itertools.permutations((0.0, -0.0)):
        g = tg.jit(lambda s, x: x / s, static_argnums=0)
        n = tg.jit(lambda s, x: x / s[1][0], static_argnums=0)
        for s in order:
            if way == "static":
                got = g(s, 1.0)
            elif way == "nested":
                got = n((3, (s,)), 1.0)
            elif way == "closure":
                got = tg.jit(lambda x, s=s: x / s)(1.0)
            else:
                got = tg.jit(lambda s, x: x / s)(s, 1.0)
            assert float(got) == math.copysign(math.inf, s), (way, order)
    for order in itertools.permutations((1, True, 1.0)):
        h = tg.jit(lambda s, x: x * s, static_argnums=0)
        d = tg.jit(lambda s, x: x * s)
        for s in order:
            run = d if way == "dynamic" else h
            expected = tg.float64 if type(s) is float else tg.int64
            assert run(s, tg.arange(2)).dtype is expected, (way, order, s)


def test_signedconst_in_arrays():
    """Constant arrays that differ in the sign of a zero or in a NaN are not merged."""
    zero, minus = np.zeros(2), -np.zeros(2)
    f = tg.jit(lambda x: (x / tg.asarray(zero), x / tg.asarray(minus), x + zero, x * minus))
    a, b, _, d = (np.asarray(y) for y in f(np.ones(2)))
    assert a.tolist() == [math.inf] * 2
    assert b.tolist() == [-math.inf] * 2
    assert np.signbit(d).all()
    both = tg.jit(lambda: (tg.full(2, 0.0), tg.full(2, -0.0)))()
    assert [np.signbit(np.asarray(y)).all() for y in both] == [False, True]
    complexes = tg.jit(lambda x: (tg.imag(x * complex(1, 0.0)), tg.imag(tg.conj(x + 0j))))(2.0)
    assert [float(y) for y in complexes] == [0.0, 0.0]


# ------------------------------------------------------------------------------------ unhash


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, {1, 2}, np.ones(2), (1, [2]), bytearray(b"x")])
@pytest.mark.parametrize("named", [False, True])
def test_unhash(value, named):
    def f(x, config):
        return x

    if named:
        with pytest.raises(TypeError) as caught:
            tg.jit(f, static_argnames="config")(1.0, config=value)
    else:
        with pytest.raises(TypeError) as caught:
            tg.jit(f, static_argnums=1)(1.0, value)
    for part in ("config", type(value).__name__, "tuple", "test_jit_cache.py"):
        assert part in str(caught.value), str(caught.value)


def test_unhash_of_traced_static_arguments():
    with pytest.raises(TypeError, match="config"):
        tg.jit(lambda y: tg.jit(lambda x, config: x, static_argnums=1)(1.0, y))(2.0)
    with pytest.raises(TypeError, match="config"):
        tg.jit(lambda x, config: x, static_argnums=1)(1.0, tg.ones(2))


def test_unhash_ways_out():
    f = tg.jit(lambda x, config: x * config[1], static_argnums=1)
    assert float(f(2.0, (1, 3))) == 6.0
    g = tg.jit(lambda x, config: x * config["k"])
    assert float(g(2.0, {"k": 3.0})) == 6.0


# -------------------------------------------------------------------------------------- weak

ARRAY_TYPES = ["bool", "int8", "uint8", "int32", "int64", "uint64", "float32", "float64"]
ARRAY_TYPES += ["complex64", "complex128"]


@pytest.mark.parametrize("dtype", ARRAY_TYPES)
def test_weak(dtype):
    """Python scalars take the type of the array, NumPy's count as arrays: NEP 50, everywhere."""
    x = np.ones(2, dtype)
    scalars = [True, 2, 2.0, 2j, np.float64(2), np.float32(2), np.int8(2), np.bool_(True)]
    for s in scalars:
        expected = (x * s).dtype
        assert (tg.asarray(x) * s).dtype.numpy == expected, s
        assert (s * tg.asarray(x)).dtype.numpy == expected, s
        assert tg.trace(lambda x, s=s: x * s)(x).outputs[0].dtype.numpy == expected
        if not isinstance(s, complex):
            assert tg.trace(lambda x, s: x * s)(x, s).outputs[0].dtype.numpy == expected
    if dtype[0] in "fiuc":
        assert (tg.asarray(x) ** 2).dtype.numpy == (x**2).dtype
        assert (tg.asarray(x) / 2).dtype.numpy == (x / 2).dtype
        assert (2 ** tg.asarray(x)).dtype.numpy == (2**x).dtype


def test_weak_stays_weak():
    """What is computed from Python scalars alone is still weak in a traced function."""
    x = np.ones(2, np.float32)
    got = tg.jit(lambda x, k: (x * (k + 1) * 2.0, x * tg.sin(k), -k * x))(x, 3.0)
    assert [y.dtype for y in got] == [tg.float32] * 3
    g = tg.grad(lambda k: tg.sum(tg.asarray(x) * k))(3.0)
    assert float(g) == 2.0
    assert tg.grad(lambda x: tg.sum(x * 2.0 + 1) * 0.5)(x).dtype is tg.float32


def test_weak_overflow_is_an_error():
    for f in (lambda x: x + 300, lambda x: x * -1):
        with pytest.raises((OverflowError, ValueError, TypeError)):
            f(tg.zeros(2, dtype="uint8"))
