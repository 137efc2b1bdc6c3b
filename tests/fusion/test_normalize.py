"""Loop normalization: fewer loops, the same accesses in an order that reductions fix."""

from __future__ import annotations

import itertools
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from tilegrad.fusion.index import (
    Index,
    Mod,
    Quotient,
    Var,
    linearize,
    reindex_reshape,
    row_major,
    variable,
)
from tilegrad.fusion.loops import Instruction, Nest, Store
from tilegrad.fusion.normalize import normalize
from tilegrad.ir.dtypes import float64


def value(index, at):
    total = index.const
    for atom, coefficient in index.terms:
        if isinstance(atom, Var):
            term = at[atom.axis]
        elif isinstance(atom, Quotient):
            term = value(atom.numerator, at) // atom.divisor
        else:
            assert isinstance(atom, Mod)
            term = value(atom.numerator, at) % atom.divisor
        total += coefficient * term
    return total


def visits(nest):
    """What each iteration reads and writes, in order."""
    expressions = [i.index for i in nest.tape] + [s.index for s in nest.stores]
    return [
        tuple(value(e, at) for e in expressions)
        for at in itertools.product(*(range(n) for n in nest.extents))
    ]


@st.composite
def nests(draw):
    """Loops with the accesses that views make: permuted, reversed, strided, cut by a reshape."""
    extents = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    reduced = draw(st.integers(0, len(extents)))
    at = tuple(variable(d, n) for d, n in enumerate(extents))
    expressions = []
    for _ in range(draw(st.integers(1, 3))):
        indices, shape = at, extents
        for _ in range(draw(st.integers(0, 2))):
            kind = draw(st.sampled_from(["permute", "flip", "reshape", "broadcast"]))
            if kind == "permute":
                order = draw(st.permutations(range(len(shape))))
                indices = tuple(indices[d] for d in order)
                shape = tuple(shape[d] for d in order)
            elif kind == "flip":
                d = draw(st.integers(0, len(shape) - 1)) if shape else None
                if d is not None:
                    moved = indices[d] * -1 + (shape[d] - 1)
                    indices = (*indices[:d], moved, *indices[d + 1 :])
            elif kind == "reshape":
                new = draw(st.sampled_from([(prod(shape),), shape[::-1], (*shape, 1)]))
                indices, shape = tuple(reindex_reshape(indices, shape, new)), new
            elif shape:
                indices, shape = indices[1:], shape[1:]
        expressions.append(linearize(indices, row_major(shape)))
    tape = tuple(Instruction("load", float64, buffer=k, index=e) for k, e in enumerate(expressions))
    outer = at[: len(extents) - reduced]
    target = linearize(outer, row_major(extents[: len(outer)])) if outer else Index(0)
    return Nest(extents, tape, (Store(9, target, 0),)), reduced


@given(nests())
def test_normalized_loops_visit_the_same_elements_in_the_same_order(case):
    nest, reduced = case
    new = normalize(nest, reduced)
    assert visits(new) == visits(nest)
    assert len(new.extents) <= max(len(nest.extents), 1)


@given(nests())
def test_no_unit_loops_and_one_reduction_loop_are_left(case):
    nest, reduced = case
    new = normalize(nest, reduced)
    outer = new.extents[: len(new.extents) - bool(reduced)]
    assert all(n > 1 for n in outer)
    if reduced:
        assert new.extents[-1] == prod(nest.extents[len(nest.extents) - reduced :])


def test_the_read_of_example_6_4_becomes_one_row():
    """Inventory LL28: merged loops see one stride."""
    i, j, k = (variable(d, n) for d, n in enumerate((4, 8, 1024)))
    nest = Nest(
        (4, 8, 1024),
        (Instruction("load", float64, buffer=0, index=k + i * 65536 + j * 8192),),
        (Store(1, i * 8192 + j * 1024 + k, 0),),
    )
    new = normalize(nest, 0)
    assert new.extents == (32, 1024)
    assert str(new.tape[0].index) in ("i1 + 8192*i0", "8192*i0 + i1")


def test_loops_with_another_order_stay_apart():
    i, j = variable(0, 5), variable(1, 7)
    tape = (Instruction("load", float64, buffer=0, index=j * 5 + i),)
    assert normalize(Nest((5, 7), tape, (Store(1, i * 7 + j, 0),)), 0).extents == (5, 7)
