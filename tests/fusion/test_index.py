"""Index expressions against plain integer arithmetic, over all values of their loop variables."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilegrad.fusion.index import (
    Dynamic,
    Index,
    Mod,
    Quotient,
    Var,
    constant,
    delinearize,
    linearize,
    reindex_reshape,
    row_major,
    variable,
)

EXTENTS = (3, 4, 5)
RUN_TIME = Dynamic(7, 2, 6)


def value(index, atoms):
    """The integer an expression stands for, by its definition."""
    total = index.const
    for atom, coefficient in index.terms:
        if isinstance(atom, Quotient):
            term = value(atom.numerator, atoms) // atom.divisor
        elif isinstance(atom, Mod):
            term = value(atom.numerator, atoms) % atom.divisor
        else:
            term = atoms[atom]
        total += coefficient * term
    return total


def every_assignment():
    """All values of the three loop variables and the run-time integer."""
    spans = [range(n) for n in EXTENTS] + [range(RUN_TIME.low, RUN_TIME.high)]
    atoms = [Var(d, n) for d, n in enumerate(EXTENTS)] + [RUN_TIME]
    return [dict(zip(atoms, at, strict=True)) for at in itertools.product(*spans)]


ASSIGNMENTS = every_assignment()


def values(index):
    return np.array([value(index, atoms) for atoms in ASSIGNMENTS])


def numerators(index):
    for atom, _ in index.terms:
        if isinstance(atom, (Quotient, Mod)):
            yield atom.numerator
            yield from numerators(atom.numerator)


@st.composite
def expressions(draw, depth=3):
    """(expression, its values) built by the operations of Index and by NumPy's side by side."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        leaf = draw(st.sampled_from(["constant", 0, 1, 2, "run time"]))
        if leaf == "constant":
            index = constant(draw(st.integers(-30, 30)))
        elif leaf == "run time":
            index = Index(0, ((RUN_TIME, 1),))
        else:
            index = variable(leaf, EXTENTS[leaf])
        return index, values(index)
    x, x_values = draw(expressions(depth=depth - 1))
    operation = draw(st.sampled_from(["add", "add int", "mul", "quotient", "remainder"]))
    if operation == "add":
        y, y_values = draw(expressions(depth=depth - 1))
        return x + y, x_values + y_values
    if operation == "add int":
        shift = draw(st.integers(-20, 20))
        return x + shift, x_values + shift
    if operation == "mul":
        factor = draw(st.integers(-7, 7))
        return x * factor, x_values * factor
    divisor = draw(st.integers(1, 13))
    quotient, remainder = x.divmod(divisor)
    if operation == "quotient":
        return quotient, x_values // divisor
    return remainder, x_values % divisor


@given(expressions())
def test_arithmetic_has_the_values_of_integer_arithmetic(pair):
    index, expected = pair
    assert np.array_equal(values(index), expected), str(index)


@given(expressions())
def test_range_encloses_every_value(pair):
    index, expected = pair
    low, high = index.range()
    assert low <= expected.min(), str(index)
    assert high >= expected.max(), str(index)


@given(expressions())
def test_numerators_are_never_negative(pair):
    # The emitter divides them as unsigned integers.
    for numerator in numerators(pair[0]):
        assert numerator.range()[0] >= 0, str(numerator)


@given(expressions())
def test_terms_are_distinct_atoms_without_zero_coefficients(pair):
    index, _ = pair
    assert all(c for _, c in index.terms), str(index)
    assert len({a for a, _ in index.terms}) == len(index.terms), str(index)


@given(expressions(), st.integers(0, 2), expressions(depth=1))
def test_substitution_replaces_a_loop_variable_everywhere(pair, axis, replacement):
    index, _ = pair
    new, _ = replacement
    new = new.divmod(EXTENTS[axis])[1]  # a value of the loop variable again
    substituted = index.substitute({Var(axis, EXTENTS[axis]): new})
    expected = [
        value(index, {**atoms, Var(axis, EXTENTS[axis]): value(new, atoms)})
        for atoms in ASSIGNMENTS
    ]
    assert np.array_equal(values(substituted), expected), f"{index} -> {substituted}"


@given(expressions(), st.integers(0, 2))
def test_coefficient_is_the_step_along_a_loop(pair, axis):
    index, _ = pair
    coefficient = index.coefficient(axis)
    if coefficient is None:
        assert index.depends_on(axis)
        return
    for atoms in ASSIGNMENTS:
        var = Var(axis, EXTENTS[axis])
        if atoms[var] + 1 < EXTENTS[axis]:
            step = value(index, {**atoms, var: atoms[var] + 1}) - value(index, atoms)
            assert step == coefficient, str(index)
    assert index.depends_on(axis) == (coefficient != 0)


@given(expressions())
def test_dynamics_lists_the_run_time_integers(pair):
    index, _ = pair
    changed = [
        value(index, {**atoms, RUN_TIME: 5}) != value(index, {**atoms, RUN_TIME: 2})
        for atoms in ASSIGNMENTS
    ]
    if any(changed):
        assert 7 in index.dynamics()
    assert set(index.dynamics()) <= {7}


# --------------------------------------------------------------------------------- simplification


def test_divmod_of_a_linearized_pair_gives_the_pair_back():
    i, j = variable(0, 5), variable(1, 12)
    assert (i * 12 + j).divmod(12) == (i, j)
    assert (i * 24 + j * 2 + 1).divmod(24) == (i, j * 2 + 1)


def test_a_loop_of_one_iteration_is_zero():
    assert variable(3, 1) == Index(0)


def test_what_cannot_be_simplified_stays_a_quotient_and_a_remainder():
    quotient, remainder = variable(0, 10).divmod(4)
    assert (str(quotient), str(remainder)) == ("(i0)//4", "(i0)%4")


def test_text_of_an_expression():
    assert str(variable(0, 4) * 12 + variable(1, 12) + 3) == "12*i0 + i1 + 3"
    assert str(constant(0)) == "0"


# ----------------------------------------------------------------------------------------- shapes


shapes = st.lists(st.integers(1, 6), max_size=4).map(tuple)


@given(shapes)
def test_row_major_strides_are_numpy_strides(shape):
    expected = tuple(s // 8 for s in np.empty(shape).strides)
    assert row_major(shape) == expected


@given(shapes)
def test_delinearize_inverts_linearize(shape):
    at = tuple(variable(d, n) for d, n in enumerate(shape))
    assert tuple(delinearize(linearize(at, row_major(shape)), shape)) == at


@given(st.permutations([2, 3, 4]), st.data())
def test_reshape_maps_each_element_to_the_one_at_the_same_position(factors, data):
    """All ways to group 24 elements: cut, merged, with unit axes."""
    old = _grouped(factors, data)
    new = _grouped(data.draw(st.permutations([2, 3, 4])), data)
    at = tuple(variable(d, n) for d, n in enumerate(new))
    source = reindex_reshape(at, new, old)
    assert len(source) == len(old)
    table = np.arange(prod(old)).reshape(old)
    for place in itertools.product(*(range(n) for n in new)):
        atoms = {Var(d, n): k for d, (n, k) in enumerate(zip(new, place, strict=True))}
        found = tuple(value(i, atoms) for i in source)
        assert table[found] == np.arange(prod(new)).reshape(new)[place]


def _grouped(factors, data):
    shape = []
    for n in factors:
        if shape and data.draw(st.booleans()):
            shape[-1] *= n
        else:
            shape.append(n)
    for _ in range(data.draw(st.integers(0, 2))):
        shape.insert(data.draw(st.integers(0, len(shape))), 1)
    return tuple(shape)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ((6,), (2, 3), ["(i0)//3", "(i0)%3"]),
        ((2, 3), (6,), ["3*i0 + i1"]),
        ((4, 6), (4, 2, 3), ["i0", "(i1)//3", "(i1)%3"]),  # the first axis is not touched
        ((4, 1, 5), (4, 5), ["i0", "i2"]),
        ((2, 3), (3, 2), ["(3*i0 + i1)//2", "(3*i0 + i1)%2"]),
        ((1, 1), (), []),
        ((), (1, 1), ["0", "0"]),
    ],
)
def test_reshape_divides_only_where_it_cuts(new, old, expected):
    at = [variable(d, n) for d, n in enumerate(new)]
    assert [str(i) for i in reindex_reshape(at, new, old)] == expected


@pytest.mark.parametrize(("new", "old"), [((0, 3), (3, 0)), ((0,), (2, 0, 5)), ((2, 0), (0,))])
def test_reshape_of_nothing_ends(new, old):
    at = [variable(d, n) for d, n in enumerate(new)]
    assert len(reindex_reshape(at, new, old)) == len(old)
