"""Random programs: what must hold of every graph, whatever its ops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_graphs import Program, assert_same_bits, drawable_ops, programs

from tilegrad.ir.compare import graphs_equal, structure
from tilegrad.ir.graph import Graph
from tilegrad.ir.ops.arithmetic import add
from tilegrad.ir.parse import parse
from tilegrad.ir.passes.manager import PASSES, optimize, run_passes
from tilegrad.ir.rewrite import substitute
from tilegrad.ir.text import text
from tilegrad.ir.verify import verify


@given(programs())
@settings(max_examples=150)
def test_text_round_trip(program):
    graph = verify(program.graph)
    source = text(graph)
    back = parse(source)
    assert graphs_equal(back, graph)
    assert text(back) == source
    assert_same_bits(program.run(), program.run(verify(back)))


@pytest.mark.parametrize("step", PASSES, ids=lambda step: step.name)
@given(program=programs())
@settings(max_examples=150)
def test_each_pass_keeps_its_promise(step, program):
    """Bitwise passes keep every bit, the verifier's rules, and have nothing left to do."""
    assert step.keeps == "bitwise"  # a real-only pass needs a bound instead of equality
    once = run_passes(program.graph, [step], check=True)
    assert_same_bits(program.run(), program.run(once))
    twice = run_passes(once, [step], check=True)
    assert graphs_equal(once, twice), f"{text(once)}\nbecame\n{text(twice)}"


@given(programs(steps=16))
@settings(max_examples=150)
def test_optimized_equals_unoptimized(program):
    best = run_passes(program.graph, fixpoint=True, check=True)
    assert_same_bits(program.run(), program.run(best))
    assert len(best.nodes()) <= len(program.graph.nodes())
    assert graphs_equal(optimize(best), best)


@given(programs(), st.data())
@settings(max_examples=75)
def test_sharing_does_not_matter(program, data):
    """LL42, let: one node used twice, or two equal nodes, are the same program for CSE."""
    graph = program.graph
    copy = parse(text(graph))  # fresh nodes throughout
    renamed = dict(zip(copy.inputs, graph.inputs, strict=True))
    moved = substitute(copy.outputs, {a.out: b.out for a, b in renamed.items()})
    doubled = Graph(graph.inputs, (*graph.outputs, *moved))
    best = optimize(doubled)
    n = len(graph.outputs)
    assert best.outputs[:n] == best.outputs[n:]
    assert len(best.nodes()) == len(optimize(graph).nodes())


@given(programs(steps=5), programs(steps=5))
@settings(max_examples=75)
def test_substitution_is_composition(first, second):
    """LL42: running ``g`` on the value of ``f`` is running ``g`` with ``f`` put in its place."""
    slot = next((n for n in second.graph.inputs if n.types[0] == first.graph.outputs[0].type), None)
    if slot is None:
        return
    at = second.graph.inputs.index(slot)
    inlined = substitute(second.graph.outputs, {slot.out: first.graph.outputs[0]})
    others = second.graph.inputs[:at] + second.graph.inputs[at + 1 :]
    composed = Graph((*first.graph.inputs, *others), inlined)
    arguments = list(second.arguments)
    arguments[at] = first.run()[0]
    whole = Program(verify(composed), (*first.arguments, *arguments[:at], *arguments[at + 1 :]))
    assert_same_bits(Program(second.graph, tuple(arguments)).run(), whole.run())


@given(programs())
@settings(max_examples=50)
def test_dead_code_does_not_matter(program):
    """LL42: a graph with fewer outputs computes those as before, and holds nothing else."""
    graph = program.graph
    less = Graph(graph.inputs, graph.outputs[:1])
    assert_same_bits(program.run()[:1], program.run(less))
    assert set(less.nodes()) <= set(graph.nodes())


@given(programs())
@settings(max_examples=50)
def test_structure_is_stable(program):
    assert structure(program.graph) == structure(parse(text(program.graph)))
    x = program.graph.outputs[0]
    if x.dtype.is_bool or x.dtype.is_inexact:
        grown = Graph(program.graph.inputs, (add(x, x), *program.graph.outputs[1:]))
        assert structure(grown) != structure(program.graph)


@pytest.mark.parametrize("name", sorted(set(drawable_ops())))
def test_programs_reach_every_op(name):
    """The strategy knows how to draw operands for each op of the table."""
    seen = set()

    @given(programs(steps=4, ops=[name], total=False))
    @settings(max_examples=40)
    def collect(program):
        seen.update(node.op.name for node in program.graph.nodes())

    collect()
    assert name in seen


def test_same_bits_compares_bits():
    same = [np.array([0.0, np.nan]), np.array([1 + 2j])]
    assert_same_bits(same, [a.copy() for a in same])
    for other in ([0.0], [-0.0, np.nan], [0.0, 1.0]):
        with pytest.raises(AssertionError):
            assert_same_bits([np.array([0.0, np.nan])], [np.array(other)])
