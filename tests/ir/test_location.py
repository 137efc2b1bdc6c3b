"""Where nodes say they were made."""

import inspect

import pytest

from tilegrad.autodiff.reverse import vjp
from tilegrad.ir.dtypes import float64
from tilegrad.ir.errors import ShapeError
from tilegrad.ir.graph import Value, toposort
from tilegrad.ir.location import location_of, one_place, user_location, user_place
from tilegrad.ir.ops.arithmetic import add, mul
from tilegrad.ir.ops.leaves import constant, input_node
from tilegrad.ir.ops.trigonometric import sin
from tilegrad.ir.types import TensorType

X = input_node(TensorType((3,), float64), "x").out


def line():
    """The line of the caller."""
    return inspect.currentframe().f_back.f_lineno


def test_a_node_knows_the_line_that_made_it():
    y, here = sin(X), line()
    assert (y.node.location.filename, y.node.location.line) == (__file__, here)
    assert str(y.node.location).endswith("y, here = sin(X), line()")


def test_far_down_in_a_long_function():
    scope = {"sin": sin, "X": X}
    source = "def long():\n" + "    a = 1\n" * 500 + "    return sin(X)\n"
    exec(compile(source, "user.py", "exec"), scope)
    assert scope["long"]().node.location.line == 502
    assert scope["long"]().node.location.filename == "user.py"


def test_each_of_several_lines_of_a_call():
    y = add(
        mul(X, X),
        X,
    )
    first = y.node.inputs[0].node.location.line
    assert first - y.node.location.line == 1


def test_one_place_for_all_nodes():
    with one_place():
        here = line() - 1
        nodes = [sin(X).node, add(X, X).node]
    assert [n.location.line for n in nodes] == [here, here]
    after, now = sin(X), line()
    assert after.node.location.line == now


def test_errors_name_their_own_line_within_one_place():
    y = input_node(TensorType((4,), float64), "y").out
    with one_place(), pytest.raises(ShapeError) as caught:
        add(
            X,
            y,
        )
    assert caught.value.location.filename == __file__
    assert (
        caught.value.location.line
        > inspect.getsourcelines(test_errors_name_their_own_line_within_one_place)[1]
    )
    assert "add(" in str(caught.value)


def test_derivatives_are_made_where_they_are_asked_for():
    out = sin(X * X)
    given = set(toposort([out]))
    pullback, here = vjp([out], [X]), line()
    (bar,), there = pullback([X]), line()
    made = {n.location.line for n in toposort([bar]) if n not in given and n.place is not None}
    assert made == {here, there}
    files = {n.location.filename for n in toposort([bar]) if n.place is not None}
    assert files == {__file__}


def test_places_of_the_package_are_nobodys():
    assert constant(1.25).node.location is None  # shared by all that use the number
    assert location_of(None) is None
    assert user_location().line == line()
    assert user_place()[0] is inspect.currentframe().f_code
    assert isinstance(constant(1.25), Value)
