"""A structure compiled to an expression builds what the walk over the structure builds."""

from collections import namedtuple
from dataclasses import dataclass, field

import pytest

from tilegrad.engine.rebuild import builder
from tilegrad.engine.tree import put_together, register_node, take_apart

Pair = namedtuple("Pair", "x y")


@dataclass
class Layer:
    weight: object
    bias: object
    name: str = field(default="", metadata={"static": True})


class Box:
    def __init__(self, content, label):
        self.content, self.label = content, label

    def __eq__(self, other):
        return (self.content, self.label) == (other.content, other.label)


register_node(Box, lambda b: ((b.content,), b.label), lambda aux, children: Box(*children, aux))

TREES = [
    1.0,
    (),
    [],
    {},
    None,
    (1.0,),
    [1.0, (2.0, None), {}],
    {"b": 1.0, "a": [2.0, 3.0], "c": None},
    {2: 1.0, 1: 2.0},
    {(): 1.0, "mixed keys": 2.0},
    Pair(1.0, {"z": 2.0, "y": Pair(3.0, None)}),
    Layer(1.0, [2.0, 3.0], 'it\'s a "name"'),
    [Box({"k": 1.0}, "label"), Box(2.0, None)],
]


@pytest.mark.parametrize("tree", TREES, ids=range(len(TREES)))
def test_equals_the_walk(tree):
    leaves = []
    spec = take_apart(tree, leaves)
    fresh = [f"leaf {i}" for i in range(len(leaves))]
    built, walked = builder(spec)(fresh), put_together(spec, iter(fresh))
    assert built == walked
    assert type(built) is type(walked)
    assert builder(spec)(leaves) == tree


def test_dictionaries_keep_their_order():
    leaves = []
    spec = take_apart({"b": 1.0, "a": 2.0}, leaves)
    assert leaves == [2.0, 1.0]
    assert list(builder(spec)(leaves).items()) == [("b", 1.0), ("a", 2.0)]


def test_each_call_makes_new_containers():
    leaves = []
    build = builder(take_apart([[1.0], {"a": 2.0}], leaves))
    first, second = build(leaves), build(leaves)
    assert first == second
    assert first is not second
    assert first[0] is not second[0]
    assert first[1] is not second[1]


def test_deep_structures_are_walked():
    tree = 1.0
    for _ in range(300):
        tree = [tree]
    leaves = []
    assert builder(take_apart(tree, leaves))(leaves) == tree
