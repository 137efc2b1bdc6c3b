"""Pytrees: structure, order, registration, prefixes."""

import dataclasses
from typing import Any, NamedTuple

import pytest

import tilegrad as tg
from tilegrad.engine import tree
from tilegrad.engine.static import static_key


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass(frozen=True)
class Layer:
    weight: Any
    bias: Any
    name: str = dataclasses.field(default="", metadata={"static": True})


CASES = [
    (1.0, [1.0]),
    (None, []),
    ([1.0, (2.0, 3.0), None], [1.0, 2.0, 3.0]),
    ({"b": 1.0, "a": [2.0]}, [2.0, 1.0]),
    (Point(1.0, {"k": 2.0}), [1.0, 2.0]),
    (Layer(1.0, [2.0, 3.0], "first"), [1.0, 2.0, 3.0]),
    ({}, []),
    ((), []),
]


@pytest.mark.parametrize(("given", "leaves"), CASES, ids=repr)
def test_round_trip(given: Any, leaves: list[float]) -> None:
    found, structure = tg.tree.flatten(given)
    assert found == leaves == tg.tree.leaves(given)
    assert structure.num_leaves == len(leaves)
    again = tg.tree.unflatten(structure, found)
    assert again == given
    assert type(again) is type(given)
    assert structure == tg.tree.structure(given)
    assert hash(structure) == hash(tg.tree.structure(given))


def test_none_is_a_container_of_nothing() -> None:  # case 130
    assert tg.tree.leaves({"w": None, "b": 3.0}) == [3.0]
    assert tg.tree.map(lambda x: x + 1, {"w": None, "b": 3.0}) == {"w": None, "b": 4.0}


def test_dictionaries_keep_their_order_and_compare_without_it() -> None:  # case 131
    one, other = {"z": 1.0, "a": 2.0}, {"a": 2.0, "z": 1.0}
    assert tg.tree.structure(one) == tg.tree.structure(other)
    assert hash(tg.tree.structure(one)) == hash(tg.tree.structure(other))
    assert tg.tree.leaves(one) == tg.tree.leaves(other) == [2.0, 1.0]
    assert list(tg.tree.map(lambda x: -x, one)) == ["z", "a"]
    assert list(tg.tree.map(lambda x, y: x + y, other, one)) == ["a", "z"]


def test_keys_that_do_not_compare() -> None:
    mixed = {"a": 1.0, 2: 3.0, None: 4.0}
    leaves, structure = tg.tree.flatten(mixed)
    assert leaves == [1.0, 3.0, 4.0]
    assert tg.tree.unflatten(structure, leaves) == mixed


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1.0], (1.0,)),
        ({"a": 1.0}, {"b": 1.0}),
        (None, 1.0),
        (Point(1.0, 2.0), (1.0, 2.0)),
        (Layer(1.0, 2.0, "a"), Layer(1.0, 2.0, "b")),
        ([], ()),
    ],
    ids=repr,
)
def test_structures_that_differ(one: Any, other: Any) -> None:
    assert tg.tree.structure(one) != tg.tree.structure(other)


def test_static_fields_compare_by_type_and_bits() -> None:
    assert tg.tree.structure(Layer(1.0, 2.0, 0.0)) != tg.tree.structure(Layer(1.0, 2.0, -0.0))  # type: ignore[arg-type]
    assert tg.tree.structure(Layer(1.0, 2.0, 1)) != tg.tree.structure(Layer(1.0, 2.0, True))  # type: ignore[arg-type]


def test_registered_class() -> None:
    class Interval:
        def __init__(self, low: Any, high: Any, closed: bool) -> None:
            assert low <= high, "children may be anything; __init__ must not run"
            self.low, self.high, self.closed = low, high, closed

    def unflatten(aux: bool, children: Any) -> Interval:
        made = object.__new__(Interval)
        made.low, made.high = children
        made.closed = aux
        return made

    tree.register_node(Interval, lambda i: ((i.low, i.high), i.closed), unflatten)
    swapped = tg.tree.map(lambda x: -x, Interval(1.0, 2.0, True))
    assert (swapped.low, swapped.high, swapped.closed) == (-1.0, -2.0, True)
    with pytest.raises(ValueError, match="Interval is a container already"):
        tree.register_node(Interval, lambda i: ((), None), unflatten)


def test_registered_dataclass_and_class_decorator() -> None:
    @dataclasses.dataclass
    class Model:
        scale: Any
        order: int

    tree.register_dataclass(Model, meta_fields=["order"])
    assert tg.tree.leaves(Model(2.0, 3)) == [2.0]
    assert tg.tree.map(lambda x: 2 * x, Model(2.0, 3)) == Model(4.0, 3)

    @tree.register_node_class
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

        def tree_flatten(self) -> Any:
            return (self.a, self.b), None

        @classmethod
        def tree_unflatten(cls, aux: Any, children: Any) -> Any:
            return cls(*children)

    assert tg.tree.leaves(tg.tree.map(lambda x: x + 1, Pair(1.0, [2.0]))) == [2.0, 3.0]


def test_map_over_several_trees_and_is_leaf() -> None:
    assert tg.tree.map(lambda x, y, z: x * y + z, [1, 2], [3, 4], [5, 6]) == [8, 14]
    with pytest.raises(ValueError, match=r"tree 2: expected the structure \[\*, \*\], got \[\*\]"):
        tg.tree.map(lambda x, y: x, [1, 2], [3])
    pairs = [(1, 2), (3, 4)]
    assert tg.tree.map(sum, pairs, is_leaf=lambda x: isinstance(x, tuple)) == [3, 7]


def test_reduce() -> None:
    assert tg.tree.reduce(lambda a, b: a + b, {"b": 1, "a": [2, 3]}) == 6
    assert tg.tree.reduce(lambda a, b: [*a, b], (1, 2), []) == [1, 2]
    with pytest.raises(TypeError, match="expected a leaf or an initial value, got an empty tree"):
        tg.tree.reduce(max, None)


def test_unflatten_counts_leaves() -> None:
    structure = tg.tree.structure({"a": 1, "b": [2, 3]})
    with pytest.raises(ValueError, match=r"expected 3 leaves for .*'b': \[\*, \*\].*got 2"):
        tg.tree.unflatten(structure, [1, 2])


def test_paths_name_leaves_as_the_user_reaches_them() -> None:
    given = {"w": [1, Point(2, 3)], "l": Layer(4, 5)}
    assert tg.tree.structure(given).paths("p") == [
        "p['l'].weight",
        "p['l'].bias",
        "p['w'][0]",
        "p['w'][1].x",
        "p['w'][1].y",
    ]


def test_repr_shows_the_structure() -> None:
    given = {"w": [1, None], "p": (Point(2, 3),)}
    assert repr(tg.tree.structure(given)) == "TreeDef({'w': [*, None], 'p': (Point(*, *),)})"


@pytest.mark.parametrize(
    ("prefix", "entries"),
    [
        (0, [0, 0, 0]),
        (None, [None, None, None]),
        ((0, None), [0, None, None]),
        ([1, {"a": 2, "b": None}], [1, 2, None]),
        ((1, {"b": 3, "a": 2}), [1, 2, 3]),
    ],
    ids=repr,
)
def test_prefixes_stand_for_what_is_below(prefix: Any, entries: list[Any]) -> None:
    spec = tg.tree.structure((1.0, {"a": 2.0, "b": 3.0})).spec
    assert tree.spread(prefix, spec, "axes") == entries


@pytest.mark.parametrize(
    ("prefix", "text"),
    [
        ((0,), r"axes: expected an int, None or the container \(\*, \{'a': \*, 'b': \*\}\)"),
        ((0, {"a": 1}), r"axes\[1\]: expected an int, None or the container \{'a': \*, 'b': \*\}"),
        (((0, 1), 0), r"axes\[0\]: expected an int, None or the container \*, got \(0, 1\)"),
    ],
    ids=repr,
)
def test_prefixes_that_do_not_fit(prefix: Any, text: str) -> None:
    spec = tg.tree.structure((1.0, {"a": 2.0, "b": 3.0})).spec
    with pytest.raises(ValueError, match=text):
        tree.spread(prefix, spec, "axes")


def test_static_keys_tell_types_and_bits_apart() -> None:
    nan = float("nan")
    values = [0.0, -0.0, 0, False, 1, 1.0, True, 1 + 0j, complex(1, -0.0), nan, "1", (1,), (1.0,)]
    assert len({static_key(v) for v in values}) == len(values)
    assert static_key(nan) == static_key(float("nan"))
    assert static_key((1, (2.0, "a"))) == static_key((1, (2.0, "a")))
    with pytest.raises(TypeError):
        static_key([1])
