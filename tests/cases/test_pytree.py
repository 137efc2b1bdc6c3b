"""Cases of the group pytree: None in trees, the order of dicts."""

import collections
import dataclasses
import itertools

import numpy as np
import pytest

import tilegrad as tg

Pair = collections.namedtuple("Pair", ["first", "second"])

TREES = [
    {"w": None, "b": 3.0},
    [None, 3.0, (None, None)],
    Pair(None, {"b": 3.0, "c": None}),
    {"deep": [{"b": 3.0}, None, ()], "none": None},
    collections.OrderedDict([("z", None), ("a", 3.0)]),
    collections.defaultdict(list, z=None, a=[3.0]),
]


def doubled(tree):
    return tg.tree.map(lambda x: 2 * x, tree)


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_treenone(tree):
    """None is a part of the structure, never a leaf, in every transform."""
    assert tg.tree.leaves(tree) == [3.0]
    structure = tg.tree.structure(tree)
    assert tg.tree.unflatten(structure, [3.0]) == tree

    def loss(p):
        (leaf,) = tg.tree.leaves(p)
        return leaf**2

    expected = doubled(tree)  # the derivative of b^2
    for g in (tg.grad(loss)(tree), tg.jit(tg.grad(loss))(tree), tg.value_and_grad(loss)(tree)[1]):
        assert tg.tree.structure(g) == structure
        assert tg.tree.map(float, g) == expected
    same = tg.jit(lambda p: p)(tree)
    assert tg.tree.map(float, same) == tree
    tangent = tg.jvp(doubled, (tree,), (tree,))[1]
    assert tg.tree.map(float, tangent) == expected
    (bar,) = tg.vjp(doubled, tree)[1](tree)
    assert tg.tree.map(float, bar) == expected
    stacked = tg.tree.map(lambda x: np.full(2, x), tree)
    mapped = tg.vmap(doubled)(stacked)
    assert tg.tree.structure(mapped) == structure
    assert tg.tree.leaves(mapped)[0].tolist() == [6.0, 6.0]


def test_treenone_alone():
    assert tg.tree.leaves(None) == []
    assert tg.jit(lambda x: None)(1.0) is None
    assert tg.jit(lambda x, y: x if y is None else x + y)(2.0, None).tolist() == 2.0
    assert tg.grad(lambda x, y: x * x)(3.0, None).tolist() == 6.0
    assert tg.vmap(lambda x: (x, None))(np.ones(2))[1] is None
    assert tg.tree.structure({"a": None}) != tg.tree.structure({"a": 1.0})


def test_treenone_against_a_value_is_another_structure():
    """A program for None there is not used for a number there."""
    f = tg.jit(lambda p: 1.0 if p["w"] is None else p["w"] * 2)
    assert float(f({"w": None})) == 1.0
    assert float(f({"w": 4.0})) == 8.0
    assert float(f({"w": None})) == 1.0
    with pytest.raises((TypeError, ValueError)):
        tg.jvp(lambda p: p["b"], ({"w": None, "b": 1.0},), ({"w": 1.0, "b": 1.0},))


def test_treeorder():
    """Results keep the order of the dict they belong to; equal dicts share one program."""
    f = lambda p: p["z"] * p["a"]  # noqa: E731
    g = tg.grad(f)({"z": 2.0, "a": 5.0})
    assert [(k, float(v)) for k, v in g.items()] == [("z", 5.0), ("a", 2.0)]
    h, before = tg.jit(lambda p: f(p) + 0.65625), tg.jit.stats().compiles
    assert float(h({"z": 2.0, "a": 5.0})) == float(h({"a": 5.0, "z": 2.0})) == 10.65625
    assert tg.jit.stats().compiles - before == 1


@pytest.mark.parametrize("order", list(itertools.permutations(["z", "a", "m"])))
def test_treeorder_in_every_transform(order):
    p = {k: {"z": 2.0, "a": 5.0, "m": 3.0}[k] for k in order}
    f = lambda p: p["z"] * p["a"] ** 2 + p["m"]  # noqa: E731
    exact = {"z": 25.0, "a": 20.0, "m": 1.0}
    found = {
        "grad": tg.grad(f)(p),
        "jit of grad": tg.jit(tg.grad(f))(p),
        "vjp": tg.vjp(f, p)[1](1.0)[0],
        "jacrev": tg.jacrev(f)(p),
        "jacfwd": tg.jacfwd(f)(p),
        "map": tg.tree.map(lambda a, b: b, p, exact),
    }
    for name, g in found.items():
        assert {k: float(v) for k, v in g.items()} == exact, name
        assert tuple(g) == order, name
    assert tuple(tg.jit(lambda p: p)(p)) == order
    assert tuple(tg.vmap(lambda p: p)(tg.tree.map(lambda x: np.full(2, x), p))) == order
    hessian = tg.hessian(f)(p)
    assert tuple(hessian) == order
    assert all(tuple(row) == order for row in hessian.values())
    assert float(hessian["z"]["a"]) == 10.0


def test_treeorder_of_mixed_keys():
    """Keys that do not sort with each other."""
    p = {1: 2.0, "a": 3.0, (2, 3): 4.0}
    g = tg.jit(tg.grad(lambda p: p[1] * p["a"] * p[2, 3]))(p)
    assert [(k, float(v)) for k, v in g.items()] == [(1, 12.0), ("a", 8.0), ((2, 3), 6.0)]


@dataclasses.dataclass
class State:
    w: object
    b: object = None


def test_treeorder_of_dataclasses():
    g = tg.grad(lambda s: s.w**2)(State(3.0))
    assert isinstance(g, State)
    assert (float(g.w), g.b) == (6.0, None)
