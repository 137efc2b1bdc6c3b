"""Minimum vertex cuts against brute force and against SciPy's maximum flow."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from tilegrad.autodiff.minimum_cut import FlowNetwork, vertex_cut


def random_dag(rng: random.Random, count: int):
    edges = [(a, b) for a, b in combinations(range(count), 2) if rng.random() < 0.35]
    sources = [v for v in range(count) if rng.random() < 0.3] or [0]
    sinks = [v for v in range(count) if rng.random() < 0.3] or [count - 1]
    capacities = [None if rng.random() < 0.1 else rng.randint(0, 9) for _ in range(count)]
    return capacities, edges, sources, sinks


def separates(cut, edges, sources, sinks):
    """Whether no path from a source to a sink avoids the vertices of ``cut``."""
    reached = set(sources) - cut
    for a, b in sorted(edges):  # the numbering is topological
        if a in reached and b not in cut:
            reached.add(b)
    return not reached & set(sinks)


def test_the_least_cut_of_small_graphs_is_that_of_brute_force():
    rng = random.Random(1)
    infeasible = 0
    for _ in range(300):
        count = rng.randint(1, 8)
        capacities, edges, sources, sinks = random_dag(rng, count)
        candidates = [v for v in range(count) if capacities[v] is not None]
        best = None
        for size in range(len(candidates) + 1):
            for cut in combinations(candidates, size):
                if separates(set(cut), edges, sources, sinks):
                    total = sum(capacities[v] for v in cut)
                    best = total if best is None else min(best, total)
        found = vertex_cut(capacities, edges, sources, sinks)
        if best is None:
            infeasible += 1
            assert found is None
            continue
        assert found.capacity == best
        assert sum(capacities[v] for v in found.vertices) == best
        assert separates(set(found.vertices), edges, sources, sinks)
    assert 10 < infeasible < 290


def test_prices_are_weighed_against_capacities_as_by_brute_force():
    rng = random.Random(2)
    for _ in range(200):
        count = rng.randint(1, 7)
        capacities, edges, _, sinks = random_dag(rng, count)
        capacities = [3 if c is None else c for c in capacities]
        prices = [rng.randint(0, 6) for _ in range(count)]
        best = None
        for bits in range(2**count):  # which vertices are kept; what else is needed is made again
            kept = {v for v in range(count) if bits >> v & 1}
            needed = set(sinks)
            for a, b in sorted(edges, key=lambda e: -e[1]):
                if b in needed and b not in kept:
                    needed.add(a)
            total = sum(capacities[v] for v in kept) + sum(prices[v] for v in needed - kept)
            best = total if best is None else min(best, total)
        found = vertex_cut(capacities, edges, (), sinks, prices)
        assert found.capacity == best
        paid = sum(capacities[v] for v in found.vertices) + sum(prices[v] for v in found.bypassed)
        assert paid == best


@pytest.mark.parametrize("seed", range(8))
def test_the_flow_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    count = 40
    dense = rng.integers(0, 100, (count, count)) * (rng.random((count, count)) < 0.15)
    np.fill_diagonal(dense, 0)
    network = FlowNetwork(count)
    for a, b in zip(*np.nonzero(dense), strict=True):
        network.add_edge(int(a), int(b), int(dense[a, b]))
    expected = maximum_flow(csr_array(dense.astype(np.int32)), 0, count - 1).flow_value
    assert network.maximum_flow(0, count - 1) == expected
    near = network.reachable(0)
    crossing = sum(
        int(dense[a, b]) for a in range(count) for b in range(count) if near[a] and not near[b]
    )
    assert crossing == expected > 0


def test_a_long_chain_and_capacities_beyond_64_bits():
    count = 20_000
    capacities = [10**30 + (v != 7_000) for v in range(count)]
    found = vertex_cut(capacities, [(v, v + 1) for v in range(count - 1)], [0], [count - 1])
    assert found.vertices == (7_000,)
    assert found.capacity == 10**30


def test_a_vertex_that_is_source_and_sink_must_be_cut():
    assert vertex_cut([5], [], [0], [0]).vertices == (0,)
    assert vertex_cut([None], [], [0], [0]) is None
    assert vertex_cut([5, 5], [], [0], [1]).vertices == ()
